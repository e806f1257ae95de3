/*
 * Checks what a plan claims. See verify.h. The order is: each tree alone; the trees together (shares of the
 * roots, loads of the links); the cut; then the figures that the file states. The first violation ends it.
 */
#include "control/verify/verify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/topology/alloc.h"
#include "control/verify/claim.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

#define FORMAT "banyan-plan-1"

struct checker {
    struct by_claim *claim;
    const struct by_topology *topology;
    uint32_t node_count;
    uint32_t compute_count;
    mpq_t *capacity; /* [from * node_count + to], in the topology's unit */
    mpq_t *load;
    mpq_t *up; /* by node: weight of the trees rooted there that carry up, and down */
    mpq_t *down;
    mpq_t rate, bound;
};

static mpq_t *new_numbers(size_t count)
{
    mpq_t *numbers = by_alloc(count, sizeof(*numbers));

    for (size_t i = 0; i < count; i++)
        mpq_init(numbers[i]);
    return numbers;
}

static void free_numbers(mpq_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        mpq_clear(numbers[i]);
    free(numbers);
}

static void checker_make(struct checker *checker, struct by_claim *claim)
{
    const struct by_topology *topology = claim->topology;
    size_t n = topology->node_count;
    mpq_t part;

    *checker = (struct checker){.claim = claim, .topology = topology, .node_count = topology->node_count};
    checker->compute_count = by_topology_compute_count(topology);
    checker->capacity = new_numbers(n * n);
    checker->load = new_numbers(n * n);
    checker->up = new_numbers(n);
    checker->down = new_numbers(n);
    mpq_inits(checker->rate, checker->bound, part, NULL);
    for (uint32_t i = 0; i < topology->arc_count; i++) {
        const struct by_arc *arc = &topology->arcs[i];

        mpz_set_si(mpq_numref(part), arc->capacity);
        mpz_set_si(mpq_denref(part), topology->scale);
        mpq_canonicalize(part);
        mpq_add(checker->capacity[arc->from * n + arc->to], checker->capacity[arc->from * n + arc->to], part);
    }
    mpq_clear(part);
}

static void checker_free(struct checker *checker)
{
    size_t n = checker->node_count;

    free_numbers(checker->capacity, n * n);
    free_numbers(checker->load, n * n);
    free_numbers(checker->up, n);
    free_numbers(checker->down, n);
    mpq_clears(checker->rate, checker->bound, NULL);
}

static const char *name(const struct checker *checker, uint32_t node)
{
    return checker->topology->nodes[node].name;
}

/* ---- one tree ---- */

/* Whether data of this tree runs the way in question. */
static bool carries_up(const struct by_claim_tree *tree)
{
    return tree->use != BY_CLAIM_DOWN;
}

static bool carries_down(const struct by_claim_tree *tree)
{
    return tree->use != BY_CLAIM_UP;
}

/* A path: links that exist the way data runs, switches inside, no node twice. Adds the tree's load. */
static bool check_path(struct checker *checker, const struct by_claim_tree *tree, uint32_t number,
                       const struct by_claim_path *path)
{
    size_t n = checker->node_count;

    for (uint32_t i = 0; i < path->count; i++) {
        for (uint32_t j = 0; j < i; j++)
            if (path->nodes[i] == path->nodes[j])
                return by_claim_violate(checker->claim, "tree %u: an edge passes node %s twice", number,
                                        name(checker, path->nodes[i]));
        if (i > 0 && i + 1 < path->count && checker->topology->nodes[path->nodes[i]].compute)
            return by_claim_violate(checker->claim, "tree %u: an edge passes through compute node %s", number,
                                    name(checker, path->nodes[i]));
    }
    for (uint32_t i = 1; i < path->count; i++) {
        uint32_t above = path->nodes[i - 1], below = path->nodes[i];
        size_t down = above * n + below, up = below * n + above;

        if (carries_down(tree) && mpq_sgn(checker->capacity[down]) == 0)
            return by_claim_violate(checker->claim, "tree %u: there is no link from %s to %s", number,
                                    name(checker, above), name(checker, below));
        if (carries_up(tree) && mpq_sgn(checker->capacity[up]) == 0)
            return by_claim_violate(checker->claim, "tree %u: there is no link from %s to %s", number,
                                    name(checker, below), name(checker, above));
        if (carries_down(tree))
            mpq_add(checker->load[down], checker->load[down], tree->weight);
        if (carries_up(tree))
            mpq_add(checker->load[up], checker->load[up], tree->weight);
    }
    return true;
}

