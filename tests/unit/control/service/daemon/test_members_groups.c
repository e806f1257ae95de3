/* The server of hosts: requests for jobs of communicators, and how much is queued for hosts. The
 * part that makes and ends such jobs is replaced. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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

static bool no_rank; /* no node is a rank */

uint32_t __wrap_by_lowering_rank(const struct by_lowering *lowering, uint16_t job, uint32_t node);
uint32_t __real_by_lowering_rank(const struct by_lowering *lowering, uint16_t job, uint32_t node);

uint32_t __wrap_by_lowering_rank(const struct by_lowering *lowering, uint16_t job, uint32_t node)
{
    return no_rank ? UINT32_MAX : __real_by_lowering_rank(lowering, job, node);
}

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

/* It does not read, then it does, and nothing is lost; then the loop does not watch its output. */
static void what_waits_for_a_host_comes_when_it_reads(void **state)
{
    static uint8_t bytes[1 << 16];
    uint8_t *data = by_alloc(BY_MEMBER_SAY_MAX, 1);
    struct members_peer *peer;
    size_t sent = 0, got = 0;
    int fd;

    (void)state;
    members_job("3=allreduce");
    fd = enter("h0", 3);
    peer = members_daemon()->members->peers;
    assert_false(peer->writing);
    while (peer->out.used - peer->out.at < BY_MEMBER_SAY_MAX) {
        hear(data, BY_MEMBER_SAY_MAX);
        sent += BY_MEMBER_SAY_MAX;
    }
    assert_true(peer->writing);
    for (unsigned idle = 0; idle < 2;) {
        ssize_t count = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

        got += count > 0 ? (size_t)count : 0;
        idle = count > 0 ? 0 : idle + 1;
        members_turn();
    }
    assert_in_range(got - sent, 1, sent / BY_MEMBER_SAY_MAX * BY_MEMBER_FIXED_MAX); /* the heads */
    assert_false(peer->writing);
    assert_true(members_daemon()->members->waiting == 0);
    close(fd);
    free(data);
}

static void a_broken_connection_gives_way_at_once(void **state)
{
    uint8_t *data = by_alloc(BY_MEMBER_SAY_MAX, 1);
    struct members_peer *peer;
    int one, two;

    (void)state;
    members_job("3=allreduce");
    one = enter("h0", 3);
    two = members_join();
    peer = members_daemon()->members->peers->next;
    while (!peer->broken)
        hear(data, BY_MEMBER_SAY_MAX);
    record_clear();
    give(two, (struct by_member_frame){.type = BY_MEMBER_HELLO,
                                       .job = 3,
                                       .number = 10, /* another process */
                                       .data = (const uint8_t *)"h0",
                                       .bytes = 2});
    record_expect("died 3.0\ncame 3.0\n");
    close(one);
    close(two);
    free(data);
}

static void the_hosts_have_a_limit_that_is_named(void **state)
{
    struct by_members *members = members_daemon()->members;
    int one = members_join(), two;

    (void)state;
    members->peers_max = 2;
    two = members_join();
    assert_false(is_cut(two));
    close(two);
    members_turn();
    members_turn();
    members->peers_max = 1;
    two = members_join();
    assert_true(is_cut(two) && !is_cut(one));
    logs("1 hosts are connected, the limit that ulimit -n allows; another one is refused\n");
    close(two);
    members->peer_count = members->peers_max = BY_MEMBERS_MAX;
    two = members_join();
    assert_true(is_cut(two));
    logs(" hosts are connected, the limit; another one is refused\n");
    members->peer_count = 1;
    close(one);
    close(two);
}

/* A host that has lost its network is noticed, and small frames do not wait. */
static void connections_over_tcp_have_short_limits(void **state)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), value = 0;
    socklen_t bytes = sizeof(value);

    (void)state;
    by_members_admit(members_daemon(), fd, NULL);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &bytes), 0);
    assert_int_equal(value, 1);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &bytes), 0);
    assert_int_equal(value, 3000);
    members_turn();
}

/* One of a thousand frames arrives, of so many that chance does not matter. */
static void faults_lose_as_many_frames_as_requested(void **state)
{
    static uint8_t bytes[1 << 16];
    ssize_t count;
    size_t got = 0;
    int fd;

    (void)state;
    members_job("3=allreduce");
    fd = enter("h0", 3);
    members_daemon()->members->prng.state = 1;
    members_daemon()->options.lose = 999;
    for (unsigned i = 0; i < 100000; i++)
        by_members_send(members_daemon(), 3, 0, (struct by_member_frame){.type = BY_MEMBER_GO, .gen = 1});
    while ((count = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
        got += (size_t)count;
    assert_in_range(got / BY_MEMBER_HEAD_BYTES, 60, 145);
    members_daemon()->options.lose = 1000;
    close(fd);
    fd = request(3, "h1\0\x03", 4); /* the first frame is spared */
    members_daemon()->options.lose = 0;
    assert_non_null(strstr(recorded, "h1 requests ranks 03 of job 3\n"));
    close(fd);
}

/* Jobs of some hosts, and a node that is no host. */
static void a_host_without_a_job_of_its_own_is_refused(void **state)
{
    struct by_job *job = members_job("3=allreduce");
    int fd;

    (void)state;
    job->spec.member = by_alloc(2, sizeof(bool));
    job->spec.member[0] = true;
    fd = enter("h1", 0);
    members_daemon()->now_ms += BY_MEMBERS_HELLO_MS;
    members_turn();
    reads(fd, BY_ENOENT, "no job has host h1; banyan job create makes one");
    fd = enter("h0", 0);
    record_expect("came 3.0\n");
    close(fd);
    no_rank = true;
    fd = enter("h1", 3);
    no_rank = false;
    reads(fd, BY_ENOENT, "h1 is not a rank of job 3");
    members_daemon()->topology->nodes[1].compute = false;
    fd = enter("h1", 3);
    reads(fd, BY_ENOENT, "the topology has no host h1; set BANYAN_NODE to its name there");
    fd = request(3, "h1\0\x03", 4);
    reads(fd, BY_ENOENT, "the topology has no host h1; set BANYAN_NODE to its name there");
    members_daemon()->topology->nodes[1].compute = true;
}

static void hosts_of_a_daemon_that_ends_have_not_died(void **state)
{
    int one, two;

    (void)state;
    members_job("3=allreduce");
    one = enter("h0", 3);
    two = enter("h1", 3);
    record_clear();
    printed_end(NULL, 0);
    assert_int_equal(members_stop(), 0);
    record_expect("");
    assert_true(is_cut(one) && is_cut(two));
    close(one);
    close(two);
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
        cmocka_unit_test_setup_teardown(what_waits_for_a_host_comes_when_it_reads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_broken_connection_gives_way_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_hosts_have_a_limit_that_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(connections_over_tcp_have_short_limits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(faults_lose_as_many_frames_as_requested, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_host_without_a_job_of_its_own_is_refused, set_up, tear_down),
        cmocka_unit_test_setup(hosts_of_a_daemon_that_ends_have_not_died, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
