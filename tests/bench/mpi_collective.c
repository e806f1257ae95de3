/*
 * mpi_collective: the throughput of an MPI's own collectives, for comparison in tests/bench/mpi.sh
 * and hosts.sh. One process per rank, single-threaded, MPI-2 calls only, so that each MPI's
 * compiler wrapper builds the same source; not part of the normal build. Reductions sum f32
 * integers small enough that every order of additions is exact; every element of every rank is
 * checked. Calls are blocking and in place, one after another after a barrier, as banyan-perf times
 * its own in place. The time is that of the slowest rank; the processor time is that of all ranks
 * and of the kernel's threads for interrupts (ksoftirqd). One more call, on fresh data, is checked.
 *
 *   mpi_collective [-c COLLECTIVE] [-w WARMUP] [-n ITERATIONS] BYTES...
 *                  COLLECTIVE: allreduce, broadcast, allgather or reduce-scatter
 *
 * Rank 0 prints one line for each size: `COLLECTIVE ranks= bytes= iterations= time_us= algbw= cpu=
 * wrong=`, algbw in GB/s (10^9 bytes of data over the time of one call), cpu in ns per byte of
 * data. Exit 0 right, 1 wrong elements, 2 bad usage, 3 no memory.
 */
#include <dirent.h>
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define ITERATIONS_MAX 100000l
#define BYTES_MAX      (1l << 30) /* counts of MPI are int */
#define VALUE_MODULUS  1021l      /* sums of at most RANKS_MAX values stay below 2^24, exact in f32 */
#define RANKS_MAX      ((1l << 24) / VALUE_MODULUS)

struct mpi_collective_world {
    int rank, size;
};

enum collective { ALLREDUCE, BROADCAST, ALLGATHER, REDUCE_SCATTER, COLLECTIVES };
static const char *const names[COLLECTIVES] = {"allreduce", "broadcast", "allgather", "reduce-scatter"};

struct plan {
    enum collective collective;
    long warmup, iterations;
};

static void give_up(const struct mpi_collective_world *world, int status, const char *what, const char *text)
{
    if (world->rank == 0 || status == 3)
        fprintf(stderr, "mpi_collective: %s %s\n", what, text);
    MPI_Abort(MPI_COMM_WORLD, status);
}

static long number(const struct mpi_collective_world *world, const char *text, long minimum, long maximum)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < minimum || value > maximum) {
        char what[128];

        snprintf(what, sizeof(what), "a number from %ld to %ld is required, not", minimum, maximum);
        give_up(world, 2, what, text);
    }
    return value;
}

static long value_of(long rank, long index)
{
    return (index * 7 + rank * 389 + index % 13 * rank) % VALUE_MODULUS;
}

/* The elements of each rank in an allgather or a reduce-scatter: together they are the requested
 * bytes. */
static long part_of(const struct mpi_collective_world *world, long count)
{
    return count / world->size;
}

/* Writes this rank's data where its call reads them. */
static void fill(const struct mpi_collective_world *world, const struct plan *plan, float *data, long count)
{
    long part = part_of(world, count);
    long first = plan->collective == ALLGATHER ? world->rank * part : 0;
    long last = plan->collective == ALLGATHER ? first + part : count;

    for (long i = 0; i < count; i++)
        data[i] = -1;
    for (long i = first; i < last && !(plan->collective == BROADCAST && world->rank != 0); i++)
        data[i] = (float)value_of(world->rank, i);
}

static long right_value(const struct mpi_collective_world *world, const struct plan *plan, long count, long i)
{
    long sum = 0;

    if (plan->collective == BROADCAST)
        return value_of(0, i);
    if (plan->collective == ALLGATHER)
        return value_of(i / part_of(world, count), i);
    if (plan->collective == REDUCE_SCATTER)
        i += world->rank * part_of(world, count);
    for (int rank = 0; rank < world->size; rank++)
        sum += value_of(rank, i);
    return sum;
}

