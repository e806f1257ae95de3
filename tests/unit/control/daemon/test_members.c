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
#include "control/topology/alloc.h"
#include "control/topology/build.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"

static struct by_daemon *daemon_of_test;
static char folder[64], address[96];

static int set_up(void **state)
{
    static const char text[] =
        "{\"name\": \"two\", \"unit\": \"GB/s\", \"nodes\": [{\"name\": \"h0\", \"kind\": \"compute\"}, "
        "{\"name\": \"h1\", \"kind\": \"compute\"}], "
        "\"links\": [{\"between\": [\"h0\", \"h1\"], \"bandwidth\": 1}]}";
    struct by_problem problem = {0};
    char path[96];
    FILE *file;

    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/banyan-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/two.json", folder);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    snprintf(address, sizeof(address), "unix:%s/members", folder);
    daemon_of_test = by_alloc(1, sizeof(*daemon_of_test));
    if (by_topology_read(path, &daemon_of_test->topology, &problem) != 0)
        fail_msg("%s", problem.text);
    unlink(path);
    daemon_of_test->epoll = epoll_create1(EPOLL_CLOEXEC);
    daemon_of_test->now_ms = 1000;
    daemon_of_test->options.members[daemon_of_test->options.member_count++] = address;
    return by_members_open(daemon_of_test);
}

static int tear_down(void **state)
{
    (void)state;
    by_members_close(daemon_of_test);
    close(daemon_of_test->epoll);
    by_topology_free(daemon_of_test->topology);
    free(daemon_of_test);
    return rmdir(folder);
}

/* What there is to do, once. */
static void turn(void)
{
    struct epoll_event events[16];
    int count;

    while ((count = epoll_wait(daemon_of_test->epoll, events, 16, 20)) > 0)
        for (int i = 0; i < count; i++) {
            struct by_watcher *watcher = events[i].data.ptr;

            watcher->ready(daemon_of_test, watcher, events[i].events);
        }
    by_members_tick(daemon_of_test);
}

static int join(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(to.sun_path, sizeof(to.sun_path), "%s", address + 5);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    turn();
    return fd;
}

static void say(int fd, const void *bytes, size_t size)
{
    assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
    turn();
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
    assert_int_equal(epoll_wait(daemon_of_test->epoll, events, 16, 1000), 1);
    watcher = events[0].data.ptr;
    watcher->ready(daemon_of_test, watcher, EPOLLIN);
    watcher->ready(daemon_of_test, watcher, EPOLLIN | EPOLLHUP);
    by_members_tick(daemon_of_test);
    watcher->ready(daemon_of_test, watcher, EPOLLIN | EPOLLHUP);
    by_members_tick(daemon_of_test);
}

static void who_does_not_say_who_it_is_is_cut_off_after_a_while(void **state)
{
    char text[700];
    int one = join(), other = join();
    uint8_t byte = 0;

    (void)state;
    say(other, &byte, 1);
    daemon_of_test->now_ms += BY_MEMBERS_HELLO_MS / 2;
    turn();
    daemon_of_test->now_ms += BY_MEMBERS_HELLO_MS;
    turn();
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
    daemon_of_test->now_ms += BY_MEMBERS_HELLO_MS + 1;
    turn();
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
