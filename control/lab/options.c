/* Parses the command line of `banyan lab`. See lab.h. */
#include <stdlib.h>
#include <string.h>

#include "control/lab/lab.h"
#include "offload/reduce/reduce.h"
#include "offload/wire/stripe.h"

/* Default MTU if links are shared memory, which allows packets of the maximum size (bytes). */
#define SHM_MTU 9000u
/* Default MTU with --series, where each frame costs processor time at every node (bytes). */
#define SERIES_MTU 9000u
/* Default window where links carry GSO batches of frames up to this MTU whole (bytes, chunks): a
 * batch has some 40 chunks, so that with fewer in flight processes wait for each other. Longer
 * frames fill the caches. */
#define BATCHED_MTU    1900u
#define BATCHED_WINDOW 512u

static const struct lab_options usual = {.bytes = "16M",
                                         .size = 16u << 20,
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

static int read_kill(void *object, const char *text, struct by_option_why *why)
{
    struct lab_options *options = object;
    char *file = strstr(text, "@/"), *at = file != NULL ? file : strrchr(text, '@'), *end = NULL;
    bool good = at != NULL && at != text;

    options->kill_file = file != NULL ? file + 1 : NULL;
    if (good && file == NULL) {
        options->kill_seconds = strtod(at + 1, &end);
        good = at[1] >= '0' && at[1] <= '9' && *end == 0 && options->kill_seconds >= 0 &&
               options->kill_seconds <= 3600;
    }
    if (!good)
        return by_option_refuse(
            why, "it must be NODE@SECONDS, such as leaf0@2, or NODE@FILE with the absolute path of a file");
    *at = 0;
    options->kill_node = text;
    return 0;
}

/* Checks the processes on each host, "2" or "3,1,2,2". */
static int read_each(void *object, const char *text, struct by_option_why *why)
{
    struct lab_options *options = object;
    const char *at = text;
    bool good = true;

    options->ranks_each = text;
    options->ranks_each_count = options->ranks_each_sum = 0;
    while (good) {
        size_t digits = strspn(at, "0123456789");
        unsigned long number = digits > 0 && digits < 4 ? strtoul(at, NULL, 10) : 0;

        options->ranks_each_count++;
        options->ranks_each_sum += (uint32_t)number;
        at += digits;
        good = number >= 1 && number <= LAB_EACH_MAX && options->ranks_each_sum <= LAB_RANKS_MAX;
        if (*at != ',')
            break;
        at++;
    }
    if (good && *at == 0)
        return 0;
    return by_option_refuse(why,
                            "it must be whole numbers from 1 to 64 with commas between, at most 512 in all");
}

static int check_program(void *object, const char *text, struct by_option_why *why)
{
    const char *equals = strchr(text, '=');

    (void)object;
    return equals != NULL && equals != text && strchr(equals, '/') != NULL
               ? 0
               : by_option_refuse(why, "it must be NODE=PROGRAM, the program with its folder");
}

/* Checks the parts of each rank; banyan-perf parses the same text again. */
static int read_counts(void *object, const char *text, struct by_option_why *why)
{
    struct lab_options *options = object;
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
    return by_option_refuse(
        why, "it must be whole numbers below 10^9 with commas between, one for each rank, not all 0");
}

static const char *const transports[] = {"auto", "afxdp", "udp", "dpdk", "shm"};
static const char *const drivers[] = {"auto", "ring", "af_packet", "af_xdp", "xdp", "gso"};
static const char *const segments[] = {"whole", "cut"};
static const char *const data[] = {"exact", "random"};

#define AT(member) BY_OPTION_AT(struct lab_options, member)

static const struct by_option rows[] = {
    {BY_ROW_LIST('c', "collective", "LIST", AT(collective), 1, BY_COLLECTIVE_COUNT - 1,
                 "run all, or some of %l (default all)"),
     .text = AT(collectives), .word = by_collective_name, .once = true},
    {BY_ROW_SIZE('b', "bytes", "SIZE", AT(size), 0, UINT64_C(1) << 36,
                 "the data of each collective, %r; K, M, G are binary (default 16M)"),
     .text = AT(bytes)},
    {BY_ROW_NUMBER('n', "iters", "N", AT(iterations), 1, 1000000, "time N operations, %r (default 5)")},
    {BY_ROW_NUMBER('w', "warmup", "N", AT(warmup), 0, 1000000,
                   "run N operations before those, %r (default 1)")},
    {BY_ROW_CHOICE('d', "dtype", "TYPE", BY_OPTION_NONE, 1, BY_DTYPE_COUNT - 1,
                   "the element type: %l (default f32)"),
     .text = AT(dtype), .word = by_dtype_name},
    {BY_ROW_CHOICE('o', "op", "OP", BY_OPTION_NONE, 1, BY_OP_COUNT - 1, "the operator: %l (default sum)"),
     .text = AT(op), .word = by_op_name},
    {BY_ROW_NUMBER('r', "root", "RANK", AT(root), 0, BY_RANKS_MAX,
                   "the root of broadcast and reduce (default 0)")},
    {BY_ROW_TEXT(0, "ranks", "LIST", AT(ranks),
                 "use these compute nodes only, A,B,C or @FILE; ranks are numbered among them")},
    {BY_ROW_TEXT(
        0, "shares", "FILE", AT(shares),
        "plan and run allgather and reduce-scatter with shares of unequal size: as for banyan plan")},
    {BY_ROW_CALL(
        0, "counts", "LIST", read_counts,
        "run with these parts of each rank, such as 3,1,0,2, independent of the plan (default: those of "
        "--shares)")},
    {BY_ROW_CHOICE('m', "mode", "MODE", AT(mode), 1, BY_MODE_COUNT - 1,
                   "the order in which floats are added: %l (default fast)"),
     .word = by_mode_name},
    {BY_ROW_CHOICE(0, "data", "DATA", BY_OPTION_NONE, 0, 1, "%l, as for banyan-perf (default exact)"),
     .text = AT(data), .words = data},
    {BY_ROW_CHOICE(
         0, "transport", "T", BY_OPTION_NONE, 0, 4,
         "the transport of the hosts: %l (default auto; udp with several jobs); shm: hosts share memory "
         "with their switches, and links to them are memory"),
     .text = AT(transport), .words = transports},
    {BY_ROW_CHOICE(0, "driver", "DRIVER", BY_OPTION_NONE, 0, 5,
                   "the driver of the switches: %l (default auto)"),
     .text = AT(driver), .words = drivers},
    {BY_ROW_NUMBER(0, "cores", "N", AT(cores), 1, BY_WORKERS_MAX,
                   "run each switch with N workers, %r (default 1); they share this machine's cores")},
    {BY_ROW_CHOICE(
         0, "segments", "HOW", AT(cut), 0, 1,
         "carry bursts of packets over links whole (default), as segmentation offload does, or cut them "
         "into frames of the MTU"),
     .words = segments},
    BY_CLI_SITE_ROW(site),
    {BY_ROW_NUMBER(0, "mtu", "N", AT(lower.mtu), 576, 9216,
                   "the MTU of every link, %r (default 1500; 9000 with --transport shm or --series)")},
    {BY_ROW_CHANCE(0, "loss", "P", BY_OPTION_NONE,
                   "lose packets with this probability at every switch (at hosts if the fabric has no "
                   "switch)"),
     .text = AT(loss)},
    {BY_ROW_CHANCE(0, "dup", "P", BY_OPTION_NONE, "duplicate packets with this probability"),
     .text = AT(dup)},
    {BY_ROW_CHANCE(0, "reorder", "P", BY_OPTION_NONE, "reorder packets with this probability"),
     .text = AT(reorder)},
    {BY_ROW_NUMBER(0, "seed", "N", BY_OPTION_NONE, 0, UINT64_MAX, "the seed of these faults (default 1)"),
     .text = AT(seed)},
    {BY_ROW_CALL(
        0, "ranks-per-host", "LIST", read_each,
        "start several processes of PROGRAM on each host: one number for all hosts, or one for each, "
        "with commas between")},
    {BY_ROW_TEXT(0, "series", "FILE", AT(series),
                 "run PROGRAM over the paths of the schedule in FILE, of banyan steady or banyan plan: hosts "
                 "move the data over TCP, and switches are IP routers")},
    {BY_ROW_SIZE(0, "rate", "SIZE", AT(rate), 1u << 10, 1u << 30,
                 "with --series: limit each link to SIZE bytes a second for each unit of its bandwidth, %r "
                 "(default: no limit)")},
    {BY_ROW_NUMBER(0, "jobs", "N", AT(jobs), 1, LAB_JOBS_MAX,
                   "run N jobs at once on the same switches, %r (default 1)")},
    BY_CLI_KEYED_ROWS(keys),
    {BY_ROW_FLAG(0, "in-process", AT(in_process), "run all in one process, without namespaces and root")},
    {BY_ROW_FLAG(
        0, "controller", AT(controller),
        "let a banyand make and maintain the jobs, in place of one push: hosts get their tables from it, "
        "and continue after the failure of a switch or link that others can replace")},
    {BY_ROW_TEXT(0, "switch", "NODE=PROGRAM", AT(program),
                 "run PROGRAM on that switch, with the options of banyan-switchd; for example the program "
                 "of a board without an operating system (build/boards/BOARD/run); may be repeated"),
     .count = AT(program_count), .call = check_program},
    {BY_ROW_CALL(0, "kill", "NODE@S", read_kill,
                 "kill the switch NODE after S seconds of the run, or when the file S, a path, exists")},
    {BY_ROW_NUMBER(0, "timeout", "S", AT(stall_s), 1, 3600,
                   "fail an operation that makes no progress for S seconds, %r (default 10)")},
    {BY_ROW_NUMBER(0, "limit", "S", AT(limit_s), 1, 86400, "end the run after S seconds, %r (default 600)")},
    BY_CLI_WINDOW_ROW(lower.window, "slots of a tree at a node, %r: as for banyan tables"),
    {BY_ROW_NUMBER(0, "slots", "N", AT(lower.slots), 1, 1u << 24, "slots of one node: as for banyan tables")},
    {BY_ROW_TEXT(0, "report", "FILE", AT(report), "write the whole report to FILE as JSON")},
    {BY_ROW_FLAG(0, "json", AT(json), "print the report as one JSON object")},
    {BY_ROW_FLAG(0, "keep", AT(keep), "keep the folder with tables, logs and reports")},
    {BY_ROW_FLAG(0, "all", AT(all), "down: remove every lab of this machine")},
    {0}};

static const struct by_options command_line = {
    .program = "banyan lab",
    .usage = "banyan lab run TOPO [options]     build the fabric, run collectives on it, check, tear down\n"
             "banyan lab run TOPO [options] -- PROGRAM [ARGUMENT...]\n"
             "                                  run PROGRAM on each host instead of banyan-perf\n"
             "banyan lab up TOPO [options]      build it with its tables loaded, and leave it\n"
             "banyan lab down [TOPO|ID] [--all] remove what `up`, or a crash, left",
    .about =
        "Makes a network namespace for each node and a veth pair for each link, and runs banyan-switchd on "
        "each switch, banyan-perf or PROGRAM on each host. Requires root, except with --in-process, which runs all in "
        "one process over memory.",
    .epilog =
        "Exit status: 0 if every element is right; 1 after wrong elements; 2 after bad usage or input; 3 if "
        "a switch, a host or the system failed.",
    .rows = rows,
    .least = 1,
    .most = 2,
    .operands = "run, up or down",
    .rest = true};

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
               : by_cli_fail(BY_EXIT_USAGE, "%s and --controller cannot be combined: leave out one", option);
}

