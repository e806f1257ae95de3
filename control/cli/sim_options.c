/* The command line of `banyan sim`. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/fraction.h"
#include "control/cli/number.h"
#include "control/cli/sim.h"

static const char help[] =
    "usage: banyan sim TOPO PLAN... [options]\n"
    "\n"
    "Runs a collective on a simulated fabric in virtual time: the engines, endpoints and tables of real "
    "nodes, "
    "links with the\n"
    "topology's rates. Checks every element, and holds the time against the plan's proven optimum.\n"
    "\n"
    "  -c, --collective C   allreduce, reduce-scatter, allgather, broadcast, reduce or barrier (default: "
    "that "
    "of the first plan)\n"
    "  -b, --bytes SIZE     data of the collective; K, M, G are binary (default 64M)\n"
    "  -r, --root RANK      of broadcast and reduce (default: the plan's)\n"
    "      --chunk N        payload of a packet in bytes, a multiple of 64 up to 8192 (default auto)\n"
    "      --window N       slots of a tree at a node, a power of two up to 4096 (default auto)\n"
    "      --inflight N     chunks of a rank on their way over all trees (default auto)\n"
    "      --batch N        frames that one simulated packet stands for (default auto)\n"
    "      --latency T      of every link, with ns, us or ms (default 500ns);  --latency-ns N the same\n"
    "      --loss P --dup P --reorder P\n"
    "                       faults at every switch (at hosts where there is none)\n"
    "      --seed N         of faults, nonces and data (default 1)\n"
    "      --buffer SIZE    what may wait at a port; beyond it packets are lost (default: any)\n"
    "      --mark SIZE      a packet that finds more waiting is marked CE (default: never)\n"
    "      --warmup N       whole calls before the one that is timed (default 0)\n"
    "      --report FILE    everything as JSON;  --json the same on stdout\n"
    "      --keep           leave the folder that banyan-sim ran\n"
    "      --spoil          flip a bit of an input once the answer is known: the check must fail\n"
    "      --help\n"
    "Exit status: 0 every element right; 1 wrong elements, or faster than the proven optimum; 2 bad usage or "
    "input; 3 a call failed.\n";

enum {
    OPT_CHUNK = 256,
    OPT_WINDOW,
    OPT_INFLIGHT,
    OPT_BATCH,
    OPT_LATENCY,
    OPT_LATENCY_NS,
    OPT_LOSS,
    OPT_DUP,
    OPT_REORDER,
    OPT_SEED,
    OPT_BUFFER,
    OPT_MARK,
    OPT_WARMUP,
    OPT_REPORT,
    OPT_JSON,
    OPT_KEEP,
    OPT_SPOIL,
    OPT_HELP
};

static const struct option long_options[] = {
    {"collective", required_argument, NULL, 'c'},
    {"bytes", required_argument, NULL, 'b'},
    {"root", required_argument, NULL, 'r'},
    {"chunk", required_argument, NULL, OPT_CHUNK},
    {"window", required_argument, NULL, OPT_WINDOW},
    {"inflight", required_argument, NULL, OPT_INFLIGHT},
    {"batch", required_argument, NULL, OPT_BATCH},
    {"latency", required_argument, NULL, OPT_LATENCY},
    {"latency-ns", required_argument, NULL, OPT_LATENCY_NS},
    {"loss", required_argument, NULL, OPT_LOSS},
    {"dup", required_argument, NULL, OPT_DUP},
    {"reorder", required_argument, NULL, OPT_REORDER},
    {"seed", required_argument, NULL, OPT_SEED},
    {"buffer", required_argument, NULL, OPT_BUFFER},
    {"mark", required_argument, NULL, OPT_MARK},
    {"warmup", required_argument, NULL, OPT_WARMUP},
    {"report", required_argument, NULL, OPT_REPORT},
    {"json", no_argument, NULL, OPT_JSON},
    {"keep", no_argument, NULL, OPT_KEEP},
    {"spoil", no_argument, NULL, OPT_SPOIL},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static int number(const char *option, const char *text, uint64_t low, uint64_t high, uint32_t *value)
{
    uint64_t wide = 0;
    int status = by_cli_number(option, text, low, high, &wide);

    *value = (uint32_t)wide;
    return status;
}

/* Parses a number, or the word auto for 0. */
static int number_or_auto(const char *option, const char *text, uint64_t high, uint32_t *value)
{
    *value = 0;
    return strcmp(text, "auto") == 0 ? 0 : number(option, text, 1, high, value);
}

static int read_chunk(const char *text, uint32_t *chunk)
{
    int status = number_or_auto("--chunk", text, BY_PAYLOAD_MAX, chunk);

    if (status == 0 && *chunk % 64 != 0)
        return by_cli_fail(BY_EXIT_USAGE,
                           "--chunk %s: give a multiple of 64 (a cache line) up to %u, or auto", text,
                           BY_PAYLOAD_MAX);
    return status;
}

static int read_window(const char *text, uint32_t *window)
{
    int status = number_or_auto("--window", text, BY_WINDOW_MAX, window);

    if (status == 0 && (*window & (*window - 1)) != 0)
        return by_cli_fail(BY_EXIT_USAGE, "--window %s: give a power of two up to %u, or auto", text,
                           BY_WINDOW_MAX);
    return status;
}

