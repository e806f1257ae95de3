/* Parses the command line of `banyan lab`. See lab.h. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "control/cli/number.h"
#include "control/lab/lab.h"
#include "offload/reduce/reduce.h"

static const char help[] =
    "usage: banyan lab run TOPO [options]     build the fabric, run collectives on it, check, tear down\n"
    "       banyan lab up TOPO [options]      build it with its tables loaded, and leave it\n"
    "       banyan lab down [TOPO|ID] [--all] undo what `up`, or a crash, left\n"
    "\n"
    "A network namespace for each node, a veth pair for each link, banyan-switchd on each switch, "
    "banyan-perf on each host.\n"
    "Needs root, but for --in-process: then all runs in one process over memory.\n"
    "\n"
    "  -c, --collective LIST  all, or some of allreduce, reduce-scatter, allgather, broadcast, reduce, "
    "barrier (default all)\n"
    "  -b, --bytes SIZE       data of each collective; K, M, G are binary (default 16M)\n"
    "  -n, --iters N          operations timed (default 5);  -w, --warmup N before those (default 1)\n"
    "  -d, --dtype TYPE       element type (default f32);    -o, --op OP (default sum);  -r, --root RANK "
    "(default 0)\n"
    "      --ranks LIST       only these compute nodes, A,B,C or @FILE; ranks are numbered among them\n"
    "      --shares FILE      allgather and reduce-scatter with shares of unequal size, planned and run so: "
    "as "
    "for banyan plan\n"
    "      --counts LIST      run with such parts of each rank, 3,1,0,2, whatever was planned (default: "
    "those "
    "of --shares)\n"
    "  -m, --mode MODE        in which order floats are added: fast, det or exact (default fast)\n"
    "      --data exact|random  as for banyan-perf (default exact)\n"
    "      --transport T      of the hosts: auto, afxdp, udp or shm (default auto; udp with several jobs); "
    "shm: hosts\n"
    "                         share memory with their switches, and links to them are memory\n"
    "      --driver D         of the switches: auto, ring, af_packet, af_xdp, xdp or gso (default auto)\n"
    "      --segments whole|cut  what links do with trains of frames: carry them whole (default), as "
    "segmentation\n"
    "                         offload does, or cut them into frames of the MTU, one after another\n"
    "      --mtu N            of every link (default 1500; 9000 with --transport shm)\n"
    "      --loss P --dup P --reorder P --seed N\n"
    "                         faults injected at every switch (at hosts where there is no switch)\n"
    "      --jobs N           that many jobs at once on the same switches (default 1, at most 8)\n"
    "      --keyed[=COVER]    packets carry tags that only their job can make: as for banyan tables\n"
    "      --key-seed HEX     keys of these 32 digits: as for banyan tables\n"
    "      --in-process       no namespaces, no root: one process\n"
    "      --controller       a banyand makes the jobs and keeps them, in place of one push: hosts get their "
    "tables\n"
    "                         from it, and go on when a switch or link dies that others can stand in for\n"
    "      --switch NODE=PROGRAM  what runs on that switch, with the options of banyan-switchd: such as the "
    "run of a\n"
    "                         board without an operating system (build/boards/BOARD/run)\n"
    "      --kill NODE@S      kill the switch NODE after S seconds of the run\n"
    "      --timeout S        an operation without progress fails after this (default 10)\n"
    "      --limit S          the run is ended after this (default 600)\n"
    "      --window W --slots N   as for banyan tables\n"
    "      --report FILE      everything as JSON;  --json the same on stdout\n"
    "      --keep             leave the folder with tables, logs and reports\n"
    "      --help\n"
    "Exit status: 0 every element right; 1 wrong elements; 2 bad usage or input; 3 a switch, a host or the "
    "system failed.\n";

/* Default MTU if links are shared memory, which allows packets of the maximum size (bytes). */
#define SHM_MTU 9000u

enum {
    OPT_RANKS = 256,
    OPT_SHARES,
    OPT_COUNTS,
    OPT_DATA,
    OPT_TRANSPORT,
    OPT_DRIVER,
    OPT_SEGMENTS,
    OPT_MTU,
    OPT_LOSS,
    OPT_DUP,
    OPT_REORDER,
    OPT_SEED,
    OPT_JOBS,
    OPT_KEYED,
    OPT_KEY_SEED,
    OPT_IN_PROCESS,
    OPT_CONTROLLER,
    OPT_SWITCH,
    OPT_KILL,
    OPT_TIMEOUT,
    OPT_LIMIT,
    OPT_WINDOW,
    OPT_SLOTS,
    OPT_REPORT,
    OPT_JSON,
    OPT_KEEP,
    OPT_ALL,
    OPT_HELP
};

