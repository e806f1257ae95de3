/* Reads the names of a site; see site.h and banyan-site(5). One thread for each call. */
#include "control/fabric/site.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/json.h"
#include "control/fabric/names.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/base/limits.h"

#define FORMAT "banyan-site-1"
/* Maximum size of a site file (bytes): a few hundred for each link. */
#define FILE_BYTES_MAX ((size_t)256 << 20)
#define MTU_MAX        65535u
/* Maximum length of the address of a control channel, with its zero (bytes). */
#define CONTROL_BYTES 256u
/* UDP ports of job 1: above those of system services, and low enough for the last job's. */
#define UDP_PORT_MIN 1024u
#define UDP_PORT_MAX (65535u - BY_JOBS_MAX + 2u)

/* A link by its nodes, for lookups. */
struct site_key {
    uint32_t low, high, link;
};

struct site_reader {
    const struct by_topology *topology;
    struct by_json json;
    struct by_names *names;
    struct by_problem *problem;
    int error;
    struct site_key *keys; /* sorted */
    bool *given;           /* by link */
    bool *given_node;      /* by node */
    struct by_site *site;
};

/* What is read of one link before its place is known. */
struct site_link {
    uint32_t nodes[2];
    uint32_t number, mtu, vlan;
    unsigned node_count, end_count;
    struct by_site_end ends[2];
};

#define refuse(reader, ...) by_json_refuse(&(reader)->json, (reader)->problem, &(reader)->error, __VA_ARGS__)

static int compare_keys(const void *left, const void *right)
{
    const struct site_key *a = left, *b = right;

    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    if (a->high != b->high)
        return a->high < b->high ? -1 : 1;
    return a->link < b->link ? -1 : a->link > b->link;
}

static struct site_key *sort_links(const struct by_topology *topology)
{
    struct site_key *keys = by_alloc(topology->link_count, sizeof(*keys));

    for (uint32_t i = 0; i < topology->link_count; i++) {
        uint32_t a = topology->links[i].a, b = topology->links[i].b;

        keys[i] = (struct site_key){.low = a < b ? a : b, .high = a < b ? b : a, .link = i};
    }
    qsort(keys, topology->link_count, sizeof(*keys), compare_keys);
    return keys;
}

/* Reads a string of at most `most` - 1 bytes, without zeros. */
static bool read_text(struct site_reader *reader, const char *what, char *text, size_t most)
{
    const char *from = NULL;
    size_t bytes = 0;

    if (by_json_peek(&reader->json) != '"' || !by_json_string(&reader->json, &from, &bytes))
        return refuse(reader, "%s must be a string", what);
    if (bytes == 0 || bytes >= most)
        return refuse(reader, "%s has %zu bytes; it must have 1 to %zu", what, bytes, most - 1);
    memcpy(text, from, bytes);
    text[bytes] = 0;
    return true;
}

static bool read_number(struct site_reader *reader, const char *what, uint32_t least, uint32_t most,
                        uint32_t *number)
{
    int64_t value = -1;

    if (by_json_peek(&reader->json) != '0' || !by_json_integer(&reader->json, &value) || value < least ||
        value > most)
        return refuse(reader, "%s must be a number from %u to %u", what, least, most);
    *number = (uint32_t)value;
    return true;
}

static bool read_interface(struct site_reader *reader, char name[BY_INTERFACE_BYTES])
{
    if (!read_text(reader, "the name of an interface", name, BY_INTERFACE_BYTES))
        return false;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strpbrk(name, "/: \t\n") != NULL)
        return refuse(
            reader, "'%s' is not the name of an interface: Linux excludes blanks, '/' and ':' from it", name);
    return true;
}

/* Takes an IPv6 address that an end of a link can have. */
static bool take_ipv6(struct site_reader *reader, const char *text, struct by_site_end *end)
{
    switch (by_ipv6_kind(end->ipv6)) {
    case BY_IPV6_UNICAST:
        end->ip = BY_IPV6_NUMBER_MAX; /* until all addresses have been read */
        return true;
    case BY_IPV6_LINK_LOCAL:
        return refuse(reader,
                      "%s is a link-local address, which more than one link may have: give the end a unique "
                      "local address (fd00::/8) or a global one",
                      text);
    case BY_IPV6_MAPPED:
        return refuse(reader, "%s is an IPv4 address as IPv6: write it as 10.1.2.3", text);
    case BY_IPV6_UNSPECIFIED:
    case BY_IPV6_LOOPBACK:
    case BY_IPV6_MULTICAST:
    default:
        return refuse(reader,
                      "%s is not the address of a host: it is unspecified, loopback or multicast; give the "
                      "end a unique local address (fd00::/8) or a global one",
                      text);
    }
}

