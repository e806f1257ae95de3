/*
 * Follows table images like packets: out of a port, over the cable that both ends describe, through
 * relays, into the node that the sender's record names. Uses neither the topology nor the plan.
 * Fails the running test with the place of the first contradiction.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "tests/unit/control/tables/bench.h"

struct tree_key {
    uint16_t job, tree;
};

/* A packet in flight: its node, and the port on which it arrived. */
struct walk_flight {
    uint32_t node;
    uint32_t port;
};

static struct by_image_header header_of(const struct bench_images *images, uint32_t node)
{
    struct by_image_header header;

    by_image_header(images->bytes[node], &header);
    assert_int_equal(header.node, node);
    return header;
}

static struct by_image_port port_of(const struct bench_images *images, uint32_t node, uint32_t port)
{
    struct by_image_port record;

    if (port >= header_of(images, node).count[BY_SECTION_PORT])
        fail_msg("node %u has no port %u", node, port);
    by_image_port(images->bytes[node], port, &record);
    return record;
}

/* Crosses the cable of `port` to the peer's port with the peer address of `port`, which must refer
 * back to `port`. */
static struct walk_flight cross(const struct bench_images *images, uint32_t node, uint32_t port)
{
    struct by_image_port near = port_of(images, node, port);
    uint32_t count = header_of(images, near.peer_node).count[BY_SECTION_PORT];

    for (uint32_t i = 0; i < count; i++) {
        struct by_image_port far = port_of(images, near.peer_node, i);
        if (far.own_ip != near.peer_ip)
            continue;
        assert_int_equal(far.peer_ip, near.own_ip);
        assert_int_equal(far.peer_node, node);
        assert_memory_equal(far.own_mac, near.peer_mac, 6);
        assert_memory_equal(far.peer_mac, near.own_mac, 6);
        return (struct walk_flight){near.peer_node, i};
    }
    fail_msg("node %u port %u: its peer has no such address", node, port);
    return (struct walk_flight){0, 0};
}

static int is_own(const struct bench_images *images, uint32_t node, uint32_t ip)
{
    uint32_t count = header_of(images, node).count[BY_SECTION_PORT];

    for (uint32_t i = 0; i < count; i++)
        if (port_of(images, node, i).own_ip == ip)
            return 1;
    return 0;
}

/* Sends a packet of a tree from a node's port to `dst`, through relays. Returns where it
 * arrives. */
static struct walk_flight send_packet(const struct bench_images *images, struct tree_key key, uint32_t node,
                                      uint32_t port, uint32_t dst)
{
    uint32_t src = port_of(images, node, port).own_ip;
    struct walk_flight at = cross(images, node, port);

    for (uint32_t passed = 0; !is_own(images, at.node, dst); passed++) {
        uint32_t count = header_of(images, at.node).count[BY_SECTION_RELAY], out = UINT32_MAX;
        for (uint32_t i = 0; i < count; i++) {
            struct by_image_relay relay;
            by_image_relay(images->bytes[at.node], i, &relay);
            if (relay.job == key.job && relay.tree == key.tree && relay.src_ip == src &&
                relay.dst_ip == dst) {
                assert_int_equal(relay.from, at.port + 1); /* switches require this */
                out = relay.port;
            }
        }
        if (out == UINT32_MAX || passed > images->count)
            fail_msg("job %u tree %u: node %u drops or circles the packet from %08x to %08x", key.job,
                     key.tree, at.node, src, dst);
        at = cross(images, at.node, out);
    }
    /* Only the port with that address accepts it. */
    assert_int_equal(port_of(images, at.node, at.port).own_ip, dst);
    return at;
}

static int find_entry(const struct bench_images *images, uint32_t node, struct tree_key key,
                      struct by_image_entry *entry)
{
    uint32_t count = header_of(images, node).count[BY_SECTION_ENTRY];

    for (uint32_t i = 0; i < count; i++) {
        by_image_entry(images->bytes[node], i, entry);
        if (entry->job == key.job && entry->tree == key.tree)
            return 1;
    }
    return 0;
}

