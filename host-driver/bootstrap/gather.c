/* Exchanges of the ranks of a job; see gather.h. */
#include "host-driver/bootstrap/gather.h"

#include <string.h>

#include "host-driver/error.h"

int by_gather_open(struct by_gather *gather, struct by_bootstrap *bootstrap, uint32_t key,
                   uint64_t deadline_ns)
{
    int error;

    memset(gather, 0, sizeof(*gather));
    gather->bootstrap = bootstrap;
    if (bootstrap->source == BY_SOURCE_CALLER) {
        gather->rank = bootstrap->caller.rank;
        gather->rank_count = bootstrap->caller.rank_count;
        return 0;
    }
    error = by_bootstrap_join(bootstrap, deadline_ns);
    if (error != 0)
        return error;
    gather->rank = bootstrap->meeting.rank;
    gather->rank_count = bootstrap->meeting.rank_count;
    gather->met = true;
    return by_peers_meet(&gather->peers, &bootstrap->meeting, key, deadline_ns);
}

int by_gather_run(struct by_gather *gather, const void *mine, void *all, size_t bytes, uint64_t deadline_ns)
{
    if (gather->met)
        return by_peers_gather(&gather->peers, mine, all, bytes, deadline_ns);
    return by_bootstrap_exchange(&gather->bootstrap->caller, mine, all, bytes);
}

void by_gather_close(struct by_gather *gather)
{
    if (gather->met)
        by_peers_close(&gather->peers);
    gather->met = false;
}
