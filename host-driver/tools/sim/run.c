/* The run of banyan-sim; see run.h. */
#include "host-driver/tools/sim/run.h"

#include <stdlib.h>
#include <string.h>

#include "host-driver/error.h"

/* Pause between two rounds: longer than any packet is in flight. */
#define PAUSE_PS UINT64_C(1000000000)
/* Repair interval of one bank: well below a retransmission timeout. */
#define REPAIR_NS 5000u
/* Minimum timeout where the work states none: two round trips of a fabric. */
#define RTO_NS    10000u
#define RANK_NONE UINT32_MAX

static void fail(struct sim_run *run, uint32_t rank, int error, const struct by_call_status *status)
{
    if (run->error == 0) {
        run->error = error;
        run->error_rank = rank;
        run->status = *status;
    }
    run->done = 1;
}

static int post(struct sim_run *run, uint32_t rank)
{
    struct by_endpoint *endpoint = by_world_endpoint(run->world, run->ranks[rank].node, 0);
    struct by_call_status status = {.node = BY_NODE_NONE, .missing_node = BY_NODE_NONE};
    struct by_call call;
    const char *field;
    int error;

    check_call(&run->check, rank, &call);
    error = by_endpoint_post(endpoint, &call, &run->ranks[rank].id, &field);
    if (error != 0) {
        fail(run, rank, error, &status);
        return 0;
    }
    run->ranks[rank].posted = 1;
    return 1;
}

static void collect(struct sim_run *run, uint32_t rank)
{
    struct by_endpoint *endpoint = by_world_endpoint(run->world, run->ranks[rank].node, 0);
    struct by_call_status status;
    int error = by_endpoint_test(endpoint, run->ranks[rank].id, &status);

    if (error == BY_EAGAIN)
        return;
    run->ranks[rank].ended = 1;
    run->ranks[rank].end_ps = by_world_now_ps(run->world) - run->begin_ps;
    if (error != 0)
        fail(run, rank, error, &status);
    else if (++run->ended == run->rank_count)
        run->done = 1;
}

static int on_step(void *context, struct by_world *world, uint32_t node)
{
    struct sim_run *run = context;
    uint32_t rank = run->rank_of[node];
    struct run_rank *one;
    int posted = 0;

    if (rank == RANK_NONE || run->done)
        return 0;
    one = &run->ranks[rank];
    if (!one->posted && by_world_now_ps(world) >= run->begin_ps)
        posted = post(run, rank);
    else if (!one->posted)
        by_world_wake(world, node, run->begin_ps / 1000); /* this step took the place of that one */
    if (one->posted && !one->ended)
        collect(run, rank);
    return posted;
}

static void on_burst(void *context, struct by_world *world, uint32_t node, uint32_t job,
                     const struct by_rx *rx, uint32_t count, int done)
{
    struct sim_run *run = context;

    (void)world;
    if (job == 0 && run->rank_of[node] != RANK_NONE)
        check_burst(&run->check, run->rank_of[node], rx, count, done);
}

static void on_sample(void *context, struct by_world *world, uint64_t at_ns)
{
    struct sim_run *run = context;

    for (uint32_t a = 0; a < run->work->fabric.arc_count && run->is_timed && at_ns * 1000 > run->begin_ps;
         a++) {
        uint64_t busy_ps = by_world_busy_ps(world, a, at_ns), before_ps = run->busy_ps[a];
        uint64_t queue = by_world_queue(world, a);

        run->busy_ps[a] = busy_ps;
        if (queue > 0 || busy_ps != before_ps)
            fprintf(run->series, "%llu %u %llu %llu\n", (unsigned long long)(at_ns - run->begin_ps / 1000), a,
                    (unsigned long long)queue, (unsigned long long)(busy_ps - before_ps));
    }
}

/* Finds the hosts of all ranks. */
static int find_ranks(struct sim_run *run, const struct by_world_fabric *fabric)
{
    run->rank_of = malloc(fabric->node_count * sizeof(uint32_t));
    run->ranks = calloc(fabric->node_count, sizeof(*run->ranks));
    if (run->rank_of == NULL || run->ranks == NULL)
        return by_fail(BY_ENOMEM, "no memory for %u ranks", fabric->node_count);
    for (uint32_t n = 0; n < fabric->node_count; n++) {
        struct by_image_job job;

        by_image_job(fabric->nodes[n].image, 0, &job);
        run->rank_of[n] = job.rank == BY_RANK_NONE ? RANK_NONE : job.rank;
        if (job.rank == BY_RANK_NONE)
            continue;
        if (job.rank >= fabric->node_count)
            return by_fail(BY_EINVAL, "node %u is rank %u, but the folder has fewer nodes", n, job.rank);
        run->ranks[job.rank].node = n;
        if (job.rank >= run->rank_count)
            run->rank_count = job.rank + 1u;
    }
    if (run->rank_count < 2)
        return by_fail(BY_EINVAL, "the job has %u rank; a collective requires two or more", run->rank_count);
    return 0;
}

