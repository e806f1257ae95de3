/*
 * Runs a scenario: each rank posts its calls in order, several at a time, collects them in any
 * order, and compares every element with the oracle. Guard bytes surround the buffers, which exist
 * until the world has ended, since a queued packet may still point into them. Single-threaded.
 */
#include "tests/sim/scenario.h"

#include "tests/sim/flip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload/endpoint/state.h"
#include "offload/wire/types.h"

#define GUARD_BYTES 64
#define GUARD       0xa5
#define SCRIBBLE    0x5c
#define ROUNDS_MAX  2

/* The buffers of one call at one rank. */
struct scenario_buffers {
    uint8_t *scratch;
    uint8_t *block, *send, *recv, *copy; /* copy: of the input, if it must not change */
    uint64_t block_bytes, send_bytes, recv_bytes;
    uint32_t id;
    int running;
};

struct rank_run {
    struct scenario_run *run;
    int job, rank, node;
    int posted, collected, stopped;
    int oldest;       /* all earlier calls have been collected */
    uint64_t gone_on; /* times that its calls have continued in another generation, */
    uint64_t results; /* and the results before the last time */
    uint64_t post_ns; /* earliest time of the next post */
    struct scenario_buffers buffers[SCENARIO_CALLS_MAX];
    struct scenario_buffers old[ROUNDS_MAX][SCENARIO_CALLS_MAX]; /* of the earlier runs */
};

struct scenario_run {
    const struct scenario *scenario;
    struct scenario_result *result;
    struct by_prng prng;
    int expect_errors;
    int rank_count, finished, done;
    int finished_of[FABRIC_JOBS_MAX];
    uint64_t round; /* number of the run; each run has its own data */
    struct rank_run *ranks;
    uint8_t *answers[FABRIC_JOBS_MAX][SCENARIO_CALLS_MAX];
};

void scenario_init(struct scenario *scenario, uint64_t seed)
{
    memset(scenario, 0, sizeof(*scenario));
    scenario->seed = seed;
    scenario->world = (struct by_world_config){
        .seed = seed,
        .hold_ns = 20000,
        .poll_ns = 200,
        .burst = 32,
        .repair_interval_ns = 2000,
        .image_bytes_max = 1u << 18,
        .entry_count_max = FABRIC_TREES_MAX * FABRIC_JOBS_MAX,
        .relay_count_max = 4096,
        .endpoint = {.rto_min_ns = 100000, .rto_max_ns = 5000000, .stall_ns = 2000000000}};
    scenario->outstanding_max = 2;
    scenario->limit_ns = UINT64_C(60000000000);
    scenario->kill_node = -1;
    scenario->freeze_node = -1;
    scenario->forget_node = -1;
    scenario->quit_node = -1;
    scenario->odd_rank = -1;
}

void scenario_add_call(struct scenario *scenario, int job, unsigned collective, unsigned op, unsigned dtype,
                       uint64_t count)
{
    scenario->calls[job][scenario->call_count[job]++] =
        (struct plan_call){.collective = (uint8_t)collective,
                           .op = (uint8_t)op,
                           .dtype = (uint8_t)dtype,
                           .count = collective == BY_COLLECTIVE_BARRIER ? 0 : count};
}

void scenario_add_seeded(struct scenario *scenario, unsigned collective, uint64_t seed)
{
    struct plan_call *call = &scenario->calls[0][scenario->call_count[0]];

    scenario_add_call(scenario, 0, collective, BY_OP_SUM, BY_DTYPE_F16 + seed % 3, 6000);
    call->root = (uint16_t)(seed % 6);
    call->in_place = seed % 2;
    call->mode = (uint8_t)(BY_MODE_FAST + seed / 2 % 3);
    scenario_add_call(scenario, 0, BY_COLLECTIVE_ALLREDUCE, BY_OP_SUM, BY_DTYPE_I32, 77);
}

static uint64_t call_seed(const struct scenario_run *run, int job, int call)
{
    return (run->scenario->seed + run->round * 0x51ed2701u) * 0x2545f4914f6cdd1du + (uint64_t)job * 1000003u +
           (uint64_t)call * 7919u;
}

