/*
 * The command `banyan job`: creates, ends and lists the jobs of a running banyand, and fetches the
 * tables of hosts. Neighbour: http.c sends the requests. Single-threaded.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "control/base/alloc.h"
#include "control/cli/cli.h"
#include "control/cli/http.h"
#include "control/cli/number.h"
#include "control/tables/file.h"
#include "offload/base/limits.h"

/*
 * Timeout for a job's creation (seconds), which includes planning; a large fabric can need minutes.
 */
#define CREATE_S 600u
#define ASK_S    30u

static const char help[] =
    "usage: banyan job create -c COLLECTIVES [options]\n"
    "       banyan job end|tables N [options]\n"
    "       banyan job list [options]\n"
    "\n"
    "Jobs of a running banyand: `create` answers when the tables of all switches are active, or says which\n"
    "limit stands against it, who holds that, and what would fit.\n"
    "\n"
    "  -c, --collective LIST  names with commas between, or all; broadcast@HOST and reduce@HOST name a root\n"
    "      --ranks LIST       the hosts that take part (default: all)\n"
    "      --job N            its number (default: the lowest that is free)\n"
    "      --name TEXT        for people\n"
    "      --window N         slots of each tree, a power of two (default: as many as fit, at most 256)\n"
    "      --share P          the part of its links that is kept for it: 1/4, 0.25 (default: what others "
    "leave)\n"
    "  -o, --output DIR       write the hosts' tables there, as HOST.table (create, tables)\n"
    "      --controller URL   banyand at unix:PATH or http://HOST:PORT (default BANYAN_CONTROLLER when that "
    "is http://,\n"
    "                         else the socket of this user's or root's banyand, else 127.0.0.1:46249)\n"
    "      --json             one JSON object on stdout\n"
    "      --help\n";

struct job_arguments {
    const char *collectives, *ranks, *name, *share, *output, *controller;
    uint64_t job;
    uint32_t window;
    bool json;
};

static const struct option options[] = {
    {"collective", required_argument, NULL, 'c'},
    {"ranks", required_argument, NULL, 'r'},
    {"job", required_argument, NULL, 'j'},
    {"name", required_argument, NULL, 'n'},
    {"window", required_argument, NULL, 'w'},
    {"share", required_argument, NULL, 's'},
    {"output", required_argument, NULL, 'o'},
    {"controller", required_argument, NULL, 'a'},
    {"json", no_argument, NULL, 'J'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int parse(int argc, char **argv, struct job_arguments *arguments)
{
    struct by_fraction share;
    int option, status = 0;

    optind = 0;
    while (status == 0 && (option = getopt_long(argc, argv, "c:o:h", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            if (arguments->collectives != NULL)
                return by_cli_repeated("-c", optarg);
            arguments->collectives = optarg;
            break;
        case 'r':
            arguments->ranks = optarg;
            break;
        case 'j':
            status = by_cli_number("--job", optarg, 1, BY_JOBS_MAX - 1, &arguments->job);
            break;
        case 'n':
            arguments->name = optarg;
            break;
        case 'w':
            status = by_cli_window("--window", optarg, &arguments->window);
            break;
        case 's':
            arguments->share = optarg;
            status = by_cli_share("--share", optarg, &share);
            break;
        case 'o':
            arguments->output = optarg;
            break;
        case 'a':
            arguments->controller = optarg;
            break;
        case 'J':
            arguments->json = true;
            break;
        case 'h':
            fputs(help, stdout);
            return -1;
        default:
            return BY_EXIT_USAGE;
        }
    }
    return status;
}

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
        puts("no job runs");
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
        return by_cli_fail(BY_EXIT_USAGE, "job create needs -c, such as -c allreduce,broadcast");
    }
    json_object_set_new(object, "collectives", json_string(arguments->collectives));
    if (arguments->job > 0)
        json_object_set_new(object, "job", json_integer((json_int_t)arguments->job));
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

int by_command_job(int argc, char **argv)
{
    struct job_arguments arguments = {0};
    const char *verb = argc > 1 ? argv[1] : "";
    bool numbered = strcmp(verb, "end") == 0 || strcmp(verb, "tables") == 0;
    json_t *answer = NULL;
    uint64_t number = 0;
    char path[64];
    int status;

    if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0) {
        fputs(help, stdout);
        return BY_EXIT_DONE;
    }
    if (!numbered && strcmp(verb, "create") != 0 && strcmp(verb, "list") != 0)
        return by_cli_fail(BY_EXIT_USAGE, "job %s: say create, end, list or tables; see banyan job --help",
                           verb);
    status = parse(argc - 1, argv + 1, &arguments);
    if (status != 0)
        return status < 0 ? BY_EXIT_DONE : status;
    argc -= 1 + optind;
    if (argc != (numbered ? 1 : 0))
        return by_cli_fail(BY_EXIT_USAGE,
                           numbered ? "job %s: give the number of one job" : "job %s: no more words", verb);
    if (numbered)
        status = by_cli_number("job", argv[1 + optind], 1, BY_JOBS_MAX - 1, &number);
    if (strcmp(verb, "tables") == 0 && arguments.output == NULL)
        return by_cli_fail(BY_EXIT_USAGE, "job tables: -o DIR says where to");
    snprintf(path, sizeof(path), numbered ? "/v1/jobs/%" PRIu64 : "/v1/jobs", number);
    if (status == 0)
        status = strcmp(verb, "create") == 0
                     ? create(&arguments, &answer)
                     : by_cli_ask_json(arguments.controller, strcmp(verb, "end") == 0 ? "DELETE" : "GET",
                                       path, NULL, ASK_S, &answer);
    if (status == 0 && (strcmp(verb, "create") == 0 || strcmp(verb, "tables") == 0))
        status = fetch_tables(&arguments, answer);
    if (status == 0 && (strcmp(verb, "tables") != 0 || arguments.json))
        print(&arguments, answer);
    json_decref(answer);
    return status;
}
