/* Implements steps.h. */
#include "tests/unit/control/service/daemon/steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/ahead_plans.h"
#include "control/service/daemon/standby_sets.h"
#include "control/service/daemon/state.h"
#include "control/tables/keyed.h"
#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/record.h"
#include "tests/unit/control/tables/bench.h"

struct steps_rig steps;

static int result(int error, const char *text, struct by_problem *problem)
{
    return error == 0 ? 0 : by_problem_say(problem, error, "%s", text);
}

/* ---- the other parts ---- */

void by_work_do(struct by_daemon_work *work, struct by_task *task)
{
    assert_ptr_equal(work, &steps);
    assert_null(steps.task);
    steps.task = task;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    uint64_t quarters = 401 + 6 * steps.readings++;

    assert_int_equal(clock, CLOCK_MONOTONIC);
    *now = (struct timespec){.tv_sec = (time_t)(quarters / 4), .tv_nsec = (long)(quarters % 4) * 250000000};
    return 0;
}

int __wrap_eventfd(unsigned count, int flags);
int __real_eventfd(unsigned count, int flags);

int __wrap_eventfd(unsigned count, int flags)
{
    return steps.no_eventfd ? -1 : __real_eventfd(count, flags);
}

int by_work_stop_fd(const struct by_daemon_work *work)
{
    assert_ptr_equal(work, &steps);
    return 77;
}

bool by_recover_held(const struct by_recover *recover, bool is_link, uint32_t what)
{
    assert_ptr_equal(recover, &steps);
    if (steps.held_first)
        return what == 0;
    return is_link ? steps.held_link && what == X1_X2 : steps.held_node && what == X2;
}

struct by_daemon_switch *by_switch_find(struct by_daemon *daemon, uint32_t node)
{
    return &daemon->switches[daemon->switch_of[node]];
}

void by_daemon_tell(struct by_daemon *daemon, const struct by_daemon_event *event)
{
    (void)daemon;
    assert_int_equal(event->kind, BY_EVENT_PUSHED);
    record("tell %s\n", event->error == 0 ? "pushed" : by_error_name(event->error));
}

void by_job_tables_free(struct by_job_tables *tables)
{
    if (tables == NULL)
        return;
    for (uint32_t i = 0; i < tables->standby_count; i++)
        by_job_tables_free(tables->standbys[i]);
    free(tables->lost_links);
    free(tables->need);
    free(tables);
}

void by_fabric_loss_copy(struct by_fabric_loss *to, const struct by_fabric_loss *from,
                         const struct by_topology *topology)
{
    to->nodes = by_alloc(topology->node_count, sizeof(bool));
    to->links = by_alloc(topology->link_count, sizeof(bool));
    memcpy(to->nodes, from->nodes, topology->node_count * sizeof(bool));
    memcpy(to->links, from->links, topology->link_count * sizeof(bool));
}

void by_fabric_loss_free(struct by_fabric_loss *loss)
{
    free(loss->nodes);
    free(loss->links);
    *loss = (struct by_fabric_loss){0};
}

int by_lower_draw(uint8_t secret[BY_SIPHASH_KEY_BYTES], struct by_problem *problem)
{
    memset(secret, 0x5a, BY_SIPHASH_KEY_BYTES);
    return result(steps.draw_error, "no random number", problem);
}

const struct by_fabric_text *by_ahead_find(const struct by_ahead_plans *plans,
                                           const struct by_topology *topology,
                                           const struct by_fabric_loss *loss)
{
    (void)topology;
    (void)loss;
    return plans != NULL ? &steps.ahead : NULL;
}

int by_fabric_plan(const struct by_topology *topology, const struct by_job_spec *spec,
                   const struct by_fabric_loss *loss, const struct by_job_tables *from,
                   const struct by_fabric_text *made, const struct by_apart *apart,
                   struct by_job_tables *tables, struct by_problem *problem)
{
    assert_ptr_equal(topology, steps.daemon.topology);
    assert_true(apart->limit_ms == 3000 && apart->stop_fd == 77);
    assert_true(steps.no_eventfd ? apart->yield_fd == 0 : apart->yield_fd > 0);
    assert_memory_equal(tables->lost_links, loss->links, LINKS * sizeof(bool));
    record("plan %u as %u window %u", spec->job, tables->gen, tables->window);
    if (from != NULL)
        record(" from %u", from->gen);
    if (made != NULL)
        record(" in advance");
    record("\n");
    return result(steps.plan_error, "no plan", problem);
}

