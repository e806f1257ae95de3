/* The server of hosts, frame by frame: which event each one becomes, what each host reads, and when
 * exactly a connection ends. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/descriptors.h"
#include "tests/unit/control/service/daemon/loop.h"
#include "tests/unit/control/service/daemon/printed.h"

static char told[4096];      /* events since the last check, a line each */
static unsigned descriptors; /* that were open before */

static void reduce(struct by_daemon *daemon, const struct by_daemon_event *event)
{
    static const char *const ranks[] = {
        [BY_RECOVER_RANK_CAME] = "came",         [BY_RECOVER_RANK_LEFT] = "left",
        [BY_RECOVER_RANK_DIED] = "died",         [BY_RECOVER_RANK_ALIVE] = "alive",
        [BY_RECOVER_RANK_SUSPECTS] = "suspects", [BY_RECOVER_RANK_CARRIED] = "carried"};
    size_t used = strlen(told);

    if (event->kind == BY_EVENT_RANK)
        snprintf(told + used, sizeof(told) - used, "%s %u.%u generation %u number %llu\n",
                 ranks[event->rank_event], event->job, event->rank, event->gen,
                 (unsigned long long)event->number);
    else if (event->kind == BY_EVENT_COUNTED || event->kind == BY_EVENT_MEASURED)
        snprintf(told + used, sizeof(told) - used, "%s %u.%u of %s number %llu: %u bytes\n",
                 event->kind == BY_EVENT_COUNTED ? "counted" : "measured", event->job, event->rank,
                 daemon->topology->nodes[event->node].name, (unsigned long long)event->number, event->bytes);
}

static void expect(const char *events)
{
    assert_string_equal(told, events);
    told[0] = 0;
}

static int set_up(void **state)
{
    (void)state;
    told[0] = 0;
    descriptors = count_descriptors();
    if (members_serve(reduce) != 0)
        return -1;
    printed_begin();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    printed_end(NULL, 0);
    if (members_stop() != 0)
        return -1;
    return count_descriptors() == descriptors ? 0 : -1; /* the server closes what it has opened */
}

static bool has_logged(const char *text)
{
    char log[4096];

    printed_read(log, sizeof(log));
    return strstr(log, text) != NULL;
}

static void logs(const char *text)
{
    if (!has_logged(text))
        fail_msg("it has not logged '%s'", text);
}

static void say(int fd, const void *bytes, size_t size)
{
    assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
    members_turn();
}

static size_t make(uint8_t *bytes, struct by_member_frame frame)
{
    size_t fixed = by_member_put(&frame, bytes);

    if (frame.bytes > 0)
        memcpy(bytes + fixed, frame.data, frame.bytes);
    return fixed + frame.bytes;
}

static void give(int fd, struct by_member_frame frame)
{
    static uint8_t bytes[65536];

    say(fd, bytes, make(bytes, frame));
}

/* Sends the host's name and job; job 0: the only one with its node. */
static int enter(const char *name, uint16_t job, uint16_t gen, uint64_t nonce)
{
    int fd = members_join();

    give(fd, (struct by_member_frame){.type = BY_MEMBER_HELLO,
                                      .job = job,
                                      .gen = gen,
                                      .number = nonce,
                                      .data = (const uint8_t *)name,
                                      .bytes = (uint32_t)strlen(name)});
    return fd;
}

/* Requires that the host reads these frames ("WELCOME 1.0 generation 3, FAIL: text, end") and
 * nothing else. "end": its connection is closed. */
static void reads(int fd, const char *expected)
{
    static uint8_t bytes[65536];
    struct by_member_frame frame;
    size_t used = 0, at = 0, taken;
    char text[1000] = "";
    ssize_t got;

    while ((got = recv(fd, bytes + used, sizeof(bytes) - used, MSG_DONTWAIT)) > 0)
        used += (size_t)got;
    while (by_member_get(bytes + at, used - at, BY_MEMBER_CONTROLLER, &frame, &taken) == 0) {
        size_t length = strlen(text);

        if (frame.type == BY_MEMBER_FAIL)
            snprintf(text + length, sizeof(text) - length, "%sFAIL %s: %.*s", at > 0 ? ", " : "",
                     by_error_name(frame.code), (int)frame.bytes, (const char *)frame.data);
        else
            snprintf(text + length, sizeof(text) - length, "%s%s %u.%u generation %u", at > 0 ? ", " : "",
                     by_member_name(frame.type), frame.job, frame.rank, frame.gen);
        length = strlen(text);
        if (frame.type == BY_MEMBER_HEARD)
            snprintf(text + length, sizeof(text) - length, " from %u: %.*s", frame.peer, (int)frame.bytes,
                     (const char *)frame.data);
        at += taken;
    }
    assert_int_equal(at, used);
    if (got == 0 || (got < 0 && errno == ECONNRESET))
        strcat(text, text[0] != 0 ? ", end" : "end");
    assert_string_equal(text, expected);
}

