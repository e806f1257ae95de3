/*
 * A bench for lowering: small fabrics and hand-written plans in a short notation, and a walker that
 * follows the tables of all nodes hop by hop like packets, without access to the plan.
 */
#ifndef BY_TEST_LOWER_BENCH_H
#define BY_TEST_LOWER_BENCH_H

#include "control/plan/plan.h"
#include "control/tables/lower.h"

/* Makes a fabric. Nodes: "h0 h1 sw0* x0": a name with 'h' is a compute node, a star gives a switch
 * both capabilities. Links: "h0-sw0 a>b". */
struct by_topology *bench_topology(const char *nodes, const char *links);
/* Makes a plan of trees "WEIGHT [up|down] ROOT: A>B A>x>C ...", NULL-terminated. `root` is a node's
 * name or NULL. */
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
 * Walks every tree of every job, using only the images. Fails the running test at the first
 * contradiction: a child whose parent has another bit, address or port for it; a packet that a
 * switch on its path would drop or misroute; a rank that is missing, visited twice, or differs
 * about the tree; overlapping slots. Returns the number of tree hops checked.
 */
uint32_t bench_walk(const struct bench_images *images);

#endif
