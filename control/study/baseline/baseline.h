/*
 * Other people's algorithms on the same fabrics, so that the planner's forests can be compared with
 * what is in use elsewhere: rings, recursive halving and doubling, double binary trees, MultiTree,
 * Blink. Each is laid onto the physical links, and its rate is exact: what the fullest link allows.
 * Switches only forward.
 *
 * What an algorithm makes is either a forest, a plan like any other that `banyan verify` checks, or
 * a schedule of rounds (rounds.h). One thread for each call.
 */
#ifndef BY_STUDY_BASELINE_BASELINE_H
#define BY_STUDY_BASELINE_BASELINE_H

#include "control/planner/planner.h"
#include "control/study/baseline/rounds.h"
#include "control/study/baseline/sketch.h"

/* X(NAME, "name", "summary") */
#define BY_ALGORITHM_LIST(X)                                                                                 \
    X(FOREST, "forest", "banyan's own: the forest that the bottleneck cut proves optimal")                   \
    X(RING, "ring", "one ring through all compute nodes")                                                    \
    X(RINGS, "rings", "rings on what the rings before them have left, up to 16")                             \
    X(RECURSIVE, "recursive", "recursive halving and doubling, in rounds")                                   \
    X(DOUBLE_BINARY, "double-binary", "two binary trees, in each of which the other's leaves are inside")    \
    X(MULTITREE, "multitree", "MultiTree: a greedy tree for each root, grown in steps")                      \
    X(BLINK, "blink", "Blink: trees of one root only, packed as well as can be")

enum by_algorithm {
    BY_ALGORITHM_NONE,
#define X(name, text, summary) BY_ALGORITHM_##name,
    BY_ALGORITHM_LIST(X)
#undef X
        BY_ALGORITHM_COUNT
};

const char *by_algorithm_name(enum by_algorithm algorithm);
const char *by_algorithm_summary(enum by_algorithm algorithm);
/* BY_ALGORITHM_NONE when there is none of this name. */
enum by_algorithm by_algorithm_from_name(const char *name);

struct by_baseline_options {
    enum by_algorithm algorithm;
    unsigned collective;               /* enum by_collective */
    int64_t root;                      /* node index for broadcast and reduce */
    bool keep;                         /* make the plan or schedule; without, only the figures */
    double time_limit_s;               /* 0 = none; past it BY_ETIMEDOUT */
    struct by_stage *stage;            /* where progress is told; NULL: nowhere */
    by_plan_forwarding_fn *forwarding; /* as in by_plan_options, for Blink */
};

struct by_baseline {
    struct by_sketch_facts facts; /* of a schedule of rounds: tree_count is 0, height_max the longest path */
    uint32_t round_count;         /* of a schedule of rounds, else 0 */
    struct by_plan *plan;         /* a forest that was kept, else NULL */
    struct by_rounds *rounds;     /* a schedule that was kept, else NULL */
};

/*
 * Runs an algorithm other than FOREST. `reference` is a plan for the same collective and root: its
 * bound and cut go into the result. BY_EUNSUPPORTED when the algorithm does not do this collective;
 * `problem` is filled with every error. Release with by_baseline_free.
 */
int by_baseline_make(const struct by_topology *topology, const struct by_baseline_options *options,
                     const struct by_plan *reference, struct by_baseline *result, struct by_problem *problem);
void by_baseline_free(struct by_baseline *result);

/* ---- for the algorithms' own files ---- */

struct by_baseline_task {
    struct by_baseline_net *net;
    unsigned collective;
    int64_t root;
    struct by_sketch *sketch;
    double deadline;                   /* a time of by_plan_clock, 0 for none */
    struct by_stage *stage;            /* or NULL */
    by_plan_forwarding_fn *forwarding; /* or NULL */
    struct by_problem *problem;
};

/* Whether the time limit has passed; `problem` says so then. */
bool by_task_late(const struct by_baseline_task *task);

/* What a collective does with trees. */
static inline bool by_task_rooted(const struct by_baseline_task *task)
{
    return task->root >= 0;
}

/* Each adds its trees to the sketch; 0, or a BY_E* with `problem` filled. */
int by_baseline_ring(struct by_baseline_task *task, uint32_t rings_max);
int by_baseline_double_binary(struct by_baseline_task *task, uint32_t pairs_max);
int by_baseline_multitree(struct by_baseline_task *task);
int by_baseline_blink(struct by_baseline_task *task);
/* Recursive halving and doubling: a schedule, which the caller frees. */
int by_baseline_recursive(struct by_baseline_task *task, struct by_rounds **rounds);

/* The boxes of a fabric: groups of compute nodes that are joined at least twice as wide inside as
 * outside. */
struct by_boxes {
    uint32_t count;   /* the number of ranks where there are no boxes */
    uint32_t *box_of; /* by rank */
    int64_t floor;    /* links inside are wider than this; 0 where there are no boxes */
};

void by_boxes_find(const struct by_baseline_net *net, struct by_boxes *boxes);
void by_boxes_free(struct by_boxes *boxes);
/*
 * A cycle through all compute nodes on what is left, from rank `start`, that leaves each box once;
 * where there is none such, one that leaves boxes oftener. Writes node indices into `order`. False
 * when none was found with reasonable effort.
 */
bool by_cycle_find(struct by_baseline_net *net, const struct by_boxes *boxes, uint32_t start,
                   uint32_t *order);
/*
 * The next ring, number `index`: finds a cycle, lays its paths, and takes what it can carry of what
 * is left. The first ring always exists: in rank order where no cycle was found. Returns what it
 * carries in capacity units, 0 when there is no further ring, or a negative BY_E* with `problem`
 * filled.
 */
struct by_baseline_ring {
    uint32_t *order; /* node indices */
    uint32_t *forth; /* path from order[i] to order[i + 1] */
    uint32_t *back;  /* the same path, listed from its end */
    struct by_boxes boxes;
};

void by_ring_make(struct by_baseline_ring *ring, const struct by_baseline_net *net);
void by_ring_free(struct by_baseline_ring *ring);
int64_t by_ring_next(struct by_baseline_ring *ring, struct by_baseline_task *task, uint32_t index);

#endif
