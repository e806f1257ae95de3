/* Communicators of ranks on one host; see near.h. */
#include "host-driver/plugin/mpi/near.h"

#include <stdlib.h>

#include "host-driver/local/single.h"

uint32_t *by_shim_members(MPI_Comm comm, int size)
{
    MPI_Group part = MPI_GROUP_NULL, all = MPI_GROUP_NULL;
    uint32_t *member = calloc((size_t)size, sizeof(*member));
    int *at = calloc(2 * (size_t)size, sizeof(*at)), *found = at + size, count = 0;

    for (int rank = 0; at != NULL && rank < size; rank++)
        at[rank] = rank;
    if (member != NULL && at != NULL && PMPI_Comm_group(comm, &part) == MPI_SUCCESS &&
        PMPI_Comm_group(MPI_COMM_WORLD, &all) == MPI_SUCCESS &&
        PMPI_Group_translate_ranks(part, size, at, all, found) == MPI_SUCCESS)
        for (; count < size && found[count] >= 0; count++) /* MPI_UNDEFINED is negative */
            member[count] = (uint32_t)found[count];
    if (part != MPI_GROUP_NULL)
        PMPI_Group_free(&part);
    if (all != MPI_GROUP_NULL)
        PMPI_Group_free(&all);
    free(at);
    if (count == size)
        return member;
    free(member);
    return NULL;
}

int by_shim_are_near(const uint32_t *member, int size, const uint64_t *space)
{
    if (member == NULL || size < 2 || size > (int)BY_SINGLE_RANKS_MAX)
        return 0;
    for (int rank = 0; rank < size; rank++)
        if (space[member[rank]] == 0 || space[member[rank]] != space[member[0]])
            return 0;
    return 1;
}

/*
 * The bytes of calls that banyan carries faster, measured with 2, 4 and 8 ranks on two cores
 * (tests/bench/near.sh). Both MPIs carry few bytes inline, where banyan's request for each call
 * costs more, and wait for no answer of a receiver up to their eager limit. With more ranks these
 * costs count less. Many bytes for one receiver take MPI one copy, and banyan two. Calls with
 * shares: of all ranks together.
 */
struct near_range {
    uint32_t least, most; /* bytes; most 0: no limit */
};

#define COLLECTIVES (BANYAN_GATHER + 1)
#ifdef OPEN_MPI
#define FEW 4
static const struct near_range range_of[2][COLLECTIVES] = {
    [0] = {[BANYAN_BROADCAST] = {512, 0}, [BANYAN_REDUCE] = {512, 0}},
    [1] = {[BANYAN_BROADCAST] = {512, 0},
           [BANYAN_REDUCE] = {512, 0},
           [BANYAN_ALLREDUCE] = {1024, 0},
           [BANYAN_ALLGATHER] = {1024, 0},
           [BANYAN_REDUCE_SCATTER] = {1024, 0},
           [BANYAN_BARRIER] = {1, 0},
           [BANYAN_ALLTOALL] = {8192, 262144},
           [BANYAN_SCATTER] = {4096, 0},
           [BANYAN_GATHER] = {8192, 65536}},
};
#else
#define FEW 2
static const struct near_range range_of[2][COLLECTIVES] = {
    [0] = {[BANYAN_BROADCAST] = {16384, 0},
           [BANYAN_REDUCE] = {4096, 0},
           [BANYAN_SCATTER] = {32768, 0},
           [BANYAN_GATHER] = {0, 32768}},
    [1] = {[BANYAN_BROADCAST] = {16384, 0},
           [BANYAN_REDUCE] = {2048, 0},
           [BANYAN_ALLREDUCE] = {64, 0},
           [BANYAN_ALLGATHER] = {32768, 0},
           [BANYAN_REDUCE_SCATTER] = {512, 0},
           [BANYAN_ALLTOALL] = {8192, 0},
           [BANYAN_SCATTER] = {32768, 0},
           [BANYAN_GATHER] = {8192, 65536}},
};
#endif

int by_shim_near_suits(banyan_collective_t collective, int ranks, uint64_t bytes)
{
    const struct near_range *range = &range_of[ranks <= FEW][collective];

    return bytes >= range->least && (range->most == 0 || bytes <= range->most);
}
