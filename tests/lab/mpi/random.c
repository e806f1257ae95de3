/*
 * A random MPI program: calls, communicators, types, operators, counts, layouts and roots are drawn
 * from a seed, alike on all ranks; pauses and the order in which requests are completed are drawn
 * by each rank for itself. Each rank computes what it must receive, and compares every element, the
 * bytes between and around them, and its input. Rank 0 prints one line; exit 1 if anything is
 * wrong.
 *   random SEED STEPS
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lab/mpi/random_call.h"
#include "tests/lab/mpi/random_value.h"
#include "tests/lab/mpi/verdict.h"

#define FAMILIES  6
#define PENDING   8
#define GUARD     64
#define BYTES_MAX (600 << 10) /* of a buffer */

/* A communicator, or a division of all ranks into several. */
struct family {
    MPI_Comm comm; /* MPI_COMM_NULL where this rank is not in it */
    bool exists;
};

static struct family families[FAMILIES];
static struct random_call *pending[PENDING];
static int pending_count, wrong;
static uint64_t seed, calls;
static struct draw own; /* of this rank */

/* ---- buffers ---- */

static void open_buffer(struct random_buffer *buffer, size_t bytes)
{
    size_t all = bytes + 2 * GUARD + 64;

    buffer->bytes = bytes;
    buffer->place = GUARD + 8 * draw_below(&own, 8);
    buffer->memory = aligned_alloc(64, (all + 63) / 64 * 64);
    buffer->before = malloc(all);
    memset(buffer->memory, 0xa5, all);
    memcpy(buffer->before, buffer->memory, all);
}

static void close_buffer(struct random_buffer *buffer)
{
    free(buffer->memory);
    free(buffer->before);
    free(buffer->elements);
}

/* Puts an input where the call reads it. */
static void put_input(const struct random_call *call, struct random_buffer *buffer, size_t element,
                      uint64_t index)
{
    size_t at = buffer->place + element * call->type->extent;
    struct value value = value_draw(call->type, call->op, call->id, (uint64_t)call->me, index);

    value_put(call->type, buffer->memory + at, value);
    value_put(call->type, buffer->before + at, value);
}

static void expect(struct random_call *call, size_t element, struct value value)
{
    struct random_buffer *buffer = &call->receive;
    size_t at = buffer->place + element * call->type->extent;

    if ((buffer->count & (buffer->count + 1)) == 0)
        buffer->elements = realloc(buffer->elements, 2 * (buffer->count + 1) * sizeof(size_t));
    buffer->elements[buffer->count++] = at;
    value_put(call->type, buffer->before + at, value);
}

static void expect_input(struct random_call *call, size_t element, int from, uint64_t index)
{
    expect(call, element, value_draw(call->type, call->op, call->id, (uint64_t)from, index));
}

/* The reduction of the inputs of ranks `first` to `last`. */
static void expect_sum(struct random_call *call, size_t element, int first, int last, uint64_t index)
{
    struct value sum = value_draw(call->type, call->op, call->id, (uint64_t)first, index);

    for (int r = first + 1; r <= last; r++)
        sum = value_reduce(call->type, call->op, sum,
                           value_draw(call->type, call->op, call->id, (uint64_t)r, index));
    expect(call, element, sum);
}

static void report(const struct random_call *call, const char *what, size_t at)
{
    if (wrong++ < 5)
        printf(
            "WRONG seed %llu, call %llu, rank %d of %d (in the world %d): %s%s%s, %d of %s, %s, root %d: %s at %zu\n",
            (unsigned long long)seed, (unsigned long long)call->id, call->me, call->ranks, rank,
            call->starts ? "i" : "", call_names[call->kind], call->in_place ? " in place" : "", call->count,
            call->type->name, call->op != NULL ? call->op->name : "-", call->root, what, at);
    fflush(stdout);
}

/* Whether a byte is of an input that the result has left undefined: behind that of a reduce-scatter
 * in place. */
static bool is_spent(const struct random_call *call, const struct random_buffer *buffer, size_t at)
{
    return call->in_place && is_reduce_scatter(call) &&
           at >= buffer->place + buffer->count * call->type->extent && at < buffer->place + buffer->bytes;
}

