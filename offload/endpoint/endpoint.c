/*
 * The endpoint as a whole: memory, start, step. The parts: share.c (which trees serve a call),
 * cursor.c (chunks), call.c (begin and end of calls), session.c (the roll call), send.c, accept.c,
 * timer.c, pace.c (congestion control), suspect.c (failed nodes), guess.c (others' calls), exact.c
 * (sums in mode EXACT); retain.c, done.c, resume.c, resume_copy.c and rounds.c (calls that continue
 * in other trees). state.h has the shared records. Pure; the endpoint's thread.
 */
#include "offload/endpoint/state.h"
#include "offload/wire/datagram.h"

#define ALIGNMENT 64u
#define TX_MIN    4u

#define RTO_MIN_NS UINT64_C(50000)
#define RTO_MAX_NS UINT64_C(200000000)
#define STALL_NS   UINT64_C(10000000000)

/* The contents of an image for this rank, and the layout of the caller's memory. */
struct layout {
    struct by_image_job job;
    uint16_t node;
    uint32_t leaf_first, lane_count, tree_limit, group_count;
    uint64_t windows;
    size_t lanes_at, groups_at, trees_at, roll_at, flights_at, keep_at, bytes;
};

static size_t align_up(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

static int leaf_sound(const struct by_image_leaf *leaf, const struct by_image_job *job)
{
    return leaf->window > 0 && leaf->window <= BY_WINDOW_MAX && (leaf->window & (leaf->window - 1)) == 0 &&
           leaf->payload_max >= 8 && leaf->payload_max <= BY_PAYLOAD_MAX && leaf->payload_max % 8 == 0 &&
           leaf->tree < BY_TREES_MAX && leaf->share > 0 &&
           (leaf->owner == BY_RANK_NONE || leaf->owner < job->rank_count);
}

/* Returns 0; BY_ENOENT: no such job, or this node is not a rank of it; BY_EINVAL: an impossible
 * leaf. */
static int find_job(const uint8_t *image, uint16_t job, struct layout *layout)
{
    struct by_image_header header;

    by_image_header(image, &header);
    layout->node = header.node;
    for (uint32_t j = 0; j < header.count[BY_SECTION_JOB]; j++) {
        by_image_job(image, j, &layout->job);
        if (layout->job.job == job)
            return layout->job.rank < layout->job.rank_count ? 0 : BY_ENOENT;
    }
    return BY_ENOENT;
}

static int lay_out(const struct by_endpoint_config *config, struct layout *layout)
{
    struct by_image_header header;
    int error = find_job(config->image, config->job, layout);

    if (error != 0)
        return error;
    by_image_header(config->image, &header);
    layout->lane_count = layout->leaf_first = layout->tree_limit = 0;
    layout->windows = 0;
    layout->keep_at = 0; /* the size, until the start is known */
    for (uint32_t l = 0; l < header.count[BY_SECTION_LEAF]; l++) {
        struct by_image_leaf leaf;

        by_image_leaf(config->image, l, &leaf);
        if (leaf.job != config->job || (leaf.collectives == BY_LEAF_ROUNDS) != config->rounds)
            continue;
        if (!leaf_sound(&leaf, &layout->job))
            return BY_EINVAL;
        if (layout->lane_count++ == 0)
            layout->leaf_first = l;
        if (l - layout->leaf_first >= layout->lane_count)
            return BY_EINVAL; /* a tree of rounds is not the last one */
        if (leaf.tree >= layout->tree_limit)
            layout->tree_limit = leaf.tree + 1u;
        layout->windows += leaf.window;
        if (config->resume)
            layout->keep_at +=
                by_retain_traces(leaf.window) + by_retain_places(leaf.window, leaf.payload_max);
    }
    if (layout->lane_count > BY_TREES_MAX)
        return BY_EINVAL;
    if (config->rounds && layout->lane_count != 1)
        return BY_ENOENT;
    layout->group_count = BY_GROUP_RANK + BY_ROOTED_COUNT * layout->job.rank_count;
    layout->lanes_at = align_up(sizeof(struct by_endpoint));
    layout->groups_at = align_up(layout->lanes_at + layout->lane_count * sizeof(struct by_ep_lane));
    layout->trees_at = align_up(layout->groups_at + layout->group_count * sizeof(struct by_ep_group));
    layout->roll_at = align_up(layout->trees_at + layout->tree_limit * sizeof(uint16_t));
    layout->flights_at = align_up(layout->roll_at + layout->job.rank_count * sizeof(uint32_t));
    layout->bytes = layout->keep_at;
    layout->keep_at = align_up(layout->flights_at + layout->windows * sizeof(struct by_flight));
    layout->bytes += layout->keep_at;
    return 0;
}

size_t by_endpoint_size(const struct by_endpoint_config *config)
{
    struct layout layout;

    BY_ASSERT(config != NULL && config->image != NULL);
    return lay_out(config, &layout) == 0 ? layout.bytes : 0;
}

/* `job`: the job's key, or NULL. */
static void lane_init(struct by_endpoint *endpoint, uint32_t index, const struct by_image_leaf *leaf,
                      const struct by_siphash_key *job, struct by_flight *flights)
{
    struct by_ep_lane *lane = &endpoint->lanes[index];

    lane->tree = leaf->tree;
    lane->parent_port = leaf->parent_port;
    lane->parent_node = leaf->parent_node;
    lane->parent_udp_port = leaf->parent_udp_port;
    lane->parent_ip = leaf->parent_ip;
    lane->share = leaf->share;
    lane->payload_max = leaf->payload_max;
    lane->collectives =
        leaf->collectives == BY_LEAF_ROUNDS ? 1u << BY_COLLECTIVE_ALLREDUCE : leaf->collectives;
    lane->owner = leaf->owner;
    lane->parent_child = leaf->parent_child;
    lane->half = leaf->half;
    lane->mask = leaf->window - 1u;
    lane->flights = flights;
    lane->oldest = lane->newest = BY_FLIGHT_NONE;
    lane->ready_next = lane->urgent_next = BY_LANE_NONE;
    lane->quantum = BY_CREDIT_ONE;
    lane->threshold = BY_LOSS_THRESHOLD;
    endpoint->lane_of_tree[leaf->tree] = (uint16_t)index;
    if (endpoint->cover)
        by_hop_keys_make(job, endpoint->node, leaf->parent_node, 1, &lane->keys);
    by_suspect_hops(endpoint, lane);
}

static void key_init(struct by_endpoint *endpoint, struct by_siphash_key *key)
{
    struct by_image_key record;

    key->k0 = key->k1 = 0;
    if (!by_image_key_find(endpoint->config.image, endpoint->config.job, &record))
        return;
    endpoint->cover = record.cover;
    by_siphash_key_read(key, record.key);
    by_payload_key_make(key, &endpoint->payload_key);
}

static void config_fill(struct by_endpoint_config *config)
{
    if (config->rto_min_ns == 0)
        config->rto_min_ns = RTO_MIN_NS;
    if (config->rto_max_ns == 0)
        config->rto_max_ns = RTO_MAX_NS;
    if (config->stall_ns == 0)
        config->stall_ns = STALL_NS;
    /* The timeout must allow several questions before a call ends. */
    if (config->rto_max_ns > config->stall_ns / 8)
        config->rto_max_ns = config->stall_ns / 8;
    if (config->rto_min_ns > config->rto_max_ns)
        config->rto_min_ns = config->rto_max_ns;
}

int by_endpoint_init(struct by_endpoint **endpoint, void *memory, size_t bytes,
                     const struct by_endpoint_config *config)
{
    struct layout layout;
    struct by_siphash_key key;
    struct by_endpoint *e = memory;
    struct by_flight *flights;
    uint8_t *base = memory, *keep;
    int error;

    BY_ASSERT(endpoint != NULL && memory != NULL && config != NULL && config->image != NULL);
    BY_ASSERT((uintptr_t)memory % ALIGNMENT == 0);
    error = lay_out(config, &layout);
    if (error != 0)
        return error;
    if (bytes < layout.bytes)
        return BY_ENOMEM;
    by_zero(memory, layout.bytes);
    e->config = *config;
    config_fill(&e->config);
    e->words = by_reducer_get(config->isa, BY_OP_SUM, BY_DTYPE_U32);
    e->node = layout.node;
    e->gen = layout.job.gen;
    e->rank = layout.job.rank;
    e->rank_count = layout.job.rank_count;
    e->lane_count = (uint16_t)layout.lane_count;
    e->tree_limit = (uint16_t)layout.tree_limit;
    e->lanes = (struct by_ep_lane *)(base + layout.lanes_at);
    e->groups = (struct by_ep_group *)(base + layout.groups_at);
    e->lane_of_tree = (uint16_t *)(base + layout.trees_at);
    e->roll = (uint32_t *)(base + layout.roll_at);
    key_init(e, &key);
    e->ready = e->urgent = (struct by_ep_ring){BY_LANE_NONE, BY_LANE_NONE};
    e->tag = by_leaf_tag(config->job, e->rank);
    for (uint32_t r = 0; r < e->rank_count; r++)
        e->witness += by_leaf_tag(config->job, (uint16_t)r);
    for (uint32_t t = 0; t < layout.tree_limit; t++)
        e->lane_of_tree[t] = BY_LANE_NONE;
    flights = (struct by_flight *)(base + layout.flights_at);
    keep = base + layout.keep_at;
    for (uint32_t l = 0; l < layout.lane_count; l++) {
        struct by_image_leaf leaf;

        by_image_leaf(config->image, layout.leaf_first + l, &leaf);
        lane_init(e, l, &leaf, &key, flights);
        flights += leaf.window;
        if (!config->resume)
            continue;
        e->lanes[l].traces = (struct by_trace *)keep;
        e->lanes[l].keep = keep + by_retain_traces(leaf.window);
        keep += by_retain_traces(leaf.window) + by_retain_places(leaf.window, leaf.payload_max);
    }
    by_timer_init(e);
    by_share_init(e);
    by_able_init(e, layout.leaf_first);
    by_pace_init(e, layout.windows);
    *endpoint = e;
    return 0;
}

uint32_t by_endpoint_step(struct by_endpoint *endpoint, uint64_t now_ns, const struct by_rx *rx,
                          uint32_t rx_count, struct by_tx *tx, uint32_t tx_capacity, uint32_t *tx_count)
{
    BY_ASSERT(tx_capacity >= TX_MIN && tx_count != NULL);
    if (now_ns > endpoint->now_ns)
        endpoint->now_ns = now_ns;
    for (uint32_t i = 0; i < rx_count; i++) {
        struct by_rx part = rx[i];
        uint32_t left = rx[i].bytes;

        do {
            /* A payload that is stored separately means a single packet. */
            part.bytes = part.payload ? part.bytes : by_datagram_first(part.data, (uint16_t)left);
            by_accept(endpoint, &part);
            part.data += part.bytes;
            left -= part.bytes;
        } while (left > 0);
    }
    *tx_count = by_send_run(endpoint, tx, tx_capacity);
    return rx_count;
}

uint64_t by_endpoint_deadline(const struct by_endpoint *endpoint)
{
    return endpoint->inflight > 0 && !endpoint->frozen ? endpoint->deadline_ns : UINT64_MAX;
}

uint32_t by_endpoint_inflight(const struct by_endpoint *endpoint)
{
    return endpoint->inflight;
}

uint16_t by_endpoint_rank(const struct by_endpoint *endpoint)
{
    return endpoint->rank;
}

uint16_t by_endpoint_rank_count(const struct by_endpoint *endpoint)
{
    return endpoint->rank_count;
}

const struct by_endpoint_counters *by_endpoint_counters(const struct by_endpoint *endpoint)
{
    return &endpoint->counters;
}
