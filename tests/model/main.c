/* The command line of the model checker. Exit status: 0 all safe and live, 1 a property is broken,
 * 2 usage. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/model/model.h"

#define JOBS_MAX 64

static int usage(void)
{
    fprintf(stderr, "usage: model [--list] [--quick] [--states MAX] [--jobs N] [CONFIGURATION...]\n");
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

/* Returns the peak memory of this process (MiB). */
static uint64_t peak_mib(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss / 1024;
}

/* Shared by the exploring processes. Fields are only added to, or raised. */
struct main_totals {
    uint32_t next; /* next entry of the list to explore */
    uint32_t count, failed;
    uint64_t states, transitions, us, peak_mib;
};

static void run(const struct model_config *config, uint64_t states_max, struct main_totals *totals)
{
    struct model_result result;
    uint64_t peak, before;

    model_run(config, states_max, &result);
    printf("%-22s %-14s %u %9" PRIu64 " %11" PRIu64 " %5u %8" PRIu64 " %4u %7" PRIu64 " %6.1f  %s%s%s\n",
           config->name, config->tree, config->window, result.states, result.transitions, result.depth,
           result.vectors, result.messages, result.steps, result.seconds, verdict(&result),
           result.violation != NULL ? ": " : "", result.violation != NULL ? result.violation : "");
    __atomic_fetch_add(&totals->count, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&totals->states, result.states, __ATOMIC_RELAXED);
    __atomic_fetch_add(&totals->transitions, result.transitions, __ATOMIC_RELAXED);
    __atomic_fetch_add(&totals->us, (uint64_t)(result.seconds * 1e6), __ATOMIC_RELAXED);
    peak = peak_mib();
    before = __atomic_load_n(&totals->peak_mib, __ATOMIC_RELAXED);
    while (peak > before && !__atomic_compare_exchange_n(&totals->peak_mib, &before, peak, 0,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    if (result.violation != NULL || !result.complete || !result.live) {
        __atomic_fetch_add(&totals->failed, 1, __ATOMIC_RELAXED);
        printf("       to see it again: model %s (the order of exploration is always the same)\n",
               config->name);
    }
    fflush(stdout);
}

/* Explores one configuration after another until none is left. */
static void work(const unsigned *list, unsigned count, uint64_t states_max, struct main_totals *totals)
{
    uint32_t at;

    while ((at = __atomic_fetch_add(&totals->next, 1, __ATOMIC_RELAXED)) < count)
        run(&model_configs[list[at]], states_max, totals);
}

/* The same in `jobs` processes. Returns 0, or 1 if one of them failed. */
static int work_in_parallel(unsigned jobs, const unsigned *list, unsigned count, uint64_t states_max,
                            struct main_totals *totals)
{
    int bad = 0, status;

    if (jobs == 1) {
        work(list, count, states_max, totals);
        return 0;
    }
    for (unsigned j = 0; j < jobs; j++) {
        pid_t child = fork();

        if (child == 0) {
            work(list, count, states_max, totals);
            _exit(0);
        }
        bad |= child < 0;
    }
    while (wait(&status) > 0)
        bad |= status != 0;
    return bad;
}

int main(int argc, char **argv)
{
    struct main_totals *totals =
        mmap(NULL, sizeof(*totals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned list[256], count = 0, jobs = 1;
    uint64_t states_max = 100000000;
    uint32_t set = MODEL_SET_ALL;
    int named = 0, bad;

    if (totals == MAP_FAILED || model_config_count > sizeof(list) / sizeof(list[0]))
        abort();
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
        else if (strcmp(argv[i], "--jobs") == 0 && i + 1 < argc)
            jobs = (unsigned)strtoul(argv[++i], NULL, 0);
        else if (argv[i][0] == '-')
            return usage();
        else
            named = 1;
    }
    if (jobs == 0 || jobs > JOBS_MAX)
        return usage();
    for (unsigned c = 0; c < model_config_count; c++) {
        int wanted = !named && (model_configs[c].set & set);

        for (int i = 1; i < argc; i++)
            wanted |= strcmp(argv[i], model_configs[c].name) == 0;
        if (wanted)
            list[count++] = c;
    }
    if (count == 0)
        return usage();
    printf("%-22s %-14s W %9s %11s %5s %8s %4s %7s %6s\n", "configuration", "tree", "states", "transitions",
           "depth", "vectors", "msgs", "steps", "s");
    fflush(stdout);
    bad = work_in_parallel(jobs, list, count, states_max, totals);
    printf("%u of %u configurations, %" PRIu64 " states, %" PRIu64
           " transitions, %.0f s of processor time, at most %" PRIu64 " MiB: %u failed\n",
           totals->count, count, totals->states, totals->transitions, (double)totals->us / 1e6,
           totals->peak_mib, totals->failed);
    return bad || totals->failed > 0 || totals->count != count;
}
