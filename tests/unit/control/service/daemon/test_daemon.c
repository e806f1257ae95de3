/* banyand as a whole: its monitoring, the single active controller, and its death at any step of a
 * push. Switches are agents without packets; the daemon is a real process. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>
#include <sqlite3.h>

#include "control/service/controller/http.h"
#include "control/service/daemon/daemon.h"
#include "control/service/daemon/state.h"
#include "offload/base/errors.h"
#include "offload/table/image.h"
#include "tests/unit/control/service/daemon/rig.h"

/* Timeout of every answer (milliseconds); a loaded machine is slow. */
#define PATIENCE_MS 10000

static void a_daemon_loads_its_jobs_and_says_what_becomes_of_switches_and_links(void **state)
{
    struct daemon_rig rig;
    struct rig_daemon daemon;

    (void)state;
    rig_open(&rig);
    daemon = rig_start(&rig, (const char *const[]){"--job", "1=allreduce,broadcast@h1", NULL});
    rig_await(&daemon, "job 1 runs, generation 1");
    assert_true(rig.fake[0]->active_bytes > 0 && rig.fake[1]->active_bytes > 0);
    rig.fake[0]->down[1] = true;
    rig_await(&daemon, "link x0 - x1 is down: no carrier");
    rig.fake[0]->down[1] = false;
    rig_await(&daemon, "link x0 - x1 is up");
    rig.fake[1]->silent = 1;
    rig_await(&daemon, "switch x1 is down: no answer for ");
    /* The job has no other path: eight heartbeats, of 60 ms, instead of three. */
    assert_true(rig_number(&daemon, "switch x1 is down: no answer for ") >= 480);
    rig.fake[1]->silent = 0;
    rig_await(&daemon, "switch x1 is up");
    assert_false(rig_has_said(&daemon, "switch x0 is down"));
    fake_stop(rig.fake[1]);
    rig.fake[1] = fake_start("x1", 4096, 65536);
    rig_await(&daemon, "switch x1 has restarted and lost its tables");
    for (unsigned waited = 0; waited < 10000 && rig.fake[1]->commits == 0; waited += 5)
        usleep(5000);
    assert_true(rig.fake[1]->commits > 0); /* its table has been pushed again */
    assert_int_equal(rig_stop(&daemon), 0);
    rig_close(&rig);
}

/* The carrier is back before the next heartbeat, so only the notice shows that it was lost. */
static void a_lost_carrier_that_no_heartbeat_sees_is_reported(void **state)
{
    struct daemon_rig rig;
    struct rig_daemon daemon;
    bool said = false;

    (void)state;
    rig_open(&rig);
    daemon = rig_start(&rig, (const char *const[]){"--heartbeat", "1000", "--job", "1=allreduce", NULL});
    rig_await(&daemon, "job 1 runs, generation 1");
    for (unsigned i = 0; i < 20 && !said; i++) { /* a notice may come while a heartbeat is handled */
        rig.fake[0]->down[1] = true;
        fake_notify(rig.fake[0]);
        rig.fake[0]->down[1] = false;
        for (unsigned waited = 0; waited < 500 && !said; waited += 5) {
            usleep(5000);
            said = rig_has_said(&daemon, "link x0 - x1 is down: no carrier");
        }
    }
    assert_true(said);
    rig_await(&daemon, "link x0 - x1 is up");
    assert_int_equal(rig_stop(&daemon), 0);
    rig_close(&rig);
}

static void it_ends_while_a_switch_does_not_answer(void **state)
{
    struct daemon_rig rig;
    struct rig_daemon daemon;

    (void)state;
    rig_open(&rig);
    daemon = rig_start(&rig, (const char *const[]){NULL});
    rig_await(&daemon, "ready");
    rig.fake[1]->silent = 1;
    rig_await(&daemon, "switch x1 is down");
    assert_int_equal(rig_stop(&daemon), 0);
    rig.fake[1]->silent = 0;
    rig_close(&rig);
}

