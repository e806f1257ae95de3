/* Requests for jobs over HTTP: what a body may say, which status and text each answer has, and that
 * a connection sleeps until its job runs. The queue of jobs and the server are the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/http_inside.h"
#include "control/service/daemon/jobs.h"
#include "control/service/daemon/status.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"
#include "tests/unit/control/tables/bench.h"

enum { H0, H1, H2, X0, NODES };

static struct {
    struct by_daemon daemon;
    struct by_job jobs[2]; /* 3 of h0 and h1, 1023 of all */
    struct by_http_request request;
    struct by_job_spec spec; /* of the last creation */
    by_jobs_reply_fn *reply;
    void *context;
    unsigned creations, ends;
    uint16_t ended;
    bool answers_at_once, suspended;
    char answer[800]; /* "STATUS text" */
} rig;

/* ---- the other parts ---- */

enum MHD_Result by_http_answer(struct by_http_request *request, unsigned status, const char *type,
                               void *bytes, size_t size)
{
    assert_ptr_equal(request, &rig.request);
    snprintf(rig.answer, sizeof(rig.answer), "%u %s of %zu bytes", status, type, size);
    free(bytes);
    return MHD_YES;
}

enum MHD_Result by_http_answer_json(struct by_http_request *request, unsigned status, json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT);

    assert_ptr_equal(request, &rig.request);
    snprintf(rig.answer, sizeof(rig.answer), "%u %s", status, text);
    free(text);
    json_decref(object);
    return MHD_YES;
}

enum MHD_Result by_http_refuse(struct by_http_request *request, unsigned status, const char *text)
{
    assert_ptr_equal(request, &rig.request);
    snprintf(rig.answer, sizeof(rig.answer), "%u %s", status, text);
    return MHD_YES;
}

void MHD_suspend_connection(struct MHD_Connection *connection)
{
    assert_ptr_equal(connection, &rig);
    assert_false(rig.suspended);
    rig.suspended = true;
}

void MHD_resume_connection(struct MHD_Connection *connection)
{
    assert_ptr_equal(connection, &rig);
    assert_true(rig.suspended);
    rig.suspended = false;
}

json_t *by_status_job(struct by_daemon *daemon, const struct by_job *job)
{
    assert_ptr_equal(daemon, &rig.daemon);
    return json_pack("{s:i}", "job", job->spec.job);
}

struct by_job *by_jobs_find(struct by_daemon *daemon, uint16_t job)
{
    for (uint32_t i = 0; i < daemon->job_count; i++)
        if (daemon->jobs[i]->spec.job == job)
            return daemon->jobs[i];
    return NULL;
}

static void answer_now(by_jobs_reply_fn *reply, void *context)
{
    assert_int_equal(rig.request.phase, BY_HTTP_ASKED);
    rig.reply = reply;
    rig.context = context;
    if (rig.answers_at_once)
        reply(&rig.daemon, context, BY_EEXIST, NULL, "it exists");
}

void by_jobs_create(struct by_daemon *daemon, struct by_job_spec *spec, by_jobs_reply_fn *reply,
                    void *context)
{
    assert_ptr_equal(daemon, &rig.daemon);
    rig.creations++;
    rig.spec = *spec;
    answer_now(reply, context);
}

void by_jobs_end(struct by_daemon *daemon, uint16_t job, by_jobs_reply_fn *reply, void *context)
{
    assert_ptr_equal(daemon, &rig.daemon);
    rig.ends++;
    rig.ended = job;
    answer_now(reply, context);
}

/* ---- requests ---- */

