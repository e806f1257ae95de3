/*
 * One call by different names: in each collective the odd ranks use another of MPI's interfaces
 * than the even ones. First mpi_f08's beside C's, then PMPI's beside MPI's, then, if the MPI has
 * them, large counts beside others. A plain MPI program, linked with mixed_f08.f90. Rank 0 prints
 * one line for each check; exit 1 if one is wrong.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lab/mpi/verdict.h"

#define COUNT 1000
#define RANKS 64

void collectives_f08(int *buffer, int count, int *total);

static int data[COUNT], total[COUNT], blocks[COUNT * RANKS];

static void fill(void)
{
    for (int i = 0; i < COUNT; i++) {
        data[i] = rank == 0 ? i : -1;
        total[i] = -1;
    }
}

static int count_wrong(void)
{
    int wrong = 0;

    for (int i = 0; i < COUNT; i++)
        wrong += data[i] != i || total[i] != size * i;
    return wrong;
}

static void c_beside_f08(void)
{
    fill();
    if (rank % 2 == 1) {
        collectives_f08(data, COUNT, total);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Bcast(data, COUNT, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Allreduce(data, total, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    verdict("C beside mpi_f08", count_wrong());
}

static void mpi_beside_pmpi(void)
{
    fill();
    if (rank % 2 == 1) {
        PMPI_Barrier(MPI_COMM_WORLD);
        PMPI_Bcast(data, COUNT, MPI_INT, 0, MPI_COMM_WORLD);
        PMPI_Allreduce(data, total, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Bcast(data, COUNT, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Allreduce(data, total, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    verdict("MPI beside PMPI", count_wrong());
}

#if MPI_VERSION >= 4
static void check_blocks(const char *what, const int counts[])
{
    int wrong = 0;

    for (int r = 0; r < size; r++)
        for (int i = 0; i < counts[r]; i++)
            wrong += blocks[r * COUNT + i] != i;
    verdict(what, wrong);
}

static void large_counts(void)
{
    int counts[RANKS], places[RANKS];
    MPI_Count counts_c[RANKS];
    MPI_Aint places_c[RANKS];

    fill();
    if (rank % 2 == 1) {
        MPI_Bcast_c(data, COUNT, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Allreduce_c(data, total, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else {
        MPI_Bcast(data, COUNT, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Allreduce(data, total, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    verdict("MPI_Bcast and MPI_Allreduce beside those of large counts", count_wrong());

    for (int r = 0; r < size; r++) {
        counts_c[r] = counts[r] = COUNT - r;
        places_c[r] = places[r] = r * COUNT;
    }
    if (rank % 2 == 1)
        MPI_Allgatherv_c(data, counts_c[rank], MPI_INT, blocks, counts_c, places_c, MPI_INT, MPI_COMM_WORLD);
    else
        MPI_Allgatherv(data, counts[rank], MPI_INT, blocks, counts, places, MPI_INT, MPI_COMM_WORLD);
    check_blocks("MPI_Allgatherv beside MPI_Allgatherv_c", counts);

    for (int r = 0; r < size; r++)
        for (int i = 0; i < COUNT; i++)
            blocks[r * COUNT + i] = i;
    for (int r = 0, before = 0; r < size; before += counts[r++])
        for (int i = 0; i < counts[r]; i++)
            blocks[before + i] = i;
    if (rank % 2 == 1)
        MPI_Reduce_scatter_c(blocks, total, counts_c, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    else
        MPI_Reduce_scatter(blocks, total, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    int wrong = 0;
    for (int i = 0; i < counts[rank]; i++)
        wrong += total[i] != size * i;
    verdict("MPI_Reduce_scatter beside MPI_Reduce_scatter_c", wrong);
}
#endif

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2 || size > RANKS) {
        fprintf(stderr, "mixed: 2 to %d ranks\n", RANKS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    c_beside_f08();
    mpi_beside_pmpi();
#if MPI_VERSION >= 4
    large_counts();
#endif
    MPI_Bcast(&wrong_in_all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return wrong_in_all != 0;
}
