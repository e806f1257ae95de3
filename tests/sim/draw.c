/* Random scenarios: shapes, trees, faults and calls, all from one seed. Single-threaded. */
#include "offload/wire/seal.h"
#include "tests/sim/scenario.h"

#include <stdio.h>
#include <string.h>

#include "offload/wire/types.h"

static uint64_t below(struct by_prng *prng, uint64_t bound)
{
    return by_prng_below(prng, bound);
}

static int between(struct by_prng *prng, int low, int high)
{
    return low + (int)below(prng, (uint64_t)high - (uint64_t)low + 1);
}

static int one_in(struct by_prng *prng, unsigned n)
{
    return below(prng, n) == 0;
}

/* Returns 1 when trees must pass through hosts. */
static int draw_fabric(struct by_prng *prng, struct scenario *scenario)
{
    static const uint32_t rates[] = {1000, 10000, 100000};
    uint32_t mbps = rates[below(prng, 3)];
    uint32_t latency = (uint32_t)between(prng, 100, 3000);
    struct fabric *f = &scenario->fabric;
    int a = between(prng, 2, 4), b = between(prng, 1, 3);

    switch (below(prng, 6)) {
    case 0:
        fabric_star(f, between(prng, 1, 8), mbps, latency);
        snprintf(scenario->name, sizeof(scenario->name), "star");
        return 0;
    case 1:
        fabric_leafspine(f, between(prng, 1, 3), a, b, mbps, latency, 0);
        snprintf(scenario->name, sizeof(scenario->name), "leaf-spine");
        return 0;
    case 2:
        fabric_leafspine(f, between(prng, 1, 2), a, b, mbps, latency, 1);
        snprintf(scenario->name, sizeof(scenario->name), "leaf-spine, plain spines");
        return 0;
    case 3:
        fabric_three_level(f, 2, between(prng, 1, 2), b, mbps, latency);
        snprintf(scenario->name, sizeof(scenario->name), "three levels");
        return 0;
    case 4:
        fabric_chain(f, a, b, mbps, latency);
        snprintf(scenario->name, sizeof(scenario->name), "chain");
        return 0;
    default:
        fabric_ring(f, between(prng, 3, 6), mbps, latency);
        snprintf(scenario->name, sizeof(scenario->name), "ring of hosts");
        return 1;
    }
}

static int draw_root(struct by_prng *prng, const struct fabric *fabric, int through_hosts)
{
    for (;;) {
        int node = (int)below(prng, (uint64_t)fabric->node_count);

        if (fabric->nodes[node].plain)
            continue;
        /* A host may be the root of any tree; so may a leaf switch. */
        if (through_hosts || fabric->nodes[node].kind == BY_NODE_SWITCH || one_in(prng, 4))
            return node;
    }
}

static void draw_trees(struct by_prng *prng, struct fabric *fabric, int job, int through_hosts,
                       int window_log)
{
    static const uint16_t payloads[] = {64, 256, 1024, 1408};
    struct fabric_job *j = &fabric->jobs[job];
    int count = between(prng, 1, 4);
    uint16_t payload = payloads[below(prng, 4)];
    int owned = one_in(prng, 3); /* trees for each owner besides those for all ranks */

    for (int t = 0; t < count || j->tree_count == 0; t++) {
        struct fabric_tree *tree =
            fabric_tree_add(fabric, job, draw_root(prng, fabric, through_hosts), through_hosts, prng);

        if (tree == NULL)
            continue;
        tree->window = (uint16_t)(1 << window_log);
        tree->payload_max = payload;
        tree->share = (uint32_t)between(prng, 1, one_in(prng, 4) ? 1000 : 3);
        if (owned && j->tree_count > 1)
            tree->collectives = 1u << BY_COLLECTIVE_ALLREDUCE | 1u << BY_COLLECTIVE_BARRIER;
    }
    for (int r = 0; owned && r < j->rank_count && j->tree_count < FABRIC_TREES_MAX; r++) {
        struct fabric_tree *tree;

        if (one_in(prng, 4))
            continue; /* this shard uses the common trees */
        tree = fabric_tree_add(fabric, job, j->rank_node[r], through_hosts, prng);
        if (tree == NULL)
            continue;
        tree->window = (uint16_t)(1 << window_log);
        tree->payload_max = payload;
        tree->owner = (uint16_t)r;
        tree->collectives = 1u << BY_COLLECTIVE_ALLGATHER | 1u << BY_COLLECTIVE_REDUCE_SCATTER |
                            1u << BY_COLLECTIVE_BROADCAST;
    }
}