static int set_up(void **state)
{
    (void)state;
    memset(&rig, 0, sizeof(rig));
    rig.daemon.topology = bench_topology("h0 h1 h2 x0*", "h0-x0 h1-x0 h2-x0");
    rig.jobs[0].spec.job = 3;
    rig.jobs[0].spec.member = by_alloc(NODES, sizeof(bool));
    rig.jobs[0].spec.member[H0] = rig.jobs[0].spec.member[H1] = true;
    rig.jobs[0].state = BY_JOB_RUNNING;
    rig.jobs[1].spec.job = BY_JOBS_MAX - 1;
    rig.jobs[1].state = BY_JOB_STARTING;
    for (unsigned i = 0; i < 2; i++)
        rig.daemon.jobs[rig.daemon.job_count++] = &rig.jobs[i];
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(rig.jobs[0].spec.member);
    free(rig.spec.member);
    json_decref(rig.request.result);
    by_topology_free(rig.daemon.topology);
    return 0;
}

static void ask(const char *method, const char *rest, const char *body)
{
    char text[600];

    json_decref(rig.request.result);
    free(rig.spec.member);
    memset(&rig.spec, 0, sizeof(rig.spec));
    snprintf(text, sizeof(text), "%s", body != NULL ? body : "");
    rig.request = (struct by_http_request){.daemon = &rig.daemon,
                                           .connection = (struct MHD_Connection *)&rig,
                                           .body = body != NULL ? text : NULL};
    rig.answer[0] = 0;
    assert_int_equal(by_http_jobs(&rig.request, rest, method), MHD_YES);
    rig.request.body = NULL;
}

static void answers(const char *method, const char *rest, const char *body, const char *expected)
{
    ask(method, rest, body);
    if (strcmp(rig.answer, expected) != 0)
        fail_msg("%s %s %s: '%s' instead of '%s'", method, rest, body != NULL ? body : "", rig.answer,
                 expected);
}

/* ---- tests ---- */

static void jobs_are_listed_shown_and_found_by_their_number(void **state)
{
    (void)state;
    answers("GET", "", NULL, "200 {\"jobs\":[{\"job\":3},{\"job\":1023}]}");
    answers("GET", "/3", NULL, "200 {\"job\":3}");
    answers("GET", "/1023", NULL, "200 {\"job\":1023}");
    answers("GET", "/03", NULL, "200 {\"job\":3}");
    for (unsigned i = 0; i < 9; i++) {
        static const char *const wrong[] = {"/4", "/0", "/1024", "/65539", "/x", "/", "3", "/-3", "/ 3"};

        answers("GET", wrong[i], NULL, "404 no job has that number");
    }
    answers("GET", "/3x", NULL, "405 a job supports GET and DELETE, and GET of its /tables/HOST");
    assert_string_equal(rig.request.allow, "GET, HEAD, DELETE");
    answers("POST", "/3", NULL, "405 a job supports GET and DELETE, and GET of its /tables/HOST");
    answers("DELETE", "/3/tables/h0", NULL, "405 a job supports GET and DELETE, and GET of its /tables/HOST");
    answers("DELETE", "", NULL, "404 no job has that number");
    assert_int_equal(rig.ends, 0);
    rig.daemon.start = (struct by_start *)&rig; /* not read */
    answers("GET", "", NULL, "503 banyand does not lead yet: try again");
}

