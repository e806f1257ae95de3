/*
 * Checks the schedules of the collectives between hosts: circulant-check [EVERY_RANK_TO
 * [SOME_RANKS_TO]]. Checks all ranks of every count up to the first number, then random ranks of
 * every count up to the second, and all ranks of some of these counts. Prints what was checked.
 * Exit status 1 at the first violation. One thread.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/host-driver/circulant/conditions.h"

/* All-to-all and scatter are checked up to this count of ranks. */
#define EXCHANGES_TO 10000u
/* Random ranks of each count above the first number. */
#define DRAWN 8u
/* All ranks are checked at each multiple of this count; a prime, so that remainders differ. */
#define WHOLE_STEP 15013u

static int check_every_rank(struct by_conditions *conditions, uint32_t last)
{
    for (uint32_t p = 1; p <= last; p++)
        if (!by_conditions_all(conditions, p)) {
            printf("%s\n", conditions->fault);
            return 1;
        }
    printf("every rank of every count up to %u: %llu schedules hold the four conditions\n", last,
           (unsigned long long)conditions->ranks);
    fflush(stdout);
    return 0;
}

static int check_exchanges(struct by_conditions *conditions, uint32_t last)
{
    conditions->ranks = 0;
    for (uint32_t p = 1; p <= last; p++)
        if (!by_conditions_exchange(conditions, p)) {
            printf("%s\n", conditions->fault);
            return 1;
        }
    printf("every rank of every count up to %u: %llu paths and places in the tree are right\n", last,
           (unsigned long long)conditions->ranks);
    fflush(stdout);
    return 0;
}

static int check_some_ranks(struct by_conditions *conditions, uint32_t first, uint32_t last)
{
    uint32_t whole = 0;

    conditions->ranks = 0;
    for (uint32_t p = first; p <= last; p++) {
        bool all = (p - first) % WHOLE_STEP == 0;

        whole += all;
        if (!(all ? by_conditions_all(conditions, p) : by_conditions_some(conditions, p, DRAWN, p))) {
            printf("%s\n", conditions->fault);
            return 1;
        }
    }
    printf("%u ranks of every count up to %u, and all of %u counts: %llu schedules hold the conditions\n",
           DRAWN, last, whole, (unsigned long long)conditions->ranks);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned long every = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
    unsigned long some = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000000;
    struct by_conditions conditions = {0};
    int status;

    if (every == 0 || every > some || some > BY_CIRCULANT_RANKS_MAX) {
        fprintf(stderr,
                "usage: circulant-check [EVERY_RANK_TO [SOME_RANKS_TO]], 1 <= first <= second <= %u\n",
                BY_CIRCULANT_RANKS_MAX);
        return 2;
    }
    status = check_every_rank(&conditions, (uint32_t)every);
    if (status == 0)
        status = check_exchanges(&conditions, every < EXCHANGES_TO ? (uint32_t)every : EXCHANGES_TO);
    if (status == 0 && some > every)
        status = check_some_ranks(&conditions, (uint32_t)every + 1, (uint32_t)some);
    by_conditions_free(&conditions);
    return status;
}
