/* Plans that banyand makes before failures: they are those that it would make afterwards, serve
 * exactly their failure, and their process can be stopped or die. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/ahead.h"
#include "control/service/daemon/jobs.h"
#include "control/service/daemon/news.h"
#include "control/service/daemon/recover.h"
#include "offload/base/errors.h"
#include "tests/unit/control/tables/bench.h"

static const struct by_apart apart = {.limit_ms = 60000, .stop_fd = -1};

static void ignore(struct by_daemon *daemon, const struct by_daemon_event *event)
{
    (void)daemon;
    (void)event;
}

static void act(void *user, const struct by_recover_action *action)
{
    (void)user;
    (void)action;
}

static bool uses(void *user, uint32_t job, bool is_link, uint32_t what)
{
    (void)user;
    (void)job;
    (void)is_link;
    (void)what;
    return false;
}

static struct by_job *add_job(struct by_daemon *daemon, const char *text)
{
    struct by_topology *topology = daemon->topology;
    struct by_job *job = by_alloc(1, sizeof(*job));
    const struct by_lower_options options = {0};
    struct by_problem problem = {0};

    assert_int_equal(by_job_parse(text, topology, &job->spec, &problem), 0);
    job->state = BY_JOB_RUNNING;
    job->tables = by_alloc(1, sizeof(*job->tables));
    job->tables->gen = 1;
    job->tables->lost_links = by_alloc(topology->link_count, sizeof(bool));
    assert_int_equal(
        by_fabric_plan(topology, &job->spec, &daemon->loss, NULL, NULL, &apart, job->tables, &problem), 0);
    assert_int_equal(by_fabric_lower(topology, job->spec.job, &options, job->tables, &problem), 0);
    by_jobs_insert(daemon, job);
    return job;
}

/* Two leaves and two spines, job 1 of two collectives on all hosts. */
static struct by_daemon *open_daemon(void)
{
    struct by_daemon *daemon = by_alloc(1, sizeof(*daemon));
    struct by_topology *topology =
        bench_topology("h0 h1 h2 h3 l0* l1* s0* s1*", "h0-l0 h1-l0 h2-l1 h3-l1 l0-s0 l0-s1 l1-s0 l1-s1");

    daemon->topology = topology;
    daemon->epoll = epoll_create1(EPOLL_CLOEXEC);
    daemon->now_ms = 1000;
    daemon->reduce = ignore;
    daemon->options.plan_limit_s = 60;
    daemon->news = by_news_open();
    daemon->recover = by_recover_open(&(struct by_recover_config){
        .node_count = topology->node_count, .link_count = topology->link_count, .uses = uses, .act = act});
    by_fabric_loss_init(&daemon->loss, topology);
    add_job(daemon, "1=allreduce,allgather");
    return daemon;
}

static void close_daemon(struct by_daemon *daemon)
{
    by_ahead_close(daemon);
    while (daemon->job_count > 0)
        by_jobs_remove(daemon, daemon->jobs[0]);
    by_recover_close(daemon->recover);
    by_news_close(daemon->news);
    by_fabric_loss_free(&daemon->loss);
    by_topology_free(daemon->topology);
    close(daemon->epoll);
    free(daemon);
}

/* Time for an event (milliseconds): a process of low priority waits long on a busy machine. */
#define PATIENCE_MS 60000

/* Handles one event. Returns false if there is none in time. */
static bool turn(struct by_daemon *daemon)
{
    struct epoll_event event;
    struct by_watcher *watcher;

    if (epoll_wait(daemon->epoll, &event, 1, PATIENCE_MS) != 1)
        return false;
    watcher = event.data.ptr;
    watcher->ready(daemon, watcher, event.events);
    return true;
}

/* Ticks until nothing is left to plan. */
static void run(struct by_daemon *daemon)
{
    do {
        do
            by_ahead_tick(daemon);
        while (daemon->ahead_killed != 0);
        while (daemon->ahead != NULL)
            assert_true(turn(daemon));
        by_ahead_tick(daemon);
    } while (daemon->ahead != NULL);
}

static void lose(const struct by_topology *topology, uint32_t part, struct by_fabric_loss *loss)
{
    struct by_fabric_loss one;

    by_fabric_loss_init(&one, topology);
    (part < topology->node_count ? &one.nodes[part] : &one.links[part - topology->node_count])[0] = true;
    by_fabric_loss_copy(loss, &one, topology);
    by_fabric_loss_free(&one);
}

