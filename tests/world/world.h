/*
 * The world of the test: one banyand, switches (the real agent and engine), hosts (libbanyan's line
 * to the controller, its progress and the real endpoint) and their cables, in the virtual machine
 * room of vm.h. scenario.c draws faults and checks the invariants. Single-threaded; one world at a
 * time.
 */
#ifndef BY_TESTS_WORLD_WORLD_H
#define BY_TESTS_WORLD_WORLD_H

#include "control/service/daemon/daemon.h"
#include "firmware/agent/agent.h"
#include "tests/world/vm.h"

#define WORLD_SWITCHES_MAX 4u
#define WORLD_HOSTS_MAX    4u
#define WORLD_LINKS_MAX    12u
#define WORLD_JOBS_MAX     3u

struct world_packet;

struct world_cable {
    bool down;     /* no carrier */
    uint32_t loss; /* packets lost of 1000; 1000: it swallows all, with a carrier */
};

struct world_switch {
    uint32_t node, number;
    const char *name;
    bool up;
    struct vm_server server;
    struct vm_link link;
    struct by_engine *engine;
    struct by_agent *agent;
    void *agent_memory;
    uint32_t port_count;
    struct by_agent_port ports[WORLD_LINKS_MAX];
};

struct world_host {
    uint32_t node, number;
    const char *name;
    struct vm_link link;
    struct vm_process process;
    struct world_run *run; /* of its process; NULL: none runs */
    uint16_t job;
    uint32_t members_drawn;    /* of the job, when its hosts were started */
    uint32_t rank, rank_count; /* in the job, for the sums */
    uint32_t ops, done;        /* operations to run, and run */
    uint32_t turn;             /* number of the run: in the values */
    int error;                 /* that ended its last run; 0: none */
    char text[512];
    uint64_t op_ns; /* when the present operation began; 0: none */
    struct world_packet *first, *last;
    uint32_t packets;
    int ready_fd;
};

/* A job as the user knows it. */
struct world_job {
    uint16_t job;
    enum { WORLD_NONE, WORLD_CREATING, WORLD_UNKNOWN, WORLD_EXISTS, WORLD_ENDING, WORLD_ENDED } state;
    bool members[WORLD_HOSTS_MAX];
    uint32_t members_drawn; /* times; another job of this number has others */
    uint32_t rank_count;
};

struct world {
    char json[4096];
    struct by_topology *topology;
    struct by_address_map map;
    uint32_t switch_count, host_count;
    struct world_switch switches[WORLD_SWITCHES_MAX];
    struct world_host hosts[WORLD_HOSTS_MAX];
    struct world_cable cables[WORLD_LINKS_MAX];
    int32_t switch_of[WORLD_SWITCHES_MAX + WORLD_HOSTS_MAX], host_of[WORLD_SWITCHES_MAX + WORLD_HOSTS_MAX];
    uint32_t slot_count;
    struct world_job jobs[WORLD_JOBS_MAX];
    uint64_t stall_ns;
    /* banyand */
    struct {
        char heartbeat[8], keyed[20], lose[8], renew[12], standby[4];
    } options;
    struct vm_process banyand;
    struct by_daemon *daemon; /* while it leads or starts */
    bool runs, stops;
    uint32_t starts;
    int status; /* exit status */
    int requests_fd;
    uint32_t traffic; /* jobs that carried traffic at the end */
    struct by_watcher watcher;
    struct {
        uint64_t packets, operations, kills, commits;
    } counts;
};

extern struct world world;

/* switches.c */
void world_switch_open(struct world_switch *device);
void world_switch_start(struct world_switch *device);
void world_switch_die(struct world_switch *device);
/* Notifies the clients of the switches at its ends that a link has lost its carrier, or regained
 * it. */
void world_carrier_changed(uint32_t link);
/* Sends a packet of a node, or passes one on. */
void world_send(uint32_t node, const struct by_tx *tx);
void world_relay(uint32_t node, const struct by_tx *tx, const struct by_rx *rx);
/* A table is in use at a node: checks that no other table has this job and generation. */
void world_claim(const uint8_t *image, const char *where);
void world_claims_reset(void);

/* hosts.c */
void world_host_start(struct world_host *host, uint16_t job, uint32_t ops, uint32_t turn);
void world_host_kill(struct world_host *host);
void world_host_arrive(struct world_host *host, struct world_packet *packet);
void world_host_close(struct world_host *host);

struct world_packet {
    struct world_packet *next;
    uint32_t to, src_ip, dst_ip;
    uint16_t port, bytes;
    uint8_t ecn, held;
    uint8_t data[];
};

/* banyand.c */
void world_banyand_start(void);
/* Asks banyand, as the HTTP server would, to create or end the job. */
void world_request(struct world_job *job, bool create);

/* scenario.c: runs a scenario. Returns false after a violation. */
bool world_run(uint64_t seed, int verbose);

#endif
