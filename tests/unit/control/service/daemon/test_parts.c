/* Start and end of banyand with its parts replaced: in which order they are opened and closed, what
 * becomes of errors, and how long the end waits for threads. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/ahead.h"
#include "control/service/daemon/changes.h"
#include "control/service/daemon/follow.h"
#include "control/service/daemon/history.h"
#include "control/service/daemon/http.h"
#include "control/service/daemon/jobs.h"
#include "control/service/daemon/lead.h"
#include "control/service/daemon/members.h"
#include "control/service/daemon/news.h"
#include "control/service/daemon/notice.h"
#include "control/service/daemon/rates.h"
#include "control/service/daemon/recovery.h"
#include "control/service/daemon/reduce.h"
#include "control/service/daemon/say.h"
#include "control/service/daemon/state.h"
#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/descriptors.h"
#include "tests/unit/control/service/daemon/printed.h"
#include "tests/unit/control/service/daemon/record.h"
#include "tests/unit/control/tables/bench.h"

/* What the opened parts are: never read. */
#define PART(type) ((type *)&rig)

static struct {
    struct by_daemon_options options; /* of the command line */
    int parsed;                       /* its result */
    int site_error, state_error, lead_error, wait_error, members_error, http_error;
    bool exposed, signalled;
    unsigned retires;          /* so many times another controller comes to lead */
    const char *out_of_memory; /* this part ends the daemon */
    int status;                /* of the loop */
    mode_t mask;               /* while it runs */
    bool hangs;                /* the threads do not end in time */
    void *(*guard)(void *);
    void *guard_context;
    unsigned interrupted;
    struct timespec now, until;
    sem_t *ended;
    jmp_buf exits;
    char text[800]; /* on stderr */
} rig;

/* ---- the system ---- */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context);
int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until);
void __wrap__exit(int status) __attribute__((noreturn));

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context)
{
    (void)attributes;
    *thread = pthread_self();
    rig.guard = run;
    rig.guard_context = context;
    record("guard ");
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    int posted = -1;

    (void)result;
    assert_true(pthread_equal(thread, pthread_self()));
    assert_int_equal(sem_getvalue(rig.ended, &posted), 0);
    assert_int_equal(posted, 1); /* it is told to end before */
    record("join ");
    return 0;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    assert_int_equal(clock, CLOCK_MONOTONIC);
    *now = rig.now;
    return 0;
}

int __wrap_sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
    assert_int_equal(clock, CLOCK_MONOTONIC);
    rig.ended = semaphore;
    rig.until = *until;
    if (rig.interrupted > 0) {
        rig.interrupted--;
        errno = EINTR;
        return -1;
    }
    if (!rig.hangs)
        return 0;
    errno = ETIMEDOUT;
    return -1;
}

void __wrap__exit(int status)
{
    record("exit %d\n", status);
    longjmp(rig.exits, 1);
}

/* ---- the fabric ---- */

int __wrap_by_topology_read(const char *path, struct by_topology **topology, struct by_problem *problem);
void __wrap_by_topology_free(struct by_topology *topology);
void __real_by_topology_free(struct by_topology *topology);
int __wrap_by_site_read(const char *path, struct by_topology *topology, struct by_problem *problem);
uint32_t __wrap_by_lower_mtu_least(const struct by_topology *topology);

int __wrap_by_topology_read(const char *path, struct by_topology **topology, struct by_problem *problem)
{
    if (strcmp(path, "fabric") != 0) {
        by_problem_say(problem, BY_EFORMAT, "no fabric");
        problem->line = 7;
        problem->column = 8;
        return BY_EFORMAT;
    }
    *topology = bench_topology("h0 h1 x0*", "h0-x0 h1-x0");
    record("fabric ");
    return 0;
}

void __wrap_by_topology_free(struct by_topology *topology)
{
    if (topology != NULL)
        record("-fabric\n");
    __real_by_topology_free(topology);
}

