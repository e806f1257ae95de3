/*
 * Makes the table images of a fabric's nodes. A tree's hop leads from a node to its parent along
 * the cables, perhaps through plain switches, which get a relay for each direction.
 * Single-threaded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload/base/bytes.h"
#include "offload/wire/seal.h"
#include "tests/sim/fabric.h"

/* Both ends of a logical hop from `node` to its parent. */
struct hop_ends {
    int node_port, parent_port;
    uint32_t node_ip, parent_ip;
};

static struct hop_ends hop_ends(const struct fabric *fabric, const struct fabric_tree *tree, int node)
{
    struct hop_ends ends;
    int last = node;

    ends.node_port = fabric_port_to(fabric, node, tree->cable_parent[node]);
    while (tree->cable_parent[last] != tree->parent[node])
        last = tree->cable_parent[last];
    ends.parent_port = fabric_port_to(fabric, tree->parent[node], last);
    ends.node_ip = fabric_ip(fabric, fabric->nodes[node].port_link[ends.node_port], node);
    ends.parent_ip =
        fabric_ip(fabric, fabric->nodes[tree->parent[node]].port_link[ends.parent_port], tree->parent[node]);
    return ends;
}

static int rank_of(const struct fabric_job *job, int node)
{
    for (int r = 0; r < job->rank_count; r++)
        if (job->rank_node[r] == node)
            return r;
    return -1;
}

static int has_children(const struct fabric *fabric, const struct fabric_tree *tree, int node)
{
    for (int n = 0; n < fabric->node_count; n++)
        if (tree->parent[n] == node)
            return 1;
    return 0;
}

/* A node runs the engine for a tree if it has children in it. */
static int is_interior(const struct fabric *fabric, const struct fabric_tree *tree, int node)
{
    return !fabric->nodes[node].plain && has_children(fabric, tree, node);
}

/* Lists children in bitmap order: nodes by number, a host's own leaf last. Returns the count;
 * `node` itself stands for the own leaf. */
static int children_of(const struct fabric *fabric, const struct fabric_job *job,
                       const struct fabric_tree *tree, int node, int out[FABRIC_NODES_MAX])
{
    int count = 0;

    for (int n = 0; n < fabric->node_count; n++) {
        if (tree->parent[n] != node)
            continue;
        if (count == FABRIC_NODES_MAX - 1)
            abort();
        out[count++] = n;
    }
    if (count > 0 && rank_of(job, node) >= 0)
        out[count++] = node;
    return count;
}

/* Returns the bit of a child at its parent: its number, modulo 64. */
static uint8_t bit_at(const struct fabric *fabric, const struct fabric_job *job,
                      const struct fabric_tree *tree, int parent, int node)
{
    int children[FABRIC_NODES_MAX];
    int count = children_of(fabric, job, tree, parent, children);

    for (int c = 0; c < count; c++)
        if (children[c] == node)
            return (uint8_t)(c % (int)BY_CHILDREN_MAX);
    abort();
}

static uint16_t leaves_below(const struct fabric *fabric, const struct fabric_job *job,
                             const struct fabric_tree *tree, int node)
{
    uint16_t count = 0;

    for (int r = 0; r < job->rank_count; r++)
        for (int up = job->rank_node[r]; up >= 0; up = tree->parent[up])
            if (up == node) {
                count++;
                break;
            }
    (void)fabric;
    return count;
}

static uint16_t udp_port_of(const struct fabric *fabric, const struct fabric_job *job, int node)
{
    return fabric->nodes[node].kind == BY_NODE_SWITCH ? BY_UDP_PORT : (uint16_t)(BY_UDP_PORT + job->job - 1);
}

/* The generations of the jobs: those of `fabric`, then those of its standbys, which have other
 * trees on the same cables. Trees of a job are numbered through all. */
struct builder {
    const struct fabric *fabric;
    const struct fabric *standbys;
    int first, last; /* the image has these generations: 0 that of `fabric`, then the standbys */
    int node;
    uint8_t *image; /* NULL: count only */
    uint32_t count[BY_SECTION_COUNT];
    uint32_t slots, slot_last; /* slot_last: the first slot of the last entry */
    uint16_t payload_max;
};

