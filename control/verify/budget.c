/* Additions of switches: a switch with c children in a tree that carries up does c - 1 additions
 * for each unit of the tree's weight, and in total at most its aggregate_rate. See checker.h. */
#include <stdlib.h>

#include "control/base/alloc.h"
#include "control/verify/checker.h"

/* Adds up the additions of one tree. */
static void add_tree(const struct by_claim *claim, const struct by_claim_tree *tree, uint32_t *children,
                     mpq_t *additions)
{
    mpq_t part;

    mpq_init(part);
    for (uint32_t i = 0; i < tree->edge_count; i++)
        children[claim->path_nodes[claim->path_start[claim->edges[tree->first_edge + i]]]]++;
    for (uint32_t i = 0; i < tree->edge_count; i++) {
        uint32_t parent = claim->path_nodes[claim->path_start[claim->edges[tree->first_edge + i]]];

        if (children[parent] > 1 && claim->topology->nodes[parent].aggregate_rate.num > 0) {
            mpq_set_ui(part, children[parent] - 1, 1);
            mpq_mul(part, part, tree->weight);
            mpq_add(additions[parent], additions[parent], part);
        }
        children[parent] = 0;
    }
    mpq_clear(part);
}

static bool check_node(struct by_checker *checker, uint32_t node, mpq_t additions)
{
    const struct by_node *kind = &checker->topology->nodes[node];
    bool right = true;
    mpq_t limit;

    mpq_init(limit);
    mpq_set_si(limit, kind->aggregate_rate.num, (unsigned long)kind->aggregate_rate.den);
    mpq_canonicalize(limit);
    if (kind->aggregate_rate.num > 0 && mpq_cmp(additions, limit) > 0) {
        char text[200];

        gmp_snprintf(text, sizeof(text), "%s adds %Qd of %Qd %s (its aggregate_rate)", kind->name, additions,
                     limit, checker->topology->unit);
        right = by_claim_violate(checker->claim, "switch %s", text);
    }
    mpq_clear(limit);
    return right;
}

bool by_check_budgets(struct by_checker *checker)
{
    const struct by_claim *claim = checker->claim;
    uint32_t n = checker->node_count, *children;
    bool right = true, limited = false;
    mpq_t *additions;

    for (uint32_t i = 0; i < n; i++)
        limited |= checker->topology->nodes[i].aggregate_rate.num > 0;
    if (!limited)
        return true;
    children = by_alloc(n, sizeof(*children));
    additions = by_alloc(n, sizeof(*additions));
    for (uint32_t i = 0; i < n; i++)
        mpq_init(additions[i]);
    for (uint32_t i = 0; i < claim->tree_count; i++)
        if (by_claim_carries_up(&claim->trees[i]))
            add_tree(claim, &claim->trees[i], children, additions);
    for (uint32_t i = 0; i < n; i++) {
        right = right && check_node(checker, i, additions[i]);
        mpq_clear(additions[i]);
    }
    free(children);
    free(additions);
    return right;
}