static int find_leaf(const struct bench_images *images, uint32_t node, struct tree_key key,
                     struct by_image_leaf *leaf)
{
    uint32_t count = header_of(images, node).count[BY_SECTION_LEAF];

    for (uint32_t i = 0; i < count; i++) {
        by_image_leaf(images->bytes[node], i, leaf);
        if (leaf->job == key.job && leaf->tree == key.tree)
            return 1;
    }
    return 0;
}

static uint16_t listens_on(const struct bench_images *images, uint32_t node, uint16_t job_id)
{
    struct by_image_header header = header_of(images, node);
    struct by_image_job job;

    if (header.kind == BY_NODE_SWITCH)
        return BY_UDP_PORT;
    for (uint32_t i = 0; i < header.count[BY_SECTION_JOB]; i++) {
        by_image_job(images->bytes[node], i, &job);
        if (job.job == job_id)
            return job.udp_port;
    }
    fail_msg("node %u does not know job %u", node, job_id);
    return 0;
}

/* Checks the link between a parent's child record and the child's record of its parent, in both
 * directions. */
static void check_tie(const struct bench_images *images, struct tree_key key, uint32_t parent, uint32_t bit,
                      const struct by_image_child *child, uint16_t up_port, uint16_t up_node, uint32_t up_ip,
                      uint16_t up_udp, uint8_t up_child)
{
    struct walk_flight down, up;

    assert_int_equal(up_node, parent);
    assert_int_equal(up_child, bit % BY_CHILDREN_MAX);
    if (child->port == BY_PORT_LOCAL) {
        assert_int_equal(child->node, parent);
        assert_int_equal(up_port, BY_PORT_LOCAL);
        return;
    }
    assert_int_equal(child->udp_port, listens_on(images, child->node, key.job));
    assert_int_equal(up_udp, listens_on(images, parent, key.job));
    down = send_packet(images, key, parent, child->port, child->ip);
    assert_int_equal(down.node, child->node);
    assert_int_equal(down.port, up_port);
    /* A result is accepted only from the parent's address, a contribution only from the child's:
     * these are the addresses of the senders' ports. */
    assert_int_equal(port_of(images, parent, child->port).own_ip, up_ip);
    assert_int_equal(port_of(images, child->node, up_port).own_ip, child->ip);
    up = send_packet(images, key, child->node, up_port, up_ip);
    assert_int_equal(up.node, parent);
    assert_int_equal(up.port, child->port);
}

/* Walks the tree below an entry with a stack of nodes, without recursion. Returns the hops; `met`
 * counts ranks. */
static uint32_t walk_tree(const struct bench_images *images, struct tree_key key, uint32_t root,
                          uint32_t *met)
{
    uint32_t *stack = by_alloc(images->count + 1, sizeof(uint32_t)), depth = 0, hops = 0;

    stack[depth++] = root;
    while (depth > 0) {
        uint32_t node = stack[--depth];
        struct by_image_entry entry, below;
        struct by_image_leaf leaf;
        uint32_t leaves = 0;
        assert_true(find_entry(images, node, key, &entry));
        for (uint32_t bit = 0; bit < entry.child_count; bit++, hops++) {
            struct by_image_child child;
            by_image_child(images->bytes[node], entry.first_child + bit, &child);
            if (child.port != BY_PORT_LOCAL && find_entry(images, child.node, key, &below)) {
                check_tie(images, key, node, bit, &child, below.parent_port, below.parent_node,
                          below.parent_ip, below.parent_udp_port, below.parent_child);
                assert_int_equal(child.rank, BY_RANK_NONE);
                assert_int_equal(below.window, entry.window);
                leaves += below.nleaf;
                stack[depth++] = child.node;
                assert_true(depth <= images->count);
                continue;
            }
            if (!find_leaf(images, child.node, key, &leaf))
                fail_msg("job %u tree %u: child %u of node %u is neither a leaf nor an entry", key.job,
                         key.tree, bit, node);
            check_tie(images, key, node, bit, &child, leaf.parent_port, leaf.parent_node, leaf.parent_ip,
                      leaf.parent_udp_port, leaf.parent_child);
            assert_int_equal(leaf.window, entry.window);
            met[child.rank]++;
            leaves++;
        }
        assert_int_equal(leaves, entry.nleaf);
    }
    free(stack);
    return hops;
}