static void add_child(struct builder *b, const struct fabric_job *job, const struct fabric_tree *tree,
                      int node)
{
    struct by_image_child child = {
        .node = (uint16_t)node, .rank = BY_RANK_NONE, .udp_port = udp_port_of(b->fabric, job, node)};

    if (node == b->node) {
        child.port = BY_PORT_LOCAL;
        child.rank = (uint16_t)rank_of(job, node);
    } else {
        struct hop_ends ends = hop_ends(b->fabric, tree, node);

        child.port = (uint16_t)ends.parent_port;
        child.ip = ends.node_ip;
        if (!is_interior(b->fabric, tree, node))
            child.rank = (uint16_t)rank_of(job, node);
    }
    if (b->image)
        by_image_put_child(b->image, b->count[BY_SECTION_CHILD], &child);
    b->count[BY_SECTION_CHILD]++;
}

static void add_entry(struct builder *b, const struct fabric_job *job, const struct fabric_tree *tree,
                      uint16_t number)
{
    struct by_image_entry entry = {.job = job->job,
                                   .tree = number,
                                   .parent_node = BY_NODE_NONE,
                                   .first_child = b->count[BY_SECTION_CHILD],
                                   .window = tree->window,
                                   .payload_max = tree->payload_max,
                                   .slot_base = b->slots};
    int children[FABRIC_NODES_MAX];
    int count = children_of(b->fabric, job, tree, b->node, children);
    int parent = tree->parent[b->node];

    entry.child_count = (uint16_t)count;
    entry.depth = (uint8_t)(count > (int)BY_CHILDREN_MAX ? 1 : by_image_det_depth(entry.child_count));
    entry.sets = (uint8_t)by_image_sets((uint32_t)count);
    if (tree->half == BY_HALF_UP && parent < 0)
        entry.sets = (uint8_t)by_image_sets(
            (uint32_t)(count + children_of(b->fabric, job, tree + 1, b->node, children)));
    entry.joined = tree->half == BY_HALF_DOWN && parent < 0;
    if (entry.joined) {
        entry.depth = 1;
        entry.sets = 0;
        entry.slot_base = b->slot_last;
    }
    b->slot_last = entry.slot_base;
    count = children_of(b->fabric, job, tree, b->node, children);
    entry.nleaf = leaves_below(b->fabric, job, tree, b->node);
    if (parent >= 0) {
        struct hop_ends ends = hop_ends(b->fabric, tree, b->node);

        entry.parent_port = (uint16_t)ends.node_port;
        entry.parent_node = (uint16_t)parent;
        entry.parent_ip = ends.parent_ip;
        entry.parent_udp_port = udp_port_of(b->fabric, job, parent);
        entry.parent_child = bit_at(b->fabric, job, tree, parent, b->node);
    }
    for (int c = 0; c < count; c++)
        add_child(b, job, tree, children[c]);
    if (b->image)
        by_image_put_entry(b->image, b->count[BY_SECTION_ENTRY], &entry);
    b->count[BY_SECTION_ENTRY]++;
    b->slots += by_image_entry_slots(&entry);
}

static void add_leaf(struct builder *b, const struct fabric_job *job, const struct fabric_tree *tree,
                     uint16_t number)
{
    int own = is_interior(b->fabric, tree, b->node);
    int parent = own ? b->node : tree->parent[b->node];
    struct by_image_leaf leaf = {.job = job->job,
                                 .tree = number,
                                 .parent_port = BY_PORT_LOCAL,
                                 .parent_node = (uint16_t)parent,
                                 .parent_udp_port = udp_port_of(b->fabric, job, parent),
                                 .parent_child = bit_at(b->fabric, job, tree, parent, b->node),
                                 .window = tree->window,
                                 .payload_max = tree->payload_max,
                                 .collectives = tree->collectives,
                                 .owner = tree->owner,
                                 .share = tree->share,
                                 .half = tree->half,
                                 .modes = tree->modes != 0 ? tree->modes : UINT8_MAX,
                                 .ops = tree->ops != 0 ? tree->ops : UINT16_MAX,
                                 .dtypes = tree->dtypes != 0 ? tree->dtypes : UINT16_MAX};

    if (!own) {
        struct hop_ends ends = hop_ends(b->fabric, tree, b->node);

        leaf.parent_port = (uint16_t)ends.node_port;
        leaf.parent_ip = ends.parent_ip;
    }
    if (b->image)
        by_image_put_leaf(b->image, b->count[BY_SECTION_LEAF], &leaf);
    b->count[BY_SECTION_LEAF]++;
}

struct relays {
    uint32_t count;
    struct by_image_relay at[4096];
};