int by_fabric_lower(const struct by_topology *topology, uint16_t job, const struct by_lower_options *options,
                    struct by_job_tables *tables, struct by_problem *problem)
{
    (void)topology;
    assert_int_equal(options->mtu, 1500);
    record("lower %u window %u\n", job, tables->window);
    free(tables->need);
    tables->need = by_alloc(NODES, sizeof(*tables->need));
    if (tables->window == 0)
        tables->window = 256;
    for (uint32_t i = 0; i < NODES; i++)
        tables->need[i].slots = 3 * tables->window;
    return result(steps.lower_error, "not lowered", problem);
}

int by_standby_sets_find(struct by_standby_sets *sets, struct by_problem *problem)
{
    record("sets for %u as %u\n", sets->job->spec.job, sets->job->tables->gen);
    sets->part_count = 5;
    return result(steps.find_error, "something urgent", problem);
}

int by_standby_sets_make(const struct by_standby_sets *sets, uint32_t left, uint16_t gen,
                         const struct by_job_tables *last, struct by_job_tables **tables,
                         struct by_problem *problem)
{
    record("set %u of %u after %u, %u left\n", gen, sets->job->spec.job, last->gen, left);
    *tables = NULL;
    if (sets->covered_count >= steps.sets)
        return by_problem_say(problem, steps.sets_error != 0 ? steps.sets_error : BY_ENOENT, "no more sets");
    *tables = steps_tables(gen);
    (*tables)->window = 16;
    return 0;
}

void by_standby_sets_take(struct by_standby_sets *sets, struct by_job_tables *tables)
{
    (void)tables;
    sets->covered_count++;
}

void by_standby_sets_free(struct by_standby_sets *sets)
{
    (void)sets;
    record("sets end\n");
}

uint32_t by_admit_budget(const struct by_topology *topology, const struct by_admit_job *others,
                         uint32_t count, const struct by_admit_limits *limits)
{
    (void)topology;
    assert_int_equal(limits[X0].slots, 10);
    record("budget beside");
    for (uint32_t i = 0; i < count; i++)
        record(" %u", others[i].spec->job);
    record("\n");
    return steps.budget;
}

int by_admit_fabric(const struct by_topology *topology, const struct by_lowering *lowering,
                    const struct by_admit_limits *limits, struct by_problem *problem)
{
    (void)topology;
    (void)lowering;
    assert_true(limits[X1].ports == 12 && limits[X1].slots == steps.switches[1].hello.slot_count &&
                limits[X1].entries == 13 && limits[X1].payload_max == 14 && limits[X1].shares == 15);
    return result(steps.fabric_error, "too few ports", problem);
}

int by_admit_slots(const struct by_topology *topology, const struct by_admit_job *job,
                   const struct by_admit_job *others, uint32_t count, const struct by_admit_limits *limits,
                   uint32_t *fits, struct by_problem *problem)
{
    int error = job->tables->window > steps.fits ? steps.slots_error : 0;

    (void)topology;
    (void)limits;
    record("admit %u as %u beside", job->spec->job, job->tables->gen);
    for (uint32_t i = 0; i < count; i++)
        record(" %u as %u", others[i].spec->job, others[i].tables->gen);
    record("\n");
    *fits = error != 0 ? steps.fits : 0;
    return result(error, "too few slots", problem);
}

int by_admit_share(const struct by_topology *topology, const struct by_admit_job *job,
                   const struct by_admit_job *others, uint32_t count, const struct by_admit_limits *limits,
                   struct by_problem *problem)
{
    (void)topology;
    (void)job;
    (void)others;
    (void)count;
    (void)limits;
    return result(steps.share_error, "no share", problem);
}

uint32_t by_lower_share(struct by_fraction share)
{
    return (uint32_t)share.num;
}

