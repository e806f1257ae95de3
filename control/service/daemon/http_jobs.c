/* Requests for jobs: list, create, end, tables of hosts. See http.h. */
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/fabric/members.h"
#include "control/service/daemon/http_inside.h"
#include "control/service/daemon/jobs.h"
#include "control/service/daemon/status.h"
#include "offload/base/errors.h"
#include "offload/base/limits.h"

void by_http_finish(struct by_http_request *request, unsigned status, json_t *result)
{
    bool sleeps = request->phase == BY_HTTP_WAITS;

    request->phase = BY_HTTP_DONE;
    request->status = status;
    request->result = result;
    if (sleeps)
        MHD_resume_connection(request->connection);
}

static unsigned status_of(int error)
{
    switch (error) {
    case BY_EINVAL:
    case BY_EFORMAT:
    case BY_ERANGE:
        return MHD_HTTP_BAD_REQUEST;
    case BY_EBUSY:
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    case BY_EIO:
    case BY_ETIMEDOUT:
        return MHD_HTTP_BAD_GATEWAY;
    default:
        return MHD_HTTP_CONFLICT;
    }
}

/* Takes the answer of jobs.c. */
static void on_reply(struct by_daemon *daemon, void *context, int error, const struct by_job *job,
                     const char *text)
{
    struct by_http_request *request = context;

    if (error != 0)
        by_http_finish(request, status_of(error), json_pack("{s:s}", "error", text));
    else if (job != NULL)
        by_http_finish(request, MHD_HTTP_CREATED, by_status_job(daemon, job));
    else
        by_http_finish(request, MHD_HTTP_OK, json_object());
}

/* Answers at once, or suspends the connection until on_reply. */
static enum MHD_Result await(struct by_http_request *request)
{
    if (request->phase == BY_HTTP_DONE)
        return by_http_answer_json(request, request->status, json_incref(request->result));
    request->phase = BY_HTTP_WAITS;
    MHD_suspend_connection(request->connection);
    return MHD_YES;
}

/* Reads "ranks": names of hosts. */
static int read_ranks(const json_t *ranks, const struct by_topology *topology, struct by_job_spec *spec,
                      struct by_problem *problem)
{
    char *text = NULL;
    size_t bytes = 0, i;
    FILE *stream;
    json_t *value;
    int error = 0;

    if (ranks == NULL || json_is_null(ranks))
        return 0;
    if (!json_is_array(ranks))
        return by_problem_say(problem, BY_EFORMAT, "\"ranks\" must be an array of names of hosts");
    stream = by_text_open(&text, &bytes);
    json_array_foreach(ranks, i, value)
    {
        if (!json_is_string(value))
            error = by_problem_say(problem, BY_EFORMAT, "\"ranks\": member %zu is not a name", i);
        else
            fprintf(stream, "%s%s", i ? "," : "", json_string_value(value));
    }
    fclose(stream);
    if (error == 0)
        error = by_members_parse(text, bytes, topology, &spec->member, problem);
    free(text);
    return error;
}

/* Reads "collectives": names, or one comma-separated text. */
static int read_collectives(const json_t *list, const struct by_topology *topology, struct by_job_spec *spec,
                            struct by_problem *problem)
{
    size_t count = json_is_array(list) ? json_array_size(list) : 1;
    int error = 0;

    for (size_t i = 0; i < count && error == 0; i++) {
        const char *text = json_string_value(json_is_array(list) ? json_array_get(list, i) : list);

        error = text != NULL
                    ? by_job_wants(spec, text, topology, problem)
                    : by_problem_say(problem, BY_EFORMAT,
                                     "\"collectives\" must be names, such as [\"allreduce\", \"broadcast\"]");
    }
    return error;
}

static int read_number(const json_t *value, const char *name, json_int_t most, json_int_t *number,
                       struct by_problem *problem)
{
    *number = 0;
    if (value == NULL || json_is_null(value))
        return 0;
    *number = json_integer_value(value);
    if (json_is_integer(value) && *number >= 1 && *number <= most)
        return 0;
    return by_problem_say(problem, BY_EFORMAT, "\"%s\" must be a number from 1 to %lld", name,
                          (long long)most);
}

/* Refuses longer names: cutting one inside a UTF-8 character would make invalid text, which JSON
 * answers cannot contain. */
static int read_name(const json_t *value, struct by_job_spec *spec, struct by_problem *problem)
{
    const char *text = json_string_value(value);

    if (value == NULL || json_is_null(value))
        return 0;
    if (text == NULL || strlen(text) >= sizeof(spec->name))
        return by_problem_say(problem, BY_EFORMAT, "\"name\" must be a text of at most %zu bytes",
                              sizeof(spec->name) - 1);
    memcpy(spec->name, text, strlen(text) + 1);
    return 0;
}

static int read_share(const json_t *value, struct by_job_spec *spec, struct by_problem *problem)
{
    const char *text = json_string_value(value);

    if (value == NULL || json_is_null(value))
        return 0;
    if (text == NULL || by_fraction_parse_part(text, &spec->share) != 0 || spec->share.num > spec->share.den)
        return by_problem_say(problem, BY_EFORMAT,
                              "\"share\" must be a part of the links, such as \"1/4\" or \"0.25\"");
    return 0;
}

