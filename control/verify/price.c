/*
 * Proofs by prices. If every pair of trees, one up to a root and one down from it, costs at least P
 * for the links (and additions) that it uses, then rate * P is at most the value of all links (and
 * budgets of additions) at these prices. P is computed here, over all choices of the switches that
 * a tree may but need not use: by minimum spanning trees if prices are equal in both directions,
 * because then the price of a tree does not depend on its root; else by minimum arborescences (Chu
 * and Liu, Edmonds) from each root. Switches that only forward are inside paths, which cost as much
 * as the cheapest path. See checker.h.
 */
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/verify/checker.h"

#define cost_type __int128

#define FAR BY_COST_FAR

/* Work beyond which a proof is not checked: about a minute. */
#define WORK_MAX ((double)(1ull << 34))

struct price_prices {
    const struct by_checker *checker;
    uint32_t node_count;
    cost_type *link;     /* [from * node_count + to], -1 if there is no link */
    cost_type *addition; /* by node */
    bool same_both_ways;
    struct by_price_side up, down;
};

static bool is_site(const struct by_node *node, bool up)
{
    return node->compute || (up ? node->aggregate : node->multicast);
}

/* Whether paths need not pass a node: branching at a switch is as good as passing it, since it is
 * free unless additions are limited; compute nodes do not forward. */
static bool is_barrier(const struct by_node *node, bool up)
{
    return is_site(node, up) && (node->compute || !up || node->aggregate_rate.num <= 0);
}

static bool read_prices(struct price_prices *prices, struct by_claim *claim)
{
    const struct by_links *links = prices->checker->links;
    size_t n = prices->node_count;

    for (size_t i = 0; i < n * n; i++)
        prices->link[i] = -1;
    for (uint32_t i = 0; i < links->count; i++)
        prices->link[links->from[i] * n + links->to[i]] = 0;
    for (uint32_t i = 0; i < claim->price_count; i++) {
        const struct by_claim_price *price = &claim->prices[i];
        cost_type *at = price->from == price->to ? &prices->addition[price->from]
                                                 : &prices->link[price->from * n + price->to];

        if (*at < 0)
            return by_claim_violate(claim, "the proof prices a link from %s to %s, which does not exist",
                                    by_claim_name(claim, price->from), by_claim_name(claim, price->to));
        if (*at > 0)
            return by_claim_violate(claim, "the proof prices the link from %s to %s twice",
                                    by_claim_name(claim, price->from), by_claim_name(claim, price->to));
        *at = price->price;
    }
    for (uint32_t i = 0; i < n; i++)
        if (prices->addition[i] > 0 && claim->proof == BY_CLAIM_PROOF_CUTS)
            return by_claim_violate(claim, "the proof by cuts prices additions at %s",
                                    by_claim_name(claim, i));
        else if (prices->addition[i] > 0 && claim->topology->nodes[i].aggregate_rate.num <= 0)
            return by_claim_violate(claim, "the proof prices additions at %s, which has no limit",
                                    by_claim_name(claim, i));
    return true;
}

/* Finds whether each link has two directions of equal price. */
static void find_symmetry(struct price_prices *prices)
{
    size_t n = prices->node_count;

    prices->same_both_ways = true;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            if (prices->link[i * n + j] != prices->link[j * n + i])
                prices->same_both_ways = false;
}

/* Finds the cheapest paths from one node to all, not passing sites; `up` follows links against
 * their direction. */
static void find_paths(const struct price_prices *prices, uint32_t start, bool up, cost_type *distance,
                       bool *done)
{
    size_t n = prices->node_count;

    for (uint32_t i = 0; i < n; i++) {
        distance[i] = i == start ? 0 : FAR;
        done[i] = false;
    }
    for (;;) {
        size_t at = n;

        for (size_t i = 0; i < n; i++)
            if (!done[i] && distance[i] < FAR && (at == n || distance[i] < distance[at]))
                at = i;
        if (at == n)
            return;
        done[at] = true;
        if (at != start && is_barrier(&prices->checker->topology->nodes[at], up))
            continue;
        for (size_t i = 0; i < n; i++) {
            cost_type price = up ? prices->link[i * n + at] : prices->link[at * n + i];

            if (price >= 0 && distance[at] + price < distance[i])
                distance[i] = distance[at] + price;
        }
    }
}