static char *text_of(const struct by_plan *plan, const struct by_topology *topology)
{
    char *text;
    size_t bytes;
    FILE *out = by_text_open(&text, &bytes);

    assert_int_equal(by_plan_write(plan, topology, out), 0);
    fclose(out);
    return text;
}

/* Plans after the loss of a part, with and without the plans made before. Returns whether there are
 * such plans. */
static bool compare(const struct by_daemon *daemon, uint32_t part)
{
    const struct by_topology *topology = daemon->topology;
    const struct by_job *job = daemon->jobs[0];
    struct by_job_tables *tables[2] = {by_alloc(1, sizeof(*tables[0])), by_alloc(1, sizeof(*tables[0]))};
    struct by_problem problem = {0};
    struct by_fabric_loss loss;
    const struct by_fabric_text *made;

    lose(topology, part, &loss);
    made = by_ahead_find(job->ahead, topology, &loss);
    for (unsigned i = 0; i < 2 && made != NULL; i++)
        assert_int_equal(by_fabric_plan(topology, &job->spec, &loss, job->tables, i ? made : NULL, &apart,
                                        tables[i], &problem),
                         0);
    for (uint32_t w = 0; w < job->spec.want_count && made != NULL; w++) {
        char *after = text_of(tables[0]->plans[w], topology),
             *before = text_of(tables[1]->plans[w], topology);

        assert_string_equal(before, after);
        free(before);
        free(after);
    }
    assert_false(tables[0]->ahead);
    assert_int_equal(tables[1]->ahead, made != NULL);
    by_job_tables_free(tables[0]);
    by_job_tables_free(tables[1]);
    by_fabric_loss_free(&loss);
    return made != NULL;
}

static uint32_t count_made(const struct by_daemon *daemon)
{
    uint32_t count = 0;

    for (uint32_t part = 0; part < daemon->topology->node_count + daemon->topology->link_count; part++)
        count += compare(daemon, part);
    return count;
}

static void each_failure_with_a_path_has_the_plan_that_would_be_made_after_it(void **state)
{
    struct by_daemon *daemon = open_daemon();
    const struct by_topology *topology = daemon->topology;

    (void)state;
    run(daemon);
    for (uint32_t part = 0; part < topology->node_count; part++)
        assert_int_equal(compare(daemon, part), topology->nodes[part].name[0] == 's');
    for (uint32_t link = 0; link < topology->link_count; link++)
        assert_int_equal(compare(daemon, topology->node_count + link), link >= 4);
    close_daemon(daemon);
}

static void each_running_job_gets_plans(void **state)
{
    struct by_daemon *daemon = open_daemon();
    const struct by_job *last;

    (void)state;
    add_job(daemon, "2=allreduce")->state = BY_JOB_RECOVERING;
    last = add_job(daemon, "3=allreduce");
    run(daemon);
    assert_true(daemon->jobs[0]->ahead->gen == 1 && last->ahead->gen == 1);
    assert_null(daemon->jobs[1]->ahead);
    assert_int_equal(count_made(daemon), 6);
    close_daemon(daemon);
}

static void a_plan_serves_its_failure_only(void **state)
{
    struct by_daemon *daemon = open_daemon();
    const struct by_topology *topology = daemon->topology;
    const struct by_ahead_plans *plans;
    struct by_fabric_loss loss;

    (void)state;
    run(daemon);
    plans = daemon->jobs[0]->ahead;
    lose(topology, 6, &loss); /* s0 */
    assert_non_null(by_ahead_find(plans, topology, &loss));
    loss.links[5] = true; /* l0 - s1 */
    assert_null(by_ahead_find(plans, topology, &loss));
    loss.links[5] = false;
    loss.nodes[7] = true;
    assert_null(by_ahead_find(plans, topology, &loss));
    memset(loss.nodes, 0, topology->node_count);
    memset(loss.links, 0, topology->link_count);
    assert_null(by_ahead_find(plans, topology, &loss));
    loss.links[4] = loss.links[5] = true;
    assert_null(by_ahead_find(plans, topology, &loss));
    assert_null(by_ahead_find(NULL, topology, &loss));
    by_fabric_loss_free(&loss);
    close_daemon(daemon);
}

