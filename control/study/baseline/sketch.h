/*
 * A forest under construction by a baseline: trees with weights, whose edges share paths, and the
 * load that they put on each link. The loads yield the exact rate: the weights are scaled until the
 * most loaded link is full. Other baseline code does not access the trees of struct by_plan. One
 * thread for each sketch.
 */
#ifndef BY_STUDY_BASELINE_SKETCH_H
#define BY_STUDY_BASELINE_SKETCH_H

#include "control/plan/plan.h"
#include "control/study/baseline/net.h"

struct by_sketch;

/* Figures of a finished sketch. */
struct by_sketch_facts {
    struct by_fraction achieved; /* total data size divided by time, in the topology's unit */
    uint32_t tree_count;
    uint32_t height_max; /* hops on physical links */
    double height_mean;  /* mean height by weight */
};

/*
 * Creates a sketch. With `keep` it stores the trees for by_sketch_plan; otherwise only their loads.
 */
struct by_sketch *by_sketch_new(const struct by_baseline_net *net, bool keep);
void by_sketch_free(struct by_sketch *sketch);
/* Adds a path for use by edges: `count` >= 2 nodes, each linked to the next. Returns its number. */
uint32_t by_sketch_path(struct by_sketch *sketch, const uint32_t *nodes, uint32_t count);
/* Begins a tree of weight `units` > 0. Its edges follow, parents before children. */
void by_sketch_tree(struct by_sketch *sketch, uint32_t root, enum by_tree_use use, int64_t units);
/*
 * Adds the edge of a path, listed from parent to child. A path through compute nodes becomes
 * several edges, because a node that relays data also has them: nodes on the path that lack the
 * data join the tree, and a node that has them sends in place of its parent. A child that is
 * already in the tree adds nothing.
 */
void by_sketch_edge(struct by_sketch *sketch, uint32_t path);
/*
 * Scales the weights and computes the figures. `collective` defines how weights become a rate.
 * Returns 0, or with `problem` filled: BY_EINVAL if a path runs against a one-way link, BY_ERANGE
 * if numbers exceed 63 bits.
 */
int by_sketch_finish(struct by_sketch *sketch, unsigned collective, struct by_sketch_facts *facts,
                     struct by_problem *problem);
/*
 * Makes a plan of the kept trees, with the bound and cut of `reference`, a plan for the same
 * collective and fabric. Requires by_sketch_finish. The caller frees the plan.
 */
struct by_plan *by_sketch_plan(const struct by_sketch *sketch, const struct by_plan *reference);

/*
 * Copies the trees of a finished plan into a sketch, all with use `use` and the plan's weights.
 * Returns 0 or BY_ERANGE.
 */
int by_sketch_copy(struct by_sketch *sketch, const struct by_plan *plan, enum by_tree_use use);
/*
 * Copies the trees of an allreduce, all rerooted to one root. Requires a fabric whose links are
 * equal in both directions and whose switches only forward. Returns 0 or BY_ERANGE.
 *
 * The rate stays the same. A tree that is used up and down loads each of its links once in each
 * direction, whatever its root. For a tree pair, each tree is used in both directions at half of
 * the weight. The fabric also carries the mirror image of the pair, and this is the load of both
 * pairs at half of their weight. So trees with one root are as fast as trees with any roots.
 */
int by_sketch_copy_at(struct by_sketch *sketch, const struct by_plan *plan, uint32_t root);
/* Computes the figures of a plan that the planner made. */
void by_sketch_describe(const struct by_plan *plan, uint32_t node_count, struct by_sketch_facts *facts);

#endif
