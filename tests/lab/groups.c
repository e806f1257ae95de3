/*
 * Communicators of some ranks of another one, with the shared library, like a user's program. One
 * process is one rank; the world's table comes from the controller. Prints "right" at the end, or
 * what is wrong; lab-groups.sh starts it on each host.
 *
 *   groups shapes        rows, columns, reversed order, copies, communicators of communicators;
 *                        with BANYAN_FALLBACK also all-to-all, scatter and gather of each
 *   groups loop SECONDS  makes, uses and frees communicators, one after another
 *   groups many COUNT    has COUNT communicators of all ranks at once, or reads why not
 *   groups leave         ends without freeing anything
 *   groups kill          the last rank of each pair of ranks ends in a call of the pair
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <banyan/banyan.h>

#define RANKS_MAX 64u
#define COUNT     5000u /* elements of each rank: several packets */
#define MANY_MAX  256u

static struct banyan_comm *world;
static unsigned wrong;

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void fail(const char *what)
{
    fprintf(stderr, "WRONG: rank %u: %s: %s\n", banyan_comm_rank(world), what, banyan_last_error());
    exit(1);
}

static void must(banyan_status_t status, const char *what)
{
    if (status != BANYAN_OK)
        fail(what);
}

/* What rank `rank` of the world contributes as element `i`. */
static int32_t value(uint32_t rank, uint32_t i)
{
    return (int32_t)((rank + 1) * 1000003u + i * 7u);
}

static void compare(const char *what, const int32_t *got, int32_t expected, uint32_t i)
{
    if (got[i] == expected)
        return;
    if (wrong++ < 5)
        fprintf(stderr, "WRONG: rank %u: %s: element %u is %d, not %d\n", banyan_comm_rank(world), what, i,
                got[i], expected);
}

/* What `from` sends to `to`, ranks of the world, as element `i`. */
static int32_t share(uint32_t from, uint32_t to, uint32_t i)
{
    return value(from, i) ^ (int32_t)(to * 7919u);
}

/* Runs all-to-all, scatter and gather, which need connections between the ranks. */
static void check_exchanges(const char *name, struct banyan_comm *comm, const uint32_t *member,
                            uint32_t count)
{
    static int32_t in[COUNT * RANKS_MAX], out[COUNT * RANKS_MAX];
    uint32_t rank = banyan_comm_rank(comm), own = member[rank], root = count - 1;
    char what[128];

    for (uint32_t i = 0; i < COUNT * count; i++)
        in[i] = share(own, member[i / COUNT], i % COUNT);
    snprintf(what, sizeof(what), "%s: all-to-all", name);
    must(banyan_alltoall(comm, in, out, COUNT, BANYAN_I32), what);
    for (uint32_t i = 0; i < COUNT * count; i++)
        compare(what, out, share(member[i / COUNT], own, i % COUNT), i);
    snprintf(what, sizeof(what), "%s: scatter", name);
    must(banyan_scatter(comm, in, out, COUNT, BANYAN_I32, root), what);
    for (uint32_t i = 0; i < COUNT; i++)
        compare(what, out, share(member[root], own, i), i);
    snprintf(what, sizeof(what), "%s: gather", name);
    must(banyan_gather(comm, in + (size_t)root * COUNT, out, COUNT, BANYAN_I32, root), what);
    for (uint32_t i = 0; i < COUNT * count && rank == root; i++)
        compare(what, out, share(member[i / COUNT], own, i % COUNT), i);
}