static void complain(struct scenario_run *run, const char *text)
{
    if (run->result->ok)
        snprintf(run->result->fault, sizeof(run->result->fault), "%s", text);
    run->result->ok = 0;
}

/* ---- buffers ---- */

static int is_source(const struct plan_call *call, int rank)
{
    return call->collective != BY_COLLECTIVE_BROADCAST || call->root == rank;
}

static int is_sink(const struct plan_call *call, int rank)
{
    return call->collective != BY_COLLECTIVE_REDUCE || call->root == rank;
}

/* Lays out: guard, send (elements aligned, but not the start of the block), guard, recv, guard. In
 * place: one buffer for both. */
static void buffers_make(struct rank_run *rank, const struct plan_call *call, struct scenario_buffers *b,
                         int index)
{
    const struct scenario *scenario = rank->run->scenario;
    int ranks = scenario->fabric.jobs[rank->job].rank_count;
    unsigned element = by_dtype_bytes(call->dtype);
    uint64_t shard = call->count * element;
    uint64_t skew = by_prng_below(&rank->run->prng, 8) * element;

    b->send_bytes = oracle_send_count(call, ranks) * element;
    b->recv_bytes = oracle_recv_count(call, ranks) * element;
    b->block_bytes = 3 * GUARD_BYTES + 64 + b->send_bytes + b->recv_bytes;
    b->block = malloc(b->block_bytes);
    memset(b->block, GUARD, b->block_bytes);
    b->send = b->block + GUARD_BYTES + skew;
    b->recv = b->send + b->send_bytes + GUARD_BYTES;
    if (call->in_place) {
        if (call->collective == BY_COLLECTIVE_ALLGATHER) {
            b->recv = b->send;
            b->send = b->recv + (uint64_t)rank->rank * shard;
        } else {
            b->recv = b->send +
                      (call->collective == BY_COLLECTIVE_REDUCE_SCATTER ? (uint64_t)rank->rank * shard : 0);
        }
    }
    if (scenario->rough_seed != 0 && oracle_is_ordered(call))
        oracle_fill_rough(call, scenario->rough_seed + (uint64_t)index, rank->rank, ranks, b->send);
    else
        oracle_fill(call, call_seed(rank->run, rank->job, index), rank->rank, ranks, b->send);
    b->copy = malloc(b->send_bytes + 1);
    memcpy(b->copy, b->send, b->send_bytes);
}

/* Returns whether a rank has written outside its buffers, or to an input that it must not
 * change. */
static int spilled(const struct rank_run *rank, const struct plan_call *call,
                   const struct scenario_buffers *b)
{
    const uint8_t *end = b->block + b->block_bytes;

    if (!call->in_place && memcmp(b->copy, b->send, b->send_bytes) != 0)
        return 1;
    for (const uint8_t *p = b->block; p < end; p++) {
        if (p >= b->send && p < b->send + b->send_bytes)
            continue;
        if (p >= b->recv && p < b->recv + b->recv_bytes && is_sink(call, rank->rank))
            continue;
        if (*p != GUARD)
            return 1;
    }
    return 0;
}

static uint64_t digest_of(const struct rank_run *rank, int index, const struct scenario_buffers *b)
{
    uint64_t hash = (uint64_t)(rank->job * 1000 + index) << 32 | (uint64_t)(rank->rank + 1);

    for (uint64_t i = 0; i < b->recv_bytes; i++)
        hash = (hash ^ b->recv[i]) * 0x100000001b3u;
    return hash;
}

/* The correct bits are not known, but all ranks of an allreduce must have the same. */
static void check_alike(struct rank_run *rank, const struct plan_call *call, const struct scenario_buffers *b,
                        int index)
{
    struct scenario_run *run = rank->run;
    uint8_t **first = &run->answers[rank->job][index];

    run->result->checked += b->recv_bytes / by_dtype_bytes(call->dtype);
    if (call->collective != BY_COLLECTIVE_ALLREDUCE)
        return;
    if (*first == NULL) {
        *first = malloc(b->recv_bytes + 1);
        memcpy(*first, b->recv, b->recv_bytes);
    } else if (memcmp(*first, b->recv, b->recv_bytes) != 0) {
        run->result->wrong++;
        complain(run, "ranks differ in the result of an allreduce");
    }
}

