/* The command line of `banyan sim`. */
#include <string.h>

#include "control/base/fraction.h"
#include "control/cli/sim.h"

static int check_chunk(void *object, const char *text, struct by_option_why *why)
{
    (void)text;
    return ((struct sim_options *)object)->chunk % 64 == 0
               ? 0
               : by_option_refuse(why, "it must be a multiple of 64 (a cache line) up to %u, or auto",
                                  BY_PAYLOAD_MAX);
}

static int read_latency(void *object, const char *text, struct by_option_why *why)
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
            ((struct sim_options *)object)->latency_ps = (uint64_t)(value.num / value.den);
            return 0;
        }
    return by_option_refuse(why, "it must be a time up to 1000ms with its unit, such as 500ns or 1.5us");
}

#define AT(member) BY_OPTION_AT(struct sim_options, member)

static const struct by_option rows[] = {
    {BY_ROW_CHOICE('c', "collective", "COLL", AT(collective), 1, BY_COLLECTIVE_COUNT - 1,
                   "run %l (default: that of the first plan)"),
     .word = by_collective_name, .once = true},
    {BY_ROW_SIZE('b', "bytes", "SIZE", AT(bytes), 0, UINT64_C(1) << 40,
                 "the data of the collective, %r; K, M, G are binary (default 64M)")},
    {BY_ROW_NUMBER('r', "root", "RANK", AT(root), 0, BY_RANKS_MAX,
                   "the root of broadcast and reduce (default: the plan's)")},
    {BY_ROW_NUMBER(0, "chunk", "N", AT(chunk), 1, BY_PAYLOAD_MAX,
                   "the payload of a packet in bytes, a multiple of 64 up to 8192 (default auto)"),
     .zero = "auto", .call = check_chunk},
    {BY_ROW_NUMBER(0, "window", "N", AT(window), 1, BY_WINDOW_MAX,
                   "slots of a tree at a node, %r (default auto)"),
     .zero = "auto", .power = true},
    {BY_ROW_NUMBER(0, "inflight", "N", AT(inflight), 1, UINT32_MAX,
                   "chunks of a rank in flight over all trees (default auto)"),
     .zero = "auto"},
    {BY_ROW_NUMBER(0, "batch", "N", AT(batch), 1, 4096,
                   "the number of frames that one simulated packet represents, %r (default auto)"),
     .zero = "auto"},
    {BY_ROW_CALL(0, "latency", "T", read_latency,
                 "the latency of every link, with ns, us or ms (default 500ns)")},
    {BY_ROW_NUMBER(0, "latency-ns", "N", AT(latency_ps), 0, 1000000000, "the same in nanoseconds, %r"),
     .scale = 1000},
    {BY_ROW_CHANCE(0, "loss", "P", AT(loss),
                   "lose packets with this probability at every switch (at hosts if the fabric has no "
                   "switch)")},
    {BY_ROW_NUMBER(0, "loss-run", "N", AT(loss_run), 1, 4096,
                   "lose packets of a link in runs of N on average; --loss remains the lost part "
                   "(default 1: each by itself)")},
    {BY_ROW_TEXT(0, "lossy-link", "A,B", AT(lossy),
                 "lose packets on this link, in both directions; may be repeated"),
     .count = AT(lossy_count)},
    {BY_ROW_CHANCE(0, "link-loss", "P", AT(link_loss), "the probability of --lossy-link (default 0.001)")},
    {BY_ROW_CHANCE(0, "dup", "P", AT(dup), "duplicate packets with this probability")},
    {BY_ROW_CHANCE(0, "reorder", "P", AT(reorder), "reorder packets with this probability")},
    {BY_ROW_NUMBER(0, "seed", "N", AT(seed), 0, UINT64_MAX,
                   "the seed of faults, nonces and data (default 1)")},
    {BY_ROW_SIZE(0, "buffer", "SIZE", AT(buffer), 1, UINT64_C(1) << 40,
                 "let at most SIZE bytes wait at a port, and drop further packets (default: no limit)")},
    {BY_ROW_SIZE(0, "shared-buffer", "SIZE", AT(shared), 1, UINT64_C(1) << 40,
                 "let at most SIZE bytes wait at all ports of a switch, and at one port at most as many as "
                 "are still free (default: no limit)")},
    {BY_ROW_SIZE(0, "mark", "SIZE", AT(mark), 1, UINT64_C(1) << 40,
                 "mark a packet CE if more than SIZE bytes wait at its port (default: never)")},
    {BY_ROW_CHANCE(0, "traffic", "P", AT(traffic),
                   "let other packets take this part of every link, up to 0.95 (default: none)")},
    {BY_ROW_NUMBER(0, "warmup", "N", AT(warmup), 0, 1000,
                   "run N calls before the one that is timed, %r (default 0)")},
    {BY_ROW_CALL(
         0, "sweep", "WORD=P,P...", sim_sweep_read,
         "run once with each of these values of loss, link-loss, dup, reorder or traffic, and print a "
         "table"),
     .once = true},
    {BY_ROW_TEXT(0, "report", "FILE", AT(report), "write the whole report to FILE as JSON")},
    {BY_ROW_TEXT(0, "series", "FILE", AT(series),
                 "write queues and rates of all links over time to FILE as CSV; `banyan plot` draws it")},
    {BY_ROW_NUMBER(0, "sample-ns", "N", AT(sample_ns), 1, 1000000000,
                   "the interval of --series in nanoseconds, %r (default 1000)")},
    {BY_ROW_FLAG(0, "json", AT(json), "print the report as one JSON object")},
    {BY_ROW_FLAG(0, "keep", AT(keep), "keep the folder that banyan-sim ran")},
    {BY_ROW_FLAG(0, "spoil", AT(spoil),
                 "flip a bit of an input after the expected result is computed: the check must fail")},
    {0}};

