/*
 * Decides where a call runs: on the trees of the table, or between the hosts
 * (host-driver/fallback). All ranks reach the same decision from the table, the call and the
 * settings. Thread: the communicator's.
 */
#ifndef BY_HOST_HOSTS_H
#define BY_HOST_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#include "host-driver/fallback/fallback.h"
#include "offload/wire/types.h"

struct banyan_comm;
struct banyan_context;

/* Duration of a collective over the trees, measured by the ranks. */
struct by_tree_time {
    uint64_t latency_ns; /* of the smallest call; 0: not measured */
    uint64_t gap_ps;     /* per byte of all its data */
};

/* State of a communicator whose calls may run between hosts. */
struct by_hosts {
    struct by_fallback *fallback; /* or NULL */
    /* calls may run between hosts; without `fallback` only in a prediction before the
     * communicator exists */
    bool ready;
    enum by_way way; /* 0: BANYAN_FALLBACK is off */
    /* calls of at most this size run between hosts although the table has trees for them */
    uint64_t small_bytes;
    /* BANYAN_SMALL=auto: calls that are faster between hosts run there */
    bool by_time;
    /* bit 1 << enum by_mode: already reported that nodes cannot compute calls in this mode */
    uint8_t said;
    struct by_tree_time tree[BY_COLLECTIVE_COUNT]; /* with `by_time` */
};

/* Reason why a call runs where it does. */
enum by_hosts_why {
    BY_HOSTS_TREES = 1, /* the table has trees for it */
    BY_HOSTS_NO_TABLE,
    BY_HOSTS_NO_TREES, /* the table has no trees for it */
    BY_HOSTS_UNABLE,   /* the table shows that nodes of its trees cannot compute it */
    BY_HOSTS_SMALL,    /* BANYAN_SMALL */
    BY_HOSTS_SOONER,   /* BANYAN_SMALL=auto */
    BY_HOSTS_SCHEDULE  /* BANYAN_SCHEDULE */
};

/* Opens what this communicator needs: nothing if the table has trees for all collectives. 0, or an
 * error with its text. */
int by_hosts_open(struct banyan_comm *comm);
void by_hosts_close(struct banyan_comm *comm);
/* Whether the ranks of communicators of some ranks connect as well: the settings name schedules. */
bool by_hosts_connect_groups(const struct banyan_context *context);
/* Reads the settings as by_hosts_open does, but opens nothing. */
int by_hosts_expect(struct banyan_comm *comm);
/* With BANYAN_SMALL=auto, if there are both trees and connections: all ranks together measure each
 * collective over its trees. Requires an open communicator. 0, or an error with its text. */
int by_hosts_measure(struct banyan_comm *comm);
/* Whether the table has trees for the collective, with any root. */
bool by_hosts_has_trees(const struct banyan_comm *comm, unsigned collective);
/* Whether all ranks run on one host, and calls between hosts through its memory. */
bool by_hosts_share(const struct banyan_comm *comm);
/* Whether the call runs between hosts; *why may be NULL. */
bool by_hosts_serve(const struct banyan_comm *comm, const struct by_call *call, enum by_hosts_why *why);
/* Prints, once per communicator and mode, that the call runs between hosts because nodes of its
 * trees cannot compute it, unless by_hosts_announce has printed it. */
void by_hosts_say_unable(struct banyan_comm *comm, const struct by_call *call);
/* Prints which calls run between hosts, with which schedules, and why. */
void by_hosts_announce(const struct banyan_comm *comm);

#endif
