/* The command line of banyan-perf: short options as in nccl-tests; K, M and G are binary. */
#include "host-driver/tools/perf/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload/base/limits.h"
#include "offload/reduce/reduce.h"

#define COUNT_MAX 1000000u
#define PARTS_MAX 1000000000u

static const char usage[] =
    "usage: banyan-perf [options]\n"
    "Runs collectives on all ranks of a job, checks every element against a scalar oracle and prints times.\n"
    "One process is one rank: its table image is BANYAN_TABLE. See banyan-perf(1).\n"
    "\n"
    "  -c, --collective LIST   all, or some of allreduce, reduce-scatter, allgather, broadcast, reduce, "
    "barrier\n"
    "                          with commas between (default: allreduce)\n"
    "  -b, --minbytes SIZE     least size of the data in bytes; K, M, G are binary (default: 16M)\n"
    "  -e, --maxbytes SIZE     largest size (default: that of -b)\n"
    "  -f, --stepfactor N      next size = size * N (default: 2)\n"
    "  -i, --stepbytes SIZE    next size = size + SIZE\n"
    "  -n, --iters N           operations timed for each size (default: 5)\n"
    "  -w, --warmup_iters N    operations before those (default: 1)\n"
    "  -o, --op LIST           sum, prod, min, max, band, bor, bxor or all (default: sum)\n"
    "  -d, --datatype LIST     i8, u8, i32, u32, i64, u64, f16, bf16, f32, f64 or all (default: f32)\n"
    "  -m, --mode MODE         in which order floats are added: fast, det or exact (BANYAN_MODE)\n"
    "  -r, --root RANK         of broadcast and reduce (default: 0)\n"
    "      --counts LIST       allgather and reduce-scatter with shares of unequal size: parts of the data "
    "of "
    "each rank,\n"
    "                          such as 3,1,0,2 for four ranks\n"
    "  -z, --blocking 0|1      1: each operation ends before the next one is posted (default: 1)\n"
    "  -T, --timeout SECONDS   an operation without progress fails after this (BANYAN_TIMEOUT)\n"
    "  -J, --report FILE       write results and counters of this rank as JSON\n"
    "      --check 0|1         1: every element of every result is checked (default: 1)\n"
    "      --json              print one JSON object instead of the table (rank 0)\n"
    "      --data exact|random exact: floats whose results are exact in any order; random: any floats, and "
    "results must lie\n"
    "                          within the error bound and be the same bits on all ranks (default: exact)\n"
    "      --optimum LIST      proven optimum of each collective in GB/s: allreduce=40/7,broadcast=10\n"
    "      --in-process DIR    run all hosts and switches of the table images in DIR in this process\n"
    "      --table FILE        table image (BANYAN_TABLE)\n"
    "      --job N             job of the table (BANYAN_JOB)\n"
    "      --transport T       auto, afxdp or udp (BANYAN_TRANSPORT)\n"
    "      --loss P, --dup P, --reorder P, --seed N\n"
    "                          faults injected where packets are received (BANYAN_LOSS, ...)\n"
    "      --explain           say what each of these operations would do, and why, and end: over which "
    "trees "
    "or how\n"
    "                          between hosts, when by the optimum; connects to nobody\n"
    "      --alpha US, --beta NS  with it: what a message between hosts takes, and each byte\n"
    "      --settings          print all BANYAN_* settings and end (with --json as JSON)\n"
    "      --help, --version\n"
    "\n"
    "Exit status: 0 right; 1 wrong elements; 2 bad usage; 3 a switch, a rank or the system fails.\n";

enum {
    OPT_JSON = 256,
    OPT_CHECK,
    OPT_COUNTS,
    OPT_DATA,
    OPT_OPTIMUM,
    OPT_IN_PROCESS,
    OPT_TABLE,
    OPT_JOB,
    OPT_TRANSPORT,
    OPT_LOSS,
    OPT_DUP,
    OPT_REORDER,
    OPT_SEED,
    OPT_SETTINGS,
    OPT_EXPLAIN,
    OPT_ALPHA,
    OPT_BETA,
    OPT_HELP,
    OPT_VERSION
};

