/*
 * The command `banyan topo`: prints a preset fabric as topology JSON, unchanged or with failed
 * links and randomly varied bandwidths. Single-threaded.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/fraction.h"
#include "control/cli/cli.h"
#include "control/cli/import.h"
#include "control/fabric/preset/preset.h"
#include "control/fabric/vary.h"

/*
 * Base of the getopt_long values of parameters: a parameter's number plus this, which differs from
 * any letter.
 */
#define PARAMETER_BASE 1000
/* Largest factor of --scatter. */
#define SCATTER_MAX 1000000

struct topo_arguments {
    const char *texts[BY_PRESET_PARAMETERS_MAX]; /* by parameter of the preset; NULL = default */
    const char *capable, *fail, *scatter, *seed;
};

static void list_presets(FILE *stream)
{
    size_t count;
    const struct by_preset *presets = by_preset_list(&count);

    fputs("usage: banyan topo PRESET [options]\n\n"
          "Prints a fabric as topology JSON, to be saved and used with plan, lab and plot.\n\n",
          stream);
    for (size_t i = 0; i < count; i++)
        fprintf(stream, "  %-10s %s\n", presets[i].name, presets[i].summary);
    fputs("\n`banyan topo PRESET --help` lists the options of a preset. `banyan topo import --help`: fabrics "
          "from files of\n"
          "NCCL, ibnetdiscover, lldpctl and Graphviz.\n",
          stream);
}

static bool has_parameter(const struct by_preset *preset, const char *name)
{
    for (size_t i = 0; preset->parameters[i].name; i++)
        if (strcmp(preset->parameters[i].name, name) == 0)
            return true;
    return false;
}

static void describe_preset(const struct by_preset *preset)
{
    printf("usage: banyan topo %s [options]\n\n%s\n\n", preset->name, preset->summary);
    for (size_t i = 0; preset->parameters[i].name; i++) {
        const struct by_parameter *parameter = &preset->parameters[i];
        const char *metavar = parameter->kind == BY_PARAMETER_COUNT       ? "N"
                              : parameter->kind == BY_PARAMETER_BANDWIDTH ? "RATE"
                                                                          : "AxB";

        printf("  --%-10s %-5s %s (default %s)\n", parameter->name, metavar, parameter->help,
               parameter->fallback);
    }
    printf("  --%-10s %-5s %s\n", "capable", "LIST",
           "the switches that multicast and aggregate: names, classes (a name without");
    printf("%21sits number), \"all\" or \"none\", separated by commas (default %s)\n", "", preset->capable);
    printf("  --%-10s %-5s %s\n", "fail", "PART",
           "this part of the links fails, chosen at random: 0.05, 1/20 or 5%; the fabric stays");
    printf("%21sin one part\n", "");
    printf("  --%-10s %-5s %s\n", "scatter", "A..B",
           "each link's bandwidth is multiplied by a random integer from A to B");
    if (!has_parameter(preset, "seed"))
        printf("  --%-10s %-5s %s\n", "seed", "N", "of the random choices (default 1)");
    printf("\nRATE is in GB/s: an integer, a decimal or a fraction such as 25/2.\n");
}

/* Reads the options. Returns -1 to continue, else the exit status. */
static int read_options(int argc, char **argv, const struct by_preset *preset,
                        struct topo_arguments *arguments)
{
    struct option options[BY_PRESET_PARAMETERS_MAX + 7] = {{0}};
    size_t count = 0;
    int option;

    for (; preset->parameters[count].name; count++)
        options[count] = (struct option){preset->parameters[count].name, required_argument, NULL,
                                         PARAMETER_BASE + (int)count};
    options[count++] = (struct option){"capable", required_argument, NULL, 'c'};
    options[count++] = (struct option){"fail", required_argument, NULL, 'f'};
    options[count++] = (struct option){"scatter", required_argument, NULL, 's'};
    if (!has_parameter(preset, "seed"))
        options[count++] = (struct option){"seed", required_argument, NULL, 'e'};
    options[count++] = (struct option){"json", no_argument, NULL, 'j'};
    options[count] = (struct option){"help", no_argument, NULL, 'h'};
    optind = 0;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option >= PARAMETER_BASE) {
            arguments->texts[option - PARAMETER_BASE] = optarg;
            if (strcmp(preset->parameters[option - PARAMETER_BASE].name, "seed") == 0)
                arguments->seed = optarg;
        } else if (option == 'c') {
            arguments->capable = optarg;
        } else if (option == 'f') {
            arguments->fail = optarg;
        } else if (option == 's') {
            arguments->scatter = optarg;
        } else if (option == 'e') {
            arguments->seed = optarg;
        } else if (option == 'h') {
            describe_preset(preset);
            return BY_EXIT_DONE;
        } else if (option != 'j') {
            return by_cli_fail(BY_EXIT_USAGE, "`banyan topo %s --help` lists the options", preset->name);
        }
    }
    if (optind < argc)
        return by_cli_fail(BY_EXIT_USAGE,
                           "'%s' is one argument too many; `banyan topo %s --help` lists the options",
                           argv[optind], preset->name);
    return -1;
}