static void a_host_of_the_job_gets_its_table_unless_it_contains_keys(void **state)
{
    static const char *const trees[] = {"10 x0: x0>h0 x0>h1 x0>h2", NULL};
    struct by_plan *plan = bench_plan(rig.daemon.topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
    struct by_lower_job job = {.job = 3, .plan_count = 1, .plans = (const struct by_plan *const *)&plan};
    struct by_job_tables tables = {.gen = 1};
    struct by_problem problem = {0};
    uint8_t *bytes;
    size_t size;
    char text[80];

    (void)state;
    answers("GET", "/3/tables/h0", NULL, "409 job 3 has no tables: it is running");
    assert_int_equal(
        by_lower(rig.daemon.topology, &job, 1, &(struct by_lower_options){0}, &tables.lowering, &problem), 0);
    rig.jobs[0].tables = &tables;
    assert_int_equal(by_lowering_image(tables.lowering, H1, &bytes, &size, &problem), 0);
    free(bytes);
    snprintf(text, sizeof(text), "200 application/octet-stream of %zu bytes", size);
    answers("GET", "/3/tables/h1", NULL, text);
    answers("GET", "/3/tables/h2", NULL, "404 no host of this job has that name");
    answers("GET", "/3/tables/x0", NULL, "404 no host of this job has that name");
    answers("GET", "/3/tables/h9", NULL, "404 no host of this job has that name");
    rig.daemon.options.lower.cover = 1;
    answers("GET", "/3/tables/h1", NULL,
            "403 tables of keyed jobs contain keys: hosts receive them through BANYAN_CONTROLLER");
    by_lowering_free(tables.lowering);
    bench_plan_free(plan);
}

static void a_job_is_created_as_the_body_says(void **state)
{
    struct by_job job = {.spec.job = 9};

    (void)state;
    answers(
        "POST", "",
        "{\"job\":1023,\"name\":\"train\",\"collectives\":[\"allreduce\",\"broadcast@h2\"],\"ranks\":[\"h0\","
        "\"h2\"],\"window\":64,\"share\":\"1/4\"}",
        "");
    assert_true(rig.creations == 1 && rig.suspended && rig.request.phase == BY_HTTP_WAITS);
    assert_int_equal(rig.spec.job, 1023);
    assert_string_equal(rig.spec.name, "train");
    assert_int_equal(rig.spec.want_count, 2);
    assert_true(rig.spec.wants[1].collective == BY_COLLECTIVE_BROADCAST && rig.spec.wants[1].root == H2);
    assert_true(rig.spec.member[H0] && !rig.spec.member[H1] && rig.spec.member[H2]);
    assert_int_equal(rig.spec.window, 64);
    assert_true(rig.spec.share.num == 1 && rig.spec.share.den == 4);
    rig.reply(&rig.daemon, rig.context, 0, &job, "");
    assert_true(!rig.suspended && rig.request.phase == BY_HTTP_DONE && rig.request.status == 201);
    assert_int_equal(json_integer_value(json_object_get(rig.request.result, "job")), 9);
    ask("POST", "",
        "{\"job\":null,\"name\":null,\"collectives\":\"allreduce\",\"ranks\":null,\"window\":null,\"share\":"
        "null}");
    assert_true(rig.creations == 2 && rig.spec.job == 0 && rig.spec.name[0] == 0 && rig.spec.window == 0 &&
                rig.spec.member == NULL && rig.spec.share.num == 0 && rig.spec.share.den == 1);
    rig.reply(&rig.daemon, rig.context, 0, &job, "");
    ask("POST", "", "{\"job\":1,\"collectives\":[\"all\"],\"window\":1,\"share\":\"1\"}");
    assert_true(rig.creations == 3 && rig.spec.job == 1 && rig.spec.window == 1 && rig.spec.share.num == 1);
    rig.reply(&rig.daemon, rig.context, 0, &job, "");
}

static void what_a_body_may_not_say_is_refused_with_what_it_may(void **state)
{
    static const struct {
        const char *body, *answer;
    } cases[] = {
        {NULL, "400 the body is not a JSON object: line 1, column 0: '[' or '{' expected near end of file"},
        {"[]", "400 the body is not a JSON object: line 1, column 1: another value"},
        {"{\"jobs\":1}",
         "400 unknown member \"jobs\"; available: job, name, collectives, ranks, window, share"},
        {"{\"job\":0}", "400 \"job\" must be a number from 1 to 1023"},
        {"{\"job\":1024}", "400 \"job\" must be a number from 1 to 1023"},
        {"{\"job\":\"1\"}", "400 \"job\" must be a number from 1 to 1023"},
        {"{\"window\":0}", "400 \"window\" must be a number from 1 to 4096"},
        {"{\"window\":4097}", "400 \"window\" must be a number from 1 to 4096"},
        {"{\"window\":96}", "400 \"window\" must be a power of two, at most 4096"},
        {"{\"name\":1}", "400 \"name\" must be a text of at most 47 bytes"},
        {"{\"share\":\"5/4\"}", "400 \"share\" must be a part of the links, such as \"1/4\" or \"0.25\""},
        {"{\"share\":\"x\"}", "400 \"share\" must be a part of the links, such as \"1/4\" or \"0.25\""},
        {"{\"share\":0.5}", "400 \"share\" must be a part of the links, such as \"1/4\" or \"0.25\""},
        {"{\"ranks\":\"h0\"}", "400 \"ranks\" must be an array of names of hosts"},
        {"{\"ranks\":[\"h0\",1]}", "400 \"ranks\": member 1 is not a name"},
        {"{\"collectives\":1}", "400 \"collectives\" must be names, such as [\"allreduce\", \"broadcast\"]"},
        {"{\"collectives\":[\"allreduce\",1]}",
         "400 \"collectives\" must be names, such as [\"allreduce\", \"broadcast\"]"},
        {"{\"job\":1}", "400 \"collectives\" must be names, such as [\"allreduce\", \"broadcast\"]"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        answers("POST", "", cases[i].body, cases[i].answer);
    ask("POST", "", "{\"job\":1,\"job\":2}");
    assert_non_null(strstr(rig.answer, "400 the body is not a JSON object: line 1, column "));
    assert_non_null(strstr(rig.answer, "duplicate object key"));
    ask("POST", "", "{\"ranks\":[\"h0\",\"h9\"],\"collectives\":\"allreduce\"}");
    assert_non_null(strstr(rig.answer, "h9"));
    assert_int_equal(rig.creations, 0);
}

static void a_name_has_at_most_47_bytes(void **state)
{
    struct by_job job = {.spec.job = 9};
    char body[120], name[49];

    (void)state;
    memset(name, 'n', sizeof(name));
    name[48] = 0;
    snprintf(body, sizeof(body), "{\"collectives\":\"allreduce\",\"name\":\"%s\"}", name);
    answers("POST", "", body, "400 \"name\" must be a text of at most 47 bytes");
    name[47] = 0;
    snprintf(body, sizeof(body), "{\"collectives\":\"allreduce\",\"name\":\"%s\"}", name);
    ask("POST", "", body);
    assert_int_equal(rig.creations, 1);
    assert_string_equal(rig.spec.name, name);
    rig.reply(&rig.daemon, rig.context, 0, &job, "");
}

static void each_error_has_its_status(void **state)
{
    static const struct {
        int error;
        unsigned status;
    } cases[] = {{BY_EINVAL, 400}, {BY_EFORMAT, 400},   {BY_ERANGE, 400}, {BY_EBUSY, 503}, {BY_EIO, 502},
                 {BY_EEXIST, 409}, {BY_ETIMEDOUT, 502}, {BY_ELIMIT, 409}, {BY_ENOENT, 409}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ask("DELETE", "/3", NULL);
        assert_true(rig.ends == i + 1 && rig.ended == 3 && rig.suspended);
        rig.reply(&rig.daemon, rig.context, cases[i].error, &rig.jobs[0], "why");
        assert_false(rig.suspended);
        assert_int_equal(rig.request.status, cases[i].status);
        assert_string_equal(json_string_value(json_object_get(rig.request.result, "error")), "why");
    }
    ask("DELETE", "/3", NULL);
    rig.reply(&rig.daemon, rig.context, 0, NULL, "");
    assert_int_equal(rig.request.status, 200);
    assert_int_equal(json_object_size(rig.request.result), 0);
    rig.answers_at_once = true; /* then the connection never sleeps */
    answers("DELETE", "/3", NULL, "409 {\"error\":\"it exists\"}");
    assert_false(rig.suspended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(jobs_are_listed_shown_and_found_by_their_number, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_host_of_the_job_gets_its_table_unless_it_contains_keys, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_job_is_created_as_the_body_says, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_body_may_not_say_is_refused_with_what_it_may, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_name_has_at_most_47_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_error_has_its_status, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
