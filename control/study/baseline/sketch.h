/*
 * A forest in the making, as baselines make it: trees whose edges share paths, weighted by counts,
 * and what they load each link with. From the loads comes the exact rate: the weights are scaled
 * until the fullest link is full. The only baseline code that knows how a struct by_plan holds its
 * trees. One thread for each sketch.
 */
#ifndef BY_STUDY_BASELINE_SKETCH_H
#define BY_STUDY_BASELINE_SKETCH_H

#include "control/plan/plan.h"
#include "control/study/baseline/net.h"

struct by_sketch;

/* What a finished sketch amounts to. */
struct by_sketch_facts {
    struct by_fraction achieved; /* total data size over time, in the topology's unit */
    uint32_t tree_count;
    uint32_t height_max; /* hops on physical links */
    double height_mean;  /* by weight */
};

/* With `keep` the trees are kept, for by_sketch_plan; without, only their loads. */
struct by_sketch *by_sketch_new(const struct by_baseline_net *net, bool keep);
void by_sketch_free(struct by_sketch *sketch);
/* Adds a path (`count` >= 2 nodes, each linked to the next) that edges may use; returns its number.
 */
uint32_t by_sketch_path(struct by_sketch *sketch, const uint32_t *nodes, uint32_t count);
/* Begins a tree of `units` > 0 weight; its edges follow, parents before children. */
void by_sketch_tree(struct by_sketch *sketch, uint32_t root, enum by_tree_use use, int64_t units);
/*
 * Adds the edge of a path, listed from parent to child. A path that passes compute nodes becomes
 * several edges: what a node relays it also has, so nodes on the way that lack the data join the
 * tree there, and a node that has them sends on instead of its parent. A child that the tree has
 * already adds nothing.
 */
void by_sketch_edge(struct by_sketch *sketch, uint32_t path);
/*
 * Scales and describes. `collective` says how weights become a rate. BY_EINVAL when a path goes
 * against a one-way link, BY_ERANGE when numbers exceed 63 bits; `problem` is filled.
 */
int by_sketch_finish(struct by_sketch *sketch, unsigned collective, struct by_sketch_facts *facts,
                     struct by_problem *problem);
/*
 * The kept trees as a plan with the bound and cut of `reference`, which is a plan for the same
 * collective and fabric. Call by_sketch_finish first. The caller frees the plan.
 */
struct by_plan *by_sketch_plan(const struct by_sketch *sketch, const struct by_plan *reference);

/* The trees of a finished plan into a sketch, all of `use` and of the plan's weights. 0 or
 * BY_ERANGE. */
int by_sketch_copy(struct by_sketch *sketch, const struct by_plan *plan, enum by_tree_use use);
/*
 * The trees of an allreduce on a fabric whose links are alike both ways and whose switches only
 * forward, all turned to one root. A tree that is used up and down loads each of its links once
 * each way, whatever its root. Of a pair, one tree up and one down, each is used both ways at half
 * of the weight: together with the mirror image of the pair, which the fabric carries as well, that
 * is what both pairs load at half of theirs. So trees of one root are as fast as trees of any
 * roots. 0 or BY_ERANGE.
 */
int by_sketch_copy_at(struct by_sketch *sketch, const struct by_plan *plan, uint32_t root);
/* The facts of a plan that the planner made. */
void by_sketch_describe(const struct by_plan *plan, uint32_t node_count, struct by_sketch_facts *facts);

#endif