/* Runs every collective; `member` has the world's ranks of the communicator, in its order. */
static void check_all(const char *name, struct banyan_comm *comm, const uint32_t *member, uint32_t count)
{
    static int32_t in[COUNT * RANKS_MAX], out[COUNT * RANKS_MAX];
    uint32_t rank = banyan_comm_rank(comm), own = banyan_comm_rank(world);
    char what[128];

    snprintf(what, sizeof(what), "%s: its place", name);
    if (banyan_comm_size(comm) != count || member[rank] != own) {
        fprintf(stderr, "WRONG: rank %u: %s: rank %u of %u\n", own, what, rank, banyan_comm_size(comm));
        exit(1);
    }
    for (uint32_t i = 0; i < COUNT * count; i++)
        in[i] = value(own, i);
    snprintf(what, sizeof(what), "%s: allreduce", name);
    must(banyan_allreduce(comm, in, out, COUNT, BANYAN_I32, BANYAN_SUM), what);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t sum = 0;

        for (uint32_t r = 0; r < count; r++)
            sum += (uint32_t)value(member[r], i);
        compare(what, out, (int32_t)sum, i);
    }
    snprintf(what, sizeof(what), "%s: allgather", name);
    must(banyan_allgather(comm, in, out, COUNT, BANYAN_I32), what);
    for (uint32_t i = 0; i < COUNT * count; i++)
        compare(what, out, value(member[i / COUNT], i % COUNT), i);
    snprintf(what, sizeof(what), "%s: reduce-scatter", name);
    must(banyan_reduce_scatter(comm, in, out, COUNT, BANYAN_I32, BANYAN_SUM), what);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t sum = 0;

        for (uint32_t r = 0; r < count; r++)
            sum += (uint32_t)value(member[r], rank * COUNT + i);
        compare(what, out, (int32_t)sum, i);
    }
    for (uint32_t root = 0; root < count; root++) {
        snprintf(what, sizeof(what), "%s: broadcast from %u", name, root);
        memcpy(out, in, sizeof(in));
        must(banyan_broadcast(comm, out, COUNT, BANYAN_I32, root), what);
        for (uint32_t i = 0; i < COUNT; i++)
            compare(what, out, value(member[root], i), i);
        snprintf(what, sizeof(what), "%s: reduce to %u", name, root);
        must(banyan_reduce(comm, in, out, COUNT, BANYAN_I32, BANYAN_SUM, root), what);
        for (uint32_t i = 0; i < COUNT && root == rank; i++) {
            uint32_t sum = 0;

            for (uint32_t r = 0; r < count; r++)
                sum += (uint32_t)value(member[r], i);
            compare(what, out, (int32_t)sum, i);
        }
    }
    must(banyan_barrier(comm), name);
    if (getenv("BANYAN_FALLBACK") != NULL)
        check_exchanges(name, comm, member, count);
}

static int shapes(void)
{
    uint32_t size = banyan_comm_size(world), own = banyan_comm_rank(world), member[RANKS_MAX];
    uint32_t half_size = size / 2, outer = size - 2;
    struct banyan_comm *rows, *columns, *back, *copy, *half, *inner;

    must(banyan_comm_split(world, (int)(own % half_size), (int)own, &rows), "rows");
    must(banyan_comm_split(world, (int)(own / half_size), 0, &columns), "columns");
    must(banyan_comm_split(world, 7, -(int)own, &back), "reversed order");
    must(banyan_comm_dup(world, &copy), "a copy");
    must(banyan_comm_split(world, own == 0 ? BANYAN_UNDEFINED : 3, 0, &half), "all but one");
    for (unsigned round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 2; i++)
            member[i] = own % half_size + i * half_size;
        check_all("rows", rows, member, 2);
        for (uint32_t i = 0; i < size / 2; i++)
            member[i] = own / half_size * half_size + i;
        check_all("columns", columns, member, size / 2);
        for (uint32_t i = 0; i < size; i++)
            member[i] = size - 1 - i;
        check_all("reversed order", back, member, size);
        for (uint32_t i = 0; i < size; i++)
            member[i] = i;
        check_all("a copy", copy, member, size);
        check_all("the world", world, member, size);
        for (uint32_t i = 0; i + 1 < size; i++)
            member[i] = i + 1;
        if (own > 0)
            check_all("all but one", half, member, size - 1);
        else if (half != NULL)
            fail("a rank without a color has a communicator");
    }
    /* of the reversed order the first and the last: with two ranks on a host, on different hosts */
    must(banyan_comm_split(back, own == 0 || own > outer ? 0 : BANYAN_UNDEFINED, 0, &inner),
         "a communicator of another");
    member[0] = size - 1;
    member[1] = 0;
    if (own == 0 || own > outer)
        check_all("a communicator of another", inner, member, 2);
    if (inner != NULL)
        must(banyan_comm_destroy(inner), "free");
    must(banyan_comm_destroy(rows), "free");
    must(banyan_comm_destroy(columns), "free");
    must(banyan_comm_destroy(back), "free");
    must(banyan_comm_destroy(copy), "free");
    if (half != NULL)
        must(banyan_comm_destroy(half), "free");
    return 0;
}

