/* The planner's parts separately: arborescences and packings against all possibilities, programs
 * against known values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/fraction.h"
#include "control/planner/network/arborescence.h"
#include "control/planner/network/low.h"
#include "control/planner/network/simplex.h"
#include "control/planner/optimum/oracle.h"
#include "control/planner/pack/merge.h"
#include "control/planner/split/split.h"
#include "offload/base/prng.h"

#define NODES_MAX 6u
#define RUNS      300u

/* Returns the cost of the arborescence given by parents, or NONE if they form none. */
static int64_t cost_of(uint32_t n, const int64_t *cost, uint32_t root, const uint32_t *parent)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i, steps = 0;

        if (i == root)
            continue;
        if (parent[i] == i || cost[parent[i] * n + i] == BY_ARBORESCENCE_NONE)
            return BY_ARBORESCENCE_NONE;
        while (at != root && steps++ < n)
            at = parent[at];
        if (at != root)
            return BY_ARBORESCENCE_NONE;
        sum += cost[parent[i] * n + i];
    }
    return sum;
}

static int64_t cheapest_of_all(uint32_t n, const int64_t *cost, uint32_t root)
{
    uint32_t parent[NODES_MAX] = {0};
    int64_t least = BY_ARBORESCENCE_NONE;

    for (;;) {
        int64_t value = cost_of(n, cost, root, parent);
        uint32_t i = 0;

        least = value < least ? value : least;
        while (i < n && (i == root || ++parent[i] == n)) {
            parent[i] = 0;
            i++;
        }
        if (i == n)
            return least;
    }
}

static void an_arborescence_is_the_cheapest_of_all(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        struct by_prng prng = {seed};
        uint32_t n = 2 + (uint32_t)by_prng_below(&prng, NODES_MAX - 2),
                 root = (uint32_t)by_prng_below(&prng, n);
        uint32_t parent[NODES_MAX] = {0};
        int64_t cost[NODES_MAX * NODES_MAX], expected;

        for (uint32_t i = 0; i < n * n; i++)
            cost[i] = by_prng_below(&prng, 3) ? (int64_t)by_prng_below(&prng, 10) : BY_ARBORESCENCE_NONE;
        expected = cheapest_of_all(n, cost, root);
        print_message("seed %llu\n", (unsigned long long)seed);
        assert_int_equal(by_arborescence_find(n, cost, root, parent), expected != BY_ARBORESCENCE_NONE);
        if (expected != BY_ARBORESCENCE_NONE)
            assert_int_equal(cost_of(n, cost, root, parent), expected);
    }
}

/* Hops of the farthest node, where an arc has cost % 16 hops. */
static uint32_t hops_of(uint32_t n, const int64_t *cost, uint32_t root, const uint32_t *parent)
{
    uint32_t farthest = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t hops = 0;

        for (uint32_t at = i; at != root; at = parent[at])
            hops += (uint32_t)(cost[parent[at] * n + at] % 16);
        farthest = hops > farthest ? hops : farthest;
    }
    return farthest;
}

/* Without a limit it has the least price of all trees, since costs are equal in both directions. */
static void a_low_tree_keeps_its_limit(void **state)
{
    uint32_t found = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        struct by_prng prng = {seed};
        uint32_t n = 2 + (uint32_t)by_prng_below(&prng, NODES_MAX - 2),
                 root = (uint32_t)by_prng_below(&prng, n), hops_max = 1 + (uint32_t)by_prng_below(&prng, 6);
        uint32_t parent[NODES_MAX] = {0};
        int64_t cost[NODES_MAX * NODES_MAX], work[3 * NODES_MAX], least;

        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j <= i; j++)
                cost[i * n + j] = cost[j * n + i] =
                    by_prng_below(&prng, 3)
                        ? (int64_t)(16 * by_prng_below(&prng, 10) + 1 + by_prng_below(&prng, 2))
                        : BY_ARBORESCENCE_NONE;
        least = cheapest_of_all(n, cost, root);
        print_message("seed %llu\n", (unsigned long long)seed);
        assert_int_equal(by_low_tree(n, n, cost, 16, NULL, root, 15, parent, work),
                         least != BY_ARBORESCENCE_NONE);
        if (least == BY_ARBORESCENCE_NONE)
            continue;
        assert_int_equal(cost_of(n, cost, root, parent) / 16, least / 16);
        if (!by_low_tree(n, n, cost, 16, NULL, root, hops_max, parent, work))
            continue;
        assert_true(cost_of(n, cost, root, parent) >= least);
        assert_true(hops_of(n, cost, root, parent) <= hops_max);
        found++;
    }
    assert_true(found > RUNS / 4);
}

