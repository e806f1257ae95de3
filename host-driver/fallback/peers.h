/*
 * How the ranks of a job meet without a table: at an address where rank 0 listens, which RANK,
 * WORLD_SIZE, MASTER_ADDR and MASTER_PORT say, as torchrun and others set them, or
 * host-driver/bootstrap. Every rank tells rank 0 where it listens, and learns where all do.
 * Blocking, with a deadline; one thread. Needs IPv4 between all hosts.
 */
#ifndef BY_HOST_FALLBACK_PEERS_H
#define BY_HOST_FALLBACK_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ranks that may meet: rank 0 holds a connection to each of them, of 1024 files that a process may
 * open. */
#define BY_PEERS_MAX 1000u

#define BY_MEETING_ADDRESSES 9u

struct by_meeting {
    bool wanted; /* one of the four variables is set, or another bootstrap has filled this */
    uint32_t rank, rank_count;
    char host[256]; /* of rank 0: a name or an address */
    uint16_t port;
    uint32_t ip[BY_MEETING_ADDRESSES]; /* of rank 0, in the order to try them; none: `host` is looked up */
    uint32_t ip_count;
    int door; /* rank 0: the socket that listens there already, or -1 */
};

struct by_peers {
    uint32_t rank, rank_count;
    uint32_t *ip;   /* of each rank, in host order */
    uint16_t *port; /* where it listens */
    int listener;   /* here, for peers */
    int *link;      /* rank 0: the connection to each rank; others: link[0] is that to rank 0 */
};

/* Reads the four variables. Nothing is set: wanted is false and the rest 0. 0 or BY_EINVAL with its
 * text. */
int by_meeting_read(struct by_meeting *meeting);

/* Meets the others; `key` is the same at all of them, else it is no meeting. The caller ends with
 * by_peers_close, also after an error. 0, or an error whose text says who is missing and where. */
int by_peers_meet(struct by_peers *peers, const struct by_meeting *meeting, uint32_t key,
                  uint64_t deadline_ns);
/* Waits for all; what rank 0 has in `numbers` then is what all have. */
int by_peers_agree(struct by_peers *peers, uint64_t *numbers, uint32_t count, uint64_t deadline_ns);
/* Ranks from `first` on that `link` has no connection to, and that are wanted (NULL: all), as "2, 3
 * and 4 more". */
void by_peers_missing(const int *link, const bool *wanted, uint32_t first, uint32_t count, char *text,
                      size_t bytes);
/* Ends what only the meeting needs: all but the addresses. */
void by_peers_part(struct by_peers *peers);
void by_peers_close(struct by_peers *peers);

/* Moves all bytes of a buffer over a socket that does not block. 0, BY_ETIMEDOUT, or BY_EIO with
 * errno (0: the other end has closed). */
int by_peer_write(int fd, const void *bytes, size_t size, uint64_t deadline_ns);
int by_peer_read(int fd, void *bytes, size_t size, uint64_t deadline_ns);
/* A connection to ip:port; tries again while nobody listens there. A socket, or BY_ETIMEDOUT or
 * BY_EIO. */
int by_peer_connect(uint32_t ip, uint16_t port, uint64_t deadline_ns);
/* A socket that listens at ip:port (0: any), or BY_EBUSY, BY_ENOENT or BY_EIO with errno. As many
 * may wait there as the system allows: beyond that the kernel drops who comes, who then tries again
 * after a second. */
int by_peer_listen(uint32_t ip, uint16_t port);
/* What every connection here wants: no delay, no block, no heritage. */
void by_peer_prepare(int fd);

#endif