static const struct by_options command_line = {
    .program = "banyan sim",
    .usage = "banyan sim TOPO PLAN... [options]",
    .about =
        "Runs a collective on a simulated fabric in virtual time: the engines, endpoints and tables of real "
        "nodes, links with the topology's rates. Checks every element, and compares the time with the "
        "plan's proven optimum.",
    .epilog =
        "Exit status: 0 if every element is right; 1 after wrong elements, or if the call was faster than "
        "the proven optimum; 2 after bad usage or input; 3 if a call failed.",
    .rows = rows,
    .least = 2,
    .most = SIM_PLANS_MAX + 1,
    .operands = "a topology and at least one plan"};

/* Returns the largest part of a link that other packets take, in a single run or in a sweep. */
static uint32_t most_traffic(const struct sim_options *options)
{
    const struct sim_sweep *sweep = &options->sweep;
    uint32_t most = options->traffic;

    for (uint32_t i = 0; sweep->word != NULL && strcmp(sweep->word, "traffic") == 0 && i < sweep->count; i++)
        most = sweep->parts[i] > most ? sweep->parts[i] : most;
    return most;
}

int sim_options_read(int argc, char **argv, struct sim_options *options)
{
    int status;

    *options = (struct sim_options){.bytes = UINT64_C(64) << 20,
                                    .latency_ps = 500000,
                                    .seed = 1,
                                    .root = -1,
                                    .link_loss = UINT32_MAX / 1000,
                                    .sample_ns = 1000};
    status = by_options_read(&command_line, options, &argc, argv);
    if (status >= 0)
        return status == 0 ? -1 : status;
    if (options->sweep.word != NULL && options->series != NULL)
        return by_cli_fail(BY_EXIT_USAGE,
                           "--sweep and --series exclude each other: --series samples one run");
    if (options->sweep.word != NULL && options->keep)
        return by_cli_fail(BY_EXIT_USAGE,
                           "--sweep and --keep exclude each other: --keep keeps one run's folder");
    if (options->sweep.word != NULL && strcmp(options->sweep.word, "link-loss") == 0 &&
        options->lossy_count == 0)
        return by_cli_fail(BY_EXIT_USAGE, "--sweep link-loss requires the links of --lossy-link");
    if (most_traffic(options) > SIM_TRAFFIC_MAX)
        return by_cli_fail(BY_EXIT_USAGE, "--traffic leaves nothing to the call: it must be at most 0.95");
    options->topology = argv[1];
    for (int i = 2; i < argc; i++)
        options->plans[options->plan_count++] = argv[i];
    return 0;
}