static const struct option long_options[] = {{"collective", required_argument, NULL, 'c'},
                                             {"minbytes", required_argument, NULL, 'b'},
                                             {"maxbytes", required_argument, NULL, 'e'},
                                             {"stepfactor", required_argument, NULL, 'f'},
                                             {"stepbytes", required_argument, NULL, 'i'},
                                             {"iters", required_argument, NULL, 'n'},
                                             {"warmup_iters", required_argument, NULL, 'w'},
                                             {"op", required_argument, NULL, 'o'},
                                             {"datatype", required_argument, NULL, 'd'},
                                             {"mode", required_argument, NULL, 'm'},
                                             {"root", required_argument, NULL, 'r'},
                                             {"blocking", required_argument, NULL, 'z'},
                                             {"timeout", required_argument, NULL, 'T'},
                                             {"report", required_argument, NULL, 'J'},
                                             {"check", required_argument, NULL, OPT_CHECK},
                                             {"json", no_argument, NULL, OPT_JSON},
                                             {"counts", required_argument, NULL, OPT_COUNTS},
                                             {"data", required_argument, NULL, OPT_DATA},
                                             {"optimum", required_argument, NULL, OPT_OPTIMUM},
                                             {"in-process", required_argument, NULL, OPT_IN_PROCESS},
                                             {"table", required_argument, NULL, OPT_TABLE},
                                             {"job", required_argument, NULL, OPT_JOB},
                                             {"transport", required_argument, NULL, OPT_TRANSPORT},
                                             {"loss", required_argument, NULL, OPT_LOSS},
                                             {"dup", required_argument, NULL, OPT_DUP},
                                             {"reorder", required_argument, NULL, OPT_REORDER},
                                             {"seed", required_argument, NULL, OPT_SEED},
                                             {"explain", no_argument, NULL, OPT_EXPLAIN},
                                             {"alpha", required_argument, NULL, OPT_ALPHA},
                                             {"beta", required_argument, NULL, OPT_BETA},
                                             {"settings", no_argument, NULL, OPT_SETTINGS},
                                             {"help", no_argument, NULL, OPT_HELP},
                                             {"version", no_argument, NULL, OPT_VERSION},
                                             {NULL, 0, NULL, 0}};

static int bad(const char *option, const char *value, const char *wanted)
{
    fprintf(stderr, "%s: %s '%s': it takes %s\n", program_invocation_short_name, option, value, wanted);
    return -1;
}

/* `banyan explain` names the size option --size. */
static const char *size_option(void)
{
    return strcmp(program_invocation_short_name, "banyan explain") == 0 ? "--size" : "-b";
}

static int read_number(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    char wanted[96];
    char *end;

    errno = 0;
    *value = strtoull(text, &end, 10);
    if (isdigit((unsigned char)text[0]) && *end == 0 && errno == 0 && *value >= least && *value <= most)
        return 0;
    snprintf(wanted, sizeof(wanted), "a whole number from %llu to %llu", (unsigned long long)least,
             (unsigned long long)most);
    return bad(option, text, wanted);
}

static int read_count(const char *option, const char *text, uint64_t least, uint32_t *value)
{
    uint64_t number;

    if (read_number(option, text, least, COUNT_MAX, &number) != 0)
        return -1;
    *value = (uint32_t)number;
    return 0;
}

/* Parses bytes with an optional binary suffix K, M or G, and an optional B. */
static int read_size(const char *option, const char *text, uint64_t *value)
{
    char *end;
    unsigned shift = 0;

    errno = 0;
    *value = strtoull(text, &end, 10);
    switch (toupper((unsigned char)*end)) {
    case 'K':
        shift = 10;
        break;
    case 'M':
        shift = 20;
        break;
    case 'G':
        shift = 30;
        break;
    default:
        break;
    }
    if (shift > 0)
        end++;
    if (toupper((unsigned char)*end) == 'B')
        end++;
    if (!isdigit((unsigned char)text[0]) || *end != 0 || errno != 0 || *value > (1ull << 40 >> shift))
        return bad(option, text, "bytes, at most 1024G, with K, M or G behind for binary thousands");
    *value <<= shift;
    return 0;
}

