/*
 * Collectives of a plain MPI program without any call of banyan, for inject.py: blocking ones,
 * several in flight, a broadcast and a barrier. Exit status 0: all right; 1: an error of MPI, which
 * is printed, or a wrong value ("wrong").
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 3001
#define CALLS 8

static int rank, size;

static void must(int error, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int bytes = 0;

    if (error == MPI_SUCCESS)
        return;
    MPI_Error_string(error, text, &bytes);
    fprintf(stderr, "mpi: rank %d: %s: %s\n", rank, what, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(int right, const char *what)
{
    if (right)
        return;
    fprintf(stderr, "mpi: rank %d: %s: wrong\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void sums(void)
{
    static int in[CALLS][COUNT], out[CALLS][COUNT];
    MPI_Request requests[CALLS];
    MPI_Status statuses[CALLS];
    int ranks = size * (size + 1) / 2;

    for (int call = 0; call < CALLS; call++)
        for (int i = 0; i < COUNT; i++)
            in[call][i] = (rank + 1) * (call + 1) * 100 + i;
    for (int call = 0; call < 2; call++)
        must(MPI_Allreduce(in[call], out[call], COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD), "allreduce");
    for (int call = 2; call < CALLS; call++)
        must(MPI_Iallreduce(in[call], out[call], COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[call]),
             "iallreduce");
    must(MPI_Waitall(CALLS - 2, requests + 2, statuses), "waitall");
    for (int call = 0; call < CALLS; call++)
        for (int i = 0; i < COUNT; i++)
            check(out[call][i] == ranks * (call + 1) * 100 + size * i, "allreduce");
}

int main(int argc, char **argv)
{
    double value;

    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sums();
    value = rank == 1 ? 0.5 : 0;
    must(MPI_Bcast(&value, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD), "bcast");
    check(2 * value == 1.0, "bcast"); /* a half is exact */
    must(MPI_Barrier(MPI_COMM_WORLD), "barrier");
    if (rank == 0)
        printf("right\n");
    MPI_Finalize();
    return 0;
}
