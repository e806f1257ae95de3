/* What the process that makes plans before failures writes, what is read from it, and when it runs.
 * The process, the planner and the other parts of the daemon are replaced. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/ahead.h"
#include "control/service/daemon/jobs.h"
#include "control/service/daemon/news.h"
#include "control/service/daemon/recover.h"
#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/descriptors.h"
#include "tests/unit/control/service/daemon/record.h"
#include "tests/unit/control/tables/bench.h"

enum { H0, H1, X0, X1, NODES };
enum { H0_X0, H1_X0, H0_X1, H1_X1, LINKS };
#define LIMIT_S 60u
#define CHILD   77
#define BEGIN   UINT32_MAX

/* The head of a record in the pipe. */
struct ahead_test_head {
    uint32_t part, want;
    uint64_t bytes;
};

static struct {
    struct by_daemon daemon;
    struct by_job jobs[2]; /* 3 and 7 */
    struct by_job_tables tables[2];
    bool lost_nodes[NODES], lost_links[LINKS], busy; /* recovery */
    struct by_watcher *watcher;
    int out;                      /* the process's end of the pipe */
    int start_error, watch_error; /* of the next start */
    bool plans;                   /* the process makes plans at once */
    const char *file;             /* it writes them to this file instead of the pipe */
    int planned;                  /* its result */
    unsigned started;
    int status;           /* its exit status */
    bool lasts;           /* it has not ended yet although it has been killed */
    unsigned interrupted; /* so many calls of waitpid fail first */
    unsigned descriptors;
} rig;

/* ---- the other parts ---- */

int __wrap_kill(pid_t pid, int signal);
pid_t __wrap_waitpid(pid_t pid, int *status, int flags);

int __wrap_kill(pid_t pid, int signal)
{
    assert_int_equal(pid, CHILD);
    assert_int_equal(signal, SIGKILL);
    record("kill\n");
    return 0;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int flags)
{
    assert_int_equal(pid, CHILD);
    if (rig.interrupted > 0) {
        rig.interrupted--;
        errno = EINTR;
        return -1;
    }
    record(flags == WNOHANG ? "wait if it has ended\n" : "wait\n");
    if (flags == WNOHANG && rig.lasts)
        return 0;
    if (status != NULL)
        *status = rig.status;
    return CHILD;
}

int by_apart_start(by_apart_stream_fn *run, void *context, pid_t *child, int *fd, struct by_problem *problem)
{
    int ends[2];
    FILE *out;

    if (rig.start_error != 0)
        return by_problem_say(problem, rig.start_error, "cannot start");
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    *child = CHILD;
    *fd = ends[0];
    rig.out = ends[1];
    rig.started++;
    if (rig.plans) {
        out = rig.file != NULL ? fopen(rig.file, "w") : fdopen(dup(rig.out), "w");
        assert_non_null(out);
        rig.planned = run(context, out);
        fclose(out);
    }
    return 0;
}

int by_daemon_watch(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    (void)daemon;
    assert_int_equal(events, EPOLLIN);
    assert_null(rig.watcher);
    rig.watcher = watcher;
    return rig.watch_error;
}

void by_daemon_unwatch(struct by_daemon *daemon, struct by_watcher *watcher)
{
    (void)daemon;
    assert_ptr_equal(watcher, rig.watcher);
    rig.watcher = NULL;
}

void by_news_tell(struct by_news *news, enum by_news_grade grade, const char *format, ...)
{
    char text[600];
    va_list arguments;

    (void)news;
    assert_int_equal(grade, BY_NEWS_PLAIN);
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    record("%s\n", text);
}

struct by_job *by_jobs_find(struct by_daemon *daemon, uint16_t job)
{
    for (uint32_t i = 0; i < daemon->job_count; i++)
        if (daemon->jobs[i]->spec.job == job)
            return daemon->jobs[i];
    return NULL;
}

bool by_recover_is_quiet(const struct by_recover *r)
{
    (void)r;
    return !rig.busy;
}

const bool *by_recover_lost_nodes(const struct by_recover *r)
{
    (void)r;
    return rig.lost_nodes;
}

const bool *by_recover_lost_links(const struct by_recover *r)
{
    (void)r;
    return rig.lost_links;
}

