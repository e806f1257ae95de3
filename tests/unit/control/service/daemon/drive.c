/* Implements drive.h. */
#include "tests/unit/control/service/daemon/drive.h"
#include "tests/unit/control/service/daemon/descriptors.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/ahead.h"
#include "control/service/daemon/jobs.h"
#include "control/service/daemon/members.h"
#include "control/service/daemon/news.h"
#include "control/service/daemon/paths.h"
#include "control/service/daemon/standby_offer.h"
#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/record.h"
#include "tests/unit/control/tables/bench.h"

#define BEAT_MS 100u

struct drive_rig drive;

/* ---- the other parts ---- */

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old);
ssize_t __wrap_read(int fd, void *bytes, size_t size);

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old)
{
    (void)old;
    assert_int_equal(flags, 0);
    assert_int_equal(fd, drive.timer->fd);
    record("timer %ld\n", value->it_interval.tv_nsec);
    assert_int_equal(value->it_interval.tv_nsec, value->it_value.tv_nsec);
    return 0;
}

int __wrap_timerfd_create(int clock, int flags);
int __real_timerfd_create(int clock, int flags);
struct by_recover *__wrap_by_recover_open(const struct by_recover_config *config);
struct by_recover *__real_by_recover_open(const struct by_recover_config *config);

int __wrap_timerfd_create(int clock, int flags)
{
    assert_int_equal(clock, CLOCK_MONOTONIC);
    assert_int_equal(flags, TFD_CLOEXEC | TFD_NONBLOCK);
    errno = EMFILE;
    return drive.no_timer ? -1 : __real_timerfd_create(clock, flags);
}

struct by_recover *__wrap_by_recover_open(const struct by_recover_config *config)
{
    return drive.no_memory ? NULL : __real_by_recover_open(config);
}

ssize_t __wrap_read(int fd, void *bytes, size_t size)
{
    assert_int_equal(fd, drive.timer->fd);
    memset(bytes, 0, size);
    return drive.no_time ? -1 : (ssize_t)size;
}

int by_daemon_watch(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    (void)daemon;
    (void)events;
    drive.timer = watcher;
    errno = ENOSPC;
    return drive.no_watch ? BY_EIO : 0;
}

void by_daemon_unwatch(struct by_daemon *daemon, struct by_watcher *watcher)
{
    (void)daemon;
    assert_true(watcher == drive.timer || drive.no_memory); /* then it is not watched yet */
    drive.timer = NULL;
}

void by_daemon_end(struct by_daemon *daemon, int status, const char *format, ...)
{
    char text[200];
    va_list arguments;

    (void)daemon;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (!drive.no_timer && !drive.no_memory && !drive.no_watch)
        fail_msg("ends with %d: %s", status, text);
    record("end %d: %s\n", status, text);
}

void by_news_tell(struct by_news *news, enum by_news_grade grade, const char *format, ...)
{
    char text[600];
    va_list arguments;

    (void)news;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    record("%s%s\n", grade == BY_NEWS_GOOD ? "good: " : grade == BY_NEWS_BAD ? "bad: " : "", text);
}

void by_ahead_stop(struct by_daemon *daemon)
{
    (void)daemon;
    record("no more plans in advance\n");
}

struct by_job *by_jobs_find(struct by_daemon *daemon, uint16_t job)
{
    for (uint32_t i = 0; i < daemon->job_count; i++)
        if (daemon->jobs[i]->spec.job == job)
            return daemon->jobs[i];
    return NULL;
}

uint32_t by_job_rank_count(const struct by_job_spec *spec, const struct by_topology *topology)
{
    (void)spec;
    (void)topology;
    return 2;
}

int64_t by_job_node(const struct by_job_spec *spec, const struct by_topology *topology, uint32_t rank)
{
    (void)spec;
    (void)topology;
    return rank < 2 ? H0 + (int64_t)rank : -1;
}

