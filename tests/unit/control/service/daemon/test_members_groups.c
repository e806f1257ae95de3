/* The server of hosts: requests for jobs of communicators, and how much is queued for hosts. The
 * part that makes and ends such jobs is replaced. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/groups.h"
#include "control/service/daemon/members_inside.h"
#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/loop.h"
#include "tests/unit/control/service/daemon/printed.h"
#include "tests/unit/control/service/daemon/record.h"

static struct { /* the last request */
    by_jobs_reply_fn *reply;
    void *context;
} asked;

/* ---- the other parts ---- */

void __wrap_by_groups_create(struct by_daemon *daemon, uint16_t parent, uint32_t node, const uint8_t *ranks,
                             uint32_t bytes, by_jobs_reply_fn *reply, void *context);
void __wrap_by_groups_refused(struct by_daemon *daemon);
void __wrap_by_groups_left(struct by_daemon *daemon, uint16_t job);

void __wrap_by_groups_create(struct by_daemon *daemon, uint16_t parent, uint32_t node, const uint8_t *ranks,
                             uint32_t bytes, by_jobs_reply_fn *reply, void *context)
{
    record("%s requests ranks", daemon->topology->nodes[node].name);
    for (uint32_t i = 0; i < bytes; i++)
        record(" %02x", ranks[i]);
    record(" of job %u\n", parent);
    asked.reply = reply;
    asked.context = context;
}

void __wrap_by_groups_refused(struct by_daemon *daemon)
{
    (void)daemon;
    record("refused\n");
}

void __wrap_by_groups_left(struct by_daemon *daemon, uint16_t job)
{
    (void)daemon;
    record("all have left job %u\n", job);
}

static void reduce(struct by_daemon *daemon, const struct by_daemon_event *event)
{
    (void)daemon;
    if (event->kind == BY_EVENT_RANK)
        record("%s %u.%u\n",
               event->rank_event == BY_RECOVER_RANK_CAME   ? "came"
               : event->rank_event == BY_RECOVER_RANK_LEFT ? "left"
                                                           : "died",
               event->job, event->rank);
}

/* ---- the server and its hosts ---- */

static int set_up(void **state)
{
    (void)state;
    record_clear();
    if (members_serve(reduce) != 0)
        return -1;
    printed_begin();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    printed_end(NULL, 0);
    return members_stop();
}

static void logs(const char *text)
{
    char log[4096];

    printed_read(log, sizeof(log));
    if (strstr(log, text) == NULL)
        fail_msg("no '%s' in '%s'", text, log);
}

static void give(int fd, struct by_member_frame frame)
{
    uint8_t bytes[1000];
    size_t fixed = by_member_put(&frame, bytes);

    if (frame.bytes > 0)
        memcpy(bytes + fixed, frame.data, frame.bytes);
    assert_int_equal(send(fd, bytes, fixed + frame.bytes, MSG_NOSIGNAL), fixed + frame.bytes);
    members_turn();
}

/* Requests a job: the data are the name, a zero and the set of ranks. */
static int request(uint16_t job, const char *data, uint32_t bytes)
{
    int fd = members_join();

    give(
        fd,
        (struct by_member_frame){
            .type = BY_MEMBER_GROUP, .job = job, .number = 9, .data = (const uint8_t *)data, .bytes = bytes});
    return fd;
}

static int enter(const char *name, uint16_t job)
{
    int fd = members_join();

    give(fd, (struct by_member_frame){.type = BY_MEMBER_HELLO,
                                      .job = job,
                                      .number = 9,
                                      .data = (const uint8_t *)name,
                                      .bytes = (uint32_t)strlen(name)});
    return fd;
}

