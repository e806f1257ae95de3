/*
 * A table image as JSON: the fields of image.h under their own names, addresses as text. Neighbour:
 * dump.c prints text. Any thread.
 */
#include <inttypes.h>

#include "control/tables/address.h"
#include "control/tables/dump.h"
#include "offload/wire/seal.h"
#include "offload/wire/types.h"

static json_t *ip_json(const uint8_t *image, uint32_t ip)
{
    char text[BY_ADDRESS_TEXT];

    return json_string(by_dump_ip(image, ip, text));
}

/* A 16-bit number; "none" becomes null. */
static json_t *or_null(uint16_t value)
{
    return value == 0xffff ? json_null() : json_integer(value);
}

static json_t *port_field(uint16_t port)
{
    return port == BY_PORT_LOCAL ? json_string("local") : json_integer(port);
}

static json_t *ports_json(const uint8_t *image, uint32_t count)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < count; i++) {
        struct by_image_port port;
        by_image_port(image, i, &port);
        json_array_append_new(array, json_pack("{s:s, s:o, s:o, s:o, s:i, s:i, s:I, s:I}", "name", port.name,
                                               "own_ip", ip_json(image, port.own_ip), "peer_ip",
                                               ip_json(image, port.peer_ip), "peer_node",
                                               or_null(port.peer_node), "mtu", port.mtu, "vlan", port.vlan,
                                               "rate_in", (json_int_t)port.rate_in * 1000, "rate_out",
                                               (json_int_t)port.rate_out * 1000));
    }
    return array;
}

static json_t *jobs_json(const uint8_t *image, uint32_t count)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < count; i++) {
        struct by_image_job job;
        json_t *object;

        by_image_job(image, i, &job);
        object =
            json_pack("{s:i, s:i, s:i, s:o, s:i, s:i, s:f}", "job", job.job, "gen", job.gen, "rank_count",
                      job.rank_count, "rank", or_null(job.rank), "tree_count", job.tree_count, "udp_port",
                      job.udp_port, "share", (double)job.share / BY_SHARE_ONE);
        if (by_image_job_is_standby(image, i))
            json_object_set_new(object, "standby", json_true());
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *children_json(const uint8_t *image, const struct by_image_entry *entry)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < entry->child_count; i++) {
        struct by_image_child child;
        by_image_child(image, entry->first_child + i, &child);
        json_array_append_new(array, json_pack("{s:o, s:i, s:o, s:i, s:o}", "port", port_field(child.port),
                                               "node", child.node, "ip", ip_json(image, child.ip), "udp_port",
                                               child.udp_port, "rank", or_null(child.rank)));
    }
    return array;
}

static json_t *entries_json(const uint8_t *image, uint32_t count)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < count; i++) {
        struct by_image_entry entry;
        json_t *parent;
        by_image_entry(image, i, &entry);
        parent = entry.parent_node == BY_NODE_NONE
                     ? json_null()
                     : json_pack("{s:i, s:o, s:o, s:i, s:i}", "node", entry.parent_node, "port",
                                 port_field(entry.parent_port), "ip", ip_json(image, entry.parent_ip),
                                 "udp_port", entry.parent_udp_port, "child", entry.parent_child);
        json_array_append_new(array, json_pack("{s:i, s:i, s:o, s:o, s:i, s:i, s:i, s:i, s:i, s:b}", "job",
                                               entry.job, "tree", entry.tree, "parent", parent, "children",
                                               children_json(image, &entry), "window", entry.window,
                                               "slot_base", (int)entry.slot_base, "payload_max",
                                               entry.payload_max, "nleaf", entry.nleaf, "depth",
                                               entry.depth > 1 ? entry.depth : 1, "joined", entry.joined));
    }
    return array;
}

/* Returns the names of bits 1 to count - 1. */
static json_t *words_json(uint16_t bits, unsigned count, const char *(*name)(unsigned))
{
    json_t *array = json_array();

    for (unsigned i = 1; i < count; i++)
        if (bits & 1u << i)
            json_array_append_new(array, json_string(name(i)));
    return array;
}

/* null if the table does not contain the abilities. */
static json_t *abilities_json(const struct by_image_leaf *leaf)
{
    if (leaf->modes == 0)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:b}", "modes", words_json(leaf->modes, BY_MODE_COUNT, by_mode_name),
                     "ops", words_json(leaf->ops, BY_OP_COUNT, by_op_name), "dtypes",
                     words_json(leaf->dtypes, BY_DTYPE_COUNT, by_dtype_name), "marks",
                     (leaf->modes & BY_LEAF_MARKS) != 0);
}

