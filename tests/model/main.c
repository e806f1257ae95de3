/* The command line of the model checker. Exit status: 0 all safe and live, 1 a property is broken, 2 usage.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/model/model.h"

static int usage(void)
{
    fprintf(stderr, "usage: model [--list] [--quick] [--states MAX] [CONFIGURATION...]\n");
    return 2;
}

static const char *verdict(const struct model_result *result)
{
    if (result->violation != NULL)
        return "BROKEN";
    if (!result->complete)
        return "not explored to the end";
    return result->live ? "safe, live" : "safe, STUCK";
}

/* The most memory that this process had so far. */
static long peak_mib(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

struct totals {
    unsigned count, failed;
    uint64_t states, transitions;
    double seconds;
};

static void run(const struct model_config *config, uint64_t states_max, struct totals *totals)
{
    struct model_result result;

    printf("%-22s %-14s %u ", config->name, config->tree, config->window);
    fflush(stdout);
    model_run(config, states_max, &result);
    printf("%9" PRIu64 " %11" PRIu64 " %5u %8" PRIu64 " %4u %7" PRIu64 " %6.1f  %s", result.states,
           result.transitions, result.depth, result.vectors, result.messages, result.steps, result.seconds,
           verdict(&result));
    if (result.violation != NULL)
        printf(": %s", result.violation);
    printf("\n");
    totals->count++;
    totals->states += result.states;
    totals->transitions += result.transitions;
    totals->seconds += result.seconds;
    if (result.violation == NULL && result.complete && result.live)
        return;
    totals->failed++;
    printf("       to see it again: model %s (the order of exploration is always the same)\n", config->name);
}

int main(int argc, char **argv)
{
    uint64_t states_max = 100000000;
    uint32_t set = MODEL_SET_ALL;
    struct totals totals = {0};
    int named = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0) {
            for (unsigned c = 0; c < model_config_count; c++)
                printf("%s\n", model_configs[c].name);
            return 0;
        }
        if (strcmp(argv[i], "--quick") == 0)
            set = MODEL_SET_QUICK;
        else if (strcmp(argv[i], "--states") == 0 && i + 1 < argc)
            states_max = strtoull(argv[++i], NULL, 0);
        else if (argv[i][0] == '-')
            return usage();
        else
            named = 1;
    }
    for (unsigned c = 0; c < model_config_count; c++) {
        int wanted = !named && (model_configs[c].set & set);

        for (int i = 1; i < argc; i++)
            wanted |= strcmp(argv[i], model_configs[c].name) == 0;
        if (!wanted)
            continue;
        if (totals.count == 0)
            printf("%-22s %-14s W %9s %11s %5s %8s %4s %7s %6s\n", "configuration", "tree", "states",
                   "transitions", "depth", "vectors", "msgs", "steps", "s");
        run(&model_configs[c], states_max, &totals);
    }
    if (totals.count == 0)
        return usage();
    printf("%u configurations, %" PRIu64 " states, %" PRIu64
           " transitions, %.0f s of processor time, at most %ld MiB: %u failed\n",
           totals.count, totals.states, totals.transitions, totals.seconds, peak_mib(), totals.failed);
    return totals.failed > 0;
}
