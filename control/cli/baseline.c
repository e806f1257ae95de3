/*
 * The option --algorithm of `banyan plan`: plans and schedules of baseline algorithms.
 * Single-threaded.
 */
#include "control/cli/baseline.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/cli/cli.h"
#include "control/cli/progress.h"
#include "control/study/bound/pack.h"
#include "offload/wire/types.h"

static void print_json(const struct by_rounds *rounds, const struct by_topology *topology,
                       enum by_algorithm algorithm, struct by_fraction optimum)
{
    char text[BY_FRACTION_JSON_BYTES];

    printf("{\"algorithm\": \"%s\", \"collective\": \"%s\", \"compute_nodes\": %u, \"unit\": \"",
           by_algorithm_name(algorithm), by_collective_name(rounds->collective), rounds->shard_count);
    for (const char *c = topology->unit; *c; c++)
        printf(*c == '"' || *c == '\\' ? "\\%c" : (unsigned char)*c < ' ' ? "\\u%04x" : "%c", *c);
    printf("\",\n \"optimum\": %s, \"optimum_float\": %.12g,\n", by_fraction_json(optimum, text),
           by_fraction_value(optimum));
    printf(" \"achieved\": %s, \"achieved_float\": %.12g,\n", by_fraction_json(rounds->achieved, text),
           by_fraction_value(rounds->achieved));
    printf(" \"time\": %s, \"rounds\": %u, \"transfers\": %u, \"height\": {\"max\": %u}}\n",
           by_fraction_json(rounds->time, text), rounds->round_count, rounds->transfer_count,
           rounds->hops_max);
}

static void print_people(FILE *stream, const struct by_rounds *rounds, const struct by_topology *topology,
                         enum by_algorithm algorithm, struct by_fraction optimum)
{
    char text[BY_FRACTION_TEXT_BYTES];

    fprintf(stream, "%s on %s by %s: %u compute nodes, %u switches\n", by_collective_name(rounds->collective),
            topology->name, by_algorithm_name(algorithm), rounds->shard_count,
            topology->node_count - rounds->shard_count);
    fprintf(stream, "  bound       %.6g %s (%s), no schedule can be faster\n", by_fraction_value(optimum),
            topology->unit, by_fraction_text(optimum, text));
    fprintf(stream, "  achieved    %.6g %s (%s), %.4g %% of it\n", by_fraction_value(rounds->achieved),
            topology->unit, by_fraction_text(rounds->achieved, text),
            100 * by_fraction_value(rounds->achieved) / by_fraction_value(optimum));
    fprintf(stream, "  rounds      %u with %u transfers over at most %u hops; executed on symbols: %s\n",
            rounds->round_count, rounds->transfer_count, rounds->hops_max,
            rounds->shard_count <= BY_ROUNDS_CHECK_MAX ? "right" : "too large");
    fprintf(stream, "  time        %s for data of size 1\n", by_fraction_text(rounds->time, text));
}

static int write_rounds(const struct by_rounds *rounds, const struct by_topology *topology,
                        enum by_algorithm algorithm, struct by_fraction optimum, const char *path)
{
    struct by_output output;

    if (!by_cli_create(&output, path))
        return BY_EXIT_ENVIRONMENT;
    return by_cli_finish(&output, by_rounds_write(rounds, topology, by_algorithm_name(algorithm), optimum,
                                                  output.stream) == 0);
}

int by_cli_baseline(const struct by_topology *topology, const char *path, enum by_algorithm algorithm,
                    double time_limit_s, bool show, const char *output, bool json, struct by_plan **plan)
{
    struct by_cli_progress progress;
    struct by_baseline_options options = {.algorithm = algorithm,
                                          .collective = (*plan)->collective,
                                          .root = (*plan)->root,
                                          .keep = true,
                                          .time_limit_s = time_limit_s,
                                          .stage = &progress.stage,
                                          .programs = by_program_pack};
    struct by_fraction optimum = (*plan)->optimum;
    struct by_baseline result;
    struct by_problem problem = {0};
    double start = by_plan_clock();
    int status = -1, error;

    by_cli_progress_start(&progress, by_collective_name(options.collective), show);
    error = by_baseline_make(topology, &options, *plan, &result, &problem);
    by_cli_progress_stop(&progress);
    if (error)
        return by_cli_refuse_work(path, error, &problem);
    if (result.plan) {
        by_plan_free(*plan);
        *plan = result.plan;
        result.plan = NULL;
        memset(&(*plan)->seconds, 0, sizeof((*plan)->seconds));
        (*plan)->seconds.total = by_plan_clock() - start;
    } else {
        if (json)
            print_json(result.rounds, topology, algorithm, optimum);
        else
            print_people(output && strcmp(output, "-") == 0 ? stderr : stdout, result.rounds, topology,
                         algorithm, optimum);
        status = output ? write_rounds(result.rounds, topology, algorithm, optimum, output) : BY_EXIT_DONE;
    }
    by_baseline_free(&result);
    return status;
}