/* Parses a comma-separated list of names for `from_name`, or "all". */
static int read_list(const char *option, const char *text, unsigned (*from_name)(const char *), bool *set,
                     unsigned count, const char *wanted)
{
    char copy[256];
    char *rest = NULL;
    bool named = false;

    memset(set, 0, count * sizeof(*set));
    if (strcmp(text, "all") == 0) {
        for (unsigned i = 1; i < count; i++)
            set[i] = true;
        return 0;
    }
    if (strlen(text) >= sizeof(copy) || text[0] == 0)
        return bad(option, text, wanted);
    memcpy(copy, text, strlen(text) + 1);
    for (char *name = strtok_r(copy, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
        unsigned value = from_name(name);

        if (value == 0)
            return bad(option, name, wanted);
        set[value] = true;
        named = true;
    }
    return named ? 0 : bad(option, text, wanted);
}

/* Parses a positive number or fraction: "12.5", "40/7". */
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

static int read_optimum(const char *text, struct perf_options *options)
{
    static const char wanted[] =
        "COLLECTIVE=NUMBER pairs with commas between, in GB/s: allreduce=40/7,broadcast=10";
    char copy[512];
    char *rest = NULL;

    if (strlen(text) >= sizeof(copy) || text[0] == 0)
        return bad("--optimum", text, wanted);
    memcpy(copy, text, strlen(text) + 1);
    for (char *pair = strtok_r(copy, ",", &rest); pair != NULL; pair = strtok_r(NULL, ",", &rest)) {
        char *equals = strchr(pair, '=');
        unsigned collective;

        if (equals == NULL)
            return bad("--optimum", pair, wanted);
        *equals = 0;
        collective = by_collective_from_name(pair);
        if (collective == 0 || read_fraction(equals + 1, &options->optimum[collective]) != 0) {
            *equals = '=';
            return bad("--optimum", pair, wanted);
        }
    }
    return 0;
}

/* Options for settings are written to the environment, from which the library reads and checks
 * them. */
static int put_setting(const char *name, const char *value)
{
    if (setenv(name, value, 1) == 0)
        return 0;
    return bad(name, value, "a text that the environment can hold");
}

static int read_data(const char *text, bool *random_data)
{
    *random_data = strcmp(text, "random") == 0;
    return *random_data || strcmp(text, "exact") == 0 ? 0 : bad("--data", text, "exact or random");
}

static int read_positive(const char *option, const char *text, const char *wanted, double *value)
{
    char *end;

    *value = strtod(text, &end);
    return isdigit((unsigned char)text[0]) && text[1] != 'x' && *end == 0 && *value > 0 && *value < 1e9
               ? 0
               : bad(option, text, wanted);
}

static int read_environment_option(struct perf_options *options, int option, const char *value)
{
    uint64_t number;
    double seconds;

    switch (option) {
    case OPT_IN_PROCESS:
        options->folder = value;
        return 0;
    case OPT_TABLE:
        options->table = value;
        return 0;
    case OPT_JOB:
        if (read_number("--job", value, 1, BY_JOBS_MAX - 1, &number) != 0)
            return -1;
        options->job = (uint32_t)number;
        return 0;
    case OPT_TRANSPORT:
        options->transport = value;
        return 0;
    case OPT_LOSS:
        return put_setting("BANYAN_LOSS", value);
    case OPT_DUP:
        return put_setting("BANYAN_DUP", value);
    case OPT_REORDER:
        return put_setting("BANYAN_REORDER", value);
    case OPT_SEED:
        return put_setting("BANYAN_SEED", value);
    case 'T':
        if (read_positive("-T", value, "seconds, more than 0", &seconds) != 0)
            return -1;
        return put_setting("BANYAN_TIMEOUT", value);
    default:
        return -1;
    }
}

/* Parses the shares of the ranks, stored as prefix sums. */
static int read_counts(const char *text, struct perf_options *options)
{
    static const char wanted[] = "whole numbers with commas between, not all 0, as many as there are ranks";
    uint64_t sum = 0;
    char *end;

    perf_options_free(options);
    options->offsets = calloc(strlen(text) / 2 + 3, sizeof(*options->offsets));
    if (options->offsets == NULL)
        return bad("--counts", text, "less memory");
    do {
        uint64_t parts = strtoull(text, &end, 10);

        if (!isdigit((unsigned char)text[0]) || parts > PARTS_MAX || (*end != 0 && *end != ','))
            return bad("--counts", text, wanted);
        sum += parts;
        options->offsets[++options->share_count] = sum;
        text = end + 1;
    } while (*end == ',');
    return sum > 0 ? 0 : bad("--counts", "0", wanted);
}

static int read_option(struct perf_options *options, int option, const char *value)
{
    uint64_t number;

    switch (option) {
    case 'c':
        if (options->collectives_given)
            return bad("-c", value, "one list: -c is given twice; put commas between the names");
        options->collectives_given = true;
        return read_list(
            "-c", value, by_collective_from_name, options->collective, BY_COLLECTIVE_COUNT,
            "all, or allreduce, reduce-scatter, allgather, broadcast, reduce, barrier with commas between");
    case 'o':
        options->all_ops = strcmp(value, "all") == 0;
        return read_list("-o", value, by_op_from_name, options->op, BY_OP_COUNT,
                         "all, or sum, prod, min, max, band, bor, bxor with commas between");
    case 'd':
        options->all_dtypes = strcmp(value, "all") == 0;
        return read_list("-d", value, by_dtype_from_name, options->dtype, BY_DTYPE_COUNT,
                         "all, or i8, u8, i32, u32, i64, u64, f16, bf16, f32, f64 with commas between");
    case 'b':
        return read_size(size_option(), value, &options->bytes_min);
    case 'e':
        return read_size("-e", value, &options->bytes_max);
    case 'f':
        return read_number("-f", value, 2, COUNT_MAX, &options->step_factor);
    case 'i':
        options->step_factor = 0;
        return read_size("-i", value, &options->step_bytes);
    case 'n':
        return read_count("-n", value, 1, &options->iterations);
    case 'w':
        return read_count("-w", value, 0, &options->warmup);
    case 'm':
        options->mode = value;
        return by_mode_from_name(value) != 0 ? 0 : bad("-m", value, "fast, det or exact");
    case 'r':
        return read_count("-r", value, 0, &options->root);
    case 'z':
        if (read_number("-z", value, 0, 1, &number) != 0)
            return -1;
        options->blocking = number == 1;
        return 0;
    case 'J':
        options->report = value;
        return 0;
    case OPT_JSON:
        options->json = true;
        return 0;
    case OPT_CHECK:
        if (read_number("--check", value, 0, 1, &number) != 0)
            return -1;
        options->unchecked = number == 0;
        return 0;
    case OPT_COUNTS:
        return read_counts(value, options);
    case OPT_SETTINGS:
        options->settings = true;
        return 0;
    case OPT_EXPLAIN:
        options->explain = true;
        return 0;
    case OPT_ALPHA:
        return read_positive("--alpha", value, "microseconds, more than 0", &options->alpha_us);
    case OPT_BETA:
        return read_positive("--beta", value, "nanoseconds, more than 0", &options->beta_ns);
    case OPT_DATA:
        return read_data(value, &options->random_data);
    case OPT_OPTIMUM:
        return read_optimum(value, options);
    default:
        return read_environment_option(options, option, value);
    }
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
    fprintf(
        stderr,
        "%s: %s %s: not defined with any %s in mode %s; choose another, or only allgather, broadcast and barrier with -c\n",
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
        if (options->op[op] && !op_runs[op] && (!options->all_ops || !some))
            return undefined("-o", by_op_name(op), "data type of -d", mode);
    for (unsigned dtype = 1; dtype < BY_DTYPE_COUNT; dtype++)
        if (options->dtype[dtype] && !dtype_runs[dtype] && (!options->all_dtypes || !some))
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

enum perf_exit perf_options_read(struct perf_options *options, int argc, char **argv, bool *finished)
{
    int option;

    memset(options, 0, sizeof(*options));
    options->collective[BY_COLLECTIVE_ALLREDUCE] = true;
    options->op[BY_OP_SUM] = true;
    options->dtype[BY_DTYPE_F32] = true;
    options->bytes_min = 16u << 20;
    options->step_factor = 2;
    options->iterations = 5;
    options->warmup = 1;
    options->blocking = true;
    *finished = false;
    while ((option = getopt_long(argc, argv, "c:b:e:f:i:n:w:o:d:m:r:z:T:J:", long_options, NULL)) != -1) {
        if (option == OPT_HELP || option == OPT_VERSION) {
            printf("%s", option == OPT_HELP ? usage : "banyan-perf " BY_VERSION "\n");
            *finished = true;
            return PERF_RIGHT;
        }
        if (option == '?' || read_option(options, option, optarg) != 0) {
            fprintf(stderr, "%s: see %s --help\n", program_invocation_short_name,
                    program_invocation_short_name);
            return PERF_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "%s: '%s' is no option; see %s --help\n", program_invocation_short_name, argv[optind],
                program_invocation_short_name);
        return PERF_USAGE;
    }
    if (options->bytes_max == 0)
        options->bytes_max = options->bytes_min;
    if (options->bytes_max < options->bytes_min) {
        fprintf(stderr, "%s: -e is below -b; sizes run upwards\n", program_invocation_short_name);
        return PERF_USAGE;
    }
    for (unsigned dtype = 1; dtype < BY_DTYPE_COUNT; dtype++)
        if (options->dtype[dtype] && options->bytes_min > 0 && options->bytes_min < by_dtype_bytes(dtype)) {
            fprintf(stderr, "%s: %s %llu: less than one element of %s; it takes 0, or %u or more\n",
                    program_invocation_short_name, size_option(), (unsigned long long)options->bytes_min,
                    by_dtype_name(dtype), by_dtype_bytes(dtype));
            return PERF_USAGE;
        }
    if (options->step_factor == 0 && options->step_bytes == 0)
        options->step_bytes = options->bytes_max - options->bytes_min + 1;
    return PERF_RIGHT;
}
