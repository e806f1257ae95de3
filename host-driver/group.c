/*
 * Communicators of some ranks of another one. Their hosts get a job of their own from the
 * controller (BY_MEMBER_GROUP), which ends when they have left; ranks of one host share its memory
 * instead, without a job. Neighbours: comm_open.c opens the communicator; ranks.c does the
 * exchanges between its ranks. Thread: the new communicator's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/comm.h"
#include "host-driver/error.h"
#include "host-driver/ranks.h"

/* ---- the group's ranks alone */

/* Finds out whether this rank can take part in a group on several hosts, which need a job. */
static int check_job(const struct banyan_comm *parent)
{
    if (!by_member_wanted(parent->context))
        return by_fail(BY_EUNSUPPORTED,
                       "another communicator requires a controller, which makes its tables: set "
                       "BANYAN_CONTROLLER");
    if (parent->image == NULL)
        return by_fail(BY_EUNSUPPORTED, "another communicator requires a parent with tables");
    if (parent->job.rank_count > BY_MEMBER_GROUP_BYTES * 8)
        return by_fail(BY_ELIMIT, "the parent has %u hosts; other communicators are for at most %u",
                       parent->job.rank_count, BY_MEMBER_GROUP_BYTES * 8);
    return 0;
}

static banyan_status_t create(struct banyan_comm *parent, const struct banyan_bootstrap *ranks,
                              struct banyan_comm **out)
{
    struct by_group group = {.parent = parent->job.job, .seat = parent->image != NULL ? parent->job.rank : 0};
    int error;

    by_bootstrap_init(&group.bootstrap);
    group.bootstrap.caller = *ranks;
    group.bootstrap.source = BY_SOURCE_CALLER;
    group.bootstrap.meeting.rank = ranks->rank;
    group.bootstrap.meeting.rank_count = ranks->rank_count;
    if (atomic_load(&parent->error) != 0)
        group.error = by_fail(BY_ESTATE, "the parent communicator has failed");
    else
        group.apart = check_job(parent);
    if (group.error != 0 || group.apart != 0)
        snprintf(group.text, sizeof(group.text), "%s", by_fail_text());
    error = by_comm_create(parent->context, 0, &group, out);
    by_bootstrap_close(&group.bootstrap);
    return (banyan_status_t)error;
}

banyan_status_t banyan_comm_create_group(struct banyan_comm *parent, const struct banyan_bootstrap *ranks,
                                         struct banyan_comm **out)
{
    if (!by_comm_is(parent, "banyan_comm_create_group"))
        return BANYAN_EINVAL;
    if (ranks == NULL || out == NULL)
        return by_fail(BY_EINVAL, "banyan_comm_create_group: %s is NULL", ranks == NULL ? "ranks" : "comm");
    if (ranks->size != sizeof(*ranks))
        return by_fail(BY_EVERSION, "banyan_comm_create_group: ranks.size is %zu, this library expects %zu",
                       ranks->size, sizeof(*ranks));
    if (ranks->allgather == NULL || ranks->rank_count == 0 || ranks->rank >= ranks->rank_count ||
        ranks->rank_count > parent->rank_count)
        return by_fail(BY_EINVAL, "banyan_comm_create_group: rank %u of %u%s; the parent has %u ranks",
                       ranks->rank, ranks->rank_count, ranks->allgather == NULL ? ", without allgather" : "",
                       parent->rank_count);
    return create(parent, ranks, out);
}

/* ---- all ranks of the parent */

struct group_place {
    int32_t color, key;
};

struct group_split {
    struct banyan_comm *parent;
    struct group_place *place; /* by rank of the parent */
    uint32_t *member;          /* the parent's ranks of this group, in its order */
    uint32_t count, rank;
};

/* An allgather over the parent of which each rank takes the blocks of its group: each rank sets its
 * own block of a vector, and the vectors are joined. */
static int gather(void *context, const void *mine, void *all, size_t bytes)
{
    const struct group_split *split = context;
    const struct banyan_comm *parent = split->parent;
    uint8_t *blocks = calloc(parent->rank_count, bytes);
    int status = BANYAN_ENOMEM;

    if (blocks != NULL) {
        memcpy(blocks + (size_t)parent->rank * bytes, mine, bytes);
        status = banyan_allreduce(split->parent, blocks, blocks, (uint64_t)parent->rank_count * bytes,
                                  BANYAN_U8, BANYAN_BOR);
    }
    for (uint32_t i = 0; i < split->count && status == BANYAN_OK; i++)
        memcpy((uint8_t *)all + i * bytes, blocks + split->member[i] * bytes, bytes);
    free(blocks);
    return status;
}

/* Adds a rank of the parent in the order of keys; equal keys keep the parent's order. */
static void insert(struct group_split *split, uint32_t rank)
{
    uint32_t at = split->count++;

    for (; at > 0 && split->place[split->member[at - 1]].key > split->place[rank].key; at--)
        split->member[at] = split->member[at - 1];
    split->member[at] = rank;
}

/* Learns the colors and keys of all ranks, and the group of this one. */
static int find_group(struct group_split *split, int color, int key)
{
    const struct banyan_comm *parent = split->parent;
    struct group_place mine = {.color = color, .key = key};

    for (uint32_t rank = 0; rank < parent->rank_count; rank++)
        split->member[rank] = rank;
    split->count = parent->rank_count;
    if (gather(split, &mine, split->place, sizeof(mine)) != 0)
        return BY_EIO; /* the text of the allreduce */
    split->count = 0;
    for (uint32_t rank = 0; rank < parent->rank_count; rank++)
        if (color >= 0 && split->place[rank].color == color)
            insert(split, rank);
    while (split->rank < split->count && split->member[split->rank] != parent->rank)
        split->rank++;
    return 0;
}

banyan_status_t banyan_comm_split(struct banyan_comm *parent, int color, int key, struct banyan_comm **out)
{
    struct group_split split = {.parent = parent};
    struct banyan_bootstrap ranks = {.size = sizeof(ranks), .context = &split, .allgather = gather};
    int error;

    if (!by_comm_is(parent, "banyan_comm_split"))
        return BANYAN_EINVAL;
    if (out == NULL)
        return by_fail(BY_EINVAL, "banyan_comm_split: comm is NULL");
    if (color < 0 && color != BANYAN_UNDEFINED)
        return by_fail(BY_EINVAL, "banyan_comm_split: the color is %d; use 0 or more, or BANYAN_UNDEFINED",
                       color);
    *out = NULL;
    split.place = calloc(parent->rank_count, sizeof(*split.place));
    split.member = calloc(parent->rank_count, sizeof(*split.member));
    if (split.place == NULL || split.member == NULL)
        error = by_fail(BY_ENOMEM, "banyan_comm_split: no memory for %u ranks", parent->rank_count);
    else
        error = find_group(&split, color, key);
    ranks.rank = split.rank;
    ranks.rank_count = split.count;
    if (error == 0)
        error = split.count > 0 ? (int)create(parent, &ranks, out) : by_ranks_stand_by(&ranks);
    free(split.place);
    free(split.member);
    return (banyan_status_t)error;
}

banyan_status_t banyan_comm_dup(struct banyan_comm *parent, struct banyan_comm **out)
{
    if (!by_comm_is(parent, "banyan_comm_dup"))
        return BANYAN_EINVAL;
    return banyan_comm_split(parent, 0, (int)parent->rank, out);
}

banyan_status_t banyan_comm_progress(struct banyan_comm *comm)
{
    if (!by_comm_is(comm, "banyan_comm_progress"))
        return BANYAN_EINVAL;
    by_comm_progress(comm, 0);
    return BANYAN_OK;
}
