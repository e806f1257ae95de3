/*
 * What the programs that check MPI's collectives share: the verdict on each check, printed by rank
 * 0. A program sets rank and size first, and ends with 1 if wrong_in_all is not 0.
 */
#ifndef TESTS_LAB_MPI_VERDICT_H
#define TESTS_LAB_MPI_VERDICT_H

#include <mpi.h>
#include <stdio.h>

#define VERDICT_TAG 77

static int rank, size, wrong_in_all;

/* Rank 0 prints the findings of all ranks, received point-to-point, so that the collective under
 * test does not check itself. */
static void verdict(const char *what, int wrong)
{
    int sum = wrong, other;

    if (rank > 0) {
        MPI_Send(&wrong, 1, MPI_INT, 0, VERDICT_TAG, MPI_COMM_WORLD);
        return;
    }
    for (int r = 1; r < size; r++) {
        MPI_Recv(&other, 1, MPI_INT, r, VERDICT_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum += other;
    }
    printf("%-5s %s\n", sum == 0 ? "right" : "WRONG", what);
    fflush(stdout);
    wrong_in_all += sum;
}

#endif
