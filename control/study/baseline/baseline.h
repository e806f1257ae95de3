/*
 * Published algorithms on the same fabrics, for comparison with the planner's forests: rings,
 * recursive halving and doubling, double binary trees, MultiTree, Blink, Bine trees, breadth-first
 * broadcast, greedy synthesis. Each algorithm is laid onto the physical links. Its rate is exact:
 * it is the rate that the most loaded link allows. Switches only forward.
 *
 * An algorithm yields a forest (a plan that `banyan verify` can check), a schedule of rounds
 * (rounds.h), or only figures. One thread for each call.
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
    X(RINGS, "rings", "rings on the bandwidth that earlier rings leave, up to 16")                           \
    X(RECURSIVE, "recursive", "recursive halving and doubling, in rounds")                                   \
    X(DOUBLE_BINARY, "double-binary", "two binary trees; the leaves of one are inner nodes of the other")    \
    X(MULTITREE, "multitree", "MultiTree: a greedy tree for each root, grown in steps")                      \
    X(BLINK, "blink", "Blink: trees of a single root, packed optimally")                                     \
    X(BINE, "bine", "Bine trees: butterflies with short distances, in rounds")                               \
    X(BFB, "bfb", "breadth-first broadcast: balanced steps on direct links")                                 \
    X(TACOS, "tacos", "greedy synthesis on the time-expanded network of direct links")

enum by_algorithm {
    BY_ALGORITHM_NONE,
#define X(name, text, summary) BY_ALGORITHM_##name,
    BY_ALGORITHM_LIST(X)
#undef X
        BY_ALGORITHM_COUNT
};

const char *by_algorithm_name(enum by_algorithm algorithm);
/* Whether it makes trees; else it makes rounds. */
bool by_algorithm_has_trees(enum by_algorithm algorithm);
const char *by_algorithm_summary(enum by_algorithm algorithm);
/* Returns BY_ALGORITHM_NONE if the name is unknown. */
enum by_algorithm by_algorithm_from_name(const char *name);

struct by_baseline_options {
    enum by_algorithm algorithm;
    unsigned collective;           /* enum by_collective */
    int64_t root;                  /* node index, for broadcast and reduce */
    bool keep;                     /* make the plan or schedule; false: only the figures */
    double time_limit_s;           /* 0: none; after it BY_ETIMEDOUT */
    struct by_stage *stage;        /* receives progress, or NULL */
    by_plan_programs_fn *programs; /* as in by_plan_options, for Blink */
};

struct by_baseline {
    /* Rounds have tree_count 0; height_max is their longest path. */
    struct by_sketch_facts facts;
    uint32_t round_count;     /* of a schedule of rounds; 0 for a forest */
    struct by_plan *plan;     /* the forest if `keep` was set, else NULL */
    struct by_rounds *rounds; /* the schedule if `keep` was set, else NULL */
};

/*
 * Runs an algorithm other than FOREST. `reference` is a plan for the same collective and root; its
 * bound and cut are copied into the result. Returns 0, or a negative BY_E* with `problem` filled:
 * BY_EUNSUPPORTED if the algorithm does not support this collective. Free with by_baseline_free.
 */
int by_baseline_make(const struct by_topology *topology, const struct by_baseline_options *options,
                     const struct by_plan *reference, struct by_baseline *result, struct by_problem *problem);
void by_baseline_free(struct by_baseline *result);

/* ---- shared by the algorithms ---- */

struct by_baseline_task {
    struct by_baseline_net *net;
    unsigned collective;
    int64_t root;
    struct by_sketch *sketch;
    double deadline;               /* a time of by_plan_clock, 0 for none */
    struct by_stage *stage;        /* or NULL */
    by_plan_programs_fn *programs; /* or NULL */
    struct by_problem *problem;
};

/* Whether the time limit has passed; if so, fills `problem`. */
bool by_task_late(const struct by_baseline_task *task);

/* Properties of the task's collective. */
static inline bool by_task_rooted(const struct by_baseline_task *task)
{
    return task->root >= 0;
}

/* Adds to `total` the time of an allgather over the arcs of `net`, in units of data divided by a
 * capacity of 1, and to `rounds` its rounds. Returns 0, or a BY_E* with the task's `problem`
 * filled. */
typedef int by_gather_fn(struct by_baseline_task *task, const struct by_baseline_net *net,
                         struct by_fraction *total, uint32_t *rounds);
/* Rates an algorithm that is an allgather of `units` for each rank, its reverse (reduce-scatter) or
 * both (allreduce). Fills facts->achieved and facts->height_max. Returns as by_gather_fn;
 * BY_EUNSUPPORTED for a rooted collective. */
int by_task_gather(struct by_baseline_task *task, const char *algorithm, by_gather_fn *gather, uint32_t units,
                   struct by_sketch_facts *facts, uint32_t *rounds);

/* Each function adds its trees to the sketch. Returns 0, or a BY_E* with `problem` filled. */
int by_baseline_ring(struct by_baseline_task *task, uint32_t rings_max);
int by_baseline_double_binary(struct by_baseline_task *task, uint32_t pairs_max);
int by_baseline_multitree(struct by_baseline_task *task);
int by_baseline_blink(struct by_baseline_task *task);
/* Make a schedule of rounds, NULL if there is none; the caller frees it. */
int by_baseline_recursive(struct by_baseline_task *task, struct by_rounds **rounds);
int by_baseline_bine(struct by_baseline_task *task, struct by_rounds **rounds);
/* Compute the rate and the number of steps only. */
int by_baseline_bfb(struct by_baseline_task *task, struct by_sketch_facts *facts, uint32_t *rounds);
int by_baseline_tacos(struct by_baseline_task *task, struct by_sketch_facts *facts, uint32_t *rounds);

/*
 * The boxes of a fabric: groups of compute nodes whose bandwidth inside is at least twice that to
 * the outside.
 */
struct by_boxes {
    uint32_t count;   /* the number of ranks if there are no boxes */
    uint32_t *box_of; /* by rank */
    int64_t floor;    /* links inside are wider than this; 0 if there are no boxes */
};

void by_boxes_find(const struct by_baseline_net *net, struct by_boxes *boxes);
void by_boxes_free(struct by_boxes *boxes);
/*
 * Finds a cycle through all compute nodes on the remaining capacities, from rank `start`. It leaves
 * each box once or, if there is no such cycle, more often. Writes node indices into `order`.
 * Returns false if the search exceeded its limits.
 */
bool by_cycle_find(struct by_baseline_net *net, const struct by_boxes *boxes, uint32_t start,
                   uint32_t *order);
/* A ring: its nodes and the paths between neighbours. */
struct by_baseline_ring {
    uint32_t *order; /* node indices */
    uint32_t *forth; /* path from order[i] to order[i + 1] */
    uint32_t *back;  /* the same path in reverse */
    struct by_boxes boxes;
};

void by_ring_make(struct by_baseline_ring *ring, const struct by_baseline_net *net);
void by_ring_free(struct by_baseline_ring *ring);
/*
 * Makes ring number `index`: finds a cycle, lays its paths, and subtracts the capacity that it can
 * carry. The first ring always exists: if no cycle is found it follows rank order. Returns what the
 * ring carries in capacity units, 0 if there is no further ring, or a negative BY_E* with `problem`
 * filled.
 */
int64_t by_ring_next(struct by_baseline_ring *ring, struct by_baseline_task *task, uint32_t index);

#endif
