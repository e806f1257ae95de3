/*
 * Communicators of an MPI program: every way to make one, all collectives with checked results,
 * non-blocking calls of several in different orders, many at once, and many one after another.
 *
 *   groups shapes
 *   groups loop SECONDS
 *   groups again COUNT    makes, uses and frees the same communicators again and again, and some
 *                         while a call of theirs still runs on one rank
 *   groups many COUNT
 *   groups full COUNT     the same after others have been freed, whose jobs are kept
 *   groups later COUNT    makes so many, frees 20 of them, and calls the last one often
 *   groups unused COUNT   makes communicators and calls each once
 *   groups parents COUNT  makes communicators of others, which are used for nothing else
 *   groups nowait ROUNDS  only calls that do not wait, while ranks are far apart
 *   groups kill           the last rank of each pair stops before a call of the pair
 *   groups stopped COUNT  the last rank of all stops before a call of COUNT communicators
 *   groups killed COUNT   the same, but it is killed
 *   groups hundred LOOPS  in each loop makes, uses and frees 100 communicators, four at once
 *   groups near COUNT     communicators of ranks on one host, on several hosts at once; then makes
 *                         and frees COUNT of them
 */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lab/mpi/verdict.h"

#define COUNT    3000
#define RANKS    64
#define MANY_MAX 256
#define ROUNDS   4

static int value(int rank, int i)
{
    return (int)((unsigned)(rank + 1) * 1000003u + (unsigned)i * 7u);
}

/* The ranks of MPI_COMM_WORLD in the communicator. */
static int members_of(MPI_Comm comm, int *member)
{
    MPI_Group part, all;
    int count, order[RANKS];

    MPI_Comm_size(comm, &count);
    for (int i = 0; i < count; i++)
        order[i] = i;
    MPI_Comm_group(comm, &part);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_translate_ranks(part, count, order, all, member);
    MPI_Group_free(&part);
    MPI_Group_free(&all);
    return count;
}

static int sum_at(const int *member, int count, int i)
{
    unsigned sum = 0;

    for (int r = 0; r < count; r++)
        sum += (unsigned)value(member[r], i);
    return (int)sum;
}

/* Runs every collective that trees carry. Returns the wrong elements. */
static int check_all(MPI_Comm comm)
{
    static int in[COUNT * RANKS], out[COUNT * RANKS], counts[RANKS], places[RANKS];
    int member[RANKS], count = members_of(comm, member), own, wrong = 0;

    MPI_Comm_rank(comm, &own);
    for (int i = 0; i < COUNT * count; i++)
        in[i] = value(rank, i);
    MPI_Allreduce(in, out, COUNT, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < COUNT; i++)
        wrong += out[i] != sum_at(member, count, i);
    MPI_Allgather(in, COUNT, MPI_INT, out, COUNT, MPI_INT, comm);
    for (int i = 0; i < COUNT * count; i++)
        wrong += out[i] != value(member[i / COUNT], i % COUNT);
    for (int r = 0, at = 0; r < count; at += counts[r++]) {
        counts[r] = 100 + 10 * r;
        places[r] = at;
    }
    MPI_Allgatherv(in, counts[own], MPI_INT, out, counts, places, MPI_INT, comm);
    for (int r = 0; r < count; r++)
        for (int i = 0; i < counts[r]; i++)
            wrong += out[places[r] + i] != value(member[r], i);
    MPI_Reduce_scatter_block(in, out, COUNT, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < COUNT; i++)
        wrong += out[i] != sum_at(member, count, own * COUNT + i);
    MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < counts[own]; i++)
        wrong += out[i] != sum_at(member, count, places[own] + i);
    for (int root = 0; root < count; root++) {
        memcpy(out, in, COUNT * sizeof(*in));
        MPI_Bcast(out, COUNT, MPI_INT, root, comm);
        for (int i = 0; i < COUNT; i++)
            wrong += out[i] != value(member[root], i);
        MPI_Reduce(in, out, COUNT, MPI_INT, MPI_SUM, root, comm);
        for (int i = 0; i < COUNT && own == root; i++)
            wrong += out[i] != sum_at(member, count, i);
    }
    for (int i = 0; i < COUNT * count; i++)
        in[i] = value(rank, member[i / COUNT] * COUNT + i % COUNT);
    MPI_Alltoall(in, COUNT, MPI_INT, out, COUNT, MPI_INT, comm);
    for (int i = 0; i < COUNT * count; i++)
        wrong += out[i] != value(member[i / COUNT], member[own] * COUNT + i % COUNT);
    for (int root = 0; root < count; root++) {
        MPI_Scatter(in, COUNT, MPI_INT, out, COUNT, MPI_INT, root, comm);
        for (int i = 0; i < COUNT; i++)
            wrong += out[i] != value(member[root], member[own] * COUNT + i);
        MPI_Gather(in, COUNT, MPI_INT, out, COUNT, MPI_INT, root, comm);
        for (int i = 0; i < COUNT * count && own == root; i++)
            wrong += out[i] != value(member[i / COUNT], member[0] * COUNT + i % COUNT);
    }
    MPI_Barrier(comm);
    return wrong;
}