/* A node of a tree, once its children are counted. */
static bool check_branching(const struct checker *checker, const struct by_claim_tree *tree, uint32_t number,
                            uint32_t node, uint32_t children)
{
    const struct by_node *kind = &checker->topology->nodes[node];
    bool is_root = node == tree->root;

    if (kind->compute)
        return true;
    if (children == 0)
        return by_claim_violate(checker->claim, "tree %u: switch %s leads nowhere", number, kind->name);
    if (children == 1 && !is_root)
        return true;
    if (carries_down(tree) && !kind->multicast)
        return by_claim_violate(checker->claim, "tree %u: switch %s has %u children but does not multicast",
                                number, kind->name, children);
    if (carries_up(tree) && !kind->aggregate)
        return by_claim_violate(checker->claim, "tree %u: switch %s has %u children but does not aggregate",
                                number, kind->name, children);
    return true;
}

static bool check_shape(struct checker *checker, const struct by_claim_tree *tree, uint32_t number,
                        bool *reached, uint32_t *children)
{
    reached[tree->root] = true;
    for (uint32_t i = 0; i < tree->edge_count; i++) {
        const struct by_claim_path *path = &tree->edges[i];
        uint32_t parent = path->nodes[0], child = path->nodes[path->count - 1];

        if (!reached[parent])
            return by_claim_violate(checker->claim,
                                    "tree %u: edge %u starts at %s, which the tree has not reached", number,
                                    i, name(checker, parent));
        if (reached[child])
            return by_claim_violate(checker->claim, "tree %u: edge %u reaches %s a second time", number, i,
                                    name(checker, child));
        reached[child] = true;
        children[parent]++;
        if (!check_path(checker, tree, number, path))
            return false;
    }
    for (uint32_t i = 0; i < checker->node_count; i++) {
        if (checker->topology->nodes[i].compute && !reached[i])
            return by_claim_violate(checker->claim, "tree %u does not reach compute node %s", number,
                                    name(checker, i));
        if (reached[i] && !check_branching(checker, tree, number, i, children[i]))
            return false;
    }
    return true;
}

/* Where trees of this collective may be rooted, and which way they carry. */
static bool check_role(const struct checker *checker, const struct by_claim_tree *tree, uint32_t number)
{
    const struct by_claim *claim = checker->claim;
    bool fits = false;

    switch (claim->collective) {
    case BY_COLLECTIVE_ALLREDUCE:
    case BY_COLLECTIVE_BARRIER:
        fits = true;
        break;
    case BY_COLLECTIVE_ALLGATHER:
    case BY_COLLECTIVE_BROADCAST:
        fits = tree->use == BY_CLAIM_DOWN;
        break;
    default:
        fits = tree->use == BY_CLAIM_UP;
    }
    if (!fits)
        return by_claim_violate(claim, "tree %u carries the wrong way for %s", number,
                                by_collective_name(claim->collective));
    if (mpq_sgn(tree->weight) <= 0)
        return by_claim_violate(claim, "tree %u has no weight", number);
    if (claim->root >= 0 && tree->root != claim->root)
        return by_claim_violate(claim, "tree %u is rooted at %s, the collective at %s", number,
                                name(checker, tree->root), name(checker, (uint32_t)claim->root));
    if ((claim->collective == BY_COLLECTIVE_ALLGATHER || claim->collective == BY_COLLECTIVE_REDUCE_SCATTER) &&
        !checker->topology->nodes[tree->root].compute)
        return by_claim_violate(claim, "tree %u is rooted at switch %s; %s has a root at each compute node",
                                number, name(checker, tree->root), by_collective_name(claim->collective));
    return true;
}