/* Takes the program of a user, and refuses what only banyan-perf can do. */
static int take_command(char **command, struct lab_options *options)
{
    const char *option = strcmp(options->verb, "run") != 0 ? options->verb
                         : options->in_process             ? "--in-process"
                         : options->json                   ? "--json"
                         : options->report != NULL         ? "--report"
                         : options->counts != NULL         ? "--counts"
                                                           : NULL;

    if (option != NULL)
        return by_cli_fail(BY_EXIT_USAGE,
                           "%s and a program ('%.60s') cannot be combined: `banyan lab run TOPO -- PROGRAM` "
                           "runs it on each host",
                           option, command[0]);
    options->command = command;
    return 0;
}

static bool is_other(const char *text, const char *value)
{
    return strcmp(text, value) != 0;
}

/* Refuses options without effect in a lab with a schedule, which has neither plans nor switches of
 * banyan. */
static int check_series(const struct lab_options *options, bool has_command)
{
    const struct {
        bool given;
        const char *name;
    } others[] = {{options->in_process, "--in-process"},
                  {options->controller, "--controller"},
                  {options->collectives != NULL, "--collective"},
                  {is_other(options->bytes, usual.bytes), "--bytes"},
                  {options->iterations != usual.iterations, "--iters"},
                  {options->warmup != usual.warmup, "--warmup"},
                  {is_other(options->dtype, usual.dtype), "--dtype"},
                  {is_other(options->op, usual.op), "--op"},
                  {options->root != usual.root, "--root"},
                  {options->shares != NULL, "--shares"},
                  {options->counts != NULL, "--counts"},
                  {options->mode != usual.mode, "--mode"},
                  {is_other(options->data, usual.data), "--data"},
                  {is_other(options->transport, usual.transport), "--transport"},
                  {is_other(options->driver, usual.driver), "--driver"},
                  {options->cores != 0, "--cores"},
                  {options->cut, "--segments"},
                  {options->site != NULL, "--site"},
                  {options->loss != NULL, "--loss"},
                  {options->dup != NULL, "--dup"},
                  {options->reorder != NULL, "--reorder"},
                  {options->seed != NULL, "--seed"},
                  {options->ranks_each != NULL, "--ranks-per-host"},
                  {options->jobs != usual.jobs, "--jobs"},
                  {options->keys.keyed || options->keys.cover != NULL, "--keyed"},
                  {options->keys.seed != NULL, "--key-seed"},
                  {options->program_count > 0, "--switch"},
                  {options->kill_node != NULL, "--kill"},
                  {options->lower.window != 0, "--window"},
                  {options->lower.slots != 0, "--slots"},
                  {options->report != NULL, "--report"},
                  {options->json, "--json"}};

    if (options->series == NULL)
        return options->rate == 0
                   ? 0
                   : by_cli_fail(BY_EXIT_USAGE,
                                 "--rate limits the links of a lab with a schedule: give --series too");
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (others[i].given)
            return by_cli_fail(BY_EXIT_USAGE,
                               "%s and --series cannot be combined: with a schedule there are no tables, "
                               "and one process of the program on each host",
                               others[i].name);
    if (!has_command || strcmp(options->verb, "run") != 0)
        return by_cli_fail(BY_EXIT_USAGE,
                           "--series requires a program: `banyan lab run TOPO --series FILE -- "
                           "PROGRAM` runs it on each host");
    return 0;
}