static void shape(const char *what, MPI_Comm comm)
{
    int wrong = 0;

    for (int round = 0; round < ROUNDS && comm != MPI_COMM_NULL; round++)
        wrong += check_all(comm);
    verdict(what, wrong);
}

/* Non-blocking calls of three communicators, which each rank starts in an order of its own. */
static void orders(MPI_Comm one, MPI_Comm two)
{
    MPI_Comm comm[3] = {MPI_COMM_WORLD, one, two};
    static int in[COUNT], out[3][ROUNDS][COUNT];
    int wrong = 0, member[RANKS];

    for (int i = 0; i < COUNT; i++)
        in[i] = value(rank, i);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request[3];

        for (int k = 0; k < 3; k++) {
            int c = (rank + round) % 2 ? 2 - k : k;

            MPI_Iallreduce(in, out[c][round], COUNT, MPI_INT, MPI_SUM, comm[c], &request[k]);
        }
        for (int k = 0; k < 3; k++)
            MPI_Wait(&request[k], MPI_STATUS_IGNORE);
        for (int c = 0; c < 3; c++) {
            int count = members_of(comm[c], member);

            for (int i = 0; i < COUNT; i++)
                wrong += out[c][round][i] != sum_at(member, count, i);
        }
    }
    /* a communicator that is freed while its call runs */
    for (int round = 0; round < 2; round++) {
        MPI_Comm copy;
        MPI_Request request;

        MPI_Comm_dup(one, &copy);
        for (int k = 0; k < 3; k++)
            MPI_Barrier(copy);
        MPI_Iallreduce(in, out[0][0], COUNT, MPI_INT, MPI_SUM, copy, &request);
        MPI_Comm_free(&copy);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0, count = members_of(one, member); i < COUNT; i++)
            wrong += out[0][0][i] != sum_at(member, count, i);
    }
    verdict("non-blocking calls of three communicators in different orders", wrong);
}

static void shapes(void)
{
    MPI_Comm rows, columns, copy, back, cart, sub, some = MPI_COMM_NULL, host, made, inner, across, merged;
    int sizes[2] = {2, size / 2}, periods[2] = {0, 0}, kept[2] = {0, 1}, list[RANKS];
    MPI_Group all, part;

    MPI_Comm_split(MPI_COMM_WORLD, rank / (size / 2), rank, &rows);
    MPI_Comm_split(MPI_COMM_WORLD, rank % (size / 2), rank, &columns);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &back);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 1, &cart);
    MPI_Cart_sub(cart, kept, &sub);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    for (int i = 0; i < size - 1; i++)
        list[i] = size - 1 - i;
    MPI_Group_incl(all, size - 1, list, &part); /* all but rank 0, reversed */
    if (rank > 0)
        MPI_Comm_create_group(MPI_COMM_WORLD, part, 5, &some);
    MPI_Comm_create(MPI_COMM_WORLD, part, &made);
    MPI_Comm_split(back, rank == 0 || rank == size - 1 ? 0 : MPI_UNDEFINED, 0, &inner);

    shape("rows", rows);
    shape("columns", columns);
    shape("reversed order", back);
    shape("a copy", copy);
    shape("a grid", cart);
    shape("rows of the grid", sub);
    shape("create_group, reversed", some);
    shape("create", made);
    shape("split of a split", inner);
    shape("ranks of one host", host);
    shape("all ranks", MPI_COMM_WORLD);
    /* In each merge Open MPI broadcasts a type of its own over the halves; the first such call
     * makes the trees of a half, the others use them. */
    MPI_Intercomm_create(rows, 0, MPI_COMM_WORLD, rank < size / 2 ? size / 2 : 0, 6, &across);
    for (int i = 0; i < 3; i++) {
        if (i > 0)
            MPI_Comm_free(&merged);
        MPI_Intercomm_merge(across, rank < size / 2, &merged);
    }
    shape("merged halves", merged);
    orders(copy, rows);
    MPI_Comm_free(&rows);
    MPI_Comm_free(&columns);
    MPI_Comm_free(&back);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&sub);
    MPI_Comm_free(&cart);
    MPI_Comm_free(&host);
    MPI_Comm_free(&across);
    MPI_Comm_free(&merged);
    if (some != MPI_COMM_NULL)
        MPI_Comm_free(&some);
    if (made != MPI_COMM_NULL)
        MPI_Comm_free(&made);
    if (inner != MPI_COMM_NULL)
        MPI_Comm_free(&inner);
    MPI_Group_free(&all);
    MPI_Group_free(&part);
}

