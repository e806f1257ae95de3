/*
 * Determines which trees serve a call and how its elements are split over them. All ranks compute
 * the same from the image alone: the records of the section LEAF agree on order, shares, owners and
 * collectives. Pure; the endpoint's thread.
 *
 * For a shard's owner or a root: the lanes planned for this collective and rank; if there are none,
 * those planned for this collective and any rank; if there are none, those of allreduce, because
 * every tree can serve every collective. An allreduce, broadcast or reduce of one packet uses the
 * first lane alone, which would otherwise carry a word.
 */
#include "offload/endpoint/state.h"

int by_share_rooted(unsigned collective)
{
    switch ((enum by_collective)collective) {
    case BY_COLLECTIVE_REDUCE_SCATTER:
        return 0;
    case BY_COLLECTIVE_ALLGATHER:
        return 1;
    case BY_COLLECTIVE_BROADCAST:
        return 2;
    case BY_COLLECTIVE_REDUCE:
        return 3;
    case BY_COLLECTIVE_ALLREDUCE:
    case BY_COLLECTIVE_BARRIER:
    default:
        return -1;
    }
}

static unsigned collective_of(unsigned rooted)
{
    static const uint8_t collectives[BY_ROOTED_COUNT] = {
        BY_COLLECTIVE_REDUCE_SCATTER, BY_COLLECTIVE_ALLGATHER, BY_COLLECTIVE_BROADCAST, BY_COLLECTIVE_REDUCE};

    BY_ASSERT(rooted < BY_ROOTED_COUNT);
    return collectives[rooted];
}

static uint32_t rank_group(const struct by_endpoint *endpoint, unsigned rooted, uint32_t rank)
{
    return BY_GROUP_RANK + (uint32_t)rooted * endpoint->rank_count + rank;
}

static void group_add(struct by_endpoint *endpoint, uint32_t index, uint32_t lane, uint64_t *before)
{
    struct by_ep_group *group = &endpoint->groups[index];

    if (endpoint->lanes[lane].half == BY_HALF_DOWN) /* carries what its tree up carries */
        return;
    *before = group->share_total;
    group->share_total += endpoint->lanes[lane].share;
    group->last_lane = lane;
    if (endpoint->lanes[lane].share > group->share_max)
        group->share_max = endpoint->lanes[lane].share;
}

void by_share_init(struct by_endpoint *endpoint)
{
    struct by_ep_lane *first;

    while (endpoint->first + 1 < endpoint->lane_count &&
           !(endpoint->lanes[endpoint->first].collectives & 1u << BY_COLLECTIVE_ALLREDUCE))
        endpoint->first++;
    if (!(endpoint->lanes[endpoint->first].collectives & 1u << BY_COLLECTIVE_ALLREDUCE))
        endpoint->first = 0;
    first = &endpoint->lanes[endpoint->first];
    group_add(endpoint, BY_GROUP_SHORT, endpoint->first, &first->before[BY_GROUP_SHORT]);
    for (uint32_t l = 0; l < endpoint->lane_count; l++) {
        struct by_ep_lane *lane = &endpoint->lanes[l];

        if (lane->half == BY_HALF_DOWN)
            by_copy(lane->before, lane[-1].before, sizeof(lane->before));
        if (lane->collectives & 1u << BY_COLLECTIVE_ALLREDUCE)
            group_add(endpoint, BY_GROUP_ALLREDUCE, l, &lane->before[BY_GROUP_ALLREDUCE]);
        if (lane->collectives & 1u << BY_COLLECTIVE_BARRIER)
            group_add(endpoint, BY_GROUP_BARRIER, l, &lane->before[BY_GROUP_BARRIER]);
        for (unsigned k = 0; k < BY_ROOTED_COUNT; k++) {
            if (!(lane->collectives & 1u << collective_of(k)))
                continue;
            group_add(endpoint,
                      lane->owner == BY_RANK_NONE ? BY_GROUP_ANY + k : rank_group(endpoint, k, lane->owner),
                      l, &lane->before[BY_GROUP_ANY + k]);
        }
    }
    for (unsigned k = 0; k < BY_ROOTED_COUNT; k++)
        for (uint32_t r = 0; r < endpoint->rank_count; r++)
            endpoint->orphans[k] += endpoint->groups[rank_group(endpoint, k, r)].share_total == 0;
}

