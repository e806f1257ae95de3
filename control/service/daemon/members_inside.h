/* The connections of hosts, for members.c (frames) and members_open.c (listeners). The loop's
 * thread. */
#ifndef BY_SERVICE_DAEMON_MEMBERS_INSIDE_H
#define BY_SERVICE_DAEMON_MEMBERS_INSIDE_H

#include "control/service/daemon/daemon.h"
#include "control/service/daemon/members.h"
#include "control/service/daemon/queue.h"
#include "firmware/secure/acceptor.h"
#include "firmware/secure/strangers.h"
#include "offload/base/prng.h"

struct members_peer {
    struct by_watcher watcher;
    struct members_peer *next;
    struct by_tls *tls; /* or NULL: its name is trusted */
    struct by_queue in, out;
    bool dead;    /* its connection is closed */
    bool seen;    /* was dead at the last tick: no pending event of the loop refers to it any more */
    bool waits;   /* has sent HELLO for a job that has no tables yet */
    bool asks;    /* has requested a job, which is being made */
    bool stands;  /* its host accepts standbys */
    bool member;  /* recovery.c has it as a rank */
    bool broken;  /* sending failed; the connection is closed once recovery may be called */
    size_t stuck; /* if broken: bytes queued beyond a limit; 0: the connection has ended */
    bool writing; /* the loop reports when it is writable */
    uint64_t since_ms, nonce, id;
    uint16_t job, rank, gen;
    uint32_t node;              /* of a member */
    char name[BY_NAME_MAX + 1]; /* of its node; "" until HELLO */
};

struct by_members {
    struct by_prng prng; /* for fault injection */
    uint32_t listener_count, peer_count;
    uint32_t peers_max; /* limit from the available descriptors: at most BY_MEMBERS_MAX */
    struct by_watcher listeners[BY_OPTIONS_MEMBERS_MAX];
    struct by_tls_identity *identity; /* NULL: TLS is not used */
    struct by_acceptor *acceptor;
    struct by_watcher greeted;
    struct by_strangers strangers; /* connections without a valid key or HELLO */
    struct members_peer *peers;
    uint64_t last_id; /* of a connection */
    size_t waiting;   /* bytes in the output queues of all peers */
};

/* Logs a line about an unauthenticated connection, at a limited rate. */
void by_members_say_stranger(struct by_daemon *daemon, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds a connection. A TLS connection has authenticated as a host of this authority. */
void by_members_admit(struct by_daemon *daemon, int fd, struct by_tls *tls);

#endif
