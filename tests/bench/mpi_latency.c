/*
 * Times MPI_Alltoall: the median of the slowest rank's times, for each size of the data of a rank,
 * after a call on fresh data whose every byte is checked. Rank 0 prints "BYTES MICROSECONDS" lines.
 *   mpi_alltoall LEAST MOST     bytes of a rank, each the double of the one before, times four
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define TIMES_MAX 50

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static unsigned char byte_of(int from, int to, long index)
{
    return (unsigned char)((from * 31 + to * 7 + index * 3 + (index >> 8)) & 255);
}

static int check(unsigned char *send, unsigned char *recv, long share, int rank, int size)
{
    int wrong = 0, any;

    for (int r = 0; r < size; r++)
        for (long i = 0; i < share; i++) {
            send[r * share + i] = byte_of(rank, r, i);
            recv[r * share + i] = 0;
        }
    MPI_Alltoall(send, (int)share, MPI_BYTE, recv, (int)share, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        for (long i = 0; i < share; i++)
            wrong |= recv[r * share + i] != byte_of(r, rank, i);
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return any;
}

int main(int argc, char **argv)
{
    static double times[TIMES_MAX];
    int rank, size, wrong = 0;
    long least, most;
    unsigned char *send, *recv;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    least = argc > 1 ? atol(argv[1]) : 1024;
    most = argc > 2 ? atol(argv[2]) : 16 << 20;
    send = malloc((size_t)most);
    recv = malloc((size_t)most);
    if (send == NULL || recv == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (long bytes = least; bytes <= most; bytes *= 4) {
        long share = bytes / size, rounds = (8L << 20) / bytes;

        rounds = rounds < 15 ? 15 : rounds > TIMES_MAX ? TIMES_MAX : rounds;
        wrong |= check(send, recv, share, rank, size);
        for (long i = -3; i < rounds; i++) {
            double begin, took;

            MPI_Barrier(MPI_COMM_WORLD);
            begin = MPI_Wtime();
            MPI_Alltoall(send, (int)share, MPI_BYTE, recv, (int)share, MPI_BYTE, MPI_COMM_WORLD);
            took = MPI_Wtime() - begin;
            MPI_Reduce(&took, &times[i < 0 ? 0 : i], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        }
        qsort(times, (size_t)rounds, sizeof(*times), compare);
        if (rank == 0) {
            printf("%s %ld %.1f\n", wrong ? "WRONG" : "alltoall", share * size, times[rounds / 2] * 1e6);
            fflush(stdout);
        }
    }
    free(send);
    free(recv);
    MPI_Finalize();
    return wrong;
}