static json_t *leaves_json(const uint8_t *image, uint32_t count)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < count; i++) {
        struct by_image_leaf leaf;

        by_image_leaf(image, i, &leaf);
        json_array_append_new(
            array,
            json_pack("{s:i, s:i, s:o, s:o, s:b, s:o, s:I, s:i, s:i, s:{s:i, s:o, s:o, s:i, s:i}, s:o}",
                      "job", leaf.job, "tree", leaf.tree, "half",
                      leaf.half == BY_HALF_NONE ? json_null()
                                                : json_string(leaf.half == BY_HALF_UP ? "up" : "down"),
                      "collectives", words_json(leaf.collectives, BY_COLLECTIVE_COUNT, by_collective_name),
                      "rounds", leaf.collectives == BY_LEAF_ROUNDS, "owner", or_null(leaf.owner), "share",
                      (json_int_t)leaf.share, "window", leaf.window, "payload_max", leaf.payload_max,
                      "parent", "node", leaf.parent_node, "port", port_field(leaf.parent_port), "ip",
                      ip_json(image, leaf.parent_ip), "udp_port", leaf.parent_udp_port, "child",
                      leaf.parent_child, "able", abilities_json(&leaf)));
    }
    return array;
}

static json_t *relays_json(const uint8_t *image, uint32_t count)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < count; i++) {
        struct by_image_relay relay;
        by_image_relay(image, i, &relay);
        json_array_append_new(array, json_pack("{s:i, s:i, s:o, s:o, s:i, s:o}", "job", relay.job, "tree",
                                               relay.tree, "src_ip", ip_json(image, relay.src_ip), "dst_ip",
                                               ip_json(image, relay.dst_ip), "port", relay.port, "from",
                                               relay.from > 0 ? json_integer(relay.from - 1) : json_null()));
    }
    return array;
}

static json_t *names_json(const uint8_t *image, uint32_t count)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < count; i++) {
        struct by_image_name name;
        by_image_name(image, i, &name);
        json_array_append_new(array, json_pack("{s:i, s:s, s:o}", "node", name.node, "name", name.name,
                                               "rank", or_null(name.rank)));
    }
    return array;
}

/* Lists keys by name only; the key itself is never printed. */
static json_t *keys_json(const uint8_t *image, uint32_t count)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < count; i++) {
        struct by_image_key key;
        char id[9];

        by_image_key(image, i, &key);
        snprintf(id, sizeof(id), "%08" PRIx32, (uint32_t)(by_image_key_id(&key) >> 32));
        json_array_append_new(array, json_pack("{s:i, s:s, s:s}", "job", key.job, "id", id, "cover",
                                               key.cover == BY_COVER_PAYLOAD ? "payload" : "header"));
    }
    return array;
}

json_t *by_dump_json(const uint8_t *image, size_t bytes)
{
    struct by_image_header header;
    char hash[17], cookie[17];
    json_t *object;

    by_image_header(image, &header);
    snprintf(hash, sizeof(hash), "%016" PRIx64, by_image_hash(image, bytes));
    snprintf(cookie, sizeof(cookie), "%016" PRIx64, header.cookie);
    object = json_pack("{s:s, s:i, s:s, s:s, s:s, s:I, s:I, s:i}", "name", header.name, "node", header.node,
                       "kind", header.kind == BY_NODE_HOST ? "host" : "switch", "hash", hash, "cookie",
                       cookie, "bytes", (json_int_t)bytes, "slot_count", (json_int_t)header.slot_count,
                       "payload_max", header.payload_max);
    json_object_set_new(object, "ports", ports_json(image, header.count[BY_SECTION_PORT]));
    json_object_set_new(object, "jobs", jobs_json(image, header.count[BY_SECTION_JOB]));
    json_object_set_new(object, "entries", entries_json(image, header.count[BY_SECTION_ENTRY]));
    json_object_set_new(object, "leaves", leaves_json(image, header.count[BY_SECTION_LEAF]));
    json_object_set_new(object, "relays", relays_json(image, header.count[BY_SECTION_RELAY]));
    json_object_set_new(object, "names", names_json(image, header.count[BY_SECTION_NAME]));
    json_object_set_new(object, "keys", keys_json(image, header.count[BY_SECTION_KEY]));
    return object;
}
