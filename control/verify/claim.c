/* Reading a plan file for verification. See claim.h. */
#include "control/verify/claim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/topology/alloc.h"
#include "offload/wire/types.h"

bool by_claim_violate(const struct by_claim *claim, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(claim->reason, claim->reason_bytes, format, arguments);
    va_end(arguments);
    return false;
}

const char *by_claim_name(const struct by_claim *claim, uint32_t node)
{
    return claim->topology->nodes[node].name;
}

/* A non-negative integer: a JSON integer or a string of digits. */
static bool read_integer(const json_t *value, mpz_t result)
{
    const char *digits = json_string_value(value);

    if (json_is_integer(value)) {
        mpz_set_si(result, json_integer_value(value));
        return mpz_sgn(result) >= 0;
    }
    if (!digits || *digits == '\0' || strspn(digits, "0123456789") != json_string_length(value) ||
        strlen(digits) > 60)
        return false;
    return mpz_set_str(result, digits, 10) == 0;
}

static bool read_fraction(const struct by_claim *claim, const json_t *object, const char *what, mpq_t result)
{
    if (!read_integer(json_object_get(object, "num"), mpq_numref(result)) ||
        !read_integer(json_object_get(object, "den"), mpq_denref(result)) ||
        mpz_sgn(mpq_denref(result)) == 0) {
        mpq_set_ui(result, 0, 1);
        return by_claim_violate(claim, "%s is no fraction {\"num\": ..., \"den\": ...} of integers", what);
    }
    mpq_canonicalize(result);
    return true;
}

static bool read_small(const struct by_claim *claim, const json_t *value, const char *what, int64_t *result)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return by_claim_violate(claim, "%s is no count", what);
    *result = json_integer_value(value);
    return true;
}

static bool read_node(const struct by_claim *claim, const json_t *value, const char *what, uint32_t *node)
{
    const char *name = json_string_value(value);
    int64_t index = name ? by_topology_find(claim->topology, name) : -1;

    if (index < 0)
        return by_claim_violate(claim, "%s names '%.60s', which is no node of the topology", what,
                                name ? name : "(not a string)");
    *node = (uint32_t)index;
    return true;
}

static bool read_path(const struct by_claim *claim, const json_t *value, struct by_claim_path *path)
{
    size_t count = json_array_size(value);

    if (count < 2)
        return by_claim_violate(claim, "an edge has fewer than two nodes");
    path->nodes = by_alloc(count, sizeof(*path->nodes));
    path->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        if (!read_node(claim, json_array_get(value, i), "an edge", &path->nodes[i]))
            return false;
    return true;
}

static bool read_tree(struct by_claim *claim, const json_t *value)
{
    struct by_claim_tree *tree = &claim->trees[claim->tree_count++];
    const json_t *edges = json_object_get(value, "edges");
    const char *use = json_string_value(json_object_get(value, "use"));

    mpq_init(tree->weight);
    if (!read_node(claim, json_object_get(value, "root"), "the root of a tree", &tree->root) ||
        !read_fraction(claim, json_object_get(value, "weight"), "the weight of a tree", tree->weight))
        return false;
    tree->use = !use                       ? 0
                : strcmp(use, "both") == 0 ? BY_CLAIM_BOTH
                : strcmp(use, "up") == 0   ? BY_CLAIM_UP
                : strcmp(use, "down") == 0 ? BY_CLAIM_DOWN
                                           : 0;
    if (tree->use == 0)
        return by_claim_violate(claim, "the use of a tree is '%.40s', not both, up or down",
                                use ? use : "(missing)");
    if (!json_is_array(edges))
        return by_claim_violate(claim, "a tree has no edges");
    tree->edges = by_alloc(json_array_size(edges), sizeof(*tree->edges));
    for (size_t i = 0; i < json_array_size(edges); i++)
        if (!read_path(claim, json_array_get(edges, i), &tree->edges[tree->edge_count++]))
            return false;
    return true;
}

