/*
 * Connections on demand: which rank connects, which of two connections is kept, and what a rank
 * detects of another one that has ended. All ranks are meshes of one thread, so that each order of
 * their steps can be chosen.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-driver/clock.h"
#include "host-driver/fallback/links.h"
#include "host-driver/fallback/mesh.h"
#include "offload/base/errors.h"
#include "tests/open_files.h"

#define RANKS_MAX 4u
#define KEY       7u
#define BYTES     (1u << 20)
#define MANY      (48u << 20) /* more than the buffers of a connection hold */
#define LIMIT_NS  UINT64_C(20000000000)

struct links_rank {
    struct by_peers peers;
    struct by_host_mesh mesh;
    struct by_mesh_fault fault;
    uint8_t *sent, *received;
    struct iovec out, in;
};

struct links_world {
    uint32_t count;
    struct links_rank rank[RANKS_MAX];
};

static uint16_t port_of(int listener)
{
    struct sockaddr_in own = {0};
    socklen_t bytes = sizeof(own);

    assert_int_equal(getsockname(listener, (struct sockaddr *)&own, &bytes), 0);
    return ntohs(own.sin_port);
}

static void open_world(struct links_world *world, uint32_t count, bool shares)
{
    struct by_circulant circulant;

    memset(world, 0, sizeof(*world));
    world->count = count;
    assert_true(by_circulant_init(&circulant, count));
    for (uint32_t rank = 0; rank < count; rank++) {
        struct by_peers *peers = &world->rank[rank].peers;

        *peers = (struct by_peers){.rank = rank, .rank_count = count};
        peers->listener = by_peer_listen(INADDR_LOOPBACK, 0);
        peers->ip = calloc(count, sizeof(*peers->ip));
        peers->port = calloc(count, sizeof(*peers->port));
        assert_true(peers->listener >= 0 && peers->ip != NULL && peers->port != NULL);
    }
    for (uint32_t rank = 0; rank < count; rank++)
        for (uint32_t other = 0; other < count; other++) {
            world->rank[other].peers.ip[rank] = INADDR_LOOPBACK;
            world->rank[other].peers.port[rank] = port_of(world->rank[rank].peers.listener);
        }
    for (uint32_t rank = 0; rank < count; rank++) {
        struct links_rank *one = &world->rank[rank];

        one->sent = calloc(1, MANY);
        one->received = calloc(1, MANY);
        assert_true(one->sent != NULL && one->received != NULL);
        for (uint32_t i = 0; i < BYTES; i++)
            one->sent[i] = (uint8_t)(i * 7u + i / 251u + rank);
        assert_int_equal(
            by_mesh_open(&one->mesh, &circulant, &one->peers, BY_REACH_NONE, KEY, shares, by_clock_ns()), 0);
        assert_int_equal(one->peers.listener, -1);
    }
}

static void end_rank(struct links_world *world, uint32_t rank)
{
    struct links_rank *one = &world->rank[rank];

    by_mesh_close(&one->mesh);
    by_peers_close(&one->peers);
    free(one->sent);
    free(one->received);
    one->sent = one->received = NULL;
}

static void close_world(struct links_world *world)
{
    for (uint32_t rank = 0; rank < world->count; rank++)
        if (world->rank[rank].sent != NULL)
            end_rank(world, rank);
}

static void begin_send(struct links_world *world, uint32_t from, uint32_t to, uint32_t call, size_t bytes)
{
    const struct by_host_message message = {.call = call, .tag = 1, .bytes = bytes};
    struct links_rank *one = &world->rank[from];

    one->out = (struct iovec){one->sent, bytes};
    by_mesh_send(&one->mesh, to, &message, &one->out, 1);
}

static void begin_receive(struct links_world *world, uint32_t from, uint32_t to, uint32_t call, size_t bytes)
{
    const struct by_host_message message = {.call = call, .tag = 1, .bytes = bytes};
    struct links_rank *one = &world->rank[to];

    memset(one->received, 0, bytes < BYTES ? bytes : BYTES);
    one->in = (struct iovec){one->received, bytes};
    by_mesh_receive(&one->mesh, from, &message, &one->in, 1);
}

static void step(struct links_world *world, uint32_t rank)
{
    struct links_rank *one = &world->rank[rank];

    if (one->fault.error == 0)
        by_mesh_step(&one->mesh, &one->fault);
}

/* Steps the ranks in `mask` until they have nothing under way, or have failed. */
static void go(struct links_world *world, uint32_t mask)
{
    uint64_t until_ns = by_clock_ns() + LIMIT_NS;
    bool busy = true;

    while (busy) {
        busy = false;
        for (uint32_t rank = 0; rank < world->count; rank++) {
            struct links_rank *one = &world->rank[rank];

            if (!(mask >> rank & 1))
                continue;
            step(world, rank);
            busy |= one->fault.error == 0 && (one->mesh.send.active || one->mesh.receive.active);
        }
        assert_true(by_clock_ns() < until_ns);
    }
}

