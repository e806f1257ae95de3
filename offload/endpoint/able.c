/*
 * What the nodes of the trees can compute, by the table. A call that they cannot compute is refused
 * before any packet of it is sent, on all ranks alike, since all tables of a lowering agree on a
 * tree. A node that supports less than the table states answers with BY_ERR_UNSUPPORTED.
 * Neighbours: share.c knows which trees serve what. Pure; the endpoint's thread.
 */
#include "offload/endpoint/state.h"

#include "offload/reduce/reduce.h"

static void narrow(struct by_abilities *able, const struct by_image_leaf *leaf)
{
    able->ops &= leaf->ops;
    able->dtypes &= leaf->dtypes;
    able->modes &= leaf->modes;
}

/* Returns nonzero if the tree may take part in such a call. Trees of allreduce serve collectives
 * that have none (share.c). */
static int has_part(const struct by_endpoint *endpoint, const struct by_image_leaf *leaf, unsigned collective)
{
    int rooted = by_share_rooted(collective);

    if (leaf->collectives >> collective & 1)
        return 1;
    return (leaf->collectives >> BY_COLLECTIVE_ALLREDUCE & 1) && rooted >= 0 &&
           endpoint->orphans[rooted] > 0 && endpoint->groups[BY_GROUP_ANY + rooted].share_total == 0;
}

void by_able_init(struct by_endpoint *endpoint, uint32_t leaf_first)
{
    for (unsigned c = 0; c < BY_COLLECTIVE_COUNT; c++)
        endpoint->able[c] = (struct by_abilities){UINT16_MAX, UINT16_MAX, UINT8_MAX};
    for (uint32_t l = 0; l < endpoint->lane_count; l++) {
        struct by_image_leaf leaf;

        by_image_leaf(endpoint->config.image, leaf_first + l, &leaf);
        for (unsigned c = 1; c < BY_COLLECTIVE_COUNT; c++)
            if (has_part(endpoint, &leaf, c))
                narrow(&endpoint->able[c], &leaf);
        if (l != endpoint->first)
            continue;
        endpoint->short_modes = leaf.collectives >> BY_COLLECTIVE_ALLREDUCE & 1 ? leaf.modes : 0;
        leaf.modes = UINT8_MAX; /* a chunk of each call uses this lane, but may be a word, of mode fast */
        for (unsigned c = 1; c < BY_COLLECTIVE_COUNT; c++)
            narrow(&endpoint->able[c], &leaf);
    }
}

static int can(const struct by_abilities *able, unsigned op, unsigned dtype)
{
    return able->ops >> op & able->dtypes >> dtype & 1;
}

int by_endpoint_can(const struct by_endpoint *endpoint, const struct by_call *call)
{
    const struct by_abilities *able = &endpoint->able[call->collective];

    if (endpoint->rank_count == 1 || !by_collective_reduces(call->collective))
        return 1;
    if (by_exact_is_for(call) && !can(&endpoint->able[BY_COLLECTIVE_ALLREDUCE], BY_OP_MAX, BY_DTYPE_U32))
        return 0; /* the scales */
    if (!can(able, call->op, by_reduction_dtype(call->mode, call->op, call->dtype)))
        return 0;
    return !by_reduction_is_ordered(call->op, call->dtype) || (able->modes >> call->mode & 1);
}