/* The image of a host names its generation and its node. */
int by_lowering_image(const struct by_lowering *lowering, uint32_t node, uint8_t **bytes, size_t *size,
                      struct by_problem *problem)
{
    if (drive.no_image)
        return by_problem_say(problem, BY_ENOMEM, "no memory for it");
    *size = 2;
    *bytes = by_alloc(2, 1);
    (*bytes)[0] = (uint8_t)(lowering - drive.lowerings);
    (*bytes)[1] = (uint8_t)node;
    return 0;
}

void by_members_send(struct by_daemon *daemon, uint16_t job, uint16_t rank, struct by_member_frame frame)
{
    (void)daemon;
    record("%s %u.%u generation %u", by_member_name(frame.type), job, rank, frame.gen);
    if (frame.type == BY_MEMBER_FAIL) {
        assert_int_equal(strnlen((const char *)frame.data, frame.bytes), frame.bytes);
        record(" %s: %.*s", by_error_name(frame.code), (int)frame.bytes, (const char *)frame.data);
    } else if (frame.bytes > 0) {
        assert_true(frame.bytes == 2 && frame.data[1] == H0 + rank);
        record(" with table %u", frame.data[0]);
    }
    record("\n");
}

void by_standby_offer(struct by_daemon *daemon, const struct by_job *job, uint16_t rank)
{
    (void)daemon;
    if (job->tables->standby_count > 0)
        record("standbys for %u.%u\n", job->spec.job, rank);
}

bool by_paths_use(const struct by_daemon *daemon, const struct by_job *job, bool is_link, uint32_t what)
{
    const struct by_topology *topology = daemon->topology;
    bool uses = false;

    if (job->tables == NULL)
        return false;
    for (uint32_t l = 0; l < LINKS; l++)
        uses |= job->tables->uses_link[l] &&
                (is_link ? l == what : topology->links[l].a == what || topology->links[l].b == what);
    return uses;
}

bool by_paths_without(const struct by_daemon *daemon, const struct by_job *job, uint32_t node)
{
    (void)daemon;
    assert_non_null(job);
    assert_true(node == X0 || node == X1);
    return drive.alternates;
}

void by_switches_ask(struct by_daemon *daemon, const bool *used)
{
    (void)daemon;
    record("ask");
    for (uint32_t l = 0; l < LINKS; l++)
        if (used[l])
            record(" %u", l);
    record("\n");
}

void by_fabric_loss_copy(struct by_fabric_loss *to, const struct by_fabric_loss *from,
                         const struct by_topology *topology)
{
    (void)topology;
    to->nodes = by_alloc(NODES, sizeof(bool));
    to->links = by_alloc(LINKS, sizeof(bool));
    memcpy(to->nodes, from->nodes, NODES * sizeof(bool));
    memcpy(to->links, from->links, LINKS * sizeof(bool));
}

void by_fabric_loss_free(struct by_fabric_loss *loss)
{
    free(loss->nodes);
    free(loss->links);
}

struct by_job_tables *drive_tables(uint16_t gen, uint32_t node)
{
    struct by_job_tables *tables = by_alloc(1, sizeof(*tables));

    tables->gen = gen;
    tables->lowering = &drive.lowerings[gen];
    tables->uses_link = by_alloc(LINKS, sizeof(bool));
    tables->uses_link[node == X0 ? H0_X0 : H0_X1] = tables->uses_link[node == X0 ? H1_X0 : H1_X1] = true;
    return tables;
}

void drive_free_tables(struct by_job_tables *tables)
{
    if (tables != NULL)
        free(tables->uses_link);
    free(tables);
}

struct by_change *by_change_new(struct by_daemon *daemon)
{
    struct by_change *change = by_alloc(1, sizeof(*change));

    drive.changes++;
    change->jobs = by_alloc(4, sizeof(*change->jobs));
    by_fabric_loss_copy(&change->loss, &daemon->loss, daemon->topology);
    for (uint32_t i = 0; i < daemon->job_count; i++)
        if (daemon->jobs[i]->tables != NULL && daemon->jobs[i]->state != BY_JOB_FAILED)
            change->jobs[change->job_count++] = (struct by_change_job){.job = daemon->jobs[i]};
    return change;
}