static const struct option long_options[] = {
    {"collective", required_argument, NULL, 'c'},
    {"bytes", required_argument, NULL, 'b'},
    {"iters", required_argument, NULL, 'n'},
    {"warmup", required_argument, NULL, 'w'},
    {"dtype", required_argument, NULL, 'd'},
    {"op", required_argument, NULL, 'o'},
    {"root", required_argument, NULL, 'r'},
    {"ranks", required_argument, NULL, OPT_RANKS},
    {"shares", required_argument, NULL, OPT_SHARES},
    {"counts", required_argument, NULL, OPT_COUNTS},
    {"mode", required_argument, NULL, 'm'},
    {"data", required_argument, NULL, OPT_DATA},
    {"transport", required_argument, NULL, OPT_TRANSPORT},
    {"driver", required_argument, NULL, OPT_DRIVER},
    {"segments", required_argument, NULL, OPT_SEGMENTS},
    {"mtu", required_argument, NULL, OPT_MTU},
    {"loss", required_argument, NULL, OPT_LOSS},
    {"dup", required_argument, NULL, OPT_DUP},
    {"reorder", required_argument, NULL, OPT_REORDER},
    {"seed", required_argument, NULL, OPT_SEED},
    {"jobs", required_argument, NULL, OPT_JOBS},
    {"keyed", optional_argument, NULL, OPT_KEYED},
    {"key-seed", required_argument, NULL, OPT_KEY_SEED},
    {"in-process", no_argument, NULL, OPT_IN_PROCESS},
    {"controller", no_argument, NULL, OPT_CONTROLLER},
    {"switch", required_argument, NULL, OPT_SWITCH},
    {"kill", required_argument, NULL, OPT_KILL},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"limit", required_argument, NULL, OPT_LIMIT},
    {"window", required_argument, NULL, OPT_WINDOW},
    {"slots", required_argument, NULL, OPT_SLOTS},
    {"report", required_argument, NULL, OPT_REPORT},
    {"json", no_argument, NULL, OPT_JSON},
    {"keep", no_argument, NULL, OPT_KEEP},
    {"all", no_argument, NULL, OPT_ALL},
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

static int one_of(const char *option, const char *text, const char *const *words, const char **value)
{
    char list[128] = "";

    for (size_t i = 0; words[i] != NULL; i++) {
        if (strcmp(text, words[i]) == 0) {
            *value = text;
            return 0;
        }
        strncat(list, i ? ", " : "", sizeof(list) - strlen(list) - 1);
        strncat(list, words[i], sizeof(list) - strlen(list) - 1);
    }
    return by_cli_fail(BY_EXIT_USAGE, "%s %s: it is one of %s", option, text, list);
}