/* ---- tests ---- */

static void each_frame_of_a_rank_becomes_an_event(void **state)
{
    static const uint8_t ports[2 * BY_MEMBER_PORT_BYTES], histograms[BY_LATENCY_ALL_BYTES];
    int one, two;

    (void)state;
    members_job("3=allreduce");
    one = enter("h1", 3, 4, 0x1234567890);
    expect("came 3.1 generation 4 number 78187493520\n");
    two = enter("h0", 0, 0, 8);
    expect("came 3.0 generation 0 number 8\n");
    give(one, (struct by_member_frame){.type = BY_MEMBER_ALIVE,
                                       .job = 3,
                                       .rank = 1,
                                       .gen = 4,
                                       .number = 66,
                                       .data = ports,
                                       .bytes = sizeof(ports)});
    expect("counted 3.1 of h1 number 66: 32 bytes\nalive 3.1 generation 4 number 66\n");
    give(one, (struct by_member_frame){.type = BY_MEMBER_MEASURED,
                                       .job = 3,
                                       .rank = 1,
                                       .gen = 4,
                                       .number = 5,
                                       .data = histograms,
                                       .bytes = sizeof(histograms)});
    assert_non_null(strstr(told, "measured 3.1 of h1 number 5: "));
    assert_null(strstr(told, "alive"));
    told[0] = 0;
    give(one, (struct by_member_frame){.type = BY_MEMBER_SUSPECT, .job = 3, .rank = 1, .gen = 5, .peer = 2});
    expect("suspects 3.1 generation 5 number 2\n");
    reads(one, "WELCOME 3.1 generation 4"); /* a sign of life, of its own generation */
    give(one, (struct by_member_frame){.type = BY_MEMBER_CARRIED, .job = 3, .rank = 1, .gen = 5});
    expect("carried 3.1 generation 5 number 0\n");
    give(one, (struct by_member_frame){.type = BY_MEMBER_SAY,
                                       .job = 3,
                                       .rank = 1,
                                       .gen = 5,
                                       .peer = 0,
                                       .data = (const uint8_t *)"hi",
                                       .bytes = 2});
    expect("");
    reads(two, "HEARD 3.0 generation 5 from 1: hi");
    reads(one, "");
    give(one, (struct by_member_frame){.type = BY_MEMBER_BYE, .job = 3, .rank = 1});
    expect("left 3.1 generation 0 number 0\n");
    reads(one, "end");
    close(one);
    give(two, (struct by_member_frame){.type = BY_MEMBER_SAY,
                                       .job = 3,
                                       .rank = 0,
                                       .gen = 5,
                                       .peer = 1,
                                       .data = (const uint8_t *)"hi",
                                       .bytes = 2}); /* no such rank */
    reads(two, "");
    close(two);
    members_turn();
    expect("died 3.0 generation 0 number 0\n");
}

static void frames_come_in_parts_and_many_at_once(void **state)
{
    uint8_t bytes[400];
    size_t size;
    int one;

    (void)state;
    members_job("3=allreduce");
    one = enter("h0", 3, 1, 8);
    told[0] = 0;
    size = make(bytes, (struct by_member_frame){.type = BY_MEMBER_CARRIED, .job = 3, .gen = 5});
    size += make(bytes + size, (struct by_member_frame){.type = BY_MEMBER_CARRIED, .job = 3, .gen = 6});
    size += make(bytes + size, (struct by_member_frame){.type = BY_MEMBER_CARRIED, .job = 3, .gen = 7});
    say(one, bytes, size - 1);
    expect("carried 3.0 generation 5 number 0\ncarried 3.0 generation 6 number 0\n");
    say(one, bytes + size - 1, 1);
    expect("carried 3.0 generation 7 number 0\n");
    for (size_t i = 0; i < size; i++)
        say(one, bytes + i, 1);
    expect("carried 3.0 generation 5 number 0\ncarried 3.0 generation 6 number 0\ncarried 3.0 generation 7 "
           "number 0\n");
    close(one);
}

static void a_silent_connection_ends_after_five_seconds(void **state)
{
    int one = members_join();

    (void)state;
    members_daemon()->now_ms += BY_MEMBERS_HELLO_MS;
    members_turn();
    reads(one, "");
    members_daemon()->now_ms += 1;
    members_turn();
    reads(one, "end");
    logs("host (unknown): it did not identify itself within 5 s; its connection is closed\n");
    close(one);
}

