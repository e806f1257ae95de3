/*
 * The server of hosts against clients that misbehave: each is disconnected, with a reason in the
 * log, without effect on others. Uses the test's own loop in place of the daemon's.
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
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/service/daemon/listen.h"
#include "control/service/daemon/members.h"
#include "offload/base/bytes.h"
#include "tests/unit/control/service/daemon/loop.h"
#include "tests/unit/control/service/daemon/printed.h"

/* The posted events of ranks. */
static struct {
    unsigned count;
    enum by_recover_type last;
} told;

static void reduce(struct by_daemon *daemon, const struct by_daemon_event *event)
{
    (void)daemon;
    if (event->kind != BY_EVENT_RANK)
        return;
    told.count++;
    told.last = event->rank_event;
}

static int set_up(void **state)
{
    (void)state;
    told.count = 0;
    if (members_serve(reduce) != 0)
        return -1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return members_stop();
}

static void say(int fd, const void *bytes, size_t size)
{
    assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
    members_turn();
}

/* Returns 1 if the other side has closed the connection; its earlier output goes to `text`. */
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
    int quiet = members_join(), one;

    (void)state;
    one = members_join();
    say(one, "GET / HTTP/1.1\r\n\r\n", 18);
    assert_true(is_cut(one, text, sizeof(text)));

    one = members_join();
    frame[4]++;
    say(one, frame, size);
    assert_true(is_cut(one, text, sizeof(text)));

    one = members_join(); /* longer than this type permits */
    hello(frame, "h0");
    by_put32(frame, UINT32_MAX);
    say(one, frame, size);
    assert_true(is_cut(one, text, sizeof(text)));

    one = members_join(); /* a frame that only the controller may send */
    by_member_put(&(struct by_member_frame){.type = BY_MEMBER_GO, .gen = 1}, frame);
    say(one, frame, BY_MEMBER_HEAD_BYTES);
    assert_true(is_cut(one, text, sizeof(text)));

    one = members_join(); /* before HELLO */
    by_member_put(&(struct by_member_frame){.type = BY_MEMBER_CARRIED, .gen = 1}, frame);
    say(one, frame, BY_MEMBER_HEAD_BYTES);
    assert_true(is_cut(one, text, sizeof(text)));

    assert_false(is_cut(quiet, text, sizeof(text))); /* other connections are not affected */
}

static void who_is_not_in_the_topology_reads_so(void **state)
{
    uint8_t frame[BY_MEMBER_FIXED_MAX + BY_NAME_MAX];
    char text[700];
    int one = members_join();

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
    int one = members_join();

    (void)state;
    assert_int_equal(send(one, frame, 1, MSG_NOSIGNAL), 1);
    close(one);
    /* One batch of the loop: the host's end, a tick, and the host again. */
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
    int one = members_join(), other = members_join();
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
    int one = members_join();

    (void)state;
    say(one, frame, hello(frame, "h1"));
    assert_int_equal(recv(one, text, 1, MSG_DONTWAIT), -1);
    members_daemon()->now_ms += BY_MEMBERS_HELLO_MS + 1;
    members_turn();
    assert_true(is_cut(one, text, sizeof(text)));
    assert_non_null(strstr(text + BY_MEMBER_HEAD_BYTES, "no job has host h1"));
}

/* Recovery sends frames while it makes decisions (recover.h: act), so the event must come later. */
static void that_a_host_cannot_be_sent_to_is_told_after_the_sending(void **state)
{
    uint8_t frame[BY_MEMBER_FIXED_MAX + BY_NAME_MAX];
    int one = members_join();

    (void)state;
    members_job("1=allreduce");
    say(one, frame, hello(frame, "h0"));
    assert_true(told.count == 1 && told.last == BY_RECOVER_RANK_CAME);
    close(one);
    for (unsigned i = 0; i < 3; i++)
        by_members_send(members_daemon(), 1, 0, (struct by_member_frame){.type = BY_MEMBER_GO, .gen = 1});
    assert_int_equal(told.count, 1);
    by_members_tick(members_daemon());
    assert_true(told.count == 2 && told.last == BY_RECOVER_RANK_DIED);
}

/* With or without HELLO, a connection that is not a rank cannot make banyand store a long frame. */
static void a_long_frame_of_a_connection_that_is_no_rank_ends_it(void **state)
{
    static uint8_t frame[BY_MEMBERS_STRANGER_MAX + 1];
    char text[700];

    (void)state;
    for (unsigned said = 0; said < 2; said++) {
        int one = members_join();

        if (said)
            say(one, frame, hello(frame, "h1"));
        by_member_put(&(struct by_member_frame){.type = BY_MEMBER_SAY, .bytes = BY_MEMBER_SAY_MAX}, frame);
        say(one, frame, sizeof(frame) - 1);
        assert_int_equal(recv(one, text, 1, MSG_DONTWAIT), -1);
        assert_int_equal(errno, EAGAIN);
        say(one, frame, 1);
        assert_true(is_cut(one, text, sizeof(text)));
    }
}

static void a_frame_in_the_name_of_another_rank_is_ignored(void **state)
{
    uint8_t frame[BY_MEMBER_FIXED_MAX + BY_NAME_MAX];
    int one = members_join();

    (void)state;
    members_job("1=allreduce");
    say(one, frame, hello(frame, "h0"));
    assert_int_equal(told.count, 1);
    for (uint16_t rank = 3; rank < 4; rank--) {
        size_t size = by_member_put(
            &(struct by_member_frame){.type = BY_MEMBER_CARRIED, .job = 1, .rank = rank}, frame);

        say(one, frame, size);
        assert_int_equal(told.count, rank == 0 ? 2 : 1);
    }
    by_member_put(&(struct by_member_frame){.type = BY_MEMBER_CARRIED, .job = 2, .rank = 0}, frame);
    say(one, frame, BY_MEMBER_HEAD_BYTES);
    assert_int_equal(told.count, 2);
    close(one);
}

