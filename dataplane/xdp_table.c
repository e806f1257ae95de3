/*
 * Fills the kernel's maps from the table image, and creates the groups of ports for results; see
 * xdp.h. The maps contain only what the kernel may process: relays, and children with a port of
 * their own, on ports that accept frames from the kernel. Loop's thread.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <string.h>

#include "dataplane/xdp_state.h"
#include "offload/base/bytes.h"
#include "offload/table/image.h"
#include "offload/wire/wire.h"

/* Interval of queries whether ports accept frames (ns): until the next query, packets for a port
 * that does not are lost. */
#define REFRESH_NS 100000000u

/* Empties a map whose keys have up to 16 bytes. */
static void clear(int map)
{
    uint8_t key[16];

    while (bpf_map_get_next_key(map, NULL, key) == 0 && bpf_map_delete_elem(map, key) == 0)
        ;
}

static void load_ports(struct by_xdp *xdp, const struct by_image_header *header, uint64_t *addressed)
{
    *addressed = 0;
    for (uint32_t i = 0; i < BY_XDP_PORTS_MAX; i++) {
        struct by_xdp_inside inside = {.port = i};

        if (xdp->interface[i] == 0)
            continue;
        if (i < header->count[BY_SECTION_PORT]) {
            memcpy(inside.own_mac, xdp->ports[i].mac, sizeof inside.own_mac);
            inside.addressed = 1;
            *addressed |= (uint64_t)(xdp->ports[i].reach == BY_REACH_PEER) << i;
        }
        bpf_map_update_elem(xdp->inside, &xdp->interface[i], &inside, BPF_ANY);
    }
}

/* Whether the packet's receiver is an address of this switch; then no relay applies to it. */
static bool is_own(const struct by_xdp *xdp, const struct by_image_header *header, uint32_t ip)
{
    struct by_image_port port;

    for (uint32_t i = 0; i < header->count[BY_SECTION_PORT]; i++) {
        by_image_port(xdp->image, i, &port);
        if (port.own_ip == ip)
            return true;
    }
    return false;
}

static void load_relays(struct by_xdp *xdp, const struct by_image_header *header, uint64_t usable)
{
    for (uint32_t i = 0; i < header->count[BY_SECTION_RELAY]; i++) {
        struct by_image_relay relay;
        struct by_xdp_relay_key key;
        struct by_xdp_relay value = {0};

        by_image_relay(xdp->image, i, &relay);
        if (relay.port >= BY_XDP_PORTS_MAX || !(usable >> relay.port & 1) ||
            is_own(xdp, header, relay.dst_ip))
            continue;
        key = (struct by_xdp_relay_key){.tree = htonl((uint32_t)relay.job << 16 | relay.tree),
                                        .src_ip = htonl(relay.src_ip),
                                        .dst_ip = htonl(relay.dst_ip)};
        value.port = relay.port;
        value.from = relay.from;
        memcpy(value.peer_mac, xdp->ports[relay.port].peer_mac, sizeof value.peer_mac);
        memcpy(value.own_mac, xdp->ports[relay.port].mac, sizeof value.own_mac);
        bpf_map_update_elem(xdp->relay_map, &key, &value, BPF_ANY);
    }
}

/* Loads the children of an entry that have a port of their own. */
static uint64_t load_children(struct by_xdp *xdp, const struct by_image_entry *entry, uint64_t addressed)
{
    uint32_t tree = (uint32_t)entry->job << 16 | entry->tree;
    uint64_t seen = 0, twice = 0;

    for (unsigned pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < entry->child_count; i++) {
            struct by_image_child child;
            struct by_image_port port;
            struct by_xdp_child value = {0};
            struct by_xdp_child_key key = {.tree = htonl(tree)};
            uint64_t bit;

            by_image_child(xdp->image, entry->first_child + i, &child);
            if (child.port >= BY_XDP_PORTS_MAX || !(addressed >> child.port & 1))
                continue;
            bit = UINT64_C(1) << child.port;
            if (pass == 0) {
                twice |= seen & bit;
                seen |= bit;
                continue;
            }
            if (twice & bit)
                continue;
            by_image_port(xdp->image, child.port, &port);
            key.interface = xdp->interface[child.port];
            value.port = child.port;
            value.src_ip = htonl(port.own_ip);
            value.dst_ip = htonl(child.ip);
            value.udp_port = htons(child.udp_port);
            memcpy(value.peer_mac, xdp->ports[child.port].peer_mac, sizeof value.peer_mac);
            memcpy(value.own_mac, xdp->ports[child.port].mac, sizeof value.own_mac);
            if (bpf_map_update_elem(xdp->child_map, &key, &value, BPF_ANY) != 0)
                twice |= bit;
        }
    }
    return seen & ~twice;
}

