/* The command line of banyan-perf: short options as in nccl-tests; K, M and G are binary. */
#include "host-driver/tools/perf/options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload/base/limits.h"
#include "offload/linux/options.h"
#include "offload/reduce/reduce.h"

#define COUNT_MAX 1000000u
#define PARTS_MAX 1000000000u

/* banyan explain calls the size --size. */
static const char *size_option(void)
{
    return strcmp(program_invocation_short_name, "banyan explain") == 0 ? "--size" : "-b";
}

/* A positive number or fraction: "12.5", "40/7". */
static int read_fraction(const char *text, double *value)
{
    char *end;
    double number = strtod(text, &end);

    if (end == text)
        return -1;
    if (*end == '/') {
        const char *below = end + 1;
        double denominator = strtod(below, &end);

        if (end == below || denominator <= 0)
            return -1;
        number /= denominator;
    }
    if (*end != 0 || !isfinite(number) || number <= 0)
        return -1;
    *value = number;
    return 0;
}

static int read_optimum(void *object, const char *text, struct by_option_why *why)
{
    static const char wanted[] =
        "it must be COLLECTIVE=NUMBER pairs separated by commas, in GB/s: allreduce=40/7,broadcast=10";
    struct perf_options *options = object;
    char copy[512];
    char *rest = NULL;

    if (strlen(text) >= sizeof(copy) || text[0] == 0)
        return by_option_refuse(why, "%s", wanted);
    memcpy(copy, text, strlen(text) + 1);
    for (char *pair = strtok_r(copy, ",", &rest); pair != NULL; pair = strtok_r(NULL, ",", &rest)) {
        char *equals = strchr(pair, '=');
        unsigned collective;

        if (equals == NULL)
            return by_option_refuse(why, "'%s': %s", pair, wanted);
        *equals = 0;
        collective = by_collective_from_name(pair);
        if (collective == 0 || read_fraction(equals + 1, &options->optimum[collective]) != 0) {
            *equals = '=';
            return by_option_refuse(why, "'%s': %s", pair, wanted);
        }
    }
    return 0;
}

/* Parts of each rank, as the sums over those before it. */
static int read_counts(void *object, const char *text, struct by_option_why *why)
{
    static const char wanted[] = "it must be whole numbers separated by commas, not all 0, one for each rank";
    struct perf_options *options = object;
    uint64_t sum = 0;
    char *end;

    perf_options_free(options);
    options->offsets = calloc(strlen(text) / 2 + 3, sizeof(*options->offsets));
    if (options->offsets == NULL)
        return by_option_refuse(why, "out of memory");
    do {
        uint64_t parts = strtoull(text, &end, 10);

        if (!isdigit((unsigned char)text[0]) || parts > PARTS_MAX || (*end != 0 && *end != ','))
            return by_option_refuse(why, "%s", wanted);
        sum += parts;
        options->offsets[++options->share_count] = sum;
        text = end + 1;
    } while (*end == ',');
    return sum > 0 ? 0 : by_option_refuse(why, "%s", wanted);
}

/* -i in place of -f. */
static int add_steps(void *object, const char *text, struct by_option_why *why)
{
    (void)text;
    (void)why;
    ((struct perf_options *)object)->step_factor = 0;
    return 0;
}

static const char *const check_words[] = {"1", "0"};
static const char *const data_words[] = {"exact", "random"};

#define SIZE_MAX_BYTES (UINT64_C(1) << 40)
#define DECIMAL_MAX    1000000000u

#define AT(member) BY_OPTION_AT(struct perf_options, member)