static void check_call(struct rank_run *rank, const struct plan_call *call, struct scenario_buffers *b,
                       int index)
{
    struct scenario_run *run = rank->run;
    int ranks = run->scenario->fabric.jobs[rank->job].rank_count;
    unsigned element = by_dtype_bytes(call->dtype);
    uint64_t count = oracle_recv_count(call, ranks), wrong = 0;
    const uint8_t *answer;
    char text[200];

    if (call->collective == BY_COLLECTIVE_BARRIER) {
        for (int r = 0; r < run->rank_count; r++)
            if (run->ranks[r].job == rank->job && run->ranks[r].posted <= index)
                complain(run, "a rank left a barrier before all had come to it");
        return;
    }
    if (spilled(rank, call, b)) {
        snprintf(text, sizeof(text), "job %d rank %d call %d: bytes outside of the receive buffer changed",
                 rank->job, rank->rank, index);
        complain(run, text);
    }
    if (!is_sink(call, rank->rank))
        return;
    run->result->digest += digest_of(rank, index, b);
    if (run->scenario->rough_seed != 0 && oracle_is_ordered(call)) {
        check_alike(rank, call, b, index);
        return;
    }
    if (run->answers[rank->job][index] == NULL)
        run->answers[rank->job][index] = oracle_answer(call, call_seed(run, rank->job, index), ranks);
    answer = run->answers[rank->job][index] + oracle_offset(call, rank->rank) * element;
    for (uint64_t i = 0; i < count; i++)
        wrong += memcmp(b->recv + i * element, answer + i * element, element) != 0;
    run->result->checked += count;
    run->result->bytes += b->recv_bytes;
    run->result->wrong += wrong;
    if (wrong > 0) {
        snprintf(text, sizeof(text), "job %d rank %d call %d (%s): %llu of %llu elements are wrong",
                 rank->job, rank->rank, index, by_collective_name(call->collective),
                 (unsigned long long)wrong, (unsigned long long)count);
        complain(run, text);
    }
}

/* ---- ranks ---- */

static const struct plan_call *call_of(const struct rank_run *rank, int index)
{
    const struct scenario *scenario = rank->run->scenario;

    if (rank->job == 0 && index == 0 && rank->rank == scenario->odd_rank)
        return &scenario->odd_call;
    return &scenario->calls[rank->job][index];
}

static void rank_collect(struct rank_run *rank, struct by_endpoint *endpoint)
{
    struct scenario_run *run = rank->run;

    while (rank->oldest < rank->posted && !rank->buffers[rank->oldest].running)
        rank->oldest++;
    for (int c = rank->oldest; c < rank->posted; c++) {
        struct scenario_buffers *b = &rank->buffers[c];
        struct rank_end *end = &run->result->ranks[rank->job][rank->rank];
        struct by_call_status status;
        int error;

        if (!b->running)
            continue;
        error = by_endpoint_test(endpoint, b->id, &status);
        if (error == BY_EAGAIN)
            continue;
        b->running = 0;
        rank->collected++;
        end->ended++;
        if (error == 0) {
            check_call(rank, call_of(rank, c), b, c);
            if (run->scenario->crash_count > 0) /* the user reuses the memory */
                memset(b->block, SCRIBBLE, b->block_bytes);
            continue;
        }
        if (end->status.error == 0 || end->status.error == BY_EABORTED)
            end->status = status;
        rank->stopped = 1;
        if (!run->expect_errors) {
            char text[200];

            snprintf(text, sizeof(text), "job %d rank %d call %d ended with %s (node %u waits for %u)",
                     rank->job, rank->rank, c, by_error_name(error), status.node, status.missing_node);
            complain(run, text);
        }
    }
}

