/*
 * Collectives that stay with MPI, each once, and their non-blocking forms: gather, scatter,
 * all-to-all, scan, and a persistent allreduce. A plain MPI program without any call of banyan.
 * Rank 0 prints one line; exit 1 if a value is wrong.
 */
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#define ALLREDUCE_INIT MPIX_Allreduce_init
#else
#define ALLREDUCE_INIT MPI_Allreduce_init
#endif
#include <stdio.h>

#define RANKS 64

int main(int argc, char **argv)
{
    int rank, size, wrong = 0, wrong_in_all = 0, one, sum, ones[RANKS], places[RANKS], bytes[RANKS];
    int in[RANKS], out[RANKS];
    MPI_Datatype types[RANKS];
    MPI_Request request;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > RANKS)
        MPI_Abort(MPI_COMM_WORLD, 2);
    one = rank + 1;
    for (int r = 0; r < size; r++) {
        ones[r] = 1;
        places[r] = r;
        bytes[r] = r * (int)sizeof(int);
        types[r] = MPI_INT;
        in[r] = 100 * rank + r;
        out[r] = -1;
    }
#define FROM_ALL() (rank == 0 ? out[size - 1] != size : out[size - 1] != -1)
    MPI_Gather(&one, 1, MPI_INT, out, 1, MPI_INT, 0, MPI_COMM_WORLD);
    wrong += FROM_ALL();
    MPI_Igatherv(&one, 1, MPI_INT, out, ones, places, MPI_INT, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    wrong += FROM_ALL();
    MPI_Iscatter(in, 1, MPI_INT, &sum, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    wrong += sum != rank;
    MPI_Scatterv(in, ones, places, MPI_INT, &sum, 1, MPI_INT, 1, MPI_COMM_WORLD);
    wrong += sum != 100 + rank;
    MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        wrong += out[r] != 100 * r + rank;
    MPI_Ialltoallv(in, ones, places, MPI_INT, out, ones, places, MPI_INT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Alltoallw(in, ones, bytes, types, out, ones, bytes, types, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        wrong += out[r] != 100 * r + rank;
    MPI_Scan(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    wrong += sum != (rank + 1) * (rank + 2) / 2;
    MPI_Iexscan(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    wrong += rank > 0 && sum != rank * (rank + 1) / 2;
    ALLREDUCE_INIT(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int i = 0; i < 3; i++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        wrong += sum != size * (size + 1) / 2;
    }
    MPI_Request_free(&request);
    MPI_Allreduce(&wrong, &wrong_in_all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s calls that stay with MPI\n", wrong_in_all == 0 ? "right" : "WRONG");
    MPI_Finalize();
    return wrong_in_all != 0;
}
