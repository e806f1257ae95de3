/* Addresses, ports and ranks of a fabric. Neighbours: lower.c and the lab use them. Pure; any
 * thread. */
#include "control/tables/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "offload/base/errors.h"
#include "offload/base/limits.h"

static int refuse(struct by_problem *problem, const char *text)
{
    problem->line = 0;
    problem->column = 0;
    snprintf(problem->text, sizeof(problem->text), "%s", text);
    return BY_ELIMIT;
}

static int check_sizes(const struct by_topology *topology, struct by_problem *problem)
{
    char text[400];

    /* Node IDs have 16 bits; 0xffff means none. */
    if (topology->node_count >= 0xffffu) {
        snprintf(text, sizeof(text),
                 "the fabric has %u nodes; a table can name at most 65534: split the fabric",
                 topology->node_count);
        return refuse(problem, text);
    }
    if (topology->link_count > BY_ADDRESS_LINKS_MAX) {
        snprintf(text, sizeof(text),
                 "the fabric has %u links; the address range 198.18.0.0/15 holds %u: merge parallel links",
                 topology->link_count, BY_ADDRESS_LINKS_MAX);
        return refuse(problem, text);
    }
    for (uint32_t i = 0; i < topology->node_count; i++) {
        if (strlen(topology->nodes[i].name) > BY_NAME_MAX) {
            snprintf(text, sizeof(text),
                     "node '%.60s...': the name has %zu bytes; the limit is %u: shorten it",
                     topology->nodes[i].name, strlen(topology->nodes[i].name), BY_NAME_MAX);
            return refuse(problem, text);
        }
    }
    return 0;
}

/* One end of a link, for comparisons. */
struct address_end {
    uint32_t link, node, ip;
    char interface[BY_INTERFACE_BYTES];
};

static int compare_addresses(const void *left, const void *right)
{
    const struct address_end *a = left, *b = right;

    return a->ip != b->ip ? (a->ip < b->ip ? -1 : 1) : (a->link > b->link) - (a->link < b->link);
}

static int compare_interfaces(const void *left, const void *right)
{
    const struct address_end *a = left, *b = right;
    int order;

    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    order = strcmp(a->interface, b->interface);
    return order != 0 ? order : (a->link > b->link) - (a->link < b->link);
}

static const char *far_name(const struct by_topology *topology, const struct address_end *end)
{
    return topology->nodes[by_address_peer(topology, end->link, end->node)].name;
}

/* Checks that what a site states and what is generated beside it are different. */
static int check_site(const struct by_address_map *map, struct by_problem *problem)
{
    const struct by_topology *topology = map->topology;
    uint32_t count = 2 * topology->link_count;
    struct address_end *ends = by_alloc(count, sizeof(*ends));
    char text[BY_ADDRESS_TEXT];
    int error = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct by_link *link = &topology->links[i / 2];

        ends[i] = (struct address_end){.link = i / 2, .node = i % 2 == 0 ? link->a : link->b};
        ends[i].ip = by_address_ip(topology, i / 2, ends[i].node);
        by_address_interface(map, i / 2, ends[i].node, ends[i].interface);
    }
    qsort(ends, count, sizeof(*ends), compare_addresses);
    for (uint32_t i = 1; i < count && error == 0; i++)
        if (ends[i].ip == ends[i - 1].ip)
            error = by_problem_say(
                problem, BY_EINVAL,
                "node '%s' has the address %s on its link to '%s', and node '%s' has it on its link to '%s': "
                "give each end of a link an address of its own in the site file",
                topology->nodes[ends[i - 1].node].name,
                by_address_of(topology, ends[i].link, ends[i].node, text), far_name(topology, &ends[i - 1]),
                topology->nodes[ends[i].node].name, far_name(topology, &ends[i]));
    qsort(ends, count, sizeof(*ends), compare_interfaces);
    for (uint32_t i = 1; i < count && error == 0; i++)
        if (ends[i].node == ends[i - 1].node && strcmp(ends[i].interface, ends[i - 1].interface) == 0)
            error = by_problem_say(problem, BY_EINVAL,
                                   "node '%s' has the interface %s for its links to '%s' and to '%s': give "
                                   "each link an interface of its own in the site file",
                                   topology->nodes[ends[i].node].name, ends[i].interface,
                                   far_name(topology, &ends[i - 1]), far_name(topology, &ends[i]));
    free(ends);
    return error;
}

int by_address_map_make(const struct by_topology *topology, struct by_address_map *map,
                        struct by_problem *problem)
{
    int error = check_sizes(topology, problem);
    uint32_t next = 0;