struct by_change_job *by_change_find(const struct by_change *change, uint16_t job)
{
    for (uint32_t i = 0; i < change->job_count; i++)
        if (change->jobs[i].job->spec.job == job)
            return &change->jobs[i];
    return NULL;
}

void by_change_touch(struct by_change *change, struct by_job *job, bool repair)
{
    struct by_change_job *entry = by_change_find(change, job->spec.job);

    if (entry == NULL) {
        entry = &change->jobs[change->job_count++];
        entry->job = job;
    }
    entry->anew = true;
    entry->repair = repair;
}

void by_change_plan(struct by_daemon *daemon, struct by_change *change, by_change_fn *planned)
{
    assert_null(daemon->change);
    daemon->change = drive.change = change;
    drive.planned = planned;
    record("plan");
    for (uint32_t i = 0; i < change->job_count; i++)
        if (change->jobs[i].anew)
            record(" %u as %u%s", change->jobs[i].job->spec.job, change->jobs[i].gen,
                   change->jobs[i].repair ? " again" : "");
    for (uint32_t n = 0; n < NODES; n++)
        if (change->loss.nodes[n])
            record(" without %s", daemon->topology->nodes[n].name);
    for (uint32_t l = 0; l < LINKS; l++)
        if (change->loss.links[l])
            record(" without link %u", l);
    record("\n");
}

void by_change_push(struct by_daemon *daemon, struct by_change *change, by_change_fn *pushed)
{
    daemon->change = change;
    drive.pushed = pushed;
    record("push\n");
    change->targets = by_alloc(1, sizeof(*change->targets));
    change->target_nodes = by_alloc(1, sizeof(*change->target_nodes));
    change->target_nodes[0] = drive.target;
    change->target_count = drive.target != UINT32_MAX;
}

bool by_change_has_target(const struct by_change *change, uint32_t node)
{
    return change->target_count > 0 && change->target_nodes[0] == node;
}

void by_change_stop(struct by_change *change)
{
    assert_ptr_equal(change, drive.daemon.change);
    record("stop the push\n");
}

void by_change_yield(struct by_change *change)
{
    assert_ptr_equal(change, drive.daemon.change);
    record("yield\n");
}

void by_change_adopt(struct by_daemon *daemon, struct by_change *change)
{
    (void)daemon;
    for (uint32_t i = 0; i < change->job_count; i++)
        if (change->jobs[i].anew && change->jobs[i].tables != NULL) {
            drive_free_tables(change->jobs[i].job->tables);
            change->jobs[i].job->tables = change->jobs[i].tables;
            change->jobs[i].tables = NULL;
        }
}

void by_change_free(struct by_change *change)
{
    if (change == NULL)
        return;
    for (uint32_t i = 0; i < change->job_count; i++)
        drive_free_tables(change->jobs[i].tables);
    by_fabric_loss_free(&change->loss);
    free(change->targets);
    free(change->target_nodes);
    free(change->jobs);
    free(change);
    drive.changes--;
}

/* ---- events ---- */

void drive_event(struct by_daemon_event given)
{
    by_recovery_event(&drive.daemon, &given);
}

void drive_node_event(enum by_daemon_event_kind kind, uint32_t node)
{
    if (node != UINT32_MAX && kind != BY_EVENT_SWITCH_REBOOTED)
        drive.daemon.loss.nodes[node] = kind != BY_EVENT_SWITCH_UP;
    drive_event((struct by_daemon_event){.kind = kind, .node = node});
}

void drive_tick(uint64_t later_ms)
{
    drive.daemon.now_ms += later_ms;
    drive_event((struct by_daemon_event){.kind = BY_EVENT_TICK});
}

void drive_timer(uint64_t later_ms)
{
    drive.daemon.now_ms += later_ms;
    drive.timer->ready(&drive.daemon, drive.timer, 0);
}

void drive_come(uint16_t job, uint16_t rank, uint16_t gen)
{
    by_recovery_rank(&drive.daemon, BY_RECOVER_RANK_CAME, job, rank, gen, 100u + rank);
}