/* Its processor may be taken from it while a job waits for a path. The switch answers meanwhile. */
static void it_reads_what_has_happened_while_it_was_stopped_before_it_ends_a_job(void **state)
{
    struct daemon_rig rig;
    struct rig_daemon daemon;

    (void)state;
    rig_open(&rig);
    daemon = rig_start(&rig, (const char *const[]){"--job", "1=allreduce", NULL});
    rig_await(&daemon, "job 1 runs, generation 1");
    rig.fake[1]->silent = 1;
    rig_await(&daemon, "the job waits for a path");
    kill(daemon.process, SIGSTOP);
    rig.fake[1]->silent = 0;
    sleep(4); /* longer than the wait for a path */
    kill(daemon.process, SIGCONT);
    rig_await(&daemon, "switch x1 is back: planning again");
    assert_false(rig_has_said(&daemon, "without these ranks\n")); /* nothing follows when a job ends */
    assert_int_equal(rig_stop(&daemon), 0);
    rig_close(&rig);
}

static void a_switch_that_is_asked_too_often_is_alive(void **state)
{
    struct daemon_rig rig;
    struct rig_daemon daemon;

    (void)state;
    rig_open(&rig);
    daemon = rig_start(&rig, (const char *const[]){"--job", "1=allreduce", NULL});
    rig_await(&daemon, "job 1 runs");
    rig.fake[1]->hasty = 1;
    rig_await(&daemon, "switch x1 is alive but does not report its counters: ");
    usleep(600000); /* ten heartbeats */
    rig.fake[1]->hasty = 0;
    usleep(200000);
    assert_false(rig_has_said(&daemon, "x1 is down"));
    assert_false(rig_has_said(&daemon, "generation 2"));
    fake_stop(rig.fake[1]);
    rig_await(&daemon, "switch x1 is down: its process has ended");
    rig.fake[1] = fake_start("x1", 4096, 65536);
    assert_int_equal(rig_stop(&daemon), 0);
    rig_close(&rig);
}

static void a_second_controller_is_refused_or_takes_over(void **state)
{
    struct daemon_rig rig;
    struct rig_daemon first, second, third;

    (void)state;
    rig_open(&rig);
    first = rig_start(&rig, (const char *const[]){"--job", "1=allreduce", "--state", rig.state, NULL});
    rig_await(&first, "job 1 runs");
    rig.fake[1]->misleading = 1; /* a refusal alone does not prove another controller, whatever its text */
    rig_await(&first, "switch x1 is down");
    rig.fake[1]->misleading = 0;
    rig_await(&first, "switch x1 is up");
    assert_false(rig_has_said(&first, "newer controller"));
    rig.fake[0]->reworded = rig.fake[1]->reworded = 1; /* texts are not needed to detect one either */
    second = rig_start(&rig, (const char *const[]){"--state", rig.state, NULL});
    assert_int_equal(rig_wait(&second), 3);
    assert_true(rig_has_said(&second, "is in use by another banyand"));
    second = rig_start(&rig, (const char *const[]){NULL});
    assert_int_equal(rig_wait(&second), 3);
    assert_true(rig_has_said(&second, "is led by another controller"));
    assert_true(rig_has_said(&second, "--takeover"));
    third = rig_start(&rig, (const char *const[]){"--takeover", "--job", "1=allreduce", NULL});
    rig_await(&third, "ready");
    rig_await(&third, "job 1 runs");
    assert_false(rig_has_said(&third, "generation 1\n")); /* the tables of the other controller have it */
    assert_int_equal(rig_wait(&first), 3);
    assert_true(rig_has_said(&first, "is led by a newer controller"));
    assert_int_equal(rig_stop(&third), 0);
    rig_close(&rig);
}

/* Returns the key of job 1 in the table of the switch that sums, and the generation of both
 * switches. */
