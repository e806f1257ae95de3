/* Times exchanges of MPI and libbanyan; see timing.h. */
#include "host-driver/plugin/mpi/timing.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host-driver/plugin/mpi/flight.h"

#define KINDS   (BANYAN_GATHER - BANYAN_ALLTOALL + 1)
#define SIZES   3
#define REPEATS 3 /* the fastest counts */
#define CALLS   4 /* timed together */

static const uint64_t size_of[SIZES] = {1, 4096, 65536};

enum who { MPI, US, BOTH };

struct timing_table {
    uint64_t ns[BOTH][KINDS][SIZES];
};

static struct {
    int is_done;
    struct timing_table times; /* of the slowest rank */
} self;

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What one rank needs to time. */
struct timing_run {
    const struct by_shim_gather *on;
    struct by_mpi_facts *facts;
    char *send, *recv, *bytes; /* shares of all ranks; a byte of each */
};

/* Waits for all ranks. Returns MPI's code. */
static int meet(const struct timing_run *run)
{
    return run->on->gather(run->on, "", run->bytes, 1);
}

static void call_us(const struct timing_run *run, banyan_collective_t collective, uint64_t bytes)
{
    struct by_mpi_flight flight = {.lane = by_mpi_world(),
                                   .call = {.collective = collective,
                                            .op = BANYAN_BOR,
                                            .dtype = BANYAN_U8,
                                            .count = bytes,
                                            .send = run->send,
                                            .recv = run->recv},
                                   .is_own = 1};

    if (run->facts->status != 0)
        return; /* the other ranks get this error as well */
    if (by_mpi_open(&flight) == BANYAN_OK)
        by_mpi_run(&flight, by_shim_idle);
    run->facts->status = flight.status;
    if (flight.status != 0)
        snprintf(run->facts->text, sizeof(run->facts->text), "%s", flight.text);
    by_mpi_close(&flight);
}

/* Times some calls, and what it takes until all ranks have theirs. Returns MPI's code. */
static int time_one(const struct timing_run *run, enum who who, banyan_collective_t collective,
                    uint64_t bytes, uint64_t *best_ns)
{
    int code = MPI_SUCCESS;

    *best_ns = UINT64_MAX;
    for (int repeat = 0; repeat < REPEATS && code == MPI_SUCCESS; repeat++) {
        uint64_t begin_ns, took_ns;

        code = meet(run);
        begin_ns = now_ns();
        for (int i = 0; i < CALLS && code == MPI_SUCCESS; i++) {
            if (who == US)
                call_us(run, collective, bytes);
            else
                code = run->on->exchange(run->on, collective, run->send, run->recv, (int)bytes);
        }
        if (code == MPI_SUCCESS)
            code = meet(run);
        took_ns = (now_ns() - begin_ns) / CALLS;
        *best_ns = took_ns < *best_ns ? took_ns : *best_ns;
    }
    return code;
}

static int time_all(const struct timing_run *run, struct timing_table *mine)
{
    int code = MPI_SUCCESS;

    for (int kind = 0; kind < KINDS; kind++)
        for (int size = 0; size < SIZES; size++)
            for (int who = MPI; who < BOTH && code == MPI_SUCCESS; who++)
                code = time_one(run, who, (banyan_collective_t)(BANYAN_ALLTOALL + kind), size_of[size],
                                &mine->ns[who][kind][size]);
    return code;
}

/* Gives all ranks the times of the slowest. */
static int share(const struct by_shim_gather *on, const struct timing_table *mine, int ranks)
{
    struct timing_table *all = calloc((size_t)ranks, sizeof(*all));
    int code = all != NULL ? on->gather(on, mine, all, (int)sizeof(*mine)) : MPI_ERR_NO_MEM;

    for (int rank = 0; code == MPI_SUCCESS && rank < ranks; rank++)
        for (size_t i = 0; i < sizeof(*mine) / sizeof(uint64_t); i++) {
            const uint64_t *from = &all[rank].ns[0][0][0] + i;
            uint64_t *to = &self.times.ns[0][0][0] + i;

            *to = *from > *to ? *from : *to;
        }
    free(all);
    return code;
}

static void add(char text[BY_MPI_TEXT_MAX], const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(char text[BY_MPI_TEXT_MAX], const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text + used, BY_MPI_TEXT_MAX - used, format, arguments);
    va_end(arguments);
}

static void describe(char text[BY_MPI_TEXT_MAX])
{
    static const char *const name[KINDS] = {"all-to-all", "scatter", "gather"};

    text[0] = 0;
    add(text, "BANYAN_SMALL=auto: the faster one runs them; us of MPI and of banyan with shares of %" PRIu64,
        size_of[0]);
    for (int size = 1; size < SIZES; size++)
        add(text, "%s%" PRIu64, size < SIZES - 1 ? ", " : " and ", size_of[size]);
    add(text, " bytes");
    for (int kind = 0; kind < KINDS; kind++)
        for (int size = 0; size < SIZES; size++)
            add(text, "%s%s %.1f and %.1f",
                size > 0   ? ","
                : kind > 0 ? "; "
                           : ": ",
                size > 0 ? "" : name[kind], (double)self.times.ns[MPI][kind][size] / 1e3,
                (double)self.times.ns[US][kind][size] / 1e3);
}

int by_shim_time(const struct by_shim_gather *on, struct by_mpi_facts *facts, char text[BY_MPI_TEXT_MAX])
{
    struct timing_run run = {.on = on, .facts = facts};
    struct timing_table mine;
    size_t bytes;
    int ranks, code = MPI_ERR_NO_MEM;

    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    bytes = (size_t)ranks * size_of[SIZES - 1];
    run.send = calloc(1, bytes);
    run.recv = malloc(bytes);
    run.bytes = malloc((size_t)ranks);
    if (run.send != NULL && run.recv != NULL && run.bytes != NULL)
        code = time_all(&run, &mine);
    if (code == MPI_SUCCESS)
        code = share(on, &mine, ranks);
    free(run.send);
    free(run.recv);
    free(run.bytes);
    self.is_done = code == MPI_SUCCESS;
    if (self.is_done)
        describe(text);
    return self.is_done;
}

/* Estimates the time for shares of `bytes`, on the line through the two nearest sizes. */
static uint64_t estimate_ns(const uint64_t ns[SIZES], uint64_t bytes)
{
    int at = bytes <= size_of[1] ? 0 : 1;
    uint64_t low = ns[at], high = ns[at + 1] > low ? ns[at + 1] : low;

    return low +
           (uint64_t)((unsigned __int128)(high - low) * (bytes > size_of[at] ? bytes - size_of[at] : 0) /
                      (size_of[at + 1] - size_of[at]));
}

int by_shim_is_slower(banyan_collective_t collective, int is_unequal, uint64_t bytes)
{
    int kind = (int)collective - BANYAN_ALLTOALL;

    if (!self.is_done)
        return 0;
    if (is_unequal)
        bytes = size_of[SIZES - 1];
    return estimate_ns(self.times.ns[MPI][kind], bytes) < estimate_ns(self.times.ns[US][kind], bytes);
}