static void side_make(const struct price_prices *prices, bool up, struct by_price_side *side)
{
    const struct by_node *nodes = prices->checker->topology->nodes;
    uint32_t n = prices->node_count;
    cost_type *distance = by_alloc(n, sizeof(*distance));
    bool *done = by_alloc(n, sizeof(*done));

    *side = (struct by_price_side){.up = up, .node = by_alloc(n, sizeof(*side->node))};
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < n; i++)
            if (is_site(&nodes[i], up) && nodes[i].compute == (pass == 0)) {
                side->node[side->count++] = i;
                side->optional += pass;
            }
    side->way = by_alloc((size_t)side->count * side->count, sizeof(*side->way));
    side->extra = by_alloc(side->count, sizeof(*side->extra));
    for (uint32_t i = 0; i < side->count; i++)
        side->extra[i] = up ? prices->addition[side->node[i]] : 0;
    for (uint32_t i = 0; i < side->count; i++) {
        find_paths(prices, side->node[i], up, distance, done);
        for (uint32_t j = 0; j < side->count; j++) {
            cost_type *way = &side->way[(size_t)i * side->count + j];

            *way = distance[side->node[j]];
            if (*way < FAR) /* children are charged at the parent, or at both ends minus the parent */
                *way += side->extra[i] + (prices->same_both_ways ? side->extra[j] : 0);
        }
    }
    free(distance);
    free(done);
}

static void side_free(struct by_price_side *side)
{
    free(side->node);
    free(side->way);
    free(side->extra);
}

/* Lists the sites of a subset of the optional ones, with a root among them first (UINT32_MAX for
 * none). */
static uint32_t choose(const struct by_price_side *side, uint32_t subset, uint32_t root, uint32_t *sites)
{
    uint32_t count = 0;

    if (root != UINT32_MAX)
        sites[count++] = root;
    for (uint32_t i = 0; i < side->count; i++) {
        uint32_t first = side->count - side->optional;

        if (i != root && (i < first || (subset >> (i - first) & 1)))
            sites[count++] = i;
    }
    return count;
}

/* Returns the price of the minimum spanning tree of the sites (Prim 1957). */
static cost_type spanning_tree(const struct by_price_side *side, const uint32_t *sites, uint32_t count,
                               cost_type *least)
{
    cost_type sum = 0;
    uint32_t at = 0;

    for (uint32_t i = 0; i < count; i++)
        least[i] = FAR;
    least[0] = -1; /* inside */
    for (uint32_t step = 1; step < count; step++) {
        uint32_t next = UINT32_MAX;

        for (uint32_t i = 0; i < count; i++) {
            cost_type way = side->way[(size_t)sites[at] * side->count + sites[i]];

            if (least[i] >= 0 && way < least[i])
                least[i] = way;
            if (least[i] >= 0 && (next == UINT32_MAX || least[i] < least[next]))
                next = i;
        }
        if (least[next] >= FAR)
            return FAR;
        sum += least[next];
        least[next] = -1;
        at = next;
    }
    return sum;
}

/* Whether the chain of cheapest arcs from `start` closes a cycle that contains `start`; marks the
 * cycle. */
static bool mark_circle(const uint32_t *best, const bool *gone, uint32_t count, uint32_t start, bool *circle)
{
    uint32_t at = start, steps = 0;

    memset(circle, 0, count * sizeof(*circle));
    while (at != 0 && steps++ <= count && !gone[at]) {
        circle[at] = true;
        at = best[at];
        if (at == start)
            return true;
    }
    return false;
}

/* Merges the cycle into `into`: the cost of each arc into the cycle is reduced by that of the
 * cycle's own arc into the same node. */