static const struct by_option rows[] = {
    {BY_ROW_LIST('c', "collective", "LIST", AT(collective), 1, BY_COLLECTIVE_COUNT - 1,
                 "run all, or some of %l, separated by commas (default: allreduce)"),
     .word = by_collective_name, .once = true},
    {BY_ROW_SIZE('b', "minbytes", "SIZE", AT(bytes_min), 0, SIZE_MAX_BYTES,
                 "start with SIZE bytes of data, %r; K, M, G are binary (default: 16M)")},
    {BY_ROW_SIZE('e', "maxbytes", "SIZE", AT(bytes_max), 0, SIZE_MAX_BYTES,
                 "end with this size (default: that of -b)")},
    {BY_ROW_NUMBER('f', "stepfactor", "N", AT(step_factor), 2, COUNT_MAX,
                   "multiply the size by N, %r (default: 2)")},
    {BY_ROW_SIZE('i', "stepbytes", "SIZE", AT(step_bytes), 0, SIZE_MAX_BYTES, "add SIZE to the size instead"),
     .call = add_steps},
    {BY_ROW_NUMBER('n', "iters", "N", AT(iterations), 1, COUNT_MAX,
                   "time N operations of each size, %r (default: 5)")},
    {BY_ROW_NUMBER('w', "warmup_iters", "N", AT(warmup), 0, COUNT_MAX,
                   "run N warm-up operations first, %r (default: 1)")},
    {BY_ROW_LIST('o', "op", "LIST", AT(op), 1, BY_OP_COUNT - 1,
                 "run all operators, or some of %l, separated by commas (default: sum)"),
     .word = by_op_name},
    {BY_ROW_LIST('d', "datatype", "LIST", AT(dtype), 1, BY_DTYPE_COUNT - 1,
                 "run all element types, or some of %l, separated by commas (default: f32)"),
     .word = by_dtype_name},
    {BY_ROW_CHOICE('m', "mode", "MODE", BY_OPTION_NONE, 1, BY_MODE_COUNT - 1,
                   "the order in which floats are added: %l (BANYAN_MODE)"),
     .text = AT(mode), .word = by_mode_name},
    {BY_ROW_NUMBER('r', "root", "RANK", AT(root), 0, COUNT_MAX,
                   "the root of broadcast and reduce (default: 0)")},
    {BY_ROW_CALL(
        0, "counts", "LIST", read_counts,
        "run allgather and reduce-scatter with shares of unequal size: parts of the data of each rank, "
        "such as 3,1,0,2 for four ranks")},
    {BY_ROW_NUMBER('z', "blocking", "0|1", AT(blocking), 0, 1,
                   "1: complete each operation before the next one is posted (default: 1)")},
    {BY_ROW_DECIMAL('T', "timeout", "SECONDS", BY_OPTION_NONE, 86400,
                    "fail an operation that makes no progress for this time (BANYAN_TIMEOUT)"),
     .text = AT(timeout)},
    {BY_ROW_TEXT('J', "report", "FILE", AT(report),
                 "write results and counters of this rank to FILE as JSON")},
    {BY_ROW_CHOICE(0, "check", "0|1", AT(unchecked), 0, 1,
                   "1: check every element of every result (default: 1)"),
     .words = check_words},
    {BY_ROW_FLAG(0, "json", AT(json), "print one JSON object instead of the table (rank 0)")},
    {BY_ROW_CHOICE(
         0, "data", "exact|random", AT(random_data), 0, 1,
         "exact: floats whose results are exact in any order; random: any floats, and results must lie "
         "within the error bound and be the same bits on all ranks (default: exact)"),
     .words = data_words},
    {BY_ROW_CALL(0, "optimum", "LIST", read_optimum,
                 "the proven optimum of each collective in GB/s: allreduce=40/7,broadcast=10")},
    {BY_ROW_TEXT(0, "in-process", "DIR", AT(folder),
                 "run all hosts and switches of the table images in DIR in this process")},
    {BY_ROW_TEXT(0, "table", "FILE", AT(table), "use this table image (BANYAN_TABLE)")},
    {BY_ROW_NUMBER(0, "job", "N", AT(job), 1, BY_JOBS_MAX - 1, "run job N of the table, %r (BANYAN_JOB)")},
    {BY_ROW_TEXT(0, "transport", "T", AT(transport),
                 "use transport auto, afxdp, udp, dpdk or shm (BANYAN_TRANSPORT)")},
    {BY_ROW_CHANCE(0, "loss", "P", BY_OPTION_NONE,
                   "lose received packets with this probability (BANYAN_LOSS)"),
     .text = AT(loss)},
    {BY_ROW_CHANCE(0, "dup", "P", BY_OPTION_NONE,
                   "duplicate received packets with this probability (BANYAN_DUP)"),
     .text = AT(dup)},
    {BY_ROW_CHANCE(0, "reorder", "P", BY_OPTION_NONE,
                   "reorder received packets with this probability (BANYAN_REORDER)"),
     .text = AT(reorder)},
    {BY_ROW_NUMBER(0, "seed", "N", BY_OPTION_NONE, 0, UINT64_MAX, "the seed of these faults (BANYAN_SEED)"),
     .text = AT(seed)},
    {BY_ROW_FLAG(0, "explain", AT(explain),
                 "print the path that each of these operations would take, and why: its trees or its "
                 "schedule between hosts, and the predicted time; then exit without connecting")},
    {BY_ROW_DECIMAL(0, "alpha", "US", AT(alpha_us), DECIMAL_MAX,
                    "with --explain: the time of a message between hosts, in microseconds")},
    {BY_ROW_DECIMAL(0, "beta", "NS", AT(beta_ns), DECIMAL_MAX,
                    "with --explain: the time of each byte of it, in nanoseconds")},
    {BY_ROW_FLAG(0, "settings", AT(settings), "print all BANYAN_* settings and exit (with --json as JSON)")},
    {0}};

