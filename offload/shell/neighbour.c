/* Neighbours whose MAC addresses are learned; see neighbour.h. */
#include "offload/shell/neighbour.h"

#include "offload/base/bytes.h"
#include "offload/table/image.h"

/* What by_neighbours_load is given. */
struct load {
    const uint8_t *image;
    struct by_image_header header;
    uint64_t exempt, elsewhere, now_ns;
};

static int is_zero(const uint8_t mac[BY_MAC_BYTES])
{
    return (by_get32(mac) | by_get16(mac + 4)) == 0;
}

/* Returns the index of the first neighbour that is not before (port, ip). */
static uint32_t place_of(const struct by_neighbours *neighbours, uint16_t port, uint32_t ip)
{
    uint32_t begin = 0, end = neighbours->count;

    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        const struct by_shell_neighbour *at = &neighbours->at[middle];

        if (at->port < port || (at->port == port && at->ip < ip))
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

struct by_shell_neighbour *by_neighbours_find(struct by_neighbours *neighbours, uint16_t port, uint32_t ip)
{
    uint32_t place = place_of(neighbours, port, ip);
    struct by_shell_neighbour *at = &neighbours->at[place];

    return place < neighbours->count && at->port == port && at->ip == ip ? at : NULL;
}

/* Returns when a neighbour is asked for the first time after a table was loaded. */
static uint64_t first_due(bool elsewhere, bool known, uint64_t now_ns)
{
    if (!elsewhere)
        return now_ns;
    return known ? UINT64_MAX : now_ns + BY_NEIGHBOUR_SLOW_NS;
}

static void list(struct by_neighbours *neighbours, const struct load *load, uint16_t port, uint32_t ip)
{
    uint32_t place = place_of(neighbours, port, ip);
    struct by_shell_neighbour *at = &neighbours->at[place];
    bool elsewhere = port < 64 && load->elsewhere >> port & 1;

    if (place < neighbours->count && at->port == port && at->ip == ip) {
        at->listed = true;
        at->elsewhere = elsewhere;
        at->tries = 0;
        at->due_ns = first_due(elsewhere, at->known, load->now_ns);
        return;
    }
    if (neighbours->count == BY_NEIGHBOURS_MAX)
        return;
    for (uint32_t i = neighbours->count++; i > place; i--)
        neighbours->at[i] = neighbours->at[i - 1];
    by_zero(at, sizeof *at);
    at->ip = ip;
    at->port = port;
    at->listed = true;
    at->elsewhere = elsewhere;
    at->due_ns = first_due(elsewhere, false, load->now_ns);
}

/* Removes the neighbours that the table does not list. */
static void compact(struct by_neighbours *neighbours)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < neighbours->count; i++)
        if (neighbours->at[i].listed)
            neighbours->at[kept++] = neighbours->at[i];
    neighbours->count = kept;
}

/* Whether the neighbours at a port are the receivers of its packets. */
static bool is_bridged(const struct load *load, uint16_t port)
{
    struct by_image_port record;

    if (port >= load->header.count[BY_SECTION_PORT] || (port < 64 && load->exempt >> port & 1))
        return false;
    by_image_port(load->image, port, &record);
    return record.peer_ip == 0;
}

bool by_neighbours_proxy(const struct by_neighbours *neighbours, uint16_t port, uint32_t ip)
{
    for (uint32_t i = 0; i < neighbours->proxy_count; i++)
        if (neighbours->proxy[i].port == port && neighbours->proxy[i].ip == ip)
            return true;
    return false;
}

static void list_proxy(struct by_neighbours *neighbours, uint16_t port, uint32_t ip)
{
    if (neighbours->proxy_count < BY_NEIGHBOURS_MAX && !by_neighbours_proxy(neighbours, port, ip))
        neighbours->proxy[neighbours->proxy_count++] = (struct by_neighbour_proxy){.ip = ip, .port = port};
}

