/*
 * The world test: scenarios of failures and repairs of a whole system in virtual time.
 *
 *   world-test [--seeds FIRST-LAST] [--fresh N] [--again] [--first] [--jobs N] [--verbose]
 *
 * A scenario is determined by its seed. --fresh draws the first of N seeds from the clock and
 * prints it. --again runs each scenario twice and compares the traces. --first ends at the first
 * violation. Prints each seed that violates an invariant, and `N scenarios, N violations`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/world/world.h"

#define JOBS_MAX 64u

struct world_totals {
    uint64_t scenarios, violations, operations, traffic, kills, commits;
};

struct world_range {
    uint64_t first, last;
    int again, verbose, first_only;
};

int __real_clock_gettime(clockid_t clock, struct timespec *time);

static double seconds(void)
{
    struct timespec now;

    __real_clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void report(struct world_totals *totals, uint64_t seed, const char *text)
{
    totals->violations++;
    printf("VIOLATION seed %" PRIu64 ": %s\n", seed, text);
}

/* Runs every `step`-th seed of the range. */
static void run(const struct world_range *range, uint64_t begin, uint64_t step, struct world_totals *totals)
{
    for (uint64_t seed = range->first + begin;
         seed <= range->last && !(range->first_only && totals->violations > 0); seed += step) {
        bool fine = world_run(seed, range->verbose);
        uint64_t hash = vm.hash;

        totals->scenarios++;
        totals->traffic += world.traffic;
        totals->operations += world.counts.operations;
        totals->kills += world.counts.kills;
        totals->commits += world.counts.commits;
        if (!fine)
            report(totals, seed, vm.violation);
        if (range->again && (world_run(seed, 0), vm.hash != hash))
            report(totals, seed, "a second run differs from the first");
    }
}

static bool read_range(const char *text, struct world_range *range)
{
    char *end;

    range->first = range->last = strtoull(text, &end, 10);
    if (*end == '-')
        range->last = strtoull(end + 1, &end, 10);
    return *end == 0 && range->first > 0 && range->last >= range->first;
}

static void draw_range(const char *text, struct world_range *range)
{
    struct timespec now;

    __real_clock_gettime(CLOCK_REALTIME, &now);
    range->first = ((uint64_t)now.tv_sec << 20) + (uint64_t)now.tv_nsec % 1000000u;
    range->last = range->first + strtoull(text, NULL, 10) - 1;
    printf("fresh seeds %" PRIu64 "-%" PRIu64 "\n", range->first, range->last);
}

/* Each process takes its share of the seeds. Returns whether all ended by themselves. */
static bool run_all(const struct world_range *range, uint32_t jobs, struct world_totals *totals)
{
    bool fine = true;

    if (jobs == 1) {
        run(range, 0, 1, &totals[0]);
        return true;
    }
    fflush(stdout);
    for (uint32_t i = 0; i < jobs; i++)
        if (fork() == 0) {
            run(range, i, jobs, &totals[i]);
            fflush(stdout);
            __real__exit(0);
        }
    for (int status; wait(&status) > 0;)
        fine &= status == 0;
    return fine;
}

int main(int argc, char **argv)
{
    struct world_range range = {.first = 1, .last = 40};
    struct world_totals sum = {0}, *totals;
    double begin = seconds();
    uint32_t jobs = 1;
    bool fine = true;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc && fine; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (strcmp(argv[i], "--verbose") == 0) {
            range.verbose = 1;
        } else if (strcmp(argv[i], "--again") == 0) {
            range.again = 1;
        } else if (strcmp(argv[i], "--first") == 0) {
            range.first_only = 1;
        } else if (strcmp(argv[i], "--seeds") == 0 && value != NULL) {
            fine = read_range(argv[++i], &range);
        } else if (strcmp(argv[i], "--fresh") == 0 && value != NULL) {
            draw_range(argv[++i], &range);
        } else if (strcmp(argv[i], "--jobs") == 0 && value != NULL) {
            jobs = (uint32_t)strtoul(argv[++i], NULL, 10);
            fine = jobs > 0 && jobs <= JOBS_MAX;
        } else {
            fine = false;
        }
    }
    if (!fine) {
        fprintf(
            stderr,
            "usage: world-test [--seeds FIRST-LAST] [--fresh N] [--again] [--first] [--jobs N] [--verbose]\n");
        return 2;
    }
    totals =
        mmap(NULL, JOBS_MAX * sizeof(*totals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (totals == MAP_FAILED)
        return 2;
    fine = run_all(&range, jobs, totals);
    for (uint32_t i = 0; i < jobs; i++) {
        sum.scenarios += totals[i].scenarios;
        sum.violations += totals[i].violations;
        sum.operations += totals[i].operations;
        sum.traffic += totals[i].traffic;
        sum.kills += totals[i].kills;
        sum.commits += totals[i].commits;
    }
    if (!fine)
        printf("a process ended by a signal: run its seeds with --jobs 1\n");
    printf("%" PRIu64 " scenarios, %" PRIu64 " violations (%.0f scenarios/s, %" PRIu64
           " tables committed, %" PRIu64 " operations, %" PRIu64
           " jobs with traffic at the end, banyand killed %" PRIu64 " times)\n",
           sum.scenarios, sum.violations, (double)sum.scenarios / (seconds() - begin), sum.commits,
           sum.operations, sum.traffic, sum.kills);
    return sum.violations > 0 || !fine;
}
