/*
 * Where a call runs: over the trees of the table, or between the hosts themselves
 * (host-driver/fallback). All ranks decide alike, from the table, the call and the settings. One
 * thread, that of the communicator.
 */
#ifndef BY_HOST_HOSTS_H
#define BY_HOST_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#include "host-driver/fallback/fallback.h"
#include "offload/wire/types.h"

struct banyan_comm;

/* What a collective over the trees takes, as the ranks measured it. */
struct by_tree_time {
    uint64_t latency_ns; /* of the least data; 0: not measured */
    uint64_t gap_ps;     /* for each byte of all its data */
};

/* What a communicator has when calls may run between hosts. */
struct by_hosts {
    struct by_fallback *fallback; /* or NULL */
    bool ready;                   /* they may; without `fallback` only of a communicator that is to be made */
    enum by_way way;              /* 0: BANYAN_FALLBACK is off */
    uint64_t small_bytes;         /* calls of at most so many bytes run there, though the table serves them */
    bool by_time;                 /* BANYAN_SMALL=auto: those that are sooner done there */
    uint8_t said; /* bit 1 << enum by_mode: it was said of what nodes cannot compute in this mode */
    struct by_tree_time tree[BY_COLLECTIVE_COUNT]; /* with it */
};

/* Why a call runs where it does. */
enum by_hosts_why {
    BY_HOSTS_TREES = 1, /* the table serves it */
    BY_HOSTS_NO_TABLE,
    BY_HOSTS_NO_TREES, /* the table has none for it */
    BY_HOSTS_UNABLE,   /* nodes of its trees cannot compute it, the table says */
    BY_HOSTS_SMALL,    /* BANYAN_SMALL */
    BY_HOSTS_SOONER    /* BANYAN_SMALL=auto */
};

/* Opens what this communicator needs: nothing when the table serves all. 0, or an error with its
 * text. */
int by_hosts_open(struct banyan_comm *comm);
void by_hosts_close(struct banyan_comm *comm);
/* Reads the settings as by_hosts_open would, and opens nothing. */
int by_hosts_expect(struct banyan_comm *comm);
/* With BANYAN_SMALL=auto, where there are both trees and connections: measures each collective over
 * its trees, all ranks together. For a communicator that is open. 0, or an error with its text. */
int by_hosts_measure(struct banyan_comm *comm);
/* Whether the table has trees for the collective, with any root. */
bool by_hosts_has_trees(const struct banyan_comm *comm, unsigned collective);
/* Whether the call runs between hosts; *why may be NULL. */
bool by_hosts_serve(const struct banyan_comm *comm, const struct by_call *call, enum by_hosts_why *why);
/* Prints once for a communicator and mode that the call runs between hosts as nodes of its trees
 * cannot compute it, unless by_hosts_announce has. */
void by_hosts_say_unable(struct banyan_comm *comm, const struct by_call *call);
/* Prints which calls do, how, and why. */
void by_hosts_announce(const struct banyan_comm *comm);

#endif
