/*
 * Prints table images as text. Each record is one line, which contains all of its fields but not
 * its position in the file, so two images can be compared line by line. Neighbours: the commands
 * `tables`, `show`, `diff`. Any thread.
 */
#include "control/tables/dump.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/tables/able.h"
#include "control/tables/address.h"
#include "offload/wire/seal.h"
#include "offload/wire/types.h"

#define LINE_BYTES  4096
#define WORDS_BYTES 128

/* Returns a node's name if the image has it (images of hosts), else its ID. */
static const char *node_name(const uint8_t *image, uint16_t node, char text[64])
{
    struct by_image_header header;
    struct by_image_name name;
    uint32_t low = 0, high;

    by_image_header(image, &header);
    high = header.count[BY_SECTION_NAME];
    if (node == header.node) {
        snprintf(text, 64, "%s", header.name);
        return text;
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        by_image_name(image, middle, &name);
        if (name.node == node) {
            snprintf(text, 64, "%s", name.name);
            return text;
        }
        if (name.node < node)
            low = middle + 1;
        else
            high = middle;
    }
    snprintf(text, 64, "node %u", node);
    return text;
}

static char *port_text(uint16_t port, char text[16])
{
    if (port == BY_PORT_LOCAL)
        snprintf(text, 16, "local");
    else
        snprintf(text, 16, "port %u", port);
    return text;
}

char *by_dump_ip(const uint8_t *image, uint32_t ip, char text[BY_ADDRESS_TEXT])
{
    struct by_ipv6_book book = {.records = NULL};

    if (image != NULL)
        by_image_book(image, &book);
    return by_address_text(&book, ip, text);
}

