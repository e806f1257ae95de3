/*
 * MPI_Bcast from rank 0 beside libbanyan's broadcast between hosts: mpi_broadcast ITERATIONS BYTES... prints
 * for each size "bytes algbw", algbw in GB/s by the slowest rank's time over all iterations, after one that
 * is not timed. Every byte is checked once. Exit 1 when one is wrong. Built by hosts.sh with the MPI's
 * compiler.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_right(const unsigned char *buffer, int bytes)
{
    for (int i = 0; i < bytes; i++)
        if (buffer[i] != (unsigned char)(i * 7 + 1))
            return 0;
    return 1;
}

static double time_one(unsigned char *buffer, int bytes, int iterations)
{
    double begin, own, slowest = 0;

    MPI_Bcast(buffer, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    for (int i = 0; i < iterations; i++)
        MPI_Bcast(buffer, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    own = MPI_Wtime() - begin;
    MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest / iterations;
}

int main(int argc, char **argv)
{
    int rank, wrong = 0, iterations;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    iterations = argc > 1 ? atoi(argv[1]) : 0;
    for (int i = 2; i < argc && iterations > 0; i++) {
        int bytes = atoi(argv[i]);
        unsigned char *buffer = malloc((size_t)bytes + 1);
        double seconds;

        if (buffer == NULL)
            MPI_Abort(MPI_COMM_WORLD, 3);
        for (int k = 0; k < bytes; k++)
            buffer[k] = rank == 0 ? (unsigned char)(k * 7 + 1) : 0;
        seconds = time_one(buffer, bytes, iterations);
        wrong |= !is_right(buffer, bytes);
        if (rank == 0)
            printf("%d %.4f\n", bytes, bytes / seconds / 1e9);
        free(buffer);
    }
    MPI_Finalize();
    return wrong;
}