static const struct by_options command_line = {
    .usage = "banyan-perf [options]",
    .about =
        "Runs collectives on all ranks of a job, checks every element against a scalar oracle and prints "
        "times. One process is one rank: its table image is BANYAN_TABLE. See banyan-perf(1).",
    .epilog = "Exit status: 0 all elements right; 1 wrong elements; 2 bad usage; 3 a switch, a rank or the "
              "system failed.",
    .version = "banyan-perf " BY_VERSION,
    .rows = rows};

/* Settings given as options become settings of the environment, where the library reads them. */
static int put_settings(const struct perf_options *options)
{
    const struct {
        const char *name, *value;
    } settings[] = {{"BANYAN_LOSS", options->loss},
                    {"BANYAN_DUP", options->dup},
                    {"BANYAN_REORDER", options->reorder},
                    {"BANYAN_SEED", options->seed},
                    {"BANYAN_TIMEOUT", options->timeout}};

    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        if (settings[i].value != NULL && setenv(settings[i].name, settings[i].value, 1) != 0) {
            fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, settings[i].name, strerror(errno));
            return PERF_ENVIRONMENT;
        }
    return -1;
}

static bool reduces(const struct perf_options *options)
{
    for (unsigned c = 1; c < BY_COLLECTIVE_COUNT; c++)
        if (options->collective[c] && by_collective_reduces(c))
            return true;
    return false;
}

static bool undefined(const char *option, const char *name, const char *others, banyan_mode_t mode)
{
    fprintf(stderr,
            "%s: %s %s: not defined with any %s in mode %s; choose another, or only allgather, "
            "broadcast and barrier with -c\n",
            program_invocation_short_name, option, name, others, by_mode_name((unsigned)mode));
    return false;
}

bool perf_options_defined(const struct perf_options *options, banyan_mode_t mode)
{
    bool op_runs[BY_OP_COUNT] = {false}, dtype_runs[BY_DTYPE_COUNT] = {false}, some = false;

    if (!reduces(options))
        return true;
    for (unsigned op = 1; op < BY_OP_COUNT; op++)
        for (unsigned dtype = 1; dtype < BY_DTYPE_COUNT; dtype++)
            if (options->op[op] && options->dtype[dtype] &&
                by_reducer_get(BY_ISA_SCALAR, op, dtype) != NULL &&
                by_reduction_dtype((unsigned)mode, op, dtype) != 0)
                op_runs[op] = dtype_runs[dtype] = some = true;
    for (unsigned op = 1; op < BY_OP_COUNT; op++)
        if (options->op[op] && !op_runs[op] && (!options->op[0] || !some))
            return undefined("-o", by_op_name(op), "data type of -d", mode);
    for (unsigned dtype = 1; dtype < BY_DTYPE_COUNT; dtype++)
        if (options->dtype[dtype] && !dtype_runs[dtype] && (!options->dtype[0] || !some))
            return undefined("-d", by_dtype_name(dtype), "operator of -o", mode);
    return true;
}

uint64_t perf_next_size(const struct perf_options *options, uint64_t bytes)
{
    if (options->step_factor == 0)
        return bytes + options->step_bytes;
    return bytes == 0 ? 1 : bytes * options->step_factor;
}

void perf_options_free(struct perf_options *options)
{
    free(options->offsets);
    options->offsets = NULL;
    options->share_count = 0;
}

int perf_options_read(struct perf_options *options, int argc, char **argv)
{
    int status;

    memset(options, 0, sizeof(*options));
    options->collective[BY_COLLECTIVE_ALLREDUCE] = true;
    options->op[BY_OP_SUM] = true;
    options->dtype[BY_DTYPE_F32] = true;
    options->bytes_min = 16u << 20;
    options->step_factor = 2;
    options->iterations = 5;
    options->warmup = 1;
    options->blocking = true;
    status = by_options_read(&command_line, options, &argc, argv);
    if (status >= 0)
        return status;
    if (options->bytes_max == 0)
        options->bytes_max = options->bytes_min;
    if (options->bytes_max < options->bytes_min) {
        fprintf(stderr, "%s: -e is below -b; raise -e or reduce -b\n", program_invocation_short_name);
        return PERF_USAGE;
    }
    for (unsigned dtype = 1; dtype < BY_DTYPE_COUNT; dtype++)
        if (options->dtype[dtype] && options->bytes_min > 0 && options->bytes_min < by_dtype_bytes(dtype)) {
            fprintf(stderr, "%s: %s %llu: less than one element of %s; use 0, or %u or more\n",
                    program_invocation_short_name, size_option(), (unsigned long long)options->bytes_min,
                    by_dtype_name(dtype), by_dtype_bytes(dtype));
            return PERF_USAGE;
        }
    if (options->step_factor == 0 && options->step_bytes == 0)
        options->step_bytes = options->bytes_max - options->bytes_min + 1;
    return put_settings(options);
}
