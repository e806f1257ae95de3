/*
 * The command `banyan job`: creates, ends and lists the jobs of a running banyand, and fetches the
 * tables of hosts. Neighbour: http.c sends the requests. Single-threaded.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "control/base/alloc.h"
#include "control/cli/cli.h"
#include "control/cli/http.h"
#include "control/cli/lowering.h"
#include "control/tables/file.h"
#include "offload/base/limits.h"

/*
 * Timeout for a job's creation (seconds), which includes planning; a large fabric can need minutes.
 */
#define CREATE_S 600u
#define ASK_S    30u

struct job_arguments {
    const char *collectives, *ranks, *name, *share, *output, *controller;
    uint32_t job, window;
    bool json;
};

static int check_share(void *object, const char *text, struct by_option_why *why)
{
    struct by_fraction share;

    ((struct job_arguments *)object)->share = text;
    return by_cli_share(text, &share, why);
}

#define AT(member) BY_OPTION_AT(struct job_arguments, member)

static const struct by_option rows[] = {
    {BY_ROW_TEXT(
         'c', "collective", "LIST", AT(collectives),
         "the collectives of the job: names with commas between, or all; broadcast@HOST and reduce@HOST "
         "name a root"),
     .once = true},
    {BY_ROW_TEXT(0, "ranks", "LIST", AT(ranks), "the hosts of the job (default: all)")},
    {BY_ROW_NUMBER(0, "job", "N", AT(job), 1, BY_JOBS_MAX - 1,
                   "the number of the job, %r (default: the lowest that is free)")},
    {BY_ROW_TEXT(0, "name", "TEXT", AT(name), "a name for lists")},
    BY_CLI_WINDOW_ROW(window, "give each tree W slots, %r (default: as many as fit, at most 256)"),
    {BY_ROW_CALL(
        0, "share", "P", check_share,
        "reserve this part of its links for the job: 1/4, 0.25 or 25% (default: what others leave)")},
    {BY_ROW_TEXT('o', "output", "DIR", AT(output),
                 "write the hosts' tables to DIR/HOST.table (create, tables)")},
    {BY_CLI_CONTROLLER_ROW(controller)},
    {BY_ROW_FLAG(0, "json", AT(json), "print one JSON object")},
    {0}};

static const struct by_options command_line = {
    .program = "banyan job",
    .usage = "banyan job create -c COLLECTIVES [options]\nbanyan job end|tables N [options]\n"
             "banyan job list [options]",
    .about =
        "Manages the jobs of a running banyand. `create` returns when the tables of all switches are active, "
        "or reports the limit that prevents it, the jobs that use it up, and what would fit.",
    .rows = rows,
    .most = 2};

static double rate(const json_t *plan, const char *key)
{
    return json_number_value(json_object_get(json_object_get(plan, key), "value"));
}

/* Prints one job as text. */
static void print_job(const json_t *job)
{
    const char *note = json_string_value(json_object_get(job, "note")),
               *text = json_string_value(json_object_get(job, "text")),
               *name = json_string_value(json_object_get(job, "name"));
    json_t *value;
    size_t i;

    printf("job %lld%s%s: %s, generation %lld, %lld ranks, windows of %lld slots\n",
           (long long)json_integer_value(json_object_get(job, "job")), name && name[0] ? " " : "",
           name ? name : "", json_string_value(json_object_get(job, "state")),
           (long long)json_integer_value(json_object_get(job, "generation")),
           (long long)json_integer_value(json_object_get(job, "ranks")),
           (long long)json_integer_value(json_object_get(job, "window")));
    if (text != NULL)
        printf("  %s\n", text);
    if (note != NULL)
        printf("  %s\n", note);
    json_array_foreach(json_object_get(job, "plans"), i, value)
    {
        const char *root = json_string_value(json_object_get(value, "root"));

        printf("  %s%s%s: %.4g of %.4g %s, %lld trees\n",
               json_string_value(json_object_get(value, "collective")), root ? " from or to " : "",
               root ? root : "", rate(value, "achieved"), rate(value, "optimum"),
               json_string_value(json_object_get(value, "unit")),
               (long long)json_integer_value(json_object_get(value, "trees")));
    }
    json_array_foreach(json_object_get(job, "held"), i, value)
    {
        printf("  %s: %lld slots, %lld entries\n", json_string_value(json_object_get(value, "switch")),
               (long long)json_integer_value(json_object_get(value, "slots")),
               (long long)json_integer_value(json_object_get(value, "entries")));
    }
    json_array_foreach(json_object_get(job, "standbys"), i, value)
    {
        printf("  standby generation %lld: %lld trees, windows of %lld slots, for failures of %zu trees\n",
               (long long)json_integer_value(json_object_get(value, "generation")),
               (long long)json_integer_value(json_object_get(value, "trees")),
               (long long)json_integer_value(json_object_get(value, "window")),
               json_array_size(json_object_get(value, "replaces")));
    }
}

static void print(const struct job_arguments *arguments, const json_t *object)
{
    const json_t *jobs = json_object_get(object, "jobs");

    if (arguments->json) {
        json_dumpf(object, stdout, JSON_INDENT(2));
        putchar('\n');
        return;
    }
    for (size_t i = 0; i < json_array_size(jobs); i++)
        print_job(json_array_get(jobs, i));
    if (jobs != NULL && json_array_size(jobs) == 0)
        puts("no job is running");
    if (json_object_get(object, "job") != NULL)
        print_job(object);
}

