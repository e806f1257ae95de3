/*
 * Finds the node that is responsible when a chunk does not return. WAITs report which node waits
 * for which. They come from the parent, which also passes on its own parent's WAITs, so the
 * endpoint hears of several places and keeps the one nearest to the cause. Pure; the endpoint's
 * thread.
 *
 * Every reporting node is an ancestor, and an ancestor's WAIT for a chunk reaches this rank only
 * when all nodes between have the chunk complete. So the highest one that reported is nearest to
 * the cause, and a later report of the same node replaces its earlier one. A node that has not
 * repeated its report over several questions may have died since: then a nearer one counts, or the
 * silence of the parent itself.
 */
#include "offload/endpoint/state.h"

/* The longest path up a tree (hops): protects against a table with a loop. */
#define DEPTH_MAX 64u

void by_suspect_hops(struct by_endpoint *endpoint, struct by_ep_lane *lane)
{
    struct by_image_header header;

    by_image_header(endpoint->config.image, &header);
    lane->hop_first = lane->hop_end = 0;
    for (uint32_t h = 0; h < header.count[BY_SECTION_HOP]; h++) {
        struct by_image_hop hop;

        by_image_hop(endpoint->config.image, h, &hop);
        if (hop.job != endpoint->config.job || hop.tree != lane->tree)
            continue;
        if (lane->hop_end == 0)
            lane->hop_first = h;
        lane->hop_end = h + 1;
    }
}

/* Finds the record of `node` (child < 0), or of the child with number `child` of parent `node`.
 * Returns 1 when there is one. */
static int find_hop(const struct by_endpoint *endpoint, const struct by_ep_lane *lane, uint16_t node,
                    int child, struct by_image_hop *hop)
{
    struct by_hop_count count = {0};

    for (uint32_t h = lane->hop_first; h < lane->hop_end; h++) {
        by_image_hop(endpoint->config.image, h, hop);
        if (hop->job != endpoint->config.job || hop->tree != lane->tree || !by_image_hop_is_own(hop))
            continue;
        if (child < 0 ? hop->node == node && hop->parent != node
                      : hop->parent == node && by_hop_number(&count, hop) == (uint32_t)child)
            return 1;
    }
    return 0;
}

/* Returns whether `upper` is an ancestor of `lower`. */
static int is_above(const struct by_endpoint *endpoint, const struct by_ep_lane *lane, uint16_t upper,
                    uint16_t lower)
{
    struct by_image_hop hop;

    for (unsigned depth = 0; depth < DEPTH_MAX && find_hop(endpoint, lane, lower, -1, &hop); depth++) {
        if (hop.parent == upper)
            return 1;
        lower = hop.parent;
    }
    return 0;
}

uint16_t by_suspect_upper(const struct by_endpoint *endpoint, const struct by_ep_lane *lane)
{
    struct by_image_hop hop;

    if (lane->parent_node != endpoint->node)
        return lane->parent_node;
    return find_hop(endpoint, lane, endpoint->node, -1, &hop) ? hop.parent : BY_NODE_NONE;
}

/* Returns whether the report was not repeated, although several questions have been asked since. */
static int is_stale(const struct by_endpoint *endpoint, const struct by_ep_lane *lane)
{
    return endpoint->now_ns - lane->wait.heard_ns > endpoint->config.stall_ns / 8 * 3;
}

void by_suspect_hear(struct by_endpoint *endpoint, struct by_ep_lane *lane, uint32_t seq,
                     const struct by_wait *wait)
{
    struct by_lane_wait *old = &lane->wait;
    uint64_t absent_ns = old->heard && old->seq == seq ? old->absent_ns : 0;
    int replace;

    if (seq != lane->base || lane->base == lane->next)
        return; /* only the oldest chunk can be the one with which a call ends */
    replace = !old->heard || old->seq != seq || old->wait.node == wait->node || is_stale(endpoint, lane) ||
              is_above(endpoint, lane, wait->node, old->wait.node);
    if (!replace)
        return;
    *old = (struct by_lane_wait){.heard_ns = endpoint->now_ns, .seq = seq, .heard = 1, .wait = *wait};
    old->absent_ns = by_suspect_is_absence(endpoint, lane) ? endpoint->now_ns : absent_ns;
}

/* Whether there is a report about the oldest chunk that counts. */
static int is_reported(const struct by_endpoint *endpoint, const struct by_ep_lane *lane)
{
    return lane->wait.heard && lane->wait.seq == lane->base && !is_stale(endpoint, lane);
}