static void expect_data(const struct links_world *world, uint32_t from, uint32_t to, size_t bytes)
{
    assert_int_equal(world->rank[to].fault.error, 0);
    assert_memory_equal(world->rank[to].received, world->rank[from].sent, bytes);
}

/* The two ends are one connection, which this rank has opened. */
static void expect_opened_by(const struct links_world *world, uint32_t opener, uint32_t other)
{
    struct sockaddr_in end = {0};
    socklen_t bytes = sizeof(end);

    assert_true(world->rank[opener].mesh.data[other] >= 0 && world->rank[other].mesh.data[opener] >= 0);
    assert_int_equal(getpeername(world->rank[opener].mesh.data[other], (struct sockaddr *)&end, &bytes), 0);
    assert_int_equal(ntohs(end.sin_port), world->rank[opener].peers.port[other]);
    assert_int_equal(getsockname(world->rank[other].mesh.data[opener], (struct sockaddr *)&end, &bytes), 0);
    assert_int_equal(ntohs(end.sin_port), world->rank[opener].peers.port[other]);
}

/* ---- which rank connects */

static void the_sender_connects_and_both_directions_use_its_connection(void **state)
{
    struct links_world world;
    unsigned before;

    (void)state;
    for (uint32_t from = 0; from < 2; from++)
        for (int shares = 0; shares < 2; shares++) {
            open_world(&world, 2, shares);
            before = open_files();
            begin_send(&world, from, 1 - from, 0, BYTES);
            begin_receive(&world, from, 1 - from, 0, BYTES);
            go(&world, 3);
            expect_data(&world, from, 1 - from, BYTES);
            expect_opened_by(&world, from, 1 - from);
            begin_send(&world, 1 - from, from, 1, BYTES);
            begin_receive(&world, 1 - from, from, 1, BYTES);
            go(&world, 3);
            expect_data(&world, 1 - from, from, BYTES);
            assert_int_equal(open_files(), before + 2);
            assert_int_equal(world.rank[0].mesh.pipe[1] != NULL, shares);
            assert_int_equal(world.rank[1].mesh.pipe[0] != NULL, shares);
            close_world(&world);
        }
}

static void of_two_connections_made_at_once_that_of_the_lower_rank_is_kept(void **state)
{
    struct links_world world;
    unsigned before;

    (void)state;
    for (uint32_t first = 0; first < 2; first++)
        for (uint32_t second = 0; second < 2; second++)
            for (int shares = 0; shares < 2; shares++) {
                open_world(&world, 2, shares);
                before = open_files();
                for (uint32_t rank = 0; rank < 2; rank++) {
                    begin_send(&world, rank, 1 - rank, 0, BYTES);
                    begin_receive(&world, rank, 1 - rank, 0, BYTES);
                }
                /* Each connects in its first step, before it looks for connections. */
                by_links_need(&world.rank[first].mesh, &world.rank[first].fault);
                by_links_need(&world.rank[1 - first].mesh, &world.rank[1 - first].fault);
                for (int i = 0; i < 3; i++)
                    step(&world, second);
                go(&world, 3);
                expect_data(&world, 0, 1, BYTES);
                expect_data(&world, 1, 0, BYTES);
                expect_opened_by(&world, 0, 1);
                assert_int_equal(open_files(), before + 2);
                close_world(&world);
            }
}

static void a_receiver_that_waits_connects_too_and_the_sender_uses_it(void **state)
{
    struct links_world world;
    uint64_t until_ns;

    (void)state;
    for (uint32_t from = 0; from < 2; from++) {
        open_world(&world, 2, false);
        begin_receive(&world, from, 1 - from, 0, BYTES);
        until_ns = by_clock_ns() + 200000000u; /* twice its patience */
        while (by_clock_ns() < until_ns)
            step(&world, 1 - from);
        begin_send(&world, from, 1 - from, 0, BYTES);
        go(&world, 3);
        expect_data(&world, from, 1 - from, BYTES);
        /* The sender has connected at once; its connection is dropped if its rank is higher. */
        expect_opened_by(&world, 0, 1);
        close_world(&world);
    }
}

static void all_pairs_of_four_connect_once(void **state)
{
    struct links_world world;
    unsigned before;

    (void)state;
    open_world(&world, 4, false);
    before = open_files();
    for (uint32_t distance = 1; distance < 4; distance++) {
        for (uint32_t rank = 0; rank < 4; rank++) {
            begin_send(&world, rank, (rank + distance) % 4, distance, BYTES);
            begin_receive(&world, (rank + 4 - distance) % 4, rank, distance, BYTES);
        }
        go(&world, 15);
        for (uint32_t rank = 0; rank < 4; rank++)
            expect_data(&world, rank, (rank + distance) % 4, BYTES);
    }
    assert_int_equal(open_files(), before + 12);
    close_world(&world);
}

