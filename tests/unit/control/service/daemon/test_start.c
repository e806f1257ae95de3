/* From the first heartbeats to leadership: when it begins, with which election id, what becomes of
 * a push of the last run, and what is loaded. Store, switches and pushes are the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/daemon.h"
#include "control/service/daemon/jobs.h"
#include "control/service/daemon/state.h"
#include "offload/base/errors.h"
#include "offload/linux/notify.h"
#include "tests/unit/control/service/daemon/record.h"
#include "tests/unit/control/tables/bench.h"

enum { H0, H1, X0, X1, X2, NODES };

static struct {
    struct by_daemon daemon;
    uint64_t clock; /* of election ids */
    /* the store */
    uint64_t election;
    int elect_error, pending_error, settle_error, jobs_error, ended_error, image_error;
    struct by_state_open_push push;
    struct by_state_target targets[3];
    uint32_t loaded;
    uint64_t nonce[NODES];
    bool has_image[NODES];
    /* the switches */
    int push_error;
    enum by_push_settled settled;
    uint64_t hash[NODES];       /* of their tables, after settling */
    uint64_t boot_nonce[NODES]; /* of their present runs, then; 0: not reached */
    int open_error, read_error;
    uint8_t *image;
    size_t image_bytes;
} rig;

/* Records a line, after a word. */
static void record_line(const char *what, const char *format, va_list arguments)
{
    char text[600];

    vsnprintf(text, sizeof(text), format, arguments);
    record("%s: %s\n", what, text);
}

/* ---- the other parts ---- */

void by_daemon_say(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    record_line("said", format, arguments);
    va_end(arguments);
}

void by_daemon_end(struct by_daemon *daemon, int status, const char *format, ...)
{
    va_list arguments;
    char what[16];

    (void)daemon;
    snprintf(what, sizeof(what), "end %d", status);
    va_start(arguments, format);
    record_line(what, format, arguments);
    va_end(arguments);
}

void by_daemon_tell(struct by_daemon *daemon, const struct by_daemon_event *event)
{
    assert_null(daemon->start); /* events are handled from now on */
    if (event->kind == BY_EVENT_LED) {
        record("led\n");
        return;
    }
    assert_int_equal(event->kind, BY_EVENT_SWITCH_REBOOTED);
    record("rebooted %s\n", daemon->topology->nodes[event->node].name);
}

void by_notify(const char *state)
{
    record("notify %s\n", state);
}

void by_switches_start(struct by_daemon *daemon)
{
    (void)daemon;
    record("watch\n");
}

void by_switches_lead(struct by_daemon *daemon)
{
    record("lead %llu\n", (unsigned long long)daemon->election_id);
}

struct by_daemon_switch *by_switch_find(struct by_daemon *daemon, uint32_t node)
{
    return node < X0 ? NULL : &daemon->switches[node - X0];
}

struct by_job *by_jobs_find(struct by_daemon *daemon, uint16_t job)
{
    for (uint32_t i = 0; i < daemon->job_count; i++)
        if (daemon->jobs[i]->spec.job == job)
            return daemon->jobs[i];
    return NULL;
}

void by_jobs_insert(struct by_daemon *daemon, struct by_job *job)
{
    daemon->jobs[daemon->job_count++] = job;
}

void by_jobs_create(struct by_daemon *daemon, struct by_job_spec *spec, by_jobs_reply_fn *reply,
                    void *context)
{
    (void)daemon;
    (void)context;
    assert_null(reply);
    record("create %u\n", spec->job);
    by_job_spec_free(spec);
}

static int result(int error, const char *text, struct by_problem *problem)
{
    return error == 0 ? 0 : by_problem_say(problem, error, "%s", text);
}

uint64_t by_state_election(const struct by_state *state)
{
    (void)state;
    return rig.election;
}

int by_state_elect(struct by_state *state, uint64_t election_id, struct by_problem *problem)
{
    (void)state;
    record("elect %llu\n", (unsigned long long)election_id);
    return result(rig.elect_error, "no election", problem);
}

int by_state_pending(struct by_state *state, struct by_state_open_push *push, struct by_problem *problem)
{
    (void)state;
    *push = rig.push;
    push->targets = rig.targets;
    return result(rig.pending_error, "no push", problem);
}