void by_fabric_loss_init(struct by_fabric_loss *loss, const struct by_topology *topology)
{
    loss->nodes = by_alloc(topology->node_count, sizeof(bool));
    loss->links = by_alloc(topology->link_count, sizeof(bool));
}

void by_fabric_loss_copy(struct by_fabric_loss *to, const struct by_fabric_loss *from,
                         const struct by_topology *topology)
{
    by_fabric_loss_init(to, topology);
    memcpy(to->nodes, from->nodes, topology->node_count * sizeof(bool));
    memcpy(to->links, from->links, topology->link_count * sizeof(bool));
}

void by_fabric_loss_free(struct by_fabric_loss *loss)
{
    free(loss->nodes);
    free(loss->links);
}

/* Returns the only part of a loss. */
static uint32_t part_of(const struct by_fabric_loss *loss)
{
    uint32_t part = UINT32_MAX;

    for (uint32_t i = 0; i < NODES + LINKS; i++)
        if (i < NODES ? loss->nodes[i] : loss->links[i - NODES]) {
            assert_int_equal(part, UINT32_MAX);
            part = i;
        }
    assert_true(part != UINT32_MAX);
    return part;
}

/* Trees of job 3 use all but x0's link to h1. */
bool by_fabric_is_hit(const struct by_topology *topology, const struct by_job_tables *tables,
                      const struct by_fabric_loss *loss)
{
    (void)topology;
    assert_ptr_equal(tables, &rig.tables[0]);
    return part_of(loss) != NODES + H1_X0;
}

/* There is no plan without x1, but the first text has been made. */
int by_fabric_texts(const struct by_topology *topology, const struct by_job_spec *spec,
                    const struct by_fabric_loss *loss, const struct by_job_tables *from, uint32_t limit_ms,
                    struct by_fabric_text *texts, struct by_problem *problem)
{
    char text[32];
    uint32_t part = part_of(loss);

    assert_true(topology == rig.daemon.topology && from == &rig.tables[0] && spec == &rig.jobs[0].spec);
    assert_int_equal(limit_ms, LIMIT_S * 1000);
    record("plan without %u\n", part);
    for (uint32_t i = 0; i < (part == X1 ? 1 : spec->want_count); i++) {
        snprintf(text, sizeof(text), "part %u want %u", part, i);
        texts[i] = (struct by_fabric_text){by_copy_text(text), strlen(text)};
    }
    return part == X1 ? by_problem_say(problem, BY_ENOENT, "no path is left") : 0;
}

/* ---- the daemon ---- */

/* Two running jobs of two plans each, in generation 5; the second has all its plans. */
static void open_daemon(void)
{
    struct by_daemon *daemon = &rig.daemon;

    memset(&rig, 0, sizeof(rig));
    record_clear();
    rig.descriptors = count_descriptors();
    rig.out = -1;
    daemon->topology = bench_topology("h0 h1 x0* x1*", "h0-x0 h1-x0 h0-x1 h1-x1");
    daemon->now_ms = 1000;
    daemon->options.plan_limit_s = LIMIT_S;
    daemon->recover = (struct by_recover *)&rig;
    by_fabric_loss_init(&daemon->loss, daemon->topology);
    for (unsigned i = 0; i < 2; i++) {
        rig.tables[i].gen = 5;
        rig.jobs[i] = (struct by_job){.spec = {.job = (uint16_t)(3 + 4 * i), .want_count = 2},
                                      .state = BY_JOB_RUNNING,
                                      .tables = &rig.tables[i]};
        daemon->jobs[daemon->job_count++] = &rig.jobs[i];
    }
    rig.jobs[1].ahead = by_alloc(1, sizeof(*rig.jobs[1].ahead));
    rig.jobs[1].ahead->gen = 5;
}

static void close_daemon(void)
{
    by_ahead_close(&rig.daemon);
    assert_true(rig.daemon.ahead == NULL && rig.watcher == NULL);
    if (rig.out >= 0)
        close(rig.out);
    for (unsigned i = 0; i < 2; i++)
        by_ahead_free(rig.jobs[i].ahead);
    by_fabric_loss_free(&rig.daemon.loss);
    by_topology_free(rig.daemon.topology);
    assert_int_equal(count_descriptors(), rig.descriptors);
}

