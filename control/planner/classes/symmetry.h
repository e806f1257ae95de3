/*
 * Symmetries of a fabric made of alike parts, such as boxes under the same switches or pods under
 * the same core. Each level is a cyclic group that moves parts to each other and leaves the nodes
 * around them in place. All levels together are a group that takes each compute node to those of
 * its orbit in exactly one way, so that a plan needs trees for one node of each orbit only. A
 * symmetry belongs to one thread while it is found; afterwards any thread may read it.
 */
#ifndef BY_PLANNER_CLASSES_SYMMETRY_H
#define BY_PLANNER_CLASSES_SYMMETRY_H

#include "control/plan/rotations.h"
#include "control/planner/graph.h"

struct by_level {
    uint32_t order;  /* number of alike parts */
    uint32_t *place; /* by node: the number of its part; 0 also for nodes that this level does not move */
    uint32_t *twin;  /* by node: the node in part 0 of this level and those before it */
};

/*
 * The representatives are the nodes that lie in part 0 of each level that moves them. They are
 * linked to each other as all nodes are: each link is the image of a link between representatives.
 */
struct by_symmetry {
    uint32_t node_count;
    uint32_t level_count; /* outermost first */
    struct by_level levels[BY_ROTATIONS_MAX];
    uint32_t *of;    /* by node: its representative */
    uint32_t *moved; /* by node: bit l if level l moves it */
    uint32_t representative_count;
    uint32_t *representatives; /* in ascending order */
    size_t *start;             /* by node, for representatives: the first of its images in `images` */
    uint32_t *images;          /* by place in the levels that move the node, the innermost fastest */
};

/*
 * Finds the levels of a fabric. Colour refinement proposes which nodes are alike, and every link is
 * compared, so that the result is exact. `level_count` is 0 for a fabric without alike parts.
 * Takes nearly linear time for each level.
 */
struct by_symmetry *by_symmetry_find(const struct by_graph *graph);
void by_symmetry_free(struct by_symmetry *symmetry);
/* The node at places `place` (by level) that has the representative `node`. */
uint32_t by_symmetry_image(const struct by_symmetry *symmetry, uint32_t node, const uint32_t *place);
/* The number of elements of the group: images of a compute node. */
uint64_t by_symmetry_order(const struct by_symmetry *symmetry);
/* The number of images of the link between two representatives. */
uint64_t by_symmetry_links(const struct by_symmetry *symmetry, uint32_t from, uint32_t to);
/* The levels as permutations of the nodes, for a plan. */
struct by_rotations *by_symmetry_rotations(const struct by_symmetry *symmetry);

#endif