int by_lower(const struct by_topology *topology, const struct by_lower_job *jobs, uint32_t job_count,
             const struct by_lower_options *options, struct by_lowering **lowering,
             struct by_problem *problem)
{
    (void)topology;
    assert_true(options->slots == UINT32_MAX && options->mtu == 1500);
    record("images of");
    for (uint32_t i = 0; i < job_count; i++)
        record(" %u as %u window %u share %u", jobs[i].job, jobs[i].gen, jobs[i].window, jobs[i].share);
    record("\n");
    *lowering = NULL;
    return result(steps.images_error, "no images", problem);
}

void by_lowering_free(struct by_lowering *lowering)
{
    assert_null(lowering);
}

int by_lowering_image(const struct by_lowering *lowering, uint32_t node, uint8_t **bytes, size_t *size,
                      struct by_problem *problem)
{
    (void)lowering;
    if (node == X1 && steps.image_error != 0)
        return result(steps.image_error, "no image of x1", problem);
    *size = 1;
    *bytes = by_alloc(1, 1);
    **bytes = (uint8_t)node;
    return 0;
}

int by_state_reserve(struct by_state *state, const struct by_change *change, struct by_problem *problem)
{
    assert_ptr_equal(state, &steps);
    (void)change;
    return result(steps.reserve_error, "no store", problem);
}

void by_event_put(struct by_event_queue *queue, const struct by_daemon_event *event)
{
    assert_ptr_equal(queue, &steps);
    assert_int_equal(event->kind, BY_EVENT_RECORDED);
    record("tell recorded\n");
}

bool by_state_is_settled(const struct by_state *state)
{
    (void)state;
    return steps.is_settled;
}

bool by_state_may_follow(const struct by_state *state, const struct by_change *change)
{
    (void)state;
    (void)change;
    return steps.may_follow;
}

int by_state_begin(struct by_state *state, const struct by_change *change, struct by_problem *problem)
{
    assert_ptr_equal(state, &steps);
    (void)change;
    record("begin\n");
    return result(steps.begin_error, "no store", problem);
}

int by_state_write(struct by_state *state, const struct by_change *change, struct by_problem *problem)
{
    assert_ptr_equal(state, &steps);
    (void)change;
    record("write\n");
    return result(steps.write_error, "no store", problem);
}

void by_state_commit(struct by_state *state)
{
    (void)state;
    record("commit\n");
}

void by_state_discard(struct by_state *state)
{
    (void)state;
    record("discard\n");
}

void by_state_finish(struct by_state *state, bool done, bool settled)
{
    (void)state;
    record("finish%s%s\n", done ? " done" : "", settled ? " settled" : "");
}

uint64_t by_push_election(void)
{
    return ++steps.clock;
}

static void record_targets(const char *what, const struct by_push_target *targets, uint32_t count)
{
    record("%s", what);
    for (uint32_t i = 0; i < count; i++)
        record(" %s", targets[i].name);
    record("\n");
}

int by_push_recorded(struct by_push_target *targets, uint32_t count, const struct by_session_options *options,
                     struct by_push_record *to_record, struct by_problem *problem)
{
    assert_true(options->push_id == steps.clock && options->election_id == 66);
    assert_true(steps.no_eventfd ? options->stop_fd == 0 : options->stop_fd > 0);
    record_targets(to_record != NULL ? "push with a record to" : "push to", targets, count);
    for (uint32_t i = 0; i < count; i++) {
        int64_t node = by_topology_find(steps.daemon.topology, targets[i].name);

        assert_true(targets[i].bytes == 1 && targets[i].image[0] == node);
        assert_string_equal(targets[i].address, steps.daemon.switches[node - X0].address);
        assert_ptr_equal(targets[i].base, steps.daemon.switches[node - X0].image.bytes);
        assert_int_equal(targets[i].base_bytes, steps.daemon.switches[node - X0].image.size);
        targets[i].hash = 900 + (uint64_t)node;
        targets[i].sent = 1000;
    }
    if (to_record != NULL && !steps.skips_record) {
        int error = to_record->write(to_record->user, problem);

        if (error != 0)
            return error;
    }
    return result(steps.push_error, "x1 does not answer", problem);
}

int by_push_settle(struct by_push_target *targets, uint32_t count, const struct by_session_options *options,
                   enum by_push_settled *settled, struct by_problem *problem)
{
    (void)options;
    record_targets("settle", targets, count);
    *settled = steps.settled;
    return result(steps.settle_error, "not settled", problem);
}

/* ---- the daemon ---- */