/* Refuses work that banyan-perf would skip or cannot run, before anything starts. */
static int check_work(const struct lab_options *options)
{
    unsigned op = by_op_from_name(options->op), dtype = by_dtype_from_name(options->dtype);
    bool reduces = options->collective[BY_COLLECTIVE_ALLREDUCE] ||
                   options->collective[BY_COLLECTIVE_REDUCE] ||
                   options->collective[BY_COLLECTIVE_REDUCE_SCATTER];

    if (reduces && (by_reducer_get(BY_ISA_SCALAR, op, dtype) == NULL ||
                    by_reduction_dtype(options->mode, op, dtype) == 0))
        return by_cli_fail(BY_EXIT_USAGE,
                           "--op %s is not defined on --dtype %s in mode %s: choose another, or with -c "
                           "only allgather, broadcast and barrier",
                           options->op, options->dtype, by_mode_name(options->mode));
    if (options->size > 0 && options->size < by_dtype_bytes(dtype))
        return by_cli_fail(BY_EXIT_USAGE, "--bytes %s: less than one element of %s: give 0, or %u or more",
                           options->bytes, options->dtype, by_dtype_bytes(dtype));
    return 0;
}

int lab_options_read(int argc, char **argv, struct lab_options *options)
{
    int status;

    *options = usual;
    for (unsigned i = 1; i < BY_COLLECTIVE_COUNT; i++)
        options->collective[i] = true;
    status = by_options_read(&command_line, options, &argc, argv);
    if (status >= 0)
        return status == 0 ? -1 : status;
    options->verb = argv[1];
    options->topology = argc > 2 ? argv[2] : NULL;
    status = check_series(options, argc > 3);
    if (status == 0 && argc > 3)
        status = take_command(argv + 3, options);
    if (status != 0)
        return status;
    if (status == 0 && options->ranks_each != NULL && options->command == NULL)
        status = by_cli_fail(
            BY_EXIT_USAGE, "--ranks-per-host requires a program: `banyan lab run TOPO --ranks-per-host N -- "
                           "PROGRAM`; banyan-perf is one");
    if (status != 0)
        return status;
    options->lower.det = options->mode == BY_MODE_DET;
    status = by_cli_keyed(&options->keys, &options->lower);
    if (options->collectives == NULL)
        options->collectives = "all";
    if (status == 0)
        status = check_work(options);
    if (status == 0 && options->controller)
        status = check_controller(options);
    if (status != 0)
        return status;
    if (options->lower.mtu == 0 && options->site == NULL)
        options->lower.mtu = options->series != NULL ? SERIES_MTU
                             : lab_has_shm(options)  ? SHM_MTU
                                                     : BY_LOWER_MTU;
    options->cut =
        options->cut || strcmp(options->driver, "ring") == 0; /* the ring driver accepts only single frames */
    if (options->lower.window == 0 && !options->controller && !options->in_process && lab_has_gso(options) &&
        !options->cut && options->lower.mtu != 0 && options->lower.mtu <= BATCHED_MTU)
        options->lower.window = BATCHED_WINDOW;
    if (strcmp(options->verb, "run") != 0 && strcmp(options->verb, "up") != 0 &&
        strcmp(options->verb, "down") != 0)
        return by_cli_fail(BY_EXIT_USAGE,
                           "lab '%.40s': give run, up or down; `banyan lab --help` lists the options",
                           options->verb);
    if (options->topology == NULL && strcmp(options->verb, "down") != 0)
        return by_cli_fail(BY_EXIT_USAGE,
                           "lab %s requires a topology file; `banyan lab --help` lists the options",
                           options->verb);
    return 0;
}