static int read_collectives(const char *text, struct lab_options *options)
{
    char copy[256], *rest = NULL;

    memset(options->collective, 0, sizeof(options->collective));
    options->collectives = text;
    for (unsigned i = 1; strcmp(text, "all") == 0 && i < BY_COLLECTIVE_COUNT; i++)
        options->collective[i] = true;
    if (strcmp(text, "all") == 0)
        return 0;
    if (text[0] == 0 || strlen(text) >= sizeof(copy))
        return by_cli_fail(BY_EXIT_USAGE, "--collective '%s': give all, or names with commas between", text);
    memcpy(copy, text, strlen(text) + 1);
    for (char *name = strtok_r(copy, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
        unsigned collective = by_collective_from_name(name);
        if (collective == 0)
            return by_cli_fail(
                BY_EXIT_USAGE,
                "--collective %s: there are allreduce, reduce-scatter, allgather, broadcast, reduce, barrier",
                name);
        options->collective[collective] = true;
    }
    return 0;
}

static int read_kill(char *text, struct lab_options *options)
{
    char *at = strrchr(text, '@'), *end = NULL;

    if (at != NULL)
        options->kill_seconds = strtod(at + 1, &end);
    if (at == NULL || at == text || at[1] < '0' || at[1] > '9' || *end != 0 ||
        !(options->kill_seconds >= 0 && options->kill_seconds <= 3600))
        return by_cli_fail(BY_EXIT_USAGE, "--kill %s: write NODE@SECONDS, such as leaf0@2", text);
    *at = 0;
    options->kill_node = text;
    return 0;
}

static int read_program(const char *text, struct lab_options *options)
{
    const char *equals = strchr(text, '=');

    if (equals == NULL || equals == text || strchr(equals, '/') == NULL)
        return by_cli_fail(BY_EXIT_USAGE, "--switch %s: write NODE=PROGRAM, the program with its folder",
                           text);
    if (options->program_count == LAB_PROGRAMS_MAX)
        return by_cli_fail(BY_EXIT_USAGE, "--switch %s: at most %u of these", text, LAB_PROGRAMS_MAX);
    options->program[options->program_count++] = text;
    return 0;
}

static int probability(const char *option, const char *text, const char **value)
{
    *value = text;
    return by_cli_probability(option, text);
}

static int read_fault(int option, const char *value, struct lab_options *options)
{
    uint64_t seed;

    switch (option) {
    case OPT_LOSS:
        return probability("--loss", value, &options->loss);
    case OPT_DUP:
        return probability("--dup", value, &options->dup);
    case OPT_REORDER:
        return probability("--reorder", value, &options->reorder);
    default:
        options->seed = value;
        return by_cli_number("--seed", value, 0, UINT64_MAX, &seed);
    }
}

static int read_work(int option, char *value, struct lab_options *options)
{
    uint64_t bytes;

    switch (option) {
    case 'c':
        if (options->collectives != NULL)
            return by_cli_repeated("-c", value);
        return read_collectives(value, options);
    case 'b':
        options->bytes = value;
        return by_cli_bytes("--bytes", value, 0, (uint64_t)1 << 36, &bytes);
    case 'n':
        return number("--iters", value, 1, 1000000, &options->iterations);
    case 'w':
        return number("--warmup", value, 0, 1000000, &options->warmup);
    case 'd':
        options->dtype = value;
        return by_dtype_from_name(value)
                   ? 0
                   : by_cli_fail(BY_EXIT_USAGE,
                                 "--dtype %s: there are i8, u8, i32, u32, i64, u64, f16, bf16, f32, f64",
                                 value);
    case 'o':
        options->op = value;
        return by_op_from_name(value)
                   ? 0
                   : by_cli_fail(BY_EXIT_USAGE, "--op %s: there are sum, prod, min, max, band, bor, bxor",
                                 value);
    case 'm':
        options->mode = by_mode_from_name(value);
        options->lower.det = options->mode == BY_MODE_DET;
        return options->mode != 0
                   ? 0
                   : by_cli_fail(BY_EXIT_USAGE, "--mode %s: there are fast, det, exact", value);
    default:
        return number("--root", value, 0, BY_RANKS_MAX, &options->root);
    }
}

/* Checks the parts of each rank; banyan-perf parses the same text again. */
static int read_counts(const char *text, struct lab_options *options)
{
    bool some = false;
    const char *at = text;

    for (options->count_count = 0;; at++) {
        size_t digits = strspn(at, "0123456789");

        if (digits == 0 || digits > 9 || (at[digits] != 0 && at[digits] != ','))
            break;
        some |= strspn(at, "0") < digits;
        options->count_count++;
        at += digits;
        if (*at == 0)
            break;
    }
    options->counts = text;
    if (*at == 0 && some)
        return 0;
    return by_cli_fail(
        BY_EXIT_USAGE,
        "--counts %s: give whole numbers below 10^9 with commas between, one for each rank, not all 0", text);
}

static int read_fabric(int option, char *value, struct lab_options *options)
{
    static const char *const transports[] = {"auto", "afxdp", "udp", "shm", NULL};
    static const char *const drivers[] = {"auto", "ring", "af_packet", "af_xdp", "xdp", "gso", NULL};
    static const char *const segments[] = {"whole", "cut", NULL};
    static const char *const data[] = {"exact", "random", NULL};
    const char *word = "";
    int status;

    switch (option) {
    case OPT_RANKS:
        options->ranks = value;
        return 0;
    case OPT_SHARES:
        options->shares = value;
        return 0;
    case OPT_COUNTS:
        return read_counts(value, options);
    case OPT_DATA:
        return one_of("--data", value, data, &options->data);
    case OPT_TRANSPORT:
        return one_of("--transport", value, transports, &options->transport);
    case OPT_DRIVER:
        return one_of("--driver", value, drivers, &options->driver);
    case OPT_SEGMENTS:
        status = one_of("--segments", value, segments, &word);
        options->cut = status == 0 && strcmp(word, "cut") == 0;
        return status;
    case OPT_MTU:
        return number("--mtu", value, 576, 9216, &options->lower.mtu);
    case OPT_WINDOW:
        return by_cli_window("--window", value, &options->lower.window);
    case OPT_SLOTS:
        return number("--slots", value, 1, 1u << 24, &options->lower.slots);
    case OPT_JOBS:
        return number("--jobs", value, 1, LAB_JOBS_MAX, &options->jobs);
    case OPT_KEYED:
        options->keys.keyed = 1;
        options->keys.cover = value;
        return 0;
    case OPT_KEY_SEED:
        options->keys.seed = value;
        return 0;
    case OPT_SWITCH:
        return read_program(value, options);
    case OPT_KILL:
        return read_kill(value, options);
    case OPT_TIMEOUT:
        return number("--timeout", value, 1, 3600, &options->stall_s);
    case OPT_LIMIT:
        return number("--limit", value, 1, 86400, &options->limit_s);
    default:
        return read_fault(option, value, options);
    }
}

static int read_one(int option, char *value, struct lab_options *options)
{
    switch (option) {
    case OPT_IN_PROCESS:
        options->in_process = true;
        return 0;
    case OPT_CONTROLLER:
        options->controller = true;
        return 0;
    case OPT_JSON:
        options->json = true;
        return 0;
    case OPT_KEEP:
        options->keep = true;
        return 0;
    case OPT_ALL:
        options->all = true;
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
        return option < 256 ? read_work(option, value, options) : read_fabric(option, value, options);
    }
}

/* Refuses options that cannot be passed to banyand. */
static int check_controller(const struct lab_options *options)
{
    const char *option = options->in_process         ? "--in-process"
                         : options->shares           ? "--shares"
                         : options->lower.window > 0 ? "--window"
                         : options->lower.slots > 0  ? "--slots"
                         : options->keys.seed        ? "--key-seed"
                                                     : NULL;

    return option == NULL
               ? 0
               : by_cli_fail(BY_EXIT_USAGE, "%s and --controller do not go together: leave one out", option);
}

/* Refuses work that banyan-perf would skip or cannot run, before anything starts. */
static int check_work(const struct lab_options *options)
{
    unsigned op = by_op_from_name(options->op), dtype = by_dtype_from_name(options->dtype);
    bool reduces = options->collective[BY_COLLECTIVE_ALLREDUCE] ||
                   options->collective[BY_COLLECTIVE_REDUCE] ||
                   options->collective[BY_COLLECTIVE_REDUCE_SCATTER];
    uint64_t bytes = 0;

    if (reduces && (by_reducer_get(BY_ISA_SCALAR, op, dtype) == NULL ||
                    by_reduction_dtype(options->mode, op, dtype) == 0))
        return by_cli_fail(BY_EXIT_USAGE,
                           "--op %s is not defined on --dtype %s in mode %s: choose another, or with -c "
                           "only allgather, broadcast and barrier",
                           options->op, options->dtype, by_mode_name(options->mode));
    if (by_cli_bytes("--bytes", options->bytes, 0, (uint64_t)1 << 36, &bytes) != 0)
        return BY_EXIT_USAGE;
    if (bytes > 0 && bytes < by_dtype_bytes(dtype))
        return by_cli_fail(BY_EXIT_USAGE, "--bytes %s: less than one element of %s: give 0, or %u or more",
                           options->bytes, options->dtype, by_dtype_bytes(dtype));
    return 0;
}

int lab_options_read(int argc, char **argv, struct lab_options *options)
{
    int option, status = 0;

    *options = (struct lab_options){.bytes = "16M",
                                    .dtype = "f32",
                                    .op = "sum",
                                    .mode = BY_MODE_FAST,
                                    .data = "exact",
                                    .transport = "auto",
                                    .driver = "auto",
                                    .iterations = 5,
                                    .warmup = 1,
                                    .jobs = 1,
                                    .stall_s = 10,
                                    .limit_s = 600};
    for (unsigned i = 1; i < BY_COLLECTIVE_COUNT; i++)
        options->collective[i] = true;
    optind = 0;
    while (status == 0 && (option = getopt_long(argc, argv, "c:b:n:w:d:o:r:m:", long_options, NULL)) != -1)
        status = read_one(option, optarg, options);
    if (status == 0)
        status = by_cli_keyed(&options->keys, &options->lower);
    if (options->collectives == NULL)
        options->collectives = "all";
    if (status == 0)
        status = check_work(options);
    if (status == 0 && options->controller)
        status = check_controller(options);
    if (status != 0)
        return status;
    if (options->lower.mtu == 0)
        options->lower.mtu = lab_has_shm(options) ? SHM_MTU : BY_LOWER_MTU;
    if (optind < argc)
        options->topology = argv[optind++];
    if (optind < argc)
        return by_cli_fail(BY_EXIT_USAGE, "'%s' is one argument too many; see banyan lab --help",
                           argv[optind]);
    options->cut =
        options->cut || strcmp(options->driver, "ring") == 0; /* the ring driver accepts only single frames */
    if (options->topology == NULL && strcmp(argv[0], "down") != 0)
        return by_cli_fail(BY_EXIT_USAGE, "lab %s needs a topology file; see banyan lab --help", argv[0]);
    return 0;
}
