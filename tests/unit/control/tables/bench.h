/*
 * A bench for lowering: small fabrics and hand-written plans in a short notation, and a walker that
 * follows the tables of all nodes hop by hop as packets would, with no knowledge of the plan.
 */
#ifndef BY_TEST_LOWER_BENCH_H
#define BY_TEST_LOWER_BENCH_H

#include "control/plan/plan.h"
#include "control/tables/lower.h"

/* Nodes of a fabric: "h0 h1 sw0* x0": a name with 'h' is a compute node, a star gives a switch both
 * capabilities. Links: "h0-sw0 a>b". */
struct by_topology *bench_topology(const char *nodes, const char *links);
/* Trees as "WEIGHT [up|down] ROOT: A>B A>x>C ...", NULL-terminated. `root` is a node's name or
 * NULL. */
struct by_plan *bench_plan(const struct by_topology *topology, unsigned collective, const char *root,
                           const char *const *trees);
void bench_plan_free(struct by_plan *plan);

/* All images of a lowering. */
struct bench_images {
    uint32_t count;
    uint8_t **bytes;
    size_t *size;
};
struct bench_images bench_images(const struct by_lowering *lowering);
void bench_images_free(struct bench_images *images);

/*
 * Walks every tree of every job over the images alone and fails the running test on the first thing
 * that does not fit: a child that its parent does not know by the same bit, address and port; a
 * packet that a switch on the way would not pass on, or to the wrong place; a rank that is missing,
 * met twice, or disagrees about the tree; slots that overlap. Returns the number of tree hops
 * checked.
 */
uint32_t bench_walk(const struct bench_images *images);

#endif
