/* Rank 2 ends during allreduces: it hangs, is stopped or is killed (argument: hang, stop, kill; or
 * later: it is stopped, and the calls are non-blocking; again: the same, with a persistent call;
 * dup: it hangs while the others duplicate a communicator, which an MPI may try for ever; or
 * compute SECONDS: it calls nothing for so long, and then goes on; or exchange SECONDS: the same,
 * and the calls are all-to-alls).
 * The other ranks must return an error instead of waiting forever. With MPI_ERRORS_RETURN they
 * print it themselves, with the time. */
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#define ALLREDUCE_INIT MPIX_Allreduce_init
#else
#define ALLREDUCE_INIT MPI_Allreduce_init
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned seconds;

static void end_part(const char *how)
{
    if (strcmp(how, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(how, "stop") == 0 || strcmp(how, "later") == 0 || strcmp(how, "again") == 0)
        raise(SIGSTOP);
    if (strcmp(how, "compute") == 0 || strcmp(how, "exchange") == 0) {
        sleep(seconds);
        return;
    }
    for (;;)
        pause(); /* it must not end: the launcher would end all others at once */
}

/* Makes one call. */
static int communicate(const int *one, int *sum, const char *how)
{
    static MPI_Request standing = MPI_REQUEST_NULL;
    static int calls, parts[2][64];
    MPI_Request request;
    MPI_Comm copy;
    int code;

    if (strcmp(how, "dup") == 0 && calls++ == 100)
        return MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    if (strcmp(how, "again") == 0) {
        if (standing == MPI_REQUEST_NULL)
            ALLREDUCE_INIT(one, sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &standing);
        code = MPI_Start(&standing);
        return code == MPI_SUCCESS ? MPI_Wait(&standing, MPI_STATUS_IGNORE) : code;
    }
    if (strcmp(how, "exchange") == 0)
        return MPI_Alltoall(parts[0], 1, MPI_INT, parts[1], 1, MPI_INT, MPI_COMM_WORLD);
    if (strcmp(how, "later") != 0)
        return MPI_Allreduce(one, sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    code = MPI_Iallreduce(one, sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "hang";
    int rank, one = 1, sum, code = MPI_SUCCESS;
    double begin = 0;

    seconds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < 10000 && code == MPI_SUCCESS; i++) {
        if (rank == 2 && i == 100)
            end_part(how);
        begin = MPI_Wtime();
        code = communicate(&one, &sum, how);
    }
    printf("rank %d: %s after %.2f s\n", rank, code == MPI_SUCCESS ? "no error" : "an error, as it must be",
           MPI_Wtime() - begin);
    fflush(stdout);
    if (code == MPI_SUCCESS) {
        MPI_Finalize();
        return 0;
    }
    sleep(1); /* the abort ends all ranks at once, even before they have printed it */
    MPI_Abort(MPI_COMM_WORLD, 3);
    return 1;
}
