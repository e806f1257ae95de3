/* Maximum flows against all cuts of small random networks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "control/planner/flow/flow.h"
#include "offload/base/prng.h"

#define NODES_MAX 8u
#define ARCS_MAX  24u
#define RUNS      400u

struct net {
    uint32_t nodes, arcs;
    uint32_t from[ARCS_MAX], to[ARCS_MAX];
    int64_t capacity[ARCS_MAX];
};

static int64_t cut_value(const struct net *net, const bool *source_side)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < net->arcs; i++)
        if (source_side[net->from[i]] && !source_side[net->to[i]])
            sum += net->capacity[i];
    return sum;
}

/* Returns the minimum cut between node 0 and the last node, by trying all cuts. */
static int64_t least_cut(const struct net *net)
{
    int64_t least = INT64_MAX;

    for (uint32_t set = 0; set < 1u << net->nodes; set++) {
        bool side[NODES_MAX] = {false};
        int64_t value;

        for (uint32_t i = 0; i < net->nodes; i++)
            side[i] = set >> i & 1;
        if (!side[0] || side[net->nodes - 1])
            continue;
        value = cut_value(net, side);
        least = value < least ? value : least;
    }
    return least;
}

static void make_net(uint64_t seed, struct net *net)
{
    struct by_prng prng = {seed};

    net->nodes = 2 + (uint32_t)by_prng_below(&prng, NODES_MAX - 1);
    net->arcs = (uint32_t)by_prng_below(&prng, ARCS_MAX + 1);
    for (uint32_t i = 0; i < net->arcs; i++) {
        net->from[i] = (uint32_t)by_prng_below(&prng, net->nodes);
        net->to[i] = (net->from[i] + 1 + (uint32_t)by_prng_below(&prng, net->nodes - 1)) % net->nodes;
        net->capacity[i] =
            (int64_t)by_prng_below(&prng, 7) * (by_prng_below(&prng, 9) == 0 ? (int64_t)1 << 40 : 1);
    }
}

static void flow_equals_the_least_cut_on_random_networks(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        struct net net;
        struct by_flow *flow;
        bool sink[NODES_MAX], source[NODES_MAX];
        int64_t value, expected;

        make_net(seed, &net);
        flow = by_flow_new(net.nodes);
        for (uint32_t i = 0; i < net.arcs; i++)
            by_flow_add(flow, net.from[i], net.to[i], 0);
        for (uint32_t i = 0; i < net.arcs; i++)
            by_flow_set(flow, i, net.capacity[i]);
        expected = least_cut(&net);
        value = by_flow_run(flow, 0, net.nodes - 1, BY_FLOW_INFINITE);
        if (value != expected)
            print_error("seed %llu: flow %lld, cut %lld\n", (unsigned long long)seed, (long long)value,
                        (long long)expected);
        assert_int_equal(value, expected);
        by_flow_sink_side(flow, sink);
        by_flow_source_side(flow, source);
        for (uint32_t i = 0; i < net.nodes; i++) {
            assert_false(source[i] && sink[i]);
            sink[i] = !sink[i];
        }
        assert_int_equal(cut_value(&net, sink), expected);
        assert_int_equal(cut_value(&net, source), expected);
        assert_int_equal(by_flow_run(flow, 0, net.nodes - 1, expected + 1), expected);
        assert_int_equal(by_flow_run(flow, 0, net.nodes - 1, expected / 2), expected / 2);
        by_flow_free(flow);
    }
}

static void an_unreachable_sink_gets_nothing(void **state)
{
    struct by_flow *flow = by_flow_new(3);
    bool side[3];

    (void)state;
    by_flow_add(flow, 0, 1, 5);
    by_flow_add(flow, 2, 1, 5);
    assert_int_equal(by_flow_run(flow, 0, 2, BY_FLOW_INFINITE), 0);
    by_flow_sink_side(flow, side);
    assert_true(!side[0] && !side[1] && side[2]);
    by_flow_free(flow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flow_equals_the_least_cut_on_random_networks),
        cmocka_unit_test(an_unreachable_sink_gets_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
