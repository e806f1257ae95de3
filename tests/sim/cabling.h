/* Converts fabrics of tests to the simulated world. Single-threaded. */
#ifndef TESTS_SIM_CABLING_H
#define TESTS_SIM_CABLING_H

#include "host-driver/sim/world.h"
#include "tests/sim/fabric.h"

struct cabling {
    struct by_world_fabric world; /* points into the two arrays */
    struct by_world_node nodes[FABRIC_NODES_MAX];
    struct by_world_arc arcs[2 * FABRIC_LINKS_MAX];
};

/* Makes the images, for the world that is created or reloaded from them. */
void cabling_make(const struct fabric *fabric, struct cabling *cabling);
/* The same with the tables of `count` standbys in the switches (fabric_image_standby). */
void cabling_make_standby(const struct fabric *fabric, const struct fabric *standbys, int count,
                          struct cabling *cabling);

#endif