/* Writes a MAC address, or how it is learned. */
static char *mac_text(const uint8_t mac[6], uint32_t ip, char text[18])
{
    if ((mac[0] | mac[1] | mac[2] | mac[3] | mac[4] | mac[5]) == 0)
        snprintf(text, 18, "%s", by_ipv6_is(ip) ? "ND" : "ARP");
    else
        snprintf(text, 18, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
    return text;
}

/* Writes the names of bits 1 to count - 1, separated by commas. */
static const char *words_text(uint16_t bits, unsigned count, const char *(*name)(unsigned),
                              char text[WORDS_BYTES])
{
    size_t used = 0;

    text[0] = 0;
    for (unsigned i = 1; i < count; i++)
        if (bits & 1u << i)
            used += (size_t)snprintf(text + used, WORDS_BYTES - used, "%s%s", used ? "," : "", name(i));
    return text;
}

static void port_line(const uint8_t *image, uint32_t index, char *line)
{
    struct by_image_port port;
    char own[BY_ADDRESS_TEXT], peer[BY_ADDRESS_TEXT], own_mac[18], peer_mac[18], name[64];
    int used;

    by_image_port(image, index, &port);
    used = snprintf(line, LINE_BYTES, "port %" PRIu32 " %s: %s %s, mtu %u, to %s %s %s", index, port.name,
                    by_dump_ip(image, port.own_ip, own), mac_text(port.own_mac, port.own_ip, own_mac),
                    port.mtu, node_name(image, port.peer_node, name), by_dump_ip(image, port.peer_ip, peer),
                    mac_text(port.peer_mac, port.own_ip, peer_mac));
    if (port.vlan != 0)
        used += snprintf(line + used, LINE_BYTES - (size_t)used, ", VLAN %u", port.vlan);
    if (port.rate_in > 0 || port.rate_out > 0)
        snprintf(line + used, LINE_BYTES - (size_t)used, ", %g GB/s in, %g out", port.rate_in / 1e6,
                 port.rate_out / 1e6);
}

/* Returns the number of trees in the records of the job before this one. */
static uint32_t first_tree(const uint8_t *image, uint32_t index)
{
    struct by_image_job before;

    if (!by_image_job_is_standby(image, index))
        return 0;
    by_image_job(image, index - 1, &before);
    return before.tree_count;
}

static void job_line(const uint8_t *image, uint32_t index, char *line)
{
    struct by_image_job job;
    int used;

    by_image_job(image, index, &job);
    used = snprintf(line, LINE_BYTES, "job %u: %sgeneration %u, %u ranks, %u trees, hosts on UDP port %u",
                    job.job, by_image_job_is_standby(image, index) ? "standby " : "", job.gen, job.rank_count,
                    job.tree_count - first_tree(image, index), job.udp_port);
    if (job.rank != BY_RANK_NONE)
        used += snprintf(line + used, LINE_BYTES - (size_t)used, ", rank %u", job.rank);
    if (job.share > 0)
        snprintf(line + used, LINE_BYTES - (size_t)used, ", a share of %g", (double)job.share / BY_SHARE_ONE);
}

static void entry_line(const uint8_t *image, uint32_t index, char *line)
{
    struct by_image_entry entry;
    struct by_image_child child;
    char name[64], port[16], ip[BY_ADDRESS_TEXT];
    size_t used;

    by_image_entry(image, index, &entry);
    used = (size_t)snprintf(line, LINE_BYTES,
                            "entry job %u tree %u: slots %" PRIu32 "+%" PRIu32
                            ", window %u, payload %u, %u leaves, ",
                            entry.job, entry.tree, entry.slot_base, by_image_entry_slots(&entry),
                            entry.window, entry.payload_max, entry.nleaf);
    if (entry.parent_node == BY_NODE_NONE)
        used += (size_t)snprintf(line + used, LINE_BYTES - used, "root%s",
                                 entry.joined ? ", joined to the entry before" : "");
    else
        used += (size_t)snprintf(line + used, LINE_BYTES - used, "child %u of %s by %s at %s:%u",
                                 entry.parent_child, node_name(image, entry.parent_node, name),
                                 port_text(entry.parent_port, port), by_dump_ip(image, entry.parent_ip, ip),
                                 entry.parent_udp_port);
    for (uint32_t i = 0; i < entry.child_count && used < LINE_BYTES - 128; i++) {
        by_image_child(image, entry.first_child + i, &child);
        used +=
            (size_t)snprintf(line + used, LINE_BYTES - used, "%s%s by %s at %s:%u",
                             i ? ", " : "; children: ", node_name(image, child.node, name),
                             port_text(child.port, port), by_dump_ip(image, child.ip, ip), child.udp_port);
        if (child.rank != BY_RANK_NONE)
            used += (size_t)snprintf(line + used, LINE_BYTES - used, " (rank %u)", child.rank);
    }
}

/*
 * Writes what the nodes of the leaf's tree support: the modes, and the operators and types unless
 * all are supported.
 */
static void abilities_text(const struct by_image_leaf *leaf, char *text, size_t bytes)
{
    char modes[WORDS_BYTES], ops[WORDS_BYTES], dtypes[WORDS_BYTES];
    bool all_ops = (leaf->ops & BY_LOWER_OPS) == BY_LOWER_OPS;
    bool all_dtypes = (leaf->dtypes & BY_LOWER_DTYPES) == BY_LOWER_DTYPES;

    text[0] = 0;
    if (leaf->modes != 0)
        snprintf(text, bytes, ", modes %s%s%s%s%s%s",
                 words_text(leaf->modes, BY_MODE_COUNT, by_mode_name, modes), all_ops ? "" : ", operators ",
                 all_ops ? "" : words_text(leaf->ops, BY_OP_COUNT, by_op_name, ops),
                 all_dtypes ? "" : ", types ",
                 all_dtypes ? "" : words_text(leaf->dtypes, BY_DTYPE_COUNT, by_dtype_name, dtypes),
                 leaf->modes & BY_LEAF_MARKS ? ", queues mark" : "");
}

static void leaf_line(const uint8_t *image, uint32_t index, char *line)
{
    struct by_image_leaf leaf;
    char name[64], port[16], ip[BY_ADDRESS_TEXT], collectives[WORDS_BYTES], owner[32] = "all ranks";
    char abilities[3 * WORDS_BYTES];
    static const char *const halves[] = {"", " (up)", " (down)"};

    by_image_leaf(image, index, &leaf);
    if (leaf.collectives == BY_LEAF_ROUNDS)
        snprintf(collectives, sizeof(collectives), "rounds of levelling");
    else
        words_text(leaf.collectives, BY_COLLECTIVE_COUNT, by_collective_name, collectives);
    abilities_text(&leaf, abilities, sizeof(abilities));
    if (leaf.owner != BY_RANK_NONE)
        snprintf(owner, sizeof(owner), "rank %u", leaf.owner);
    snprintf(line, LINE_BYTES,
             "leaf job %u tree %u%s: %s of %s, share %" PRIu32
             ", window %u, payload %u, child %u of %s by %s at %s:%u%s",
             leaf.job, leaf.tree, halves[leaf.half], collectives, owner, leaf.share, leaf.window,
             leaf.payload_max, leaf.parent_child, node_name(image, leaf.parent_node, name),
             port_text(leaf.parent_port, port), by_dump_ip(image, leaf.parent_ip, ip), leaf.parent_udp_port,
             abilities);
}

static void relay_line(const uint8_t *image, uint32_t index, char *line)
{
    struct by_image_relay relay;
    char src[BY_ADDRESS_TEXT], dst[BY_ADDRESS_TEXT];
    int used;

    by_image_relay(image, index, &relay);
    used = snprintf(line, LINE_BYTES, "relay job %u tree %u: from %s to %s by port %u", relay.job, relay.tree,
                    by_dump_ip(image, relay.src_ip, src), by_dump_ip(image, relay.dst_ip, dst), relay.port);
    if (relay.from > 0)
        snprintf(line + used, LINE_BYTES - (size_t)used, ", received on port %u", relay.from - 1u);
}

static void hop_line(const uint8_t *image, uint32_t index, char *line)
{
    struct by_image_hop hop;
    char name[64], parent[64], via[64];
    int used = 0;

    by_image_hop(image, index, &hop);
    if (!by_image_hop_is_own(&hop))
        snprintf(line, LINE_BYTES, "hop job %u tree %u: relay %u from %s to %s is %s", hop.job, hop.tree,
                 hop.relays, node_name(image, hop.node, name), node_name(image, hop.parent, parent),
                 node_name(image, hop.via, via));
    else if (hop.parent == BY_NODE_NONE)
        snprintf(line, LINE_BYTES, "hop job %u tree %u: %s is the root", hop.job, hop.tree,
                 node_name(image, hop.node, name));
    else
        used = snprintf(line, LINE_BYTES, "hop job %u tree %u: %s is child %u of %s", hop.job, hop.tree,
                        node_name(image, hop.node, name), hop.child, node_name(image, hop.parent, parent));
    if (hop.relays > 0 && hop.parent != BY_NODE_NONE && used > 0 && used < LINE_BYTES)
        snprintf(line + used, LINE_BYTES - (size_t)used, ", by way of %s%s", node_name(image, hop.via, via),
                 hop.relays > 1 ? " and others" : "");
}

static void name_line(const uint8_t *image, uint32_t index, char *line)
{
    struct by_image_name name;
    int used;

    by_image_name(image, index, &name);
    used = snprintf(line, LINE_BYTES, "name node %u: %s", name.node, name.name);
    if (name.rank != BY_RANK_NONE)
        snprintf(line + used, LINE_BYTES - (size_t)used, ", rank %u", name.rank);
}

/* Prints the key's name, never the key itself. Names are sufficient for comparing images. */
static void key_line(const uint8_t *image, uint32_t index, char *line)
{
    struct by_image_key key;

    by_image_key(image, index, &key);
    snprintf(line, LINE_BYTES, "key job %u%s: %08" PRIx32 ", tags cover %s", key.job,
             key.place > 0 ? " standby" : "", (uint32_t)(by_image_key_id(&key) >> 32),
             key.cover == BY_COVER_PAYLOAD ? "header and payload" : "the header");
}

/* CHILD records are printed with their entries, and addresses where they are used. */
static void (*const line_of[BY_SECTION_COUNT])(const uint8_t *, uint32_t, char *) = {
    [BY_SECTION_PORT] = port_line, [BY_SECTION_JOB] = job_line,     [BY_SECTION_ENTRY] = entry_line,
    [BY_SECTION_LEAF] = leaf_line, [BY_SECTION_RELAY] = relay_line, [BY_SECTION_HOP] = hop_line,
    [BY_SECTION_NAME] = name_line, [BY_SECTION_KEY] = key_line,
};

static void header_line(const uint8_t *image, char *line)
{
    struct by_image_header header;

    by_image_header(image, &header);
    snprintf(line, LINE_BYTES, "%s %s: node %u, cookie %016" PRIx64 ", %" PRIu32 " slots, payload %u",
             header.kind == BY_NODE_HOST ? "host" : "switch", header.name, header.node, header.cookie,
             header.slot_count, header.payload_max);
}

void by_dump_text(const uint8_t *image, size_t bytes, FILE *stream)
{
    struct by_image_header header;
    char line[LINE_BYTES];

    by_image_header(image, &header);
    header_line(image, line);
    fprintf(stream, "%s\n  hash %016" PRIx64 ", %zu bytes\n", line, by_image_hash(image, bytes), bytes);
    for (unsigned section = 0; section < BY_SECTION_COUNT; section++) {
        for (uint32_t i = 0; i < header.count[section] && line_of[section]; i++) {
            line_of[section](image, i, line);
            fprintf(stream, "  %s\n", line);
        }
    }
}

/* All lines of an image, sorted. */
struct lines {
    uint32_t count;
    char **text;
};

static int order_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static struct lines all_lines(const uint8_t *image)
{
    struct by_image_header header;
    struct lines lines = {0};
    uint32_t room = 1;
    char line[LINE_BYTES];

    by_image_header(image, &header);
    for (unsigned section = 0; section < BY_SECTION_COUNT; section++)
        room += header.count[section];
    lines.text = by_alloc(room, sizeof(char *));
    header_line(image, line);
    lines.text[lines.count++] = by_copy_text(line);
    for (unsigned section = 0; section < BY_SECTION_COUNT; section++) {
        for (uint32_t i = 0; i < header.count[section] && line_of[section]; i++) {
            line_of[section](image, i, line);
            lines.text[lines.count++] = by_copy_text(line);
        }
    }
    qsort(lines.text, lines.count, sizeof(char *), order_lines);
    return lines;
}

static void free_lines(struct lines *lines)
{
    for (uint32_t i = 0; i < lines->count; i++)
        free(lines->text[i]);
    free(lines->text);
}

uint32_t by_dump_diff(const uint8_t *a, const uint8_t *b, FILE *stream)
{
    struct lines old = all_lines(a), new = all_lines(b);
    uint32_t count = 0;

    for (uint32_t i = 0, j = 0; i < old.count || j < new.count;) {
        int order = i == old.count ? 1 : j == new.count ? -1 : strcmp(old.text[i], new.text[j]);
        if (order == 0) {
            i++;
            j++;
            continue;
        }
        if (stream != NULL)
            fprintf(stream, "%c %s\n", order < 0 ? '-' : '+', order < 0 ? old.text[i] : new.text[j]);
        count++;
        if (order < 0)
            i++;
        else
            j++;
    }
    free_lines(&old);
    free_lines(&new);
    return count;
}
