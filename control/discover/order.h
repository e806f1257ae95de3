/*
 * The order of the links of a found fabric: each switch that reported its ports has its links in
 * the order of these, where that is possible for all switches at once. Neighbour: write.c. Pure.
 */
#ifndef BY_DISCOVER_ORDER_H
#define BY_DISCOVER_ORDER_H

#include "control/discover/cables.h"

/* Sorts `links`, which come in an order of preference. Adds a finding for each switch that must be
 * started with its ports in another order. */
void by_links_order(const struct by_cables *cables, struct by_cable *links, uint32_t count,
                    struct by_report *report);

#endif
