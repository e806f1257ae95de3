/*
 * How the ranks of a job connect without a table. Rank 0 listens at an address that RANK,
 * WORLD_SIZE, MASTER_ADDR and MASTER_PORT define (as torchrun and others set them), or
 * host-driver/bootstrap. Every rank sends rank 0 the address at which it listens itself, and
 * receives the addresses of all ranks. Blocking, with a deadline; one thread. Requires IPv4 between
 * all hosts.
 */
#ifndef BY_HOST_FALLBACK_PEERS_H
#define BY_HOST_FALLBACK_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum number of ranks: rank 0 holds a connection to each while they meet. */
#define BY_PEERS_MAX 1000u

#define BY_MEETING_ADDRESSES 9u

struct by_meeting {
    /* one of the four variables is set, or another bootstrap has filled this struct */
    bool wanted;
    uint32_t rank, rank_count;
    char host[256]; /* of rank 0: a name or an address */
    uint16_t port;
    /* of rank 0, in the order to try; none: resolve `host` */
    uint32_t ip[BY_MEETING_ADDRESSES];
    uint32_t ip_count;
    int door; /* rank 0: the socket that already listens there, or -1 */
};

struct by_peers {
    uint32_t rank, rank_count;
    uint32_t *ip; /* of each rank, in host order */
    /* The rank with which rank 0 measures the network: the first on another host, else rank 1;
     * equal at all ranks. */
    uint32_t partner;
    uint16_t *port; /* at which it listens */
    int listener;   /* own listener, for peers; or -1: the mesh has taken it */
    /* rank 0: the connection to each rank; others: link[0] is the connection to rank 0 */
    int *link;
};

/* Reads the four variables. If none is set, wanted is false and the rest 0. 0, or BY_EINVAL with
 * its text. */
int by_meeting_read(struct by_meeting *meeting);

/* Connects to the other ranks; `key` must be equal at all ranks. The caller calls by_peers_close,
 * also after an error. 0, or an error whose text names the missing ranks and the address. */
int by_peers_meet(struct by_peers *peers, const struct by_meeting *meeting, uint32_t key,
                  uint64_t deadline_ns);
/* Waits for all ranks; afterwards all have rank 0's `numbers`, and *all states whether it was true
 * at each. */
int by_peers_agree(struct by_peers *peers, uint64_t *numbers, uint32_t count, bool *all,
                   uint64_t deadline_ns);
/* Collects `bytes` bytes of every rank, in rank order, at all ranks: all[rank_count * bytes]. */
int by_peers_gather(struct by_peers *peers, const void *mine, void *all, size_t bytes, uint64_t deadline_ns);
/* Lists the ranks from `first` on that `link` has no connection to and that are wanted (NULL: all),
 * such as "2, 3 and 4 more". */
void by_peers_missing(const int *link, const bool *wanted, uint32_t first, uint32_t count, char *text,
                      size_t bytes);
/* Closes everything but the addresses and ports, which are needed beyond the meeting. */
void by_peers_part(struct by_peers *peers);
void by_peers_close(struct by_peers *peers);

/* Transfers all bytes of a buffer over a non-blocking socket. 0, BY_ETIMEDOUT, or BY_EIO with errno
 * (0: the other end has closed). */
int by_peer_write(int fd, const void *bytes, size_t size, uint64_t deadline_ns);
int by_peer_read(int fd, void *bytes, size_t size, uint64_t deadline_ns);
/* Connects to ip:port; retries while nothing listens there. A socket, or BY_ETIMEDOUT or BY_EIO. */
int by_peer_connect(uint32_t ip, uint16_t port, uint64_t deadline_ns);
/* The same in two steps, without waiting: a socket that connects, or BY_EIO with errno; and whether
 * it is connected: 0, BY_EAGAIN, or BY_EIO with errno. */
int by_peer_dial(uint32_t ip, uint16_t port);
int by_peer_dialled(int fd);
/* Opens a socket that listens at ip:port (0: any). A socket, or BY_EBUSY, BY_ENOENT or BY_EIO with
 * errno. The backlog is as large as the system permits; beyond it the kernel drops connection
 * requests, and the clients retry after a second. */
int by_peer_listen(uint32_t ip, uint16_t port);
/* Sets the options of every connection: TCP_NODELAY, non-blocking, close on exec. */
void by_peer_prepare(int fd);

/* Raises the number of files that this process may open (the soft RLIMIT_NOFILE) by 1024, at most
 * to the hard limit. False: it has that already. Leaves errno as it is. */
bool by_files_raise(void);
/* Whether this process may open `count` files, perhaps after by_files_raise. */
bool by_files_allow(uint64_t count);
/* Describes an errno; EMFILE and ENFILE with the limit and the remedy. The text belongs to the
 * calling thread until its next call. */
const char *by_files_reason(int why);

#endif