static uint64_t key_of(const struct daemon_rig *rig, uint16_t *gen)
{
    struct by_image_key key = {0};
    struct by_image_job job[2];

    for (unsigned i = 0; i < 2; i++)
        by_image_job(rig->fake[i]->active, 0, &job[i]);
    assert_true(by_image_key_find(rig->fake[0]->active, 1, &key) ||
                by_image_key_find(rig->fake[1]->active, 1, &key));
    assert_int_equal(job[0].gen, job[1].gen);
    *gen = job[0].gen;
    return by_image_key_id(&key);
}

static void a_keyed_job_has_other_keys_before_its_chunks_numbers_come_again(void **state)
{
    struct daemon_rig rig;
    struct rig_daemon daemon;
    uint64_t first, second;
    uint16_t gen;

    (void)state;
    rig_open(&rig);
    daemon = rig_start(
        &rig, (const char *const[]){"--keyed", "--renew-after", "1000", "--job", "1=allreduce", NULL});
    rig_await(&daemon, "job 1 runs, generation 1");
    first = key_of(&rig, &gen);
    assert_int_equal(gen, 1);
    usleep(100000);
    rig.fake[1]->complete = 999;
    usleep(100000);
    assert_false(rig_has_said(&daemon, "renewed"));
    rig.fake[1]->complete = 1000;
    rig_await(&daemon, "1000 chunks have passed switch x1 in generation 1: its keys are renewed");
    rig_await(&daemon, "job 1 is in generation 2");
    second = key_of(&rig, &gen);
    assert_int_equal(gen, 2);
    assert_true(second != first);
    rig.fake[1]->complete = 1900; /* 900 in this generation */
    usleep(100000);
    assert_false(rig_has_said(&daemon, "in generation 2: its keys"));
    rig.fake[0]->complete = 1500; /* any switch can trigger it */
    rig_await(&daemon, "1500 chunks have passed switch x0 in generation 2: its keys are renewed");
    rig_await(&daemon, "job 1 is in generation 3");
    assert_int_equal(rig_stop(&daemon), 0);
    rig_close(&rig);
}

static void ask(const struct daemon_rig *rig, const char *method, const char *path, const char *body,
                int wanted)
{
    free(rig_ask(rig, method, path, body, wanted));
}

/* No other job gets an ended job's key and generation: neither a later job with the same number,
 * nor one after a restart of the daemon. */
