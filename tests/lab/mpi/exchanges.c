/*
 * All-to-all, scatter and gather: equal and unequal shares, of plain types and of types with gaps,
 * in place and not, blocking and not, with every rank as the root. A plain MPI program without any
 * call of banyan. Rank 0 prints a verdict on each check. Exit 1 if a value is wrong.
 *   exchanges [ELEMENTS]     largest share (default 20000)
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lab/mpi/verdict.h"

#define RANKS 64

static int *send, *recv; /* RANKS * most elements, and as many again for gaps */
static int most = 20000;

static int value_of(int from, int to, int index)
{
    return (from * 64 + to) * 10007 + index;
}

/* `stride`: distance of two elements of a share. */
static void fill(int *at, int from, int to, int count, int stride)
{
    for (int i = 0; i < count; i++)
        at[i * stride] = value_of(from, to, i);
}

static int check(const int *at, int from, int to, int count, int stride)
{
    for (int i = 0; i < count; i++)
        if (at[i * stride] != value_of(from, to, i))
            return 1;
    return 0;
}

static void clear(void)
{
    memset(recv, 0xff, 2 * sizeof(int) * RANKS * (size_t)most);
}

static int to_all(int count, int is_in_place)
{
    int *from = is_in_place ? recv : send, wrong = 0;
    MPI_Request request;

    clear();
    for (int r = 0; r < size; r++)
        fill(from + r * count, rank, r, count, 1);
    if (is_in_place)
        MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, recv, count, MPI_INT, MPI_COMM_WORLD);
    else
        MPI_Alltoall(send, count, MPI_INT, recv, count, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        wrong += check(recv + r * count, r, rank, count, 1);
    if (is_in_place)
        return wrong;
    clear();
    MPI_Ialltoall(send, count, MPI_INT, recv, 4 * count, MPI_BYTE, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int r = 0; r < size; r++)
        wrong += check(recv + r * count, r, rank, count, 1);
    return wrong;
}

static int from_root(int count, int root, int is_in_place)
{
    int is_root = rank == root, wrong;
    void *own = is_root && is_in_place ? MPI_IN_PLACE : recv;

    clear();
    for (int r = 0; r < size && is_root; r++)
        fill(send + r * count, root, r, count, 1);
    MPI_Scatter(is_root ? send : NULL, count, MPI_INT, own, count, MPI_INT, root, MPI_COMM_WORLD);
    wrong = check(own == recv ? recv : send + root * count, root, rank, count, 1);
    clear();
    fill(send, rank, root, count, 1);
    if (is_root && is_in_place) {
        fill(recv + root * count, rank, root, count, 1);
        MPI_Gather(MPI_IN_PLACE, 0, MPI_INT, recv, count, MPI_INT, root, MPI_COMM_WORLD);
    } else {
        MPI_Gather(send, count, MPI_INT, is_root ? recv : NULL, count, MPI_INT, root, MPI_COMM_WORLD);
    }
    for (int r = 0; r < size && is_root; r++)
        wrong += check(recv + r * count, r, root, count, 1);
    return wrong;
}

/* Elements of the share that `from` sends to `to`. */
static int unequal(int from, int to)
{
    return (from + 2 * to) % 4 == 0 ? 0 : (from * 13 + to * 7) % (most / RANKS + 50);
}

/* Shares with gaps between them. */
static void place_all(int is_sent, int *counts, int *places, int stride)
{
    int at = 0;

    for (int r = 0; r < size; r++) {
        counts[r] = is_sent ? unequal(rank, r) : unequal(r, rank);
        places[r] = at;
        at += counts[r] + r % 2;
        if (is_sent)
            fill(send + places[r] * stride, rank, r, counts[r], stride);
    }
}