static int relay_order(const void *x, const void *y)
{
    const struct by_image_relay *a = x, *b = y;

    if (a->src_ip != b->src_ip)
        return a->src_ip < b->src_ip ? -1 : 1;
    return a->dst_ip < b->dst_ip ? -1 : a->dst_ip > b->dst_ip;
}

/* Adds this node's relays for one tree: for each hop that passes through it, up and down. */
static void add_relays(struct builder *b, const struct fabric_job *job, const struct fabric_tree *tree,
                       uint16_t number)
{
    struct relays *relays = calloc(1, sizeof(*relays));

    for (int n = 0; n < b->fabric->node_count; n++) {
        int below = n;
        struct hop_ends ends;

        if (tree->parent[n] < 0)
            continue;
        ends = hop_ends(b->fabric, tree, n);
        for (int up = tree->cable_parent[n]; up != tree->parent[n]; below = up, up = tree->cable_parent[up]) {
            if (up != b->node)
                continue;
            relays->at[relays->count++] =
                (struct by_image_relay){job->job,
                                        number,
                                        ends.node_ip,
                                        ends.parent_ip,
                                        (uint16_t)fabric_port_to(b->fabric, up, tree->cable_parent[up]),
                                        (uint16_t)(1 + fabric_port_to(b->fabric, up, below))};
            relays->at[relays->count++] = (struct by_image_relay){
                job->job,
                number,
                ends.parent_ip,
                ends.node_ip,
                (uint16_t)fabric_port_to(b->fabric, up, below),
                (uint16_t)(1 + fabric_port_to(b->fabric, up, tree->cable_parent[up]))};
        }
    }
    qsort(relays->at, relays->count, sizeof(relays->at[0]), relay_order);
    for (uint32_t r = 0; r < relays->count; r++) {
        if (b->image)
            by_image_put_relay(b->image, b->count[BY_SECTION_RELAY], &relays->at[r]);
        b->count[BY_SECTION_RELAY]++;
    }
    free(relays);
}

static void add_hops(struct builder *b, const struct fabric_job *job, const struct fabric_tree *tree,
                     uint16_t number)
{
    for (int n = 0; n < b->fabric->node_count; n++) {
        struct by_image_hop hop = {
            .job = job->job, .tree = number, .node = (uint16_t)n, .parent = BY_NODE_NONE};

        if (tree->parent[n] == FABRIC_ABSENT)
            continue;
        if (tree->parent[n] >= 0) {
            hop.parent = (uint16_t)tree->parent[n];
            hop.child = bit_at(b->fabric, job, tree, tree->parent[n], n);
        }
        if (b->image)
            by_image_put_hop(b->image, b->count[BY_SECTION_HOP], &hop);
        b->count[BY_SECTION_HOP]++;
    }
}

static void add_ports(struct builder *b)
{
    const struct fabric_node *node = &b->fabric->nodes[b->node];
    uint32_t shares = 0;

    for (int j = 0; j < b->fabric->job_count; j++)
        shares |= b->fabric->jobs[j].share;
    for (int p = 0; p < node->port_count; p++) {
        int peer = fabric_peer(b->fabric, b->node, p);
        struct by_image_port port = {.own_ip = fabric_ip(b->fabric, node->port_link[p], b->node),
                                     .peer_ip = fabric_ip(b->fabric, node->port_link[p], peer),
                                     .own_mac = {2, 0x62},
                                     .peer_mac = {2, 0x62},
                                     .peer_node = (uint16_t)peer,
                                     .mtu = FABRIC_MTU};

        if (shares && node->kind == BY_NODE_SWITCH)
            port.rate_in = port.rate_out = b->fabric->links[node->port_link[p]].mbps * 125;
        snprintf(port.name, sizeof(port.name), "%s%d", node->kind == BY_NODE_SWITCH ? "p" : "eth", p);
        by_put32(port.own_mac + 2, port.own_ip);
        by_put32(port.peer_mac + 2, port.peer_ip);
        if (b->image)
            by_image_put_port(b->image, (uint32_t)p, &port);
        b->count[BY_SECTION_PORT]++;
    }
}

/* Returns a job in generation `gen`. */
static const struct fabric_job *job_of(const struct builder *b, int gen, int job)
{
    return gen == 0 ? &b->fabric->jobs[job] : &b->standbys[gen - 1].jobs[job];
}