static void who_waits_for_a_job_is_told_after_five_seconds_that_there_is_none(void **state)
{
    int one = enter("h1", 0, 0, 8), two = enter("h0", 7, 0, 8);

    (void)state;
    reads(one, "");
    reads(two, "");
    members_daemon()->now_ms += BY_MEMBERS_HELLO_MS - 1;
    members_turn();
    reads(one, "");
    reads(two, "");
    members_daemon()->now_ms += 1;
    members_turn();
    reads(one, "FAIL ENOENT: no job has host h1; banyan job create makes one, end");
    reads(two, "FAIL ENOENT: there is no job 7, end");
    logs("host h0: there is no job 7; its connection is closed\n");
    close(one);
    close(two);
    expect("");
}

static void who_waits_while_the_daemon_starts_waits_on(void **state)
{
    int one = enter("h1", 0, 0, 8);

    (void)state;
    members_daemon()->start = (struct by_start *)told; /* not read */
    members_daemon()->now_ms += 10 * BY_MEMBERS_HELLO_MS;
    members_turn();
    reads(one, "");
    members_daemon()->start = NULL;
    members_job("3=allreduce");
    members_turn();
    expect("came 3.1 generation 0 number 8\n");
    close(one);
}

static void without_a_number_a_host_gets_its_only_job(void **state)
{
    struct by_job *job;
    int one;

    (void)state;
    members_job("3=allreduce");
    job = members_job("4=allreduce");
    one = enter("h1", 0, 0, 8);
    reads(one, "FAIL ENOENT: h1 is in 2 jobs; BANYAN_JOB chooses one, end");
    close(one);
    one = enter("h1", 4, 0, 8);
    expect("came 4.1 generation 0 number 8\n");
    close(one);
    members_turn();
    told[0] = 0;
    job->spec.is_group = true; /* for the hosts of a communicator, which have its number */
    one = enter("h1", 0, 0, 8);
    expect("came 3.1 generation 0 number 8\n");
    close(one);
}

static void a_job_that_has_failed_before_this_controller_led_gets_five_seconds(void **state)
{
    struct by_job *job = members_job("3=allreduce");
    struct by_job_tables *tables = job->tables;
    int one;

    (void)state;
    job->tables = NULL;
    job->state = BY_JOB_FAILED;
    snprintf(job->text, sizeof(job->text), "no path is left");
    one = enter("h1", 3, 0, 8);
    members_daemon()->now_ms += BY_MEMBERS_HELLO_MS - 1;
    members_turn();
    reads(one, "");
    members_daemon()->now_ms += 1;
    members_turn();
    reads(one, "FAIL ENOENT: job 3 has no tables: no path is left, end");
    close(one);
    one = enter("h1", 3, 0, 8);
    job->tables = tables;
    job->state = BY_JOB_RUNNING;
    members_daemon()->now_ms += BY_MEMBERS_HELLO_MS;
    members_turn();
    expect("came 3.1 generation 0 number 8\n");
    close(one);
}

static void a_host_that_connects_again_takes_the_place_of_its_old_connection(void **state)
{
    int one, two;

    (void)state;
    members_job("3=allreduce");
    one = enter("h1", 3, 1, 8);
    told[0] = 0;
    two = enter("h1", 3, 4, 8);
    expect("came 3.1 generation 4 number 8\n"); /* and its rank has not died */
    reads(one, "end");
    reads(two, "");
    by_members_send(members_daemon(), 3, 1, (struct by_member_frame){.type = BY_MEMBER_GO, .gen = 4});
    reads(two, "GO 3.1 generation 4");
    close(one);
    close(two);
}

static void who_says_its_name_twice_or_no_host_is_cut_off(void **state)
{
    int one;

    (void)state;
    members_job("3=allreduce");
    one = enter("h1", 3, 1, 8);
    told[0] = 0;
    give(one, (struct by_member_frame){
                  .type = BY_MEMBER_HELLO, .job = 3, .data = (const uint8_t *)"h1", .bytes = 2});
    reads(one, "end");
    expect("died 3.1 generation 0 number 0\n");
    logs("host h1: it sent HELLO after HELLO; its connection is closed\n");
    close(one);
    one = enter("h\n1\x7f ~", 3, 1, 8);
    reads(one, "FAIL ENOENT: the topology has no host h?1??~; set BANYAN_NODE to its name there, end");
    close(one);
    one = members_join();
    give(one, (struct by_member_frame){.type = BY_MEMBER_BYE, .job = 3, .rank = 1});
    reads(one, "end");
    logs("host (unknown): it sent BYE before HELLO; its connection is closed\n");
    close(one);
    one = enter("h0", 9, 1, 8); /* it waits, and its frames are ignored */
    give(one, (struct by_member_frame){.type = BY_MEMBER_CARRIED, .job = 9, .rank = 0, .gen = 2});
    reads(one, "");
    expect("");
    close(one);
}

