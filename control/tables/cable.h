/*
 * What a site states about the cables that trees use: their MTU, and what stands between two nodes
 * that run banyan. Private to tables/.
 */
#ifndef BY_TABLES_CABLE_H
#define BY_TABLES_CABLE_H

#include "control/tables/lower.h"

/*
 * Sets the MTU of a lowering whose trees are laid: `mtu` if it is not 0, else the smallest that the
 * site states for a link that a tree uses, where a link without a statement counts as BY_LOWER_MTU.
 * Returns 0, or BY_EINVAL with `problem` filled if packets of `mtu` bytes do not fit such a link.
 */
int by_lower_set_mtu(struct by_lowering *lowering, uint32_t mtu, struct by_problem *problem);
/* Returns the bytes by which the headers of packets of a path that begins at `from` with `link` are
 * longer than those over IPv4. */
uint32_t by_lower_extra(const struct by_topology *topology, uint32_t link, uint32_t from);
/* Returns the MTU of a port to `link` for packets of at most `mtu` bytes. */
uint32_t by_lower_port_mtu(const struct by_topology *topology, uint32_t link, uint32_t mtu);
/*
 * Checks the routers and bridges in the trees' paths. Returns 0, or BY_EUNSUPPORTED with `problem`
 * filled if one would have to add or copy, or if a bridge is followed by a router, which does not
 * answer for the receiver, as a switch that runs banyan does.
 */
int by_lower_check_ways(const struct by_lowering *lowering, struct by_problem *problem);

#endif
