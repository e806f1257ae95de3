/*
 * A series of one collective whose operations follow one another, on all ranks of a job:
 *   bench-series CALL BYTES CALLS [ROOT]
 * CALL: alltoall, scatter, gather or reduce (sums of f32). BYTES: of a share, or a rank's vector.
 * Posts calls so that four are under way, checks every element of each, and prints at rank 0
 *   CALL bytes=BYTES calls=CALLS seconds=S rate=R scheduled=N
 * with R: bytes of a share (or vector) in a second, N: calls that a schedule has executed. Exit 0;
 * 1 an element is wrong, 2 usage, 3 a call has failed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <banyan/banyan.h>
#include <banyan/exchange.h>

#define AT_ONCE 4u

struct series {
    const char *name;
    struct banyan_comm *comm;
    uint32_t rank, ranks, root;
    uint64_t count; /* elements of a share, or of a vector */
    uint32_t *from[AT_ONCE], *to[AT_ONCE];
    struct banyan_request *request[AT_ONCE];
};

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int is(const struct series *series, const char *name)
{
    return strcmp(series->name, name) == 0;
}

/* Element i of the share of `source` for `target`: a small whole number, exact as f32. */
static uint32_t value(uint32_t call, uint32_t source, uint32_t target, uint64_t i)
{
    return (uint32_t)((call * 31 + source * 7 + target * 3 + i) % 4096);
}

static int fail(const char *what)
{
    fprintf(stderr, "bench-series: %s: %s\n", what, banyan_last_error());
    return 3;
}

static void fill(const struct series *series, uint32_t call)
{
    uint32_t *from = series->from[call % AT_ONCE];
    int reduces = is(series, "reduce");
    uint32_t shares = reduces || is(series, "gather") ? 1 : series->ranks;

    for (uint32_t target = 0; target < shares; target++)
        for (uint64_t i = 0; i < series->count; i++) {
            float number = (float)value(call, series->rank, 0, i);
            uint32_t *element = &from[target * series->count + i];

            *element = value(call, series->rank, is(series, "gather") ? series->root : target, i);
            if (reduces)
                memcpy(element, &number, sizeof(number));
        }
}

static int check(const struct series *series, uint32_t call)
{
    const uint32_t *to = series->to[call % AT_ONCE];
    int rooted = is(series, "gather") || is(series, "reduce");
    uint32_t shares = is(series, "alltoall") || is(series, "gather") ? series->ranks : 1;

    if (rooted && series->rank != series->root)
        return 0;
    for (uint32_t s = 0; s < shares; s++)
        for (uint64_t i = 0; i < series->count; i++) {
            uint32_t source = is(series, "scatter") ? series->root : s, expected = 0;
            float got, sum = 0;

            memcpy(&got, &to[s * series->count + i], sizeof(got));
            for (uint32_t rank = 0; rank < series->ranks && is(series, "reduce"); rank++)
                sum += (float)value(call, rank, 0, i);
            expected = value(call, source, series->rank, i);
            if (is(series, "reduce") ? got != sum : to[s * series->count + i] != expected) {
                fprintf(stderr, "bench-series: rank %u: call %u: element %llu of share %u is wrong\n",
                        series->rank, call, (unsigned long long)i, s);
                return 1;
            }
        }
    return 0;
}

static banyan_status_t describe(struct series *series, uint32_t at)
{
    struct banyan_request **request = &series->request[at];

    if (is(series, "alltoall"))
        return banyan_alltoall_init(series->comm, series->from[at], series->to[at], series->count, BANYAN_U32,
                                    request);
    if (is(series, "scatter"))
        return banyan_scatter_init(series->comm, series->from[at], series->to[at], series->count, BANYAN_U32,
                                   series->root, request);
    if (is(series, "gather"))
        return banyan_gather_init(series->comm, series->from[at], series->to[at], series->count, BANYAN_U32,
                                  series->root, request);
    return banyan_reduce_init(series->comm, series->from[at], series->to[at], series->count, BANYAN_F32,
                              BANYAN_SUM, series->root, request);
}

static int run(struct series *series, uint32_t calls)
{
    int status = 0;

    for (uint32_t call = 0; call < calls + AT_ONCE && status == 0; call++) {
        uint32_t at = call % AT_ONCE;

        if (call >= AT_ONCE && call - AT_ONCE < calls) {
            if (banyan_wait(series->request[at]) != BANYAN_OK)
                return fail(series->name);
            status = check(series, call - AT_ONCE);
        }
        if (call < calls && status == 0) {
            fill(series, call);
            if (banyan_post(series->request[at]) != BANYAN_OK)
                return fail(series->name);
        }
    }
    return status;
}

static uint64_t scheduled(const struct series *series)
{
    const char *name;
    uint64_t calls;

    for (uint32_t i = 0; banyan_comm_counter(series->comm, i, &name, &calls) == BANYAN_OK; i++)
        if (strcmp(name, "schedule/calls") == 0)
            return calls;
    return 0;
}

static int measure(struct series *series, uint64_t bytes, uint32_t calls)
{
    size_t room = (size_t)(bytes + 4) * series->ranks;
    double begin, seconds;
    int status = 0;

    for (uint32_t at = 0; at < AT_ONCE; at++) {
        series->from[at] = calloc(1, room);
        series->to[at] = calloc(1, room);
        if (series->from[at] == NULL || series->to[at] == NULL || describe(series, at) != BANYAN_OK)
            return fail("init");
    }
    if (banyan_barrier(series->comm) != BANYAN_OK)
        return fail("barrier");
    status = run(series, AT_ONCE); /* the connections' windows grow */
    if (status == 0 && banyan_barrier(series->comm) != BANYAN_OK)
        return fail("barrier");
    begin = now();
    if (status == 0)
        status = run(series, calls);
    if (status == 0 && banyan_barrier(series->comm) != BANYAN_OK)
        return fail("barrier");
    seconds = now() - begin;
    if (status == 0 && series->rank == 0)
        printf("%s bytes=%llu calls=%u seconds=%.3f rate=%.0f scheduled=%llu\n", series->name,
               (unsigned long long)bytes, calls, seconds, (double)bytes * calls / seconds,
               (unsigned long long)scheduled(series));
    for (uint32_t at = 0; at < AT_ONCE; at++) {
        banyan_free(series->request[at]);
        free(series->from[at]);
        free(series->to[at]);
    }
    return status;
}

int main(int argc, char **argv)
{
    struct series series = {.name = argc > 1 ? argv[1] : ""};
    struct banyan_context *context;
    uint64_t bytes = argc > 3 ? strtoull(argv[2], NULL, 10) : 0;
    uint32_t calls = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
    int status;

    if (bytes < 4 || calls == 0 ||
        !(is(&series, "alltoall") || is(&series, "scatter") || is(&series, "gather") ||
          is(&series, "reduce"))) {
        fprintf(stderr, "usage: bench-series alltoall|scatter|gather|reduce BYTES CALLS [ROOT]\n");
        return 2;
    }
    series.root = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 0;
    series.count = bytes / 4;
    if (banyan_init(NULL, &context) != BANYAN_OK || banyan_comm_create(context, 0, &series.comm) != BANYAN_OK)
        return fail("start");
    series.rank = banyan_comm_rank(series.comm);
    series.ranks = banyan_comm_size(series.comm);
    status = measure(&series, series.count * 4, calls);
    banyan_comm_destroy(series.comm);
    banyan_finalize(context);
    return status;
}