/* A text that is no plan, or the plan of another fabric, is planned again. */
static void a_text_that_is_no_plan_is_not_used(void **state)
{
    struct by_daemon *daemon = open_daemon();
    const struct by_job *job = daemon->jobs[0];
    struct by_job_tables *tables;
    struct by_problem problem = {0};
    struct by_fabric_text wrong[2] = {{(char[]){"{}"}, 2}, {NULL, 0}};
    struct by_fabric_loss loss;

    (void)state;
    lose(daemon->topology, 6, &loss);
    for (unsigned i = 0; i < 2; i++) {
        if (i > 0) /* these use the lost switch */
            for (unsigned w = 0; w < 2; w++) {
                wrong[w].text = text_of(job->tables->plans[w], daemon->topology);
                wrong[w].bytes = strlen(wrong[w].text);
            }
        tables = by_alloc(1, sizeof(*tables));
        wrong[1] = i > 0 ? wrong[1] : wrong[0];
        assert_int_equal(
            by_fabric_plan(daemon->topology, &job->spec, &loss, job->tables, wrong, &apart, tables, &problem),
            0);
        assert_false(tables->ahead);
        assert_int_equal(tables->plan_count, 2);
        by_job_tables_free(tables);
    }
    free(wrong[0].text);
    free(wrong[1].text);
    by_fabric_loss_free(&loss);
    close_daemon(daemon);
}

static void it_stops_for_a_change_or_a_loss_and_goes_on(void **state)
{
    struct by_daemon *daemon = open_daemon();
    struct by_change *change = (struct by_change *)1;

    (void)state;
    by_ahead_tick(daemon);
    assert_non_null(daemon->ahead);
    assert_true(turn(daemon));
    daemon->loss.nodes[6] = true;
    by_ahead_tick(daemon);
    assert_null(daemon->ahead);
    by_ahead_tick(daemon);
    assert_null(daemon->ahead);
    daemon->loss.nodes[6] = false;
    daemon->change = change;
    by_ahead_tick(daemon);
    assert_null(daemon->ahead);
    daemon->change = NULL;
    run(daemon);
    assert_int_equal(count_made(daemon), 6);
    daemon->jobs[0]->tables->gen = 2; /* the same trees: nothing is planned again */
    by_ahead_tick(daemon);
    assert_non_null(daemon->ahead);
    run(daemon);
    assert_int_equal(count_made(daemon), 6);
    close_daemon(daemon);
}

/* Ticks until a process makes plans. */
static void begin(struct by_daemon *daemon)
{
    do
        by_ahead_tick(daemon);
    while (daemon->ahead_killed != 0);
    assert_non_null(daemon->ahead);
}

/* The worker that makes a change reads the plans of jobs. */
static void nothing_is_taken_from_it_during_a_change_or_for_other_tables(void **state)
{
    struct by_daemon *daemon = open_daemon();

    (void)state;
    begin(daemon);
    daemon->change = (struct by_change *)1;
    assert_true(turn(daemon));
    assert_null(daemon->ahead);
    daemon->change = NULL;
    begin(daemon);
    daemon->jobs[0]->tables->gen = 2;
    assert_true(turn(daemon));
    assert_null(daemon->ahead);
    assert_null(daemon->jobs[0]->ahead);
    begin(daemon);
    by_ahead_close(daemon); /* ends it */
    assert_null(daemon->ahead);
    assert_int_equal(daemon->ahead_killed, 0);
    close_daemon(daemon);
}

/* It is silent for twice the time limit of a plan. */
static void a_process_that_hangs_is_ended_and_its_part_gets_no_plan(void **state)
{
    struct by_daemon *daemon = open_daemon();
    uint64_t hung_ms = 2 * UINT64_C(1000) * daemon->options.plan_limit_s;
    const struct by_ahead_plans *plans;

    (void)state;
    begin(daemon);
    daemon->now_ms += 7;
    assert_true(turn(daemon)); /* it begins with a part */
    daemon->now_ms += hung_ms - 1;
    by_ahead_tick(daemon);
    assert_non_null(daemon->ahead);
    daemon->now_ms++;
    by_ahead_tick(daemon);
    assert_null(daemon->ahead);
    plans = daemon->jobs[0]->ahead;
    assert_true(plans != NULL && plans->count > 0 && plans->entries[plans->count - 1].texts == NULL);
    run(daemon);
    assert_in_range(count_made(daemon), 5, 6); /* 6 if that part can have none */
    close_daemon(daemon);
}