/* Returns 1 if the rank has posted a call. */
static int rank_post(struct rank_run *rank, struct by_world *world, struct by_endpoint *endpoint)
{
    struct scenario_run *run = rank->run;
    const struct scenario *scenario = run->scenario;
    int posted = 0;

    while (!rank->stopped && rank->posted < scenario->call_count[rank->job] &&
           (uint32_t)(rank->posted - rank->collected) < scenario->outstanding_max) {
        const struct plan_call *plan = call_of(rank, rank->posted);
        struct scenario_buffers *b = &rank->buffers[rank->posted];
        struct by_call call = {.collective = plan->collective,
                               .op = plan->op,
                               .dtype = plan->dtype,
                               .mode = plan->mode ? plan->mode : BY_MODE_FAST,
                               .root = plan->root,
                               .count = plan->count};
        const char *field;
        int error;

        if (by_world_now(world) < rank->post_ns) {
            by_world_wake(world, rank->node, rank->post_ns);
            return posted;
        }
        if (b->block == NULL)
            buffers_make(rank, plan, b, rank->posted);
        call.send = is_source(plan, rank->rank) ? b->send : NULL;
        call.recv = is_sink(plan, rank->rank) ? b->recv : NULL;
        if (b->scratch == NULL)
            b->scratch = aligned_alloc(8, (by_endpoint_scratch(endpoint, &call) + 15) / 8 * 8);
        call.scratch = b->scratch;
        error = by_endpoint_post(endpoint, &call, &b->id, &field);
        if (error != 0) {
            char text[200];

            snprintf(text, sizeof(text), "job %d rank %d: post of call %d: %s (%s)", rank->job, rank->rank,
                     rank->posted, by_error_name(error), field != NULL ? field : "-");
            complain(run, text);
            run->done = 1;
            return posted;
        }
        b->running = 1;
        rank->posted++;
        posted = 1;
        rank->post_ns = by_world_now(world) + by_prng_below(&run->prng, scenario->stagger_ns + 1);
    }
    return posted;
}

/* Counts the chunks answered at rank 0 of each job. */
static void count_chunks(const struct scenario_run *run, struct by_world *world,
                         uint64_t count[FABRIC_JOBS_MAX])
{
    const struct fabric *fabric = &run->scenario->fabric;

    for (int j = 0; j < fabric->job_count; j++)
        count[j] = by_endpoint_counters(by_world_endpoint(world, fabric->jobs[j].rank_node[0], j))->result;
}

/* When the first job ends: notes the share of each job in the network while all ran. */
static void note_shares(struct scenario_run *run, struct by_world *world)
{
    struct scenario_result *result = run->result;
    uint64_t count[FABRIC_JOBS_MAX];

    if (run->scenario->measure_ns == 0 || result->share_ns != 0)
        return;
    count_chunks(run, world, count);
    for (int j = 0; j < run->scenario->fabric.job_count; j++)
        result->share[j] = count[j] - result->share[j];
    if (run->scenario->world.stream_count > 0)
        result->streamed = by_world_stream_bytes(world, 0) - result->streamed;
    result->share_ns = by_world_now(world) - run->scenario->measure_ns;
}

/* Notes when the first chunk is done after the calls have continued in another generation. */
static void note_resumed(struct rank_run *rank, const struct by_world *world, struct by_endpoint *endpoint)
{
    const struct by_endpoint_counters *counters = by_endpoint_counters(endpoint);
    uint64_t *at_ns = &rank->run->result->resumed_ns[rank->rank];

    if (rank->job != 0)
        return;
    if (rank->gone_on != counters->gone_on) {
        rank->gone_on = counters->gone_on;
        rank->results = counters->result;
        *at_ns = 0;
    } else if (rank->gone_on > 0 && *at_ns == 0 && counters->result != rank->results) {
        *at_ns = by_world_now(world);
    }
}

static int on_host_step(void *context, struct by_world *world, uint32_t node)
{
    struct scenario_run *run = context;
    int posted = 0;

    for (int r = 0; r < run->rank_count; r++) {
        struct rank_run *rank = &run->ranks[r];
        struct by_endpoint *endpoint;
        int total = run->scenario->call_count[rank->job];

        if (rank->node != (int)node || rank->stopped > 1)
            continue;
        endpoint = by_world_endpoint(world, node, rank->job);
        note_resumed(rank, world, endpoint);
        rank_collect(rank, endpoint);
        posted |= rank_post(rank, world, endpoint);
        rank_collect(rank, endpoint); /* an empty call ends immediately */
        if (rank->collected == total || (rank->stopped && rank->collected == rank->posted)) {
            rank->stopped = 2;
            run->finished++;
            if (++run->finished_of[rank->job] == run->scenario->fabric.jobs[rank->job].rank_count)
                note_shares(run, world);
        }
    }
    run->done |= run->finished == run->rank_count;
    return posted;
}