static bool check_trees(struct checker *checker)
{
    bool *reached = by_alloc(checker->node_count, sizeof(*reached)), right = true;
    uint32_t *children = by_alloc(checker->node_count, sizeof(*children));

    for (uint32_t i = 0; i < checker->claim->tree_count && right; i++) {
        const struct by_claim_tree *tree = &checker->claim->trees[i];

        memset(reached, 0, checker->node_count * sizeof(*reached));
        memset(children, 0, checker->node_count * sizeof(*children));
        right = check_role(checker, tree, i) && check_shape(checker, tree, i, reached, children);
        if (carries_up(tree))
            mpq_add(checker->up[tree->root], checker->up[tree->root], tree->weight);
        if (carries_down(tree))
            mpq_add(checker->down[tree->root], checker->down[tree->root], tree->weight);
    }
    free(reached);
    free(children);
    return right;
}

/* ---- the trees together ---- */

static bool check_loads(const struct checker *checker)
{
    size_t n = checker->node_count;

    for (size_t i = 0; i < n * n; i++)
        if (mpq_cmp(checker->load[i], checker->capacity[i]) > 0) {
            char text[200];

            gmp_snprintf(text, sizeof(text), "the link from %s to %s carries %Qd of %Qd %s",
                         name(checker, (uint32_t)(i / n)), name(checker, (uint32_t)(i % n)), checker->load[i],
                         checker->capacity[i], checker->topology->unit);
            return by_claim_violate(checker->claim, "%s", text);
        }
    return true;
}

/* Allreduce: what goes up to a root comes down from it; trees of one way stand in pairs. */
static bool check_pairs(const struct checker *checker)
{
    const struct by_claim *claim = checker->claim;

    for (uint32_t i = 0; i < checker->node_count; i++)
        if (!mpq_equal(checker->up[i], checker->down[i]))
            return by_claim_violate(claim, "the trees rooted at %s carry different amounts up and down",
                                    name(checker, i));
    for (uint32_t i = 0; i < claim->tree_count; i++) {
        const struct by_claim_tree *tree = &claim->trees[i];

        if (tree->use == BY_CLAIM_BOTH)
            continue;
        if (tree->use != BY_CLAIM_UP || i + 1 == claim->tree_count || tree[1].use != BY_CLAIM_DOWN ||
            tree[1].root != tree->root || !mpq_equal(tree[1].weight, tree->weight))
            return by_claim_violate(claim,
                                    "tree %u carries one way and is not paired with the next: up, then down, "
                                    "of equal root and weight",
                                    i);
        i++;
    }
    return true;
}

/* Allgather and reduce-scatter: each compute node's share is the same, and made of k equal parts. */
static bool check_shares(const struct checker *checker)
{
    const struct by_claim *claim = checker->claim;
    const mpq_t *shares = claim->collective == BY_COLLECTIVE_ALLGATHER ? (const mpq_t *)checker->down
                                                                       : (const mpq_t *)checker->up;
    uint32_t first = UINT32_MAX;

    for (uint32_t i = 0; i < checker->node_count; i++) {
        if (!checker->topology->nodes[i].compute)
            continue;
        first = first == UINT32_MAX ? i : first;
        if (!mpq_equal(shares[i], shares[first]))
            return by_claim_violate(
                claim, "the trees of %s weigh other than those of %s; every compute node has an equal share",
                name(checker, i), name(checker, first));
    }
    return true;
}

/* Each tree stands for a whole number of the k equal trees of its root. */
static bool check_multiplicity(const struct checker *checker)
{
    const struct by_claim *claim = checker->claim;
    bool right = true;
    mpq_t number;

    if (claim->k == 0)
        return true;
    mpq_init(number);
    for (uint32_t i = 0; i < claim->tree_count && right; i++) {
        const struct by_claim_tree *tree = &claim->trees[i];

        mpq_set_si(number, claim->k, 1);
        mpq_mul(number, number, tree->weight);
        mpq_div(number, number, carries_down(tree) ? checker->down[tree->root] : checker->up[tree->root]);
        if (mpz_cmp_ui(mpq_denref(number), 1) != 0)
            right = by_claim_violate(claim, "tree %u is no whole number of the %lld trees of its root", i,
                                     (long long)claim->k);
    }
    mpq_clear(number);
    return right;
}

