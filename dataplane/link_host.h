/*
 * One shared-memory cable of a port: what a host supplied when it connected, and this switch's side
 * of the two queues. link_host.c creates and closes it, link.c moves packets. Loop's thread.
 */
#ifndef BY_DATAPLANE_LINK_HOST_H
#define BY_DATAPLANE_LINK_HOST_H

#include "dataplane/link.h"
#include "offload/wire/shm.h"

/* Maximum number of host processes on one port: one per job. */
#define BY_LINK_HOSTS_MAX 16u
/* Maximum number of packets between two by_link_done. */
#define BY_LINK_BATCH 64u

struct by_link_host {
    /* carries the handshake, then the doorbells: a byte in each direction */
    int socket;
    struct by_shm_challenge challenge;
    struct by_shm_hello hello;
    bool greeted; /* handshake complete; the following fields are valid */
    bool asleep;  /* the host has been asked to ring the doorbell */
    struct by_shm_cable *cable;
    uint64_t cable_bytes;
    const uint8_t *memory; /* memory of the host */
    uint64_t memory_bytes;
    uint32_t room_bytes;
    struct by_shm_sender sender;
    struct by_shm_receiver receiver;
    uint32_t reaped;            /* sent packets whose references were released */
    uint32_t ref[BY_SHM_SLOTS]; /* the engine's reference for each slot */
};

struct by_dp_link {
    int listener;
    int bells; /* an epoll of all wake-up descriptors */
    /* an eventfd in it: signals a packet that arrived before a sleep */
    int again;
    bool rung; /* `again` is readable */
    uint16_t port;
    bool bound; /* this process created the socket at `path` */
    char *path;
    struct by_engine *engine;
    const uint8_t *memory;
    uint64_t memory_bytes;
    int memory_fd;
    unsigned host_count;
    struct by_link_host *host[BY_LINK_HOSTS_MAX];
    /* the host that is served first in the next round; rotates for fairness */
    unsigned first;
    uint64_t dropped; /* malformed packets received */
    uint64_t lost;    /* frames without a receiver */
    uint32_t taken_count;
    struct by_shm_packet taken[BY_LINK_BATCH];
};

/* Checks what a connected host supplies and answers it. 0 if it is accepted; else it was sent the
 * reason. */
int by_link_host_greet(struct by_dp_link *link, struct by_link_host *host);
/* Releases all references and memory, and closes the socket. */
void by_link_host_free(struct by_dp_link *link, struct by_link_host *host);
/* Wakes the host. */
void by_link_bell(const struct by_link_host *host);
/* Ends the request for doorbells after a sleep. */
void by_link_host_wake(struct by_link_host *host);

#endif