static void no_job_has_the_key_of_one_that_has_ended(void **state)
{
    struct daemon_rig rig;
    char path[96];
    uint64_t keys[4];
    uint16_t gens[4];

    (void)state;
    rig_open(&rig);
    snprintf(path, sizeof(path), "%s/http", rig.folder);
    for (unsigned i = 0; i < 4; i += 2) {
        struct rig_daemon daemon =
            rig_start(&rig, (const char *const[]){"--keyed", "--state", rig.state, "--socket", path, NULL});

        rig_await(&daemon, "ready");
        for (unsigned j = i; j < i + 2; j++) {
            ask(&rig, "POST", "/v1/jobs", "{\"job\": 1, \"collectives\": \"allreduce\"}", 201);
            keys[j] = key_of(&rig, &gens[j]);
            ask(&rig, "DELETE", "/v1/jobs/1", NULL, 200);
        }
        assert_int_equal(rig_stop(&daemon), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        assert_true(gens[i] > (i > 0 ? gens[i - 1] : 0)); /* a restart skips some (decision 570) */
        for (unsigned j = 0; j < i; j++)
            assert_true(keys[i] != keys[j]);
    }
    rig_close(&rig);
}

#define CROWD 300u

/* Returns the port of a daemon's HTTP. */
static unsigned port_of(const struct rig_daemon *daemon)
{
    char line[400] = "", *at = NULL;
    FILE *stream = fopen(daemon->log, "r");

    assert_non_null(stream);
    while (at == NULL && fgets(line, sizeof(line), stream) != NULL)
        at = strstr(line, "http 127.0.0.1:");
    fclose(stream);
    assert_non_null(at);
    return (unsigned)strtoul(at + strlen("http 127.0.0.1:"), NULL, 10);
}

/* As if the record of its end could not be written: the switches had the tables already. */
static void a_push_without_switches_was_complete_when_it_was_recorded(void **state)
{
    struct daemon_rig rig;
    struct rig_daemon daemon;
    char path[128];
    sqlite3 *db;

    (void)state;
    rig_open(&rig);
    daemon = rig_start(&rig, (const char *const[]){"--state", rig.state, "--job", "1=allreduce", NULL});
    rig_await(&daemon, "job 1 runs");
    assert_int_equal(rig_stop(&daemon), 0);
    snprintf(path, sizeof(path), "%s/banyand.db", rig.state);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db,
                     "UPDATE job SET push = 1; UPDATE tables SET push = 1; UPDATE plan SET push = 1;"
                     "UPDATE image SET push = 1, target = 0; INSERT INTO meta VALUES ('push', 77)",
                     NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    daemon = rig_start(&rig, (const char *const[]){"--state", rig.state, NULL});
    rig_await(&daemon, "a push was in progress when the last controller ended: it is completed");
    rig_await(&daemon, "1 jobs run");
    assert_int_equal(rig_stop(&daemon), 0);
    rig_close(&rig);
}

static void half_requests_keep_nobody_out_of_the_metrics(void **state)
{
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct daemon_rig rig;
    struct rig_daemon daemon;
    char address[64], *reply;
    struct by_problem problem = {0};
    int fds[CROWD], status;

    (void)state;
    rig_open(&rig);
    daemon = rig_start(&rig, (const char *const[]){"--http", "0", NULL});
    rig_await(&daemon, "ready");
    there.sin_port = htons((uint16_t)port_of(&daemon));
    snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(there.sin_port));
    for (unsigned i = 0; i < CROWD; i++) { /* every third sends nothing */
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fds[i], (struct sockaddr *)&there, sizeof(there)), 0);
        if (i % 3 != 0)
            (void)!send(fds[i], "GET /metrics HTTP/1.1\r\nHost: loc", 33, MSG_NOSIGNAL);
    }
    for (unsigned i = 0; i < 3; i++) {
        if (by_http_ask(address, "GET", "/metrics", NULL, PATIENCE_MS, &status, &reply, &problem) != 0)
            fail_msg("%u half requests: %s", CROWD, problem.text);
        assert_int_equal(status, 200);
        assert_non_null(strstr(reply, "banyan_switch_up{switch=\"x0\"} 1"));
        free(reply);
    }
    for (unsigned i = 0; i < CROWD; i++)
        close(fds[i]);
    assert_int_equal(rig_stop(&daemon), 0);
    rig_close(&rig);
}

static void a_smaller_window_names_the_switch_that_is_too_small_or_the_other_jobs(void **state)
{
    struct daemon_rig rig;
    struct rig_daemon daemon;

    (void)state;
    rig_open(&rig);
    rig_resize(&rig, 200);
    daemon = rig_start(&rig, (const char *const[]){"--job", "1=allreduce", NULL});
    rig_await(&daemon, "128 slots instead of 256, which would require 256 of the 200 slots of x");
    rig_await(&daemon, "job 1 runs");
    assert_false(rig_has_said(&daemon, "beside the other jobs"));
    assert_int_equal(rig_stop(&daemon), 0);
    rig_resize(&rig, 300);
    daemon = rig_start(&rig, (const char *const[]){"--job", "1=allreduce", "--job", "2=allreduce", NULL});
    rig_await(&daemon, "job 2 runs");
    assert_true(rig_has_said(&daemon, "32 slots instead of 256: more do not fit beside the other jobs"));
    assert_int_equal(rig_stop(&daemon), 0);
    rig_close(&rig);
}

/* Returns the number of chunks that wait at a switch, according to the daemon's status. */
static size_t count_waits(const struct daemon_rig *rig, unsigned number)
{
    struct by_problem problem = {0};
    char address[128], *reply = NULL;
    json_t *object;
    size_t count;
    int status;

    snprintf(address, sizeof(address), "unix:%s/http", rig->folder);
    if (by_http_ask(address, "GET", "/v1/status", NULL, PATIENCE_MS, &status, &reply, &problem) != 0)
        fail_msg("%s", problem.text);
    object = json_loads(reply, 0, NULL);
    count = json_array_size(
        json_object_get(json_array_get(json_object_get(object, "switches"), number), "waiting"));
    json_decref(object);
    free(reply);
    return count;
}

