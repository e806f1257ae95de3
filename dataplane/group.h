/*
 * Groups of children that receive the same results, on ports that send GSO batches (drivers ring
 * and gso). The frames queued for a group are passed to the kernel once; the kernel makes the
 * copies (offload/linux/copies.h). Groups follow from what the engine sends, are created on first
 * use, and are dropped when the table changes. Neighbours: replicate.c, loop.c. Loop's thread.
 */
#ifndef BY_DATAPLANE_GROUP_H
#define BY_DATAPLANE_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/port.h"
#include "offload/shell/batch.h"
#include "offload/wire/packet.h"

struct by_dp_groups;
struct by_dp_group;

/* Kernel statistics (count): packets sent as kernel copies, and copies that an interface
 * refused. */
struct by_group_counters {
    uint64_t replicated, lost;
};

/* Serves the ports that send GSO batches, if there are at least two. NULL if there are fewer, or if
 * the kernel does not support copies, which is reported. */
struct by_dp_groups *by_groups_open(struct by_port *ports, unsigned port_count);
/* Drops queued frames. Accepts NULL. */
void by_groups_close(struct by_dp_groups *groups);
/* Discards all state that follows from the table. No frames may be queued. */
void by_groups_forget(struct by_dp_groups *groups);

/* Returns the group of the receivers of `count` results, which differ only in their receivers. NULL
 * if the receivers are not each behind a served port of their own. */
struct by_dp_group *by_groups_find(struct by_dp_groups *groups, struct by_batch *batch,
                                   const struct by_tx *tx, uint32_t count);
/* Queues the first receiver's frame for all receivers; sends a full queue. */
void by_group_send(struct by_dp_groups *groups, struct by_dp_group *group, struct rte_mbuf *frame);
/* Sends the queued frames; frames that no port accepts are dropped, and counted at the port. */
void by_groups_flush(struct by_dp_groups *groups);
const struct by_group_counters *by_groups_counters(const struct by_dp_groups *groups);

#endif