static int sum_over(MPI_Comm comm)
{
    int mine = rank, sum;

    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
    return sum;
}

#define LOOP_LEAST 8

/* Makes pairs of communicators for so long, and at least LOOP_LEAST of them. */
static void loop(double seconds)
{
    double begin = MPI_Wtime();
    int wrong = 0, made = 0, last = 0;

    while (!last) {
        MPI_Comm comm;

        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &comm);
        for (int i = 0; i < 4; i++)
            wrong += sum_over(comm) != (rank % 2 ? size * size / 4 : (size / 2 - 1) * (size / 2));
        MPI_Comm_free(&comm);
        made++;
        last = MPI_Wtime() - begin > seconds && made >= LOOP_LEAST;
        MPI_Bcast(&last, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("%d pairs of communicators in a loop\n", made);
    verdict("communicators made and freed in a loop", wrong);
}

/* The entries of a folder. */
static int entries_of(const char *name)
{
    DIR *folder = opendir(name);
    int count = 0;

    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        closedir(folder);
    return count;
}

#define AT_ONCE 4

/* Makes four communicators, calls each, and frees them. */
static int use_four(int number)
{
    static const int order[AT_ONCE] = {1, -1, 1, -1};
    const int color[AT_ONCE] = {0, 0, rank % 2, rank / (size / 2)};
    MPI_Comm comm[AT_ONCE];
    int wrong = 0;

    for (int c = 0; c < AT_ONCE; c++)
        MPI_Comm_split(MPI_COMM_WORLD, color[c], order[c] * rank, &comm[c]);
    for (int call = 0; call < 2; call++) {
        for (int c = 0; c < AT_ONCE; c++) {
            int member[RANKS], count = members_of(comm[c], member), root = (number + call) % count;
            int mine = value(rank, number + call), sum, first = mine;

            MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm[c]);
            MPI_Bcast(&first, 1, MPI_INT, root, comm[c]);
            wrong +=
                sum != sum_at(member, count, number + call) || first != value(member[root], number + call);
        }
    }
    for (int c = 0; c < AT_ONCE; c++)
        MPI_Comm_free(&comm[c]);
    return wrong;
}

static void hundred(int loops)
{
    double begin = MPI_Wtime();
    int wrong = 0, files = 0;

    for (int loop = 0; loop < loops; loop++) {
        if (loop == loops / 2)
            files = entries_of("/proc/self/fd");
        for (int four = 0; four < 100 / AT_ONCE; four++)
            wrong += use_four(loop * 100 + four);
    }
    wrong += entries_of("/proc/self/fd") > files + AT_ONCE; /* of jobs that have just begun or ended */
    if (rank == 0)
        printf("%d times 100 communicators in %.0f s\n", loops, MPI_Wtime() - begin);
    verdict("100 communicators made and freed in a loop", wrong);
}

