/* All ranks on one host; see memory.h. */
#include "host-driver/fallback/memory.h"

#include <stddef.h>
#include <sys/random.h>
#include <sys/types.h>

#include "host-driver/bootstrap/bootstrap.h"
#include "host-driver/clock.h"
#include "host-driver/fallback/mesh.h"
#include "host-driver/fallback/peers.h"
#include "host-driver/local/mates.h"
#include "host-driver/local/single.h"
#include "offload/base/errors.h"

/* Where a rank runs, and for rank 0 the key of the memory. */
struct memory_place {
    uint64_t space; /* by_place_space */
    uint64_t key;
    uint64_t wanted; /* 0: it shares no memory, or its machine is unknown */
};

int by_memory_meet(struct by_peers *peers, bool wanted, uint64_t deadline_ns, uint64_t stall_ns,
                   struct by_single **single)
{
    struct memory_place mine = {0}, all[BY_SINGLE_RANKS_MAX];
    struct by_mates mates;
    bool together = true;
    int error;

    *single = NULL;
    if (peers->rank_count < 2 || peers->rank_count > BY_SINGLE_RANKS_MAX)
        return 0;
    by_mates_init(&mates);
    mine.wanted = by_place_space(&mine.space) && wanted;
    /* rank 0 listens before the others have the key */
    if (peers->rank == 0 && (getrandom(&mine.key, sizeof(mine.key), 0) != (ssize_t)sizeof(mine.key) ||
                             by_mates_listen(&mates, mine.key) != 0))
        mine.wanted = 0;
    error = by_peers_gather(peers, &mine, all, sizeof(mine), deadline_ns);
    for (uint32_t rank = 0; error == 0 && rank < peers->rank_count; rank++)
        together = together && all[rank].wanted != 0 && all[rank].space == all[0].space;
    if (error != 0 || !together) {
        by_mates_close(&mates);
        return error;
    }
    together = by_single_open(single, &mates, all[0].key, peers->rank, peers->rank_count, deadline_ns) == 0;
    error = by_peers_agree(peers, NULL, 0, &together, by_clock_ns() + stall_ns);
    if (!together) {
        by_single_close(*single);
        *single = NULL;
    }
    return error;
}

/* Whether calls cannot go on because the rank has ended. It may have given what they need just
 * before. */
static bool has_ended(const struct by_single *single, const struct by_host_mesh *mesh, uint32_t rank)
{
    if (mesh->gone != NULL)
        return mesh->gone[rank];
    return by_single_has_left(single, rank) && by_single_awaits(single, rank) == rank;
}

void by_memory_watch(const struct by_single *single, struct by_host_mesh *mesh, bool late,
                     struct by_mesh_fault *fault)
{
    uint32_t count = by_single_rank_count(single), first, rank;

    by_mesh_listen(mesh, fault);
    if (fault->error != 0)
        return;
    rank = first = by_single_awaits(single, 0);
    while (rank < count && !has_ended(single, mesh, rank))
        rank = by_single_awaits(single, rank + 1);
    if (rank < count)
        *fault = (struct by_mesh_fault){.error = BY_EIO, .rank = rank};
    else if (late && first < count)
        *fault = (struct by_mesh_fault){.error = BY_ETIMEDOUT, .rank = first};
}