/* ---- the run ---- */

static void run_open(struct scenario_run *run, const struct scenario *scenario)
{
    run->ranks = calloc(FABRIC_JOBS_MAX * FABRIC_NODES_MAX, sizeof(struct rank_run));
    for (int j = 0; j < scenario->fabric.job_count; j++)
        for (int r = 0; r < scenario->fabric.jobs[j].rank_count; r++)
            run->ranks[run->rank_count++] = (struct rank_run){
                .run = run,
                .job = j,
                .rank = r,
                .node = scenario->fabric.jobs[j].rank_node[r],
                .post_ns = scenario->start_ns[j] + by_prng_below(&run->prng, scenario->stagger_ns + 1)};
}

static void run_close(struct scenario_run *run)
{
    for (int r = 0; r < run->rank_count; r++)
        for (int c = 0; c < SCENARIO_CALLS_MAX; c++) {
            free(run->ranks[r].buffers[c].scratch);
            free(run->ranks[r].buffers[c].block);
            free(run->ranks[r].buffers[c].copy);
            for (int k = 0; k < ROUNDS_MAX; k++) {
                free(run->ranks[r].old[k][c].scratch);
                free(run->ranks[r].old[k][c].block);
                free(run->ranks[r].old[k][c].copy);
            }
        }
    for (int j = 0; j < FABRIC_JOBS_MAX; j++)
        for (int c = 0; c < SCENARIO_CALLS_MAX; c++)
            free(run->answers[j][c]);
    free(run->ranks);
}

/* A rank on a failed node cannot end. */
static void bury(struct scenario_run *run, int node)
{
    for (int r = 0; r < run->rank_count; r++)
        if (run->ranks[r].node == node && run->ranks[r].stopped < 2) {
            run->ranks[r].stopped = 2;
            run->finished++;
        }
    run->done |= run->finished == run->rank_count;
}

/* Endpoints are new, and the ranks make their calls again, in new buffers with other data. */
static void ranks_start_over(struct scenario_run *run, struct by_world *world)
{
    run->round++;
    for (int j = 0; j < FABRIC_JOBS_MAX; j++)
        for (int c = 0; c < SCENARIO_CALLS_MAX; c++) {
            free(run->answers[j][c]);
            run->answers[j][c] = NULL;
        }
    for (int r = 0; r < run->rank_count; r++) {
        struct rank_run *rank = &run->ranks[r];

        memcpy(rank->old[run->round - 1], rank->buffers, sizeof(rank->buffers));
        memset(rank->buffers, 0, sizeof(rank->buffers));
        rank->posted = rank->collected = rank->stopped = rank->oldest = 0;
        rank->post_ns = by_world_now(world) + by_prng_below(&run->prng, run->scenario->stagger_ns + 1);
        by_world_wake(world, rank->node, by_world_now(world));
    }
    run->finished = 0;
    memset(run->finished_of, 0, sizeof(run->finished_of));
    run->done = 0;
}

/* The controller has installed gen + 1. */
static void start_over(struct scenario_run *run, struct by_world *world)
{
    struct fabric fabric = run->scenario->fabric;
    struct cabling cabling;

    for (int j = 0; j < fabric.job_count; j++)
        fabric.jobs[j].gen++;
    cabling_make(&fabric, &cabling);
    by_world_reload(world, &cabling.world);
    ranks_start_over(run, world);
}

