/*
 * The facts of this machine: its Ethernet interfaces from the kernel, its neighbours by LLDP frames
 * (IEEE 802.1AB) that it sends and receives itself, and from lldpd where that runs. `banyan
 * discover --local`, and `banyan doctor` for its own machine. Single-threaded; waits for the time
 * it is given.
 */
#ifndef BY_DISCOVER_LOCAL_H
#define BY_DISCOVER_LOCAL_H

#include "control/discover/facts.h"

/* Time between two announcements (ms). */
#define BY_ANNOUNCE_MS 500u

struct by_local_options {
    const char *node;   /* the name that is announced */
    const char *ifaces; /* patterns (fnmatch) with commas between; NULL: all Ethernet interfaces */
    uint32_t listen_ms; /* 0: do not announce and listen */
};

/*
 * Adds the facts of this machine. Returns 0; BY_ENOENT if a pattern matches no interface; or
 * BY_EPERM if it may not send and receive LLDP frames (without CAP_NET_RAW), after it added the
 * rest: all with `problem`.
 */
int by_local_read(struct by_facts_list *list, const struct by_local_options *options,
                  struct by_problem *problem);

/* Adds the neighbours in the output of `lldpctl -f json` to the interfaces of a node. Others are
 * ignored: interfaces that the node has not listed. Returns 0 or BY_EFORMAT with `problem`. */
int by_local_lldpctl(struct by_facts *facts, const char *json, size_t bytes, struct by_problem *problem);

/* hear.c: announces `facts` on its interfaces for `listen_ms`, and adds the neighbours heard.
 * Returns 0, or BY_EPERM or BY_EIO with `problem`. */
int by_hear(struct by_facts *facts, uint32_t listen_ms, struct by_problem *problem);

#endif