static void find_rate(struct checker *checker)
{
    bool down = checker->claim->collective == BY_COLLECTIVE_ALLGATHER ||
                checker->claim->collective == BY_COLLECTIVE_BROADCAST;

    for (uint32_t i = 0; i < checker->node_count; i++)
        mpq_add(checker->rate, checker->rate, down ? checker->down[i] : checker->up[i]);
}

/* ---- the cut ---- */

static bool check_cut(struct checker *checker)
{
    const struct by_claim *claim = checker->claim;
    uint32_t n = checker->node_count;
    int64_t inside = 0, shards = 0;
    mpq_t factor;
    bool right = true;

    mpq_init(factor);
    for (uint32_t i = 0; i < n; i++) {
        inside += claim->cut[i] && checker->topology->nodes[i].compute;
        for (uint32_t j = 0; j < n; j++)
            if (claim->cut[i] && !claim->cut[j])
                mpq_add(checker->bound, checker->bound, checker->capacity[(size_t)i * n + j]);
    }
    if (inside == 0 || inside == checker->compute_count)
        right = by_claim_violate(claim, "the bottleneck has %lld of %u compute nodes: it separates nothing",
                                 (long long)inside, checker->compute_count);
    else if (inside != claim->cut_compute_count)
        right = by_claim_violate(claim, "the bottleneck has %lld compute nodes, the plan says %lld",
                                 (long long)inside, (long long)claim->cut_compute_count);
    else if (!mpq_equal(checker->bound, claim->exiting))
        right = by_claim_violate(claim, "the bandwidth leaving the bottleneck is not what the plan says");
    else if (claim->collective == BY_COLLECTIVE_BROADCAST && !claim->cut[claim->root])
        right =
            by_claim_violate(claim, "the bottleneck does not contain the root %s, so nothing must leave it",
                             name(checker, (uint32_t)claim->root));
    else if (claim->collective == BY_COLLECTIVE_REDUCE && claim->cut[claim->root])
        right = by_claim_violate(claim, "the bottleneck contains the root %s, so nothing must leave it",
                                 name(checker, (uint32_t)claim->root));
    /* The shards that must leave: in allgather those of the nodes inside, in reduce-scatter the sums for
     * those outside. */
    if (claim->collective == BY_COLLECTIVE_ALLGATHER)
        shards = inside;
    else if (claim->collective == BY_COLLECTIVE_REDUCE_SCATTER)
        shards = checker->compute_count - inside;
    if (right && shards > 0) {
        mpq_set_si(factor, checker->compute_count, (unsigned long)shards);
        mpq_canonicalize(factor);
        mpq_mul(checker->bound, checker->bound, factor);
    }
    mpq_clear(factor);
    return right;
}

static bool check_figures(const struct checker *checker)
{
    const struct by_claim *claim = checker->claim;
    bool right = true;
    mpq_t inverse;

    if (!mpq_equal(checker->rate, claim->achieved))
        return by_claim_violate(claim, "the trees' rate is not the \"achieved\" that the plan states");
    if (!mpq_equal(checker->bound, claim->optimum))
        return by_claim_violate(claim, "the bottleneck does not prove the \"optimum\" that the plan states");
    if (!claim->has_inv_x)
        return true;
    mpq_init(inverse);
    mpq_set_si(inverse, checker->compute_count, 1);
    mpq_div(inverse, inverse, checker->bound);
    if (!mpq_equal(inverse, claim->inv_x))
        right = by_claim_violate(claim, "inv_x is not the number of compute nodes over the optimum");
    mpq_clear(inverse);
    return right;
}