/* max x + y + z with x + y <= 1, y + z <= 1, x + z <= 1 is 3/2, at 1/2 each. */
static void a_program_finds_the_fractional_optimum(void **state)
{
    static const int64_t limits[] = {1, 1, 1};
    static const int32_t columns[][3] = {{1, 0, 1}, {1, 1, 0}, {0, 1, 1}};
    struct by_simplex *simplex = by_simplex_new(3, limits);
    struct by_simplex_part parts[3];
    struct by_fraction value;
    int64_t prices[3], one;

    (void)state;
    for (uint32_t round = 0; round < 4; round++)
        for (uint32_t i = 0; i < 3; i++)
            by_simplex_offer(simplex, columns[i], i);
    assert_int_equal(by_simplex_solution(simplex, parts, &value), 3);
    assert_true(value.num == 3 && value.den == 2);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(parts[i].amount.num == 1 && parts[i].amount.den == 2);
    assert_true(by_simplex_prices(simplex, prices, &one));
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(2 * prices[i], one);
    assert_true(by_simplex_reaches(simplex, 1));
    assert_false(by_simplex_reaches(simplex, 2));
    by_simplex_free(simplex);
}

/* Twelve hosts whose pairs share limits of large primes: the exact solution needs more than 63 bits
 * and is rounded down. */
static void a_solution_beyond_63_bits_is_rounded_down_within_the_limits(void **state)
{
    enum { ROWS = 24 };
    int64_t limits[ROWS];
    int32_t columns[64][ROWS] = {{0}};
    struct by_simplex_part parts[ROWS];
    struct by_simplex *simplex;
    struct by_fraction value;
    struct by_prng prng = {1};
    uint32_t count;

    (void)state;
    for (uint32_t i = 0; i < ROWS; i++)
        limits[i] = 1000000007 + 2 * (int64_t)by_prng_below(&prng, 1000);
    for (uint32_t i = 0; i < 64; i++)
        for (uint32_t k = 0; k < ROWS; k++)
            columns[i][k] = (int32_t)by_prng_below(&prng, 10);
    simplex = by_simplex_new(ROWS, limits);
    for (uint32_t round = 0, entered = 1; entered && round < 100; round++) {
        entered = 0;
        for (uint32_t i = 0; i < 64; i++)
            entered += by_simplex_offer(simplex, columns[i], i);
    }
    count = by_simplex_solution(simplex, parts, &value);
    for (uint32_t k = 0; k < ROWS; k++) {
        struct by_fraction load = {0, 1}, part;

        for (uint32_t i = 0; i < count; i++) {
            assert_true(parts[i].amount.den <= 1 << 20);
            assert_int_equal(by_fraction_multiply(parts[i].amount,
                                                  (struct by_fraction){columns[parts[i].tag][k], 1}, &part),
                             0);
            assert_int_equal(by_fraction_add(load, part, &load), 0);
        }
        assert_true(by_fraction_compare(load, (struct by_fraction){limits[k], 1}) <= 0);
    }
    assert_true(value.num > 0);
    by_simplex_free(simplex);
}

