/*
 * Writes one node's table image from a lowering. All addresses are derived from cables, so both
 * ends of a hop use the same address for each other. Before the image is returned, it is checked as
 * a switch would check it. Neighbour: lower.c makes the lowering. Pure except for memory.
 */
#include <stdio.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/fabric/unit.h"
#include "control/tables/book.h"
#include "control/tables/cable.h"
#include "control/tables/lower.h"
#include "control/tables/tree.h"
#include "offload/base/errors.h"

/* An image being written. */
struct emit_writer {
    const struct by_lowering *lowering;
    uint32_t node;
    bool host; /* false: a switch, or a compute node that only forwards for others */
    uint8_t *image;
    uint32_t next[BY_SECTION_COUNT]; /* number of records written, by section */
    uint32_t slot_base;
    uint32_t slot_last; /* first slot of the last entry */
};

/* Returns the index of a node's first relay. */
static uint32_t first_relay(const struct by_lowering *lowering, uint32_t node)
{
    uint32_t low = 0, high = lowering->relay_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (lowering->relays[middle].node < node)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* For table loading, a compute node that only forwards counts as a switch. */
static bool is_host(const struct by_lowering *lowering, uint32_t node)
{
    uint32_t relay = first_relay(lowering, node);

    return lowering->topology->nodes[node].compute &&
           (relay == lowering->relay_count || lowering->relays[relay].node != node);
}

uint32_t by_lower_hop_records(const struct by_lowered_tree *tree)
{
    uint32_t count = tree->hop_count;

    for (uint32_t i = 0; i < tree->hop_count; i++) {
        uint32_t steps = tree->hops[i].up_count < UINT8_MAX + 1u ? tree->hops[i].up_count : UINT8_MAX + 1u;

        count += steps > 2 ? steps - 2 : 0;
    }
    return count;
}

/* Adds the number of records of each section of an image to `count`. */
static void count_records(const struct emit_writer *w, uint32_t count[BY_SECTION_COUNT])
{
    const struct by_lowering *lowering = w->lowering;
    count[BY_SECTION_PORT] = lowering->map.port_count[w->node];
    count[BY_SECTION_JOB] = lowering->job_count;
    for (uint32_t i = 0; i < lowering->tree_count; i++) {
        const struct by_lowered_tree *tree = &lowering->trees[i];
        uint32_t hop = tree->hop_of[w->node];
        if (by_lowering_rank(lowering, tree->job, w->node) != UINT32_MAX) {
            count[BY_SECTION_LEAF]++;
            count[BY_SECTION_HOP] += lowering->bare || lowering->brief ? 0 : by_lower_hop_records(tree);
        }
        if (hop != BY_LOWER_NODE_NONE && tree->hops[hop].child_count > 0) {
            count[BY_SECTION_ENTRY]++;
            count[BY_SECTION_CHILD] += tree->hops[hop].child_count;
        }
    }
    for (uint32_t i = first_relay(lowering, w->node);
         i < lowering->relay_count && lowering->relays[i].node == w->node; i++)
        count[BY_SECTION_RELAY]++;
    count[BY_SECTION_NAME] = w->host && !lowering->bare ? lowering->node_count : 0;
}

/*
 * UDP port at which `node` receives packets of `job`. Hosts use a port for each job, so two jobs
 * can run on one host.
 */
static uint16_t udp_port(const struct by_lowering *lowering, uint32_t node, uint16_t job)
{
    return lowering->topology->nodes[node].compute ? by_lower_udp_port(lowering->topology, job)
                                                   : (uint16_t)BY_UDP_PORT;
}

/* A host's address for packets between its own leaf and its own engine. */
static uint32_t local_ip(const struct by_lowering *lowering, uint32_t node)
{
    if (lowering->map.port_count[node] == 0)
        return BY_ADDRESS_BASE;
    return by_address_ip(lowering->topology, by_address_link(&lowering->map, node, 0), node);
}

uint32_t by_lower_share(struct by_fraction share)
{
    __int128 parts = (__int128)share.num * BY_SHARE_ONE / share.den;

    return parts == 0 && share.num > 0 ? 1 : parts > BY_SHARE_ONE ? BY_SHARE_ONE : (uint32_t)parts;
}

/*
 * Bandwidth of a cable in one direction, in units of 1000 bytes per second; 0 if the topology does
 * not define it.
 */
static uint32_t rate_of(const struct by_topology *topology, uint32_t arc)
{
    struct by_fraction rate;
    int64_t thousands;

    if (arc == UINT32_MAX)
        return 0;
    rate = by_unit_arc_bytes(topology, arc);
    thousands = rate.num / rate.den / 1000;
    return thousands < UINT32_MAX ? (uint32_t)thousands : UINT32_MAX;
}

static void put_rates(const struct emit_writer *w, uint32_t link, struct by_image_port *port)
{
    const struct by_topology *topology = w->lowering->topology;
    const struct by_link *record = &topology->links[link];
    int is_a = record->a == w->node;

    if (w->lowering->sharers == 0 || w->host)
        return;
    port->rate_in = rate_of(topology, is_a ? record->arc_ba : record->arc_ab);
    port->rate_out = rate_of(topology, is_a ? record->arc_ab : record->arc_ba);
}

static void put_ports(struct emit_writer *w)
{
    const struct by_lowering *lowering = w->lowering;
    const struct by_topology *topology = lowering->topology;

    for (uint32_t i = 0; i < lowering->map.port_count[w->node]; i++) {
        uint32_t link = by_address_link(&lowering->map, w->node, i),
                 peer = by_address_peer(topology, link, w->node);
        struct by_image_port port = {.own_ip = by_address_ip(topology, link, w->node),
                                     .peer_ip = by_address_ip(topology, link, peer),
                                     .peer_node = (uint16_t)peer,
                                     .mtu = (uint16_t)by_lower_port_mtu(topology, link, lowering->mtu),
                                     .vlan = by_address_vlan(topology, link)};
        by_address_interface(&lowering->map, link, w->node, port.name);
        by_address_mac(topology, link, w->node, port.own_mac);
        by_address_mac(topology, link, peer, port.peer_mac);
        if (by_site_runs(topology, peer) == BY_SITE_BRIDGE)
            port.peer_ip = 0;
        put_rates(w, link, &port);
        by_image_put_port(w->image, i, &port);
    }
    for (uint32_t i = 0; i < lowering->job_count; i++) {
        struct by_image_job job = lowering->jobs[i];
        uint32_t rank = lowering->ranks[i][w->node];
        job.rank = rank == UINT32_MAX ? BY_RANK_NONE : (uint16_t)rank;
        job.share = w->host ? 0 : job.share;
        by_image_put_job(w->image, i, &job);
    }
}

/* The path to the parent; an entry and a leaf have the same fields. */
struct upward {
    uint16_t port, node, udp_port;
    uint32_t ip;
};

static struct upward way_up(const struct emit_writer *w, const struct by_lowered_tree *tree,
                            const struct by_hop *hop)
{
    const struct by_hop_step *last = &hop->up[hop->up_count - 1];

    return (struct upward){
        .port = (uint16_t)by_address_port(&w->lowering->map, hop->up[0].link, hop->node),
        .node = (uint16_t)hop->parent,
        .udp_port = udp_port(w->lowering, hop->parent, tree->job),
        .ip = by_address_ip(w->lowering->topology, last->link, hop->parent),
    };
}

static void put_children(struct emit_writer *w, const struct by_lowered_tree *tree, const struct by_hop *hop)
{
    const struct by_lowering *lowering = w->lowering;
    uint32_t below = hop->child_count, own_rank = by_lowering_rank(lowering, tree->job, w->node);

    if (own_rank != UINT32_MAX) {
        struct by_image_child own = {.port = BY_PORT_LOCAL,
                                     .node = (uint16_t)w->node,
                                     .ip = local_ip(lowering, w->node),
                                     .udp_port = udp_port(lowering, w->node, tree->job),
                                     .rank = (uint16_t)own_rank};
        by_image_put_child(w->image, w->next[BY_SECTION_CHILD]++, &own);
        below--;
    }
    for (uint32_t i = 0; i < below; i++) {
        const struct by_hop *child = &tree->hops[hop->first_child + i];
        uint32_t rank = by_lowering_rank(lowering, tree->job, child->node);
        struct by_image_child record = {
            .port = (uint16_t)by_address_port(&lowering->map, child->down[0].link, w->node),
            .node = (uint16_t)child->node,
            .ip = by_address_ip(lowering->topology, child->down[child->down_count - 1].link, child->node),
            .udp_port = udp_port(lowering, child->node, tree->job),
            .rank = child->child_count == 0 ? (uint16_t)rank : BY_RANK_NONE};
        by_image_put_child(w->image, w->next[BY_SECTION_CHILD]++, &record);
    }
}

static void put_entry(struct emit_writer *w, const struct by_lowered_tree *tree, const struct by_hop *hop)
{
    struct by_image_entry entry = {.job = tree->job,
                                   .tree = tree->tree,
                                   .parent_node = BY_NODE_NONE,
                                   .child_count = hop->child_count,
                                   .first_child = w->next[BY_SECTION_CHILD],
                                   .window = (uint16_t)tree->window,
                                   .payload_max = (uint16_t)w->lowering->payload_max,
                                   .slot_base = w->slot_base,
                                   .nleaf = (uint16_t)hop->nleaf,
                                   .depth = (uint8_t)by_lower_depth(w->lowering, tree, hop),
                                   .sets = (uint8_t)by_lower_sets(tree, hop),
                                   .joined = by_lower_joins(tree, hop)};

    if (hop->parent != BY_LOWER_NODE_NONE) {
        struct upward up = way_up(w, tree, hop);
        entry.parent_port = up.port;
        entry.parent_node = up.node;
        entry.parent_ip = up.ip;
        entry.parent_udp_port = up.udp_port;
        entry.parent_child = (uint8_t)(hop->child % BY_CHILDREN_MAX);
    }
    if (entry.joined)
        entry.slot_base = w->slot_last;
    put_children(w, tree, hop);
    w->slot_last = entry.slot_base;
    w->slot_base += by_image_entry_slots(&entry);
    by_image_put_entry(w->image, w->next[BY_SECTION_ENTRY]++, &entry);
}

static void put_leaf(struct emit_writer *w, const struct by_lowered_tree *tree, const struct by_hop *hop)
{
    struct by_image_leaf leaf = {.job = tree->job,
                                 .tree = tree->tree,
                                 .window = (uint16_t)tree->window,
                                 .payload_max = (uint16_t)w->lowering->payload_max,
                                 .collectives = tree->collectives,
                                 .owner = tree->owner,
                                 .share = tree->share,
                                 .half = tree->half,
                                 .modes = tree->modes,
                                 .ops = tree->ops,
                                 .dtypes = tree->dtypes};

    if (hop->child_count > 0) {
        leaf.parent_port = BY_PORT_LOCAL;
        leaf.parent_node = (uint16_t)w->node;
        leaf.parent_ip = local_ip(w->lowering, w->node);
        leaf.parent_udp_port = udp_port(w->lowering, w->node, tree->job);
    } else {
        struct upward up = way_up(w, tree, hop);
        leaf.parent_port = up.port;
        leaf.parent_node = up.node;
        leaf.parent_ip = up.ip;
        leaf.parent_udp_port = up.udp_port;
        leaf.parent_child = (uint8_t)(hop->child % BY_CHILDREN_MAX);
    }
    by_image_put_leaf(w->image, w->next[BY_SECTION_LEAF]++, &leaf);
}

/* Writes the whole tree, node by node, for a host's error texts. */
static void put_hops(struct emit_writer *w, const struct by_lowered_tree *tree)
{
    for (uint32_t node = 0; node < w->lowering->node_count; node++) {
        if (tree->hop_of[node] == BY_LOWER_NODE_NONE)
            continue;
        const struct by_hop *hop = &tree->hops[tree->hop_of[node]];
        uint32_t relays = hop->up_count > 1 ? hop->up_count - 1 : 0;
        struct by_image_hop record = {.job = tree->job,
                                      .tree = tree->tree,
                                      .node = (uint16_t)node,
                                      .parent = hop->parent == BY_LOWER_NODE_NONE ? BY_NODE_NONE
                                                                                  : (uint16_t)hop->parent,
                                      .child = (uint8_t)(hop->child % BY_CHILDREN_MAX),
                                      .relays = (uint8_t)(relays < UINT8_MAX ? relays : UINT8_MAX),
                                      .via = relays > 0 ? (uint16_t)hop->up[0].to : 0};
        by_image_put_hop(w->image, w->next[BY_SECTION_HOP]++, &record);
        record.child = BY_HOP_RELAY;
        for (uint32_t place = 2; place <= relays && place <= UINT8_MAX; place++) {
            record.relays = (uint8_t)place;
            record.via = (uint16_t)hop->up[place - 1].to;
            by_image_put_hop(w->image, w->next[BY_SECTION_HOP]++, &record);
        }
    }
}

static void put_trees(struct emit_writer *w)
{
    const struct by_lowering *lowering = w->lowering;
    uint32_t job = 0, before = UINT32_MAX; /* indices in the lowering's jobs */

    for (uint32_t i = 0; i < lowering->tree_count; i++) {
        const struct by_lowered_tree *tree = &lowering->trees[i];
        uint32_t index = tree->hop_of[w->node];
        while (lowering->jobs[job].job != tree->job || lowering->jobs[job].tree_count <= tree->tree)
            job++;
        if (job != before && lowering->slot_base[job] != NULL)
            w->slot_base = lowering->slot_base[job][w->node];
        before = job;
        if (index == BY_LOWER_NODE_NONE)
            continue;
        if (tree->hops[index].child_count > 0)
            put_entry(w, tree, &tree->hops[index]);
        if (by_lowering_rank(lowering, tree->job, w->node) != UINT32_MAX) {
            put_leaf(w, tree, &tree->hops[index]);
            if (!lowering->bare && !lowering->brief)
                put_hops(w, tree);
        }
    }
}

/* Ranks under which a host's image lists the other nodes: those of the host's first job. */
static const uint32_t *ranks_of(const struct by_lowering *lowering, uint32_t node)
{
    for (uint32_t i = 0; i < lowering->job_count; i++)
        if (lowering->ranks[i][node] != UINT32_MAX)
            return lowering->ranks[i];
    return lowering->map.rank;
}

static void put_relays_and_names(struct emit_writer *w)
{
    const struct by_lowering *lowering = w->lowering;
    const uint32_t *ranks = ranks_of(lowering, w->node);

    for (uint32_t i = first_relay(lowering, w->node);
         i < lowering->relay_count && lowering->relays[i].node == w->node; i++) {
        const struct by_lowered_relay *relay = &lowering->relays[i];
        by_image_put_relay(w->image, w->next[BY_SECTION_RELAY]++,
                           &(struct by_image_relay){.job = relay->job,
                                                    .tree = relay->tree,
                                                    .src_ip = relay->src_ip,
                                                    .dst_ip = relay->dst_ip,
                                                    .port = relay->port,
                                                    .from = (uint16_t)(relay->from + 1u)});
    }
    for (uint32_t i = 0; i < lowering->node_count && w->host && !lowering->bare; i++) {
        uint32_t rank = ranks[i];
        struct by_image_name name = {.node = (uint16_t)i,
                                     .rank = rank == UINT32_MAX ? BY_RANK_NONE : (uint16_t)rank};
        snprintf(name.name, sizeof(name.name), "%s", lowering->topology->nodes[i].name);
        by_image_put_name(w->image, i, &name);
    }
}

/* Returns the number of slots that cover all entries: up to the end of the last job's slots. */
static uint32_t slot_count(const struct by_lowering *lowering, uint32_t node)
{
    uint32_t next = 0, most = 0, tree = 0;

    for (uint32_t i = 0; i < lowering->job_count; i++) {
        uint32_t slots = 0;

        for (; tree < lowering->tree_count && lowering->trees[tree].job == lowering->jobs[i].job &&
               lowering->trees[tree].tree < lowering->jobs[i].tree_count;
             tree++)
            slots += by_lowering_tree_need(lowering, &lowering->trees[tree], node).slots;

        next = (lowering->slot_base[i] ? lowering->slot_base[i][node] : next) + slots;
        if (slots > 0 && next > most)
            most = next;
    }
    return most;
}

int by_lowering_image(const struct by_lowering *lowering, uint32_t node, uint8_t **bytes, size_t *size,
                      struct by_problem *problem)
{
    const char *name = lowering->topology->nodes[node].name;
    struct emit_writer w = {.lowering = lowering, .node = node, .host = is_host(lowering, node)};
    struct by_image_header header = {.cookie = lowering->cookie,
                                     .node = (uint16_t)node,
                                     .kind = w.host ? BY_NODE_HOST : BY_NODE_SWITCH,
                                     .payload_max = (uint16_t)lowering->payload_max};
    struct by_image_fault fault = {0};
    struct by_ipv6_book book;
    int error;

    snprintf(header.name, sizeof(header.name), "%s", name);
    count_records(&w, header.count);
    *size = by_image_bytes(header.count);
    if (header.count[BY_SECTION_RELAY] > BY_RELAYS_MAX || *size > BY_IMAGE_BYTES_MAX)
        return by_problem_say(problem, BY_ELIMIT,
                              "'%s' needs %u relays and %zu bytes of table; the limits are %u and %u: plan "
                              "with a smaller --fixed-k, or fewer collectives",
                              name, header.count[BY_SECTION_RELAY], *size, BY_RELAYS_MAX, BY_IMAGE_BYTES_MAX);
    header.slot_count = slot_count(lowering, node);
    *bytes = w.image = by_alloc(*size, 1);
    by_image_put_header(w.image, &header);
    put_ports(&w);
    put_trees(&w);
    put_relays_and_names(&w);
    book = by_site_book(lowering->topology);
    if (book.count > 0)
        *bytes = w.image = by_emit_addresses(w.image, &book, size);
    by_image_seal(w.image);
    if (lowering->keys != NULL) {
        *bytes = by_alloc(by_image_keyed_bytes(w.image, lowering->job_count), 1);
        *size = by_image_put_keys(w.image, lowering->keys, lowering->job_count, *bytes);
        free(w.image);
        w.image = *bytes;
    }
    error = by_image_check(w.image, *size, &(struct by_image_limits){0}, &fault);
    if (error == 0)
        error = by_image_addresses_check(w.image, &fault);
    if (error != 0) {
        by_problem_say(problem, error, "'%s': the generated table is invalid: %s %u: %s (%llu)", name,
                       fault.section, fault.index, fault.what, (unsigned long long)fault.value);
        free(*bytes);
        *bytes = NULL;
    }
    return error;
}