static bool read_cut(struct by_claim *claim, const json_t *bottleneck)
{
    const json_t *nodes = json_object_get(bottleneck, "nodes");

    if (!json_is_array(nodes))
        return by_claim_violate(claim, "the plan has no bottleneck with nodes");
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        uint32_t node = 0;

        if (!read_node(claim, json_array_get(nodes, i), "the bottleneck", &node))
            return false;
        if (claim->cut[node])
            return by_claim_violate(claim, "the bottleneck names node %s twice", by_claim_name(claim, node));
        claim->cut[node] = true;
    }
    return read_small(claim, json_object_get(bottleneck, "compute_count"), "compute_count of the bottleneck",
                      &claim->cut_compute_count) &&
           read_fraction(claim, json_object_get(bottleneck, "exiting"), "exiting of the bottleneck",
                         claim->exiting);
}

static bool read_head(struct by_claim *claim, const json_t *root)
{
    const struct by_topology *topology = claim->topology;
    const char *name = json_string_value(json_object_get(root, "topology"));
    const char *unit = json_string_value(json_object_get(root, "unit"));
    const char *collective = json_string_value(json_object_get(root, "collective"));
    const json_t *from = json_object_get(root, "root"), *inv_x = json_object_get(root, "inv_x");
    uint32_t node = 0;

    if (!name || strcmp(name, topology->name) != 0)
        return by_claim_violate(claim, "the plan is for topology '%.60s', this is '%.60s'",
                                name ? name : "(missing)", topology->name);
    if (!unit || strcmp(unit, topology->unit) != 0)
        return by_claim_violate(claim, "the plan counts in '%.40s', the topology in '%.40s'",
                                unit ? unit : "(missing)", topology->unit);
    claim->collective = collective ? by_collective_from_name(collective) : 0;
    if (claim->collective == 0)
        return by_claim_violate(claim, "the collective is '%.40s', which is unknown",
                                collective ? collective : "(missing)");
    if (from && !json_is_null(from)) {
        if (!read_node(claim, from, "the root", &node))
            return false;
        claim->root = node;
    }
    if (inv_x && !json_is_null(inv_x)) {
        claim->has_inv_x = true;
        if (!read_fraction(claim, inv_x, "inv_x", claim->inv_x))
            return false;
    }
    return read_fraction(claim, json_object_get(root, "optimum"), "optimum", claim->optimum) &&
           read_fraction(claim, json_object_get(root, "achieved"), "achieved", claim->achieved) &&
           read_small(claim, json_object_get(root, "k"), "k", &claim->k);
}

bool by_claim_read(struct by_claim *claim, const json_t *root)
{
    const json_t *trees = json_object_get(root, "trees");

    mpq_inits(claim->optimum, claim->achieved, claim->inv_x, claim->exiting, NULL);
    claim->root = -1;
    claim->cut = by_alloc(claim->topology->node_count, sizeof(*claim->cut));
    if (!read_head(claim, root) || !read_cut(claim, json_object_get(root, "bottleneck")))
        return false;
    if (!json_is_array(trees) || json_array_size(trees) == 0)
        return by_claim_violate(claim, "the plan has no trees");
    claim->trees = by_alloc(json_array_size(trees), sizeof(*claim->trees));
    for (size_t i = 0; i < json_array_size(trees); i++)
        if (!read_tree(claim, json_array_get(trees, i)))
            return false;
    return true;
}

void by_claim_free(struct by_claim *claim)
{
    for (uint32_t i = 0; i < claim->tree_count; i++) {
        for (uint32_t j = 0; j < claim->trees[i].edge_count; j++)
            free(claim->trees[i].edges[j].nodes);
        free(claim->trees[i].edges);
        mpq_clear(claim->trees[i].weight);
    }
    free(claim->trees);
    free(claim->cut);
    mpq_clears(claim->optimum, claim->achieved, claim->inv_x, claim->exiting, NULL);
}
