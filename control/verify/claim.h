/* The claims of a plan, as the verifier sees them: read from a plan file, or filled by a caller
 * that has the plan in memory. None of them is trusted. Each claim belongs to one thread. */
#ifndef BY_VERIFY_CLAIM_H
#define BY_VERIFY_CLAIM_H

#include <gmp.h>

#include "control/fabric/topology.h"
#include "control/verify/verify.h"

enum by_claim_use { BY_CLAIM_BOTH = 1, BY_CLAIM_UP, BY_CLAIM_DOWN };

struct by_claim_tree {
    uint32_t root;
    uint32_t use; /* enum by_claim_use */
    mpq_t weight;
    uint32_t edge_count;
    size_t first_edge; /* in `edges` */
};

/* A price of a link, or (from == to) of an addition at a switch. */
struct by_claim_price {
    uint32_t from, to;
    int64_t price;
};

/* A set of nodes that trees of one direction cross, with a weight. */
struct by_claim_cut {
    int64_t weight;
    bool up;      /* trees that carry up leave it; else those that carry down enter it */
    bool *inside; /* by node */
};

/* A permutation of the nodes, whose power `order` moves nothing. */
struct by_claim_rotation {
    uint32_t order;
    const uint32_t *next; /* by node */
};

/* The proof of the optimum in addition to the cut (proof.c). */
enum by_claim_proof {
    BY_CLAIM_PROOF_NONE,
    BY_CLAIM_PROOF_PARTS,
    BY_CLAIM_PROOF_PRICES, /* what a pair of trees pays is found by trying all */
    BY_CLAIM_PROOF_CUTS    /* what it pays follows from weighted cuts */
};

struct by_claim {
    const struct by_topology *topology;
    unsigned collective;
    int64_t root; /* -1 when the plan has none */
    mpq_t optimum, achieved, inv_x, exiting;
    bool has_inv_x;
    int64_t k;
    bool *member;    /* by node: the compute nodes that take part; NULL: all */
    int64_t *shares; /* by node: parts of the data; NULL: equal shares */
    int64_t cut_compute_count;
    bool *cut;         /* by node */
    bool hosts_only;   /* no switch branches, and the bound is for a fabric whose switches only forward */
    int64_t trees_max; /* the trees that may share the data of one rank, 0: any number */
    bool ordered;      /* every partial sum covers a contiguous interval of ranks */
    enum by_claim_proof proof;
    uint32_t part_count;
    uint32_t *part; /* by node: the number of its part, from 1; 0 for none */
    uint32_t price_count;
    struct by_claim_price *prices;
    uint32_t cut_count, cut_room; /* of the proof */
    struct by_claim_cut *cuts;
    /* a plan by classes: each tree stands for its images under all products of rotations; else 0 */
    uint32_t rotation_count;
    struct by_claim_rotation *rotations;
    uint32_t tree_count;
    struct by_claim_tree *trees;
    uint32_t path_count;
    /* by path, plus one: its first node in `path_nodes`; at least two nodes each */
    const uint32_t *path_start;
    const uint32_t *path_nodes; /* indices of nodes of the topology */
    const uint32_t *edges;      /* path numbers, all below path_count */
    char reason[400];           /* the first violation */
};

/* Initialises the numbers, `cut` and `root`; keeps a pointer to `topology`. by_claim_clear releases
 * these, the members, the shares, the proof, the trees and the list of rotations, but not the
 * paths, the edges and the permutations. */
void by_claim_init(struct by_claim *claim, const struct by_topology *topology);
void by_claim_clear(struct by_claim *claim);
/* Checks everything; fills `report`. */
void by_claim_check(struct by_claim *claim, struct by_verify_report *report);

#endif
