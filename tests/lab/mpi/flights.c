/*
 * Non-blocking collectives: values of each call, several in flight at once, every way to complete
 * them, beside messages and blocking calls. A plain MPI program without any call of banyan. Rank 0
 * prints one line for each check; exit 1 if one is wrong. With the argument "multiple" it asks MPI
 * for threads.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lab/mpi/verdict.h"

#define RANKS 64
#define LARGE (1 << 20) /* 4 MiB of ints */

enum mpi_kind { ALLREDUCE, REDUCE, BCAST, ALLGATHER, ALLGATHERV, SCATTER_BLOCK, SCATTER, BARRIER, KINDS };
enum { INT, DOUBLE, SHORT, LONG, GAPS, TYPES }; /* GAPS: an int in the first half of its place */

struct mpi_flight {
    enum mpi_kind kind;
    int type, count, root, in_place;
    char *in, *out;
    int counts[RANKS], places[RANKS];
    MPI_Request request;
};

static const size_t bytes_of[TYPES] = {4, 8, 2, 8, 8};
static const char *const names[KINDS] = {"allreduce",      "reduce",     "bcast",
                                         "allgather",      "allgatherv", "reduce_scatter_block",
                                         "reduce_scatter", "barrier"};

static int64_t value(int r, int i)
{
    return (r + 1) * 10 + i % 7;
}

static int64_t reduced(int type, int i)
{
    return type == LONG ? value(size - 1, i) : size * (size + 1) / 2 * 10 + size * (i % 7);
}

static void set(const struct mpi_flight *f, char *at, int i, int64_t v)
{
    switch (f->type) {
    case DOUBLE:
        ((double *)at)[i] = (double)v;
        break;
    case SHORT:
        ((int16_t *)at)[i] = (int16_t)v;
        break;
    case LONG:
        ((int64_t *)at)[i] = v;
        break;
    case GAPS:
        ((int32_t *)at)[2 * i] = (int32_t)v;
        ((int32_t *)at)[2 * i + 1] = -5;
        break;
    default:
        ((int32_t *)at)[i] = (int32_t)v;
    }
}

static int differs(const struct mpi_flight *f, const char *at, int i, int64_t v)
{
    switch (f->type) {
    case DOUBLE:
        return ((const double *)at)[i] < (double)v || ((const double *)at)[i] > (double)v;
    case SHORT:
        return ((const int16_t *)at)[i] != v;
    case LONG:
        return ((const int64_t *)at)[i] != v;
    case GAPS:
        return ((const int32_t *)at)[2 * i] != v || ((const int32_t *)at)[2 * i + 1] != -5;
    default:
        return ((const int32_t *)at)[i] != v;
    }
}

static int reduces(enum mpi_kind kind)
{
    return kind == ALLREDUCE || kind == REDUCE || kind == SCATTER_BLOCK || kind == SCATTER;
}

/* Elements of the own share of a scatter; of the first `ranks` shares of an operation. */
static int share(const struct mpi_flight *f, int r)
{
    return f->kind == ALLGATHERV || f->kind == SCATTER ? f->counts[r] : f->count;
}

static int before(const struct mpi_flight *f, int ranks)
{
    int sum = 0;

    for (int r = 0; r < ranks; r++)
        sum += share(f, r);
    return sum;
}

static void fill(struct mpi_flight *f)
{
    int whole = f->kind < ALLGATHER ? f->count : before(f, size), mine = before(f, rank);
    int is_scatter = f->kind == SCATTER || f->kind == SCATTER_BLOCK;

    for (int i = 0; i < whole; i++) {
        set(f, f->in, i, value(rank, i));
        set(f, f->out, i, -1);
    }
    if (f->kind == BCAST)
        for (int i = 0; i < f->count; i++)
            set(f, f->out, i, rank == f->root ? value(rank, i) : -1);
    if (!f->in_place || (f->kind == REDUCE && rank != f->root))
        return;
    for (int i = 0; i < (is_scatter ? whole : share(f, rank)); i++)
        set(f, f->out, i + (f->kind == ALLGATHER || f->kind == ALLGATHERV ? mine : 0), value(rank, i));
}

static int check(const struct mpi_flight *f)
{
    int wrong = 0, mine = before(f, rank);

    switch (f->kind) {
    case ALLREDUCE:
        for (int i = 0; i < f->count; i++)
            wrong += differs(f, f->out, i, reduced(f->type, i));
        break;
    case REDUCE:
        for (int i = 0; i < f->count; i++)
            wrong += differs(f, f->out, i, rank == f->root ? reduced(f->type, i) : -1);
        break;
    case BCAST:
        for (int i = 0; i < f->count; i++)
            wrong += differs(f, f->out, i, value(f->root, i));
        break;
    case ALLGATHER:
    case ALLGATHERV:
        for (int r = 0; r < size; r++)
            for (int i = 0; i < share(f, r); i++)
                wrong += differs(f, f->out, before(f, r) + i, value(r, i));
        break;
    case SCATTER_BLOCK:
    case SCATTER:
        for (int i = 0; i < share(f, rank); i++)
            wrong += differs(f, f->out, i, reduced(f->type, mine + i));
        break;
    case BARRIER:
    case KINDS:
        break;
    }
    if (wrong > 0)
        printf("rank %d: %s of %d, type %d%s: %d elements are wrong\n", rank, names[f->kind], f->count,
               f->type, f->in_place ? ", in place" : "", wrong);
    return wrong;
}