/* Starts a process, whose records the test writes. */
static void begin(void)
{
    unsigned started = rig.started;

    if (rig.out >= 0)
        close(rig.out);
    rig.out = -1;
    by_ahead_tick(&rig.daemon);
    assert_int_equal(rig.started, started + 1);
    assert_true(rig.daemon.ahead != NULL && rig.watcher != NULL);
    record_clear();
}

static void ready(void)
{
    rig.watcher->ready(&rig.daemon, rig.watcher, EPOLLIN);
}

static void tell_bytes(const void *bytes, size_t size)
{
    assert_int_equal(write(rig.out, bytes, size), size);
}

/* A record, which is read at once. */
static void tell(uint32_t part, uint32_t want, const char *text)
{
    struct ahead_test_head head = {part, want, strlen(text)};

    tell_bytes(&head, sizeof(head));
    tell_bytes(text, strlen(text));
    ready();
}

/* The process closes its end and exits. */
static void finish(int status)
{
    close(rig.out);
    rig.out = -1;
    rig.status = status;
    ready();
    assert_null(rig.daemon.ahead);
}

/* Verifies the texts of a part: two, or none (NULL). */
static void expect_plans(uint32_t index, uint32_t part, const char *first, const char *second)
{
    const struct by_ahead_plans *plans = rig.jobs[0].ahead;
    const char *texts[2] = {first, second};

    assert_true(plans != NULL && index < plans->count && plans->want_count == 2);
    assert_int_equal(plans->entries[index].part, part);
    assert_int_equal(plans->entries[index].texts == NULL, first == NULL);
    for (unsigned i = 0; i < 2 && first != NULL; i++) {
        assert_int_equal(plans->entries[index].texts[i].bytes, strlen(texts[i]));
        assert_memory_equal(plans->entries[index].texts[i].text, texts[i], strlen(texts[i]));
    }
}

/* ---- tests ---- */

static void each_part_of_the_trees_that_has_no_plan_yet_is_planned(void **state)
{
    (void)state;
    open_daemon();
    rig.daemon.topology->nodes[H0].compute = false; /* a switch is the first node */
    by_ahead_add(&rig.jobs[0].ahead, NODES + H0_X0, NULL, 2);
    rig.plans = true;
    by_ahead_tick(&rig.daemon);
    record_expect("plan without 0\nplan without 2\nplan without 3\nplan without 6\nplan without 7\n");
    assert_int_equal(rig.planned, 0);
    ready();
    finish(0);
    record_expect("wait\njob 3: plans for 4 single failures are made\n");
    expect_plans(0, NODES + H0_X0, NULL, NULL);
    expect_plans(1, H0, "part 0 want 0", "part 0 want 1");
    expect_plans(2, X0, "part 2 want 0", "part 2 want 1");
    expect_plans(3, X1, NULL, NULL);
    expect_plans(4, NODES + H0_X1, "part 6 want 0", "part 6 want 1");
    expect_plans(5, NODES + H1_X1, "part 7 want 0", "part 7 want 1");
    assert_int_equal(rig.jobs[0].ahead->bytes, 8 * strlen("part 2 want 0"));
    assert_true(rig.jobs[0].ahead->gen == 5 && rig.jobs[0].ahead->count == 6);
    by_ahead_tick(&rig.daemon); /* nothing is left to plan */
    assert_int_equal(rig.started, 1);
    close_daemon();
    record_expect("");
}

static void it_ends_when_nobody_reads_its_records(void **state)
{
    (void)state;
    open_daemon();
    rig.plans = true;
    rig.file = "/dev/full";
    by_ahead_tick(&rig.daemon);
    record_expect(""); /* it plans nothing */
    assert_int_equal(rig.planned, BY_EIO);
    close_daemon();
    record_expect("kill\nwait\n");
}

