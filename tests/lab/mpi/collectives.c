/*
 * Every collective that banyan takes from MPI, and similar ones that it must leave to MPI. Each is
 * checked against the expected result: in place and out of place, types and operators, derived
 * types that differ between ranks, unequal counts, other communicators, and messages in flight
 * meanwhile.
 * A plain MPI program without any call of banyan. Rank 0 prints one line for each check; exit 1 if
 * one is wrong.
 */
#include <complex.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lab/mpi/verdict.h"

#define COUNT 5003 /* not a multiple of anything */
#define RANKS 64

static int32_t value(int r, int i)
{
    return (r + 1) * 1000 + i % 97;
}

static int32_t sum_of(int i)
{
    return size * (size + 1) / 2 * 1000 + size * (i % 97);
}

static void allreduce(void)
{
    static int32_t in[COUNT], out[COUNT];
    static double reals[COUNT];
    static double complex numbers[COUNT], total[COUNT];
    static uint8_t bits[COUNT], all[COUNT];
    int wrong = 0;

    for (int i = 0; i < COUNT; i++)
        in[i] = value(rank, i);
    MPI_Allreduce(in, out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++)
        wrong += out[i] != sum_of(i);
    verdict("allreduce of ints", wrong);

    for (int i = 0; i < COUNT; i++)
        reals[i] = value(rank, i);
    MPI_Allreduce(MPI_IN_PLACE, reals, COUNT, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    wrong = 0;
    for (int i = 0; i < COUNT; i++)
        wrong += reals[i] < value(size - 1, i) || reals[i] > value(size - 1, i);
    verdict("allreduce in place, maximum of doubles", wrong);

    for (int i = 0; i < COUNT; i++)
        numbers[i] = value(rank, i) + I * i;
    MPI_Allreduce(numbers, total, COUNT, MPI_C_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD);
    wrong = 0;
    for (int i = 0; i < COUNT; i++)
        wrong += (int32_t)creal(total[i]) != sum_of(i) || (int)cimag(total[i]) != size * i;
    verdict("allreduce of complex numbers", wrong);

    for (int i = 0; i < COUNT; i++)
        bits[i] = (uint8_t)(1u << rank % 8);
    MPI_Allreduce(bits, all, COUNT, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    wrong = 0;
    for (int i = 0; i < COUNT; i++)
        wrong += all[i] != (1u << (size < 8 ? size : 8)) - 1;
    verdict("allreduce of bits", wrong);
}

/* Types and operators that travel as others. */
static void converted(void)
{
    static int32_t in[COUNT], out[COUNT];
    static short shorts[COUNT];
    static char chars[COUNT];
    static bool truths[COUNT];
    static struct {
        float value;
        int index;
    } places[COUNT];
    static int pairs[COUNT][2];
    int wrong = 0;

    for (int i = 0; i < COUNT; i++)
        in[i] = i % size == rank ? 256 << i % 20 : 0;
    MPI_Allreduce(in, out, COUNT, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++)
        wrong += out[i] != 1;
    MPI_Allreduce(in, out, COUNT, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++)
        wrong += out[i] != (size == 1);
    MPI_Allreduce(MPI_IN_PLACE, in, COUNT, MPI_INT, MPI_LXOR, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++)
        wrong += in[i] != 1;
    for (int i = 0; i < COUNT; i++)
        truths[i] = (i + rank) % 3 != 0;
    MPI_Allreduce(MPI_IN_PLACE, truths, COUNT, MPI_C_BOOL, MPI_LAND, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++)
        wrong += truths[i] != (size < 3 && i % 3 != 0 && (size == 1 || (i + 1) % 3 != 0));
    verdict("logical operators", wrong);

    wrong = 0;
    for (int i = 0; i < COUNT; i++)
        shorts[i] = (short)(30000 - i + rank);
    MPI_Allreduce(MPI_IN_PLACE, shorts, COUNT, MPI_SHORT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++)
        wrong += shorts[i] != (short)(size * (30000 - i) + size * (size - 1) / 2);
    for (int i = 0; i < COUNT; i++)
        shorts[i] = (short)(rank - i);
    MPI_Reduce(rank == 1 ? MPI_IN_PLACE : (void *)shorts, rank == 1 ? shorts : NULL, COUNT, MPI_SHORT,
               MPI_MIN, 1, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++)
        wrong += shorts[i] != (short)((rank == 1 ? 0 : rank) - i);
    for (int i = 0; i < COUNT; i++)
        shorts[i] = (short)(i + rank);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, shorts, COUNT / size, MPI_SHORT, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT / size; i++)
        wrong += shorts[i] != (short)(rank * (COUNT / size) + i + size - 1);
    for (int i = 0; i < COUNT; i++)
        chars[i] = (char)(i % 50 - rank);
    MPI_Allreduce(MPI_IN_PLACE, chars, COUNT, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++)
        wrong += chars[i] != (char)(size * (i % 50) - size * (size - 1) / 2);
    verdict("shorts and chars", wrong);

    wrong = 0;
    for (int i = 0; i < COUNT; i++) {
        places[i].value = (float)((rank + i) % size) - 1.5f;
        places[i].index = rank;
        pairs[i][0] = i % 2 ? -7 : (rank + i) % size - 2;
        pairs[i][1] = size - rank;
    }
    MPI_Allreduce(MPI_IN_PLACE, places, COUNT, MPI_FLOAT_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, pairs, COUNT, MPI_2INT, MPI_MINLOC, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++) {
        wrong += places[i].index != (2 * size - 1 - i % size) % size || places[i].value < (float)size - 2.6f;
        wrong += pairs[i][0] != (i % 2 ? -7 : -2);
        wrong += pairs[i][1] != (i % 2 ? 1 : size - (size - i % size) % size);
    }
    verdict("the places of extreme values", wrong);
}

static void twice(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += 2 * ((int *)in)[i] - ((int *)in)[i];
}

static void reduce(void)
{
    static int32_t in[COUNT], out[COUNT];
    MPI_Op own;
    int wrong;

    for (int root = 0; root < size; root += size - 1) {
        for (int i = 0; i < COUNT; i++)
            in[i] = value(rank, i);
        memset(out, 0, sizeof(out));
        MPI_Reduce(in, out, COUNT, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
        wrong = 0;
        for (int i = 0; i < COUNT; i++)
            wrong += out[i] != (rank == root ? sum_of(i) : 0);
        verdict(root == 0 ? "reduce to the first" : "reduce to the last", wrong);
        MPI_Reduce(rank == root ? MPI_IN_PLACE : (void *)in, rank == root ? in : out, COUNT, MPI_INT, MPI_SUM,
                   root, MPI_COMM_WORLD);
        wrong = 0;
        for (int i = 0; i < COUNT; i++)
            wrong += in[i] != (rank == root ? sum_of(i) : value(rank, i));
        verdict("reduce in place", wrong);
    }
    MPI_Op_create(twice, 1, &own);
    for (int i = 0; i < COUNT; i++)
        in[i] = value(rank, i);
    MPI_Allreduce(in, out, COUNT, MPI_INT, own, MPI_COMM_WORLD);
    wrong = 0;
    for (int i = 0; i < COUNT; i++)
        wrong += out[i] != sum_of(i);
    verdict("allreduce with an operator of the user", wrong);
    MPI_Op_free(&own);
}

static void reduce_scatter(void)
{
    static int32_t in[COUNT * RANKS], out[COUNT];
    int counts[RANKS], wrong = 0, before = 0;

    for (int i = 0; i < COUNT * size; i++)
        in[i] = value(rank, i);
    MPI_Reduce_scatter_block(in, out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++)
        wrong += out[i] != sum_of(rank * COUNT + i);
    verdict("reduce_scatter_block", wrong);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, in, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    wrong = 0;
    for (int i = 0; i < COUNT; i++)
        wrong += in[i] != sum_of(rank * COUNT + i);
    verdict("reduce_scatter_block in place", wrong);

    for (int unequal = 0; unequal < 2; unequal++) {
        for (int r = 0; r < size; r++)
            counts[r] = unequal ? COUNT - r : COUNT;
        before = 0;
        for (int r = 0; r < rank; r++)
            before += counts[r];
        for (int i = 0; i < COUNT * size; i++)
            in[i] = value(rank, i);
        MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        wrong = 0;
        for (int i = 0; i < counts[rank]; i++)
            wrong += out[i] != sum_of(before + i);
        verdict(unequal ? "reduce_scatter of unequal counts" : "reduce_scatter of equal counts", wrong);
    }
    for (int r = 0; r < size; r++) /* rank 1 gets nothing */
        counts[r] = r == 1 ? 0 : 3 * r + 1;
    before = rank < 2 ? rank : 1;
    for (int r = 2; r < rank; r++)
        before += counts[r];
    for (int i = 0; i < COUNT * size; i++)
        in[i] = value(rank, i);
    MPI_Reduce_scatter(MPI_IN_PLACE, in, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    wrong = 0;
    for (int i = 0; i < counts[rank]; i++)
        wrong += in[i] != sum_of(before + i);
    verdict("reduce_scatter of unequal counts in place", wrong);
}

/* A column of a matrix: elements with gaps between them. */
static void bcast(void)
{
    static int32_t flat[COUNT], rows[COUNT][3];
    MPI_Datatype column;
    int wrong = 0;

    for (int root = 0; root < size; root += size - 1) {
        for (int i = 0; i < COUNT; i++)
            flat[i] = rank == root ? value(root, i) : -1;
        MPI_Bcast(flat, COUNT, MPI_INT, root, MPI_COMM_WORLD);
        for (int i = 0; i < COUNT; i++)
            wrong += flat[i] != value(root, i);
    }
    verdict("bcast from the first and the last", wrong);

    MPI_Type_vector(COUNT, 1, 3, MPI_INT, &column);
    MPI_Type_commit(&column);
    wrong = 0;
    for (int i = 0; i < COUNT; i++) {
        flat[i] = value(0, i);
        rows[i][0] = rows[i][1] = rows[i][2] = -1;
    }
    if (rank == 0)
        MPI_Bcast(flat, COUNT, MPI_INT, 0, MPI_COMM_WORLD);
    else
        MPI_Bcast(&rows[0][1], 1, column, 0, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT && rank > 0; i++)
        wrong += rows[i][0] != -1 || rows[i][1] != value(0, i) || rows[i][2] != -1;
    verdict("bcast of a row that others take as a column", wrong);
    MPI_Type_free(&column);
}

static void allgather(void)
{
    static int32_t in[COUNT], out[COUNT * RANKS], spread[COUNT * RANKS * 2];
    int counts[RANKS], places[RANKS], wrong = 0;
    MPI_Datatype pair;

    for (int i = 0; i < COUNT; i++)
        in[i] = value(rank, i);
    MPI_Allgather(in, COUNT, MPI_INT, out, COUNT, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT * size; i++)
        wrong += out[i] != value(i / COUNT, i % COUNT);
    verdict("allgather", wrong);

    memset(out, 0, sizeof(out));
    memcpy(out + rank * COUNT, in, sizeof(in));
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, COUNT, MPI_INT, MPI_COMM_WORLD);
    wrong = 0;
    for (int i = 0; i < COUNT * size; i++)
        wrong += out[i] != value(i / COUNT, i % COUNT);
    verdict("allgather in place", wrong);

    /* Each int into the first half of a pair. */
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int32_t), &pair);
    MPI_Type_commit(&pair);
    memset(spread, 0xff, sizeof(spread));
    MPI_Allgather(in, COUNT, MPI_INT, spread, COUNT, pair, MPI_COMM_WORLD);
    wrong = 0;
    for (int i = 0; i < COUNT * size; i++)
        wrong += spread[2 * i] != value(i / COUNT, i % COUNT) || spread[2 * i + 1] != -1;
    verdict("allgather into a type with gaps", wrong);
    MPI_Type_free(&pair);

    for (int unequal = 0; unequal < 2; unequal++) {
        for (int r = 0; r < size; r++) {
            counts[r] = unequal ? COUNT - r : COUNT;
            places[r] = (size - 1 - r) * COUNT; /* the last first */
        }
        memset(out, 0xff, sizeof(out));
        MPI_Allgatherv(in, counts[rank], MPI_INT, out, counts, places, MPI_INT, MPI_COMM_WORLD);
        wrong = 0;
        for (int r = 0; r < size; r++)
            for (int i = 0; i < COUNT; i++)
                wrong += out[places[r] + i] != (i < counts[r] ? value(r, i) : -1);
        verdict(unequal ? "allgatherv of unequal counts" : "allgatherv in another order", wrong);
    }
    memset(out, 0xff, sizeof(out));
    for (int r = 0, place = 0; r < size; place += counts[r++]) { /* in order, and rank 1 has nothing */
        counts[r] = r == 1 ? 0 : COUNT - r;
        places[r] = place;
    }
    memcpy(out + places[rank], in, (size_t)counts[rank] * sizeof(in[0]));
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, out, counts, places, MPI_INT, MPI_COMM_WORLD);
    wrong = 0;
    for (int r = 0; r < size; r++)
        for (int i = 0; i < counts[r]; i++)
            wrong += out[places[r] + i] != value(r, i);
    verdict("allgatherv of unequal counts in place", wrong);
}