/* Reads an address that a host can have: of IPv4 not 0.0.0.0/8, 127.0.0.0/8 or 224.0.0.0/3. */
static bool read_address(struct site_reader *reader, struct by_site_end *end)
{
    char text[INET6_ADDRSTRLEN + BY_INTERFACE_BYTES], *zone;
    uint32_t *ip = &end->ip;
    struct in_addr address;

    if (!read_text(reader, "an address", text, sizeof(text)))
        return false;
    memset(end->ipv6, 0, sizeof(end->ipv6));
    zone = strchr(text, '%');
    if (zone != NULL)
        *zone = 0; /* only link-local addresses have zones, and these are refused */
    if (inet_pton(AF_INET6, text, end->ipv6) == 1 &&
        (zone == NULL || by_ipv6_kind(end->ipv6) != BY_IPV6_UNICAST))
        return take_ipv6(reader, text, end);
    if (zone != NULL || inet_pton(AF_INET, text, &address) != 1)
        return refuse(reader,
                      "'%s' is not an IPv4 address such as 10.1.2.3, nor an IPv6 address such as "
                      "fd00:1::2 (without the length of a prefix)",
                      text);
    *ip = ntohl(address.s_addr);
    if (*ip >> 24 == 0 || *ip >> 24 == 127 || *ip >> 29 == 7)
        return refuse(reader, "%s is not the address of a host: it is reserved, loopback or multicast", text);
    return true;
}

static bool read_mac(struct site_reader *reader, struct by_site_end *to)
{
    char text[24];
    uint8_t *mac = to->mac;
    unsigned byte[6], any = 0;
    int end = 0;

    if (!read_text(reader, "a MAC address", text, sizeof(text)))
        return false;
    to->mac_from = strcmp(text, "arp") == 0 || strcmp(text, "nd") == 0 ? BY_SITE_MAC_ARP : BY_SITE_MAC_STATED;
    if (to->mac_from == BY_SITE_MAC_ARP)
        return true;
    if (strlen(text) != 17 ||
        sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &byte[0], &byte[1], &byte[2], &byte[3], &byte[4], &byte[5],
               &end) != 6 ||
        end != 17)
        return refuse(reader, "'%s' is not a MAC address such as 02:42:ac:11:00:02, nor \"arp\" or \"nd\"",
                      text);
    for (unsigned i = 0; i < 6; i++) {
        mac[i] = (uint8_t)byte[i];
        any |= byte[i];
    }
    if (any == 0 || mac[0] & 1)
        return refuse(reader, "%s is not the MAC address of one station: it is zero or a group's", text);
    return true;
}

static bool read_vlan(struct site_reader *reader, const char *what, uint32_t *vlan)
{
    return read_number(reader, what, 0, BY_VLAN_MAX, vlan);
}

static bool read_end(struct site_reader *reader, struct by_site_end *end)
{
    const char *key;
    size_t bytes;
    bool right = true;
    uint32_t vlan = BY_SITE_VLAN_NONE;

    if (by_json_peek(&reader->json) != '{')
        return refuse(reader, "an end must be an object with interface, address, mac, mtu and vlan, or {}");
    for (bool first = true; right && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "interface"))
            right = read_interface(reader, end->interface);
        else if (by_json_is(key, bytes, "address"))
            right = read_address(reader, end);
        else if (by_json_is(key, bytes, "mac"))
            right = read_mac(reader, end);
        else if (by_json_is(key, bytes, "mtu"))
            right = read_number(reader, "the MTU of an end", BY_SITE_MTU_MIN, MTU_MAX, &end->mtu);
        else if (by_json_is(key, bytes, "vlan"))
            right = read_vlan(reader, "the VLAN of an end", &vlan);
        else
            right = refuse(reader,
                           "key '%.*s' of an end is unknown; an end has interface, address, mac, mtu and "
                           "vlan",
                           bytes > 40 ? 40 : (int)bytes, key);
    }
    end->vlan = (uint16_t)vlan;
    return right;
}

static bool read_node(struct site_reader *reader, uint32_t *node)
{
    const char *text;
    int shown;

    if (!by_names_read(reader->names, &reader->json, node, &text, &shown))
        return refuse(reader, "topology '%.60s' has no node '%.*s'; correct the name", reader->topology->name,
                      shown, text);
    return true;
}

