/*
 * The command `banyan topo`: prints a preset fabric as topology JSON, unchanged or with failed
 * links and randomly varied bandwidths. Single-threaded.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "control/base/fraction.h"
#include "control/cli/cli.h"
#include "control/cli/import.h"
#include "control/fabric/preset/preset.h"
#include "control/fabric/vary.h"

/* Largest factor of --scatter. */
#define SCATTER_MAX 1000000u

struct topo_arguments {
    const char *texts[BY_PRESET_PARAMETERS_MAX]; /* by parameter of the preset; NULL = default */
    const char *capable, *fail, *scatter;
    struct by_variation variation;
    bool json;
};

/* Reads what precedes the name of the preset. Returns -1 to continue, else the exit status. */
static int read_preset(int *argc, char **argv)
{
    struct by_option rows[BY_OPTIONS_MAX] = {{BY_ROW_HEADING("Presets:")}};
    const struct by_options command_line = {
        .program = "banyan topo",
        .usage = "banyan topo PRESET [options]\nbanyan topo import --format FORMAT [options] FILE...",
        .about = "Prints a fabric as topology JSON, for plan, lab, plot and the other commands.",
        .epilog =
            "`banyan topo PRESET --help` lists the options of a preset; `banyan topo import --help` shows "
            "how to read files of NCCL, ibnetdiscover, lldpctl and Graphviz.",
        .rows = rows,
        .least = 1,
        .most = UINT_MAX,
        .operands = "a preset",
        .stops = true};
    size_t count;
    const struct by_preset *presets = by_preset_list(&count);

    for (size_t i = 0; i < count && i + 2 < BY_OPTIONS_MAX; i++)
        rows[i + 1] = (struct by_option){BY_ROW_NOTE(presets[i].name, presets[i].summary)};
    return by_options_read(&command_line, NULL, argc, argv);
}

static int no_preset(const char *name)
{
    struct by_option_guess guess = {.typed = name};
    size_t count;
    const struct by_preset *presets = by_preset_list(&count);

    for (size_t i = 0; i < count; i++)
        by_option_guess_add(&guess, presets[i].name);
    return by_cli_fail(BY_EXIT_USAGE, "no preset '%s'; %s%s%s`banyan topo --help` lists them", name,
                       guess.best ? "did you mean " : "", guess.best ? guess.best : "",
                       guess.best ? "? " : "");
}

static int read_fail(void *object, const char *text, struct by_option_why *why)
{
    struct by_fraction *part = &((struct topo_arguments *)object)->variation.fail;

    return by_fraction_parse_part(text, part) == 0 && part->num < part->den
               ? 0
               : by_option_refuse(why, "it must be a part below 1, such as 0.05, 1/20 or 5%%");
}

static int read_scatter(void *object, const char *text, struct by_option_why *why)
{
    struct by_variation *variation = &((struct topo_arguments *)object)->variation;
    unsigned low, high;
    char extra;

    if (strspn(text, "0123456789.") != strlen(text) || sscanf(text, "%7u..%7u%c", &low, &high, &extra) != 2 ||
        low < 1 || low > high || high > SCATTER_MAX)
        return by_option_refuse(why, "it must be two integers from 1 to %u, such as 1..5", SCATTER_MAX);
    variation->scatter_low = low;
    variation->scatter_high = high;
    return 0;
}

#define AT(member) BY_OPTION_AT(struct topo_arguments, member)

/* The options of every preset. */
static const struct by_option common[] = {
    {BY_ROW_TEXT(0, "capable", "LIST", AT(capable),
                 "let these switches multicast and aggregate: names, classes (a name without its number), "
                 "all or none, separated by commas")},
    {BY_ROW_TEXT(
         0, "fail", "PART", AT(fail),
         "fail this part of the links, chosen at random: 0.05, 1/20 or 5%; the fabric stays connected"),
     .call = read_fail},
    {BY_ROW_TEXT(0, "scatter", "A..B", AT(scatter),
                 "multiply each link's bandwidth by a random integer from A to B"),
     .call = read_scatter},
    {BY_ROW_NUMBER(0, "seed", "N", AT(variation.seed), 0, UINT64_MAX,
                   "seed the random choices with N (default 1)")},
    {BY_ROW_FLAG(0, "json", AT(json), "print JSON, as without this option")}};

