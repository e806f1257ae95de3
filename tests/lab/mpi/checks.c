/*
 * What a program observes of MPI besides results: no call that it has not made copies its
 * attributes, its MPI refuses the same arguments as without banyan, and calls without data have no
 * effect. A plain MPI program without any call of banyan. Rank 0 prints one line for each check;
 * exit 1 if one is wrong.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lab/mpi/verdict.h"

static int copies;

/* An attribute that cannot be copied. */
static int copy(MPI_Comm from, int key, void *extra, void *value, void *copied, int *flag)
{
    (void)from;
    (void)key;
    (void)extra;
    (void)value;
    (void)copied;
    *flag = 0;
    copies++;
    return MPI_ERR_OTHER;
}

static void attributes(void)
{
    int key, one = 1, sum = 0;

    MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &key);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    verdict("an attribute of MPI_COMM_WORLD is not copied", copies != 0 || sum != size);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
    MPI_Comm_free_keyval(&key);
}

static void empty(void)
{
    int one = 1;

    MPI_Bcast(&one, 0, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allgather(&one, 0, MPI_INT, &one, 0, MPI_INT, MPI_COMM_WORLD);
    verdict("calls without data", one != 1);
}

/* Two variables, described by their addresses, in one element at MPI_BOTTOM. MPICH opens files with
 * such broadcasts. */
static void addresses(void)
{
    int first = rank == 1 ? 7 : 0, lengths[2] = {1, 2}, all = 1;
    double second[2] = {rank == 1 ? 0.5 : 0, rank == 1 ? 1.5 : 0};
    char *packed = calloc((size_t)size, sizeof(int) + sizeof(second));
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, both;
    MPI_Aint places[2];

    MPI_Get_address(&first, &places[0]);
    MPI_Get_address(second, &places[1]);
    MPI_Type_create_struct(2, lengths, places, types, &both);
    MPI_Type_commit(&both);
    MPI_Bcast(MPI_BOTTOM, 1, both, 1, MPI_COMM_WORLD);
    verdict("a broadcast of variables at their addresses",
            first != 7 || second[0] != 0.5 || second[1] != 1.5);
    first = rank;
    MPI_Allgather(MPI_BOTTOM, 1, both, packed, sizeof(int) + sizeof(second), MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        all &= memcmp(packed + (size_t)r * (sizeof(int) + sizeof(second)), &r, sizeof(r)) == 0;
    verdict("an allgather of variables at their addresses", !all);
    MPI_Type_free(&both);
    free(packed);
}

#ifdef MPICH_VERSION
static int class_of(int code)
{
    int class = MPI_SUCCESS;

    MPI_Error_class(code, &class);
    return class;
}

/* All ranks make the same error, which MPICH finds before it sends anything. */
static void arguments(void)
{
    int data[64] = {0}, more[64 * 64] = {0}, wrong = 0, counts[64], places[64];
    MPI_Datatype pair;

    for (int r = 0; r < size; r++) {
        counts[r] = 1;
        places[r] = r;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Type_contiguous(2, MPI_INT, &pair); /* never committed */
#define REFUSED(class, call)                                                                                 \
    if (class_of(call) != (class)) {                                                                         \
        printf("rank %d: not refused: %s\n", rank, #call);                                                   \
        wrong++;                                                                                             \
    }
    REFUSED(MPI_ERR_BUFFER, MPI_Allreduce(data, data, 64, MPI_INT, MPI_SUM, MPI_COMM_WORLD))
    REFUSED(MPI_ERR_BUFFER, MPI_Allreduce(NULL, data, 64, MPI_INT, MPI_SUM, MPI_COMM_WORLD))
    REFUSED(MPI_ERR_BUFFER, MPI_Allreduce(data, MPI_IN_PLACE, 64, MPI_INT, MPI_SUM, MPI_COMM_WORLD))
    REFUSED(MPI_ERR_BUFFER, MPI_Reduce_scatter_block(data, data, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD))
    REFUSED(MPI_ERR_BUFFER, MPI_Reduce_scatter(data, data, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD))
    REFUSED(MPI_ERR_BUFFER, MPI_Allgather(more + rank, 1, MPI_INT, more, 1, MPI_INT, MPI_COMM_WORLD))
    REFUSED(MPI_ERR_BUFFER,
            MPI_Allgatherv(more + rank, 1, MPI_INT, more, counts, places, MPI_INT, MPI_COMM_WORLD))
    REFUSED(MPI_ERR_BUFFER, MPI_Bcast(NULL, 64, MPI_INT, 0, MPI_COMM_WORLD))
    REFUSED(MPI_ERR_TYPE, MPI_Bcast(data, 1, pair, 0, MPI_COMM_WORLD))
#undef REFUSED
    MPI_Type_free(&pair);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    verdict("MPICH refuses aliased and missing buffers and types that are not committed", wrong);
}
#endif

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    attributes();
    empty();
    addresses();
#ifdef MPICH_VERSION
    arguments();
#endif
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Bcast(&wrong_in_all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return wrong_in_all != 0;
}