/* A communicator of the same ranks as one that has been freed before. */
static int call_again(int color, int key, int round)
{
    static int in[COUNT], out[COUNT], late[COUNT];
    int member[RANKS], count, wrong = 0, own;
    MPI_Request request;
    MPI_Comm comm;

    MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm);
    count = members_of(comm, member);
    MPI_Comm_rank(comm, &own);
    for (int call = 0; call < 6; call++) {
        int elements = 1 + (round * 37 + call * 501) % (COUNT - 10);

        for (int i = 0; i < elements; i++)
            in[i] = value(rank, round + call + i);
        MPI_Allreduce(in, out, elements, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < elements; i++)
            wrong += out[i] != sum_at(member, count, round + call + i);
        memcpy(out, in, (size_t)elements * sizeof(*in));
        MPI_Bcast(out, elements, MPI_INT, call % count, comm);
        for (int i = 0; i < elements; i++)
            wrong += out[i] != value(member[call % count], round + call + i);
    }
    if (round % 5 != 4) {
        MPI_Comm_free(&comm);
        return wrong;
    }
    for (int i = 0; i < 100; i++)
        in[i] = value(rank, round + 5 + i);
    /* it ends at each rank when this call does, which the ranks complete at different times */
    MPI_Iallreduce(in, late, 100, MPI_INT, MPI_SUM, comm, &request);
    MPI_Comm_free(&comm);
    if (own % 2)
        usleep(2000);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < 100; i++)
        wrong += late[i] != sum_at(member, count, round + 5 + i);
    return wrong;
}

static void again(int count)
{
    int wrong = 0;

    for (int round = 0; round < count; round++) {
        wrong += call_again(rank / (size / 2), rank, round);
        wrong += call_again(rank % (size / 2), rank, round);
        wrong += call_again(0, -rank, round);
        wrong += call_again(0, round % 3 ? rank : -rank, round);
    }
    verdict("communicators of ranks that have had one", wrong);
}

static void many(int count, int calls)
{
    MPI_Comm comm[MANY_MAX];
    int wrong = 0;

    for (int i = 0; i < count; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
    for (int call = 0; call < calls; call++)
        for (int i = 0; i < count; i++)
            wrong += sum_over(comm[i]) != size * (size - 1) / 2;
    for (int i = 0; i < count; i++)
        MPI_Comm_free(&comm[i]);
    verdict("communicators at once", wrong);
}

#define LATER 20

/* More communicators than can have jobs; the last one gets one when others have been freed. */
static void later(int count)
{
    MPI_Comm comm[MANY_MAX];
    int wrong = 0;

    for (int i = 0; i < count; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
    for (int call = 0; call < 4; call++)
        for (int i = 0; i < count; i++)
            wrong += sum_over(comm[i]) != size * (size - 1) / 2;
    for (int i = 0; i < LATER; i++)
        MPI_Comm_free(&comm[i]);
    for (int call = 0; call < 1500; call++)
        wrong += sum_over(comm[count - 1]) != size * (size - 1) / 2;
    for (int i = LATER; i < count; i++)
        MPI_Comm_free(&comm[i]);
    verdict("a communicator that is refused at first", wrong);
}

static void parents(int count)
{
    int wrong = 0;

    for (int i = 0; i < count; i++) {
        MPI_Comm comm[4];
        int own;

        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm[0]);
        MPI_Comm_dup(comm[0], &comm[1]);
        MPI_Comm_split(comm[0], 0, rank, &comm[2]);
        MPI_Comm_split(comm[1], rank % 2, rank, &comm[3]);
        MPI_Comm_rank(comm[2], &own);
        wrong += own != rank;
        MPI_Comm_rank(comm[3], &own);
        wrong += own != rank / 2;
        for (int c = 0; c < 4; c++)
            MPI_Comm_free(&comm[c]);
    }
    verdict("communicators that others are made of", wrong);
}

#define FREED 6

static void full(int count)
{
    MPI_Comm comm[FREED];
    int wrong = 0;

    for (int i = 0; i < FREED; i++)
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm[i]);
    for (int call = 0; call < 4; call++)
        for (int i = 0; i < FREED; i++)
            wrong += sum_over(comm[i]) != size * (size - 1) / 2;
    for (int i = 0; i < FREED; i++)
        MPI_Comm_free(&comm[i]);
    verdict("communicators whose jobs are kept", wrong);
    many(count, 5);
}

