/*
 * Connections between the ranks of a job, and messages over them. A rank has two TCP connections to
 * each rank that most schedules need (in small jobs to each rank): one for data, and one for
 * notices, which must not wait behind data. Others are opened when a message needs them (links.h):
 * one for data, and one for notices only for a question. A notice reports a failure, or asks a
 * silent rank which rank it waits for. The kernel acknowledges, retransmits and orders the data,
 * even while the application computes. Data between ranks of one host move through memory that they
 * share (pipe.h). A rank sends one message and receives one at a time, from and into pieces
 * anywhere in memory. Only by_mesh_open blocks; one thread.
 */
#ifndef BY_HOST_FALLBACK_MESH_H
#define BY_HOST_FALLBACK_MESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "host-driver/circulant/circulant.h"
#include "host-driver/fallback/peers.h"

struct by_pipe;
struct pollfd;

#define BY_MESSAGE_BYTES 24u /* of a message's head */
#define BY_NOTICE_BYTES  16u
#define BY_MESH_FDS      3u         /* maximum that by_mesh_fds fills */
#define BY_FILES_OTHER   128u       /* open files that are no connections to other ranks */
#define BY_MESH_SLEEP_NS 100000000u /* maximum time of one sleep on these */

/* With at most this many ranks each is connected to each when they meet; with more, only to those
 * that most schedules of rounds need. */
#define BY_MESH_ALL_MAX 128u

/* The ranks to which by_mesh_open connects; to all others connections are opened on demand. */
enum by_mesh_reach {
    BY_REACH_ALL = 1,
    BY_REACH_SCHEDULES, /* the peers of circulant rounds, and so ring neighbours */
    BY_REACH_NONE
};

struct by_host_links;

/* Fields on which both ends must agree before a message's payload is received. */
struct by_host_message {
    uint32_t call;  /* number of the call, from 0 */
    uint32_t round; /* of the call, from 0 */
    uint32_t tag;   /* hash of the call: collective, operator, type, root, count */
    uint64_t bytes;
};

/* A message in flight: its head and its pieces. The pieces belong to the caller and must stay valid
 * until it is done. */
struct by_host_transfer {
    bool active;
    uint32_t peer;
    uint8_t head[BY_MESSAGE_BYTES];
    uint32_t head_done;
    struct iovec *piece;
    uint32_t piece_count;
    /* first piece with bytes left; it is advanced as they move */
    uint32_t piece_at;
};

/* The received part of a notice. */
struct by_inbox {
    uint8_t bytes[BY_NOTICE_BYTES];
    uint32_t have;
};

struct by_host_mesh {
    uint32_t rank, rank_count, key;
    uint32_t ranks_here; /* at the address of this rank, with it */
    bool shares;
    uint32_t *ip;
    struct by_host_links *links; /* connections on demand; NULL: there is one to each rank */
    int *data, *control;         /* per rank, or -1 */
    struct by_pipe **pipe;       /* per rank of this host, in place of `data`; or NULL */
    bool *gone;                  /* the rank has closed its connection */
    struct by_inbox *inbox;      /* per rank */
    int watch;                   /* epoll descriptor: control connections, and those under way */
    int limit_why;               /* errno behind a fault BY_ELIMIT */
    uint32_t suspect;            /* rank that the blocking peer waits for; own rank: none */
    uint32_t answered;           /* answers to by_mesh_ask */
    uint32_t waits_for;          /* rank that a schedule waits for (host-driver/schedule); own rank: none */
    uint64_t tx_bytes, rx_bytes, shared_bytes, messages;
    struct by_host_transfer send, receive;
    struct by_host_message expected;
};

/* Failure of a mesh step, and the responsible rank as far as it is known here. */
struct by_mesh_fault {
    /* 0: none; BY_EIO: `rank` is gone; BY_EMISMATCH: it is in another call; or the error of a
     * notice; BY_ELIMIT: the own rank may open no more files */
    int error;
    uint32_t rank;
    bool noticed; /* a notice reported it */
};

/* Connects to the ranks of `reach`. Takes the listener of `peers`, unless it reaches all; keeps
 * their addresses and ports, which must stay valid. `shares`: data between ranks of this host move
 * through memory. 0, or an error with its text. The caller calls by_mesh_close, also after an
 * error. */
int by_mesh_open(struct by_host_mesh *mesh, const struct by_circulant *circulant, struct by_peers *peers,
                 enum by_mesh_reach reach, uint32_t key, bool shares, uint64_t deadline_ns);
/* Returns the files that a rank has open once it is connected to all others. */
uint64_t by_mesh_files(const struct by_host_mesh *mesh);
void by_mesh_close(struct by_host_mesh *mesh);

/* Starts to send or receive a message; that direction must be idle. */
void by_mesh_send(struct by_host_mesh *mesh, uint32_t to, const struct by_host_message *message,
                  struct iovec *piece, uint32_t piece_count);
void by_mesh_receive(struct by_host_mesh *mesh, uint32_t from, const struct by_host_message *message,
                     struct iovec *piece, uint32_t piece_count);
/* Moves what it can; returns the bytes moved. Sets `fault` if no more will move. */
uint64_t by_mesh_step(struct by_host_mesh *mesh, struct by_mesh_fault *fault);
/* notice.c: reads received notices and answers questions; sets `fault` if a notice reports one. */
void by_mesh_listen(struct by_host_mesh *mesh, struct by_mesh_fault *fault);
/* Reports to all other ranks that `fault` has ended this job. */
void by_mesh_warn(struct by_host_mesh *mesh, const struct by_mesh_fault *fault);
/* Returns the rank that blocks the current transfers, or a schedule, or the own rank. */
uint32_t by_mesh_peer(const struct by_host_mesh *mesh);
/* Asks that rank which rank it waits for. by_mesh_listen receives the answer: it increments
 * `answered` and stores the rank in `suspect`. */
void by_mesh_ask(struct by_host_mesh *mesh);
/* Whether the machine of that rank has acknowledged a question in the last `ns`, even if the rank
 * is outside a call and answers nothing. False if there is no connection for notices to it. */
bool by_mesh_lives(const struct by_host_mesh *mesh, uint32_t rank, uint64_t ns);
/* Finds a rank other than the one from which this rank receives that has sent a message of the same
 * call, but described in another way, such as with another root. Returns the own rank if there is
 * none. */
uint32_t by_mesh_stranger(const struct by_host_mesh *mesh);
/* Returns the rank that this rank waits for, as far as it is known: by_mesh_peer, or the rank that
 * it has named. */
uint32_t by_mesh_suspect(const struct by_host_mesh *mesh);
/* Fills the descriptors that poll() may sleep on, at most BY_MESH_FDS; returns their number. */
uint32_t by_mesh_fds(const struct by_host_mesh *mesh, struct pollfd *fds);
/* Sleeps until one of them is ready, or until `until_ns`. */
void by_mesh_sleep(const struct by_host_mesh *mesh, uint64_t until_ns);

#endif
