/* Rank 2 stops in the middle of allreduces, as a program that hangs. The others must come to an error, not
 * wait for ever; MPI_ERRORS_RETURN lets them say so by themselves. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, one = 1, sum, code = MPI_SUCCESS;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < 10000 && code == MPI_SUCCESS; i++) {
        if (rank == 2 && i == 100)
            for (;;)
                pause(); /* it does not even end: the launcher would end all others at once */
        code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    printf("rank %d: %s\n", rank, code == MPI_SUCCESS ? "no error" : "an error, as it must be");
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 3);
    return 1;
}