static void a_record_may_come_in_pieces(void **state)
{
    const struct ahead_test_head heads[] = {{X0, BEGIN, 0}, {X0, 0, 3}, {X0, 1, 5}};
    const char *const texts[] = {"", "one", "three"};
    uint8_t bytes[3 * sizeof(heads[0]) + 8];
    size_t size = 0;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        memcpy(bytes + size, &heads[i], sizeof(heads[i]));
        memcpy(bytes + size + sizeof(heads[i]), texts[i], heads[i].bytes);
        size += sizeof(heads[i]) + heads[i].bytes;
    }
    for (size_t piece = 1; piece <= size; piece++) {
        open_daemon();
        begin();
        for (size_t at = 0; at < size; at += piece) {
            tell_bytes(bytes + at, piece < size - at ? piece : size - at);
            ready();
        }
        ready(); /* nothing has come */
        assert_non_null(rig.daemon.ahead);
        finish(0);
        record_expect("wait\njob 3: plans for 1 single failures are made\n");
        assert_int_equal(rig.jobs[0].ahead->count, 1);
        expect_plans(0, X0, "one", "three");
        close_daemon();
    }
}

static void a_text_may_be_longer_than_what_is_read_at_once(void **state)
{
    const size_t size = (size_t)3 << 20, piece = (size_t)32 << 10;
    struct ahead_test_head head = {X0, 0, size};
    char *text = by_alloc(size + 1, 1);

    (void)state;
    for (size_t i = 0; i < size; i++)
        text[i] = (char)('a' + i * 7919 % 25);
    open_daemon();
    begin();
    tell(X0, BEGIN, "");
    tell_bytes(&head, sizeof(head));
    for (size_t at = 0; at < size; at += piece) {
        tell_bytes(text + at, piece);
        ready();
    }
    tell(X0, 1, "short");
    finish(0);
    expect_plans(0, X0, text, "short");
    assert_int_equal(rig.jobs[0].ahead->bytes, size + 5);
    close_daemon();
    free(text);
}

static void records_that_belong_to_no_part_are_ignored(void **state)
{
    (void)state;
    open_daemon();
    begin();
    tell(X0, 0, "before any part");
    tell(X0, BEGIN, "");
    tell(X0, 1, "second");
    tell(X0, 1, "again");
    tell(X0, 2, "third");
    tell(X1, 0, "of another part");
    tell(X1, BEGIN, ""); /* the first plan of x0 is missing */
    tell(X1, 0, "first");
    tell(X1, 1, "second");
    tell(X1, 1, "again");
    tell(NODES + H0_X0, BEGIN, ""); /* its second plan is missing */
    tell(NODES + H0_X0, 0, "first");
    finish(0);
    record_expect("wait\njob 3: plans for 1 single failures are made\n");
    assert_int_equal(rig.jobs[0].ahead->count, 3);
    expect_plans(0, X0, NULL, NULL);
    expect_plans(1, X1, "first", "second");
    expect_plans(2, NODES + H0_X0, NULL, NULL);
    close_daemon();
}

static void a_process_whose_record_is_too_long_is_stopped(void **state)
{
    struct ahead_test_head head = {X0, 0, BY_AHEAD_BYTES_MAX};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        open_daemon();
        begin();
        tell(X0, BEGIN, "");
        head.bytes = BY_AHEAD_BYTES_MAX + i;
        tell_bytes(&head, sizeof(head));
        ready();
        assert_true((rig.daemon.ahead == NULL) == i && rig.daemon.ahead_killed == (i ? CHILD : 0));
        record_expect(i ? "kill\n" : "");
        close_daemon();
    }
}

static void what_comes_for_tables_that_are_gone_stops_it(void **state)
{
    (void)state;
    open_daemon();
    begin();
    tell(X0, BEGIN, "");
    rig.tables[0].gen = 6;
    tell(X0, 0, "old");
    assert_null(rig.daemon.ahead);
    record_expect("kill\n");
    begin();
    rig.jobs[0].tables = NULL;
    tell(X0, BEGIN, "");
    assert_null(rig.daemon.ahead);
    rig.jobs[0].tables = &rig.tables[0];
    begin();
    rig.jobs[0].spec.job = 4;
    tell(X0, BEGIN, "");
    assert_null(rig.daemon.ahead);
    assert_null(rig.jobs[0].ahead);
    begin();
    rig.daemon.change = (struct by_change *)&rig;
    tell(X0, BEGIN, "");
    assert_null(rig.daemon.ahead);
    rig.daemon.change = NULL;
    close_daemon();
}