/* Ranges of slots do not overlap and stay below the header's count. */
static void check_slots(const struct bench_images *images, uint32_t node)
{
    struct by_image_header header = header_of(images, node);
    struct by_image_entry a, b;

    for (uint32_t i = 0; i < header.count[BY_SECTION_ENTRY]; i++) {
        by_image_entry(images->bytes[node], i, &a);
        assert_true(a.slot_base + a.window <= header.slot_count);
        for (uint32_t j = 0; j < i; j++) {
            by_image_entry(images->bytes[node], j, &b);
            if (a.joined || b.joined)
                continue; /* these have the slots of the entry before them */
            assert_true(a.slot_base >= b.slot_base + b.window || b.slot_base >= a.slot_base + a.window);
        }
    }
}

/* Returns whether a node is a rank of the job that has number `index` in all images. */
static bool is_rank(const struct bench_images *images, uint32_t node, uint32_t index)
{
    struct by_image_job job;

    by_image_job(images->bytes[node], index, &job);
    return header_of(images, node).kind == BY_NODE_HOST && job.rank != BY_RANK_NONE;
}

/* All ranks have the same data of a tree, and other hosts none. */
static void check_leaves(const struct bench_images *images, struct tree_key key, uint32_t index,
                         uint32_t host)
{
    struct by_image_leaf first, other;

    assert_true(find_leaf(images, host, key, &first));
    for (uint32_t node = 0; node < images->count; node++) {
        if (header_of(images, node).kind == BY_NODE_HOST)
            assert_int_equal(find_leaf(images, node, key, &other), is_rank(images, node, index));
        if (header_of(images, node).kind != BY_NODE_HOST || !is_rank(images, node, index))
            continue;
        assert_int_equal(other.share, first.share);
        assert_int_equal(other.owner, first.owner);
        assert_int_equal(other.collectives, first.collectives);
        assert_int_equal(other.window, first.window);
        assert_int_equal(other.payload_max, first.payload_max);
    }
}

/* Walks the trees of a job from number `first` on. */
static uint32_t walk_job(const struct bench_images *images, uint32_t index, uint16_t first,
                         const struct by_image_job *job)
{
    uint32_t *met = by_alloc(job->rank_count, sizeof(uint32_t)), hops = 0, host = 0;

    while (!is_rank(images, host, index))
        host++;
    for (uint16_t tree = first; tree < job->tree_count; tree++) {
        struct tree_key key = {job->job, tree};
        uint32_t root = UINT32_MAX;
        memset(met, 0, job->rank_count * sizeof(uint32_t));
        for (uint32_t node = 0; node < images->count; node++) {
            struct by_image_entry entry;
            if (!find_entry(images, node, key, &entry) || entry.parent_node != BY_NODE_NONE)
                continue;
            assert_int_equal(root, UINT32_MAX);
            root = node;
        }
        assert_int_not_equal(root, UINT32_MAX);
        hops += walk_tree(images, key, root, met);
        for (uint32_t rank = 0; rank < job->rank_count; rank++)
            assert_int_equal(met[rank], 1);
        check_leaves(images, key, index, host);
    }
    free(met);
    return hops;
}

uint32_t bench_walk(const struct bench_images *images)
{
    uint32_t hops = 0, host = 0;

    while (header_of(images, host).kind != BY_NODE_HOST)
        host++;
    for (uint32_t node = 0; node < images->count; node++)
        check_slots(images, node);
    for (uint32_t i = 0; i < header_of(images, host).count[BY_SECTION_JOB]; i++) {
        struct by_image_job job, before = {0};

        if (by_image_job_is_standby(images->bytes[host], i))
            by_image_job(images->bytes[host], i - 1, &before);
        by_image_job(images->bytes[host], i, &job);
        hops += walk_job(images, i, before.tree_count, &job);
    }
    return hops;
}