#define AHEAD   24 /* calls of a communicator that a rank has under way */
#define ELEMENT 40

/* Checks the sum of one call, of `number`. */
static int is_wrong(const int *out, const int *member, int count, int number)
{
    int wrong = 0;

    for (int i = 0; i < ELEMENT; i++)
        wrong += out[i] != sum_at(member, count, number + i);
    return wrong;
}

/* Calls that do not wait, on three communicators that nothing else uses, each rank in an order and
 * at a pace of its own. In each round a rank receives a message from the next one, which sends it
 * after the calls of the round have ended there: no call may wait for what a rank does later. */
static void nowait(int rounds)
{
    static int in[3][AHEAD][ELEMENT], out[3][AHEAD][ELEMENT];
    MPI_Request request[3 * AHEAD + 1];
    MPI_Comm comm[3], brief;
    int wrong = 0, token, number = 0, member[3][RANKS], count[3];

    MPI_Comm_split(MPI_COMM_WORLD, rank / (size / 2), -rank, &comm[0]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm[1]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % (size / 2), rank, &comm[2]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &brief);
    for (int c = 0; c < 3; c++)
        count[c] = members_of(comm[c], member[c]);
    for (int round = 0; round < rounds; round++) {
        int calls = 1 + round % AHEAD, started = 0;

        for (int call = 0; call < calls; call++)
            for (int k = 0; k < 3; k++) {
                int c = (rank + round) % 2 ? 2 - k : k;

                for (int i = 0; i < ELEMENT; i++)
                    in[c][call][i] = value(rank, number + call + i);
                MPI_Iallreduce(in[c][call], out[c][call], ELEMENT, MPI_INT, MPI_SUM, comm[c],
                               &request[started++]);
                if (rank == round % size)
                    usleep(500);
            }
        if (round < 4) /* freed while its job is requested */
            MPI_Ibarrier(brief, &request[started++]);
        if (round == 4)
            MPI_Comm_free(&brief);
        if (rank % 2 == 0)
            MPI_Recv(&token, 1, MPI_INT, rank + 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Waitall(started, request, MPI_STATUSES_IGNORE);
        if (rank % 2 == 1)
            MPI_Send(&rank, 1, MPI_INT, rank - 1, 9, MPI_COMM_WORLD);
        for (int c = 0; c < 3; c++)
            for (int call = 0; call < calls; call++)
                wrong += is_wrong(out[c][call], member[c], count[c], number + call);
        number += calls;
    }
    for (int c = 0; c < 3; c++)
        MPI_Comm_free(&comm[c]);
    verdict("communicators that only calls without a wait use", wrong);
}

/* Makes, uses and frees communicators of the ranks of each host. */
static void loop_near(MPI_Comm host, int count)
{
    static int in[COUNT], out[COUNT];
    int wrong = 0, files = 0, shared = 0, member[RANKS], ranks = members_of(host, member);

    for (int i = 0; i < COUNT; i++)
        in[i] = value(rank, i);
    for (int made = 0; made < count; made++) {
        MPI_Comm comm;

        if (made == count / 2) {
            MPI_Barrier(MPI_COMM_WORLD);
            files = entries_of("/proc/self/fd");
            shared = entries_of("/dev/shm");
        }
        MPI_Comm_dup(host, &comm);
        for (int call = 0; call < 4; call++) {
            MPI_Allreduce(in, out, COUNT, MPI_INT, MPI_SUM, comm);
            for (int i = 0; i < COUNT; i++)
                wrong += out[i] != sum_at(member, ranks, i);
        }
        MPI_Comm_free(&comm);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    wrong += entries_of("/proc/self/fd") > files;
    wrong += entries_of("/dev/shm") > shared;
    verdict("communicators of one host made and freed in a loop", wrong);
}

static void near(int count)
{
    MPI_Comm host, back, parts, odd;
    int own, ranks;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &own);
    MPI_Comm_size(host, &ranks);
    MPI_Comm_split(host, 0, -own, &back);
    MPI_Comm_split(host, own / 2, own, &parts);
    MPI_Comm_split(host, own % 3 == 1 ? 1 : 0, own, &odd);
    shape("ranks of one host", host);
    shape("ranks of one host, reversed", back);
    shape("pairs of one host", parts);
    shape("parts of one host", odd);
    orders(back, host);
    loop_near(back, count);
    MPI_Comm_free(&back);
    MPI_Comm_free(&parts);
    MPI_Comm_free(&odd);
    MPI_Comm_free(&host);
}

static void kill_one(void)
{
    char text[MPI_MAX_ERROR_STRING];
    double begin;
    MPI_Comm pair;
    static int mine[COUNT], sum[COUNT]; /* enough that MPI leaves it to banyan on one host, too */
    int code, length;

    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
    MPI_Comm_set_errhandler(pair, MPI_ERRORS_RETURN);
    for (int i = 0; i < 4; i++)
        MPI_Barrier(pair);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank % 2 == 1)
        raise(SIGSTOP);
    begin = MPI_Wtime();
    code = MPI_Allreduce(mine, sum, COUNT, MPI_INT, MPI_SUM, pair);
    MPI_Error_string(code, text, &length);
    printf("rank %d: an error after %.1f s: %s\n", rank, MPI_Wtime() - begin,
           code == MPI_SUCCESS ? "none" : text);
    fflush(stdout);
    sleep(1); /* the abort ends all ranks at once, even before they have printed it */
    MPI_Abort(MPI_COMM_WORLD, 3);
}