/* All processes end and restart on the same tables, and then under the next generation. */
static void run_again(struct scenario_run *run, struct by_world *world)
{
    const struct scenario *scenario = run->scenario;
    struct scenario_result *result = run->result;
    uint64_t began_ns;

    if (scenario->quit_node >= 0) {
        by_world_run(world, &run->done, scenario->quit_ns);
        by_world_kill(world, scenario->quit_node);
    }
    by_world_run(world, &run->done, scenario->again_ns);
    for (int n = 0; n < scenario->fabric.node_count; n++)
        if (scenario->fabric.nodes[n].kind == BY_NODE_HOST)
            by_world_restart(world, n);
    memset(result->ranks, 0, sizeof(result->ranks));
    began_ns = by_world_now(world);
    ranks_start_over(run, world);
    run->expect_errors = 1;
    by_world_run(world, &run->done, began_ns + scenario->limit_ns);
    if (!run->done)
        complain(run, "not every rank ended on used tables");
    result->again_took_ns = by_world_now(world) - began_ns;
    memcpy(result->again, result->ranks, sizeof(result->again));
    memset(result->ranks, 0, sizeof(result->ranks));
    run->expect_errors = 0;
    start_over(run, world);
}

/* Conditions at the end of every run, with any faults. */
static void check_counters(struct scenario_run *run)
{
    struct scenario_result *result = run->result;

    if (result->flipped)
        return;
    if (result->engines.alarm_memory > 0)
        complain(run, "an engine says that its memory has changed");
    if (result->endpoints.drop_witness > 0)
        complain(run, "a result lacked a leaf or held one twice");
    if (run->scenario->world.corrupt == 0 && result->endpoints.drop_psum > 0)
        complain(run, "a result had a wrong checksum on a fabric that corrupts nothing");
    if (run->scenario->again_ns > 0)
        return; /* engines have received chunks of another run */
    if (result->engines.alarm_lost_state > 0)
        complain(run, "an engine says that it lost state");
    if (!run->expect_errors && result->engines.poison > 0)
        complain(run, "an engine poisoned a chunk though all ranks agree");
    if (result->engines.drop_window > 0)
        complain(run, "a contribution was beyond its window");
}

/* Returns the maximum number of slots that a node's trees require, before and after a crash. */
static uint32_t slots_most(const struct scenario *scenario)
{
    uint32_t most = 0;

    for (int n = 0; n < scenario->fabric.node_count; n++) {
        uint32_t now = fabric_slots(&scenario->fabric, n), later = fabric_slots(&scenario->after, n);

        for (int s = 0; s < scenario->standby_count; s++)
            now += fabric_slots(&scenario->standbys[s], n);
        most = now > most ? now : most;
        most = later > most ? later : most;
    }
    return most;
}

static void note_trip(struct scenario_run *run, struct by_world *world)
{
    const struct by_endpoint *endpoint =
        by_world_endpoint(world, (uint32_t)run->scenario->fabric.jobs[0].rank_node[0], 0);

    for (uint32_t l = 0; l < endpoint->lane_count; l++)
        if (run->result->trip_ns == 0 || endpoint->lanes[l].rtt_low < run->result->trip_ns)
            run->result->trip_ns = endpoint->lanes[l].rtt_low;
}

/* Performs crashes after which the calls continue. */
static void run_crashes(struct scenario_run *run, struct by_world *world)
{
    const struct scenario *scenario = run->scenario;

    for (int k = 0; k < scenario->crash_count && !run->done; k++) {
        struct fabric fabric = k % 2 == 0 ? scenario->after : scenario->fabric;
        struct cabling cabling;

        by_world_run(world, &run->done, scenario->crashes[k].crash_ns);
        if (k == 0)
            note_trip(run, world);
        if (scenario->crashes[k].node >= 0 && scenario->crashes[k].dies)
            by_world_kill(world, (uint32_t)scenario->crashes[k].node);
        else if (scenario->crashes[k].node >= 0)
            by_world_forget(world, (uint32_t)scenario->crashes[k].node);
        if (scenario->crashes[k].resume_ns == 0)
            continue;
        by_world_run(world, &run->done, scenario->crashes[k].resume_ns);
        for (int j = 0; j < fabric.job_count; j++)
            fabric.jobs[j].gen = (uint16_t)(scenario->fabric.jobs[j].gen + scenario->standby_count + k + 1);
        cabling_make(&fabric, &cabling);
        by_world_resume(world, &cabling.world, scenario->spread_ns);
    }
}