void by_state_pending_free(struct by_state_open_push *push)
{
    assert_ptr_equal(push->targets, rig.targets);
}

int by_state_settle(struct by_state *state, bool forward, struct by_problem *problem)
{
    (void)state;
    record("settle %s\n", forward ? "forward" : "back");
    return result(rig.settle_error, "not settled", problem);
}

int by_state_jobs(struct by_state *state, struct by_job ***jobs, uint32_t *count, struct by_problem *problem)
{
    (void)state;
    *jobs = by_alloc(rig.loaded + 1u, sizeof(**jobs));
    *count = rig.loaded;
    for (uint32_t i = 0; i < rig.loaded; i++) {
        (*jobs)[i] = by_alloc(1, sizeof(struct by_job));
        (*jobs)[i]->spec.job = (uint16_t)(i + 1);
    }
    return result(rig.jobs_error, "no jobs", problem);
}

int by_state_ended(struct by_state *state, uint16_t gens[BY_JOBS_MAX], struct by_problem *problem)
{
    (void)state;
    gens[9] = 4;
    return result(rig.ended_error, "no generations", problem);
}

int by_state_image(struct by_state *state, uint32_t node, struct by_change_image *image, uint64_t *boot_nonce,
                   struct by_problem *problem)
{
    (void)state;
    *image = (struct by_change_image){0};
    *boot_nonce = rig.nonce[node];
    if (rig.has_image[node])
        image->hash = 100 + node;
    return result(rig.image_error, "the table is damaged", problem);
}

uint64_t by_push_election(void)
{
    return rig.clock;
}

int by_push_settle(struct by_push_target *targets, uint32_t count, const struct by_session_options *options,
                   enum by_push_settled *settled, struct by_problem *problem)
{
    assert_true(options->election_id == rig.daemon.election_id && options->election_id != 0);
    for (uint32_t i = 0; i < count; i++) {
        int64_t node = by_topology_find(rig.daemon.topology, targets[i].name);

        record("ask %s at %s\n", targets[i].name, targets[i].address);
        targets[i].hash = rig.hash[node];
        targets[i].boot_nonce = rig.boot_nonce[node];
    }
    *settled = rig.settled;
    return result(rig.push_error, "x1 has restarted in between", problem);
}

int by_session_open(const char *address, const struct by_session_options *options,
                    struct by_session **session, struct by_problem *problem)
{
    assert_string_equal(options->keys, "keys");
    record("open %s\n", address);
    *session = NULL;
    return result(rig.open_error, "nothing listens there", problem);
}

int by_session_read(struct by_session *session, uint8_t **image, size_t *bytes, struct by_problem *problem)
{
    int error = rig.image != NULL ? rig.read_error : BY_ENOENT;

    (void)session;
    if (error == 0) {
        *image = by_alloc(rig.image_bytes, 1);
        memcpy(*image, rig.image, rig.image_bytes);
        *bytes = rig.image_bytes;
    }
    return result(error, "it has none", problem);
}

void by_session_close(struct by_session *session)
{
    (void)session;
    record("close\n");
}

/* ---- the daemon ---- */

static char *addresses[] = {"unix:/run/0", "unix:/run/1", "unix:/run/2"};

static void open_rig(void)
{
    struct by_daemon *daemon = &rig.daemon;

    memset(&rig, 0, sizeof(rig));
    record_clear();
    daemon->topology = bench_topology("h0 h1 x0* x1* x2*", "h0-x0 x0-x1 x1-x2 x2-h1");
    daemon->switch_count = 3;
    daemon->switches = by_alloc(3, sizeof(*daemon->switches));
    daemon->options.access.keys = "keys";
    daemon->now_ms = 5000;
    for (uint32_t i = 0; i < 3; i++) {
        daemon->switches[i].node = X0 + i;
        daemon->switches[i].name = daemon->topology->nodes[X0 + i].name;
        daemon->switches[i].state = BY_SWITCH_UP;
        daemon->switches[i].hello.boot_nonce = 40 + i;
        snprintf(daemon->switches[i].address, sizeof(daemon->switches[i].address), "%s", addresses[i]);
    }
    rig.clock = 1000;
    by_start_open(daemon);
    record_expect("watch\n");
}

