/* Implements oracle.h: rates by enumeration. */
#include "tests/unit/control/study/bound/oracle.h"

#include <assert.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"

static struct by_fraction ratio(__int128 num, __int128 den)
{
    struct by_fraction value = {0, 1};
    int error = by_fraction_set(num, den, &value);

    assert(error == 0);
    (void)error;
    return value;
}

static bool less(struct by_fraction a, struct by_fraction b)
{
    return (__int128)a.num * b.den < (__int128)b.num * a.den;
}

struct by_fraction oracle_partitions(const struct by_topology *topology)
{
    uint32_t n = topology->node_count, part[ORACLE_NODES_MAX] = {0};
    struct by_fraction least = {INT64_MAX, 1};

    assert(n <= ORACLE_NODES_MAX);
    for (;;) { /* each partition once: a node's part is at most one above the earlier ones */
        uint32_t count = 0, at = n;
        int64_t between = 0;

        for (uint32_t i = 0; i < n; i++)
            count = part[i] + 1 > count ? part[i] + 1 : count;
        for (uint32_t i = 0; i < topology->arc_count; i++)
            if (part[topology->arcs[i].from] != part[topology->arcs[i].to])
                between += topology->arcs[i].capacity;
        if (count > 1) {
            struct by_fraction value = ratio(between, (__int128)2 * (count - 1) * topology->scale);

            least = less(value, least) ? value : least;
        }
        while (at-- > 1) {
            uint32_t most = 0;

            for (uint32_t i = 0; i < at; i++)
                most = part[i] > most ? part[i] : most;
            if (part[at] <= most)
                break;
            part[at] = 0;
        }
        if (at == 0 || at > n)
            return least;
        part[at]++;
    }
}

/* Returns whether a set contains `node` and no other compute node. */
static bool is_alone(const struct by_topology *topology, uint32_t node, uint32_t set)
{
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (topology->nodes[i].compute && (set >> i & 1) != (i == node))
            return false;
    return true;
}

/* Returns the bandwidth that leaves, or enters, a set. */
static int64_t crossing(const struct by_topology *topology, uint32_t set, bool entering)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < topology->arc_count; i++) {
        uint32_t from = set >> topology->arcs[i].from & 1, to = set >> topology->arcs[i].to & 1;

        if (from != to && to == entering)
            sum += topology->arcs[i].capacity;
    }
    return sum;
}

struct by_fraction oracle_processes(const struct by_topology *topology)
{
    int64_t widest[2] = {0, 0};
    uint32_t computes = by_topology_compute_count(topology);

    for (uint32_t node = 0; node < topology->node_count; node++)
        for (uint32_t way = 0; way < 2 && topology->nodes[node].compute; way++) {
            int64_t least = INT64_MAX;

            for (uint32_t set = 1; set < 1u << topology->node_count; set++) {
                int64_t found = is_alone(topology, node, set) ? crossing(topology, set, way) : INT64_MAX;

                least = found < least ? found : least;
            }
            widest[way] = least > widest[way] ? least : widest[way];
        }
    return ratio((__int128)(widest[0] < widest[1] ? widest[0] : widest[1]) * computes,
                 (__int128)2 * (computes - 1) * topology->scale);
}

/* ---- every tree ---- */

/* A path from one compute node to another through switches only: its arcs, as bits. */
struct oracle_way {
    uint32_t from, to;
    uint64_t arcs;
};

struct enumeration {
    const struct by_topology *topology;
    struct by_lp *lp;
    uint32_t way_count, way_room;
    struct oracle_way *ways;
    uint32_t root;
    bool up;
    const struct oracle_way *chosen[ORACLE_NODES_MAX]; /* by node: into it or, going up, out of it */
};