static void the_job_of_a_communicator_is_used_while_a_host_is_connected(void **state)
{
    struct by_job *job = members_job("3=allreduce"), *other = members_job("4=allreduce");
    int one;

    (void)state;
    job->spec.is_group = true;
    members_turn();
    assert_false(job->is_used);
    one = enter("h0", 3, 0, 8);
    members_turn();
    assert_true(job->is_used && !other->is_used); /* others are not asked about */
    close(one);
    members_turn();
    members_turn();
    assert_false(job->is_used);
    job->state = BY_JOB_ENDING; /* used while a request waits for it */
    one = enter("h0", 3, 0, 8);
    members_turn();
    assert_true(job->is_used);
    close(one);
}

static void frames_to_ranks_that_are_not_connected_go_nowhere(void **state)
{
    int one, two;

    (void)state;
    members_job("3=allreduce");
    members_job("4=allreduce");
    one = enter("h0", 3, 0, 8);
    two = enter("h1", 4, 0, 9);
    for (uint16_t job = 2; job < 6; job++)
        for (uint16_t rank = 0; rank < 3; rank++)
            by_members_send(
                members_daemon(), job, rank,
                (struct by_member_frame){.type = BY_MEMBER_GO, .gen = (uint16_t)(10 * job + rank)});
    reads(one, "GO 3.0 generation 30");
    reads(two, "GO 4.1 generation 41");
    close(one);
    close(two);
}

/* The fault injection loses everything else. */
static void the_first_and_the_last_frames_of_a_connection_are_not_lost(void **state)
{
    static const enum by_member_type types[] = {BY_MEMBER_WELCOME, BY_MEMBER_FREEZE, BY_MEMBER_HEARD,
                                                BY_MEMBER_GO, BY_MEMBER_FAIL};
    int one;

    (void)state;
    members_job("3=allreduce");
    members_daemon()->options.lose = 1000;
    one = enter("h0", 3, 4, 8);
    expect("came 3.0 generation 4 number 8\n");
    give(one, (struct by_member_frame){.type = BY_MEMBER_ALIVE, .job = 3, .gen = 4, .number = 1});
    give(one, (struct by_member_frame){.type = BY_MEMBER_CARRIED, .job = 3, .gen = 4});
    expect("");
    for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        by_members_send(members_daemon(), 3, 0,
                        (struct by_member_frame){.type = (uint8_t)types[i],
                                                 .gen = 4,
                                                 .code = BY_EIO,
                                                 .data = (const uint8_t *)"hi",
                                                 .bytes = types[i] == BY_MEMBER_GO ? 0 : 2});
    reads(one, "WELCOME 3.0 generation 4, FAIL EIO: hi");
    give(one, (struct by_member_frame){.type = BY_MEMBER_BYE, .job = 3});
    expect("left 3.0 generation 0 number 0\n");
    close(one);
}

/* On a machine that has been up for years. Lines of hosts are not limited. */
static void strangers_are_summed_up_when_they_rest(void **state)
{
    int host;

    (void)state;
    members_job("3=allreduce");
    host = enter("h1", 3, 1, 8);
    members_daemon()->now_ms = UINT64_C(100000000000);
    for (unsigned i = 0; i < 12; i++) {
        int one = members_join();

        say(one, "GET / HTTP/1.1\r\n\r\n", 18);
        reads(one, "end");
        close(one);
    }
    assert_false(has_logged("is refused, and "));
    give(host, (struct by_member_frame){
                   .type = BY_MEMBER_HELLO, .job = 3, .data = (const uint8_t *)"h1", .bytes = 2});
    logs("host h1: it sent HELLO after HELLO; its connection is closed\n");
    close(host);
    members_daemon()->now_ms += 3000;
    members_turn();
    logs("a connection that is not from a host is refused, and 2 more in the last 3 s\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_frame_of_a_rank_becomes_an_event, set_up, tear_down),
        cmocka_unit_test_setup_teardown(frames_come_in_parts_and_many_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_silent_connection_ends_after_five_seconds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_waits_for_a_job_is_told_after_five_seconds_that_there_is_none,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_waits_while_the_daemon_starts_waits_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_number_a_host_gets_its_only_job, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_job_that_has_failed_before_this_controller_led_gets_five_seconds,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_host_that_connects_again_takes_the_place_of_its_old_connection,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_says_its_name_twice_or_no_host_is_cut_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_job_of_a_communicator_is_used_while_a_host_is_connected, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(frames_to_ranks_that_are_not_connected_go_nowhere, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_first_and_the_last_frames_of_a_connection_are_not_lost, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(strangers_are_summed_up_when_they_rest, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