static void what_waited_at_a_switch_that_is_down_or_has_another_table_is_not_told(void **state)
{
    struct daemon_rig rig;
    struct rig_daemon daemon;
    char path[96];
    bool empty = false;
    unsigned node;

    (void)state;
    rig_open(&rig);
    snprintf(path, sizeof(path), "%s/http", rig.folder);
    daemon = rig_start(&rig, (const char *const[]){"--socket", path, "--job", "1=allreduce", NULL});
    rig_await(&daemon, "job 1 runs");
    while (count_waits(&rig, 0) + count_waits(&rig, 1) == 0) /* the harness ends a test that hangs */
        usleep(5000);
    node = count_waits(&rig, 0) > 0 ? 0 : 1;
    for (unsigned i = 0; i < 6 && !empty; i++) { /* a new request may come between the push and this check */
        while (count_waits(&rig, node) == 0)
            usleep(5000);
        if (i % 2 == 0)
            ask(&rig, "POST", "/v1/jobs", "{\"job\": 2, \"collectives\": \"allreduce\"}", 201);
        else
            ask(&rig, "DELETE", "/v1/jobs/2", NULL, 200);
        empty = count_waits(&rig, node) == 0;
    }
    assert_true(empty);
    while (count_waits(&rig, node) == 0)
        usleep(5000);
    rig.fake[node]->silent = 1;
    rig_await(&daemon, node ? "switch x1 is down" : "switch x0 is down");
    assert_int_equal(count_waits(&rig, node), 0);
    rig.fake[node]->silent = 0;
    assert_int_equal(rig_stop(&daemon), 0);
    rig_close(&rig);
}

static void a_jobs_name_is_whole_or_refused(void **state)
{
    /* 46 letters, and a character of two bytes that would be split. */
    const char *long_name = "{\"name\": \"0123456789012345678901234567890123456789012345\\u00e4\", "
                            "\"collectives\": \"allreduce\"}";
    const char *name = "{\"name\": \"\\u00e4\", \"collectives\": \"allreduce\"}";
    struct daemon_rig rig;
    struct rig_daemon daemon;
    struct by_problem problem = {0};
    char address[128], *reply = NULL;
    int status;

    (void)state;
    rig_open(&rig);
    snprintf(address, sizeof(address), "unix:%s/http", rig.folder);
    daemon = rig_start(&rig, (const char *const[]){"--socket", address + 5, NULL});
    rig_await(&daemon, "ready");
    assert_int_equal(
        by_http_ask(address, "POST", "/v1/jobs", long_name, PATIENCE_MS, &status, &reply, &problem), 0);
    assert_int_equal(status, 400);
    assert_non_null(strstr(reply, "\\\"name\\\" must be a text of at most"));
    free(reply);
    assert_int_equal(by_http_ask(address, "POST", "/v1/jobs", name, PATIENCE_MS, &status, &reply, &problem),
                     0);
    assert_int_equal(status, 201);
    assert_non_null(strstr(reply, "\"name\": \"\xc3\xa4\""));
    free(reply);
    assert_int_equal(rig_stop(&daemon), 0);
    rig_close(&rig);
}

/* A daemon that makes two jobs one after the other is killed at a request that writes; another
 * daemon continues. Returns whether the first was killed. */