int __wrap_by_site_read(const char *path, struct by_topology *topology, struct by_problem *problem)
{
    (void)topology;
    record("site %s ", path);
    return rig.site_error != 0 ? by_problem_say(problem, rig.site_error, "no such node") : 0;
}

uint32_t __wrap_by_lower_mtu_least(const struct by_topology *topology)
{
    (void)topology;
    return 4096;
}

/* ---- parts that are opened with an object ---- */

#define OPENS(function, type, name)                                                                          \
    struct type *function                                                                                    \
    {                                                                                                        \
        record(name " ");                                                                                    \
        return PART(struct type);                                                                            \
    }
#define CLOSES(function, type, name)                                                                         \
    void function(struct type *part)                                                                         \
    {                                                                                                        \
        if (part != NULL)                                                                                    \
            record("-" name " ");                                                                            \
    }

OPENS(by_news_open(void), by_news, "news")
CLOSES(by_news_close, by_news, "news")
CLOSES(by_rates_close, by_rates, "rates")
CLOSES(by_history_close, by_history, "history")
OPENS(by_event_queue_open(void), by_event_queue, "queue")
CLOSES(by_event_queue_close, by_event_queue, "queue")
CLOSES(by_work_stop, by_daemon_work, "work")
OPENS(by_jobs_open(void), by_jobs, "jobs")
CLOSES(by_state_close, by_state, "state")
CLOSES(by_lead_close, by_lead, "lead")
CLOSES(by_follow_close, by_follow, "follow")
CLOSES(by_change_free, by_change, "change")

struct by_rates *by_rates_open(uint32_t link_count)
{
    assert_int_equal(link_count, 2);
    record("rates ");
    return PART(struct by_rates);
}

struct by_history *by_history_open(uint32_t link_count)
{
    assert_int_equal(link_count, 2);
    record("history ");
    return PART(struct by_history);
}

struct by_daemon_work *by_work_start(struct by_event_queue *events)
{
    assert_ptr_equal(events, &rig);
    record("work ");
    return PART(struct by_daemon_work);
}

/* ---- parts of the daemon ---- */

#define DOES(function, name)                                                                                 \
    void function(struct by_daemon *daemon)                                                                  \
    {                                                                                                        \
        assert_non_null(daemon);                                                                             \
        record(name " ");                                                                                    \
    }

/* Parts that end the daemon if they find no memory. */
#define MAY_END(function, name)                                                                              \
    void function(struct by_daemon *daemon)                                                                  \
    {                                                                                                        \
        record(name " ");                                                                                    \
        if (rig.out_of_memory != NULL && strcmp(rig.out_of_memory, name) == 0) {                             \
            daemon->ending = true;                                                                           \
            daemon->status = 3;                                                                              \
        }                                                                                                    \
    }

MAY_END(by_recovery_open, "recovery")
DOES(by_recovery_close, "-recovery")
MAY_END(by_notice_open, "notice")
DOES(by_notice_close, "-notice")
DOES(by_members_close, "-members")
DOES(by_http_close, "-http")
DOES(by_start_open, "start")
DOES(by_start_close, "-start")
DOES(by_ahead_close, "-ahead")
DOES(by_jobs_close, "-jobs")

void by_switches_stop(struct by_daemon *daemon)
{
    assert_non_null(daemon);
    record("-switches ");
    if (rig.guard != NULL && setjmp(rig.exits) == 0) /* meanwhile the guard waits */
        assert_null(rig.guard(rig.guard_context));
}

int by_members_open(struct by_daemon *daemon)
{
    (void)daemon;
    record("members ");
    return rig.members_error;
}

int by_http_open(struct by_daemon *daemon, struct by_problem *problem)
{
    (void)daemon;
    record("http ");
    return rig.http_error != 0 ? by_problem_say(problem, rig.http_error, "no port") : 0;
}

