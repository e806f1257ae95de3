/*
 * Subsets of the compute nodes of a fabric: lists of their names, and the fabric as a job on them
 * sees it. The other compute nodes are idle, unless the topology marks them as forwarding
 * (banyan-topology(5)): then they are switches that only forward. Pure functions: any thread.
 */
#ifndef BY_FABRIC_MEMBERS_H
#define BY_FABRIC_MEMBERS_H

#include "control/fabric/build.h"

/*
 * Reads names separated by commas, spaces or new lines. Returns 0 and `*member` (by node; the
 * caller frees), or BY_EINVAL with `problem` filled: a name is not a compute node or is repeated,
 * or there are fewer than two.
 */
int by_members_parse(const char *text, size_t bytes, const struct by_topology *topology, bool **member,
                     struct by_problem *problem);
/* The same from a file. */
int by_members_read(const char *path, const struct by_topology *topology, bool **member,
                    struct by_problem *problem);
/* Whether a node takes part as a compute node; `member` NULL: all of them do. */
static inline bool by_members_have(const struct by_topology *topology, const bool *member, uint32_t node)
{
    return topology->nodes[node].compute && (!member || member[node]);
}
/* Whether it is a compute node that neither takes part nor forwards. */
static inline bool by_members_idle(const struct by_topology *topology, const bool *member, uint32_t node)
{
    return member && topology->nodes[node].compute && !member[node] && !topology->nodes[node].forward;
}
/* The number of nodes that take part. */
uint32_t by_members_count(const struct by_topology *topology, const bool *member);

/*
 * Makes the fabric of a job on these nodes: idle compute nodes are removed, forwarding ones become
 * switches, and nodes that only idle nodes connect to the rest are removed. `*whole` receives the
 * number in `topology` of each node; the caller frees both. BY_EINVAL with `problem` filled when
 * the members are not connected.
 */
int by_members_part(const struct by_topology *topology, const bool *member, struct by_topology **part,
                    uint32_t **whole, struct by_problem *problem);

#endif
