/*
 * The command `banyan circulant`: prints the schedules by which hosts compute collectives among
 * themselves. libbanyan uses them if no switch can help. Single-threaded.
 */
#include <stdbool.h>
#include <stdio.h>

#include "control/cli/cli.h"
#include "host-driver/circulant/circulant.h"

/* Most ranks whose schedules one run prints. For more, use -r. */
#define LISTED_MAX 4096u
/* Most rounds that one run prints. */
#define ROUNDS_MAX 1000000u

struct circulant_arguments {
    uint32_t rank_count;
    uint32_t rank;        /* UINT32_MAX: all ranks */
    uint32_t block_count; /* 0: no broadcast */
    bool json;
};

#define AT(member) BY_OPTION_AT(struct circulant_arguments, member)

static const struct by_option rows[] = {
    {BY_ROW_NUMBER('p', "ranks", "RANKS", AT(rank_count), 1, BY_CIRCULANT_RANKS_MAX,
                   "the number of ranks, %r")},
    {BY_ROW_NUMBER('r', "rank", "RANK", AT(rank), 0, BY_CIRCULANT_RANKS_MAX - 1,
                   "print this rank only (without it: all, if they are at most 4096)")},
    {BY_ROW_NUMBER('n', "blocks", "BLOCKS", AT(block_count), 1, BY_CIRCULANT_BLOCKS_MAX,
                   "print the number of rounds of a broadcast of BLOCKS blocks from rank 0; with -r, print "
                   "each round")},
    {BY_ROW_FLAG(0, "json", AT(json), "print one JSON object")},
    {0}};

static const struct by_options command_line = {
    .program = "banyan circulant",
    .usage = "banyan circulant -p RANKS [options]",
    .about =
        "Prints the schedules by which RANKS hosts broadcast, gather and reduce among themselves when no "
        "switch does it for them: in round k of a phase, rank r sends to r + skip[k] and receives from r "
        "- skip[k]. Blocks are counted from the first one that rank 0, the root, sends in the phase; "
        "negative ones belong to the previous phase.",
    .rows = rows};

static int read_arguments(int argc, char **argv, struct circulant_arguments *arguments)
{
    bool one;
    int status;

    *arguments = (struct circulant_arguments){.rank = UINT32_MAX};
    status = by_options_read(&command_line, arguments, &argc, argv);
    if (status >= 0)
        return status;
    one = arguments->rank != UINT32_MAX;
    if (arguments->rank_count == 0)
        return by_cli_fail(BY_EXIT_USAGE, "name the count of ranks with -p");
    if (one && arguments->rank >= arguments->rank_count)
        return by_cli_fail(BY_EXIT_USAGE, "-r %u is not one of %u ranks; it must be from 0 to %u",
                           arguments->rank, arguments->rank_count, arguments->rank_count - 1);
    if (!one && arguments->rank_count > LISTED_MAX)
        return by_cli_fail(BY_EXIT_USAGE, "%u ranks are more than the %u that are listed; name one with -r",
                           arguments->rank_count, LISTED_MAX);
    if (one && arguments->block_count > ROUNDS_MAX)
        return by_cli_fail(BY_EXIT_USAGE,
                           "%u blocks take more than the %u rounds that are listed; leave out -r",
                           arguments->block_count, ROUNDS_MAX);
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
    bool one = arguments->rank != UINT32_MAX;
    uint32_t first = one ? arguments->rank : 0;
    uint32_t end = one ? first + 1 : circulant->rank_count;
    int width = 4 * (int)circulant->phase;
    struct by_circulant_schedule schedule;

    printf("# %u ranks, %u rounds a phase; skips:", circulant->rank_count, circulant->phase);
    for (uint32_t k = 0; k < circulant->phase; k++)
        printf(" %u", circulant->skip[k]);
    putchar('\n');
    if (arguments->block_count > 0)
        printf("# a broadcast of %u blocks takes %u rounds\n", arguments->block_count,
               by_circulant_rounds(circulant, arguments->block_count));
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
    if (one && arguments->block_count > 0)
        print_steps(circulant, &schedule, first, arguments->block_count);
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
    bool one = arguments->rank != UINT32_MAX;
    uint32_t first = one ? arguments->rank : 0;
    uint32_t end = one ? first + 1 : circulant->rank_count;
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
        printf(",\n  \"broadcast\": {\"blocks\": %u, \"rounds\": %u", arguments->block_count,
               by_circulant_rounds(circulant, arguments->block_count));
        if (one)
            json_steps(circulant, &schedule, first, arguments->block_count);
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
    by_circulant_init(&circulant, arguments.rank_count);
    if (arguments.json)
        print_json(&circulant, &arguments);
    else
        print_text(&circulant, &arguments);
    return BY_EXIT_DONE;
}