void by_daemon_run(struct by_daemon *daemon)
{
    struct stat epoll;

    rig.mask = umask(0);
    umask(rig.mask);
    assert_true(daemon->reduce == by_reduce && daemon->started_ms == 1234567 &&
                fstat(daemon->epoll, &epoll) == 0);
    assert_true(daemon->switch_count == 1 && daemon->switch_of[2] == 0 && daemon->switch_of[0] == UINT32_MAX);
    assert_string_equal(daemon->switches[0].address, "unix:a");
    assert_false(daemon->links[1].down || daemon->loss.nodes[2] || daemon->loss.links[1]);
    record("mtu %u run\n", daemon->options.lower.mtu);
    daemon->switches[0].image.bytes = by_alloc(1, 1);
    daemon->change = PART(struct by_change);
    daemon->status = rig.status;
    if (rig.retires > 0) {
        rig.retires--;
        daemon->retires = true;
    }
}

void by_reduce(struct by_daemon *daemon, const struct by_daemon_event *event)
{
    (void)daemon;
    (void)event;
}

uint64_t by_news_clock_ms(void)
{
    return 1234567;
}

int by_daemon_options_parse(struct by_daemon_options *options, int argc, char **argv)
{
    assert_int_equal(argc, 1);
    assert_string_equal(argv[0], "banyand");
    *options = rig.options;
    return rig.parsed;
}

/* ---- the store ---- */

int by_daemon_signals(void)
{
    return dup(STDOUT_FILENO);
}

struct by_etcd *by_lead_etcd(struct by_lead *lead)
{
    assert_ptr_equal(lead, &rig);
    return PART(struct by_etcd);
}

bool by_etcd_is_exposed(const struct by_etcd *etcd)
{
    assert_ptr_equal(etcd, &rig);
    return rig.exposed;
}

struct by_follow *by_follow_open(struct by_daemon_options *options, const char *topology)
{
    assert_ptr_equal(options->store, rig.options.store);
    assert_string_equal(topology, "bench");
    record("follow ");
    return PART(struct by_follow);
}

int by_follow_see(void *context, const char *leader, const char *text, struct by_problem *problem)
{
    (void)context;
    (void)leader;
    (void)text;
    (void)problem;
    return 0;
}

int by_lead_open(const char *store, const char *keys, struct by_lead **lead, struct by_problem *problem)
{
    assert_ptr_equal(keys, rig.options.store_keys);
    record("lead %s ", store);
    if (rig.lead_error != 0)
        return by_problem_say(problem, rig.lead_error, "no such store");
    *lead = PART(struct by_lead);
    return 0;
}

int by_lead_wait(struct by_lead *lead, int signals, by_lead_seen *see, void *context,
                 struct by_problem *problem)
{
    assert_true(lead == PART(struct by_lead) && see == by_follow_see && context == &rig && signals >= 0);
    record("wait ");
    if (rig.signalled)
        return BY_EABORTED;
    return rig.wait_error != 0 ? by_problem_say(problem, rig.wait_error, "two clusters") : 0;
}

int by_state_open(const char *folder, const struct by_topology *topology,
                  const struct by_lower_options *options, struct by_state **state, struct by_problem *problem)
{
    assert_string_equal(topology->name, "bench");
    assert_int_equal(options->mtu, 4096);
    record("state %s ", folder);
    if (rig.state_error != 0)
        return by_problem_say(problem, rig.state_error, "no folder");
    *state = PART(struct by_state);
    return 0;
}

int by_state_open_etcd(struct by_lead *lead, const char *store, const struct by_topology *topology,
                       const struct by_lower_options *options, struct by_state **state,
                       struct by_problem *problem)
{
    assert_ptr_equal(lead, &rig);
    record("shared ");
    return by_state_open(store, topology, options, state, problem);
}

/* ---- the program ---- */

static int set_up(void **state)
{
    (void)state;
    memset(&rig, 0, sizeof(rig));
    record_clear();
    rig.options.topology = "fabric";
    rig.options.to[0] = "x0=unix:a";
    rig.options.to_count = 1;
    rig.parsed = -1;
    return 0;
}