/* Refuses ends of a link that tag frames differently. An end that states no VLAN has that of the
 * other end. */
static bool check_vlans(struct site_reader *reader, const struct site_link *from, struct by_site_end ends[2])
{
    const struct by_node *nodes = reader->topology->nodes;
    const struct by_link *link = &reader->topology->links[(ends - reader->site->ends) / 2];
    unsigned stated = ends[0].vlan == BY_SITE_VLAN_NONE ? 1 : 0;

    if (ends[stated].vlan == BY_SITE_VLAN_NONE || ends[!stated].vlan == BY_SITE_VLAN_NONE)
        ends[!stated].vlan = ends[stated].vlan;
    if (ends[0].vlan == ends[1].vlan)
        return true;
    return refuse(reader,
                  "link %u between '%s' and '%s' has VLAN %u at '%s' and VLAN %u at '%s' (0: no tag), so "
                  "neither end receives the frames of the other: give both ends one VLAN",
                  from->number, nodes[from->nodes[0]].name, nodes[from->nodes[1]].name, ends[0].vlan,
                  nodes[link->a].name, ends[1].vlan, nodes[link->b].name);
}

/* Enters what was read of a link at its place. */
static bool enter(struct site_reader *reader, const struct site_link *from)
{
    uint32_t a = from->nodes[0], b = from->nodes[1], low = a < b ? a : b, high = a < b ? b : a;
    const struct by_node *nodes = reader->topology->nodes;
    size_t begin = 0, end = reader->topology->link_count, link;

    while (begin < end) { /* the first key of this pair, or after it */
        size_t middle = begin + (end - begin) / 2;
        const struct site_key pair = {.low = low, .high = high, .link = 0};

        if (compare_keys(&reader->keys[middle], &pair) < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    begin += from->number;
    if (begin >= reader->topology->link_count || reader->keys[begin].low != low ||
        reader->keys[begin].high != high)
        return refuse(reader, "topology '%.60s' has no link %u between '%s' and '%s' (they count from 0)",
                      reader->topology->name, from->number, nodes[a].name, nodes[b].name);
    link = reader->keys[begin].link;
    if (reader->given[link])
        return refuse(reader, "link %u between '%s' and '%s' appears twice; remove one", from->number,
                      nodes[a].name, nodes[b].name);
    reader->given[link] = true;
    for (unsigned i = 0; i < 2; i++) {
        struct by_site_end *to =
            &reader->site->ends[2 * link + (reader->topology->links[link].a != from->nodes[i])];

        *to = from->ends[i];
        to->mtu = to->mtu == 0 ? from->mtu : to->mtu;
        to->vlan = to->vlan == BY_SITE_VLAN_NONE ? (uint16_t)from->vlan : to->vlan;
    }
    return check_vlans(reader, from, &reader->site->ends[2 * link]);
}

static bool read_link(struct site_reader *reader)
{
    struct site_link link = {.vlan = BY_SITE_VLAN_NONE,
                             .ends = {{.vlan = BY_SITE_VLAN_NONE}, {.vlan = BY_SITE_VLAN_NONE}}};
    const char *key;
    size_t bytes;
    bool right = true;

    if (by_json_peek(&reader->json) != '{')
        return refuse(reader,
                      "a link must be an object such as {\"between\": [\"a\", \"b\"], \"ends\": ...}");
    for (bool first = true; right && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "between")) {
            if (by_json_peek(&reader->json) != '[')
                return refuse(reader, "\"between\" must be an array of two node names");
            for (bool begin = true; right && by_json_element(&reader->json, &begin); link.node_count++)
                right = link.node_count < 2 ? read_node(reader, &link.nodes[link.node_count])
                                            : refuse(reader, "a link has two nodes");
        } else if (by_json_is(key, bytes, "ends")) {
            if (by_json_peek(&reader->json) != '[')
                return refuse(reader, "\"ends\" must be an array of two ends, in the order of \"between\"");
            for (bool begin = true; right && by_json_element(&reader->json, &begin); link.end_count++)
                right = link.end_count < 2 ? read_end(reader, &link.ends[link.end_count])
                                           : refuse(reader, "a link has two ends");
        } else if (by_json_is(key, bytes, "number")) {
            right = read_number(reader, "the number of a link", 0, UINT32_MAX - 1, &link.number);
        } else if (by_json_is(key, bytes, "mtu")) {
            right = read_number(reader, "the MTU of a link", BY_SITE_MTU_MIN, MTU_MAX, &link.mtu);
        } else if (by_json_is(key, bytes, "vlan")) {
            right = read_vlan(reader, "the VLAN of a link", &link.vlan);
        } else {
            right = refuse(reader,
                           "key '%.*s' of a link is unknown; a link has between, number, mtu, vlan and ends",
                           bytes > 40 ? 40 : (int)bytes, key);
        }
    }
    if (!right || reader->json.failed)
        return false;
    if (link.node_count != 2 || (link.end_count != 0 && link.end_count != 2))
        return refuse(reader, "a link must have \"between\" with two nodes; \"ends\" has two elements, or is "
                              "omitted");
    return enter(reader, &link);
}

