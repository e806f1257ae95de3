/* Implements cuts.h: bounds by enumeration. */
#include "tests/unit/control/campaign/cuts.h"

#include <assert.h>

static int64_t leaving(const struct by_topology *topology, uint32_t set)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < topology->arc_count; i++)
        if ((set >> topology->arcs[i].from & 1) && !(set >> topology->arcs[i].to & 1))
            sum += topology->arcs[i].capacity;
    return sum;
}

void cuts_find(const struct by_topology *topology, uint32_t root, struct cuts *cuts)
{
    int64_t from = INT64_MAX, to = INT64_MAX, any = INT64_MAX;
    uint32_t compute = 0;

    assert(topology->node_count <= CUTS_NODES_MAX);
    for (uint32_t i = 0; i < topology->node_count; i++)
        compute |= (uint32_t)topology->nodes[i].compute << i;
    cuts->inv_x = (struct cut_value){0, 1};
    for (uint32_t set = 1; set < 1u << topology->node_count; set++) {
        int64_t out;
        __int128 inside;

        if ((set & compute) == 0 || (set & compute) == compute)
            continue;
        out = leaving(topology, set);
        inside = (__int128)__builtin_popcount(set & compute) * topology->scale;
        if (inside * cuts->inv_x.den > cuts->inv_x.num * out)
            cuts->inv_x = (struct cut_value){inside, out};
        if (set >> root & 1)
            from = out < from ? out : from;
        else
            to = out < to ? out : to;
        any = out < any ? out : any;
    }
    cuts->broadcast = (struct cut_value){from, topology->scale};
    cuts->reduce = (struct cut_value){to, topology->scale};
    cuts->allreduce = (struct cut_value){any, topology->scale};
}

struct cut_value cuts_shares(const struct by_topology *topology, const int64_t *shares, bool outside)
{
    struct cut_value most = {0, 1};
    uint32_t compute = 0;

    assert(topology->node_count <= CUTS_NODES_MAX);
    for (uint32_t i = 0; i < topology->node_count; i++)
        compute |= (uint32_t)topology->nodes[i].compute << i;
    for (uint32_t set = 1; set < 1u << topology->node_count; set++) {
        __int128 parts = 0;
        int64_t out;

        if ((set & compute) == 0 || (set & compute) == compute)
            continue;
        out = leaving(topology, set);
        for (uint32_t i = 0; i < topology->node_count; i++)
            parts += (set >> i & 1) != outside ? shares[i] : 0;
        parts *= topology->scale;
        if (parts * most.den > most.num * out)
            most = (struct cut_value){parts, out};
    }
    return most;
}

bool cut_equals(struct cut_value value, struct by_fraction fraction)
{
    return value.num * fraction.den == value.den * fraction.num;
}

bool cut_allows(struct cut_value value, struct by_fraction fraction)
{
    return value.den * fraction.num <= value.num * fraction.den;
}