static void make(struct mpi_flight *f, enum mpi_kind kind, int type, int count, int in_place)
{
    size_t room;

    memset(f, 0, sizeof(*f));
    f->kind = kind;
    f->type = type;
    f->count = count;
    f->in_place = in_place && kind != BCAST && kind != BARRIER;
    f->root = count % 3 % size;
    for (int r = 0, place = 0; r < size; place += f->counts[r++]) {
        f->counts[r] = r == 1 ? 0 : count > r ? count - r : count; /* rank 1 has nothing */
        f->places[r] = place;
    }
    room = (size_t)(count + 1) * (size_t)(kind < ALLGATHER ? 1 : size) * bytes_of[type];
    f->in = malloc(room);
    f->out = malloc(room);
    if (f->in == NULL || f->out == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
}

static void unmake(struct mpi_flight *f)
{
    free(f->in);
    free(f->out);
}

static MPI_Datatype type_of(const struct mpi_flight *f, MPI_Datatype *own)
{
    static const int of[] = {INT, DOUBLE, SHORT, LONG};
    const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_SHORT, MPI_INT64_T};

    *own = MPI_DATATYPE_NULL;
    for (int i = 0; i < 4; i++)
        if (f->type == of[i])
            return types[i];
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int32_t), own);
    MPI_Type_commit(own);
    return *own;
}

/* Types are freed while the call is under way. */
static void start(struct mpi_flight *f, int blocking)
{
    MPI_Datatype own, type = type_of(f, &own);
    MPI_Op op = f->type == LONG ? MPI_MAX : MPI_SUM;
    const void *in = f->in_place ? MPI_IN_PLACE : f->in;

#define DO(name, iname, ...)                                                                                 \
    if (blocking)                                                                                            \
        MPI_##name(__VA_ARGS__, MPI_COMM_WORLD);                                                             \
    else                                                                                                     \
        MPI_##iname(__VA_ARGS__, MPI_COMM_WORLD, &f->request);                                               \
    break;
    f->request = MPI_REQUEST_NULL;
    switch (f->kind) {
    case ALLREDUCE:
        DO(Allreduce, Iallreduce, in, f->out, f->count, type, op)
    case REDUCE:
        if (rank != f->root)
            in = f->in;
        DO(Reduce, Ireduce, in, f->out, f->count, type, op, f->root)
    case BCAST:
        DO(Bcast, Ibcast, f->out, f->count, type, f->root)
    case ALLGATHER:
        DO(Allgather, Iallgather, in, f->count, type, f->out, f->count, type)
    case ALLGATHERV:
        DO(Allgatherv, Iallgatherv, in, f->counts[rank], type, f->out, f->counts, f->places, type)
    case SCATTER_BLOCK:
        DO(Reduce_scatter_block, Ireduce_scatter_block, in, f->out, f->count, type, op)
    case SCATTER:
        DO(Reduce_scatter, Ireduce_scatter, in, f->out, f->counts, type, op)
    case BARRIER:
    case KINDS:
        if (blocking)
            MPI_Barrier(MPI_COMM_WORLD);
        else
            MPI_Ibarrier(MPI_COMM_WORLD, &f->request);
    }
#undef DO
    if (own != MPI_DATATYPE_NULL)
        MPI_Type_free(&own);
}

/* ---- each call */

static void each(void)
{
    static const int counts[] = {0, 1, 13, 5003, LARGE};

    for (enum mpi_kind kind = ALLREDUCE; kind < KINDS; kind++) {
        int wrong = 0;
        char what[80];

        for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
            for (int type = 0; type < TYPES; type++)
                for (int in_place = 0; in_place < 2; in_place++) {
                    struct mpi_flight f;
                    int is_large = counts[c] == LARGE;

                    if ((reduces(kind) && type == GAPS) || (is_large && (type != INT || in_place)))
                        continue;
                    make(&f, kind, type, is_large && kind >= ALLGATHER ? LARGE / size : counts[c], in_place);
                    fill(&f);
                    start(&f, 0);
                    MPI_Wait(&f.request, MPI_STATUS_IGNORE);
                    wrong += check(&f) + (f.request != MPI_REQUEST_NULL);
                    unmake(&f);
                }
        snprintf(what, sizeof(what), "non-blocking %s", names[kind]);
        verdict(what, wrong);
    }
}

/* ---- many at once */

#define MANY 24