static struct by_world *make_world(struct sim_run *run)
{
    const struct sim_work *work = run->work;
    struct by_world_config config = {.seed = work->seed,
                                     .sample = run->series != NULL ? on_sample : NULL,
                                     .sample_ns = work->sample_ns,
                                     .fault = {.loss = (uint32_t)work->loss,
                                               .duplicate = (uint32_t)work->dup,
                                               .reorder = (uint32_t)work->reorder},
                                     .host_faults = 1,
                                     .loss_run = (uint32_t)work->loss_run,
                                     .hold_ns = work->hold_ns,
                                     .queue_bytes_max = work->buffer,
                                     .shared_bytes_max = work->shared,
                                     .mark_bytes = work->mark,
                                     .batch = (uint32_t)work->batch,
                                     .burst = BY_WORLD_BURST_MAX,
                                     .repair_interval_ns = REPAIR_NS,
                                     .endpoint = {.inflight_max = (uint32_t)work->inflight,
                                                  .fitted = work->buffer == 0 && work->shared == 0,
                                                  .marked = work->mark > 0,
                                                  .rto_min_ns = work->rto_ns ? work->rto_ns : RTO_NS},
                                     .watch = on_burst};
    struct by_world_stream *streams;
    struct by_world *world;

    for (uint32_t n = 0; n < work->fabric.node_count; n++) {
        struct by_image_header header;

        by_image_header(work->fabric.nodes[n].image, &header);
        if (header.kind == BY_NODE_SWITCH)
            config.host_faults = 0;
    }
    config.streams = streams = calloc(work->fabric.arc_count + 1u, sizeof(*streams));
    if (streams == NULL)
        return NULL;
    for (uint32_t a = 0; a < work->fabric.arc_count && work->traffic > 0; a++)
        streams[config.stream_count++] = (struct by_world_stream){.arc = a, .part = (uint32_t)work->traffic};
    world = by_world_create(&work->fabric, &config, on_step, run);
    free(streams);
    return world;
}

/* Runs one call on all ranks. */
static int run_round(struct sim_run *run)
{
    uint64_t unit_ps = run->series != NULL ? run->work->sample_ns * 1000 : 1000;
    int error = check_begin(&run->check);

    if (error != 0)
        return by_fail(error, error == BY_ENOMEM ? "no memory for the call's chunks"
                                                 : "no tree of these plans serves the collective");
    run->begin_ps = run->round == 0 ? 0 : by_world_now_ps(run->world) + PAUSE_PS;
    run->begin_ps = (run->begin_ps + unit_ps - 1) / unit_ps * unit_ps; /* samples are whole intervals */
    run->ended = 0;
    run->done = 0;
    for (uint32_t r = 0; r < run->rank_count; r++) {
        run->ranks[r].posted = run->ranks[r].ended = 0;
        by_world_wake(run->world, run->ranks[r].node, run->begin_ps / 1000);
    }
    by_world_run(run->world, &run->done, run->begin_ps / 1000 + run->work->limit_ns);
    run->time_ps = 0;
    for (uint32_t r = 0; r < run->rank_count; r++)
        if (run->ranks[r].end_ps > run->time_ps)
            run->time_ps = run->ranks[r].end_ps;
    if (!run->done)
        run->error = BY_ETIMEDOUT;
    if (run->error == 0)
        run->missing += check_missing(&run->check);
    run->round++;
    return 0;
}

/* A small call establishes the session, and shows where each rank is. */
static int run_opening(struct sim_run *run)
{
    uint64_t count = run->check.count, all = run->check.all;
    int error;

    run->check.count = count < 16 ? count : 16;
    run->check.all = count > 0 ? all / count * run->check.count : 0;
    error = run_round(run);
    run->check.count = count;
    run->check.all = all;
    return error;
}

int run_all(struct sim_run *run, const struct sim_work *work, FILE *series)
{
    struct by_endpoint_counters counters;
    int error;

    memset(run, 0, sizeof(*run));
    run->work = work;
    run->series = series;
    run->busy_ps = calloc(work->fabric.arc_count + 1, sizeof(*run->busy_ps));
    if (run->busy_ps == NULL)
        return by_fail(BY_ENOMEM, "no memory for %u directions", work->fabric.arc_count);
    error = find_ranks(run, &work->fabric);
    if (error == 0 && work->root >= run->rank_count)
        error = by_fail(BY_EINVAL, "root %llu: ranks are 0 to %u", (unsigned long long)work->root,
                        run->rank_count - 1);
    if (error == 0 && check_open(&run->check, (unsigned)work->collective, (uint32_t)work->root, work->count,
                                 work->seed, work->fabric.nodes[run->ranks[0].node].image) != 0)
        error = by_fail(BY_ENOMEM, "no memory for %llu elements", (unsigned long long)work->count);
    if (error != 0)
        return error;
    if (work->spoil)
        check_spoil(&run->check);
    run->world = make_world(run);
    if (run->world == NULL)
        return by_fail(BY_ENOMEM, "no memory for %u links", work->fabric.arc_count);
    error = run_opening(run);
    for (uint64_t w = 0; w < work->warmup && error == 0 && run->error == 0; w++)
        error = run_round(run);
    if (error != 0 || run->error != 0)
        return error;
    by_world_use_reset(run->world);
    by_world_sum_endpoints(run->world, &counters);
    run->warm_retx = counters.retx;
    run->is_timed = 1;
    return run_round(run);
}

void run_close(struct sim_run *run)
{
    if (run->world != NULL)
        by_world_destroy(run->world);
    check_close(&run->check);
    free(run->ranks);
    free(run->rank_of);
    free(run->busy_ps);
}
