/*
 * One cable of memory of a port: what a host handed over when it connected, and this switch's side
 * of the two queues. link_host.c makes and ends it, link.c moves packets. Loop's thread.
 */
#ifndef BY_DATAPLANE_LINK_HOST_H
#define BY_DATAPLANE_LINK_HOST_H

#include "dataplane/link.h"
#include "offload/wire/shm.h"

/* Hosts' processes on one port (count): one for each job. */
#define BY_LINK_HOSTS_MAX 16u
/* Packets that are looked at between two by_link_done (count). */
#define BY_LINK_BATCH 64u

struct by_link_host {
    int socket; /* of the greeting, then of the bells: a byte in each direction */
    struct by_shm_challenge challenge;
    struct by_shm_hello hello;
    bool greeted; /* what follows holds */
    bool asleep;  /* it knows that it must ring */
    struct by_shm_cable *cable;
    uint64_t cable_bytes;
    const uint8_t *memory; /* the host's own */
    uint64_t memory_bytes;
    uint32_t room_bytes;
    struct by_shm_sender sender;
    struct by_shm_receiver receiver;
    uint32_t reaped;            /* packets sent whose references were given back */
    uint32_t ref[BY_SHM_SLOTS]; /* the engine's, of what was sent in each slot */
};

struct by_dp_link {
    int listener;
    int bells; /* an epoll of all that wakes us here */
    int again; /* an eventfd of our own among them: a packet came before a sleep */
    bool rung; /* it is readable */
    uint16_t port;
    bool bound; /* the socket at `path` is ours */
    char *path;
    struct by_engine *engine;
    const uint8_t *memory;
    uint64_t memory_bytes;
    int memory_fd;
    unsigned host_count;
    struct by_link_host *host[BY_LINK_HOSTS_MAX];
    unsigned first;   /* the host whose turn comes next, of as many as there are: none is always first */
    uint64_t dropped; /* packets received that were malformed */
    uint64_t lost;    /* frames that no host took */
    uint32_t taken_count;
    struct by_shm_packet taken[BY_LINK_BATCH];
};

/* Takes what a connected host hands over and answers it. 0 when it is let in; else it was told why
 * not. */
int by_link_host_greet(struct by_dp_link *link, struct by_link_host *host);
/* Gives back all references and memory, and closes the socket. */
void by_link_host_free(struct by_dp_link *link, struct by_link_host *host);
/* Wakes the host. */
void by_link_bell(const struct by_link_host *host);
/* The end of a sleep. */
void by_link_host_wake(struct by_link_host *host);

#endif
