/*
 * The command `banyan tables`: converts plans to a table image and a readable dump for each node.
 * Neighbours: control/tables does the conversion; `push` and banyan-switchd read the files.
 * Single-threaded.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/cli/cli.h"
#include "control/cli/number.h"
#include "control/tables/dump.h"
#include "control/tables/file.h"
#include "control/tables/lower.h"
#include "offload/base/limits.h"

static const char help[] =
    "usage: banyan tables TOPO PLAN... -o DIR [options]\n"
    "\n"
    "Compiles plans into DIR/NODE.table, the image that node NODE loads, and DIR/NODE.txt, the same for "
    "people.\n"
    "All plans after `--job N` belong to job N; before any, to job 1.\n"
    "\n"
    "  -o, --output DIR   where the files go; made if missing\n"
    "      --job N        job of the plans that follow, 1 to 1023\n"
    "      --share P      the part of its links that switches keep for the job of the last --job: 1/4, 0.25\n"
    "      --window W     slots of a tree at a node, a power of two up to 4096 (default 256); halved until "
    "all nodes fit\n"
    "      --slots N      slots of one node (default 16384)\n"
    "      --mtu N        MTU of the links in bytes (default 1500); chunks are as long as it allows\n"
    "      --gen N        install generation, 1 to 65535 (default 1): higher than what runs, when a job is "
    "planned again\n"
    "      --det          slots for the mode det as well: one for each two children of a node\n"
    "      --keyed[=COVER]  packets carry tags that only the job can make, of `header` (default) or of "
    "`payload` as well;\n"
    "                     the tables then hold secrets, and are their owner's alone (mode 0600)\n"
    "      --key-seed HEX make the keys of these 32 digits, not of random bytes: for tests\n"
    "      --json         one JSON object on stdout\n"
    "      --help\n";

#define JOBS_MAX 16

/* Tables of more bytes get no text file; `banyan show FILE` prints them. */
#define TEXT_BYTES_MAX 65536u

struct tables_arguments {
    const char *topology;
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

static const struct option options[] = {
    {"output", required_argument, NULL, 'o'},
    {"job", required_argument, NULL, 'j'},
    {"window", required_argument, NULL, 'w'},
    {"slots", required_argument, NULL, 's'},
    {"mtu", required_argument, NULL, 'm'},
    {"gen", required_argument, NULL, 'g'},
    {"det", no_argument, NULL, 'd'},
    {"json", no_argument, NULL, 'J'},
    {"keyed", optional_argument, NULL, 'k'},
    {"key-seed", required_argument, NULL, 'S'},
    {"share", required_argument, NULL, 'P'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* Adds a path: the topology first, then plans of the current job. */
static int add_path(struct tables_arguments *arguments, const char *path)
{
    uint32_t index = arguments->job_count - 1;
    uint32_t *count;

    if (arguments->topology == NULL) {
        arguments->topology = path;
        return 0;
    }
    if (arguments->job_count == 0 || arguments->jobs[index].job != arguments->job) {
        if (arguments->job_count == JOBS_MAX)
            return by_cli_fail(BY_EXIT_USAGE, "more than %d jobs in one call: lower them in several folders",
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
static int read_share(struct tables_arguments *arguments, const char *text)
{
    struct by_fraction share;

    if (by_cli_share("--share", text, &share) != 0)
        return BY_EXIT_USAGE;
    arguments->shares[arguments->job] = by_lower_share(share);
    return 0;
}

static int parse(int argc, char **argv, struct tables_arguments *arguments)
{
    uint64_t value = 0;
    int option, status = 0;

    optind = 0;
    /* '-' returns paths in order among the options, so --job can separate them. */
    while (status == 0 && (option = getopt_long(argc, argv, "-o:h", options, NULL)) != -1) {
        switch (option) {
        case 1:
            status = add_path(arguments, optarg);
            break;
        case 'o':
            arguments->output = optarg;
            break;
        case 'j':
            status = by_cli_number("--job", optarg, 1, BY_JOBS_MAX - 1, &value);
            arguments->job = (uint32_t)value;
            break;
        case 'w':
            status = by_cli_window("--window", optarg, &arguments->options.window);
            break;
        case 's':
            status = by_cli_number("--slots", optarg, 1, UINT32_MAX, &value);
            arguments->options.slots = (uint32_t)value;
            break;
        case 'm':
            status = by_cli_number("--mtu", optarg, 132, 65535, &value);
            arguments->options.mtu = (uint32_t)value;
            break;
        case 'g':
            status = by_cli_number("--gen", optarg, 1, 65535, &value);
            arguments->options.gen = (uint16_t)value;
            break;
        case 'd':
            arguments->options.det = 1;
            break;
        case 'k':
            arguments->keys.keyed = 1;
            arguments->keys.cover = optarg;
            break;
        case 'S':
            arguments->keys.seed = optarg;
            break;
        case 'P':
            status = read_share(arguments, optarg);
            break;
        case 'J':
            arguments->json = 1;
            break;
        case 'h':
            fputs(help, stdout);
            return -1;
        default:
            return BY_EXIT_USAGE;
        }
    }
    for (; status == 0 && optind < argc; optind++)
        status = add_path(arguments, argv[optind]);
    for (uint32_t i = 0; i < arguments->job_count; i++)
        arguments->jobs[i].share = arguments->shares[arguments->jobs[i].job];
    if (status == 0)
        status = by_cli_keyed(&arguments->keys, &arguments->options);
    if (status != 0)
        return status;
    if (arguments->topology != NULL && arguments->job_count > 0 && arguments->output != NULL)
        return 0;
    by_cli_fail(BY_EXIT_USAGE,
                "tables needs a topology, at least one plan and -o DIR; see banyan tables --help");
    return BY_EXIT_USAGE;
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
        lowering->node_count, folder, total, lowering->tree_count, by_plural(lowering->tree_count),
        lowering->window, lowering->payload_max, lowering->slots, cookie);
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
        topology = by_cli_topology(arguments.topology);
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