static void check_buffer(const struct random_call *call, struct random_buffer *buffer, const char *what)
{
    size_t all = buffer->bytes + 2 * GUARD + 64;

    for (size_t i = 0; i < buffer->count; i++) {
        size_t at = buffer->elements[i];

        if (!value_same(call->type, buffer->memory + at, buffer->before + at)) {
            struct value got = value_get(call->type, buffer->memory + at);
            struct value right = value_get(call->type, buffer->before + at);
            char text[120];

            snprintf(text, sizeof(text), "%lld and %lld instead of %lld and %lld", (long long)got.a,
                     (long long)got.b, (long long)right.a, (long long)right.b);
            report(call, text, (at - buffer->place) / call->type->extent);
            return;
        }
        value_take_padding(call->type, buffer->before + at, buffer->memory + at);
    }
    for (size_t i = 0; i < all; i++) {
        if (is_spent(call, buffer, i))
            continue;
        if (buffer->memory[i] != buffer->before[i]) {
            report(call, what, i - buffer->place);
            return;
        }
    }
}

/* ---- calls ---- */

static void fill_blocks(struct random_call *call, struct random_buffer *buffer, const int *counts,
                        const int *places)
{
    for (int r = 0; r < call->ranks; r++)
        for (int i = 0; i < counts[r]; i++)
            put_input(call, buffer, (size_t)(places[r] + i), block_index(call, r) + (uint64_t)i);
}

/* Writes the input of the call, of `out` elements, where the call reads it. */
static void write_input(struct random_call *call, size_t out)
{
    bool in_place = call->send.memory == NULL;
    struct random_buffer *buffer = in_place ? &call->receive : &call->send;

    if (in_place && call->kind >= ALLTOALL) /* laid as what it receives */
        fill_blocks(call, buffer, call->counts, call->places);
    else if (blocks_out(call))
        fill_blocks(call, buffer, call->send_counts, call->send_places);
    else if (in_place && blocks_in(call))
        for (int i = 0; i < call->counts[call->me]; i++)
            put_input(call, buffer, (size_t)(call->places[call->me] + i), (uint64_t)i);
    else
        for (size_t i = 0; i < out; i++)
            put_input(call, buffer, i, i);
}

/* Writes what the call must receive into the copy: `mine` elements, or a block from each rank. */
static void write_expected(struct random_call *call, int mine)
{
    for (int r = 0; r < call->ranks && blocks_in(call); r++)
        for (int i = 0; i < call->counts[r]; i++)
            expect_input(call, (size_t)(call->places[r] + i), r, block_index(call, call->me) + (uint64_t)i);
    for (int i = 0; i < mine && !blocks_in(call); i++) {
        uint64_t index = block_index(call, call->me) + (uint64_t)i;

        if (call->kind == BCAST || call->kind == SCATTER || call->kind == SCATTERV)
            expect_input(call, (size_t)i, call->root, index);
        else if (call->kind == SCAN)
            expect_sum(call, (size_t)i, 0, call->me, index);
        else if (call->kind == EXSCAN && call->me > 0)
            expect_sum(call, (size_t)i, 0, call->me - 1, index);
        else if (call->kind != EXSCAN)
            expect_sum(call, (size_t)i, 0, call->ranks - 1, index);
    }
}

/* Makes the buffers of the call. */
static void prepare(struct random_call *call)
{
    size_t out = (size_t)call->count, in;
    int mine = block(call, call->root, call->me); /* without blocks from each rank */

    if (call->kind == BARRIER)
        return;
    if (blocks_out(call))
        out = arrange(call, true, call->send_counts, call->send_places);
    else if (has_gaps(call))
        out = (size_t)block(call, call->me, call->me);
    if (blocks_in(call))
        in = arrange(call, false, call->counts, call->places);
    else
        in = call->in_place && is_reduce_scatter(call) ? out : (size_t)mine;
    if (receives(call))
        open_buffer(&call->receive, in * call->type->extent);
    if (sends(call))
        open_buffer(&call->send, out * call->type->extent);
    if (sends(call) || (call->in_place && contributes(call)))
        write_input(call, out);
    if (receives(call))
        write_expected(call, mine);
}

/* Checks a call that has ended, and frees it. */
static void end_call(struct random_call *call)
{
    if (call->send.memory != NULL)
        check_buffer(call, &call->send, "a changed input");
    if (call->receive.memory != NULL)
        check_buffer(call, &call->receive, "a changed byte beside the result");
    close_buffer(&call->send);
    close_buffer(&call->receive);
    free(call->send_counts);
    free(call->types);
    free(call);
}

static void drop_pending(int at)
{
    struct random_call *call = pending[at];

    pending[at] = pending[--pending_count];
    end_call(call);
}