static void close_rig(void)
{
    by_start_close(&rig.daemon);
    assert_null(rig.daemon.start);
    for (uint32_t i = 0; i < rig.daemon.job_count; i++)
        free(rig.daemon.jobs[i]);
    free(rig.daemon.switches);
    by_topology_free(rig.daemon.topology);
    free(rig.image);
}

static struct by_daemon_switch *at(uint32_t node)
{
    return &rig.daemon.switches[node - X0];
}

/* A tick; returns what it prints, until the next one. */
static const char *tick(void)
{
    static char printed[400];
    FILE *file = tmpfile();
    int kept = dup(STDOUT_FILENO);

    assert_true(file != NULL && kept >= 0);
    fflush(stdout);
    dup2(fileno(file), STDOUT_FILENO);
    by_start_tick(&rig.daemon);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    rewind(file);
    printed[fread(printed, 1, sizeof(printed) - 1, file)] = 0;
    fclose(file);
    return printed;
}

/* ---- tests ---- */

static void it_leads_once_each_switch_has_answered_or_is_down(void **state)
{
    (void)state;
    open_rig();
    at(X0)->state = at(X2)->state = BY_SWITCH_UNKNOWN;
    assert_string_equal(tick(), "");
    at(X0)->state = BY_SWITCH_UP;
    assert_string_equal(tick(), "");
    record_expect("");
    assert_non_null(rig.daemon.start);
    at(X2)->state = BY_SWITCH_DOWN;
    assert_string_equal(tick(),
                        "banyand: ready, 2 of 3 switches are up, 0 jobs run, election id 1000, socket "
                        "off, http off\n");
    record_expect("elect 1000\nlead 1000\nnotify READY=1\nled\n");
    assert_null(rig.daemon.start);
    assert_int_equal(rig.daemon.gen_seen[9], 4);
    close_rig();
}

static void it_names_where_it_listens_and_creates_the_jobs_that_it_has_not_loaded(void **state)
{
    struct by_daemon_options *options = &rig.daemon.options;

    (void)state;
    open_rig();
    rig.loaded = 2;
    options->socket = "/run/banyand";
    options->http = true;
    options->http_port = 8080;
    options->jobs[0] = "3=allreduce:h0,h1";
    options->jobs[1] = "2=allreduce:h0,h1"; /* of the last run */
    options->jobs[2] = "7=allreduce";
    options->job_count = 3;
    assert_string_equal(tick(),
                        "banyand: ready, 3 of 3 switches are up, 2 jobs run, election id 1000, socket "
                        "/run/banyand, http 127.0.0.1:8080\n");
    record_expect("elect 1000\nlead 1000\nnotify READY=1\nled\ncreate 3\ncreate 7\n");
    close_rig();
}

static void its_election_id_is_above_all_earlier_ones(void **state)
{
    static const struct {
        uint64_t stored, seen, clock, used;
    } cases[] = {{0, 0, 1000, 1000},    {999, 0, 1000, 1000},     {1000, 0, 1000, 1001},
                 {2000, 0, 1000, 2001}, {2000, 3000, 1000, 3001}, {3000, 2000, 1000, 3001},
                 {0, 1000, 1000, 1001}, {0, 999, 1000, 1000}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_rig();
        rig.daemon.options.takeover = true;
        rig.election = cases[i].stored;
        at(X0 + i % 3)->hello.election_id = cases[i].seen;
        rig.clock = cases[i].clock;
        tick();
        if (rig.daemon.election_id != cases[i].used)
            fail_msg("case %zu: %llu", i, (unsigned long long)rig.daemon.election_id);
        close_rig();
    }
}