/* Whether jobs have shares. If so, the engine must see every packet, and the kernel relays
 * nothing. */
static bool has_shares(const uint8_t *image, const struct by_image_header *header)
{
    struct by_image_job job;

    for (uint32_t i = 0; i < header->count[BY_SECTION_JOB]; i++) {
        by_image_job(image, i, &job);
        if (job.share > 0)
            return true;
    }
    return false;
}

void by_xdp_load(struct by_xdp *xdp, const uint8_t *image, const struct by_batch_port *ports)
{
    struct by_image_header header;
    uint64_t addressed;

    clear(xdp->relay_map);
    clear(xdp->child_map);
    for (uint32_t i = 0; i < xdp->group_count; i++)
        for (uint32_t port = 0; port < BY_XDP_PORTS_MAX; port++)
            if (xdp->group[i] >> port & 1)
                bpf_map_delete_elem(xdp->group_fd[i], &port);
    xdp->group_count = 0;
    xdp->tree_count = 0;
    xdp->image = image;
    xdp->ports = ports;
    by_image_header(image, &header);
    load_ports(xdp, &header, &addressed);
    for (uint32_t i = 0; i < header.count[BY_SECTION_ENTRY] && xdp->tree_count < xdp->entry_count; i++) {
        struct by_xdp_tree *tree = &xdp->tree[xdp->tree_count++];
        struct by_image_entry entry;

        by_image_entry(image, i, &entry);
        tree->key = (uint32_t)entry.job << 16 | entry.tree;
        tree->ports = load_children(xdp, &entry, addressed);
    }
    xdp->metered = has_shares(image, &header);
    if (xdp->relays && !xdp->metered)
        load_relays(xdp, &header, addressed & xdp->ready_ports);
}

void by_xdp_refresh(struct by_xdp *xdp, uint64_t now_ns)
{
    struct by_image_header header;
    uint64_t ready = 0;

    if (now_ns < xdp->refresh_ns)
        return;
    xdp->refresh_ns = now_ns + REFRESH_NS;
    for (uint32_t i = 0; i < BY_XDP_PORTS_MAX; i++)
        if (xdp->interface[i] != 0 && by_xdp_ready_ask(&xdp->ready, xdp->interface[i]))
            ready |= UINT64_C(1) << i;
    if (ready == xdp->ready_ports)
        return;
    xdp->ready_ports = ready;
    if (!xdp->image || !xdp->relays || xdp->metered)
        return;
    clear(xdp->relay_map);
    by_image_header(xdp->image, &header);
    for (uint32_t i = 0; i < BY_XDP_PORTS_MAX; i++)
        if (i >= header.count[BY_SECTION_PORT] || xdp->ports[i].reach != BY_REACH_PEER)
            ready &= ~(UINT64_C(1) << i);
    load_relays(xdp, &header, ready);
}

/* ---- replication ---- */

static uint64_t ports_of(const struct by_xdp *xdp, uint32_t key)
{
    uint32_t low = 0, high = xdp->tree_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (xdp->tree[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < xdp->tree_count && xdp->tree[low].key == key ? xdp->tree[low].ports : 0;
}

/* Returns the group with exactly these ports, created on first use; BY_XDP_GROUPS_MAX if there is
 * no more room. */
static uint32_t group_of(struct by_xdp *xdp, uint64_t ports)
{
    uint32_t index = 0;

    while (index < xdp->group_count && xdp->group[index] != ports)
        index++;
    if (index < xdp->group_count || index == BY_XDP_GROUPS_MAX)
        return index;
    for (uint32_t port = 0; port < BY_XDP_PORTS_MAX; port++) {
        struct bpf_devmap_val value = {.ifindex = xdp->interface[port], .bpf_prog.fd = xdp->child_program};

        if ((ports >> port & 1) && bpf_map_update_elem(xdp->group_fd[index], &port, &value, BPF_ANY) != 0)
            return BY_XDP_GROUPS_MAX;
    }
    xdp->group[xdp->group_count++] = ports;
    return index;
}

int32_t by_xdp_group(struct by_xdp *xdp, const struct by_tx *tx, uint32_t count)
{
    uint64_t served = ports_of(xdp, by_get32(tx->header + BY_HEADER_AT_JOB)) & xdp->ready_ports, ports = 0;
    uint32_t group;

    if (tx->header[BY_HEADER_AT_CHILD] != BY_WIRE_CHILD_ALL)
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bit = tx[i].port < BY_XDP_PORTS_MAX ? UINT64_C(1) << tx[i].port : 0;

        if (!(served & bit & ~ports))
            return -1;
        ports |= bit;
    }
    group = group_of(xdp, ports);
    return group < BY_XDP_GROUPS_MAX ? (int32_t)group : -1;
}

struct by_gso *by_xdp_gso(struct by_xdp *xdp)
{
    return xdp->gso;
}
