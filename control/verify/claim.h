/* What a plan file claims, as the verifier reads it. Private to verify/. One thread for each claim. */
#ifndef BY_VERIFY_CLAIM_H
#define BY_VERIFY_CLAIM_H

#include <gmp.h>
#include <jansson.h>

#include "control/topology/topology.h"

enum by_claim_use { BY_CLAIM_BOTH = 1, BY_CLAIM_UP, BY_CLAIM_DOWN };

struct by_claim_path {
    uint32_t count;
    uint32_t *nodes;
};

struct by_claim_tree {
    uint32_t root;
    enum by_claim_use use;
    mpq_t weight;
    uint32_t edge_count;
    struct by_claim_path *edges;
};

struct by_claim {
    const struct by_topology *topology;
    unsigned collective;
    int64_t root; /* -1 when the file says null */
    mpq_t optimum, achieved, inv_x, exiting;
    bool has_inv_x;
    int64_t k;
    int64_t cut_compute_count;
    bool *cut; /* by node */
    uint32_t tree_count;
    struct by_claim_tree *trees;
    char *reason; /* where the first violation is written */
    size_t reason_bytes;
};

/* Reads everything into `claim` (also to be freed after a failure); false with `claim->reason` filled when
 * something is not as a plan must be. */
bool by_claim_read(struct by_claim *claim, const json_t *root);
void by_claim_free(struct by_claim *claim);
/* Writes the first violation; returns false. */
bool by_claim_violate(const struct by_claim *claim, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *by_claim_name(const struct by_claim *claim, uint32_t node);

#endif