/* Whether a node's end of a link has an address of IPv6, or none. */
static bool is_ipv6(const struct by_site_end *end)
{
    return by_ipv6_is(end->ip);
}

/* Checks the ends of a link whose nodes are known: both have addresses of one family, unless one of
 * them bridges, and packets of IPv6 fit. */
static int check_families(const struct site_reader *reader, uint32_t index)
{
    const struct by_node *nodes = reader->topology->nodes;
    const struct by_link *link = &reader->topology->links[index];
    const struct by_site *site = reader->site;
    const struct by_site_end *a = &site->ends[2 * (size_t)index], *b = a + 1;
    uint32_t mtu = a->mtu == 0 || (b->mtu != 0 && b->mtu < a->mtu) ? b->mtu : a->mtu;
    bool bridges = site->nodes[link->a].runs == BY_SITE_BRIDGE || site->nodes[link->b].runs == BY_SITE_BRIDGE;

    if (is_ipv6(a) != is_ipv6(b) && !bridges)
        return by_problem_say(reader->problem, BY_EFORMAT,
                              "the link between '%s' and '%s' has an IPv6 address at '%s' and %s at '%s': "
                              "give both ends addresses of one family",
                              nodes[link->a].name, nodes[link->b].name,
                              nodes[is_ipv6(a) ? link->a : link->b].name,
                              (is_ipv6(a) ? b : a)->ip != 0 ? "an IPv4 address" : "none",
                              nodes[is_ipv6(a) ? link->b : link->a].name);
    if ((is_ipv6(a) || is_ipv6(b)) && mtu != 0 && mtu < BY_IPV6_MTU_MIN)
        return by_problem_say(reader->problem, BY_EFORMAT,
                              "the link between '%s' and '%s' has an MTU of %u bytes; with IPv6 addresses it "
                              "must be at least %u (RFC 8200): raise it, or give the link IPv4 addresses",
                              nodes[link->a].name, nodes[link->b].name, mtu, BY_IPV6_MTU_MIN);
    return 0;
}

static int compare_ipv6(const void *left, const void *right)
{
    const struct by_site_end *const *a = left, *const *b = right;

    return memcmp((*a)->ipv6, (*b)->ipv6, BY_IPV6_BYTES);
}

/* Numbers the IPv6 addresses in their order, and makes the book of them. An address that is given
 * twice has one number, and is refused like one of IPv4 (control/tables/address.c). */
static void number_addresses(struct by_site *site, uint32_t end_count)
{
    struct by_site_end **ends = by_alloc(end_count, sizeof(struct by_site_end *));
    uint32_t count = 0, number = 0;
    uint8_t *records;

    for (uint32_t i = 0; i < end_count; i++)
        if (is_ipv6(&site->ends[i]))
            ends[count++] = &site->ends[i];
    qsort(ends, count, sizeof(struct by_site_end *), compare_ipv6);
    records = by_alloc(count, BY_IPV6_RECORD_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || compare_ipv6(&ends[i], &ends[i - 1]) != 0) {
            uint8_t *record = records + (size_t)number++ * BY_IPV6_RECORD_BYTES;

            by_put32(record, number);
            memcpy(record + 4, ends[i]->ipv6, BY_IPV6_BYTES);
        }
        ends[i]->ip = number;
    }
    free(ends);
    site->book = (struct by_ipv6_book){records, number};
}

static bool read_runs(struct site_reader *reader, enum by_site_runs *runs)
{
    static const char *const words[] = {
        [BY_SITE_BANYAN] = "banyan", [BY_SITE_ROUTER] = "router", [BY_SITE_BRIDGE] = "bridge"};
    char text[16];

    if (!read_text(reader, "what a node runs", text, sizeof(text)))
        return false;
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(text, words[i]) == 0) {
            *runs = (enum by_site_runs)i;
            return true;
        }
    return refuse(reader, "a node cannot run '%s'; it runs banyan, router or bridge", text);
}