void drive_carried(uint16_t job, uint16_t rank, uint16_t gen)
{
    by_recovery_rank(&drive.daemon, BY_RECOVER_RANK_CARRIED, job, rank, gen, 0);
}

void drive_planned(const char *reason)
{
    struct by_change *change = drive.change;

    for (uint32_t i = 0; i < change->job_count; i++) {
        struct by_change_job *entry = &change->jobs[i];

        if (entry->anew && reason != NULL && entry->job->spec.job == 3) {
            entry->error = BY_ENOENT;
            snprintf(entry->problem.text, sizeof(entry->problem.text), "%s", reason);
        } else if (entry->anew) {
            entry->tables = drive_tables(entry->gen, X1);
            entry->tables->ahead = drive.ahead;
        }
    }
    change->recorded = drive.records;
    drive.daemon.now_ms += 5;
    drive.planned(&drive.daemon, change);
}

void drive_pushed(int error)
{
    drive.change->error = error;
    snprintf(drive.change->problem.text, sizeof(drive.change->problem.text), "x1 does not answer");
    drive.daemon.now_ms += 7;
    drive.pushed(&drive.daemon, drive.change);
}

void drive_open(void)
{
    struct by_daemon *daemon = &drive.daemon;

    memset(&drive, 0, sizeof(drive));
    drive.descriptors = count_descriptors();
    record_clear();
    daemon->topology = bench_topology("h0 h1 x0* x1*", "h0-x0 h1-x0 h0-x1 h1-x1");
    daemon->options.heartbeat_ms = BEAT_MS;
    daemon->now_ms = 10000;
    daemon->switch_count = 2;
    daemon->switches = drive.switches;
    daemon->links = drive.links;
    drive.links[LINKS].down = true;
    daemon->loss.nodes = by_alloc(NODES, sizeof(bool));
    daemon->loss.links = by_alloc(LINKS, sizeof(bool));
    drive.records = true;
    drive.target = X1;
    for (unsigned i = 0; i < 2; i++) {
        drive.switches[i] = (struct by_daemon_switch){.node = X0 + i, .state = BY_SWITCH_UP};
        drive.jobs[i].spec.job = (uint16_t)(3 + 4 * i);
        drive.jobs[i].state = BY_JOB_RUNNING;
        drive.jobs[i].gen_last = 1;
        drive.jobs[i].tables = drive_tables(1, X0);
        daemon->jobs[daemon->job_count++] = &drive.jobs[i];
    }
    by_recovery_open(daemon);
}

void drive_reopen(void)
{
    by_recovery_close(&drive.daemon);
    by_recovery_open(&drive.daemon);
}

void drive_run(void)
{
    drive.daemon.job_count = 0;
    drive_tick(0);
    drive.daemon.job_count = 2;
    for (uint16_t rank = 0; rank < 2; rank++) {
        drive_come(drive.jobs[0].spec.job, rank, 0);
        drive_come(drive.jobs[1].spec.job, rank, 0);
    }
    record_clear();
}

void drive_close(void)
{
    by_change_free(drive.daemon.change);
    assert_int_equal(drive.changes, 0);
    by_recovery_close(&drive.daemon);
    assert_true(drive.timer == NULL && drive.daemon.recovery == NULL);
    assert_int_equal(count_descriptors(), drive.descriptors);
    for (unsigned i = 0; i < 2; i++)
        drive_free_tables(drive.jobs[i].tables);
    free(drive.daemon.loss.nodes);
    free(drive.daemon.loss.links);
    by_topology_free(drive.daemon.topology);
}

void drive_start(void)
{
    drive_open();
    drive_run();
}

void drive_lose_x0(void)
{
    drive_node_event(BY_EVENT_SWITCH_GONE, X0);
    drive_planned(NULL);
}

void drive_all_carried(uint16_t gen)
{
    for (uint16_t rank = 0; rank < 2; rank++) {
        drive_carried(3, rank, gen);
        drive_carried(7, rank, gen);
    }
}