static uint64_t draw_count(struct by_prng *prng)
{
    switch (below(prng, 6)) {
    case 0:
        return below(prng, 3);
    case 1:
        return 1 + below(prng, 40);
    case 2:
        return 256 * (1 + below(prng, 16));
    case 3:
        return 1 + below(prng, 5000);
    default:
        return 1 + below(prng, 700);
    }
}

static void draw_calls(struct by_prng *prng, struct scenario *scenario, int job)
{
    int count = between(prng, 1, 6);
    int ranks = scenario->fabric.jobs[job].rank_count;
    struct by_prng modes = {scenario->seed ^ (uint64_t)job}; /* independent of the other random values */

    for (int c = 0; c < count; c++) {
        unsigned dtype = 1 + (unsigned)below(prng, BY_DTYPE_COUNT - 1);
        unsigned op = 1 + (unsigned)below(prng, BY_OP_COUNT - 1);
        struct plan_call *call = &scenario->calls[job][c];

        if (dtype >= BY_DTYPE_F16 && op > BY_OP_MAX)
            op = BY_OP_SUM;
        scenario_add_call(scenario, job, 1 + (unsigned)below(prng, BY_COLLECTIVE_COUNT - 1), op, dtype,
                          draw_count(prng));
        call->root = (uint16_t)below(prng, (uint64_t)ranks);
        call->in_place = one_in(prng, 2);
        call->mode = (uint8_t)between(&modes, BY_MODE_FAST, BY_MODE_EXACT);
        if (dtype >= BY_DTYPE_F16 && op == BY_OP_PROD && call->mode == BY_MODE_EXACT)
            call->mode = BY_MODE_FAST; /* this combination does not exist */
    }
}

/* Returns a node that sums in some tree. */
static int draw_interior(struct by_prng *prng, const struct fabric *fabric)
{
    for (;;) {
        int node = (int)below(prng, (uint64_t)fabric->node_count);

        if (fabric_slots(fabric, node) > 0)
            return node;
    }
}

/* Draws an event during the run, in one of two scenarios. Times have any magnitude up to some
 * milliseconds. */
static void draw_event(struct by_prng *prng, struct scenario *scenario)
{
    uint64_t at_ns = 1000 + (by_prng_next(prng) >> between(prng, 42, 54));
    int node = draw_interior(prng, &scenario->fabric);

    switch (below(prng, 10)) {
    case 0: /* a node loses its memory; the controller installs the next generation */
        if (scenario->fabric.nodes[node].kind == BY_NODE_SWITCH) {
            scenario->forget_node = node;
            scenario->forget_ns = at_ns;
        }
        scenario->reload_ns = at_ns + below(prng, 5000000);
        break;
    case 1: /* all processes end and restart on used tables, and then under the next generation */
        scenario->again_ns = at_ns;
        scenario->world.endpoint.stall_ns = 300000000;
        break;
    case 2:
        scenario->freeze_node = node;
        scenario->freeze_ns = at_ns;
        scenario->thaw_ns = at_ns + below(prng, 50000000);
        break;
    case 3:
    case 4:
        scenario->flip_node = node;
        scenario->flip_ns = at_ns;
        break;
    case 5: /* like case 0, but the calls continue, perhaps on other trees, perhaps twice */
    case 6:
        scenario->crash_count = between(prng, 1, 2);
        scenario->spread_ns = 1 + (by_prng_next(prng) >> between(prng, 42, 54));
        for (int k = 0; k < scenario->crash_count; k++) {
            struct scenario_crash *crash = &scenario->crashes[k];

            crash->node = scenario->fabric.nodes[node].kind == BY_NODE_SWITCH && !one_in(prng, 4) ? node : -1;
            crash->crash_ns = at_ns;
            crash->resume_ns = at_ns + (by_prng_next(prng) >> between(prng, 42, 54));
            at_ns = crash->resume_ns + below(prng, 2 * scenario->spread_ns + 100000);
            node = draw_interior(prng, &scenario->fabric);
        }
        break;
    default:
        break;
    }
}

/* Draws the trees after a crash: the same, or others over the same cables. */
static void draw_after(struct scenario *scenario, int through_hosts, const int *window_log)
{
    struct by_prng prng = {scenario->seed ^ 0x6166746572u};

    if (scenario->crash_count == 0)
        return;
    scenario->after = scenario->fabric;
    for (int j = 0; j < scenario->fabric.job_count && !one_in(&prng, 3); j++) {
        scenario->after.jobs[j].tree_count = 0;
        draw_trees(&prng, &scenario->after, j, through_hosts,
                   one_in(&prng, 2) ? window_log[j] : between(&prng, 0, 6));
    }
}