static bool kill_at(int step, bool before)
{
    struct daemon_rig rig;
    struct crash crash = {.left = step, .before = before, .writes = true};
    struct rig_daemon daemon;
    uint64_t active[2];
    struct by_lower_options options = {.mtu = BY_LOWER_MTU};
    struct by_problem problem = {0};
    struct by_state *store;
    bool crashed;

    rig_open(&rig);
    rig.fake[0]->crash = rig.fake[1]->crash = &crash;
    daemon = rig_start(&rig, (const char *const[]){"--state", rig.state, "--job", "1=allreduce", "--job",
                                                   "2=allreduce,broadcast", NULL});
    crash.process = daemon.process;
    while (crash.left > 0 && !rig_has_said(&daemon, "job 2 runs"))
        usleep(2000);
    crashed = crash.left <= 0;
    if (crashed) {
        while (crash.process >= 0)
            usleep(1000);
    } else {
        rig_stop(&daemon);
    }
    rig.fake[0]->crash = rig.fake[1]->crash = NULL;
    daemon = rig_start(&rig, (const char *const[]){"--state", rig.state, NULL});
    rig_await(&daemon, "ready");
    usleep(20000);
    for (unsigned i = 0; i < 2; i++)
        active[i] = rig_active(rig.fake[i]);
    usleep(50000); /* the second daemon does not change them */
    for (unsigned i = 0; i < 2; i++)
        assert_true(active[i] == rig_active(rig.fake[i]));
    assert_int_equal(rig_stop(&daemon), 0);
    assert_int_equal(by_state_open(rig.state, rig.topology, &options, &store, &problem), 0);
    rig_agrees(&rig, store, active);
    by_state_close(store);
    rig_close(&rig);
    return crashed;
}

static void a_daemon_that_dies_at_any_step_of_a_push_goes_on_with_one_generation(void **state)
{
    (void)state;
    for (int before = 0; before < 2; before++) {
        int step = 1;

        while (kill_at(step, before))
            step++;
        /* Stage, Validate and Commit at two switches, for each of two jobs. */
        assert_int_equal(step, 13);
    }
}

/* The end of a push could not be recorded, because the store was locked, and the next push fails:
 * the job of the first one stays. */
static void a_push_whose_end_is_not_recorded_is_not_forgotten(void **state)
{
    struct by_lower_options options = {.mtu = BY_LOWER_MTU};
    struct by_problem problem = {0};
    struct daemon_rig rig;
    struct rig_daemon daemon;
    struct by_state *store;
    char http[96], path[128];
    uint64_t active[2];
    sqlite3 *db;

    (void)state;
    rig_open(&rig);
    snprintf(http, sizeof(http), "%s/http", rig.folder);
    snprintf(path, sizeof(path), "%s/banyand.db", rig.state);
    rig.fake[0]->holds = rig.fake[1]->holds = 1; /* the push ends when the store is locked */
    daemon = rig_start(
        &rig, (const char *const[]){"--state", rig.state, "--socket", http, "--job", "1=allreduce", NULL});
    while (rig.fake[0]->commits + rig.fake[1]->commits == 0) /* the harness ends a test that hangs */
        usleep(100);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_busy_timeout(db, 5000), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    rig.fake[0]->holds = rig.fake[1]->holds = 0;
    rig_await(&daemon, "job 1 runs"); /* after two seconds */
    sqlite3_close(db);
    for (unsigned i = 0; i < 2; i++)
        active[i] = rig_active(rig.fake[i]);
    rig.fake[0]->refuse_stage = rig.fake[1]->refuse_stage = BY_EIO;
    ask(&rig, "POST", "/v1/jobs", "{\"collectives\": \"allreduce\"}", 502);
    assert_int_equal(rig_stop(&daemon), 0);
    assert_int_equal(by_state_open(rig.state, rig.topology, &options, &store, &problem), 0);
    rig_agrees(&rig, store, active);
    by_state_close(store);
    rig_close(&rig);
}

