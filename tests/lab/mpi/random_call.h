/*
 * The calls of a random MPI program: what each one sends and receives, and the call itself.
 */
#ifndef TESTS_LAB_MPI_RANDOM_CALL_H
#define TESTS_LAB_MPI_RANDOM_CALL_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/lab/mpi/random_value.h"

enum call_kind {
    BARRIER,
    BCAST,
    REDUCE,
    ALLREDUCE,
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
    SCAN,
    EXSCAN,
    ALLGATHER,
    ALLGATHERV,
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    ALLTOALL,
    ALLTOALLV,
    ALLTOALLW,
    CALL_KINDS
};

static const char *const call_names[] = {
    "barrier", "bcast",    "reduce",    "allreduce",  "reduce_scatter", "reduce_scatter_block",
    "scan",    "exscan",   "allgather", "allgatherv", "gather",         "gatherv",
    "scatter", "scatterv", "alltoall",  "alltoallv",  "alltoallw"};

struct random_buffer {
    uint8_t *memory, *before; /* `before`: a copy; of a receive buffer, with the expected elements */
    size_t bytes, place;      /* without guards; where the first byte is */
    size_t *elements, count;  /* of a receive buffer: where the expected elements are */
};

struct random_call {
    enum call_kind kind;
    uint64_t id;
    const struct value_type *type;
    const struct value_op *op;
    MPI_Comm comm;
    int ranks, me, root, count;
    bool in_place, starts; /* starts: non-blocking */
    int *send_counts, *send_places, *counts, *places;
    MPI_Datatype *types;
    struct random_buffer send, receive;
    MPI_Request request;
};

static void *start_of(const struct random_buffer *buffer)
{
    return buffer->memory + buffer->place;
}

/* The number of elements that rank `from` sends to `to`: 0 for some. */
static int share(const struct random_call *call, int from, int to)
{
    struct draw draw = {draw_mix(call->id ^ draw_mix(value_seed + 77) ^ (uint64_t)(from * 1000 + to))};

    return draw_below(&draw, 4) == 0 ? 0 : (int)draw_below(&draw, (uint64_t)call->count + 1);
}

/* Lays blocks one after another, with gaps, in an order of this call. Returns the elements in
 * all. */
static size_t lay(const struct random_call *call, const int *counts, int *places)
{
    struct draw draw = {draw_mix(call->id + value_seed)};
    int first = (int)draw_below(&draw, (uint64_t)call->ranks), at = 0;

    for (int i = 0; i < call->ranks; i++) {
        int r = (first + i) % call->ranks;

        if (call->ranks > 1) /* MPICH 4.0 ignores the place in an allgatherv of one rank */
            at += (int)draw_below(&draw, 3);
        places[r] = at;
        at += counts[r];
    }
    return (size_t)at;
}

static bool has_root(const struct random_call *call)
{
    return call->kind == BCAST || call->kind == REDUCE || (call->kind >= GATHER && call->kind <= SCATTERV);
}

static bool is_reduce_scatter(const struct random_call *call)
{
    return call->kind == REDUCE_SCATTER || call->kind == REDUCE_SCATTER_BLOCK;
}

/* Whether the data of this rank are part of the call. */
static bool contributes(const struct random_call *call)
{
    return (call->kind != BCAST && call->kind != SCATTER && call->kind != SCATTERV) || call->me == call->root;
}

static bool receives(const struct random_call *call)
{
    if (call->kind == BCAST)
        return call->me != call->root;
    if (call->kind == REDUCE || call->kind == GATHER || call->kind == GATHERV)
        return call->me == call->root;
    return !(call->in_place && (call->kind == SCATTER || call->kind == SCATTERV) && call->me == call->root);
}

static bool sends(const struct random_call *call)
{
    if (call->kind == SCATTER || call->kind == SCATTERV)
        return call->me == call->root;
    return contributes(call) && (!call->in_place || (has_root(call) && call->me != call->root));
}

static bool blocks_out(const struct random_call *call) /* sends a block for each rank */
{
    return call->kind == SCATTER || call->kind == SCATTERV || call->kind >= ALLTOALL ||
           is_reduce_scatter(call);
}

static bool blocks_in(const struct random_call *call) /* receives a block from each rank */
{
    return (call->kind >= ALLGATHER && call->kind <= GATHERV) || call->kind >= ALLTOALL;
}

static bool has_gaps(const struct random_call *call)
{
    return call->kind == ALLGATHERV || call->kind == GATHERV || call->kind == SCATTERV ||
           call->kind == ALLTOALLV || call->kind == ALLTOALLW;
}

