/*
 * The command `banyan tables`: converts plans to a table image and a readable dump for each node.
 * Neighbours: control/tables does the conversion; `push` and banyan-switchd read the files.
 * Single-threaded.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/cli/cli.h"
#include "control/cli/lowering.h"
#include "control/tables/dump.h"
#include "control/tables/file.h"
#include "control/tables/lower.h"
#include "offload/base/limits.h"

#define JOBS_MAX 16

/* Tables of more bytes get no text file; `banyan show FILE` prints them. */
#define TEXT_BYTES_MAX 65536u

struct tables_arguments {
    const char *topology;
    const char *site;
    const char *output;
    struct by_lower_options options;
    uint32_t job_count;
    struct by_lower_job jobs[JOBS_MAX];
    struct by_plan **plans[JOBS_MAX];
    const char **paths[JOBS_MAX];
    uint32_t job;                 /* job of the plans that follow */
    uint32_t shares[BY_JOBS_MAX]; /* by job: share in units of BY_SHARE_ONE, 0: none */
    struct by_cli_keys keys;
    int json;
};

/* Adds a path: the topology first, then plans of the current job. */
static int add_path(void *object, const char *path, struct by_option_why *why)
{
    struct tables_arguments *arguments = object;
    uint32_t index = arguments->job_count - 1;
    uint32_t *count;

    if (arguments->topology == NULL) {
        arguments->topology = path;
        return 0;
    }
    if (arguments->job_count == 0 || arguments->jobs[index].job != arguments->job) {
        if (arguments->job_count == JOBS_MAX)
            return by_option_refuse(why, "more than %d jobs in one call: lower them in several folders",
                                    JOBS_MAX);
        index = arguments->job_count++;
        arguments->jobs[index].job = (uint16_t)arguments->job;
    }
    count = &arguments->jobs[index].plan_count;
    arguments->paths[index] = by_realloc(arguments->paths[index], *count + 1, sizeof(char *));
    arguments->paths[index][(*count)++] = path;
    return 0;
}

/* --share of the current job, whose plans may precede or follow the option. */
static int read_share(void *object, const char *text, struct by_option_why *why)
{
    struct tables_arguments *arguments = object;
    struct by_fraction share;

    if (by_cli_share(text, &share, why) != 0)
        return -1;
    arguments->shares[arguments->job] = by_lower_share(share);
    return 0;
}

#define AT(member) BY_OPTION_AT(struct tables_arguments, member)

static const struct by_option rows[] = {
    {BY_ROW_TEXT('o', "output", "DIR", AT(output), "write the files to DIR, which is made if missing")},
    BY_CLI_SITE_ROW(site),
    {BY_ROW_NUMBER(0, "job", "N", AT(job), 1, BY_JOBS_MAX - 1, "assign the plans that follow to job N, %r")},
    {BY_ROW_CALL(
        0, "share", "P", read_share,
        "let switches reserve this part of their links for the job of the last --job: 1/4, 0.25 or 25%")},
    BY_CLI_WINDOW_ROW(options.window,
                      "give a tree W slots at a node, %r (default 256); halved until all nodes "
                      "fit"),
    {BY_ROW_NUMBER(0, "slots", "N", AT(options.slots), 1, UINT32_MAX,
                   "give one node N slots (default 16384)")},
    {BY_ROW_NUMBER(
        0, "mtu", "N", AT(options.mtu), 132, 65535,
        "the MTU of the links in bytes, %r (default: the smallest that the site states for a link of the trees, "
        "else 1500); chunks are as long as it allows")},
    {BY_ROW_NUMBER(
        0, "gen", "N", AT(options.gen), 1, 65535,
        "the install generation, %r (default 1): higher than the running one when a job is planned again")},
    {BY_ROW_FLAG(0, "det", AT(options.det),
                 "make slots for the mode det as well: one for every two children of a node")},
    BY_CLI_KEYED_ROWS(keys),
    {BY_ROW_FLAG(0, "json", AT(json), "print one JSON object")},
    {0}};

static const struct by_options command_line = {
    .program = "banyan tables",
    .usage = "banyan tables TOPO PLAN... -o DIR [options]",
    .about = "Compiles plans into DIR/NODE.table, the image that node NODE loads, and DIR/NODE.txt, the same "
             "as text. All plans after `--job N` belong to job N; before any, to job 1.",
    .rows = rows,
    .most = UINT_MAX,
    .operand = add_path};

static int parse(int argc, char **argv, struct tables_arguments *arguments)
{
    int status = by_options_read(&command_line, arguments, &argc, argv);

    if (status >= 0)
        return status == 0 ? -1 : status;
    for (uint32_t i = 0; i < arguments->job_count; i++)
        arguments->jobs[i].share = arguments->shares[arguments->jobs[i].job];
    status = by_cli_keyed(&arguments->keys, &arguments->options);
    if (status != 0)
        return status;
    if (arguments->topology != NULL && arguments->job_count > 0 && arguments->output != NULL)
        return 0;
    return by_cli_fail(BY_EXIT_USAGE, "tables requires a topology, at least one plan and -o DIR; `banyan "
                                      "tables --help` lists the options");
}