/* Enters what was read of a node at its place. */
static bool enter_node(struct site_reader *reader, uint32_t index, const char *control,
                       enum by_site_runs runs)
{
    const struct by_node *node = &reader->topology->nodes[index];

    if (reader->given_node[index])
        return refuse(reader, "node '%s' appears twice; remove one", node->name);
    if (node->compute && (control[0] != 0 || runs != BY_SITE_BANYAN))
        return refuse(reader,
                      "node '%s' is a host: only switches have a control channel, or run something else "
                      "than banyan",
                      node->name);
    if (control[0] != 0 && runs != BY_SITE_BANYAN)
        return refuse(reader,
                      "node '%s' does not run banyan, so it has no control channel: remove one of both",
                      node->name);
    reader->given_node[index] = true;
    reader->site->nodes[index] =
        (struct by_site_node){.control = control[0] != 0 ? by_copy_text(control) : NULL, .runs = runs};
    return true;
}

static bool read_site_node(struct site_reader *reader)
{
    enum by_site_runs runs = BY_SITE_BANYAN;
    uint32_t index = UINT32_MAX;
    char control[CONTROL_BYTES] = "";
    const char *key;
    size_t bytes;
    bool right = true;

    if (by_json_peek(&reader->json) != '{')
        return refuse(reader, "a node must be an object such as {\"name\": \"leaf0\", \"control\": "
                              "\"tls:10.0.0.5:7700\"}");
    for (bool first = true; right && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "name"))
            right = read_node(reader, &index);
        else if (by_json_is(key, bytes, "control"))
            right = read_text(reader, "the address of a control channel", control, sizeof(control));
        else if (by_json_is(key, bytes, "runs"))
            right = read_runs(reader, &runs);
        else
            right = refuse(reader, "key '%.*s' of a node is unknown; a node has name, control and runs",
                           bytes > 40 ? 40 : (int)bytes, key);
    }
    if (!right || reader->json.failed)
        return false;
    if (index == UINT32_MAX)
        return refuse(reader, "a node must have a \"name\", that of a node of the topology");
    return enter_node(reader, index, control, runs);
}

static bool read_udp_port(struct site_reader *reader)
{
    uint32_t port = 0;

    if (!read_number(reader, "the UDP port of job 1", UDP_PORT_MIN, UDP_PORT_MAX, &port))
        return false;
    reader->site->udp_port = (uint16_t)port;
    return true;
}

static bool read_format(struct site_reader *reader)
{
    char text[32];

    if (!read_text(reader, "the format", text, sizeof(text)))
        return false;
    return strcmp(text, FORMAT) == 0 || refuse(reader, "the format is '%s'; it must be " FORMAT, text);
}

static bool read_root(struct site_reader *reader)
{
    const char *key;
    size_t bytes;
    bool right = true, format = false;

    if (by_json_peek(&reader->json) != '{')
        return refuse(reader, "a site must be an object with \"format\" and \"links\"");
    for (bool first = true; right && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "format")) {
            right = format = read_format(reader);
        } else if (by_json_is(key, bytes, "links")) {
            if (by_json_peek(&reader->json) != '[')
                return refuse(reader, "\"links\" must be an array");
            for (bool begin = true; right && by_json_element(&reader->json, &begin);)
                right = read_link(reader);
        } else if (by_json_is(key, bytes, "nodes")) {
            if (by_json_peek(&reader->json) != '[')
                return refuse(reader, "\"nodes\" must be an array");
            for (bool begin = true; right && by_json_element(&reader->json, &begin);)
                right = read_site_node(reader);
        } else if (by_json_is(key, bytes, "udp_port")) {
            right = read_udp_port(reader);
        } else {
            right = refuse(reader,
                           "key '%.*s' of a site is unknown; a site has format, udp_port, nodes and links",
                           bytes > 40 ? 40 : (int)bytes, key);
        }
    }
    if (right && !reader->json.failed && !format)
        return refuse(reader, "the site has no \"format\"; add \"format\": \"" FORMAT "\"");
    return right;
}

