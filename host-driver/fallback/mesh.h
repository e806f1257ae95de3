/*
 * Connections between the ranks of a job, and messages over them. A rank has two TCP connections to
 * each rank that its schedules need: one for data, and one for notices, which must not wait behind
 * data. A notice reports a failure, or asks a silent rank which rank it waits for. The kernel
 * acknowledges, retransmits and keeps the order of data also while the application computes. A rank
 * sends one message and receives one at a time, in pieces that lie anywhere in memory. Only
 * by_mesh_open blocks; one thread.
 */
#ifndef BY_HOST_FALLBACK_MESH_H
#define BY_HOST_FALLBACK_MESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "host-driver/circulant/circulant.h"
#include "host-driver/fallback/peers.h"

struct pollfd;

#define BY_MESSAGE_BYTES 24u /* of a message's head */
#define BY_NOTICE_BYTES  16u
#define BY_MESH_FDS      3u         /* what by_mesh_fds fills */
#define BY_MESH_SLEEP_NS 100000000u /* who sleeps on these does so no longer than that at a time */

/* What both ends must agree on before a message's bytes are taken. */
struct by_host_message {
    uint32_t call;  /* number of the call, from 0 */
    uint32_t round; /* of the call, from 0 */
    uint32_t tag;   /* of what the call is: collective, operator, type, root, count */
    uint64_t bytes;
};

/* A message on its way: its head and its pieces, which stay the caller's and in place until it is
 * done. */
struct by_host_transfer {
    bool active;
    uint32_t peer;
    uint8_t head[BY_MESSAGE_BYTES];
    uint32_t head_done;
    struct iovec *piece;
    uint32_t piece_count;
    uint32_t piece_at; /* the first with bytes that are to be moved; it is moved on as they are */
};

/* What has come of a notice. */
struct by_inbox {
    uint8_t bytes[BY_NOTICE_BYTES];
    uint32_t have;
};

struct by_host_mesh {
    uint32_t rank, rank_count;
    uint32_t *ip;
    int *data, *control;    /* to each rank, or -1 */
    bool *gone;             /* the rank has closed its connection */
    struct by_inbox *inbox; /* of each rank */
    int watch;              /* epoll of all control connections */
    uint32_t suspect;       /* whom the peer that is waited for has named; our own rank: nobody */
    uint32_t answered;      /* answers to by_mesh_ask */
    uint64_t tx_bytes, rx_bytes, messages;
    struct by_host_transfer send, receive;
    struct by_host_message expected;
};

/* How a step of the mesh failed: which rank is the reason, as far as is known here. */
struct by_mesh_fault {
    int error; /* 0: none; BY_EIO: `rank` is gone; BY_EMISMATCH: it is in another call; or what a notice said
                */
    uint32_t rank;
};

/* Connects to all that `circulant` needs, neighbours of its ring and partners of its cube among
 * them. 0, or an error with its text. The caller ends with by_mesh_close, also after an error. */
int by_mesh_open(struct by_host_mesh *mesh, const struct by_circulant *circulant,
                 const struct by_peers *peers, uint32_t key, uint64_t deadline_ns);
void by_mesh_close(struct by_host_mesh *mesh);

/* Begins to send or to receive a message; that direction must be idle. */
void by_mesh_send(struct by_host_mesh *mesh, uint32_t to, const struct by_host_message *message,
                  struct iovec *piece, uint32_t piece_count);
void by_mesh_receive(struct by_host_mesh *mesh, uint32_t from, const struct by_host_message *message,
                     struct iovec *piece, uint32_t piece_count);
/* Moves what can be moved. Bytes moved; `fault` is set when no more will. */
uint64_t by_mesh_step(struct by_host_mesh *mesh, struct by_mesh_fault *fault);
/* notice.c: reads notices that have come, and answers those who ask; `fault` is set when one tells
 * of it. */
void by_mesh_listen(struct by_host_mesh *mesh, struct by_mesh_fault *fault);
/* Tells all others that `fault` has ended this job. */
void by_mesh_warn(struct by_host_mesh *mesh, const struct by_mesh_fault *fault);
/* The rank that holds up the running transfers, or our own. */
uint32_t by_mesh_peer(const struct by_host_mesh *mesh);
/* Asks that rank whom it waits for itself. Its answer comes by by_mesh_listen: it is counted in
 * `answered`, and `suspect` is whom it names. */
void by_mesh_ask(struct by_host_mesh *mesh);
/* Whom this rank waits for, as far as it knows: by_mesh_peer, or whom that one has named. */
uint32_t by_mesh_suspect(const struct by_host_mesh *mesh);
/* What poll() may sleep on, at most BY_MESH_FDS; returns how many. */
uint32_t by_mesh_fds(const struct by_host_mesh *mesh, struct pollfd *fds);
/* Sleeps on them until one is ready, or until `until_ns`. */
void by_mesh_sleep(const struct by_host_mesh *mesh, uint64_t until_ns);

#endif