static void merge_circle(cost_type *arc, uint32_t count, bool *gone, const uint32_t *best, const bool *circle,
                         uint32_t into)
{
    for (uint32_t i = 0; i < count; i++) {
        cost_type in = FAR, out = FAR;

        if (gone[i] || circle[i])
            continue;
        for (uint32_t j = 0; j < count; j++) {
            if (!circle[j])
                continue;
            if (arc[(size_t)i * count + j] < FAR) {
                cost_type more = arc[(size_t)i * count + j] - arc[(size_t)best[j] * count + j];

                in = more < in ? more : in;
            }
            out = arc[(size_t)j * count + i] < out ? arc[(size_t)j * count + i] : out;
        }
        arc[(size_t)i * count + into] = in;
        arc[(size_t)into * count + i] = out;
    }
    for (uint32_t j = 0; j < count; j++)
        gone[j] |= circle[j] && j != into;
}

/* Returns the price of the minimum arborescence from node 0; `arc` is destroyed. */
static cost_type arborescence(cost_type *arc, uint32_t count)
{
    bool *gone = by_alloc(count, sizeof(*gone)), *circle = by_alloc(count, sizeof(*circle)), merged = true;
    uint32_t *best = by_alloc(count, sizeof(*best));
    cost_type sum = 0;

    while (merged && sum < FAR) {
        merged = false;
        for (uint32_t j = 1; j < count && sum < FAR; j++) {
            if (gone[j])
                continue;
            best[j] = j;
            for (uint32_t i = 0; i < count; i++)
                if (i != j && !gone[i] &&
                    (best[j] == j || arc[(size_t)i * count + j] < arc[(size_t)best[j] * count + j]))
                    best[j] = i;
            if (best[j] == j || arc[(size_t)best[j] * count + j] >= FAR)
                sum = FAR;
        }
        for (uint32_t j = 1; j < count && sum < FAR && !merged; j++) {
            if (gone[j] || !mark_circle(best, gone, count, j, circle))
                continue;
            for (uint32_t i = 1; i < count; i++)
                if (circle[i])
                    sum += arc[(size_t)best[i] * count + i];
            merge_circle(arc, count, gone, best, circle, j);
            merged = true;
        }
    }
    for (uint32_t j = 1; j < count && sum < FAR; j++)
        if (!gone[j])
            sum += arc[(size_t)best[j] * count + j];
    free(gone);
    free(circle);
    free(best);
    return sum;
}

/* Returns the least price of a tree over all subsets, from site `root`, or from any root for
 * UINT32_MAX. */
static cost_type least_tree(const struct by_price_side *side, uint32_t root)
{
    size_t cells = (size_t)side->count * side->count;
    uint32_t *sites = by_alloc(side->count, sizeof(*sites)), first = side->count - side->optional;
    cost_type *scratch = by_alloc(cells, sizeof(*scratch)), least = FAR;

    for (uint32_t subset = 0; subset < (uint32_t)1 << side->optional; subset++) {
        uint32_t count = choose(side, subset, root, sites);
        cost_type cost;

        if (root != UINT32_MAX && root >= first && !(subset >> (root - first) & 1))
            continue;
        if (root == UINT32_MAX) {
            cost = spanning_tree(side, sites, count, scratch);
        } else {
            for (uint32_t i = 0; i < count; i++)
                for (uint32_t j = 0; j < count; j++)
                    scratch[(size_t)i * count + j] = side->way[(size_t)sites[i] * side->count + sites[j]];
            cost = arborescence(scratch, count);
        }
        for (uint32_t i = 0; i < count && cost < FAR; i++)
            cost -= (root == UINT32_MAX ? 2 : 1) * side->extra[sites[i]];
        least = cost < least ? cost : least;
    }
    free(sites);
    free(scratch);
    return least < 0 ? 0 : least;
}

static uint32_t site_of(const struct by_price_side *side, uint32_t node)
{
    for (uint32_t i = 0; i < side->count; i++)
        if (side->node[i] == node)
            return i;
    return UINT32_MAX;
}