/* The number of elements of the block that `from` has for `to`. */
static int block(const struct random_call *call, int from, int to)
{
    bool out = call->kind == SCATTERV || call->kind == REDUCE_SCATTER;

    if (call->kind == REDUCE_SCATTER || has_gaps(call))
        return call->kind >= ALLTOALL && !call->in_place ? share(call, from, to)
               : call->kind >= ALLTOALL ? share(call, from < to ? from : to, from < to ? to : from)
                                        : share(call, out ? to : from, -1);
    return call->count;
}

/* The first index, among a rank's inputs, of its block for `to`. */
static uint64_t block_index(const struct random_call *call, int to)
{
    return blocks_out(call) ? (uint64_t)to << 32 : 0;
}

static size_t arrange(const struct random_call *call, bool out, int *counts, int *places)
{
    size_t all = 0;

    for (int r = 0; r < call->ranks; r++) {
        counts[r] = out ? block(call, call->me, r) : block(call, r, call->me);
        places[r] = (int)all;
        all += (size_t)counts[r];
    }
    return has_gaps(call) ? lay(call, counts, places) : all;
}

#define BOTH(name, iname, ...)                                                                               \
    (call->starts ? MPI_I##iname(__VA_ARGS__, &call->request) : MPI_##name(__VA_ARGS__))

static int start(struct random_call *call)
{
    MPI_Datatype type = call->type->type;
    MPI_Op op = call->op != NULL ? call->op->op : MPI_OP_NULL;
    MPI_Comm comm = call->comm;
    void *in = call->receive.memory != NULL ? start_of(&call->receive) : NULL;
    void *out = call->send.memory != NULL ? start_of(&call->send) : call->in_place ? MPI_IN_PLACE : NULL;
    int root = call->root, count = call->count, mine = block(call, root, call->me),
        bytes = (int)call->type->extent;
    int *bytes_in = NULL, *bytes_out = NULL, result;

    switch (call->kind) {
    case BARRIER:
        return call->starts ? MPI_Ibarrier(comm, &call->request) : MPI_Barrier(comm);
    case BCAST:
        return BOTH(Bcast, bcast, call->me == root ? out : in, count, type, root, comm);
    case REDUCE:
        return BOTH(Reduce, reduce, out, in, count, type, op, root, comm);
    case ALLREDUCE:
        return BOTH(Allreduce, allreduce, out, in, count, type, op, comm);
    case REDUCE_SCATTER:
        return BOTH(Reduce_scatter, reduce_scatter, out, in, call->send_counts, type, op, comm);
    case REDUCE_SCATTER_BLOCK:
        return BOTH(Reduce_scatter_block, reduce_scatter_block, out, in, count, type, op, comm);
    case SCAN:
        return BOTH(Scan, scan, out, in, count, type, op, comm);
    case EXSCAN:
        return BOTH(Exscan, exscan, out, in, count, type, op, comm);
    case ALLGATHER:
        return BOTH(Allgather, allgather, out, count, type, in, count, type, comm);
    case ALLGATHERV:
        return BOTH(Allgatherv, allgatherv, out, block(call, call->me, -1), type, in, call->counts,
                    call->places, type, comm);
    case GATHER:
        return BOTH(Gather, gather, out, count, type, in, count, type, root, comm);
    case GATHERV:
        return BOTH(Gatherv, gatherv, out, block(call, call->me, -1), type, in, call->counts, call->places,
                    type, root, comm);
    case SCATTER:
        return BOTH(Scatter, scatter, call->me == root ? start_of(&call->send) : NULL, count, type,
                    in != NULL ? in : MPI_IN_PLACE, count, type, root, comm);
    case SCATTERV:
        return BOTH(Scatterv, scatterv, call->me == root ? start_of(&call->send) : NULL, call->send_counts,
                    call->send_places, type, in != NULL ? in : MPI_IN_PLACE, mine, type, root, comm);
    case ALLTOALL:
        return BOTH(Alltoall, alltoall, out, count, type, in, count, type, comm);
    case ALLTOALLV:
        return BOTH(Alltoallv, alltoallv, out, call->send_counts, call->send_places, type, in, call->counts,
                    call->places, type, comm);
    case ALLTOALLW:
        bytes_out = call->send_places;
        bytes_in = call->places;
        for (int r = 0; r < call->ranks; r++) {
            bytes_out[r] *= bytes;
            bytes_in[r] *= bytes;
            call->types[r] = type;
        }
        result = BOTH(Alltoallw, alltoallw, out, call->send_counts, bytes_out, call->types, in, call->counts,
                      bytes_in, call->types, comm);
        return result;
    case CALL_KINDS:
        break;
    }
    return MPI_ERR_OTHER;
}

#endif
