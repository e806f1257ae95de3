/*
 * The command `banyan circulant`: prints the schedules by which hosts compute collectives among
 * themselves. libbanyan uses them if no switch can help. Single-threaded.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

#include "control/cli/cli.h"
#include "control/cli/number.h"
#include "host-driver/circulant/circulant.h"

/* Most ranks whose schedules one run prints. For more, use -r. */
#define LISTED_MAX 4096u
/* Most rounds that one run prints. */
#define ROUNDS_MAX 1000000u

struct circulant_arguments {
    uint64_t rank_count;
    uint64_t rank;
    uint64_t block_count; /* 0: no broadcast */
    bool one, json;
};

static const char help[] =
    "usage: banyan circulant -p RANKS [options]\n\n"
    "Prints the schedules by which RANKS hosts broadcast, gather and reduce among themselves when no switch "
    "does it for\n"
    "them: in round k of a phase, rank r sends to r + skip[k] and receives from r - skip[k]. Blocks are "
    "counted from the\n"
    "first one that rank 0, the root, sends in the phase; negative ones are of the phase before.\n\n"
    "  -p, --ranks RANKS       how many ranks there are, at most 2^30\n"
    "  -r, --rank RANK         only this rank (without it: all, if they are at most 4096)\n"
    "  -n, --blocks BLOCKS     the rounds of a broadcast of so many blocks from rank 0; with -r each of "
    "them\n"
    "      --json              print one JSON object\n"
    "  -h, --help\n";