/* Adds a job in one generation; its first tree has number `first`. */
static void add_job(struct builder *b, const struct fabric_job *job, int first)
{
    int rank = rank_of(job, b->node);
    struct by_image_job record = {.job = job->job,
                                  .gen = job->gen,
                                  .rank_count = (uint16_t)job->rank_count,
                                  .rank = rank < 0 ? BY_RANK_NONE : (uint16_t)rank,
                                  .tree_count = (uint16_t)(first + job->tree_count),
                                  .udp_port = udp_port_of(b->fabric, job, b->node),
                                  .share = first == 0 ? job->share : 0};

    if (b->image)
        by_image_put_job(b->image, b->count[BY_SECTION_JOB], &record);
    b->count[BY_SECTION_JOB]++;
    for (int t = 0; t < job->tree_count; t++) {
        const struct fabric_tree *tree = &job->trees[t];
        uint16_t number = (uint16_t)(first + t);

        if (tree->payload_max > b->payload_max)
            b->payload_max = tree->payload_max;
        if (is_interior(b->fabric, tree, b->node))
            add_entry(b, job, tree, number);
        if (rank >= 0)
            add_leaf(b, job, tree, number);
        add_relays(b, job, tree, number);
        if (rank >= 0)
            add_hops(b, job, tree, number);
    }
}

static void add_all(struct builder *b)
{
    add_ports(b);
    for (int j = 0; j < b->fabric->job_count; j++) {
        int first = 0;

        for (int gen = 0; gen <= b->last; first += job_of(b, gen++, j)->tree_count)
            if (gen >= b->first)
                add_job(b, job_of(b, gen, j), first);
    }
}

uint32_t fabric_slots(const struct fabric *fabric, int node)
{
    struct builder b = {.fabric = fabric, .node = node};

    add_all(&b);
    return b.slots;
}

/* Adds keys of 16 bytes, derived from job and generation. */
static void add_keys(struct builder *b, size_t *bytes)
{
    struct by_image_key keys[FABRIC_JOBS_MAX * (1 + FABRIC_STANDBYS_MAX)];
    uint8_t *image = b->image;
    uint32_t count = 0;

    for (int j = 0; j < b->fabric->job_count; j++)
        for (int gen = b->first; gen <= b->last; gen++) {
            const struct fabric_job *job = job_of(b, gen, j);
            struct by_image_key *key = &keys[count++];

            *key = (struct by_image_key){
                .job = job->job, .cover = b->fabric->cover, .place = (uint8_t)(gen - b->first)};
            for (unsigned i = 0; i < sizeof(key->key); i++)
                key->key[i] = (uint8_t)(i * 37 + job->job * 11u + job->gen + 1u);
        }
    b->image = calloc(1, by_image_keyed_bytes(image, count));
    *bytes = by_image_put_keys(image, keys, count, b->image);
    free(image);
}

uint8_t *fabric_image(const struct fabric *fabric, int node, size_t *bytes)
{
    return fabric_image_standby(fabric, NULL, 0, 0, node, bytes);
}

uint8_t *fabric_image_standby(const struct fabric *fabric, const struct fabric *standbys, int count, int gen,
                              int node, size_t *bytes)
{
    struct builder b = {.fabric = fabric,
                        .standbys = standbys,
                        .first = fabric->nodes[node].kind == BY_NODE_HOST ? gen : 0,
                        .last = fabric->nodes[node].kind == BY_NODE_HOST ? gen : count,
                        .node = node};
    struct builder fresh = b;
    struct by_image_header header = {.cookie = 1, .node = (uint16_t)node, .kind = fabric->nodes[node].kind};
    struct by_image_fault fault;
    int error;

    add_all(&b);
    header.slot_count = b.slots;
    header.payload_max = b.payload_max;
    snprintf(header.name, sizeof(header.name), "%s", fabric->nodes[node].name);
    memcpy(header.count, b.count, sizeof(header.count));
    *bytes = by_image_bytes(b.count);
    b = fresh;
    b.image = calloc(1, *bytes);
    by_image_put_header(b.image, &header);
    add_all(&b);
    by_image_seal(b.image);
    if (fabric->cover != BY_COVER_NONE)
        add_keys(&b, bytes);
    error = by_image_check(b.image, *bytes, NULL, &fault);
    if (error != 0) {
        fprintf(stderr, "image of %s: %s %u: %s (%llu)\n", header.name, fault.section, fault.index,
                fault.what, (unsigned long long)fault.value);
        abort();
    }
    return b.image;
}