/* Makes a random Eulerian graph from cycles through random nodes. */
static void random_eulerian(struct by_prng *prng, uint32_t n, int64_t *capacity)
{
    memset(capacity, 0, (size_t)n * n * sizeof(*capacity));
    for (uint32_t cycle = 0; cycle < 2 * n; cycle++) {
        uint32_t start = (uint32_t)by_prng_below(prng, n), at = start,
                 length = 2 + (uint32_t)by_prng_below(prng, 3);
        int64_t amount = 1 + (int64_t)by_prng_below(prng, 5);

        for (uint32_t i = 1; i <= length; i++) {
            uint32_t to = i == length ? start : (at + 1 + (uint32_t)by_prng_below(prng, n - 1)) % n;

            if (to == at)
                continue;
            capacity[at * n + to] += amount;
            at = to;
        }
        if (at != start)
            capacity[at * n + start] += amount;
    }
}

/* Packs a random graph after removal of its switches: the oracle's answer and the balance do not
 * change, and all trees exist. */
static void split_and_pack(uint64_t seed, bool exactly)
{
    enum { N = 9, COMPUTE = 5 };
    struct by_prng prng = {seed};
    int64_t capacity[N * N], roots[N] = {0}, trees[N] = {0};
    bool compute[N] = {false};
    struct by_mesh_arc arcs[N * N];
    struct by_packing packing;
    struct by_contraction contraction;
    struct by_split split;
    struct by_piece piece;
    struct by_laminar laminar;
    struct by_mesh *net;
    uint32_t count = 0;

    print_message("seed %llu\n", (unsigned long long)seed);
    random_eulerian(&prng, N, capacity);
    for (uint32_t i = 0; i < COMPUTE; i++)
        compute[i] = true;
    do /* as many trees at each root as the graph can carry */
        for (uint32_t i = 0; i < COMPUTE; i++)
            roots[i]++;
    while (by_oracle_check(N, capacity, roots, compute, NULL) < 0);
    for (uint32_t i = 0; i < COMPUTE; i++)
        roots[i]--;
    for (uint32_t i = 0; i < N * N; i++)
        if (capacity[i])
            arcs[count++] = (struct by_mesh_arc){i / N, i % N, capacity[i]};
    net = by_mesh_new(N, arcs, count);
    by_laminar_make(&laminar, net, net->capacity, roots, compute, compute);
    by_piece_make(&laminar, 0, &piece);
    by_split_make(&split, &piece, 0);
    assert_int_equal(exactly ? by_split_exactly(&split) : by_split_run(&split), 0);
    assert_true(by_oracle_check(piece.count, split.capacity, piece.roots, split.targets, NULL) < 0);
    for (uint32_t i = 0; i < piece.count; i++) {
        int64_t balance = 0;

        for (uint32_t j = 0; j < piece.count; j++) {
            balance += split.capacity[i * piece.count + j] - split.capacity[j * piece.count + i];
            assert_true(!split.remove[i] || split.capacity[i * piece.count + j] == 0);
        }
        assert_int_equal(balance, 0);
    }
    by_contraction_make(&contraction, &piece, split.capacity);
    assert_int_equal(contraction.net->node_count, COMPUTE);
    assert_int_equal(by_pack_run(contraction.net, contraction.roots, 0, &packing), 0);
    for (uint32_t i = 0; i < packing.count; i++) {
        trees[packing.roots[i]] += packing.counts[i];
        for (uint32_t e = 0; e < COMPUTE - 1; e++)
            contraction.net->capacity[packing.halves[i * (COMPUTE - 1) + e]] -= packing.counts[i];
    }
    for (uint32_t i = 0; i < COMPUTE; i++)
        assert_int_equal(trees[i], roots[i]);
    for (uint32_t half = 0; half < 2 * contraction.net->pair_count; half++)
        assert_true(contraction.net->capacity[half] >= 0);
    by_pack_free(&packing);
    by_contraction_free(&contraction);
    by_split_free(&split);
    by_piece_free(&piece);
    by_laminar_free(&laminar);
    by_mesh_free(net);
}

static void splitting_keeps_every_tree_and_packing_finds_them_all(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= RUNS; seed++)
        split_and_pack(seed, false);
}

static void the_exact_way_of_splitting_keeps_every_tree(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= RUNS; seed++)
        split_and_pack(seed, true);
}