static int loop(double seconds)
{
    double begin_ms = now_ms(), make_ms = 0;
    uint32_t own = banyan_comm_rank(world), size = banyan_comm_size(world), made = 0;
    int32_t mine = (int32_t)own, sum, last = 0;

    while (!last) {
        double at_ms = now_ms();
        struct banyan_comm *comm;

        must(banyan_comm_dup(world, &comm), "a copy");
        make_ms += now_ms() - at_ms;
        must(banyan_allreduce(comm, &mine, &sum, 1, BANYAN_I32, BANYAN_SUM), "its allreduce");
        if (sum != (int32_t)(size * (size - 1) / 2))
            fail("the sum");
        must(banyan_comm_destroy(comm), "free");
        made++;
        last = now_ms() - begin_ms >= seconds * 1e3;
        must(banyan_allreduce(world, &last, &last, 1, BANYAN_I32, BANYAN_MAX), "the world");
    }
    if (own == 0)
        printf("%u communicators made and freed, %.1f ms to make one\n", made, make_ms / made);
    return 0;
}

static int many(uint32_t wanted)
{
    static struct banyan_comm *comm[MANY_MAX];
    uint32_t own = banyan_comm_rank(world), size = banyan_comm_size(world), made = 0;
    int32_t mine = (int32_t)own, sum;

    while (made < wanted && banyan_comm_dup(world, &comm[made]) == BANYAN_OK)
        made++;
    if (made < wanted)
        printf("rank %u: refused: %s\n", own, banyan_last_error());
    for (unsigned round = 0; round < 2; round++)
        for (uint32_t i = made; i-- > 0;) {
            must(banyan_allreduce(comm[i], &mine, &sum, 1, BANYAN_I32, BANYAN_SUM), "one of many");
            if (sum != (int32_t)(size * (size - 1) / 2))
                fail("the sum of one of many");
        }
    must(banyan_barrier(world), "the world");
    for (uint32_t i = 0; i < made; i++)
        must(banyan_comm_destroy(comm[i]), "free");
    printf("rank %u: %u communicators at once\n", own, made);
    return 0;
}

static int kill_one(void)
{
    uint32_t own = banyan_comm_rank(world);
    struct banyan_comm *pair;
    int32_t mine = 1, sum;
    double at_ms;

    must(banyan_comm_split(world, (int)(own / 2), 0, &pair), "pairs");
    must(banyan_barrier(pair), "barrier");
    if (own % 2 == 1)
        raise(SIGKILL);
    at_ms = now_ms();
    if (banyan_allreduce(pair, &mine, &sum, 1, BANYAN_I32, BANYAN_SUM) == BANYAN_OK)
        fail("a sum without the other rank");
    printf("rank %u: an error after %.1f s: %s\n", own, (now_ms() - at_ms) / 1e3, banyan_last_error());
    banyan_comm_destroy(pair);
    return 0;
}

static int leave(void)
{
    struct banyan_comm *comm;

    for (unsigned i = 0; i < 5; i++)
        must(banyan_comm_dup(world, &comm), "a copy");
    must(banyan_barrier(comm), "its barrier");
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    long number = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    struct banyan_context *context;
    int status = 2;

    if (banyan_init(NULL, &context) != BANYAN_OK || banyan_comm_create(context, 0, &world) != BANYAN_OK) {
        fprintf(stderr, "WRONG: %s\n", banyan_last_error());
        return 1;
    }
    if (strcmp(what, "shapes") == 0)
        status = shapes();
    else if (strcmp(what, "loop") == 0)
        status = loop((double)number);
    else if (strcmp(what, "many") == 0 && number > 0 && number <= (long)MANY_MAX)
        status = many((uint32_t)number);
    else if (strcmp(what, "kill") == 0)
        return kill_one();
    else if (strcmp(what, "leave") == 0)
        return leave();
    banyan_comm_destroy(world);
    banyan_finalize(context);
    if (status == 0 && wrong == 0)
        puts("right");
    return wrong > 0 ? 1 : status;
}