/* `type` has elements of `stride` integers, of which the first is data. */
static int unequal_to_all(MPI_Datatype type, int stride)
{
    int counts[2][RANKS], places[2][RANKS], wrong = 0;
    MPI_Request request;

    place_all(1, counts[0], places[0], stride);
    place_all(0, counts[1], places[1], stride);
    for (int is_waiting = 0; is_waiting < 2; is_waiting++) {
        clear();
        if (is_waiting) {
            MPI_Ialltoallv(send, counts[0], places[0], type, recv, counts[1], places[1], type, MPI_COMM_WORLD,
                           &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Alltoallv(send, counts[0], places[0], type, recv, counts[1], places[1], type, MPI_COMM_WORLD);
        }
        for (int r = 0; r < size; r++)
            wrong += check(recv + places[1][r] * stride, r, rank, counts[1][r], stride);
        for (int r = 0; r < size && stride > 1; r++) /* gaps are not written */
            wrong += counts[1][r] > 0 && recv[places[1][r] * stride + 1] != -1;
    }
    return wrong;
}

/* Every other block has elements with gaps; the ranks of a pair describe it differently. */
static int typed_to_all(MPI_Datatype spaced)
{
    int counts[2][RANKS], places[2][RANKS], at = 0, wrong = 0;
    MPI_Datatype types[2][RANKS], copy;
    MPI_Request request;

    MPI_Type_dup(spaced, &copy);
    for (int side = 0; side < 2; side++, at = 0)
        for (int r = 0; r < size; r++) {
            int stride = (rank + r + side) % 2 ? 2 : 1;

            counts[side][r] = side == 0 ? unequal(rank, r) : unequal(r, rank);
            places[side][r] = at * (int)sizeof(int);
            types[side][r] = stride == 1 ? MPI_INT : copy;
            if (side == 0)
                fill(send + at, rank, r, counts[side][r], stride);
            at += stride * counts[side][r] + 1;
        }
    for (int is_waiting = 0; is_waiting < 2; is_waiting++) {
        clear();
        if (is_waiting) {
            MPI_Ialltoallw(send, counts[0], places[0], types[0], recv, counts[1], places[1], types[1],
                           MPI_COMM_WORLD, &request);
            MPI_Type_free(&copy);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Alltoallw(send, counts[0], places[0], types[0], recv, counts[1], places[1], types[1],
                          MPI_COMM_WORLD);
        }
        for (int r = 0; r < size; r++)
            wrong += check(recv + places[1][r] / (int)sizeof(int), r, rank, counts[1][r],
                           (rank + r + 1) % 2 ? 2 : 1);
    }
    return wrong;
}

/* In place a pair of ranks sends each other as much. */
static int typed_in_place(void)
{
    int counts[RANKS], places[RANKS], at = 0, wrong = 0;
    MPI_Datatype types[RANKS];

    for (int r = 0; r < size; r++) {
        counts[r] = (rank + r) * 5 % 31;
        places[r] = at * (int)sizeof(int);
        types[r] = MPI_INT;
        fill(recv + at, rank, r, counts[r], 1);
        at += counts[r];
    }
    MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, recv, counts, places, types, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        wrong += check(recv + places[r] / (int)sizeof(int), r, rank, counts[r], 1);
    return wrong;
}

static int unequal_root(int root, MPI_Datatype type, int stride)
{
    int counts[RANKS], places[RANKS], is_root = rank == root, wrong;
    int down = unequal(root, rank), up = unequal(rank, root);

    clear();
    place_all(1, counts, places, stride);
    MPI_Scatterv(send, counts, places, type, recv, down, MPI_INT, root, MPI_COMM_WORLD);
    wrong = check(recv, root, rank, down, 1);
    clear();
    place_all(0, counts, places, stride);
    fill(send, rank, root, up, 1);
    MPI_Gatherv(send, up, MPI_INT, recv, counts, places, type, root, MPI_COMM_WORLD);
    for (int r = 0; r < size && is_root; r++)
        wrong += check(recv + places[r] * stride, r, root, counts[r], stride);
    return wrong;
}

/* Communicators of some ranks stay with MPI without a controller. */
static int within_half(void)
{
    MPI_Comm half;
    int in[RANKS], out[RANKS], number, of, wrong = 0;

    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_rank(half, &number);
    MPI_Comm_size(half, &of);
    for (int r = 0; r < of; r++)
        in[r] = 100 * number + r;
    MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, half);
    for (int r = 0; r < of; r++)
        wrong += out[r] != 100 * r + number;
    MPI_Comm_free(&half);
    return wrong;
}

int main(int argc, char **argv)
{
    const int counts[] = {0, 1, 3, 257, 4096};
    MPI_Datatype vector, spaced;
    int wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1)
        most = atoi(argv[1]);
    send = malloc(2 * sizeof(int) * RANKS * (size_t)most);
    recv = malloc(2 * sizeof(int) * RANKS * (size_t)most);
    if (size > RANKS || most < 4096 || send == NULL || recv == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < 6; i++)
        for (int is_in_place = 0; is_in_place < 2; is_in_place++)
            wrong += to_all(i < 5 ? counts[i] : most, is_in_place);
    verdict("all-to-all of equal shares", wrong);
    wrong = 0;
    for (int i = 0; i < 6; i++)
        for (int root = 0; root < size; root++)
            wrong += from_root(i < 5 ? counts[i] : most, root, (i + root) % 2);
    verdict("scatter and gather of equal shares", wrong);
    MPI_Type_vector(1, 1, 2, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, 2 * sizeof(int), &spaced);
    MPI_Type_commit(&spaced);
    wrong = unequal_to_all(MPI_INT, 1) + unequal_to_all(spaced, 2);
    verdict("all-to-all of unequal shares", wrong);
    verdict("all-to-all of shares of different types", typed_to_all(spaced) + typed_in_place());
    wrong = 0;
    for (int root = 0; root < size; root++)
        wrong += unequal_root(root, root % 2 ? spaced : MPI_INT, root % 2 ? 2 : 1);
    verdict("scatter and gather of unequal shares", wrong);
    verdict("an all-to-all of half of the ranks", within_half());
    MPI_Type_free(&spaced);
    MPI_Type_free(&vector);
    free(send);
    free(recv);
    MPI_Finalize();
    return wrong_in_all != 0;
}