    memset(map, 0, sizeof(*map));
    if (error != 0)
        return error;
    map->topology = topology;
    map->port_a = by_alloc(topology->link_count, sizeof(uint32_t));
    map->port_b = by_alloc(topology->link_count, sizeof(uint32_t));
    map->port_count = by_alloc(topology->node_count, sizeof(uint32_t));
    map->first_port = by_alloc(topology->node_count, sizeof(uint32_t));
    map->ports = by_alloc(2 * (size_t)topology->link_count, sizeof(uint32_t));
    map->rank = by_alloc(topology->node_count, sizeof(uint32_t));
    for (uint32_t i = 0; i < topology->link_count; i++) {
        map->port_a[i] = map->port_count[topology->links[i].a]++;
        map->port_b[i] = map->port_count[topology->links[i].b]++;
    }
    for (uint32_t i = 0; i < topology->node_count; i++) {
        map->first_port[i] = next;
        next += map->port_count[i];
        map->rank[i] = topology->nodes[i].compute ? map->rank_count++ : UINT32_MAX;
        if (map->port_count[i] > BY_TABLE_PORTS_MAX) {
            char text[400];
            snprintf(text, sizeof(text),
                     "node '%s' has %u links; a node has at most %u ports: use fewer, wider links",
                     topology->nodes[i].name, map->port_count[i], BY_TABLE_PORTS_MAX);
            by_address_map_free(map);
            return refuse(problem, text);
        }
    }
    for (uint32_t i = 0; i < topology->link_count; i++) {
        map->ports[map->first_port[topology->links[i].a] + map->port_a[i]] = i;
        map->ports[map->first_port[topology->links[i].b] + map->port_b[i]] = i;
    }
    error = topology->site != NULL ? check_site(map, problem) : 0;
    if (error != 0)
        by_address_map_free(map);
    return error;
}

void by_address_map_free(struct by_address_map *map)
{
    free(map->port_a);
    free(map->port_b);
    free(map->port_count);
    free(map->first_port);
    free(map->ports);
    free(map->rank);
    memset(map, 0, sizeof(*map));
}

uint32_t by_address_ip(const struct by_topology *topology, uint32_t link, uint32_t node)
{
    const struct by_site_end *end = by_site_end(topology, link, node);

    if (end != NULL && end->ip != 0)
        return end->ip;
    return BY_ADDRESS_BASE + 2 * link + (topology->links[link].a == node ? 0 : 1);
}

/* Whether the MAC address of `node`'s end is learned: if the site says so, or if it states the
 * address of the end, or what routes there, without it. */
static bool is_learned(const struct by_topology *topology, const struct by_site_end *end, uint32_t node)
{
    if (end->mac_from != BY_SITE_MAC_DEFAULT)
        return end->mac_from == BY_SITE_MAC_ARP;
    return end->ip != 0 || by_site_runs(topology, node) != BY_SITE_BANYAN;
}

bool by_address_mac(const struct by_topology *topology, uint32_t link, uint32_t node, uint8_t mac[6])
{
    const struct by_site_end *end = by_site_end(topology, link, node);
    uint32_t ip = by_address_ip(topology, link, node);

    memset(mac, 0, 6);
    if (end != NULL && is_learned(topology, end, node))
        return false;
    if (end != NULL && end->mac_from == BY_SITE_MAC_STATED) {
        memcpy(mac, end->mac, 6);
        return true;
    }
    mac[0] = 0x02;
    mac[1] = 0x62;
    mac[2] = (uint8_t)(ip >> 24);
    mac[3] = (uint8_t)(ip >> 16);
    mac[4] = (uint8_t)(ip >> 8);
    mac[5] = (uint8_t)ip;
    return true;
}

uint16_t by_address_vlan(const struct by_topology *topology, uint32_t link)
{
    const struct by_site_end *end = by_site_end(topology, link, topology->links[link].a);

    return end == NULL || end->vlan == BY_SITE_VLAN_NONE ? 0 : end->vlan;
}

uint32_t by_address_peer(const struct by_topology *topology, uint32_t link, uint32_t node)
{
    const struct by_link *cable = &topology->links[link];

    return cable->a == node ? cable->b : cable->a;
}

uint32_t by_address_port(const struct by_address_map *map, uint32_t link, uint32_t node)
{
    return map->topology->links[link].a == node ? map->port_a[link] : map->port_b[link];
}

uint32_t by_address_link(const struct by_address_map *map, uint32_t node, uint32_t port)
{
    return map->ports[map->first_port[node] + port];
}

void by_address_interface(const struct by_address_map *map, uint32_t link, uint32_t node,
                          char name[BY_INTERFACE_BYTES])
{
    const struct by_site_end *end = by_site_end(map->topology, link, node);

    if (end != NULL && end->interface[0] != 0)
        snprintf(name, BY_INTERFACE_BYTES, "%s", end->interface);
    else
        snprintf(name, BY_INTERFACE_BYTES, "%s%u", map->topology->nodes[node].compute ? "eth" : "p",
                 by_address_port(map, link, node));
}

char *by_address_text(const struct by_ipv6_book *book, uint32_t ip, char text[BY_ADDRESS_TEXT])
{
    const uint8_t *address = by_ipv6_address(book, ip);

    if (by_ipv6_is(ip)) {
        if (address == NULL || inet_ntop(AF_INET6, address, text, BY_ADDRESS_TEXT) == NULL)
            snprintf(text, BY_ADDRESS_TEXT, "IPv6 address %u of the table", ip);
        return text;
    }
    snprintf(text, BY_ADDRESS_TEXT, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
    return text;
}

char *by_address_of(const struct by_topology *topology, uint32_t link, uint32_t node,
                    char text[BY_ADDRESS_TEXT])
{
    struct by_ipv6_book book = by_site_book(topology);

    return by_address_text(&book, by_address_ip(topology, link, node), text);
}