static void a_writer_that_sends_requests_leads(void **state)
{
    (void)state;
    for (uint32_t node = X0; node < NODES; node++) {
        char text[160];

        open_rig();
        rig.election = 50;
        at(node)->hello.election_id = 51;
        at(node)->hello.election_count = 7;
        assert_string_equal(tick(), "");
        rig.daemon.now_ms += 1199;
        assert_string_equal(tick(), "");
        record_expect("");
        at(node)->hello.election_count = 8;
        tick();
        snprintf(text, sizeof(text),
                 "end 3: switch x%u is led by another controller, with election id 51: end that one, or "
                 "start this one with --takeover\n",
                 node - X0);
        record_expect(text);
        at(node)->state = BY_SWITCH_DOWN; /* what it answered before does not count */
        tick();
        record_expect("");
        close_rig();
    }
}

static void a_writer_without_requests_has_ended(void **state)
{
    (void)state;
    open_rig();
    rig.election = 50;
    at(X0)->hello.election_id = 51;
    at(X0)->hello.election_count = 7;
    tick();
    rig.daemon.now_ms += 1199;
    tick();
    record_expect("");
    rig.daemon.now_ms += 1;
    tick();
    record_expect("elect 1000\nlead 1000\nnotify READY=1\nled\n");
    close_rig();
}

static void a_writer_of_an_earlier_run_is_no_stranger(void **state)
{
    (void)state;
    open_rig();
    rig.election = 51;
    at(X2)->hello.election_id = 51;
    tick();
    record_expect("elect 1000\nlead 1000\nnotify READY=1\nled\n");
    close_rig();
    open_rig();
    at(X2)->hello.election_id = 51;
    rig.daemon.options.takeover = true; /* nor is anyone then */
    tick();
    record_expect("elect 1000\nlead 1000\nnotify READY=1\nled\n");
    close_rig();
}

static void what_the_store_cannot_do_ends_it(void **state)
{
    static const struct {
        int *error;
        const char *told;
    } cases[] = {{&rig.elect_error, "elect 1000\nlead 1000\nend 3: no election\n"},
                 {&rig.pending_error, "elect 1000\nlead 1000\nend 3: no push\n"},
                 {&rig.jobs_error, "elect 1000\nlead 1000\nend 3: no jobs\n"},
                 {&rig.ended_error, "elect 1000\nlead 1000\nend 3: no generations\n"}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_rig();
        rig.loaded = 1;
        *cases[i].error = BY_EIO;
        assert_string_equal(tick(), "");
        record_expect(cases[i].told);
        close_rig();
    }
}

/* A push of the last run to x0 and x2. */
static void open_push(void)
{
    open_rig();
    rig.push = (struct by_state_open_push){.push_id = 6, .count = 2};
    rig.targets[0] = (struct by_state_target){.node = X0, .hash = 70, .nonce = 40};
    rig.targets[1] = (struct by_state_target){.node = X2, .hash = 72, .nonce = 42};
    for (uint32_t n = X0; n < NODES; n++)
        at(n)->hello.table_hash = rig.hash[n] = 100 + n;
    for (uint32_t n = X0; n < NODES; n++)
        rig.has_image[n] = true;
}

#define ASKED "elect 1000\nlead 1000\nask x0 at unix:/run/0\nask x2 at unix:/run/2\n"
#define FORWARD                                                                                              \
    "said: a push was in progress when the last controller ended: it is completed\nsettle forward\n"
#define BACK "said: a push was in progress when the last controller ended: it is discarded\nsettle back\n"
#define LED  "notify READY=1\nled\n"

static void a_push_that_the_switches_complete_or_discard_is_recorded_so(void **state)
{
    (void)state;
    open_push();
    rig.settled = BY_PUSH_FORWARD;
    tick();
    record_expect(ASKED FORWARD LED);
    close_rig();
    open_push();
    rig.settled = BY_PUSH_BACK;
    tick();
    record_expect(ASKED BACK LED);
    close_rig();
    open_push();
    rig.settle_error = BY_EIO;
    tick();
    record_expect(ASKED BACK "end 3: not settled\n");
    close_rig();
    open_push();
    rig.push.push_id = 0; /* its end was recorded */
    rig.settled = BY_PUSH_CLEAR;
    tick();
    record_expect(ASKED LED);
    close_rig();
}

