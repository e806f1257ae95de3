/*
 * The server of hosts against those who misbehave: each is cut off, with a reason in the log, and nobody else
 * notices. A loop of the test's own in place of the daemon's.
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
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/daemon/members.h"
#include "offload/base/bytes.h"
#include "tests/unit/control/daemon/loop.h"

static char folder[64], address[96];

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/banyan-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(address, sizeof(address), "unix:%s/members", folder);
    return members_open(&(struct by_options){.member_count = 1, .members = {address}});
}

static int tear_down(void **state)
{
    (void)state;
    members_close();
    return rmdir(folder);
}

static int join(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(to.sun_path, sizeof(to.sun_path), "%s", address + 5);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    members_turn();
    return fd;
}

static void say(int fd, const void *bytes, size_t size)
{
    assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
    members_turn();
}

/* 1 when the other side has ended the connection; what it said before goes to `text`. */
static int is_cut(int fd, char *text, size_t room)
{
    size_t used = 0;
    ssize_t got;

    while ((got = recv(fd, text + used, room - 1 - used, MSG_DONTWAIT)) > 0)
        used += (size_t)got;
    for (size_t i = 0; i < used; i++)
        if (text[i] == 0)
            text[i] = ' ';
    text[used] = 0;
    close(fd);
    return got == 0 || (got < 0 && errno == ECONNRESET);
}

static size_t hello(uint8_t *bytes, const char *name)
{
    struct by_member_frame frame = {.type = BY_MEMBER_HELLO,
                                    .rank = 0xffff,
                                    .number = 7,
                                    .data = (const uint8_t *)name,
                                    .bytes = (uint32_t)strlen(name)};
    size_t fixed = by_member_put(&frame, bytes);

    memcpy(bytes + fixed, frame.data, frame.bytes);
    return fixed + frame.bytes;
}

static void who_speaks_something_else_is_cut_off(void **state)
{
    uint8_t frame[BY_MEMBER_FIXED_MAX + BY_NAME_MAX];
    size_t size = hello(frame, "h0");
    char text[700];
    int quiet = join(), one;

    (void)state;
    one = join();
    say(one, "GET / HTTP/1.1\r\n\r\n", 18);
    assert_true(is_cut(one, text, sizeof(text)));

    one = join();
    frame[4]++;
    say(one, frame, size);
    assert_true(is_cut(one, text, sizeof(text)));

    one = join(); /* longer than the type can be */
    hello(frame, "h0");
    by_put32(frame, UINT32_MAX);
    say(one, frame, size);
    assert_true(is_cut(one, text, sizeof(text)));

    one = join(); /* a frame of the controller's */
    by_member_put(&(struct by_member_frame){.type = BY_MEMBER_GO, .gen = 1}, frame);
    say(one, frame, BY_MEMBER_HEAD_BYTES);
    assert_true(is_cut(one, text, sizeof(text)));

    one = join(); /* before HELLO */
    by_member_put(&(struct by_member_frame){.type = BY_MEMBER_CARRIED, .gen = 1}, frame);
    say(one, frame, BY_MEMBER_HEAD_BYTES);
    assert_true(is_cut(one, text, sizeof(text)));

    assert_false(is_cut(quiet, text, sizeof(text))); /* and nobody else */
}

static void who_is_not_in_the_topology_reads_so(void **state)
{
    uint8_t frame[BY_MEMBER_FIXED_MAX + BY_NAME_MAX];
    char text[700];
    int one = join();

    (void)state;
    say(one, frame, hello(frame, "stranger"));
    assert_true(is_cut(one, text, sizeof(text)));
    assert_non_null(
        strstr(text + BY_MEMBER_HEAD_BYTES, "the topology has no host stranger; set BANYAN_NODE"));
}

static void an_event_of_a_host_that_is_gone_already_hurts_nobody(void **state)
{
    uint8_t frame[BY_MEMBER_FIXED_MAX + BY_NAME_MAX];
    struct epoll_event events[16];
    struct by_watcher *watcher;
    int one = join();

    (void)state;
    assert_int_equal(send(one, frame, 1, MSG_NOSIGNAL), 1);
    close(one);
    /* One batch of the loop: the host's end, a tick, and the host once more. */
    assert_int_equal(epoll_wait(members_daemon()->epoll, events, 16, 1000), 1);
    watcher = events[0].data.ptr;
    watcher->ready(members_daemon(), watcher, EPOLLIN);
    watcher->ready(members_daemon(), watcher, EPOLLIN | EPOLLHUP);
    by_members_tick(members_daemon());
    watcher->ready(members_daemon(), watcher, EPOLLIN | EPOLLHUP);
    by_members_tick(members_daemon());
}

static void who_does_not_say_who_it_is_is_cut_off_after_a_while(void **state)
{
    char text[700];
    int one = join(), other = join();
    uint8_t byte = 0;

    (void)state;
    say(other, &byte, 1);
    members_daemon()->now_ms += BY_MEMBERS_HELLO_MS / 2;
    members_turn();
    members_daemon()->now_ms += BY_MEMBERS_HELLO_MS;
    members_turn();
    assert_true(is_cut(one, text, sizeof(text)));
    assert_true(is_cut(other, text, sizeof(text)));
}

static void a_host_whose_job_is_not_there_waits_and_then_reads_so(void **state)
{
    uint8_t frame[BY_MEMBER_FIXED_MAX + BY_NAME_MAX];
    char text[700];
    int one = join();

    (void)state;
    say(one, frame, hello(frame, "h1"));
    assert_int_equal(recv(one, text, 1, MSG_DONTWAIT), -1);
    members_daemon()->now_ms += BY_MEMBERS_HELLO_MS + 1;
    members_turn();
    assert_true(is_cut(one, text, sizeof(text)));
    assert_non_null(strstr(text + BY_MEMBER_HEAD_BYTES, "no job has host h1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_speaks_something_else_is_cut_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_is_not_in_the_topology_reads_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_event_of_a_host_that_is_gone_already_hurts_nobody, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_does_not_say_who_it_is_is_cut_off_after_a_while, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_host_whose_job_is_not_there_waits_and_then_reads_so, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
