/*
 * mpi_allreduce: what an MPI's own MPI_Allreduce reaches, the other side of tests/bench/mpi.sh. One process a
 * rank, single-threaded, MPI-1 calls only, so that the same source is built by each MPI's compiler wrapper;
 * not part of the normal build. Sums f32 integers small enough that every order of additions is exact, and
 * checks every element of every rank. Calls are blocking and in place, one after another after a barrier,
 * as banyan-perf times its own in place; the time is that of the slowest rank. One more call, on fresh data,
 * is checked.
 *
 *   mpi_allreduce [-w WARMUP] [-n ITERATIONS] BYTES...
 *
 * Rank 0 prints one line for each size: `mpi_allreduce ranks= bytes= iterations= time_us= algbw= wrong=`,
 * algbw in GB/s (10^9 bytes of data over the time of one call). Exit 0 right, 1 wrong elements, 2 bad usage,
 * 3 no memory.
 */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define ITERATIONS_MAX 100000l
#define BYTES_MAX      (1l << 30) /* counts of MPI are int */
#define VALUE_MODULUS  1021l      /* sums of at most RANKS_MAX values stay below 2^24, exact in f32 */
#define RANKS_MAX      ((1l << 24) / VALUE_MODULUS)

struct world {
    int rank, size;
};

struct plan {
    long warmup, iterations;
};

static void give_up(const struct world *world, int status, const char *what, const char *text)
{
    if (world->rank == 0 || status == 3)
        fprintf(stderr, "mpi_allreduce: %s %s\n", what, text);
    MPI_Abort(MPI_COMM_WORLD, status);
}

static long number(const struct world *world, const char *text, long minimum, long maximum)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < minimum || value > maximum) {
        char what[128];

        snprintf(what, sizeof(what), "a number from %ld to %ld is wanted, not", minimum, maximum);
        give_up(world, 2, what, text);
    }
    return value;
}

static long value_of(long rank, long index)
{
    return (index * 7 + rank * 389 + index % 13 * rank) % VALUE_MODULUS;
}

static void fill(const struct world *world, float *data, long count)
{
    for (long i = 0; i < count; i++)
        data[i] = (float)value_of(world->rank, i);
}

static long wrong_elements(const struct world *world, const float *data, long count)
{
    long wrong = 0, all = 0;

    for (long i = 0; i < count; i++) {
        long sum = 0;

        for (int rank = 0; rank < world->size; rank++)
            sum += value_of(rank, i);
        wrong += data[i] != (float)sum;
    }
    MPI_Allreduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void repeat(float *data, int count, long times)
{
    for (long i = 0; i < times; i++)
        MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

/* Seconds of one call, of the slowest rank. Data grow with each call in place, in the end to infinity, which
 * no MPI adds slower. */
static double timed(const struct plan *plan, float *data, int count)
{
    double begin, mine, slowest = 0;

    repeat(data, count, plan->warmup);
    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    repeat(data, count, plan->iterations);
    mine = (MPI_Wtime() - begin) / (double)plan->iterations;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

/* One size; the number of wrong elements over all ranks. */
static long size_run(const struct world *world, const struct plan *plan, long bytes)
{
    long count = bytes / (long)sizeof(float), wrong;
    float *data = malloc((size_t)bytes);
    double seconds;

    if (data == NULL)
        give_up(world, 3, "no memory for a buffer of the size asked:", "ask for fewer bytes");
    fill(world, data, count);
    seconds = timed(plan, data, (int)count);
    fill(world, data, count);
    repeat(data, (int)count, 1);
    wrong = wrong_elements(world, data, count);
    if (world->rank == 0) {
        printf("mpi_allreduce ranks=%d bytes=%ld iterations=%ld time_us=%.1f algbw=%.6f wrong=%ld\n",
               world->size, bytes, plan->iterations, seconds * 1e6, (double)bytes / seconds / 1e9, wrong);
        fflush(stdout);
    }
    free(data);
    return wrong;
}

int main(int argc, char **argv)
{
    struct plan plan = {.warmup = 1, .iterations = 5};
    struct world world;
    long wrong = 0;
    int sizes = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world.size);
    if (world.size > RANKS_MAX)
        give_up(&world, 2, "sums are exact in f32 for few ranks only:", "start fewer ranks");
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-' && (argv[i][1] == 'w' || argv[i][1] == 'n') && argv[i][2] == '\0') {
            if (i + 1 == argc)
                give_up(&world, 2, "a number is missing after", argv[i]);
            if (argv[i][1] == 'w')
                plan.warmup = number(&world, argv[i + 1], 0, ITERATIONS_MAX);
            else
                plan.iterations = number(&world, argv[i + 1], 1, ITERATIONS_MAX);
            i++;
            continue;
        }
        wrong += size_run(&world, &plan, number(&world, argv[i], sizeof(float), BYTES_MAX) / 4 * 4);
        sizes++;
    }
    if (sizes == 0)
        give_up(&world, 2, "usage: mpi_allreduce [-w WARMUP] [-n ITERATIONS] BYTES...:", "no size given");
    MPI_Finalize();
    return wrong != 0;
}