/* Lists the receivers behind bridges. */
static void list_receivers(struct by_neighbours *neighbours, const struct load *load)
{
    const struct by_image_header *header = &load->header;
    const uint8_t *image = load->image;

    for (uint32_t i = 0; i < header->count[BY_SECTION_ENTRY]; i++) {
        struct by_image_entry entry;

        by_image_entry(image, i, &entry);
        if (entry.parent_node != BY_NODE_NONE && is_bridged(load, entry.parent_port))
            list(neighbours, load, entry.parent_port, entry.parent_ip);
    }
    for (uint32_t i = 0; i < header->count[BY_SECTION_CHILD]; i++) {
        struct by_image_child child;

        by_image_child(image, i, &child);
        if (is_bridged(load, child.port))
            list(neighbours, load, child.port, child.ip);
    }
    for (uint32_t i = 0; i < header->count[BY_SECTION_RELAY]; i++) {
        struct by_image_relay relay;

        by_image_relay(image, i, &relay);
        if (is_bridged(load, relay.port))
            list(neighbours, load, relay.port, relay.dst_ip);
        if (relay.from > 0 && is_bridged(load, (uint16_t)(relay.from - 1u)))
            list_proxy(neighbours, (uint16_t)(relay.from - 1u), relay.dst_ip);
    }
}

void by_neighbours_load(struct by_neighbours *neighbours, const uint8_t *image, uint64_t exempt,
                        uint64_t elsewhere, uint64_t now_ns)
{
    struct load load;
    bool has_bridge = false;

    load.image = image;
    load.exempt = exempt;
    load.elsewhere = elsewhere;
    load.now_ns = now_ns;
    by_image_header(image, &load.header);
    neighbours->proxy_count = 0;
    for (uint32_t i = 0; i < neighbours->count; i++)
        neighbours->at[i].listed = false;
    for (uint32_t i = 0; i < load.header.count[BY_SECTION_PORT]; i++) {
        struct by_image_port port;

        by_image_port(image, i, &port);
        has_bridge = has_bridge || port.peer_ip == 0;
        if (port.peer_ip != 0 && is_zero(port.peer_mac) && !(i < 64 && exempt >> i & 1))
            list(neighbours, &load, (uint16_t)i, port.peer_ip);
    }
    if (has_bridge)
        list_receivers(neighbours, &load);
    compact(neighbours);
    by_neighbours_settle(neighbours);
}

void by_neighbours_hear(struct by_neighbours *neighbours, struct by_shell_neighbour *neighbour,
                        const uint8_t mac[BY_MAC_BYTES], uint64_t now_ns)
{
    by_copy(neighbour->mac, mac, BY_MAC_BYTES);
    neighbour->known = true;
    neighbour->silent = false;
    neighbour->tries = 0;
    neighbour->due_ns = neighbour->elsewhere ? UINT64_MAX : now_ns + BY_NEIGHBOUR_AGAIN_NS;
    by_neighbours_settle(neighbours);
}

struct by_shell_neighbour *by_neighbours_ask(struct by_neighbours *neighbours, uint32_t *from,
                                             uint64_t now_ns)
{
    for (; *from < neighbours->count; ++*from) {
        struct by_shell_neighbour *at = &neighbours->at[*from];

        if (at->due_ns > now_ns)
            continue;
        at->due_ns = now_ns + (at->tries < BY_NEIGHBOUR_QUICK && !at->elsewhere ? BY_NEIGHBOUR_SOON_NS
                                                                                : BY_NEIGHBOUR_SLOW_NS);
        if (at->tries < UINT8_MAX)
            at->tries++;
        ++*from;
        return at;
    }
    return NULL;
}

void by_neighbours_settle(struct by_neighbours *neighbours)
{
    uint64_t due_ns = UINT64_MAX;

    for (uint32_t i = 0; i < neighbours->count; i++)
        if (neighbours->at[i].due_ns < due_ns)
            due_ns = neighbours->at[i].due_ns;
    neighbours->due_ns = due_ns;
}
