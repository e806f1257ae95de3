/*
 * The connection to a controller that sends too much: the data waiting to be taken are bounded and
 * arrive in the end, and a frame that is too long ends the connection with a reason.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-driver/line.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"

#define FRAME_BYTES 1000003u   /* data bytes */
#define SLACK       (8u << 20) /* of the sockets' buffers */
#define TURNS_MAX   10000u     /* more turns are an error */
#define FRAMES      100u       /* more than fit */

/* A line, and the controller at the other end. */
struct ends {
    char folder[64], path[96];
    int listener, fd;
    struct by_host_line line;
};

static int open_ends(void **state)
{
    struct ends *ends = calloc(1, sizeof(*ends));
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char address[128];

    *state = ends;
    if (ends == NULL)
        return -1;
    snprintf(ends->folder, sizeof(ends->folder), "/tmp/banyan-test-XXXXXX");
    if (mkdtemp(ends->folder) == NULL)
        return -1;
    snprintf(ends->path, sizeof(ends->path), "%s/line", ends->folder);
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", ends->path);
    snprintf(address, sizeof(address), "unix:%s", ends->path);
    ends->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(ends->listener, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(ends->listener, 1) != 0 ||
        by_host_line_open(&ends->line, address, "") != 0 || by_host_line_step(&ends->line, 1) != BY_LINE_UP)
        return -1;
    ends->fd = accept4(ends->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return ends->fd >= 0 ? 0 : -1;
}

static int close_ends(void **state)
{
    struct ends *ends = *state;

    by_host_line_close(&ends->line);
    close(ends->fd);
    close(ends->listener);
    unlink(ends->path);
    rmdir(ends->folder);
    free(ends);
    return 0;
}

/* Consecutive frames as the controller's kernel accepts them; each has its number. */
struct flood {
    uint8_t frame[BY_MEMBER_FIXED_MAX + FRAME_BYTES];
    size_t bytes, at; /* size of a frame, and the bytes of it that were sent */
    uint16_t number;
    uint64_t sent;
};

static void begin_frame(struct flood *flood)
{
    struct by_member_frame frame = {.type = BY_MEMBER_HEARD, .peer = flood->number, .bytes = FRAME_BYTES};
    size_t fixed = by_member_put(&frame, flood->frame);

    memset(flood->frame + fixed, flood->number + 1, FRAME_BYTES);
    flood->bytes = fixed + FRAME_BYTES;
    flood->at = 0;
}

/* Sends until the kernel accepts no more or all frames are sent. Returns whether it has sent
 * anything. */
static bool pour(struct flood *flood, int fd)
{
    uint64_t before = flood->sent;

    while (flood->number < FRAMES) {
        ssize_t sent = send(fd, flood->frame + flood->at, flood->bytes - flood->at, MSG_NOSIGNAL);

        if (sent < 0)
            break;
        flood->sent += (uint64_t)sent;
        flood->at += (size_t)sent;
        if (flood->at < flood->bytes)
            continue;
        flood->number++;
        begin_frame(flood);
    }
    return flood->sent != before;
}

static void what_is_not_taken_is_bounded_and_comes_in_the_end(void **state)
{
    struct ends *ends = *state;
    struct by_host_line *line = &ends->line;
    struct flood *flood = calloc(1, sizeof(*flood));
    struct by_member_frame frame;
    unsigned taken = 0;

    assert_non_null(flood);
    begin_frame(flood);
    for (unsigned turns = 0; pour(flood, ends->fd) | (by_host_line_step(line, 2) == BY_LINE_MOVED); turns++) {
        assert_true(turns < TURNS_MAX);
        assert_true(line->in.used - line->in.at <= BY_LINE_IN_MAX);
    }
    assert_true(flood->number < FRAMES); /* the sender must wait */
    assert_true(flood->sent > BY_IMAGE_BYTES_MAX && flood->sent <= BY_LINE_IN_MAX + SLACK);
    assert_int_equal(by_host_line_deadline(line), 0); /* poll may not report the data that are left */
    for (unsigned turns = 0; taken < FRAMES; turns++) {
        assert_true(turns < TURNS_MAX);
        while (by_host_line_get(line, &frame, 3) == 0) {
            assert_int_equal(frame.type, BY_MEMBER_HEARD);
            assert_int_equal(frame.peer, taken);
            assert_int_equal(frame.bytes, FRAME_BYTES);
            assert_int_equal(frame.data[0], (uint8_t)(taken + 1));
            assert_int_equal(frame.data[FRAME_BYTES - 1], (uint8_t)(taken + 1));
            taken++;
        }
        pour(flood, ends->fd);
        by_host_line_step(line, 3);
    }
    assert_true(line->up);
    assert_true(by_host_line_deadline(line) == UINT64_MAX);
    free(flood);
}

static void a_frame_longer_than_its_kind_ends_the_connection_and_is_said_to(void **state)
{
    struct ends *ends = *state;
    struct by_member_frame frame = {.type = BY_MEMBER_FAIL};
    uint8_t bytes[BY_MEMBER_FIXED_MAX];
    size_t size = by_member_put(&frame, bytes);

    by_put32(bytes, 100000);
    assert_int_equal(send(ends->fd, bytes, size, MSG_NOSIGNAL), size);
    assert_int_equal(by_host_line_step(&ends->line, 2), BY_LINE_MOVED);
    assert_int_equal(by_host_line_get(&ends->line, &frame, 2), BY_EAGAIN);
    assert_false(ends->line.up);
    assert_non_null(strstr(ends->line.why, "more than 496 bytes")); /* its header, a code and 480 of text */
    assert_non_null(strstr(ends->line.why, "is it a banyand of this version?"));
}

static void an_address_of_ipv6_may_have_brackets(void **state)
{
    static const char *const right[] = {"tcp:[::1]:46251", "tcp:::1:46251", "tcp:127.0.0.1:46251"};
    static const char *const wrong[] = {"tcp:[::1]", "tcp::46251", "tcp:127.0.0.1:", "tcp:"};
    struct by_host_line line;

    (void)state;
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        assert_int_equal(by_host_line_open(&line, right[i], ""), 0);
        by_host_line_close(&line);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_true(by_host_line_open(&line, wrong[i], "") < 0);
        by_host_line_close(&line);
    }
}

