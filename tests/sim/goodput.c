/* Implements goodput.h. Single-threaded. */
#include "tests/sim/goodput.h"

#include <stdlib.h>

#include "offload/wire/types.h"
#include "tests/sim/scenario.h"

#define MBPS       10000u
#define LATENCY_NS 1000u
#define POLL_NS    200u
#define CABLE      (1408u + 40u + 66u) /* bytes of a chunk on a cable */

static uint64_t chunk_ns(void)
{
    return CABLE * UINT64_C(8000) / MBPS;
}

uint32_t goodput_bdp(void)
{
    /* Four cables: host, leaf, spine, leaf, host. */
    uint64_t round_trip = 4 * (chunk_ns() + LATENCY_NS + POLL_NS / 2);

    return (uint32_t)((round_trip + chunk_ns() - 1) / chunk_ns());
}

struct goodput goodput_run(uint64_t seed, uint32_t loss, uint64_t bytes, uint16_t window)
{
    struct scenario *scenario = malloc(sizeof(*scenario));
    struct scenario_result *result = malloc(sizeof(*result));
    struct goodput goodput = {0};
    struct fabric_tree *tree;

    scenario_init(scenario, seed);
    fabric_leafspine(&scenario->fabric, 1, 2, 4, MBPS, LATENCY_NS, 0);
    fabric_job_add(&scenario->fabric, 1, 1);
    tree = fabric_tree_add(&scenario->fabric, 0, 0, 0, NULL);
    tree->window = window;
    tree->payload_max = 1408;
    scenario_add_call(scenario, 0, BY_COLLECTIVE_ALLREDUCE, BY_OP_SUM, BY_DTYPE_I32, bytes / 4);
    scenario->world.poll_ns = POLL_NS;
    scenario->world.fault.loss = loss;
    scenario->world.endpoint.rto_min_ns = 0; /* as users run it */
    scenario->world.endpoint.rto_max_ns = 0;
    scenario_run(scenario, 0, result);
    goodput.ok = result->ok && result->wrong == 0;
    goodput.elapsed_ns = result->elapsed_ns;
    goodput.chunks = result->endpoints.result;
    goodput.again = result->endpoints.retx;
    goodput.gbps = (double)bytes * 8 / (double)result->elapsed_ns;
    free(result);
    free(scenario);
    return goodput;
}
