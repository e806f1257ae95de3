/*
 * The data that `banyan top` shows: a sample of the fabric's state from any source, and rates
 * computed from the counters of two samples. Neighbours: source_*.c fill it, draw.c and json.c show
 * it. Single-threaded.
 */
#ifndef BY_VIEW_TOP_VIEW_H
#define BY_VIEW_TOP_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "offload/base/limits.h"

#define BY_TOP_NAME 48
#define BY_TOP_TEXT 160

/*
 * A port of a switch: one end of a link. Rates and capacities are in bytes per second; 0: unknown.
 */
struct by_top_port {
    char name[BY_TOP_NAME];
    char peer[BY_TOP_NAME]; /* "" if unknown */
    bool is_down;
    uint64_t rx_bytes, tx_bytes, dropped;
    double rx_rate, tx_rate, drop_rate;
    double rx_capacity, tx_capacity;
};

/* A tree whose oldest chunk at a switch is not complete. */
struct by_top_wait {
    uint32_t job, tree, chunk;
    bool is_old;               /* it also waited in the previous sample: a peer is missing, not just late */
    char missing[BY_TOP_TEXT]; /* "host2, host3", or "its parent" */
};

struct by_top_switch {
    char name[BY_TOP_NAME];
    char state[16];         /* "up", "down", "unknown" */
    char text[BY_TOP_TEXT]; /* the reason if it is not up, or a warning */
    uint64_t boot;
    uint32_t slots, slots_held, entries, entries_held;
    uint32_t port_count, wait_count;
    struct by_top_port *ports;
    struct by_top_wait *waits;
};

struct by_top_job {
    uint32_t job, generation, ranks, slots; /* slots: the maximum over all switches */
    char name[BY_TOP_NAME];
    char state[16];
    char text[BY_TOP_TEXT];
    /*
     * The job's share, and what all switches together have counted for it: totals, and rates per
     * second.
     */
    double share; /* 0: none */
    uint64_t share_bytes, share_held, share_dropped;
    double share_rate, held_rate, dropped_rate;
};

struct by_top_view {
    uint64_t time_ns; /* monotonic clock */
    char title[BY_TOP_NAME * 2];
    char source[BY_TOP_TEXT]; /* the source's address and its self-description */
    bool is_changing;         /* a push of tables is in progress */
    uint32_t switch_count, switch_room, job_count, job_room, down_links;
    struct by_top_switch *switches;
    struct by_top_job *jobs;
};

struct by_top_switch *by_top_add_switch(struct by_top_view *view, const char *name);
/* Returns the job of that number; adds it if it does not exist. */
struct by_top_job *by_top_add_job(struct by_top_view *view, uint32_t job);
/* Adds one switch's counters of a job's share. Job 0, the jobs without a share, is ignored. */
void by_top_add_share(struct by_top_view *view, uint32_t number, double share, uint64_t bytes, uint64_t held,
                      uint64_t dropped);
struct by_top_port *by_top_add_port(struct by_top_switch *device);
struct by_top_wait *by_top_add_wait(struct by_top_switch *device);
/*
 * Computes rates from the counters of an earlier sample, and marks old waits. The rates of a switch
 * that has restarted begin again.
 */
void by_top_rates(struct by_top_view *view, const struct by_top_view *before);
void by_top_view_free(struct by_top_view *view);

#endif