static long wrong_elements(const struct mpi_collective_world *world, const struct plan *plan,
                           const float *data, long count)
{
    long wrong = 0, all = 0, checked = count;

    if (plan->collective == ALLGATHER)
        checked = part_of(world, count) * world->size;
    if (plan->collective == REDUCE_SCATTER)
        checked = part_of(world, count);
    for (long i = 0; i < checked; i++)
        wrong += data[i] != (float)right_value(world, plan, count, i);
    MPI_Allreduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void repeat(const struct mpi_collective_world *world, const struct plan *plan, float *data, int count,
                   long times)
{
    int part = (int)part_of(world, count);

    for (long i = 0; i < times; i++) {
        if (plan->collective == ALLREDUCE)
            MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        else if (plan->collective == BROADCAST)
            MPI_Bcast(data, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
        else if (plan->collective == REDUCE_SCATTER)
            MPI_Reduce_scatter_block(MPI_IN_PLACE, data, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        else
            MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, part, MPI_FLOAT, MPI_COMM_WORLD);
    }
}

/* Processor time in seconds of the kernel's threads for interrupts. */
static double kernel_seconds(void)
{
    DIR *all = opendir("/proc");
    double sum = 0;

    for (struct dirent *entry; all != NULL && (entry = readdir(all)) != NULL;) {
        char path[300], name[32] = "";
        unsigned long long ns = 0;
        FILE *stream;

        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
        if ((stream = fopen(path, "r")) == NULL)
            continue;
        if (fgets(name, sizeof(name), stream) == NULL)
            name[0] = 0;
        fclose(stream);
        if (strncmp(name, "ksoftirqd/", 10) != 0)
            continue;
        snprintf(path, sizeof(path), "/proc/%s/schedstat", entry->d_name);
        if ((stream = fopen(path, "r")) == NULL)
            continue;
        if (fscanf(stream, "%llu", &ns) == 1)
            sum += (double)ns / 1e9;
        fclose(stream);
    }
    if (all != NULL)
        closedir(all);
    return sum;
}

static double own_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Seconds of one call at the slowest rank, and processor time of all ranks. Sums grow with each
 * call in place, finally to infinity, which is not slower to add. */
static double timed(const struct mpi_collective_world *world, const struct plan *plan, float *data, int count,
                    double *cpu)
{
    double begin, mine, slowest = 0, spent, kernel;

    repeat(world, plan, data, count, plan->warmup);
    kernel = world->rank == 0 ? kernel_seconds() : 0;
    MPI_Barrier(MPI_COMM_WORLD);
    spent = own_seconds();
    begin = MPI_Wtime();
    repeat(world, plan, data, count, plan->iterations);
    mine = (MPI_Wtime() - begin) / (double)plan->iterations;
    spent = own_seconds() - spent;
    if (world->rank == 0)
        spent += kernel_seconds() - kernel;
    spent /= (double)plan->iterations;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&spent, cpu, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return slowest;
}

/* Runs one size; returns the number of wrong elements over all ranks. */
static long size_run(const struct mpi_collective_world *world, const struct plan *plan, long bytes)
{
    long count = bytes / (long)sizeof(float), wrong;
    float *data = malloc((size_t)bytes);
    double seconds, cpu = 0;

    if (data == NULL)
        give_up(world, 3, "no memory for a buffer of the size asked:", "ask for fewer bytes");
    fill(world, plan, data, count);
    seconds = timed(world, plan, data, (int)count, &cpu);
    fill(world, plan, data, count);
    repeat(world, plan, data, (int)count, 1);
    wrong = wrong_elements(world, plan, data, count);
    if (world->rank == 0) {
        printf("%s ranks=%d bytes=%ld iterations=%ld time_us=%.1f algbw=%.6f cpu=%.4f wrong=%ld\n",
               names[plan->collective], world->size, bytes, plan->iterations, seconds * 1e6,
               (double)bytes / seconds / 1e9, cpu / (double)bytes * 1e9, wrong);
        fflush(stdout);
    }
    free(data);
    return wrong;
}

static enum collective collective_of(const struct mpi_collective_world *world, const char *name)
{
    for (int i = 0; i < COLLECTIVES; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum collective)i;
    give_up(world, 2, "the collective must be allreduce, broadcast, allgather or reduce-scatter, not", name);
    return ALLREDUCE;
}

int main(int argc, char **argv)
{
    struct plan plan = {.warmup = 1, .iterations = 5};
    struct mpi_collective_world world;
    long wrong = 0;
    int sizes = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world.size);
    if (world.size > RANKS_MAX)
        give_up(&world, 2, "sums are exact in f32 for few ranks only:", "start fewer ranks");
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-' && strchr("cwn", argv[i][1]) != NULL && argv[i][2] == '\0') {
            if (i + 1 == argc)
                give_up(&world, 2, "a value is missing after", argv[i]);
            if (argv[i][1] == 'c')
                plan.collective = collective_of(&world, argv[i + 1]);
            else if (argv[i][1] == 'w')
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
        give_up(&world, 2, "usage: mpi_collective [-c COLLECTIVE] [-w WARMUP] [-n ITERATIONS] BYTES...:",
                "no size given");
    MPI_Finalize();
    return wrong != 0;
}
