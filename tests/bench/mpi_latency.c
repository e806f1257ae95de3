/*
 * Times single calls of MPI collectives: after a barrier, until the slowest rank returns. Rank 0
 * prints a line "COLLECTIVE BYTES MEDIAN P99" for each size, in microseconds, or "WRONG BYTES ..."
 * if an element was wrong. Every call has fresh data, and every element of its result is checked.
 *   mpi_latency COLLECTIVE LEAST MOST TIMES
 *       COLLECTIVE: allreduce or reduce (f32, sum), broadcast, allgather, alltoall, scatter, gather
 *                   or barrier; the root is rank 0
 *       LEAST MOST: bytes of a rank, of all its shares together, each size four times the one
 *                   before; 0 0 for a barrier
 *       TIMES:      calls of each size; fewer if they carry more than 8 MiB, but at least 15
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMES_MAX 10000
#define WARMUP    5

struct latency {
    const char *collective;
    int rank, size;
    long bytes; /* of a rank */
    unsigned char *send, *recv;
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static unsigned char byte_of(int from, int to, long index, long call)
{
    return (unsigned char)((from * 31 + to * 7 + index * 3 + (index >> 8) + call) & 255);
}

static int is(const struct latency *run, const char *name)
{
    return strcmp(run->collective, name) == 0;
}

static void fill(struct latency *run, long call)
{
    long share = run->bytes / run->size;

    memset(run->recv, 0, (size_t)run->bytes);
    if (is(run, "allreduce") || is(run, "reduce")) {
        for (long i = 0; i < run->bytes / 4; i++)
            ((float *)run->send)[i] = byte_of(run->rank, 0, i, call);
    } else if (is(run, "broadcast")) {
        for (long i = 0; run->rank == 0 && i < run->bytes; i++)
            run->recv[i] = byte_of(0, 0, i, call);
    } else if (is(run, "allgather") || is(run, "gather")) {
        for (long i = 0; i < share; i++)
            run->send[i] = byte_of(run->rank, 0, i, call);
    } else {
        for (int r = 0; r < run->size; r++)
            for (long i = 0; i < share; i++)
                run->send[r * share + i] = byte_of(run->rank, r, i, call);
    }
}

static void perform(struct latency *run)
{
    int share = (int)(run->bytes / run->size), bytes = (int)run->bytes, floats = bytes / 4;
    MPI_Comm all = MPI_COMM_WORLD;

    if (is(run, "barrier"))
        MPI_Barrier(all);
    else if (is(run, "allreduce"))
        MPI_Allreduce(run->send, run->recv, floats, MPI_FLOAT, MPI_SUM, all);
    else if (is(run, "reduce"))
        MPI_Reduce(run->send, run->recv, floats, MPI_FLOAT, MPI_SUM, 0, all);
    else if (is(run, "broadcast"))
        MPI_Bcast(run->recv, bytes, MPI_BYTE, 0, all);
    else if (is(run, "allgather"))
        MPI_Allgather(run->send, share, MPI_BYTE, run->recv, share, MPI_BYTE, all);
    else if (is(run, "gather"))
        MPI_Gather(run->send, share, MPI_BYTE, run->recv, share, MPI_BYTE, 0, all);
    else if (is(run, "scatter"))
        MPI_Scatter(run->send, share, MPI_BYTE, run->recv, share, MPI_BYTE, 0, all);
    else
        MPI_Alltoall(run->send, share, MPI_BYTE, run->recv, share, MPI_BYTE, all);
}

static int is_wrong(struct latency *run, long call)
{
    int wrong = 0, has_result = run->rank == 0 || (!is(run, "reduce") && !is(run, "gather"));
    long share = run->bytes / run->size;

    if (!has_result || is(run, "barrier"))
        return 0;
    if (is(run, "allreduce") || is(run, "reduce")) {
        for (long i = 0; i < run->bytes / 4; i++) {
            float sum = 0; /* of small integers: exact in any order */

            for (int r = 0; r < run->size; r++)
                sum += byte_of(r, 0, i, call);
            wrong |= ((float *)run->recv)[i] != sum;
        }
    } else if (is(run, "broadcast") || is(run, "scatter")) {
        for (long i = 0; i < (is(run, "scatter") ? share : run->bytes); i++)
            wrong |= run->recv[i] != byte_of(0, is(run, "scatter") ? run->rank : 0, i, call);
    } else {
        int to = is(run, "alltoall") ? run->rank : 0;

        for (int r = 0; r < run->size; r++)
            for (long i = 0; i < share; i++)
                wrong |= run->recv[r * share + i] != byte_of(r, to, i, call);
    }
    return wrong;
}

/* Returns whether an element was wrong on any rank. */
static int measure(struct latency *run, int times)
{
    static double took[TIMES_MAX], slowest[TIMES_MAX];
    int wrong = 0, any = 0;

    for (int call = -WARMUP; call < times; call++) {
        double begin;

        fill(run, call);
        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        perform(run);
        took[call < 0 ? 0 : call] = MPI_Wtime() - begin;
        wrong |= is_wrong(run, call);
    }
    MPI_Reduce(took, slowest, times, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    qsort(slowest, (size_t)times, sizeof(*slowest), compare);
    if (run->rank == 0) {
        printf("%s %ld %.1f %.1f\n", any ? "WRONG" : run->collective, run->bytes, slowest[times / 2] * 1e6,
               slowest[(times * 99 - 1) / 100] * 1e6);
        fflush(stdout);
    }
    return any;
}

int main(int argc, char **argv)
{
    struct latency run = {0};
    long least, most, times;
    int wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &run.size);
    run.collective = argc == 5 ? argv[1] : "";
    least = argc == 5 ? atol(argv[2]) : -1;
    most = argc == 5 ? atol(argv[3]) : -1;
    times = argc == 5 ? atol(argv[4]) : 0;
    if (strstr(" allreduce reduce broadcast allgather alltoall scatter gather barrier ", run.collective) ==
            NULL ||
        run.collective[0] == 0 || least < 0 || most < least || (least == 0 && most > 0) || most > 1L << 30 ||
        times < 15 || times > TIMES_MAX) {
        if (run.rank == 0)
            fprintf(stderr, "usage: mpi_latency COLLECTIVE LEAST MOST TIMES (15 to %d)\n", TIMES_MAX);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    run.send = malloc((size_t)most + 1);
    run.recv = malloc((size_t)most + 1);
    if (run.send == NULL || run.recv == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (run.bytes = least; run.bytes <= most; run.bytes *= 4) {
        long limit = run.bytes ? (8L << 20) / run.bytes : times;

        wrong |= measure(&run, (int)(limit < 15 ? 15 : limit < times ? limit : times));
        if (run.bytes == 0)
            break;
    }
    free(run.send);
    free(run.recv);
    MPI_Finalize();
    return wrong;
}