static int read_latency(const char *text, uint64_t *ps)
{
    static const struct {
        const char *suffix;
        int64_t ps;
    } units[] = {{"ns", 1000}, {"us", 1000000}, {"ms", 1000000000}};
    size_t bytes = strcspn(text, "num");
    struct by_fraction value;

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(text + bytes, units[i].suffix) == 0 && by_fraction_parse(text, bytes, &value) == 0 &&
            by_fraction_multiply(value, (struct by_fraction){units[i].ps, 1}, &value) == 0 &&
            value.num / value.den <= INT64_C(1000000000000)) {
            *ps = (uint64_t)(value.num / value.den);
            return 0;
        }
    return by_cli_fail(BY_EXIT_USAGE,
                       "--latency %s: give a time up to 1000ms with its unit, such as 500ns or 1.5us", text);
}

static int read_probability(const char *option, const char *text, uint32_t *parts)
{
    int status = by_cli_probability(option, text);
    double scaled = status == 0 ? strtod(text, NULL) * 4294967296.0 : 0;

    *parts = scaled >= 4294967295.0 ? UINT32_MAX : (uint32_t)scaled;
    return status;
}

static int read_collective(const char *text, unsigned *collective)
{
    *collective = by_collective_from_name(text);
    return *collective != 0 ? 0
                            : by_cli_fail(BY_EXIT_USAGE,
                                          "--collective %s: there are allreduce, reduce-scatter, allgather, "
                                          "broadcast, reduce, barrier",
                                          text);
}

static int read_fabric(int option, const char *value, struct sim_options *options)
{
    uint64_t wide = 0;
    int status;

    switch (option) {
    case OPT_LATENCY:
        return read_latency(value, &options->latency_ps);
    case OPT_LATENCY_NS:
        status = by_cli_number("--latency-ns", value, 0, 1000000000, &wide);
        options->latency_ps = wide * 1000;
        return status;
    case OPT_LOSS:
        return read_probability("--loss", value, &options->loss);
    case OPT_DUP:
        return read_probability("--dup", value, &options->dup);
    case OPT_REORDER:
        return read_probability("--reorder", value, &options->reorder);
    case OPT_SEED:
        return by_cli_number("--seed", value, 0, UINT64_MAX, &options->seed);
    case OPT_BUFFER:
        return by_cli_bytes("--buffer", value, 1, UINT64_C(1) << 40, &options->buffer);
    default:
        return by_cli_bytes("--mark", value, 1, UINT64_C(1) << 40, &options->mark);
    }
}

static int read_work(int option, const char *value, struct sim_options *options)
{
    uint32_t root = 0;
    int status;

    switch (option) {
    case 'c':
        if (options->collective != 0)
            return by_cli_repeated("-c", value);
        return read_collective(value, &options->collective);
    case 'b':
        return by_cli_bytes("--bytes", value, 0, UINT64_C(1) << 40, &options->bytes);
    case 'r':
        status = number("--root", value, 0, BY_RANKS_MAX, &root);
        options->root = root;
        return status;
    case OPT_CHUNK:
        return read_chunk(value, &options->chunk);
    case OPT_WINDOW:
        return read_window(value, &options->window);
    case OPT_INFLIGHT:
        return number_or_auto("--inflight", value, UINT32_MAX, &options->inflight);
    case OPT_BATCH:
        return number_or_auto("--batch", value, 4096, &options->batch);
    case OPT_WARMUP:
        return number("--warmup", value, 0, 1000, &options->warmup);
    default:
        return read_fabric(option, value, options);
    }
}

static int read_one(int option, char *value, struct sim_options *options)
{
    switch (option) {
    case OPT_JSON:
        options->json = true;
        return 0;
    case OPT_KEEP:
        options->keep = true;
        return 0;
    case OPT_SPOIL:
        options->spoil = true;
        return 0;
    case OPT_REPORT:
        options->report = value;
        return 0;
    case OPT_HELP:
        fputs(help, stdout);
        return -1;
    case '?':
        return BY_EXIT_USAGE;
    default:
        return read_work(option, value, options);
    }
}

int sim_options_read(int argc, char **argv, struct sim_options *options)
{
    int option, status = 0;

    *options = (struct sim_options){.bytes = UINT64_C(64) << 20, .latency_ps = 500000, .seed = 1, .root = -1};
    optind = 0;
    while (status == 0 && (option = getopt_long(argc, argv, "c:b:r:", long_options, NULL)) != -1)
        status = read_one(option, optarg, options);
    if (status != 0)
        return status;
    if (argc - optind < 2)
        return by_cli_fail(BY_EXIT_USAGE,
                           "sim needs a topology and at least one plan; see banyan sim --help");
    options->topology = argv[optind++];
    for (; optind < argc; optind++) {
        if (options->plan_count == SIM_PLANS_MAX)
            return by_cli_fail(BY_EXIT_USAGE, "%s: more than %u plans: give one for each collective",
                               argv[optind], SIM_PLANS_MAX);
        options->plans[options->plan_count++] = argv[optind];
    }
    return 0;
}