/* Returns the minimum cut between the source and a node, over all sets: roots outside a set can
 * reach the node only through the capacity that enters the set. */
static int64_t least_of_all_cuts(uint32_t n, const int64_t *capacity, const int64_t *roots,
                                 const bool *contracted, uint32_t node)
{
    int64_t least = INT64_MAX;

    for (uint32_t set = 0; set < 1u << n; set++) {
        int64_t sum = 0;
        bool right = set >> node & 1;

        for (uint32_t i = 0; i < n && right; i++) {
            right = !(contracted[i] && (set >> i & 1));
            sum += set >> i & 1 ? roots[i] : 0;
            for (uint32_t j = 0; j < n; j++)
                sum += !(set >> i & 1) && (set >> j & 1) ? capacity[i * n + j] : 0;
        }
        least = right && sum < least ? sum : least;
    }
    return least;
}

static void what_reaches_a_node_is_the_least_of_all_cuts(void **state)
{
    enum { N = 8 };

    (void)state;
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        struct by_prng prng = {seed};
        int64_t capacity[N * N], roots[N];
        struct by_mesh_arc arcs[N * N];
        struct by_reach *reach;
        struct by_mesh *net;
        uint32_t count = 0;

        print_message("seed %llu\n", (unsigned long long)seed);
        for (uint32_t i = 0; i < N * N; i++) {
            capacity[i] =
                i / N != i % N && by_prng_below(&prng, 3) == 0 ? (int64_t)by_prng_below(&prng, 9) : 0;
            if (capacity[i])
                arcs[count++] = (struct by_mesh_arc){i / N, i % N, capacity[i]};
        }
        net = by_mesh_new(N, arcs, count);
        reach = by_reach_new(net);
        for (uint32_t i = 0; i < N; i++) {
            roots[i] = (int64_t)by_prng_below(&prng, 4);
            by_reach_set_root(reach, i, roots[i]);
        }
        for (uint32_t round = 0; round < 20; round++) {
            uint32_t node = (uint32_t)by_prng_below(&prng, N),
                     changed = (uint32_t)by_prng_below(&prng, N * N);
            uint32_t half = by_mesh_find(net, changed / N, changed % N);
            int64_t least, limit = (int64_t)by_prng_below(&prng, 30), found;

            if (half != UINT32_MAX)
                by_reach_set(reach, half, capacity[changed] = (int64_t)by_prng_below(&prng, 9));
            by_reach_set_root(reach, changed % N, roots[changed % N] = (int64_t)by_prng_below(&prng, 4));
            reach->contracted[(node + 1) % N] = by_prng_below(&prng, 2);
            reach->contracted[node] = false;
            least = least_of_all_cuts(N, capacity, roots, reach->contracted, node);
            found = by_reach_flow(reach, node, limit);
            assert_int_equal(found, least < limit ? least : limit);
            if (found < limit) { /* the side must be such a cut */
                int64_t sum = 0;

                assert_true(by_reach_inside(reach, node));
                for (uint32_t i = 0; i < N; i++) {
                    sum += by_reach_inside(reach, i) ? roots[i] : 0;
                    for (uint32_t j = 0; j < N; j++)
                        sum +=
                            !by_reach_inside(reach, i) && by_reach_inside(reach, j) ? capacity[i * N + j] : 0;
                }
                assert_int_equal(sum, least);
            }
        }
        by_reach_free(reach);
        by_mesh_free(net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_arborescence_is_the_cheapest_of_all),
        cmocka_unit_test(a_low_tree_keeps_its_limit),
        cmocka_unit_test(a_program_finds_the_fractional_optimum),
        cmocka_unit_test(a_solution_beyond_63_bits_is_rounded_down_within_the_limits),
        cmocka_unit_test(what_reaches_a_node_is_the_least_of_all_cuts),
        cmocka_unit_test(the_exact_way_of_splitting_keeps_every_tree),
        cmocka_unit_test(splitting_keeps_every_tree_and_packing_finds_them_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