static bool check_root(const struct checker *checker)
{
    const struct by_claim *claim = checker->claim;
    bool rooted = claim->collective == BY_COLLECTIVE_BROADCAST || claim->collective == BY_COLLECTIVE_REDUCE;

    if (rooted && (claim->root < 0 || !checker->topology->nodes[claim->root].compute))
        return by_claim_violate(claim, "%s needs a compute node as its root",
                                by_collective_name(claim->collective));
    if (!rooted && claim->root >= 0)
        return by_claim_violate(claim, "%s has no root", by_collective_name(claim->collective));
    return true;
}

static bool check_all(struct checker *checker)
{
    unsigned collective = checker->claim->collective;
    bool both = collective == BY_COLLECTIVE_ALLREDUCE || collective == BY_COLLECTIVE_BARRIER;
    bool shared = collective == BY_COLLECTIVE_ALLGATHER || collective == BY_COLLECTIVE_REDUCE_SCATTER;

    if (!check_root(checker) || !check_trees(checker) || !check_loads(checker))
        return false;
    if ((both && !check_pairs(checker)) || (shared && !check_shares(checker)) ||
        (!both && !check_multiplicity(checker)))
        return false;
    find_rate(checker);
    return check_cut(checker) && check_figures(checker);
}

/* ---- the report ---- */

static void set_number(struct by_verify_number *number, mpq_t value)
{
    gmp_snprintf(number->num, sizeof(number->num), "%Zd", mpq_numref(value));
    gmp_snprintf(number->den, sizeof(number->den), "%Zd", mpq_denref(value));
    number->value = mpq_get_d(value);
}

static int verify(const struct by_topology *topology, const json_t *root, struct by_verify_report *report,
                  struct by_problem *problem)
{
    struct by_claim claim = {
        .topology = topology, .reason = report->reason, .reason_bytes = sizeof(report->reason)};
    const char *format = json_string_value(json_object_get(root, "format"));
    struct checker checker;

    if (!format || strcmp(format, FORMAT) != 0) {
        *problem = (struct by_problem){0};
        snprintf(problem->text, sizeof(problem->text), "the format is '%.40s'; this banyan checks '%s'",
                 format ? format : "(missing)", FORMAT);
        return BY_EFORMAT;
    }
    if (!by_claim_read(&claim, root)) {
        report->verdict = BY_VERDICT_INVALID;
        by_claim_free(&claim);
        return 0;
    }
    checker_make(&checker, &claim);
    report->tree_count = claim.tree_count;
    if (!check_all(&checker)) {
        report->verdict = BY_VERDICT_INVALID;
    } else {
        set_number(&report->achieved, checker.rate);
        set_number(&report->bound, checker.bound);
        report->verdict = mpq_equal(checker.rate, checker.bound) ? BY_VERDICT_OPTIMAL : BY_VERDICT_VALID;
        mpq_div(checker.rate, checker.rate, checker.bound);
        set_number(&report->ratio, checker.rate);
    }
    checker_free(&checker);
    by_claim_free(&claim);
    return 0;
}

static int refuse_json(const json_error_t *mistake, struct by_problem *problem)
{
    bool opened = mistake->line > 0;

    *problem =
        (struct by_problem){.line = opened ? mistake->line : 0, .column = opened ? mistake->column : 0};
    snprintf(problem->text, sizeof(problem->text), "%s%s", opened ? "not valid JSON: " : "", mistake->text);
    return opened ? BY_EFORMAT : BY_EIO;
}

int by_verify_file(const struct by_topology *topology, const char *path, struct by_verify_report *report,
                   struct by_problem *problem)
{
    json_error_t mistake;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &mistake);
    int error;

    *report = (struct by_verify_report){0};
    if (!root)
        return refuse_json(&mistake, problem);
    error = verify(topology, root, report, problem);
    json_decref(root);
    return error;
}

int by_verify_text(const struct by_topology *topology, const char *text, size_t bytes,
                   struct by_verify_report *report, struct by_problem *problem)
{
    json_error_t mistake;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &mistake);
    int error;

    *report = (struct by_verify_report){0};
    if (!root)
        return refuse_json(&mistake, problem);
    error = verify(topology, root, report, problem);
    json_decref(root);
    return error;
}