/* A process of another job, or none of banyan, connects first. */
static void strangers_take_no_connection(void **state)
{
    const struct by_hello wrong[] = {{.rank = 0, .channel = BY_CHANNEL_DATA}, /* with another key */
                                     {.rank = 9, .channel = BY_CHANNEL_DATA}, /* no such rank */
                                     {.rank = 1, .channel = BY_CHANNEL_DATA}, /* the receiver */
                                     {.rank = 0, .channel = 3}};              /* no such channel */
    uint64_t until_ns = by_clock_ns() + LIMIT_NS;
    uint8_t bytes[BY_HELLO_BYTES];
    struct links_world world;
    int silent, fd[4];

    (void)state;
    open_world(&world, 2, false);
    silent = by_peer_connect(INADDR_LOOPBACK, world.rank[0].peers.port[1], until_ns);
    assert_true(silent >= 0);
    for (uint32_t i = 0; i < 4; i++) {
        fd[i] = by_peer_connect(INADDR_LOOPBACK, world.rank[0].peers.port[1], until_ns);
        by_hello_encode(&wrong[i], i == 0 ? KEY + 1 : KEY, bytes);
        assert_int_equal(by_peer_write(fd[i], bytes, sizeof(bytes), until_ns), 0);
    }
    begin_send(&world, 0, 1, 0, BYTES);
    begin_receive(&world, 0, 1, 0, BYTES);
    go(&world, 3);
    expect_data(&world, 0, 1, BYTES);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(by_peer_read(fd[i], bytes, 1, until_ns), BY_EIO); /* closed */
        close(fd[i]);
    }
    close(silent);
    close_world(&world);
}

/* ---- ranks that end */

static void expect_ended(const struct links_world *world, uint32_t rank, uint32_t ended)
{
    assert_int_equal(world->rank[rank].fault.error, BY_EIO);
    assert_int_equal(world->rank[rank].fault.rank, ended);
}

/* Rank `ended` ends after `steps` steps of both, in which both connect or not. */
static void end_after(uint32_t ended, uint32_t steps, bool both, bool shares)
{
    uint32_t other = 1 - ended;
    struct links_world world;

    open_world(&world, 2, shares);
    begin_send(&world, ended, other, 0, MANY);
    begin_receive(&world, ended, other, 0, MANY);
    if (both) {
        begin_send(&world, other, ended, 0, MANY);
        begin_receive(&world, other, ended, 0, MANY);
    }
    for (uint32_t i = 0; i < steps; i++) {
        if (i % 2 == 0)
            by_links_need(&world.rank[other].mesh, &world.rank[other].fault);
        step(&world, i % 2 == 0 ? ended : other);
    }
    end_rank(&world, ended);
    go(&world, 1u << other);
    expect_ended(&world, other, ended);
    close_world(&world);
}

static void the_end_of_a_rank_is_an_error_at_the_other_at_every_step(void **state)
{
    (void)state;
    for (uint32_t ended = 0; ended < 2; ended++)
        for (uint32_t steps = 0; steps < 6; steps++)
            for (int both = 0; both < 2; both++)
                for (int shares = 0; shares < 2; shares++)
                    end_after(ended, steps, both, shares);
}

static void a_sender_whose_receiver_has_ended_fails_at_once(void **state)
{
    struct links_world world;

    (void)state;
    open_world(&world, 3, false);
    end_rank(&world, 2);
    begin_send(&world, 1, 2, 0, 1);
    go(&world, 2);
    expect_ended(&world, 1, 2);
    close_world(&world);
}

/* What a rank has sent before its end arrives. */
static void the_last_message_of_a_rank_that_ends_arrives(void **state)
{
    struct links_world world;

    (void)state;
    for (int shares = 0; shares < 2; shares++) {
        open_world(&world, 2, shares);
        begin_send(&world, 1, 0, 0, 1000);
        begin_receive(&world, 1, 0, 0, 1000);
        for (int i = 0; i < 1000 && world.rank[1].mesh.send.active; i++) {
            step(&world, 1);
            if (world.rank[0].mesh.data[1] < 0)
                step(&world, 0);
        }
        assert_false(world.rank[1].mesh.send.active);
        by_mesh_close(&world.rank[1].mesh);
        go(&world, 1);
        expect_data(&world, 1, 0, 1000);
        close_world(&world);
    }
}

/* ---- questions */