/*
 * Makes pairs of some trees for all ranks. Drawn last and from numbers of its own, so that the rest
 * of a scenario does not depend on it. Calls on pairs do not continue in a next generation.
 */
static void draw_pairs(struct scenario *scenario, int through_hosts)
{
    struct by_prng prng = {scenario->seed ^ 0x70616972u};

    if (scenario->crash_count > 0 || !one_in(&prng, 3))
        return;
    for (int j = 0; j < scenario->fabric.job_count; j++) {
        struct fabric_job *job = &scenario->fabric.jobs[j];

        for (int t = 0; t < job->tree_count; t++)
            if (!one_in(&prng, 3) && job->trees[t].half == BY_HALF_NONE &&
                job->tree_count < FABRIC_TREES_MAX &&
                fabric_pair_make(&scenario->fabric, j, t, through_hosts, &prng))
                t++;
    }
}

/* Returns a probability in parts of 2^32: none, 0.1 %, 1 %, 5 %. */
static uint32_t draw_rate(struct by_prng *prng)
{
    static const uint32_t rates[] = {0, 0, 4294967u, 42949672u, 214748364u};

    return rates[below(prng, 5)];
}

void scenario_draw(struct scenario *scenario, uint64_t seed, uint64_t number)
{
    struct by_prng prng = {seed ^ number * 0xd1342543de82ef95u};
    int through_hosts, jobs, window_log[FABRIC_JOBS_MAX];

    scenario_init(scenario, by_prng_next(&prng));
    through_hosts = draw_fabric(&prng, scenario);
    /* Not random, so that scenarios with the same number do not depend on this choice. */
    scenario->fabric.cover = number % 4 != 3   ? BY_COVER_NONE
                             : number % 8 == 7 ? BY_COVER_PAYLOAD
                                               : BY_COVER_HEADER;
    scenario->world.endpoint.batch = number % 3 == 2 ? (uint32_t)(number % 17) : 0;
    jobs = one_in(&prng, 4) ? 2 : 1;
    for (int j = 0; j < jobs; j++) {
        fabric_job_add(&scenario->fabric, (uint16_t)(j + 1), (uint16_t)by_prng_next(&prng));
        window_log[j] = between(&prng, 0, 6);
        draw_trees(&prng, &scenario->fabric, j, through_hosts, window_log[j]);
        draw_calls(&prng, scenario, j);
    }
    scenario->outstanding_max = (uint32_t)between(&prng, 1, 4);
    scenario->stagger_ns = one_in(&prng, 2) ? 0 : below(&prng, 3000000);
    scenario->world.fault.loss = draw_rate(&prng);
    scenario->world.fault.duplicate = draw_rate(&prng);
    scenario->world.fault.reorder = draw_rate(&prng);
    scenario->world.corrupt = one_in(&prng, 3) ? draw_rate(&prng) : 0;
    scenario->world.host_faults = one_in(&prng, 2);
    scenario->world.hold_ns = 1 + below(&prng, 200000);
    scenario->world.poll_ns = (uint32_t)below(&prng, 3000);
    scenario->world.burst = (uint32_t)between(&prng, 1, 64);
    scenario->world.queue_max = one_in(&prng, 4) ? (uint32_t)between(&prng, 4, 40) : 0;
    scenario->world.repair_interval_ns = below(&prng, 2) * 5000;
    scenario->world.endpoint.inflight_max = one_in(&prng, 3) ? (uint32_t)between(&prng, 1, 40) : 0;
    scenario->world.endpoint.rto_min_ns = (uint64_t)between(&prng, 20000, 2000000);
    scenario->world.mark_at = one_in(&prng, 4) ? (uint32_t)between(&prng, 2, 40) : 0;
    scenario->world.endpoint.marked = scenario->world.mark_at > 0;
    draw_event(&prng, scenario);
    draw_after(scenario, through_hosts, window_log);
    draw_pairs(scenario, through_hosts);
}

static void blame(struct scenario_result *result, const char *text)
{
    if (result->ok)
        snprintf(result->fault, sizeof(result->fault), "%s", text);
    result->ok = 0;
}