static void a_push_of_which_nothing_is_open_is_judged_by_the_tables(void **state)
{
    static const struct {
        uint64_t table[2], nonce[2]; /* of x0 and x2 */
        bool down[2], forward;
        uint64_t now[2]; /* nonces when the push is settled: a slow disk may delay this; 0: unknown */
    } cases[] = {
        {{1, 2}, {40, 42}, {false, false}, false, {0, 0}},
        {{70, 2}, {40, 42}, {false, false}, true, {0, 0}}, /* one has its table */
        {{1, 72}, {40, 42}, {false, false}, true, {0, 0}},
        {{1, 2}, {41, 42}, {false, false}, false, {0, 0}}, /* one has not restarted */
        {{1, 2}, {40, 43}, {false, false}, false, {0, 0}},
        {{1, 2}, {41, 43}, {false, false}, true, {0, 0}}, /* none shows what became of it */
        {{1, 2}, {40, 42}, {true, true}, true, {0, 0}},
        {{1, 2}, {40, 42}, {true, false}, false, {0, 0}},
        {{70, 2}, {40, 42}, {true, false}, false, {0, 0}}, /* of before it went down */
        {{1, 2}, {40, 43}, {true, false}, true, {0, 0}},
        {{1, 2}, {40, 42}, {false, false}, false, {40, 43}},
        {{1, 2}, {40, 42}, {false, false}, false, {0, 43}},
        {{1, 2}, {40, 42}, {false, false}, true, {41, 43}}, /* seed 30030418 of the world test */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *verdict;

        open_push();
        for (unsigned k = 0; k < 2; k++) {
            struct by_daemon_switch *device = at(k == 0 ? X0 : X2);

            device->hello.table_hash = rig.hash[device->node] = cases[i].table[k];
            device->hello.boot_nonce = cases[i].nonce[k];
            rig.boot_nonce[device->node] = cases[i].now[k];
            device->state = cases[i].down[k] ? BY_SWITCH_DOWN : BY_SWITCH_UP;
        }
        rig.open_error = BY_EAGAIN;
        tick();
        verdict = strstr(recorded, "settle ");
        assert_non_null(verdict);
        if ((strncmp(verdict, "settle forward\n", 15) == 0) != cases[i].forward)
            fail_msg("case %zu: %s", i, recorded);
        close_rig();
    }
}

/* Heartbeats may be older than the last commit. */
static void tables_are_those_that_the_switches_have_after_settling(void **state)
{
    (void)state;
    open_push();
    rig.hash[X0] = 70;
    rig.hash[X1] = 71; /* it is not asked */
    tick();
    assert_non_null(strstr(recorded, FORWARD));
    assert_true(at(X0)->hello.table_hash == 70 && at(X1)->hello.table_hash == 100 + X1 &&
                at(X2)->hello.table_hash == 100 + X2);
    close_rig();
    open_push();
    rig.hash[X0] = 70;
    rig.push_error = BY_ESTATE; /* then its effect is unknown */
    tick();
    record_expect(ASKED "said: x1 has restarted in between\n" BACK LED);
    assert_true(at(X0)->hello.table_hash == 100 + X0);
    close_rig();
}

static void no_switch_is_asked_about_a_push_without_any(void **state)
{
    (void)state;
    open_push();
    rig.push.count = 0;
    tick();
    record_expect("elect 1000\nlead 1000\n" FORWARD LED);
    close_rig();
}

static void a_switch_that_has_restarted_meanwhile_is_reported_after_the_lead(void **state)
{
    (void)state;
    open_rig();
    rig.nonce[X0] = 40;
    rig.nonce[X1] = 90;
    rig.nonce[X2] = 91;
    at(X2)->state = BY_SWITCH_DOWN; /* its state is unknown */
    tick();
    record_expect("elect 1000\nlead 1000\nnotify READY=1\nled\n"
                  "said: switch x1 has restarted since the last controller ended\nrebooted x1\n");
    assert_false(at(X1)->restarted || at(X0)->restarted || at(X2)->restarted);
    close_rig();
    open_rig();
    rig.nonce[X0] = 90;
    tick();
    assert_non_null(strstr(recorded, "\nrebooted x0\n"));
    close_rig();
    open_rig();
    rig.image_error = BY_EFORMAT; /* the table is made again */
    tick();
    record_expect(
        "elect 1000\nlead 1000\nsaid: the table is damaged\nsaid: the table is damaged\nsaid: the table is "
        "damaged\nnotify READY=1\nled\n");
    close_rig();
}