static int read_plans(struct tables_arguments *arguments, const struct by_topology *topology)
{
    for (uint32_t i = 0; i < arguments->job_count; i++) {
        arguments->plans[i] = by_alloc(arguments->jobs[i].plan_count, sizeof(struct by_plan *));
        arguments->jobs[i].plans = (const struct by_plan *const *)arguments->plans[i];
        for (uint32_t j = 0; j < arguments->jobs[i].plan_count; j++) {
            struct by_problem problem = {0};
            if (by_plan_read(arguments->paths[i][j], topology, &arguments->plans[i][j], &problem) != 0)
                return by_cli_refuse(arguments->paths[i][j], &problem);
        }
    }
    return 0;
}

static int write_node(const struct by_lowering *lowering, uint32_t node, const char *folder, json_t *images,
                      size_t *total)
{
    const char *name = lowering->topology->nodes[node].name;
    struct by_problem problem = {0};
    char path[4096], hash[17];
    uint8_t *bytes;
    size_t size;
    struct by_output output;
    int error;

    if (strchr(name, '/') != NULL || name[0] == '.' ||
        snprintf(path, sizeof(path), "%s/%s.table", folder, name) >= 4096)
        return by_cli_fail(BY_EXIT_USAGE, "node '%s': its name cannot be a file's name: rename it", name);
    error = by_lowering_image(lowering, node, &bytes, &size, &problem);
    if (error != 0)
        return by_cli_fail(BY_EXIT_USAGE, "%s", problem.text);
    error = by_image_file_write(path, bytes, size, &problem);
    if (error != 0) {
        free(bytes);
        by_cli_refuse(path, &problem);
        return BY_EXIT_ENVIRONMENT;
    }
    snprintf(hash, sizeof(hash), "%016" PRIx64, by_image_hash(bytes, size));
    json_array_append_new(images, json_pack("{s:s, s:s, s:I, s:s}", "node", name, "file", path, "bytes",
                                            (json_int_t)size, "hash", hash));
    *total += size;
    snprintf(path, sizeof(path), "%s/%s.txt", folder, name);
    if (size > TEXT_BYTES_MAX) {
        unlink(path); /* a file from an earlier table may exist */
        free(bytes);
        return 0;
    }
    if (!by_cli_create(&output, path)) {
        free(bytes);
        return BY_EXIT_ENVIRONMENT;
    }
    by_dump_text(bytes, size, output.stream);
    free(bytes);
    return by_cli_finish(&output, true);
}

static void report(const struct by_lowering *lowering, const char *folder, json_t *images, size_t total,
                   int json)
{
    char cookie[17];

    snprintf(cookie, sizeof(cookie), "%016" PRIx64, lowering->cookie);
    if (json) {
        json_t *notes = json_array(), *object;
        for (uint32_t i = 0; i < lowering->note_count; i++)
            json_array_append_new(notes, json_string(lowering->notes[i]));
        object = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:O, s:o}", "cookie", cookie, "trees",
                           (int)lowering->tree_count, "window", (int)lowering->window, "slots",
                           (int)lowering->slots, "payload_max", (int)lowering->payload_max, "mtu",
                           (int)lowering->mtu, "images", images, "notes", notes);
        json_dumpf(object, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(object);
        return;
    }
    printf(
        "%u tables in %s (%zu bytes): %u tree%s, window %u, payload %u, at most %u slots at a node, cookie "
        "%s\n",
        (unsigned)json_array_size(images), folder, total, lowering->tree_count,
        by_plural(lowering->tree_count), lowering->window, lowering->payload_max, lowering->slots, cookie);
    for (uint32_t i = 0; i < lowering->note_count; i++)
        printf("note: %s\n", lowering->notes[i]);
}

static int compile(struct tables_arguments *arguments, const struct by_topology *topology)
{
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};
    json_t *images = json_array();
    size_t total = 0;
    int status = read_plans(arguments, topology);

    if (status == 0 && by_lower(topology, arguments->jobs, arguments->job_count, &arguments->options,
                                &lowering, &problem) != 0)
        status = by_cli_refuse(arguments->topology, &problem);
    if (status == 0 && mkdir(arguments->output, 0777) != 0 && errno != EEXIST)
        status = by_cli_fail(BY_EXIT_ENVIRONMENT, "%s: cannot make the folder: %s", arguments->output,
                             strerror(errno));
    for (uint32_t i = 0; status == 0 && i < topology->node_count; i++)
        if (by_site_runs(topology, i) == BY_SITE_BANYAN)
            status = write_node(lowering, i, arguments->output, images, &total);
    if (status == 0)
        report(lowering, arguments->output, images, total, arguments->json);
    json_decref(images);
    by_lowering_free(lowering);
    return status;
}

int by_command_tables(int argc, char **argv)
{
    struct tables_arguments arguments = {.job = 1};
    struct by_topology *topology = NULL;
    int status = parse(argc, argv, &arguments);

    if (status == 0) {
        topology = by_cli_topology_site(arguments.topology, arguments.site);
        status = topology ? compile(&arguments, topology) : BY_EXIT_USAGE;
    }
    for (uint32_t i = 0; i < arguments.job_count; i++) {
        for (uint32_t j = 0; arguments.plans[i] && j < arguments.jobs[i].plan_count; j++)
            by_plan_free(arguments.plans[i][j]);
        free(arguments.plans[i]);
        free(arguments.paths[i]);
    }
    by_topology_free(topology);
    return status < 0 ? BY_EXIT_DONE : status;
}
