/* Reads the names of a site; see site.h and banyan-site(5). One thread for each call. */
#include "control/fabric/site.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/json.h"
#include "control/fabric/names.h"
#include "offload/base/errors.h"

#define FORMAT "banyan-site-1"
/* Maximum size of a site file (bytes): a few hundred for each link. */
#define FILE_BYTES_MAX ((size_t)256 << 20)
#define MTU_MAX        65535u

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
    struct by_site *site;
};

/* What is read of one link before its place is known. */
struct site_link {
    uint32_t nodes[2];
    uint32_t number, mtu;
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

/* Reads an address that a host can have: not of 0.0.0.0/8, 127.0.0.0/8 or 224.0.0.0/3. */
static bool read_address(struct site_reader *reader, uint32_t *ip)
{
    char text[INET_ADDRSTRLEN + 1];
    struct in_addr address;

    if (!read_text(reader, "an address", text, sizeof(text)))
        return false;
    if (inet_pton(AF_INET, text, &address) != 1)
        return refuse(reader, "'%s' is not an IPv4 address such as 10.1.2.3", text);
    *ip = ntohl(address.s_addr);
    if (*ip >> 24 == 0 || *ip >> 24 == 127 || *ip >> 29 == 7)
        return refuse(reader, "%s is not the address of a host: it is reserved, loopback or multicast", text);
    return true;
}

static bool read_mac(struct site_reader *reader, uint8_t mac[6])
{
    char text[24];
    unsigned byte[6], any = 0;
    int end = 0;

    if (!read_text(reader, "a MAC address", text, sizeof(text)))
        return false;
    if (strlen(text) != 17 ||
        sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &byte[0], &byte[1], &byte[2], &byte[3], &byte[4], &byte[5],
               &end) != 6 ||
        end != 17)
        return refuse(reader, "'%s' is not a MAC address such as 02:42:ac:11:00:02", text);
    for (unsigned i = 0; i < 6; i++) {
        mac[i] = (uint8_t)byte[i];
        any |= byte[i];
    }
    if (any == 0 || mac[0] & 1)
        return refuse(reader, "%s is not the MAC address of one station: it is zero or a group's", text);
    return true;
}

static bool read_end(struct site_reader *reader, struct by_site_end *end)
{
    const char *key;
    size_t bytes;
    bool right = true;

    if (by_json_peek(&reader->json) != '{')
        return refuse(reader, "an end must be an object with interface, address and mac, or {}");
    for (bool first = true; right && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "interface"))
            right = read_interface(reader, end->interface);
        else if (by_json_is(key, bytes, "address"))
            right = read_address(reader, &end->ip);
        else if (by_json_is(key, bytes, "mac"))
            right = end->has_mac = read_mac(reader, end->mac);
        else
            right = refuse(reader, "key '%.*s' of an end is unknown; an end has interface, address and mac",
                           bytes > 40 ? 40 : (int)bytes, key);
    }
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
    reader->site->mtu[link] = from->mtu;
    for (unsigned i = 0; i < 2; i++)
        reader->site->ends[2 * link + (reader->topology->links[link].a != from->nodes[i])] = from->ends[i];
    return true;
}

static bool read_link(struct site_reader *reader)
{
    struct site_link link = {.number = 0};
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
        } else {
            right =
                refuse(reader, "key '%.*s' of a link is unknown; a link has between, number, mtu and ends",
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

static bool read_root(struct site_reader *reader)
{
    const char *key;
    size_t bytes;
    bool right = true, format = false;
    char text[32];

    if (by_json_peek(&reader->json) != '{')
        return refuse(reader, "a site must be an object with \"format\" and \"links\"");
    for (bool first = true; right && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "format")) {
            right = read_text(reader, "the format", text, sizeof(text));
            format = right && strcmp(text, FORMAT) == 0;
            if (right && !format)
                right = refuse(reader, "the format is '%s'; it must be " FORMAT, text);
        } else if (by_json_is(key, bytes, "links")) {
            if (by_json_peek(&reader->json) != '[')
                return refuse(reader, "\"links\" must be an array");
            for (bool begin = true; right && by_json_element(&reader->json, &begin);)
                right = read_link(reader);
        } else {
            right = refuse(reader, "key '%.*s' of a site is unknown; a site has format and links",
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
    reader.site->ends = by_alloc(2 * (size_t)topology->link_count, sizeof(struct by_site_end));
    reader.site->mtu = by_alloc(topology->link_count, sizeof(uint32_t));
    by_json_open(&reader.json, json, bytes);
    read_root(&reader);
    if (reader.error == 0)
        reader.error = by_json_finish(&reader.json, problem);
    by_json_close(&reader.json);
    by_names_free(reader.names);
    free(reader.keys);
    free(reader.given);
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

void by_site_free(struct by_site *site)
{
    if (site == NULL)
        return;
    free(site->ends);
    free(site->mtu);
    free(site);
}
