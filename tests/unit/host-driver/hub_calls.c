/* Implements hub_calls.h. */
#include "tests/unit/host-driver/hub_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "host-driver/comm.h"
#include "tests/unit/host-driver/rig.h"

#define COUNT 300000

struct host_driver_hub hub;
struct banyan_request *hub_request[HUB_HOSTS];

static int32_t in[HUB_HOSTS][COUNT], out[HUB_HOSTS][COUNT];

static int32_t value_of(int rank, uint64_t i)
{
    return (int32_t)((uint32_t)(i * 2654435761u) >> 7) * (rank + 1);
}

static int32_t sum_of(uint64_t i)
{
    uint32_t sum = 0;

    for (int r = 0; r < HUB_HOSTS; r++)
        sum += (uint32_t)value_of(r, i);
    return (int32_t)sum;
}

int hub_turn_all(void)
{
    int ended = 0;

    hub_turn(&hub);
    for (int r = 0; r < HUB_HOSTS; r++) {
        int done = 0;

        if (banyan_test(hub_request[r], &done) != BANYAN_OK)
            fail_msg("rank %d: %s", r, banyan_last_error());
        by_comm_progress(hub.comm[r], 0); /* a rank whose call has ended still answers others */
        ended += done;
    }
    return ended;
}

/* Makes the request of rank r. */
static banyan_status_t make(unsigned which, int r)
{
    struct banyan_comm *comm = hub.comm[r];
    struct banyan_request **request = &hub_request[r];

    switch (which) {
    case HUB_ALLREDUCE:
        return banyan_allreduce_init(comm, in[r], out[r], COUNT, BANYAN_I32, BANYAN_SUM, request);
    case HUB_REDUCE_SCATTER:
        return banyan_reduce_scatter_init(comm, in[r], out[r], COUNT / HUB_HOSTS, BANYAN_I32, BANYAN_SUM,
                                          request);
    case HUB_ALLGATHER:
        return banyan_allgather_init(comm, in[r], out[r], COUNT / HUB_HOSTS, BANYAN_I32, request);
    case HUB_BROADCAST:
        return banyan_broadcast_init(comm, out[r], COUNT, BANYAN_I32, 2, request);
    case HUB_REDUCE:
        return banyan_reduce_init(comm, in[r], out[r], COUNT, BANYAN_I32, BANYAN_SUM, 1, request);
    default:
        return banyan_allreduce_init(comm, out[r], out[r], COUNT, BANYAN_I32, BANYAN_SUM, request);
    }
}

void hub_post(unsigned which)
{
    for (int r = 0; r < HUB_HOSTS; r++) {
        bool begins = which == HUB_IN_PLACE || (which == HUB_BROADCAST && r == 2);

        for (uint64_t i = 0; i < COUNT; i++) {
            in[r][i] = value_of(r, i);
            out[r][i] = begins ? in[r][i] : -1;
        }
        if (make(which, r) != BANYAN_OK || banyan_post(hub_request[r]) != BANYAN_OK)
            fail_msg("call %u: %s", which, banyan_last_error());
    }
}

static int32_t wanted(unsigned which, int rank, uint64_t i)
{
    uint64_t share = COUNT / HUB_HOSTS;

    switch (which) {
    case HUB_REDUCE_SCATTER:
        return i < share ? sum_of((uint64_t)rank * share + i) : -1;
    case HUB_ALLGATHER:
        return i < share * HUB_HOSTS ? value_of((int)(i / share), i % share) : -1;
    case HUB_BROADCAST:
        return value_of(2, i);
    case HUB_REDUCE:
        return rank == 1 ? sum_of(i) : -1;
    default:
        return sum_of(i);
    }
}

void hub_check(unsigned which)
{
    hub_until(hub_turn_all() == HUB_HOSTS);
    for (int r = 0; r < HUB_HOSTS; r++) {
        for (uint64_t i = 0; i < COUNT; i++)
            if (out[r][i] != wanted(which, r, i))
                fail_msg("call %u, rank %d, element %llu: %d instead of %d", which, r, (unsigned long long)i,
                         out[r][i], wanted(which, r, i));
        assert_int_equal(banyan_free(hub_request[r]), BANYAN_OK);
    }
}

void hub_run_for(uint64_t chunks)
{
    uint64_t begin = hub_counter(&hub, 0, "endpoint/result");

    hub_until(hub_members(&hub) == HUB_HOSTS);
    hub_until(hub_counter(&hub, 0, "endpoint/result") - begin >= chunks);
}

void hub_random(void (*one_round)(uint64_t seed))
{
    const char *given = getenv("BANYAN_TEST_SEED");
    uint64_t first = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    int rounds = given != NULL ? 1 : 12;

    for (int i = 0; i < rounds; i++) {
        fprintf(stderr, "%s round of seed %llu", i == 0 ? "" : "\r",
                (unsigned long long)(first + (uint64_t)i));
        one_round(first + (uint64_t)i);
    }
    fprintf(stderr, "\n");
}
