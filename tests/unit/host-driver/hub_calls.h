/*
 * Calls of all ranks of a hub (hub.h), whose results are exact to the bit: the one hub of a test,
 * its requests and buffers. Single-threaded.
 */
#ifndef TESTS_UNIT_HOST_HUB_CALLS_H
#define TESTS_UNIT_HOST_HUB_CALLS_H

#include <stdint.h>

#include "host-driver/clock.h"
#include "tests/unit/host-driver/hub.h"

/* Kinds of calls, for hub_post: the collectives, and an allreduce in place. */
enum { HUB_ALLREDUCE, HUB_REDUCE_SCATTER, HUB_ALLGATHER, HUB_BROADCAST, HUB_REDUCE, HUB_IN_PLACE, HUB_CALLS };

#define HUB_WAIT_S 15

extern struct host_driver_hub hub;
extern struct banyan_request *hub_request[HUB_HOSTS];

/* Runs one round of all ranks, switches and the controller. Returns the number of completed ranks;
 * an error ends the test. */
int hub_turn_all(void);
/* Posts a call at all ranks. */
void hub_post(unsigned which);
/* Runs until it has ended at all ranks; requires the right results, and frees the requests. */
void hub_check(unsigned which);
/* Runs until rank 0 has received results of so many more chunks, while calls are in progress. */
void hub_run_for(uint64_t chunks);

/* Runs rounds with different seeds, or the one of BANYAN_TEST_SEED, and prints the seed of each. */
void hub_random(void (*one_round)(uint64_t seed));

/* Turns until `condition`; too long a time ends the test. */
#define hub_until(condition)                                                                                 \
    for (uint64_t begin_ns = by_clock_ns(); !(condition); hub_turn_all())                                    \
        if (by_clock_ns() - begin_ns > HUB_WAIT_S * UINT64_C(1000000000))                                    \
    fail_msg("%s: not within %d s", #condition, HUB_WAIT_S)

#endif