static bool is_cut(int fd)
{
    static char bytes[1 << 16];
    ssize_t got;

    while ((got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
        ;
    return got == 0 || errno == ECONNRESET;
}

/* Reads the reason with which the connection ends. */
static void reads(int fd, int error, const char *text)
{
    uint8_t bytes[1000];
    struct by_member_frame frame;
    ssize_t got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    size_t used;

    assert_true(got > 0 && by_member_get(bytes, (size_t)got, BY_MEMBER_CONTROLLER, &frame, &used) == 0);
    assert_true(frame.type == BY_MEMBER_FAIL && frame.code == error && used == (size_t)got);
    assert_int_equal(frame.bytes, strlen(text));
    assert_memory_equal(frame.data, text, frame.bytes);
    assert_true(is_cut(fd));
    close(fd);
}

/* ---- tests ---- */

static void a_host_that_requests_a_job_becomes_its_rank(void **state)
{
    struct by_job *job;
    int fd = request(3, "h1\0\x03\x80", 5);

    (void)state;
    record_expect("h1 requests ranks 03 80 of job 3\n");
    members_turn();
    record_expect("");
    job = members_job("5=allreduce");
    asked.reply(members_daemon(), asked.context, 0, job, "");
    record_expect("came 5.1\n");
    close(fd);
}

static void a_request_may_be_refused(void **state)
{
    int other = members_join(), fd = request(3, "h0\0", 3), last = members_join();

    (void)state;
    record_expect("h0 requests ranks of job 3\n");
    asked.reply(members_daemon(), asked.context, BY_ELIMIT, NULL, "too many");
    record_expect("refused\n");
    reads(fd, BY_ELIMIT, "too many");
    logs("host h0: too many; its connection is closed\n");
    asked.reply(members_daemon(), asked.context, BY_ELIMIT, NULL, "again"); /* it is gone */
    members_turn();
    members_turn();
    asked.reply(members_daemon(), asked.context, BY_ELIMIT, NULL, "again");
    record_expect("refused\nrefused\n");
    assert_false(is_cut(other) || is_cut(last));
    close(other);
    close(last);
}

static void a_request_names_its_host_and_comes_first(void **state)
{
    static const struct {
        const char *data;
        uint32_t bytes;
    } nameless[] = {
        {"\0\x03\x03", 3}, {"h0h", 3}, {"012345678901234567890123456789012345678901234567\0\x03", 50}};
    int fd;

    (void)state;
    for (size_t i = 0; i < sizeof(nameless) / sizeof(nameless[0]); i++) {
        fd = request(3, nameless[i].data, nameless[i].bytes);
        assert_true(is_cut(fd));
        close(fd);
    }
    logs("host (unknown): it sent GROUP without a name; its connection is closed\n");
    fd = request(3, "01234567890123456789012345678901234567890123456\0\x03", 49);
    reads(fd, BY_ENOENT,
          "the topology has no host 01234567890123456789012345678901234567890123456; set BANYAN_NODE to its "
          "name there");
    fd = request(3, "h2\0\x03", 4);
    reads(fd, BY_ENOENT, "the topology has no host h2; set BANYAN_NODE to its name there");
    record_expect("");
    fd = request(3, "h0\0\x03", 4);
    give(fd, (struct by_member_frame){
                 .type = BY_MEMBER_GROUP, .job = 3, .data = (const uint8_t *)"h0", .bytes = 3});
    assert_true(is_cut(fd));
    logs("host h0: it sent GROUP after HELLO; its connection is closed\n");
    close(fd);
    record_expect("h0 requests ranks 03 of job 3\n");
}

/* The job may end when the last one leaves; a connection that is lost may come again. */
static void the_last_host_that_leaves_a_job_is_told(void **state)
{
    struct by_job *job = members_job("3=allreduce");
    int one = enter("h0", 3), two = enter("h1", 3);

    (void)state;
    record_clear();
    give(one, (struct by_member_frame){.type = BY_MEMBER_BYE, .job = 3, .rank = 0});
    record_expect("left 3.0\n");
    close(one);
    job->state = BY_JOB_ENDING;
    one = enter("h0", 3); /* waits for what becomes of it */
    give(two, (struct by_member_frame){.type = BY_MEMBER_BYE, .job = 3, .rank = 1});
    record_expect("left 3.1\n");
    close(two);
    close(one);
    members_turn();
    job->state = BY_JOB_RUNNING;
    one = enter("h0", 3);
    record_clear();
    give(one, (struct by_member_frame){.type = BY_MEMBER_BYE, .job = 3, .rank = 0});
    record_expect("left 3.0\nall have left job 3\n");
    close(one);
    one = enter("h0", 3);
    record_clear();
    close(one);
    members_turn();
    record_expect("died 3.0\n");
}

/* A process that makes plans has the descriptors of this one until it closes them. */
static void a_connection_that_has_ended_is_not_watched_while_another_process_has_it(void **state)
{
    struct by_watcher *watcher;
    struct epoll_event event;
    int fd, copy;

    (void)state;
    members_job("3=allreduce");
    fd = enter("h0", 3);
    copy = dup(members_daemon()->members->peers->watcher.fd);
    close(fd);
    assert_int_equal(epoll_wait(members_daemon()->epoll, &event, 1, 1000), 1);
    watcher = event.data.ptr;
    watcher->ready(members_daemon(), watcher, event.events);
    record_expect("came 3.0\ndied 3.0\n");
    assert_int_equal(epoll_wait(members_daemon()->epoll, &event, 1, 0), 0);
    close(copy);
}

/* Sends a message to rank 0. */
static void hear(const uint8_t *data, uint32_t bytes)
{
    by_members_send(members_daemon(), 3, 0,
                    (struct by_member_frame){.type = BY_MEMBER_HEARD, .data = data, .bytes = bytes});
}

/* Makes frames wait for a host that does not read, and returns its connection in the server. */
static struct members_peer *hold(const uint8_t *data)
{
    struct members_peer *peer = members_daemon()->members->peers;

    while (peer->out.used - peer->out.at < BY_MEMBER_SAY_MAX)
        hear(data, BY_MEMBER_SAY_MAX);
    return peer;
}

static void a_host_may_have_so_many_bytes_queued(void **state)
{
    uint8_t *data = by_alloc(BY_MEMBER_SAY_MAX, 1);
    struct members_peer *peer;
    size_t waiting;
    int fd;

    (void)state;
    members_job("3=allreduce");
    for (unsigned more = 0; more < 2; more++) {
        fd = enter("h0", 3);
        peer = hold(data);
        while ((waiting = peer->out.used - peer->out.at) + BY_MEMBER_SAY_MAX < BY_MEMBERS_WAITING_MAX)
            hear(data, BY_MEMBER_SAY_MAX);
        hear(data, (uint32_t)(BY_MEMBERS_WAITING_MAX - waiting) + more);
        assert_int_equal(peer->broken, more);
        assert_int_equal(peer->stuck, more ? waiting : 0);
        record_clear();
        if (!more)
            close(fd);
        members_turn();
        record_expect("died 3.0\n");
        if (more) {
            logs("host h0: it does not read its messages: ");
            close(fd);
        }
    }
    free(data);
}

static void all_hosts_may_have_so_many_bytes_queued(void **state)
{
    uint8_t *data = by_alloc(BY_MEMBER_SAY_MAX, 1);
    struct by_members *members = members_daemon()->members;
    struct members_peer *peer, *other;
    size_t others;
    int fd, one;

    (void)state;
    members_job("3=allreduce");
    one = enter("h1", 3);
    other = members->peers;
    fd = enter("h0", 3);
    peer = hold(data);
    others = BY_MEMBERS_WAITING_ALL_MAX - members->waiting - BY_MEMBER_SAY_MAX;
    members->waiting += others;
    hear(data, BY_MEMBER_SAY_MAX);
    assert_false(peer->broken);
    by_members_send(members_daemon(), 3, 1, /* nothing waits for this one */
                    (struct by_member_frame){.type = BY_MEMBER_HEARD, .data = data, .bytes = 1});
    assert_false(other->broken);
    hear(data, 1);
    assert_true(peer->broken);
    members->waiting -= others;
    close(fd);
    close(one);
    members_turn();
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_host_that_requests_a_job_becomes_its_rank, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_request_may_be_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_request_names_its_host_and_comes_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_last_host_that_leaves_a_job_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_connection_that_has_ended_is_not_watched_while_another_process_has_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_host_may_have_so_many_bytes_queued, set_up, tear_down),
        cmocka_unit_test_setup_teardown(all_hosts_may_have_so_many_bytes_queued, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