static const struct option long_options[] = {
    {"ranks", required_argument, NULL, 'p'},  {"rank", required_argument, NULL, 'r'},
    {"blocks", required_argument, NULL, 'n'}, {"json", no_argument, NULL, 'j'},
    {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};

static int read_option(int option, struct circulant_arguments *arguments)
{
    int status;

    switch (option) {
    case 'p':
        status = by_cli_number("-p", optarg, 1, BY_CIRCULANT_RANKS_MAX, &arguments->rank_count);
        return status != 0 ? status : -1;
    case 'r':
        arguments->one = true;
        status = by_cli_number("-r", optarg, 0, BY_CIRCULANT_RANKS_MAX - 1, &arguments->rank);
        return status != 0 ? status : -1;
    case 'n':
        status = by_cli_number("-n", optarg, 1, BY_CIRCULANT_BLOCKS_MAX, &arguments->block_count);
        return status != 0 ? status : -1;
    case 'j':
        arguments->json = true;
        return -1;
    case 'h':
        fputs(help, stdout);
        return BY_EXIT_DONE;
    default:
        return by_cli_fail(BY_EXIT_USAGE, "`banyan circulant --help` lists the options");
    }
}

static int read_arguments(int argc, char **argv, struct circulant_arguments *arguments)
{
    int option;

    *arguments = (struct circulant_arguments){0};
    optind = 0;
    while ((option = getopt_long(argc, argv, "p:r:n:h", long_options, NULL)) != -1) {
        int status = read_option(option, arguments);

        if (status >= 0)
            return status;
    }
    if (optind != argc)
        return by_cli_fail(BY_EXIT_USAGE, "'%s' is no option; `banyan circulant --help` says more",
                           argv[optind]);
    if (arguments->rank_count == 0)
        return by_cli_fail(BY_EXIT_USAGE, "name the count of ranks with -p; `banyan circulant --help` says "
                                          "more");
    if (arguments->one && arguments->rank >= arguments->rank_count)
        return by_cli_fail(BY_EXIT_USAGE, "-r %llu is no rank of %llu; it must be from 0 to %llu",
                           (unsigned long long)arguments->rank, (unsigned long long)arguments->rank_count,
                           (unsigned long long)arguments->rank_count - 1);
    if (!arguments->one && arguments->rank_count > LISTED_MAX)
        return by_cli_fail(BY_EXIT_USAGE, "%llu ranks are more than the %u that are listed; name one with -r",
                           (unsigned long long)arguments->rank_count, LISTED_MAX);
    if (arguments->one && arguments->block_count > ROUNDS_MAX)
        return by_cli_fail(BY_EXIT_USAGE,
                           "%llu blocks take more than the %u rounds that are listed; leave out -r",
                           (unsigned long long)arguments->block_count, ROUNDS_MAX);
    return -1;
}

static void print_row(const int8_t *blocks, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        printf(" %3d", blocks[k]);
}

/* Writes "3 from 7", or "-". */
static void write_block(char text[32], uint32_t block, const char *preposition, uint32_t peer)
{
    if (block == BY_CIRCULANT_NONE)
        snprintf(text, 32, "-");
    else
        snprintf(text, 32, "%u %s %u", block, preposition, peer);
}

static void print_steps(const struct by_circulant *circulant, const struct by_circulant_schedule *schedule,
                        uint32_t rank, uint32_t block_count)
{
    printf("\n# %8s  %-28s receives\n", "round", "sends");
    for (uint32_t round = 0; round < by_circulant_rounds(circulant, block_count); round++) {
        struct by_circulant_step step;
        char send[32], receive[32];

        by_circulant_broadcast(circulant, schedule, rank, 0, block_count, round, &step);
        write_block(send, step.send, "to", step.to);
        write_block(receive, step.receive, "from", step.from);
        printf("  %8u  %-28s %s\n", round, send, receive);
    }
}

static void print_text(const struct by_circulant *circulant, const struct circulant_arguments *arguments)
{
    uint32_t first = arguments->one ? (uint32_t)arguments->rank : 0;
    uint32_t end = arguments->one ? first + 1 : circulant->rank_count;
    int width = 4 * (int)circulant->phase;
    struct by_circulant_schedule schedule;

    printf("# %u ranks, %u rounds a phase; skips:", circulant->rank_count, circulant->phase);
    for (uint32_t k = 0; k < circulant->phase; k++)
        printf(" %u", circulant->skip[k]);
    putchar('\n');
    if (arguments->block_count > 0)
        printf("# a broadcast of %u blocks takes %u rounds\n", (uint32_t)arguments->block_count,
               by_circulant_rounds(circulant, (uint32_t)arguments->block_count));
    printf("# %8s %9s  %-*s  %s\n", "rank", "baseblock", width, "receives", "sends");
    for (uint32_t rank = first; rank < end; rank++) {
        by_circulant_schedule(circulant, rank, &schedule);
        printf("  %8u ", rank);
        if (rank == 0)
            printf("%9s ", "-");
        else
            printf("%9u ", by_circulant_baseblock(circulant, rank));
        print_row(schedule.receive, circulant->phase);
        printf("  ");
        print_row(schedule.send, circulant->phase);
        putchar('\n');
    }
    if (arguments->one && arguments->block_count > 0)
        print_steps(circulant, &schedule, first, (uint32_t)arguments->block_count);
}

static void json_row(const char *name, const int8_t *blocks, uint32_t count)
{
    printf("\"%s\": [", name);
    for (uint32_t k = 0; k < count; k++)
        printf("%s%d", k > 0 ? ", " : "", blocks[k]);
    putchar(']');
}

static void json_block(const char *name, uint32_t block, const char *preposition, uint32_t peer)
{
    if (block == BY_CIRCULANT_NONE)
        printf("\"%s\": null", name);
    else
        printf("\"%s\": {\"block\": %u, \"%s\": %u}", name, block, preposition, peer);
}

static void json_steps(const struct by_circulant *circulant, const struct by_circulant_schedule *schedule,
                       uint32_t rank, uint32_t block_count)
{
    printf(",\n    \"steps\": [");
    for (uint32_t round = 0; round < by_circulant_rounds(circulant, block_count); round++) {
        struct by_circulant_step step;

        by_circulant_broadcast(circulant, schedule, rank, 0, block_count, round, &step);
        printf("%s\n      {", round > 0 ? "," : "");
        json_block("send", step.send, "to", step.to);
        printf(", ");
        json_block("receive", step.receive, "from", step.from);
        putchar('}');
    }
    printf("]");
}

static void print_json(const struct by_circulant *circulant, const struct circulant_arguments *arguments)
{
    uint32_t first = arguments->one ? (uint32_t)arguments->rank : 0;
    uint32_t end = arguments->one ? first + 1 : circulant->rank_count;
    struct by_circulant_schedule schedule;

    printf("{\"ranks\": %u, \"phase\": %u, \"skips\": [", circulant->rank_count, circulant->phase);
    for (uint32_t k = 0; k < circulant->phase; k++)
        printf("%s%u", k > 0 ? ", " : "", circulant->skip[k]);
    printf("],\n  \"schedules\": [");
    for (uint32_t rank = first; rank < end; rank++) {
        by_circulant_schedule(circulant, rank, &schedule);
        printf("%s\n    {\"rank\": %u, ", rank > first ? "," : "", rank);
        if (rank == 0)
            printf("\"baseblock\": null, ");
        else
            printf("\"baseblock\": %u, ", by_circulant_baseblock(circulant, rank));
        json_row("receive", schedule.receive, circulant->phase);
        printf(", ");
        json_row("send", schedule.send, circulant->phase);
        putchar('}');
    }
    printf("]");
    if (arguments->block_count > 0) {
        printf(",\n  \"broadcast\": {\"blocks\": %u, \"rounds\": %u", (uint32_t)arguments->block_count,
               by_circulant_rounds(circulant, (uint32_t)arguments->block_count));
        if (arguments->one)
            json_steps(circulant, &schedule, first, (uint32_t)arguments->block_count);
        putchar('}');
    }
    printf("}\n");
}

int by_command_circulant(int argc, char **argv)
{
    struct circulant_arguments arguments;
    struct by_circulant circulant;
    int status = read_arguments(argc, argv, &arguments);

    if (status >= 0)
        return status;
    by_circulant_init(&circulant, (uint32_t)arguments.rank_count);
    if (arguments.json)
        print_json(&circulant, &arguments);
    else
        print_text(&circulant, &arguments);
    return BY_EXIT_DONE;
}
