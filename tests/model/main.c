/* The command line of the model checker. Exit status: 0 all safe and live, 1 a property is broken, 2 usage.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static int run(const struct model_config *config, uint64_t states_max)
{
    struct model_result result;

    printf("%-22s %-12s ", config->name, config->tree);
    fflush(stdout);
    model_run(config, states_max, &result);
    printf("%9" PRIu64 " states %10" PRIu64 " transitions  depth %3u  %8" PRIu64
           " vectors %4u messages %8" PRIu64 " steps %5" PRIu64 " MiB %7.2f s  %s%s%s\n",
           result.states, result.transitions, result.depth, result.vectors, result.messages, result.steps,
           result.bytes >> 20, result.seconds, verdict(&result), result.violation ? ": " : "",
           result.violation ? result.violation : "");
    fflush(stdout);
    return result.violation == NULL && result.complete && result.live;
}

int main(int argc, char **argv)
{
    uint64_t states_max = 100000000;
    uint32_t set = MODEL_SET_ALL;
    int named = 0, failed = 0, ran = 0;

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
        ran++;
        failed += !run(&model_configs[c], states_max);
    }
    if (ran == 0)
        return usage();
    return failed > 0;
}