static void requests_to_a_list_of_servers_go_to_the_one_that_answers(void **state)
{
    struct daemon_rig rig;
    struct rig_daemon daemon;
    struct by_problem problem = {0};
    char path[96], list[300], *reply = NULL;
    int status;

    (void)state;
    rig_open(&rig);
    snprintf(path, sizeof(path), "%s/http", rig.folder);
    snprintf(list, sizeof(list), "unix:%s/none,unix:%s", rig.folder, path);
    assert_int_equal(by_http_ask(list, "GET", "/v1/jobs", NULL, PATIENCE_MS, &status, &reply, &problem),
                     BY_EIO); /* after four seconds */
    daemon = rig_start(&rig, (const char *const[]){"--socket", path, NULL});
    /* without waiting for it */
    if (by_http_ask(list, "GET", "/metrics", NULL, PATIENCE_MS, &status, &reply, &problem) != 0)
        fail_msg("%s", problem.text);
    assert_int_equal(status, 200);
    free(reply);
    assert_int_equal(by_http_ask("unix:/a,wrong", "GET", "/", NULL, PATIENCE_MS, &status, &reply, &problem),
                     BY_EINVAL);
    assert_int_equal(rig_stop(&daemon), 0);
    rig_close(&rig);
}

/* Waits until the socket in place of systemd's receives `text`, and skips other messages. */
static void await_notification(int fd, const char *text)
{
    char got[128];
    ssize_t bytes;

    do {
        bytes = recv(fd, got, sizeof(got) - 1, 0);
        assert_true(bytes > 0);
        got[bytes] = 0;
    } while (strcmp(got, text) != 0);
}

static void systemd_is_notified_of_the_start_the_loop_and_the_end(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    struct daemon_rig rig;
    struct rig_daemon daemon;
    char got[128];
    int fd;

    (void)state;
    rig_open(&rig);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", rig.folder);
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    setenv("WATCHDOG_USEC", "300000", 1);
    daemon = rig_start(&rig, (const char *const[]){NULL});
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    await_notification(fd, "READY=1");
    await_notification(fd, "WATCHDOG=1");
    await_notification(fd, "WATCHDOG=1");
    kill(daemon.process, SIGSTOP);
    assert_int_equal(waitpid(daemon.process, NULL, WUNTRACED), daemon.process);
    while (recv(fd, got, sizeof(got), MSG_DONTWAIT) > 0)
        ;
    usleep(600000); /* two periods */
    assert_true(recv(fd, got, sizeof(got), MSG_DONTWAIT) < 0);
    kill(daemon.process, SIGCONT);
    await_notification(fd, "WATCHDOG=1");
    assert_int_equal(rig_stop(&daemon), 0);
    await_notification(fd, "STOPPING=1");
    close(fd);
    unlink(address.sun_path);
    rig_close(&rig);
}

/* Started as "banyand", this program is the daemon of rig_start. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_daemon_loads_its_jobs_and_says_what_becomes_of_switches_and_links),
        cmocka_unit_test(a_lost_carrier_that_no_heartbeat_sees_is_reported),
        cmocka_unit_test(it_ends_while_a_switch_does_not_answer),
        cmocka_unit_test(it_reads_what_has_happened_while_it_was_stopped_before_it_ends_a_job),
        cmocka_unit_test(a_switch_that_is_asked_too_often_is_alive),
        cmocka_unit_test(systemd_is_notified_of_the_start_the_loop_and_the_end),
        cmocka_unit_test(a_second_controller_is_refused_or_takes_over),
        cmocka_unit_test(a_keyed_job_has_other_keys_before_its_chunks_numbers_come_again),
        cmocka_unit_test(no_job_has_the_key_of_one_that_has_ended),
        cmocka_unit_test(a_push_without_switches_was_complete_when_it_was_recorded),
        cmocka_unit_test(half_requests_keep_nobody_out_of_the_metrics),
        cmocka_unit_test(a_smaller_window_names_the_switch_that_is_too_small_or_the_other_jobs),
        cmocka_unit_test(what_waited_at_a_switch_that_is_down_or_has_another_table_is_not_told),
        cmocka_unit_test(a_jobs_name_is_whole_or_refused),
        cmocka_unit_test(requests_to_a_list_of_servers_go_to_the_one_that_answers),
        cmocka_unit_test(a_push_whose_end_is_not_recorded_is_not_forgotten),
        cmocka_unit_test(a_daemon_that_dies_at_any_step_of_a_push_goes_on_with_one_generation),
    };

    if (strcmp(argv[0], "banyand") == 0)
        return by_daemon_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
