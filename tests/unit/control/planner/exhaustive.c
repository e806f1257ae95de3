/* Implements exhaustive.h. */
#include "tests/unit/control/planner/exhaustive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "control/base/fraction.h"

static int64_t leaving(const struct by_topology *topology, uint32_t set)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < topology->arc_count; i++)
        if ((set >> topology->arcs[i].from & 1) && !(set >> topology->arcs[i].to & 1))
            sum += topology->arcs[i].capacity;
    return sum;
}

static uint32_t compute_set(const struct by_topology *topology)
{
    uint32_t set = 0;

    assert_true(topology->node_count <= EXHAUSTIVE_NODES_MAX);
    for (uint32_t i = 0; i < topology->node_count; i++)
        set |= (uint32_t)topology->nodes[i].compute << i;
    return set;
}

static struct by_fraction fraction(int64_t num, int64_t den)
{
    struct by_fraction result;

    assert_int_equal(by_fraction_set(num, den, &result), 0);
    return result;
}

struct by_fraction exhaustive_inv_x(const struct by_topology *topology)
{
    uint32_t compute = compute_set(topology);
    struct by_fraction greatest = {0, 1};

    for (uint32_t set = 0; set < 1u << topology->node_count; set++) {
        struct by_fraction value;

        if ((set & compute) == 0 || (set & compute) == compute)
            continue;
        value = fraction(__builtin_popcount(set & compute) * topology->scale, leaving(topology, set));
        if (by_fraction_compare(value, greatest) > 0)
            greatest = value;
    }
    return greatest;
}

/* Returns the minimum cut among sets that contain `with`, do not contain `without`, and have some
 * but not all compute nodes. */
static struct by_fraction least_cut(const struct by_topology *topology, uint32_t with, uint32_t without)
{
    uint32_t compute = compute_set(topology);
    int64_t least = INT64_MAX;

    for (uint32_t set = 0; set < 1u << topology->node_count; set++) {
        if ((set & compute) == 0 || (set & compute) == compute || (set & with) != with ||
            (set & without) != 0)
            continue;
        least = leaving(topology, set) < least ? leaving(topology, set) : least;
    }
    return fraction(least, topology->scale);
}

struct by_fraction exhaustive_broadcast(const struct by_topology *topology, uint32_t root)
{
    return least_cut(topology, 1u << root, 0);
}

struct by_fraction exhaustive_reduce(const struct by_topology *topology, uint32_t root)
{
    return least_cut(topology, 0, 1u << root);
}

struct by_fraction exhaustive_allreduce(const struct by_topology *topology)
{
    return least_cut(topology, 0, 0);
}

struct by_fraction exhaustive_partition(const struct by_topology *topology)
{
    uint32_t part[EXHAUSTIVE_NODES_MAX] = {0}, n = topology->node_count;
    struct by_fraction least = {INT64_MAX, 1};

    /* Restricted growth strings: part[i] <= 1 + the maximum of the earlier ones. */
    for (;;) {
        uint32_t parts = 0, at = n;
        int64_t crossing = 0;

        for (uint32_t i = 0; i < n; i++)
            parts = part[i] + 1 > parts ? part[i] + 1 : parts;
        for (uint32_t i = 0; i < topology->arc_count; i++)
            crossing +=
                part[topology->arcs[i].from] != part[topology->arcs[i].to] ? topology->arcs[i].capacity : 0;
        if (parts > 1 &&
            by_fraction_compare(fraction(crossing, 2 * (parts - 1) * topology->scale), least) < 0)
            least = fraction(crossing, 2 * (parts - 1) * topology->scale);
        while (at > 1) {
            uint32_t greatest = 0;

            at--;
            for (uint32_t i = 0; i < at; i++)
                greatest = part[i] > greatest ? part[i] : greatest;
            if (part[at] <= greatest) {
                part[at]++;
                for (uint32_t i = at + 1; i < n; i++)
                    part[i] = 0;
                break;
            }
            if (at == 1)
                return least;
        }
        if (n < 2)
            return least;
    }
}
