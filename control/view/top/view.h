/*
 * What `banyan top` shows: one sample of the fabric's state, wherever it came from, and what two
 * samples make of counters: rates. Neighbours: source_*.c fill it, draw.c and json.c show it.
 * Single-threaded.
 */
#ifndef BY_VIEW_TOP_VIEW_H
#define BY_VIEW_TOP_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "offload/base/limits.h"

#define BY_TOP_NAME 48
#define BY_TOP_TEXT 160

/* A port of a switch, and so one end of a link. Rates and capacities in bytes a second; 0: not
 * known. */
struct by_top_port {
    char name[BY_TOP_NAME];
    char peer[BY_TOP_NAME]; /* "" when it is not known */
    bool is_down;
    uint64_t rx_bytes, tx_bytes, dropped;
    double rx_rate, tx_rate, drop_rate;
    double rx_capacity, tx_capacity;
};

/* A tree whose oldest chunk is not complete at a switch. */
struct by_top_wait {
    uint32_t job, tree, chunk;
    bool is_old;               /* it waited in the sample before, too: somebody is missing, not only late */
    char missing[BY_TOP_TEXT]; /* "host2, host3", or "its parent" */
};

struct by_top_switch {
    char name[BY_TOP_NAME];
    char state[16];         /* "up", "down", "partitioned", "unknown" */
    char text[BY_TOP_TEXT]; /* why it is not up, or what is odd about it */
    uint64_t boot;
    uint32_t slots, slots_held, entries, entries_held;
    uint32_t port_count, wait_count;
    struct by_top_port *ports;
    struct by_top_wait *waits;
};

struct by_top_job {
    uint32_t job, generation, ranks, slots; /* slots: at the switch where it holds most */
    char name[BY_TOP_NAME];
    char state[16];
    char text[BY_TOP_TEXT];
    /* Of the job's share: what switches have counted of it together, and a second's. */
    double share; /* 0: it has none */
    uint64_t share_bytes, share_held, share_dropped;
    double share_rate, held_rate, dropped_rate;
};

struct by_top_view {
    uint64_t time_ns; /* monotonic */
    char title[BY_TOP_NAME * 2];
    char source[BY_TOP_TEXT]; /* who was asked, and what it says of itself */
    bool is_changing;         /* tables are being pushed */
    uint32_t switch_count, switch_room, job_count, job_room, down_links;
    struct by_top_switch *switches;
    struct by_top_job *jobs;
};

struct by_top_switch *by_top_add_switch(struct by_top_view *view, const char *name);
/* The job of that number, which is added when it is not there. */
struct by_top_job *by_top_add_job(struct by_top_view *view, uint32_t job);
/* What one switch has counted of a job's share; job 0, all without one, is nobody's. */
void by_top_add_share(struct by_top_view *view, uint32_t number, double share, uint64_t bytes, uint64_t held,
                      uint64_t dropped);
struct by_top_port *by_top_add_port(struct by_top_switch *device);
struct by_top_wait *by_top_add_wait(struct by_top_switch *device);
/* Fills in rates from the counters of an earlier sample, and which waits are old. A switch that has
 * restarted begins anew. */
void by_top_rates(struct by_top_view *view, const struct by_top_view *before);
void by_top_view_free(struct by_top_view *view);

#endif