/* Some rank of the job must report the node, and no rank may report another node. */
static void check_blame(const struct scenario *scenario, int job, struct scenario_result *result)
{
    int failed = 0, named = 0;

    for (int r = 0; r < scenario->fabric.jobs[job].rank_count; r++) {
        const struct by_call_status *status = &result->ranks[job][r].status;

        failed += status->error != 0;
        named += status->error == BY_ECHECKSUM && status->node == scenario->flip_node;
        if (status->error == BY_ECHECKSUM && status->node != scenario->flip_node)
            blame(result, "a rank blames a node whose memory is sound");
        if (status->error == BY_EMISMATCH || status->error == BY_EUNSUPPORTED || status->error == BY_ESTATE)
            blame(result, "a rank is told of something else than memory that has changed");
    }
    if (failed > 0 && named == 0)
        blame(result, "ranks fail, and none knows the node whose memory has changed");
    result->named += named > 0;
}

void scenario_campaign(const struct scenario *scenario, struct scenario_result *result)
{
    scenario_run(scenario, scenario->flip_ns > 0, result);
    for (int j = 0; j < scenario->fabric.job_count && scenario->flip_ns > 0; j++)
        check_blame(scenario, j, result);
}

static double percent(uint32_t parts)
{
    return parts / 42949672.96;
}

void scenario_describe(const struct scenario *scenario, char *text, size_t bytes)
{
    const struct fabric *f = &scenario->fabric;
    size_t at = 0;

#define SAY(...)                                                                                             \
    do {                                                                                                     \
        int wrote = snprintf(text + at, bytes - at, __VA_ARGS__);                                            \
        at += wrote > 0 ? (size_t)wrote : 0;                                                                 \
        at = at < bytes ? at : bytes - 1;                                                                    \
    } while (0)
    SAY("%s: %d nodes, %d cables of %u Mbit/s, %u ns; loss %.2f%% dup %.2f%% reorder %.2f%% corrupt "
        "%.2f%%%s, hold %llu ns, queue %u\n",
        scenario->name, f->node_count, f->link_count, f->links[0].mbps, f->links[0].latency_ns,
        percent(scenario->world.fault.loss), percent(scenario->world.fault.duplicate),
        percent(scenario->world.fault.reorder), percent(scenario->world.corrupt),
        scenario->world.host_faults ? " also at hosts" : "", (unsigned long long)scenario->world.hold_ns,
        scenario->world.queue_max);
    if (scenario->reload_ns > 0)
        SAY("  at %llu ns a new generation%s%s\n", (unsigned long long)scenario->reload_ns,
            scenario->forget_node >= 0 ? ", after a loss of memory at " : "",
            scenario->forget_node >= 0 ? f->nodes[scenario->forget_node].name : "");
    for (int k = 0; k < scenario->crash_count; k++)
        SAY("  at %llu ns %s%s, at %llu ns a new generation in which calls go on; told within %llu ns\n",
            (unsigned long long)scenario->crashes[k].crash_ns,
            scenario->crashes[k].node >= 0 ? "a loss of memory at " : "nothing",
            scenario->crashes[k].node >= 0 ? f->nodes[scenario->crashes[k].node].name : "",
            (unsigned long long)scenario->crashes[k].resume_ns, (unsigned long long)scenario->spread_ns);
    if (scenario->again_ns > 0)
        SAY("  at %llu ns all processes anew\n", (unsigned long long)scenario->again_ns);
    if (scenario->freeze_node >= 0)
        SAY("  %s pauses from %llu to %llu ns\n", f->nodes[scenario->freeze_node].name,
            (unsigned long long)scenario->freeze_ns, (unsigned long long)scenario->thaw_ns);
    if (scenario->flip_ns > 0)
        SAY("  at %llu ns a bit flips in a slot of %s\n", (unsigned long long)scenario->flip_ns,
            f->nodes[scenario->flip_node].name);
    for (int j = 0; j < f->job_count; j++) {
        SAY("  job %u gen %u: %d ranks, %d trees, window %u, payload %u, %u calls at a time, stagger %llu "
            "ns\n",
            f->jobs[j].job, f->jobs[j].gen, f->jobs[j].rank_count, f->jobs[j].tree_count,
            f->jobs[j].trees[0].window, f->jobs[j].trees[0].payload_max, scenario->outstanding_max,
            (unsigned long long)scenario->stagger_ns);
        for (int c = 0; c < scenario->call_count[j]; c++) {
            const struct plan_call *call = &scenario->calls[j][c];

            SAY("    %s %s %s %s root %u count %llu%s\n", by_collective_name(call->collective),
                by_op_name(call->op), by_dtype_name(call->dtype), by_mode_name(call->mode), call->root,
                (unsigned long long)call->count, call->in_place ? " in place" : "");
        }
    }
#undef SAY
}