/* Rank 0 has started a message, which its receiver waits for before it enters the collective. The
 * collective must let MPI transfer the message; otherwise both wait forever. */
static void messages_meanwhile(void)
{
    static int32_t large[1 << 20];
    int32_t one = 1, sum = 0;
    MPI_Request request;

    if (rank == 0) {
        large[0] = large[(1 << 20) - 1] = 42;
        MPI_Isend(large, 1 << 20, MPI_INT, size - 1, 5, MPI_COMM_WORLD, &request);
    } else if (rank == size - 1) {
        MPI_Recv(large, 1 << 20, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    verdict("a message that is under way meanwhile",
            sum != size || ((rank == 0 || rank == size - 1) && large[(1 << 20) - 1] != 42));
}

static void communicators(void)
{
    MPI_Comm same, half, reversed;
    int one = 1, sum = 0, first = -1, wrong;

    MPI_Comm_dup(MPI_COMM_WORLD, &same);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, same);
    verdict("a copy of MPI_COMM_WORLD", sum != size);
    MPI_Comm_free(&same);

    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, half);
    verdict("each half of the ranks", sum != (size + 1 - rank % 2) / 2);
    MPI_Comm_free(&half);

    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    if (rank == size - 1)
        first = 9;
    MPI_Bcast(&first, 1, MPI_INT, 0, reversed);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, reversed);
    wrong = first != 9 || sum != size;
    verdict("all ranks in another order", wrong);
    MPI_Comm_free(&reversed);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2 || size > RANKS) {
        fprintf(stderr, "collectives: 2 to %d ranks\n", RANKS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    allreduce();
    converted();
    reduce();
    reduce_scatter();
    bcast();
    allgather();
    messages_meanwhile();
    communicators();
    for (int i = 0; i < 10; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Bcast(&wrong_in_all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return wrong_in_all != 0;
}