/* Gives the hosts the tables of the standbys. */
static void stand_by(const struct scenario *scenario, struct by_world *world)
{
    struct by_world_standby standbys[FABRIC_STANDBYS_MAX] = {0};
    uint8_t *images[FABRIC_STANDBYS_MAX][FABRIC_NODES_MAX] = {0};
    size_t bytes[FABRIC_STANDBYS_MAX][FABRIC_NODES_MAX] = {0};

    for (int s = 0; s < scenario->standby_count; s++) {
        for (int n = 0; n < scenario->fabric.node_count; n++)
            if (scenario->fabric.nodes[n].kind == BY_NODE_HOST)
                images[s][n] = fabric_image_standby(&scenario->fabric, scenario->standbys,
                                                    scenario->standby_count, s + 1, n, &bytes[s][n]);
        standbys[s] = (struct by_world_standby){images[s], bytes[s], scenario->replaces[s]};
    }
    if (scenario->standby_count > 0)
        by_world_stand_by(world, standbys, (uint32_t)scenario->standby_count, scenario->patience_ns,
                          scenario->attempt_ns);
}

void scenario_run(const struct scenario *scenario, int expect_errors, struct scenario_result *result)
{
    struct scenario_run run = {.scenario = scenario, .result = result, .expect_errors = expect_errors};
    struct by_world_config config = scenario->world;
    struct by_world *world;
    struct cabling cabling;

    if (scenario->crash_count + scenario->standby_count > 0) {
        config.endpoint.resume = 1;
        config.slot_count_max = slots_most(scenario);
        config.payload_max = BY_PAYLOAD_DEFAULT;
    }
    memset(result, 0, sizeof(*result));
    result->ok = 1;
    run.prng.state = scenario->seed ^ 0x72616e6b73u;
    run_open(&run, scenario);
    cabling_make_standby(&scenario->fabric, scenario->standbys, scenario->standby_count, &cabling);
    world = by_world_create(&cabling.world, &config, on_host_step, &run);
    stand_by(scenario, world);
    for (int n = 0; n < scenario->fabric.node_count; n++)
        if (scenario->fabric.nodes[n].kind == BY_NODE_HOST)
            by_world_wake(world, n, 0);
    if (scenario->freeze_node >= 0) {
        by_world_run(world, &run.done, scenario->freeze_ns);
        by_world_freeze(world, scenario->freeze_node, scenario->thaw_ns);
    }
    if (scenario->measure_ns > 0) {
        by_world_run(world, &run.done, scenario->measure_ns);
        count_chunks(&run, world, result->share);
        result->streamed = config.stream_count > 0 ? by_world_stream_bytes(world, 0) : 0;
    }
    if (scenario->forget_node >= 0) {
        by_world_run(world, &run.done, scenario->forget_ns);
        by_world_forget(world, scenario->forget_node);
    }
    if (scenario->reload_ns > 0) {
        by_world_run(world, &run.done, scenario->reload_ns);
        start_over(&run, world);
    }
    if (scenario->again_ns > 0)
        run_again(&run, world);
    run_crashes(&run, world);
    if (scenario->kill_node >= 0) {
        by_world_run(world, &run.done, scenario->kill_ns);
        by_world_kill(world, scenario->kill_node);
        bury(&run, scenario->kill_node);
    }
    if (scenario->flip_ns > 0) {
        by_world_run(world, &run.done, scenario->flip_ns);
        result->flipped = !run.done && flip_slot(by_world_engine(world, scenario->flip_node), &run.prng);
    }
    by_world_run(world, &run.done, by_world_now(world) + scenario->limit_ns);
    for (int r = 0; r < scenario->fabric.jobs[0].rank_count; r++)
        result->moves[r] = by_world_move(world, (uint32_t)scenario->fabric.jobs[0].rank_node[r]);
    result->elapsed_ns = by_world_now(world);
    result->world = *by_world_counters(world);
    by_world_sum_endpoints(world, &result->endpoints);
    by_world_sum_engines(world, &result->engines);
    if (!run.done) {
        char text[200];

        snprintf(text, sizeof(text), "%d of %d ranks have not ended after %llu ns",
                 run.rank_count - run.finished, run.rank_count, (unsigned long long)result->elapsed_ns);
        complain(&run, text);
    }
    check_counters(&run);
    by_world_destroy(world);
    run_close(&run);
}