static int listen_at(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 4), 0);
    return fd;
}

/* Of several controllers the one that accepts is used; one that accepts and does not answer what it
 * was asked is left, but not while it has not been asked, nor if it is the only one. */
static void of_several_controllers_the_one_that_answers_is_used(void **state)
{
    const uint64_t ms = 1000000;
    struct by_member_frame frame = {.type = BY_MEMBER_WELCOME, .job = 1};
    struct ends *ends = *state;
    char list[512], other[96];
    uint8_t bytes[BY_MEMBER_FIXED_MAX];
    struct by_host_line line;
    uint64_t now = 1;
    int listener, fd;

    snprintf(other, sizeof(other), "%s/other", ends->folder);
    listener = listen_at(other);
    snprintf(list, sizeof(list), "unix:%s/none,unix:%s,unix:%s", ends->folder, ends->path, other);
    assert_int_equal(by_host_line_open(&line, list, ""), 0);
    assert_int_equal(by_host_line_step(&line, now), BY_LINE_NOTHING);
    now += 100 * ms;
    assert_int_equal(by_host_line_step(&line, now), BY_LINE_UP);
    assert_int_equal(line.at, 1);
    now += 5000 * ms;
    by_host_line_step(&line, now);
    assert_true(line.up);
    by_host_line_ask(&line, now);
    now += 1000 * ms;
    by_host_line_ask(&line, now); /* does not prolong it */
    by_host_line_step(&line, now);
    assert_true(line.up);
    now += 1000 * ms;
    by_host_line_step(&line, now);
    assert_false(line.up);
    assert_non_null(strstr(line.why, "does not answer"));
    now += 1000 * ms;
    assert_int_equal(by_host_line_step(&line, now), BY_LINE_UP);
    assert_int_equal(line.at, 2);
    fd = accept(listener, NULL, NULL);
    by_host_line_ask(&line, now);
    assert_true(send(fd, bytes, by_member_put(&frame, bytes), MSG_NOSIGNAL) > 0);
    assert_int_equal(by_host_line_step(&line, now), BY_LINE_MOVED);
    assert_int_equal(by_host_line_get(&line, &frame, now), 0);
    now += 5000 * ms;
    by_host_line_step(&line, now);
    assert_true(line.up);
    by_host_line_ask(&ends->line, now); /* the only controller */
    by_host_line_step(&ends->line, now + 5000 * ms);
    assert_true(ends->line.up);
    by_host_line_close(&line);
    close(fd);
    close(listener);
    unlink(other);
    assert_int_equal(by_host_line_open(&line, "unix:/a,http://b:1", ""), BY_EINVAL);
    by_host_line_close(&line);
    assert_int_equal(by_host_line_open(&line, ",", ""), BY_EINVAL);
    by_host_line_close(&line);
    assert_int_equal(by_host_line_open(&line,
                                       "unix:/1,unix:/2,unix:/3,unix:/4,unix:/5,unix:/6,unix:/7,unix:/8,"
                                       "unix:/9",
                                       ""),
                     BY_EINVAL);
    by_host_line_close(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_not_taken_is_bounded_and_comes_in_the_end, open_ends,
                                        close_ends),
        cmocka_unit_test_setup_teardown(a_frame_longer_than_its_kind_ends_the_connection_and_is_said_to,
                                        open_ends, close_ends),
        cmocka_unit_test_setup_teardown(of_several_controllers_the_one_that_answers_is_used, open_ends,
                                        close_ends),
        cmocka_unit_test(an_address_of_ipv6_may_have_brackets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
