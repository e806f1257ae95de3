/* banyan topo: prints a preset fabric as topology JSON. Single-threaded. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "control/cli/cli.h"
#include "control/topology/preset.h"

/* Values that getopt_long returns: a parameter's number plus this, so that they meet no letter. */
#define PARAMETER_BASE 1000

static void list_presets(FILE *stream)
{
    size_t count;
    const struct by_preset *presets = by_preset_list(&count);

    fputs("usage: banyan topo PRESET [options]\n\n"
          "Prints a fabric as topology JSON, to be saved and used with plan, lab and plot.\n\n",
          stream);
    for (size_t i = 0; i < count; i++)
        fprintf(stream, "  %-10s %s\n", presets[i].name, presets[i].summary);
    fputs("\n`banyan topo PRESET --help` lists the options of a preset.\n", stream);
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
    printf("\nRATE is in GB/s: an integer, a decimal or a fraction such as 25/2.\n");
}

/* Reads the options into `texts` and `capable`; returns -1 to go on, else the exit status. */
static int read_options(int argc, char **argv, const struct by_preset *preset, const char **texts,
                        const char **capable)
{
    struct option options[BY_PRESET_PARAMETERS_MAX + 4] = {{0}};
    size_t count = 0;
    int option;

    for (; preset->parameters[count].name; count++)
        options[count] = (struct option){preset->parameters[count].name, required_argument, NULL,
                                         PARAMETER_BASE + (int)count};
    options[count++] = (struct option){"capable", required_argument, NULL, 'c'};
    options[count++] = (struct option){"json", no_argument, NULL, 'j'};
    options[count] = (struct option){"help", no_argument, NULL, 'h'};
    optind = 0;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option >= PARAMETER_BASE) {
            texts[option - PARAMETER_BASE] = optarg;
        } else if (option == 'c') {
            *capable = optarg;
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

int by_command_topo(int argc, char **argv)
{
    const char *texts[BY_PRESET_PARAMETERS_MAX] = {NULL}, *capable = NULL;
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
    preset = by_preset_find(argv[1]);
    if (!preset)
        return by_cli_fail(BY_EXIT_USAGE, "no preset '%s'; `banyan topo --help` lists them", argv[1]);
    status = read_options(argc - 1, argv + 1, preset, texts, &capable);
    if (status >= 0)
        return status;
    if (by_preset_make(preset, texts, capable, &topology, &problem) != 0)
        return by_cli_fail(BY_EXIT_USAGE, "%s", problem.text);
    status = by_topology_write(topology, stdout) == 0 ? BY_EXIT_DONE : BY_EXIT_ENVIRONMENT;
    by_topology_free(topology);
    return status;
}
