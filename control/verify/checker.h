/* The parts of the verifier. Private to verify/. Each checker belongs to one thread. */
#ifndef BY_VERIFY_CHECKER_H
#define BY_VERIFY_CHECKER_H

#include "control/base/json.h"
#include "control/fabric/links.h"
#include "control/fabric/names.h"
#include "control/verify/claim.h"

struct by_checker {
    struct by_claim *claim;
    const struct by_topology *topology;
    uint32_t node_count;
    uint32_t compute_count;
    int64_t share_sum; /* parts of the data; without shares: the number of compute nodes */
    struct by_links *links;
    uint64_t images; /* of each tree under the rotations, 1 without */
    mpq_t *up;       /* by node: weight of the trees rooted there that carry up; `down` likewise */
    mpq_t *down;
    mpq_t rate, bound;
    bool of_trees; /* the bound is from the proof, which holds for trees only: the cut allows more */
};

/* Each returns whether everything is valid, with the first violation in the claim's `reason` if
 * not. */
bool by_check_rotations(struct by_checker *checker); /* rotation.c: the symmetries of a plan by classes */
bool by_check_trees(struct by_checker *checker);     /* shape.c: each tree alone */
bool by_check_loads(struct by_checker *checker);     /* load.c: all trees together, on every link */
bool by_check_order(struct by_checker *checker);     /* order.c: intervals of ranks, if the plan is ordered */
bool by_check_count(struct by_checker *checker);     /* few.c: the number of trees, if it is limited */
bool by_check_budgets(struct by_checker *checker);   /* budget.c: additions of switches */
bool by_check_shares(struct by_checker *checker);    /* share.c: shares of the roots */
bool by_check_figures(struct by_checker *checker);   /* share.c: rate, cut and the figures stated */
bool by_check_proof(struct by_checker *checker);     /* proof.c: the proof; lowers the bound of the cut */
bool by_check_prices(struct by_checker *checker, mpq_t bound); /* price.c: a proof by prices, or with cuts */

/* By link: the first of those that rotations move it to; the caller frees (rotation.c). */
uint32_t *by_check_images_of_links(const struct by_checker *checker);
/* Turns the weights of the trees of a plan by classes, by root, into those of all their images. */
void by_check_spread_roots(struct by_checker *checker, mpq_t *weights);

/* Numbers in which prices are added up: node counts times prices of 63 bits fit. */
#define BY_COST_FAR ((__int128)1 << 120)

/* The nodes of trees in one direction, seen from the root outwards, and the cheapest paths between
 * them (price.c). */
struct by_price_side {
    bool up;
    uint32_t count;
    uint32_t optional; /* number of optional sites, which are last: switches */
    uint32_t *node;    /* by site */
    /* [site * count + site]: cheapest path, including additions at both ends (or at its start) */
    __int128 *way;
    __int128 *extra; /* by site: price of an addition */
};
/* The least sum of weights of cuts that a pair of trees crosses, 0 with the first violation if some
 * path is cheaper than the cuts on it (cut.c). */
__int128 by_check_cuts(struct by_checker *checker, const struct by_price_side *up,
                       const struct by_price_side *down);

/* Whether the tree carries data in this direction. */
static inline bool by_claim_carries_up(const struct by_claim_tree *tree)
{
    return tree->use != BY_CLAIM_DOWN;
}
static inline bool by_claim_carries_down(const struct by_claim_tree *tree)
{
    return tree->use != BY_CLAIM_UP;
}
/* Returns the parts of the data that a node has. */
static inline int64_t by_checker_share(const struct by_checker *checker, uint32_t node)
{
    return checker->claim->shares ? checker->claim->shares[node] : checker->topology->nodes[node].compute;
}
/* Records the first violation; returns false. */
bool by_claim_violate(struct by_claim *claim, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *by_claim_name(const struct by_claim *claim, uint32_t node);

/*
 * For plans on a subset of the compute nodes (view.c): the fabric as their job sees it, with the
 * same node numbers. Idle compute nodes have no links, forwarding ones are switches. Returns false
 * with the first violation when the plan uses an idle node. Free after success and failure.
 */
struct by_job_view {
    struct by_topology topology;
    bool *idle;
};
bool by_job_view_make(struct by_job_view *view, struct by_claim *claim);
void by_job_view_free(struct by_job_view *view);

/* Rotations of a plan by classes (count). */
#define BY_CLAIM_ROTATIONS_MAX 8u

/* Reads plan files (claim.c) into `claim`, which must be initialised. `arrays` owns its paths,
 * edges and permutations. */
struct by_claim_arrays {
    uint32_t *path_start, *path_nodes, *edges;
    uint32_t rotation_count, *rotations[BY_CLAIM_ROTATIONS_MAX];
};
/* Returns 0 and `*right`, or BY_EFORMAT with `problem` filled when the text is not JSON or of
 * another format. */
int by_claim_read(struct by_claim *claim, const char *text, size_t bytes, struct by_claim_arrays *arrays,
                  bool *right, struct by_problem *problem);
/* Reads the value of "proof" (claim_proof.c). Returns false with the first violation, or when the
 * JSON is invalid. */
bool by_claim_read_proof(struct by_claim *claim, struct by_json *json, const struct by_names *names);
/* Reads the value of "rotations" (claim_rotation.c). The same errors. */
bool by_claim_read_rotations(struct by_claim *claim, struct by_json *json, const struct by_names *names,
                             struct by_claim_arrays *arrays);
void by_claim_arrays_free(struct by_claim_arrays *arrays);

#endif