struct by_job_tables *steps_tables(uint16_t gen)
{
    struct by_job_tables *tables = by_alloc(1, sizeof(*tables));

    tables->gen = gen;
    tables->window = 64;
    tables->need = by_alloc(NODES, sizeof(*tables->need));
    return tables;
}

void steps_open(void)
{
    struct by_daemon *daemon = &steps.daemon;

    memset(&steps, 0, sizeof(steps));
    record_clear();
    daemon->topology = bench_topology("h0 x0* x1* x2*", "h0-x0 x0-x1 x1-x2");
    daemon->work = (struct by_daemon_work *)&steps;
    daemon->events = (struct by_event_queue *)&steps;
    daemon->state = (struct by_state *)&steps;
    daemon->recover = (struct by_recover *)&steps;
    daemon->options.plan_limit_s = 3;
    daemon->options.lower.mtu = 1500;
    daemon->election_id = 66;
    daemon->loss.nodes = by_alloc(NODES, sizeof(bool));
    daemon->loss.links = by_alloc(LINKS, sizeof(bool));
    daemon->switches = steps.switches;
    daemon->switch_of = steps.switch_of;
    daemon->switch_count = 3;
    for (uint32_t i = 0; i < 3; i++) {
        struct by_daemon_switch *device = &steps.switches[i];

        daemon->switch_of[X0 + i] = i;
        device->node = X0 + i;
        device->name = daemon->topology->nodes[X0 + i].name;
        device->state = BY_SWITCH_UP;
        snprintf(device->address, sizeof(device->address), "unix:/run/%u", i);
        device->hello = (by_HelloReply){.port_count = 11 + i,
                                        .slot_count = 10 + i,
                                        .entry_max = 12 + i,
                                        .payload_max = 13 + i,
                                        .share_max = 14 + i,
                                        .boot_nonce = 40 + i};
        device->image.bytes = by_alloc(i + 1u, 1);
        device->image.size = i + 1u;
    }
    for (uint32_t i = 0; i < 3; i++) {
        steps.jobs[i].spec.job = (uint16_t)(2 + 3 * i - (i == 2));
        steps.jobs[i].spec.share = (struct by_fraction){i, 8};
        steps.jobs[i].state = i == 1 ? BY_JOB_FAILED : BY_JOB_RUNNING;
        steps.jobs[i].tables = steps_tables((uint16_t)(20 + i));
        steps.jobs[i].gen_last = (uint16_t)(30 + i);
        daemon->jobs[daemon->job_count++] = &steps.jobs[i];
    }
    steps.is_settled = true;
    steps.fits = 9999;
}

void steps_close(struct by_change *change)
{
    by_change_free(change);
    for (uint32_t i = 0; i < 3; i++) {
        by_job_tables_free(steps.jobs[i].tables);
        free(steps.switches[i].image.bytes);
    }
    free(steps.daemon.loss.nodes);
    free(steps.daemon.loss.links);
    by_topology_free(steps.daemon.topology);
}

void steps_planned(struct by_daemon *daemon, struct by_change *change)
{
    assert_ptr_equal(daemon, &steps.daemon);
    assert_ptr_equal(change, daemon->change);
    record("planned%s%s\n", change->error != 0 ? " " : "",
           change->error != 0 ? by_error_name(change->error) : "");
}

static void steps_pushed(struct by_daemon *daemon, struct by_change *change)
{
    assert_ptr_equal(daemon, &steps.daemon);
    assert_ptr_equal(change, daemon->change);
    record("pushed%s%s%s\n", change->error != 0 ? " " : "",
           change->error != 0 ? by_error_name(change->error) : "", change->settled ? "" : " unsettled");
}

void steps_work(void)
{
    while (steps.task != NULL) {
        struct by_task *task = steps.task;

        steps.task = NULL;
        task->run(task);
        task->done(&steps.daemon, task);
    }
}

struct by_change *steps_plan(bool repair)
{
    struct by_change *change = by_change_new(&steps.daemon);

    by_change_touch(change, &steps.jobs[0], repair);
    by_change_plan(&steps.daemon, change, steps_planned);
    steps_work();
    return change;
}

void steps_push(struct by_change *change)
{
    record_clear();
    by_change_push(&steps.daemon, change, steps_pushed);
    steps_work();
}