static void finish(int how, MPI_Request *requests, int count)
{
    int left = count, flag = 0, index, done, indices[MANY + 4];

    switch (how) {
    case 0:
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        break;
    case 1:
        for (; left > 0; left--)
            MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
        break;
    case 2:
        for (; left > 0; left -= done)
            MPI_Waitsome(count, requests, &done, indices, MPI_STATUSES_IGNORE);
        break;
    case 3:
        while (!flag)
            MPI_Testall(count, requests, &flag, MPI_STATUSES_IGNORE);
        break;
    case 4:
        while (left > 0) {
            MPI_Testany(count, requests, &index, &flag, MPI_STATUS_IGNORE);
            left -= flag;
        }
        break;
    case 5:
        for (; left > 0; left -= done)
            MPI_Testsome(count, requests, &done, indices, MPI_STATUSES_IGNORE);
        break;
    case 6: /* the last first */
        for (int i = count; i-- > 0; flag = 0)
            while (!flag)
                MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
        break;
    default:
        for (int i = 0; i < count; i++, flag = 0) {
            while (!flag)
                MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE);
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        }
    }
}

static void many(int how)
{
    static struct mpi_flight f[MANY], blocking;
    MPI_Request requests[MANY + 2];
    int32_t out[1000], in[1000], wrong = 0;
    char what[80];

    for (int i = 0; i < MANY; i++) {
        make(&f[i], (enum mpi_kind)((i + how) % KINDS), i % 4, i % 5 == 0 ? 100000 / size : 37 * i, i % 2);
        fill(&f[i]);
    }
    make(&blocking, ALLREDUCE, INT, 5003, 0);
    fill(&blocking);
    for (int i = 0; i < 1000; i++)
        out[i] = rank * 1000 + i;
    MPI_Irecv(in, 1000, MPI_INT, (rank + size - 1) % size, 9, MPI_COMM_WORLD, &requests[MANY]);
    for (int i = 0; i < MANY; i++) {
        start(&f[i], 0);
        requests[i] = f[i].request;
        if (i == MANY / 2)
            start(&blocking, 1);
    }
    MPI_Isend(out, 1000, MPI_INT, (rank + 1) % size, 9, MPI_COMM_WORLD, &requests[MANY + 1]);
    wrong += check(&blocking);
    finish(how, requests, MANY + 2);
    for (int i = 0; i < MANY + 2; i++)
        wrong += requests[i] != MPI_REQUEST_NULL;
    for (int i = 0; i < 1000; i++)
        wrong += in[i] != (rank + size - 1) % size * 1000 + i;
    for (int i = 0; i < MANY; i++) {
        wrong += check(&f[i]);
        unmake(&f[i]);
    }
    unmake(&blocking);
    snprintf(what, sizeof(what), "%d at once with messages and a blocking call, completed in way %d", MANY,
             how);
    verdict(what, wrong);
}

/* More than run at once; then a message that other ranks wait for. */
static void more(void)
{
    static MPI_Request requests[200];
    static int32_t in[200], out[200];
    int wrong = 0, token = 0;

    for (int i = 0; i < 200; i++) {
        in[i] = rank + i;
        MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
        if (i == 150 && rank == 0)
            MPI_Send(&token, 1, MPI_INT, 1, 4, MPI_COMM_WORLD);
        if (i == 0 && rank == 1)
            MPI_Recv(&token, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Waitall(200, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 200; i++)
        wrong += out[i] != size * (size - 1) / 2 + size * i;
    verdict("200 at once, while one rank waits for a message", wrong);
}

/* The first call of the program; a rank may wait for what another does after it. */
static void first(void)
{
    int one = 1, sum = 0, token = 0;
    MPI_Request request;

    if (rank == 1)
        MPI_Recv(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    if (rank == 0)
        MPI_Send(&token, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    verdict("a non-blocking call before all others", sum != size);
}

/* A rank that waits for a message moves the packets of its calls meanwhile. */
static void elsewhere(void)
{
    struct mpi_flight f;
    int token = 0;

    make(&f, ALLREDUCE, INT, LARGE, 0);
    fill(&f);
    start(&f, 0);
    if (rank == 0)
        MPI_Recv(&token, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&f.request, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(&token, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
    verdict("a rank that waits for a message meanwhile", check(&f));
    unmake(&f);
}

/* MPI has one order of calls for each communicator, not over all of them. */
static void orders(void)
{
    int in[2] = {1, rank}, out[2] = {0, 0};
    MPI_Request requests[2];
    MPI_Comm both[2] = {MPI_COMM_WORLD, MPI_COMM_NULL};

    MPI_Comm_dup(MPI_COMM_WORLD, &both[1]);
    for (int i = 0; i < 2; i++) {
        int which = (i + rank) % 2;

        MPI_Iallreduce(&in[which], &out[which], 1, MPI_INT, MPI_SUM, both[which], &requests[which]);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    verdict("two communicators in different orders", out[0] != size || out[1] != size * (size - 1) / 2);
    MPI_Comm_free(&both[1]);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int level;

    if (strcmp(what, "multiple") == 0)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2 || size > RANKS) {
        fprintf(stderr, "flights: 2 to %d ranks\n", RANKS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    first();
    each();
    for (int how = 0; how < 8; how++)
        many(how);
    more();
    elsewhere();
    orders();
    MPI_Bcast(&wrong_in_all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return wrong_in_all != 0;
}