/* The last rank of all sends itself `number` before a call of `count` communicators. */
static void lose(int count, int number)
{
    static int mine[MANY_MAX], sum[MANY_MAX];
    MPI_Comm comm[MANY_MAX];
    MPI_Request request[MANY_MAX];
    char name[32], host[32];
    int named = 0;
    double begin;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* MPI calls it for requests */
    for (int i = 0; i < count; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
        MPI_Comm_set_errhandler(comm[i], MPI_ERRORS_RETURN);
        for (int call = 0; call < 4; call++)
            sum_over(comm[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1)
        raise(number);
    begin = MPI_Wtime();
    snprintf(name, sizeof(name), "rank %d", size - 1);
    snprintf(host, sizeof(host), "host%d", size - 1);
    for (int i = 0; i < count; i++)
        MPI_Iallreduce(&mine[i], &sum[i], 1, MPI_INT, MPI_SUM, comm[i], &request[i]);
    for (int i = 0; i < count; i++) {
        char text[MPI_MAX_ERROR_STRING] = "";
        int code = MPI_Wait(&request[i], MPI_STATUS_IGNORE), length;

        if (code != MPI_SUCCESS)
            MPI_Error_string(code, text, &length);
        named += strstr(text, name) != NULL || strstr(text, host) != NULL;
    }
    printf("rank %d: after %.1f s %d of %d calls have ended with the name of the rank\n", rank,
           MPI_Wtime() - begin, named, count);
    fflush(stdout);
    sleep(1); /* the abort ends all ranks at once, even before they have printed it */
    MPI_Abort(MPI_COMM_WORLD, 3);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int number = argc > 2 ? atoi(argv[2]) : 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(what, "shapes") == 0)
        shapes();
    else if (strcmp(what, "loop") == 0)
        loop(number);
    else if (strcmp(what, "again") == 0)
        again(number);
    else if (strcmp(what, "many") == 0 && number <= MANY_MAX)
        many(number, 5);
    else if (strcmp(what, "full") == 0 && number <= MANY_MAX)
        full(number);
    else if (strcmp(what, "later") == 0 && number > LATER && number <= MANY_MAX)
        later(number);
    else if (strcmp(what, "unused") == 0 && number <= MANY_MAX)
        many(number, 1);
    else if (strcmp(what, "parents") == 0)
        parents(number);
    else if (strcmp(what, "nowait") == 0)
        nowait(number);
    else if (strcmp(what, "near") == 0)
        near(number);
    else if (strcmp(what, "kill") == 0)
        kill_one();
    else if (strcmp(what, "stopped") == 0 && number <= MANY_MAX)
        lose(number, SIGSTOP);
    else if (strcmp(what, "killed") == 0 && number <= MANY_MAX)
        lose(number, SIGKILL);
    else if (strcmp(what, "hundred") == 0)
        hundred(number);
    MPI_Finalize();
    return wrong_in_all != 0;
}