int by_site_parse(const char *json, size_t bytes, struct by_topology *topology, struct by_problem *problem)
{
    struct site_reader reader = {.topology = topology, .problem = problem};

    reader.names = by_names_new(topology);
    reader.keys = sort_links(topology);
    reader.given = by_alloc(topology->link_count, sizeof(bool));
    reader.site = by_alloc(1, sizeof(*reader.site));
    reader.given_node = by_alloc(topology->node_count, sizeof(bool));
    reader.site->ends = by_alloc(2 * (size_t)topology->link_count, sizeof(struct by_site_end));
    for (uint32_t i = 0; i < 2 * topology->link_count; i++)
        reader.site->ends[i].vlan = BY_SITE_VLAN_NONE;
    reader.site->node_count = topology->node_count;
    reader.site->nodes = by_alloc(topology->node_count, sizeof(struct by_site_node));
    by_json_open(&reader.json, json, bytes);
    read_root(&reader);
    if (reader.error == 0)
        reader.error = by_json_finish(&reader.json, problem);
    by_json_close(&reader.json);
    for (uint32_t i = 0; i < topology->link_count && reader.error == 0; i++)
        reader.error = check_families(&reader, i);
    if (reader.error == 0)
        number_addresses(reader.site, 2 * topology->link_count);
    by_names_free(reader.names);
    free(reader.keys);
    free(reader.given);
    free(reader.given_node);
    if (reader.error != 0) {
        by_site_free(reader.site);
        return reader.error;
    }
    by_site_free(topology->site);
    topology->site = reader.site;
    return 0;
}

int by_site_read(const char *path, struct by_topology *topology, struct by_problem *problem)
{
    char *text = NULL;
    size_t bytes = 0;
    int error = by_text_read(path, FILE_BYTES_MAX, &text, &bytes, problem);

    if (error == 0)
        error = by_site_parse(text, bytes, topology, problem);
    free(text);
    return error;
}

/* Reads the name and the address of the control channel of one node; "" if it has none. */
static bool read_control(struct site_reader *reader, char name[BY_NAME_MAX + 1], char control[CONTROL_BYTES])
{
    const char *key;
    size_t bytes;
    bool right = true;

    name[0] = control[0] = 0;
    if (by_json_peek(&reader->json) != '{')
        return refuse(reader, "a node must be an object");
    for (bool first = true; right && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "name"))
            right = read_text(reader, "the name of a node", name, BY_NAME_MAX + 1);
        else if (by_json_is(key, bytes, "control"))
            right = read_text(reader, "the address of a control channel", control, CONTROL_BYTES);
        else
            by_json_skip(&reader->json);
    }
    if (right && !reader->json.failed && name[0] == 0)
        return refuse(reader, "a node must have a \"name\"");
    return right && !reader->json.failed;
}

int by_site_controls(const char *path, void (*add)(void *context, const char *name, const char *address),
                     void *context, struct by_problem *problem)
{
    struct site_reader reader = {.problem = problem};
    char *text = NULL, name[BY_NAME_MAX + 1], control[CONTROL_BYTES];
    const char *key;
    size_t bytes = 0, key_bytes;
    bool right = true, format = false;

    reader.error = by_text_read(path, FILE_BYTES_MAX, &text, &bytes, problem);
    if (reader.error != 0)
        return reader.error;
    by_json_open(&reader.json, text, bytes);
    for (bool first = true; right && by_json_member(&reader.json, &first, &key, &key_bytes);) {
        if (by_json_is(key, key_bytes, "format"))
            right = format = read_format(&reader);
        else if (!by_json_is(key, key_bytes, "nodes"))
            by_json_skip(&reader.json);
        if (!right || !by_json_is(key, key_bytes, "nodes"))
            continue;
        for (bool begin = true; right && by_json_element(&reader.json, &begin);) {
            right = read_control(&reader, name, control);
            if (right && control[0] != 0)
                add(context, name, control);
        }
    }
    if (right && !reader.json.failed && !format)
        refuse(&reader, "the site has no \"format\"; add \"format\": \"" FORMAT "\"");
    if (reader.error == 0)
        reader.error = by_json_finish(&reader.json, problem);
    by_json_close(&reader.json);
    free(text);
    return reader.error;
}

void by_site_free(struct by_site *site)
{
    if (site == NULL)
        return;
    for (uint32_t i = 0; i < site->node_count; i++)
        free(site->nodes[i].control);
    free((uint8_t *)(uintptr_t)site->book.records);
    free(site->ends);
    free(site->nodes);
    free(site);
}

uint32_t by_site_mtu(const struct by_topology *topology, uint32_t link)
{
    uint32_t a, b;

    if (topology->site == NULL)
        return 0;
    a = topology->site->ends[2 * link].mtu;
    b = topology->site->ends[2 * link + 1].mtu;
    return a == 0 || (b != 0 && b < a) ? b : a;
}