/* Runs it; what it prints is in rig.text. */
static void runs(int expected)
{
    char *argv[] = {(char[]){"banyand"}};
    unsigned descriptors;
    int status;

    printed_begin();
    descriptors = count_descriptors();
    status = by_daemon_main(1, argv);
    assert_int_equal(count_descriptors(), descriptors);
    printed_end(rig.text, sizeof(rig.text));
    assert_int_equal(status, expected);
}

#define OPENED "news rates history queue work jobs recovery notice members "
#define CLOSED                                                                                               \
    "-start -ahead -http -members guard -switches -work join -notice -recovery -change -jobs -queue "
#define FREED "-history -rates -news -fabric\n"

/* ---- tests ---- */

static void parts_are_closed_in_reverse_order(void **state)
{
    (void)state;
    rig.status = 5;
    runs(5);
    record_expect("fabric " OPENED "http start mtu 4096 run\n" CLOSED FREED);
    assert_int_equal(rig.mask, 0077); /* its files hold keys */
    rig.options.site = "site";
    rig.options.lower.mtu = 1500;
    rig.status = 0;
    runs(0);
    record_expect("fabric site site " OPENED "http start mtu 1500 run\n" CLOSED FREED);
}

static void a_command_line_with_a_status_starts_nothing(void **state)
{
    (void)state;
    rig.parsed = 0;
    runs(0);
    rig.parsed = 2;
    runs(2);
    record_expect("");
}

static void what_is_wrong_with_files_is_told(void **state)
{
    (void)state;
    rig.options.topology = "other";
    runs(2);
    assert_string_equal(rig.text, "banyand: other:7:8: no fabric\n");
    record_expect("-start ");
    rig.options.topology = "fabric";
    rig.options.site = "site";
    rig.site_error = BY_EFORMAT;
    runs(2);
    assert_string_equal(rig.text, "banyand: site: no such node\n");
    record_expect("fabric site site -start -fabric\n");
}

static void hosts_and_pages_that_cannot_connect_end_the_start(void **state)
{
    static const struct {
        int members, http, status;
        const char *text;
    } rows[] = {{BY_EINVAL, 0, 2, ""}, {BY_EIO, 0, 3, ""}, {0, BY_EIO, 3, "banyand: no port\n"}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char lines[400];

        rig.members_error = rows[i].members;
        rig.http_error = rows[i].http;
        rig.guard = NULL;
        runs(rows[i].status);
        assert_string_equal(rig.text, rows[i].text);
        snprintf(lines, sizeof(lines), "fabric " OPENED "%s%s", rows[i].http != 0 ? "http " : "",
                 "-start -ahead -http -members guard -switches -work join -notice -recovery -jobs "
                 "-queue " FREED);
        record_expect(lines);
    }
}

static void a_part_without_memory_ends_the_start(void **state)
{
    static const char *const parts[] = {"recovery", "notice"};

    (void)state;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        rig.out_of_memory = parts[i];
        rig.guard = NULL;
        runs(3);
        record_expect("fabric " OPENED "http -start -ahead -http -members guard -switches -work join -notice "
                      "-recovery -jobs -queue " FREED);
    }
}

static void a_state_of_its_own_is_a_folder(void **state)
{
    (void)state;
    rig.options.state = "/state";
    runs(0);
    record_expect("fabric state /state " OPENED "http start mtu 4096 run\n" CLOSED "-state " FREED);
    rig.state_error = BY_EINVAL;
    runs(2);
    assert_string_equal(rig.text, "banyand: no folder\n");
    record_expect("fabric state /state -start -fabric\n");
    rig.state_error = BY_EIO;
    runs(3);
}