/* Completes one request, by a way that this rank draws. */
static void complete_one(void)
{
    MPI_Request requests[PENDING];
    int at = (int)draw_below(&own, (uint64_t)pending_count), done = 0, indices[PENDING];

    for (int i = 0; i < pending_count; i++)
        requests[i] = pending[i]->request;
    switch (draw_below(&own, 5)) {
    case 0:
        MPI_Wait(&requests[at], MPI_STATUS_IGNORE);
        break;
    case 1:
        MPI_Waitany(pending_count, requests, &at, MPI_STATUS_IGNORE);
        break;
    case 2:
        while (!done) {
            MPI_Test(&requests[at], &done, MPI_STATUS_IGNORE);
            usleep(20);
        }
        break;
    case 3:
        while (!done)
            MPI_Testany(pending_count, requests, &at, &done, MPI_STATUS_IGNORE);
        break;
    default:
        MPI_Waitsome(pending_count, requests, &done, indices, MPI_STATUSES_IGNORE);
        for (int i = 0; i < pending_count; i++)
            pending[i]->request = requests[i];
        for (int i = pending_count - 1; i >= 0; i--)
            for (int k = 0; k < done; k++)
                if (indices[k] == i) {
                    drop_pending(i);
                    break;
                }
        return;
    }
    drop_pending(at);
}

static void complete_all(void)
{
    MPI_Request requests[PENDING];

    while (pending_count > 0 && draw_below(&own, 2) == 0)
        complete_one();
    for (int i = 0; i < pending_count; i++)
        requests[i] = pending[i]->request;
    MPI_Waitall(pending_count, requests, MPI_STATUSES_IGNORE);
    while (pending_count > 0)
        drop_pending(pending_count - 1);
}

/* Leaves out what the MPIs themselves do wrong. */
static void avoid_faults(struct random_call *call)
{
#ifdef MPICH_VERSION
    if (call->kind == REDUCE && call->root > 0)
        call->in_place = false; /* MPICH 4.0 ends with SIGSEGV */
    if (call->kind >= ALLGATHER && call->type->class == PAIR)
        call->type = value_types; /* MPICH 4.0: Message truncated, where they have padding */
#else
    if (call->kind == EXSCAN)
        call->starts = false; /* Open MPI 4.1: wrong results of MPI_Iexscan */
#endif
}

/* One call of the family `f`; ranks outside it pass. */
static void one_call(struct draw *draw, int f)
{
    struct random_call *call = calloc(1, sizeof(*call));
    uint64_t how = draw_next(draw), where = draw_next(draw), large = draw_below(draw, 10);
    size_t bytes = large == 0 ? BYTES_MAX : large < 4 ? 20000 : large < 7 ? 1500 : 64;

    call->id = ++calls;
    call->kind = (enum call_kind)draw_below(draw, CALL_KINDS);
    if (draw_below(draw, 3) == 0)
        call->kind = (enum call_kind)draw_below(draw, 4);
    value_draw_type(draw, call->kind >= REDUCE && call->kind <= EXSCAN, &call->type, &call->op);
    call->count = draw_below(draw, 12) == 0 ? 0 : 1 + (int)draw_below(draw, bytes / call->type->extent + 1);
    call->starts = how % 5 < 2;
    call->in_place = how / 5 % 4 == 0 && call->kind != BARRIER && call->kind != BCAST;
    call->comm = families[f].comm;
    if (call->comm == MPI_COMM_NULL) {
        free(call);
        return;
    }
    MPI_Comm_size(call->comm, &call->ranks);
    MPI_Comm_rank(call->comm, &call->me);
    call->root = (int)(where % (uint64_t)call->ranks);
    if (blocks_in(call) || blocks_out(call))
        call->count = call->count / call->ranks + (call->count > 0);
    avoid_faults(call);
    call->send_counts = calloc((size_t)call->ranks, 4 * sizeof(int));
    call->send_places = call->send_counts + call->ranks;
    call->counts = call->send_places + call->ranks;
    call->places = call->counts + call->ranks;
    call->types = calloc((size_t)call->ranks, sizeof(MPI_Datatype));
    prepare(call);
    if (draw_below(&own, 8) == 0)
        usleep((useconds_t)draw_below(&own, 3000));
    if (getenv("RANDOM_TRACE") != NULL)
        fprintf(stderr, "rank %d call %llu: %s%s%s of %d %s on family %d\n", rank,
                (unsigned long long)call->id, call->starts ? "i" : "", call_names[call->kind],
                call->in_place ? " in place" : "", call->count, call->type->name, f);
    if (start(call) != MPI_SUCCESS)
        report(call, "an error", 0);
    if (!call->starts) {
        end_call(call);
        return;
    }
    pending[pending_count++] = call;
    if (pending_count == PENDING)
        complete_all();
    while (pending_count > 0 && draw_below(&own, 4) == 0)
        complete_one();
}