#define COMMON (sizeof(common) / sizeof(common[0]))

/* Reads the options. Returns -1 to continue, else the exit status. */
static int read_options(int argc, char **argv, const struct by_preset *preset,
                        struct topo_arguments *arguments)
{
    static const char *const placeholders[] = {
        [BY_PARAMETER_COUNT] = "N", [BY_PARAMETER_BANDWIDTH] = "RATE", [BY_PARAMETER_SIZES] = "AxB"};
    struct by_option rows[BY_PRESET_PARAMETERS_MAX + COMMON + 1] = {{0}};
    char program[64], usage[96], epilog[200], help[BY_PRESET_PARAMETERS_MAX][200];
    const struct by_options command_line = {
        .program = program, .usage = usage, .about = preset->summary, .epilog = epilog, .rows = rows};
    size_t count = 0;
    bool seeded = false;

    snprintf(program, sizeof(program), "banyan topo %s", preset->name);
    snprintf(usage, sizeof(usage), "%s [options]", program);
    snprintf(epilog, sizeof(epilog),
             "RATE is in GB/s: an integer, a decimal or a fraction such as 25/2. Without --capable: %s.",
             preset->capable);
    for (; preset->parameters[count].name; count++) {
        const struct by_parameter *parameter = &preset->parameters[count];

        snprintf(help[count], sizeof(help[count]), "%s (default %s)", parameter->help, parameter->fallback);
        rows[count] = (struct by_option){
            BY_ROW_TEXT(0, parameter->name, placeholders[parameter->kind], AT(capable), help[count])};
        rows[count].text.at = offsetof(struct topo_arguments, texts) + count * sizeof(char *);
        if (strcmp(parameter->name, "seed") != 0)
            continue;
        seeded = true; /* the preset's choices and those of --fail and --scatter */
        rows[count].kind = BY_OPTION_NUMBER;
        rows[count].most = UINT64_MAX;
        rows[count].value = (struct by_option_field)AT(variation.seed);
    }
    for (size_t i = 0; i < COMMON; i++)
        if (!seeded || strcmp(common[i].name, "seed") != 0)
            rows[count++] = common[i];
    return by_options_read(&command_line, arguments, &argc, argv);
}

/* Applies link failures and random bandwidths as requested; replaces `*topology`. */
static int vary(const struct topo_arguments *arguments, struct by_topology **topology)
{
    struct by_variation variation = arguments->variation;
    struct by_topology *varied;
    struct by_problem problem = {0};
    char name[300];
    size_t at = (size_t)snprintf(name, sizeof(name), "%.200s", (*topology)->name);

    if (!arguments->fail && !arguments->scatter)
        return -1;
    if (arguments->fail)
        at += (size_t)snprintf(name + at, sizeof(name) - at, "-fail%.20s", arguments->fail);
    if (arguments->scatter)
        at += (size_t)snprintf(name + at, sizeof(name) - at, "-scatter%.20s", arguments->scatter);
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
    struct topo_arguments arguments = {.variation = {.fail = {0, 1}, .seed = 1}};
    const struct by_preset *preset;
    struct by_topology *topology;
    struct by_problem problem = {0};
    int status;

    status = read_preset(&argc, argv);
    if (status >= 0)
        return status;
    if (strcmp(argv[1], "import") == 0)
        return by_cli_import(argc - 1, argv + 1);
    preset = by_preset_find(argv[1]);
    if (!preset)
        return no_preset(argv[1]);
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