/* If it fails before all parts, it would fail again. */
static void a_process_that_fails_costs_the_part_that_it_began_with(void **state)
{
    (void)state;
    open_daemon();
    begin();
    tell(X0, BEGIN, "");
    tell(X0, 0, "a");
    tell(X0, 1, "b");
    tell(X1, BEGIN, "");
    rig.interrupted = 2;
    finish(1 << 8);
    record_expect("wait\n");
    assert_int_equal(rig.jobs[0].ahead->gen, 0);
    expect_plans(0, X0, "a", "b");
    expect_plans(1, X1, NULL, NULL);
    begin(); /* for the others */
    finish(SIGKILL);
    record_expect("wait\n"); /* it has made none */
    assert_int_equal(rig.jobs[0].ahead->gen, 5);
    assert_int_equal(rig.jobs[0].ahead->count, 2);
    by_ahead_tick(&rig.daemon);
    assert_int_equal(rig.started, 2);
    close_daemon();
}

static void without_anything_to_plan_the_job_has_no_plans(void **state)
{
    (void)state;
    open_daemon();
    begin();
    finish(0);
    record_expect("wait\n");
    assert_true(rig.jobs[0].ahead->gen == 5 && rig.jobs[0].ahead->count == 0);
    close_daemon();
}

/* The limit is twice that of a plan, since the last record. */
static void a_process_without_records_for_too_long_is_ended(void **state)
{
    (void)state;
    open_daemon();
    begin();
    rig.daemon.now_ms += 2000 * LIMIT_S - 1;
    tell(X0, BEGIN, "");
    tell(X0, 0, "a");
    rig.daemon.now_ms += 2000 * LIMIT_S - 1;
    ready(); /* without bytes */
    by_ahead_tick(&rig.daemon);
    record_expect("");
    rig.daemon.now_ms++;
    by_ahead_tick(&rig.daemon);
    record_expect("kill\n");
    assert_int_equal(rig.jobs[0].ahead->count, 1);
    expect_plans(0, X0, NULL, NULL);
    begin();
    rig.daemon.now_ms += 2000 * LIMIT_S; /* before any part */
    by_ahead_tick(&rig.daemon);
    record_expect("kill\n");
    assert_int_equal(rig.jobs[0].ahead->count, 1);
    close_daemon();
}

static void it_runs_only_while_nothing_is_lost_or_under_way(void **state)
{
    struct by_daemon *daemon = &rig.daemon;

    (void)state;
    open_daemon();
    for (unsigned i = 0; i < 13; i++) {
        bool *const flags[] = {&daemon->ending,        &rig.busy,
                               &daemon->loss.nodes[0], &daemon->loss.nodes[NODES - 1],
                               &daemon->loss.links[0], &daemon->loss.links[LINKS - 1],
                               &rig.lost_nodes[0],     &rig.lost_nodes[NODES - 1],
                               &rig.lost_links[0],     &rig.lost_links[LINKS - 1]};

        begin();
        if (i < 10)
            *flags[i] = true;
        daemon->change = i == 10 ? (struct by_change *)&rig : NULL;
        daemon->start = i == 11 ? (struct by_start *)&rig : NULL;
        daemon->recover = i == 12 ? NULL : (struct by_recover *)&rig;
        by_ahead_tick(daemon); /* ends it */
        assert_null(daemon->ahead);
        record_expect("kill\n");
        by_ahead_tick(daemon); /* does not start another one */
        assert_int_equal(rig.started, i + 1);
        if (i < 10)
            *flags[i] = false;
        daemon->change = NULL;
        daemon->start = NULL;
        daemon->recover = (struct by_recover *)&rig;
    }
    close_daemon();
}

