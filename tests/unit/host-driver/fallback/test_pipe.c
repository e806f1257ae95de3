/* Memory between two ranks of a host: data in order through every wrap, bells, and wrong offers. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-driver/fallback/pipe.h"

#define BYTES 16384u

struct pipe_ends {
    struct by_pipe *one, *two;
    int bell[2];
};

static void open_ends(struct pipe_ends *ends)
{
    struct by_pipe_offer offer;

    ends->one = by_pipe_create(BYTES, &offer);
    assert_non_null(ends->one);
    ends->two = by_pipe_open(&offer, BYTES);
    assert_non_null(ends->two);
    by_pipe_settle(ends->one);
    assert_null(by_pipe_open(&offer, BYTES)); /* the descriptor is closed */
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends->bell), 0);
}

static void close_ends(struct pipe_ends *ends)
{
    by_pipe_close(ends->one);
    by_pipe_close(ends->two);
    close(ends->bell[0]);
    close(ends->bell[1]);
}

static ssize_t move(struct by_pipe *pipe, bool sends, uint8_t *at, size_t bytes, int bell)
{
    const struct iovec pieces[] = {{at, bytes / 3}, {at + bytes / 3, 0}, {at + bytes / 3, bytes - bytes / 3}};

    return by_pipe_move(pipe, sends, pieces, 3, bell);
}

/* Sends parts of changing size one way and receives other parts. */
static void run_through(struct by_pipe *from, struct by_pipe *to, int bell)
{
    static uint8_t sent[1 << 20], got[1 << 20];
    size_t out = 0, in = 0;

    for (size_t i = 0; i < sizeof(sent); i++)
        sent[i] = (uint8_t)(i * 2654435761u >> 13);
    memset(got, 0, sizeof(got));
    for (unsigned turn = 1; in < sizeof(got); turn++) {
        size_t give = turn * 7919 % 20000, take = turn * 104729 % 18000;

        give = give < sizeof(sent) - out ? give : sizeof(sent) - out;
        take = take < sizeof(got) - in ? take : sizeof(got) - in;
        out += (size_t)move(from, true, sent + out, give, bell);
        in += (size_t)move(to, false, got + in, take, bell);
        assert_true(out - in <= BYTES);
        assert_int_equal(by_pipe_is_ready(to, false), out > in);
        assert_int_equal(by_pipe_is_ready(from, true), out - in < BYTES);
    }
    assert_memory_equal(sent, got, sizeof(sent));
}

static void bytes_arrive_in_order_both_ways(void **state)
{
    struct pipe_ends ends;

    (void)state;
    open_ends(&ends);
    run_through(ends.one, ends.two, ends.bell[0]);
    run_through(ends.two, ends.one, ends.bell[0]);
    close_ends(&ends);
}

static void a_peek_takes_nothing(void **state)
{
    uint8_t sent[] = {1, 2, 3, 4}, got[4] = {0};
    struct pipe_ends ends;

    (void)state;
    open_ends(&ends);
    assert_int_equal(move(ends.two, true, sent, 3, ends.bell[0]), 3);
    assert_false(by_pipe_peek(ends.one, got, 4));
    for (int i = 0; i < 2; i++) {
        assert_true(by_pipe_peek(ends.one, got, 3));
        assert_memory_equal(got, sent, 3);
    }
    assert_int_equal(move(ends.one, false, got, 4, ends.bell[0]), 3);
    close_ends(&ends);
}

static int count_bells(int fd)
{
    uint8_t bells[16];
    ssize_t got = recv(fd, bells, sizeof(bells), MSG_DONTWAIT);

    return got > 0 ? (int)got : 0;
}

static void only_a_sleeping_end_is_woken_and_once(void **state)
{
    static uint8_t data[BYTES];
    struct pipe_ends ends;

    (void)state;
    open_ends(&ends);
    move(ends.one, true, data, 10, ends.bell[0]);
    assert_int_equal(count_bells(ends.bell[1]), 0);
    by_pipe_doze(ends.two, false);
    assert_true(by_pipe_is_ready(ends.two, false)); /* so it does not sleep */
    move(ends.one, true, data, 10, ends.bell[0]);
    move(ends.one, true, data, 10, ends.bell[0]);
    assert_int_equal(count_bells(ends.bell[1]), 1);
    assert_true(by_pipe_wake(ends.two));
    assert_false(by_pipe_wake(ends.two));
    move(ends.one, true, data, BYTES, ends.bell[0]);
    by_pipe_doze(ends.one, true);
    assert_false(by_pipe_is_ready(ends.one, true));
    move(ends.two, false, data, 1, ends.bell[1]);
    assert_int_equal(count_bells(ends.bell[0]), 1);
    close_ends(&ends);
}

/* What another process offers may be anything. */
static void a_wrong_offer_is_refused(void **state)
{
    struct by_pipe_offer offer, wrong;
    struct by_pipe *pipe;
    int file, loose = memfd_create("loose", MFD_CLOEXEC);

    (void)state;
    pipe = by_pipe_create(BYTES, &offer);
    assert_non_null(pipe);
    assert_null(by_pipe_open(&offer, 2 * BYTES)); /* another size */
    wrong = offer;
    wrong.nonce ^= 1;
    assert_null(by_pipe_open(&wrong, BYTES));
    wrong = offer;
    wrong.fd = -1;
    assert_null(by_pipe_open(&wrong, BYTES));
    file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC); /* not memory */
    wrong.fd = file;
    assert_null(by_pipe_open(&wrong, BYTES));
    assert_int_equal(ftruncate(loose, 4096 + 2 * BYTES), 0); /* it may shrink */
    wrong.fd = loose;
    wrong.nonce = 0;
    assert_null(by_pipe_open(&wrong, BYTES));
    close(file);
    close(loose);
    by_pipe_close(pipe);
}

static void many_ranks_of_a_host_share_a_limited_range(void **state)
{
    (void)state;
    assert_int_equal(by_pipe_bytes(2), 256u << 10);
    for (uint64_t ranks = 2; ranks <= 64; ranks++)
        assert_true(ranks * (ranks - 1) * by_pipe_bytes((uint32_t)ranks) <= 64u << 20 ||
                    by_pipe_bytes((uint32_t)ranks) == 16u << 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_arrive_in_order_both_ways),
        cmocka_unit_test(a_peek_takes_nothing),
        cmocka_unit_test(only_a_sleeping_end_is_woken_and_once),
        cmocka_unit_test(a_wrong_offer_is_refused),
        cmocka_unit_test(many_ranks_of_a_host_share_a_limited_range),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