/* An image of x0 with job 9 in generation 6 and job 11 in generation 1. */
static void make_image(void)
{
    static const char *const trees[] = {"10 x0: x0>h0 x0>x1 x1>x2 x2>h1", NULL};
    struct by_plan *plan = bench_plan(rig.daemon.topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
    struct by_lower_job jobs[2] = {
        {.job = 9, .gen = 6, .plan_count = 1, .plans = (const struct by_plan *const *)&plan},
        {.job = 11, .gen = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan}};
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};

    if (by_lower(rig.daemon.topology, jobs, 2, &(struct by_lower_options){0}, &lowering, &problem) != 0 ||
        by_lowering_image(lowering, X0, &rig.image, &rig.image_bytes, &problem) != 0)
        fail_msg("%s", problem.text);
    by_lowering_free(lowering);
    bench_plan_free(plan);
}

static void generations_in_tables_of_another_controller_are_not_used_again(void **state)
{
    (void)state;
    open_rig();
    make_image();
    for (uint32_t n = X0; n < NODES; n++) {
        rig.has_image[n] = true;
        at(n)->hello.table_hash = 100 + n;
    }
    at(X0)->hello.table_hash = 0xab;
    at(X1)->hello.table_hash = 0; /* it has none */
    rig.daemon.gen_seen[11] = 3;
    tick();
    record_expect(
        "elect 1000\nlead 1000\n"
        "said: switch x0 has table 00000000000000ab, which is not from this controller: the next change "
        "replaces it\nopen unix:/run/0\nclose\nnotify READY=1\nled\n");
    assert_int_equal(rig.daemon.gen_seen[9], 6);
    assert_int_equal(rig.daemon.gen_seen[11], 3);
    close_rig();
}

static void a_table_that_cannot_be_read_is_reported_and_does_not_end_it(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        static const char *const said[] = {
            "open unix:/run/0\nsaid: switch x0: cannot read its table: nothing listens there\nclose\n",
            "open unix:/run/0\nsaid: switch x0: cannot read its table: it has none\nclose\n",
            "open unix:/run/0\nsaid: switch x0: cannot read its table: ", ""};

        open_rig();
        make_image();
        at(X0)->hello.table_hash = 0xab;
        if (i == 0)
            rig.open_error = BY_EAGAIN;
        if (i == 1)
            rig.read_error = BY_ENOENT;
        if (i == 2)
            rig.image_bytes -= 8; /* it is damaged */
        if (i == 3)
            at(X0)->state = BY_SWITCH_DOWN;
        tick();
        assert_non_null(strstr(recorded, said[i]));
        assert_int_equal(i == 3, strstr(recorded, "open ") == NULL);
        assert_non_null(strstr(recorded, "\nled\n"));
        assert_int_equal(rig.daemon.gen_seen[11], 0);
        close_rig();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_leads_once_each_switch_has_answered_or_is_down),
        cmocka_unit_test(it_names_where_it_listens_and_creates_the_jobs_that_it_has_not_loaded),
        cmocka_unit_test(its_election_id_is_above_all_earlier_ones),
        cmocka_unit_test(a_writer_that_sends_requests_leads),
        cmocka_unit_test(a_writer_without_requests_has_ended),
        cmocka_unit_test(a_writer_of_an_earlier_run_is_no_stranger),
        cmocka_unit_test(what_the_store_cannot_do_ends_it),
        cmocka_unit_test(a_push_that_the_switches_complete_or_discard_is_recorded_so),
        cmocka_unit_test(a_push_of_which_nothing_is_open_is_judged_by_the_tables),
        cmocka_unit_test(tables_are_those_that_the_switches_have_after_settling),
        cmocka_unit_test(no_switch_is_asked_about_a_push_without_any),
        cmocka_unit_test(a_switch_that_has_restarted_meanwhile_is_reported_after_the_lead),
        cmocka_unit_test(generations_in_tables_of_another_controller_are_not_used_again),
        cmocka_unit_test(a_table_that_cannot_be_read_is_reported_and_does_not_end_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