/* Rank 0 waits for 1, 1 waits for 2, and 2 is idle: a query of rank 0 shows that 1 waits for 2. */
static void a_question_opens_a_connection_for_notices(void **state)
{
    struct links_world world;
    uint64_t until_ns = by_clock_ns() + LIMIT_NS;

    (void)state;
    open_world(&world, 3, false);
    begin_receive(&world, 1, 0, 0, 10);
    begin_receive(&world, 2, 1, 0, 10);
    while (world.rank[0].mesh.answered == 0) {
        assert_true(by_clock_ns() < until_ns);
        by_mesh_ask(&world.rank[0].mesh);
        step(&world, 0);
        step(&world, 1);
    }
    assert_int_equal(by_mesh_suspect(&world.rank[0].mesh), 2);
    assert_int_equal(by_mesh_peer(&world.rank[0].mesh), 1);
    assert_true(world.rank[0].mesh.control[1] >= 0 && world.rank[1].mesh.control[0] >= 0);
    /* A failure reaches the rank over the same connection. */
    by_mesh_warn(&world.rank[1].mesh, &(struct by_mesh_fault){.error = BY_EIO, .rank = 2});
    go(&world, 1);
    expect_ended(&world, 0, 2);
    close_world(&world);
}

static void two_ranks_that_ask_each_other_at_once_get_answers(void **state)
{
    struct links_world world;
    uint64_t until_ns = by_clock_ns() + LIMIT_NS;
    unsigned before;

    (void)state;
    open_world(&world, 2, false);
    begin_receive(&world, 1, 0, 0, 10);
    begin_receive(&world, 0, 1, 0, 10);
    before = open_files();
    while (world.rank[0].mesh.answered == 0 || world.rank[1].mesh.answered == 0) {
        assert_true(by_clock_ns() < until_ns);
        by_mesh_ask(&world.rank[0].mesh);
        by_mesh_ask(&world.rank[1].mesh);
        step(&world, 0);
        step(&world, 1);
    }
    world.rank[0].mesh.receive.active = world.rank[1].mesh.receive.active = false;
    assert_true(open_files() <= before + 4); /* the connection for data may be under way */
    assert_true(world.rank[0].mesh.control[1] >= 0 && world.rank[1].mesh.control[0] >= 0);
    close_world(&world);
}

/* ---- the limit of open files */

/* In a child, since a hard limit cannot be raised again: rank 0 connects while the process may open
 * `soft` files more than it has open, and `hard` after a raise. Returns its error. */
static int connect_with(unsigned soft, unsigned hard)
{
    struct links_world world;
    int status;
    pid_t child;

    fflush(stdout);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit files;
        rlim_t open;

        alarm(60);
        open_world(&world, 2, false);
        open = (rlim_t)dup(0); /* the least free number, and the files below it */
        close((int)open);
        files = (struct rlimit){.rlim_cur = open + soft, .rlim_max = open + hard};
        if (setrlimit(RLIMIT_NOFILE, &files) != 0)
            _exit(99);
        begin_send(&world, 0, 1, 0, 1000);
        begin_receive(&world, 0, 1, 0, 1000);
        while (world.rank[1].mesh.receive.active && world.rank[0].fault.error == 0 &&
               world.rank[1].fault.error == 0) {
            step(&world, 0);
            step(&world, 1);
        }
        if (world.rank[0].fault.error == BY_ELIMIT)
            _exit(strstr(by_files_reason(world.rank[0].mesh.limit_why), "ulimit -n") != NULL ? 1 : 98);
        if (world.rank[1].fault.error == BY_ELIMIT)
            _exit(world.rank[1].fault.rank == 1 ? 2 : 97);
        _exit(memcmp(world.rank[1].received, world.rank[0].sent, 1000) == 0 ? 0 : 96);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void the_limit_of_files_is_raised_and_its_end_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(connect_with(2, 2), 0);
    assert_int_equal(connect_with(0, 2), 0); /* raised by the rank that connects */
    assert_int_equal(connect_with(1, 2), 0); /* by the rank that accepts */
    assert_int_equal(connect_with(0, 0), 1);
    assert_int_equal(connect_with(1, 1), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sender_connects_and_both_directions_use_its_connection),
        cmocka_unit_test(of_two_connections_made_at_once_that_of_the_lower_rank_is_kept),
        cmocka_unit_test(a_receiver_that_waits_connects_too_and_the_sender_uses_it),
        cmocka_unit_test(all_pairs_of_four_connect_once),
        cmocka_unit_test(strangers_take_no_connection),
        cmocka_unit_test(the_end_of_a_rank_is_an_error_at_the_other_at_every_step),
        cmocka_unit_test(a_sender_whose_receiver_has_ended_fails_at_once),
        cmocka_unit_test(the_last_message_of_a_rank_that_ends_arrives),
        cmocka_unit_test(a_question_opens_a_connection_for_notices),
        cmocka_unit_test(two_ranks_that_ask_each_other_at_once_get_answers),
        cmocka_unit_test(the_limit_of_files_is_raised_and_its_end_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
