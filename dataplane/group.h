/*
 * Groups of children behind ports of trains (driver ring) that get the same results: what waits for
 * a group is given to the kernel once for all of them, which makes the copies
 * (offload/linux/copies.h). Groups follow from what the engine sends, are made when they are wanted
 * for the first time, and forgotten when the table changes. Neighbours: replicate.c, loop.c. Loop's
 * thread.
 */
#ifndef BY_DATAPLANE_GROUP_H
#define BY_DATAPLANE_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/port.h"
#include "offload/wire/packet.h"

struct by_dp_groups;
struct by_dp_group;

/* What the kernel did (count): packets sent as its copies, and copies that an interface did not
 * take. */
struct by_group_counters {
    uint64_t replicated, lost;
};

/* Ports whose trains are cut before the link are served, if they are two or more; NULL when they
 * are fewer, or the kernel does not make copies, which is reported. */
struct by_dp_groups *by_groups_open(struct by_port *ports, unsigned port_count);
/* Drops what waits. NULL is allowed. */
void by_groups_close(struct by_dp_groups *groups);
/* All that follows from the table is made anew. Nothing waits. */
void by_groups_forget(struct by_dp_groups *groups);

/* The group of the receivers of `count` results, which differ in these alone; NULL when they are
 * not all behind ports of their own that are served. */
struct by_dp_group *by_groups_find(struct by_dp_groups *groups, const struct by_tx *tx, uint32_t count);
/* Queues the frame of the first of the receivers, for all of them; a full queue is sent. */
void by_group_send(struct by_dp_groups *groups, struct by_dp_group *group, struct rte_mbuf *frame);
/* Sends what is queued; what no port takes is dropped, and counted there. */
void by_groups_flush(struct by_dp_groups *groups);
const struct by_group_counters *by_groups_counters(const struct by_dp_groups *groups);

#endif