static void a_shared_store_is_led_first(void **state)
{
    (void)state;
    rig.options.store = "etcd:a";
    rig.options.store_keys = "/keys";
    runs(0);
    record_expect("fabric lead etcd:a follow wait -follow shared state etcd:a " OPENED
                  "http start mtu 4096 run\n" CLOSED "-state -lead " FREED);
    rig.retires = 2; /* another one leads; then this one again */
    rig.status = 3;
    runs(3);
    assert_non_null(strstr(recorded, "-start -ahead -http -members -switches -work -notice"));
    for (unsigned i = 0; i < 3; i++) {
        char *at = strstr(recorded, "run\n");

        assert_non_null(at);
        memset(at, ' ', 3);
    }
    assert_null(strstr(recorded, "run\n"));
    record_clear();
    rig.signalled = true;
    rig.status = 0;
    runs(0);
    record_expect("fabric lead etcd:a follow wait -follow -start -lead -fabric\n");
}

static void a_store_that_cannot_be_led_ends_the_start(void **state)
{
    (void)state;
    rig.options.store = "etcd:a";
    rig.lead_error = BY_EINVAL;
    runs(2);
    assert_string_equal(rig.text, "banyand: --store: no such store\n");
    record_expect("fabric lead etcd:a -start -fabric\n");
    rig.lead_error = 0;
    rig.wait_error = BY_EMISMATCH;
    runs(3);
    assert_string_equal(rig.text, "banyand: two clusters\n");
    record_expect("fabric lead etcd:a follow wait -follow -start -lead -fabric\n");
    rig.wait_error = 0;
    rig.state_error = BY_EIO;
    runs(3);
    record_expect("fabric lead etcd:a follow wait -follow shared state etcd:a -start -lead -fabric\n");
}

/* Only keys of jobs over http:// are refused. */
static void a_store_that_would_expose_keys_is_refused(void **state)
{
    (void)state;
    rig.options.store = "etcd:a";
    for (unsigned i = 0; i < 8; i++) {
        bool refused = i == 7;

        rig.options.lower.cover = i & 1;
        rig.options.access.plain_keys = !(i & 2);
        rig.exposed = i & 4;
        rig.guard = NULL;
        runs(refused ? 2 : 0);
        assert_int_equal(strstr(rig.text, "which http:// would expose") != NULL, refused);
        assert_int_equal(strstr(recorded, "wait ") == NULL, refused);
        record_clear();
    }
}

/* The guard ends the process a second and a half after the end began. */
static void threads_that_do_not_end_are_not_waited_for(void **state)
{
    static const struct {
        struct timespec now, until;
    } rows[] = {{{100, 0}, {101, 500000000}},
                {{100, 499999999}, {101, 999999999}},
                {{100, 500000000}, {102, 0}},
                {{100, 999999999}, {102, 499999999}}};

    (void)state;
    rig.status = 4;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rig.hangs = i % 2 == 0;
        rig.interrupted = 2;
        rig.now = rows[i].now;
        record_clear();
        runs(4);
        assert_true(rig.until.tv_sec == rows[i].until.tv_sec && rig.until.tv_nsec == rows[i].until.tv_nsec);
        assert_int_equal(rig.interrupted, 0);
        assert_int_equal(strstr(recorded,
                                "-switches said: ends before its threads: the next start settles an "
                                "unfinished push\nexit 4\n-work") != NULL,
                         rig.hangs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(parts_are_closed_in_reverse_order, set_up),
        cmocka_unit_test_setup(a_command_line_with_a_status_starts_nothing, set_up),
        cmocka_unit_test_setup(what_is_wrong_with_files_is_told, set_up),
        cmocka_unit_test_setup(hosts_and_pages_that_cannot_connect_end_the_start, set_up),
        cmocka_unit_test_setup(a_part_without_memory_ends_the_start, set_up),
        cmocka_unit_test_setup(a_state_of_its_own_is_a_folder, set_up),
        cmocka_unit_test_setup(a_shared_store_is_led_first, set_up),
        cmocka_unit_test_setup(a_store_that_cannot_be_led_ends_the_start, set_up),
        cmocka_unit_test_setup(a_store_that_would_expose_keys_is_refused, set_up),
        cmocka_unit_test_setup(threads_that_do_not_end_are_not_waited_for, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