/* Fetches the table of one host into the folder. */
static int fetch_table(const struct job_arguments *arguments, long long job, const char *host)
{
    struct by_cli_answer answer;
    struct by_problem problem = {0};
    char path[600];
    int status = 0;

    snprintf(path, sizeof(path), "/v1/jobs/%lld/tables/%s", job, host);
    if (by_cli_ask(arguments->controller, "GET", path, NULL, ASK_S, &answer, &problem) != 0)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "%s", problem.text);
    snprintf(path, sizeof(path), "%.500s/%.47s.table", arguments->output, host);
    if (answer.status != 200)
        status = by_cli_fail(BY_EXIT_ENVIRONMENT, "the table of %s: banyand answers %d: %.300s", host,
                             answer.status, answer.body);
    else if (strchr(host, '/') != NULL || host[0] == '.')
        status = by_cli_fail(BY_EXIT_USAGE, "host '%s': its name cannot be a file's name: rename it", host);
    else if (by_image_file_write(path, (const uint8_t *)answer.body, answer.bytes, &problem) != 0)
        status = by_cli_fail(BY_EXIT_ENVIRONMENT, "%s", problem.text);
    free(answer.body);
    return status;
}

/* Fetches the tables of all hosts of the job. */
static int fetch_tables(const struct job_arguments *arguments, const json_t *job)
{
    const json_t *hosts = json_object_get(job, "hosts");
    size_t i;
    int status = 0;

    if (arguments->output == NULL)
        return 0;
    if (mkdir(arguments->output, 0755) != 0 && errno != EEXIST)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "%s: %s", arguments->output, strerror(errno));
    for (i = 0; i < json_array_size(hosts) && status == 0; i++)
        status = fetch_table(arguments, (long long)json_integer_value(json_object_get(job, "job")),
                             json_string_value(json_array_get(hosts, i)));
    if (status == 0 && !arguments->json)
        printf("# tables of %zu hosts are in %s\n", json_array_size(hosts), arguments->output);
    return status;
}

static int create(const struct job_arguments *arguments, json_t **answer)
{
    json_t *object = json_object(), *ranks;
    char copy[65536], *rest = NULL, *text;
    int status;

    if (arguments->collectives == NULL) {
        json_decref(object);
        return by_cli_fail(BY_EXIT_USAGE, "job create requires -c, such as -c allreduce,broadcast");
    }
    json_object_set_new(object, "collectives", json_string(arguments->collectives));
    if (arguments->job > 0)
        json_object_set_new(object, "job", json_integer(arguments->job));
    if (arguments->window > 0)
        json_object_set_new(object, "window", json_integer((json_int_t)arguments->window));
    if (arguments->name != NULL)
        json_object_set_new(object, "name", json_string(arguments->name));
    if (arguments->share != NULL)
        json_object_set_new(object, "share", json_string(arguments->share));
    if (arguments->ranks != NULL) {
        ranks = json_array();
        snprintf(copy, sizeof(copy), "%s", arguments->ranks);
        for (char *name = strtok_r(copy, ", ", &rest); name != NULL; name = strtok_r(NULL, ", ", &rest))
            json_array_append_new(ranks, json_string(name));
        json_object_set_new(object, "ranks", ranks);
    }
    text = json_dumps(object, 0);
    json_decref(object);
    if (text == NULL)
        return by_cli_fail(BY_EXIT_USAGE, "job create: names must be UTF-8");
    status = by_cli_ask_json(arguments->controller, "POST", "/v1/jobs", text, CREATE_S, answer);
    free(text);
    return status;
}

/* Reads the number of the job, if the verb needs one. Returns 0 or an exit status. */
static int read_operands(int count, char **operands, bool numbered, struct job_arguments *arguments)
{
    static const struct by_option row = {BY_ROW_NUMBER(0, "job", "N", AT(job), 1, BY_JOBS_MAX - 1, NULL)};
    struct by_option_why why;

    if (count != (numbered ? 2 : 1))
        return by_cli_fail(BY_EXIT_USAGE,
                           numbered ? "job %s: give the number of one job"
                                    : "job %s accepts no further argument",
                           operands[0]);
    if (numbered && by_option_value(&row, arguments, operands[1], &why) != 0)
        return by_cli_fail(BY_EXIT_USAGE, "job %s: the number is '%.40s'; %s", operands[0], operands[1],
                           why.text);
    return 0;
}

int by_command_job(int argc, char **argv)
{
    struct job_arguments arguments = {0};
    json_t *answer = NULL;
    char path[64];
    const char *verb;
    bool creates, fetches, numbered;
    int status = by_options_read(&command_line, &arguments, &argc, argv);

    if (status >= 0)
        return status;
    verb = argc > 1 ? argv[1] : "";
    creates = strcmp(verb, "create") == 0;
    fetches = strcmp(verb, "tables") == 0;
    numbered = fetches || strcmp(verb, "end") == 0;
    if (!numbered && !creates && strcmp(verb, "list") != 0)
        return by_cli_fail(
            BY_EXIT_USAGE,
            "job '%.40s': give create, end, list or tables; `banyan job --help` lists the options", verb);
    status = read_operands(argc - 1, argv + 1, numbered, &arguments);
    if (status == 0 && fetches && arguments.output == NULL)
        return by_cli_fail(BY_EXIT_USAGE, "job tables: name the folder of the tables with -o DIR");
    snprintf(path, sizeof(path), numbered ? "/v1/jobs/%u" : "/v1/jobs", arguments.job);
    if (status == 0)
        status = creates ? create(&arguments, &answer)
                         : by_cli_ask_json(arguments.controller, numbered && !fetches ? "DELETE" : "GET",
                                           path, NULL, ASK_S, &answer);
    if (status == 0 && (creates || fetches))
        status = fetch_tables(&arguments, answer);
    if (status == 0 && (!fetches || arguments.json))
        print(&arguments, answer);
    json_decref(answer);
    return status;
}