static void its_death_costs_one_plan_at_most(void **state)
{
    struct by_daemon *daemon = open_daemon();
    char path[64];
    long child = 0;
    uint32_t made;
    FILE *file;

    (void)state;
    by_ahead_tick(daemon);
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    file = fopen(path, "r");
    assert_true(file != NULL && fscanf(file, "%ld", &child) == 1 && child > 0);
    fclose(file);
    kill((pid_t)child, SIGKILL);
    run(daemon);
    made = count_made(daemon);
    assert_true(made == 0 || made >= 5); /* before all parts, or at one of them */
    daemon->jobs[0]->tables->gen = 2;
    run(daemon);
    assert_true(count_made(daemon) >= 5);
    close_daemon(daemon);
}

static struct by_watcher *pair[2];
static unsigned handled;

/* Removes the other watcher, whose descriptor is ready too. */
static void remove_other(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    unsigned other = watcher == pair[0];

    (void)events;
    handled++;
    by_daemon_unwatch(daemon, watcher);
    by_daemon_unwatch(daemon, pair[other]);
    free(pair[other]);
}

static void end(struct by_daemon *daemon, const struct by_daemon_event *event)
{
    (void)event;
    daemon->ending = true;
}

/* The process of plans is ended in the handler of a switch whose link is lost, while its own pipe
 * may be ready. */
static void a_watcher_that_another_one_removes_is_not_called(void **state)
{
    struct by_daemon *daemon = open_daemon();
    int fds[2];

    (void)state;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], "", 1), 1);
    daemon->events = by_event_queue_open();
    daemon->options.heartbeat_ms = 1;
    daemon->reduce = end;
    for (unsigned i = 0; i < 2; i++) {
        pair[i] = by_alloc(1, sizeof(*pair[i]));
        *pair[i] = (struct by_watcher){.fd = dup(fds[0]), .ready = remove_other};
        assert_int_equal(by_daemon_watch(daemon, pair[i], EPOLLIN), 0);
    }
    by_daemon_run(daemon);
    assert_int_equal(handled, 1);
    by_event_queue_close(daemon->events);
    close_daemon(daemon);
}

static void never(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    (void)watcher;
    (void)events;
    daemon->ending = true;
    fail_msg("no heartbeat in %u ms", PATIENCE_MS);
}

/* The longest period of --heartbeat. */
static void a_heartbeat_may_last_a_second(void **state)
{
    const struct itimerspec limit = {.it_value.tv_sec = PATIENCE_MS / 1000};
    struct by_daemon *daemon = open_daemon();
    struct by_watcher late = {.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), .ready = never};
    struct timespec begin;
    uint64_t begin_ms;

    (void)state;
    assert_int_equal(timerfd_settime(late.fd, 0, &limit, NULL), 0);
    assert_int_equal(by_daemon_watch(daemon, &late, EPOLLIN), 0);
    daemon->events = by_event_queue_open();
    daemon->options.heartbeat_ms = 1000;
    daemon->reduce = end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    begin_ms = (uint64_t)begin.tv_sec * 1000 + (uint64_t)begin.tv_nsec / 1000000;
    by_daemon_run(daemon);
    assert_true(daemon->now_ms >= begin_ms + 1000);
    by_daemon_unwatch(daemon, &late);
    close(late.fd);
    by_event_queue_close(daemon->events);
    close_daemon(daemon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_failure_with_a_path_has_the_plan_that_would_be_made_after_it),
        cmocka_unit_test(each_running_job_gets_plans),
        cmocka_unit_test(a_plan_serves_its_failure_only),
        cmocka_unit_test(a_text_that_is_no_plan_is_not_used),
        cmocka_unit_test(it_stops_for_a_change_or_a_loss_and_goes_on),
        cmocka_unit_test(nothing_is_taken_from_it_during_a_change_or_for_other_tables),
        cmocka_unit_test(a_process_that_hangs_is_ended_and_its_part_gets_no_plan),
        cmocka_unit_test(its_death_costs_one_plan_at_most),
        cmocka_unit_test(a_watcher_that_another_one_removes_is_not_called),
        cmocka_unit_test(a_heartbeat_may_last_a_second),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