uint32_t by_share_group(const struct by_endpoint *endpoint, unsigned collective, uint32_t rank)
{
    const struct by_ep_group *groups = endpoint->groups;
    int rooted = by_share_rooted(collective);

    if (rooted >= 0 && groups[rank_group(endpoint, (unsigned)rooted, rank)].share_total > 0)
        return rank_group(endpoint, (unsigned)rooted, rank);
    if (rooted >= 0 && groups[BY_GROUP_ANY + rooted].share_total > 0)
        return BY_GROUP_ANY + (uint32_t)rooted;
    if (collective == BY_COLLECTIVE_BARRIER && groups[BY_GROUP_BARRIER].share_total > 0)
        return BY_GROUP_BARRIER;
    return groups[BY_GROUP_ALLREDUCE].share_total > 0 ? BY_GROUP_ALLREDUCE : BY_GROUP_NONE;
}

uint32_t by_share_of_call(const struct by_endpoint *endpoint, const struct by_call_state *call, uint32_t rank)
{
    const struct by_ep_lane *first = &endpoint->lanes[endpoint->first];
    unsigned collective = call->call.collective;
    unsigned mode = by_collective_reduces(collective) ? call->call.mode : BY_MODE_FAST;

    if (collective != BY_COLLECTIVE_BARRIER && !by_collective_is_sharded(collective) &&
        (endpoint->short_modes >> mode & 1) && by_shard_bytes(call, 0) <= first->payload_max)
        return BY_GROUP_SHORT;
    return by_share_group(endpoint, collective, rank);
}

/* Returns the index of a group in a lane's `before`. */
static uint32_t place_of(const struct by_endpoint *endpoint, uint32_t group)
{
    return group < BY_GROUP_RANK ? group : BY_GROUP_ANY + (group - BY_GROUP_RANK) / endpoint->rank_count;
}

int by_share_member(const struct by_endpoint *endpoint, const struct by_ep_lane *lane, uint32_t group)
{
    unsigned collective;

    if (group == BY_GROUP_ALLREDUCE)
        return (lane->collectives >> BY_COLLECTIVE_ALLREDUCE & 1u) != 0;
    if (group == BY_GROUP_BARRIER)
        return (lane->collectives >> BY_COLLECTIVE_BARRIER & 1u) != 0;
    if (group == BY_GROUP_SHORT)
        return by_lane_lead(lane) == &endpoint->lanes[endpoint->first];
    collective = collective_of(place_of(endpoint, group) - BY_GROUP_ANY);
    if (!(lane->collectives >> collective & 1u))
        return 0;
    if (group < BY_GROUP_RANK)
        return lane->owner == BY_RANK_NONE;
    return lane->owner == (group - BY_GROUP_RANK) % endpoint->rank_count;
}

uint64_t by_share_scale(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t whole, rest, quotient = 0, remainder = 0;

    BY_ASSERT(c > 0 && b <= c && c >> 62 == 0);
    whole = a / c * b;
    rest = a % c;
    if (c >> 32 == 0)
        return whole + rest * b / c;
    /* rest * b / c bit by bit: remainder < c < 2^62 never overflows. */
    for (unsigned bit = 0; bit < 64; bit++) {
        remainder <<= 1;
        quotient <<= 1;
        if (remainder >= c) {
            remainder -= c;
            quotient++;
        }
        if (rest >> (63 - bit) & 1u) {
            remainder += b;
            if (remainder >= c) {
                remainder -= c;
                quotient++;
            }
        }
    }
    return whole + quotient;
}

/*
 * Boundaries are multiples of 64 bytes, so that chunks keep the alignment of the user's buffer.
 * They are rounded up, so that the first lane of a group has a part of everything that is not
 * empty.
 */
static uint64_t boundary(uint64_t total, uint64_t before, uint64_t share_total)
{
    uint64_t even = (by_share_scale(total, before, share_total) + 63) & ~(uint64_t)63;

    if (even == 0 && before > 0)
        even = 64;
    return even < total ? even : total;
}

void by_share_segment(const struct by_endpoint *endpoint, const struct by_ep_lane *lane, uint32_t group,
                      uint64_t total, uint64_t *start, uint64_t *end)
{
    const struct by_ep_group *g = &endpoint->groups[group];
    uint64_t before = lane->before[place_of(endpoint, group)];

    *start = boundary(total, before, g->share_total);
    *end = boundary(total, before + lane->share, g->share_total);
    if (by_lane_lead(lane) == &endpoint->lanes[g->last_lane])
        *end = total;
}

uint64_t by_share_weight(const struct by_endpoint *endpoint, const struct by_ep_lane *lane, uint32_t group,
                         uint32_t shards)
{
    return ((uint64_t)lane->share << 31) / endpoint->groups[group].share_total * shards;
}