/* Whether `node` is a leaf of the lane's tree. */
static int is_leaf(const struct by_endpoint *endpoint, const struct by_ep_lane *lane, uint16_t node)
{
    for (uint32_t h = lane->hop_first; h < lane->hop_end; h++) {
        struct by_image_hop hop;

        by_image_hop(endpoint->config.image, h, &hop);
        if (hop.job == endpoint->config.job && hop.tree == lane->tree && hop.parent == node &&
            hop.node != node)
            return 0;
    }
    return 1;
}

int by_suspect_is_absence(const struct by_endpoint *endpoint, const struct by_ep_lane *lane)
{
    const struct by_wait *wait = &lane->wait.wait;
    struct by_image_hop hop;

    if (!is_reported(endpoint, lane) || wait->state != BY_WAIT_CHILDREN || wait->missing == 0)
        return 0;
    for (uint64_t rest = wait->missing; rest != 0; rest &= rest - 1)
        if (find_hop(endpoint, lane, wait->at, wait->set * (int)BY_CHILDREN_MAX + __builtin_ctzll(rest),
                     &hop) &&
            !is_leaf(endpoint, lane, hop.node))
            return 0;
    return 1; /* a bit without a record is that host's own rank */
}

void by_suspect_fill(const struct by_endpoint *endpoint, const struct by_ep_lane *lane,
                     struct by_call_status *status)
{
    const struct by_wait *wait = &lane->wait.wait;
    struct by_image_hop hop;

    status->tree = lane->tree;
    status->seq = lane->base;
    status->missing_node = BY_NODE_NONE;
    status->missing = 0;
    status->wait_state = 0;
    if (!is_reported(endpoint, lane)) {
        status->node = lane->parent_node;
        if (lane->hint.reason != 0 && lane->hint.seq == lane->base) {
            status->node = lane->hint.node;
            status->err = lane->hint;
        }
        return;
    }
    status->node = wait->state == BY_WAIT_PARENT ? wait->node : wait->at;
    status->wait_state = wait->state;
    status->missing = wait->missing;
    status->missing_set = wait->set;
    if (wait->state == BY_WAIT_PARENT) {
        if (find_hop(endpoint, lane, wait->node, -1, &hop))
            status->missing_node = hop.parent;
    } else if (wait->missing != 0 &&
               find_hop(endpoint, lane, wait->at,
                        wait->set * (int)BY_CHILDREN_MAX + __builtin_ctzll(wait->missing), &hop)) {
        status->missing_node = hop.node;
    } else if (wait->missing != 0 && lane->hop_end > 0) {
        status->missing_node = wait->at; /* the bit is no other node, but that host's own rank */
    }
}

/* Whether the lane's oldest chunk has waited for so long. */
static int waits(const struct by_ep_lane *lane, uint64_t now_ns, uint64_t wait_ns)
{
    return lane->base != lane->next && now_ns >= by_lane_waits_since(lane) &&
           now_ns - by_lane_waits_since(lane) >= wait_ns;
}

int by_endpoint_is_cut(const struct by_endpoint *endpoint, uint32_t place, uint64_t now_ns, uint64_t wait_ns)
{
    const struct by_ep_lane *lane = endpoint->lanes;

    if (endpoint->dead != 0 || endpoint->frozen || place >= endpoint->lane_count)
        return 0;
    lane += place;
    if (!waits(lane, now_ns, wait_ns))
        return 0;
    /* The report of absence is repeated for each question, of which two may be lost. Before it a
     * node further up reports that it waits for the node that then reports absence. */
    return !lane->wait.heard || lane->wait.seq != lane->base || lane->wait.absent_ns == 0 ||
           now_ns - lane->wait.absent_ns > wait_ns + 3 * by_pace_timeout(endpoint, lane);
}

int by_endpoint_suspects(const struct by_endpoint *endpoint, uint64_t now_ns, uint64_t wait_ns,
                         struct by_call_status *status)
{
    if (endpoint->dead != 0 || endpoint->frozen)
        return 0;
    for (uint32_t l = 0; l < endpoint->lane_count; l++) {
        const struct by_ep_lane *lane = &endpoint->lanes[l];

        if (!waits(lane, now_ns, wait_ns))
            continue;
        *status = (struct by_call_status){0};
        by_suspect_fill(endpoint, lane, status);
        return 1;
    }
    return 0;
}