/* ---- communicators, and messages beside the calls ---- */

static void make_family(struct draw *draw, int f)
{
    uint64_t how = draw_below(draw, 6), salt = draw_next(draw), parent = draw_below(draw, FAMILIES);
    MPI_Comm from = families[parent].exists ? families[parent].comm : MPI_COMM_WORLD,
             *made = &families[f].comm;
    int members[64], count = 0, color = (int)(draw_mix(salt + (uint64_t)rank) % 3), dims[2] = {0, 0},
                     periods[2] = {1, 0};
    MPI_Group world, some;
    MPI_Request request;

    families[f].exists = true;
    *made = MPI_COMM_NULL;
    if (how < 2) { /* an order of their own */
        MPI_Comm_split(MPI_COMM_WORLD, color, (int)(draw_mix(salt * 3 + (uint64_t)rank) % 1000), made);
        return;
    }
    if (how == 2 || how == 3) {
        for (int i = 0; i < size && count < 64; i++) {
            int r = (i + (int)(salt % (uint64_t)size)) % size;

            if (draw_mix(salt + 99 + (uint64_t)r) % 3 > 0)
                members[count++] = r;
        }
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Group_incl(world, count, members, &some);
        if (how == 2)
            MPI_Comm_create(MPI_COMM_WORLD, some, made);
        else if (draw_mix(salt + 99 + (uint64_t)rank) % 3 > 0)
            MPI_Comm_create_group(MPI_COMM_WORLD, some, 5, made);
        MPI_Group_free(&some);
        MPI_Group_free(&world);
        return;
    }
    if (how == 4) {
        MPI_Dims_create(size, 2, dims);
        MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, made);
        return;
    }
    if (from == MPI_COMM_NULL)
        return;
    if (salt % 2 == 0) {
        MPI_Comm_dup(from, made);
    } else {
        MPI_Comm_idup(from, made, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void free_family(int f)
{
    complete_all();
    families[f].exists = false;
    if (families[f].comm != MPI_COMM_NULL)
        MPI_Comm_free(&families[f].comm);
}

/* A message to the next rank, beside whatever is pending. */
static void pass_on(int f)
{
    int ranks, me, got = -1;

    if (families[f].comm == MPI_COMM_NULL)
        return;
    MPI_Comm_size(families[f].comm, &ranks);
    MPI_Comm_rank(families[f].comm, &me);
    MPI_Sendrecv(&me, 1, MPI_INT, (me + 1) % ranks, 3, &got, 1, MPI_INT, (me + ranks - 1) % ranks, 3,
                 families[f].comm, MPI_STATUS_IGNORE);
    if (got != (me + ranks - 1) % ranks && wrong++ < 5)
        printf("WRONG seed %llu: a message\n", (unsigned long long)seed);
}

int main(int argc, char **argv)
{
    int steps = argc > 2 ? atoi(argv[2]) : 300;
    struct draw draw;
    char what[80];

    seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    draw.state = draw_mix(seed);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    own.state = draw_mix(seed ^ draw_mix((uint64_t)rank + 1000));
    value_open(seed);
    families[0] = (struct family){MPI_COMM_WORLD, true};
    for (int i = 0; i < steps; i++) {
        int f = (int)draw_below(&draw, FAMILIES);
        uint64_t act = draw_below(&draw, 100);

        if (act < 6 && f > 0 && families[f].exists)
            free_family(f);
        else if (act < 12 && f > 0 && !families[f].exists)
            make_family(&draw, f);
        else if (act < 16)
            pass_on(families[f].exists ? f : 0);
        else
            one_call(&draw, families[f].exists ? f : 0);
    }
    complete_all();
    for (int f = 1; f < FAMILIES; f++)
        if (families[f].exists)
            free_family(f);
    snprintf(what, sizeof(what), "random program, seed %llu, %llu calls", (unsigned long long)seed,
             (unsigned long long)calls);
    verdict(what, wrong);
    value_close();
    MPI_Finalize();
    return wrong_in_all != 0;
}