/* The texts of all jobs together. */
static void it_runs_only_while_there_is_room_for_plans(void **state)
{
    (void)state;
    open_daemon();
    rig.jobs[1].ahead->bytes = 9;
    by_ahead_add(&rig.jobs[0].ahead, X0, NULL, 2);
    rig.jobs[0].ahead->bytes = BY_AHEAD_BYTES_MAX - 9;
    by_ahead_tick(&rig.daemon);
    assert_int_equal(rig.started, 0);
    rig.jobs[0].ahead->bytes--;
    begin();
    by_ahead_tick(&rig.daemon);
    record_expect("");
    rig.jobs[1].ahead->bytes++;
    by_ahead_tick(&rig.daemon);
    record_expect("kill\n");
    close_daemon();
}

static void only_running_jobs_without_their_plans_are_planned_for(void **state)
{
    (void)state;
    open_daemon();
    rig.jobs[0].state = BY_JOB_RECOVERING;
    by_ahead_tick(&rig.daemon);
    rig.jobs[0].state = BY_JOB_RUNNING;
    rig.jobs[0].tables = NULL;
    by_ahead_tick(&rig.daemon);
    assert_int_equal(rig.started, 0);
    rig.tables[1].gen = 6;
    begin(); /* for job 7 */
    tell(X0, BEGIN, "");
    tell(X0, 0, "a");
    tell(X0, 1, "b");
    finish(0);
    record_expect("wait\njob 7: plans for 1 single failures are made\n");
    assert_int_equal(rig.jobs[1].ahead->gen, 6);
    rig.jobs[0].tables = &rig.tables[0];
    rig.tables[1].gen = 7;
    begin(); /* for one job at a time */
    by_ahead_tick(&rig.daemon);
    assert_int_equal(rig.started, 2);
    tell(X1, BEGIN, "");
    finish(0);
    assert_true(rig.jobs[0].ahead->gen == 5 && rig.jobs[1].ahead->gen == 6);
    close_daemon();
}

static void the_next_one_waits_until_the_last_has_ended(void **state)
{
    (void)state;
    open_daemon();
    by_ahead_stop(&rig.daemon); /* there is none */
    record_expect("");
    begin();
    by_ahead_stop(&rig.daemon);
    record_expect("kill\n");
    rig.lasts = true;
    by_ahead_tick(&rig.daemon);
    record_expect("wait if it has ended\n");
    assert_true(rig.started == 1 && rig.daemon.ahead_killed == CHILD);
    rig.lasts = false;
    begin();
    assert_int_equal(rig.daemon.ahead_killed, 0);
    by_ahead_close(&rig.daemon);
    record_expect("kill\nwait\n");
    close_daemon();
    record_expect("");
}

static void what_cannot_be_started_is_started_at_the_next_heartbeat(void **state)
{
    (void)state;
    open_daemon();
    rig.start_error = BY_EIO;
    by_ahead_tick(&rig.daemon);
    assert_null(rig.daemon.ahead);
    record_expect("");
    rig.start_error = 0;
    rig.watch_error = BY_EIO;
    rig.jobs[1].state = BY_JOB_ENDING;
    by_ahead_tick(&rig.daemon);
    assert_null(rig.daemon.ahead);
    record_expect("kill\n");
    rig.watch_error = 0;
    begin();
    close_daemon();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_part_of_the_trees_that_has_no_plan_yet_is_planned),
        cmocka_unit_test(it_ends_when_nobody_reads_its_records),
        cmocka_unit_test(a_record_may_come_in_pieces),
        cmocka_unit_test(a_text_may_be_longer_than_what_is_read_at_once),
        cmocka_unit_test(records_that_belong_to_no_part_are_ignored),
        cmocka_unit_test(a_process_whose_record_is_too_long_is_stopped),
        cmocka_unit_test(what_comes_for_tables_that_are_gone_stops_it),
        cmocka_unit_test(a_process_that_fails_costs_the_part_that_it_began_with),
        cmocka_unit_test(without_anything_to_plan_the_job_has_no_plans),
        cmocka_unit_test(a_process_without_records_for_too_long_is_ended),
        cmocka_unit_test(it_runs_only_while_nothing_is_lost_or_under_way),
        cmocka_unit_test(it_runs_only_while_there_is_room_for_plans),
        cmocka_unit_test(only_running_jobs_without_their_plans_are_planned_for),
        cmocka_unit_test(the_next_one_waits_until_the_last_has_ended),
        cmocka_unit_test(what_cannot_be_started_is_started_at_the_next_heartbeat),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