/* Reads the members of the object. The caller frees spec->member, also after an error. */
static int read_job(const json_t *object, const struct by_topology *topology, struct by_job_spec *spec,
                    struct by_problem *problem)
{
    static const char *const known[] = {"job", "name", "collectives", "ranks", "window", "share"};
    const char *key;
    json_int_t number;
    json_t *value;
    int error;

    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        bool found = false;

        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            found |= strcmp(key, known[i]) == 0;
        if (!found)
            return by_problem_say(
                problem, BY_EFORMAT,
                "unknown member \"%.60s\"; available: job, name, collectives, ranks, window, share", key);
    }
    error = read_number(json_object_get(object, "job"), "job", BY_JOBS_MAX - 1, &number, problem);
    spec->job = (uint16_t)number;
    if (error == 0)
        error = read_name(json_object_get(object, "name"), spec, problem);
    if (error == 0)
        error = read_number(json_object_get(object, "window"), "window", BY_WINDOW_MAX, &number, problem);
    spec->window = (uint32_t)number;
    if (error == 0 && (spec->window & (spec->window - 1)) != 0)
        error = by_problem_say(problem, BY_EFORMAT, "\"window\" must be a power of two, at most %u",
                               BY_WINDOW_MAX);
    if (error == 0)
        error = read_share(json_object_get(object, "share"), spec, problem);
    if (error == 0)
        error = read_ranks(json_object_get(object, "ranks"), topology, spec, problem);
    if (error == 0)
        error = read_collectives(json_object_get(object, "collectives"), topology, spec, problem);
    return error;
}

static enum MHD_Result create(struct by_http_request *request)
{
    struct by_daemon *daemon = request->daemon;
    struct by_job_spec spec = {.share = {0, 1}};
    struct by_problem problem = {0};
    json_error_t fault;
    json_t *object = json_loads(request->body != NULL ? request->body : "", JSON_REJECT_DUPLICATES, &fault);
    int error;

    if (!json_is_object(object)) {
        by_problem_say(&problem, BY_EFORMAT, "the body is not a JSON object: line %d, column %d: %.120s",
                       object ? 1 : fault.line, object ? 1 : fault.column,
                       object ? "another value" : fault.text);
        json_decref(object);
        return by_http_refuse(request, MHD_HTTP_BAD_REQUEST, problem.text);
    }
    error = read_job(object, daemon->topology, &spec, &problem);
    json_decref(object);
    if (error != 0) {
        by_job_spec_free(&spec);
        return by_http_refuse(request, MHD_HTTP_BAD_REQUEST, problem.text);
    }
    request->phase = BY_HTTP_ASKED;
    by_jobs_create(daemon, &spec, on_reply, request);
    return await(request);
}

static enum MHD_Result list(struct by_http_request *request)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < request->daemon->job_count; i++)
        json_array_append_new(array, by_status_job(request->daemon, request->daemon->jobs[i]));
    return by_http_answer_json(request, MHD_HTTP_OK, json_pack("{s:o}", "jobs", array));
}

/* Sends the table of a host. */
static enum MHD_Result give_table(struct by_http_request *request, const struct by_job *job, const char *host)
{
    int64_t node = by_topology_find(request->daemon->topology, host);
    struct by_problem problem = {0};
    uint8_t *bytes;
    size_t size;

    if (node < 0 || !by_members_have(request->daemon->topology, job->spec.member, (uint32_t)node))
        return by_http_refuse(request, MHD_HTTP_NOT_FOUND, "no host of this job has that name");
    if (request->daemon->options.lower.cover != 0)
        return by_http_refuse(request, MHD_HTTP_FORBIDDEN,
                              "tables of keyed jobs contain keys: hosts receive them through "
                              "BANYAN_CONTROLLER");
    if (by_job_image(job, (uint32_t)node, &bytes, &size, &problem) != 0)
        return by_http_refuse(request, MHD_HTTP_CONFLICT, problem.text);
    return by_http_answer(request, MHD_HTTP_OK, "application/octet-stream", bytes, size);
}

enum MHD_Result by_http_jobs(struct by_http_request *request, const char *rest, const char *method)
{
    struct by_daemon *daemon = request->daemon;
    const struct by_job *job;
    char *end = NULL;
    unsigned long number;

    if (daemon->start != NULL)
        return by_http_refuse(request, MHD_HTTP_SERVICE_UNAVAILABLE, "banyand does not lead yet: try again");
    if (rest[0] == 0 && strcmp(method, "POST") == 0)
        return create(request);
    if (rest[0] == 0 && strcmp(method, "GET") == 0)
        return list(request);
    number = rest[0] == '/' && rest[1] >= '0' && rest[1] <= '9' ? strtoul(rest + 1, &end, 10) : 0;
    job = number > 0 && number < BY_JOBS_MAX ? by_jobs_find(daemon, (uint16_t)number) : NULL;
    if (job == NULL)
        return by_http_refuse(request, MHD_HTTP_NOT_FOUND, "no job has that number");
    if (*end == 0 && strcmp(method, "GET") == 0)
        return by_http_answer_json(request, MHD_HTTP_OK, by_status_job(daemon, job));
    if (strncmp(end, "/tables/", 8) == 0 && strcmp(method, "GET") == 0)
        return give_table(request, job, end + 8);
    request->allow = "GET, HEAD, DELETE";
    if (*end != 0 || strcmp(method, "DELETE") != 0)
        return by_http_refuse(request, MHD_HTTP_METHOD_NOT_ALLOWED,
                              "a job supports GET and DELETE, and GET of its /tables/HOST");
    request->phase = BY_HTTP_ASKED;
    by_jobs_end(daemon, (uint16_t)number, on_reply, request);
    return await(request);
}