/* Extends a path from `node`, which is in `visited`, to all compute nodes. */
static void find_ways(struct enumeration *all, uint32_t start, uint32_t node, uint32_t visited, uint64_t arcs)
{
    const struct by_topology *topology = all->topology;

    for (uint32_t i = 0; i < topology->arc_count; i++) {
        uint32_t to = topology->arcs[i].to;

        if (topology->arcs[i].from != node || (visited >> to & 1))
            continue;
        if (topology->nodes[to].compute) {
            BY_GROW(all->ways, all->way_count, all->way_room);
            all->ways[all->way_count++] = (struct oracle_way){start, to, arcs | (uint64_t)1 << i};
        } else {
            find_ways(all, start, to, visited | 1u << to, arcs | (uint64_t)1 << i);
        }
    }
}

/* Returns whether each node reaches the root along the chosen paths. */
static bool is_tree(const struct enumeration *all)
{
    for (uint32_t i = 0; i < all->topology->node_count; i++) {
        uint32_t at = i, steps = 0;

        while (all->topology->nodes[i].compute && at != all->root && steps++ < ORACLE_NODES_MAX)
            at = all->up ? all->chosen[at]->to : all->chosen[at]->from;
        if (all->topology->nodes[i].compute && at != all->root)
            return false;
    }
    return true;
}

/* Adds a tree's column: its use of each arc, and its side of the balance of its root. */
static void add_tree(struct enumeration *all)
{
    const struct by_topology *topology = all->topology;
    uint32_t column = by_lp_column(all->lp, all->up ? 0 : 1, 1);

    for (uint32_t i = 0; i < topology->node_count; i++)
        for (uint32_t arc = 0; arc < topology->arc_count && i != all->root && topology->nodes[i].compute;
             arc++)
            if (all->chosen[i]->arcs >> arc & 1)
                by_lp_add(all->lp, arc, column, 1, 1);
    by_lp_add(all->lp, topology->arc_count + all->root, column, all->up ? 1 : -1, 1);
}

/* Tries all paths of `node` and of the later nodes. */
static void choose(struct enumeration *all, uint32_t node)
{
    if (node == all->topology->node_count) {
        if (is_tree(all))
            add_tree(all);
        return;
    }
    if (node == all->root || !all->topology->nodes[node].compute) {
        choose(all, node + 1);
        return;
    }
    for (uint32_t i = 0; i < all->way_count; i++)
        if ((all->up ? all->ways[i].from : all->ways[i].to) == node) {
            all->chosen[node] = &all->ways[i];
            choose(all, node + 1);
        }
}

struct by_lp *oracle_program(const struct by_topology *topology)
{
    struct enumeration all = {.topology = topology, .lp = by_lp_new()};

    assert(topology->node_count <= ORACLE_NODES_MAX && topology->arc_count <= 64);
    for (uint32_t i = 0; i < topology->arc_count; i++)
        by_lp_row(all.lp, BY_LP_AT_MOST, topology->arcs[i].capacity, 1);
    for (uint32_t i = 0; i < topology->node_count; i++) {
        by_lp_row(all.lp, BY_LP_EQUAL, 0, 1);
        if (topology->nodes[i].compute)
            find_ways(&all, i, i, 1u << i, 0);
    }
    for (all.root = 0; all.root < topology->node_count; all.root++)
        for (uint32_t up = 0; up < 2 && topology->nodes[all.root].compute; up++) {
            all.up = up;
            choose(&all, 0);
        }
    free(all.ways);
    return all.lp;
}

bool oracle_trees(const struct by_topology *topology, struct by_fraction *rate)
{
    struct by_lp *lp = oracle_program(topology);
    struct by_problem problem = {0};
    bool told = by_lp_solve(lp, NULL, &problem) == 0;
    mpq_t value;

    mpq_init(value);
    if (told) {
        by_lp_value(lp, value);
        told = by_lp_fraction(value, rate) == 0 &&
               by_fraction_divide(*rate, (struct by_fraction){topology->scale, 1}, rate) == 0;
    }
    mpq_clear(value);
    by_lp_free(lp);
    return told;
}
