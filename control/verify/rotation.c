/*
 * Plans by classes: each tree stands for its images under all products of powers of rotations.
 * Rotations are permutations of the nodes that keep what each node is and the capacity of each
 * link, that exchange with each other, and return after the number of steps that the plan states.
 * Then the products are a group, and the images of a tree pass each image of a link equally often:
 * the total over all images of the links of a tree, over the number of images. See checker.h.
 */
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/verify/checker.h"

/* Whether two nodes have the same capabilities. */
static bool same_kind(const struct by_node *a, const struct by_node *b)
{
    return a->compute == b->compute && a->forward == b->forward && a->multicast == b->multicast &&
           a->aggregate == b->aggregate && a->aggregate_rate.num == b->aggregate_rate.num &&
           a->aggregate_rate.den == b->aggregate_rate.den;
}

/* Checks that the rotation is a permutation and keeps the fabric. */
static bool check_kept(struct by_checker *checker, uint32_t number)
{
    struct by_claim *claim = checker->claim;
    const struct by_claim_rotation *rotation = &claim->rotations[number];
    const struct by_links *links = checker->links;
    bool *seen = by_alloc(checker->node_count, sizeof(*seen)), right = true;

    for (uint32_t i = 0; i < checker->node_count && right; i++) {
        right = !seen[rotation->next[i]] || by_claim_violate(claim, "rotation %u moves two nodes to %s",
                                                             number, by_claim_name(claim, rotation->next[i]));
        seen[rotation->next[i]] = true;
        if (right && !same_kind(&checker->topology->nodes[i], &checker->topology->nodes[rotation->next[i]]))
            right =
                by_claim_violate(claim, "rotation %u moves %s to %s, which is a different kind of node",
                                 number, by_claim_name(claim, i), by_claim_name(claim, rotation->next[i]));
    }
    /* Each link has an image of equal capacity. As nodes have different images, so have links. */
    for (uint32_t i = 0; i < links->count && right; i++) {
        uint32_t image = by_links_find(links, rotation->next[links->from[i]], rotation->next[links->to[i]]);

        if (image == UINT32_MAX || links->capacity[image] != links->capacity[i])
            right = by_claim_violate(
                claim, "rotation %u moves the link from %s to %s to one of another capacity", number,
                by_claim_name(claim, links->from[i]), by_claim_name(claim, links->to[i]));
    }
    free(seen);
    return right;
}

/* Checks that each node returns after `order` steps. */
static bool check_order(struct by_checker *checker, uint32_t number)
{
    struct by_claim *claim = checker->claim;
    const struct by_claim_rotation *rotation = &claim->rotations[number];
    bool *seen = by_alloc(checker->node_count, sizeof(*seen)), right = true;

    for (uint32_t i = 0; i < checker->node_count && right; i++) {
        uint32_t length = 0;

        if (seen[i])
            continue;
        for (uint32_t node = i; !seen[node]; node = rotation->next[node]) {
            seen[node] = true;
            length++;
        }
        right = rotation->order % length == 0 ||
                by_claim_violate(claim, "rotation %u has order %u, but moves %s in a cycle of %u", number,
                                 rotation->order, by_claim_name(claim, i), length);
    }
    free(seen);
    return right;
}

/* Checks that two rotations may be exchanged. */
static bool check_exchange(struct by_checker *checker, uint32_t a, uint32_t b)
{
    struct by_claim *claim = checker->claim;
    const uint32_t *first = claim->rotations[a].next, *second = claim->rotations[b].next;

    for (uint32_t i = 0; i < checker->node_count; i++)
        if (first[second[i]] != second[first[i]])
            return by_claim_violate(claim,
                                    "rotations %u and %u move %s to different nodes in different orders", a,
                                    b, by_claim_name(claim, i));
    return true;
}

bool by_check_rotations(struct by_checker *checker)
{
    struct by_claim *claim = checker->claim;
    bool limited = false, right = true;

    checker->images = 1;
    if (claim->rotation_count == 0)
        return true;
    for (uint32_t i = 0; i < checker->node_count; i++)
        limited |= checker->topology->nodes[i].aggregate_rate.num > 0;
    if (claim->member || claim->shares || claim->root >= 0 || claim->ordered || claim->trees_max > 0 ||
        limited)
        return by_claim_violate(claim,
                                "rotations are for collectives of all compute nodes without a root, and "
                                "without shares, order, limits of trees and of additions");
    for (uint32_t i = 0; i < claim->rotation_count && right; i++) {
        right = check_kept(checker, i) && check_order(checker, i);
        for (uint32_t j = 0; j < i && right; j++)
            right = check_exchange(checker, j, i);
        if (right &&
            __builtin_mul_overflow(checker->images, (uint64_t)claim->rotations[i].order, &checker->images))
            right = by_claim_violate(claim, "the orders of the rotations multiply to more than 64 bits");
    }
    return right;
}

static uint32_t find(uint32_t *parent, uint32_t at)
{
    while (parent[at] != at)
        at = parent[at] = parent[parent[at]];
    return at;
}

static void join(uint32_t *parent, uint32_t a, uint32_t b)
{
    a = find(parent, a);
    b = find(parent, b);
    parent[a > b ? a : b] = a > b ? b : a;
}

uint32_t *by_check_images_of_links(const struct by_checker *checker)
{
    const struct by_claim *claim = checker->claim;
    const struct by_links *links = checker->links;
    uint32_t *parent = by_alloc(links->count, sizeof(*parent));

    for (uint32_t i = 0; i < links->count; i++)
        parent[i] = i;
    for (uint32_t r = 0; r < claim->rotation_count; r++)
        for (uint32_t i = 0; i < links->count; i++)
            join(parent, i,
                 by_links_find(links, claim->rotations[r].next[links->from[i]],
                               claim->rotations[r].next[links->to[i]]));
    for (uint32_t i = 0; i < links->count; i++)
        parent[i] = find(parent, i);
    return parent;
}

void by_check_spread_roots(struct by_checker *checker, mpq_t *weights)
{
    const struct by_claim *claim = checker->claim;
    uint32_t n = checker->node_count, *parent, *count;
    mpq_t factor;

    if (claim->rotation_count == 0)
        return;
    parent = by_alloc(n, sizeof(*parent));
    count = by_alloc(n, sizeof(*count));
    for (uint32_t i = 0; i < n; i++)
        parent[i] = i;
    for (uint32_t r = 0; r < claim->rotation_count; r++)
        for (uint32_t i = 0; i < n; i++)
            join(parent, i, claim->rotations[r].next[i]);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = find(parent, i);

        count[first]++;
        if (first != i)
            mpq_add(weights[first], weights[first], weights[i]);
    }
    mpq_init(factor);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = find(parent, i);

        if (first == i && mpq_sgn(weights[i]) != 0) { /* first nodes come before the others */
            mpz_set_ui(mpq_numref(factor), checker->images);
            mpz_set_ui(mpq_denref(factor), count[i]);
            mpq_canonicalize(factor);
            mpq_mul(weights[i], weights[i], factor);
        } else if (first != i) {
            mpq_set(weights[i], weights[first]);
        }
    }
    mpq_clear(factor);
    free(parent);
    free(count);
}