/* Returns the least price of a pair. */
static cost_type least_pair(const struct price_prices *prices)
{
    cost_type least = FAR;

    if (prices->same_both_ways)
        return least_tree(&prices->up, UINT32_MAX) + least_tree(&prices->down, UINT32_MAX);
    for (uint32_t node = 0; node < prices->node_count; node++) {
        uint32_t up = site_of(&prices->up, node), down = site_of(&prices->down, node);
        cost_type pair;

        if (up == UINT32_MAX || down == UINT32_MAX)
            continue;
        pair = least_tree(&prices->up, up);
        if (pair < FAR)
            pair += least_tree(&prices->down, down);
        least = pair < least ? pair : least;
    }
    return least;
}

static double work_of(const struct price_prices *prices, const struct by_price_side *side)
{
    double sites = side->count, subsets = side->optional < 40 ? (double)(1ull << side->optional) : 1e18;

    return prices->same_both_ways ? subsets * sites * sites : subsets * sites * sites * sites * sites;
}

static void set_large(mpz_t number, cost_type value)
{
    mpz_set_ui(number, (unsigned long)((unsigned __int128)value >> 64));
    mpz_mul_2exp(number, number, 64);
    mpz_add_ui(number, number, (unsigned long)(uint64_t)value);
}

/* Computes the bound: the value of all links and budgets over the least price of a pair. */
static void find_bound(const struct price_prices *prices, cost_type pair, mpq_t bound)
{
    const struct by_topology *topology = prices->checker->topology;
    const struct by_claim *claim = prices->checker->claim;
    mpq_t part, cost;

    mpq_inits(part, cost, NULL);
    mpq_set_ui(bound, 0, 1);
    for (uint32_t i = 0; i < claim->price_count; i++) {
        const struct by_claim_price *price = &claim->prices[i];

        if (price->from == price->to) {
            struct by_fraction rate = topology->nodes[price->from].aggregate_rate;

            mpz_set_si(mpq_numref(part), rate.num);
            mpz_set_si(mpq_denref(part), rate.den);
        } else {
            uint32_t link = by_links_find(prices->checker->links, price->from, price->to);

            mpz_set_si(mpq_numref(part), prices->checker->links->capacity[link]);
            mpz_set_si(mpq_denref(part), topology->scale);
        }
        mpz_mul_si(mpq_numref(part), mpq_numref(part), price->price);
        mpq_canonicalize(part);
        mpq_add(bound, bound, part);
    }
    set_large(mpq_numref(cost), pair);
    mpz_set_ui(mpq_denref(cost), 1);
    mpq_div(bound, bound, cost);
    mpq_clears(part, cost, NULL);
}

bool by_check_prices(struct by_checker *checker, mpq_t bound)
{
    struct price_prices prices = {.checker = checker, .node_count = checker->node_count};
    size_t n = checker->node_count;
    struct by_claim *claim = checker->claim;
    cost_type pair;
    bool right;

    prices.link = by_alloc(n * n, sizeof(*prices.link));
    prices.addition = by_alloc(n, sizeof(*prices.addition));
    right = read_prices(&prices, claim);
    if (right) {
        find_symmetry(&prices);
        side_make(&prices, true, &prices.up);
        side_make(&prices, false, &prices.down);
        if (claim->proof != BY_CLAIM_PROOF_CUTS &&
            work_of(&prices, &prices.up) + work_of(&prices, &prices.down) > WORK_MAX)
            right = by_claim_violate(
                claim, "the proof by prices takes too long to check: %u switches may branch",
                prices.up.optional > prices.down.optional ? prices.up.optional : prices.down.optional);
    }
    if (right) {
        pair = claim->proof == BY_CLAIM_PROOF_CUTS ? by_check_cuts(checker, &prices.up, &prices.down)
                                                   : least_pair(&prices);
        right = pair > 0 && pair < FAR;
        if (right)
            find_bound(&prices, pair, bound);
        else if (!claim->reason[0])
            by_claim_violate(claim, "some trees cost nothing at the prices of the proof");
    }
    side_free(&prices.up);
    side_free(&prices.down);
    free(prices.link);
    free(prices.addition);
    return right;
}