/* Parses "0.05", "1/20" or "5%". */
static bool read_part(const char *text, struct by_fraction *part)
{
    size_t bytes = strlen(text);
    bool percent = bytes > 0 && text[bytes - 1] == '%';

    if (by_fraction_parse(text, bytes - percent, part) != 0)
        return false;
    if (percent && by_fraction_divide(*part, (struct by_fraction){100, 1}, part) != 0)
        return false;
    return by_fraction_compare(*part, (struct by_fraction){1, 1}) < 0;
}

/* Parses "1..5". */
static bool read_range(const char *text, int64_t *low, int64_t *high)
{
    char *end;

    if (*text < '0' || *text > '9')
        return false;
    *low = strtoll(text, &end, 10);
    if (strncmp(end, "..", 2) != 0 || end[2] < '0' || end[2] > '9')
        return false;
    *high = strtoll(end + 2, &end, 10);
    return *end == 0 && *low >= 1 && *low <= *high && *high <= SCATTER_MAX;
}

/* Applies link failures and random bandwidths as requested; replaces `*topology`. */
static int vary(const struct topo_arguments *arguments, struct by_topology **topology)
{
    struct by_variation variation = {.fail = {0, 1}, .seed = 1};
    struct by_topology *varied;
    struct by_problem problem = {0};
    char name[300], *end;
    size_t at = (size_t)snprintf(name, sizeof(name), "%.200s", (*topology)->name);

    if (arguments->seed) {
        errno = 0;
        variation.seed = strtoull(arguments->seed, &end, 10);
        if (errno || *end || *arguments->seed < '0' || *arguments->seed > '9')
            return by_cli_fail(BY_EXIT_USAGE, "--seed is '%.40s': it must be an integer from 0",
                               arguments->seed);
    }
    if (arguments->fail) {
        if (!read_part(arguments->fail, &variation.fail))
            return by_cli_fail(BY_EXIT_USAGE,
                               "--fail is '%.40s': it must be a part below 1, such as 0.05, 1/20 or 5%%",
                               arguments->fail);
        at += (size_t)snprintf(name + at, sizeof(name) - at, "-fail%.20s", arguments->fail);
    }
    if (arguments->scatter) {
        if (!read_range(arguments->scatter, &variation.scatter_low, &variation.scatter_high))
            return by_cli_fail(BY_EXIT_USAGE,
                               "--scatter is '%.40s': it must be two integers from 1 to %d, such as 1..5",
                               arguments->scatter, SCATTER_MAX);
        at += (size_t)snprintf(name + at, sizeof(name) - at, "-scatter%.20s", arguments->scatter);
    }
    if (!arguments->fail && !arguments->scatter)
        return -1;
    snprintf(name + at, sizeof(name) - at, "-seed%llu", (unsigned long long)variation.seed);
    variation.name = name;
    if (by_vary(*topology, &variation, &varied, &problem) != 0)
        return by_cli_fail(BY_EXIT_USAGE, "%s", problem.text);
    by_topology_free(*topology);
    *topology = varied;
    return -1;
}

int by_command_topo(int argc, char **argv)
{
    struct topo_arguments arguments = {{NULL}, NULL, NULL, NULL, NULL};
    const struct by_preset *preset;
    struct by_topology *topology;
    struct by_problem problem = {0};
    int status;

    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        list_presets(stdout);
        return BY_EXIT_DONE;
    }
    if (argc < 2) {
        list_presets(stderr);
        return BY_EXIT_USAGE;
    }
    if (strcmp(argv[1], "import") == 0)
        return by_cli_import(argc - 1, argv + 1);
    preset = by_preset_find(argv[1]);
    if (!preset)
        return by_cli_fail(BY_EXIT_USAGE, "no preset '%s'; `banyan topo --help` lists them", argv[1]);
    status = read_options(argc - 1, argv + 1, preset, &arguments);
    if (status >= 0)
        return status;
    if (by_preset_make(preset, arguments.texts, arguments.capable, &topology, &problem) != 0)
        return by_cli_fail(BY_EXIT_USAGE, "%s", problem.text);
    status = vary(&arguments, &topology);
    if (status < 0)
        status = by_topology_write(topology, stdout) == 0 ? BY_EXIT_DONE : BY_EXIT_ENVIRONMENT;
    by_topology_free(topology);
    return status;
}