static void a_second_process_does_not_get_the_rank_of_the_first(void **state)
{
    uint8_t frame[BY_MEMBER_FIXED_MAX + BY_NAME_MAX];
    char text[700];
    int one = members_join(), two = members_join();
    size_t size = hello(frame, "h0");

    (void)state;
    members_job("1=allreduce");
    say(one, frame, size);
    assert_true(told.count == 1 && told.last == BY_RECOVER_RANK_CAME);
    for (unsigned byte = 0; byte < 8; byte++) { /* each byte of the process's number matters */
        frame[BY_MEMBER_HEAD_BYTES + byte] ^= 1;
        say(two, frame, size);
        frame[BY_MEMBER_HEAD_BYTES + byte] ^= 1;
        assert_true(is_cut(two, text, sizeof(text)));
        assert_non_null(strstr(text + BY_MEMBER_HEAD_BYTES, "rank 0 of job 1 runs in another process"));
        two = members_join();
    }
    assert_int_equal(told.count, 1);
    close(two);
    close(one);
}

static void a_host_that_reads_nothing_is_cut_off_at_its_limit(void **state)
{
    uint8_t frame[BY_MEMBER_FIXED_MAX + BY_NAME_MAX];
    uint8_t *message = calloc(1, BY_MEMBER_SAY_MAX);
    uint32_t most = (uint32_t)(BY_MEMBERS_WAITING_MAX / BY_MEMBER_SAY_MAX);
    int one = members_join();

    (void)state;
    assert_non_null(message);
    members_job("1=allreduce");
    say(one, frame, hello(frame, "h0"));
    for (uint32_t i = 0; i < most + 2; i++) {
        by_members_send(
            members_daemon(), 1, 0,
            (struct by_member_frame){.type = BY_MEMBER_HEARD, .data = message, .bytes = BY_MEMBER_SAY_MAX});
        if (i + 2 == most)
            by_members_tick(members_daemon());
        if (i + 2 == most)
            assert_int_equal(told.count, 1);
    }
    by_members_tick(members_daemon());
    assert_true(told.count == 2 && told.last == BY_RECOVER_RANK_DIED);
    close(one);
    free(message);
}

static void who_joins_a_job_that_ends_waits_for_what_becomes_of_it(void **state)
{
    uint8_t frame[BY_MEMBER_FIXED_MAX + BY_NAME_MAX];
    struct by_job *job = members_job("1=allreduce");
    int one = members_join();

    (void)state;
    job->state = BY_JOB_ENDING;
    say(one, frame, hello(frame, "h0"));
    assert_int_equal(told.count, 0);
    job->state = BY_JOB_RUNNING; /* its end could not be pushed */
    members_turn();
    assert_true(told.count == 1 && told.last == BY_RECOVER_RANK_CAME);
    close(one);
}

static void a_listener_of_ipv6_may_have_brackets(void **state)
{
    bool loopback = false;
    int fd = by_listen_tcp("[::1]:0", &loopback);

    (void)state;
    assert_true(loopback);
    if (fd >= 0) /* otherwise there is no IPv6 */
        close(fd);
}

/* Many strangers at once: their log lines, and the summary after a quiet period. */
static void a_crowd_of_strangers_makes_few_lines(void **state)
{
    unsigned lines = 0;
    char text[8192], cut[700];

    (void)state;
    printed_begin();
    for (unsigned i = 0; i < 40; i++) {
        int one = members_join();

        say(one, "GET / HTTP/1.1\r\n\r\n", 18);
        assert_true(is_cut(one, cut, sizeof(cut)));
    }
    members_daemon()->now_ms += 3000;
    by_members_tick(members_daemon());
    printed_end(text, sizeof(text));
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    assert_int_equal(lines, 11);
    assert_non_null(strstr(text, "host (unknown): it sent an invalid frame"));
    assert_non_null(strstr(text, "is refused, and 30 more in the last 3 s\n"));
}

static int set_up_with_few_descriptors(void **state)
{
    const struct rlimit few = {.rlim_cur = 300, .rlim_max = 300};

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    return set_up(state);
}

/* The last test, because the limit does not change back. */
static void hosts_leave_descriptors_to_others(void **state)
{
    int hosts[100];
    char text[700];
    unsigned in = 0;

    (void)state;
    for (unsigned i = 0; i < 100; i++)
        hosts[i] = members_join();
    for (unsigned i = 0; i < 100; i++)
        in += !is_cut(hosts[i], text, sizeof(text));
    assert_int_equal(in, 75);
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
        cmocka_unit_test_setup_teardown(that_a_host_cannot_be_sent_to_is_told_after_the_sending, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_long_frame_of_a_connection_that_is_no_rank_ends_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_frame_in_the_name_of_another_rank_is_ignored, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_second_process_does_not_get_the_rank_of_the_first, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_host_that_reads_nothing_is_cut_off_at_its_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_joins_a_job_that_ends_waits_for_what_becomes_of_it, set_up,
                                        tear_down),
        cmocka_unit_test(a_listener_of_ipv6_may_have_brackets),
        cmocka_unit_test_setup_teardown(a_crowd_of_strangers_makes_few_lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(hosts_leave_descriptors_to_others, set_up_with_few_descriptors,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
