/*
 * banyan-perf: runs collectives of growing sizes on all ranks of a job, checks every element and
 * prints the table of nccl-tests. Only rank 0 prints, unless an error occurs. One thread.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/tools/perf/explain.h"
#include "host-driver/tools/perf/report.h"
#include "offload/linux/output.h"
#include "offload/wire/types.h"

/* for the signal handler only; all other code gets it as an argument */
static struct perf_world world;

static void on_signal(int signal_number)
{
    (void)signal_number;
    perf_world_abort(&world);
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* Sets each rank's counts for `bytes` in total: allgather and reduce-scatter count all shares, as
 * in nccl-tests. */
static void size_call(struct perf_result *result, uint64_t bytes, uint32_t ranks)
{
    struct perf_call *call = &result->call;
    uint64_t unit = banyan_dtype_size(call->dtype);

    if (by_collective_is_sharded(call->collective))
        unit *= call->offsets != NULL ? call->offsets[ranks] : ranks;
    call->count = call->collective == BY_COLLECTIVE_BARRIER ? 0 : bytes / unit;
    result->bytes = call->count * unit;
}

static struct perf_result *add_result(struct perf_results *results)
{
    if (results->count == results->capacity) {
        uint32_t capacity = results->capacity > 0 ? results->capacity * 2 : 16;
        struct perf_result *more = realloc(results->result, capacity * sizeof(*more));

        if (more == NULL)
            return NULL;
        results->result = more;
        results->capacity = capacity;
    }
    memset(&results->result[results->count], 0, sizeof(results->result[0]));
    return &results->result[results->count++];
}

static enum perf_exit run_one(struct perf_world *w, const struct perf_options *options,
                              const struct perf_call *call, uint64_t bytes, struct perf_results *results,
                              bool speaks)
{
    struct perf_result *result = add_result(results);
    uint32_t failed = 0;
    banyan_status_t status;

    if (result == NULL) {
        fprintf(stderr, "%s: no memory for %u results\n", program_invocation_short_name,
                results->capacity * 2);
        return PERF_ENVIRONMENT;
    }
    result->call = *call;
    size_call(result, bytes, w->size);
    status = perf_run(w, options, results->count, result, &failed);
    if (status == BANYAN_OK) {
        if (speaks)
            perf_print_result(result);
        return PERF_RIGHT;
    }
    results->count--;
    results->error = banyan_last_error();
    fprintf(stderr, "%s: rank %u: %s\n", program_invocation_short_name, failed, results->error);
    return status == BANYAN_EINVAL || status == BANYAN_EUNSUPPORTED || status == BANYAN_ELIMIT
               ? PERF_USAGE
               : PERF_ENVIRONMENT;
}

/* Runs a collective: reductions for each operator and type that fit, others for each type, the
 * barrier once. */
static enum perf_exit run_collective(struct perf_world *w, const struct perf_options *options,
                                     unsigned collective, struct perf_results *results, bool speaks)
{
    banyan_mode_t mode = banyan_comm_mode(w->ranks[0].comm);
    bool moves = by_collective_way(collective) == BY_DATA_DOWN;
    struct perf_call call = {
        .collective = collective, .root = options->root, .dtype = BANYAN_U8, .op = BANYAN_BOR};
    enum perf_exit code = PERF_RIGHT;

    if (by_collective_is_sharded(collective))
        call.offsets = options->offsets;
    if (collective == BY_COLLECTIVE_BARRIER)
        return run_one(w, options, &call, 0, results, speaks);
    for (unsigned dtype = 1; dtype < BY_DTYPE_COUNT; dtype++) {
        for (unsigned op = 1; op < BY_OP_COUNT && options->dtype[dtype]; op++) {
            if (moves
                    ? op > 1
                    : !options->op[op] || !banyan_supports_mode(mode, (banyan_op_t)op, (banyan_dtype_t)dtype))
                continue;
            call.dtype = (banyan_dtype_t)dtype;
            call.op = (banyan_op_t)op;
            for (uint64_t bytes = options->bytes_min; bytes <= options->bytes_max;
                 bytes = perf_next_size(options, bytes)) {
                code = run_one(w, options, &call, bytes, results, speaks);
                if (code != PERF_RIGHT)
                    return code;
            }
        }
    }
    return code;
}

static enum perf_exit write_report(const struct perf_world *w, const struct perf_options *options,
                                   const struct perf_results *results)
{
    struct by_output output;

    if (options->report == NULL)
        return PERF_RIGHT;
    if (by_output_open(&output, options->report, 0666) == 0) {
        perf_print_json(output.stream, w, &w->ranks[0], results, true);
        if (by_output_close(&output, true) == 0)
            return PERF_RIGHT;
    }
    fprintf(stderr, "%s: report %s: %s\n", program_invocation_short_name, options->report, strerror(errno));
    return PERF_ENVIRONMENT;
}

static enum perf_exit run_all(struct perf_world *w, const struct perf_options *options)
{
    struct perf_results results = {0};
    enum perf_exit code = PERF_RIGHT, written;
    bool first = w->ranks[0].rank == 0;

    if (options->root >= w->size) {
        fprintf(stderr, "%s: -r %u: the job has ranks 0 to %u\n", program_invocation_short_name,
                options->root, w->size - 1);
        return PERF_USAGE;
    }
    if (options->offsets != NULL && options->share_count != w->size) {
        fprintf(stderr, "%s: --counts has %u numbers; the job has %u ranks\n", program_invocation_short_name,
                options->share_count, w->size);
        return PERF_USAGE;
    }
    if (!perf_options_defined(options, banyan_comm_mode(w->ranks[0].comm)))
        return PERF_USAGE;
    if (first && !options->json)
        perf_print_heading(w, options);
    for (unsigned c = 1; code == PERF_RIGHT && c < BY_COLLECTIVE_COUNT; c++)
        if (options->collective[c])
            code = run_collective(w, options, c, &results, first && !options->json);
    if (first && options->json)
        perf_print_json(stdout, w, &w->ranks[0], &results, false);
    else if (first && results.count > 0)
        perf_print_trailer(&results);
    written = write_report(w, options, &results);
    if (code == PERF_RIGHT && perf_wrong(&results) > 0)
        code = PERF_WRONG;
    free(results.result);
    return code != PERF_RIGHT ? code : written;
}

static int measure(int argc, char **argv)
{
    struct perf_options options;
    enum perf_exit code = PERF_RIGHT;
    int status = perf_options_read(&options, argc, argv);

    if (status >= 0) {
        perf_options_free(&options);
        return status;
    }
    if (options.settings)
        return (int)perf_print_settings(options.json);
    if (options.explain)
        code = perf_explain(&options);
    if (options.explain) {
        perf_options_free(&options);
        return (int)code;
    }
    code = perf_world_open(&world, &options, options.bytes_max);
    if (code == PERF_RIGHT) {
        catch_signals();
        code = run_all(&world, &options);
    }
    perf_world_close(&world);
    perf_options_free(&options);
    return (int)code;
}

int main(int argc, char **argv)
{
    return by_output_end(measure(argc, argv));
}
