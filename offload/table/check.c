/*
 * The check of a table image. Every image from outside passes it before the accessors of image.h
 * read it. Each section is scanned once, in file order. Jobs, entries and leaves ascend by the same
 * keys, so a cursor finds the job of a record without extra memory. Pure; any thread.
 */
#include "offload/base/bytes.h"
#include "offload/base/crc32c.h"
#include "offload/base/errors.h"
#include "offload/table/layout.h"
#include "offload/wire/seal.h"
#include "offload/wire/types.h"
#include "offload/wire/wire.h"

/* Headers of IPv4, UDP and banyan: the part of a port's MTU that a chunk's payload cannot use
 * (bytes). */
#define PACKET_OVERHEAD (20u + 8u + BY_WIRE_HEADER_BYTES)
/* The minimum MTU of IPv4 (RFC 791). */
#define MTU_MIN 68u
/* Valid bits of by_image_leaf.collectives. */
#define COLLECTIVES ((1u << BY_COLLECTIVE_COUNT) - 2u)

struct table_check {
    const uint8_t *image;
    struct by_image_header header;
    struct by_image_limits limits;
    struct by_image_fault *fault;
    const char *section;
    uint32_t index;
    struct by_image_job job; /* job of the current record, from find_job() */
    uint32_t job_next;       /* cursor in JOB: earlier records are done */
};

static int refuse(struct table_check *check, int error, const char *what, uint64_t value)
{
    if (check->fault) {
        check->fault->section = check->section;
        check->fault->index = check->index;
        check->fault->what = what;
        check->fault->value = value;
    }
    return error;
}

static uint32_t limit(uint32_t board, uint32_t core)
{
    return board != 0 && board < core ? board : core;
}

/* Returns 1 when a name has at least one character, and only zeros after its characters. */
static int name_is_sound(const char name[BY_IMAGE_NAME_BYTES])
{
    unsigned length = 0;

    while (length < BY_NAME_MAX && (uint8_t)name[length] >= ' ' && name[length] != 0x7f)
        length++;
    for (unsigned i = length; i < BY_IMAGE_NAME_BYTES; i++)
        if (name[i] != 0)
            return 0;
    return length > 0;
}

static int all_zero(const uint8_t *bytes, size_t count)
{
    uint8_t any = 0;

    for (size_t i = 0; i < count; i++)
        any |= bytes[i];
    return any == 0;
}

/* Whether the record at the cursor is of the same job as the current one. */
static int has_more(const struct table_check *check)
{
    struct by_image_job next;

    if (check->job_next == check->header.count[BY_SECTION_JOB])
        return 0;
    by_image_job(check->image, check->job_next, &next);
    return next.job == check->job.job;
}

/* Stores the job of a record in check->job, in the generation of the tree, or in its last one if
 * none has the tree. `job` must not be less than in the previous call (rewind with
 * job_next = 0). */
static int find_job(struct table_check *check, uint16_t job, uint16_t tree)
{
    while (check->job_next == 0 || check->job.job < job ||
           (check->job.job == job && tree >= check->job.tree_count && has_more(check))) {
        if (check->job_next == check->header.count[BY_SECTION_JOB])
            return 0;
        by_image_job(check->image, check->job_next++, &check->job);
    }
    return check->job.job == job;
}

static void begin(struct table_check *check, const char *section)
{
    check->section = section;
    check->index = 0;
    check->job_next = 0;
}

/* Checks the job and tree of a record that belongs to a tree. */
static int check_tree(struct table_check *check, uint16_t job, uint16_t tree)
{
    if (!find_job(check, job, tree))
        return refuse(check, BY_EFORMAT, "job is not in the job section", job);
    if (tree >= check->job.tree_count)
        return refuse(check, BY_EFORMAT, "tree is not below the job's tree count", tree);
    return 0;
}

/* Checks the address of a neighbour in a tree. */
static int check_address(struct table_check *check, uint16_t port, uint32_t ip, uint16_t udp_port,
                         uint32_t payload)
{
    struct by_image_port record;

    if (port >= check->header.count[BY_SECTION_PORT])
        return refuse(check, BY_EFORMAT, "port is not one of this node's", port);
    if (ip == 0)
        return refuse(check, BY_EFORMAT, "address of a neighbour is zero", ip);
    if (udp_port == 0)
        return refuse(check, BY_EFORMAT, "UDP port of a neighbour is zero", udp_port);
    by_image_port(check->image, port, &record);
    if (payload + PACKET_OVERHEAD > record.mtu)
        return refuse(check, BY_EFORMAT, "payload and headers exceed the MTU of the port used, which is",
                      record.mtu);
    return 0;
}

static int check_shape(struct table_check *check, uint16_t window, uint16_t payload_max)
{
    if (window == 0 || (window & (window - 1)) != 0 || window > BY_WINDOW_MAX)
        return refuse(check, BY_EFORMAT, "window is not a power of two up to 4096", window);
    if (payload_max == 0 || payload_max % 8 != 0 || payload_max > check->header.payload_max)
        return refuse(check, BY_EFORMAT, "payload is not a multiple of 8 up to the header's payload limit",
                      payload_max);
    return 0;
}

BY_STATIC_ASSERT(BY_WINDOW_MAX == 4096, "named in a text above");

/* Checks length, CRC and counts; after this all records can be read. */
static int check_frame(struct table_check *check, size_t bytes)
{
    const uint8_t *image = check->image;
    uint64_t total = BY_IMAGE_HEADER_BYTES;
    uint32_t crc;

    if (bytes < BY_IMAGE_HEADER_BYTES)
        return refuse(check, BY_EFORMAT, "image is shorter than its header of 128 bytes", bytes);
    if (by_get32(image + BY_IMAGE_AT_MAGIC) != BY_IMAGE_MAGIC)
        return refuse(check, BY_EFORMAT, "not a table image: it begins with", by_get32(image));
    if (by_get16(image + BY_IMAGE_AT_VERSION) != BY_IMAGE_VERSION &&
        by_get16(image + BY_IMAGE_AT_VERSION) != BY_IMAGE_VERSION_IPV6)
        return refuse(check, BY_EVERSION, "version is not 2 or 3", by_get16(image + BY_IMAGE_AT_VERSION));
    if (by_get16(image + BY_IMAGE_AT_HEADER_BYTES) != BY_IMAGE_HEADER_BYTES)
        return refuse(check, BY_EFORMAT, "header length is not 128",
                      by_get16(image + BY_IMAGE_AT_HEADER_BYTES));
    if (bytes > BY_IMAGE_BYTES_MAX)
        return refuse(check, BY_ELIMIT, "image is longer than 67108864 bytes", bytes);
    if (by_get32(image + BY_IMAGE_AT_BYTES) != bytes)
        return refuse(check, BY_EFORMAT, "length differs from the bytes given",
                      by_get32(image + BY_IMAGE_AT_BYTES));
    crc = by_crc32c(0, image, BY_IMAGE_AT_CRC);
    crc = by_crc32c(crc, image + BY_IMAGE_AT_CRC + 4, bytes - BY_IMAGE_AT_CRC - 4);
    if (by_get32(image + BY_IMAGE_AT_CRC) != crc)
        return refuse(check, BY_ECHECKSUM, "CRC32C of the image does not match", crc);
    by_image_header(image, &check->header);
    for (unsigned s = 0; s < BY_SECTION_COUNT; s++)
        total += (uint64_t)check->header.count[s] * by_image_record_bytes(s);
    if (total != bytes)
        return refuse(check, BY_EFORMAT, "the sections' counts do not add up to the length: they need",
                      total);
    return 0;
}

BY_STATIC_ASSERT(BY_IMAGE_HEADER_BYTES == 128 && BY_IMAGE_BYTES_MAX == 67108864 && BY_IMAGE_VERSION == 2 &&
                     BY_IMAGE_VERSION_IPV6 == 3,
                 "named in texts above");

static int check_header(struct table_check *check)
{
    const struct by_image_header *header = &check->header;
    const struct by_image_limits *board = &check->limits;

    if (header->kind != BY_NODE_SWITCH && header->kind != BY_NODE_HOST)
        return refuse(check, BY_EFORMAT, "kind is neither switch (1) nor host (2)", header->kind);
    if (header->node == BY_NODE_NONE)
        return refuse(check, BY_EFORMAT, "node id is the reserved one", header->node);
    if (!name_is_sound(header->name))
        return refuse(check, BY_EFORMAT, "node's name is empty, or holds control characters", 0);
    if (!all_zero(check->image + BY_IMAGE_HEADER_GAP, BY_IMAGE_AT_MORE - BY_IMAGE_HEADER_GAP) ||
        !all_zero(check->image + BY_IMAGE_HEADER_USED, BY_IMAGE_HEADER_BYTES - BY_IMAGE_HEADER_USED))
        return refuse(check, BY_EFORMAT, "reserved bytes of the header are not zero", 0);
    if (header->payload_max > limit(board->payload_max, BY_PAYLOAD_MAX))
        return refuse(check, BY_ELIMIT, "payload limit exceeds this node's", header->payload_max);
    if (board->slots != 0 && header->slot_count > board->slots)
        return refuse(check, BY_ELIMIT, "more slots than this node has", header->slot_count);
    if (header->count[BY_SECTION_PORT] > limit(board->ports, BY_TABLE_PORTS_MAX))
        return refuse(check, BY_ELIMIT, "more ports than this node has", header->count[BY_SECTION_PORT]);
    if (header->count[BY_SECTION_JOB] > BY_JOBS_MAX)
        return refuse(check, BY_ELIMIT, "more than 1024 jobs", header->count[BY_SECTION_JOB]);
    if (header->count[BY_SECTION_ENTRY] > limit(board->entries, BY_ENTRIES_MAX))
        return refuse(check, BY_ELIMIT, "more entries than this node can hold",
                      header->count[BY_SECTION_ENTRY]);
    if (header->count[BY_SECTION_RELAY] > limit(board->relays, BY_RELAYS_MAX))
        return refuse(check, BY_ELIMIT, "more relays than this node can hold",
                      header->count[BY_SECTION_RELAY]);
    return 0;
}

BY_STATIC_ASSERT(BY_JOBS_MAX == 1024, "named in a text above");

/* Checks that the unused bytes of records are zero. */
static int check_reserved(struct table_check *check)
{
#define X(NAME, noun) [BY_SECTION_##NAME] = #noun,
    static const char *const section_name[BY_SECTION_COUNT] = {BY_IMAGE_RECORD_LIST(X)};
#undef X
    for (unsigned s = 0; s < BY_SECTION_COUNT; s++) {
        uint32_t bytes = by_image_record_bytes(s);
        uint32_t used = by_image_record_used(s);
        const uint8_t *record = check->image + by_image_offset(check->header.count, s, 0);

        check->section = section_name[s];
        for (check->index = 0; check->index < check->header.count[s]; check->index++, record += bytes)
            if (!all_zero(record + used, bytes - used))
                return refuse(check, BY_EFORMAT, "reserved bytes are not zero", 0);
    }
    return 0;
}

static int check_ports(struct table_check *check)
{
    struct by_image_port port, other;

    for (begin(check, "port"); check->index < check->header.count[BY_SECTION_PORT]; check->index++) {
        by_image_port(check->image, check->index, &port);
        if (!name_is_sound(port.name))
            return refuse(check, BY_EFORMAT, "interface name is empty, or holds control characters", 0);
        if (port.own_ip == 0)
            return refuse(check, BY_EFORMAT, "own address is zero", 0);
        if ((port.own_mac[0] | port.peer_mac[0]) & 1)
            return refuse(check, BY_EFORMAT, "MAC address is multicast; it begins with",
                          port.own_mac[0] & 1 ? port.own_mac[0] : port.peer_mac[0]);
        if (port.peer_ip == 0 && !all_zero(port.peer_mac, sizeof(port.peer_mac)))
            return refuse(check, BY_EFORMAT, "a bridge has no MAC address; it begins with", port.peer_mac[0]);
        if (port.vlan > BY_VLAN_MAX)
            return refuse(check, BY_EFORMAT, "VLAN is not in 0..4094", port.vlan);
        if (port.mtu < MTU_MIN)
            return refuse(check, BY_EFORMAT, "MTU is below 68", port.mtu);
        for (uint32_t i = 0; i < check->index; i++) {
            by_image_port(check->image, i, &other);
            if (by_equal(other.name, port.name, BY_IMAGE_NAME_BYTES))
                return refuse(check, BY_EFORMAT, "interface name is also that of port", i);
            if (other.own_ip == port.own_ip)
                return refuse(check, BY_EFORMAT, "own address is also that of port", i);
        }
    }
    return 0;
}

BY_STATIC_ASSERT(MTU_MIN == 68 && BY_VLAN_MAX == 4094, "named in texts above");

static int check_jobs(struct table_check *check)
{
    return by_image_jobs_check(check->image, check->fault);
}

/* Checks child `at` of an entry, alone and against the preceding children. `own` is 1 when one of
 * those is this host's own leaf. */
static int check_child(struct table_check *check, const struct by_image_entry *entry, uint32_t at, int *own)
{
    struct by_image_child child, sister;
    int error;

    by_image_child(check->image, entry->first_child + at, &child);
    if (child.rank != BY_RANK_NONE && child.rank >= check->job.rank_count)
        return refuse(check, BY_EFORMAT, "child's rank is not below the job's rank count", child.rank);
    if (child.port == BY_PORT_LOCAL) {
        if (check->header.kind != BY_NODE_HOST || *own || check->job.rank == BY_RANK_NONE ||
            child.rank != check->job.rank || child.node != check->header.node)
            return refuse(check, BY_EFORMAT,
                          "local child is not this host's own leaf, or a second one: child", at);
        *own = 1;
    } else {
        error = check_address(check, child.port, child.ip, child.udp_port, entry->payload_max);
        if (error)
            return error;
        if (child.node == BY_NODE_NONE || child.node == check->header.node)
            return refuse(check, BY_EFORMAT, "child's node is missing, or is this node itself", child.node);
        if (child.node == entry->parent_node)
            return refuse(check, BY_EFORMAT, "child is also the parent: node", child.node);
    }
    for (uint32_t i = 0; i < at; i++) {
        by_image_child(check->image, entry->first_child + i, &sister);
        if (sister.node == child.node || (sister.port == child.port && sister.ip == child.ip))
            return refuse(check, BY_EFORMAT, "child is named twice: child", at);
    }
    return 0;
}

static int check_entry(struct table_check *check, const struct by_image_entry *entry)
{
    int own = 0;
    int error = check_tree(check, entry->job, entry->tree);

    if (!error)
        error = check_shape(check, entry->window, entry->payload_max);
    if (error)
        return error;
    if (entry->depth > 1 &&
        (entry->depth != by_image_det_depth(entry->child_count) || entry->child_count > BY_CHILDREN_MAX))
        return refuse(check, BY_EFORMAT, "depth is neither 1 nor a slot for each two children: it is",
                      entry->depth);
    if (entry->slot_base > check->header.slot_count ||
        by_image_entry_slots(entry) > check->header.slot_count - entry->slot_base)
        return refuse(check, BY_EFORMAT, "slots lie beyond the header's slot count, from", entry->slot_base);
    if (entry->nleaf < entry->child_count || entry->nleaf > check->job.rank_count)
        return refuse(check, BY_EFORMAT, "number of leaves is below that of children, or above that of ranks",
                      entry->nleaf);
    if (entry->parent_node != BY_NODE_NONE) {
        error = check_address(check, entry->parent_port, entry->parent_ip, entry->parent_udp_port,
                              entry->payload_max);
        if (error)
            return error;
        if (entry->parent_child >= BY_CHILDREN_MAX)
            return refuse(check, BY_EFORMAT, "own bit at the parent is not below 64", entry->parent_child);
        if (entry->parent_node == check->header.node)
            return refuse(check, BY_EFORMAT, "parent is this node itself", entry->parent_node);
    }
    for (uint32_t i = 0; i < entry->child_count; i++) {
        error = check_child(check, entry, i, &own);
        if (error)
            return error;
    }
    return 0;
}

BY_STATIC_ASSERT(BY_CHILDREN_MAX == 64 && BY_FAMILY_MAX == 1024, "named in texts above");

/* Checks the sets of an entry, which also hold the children of an entry joined to it. */
static int check_sets(struct table_check *check, const struct by_image_entry *entry)
{
    struct by_image_entry next;
    uint32_t children = entry->child_count;

    if (check->index + 1 < check->header.count[BY_SECTION_ENTRY]) {
        by_image_entry(check->image, check->index + 1, &next);
        children += next.joined ? next.child_count : 0;
    }
    if (entry->sets != (entry->joined ? 0 : by_image_sets(children)))
        return refuse(check, BY_EFORMAT, "sets differ from those that the children need", entry->sets);
    return 0;
}

/* Checks the root of a pair's tree down against the entry before it, the root of the tree up, whose
 * generation is `up_gen`. */
static int check_joined(struct table_check *check, const struct by_image_entry *entry,
                        const struct by_image_entry *up, uint16_t up_gen)
{
    if (entry->joined > 1 || up->joined || up_gen != check->job.gen || up->job != entry->job ||
        up->tree + 1u != entry->tree || up->parent_node != BY_NODE_NONE || entry->parent_node != BY_NODE_NONE)
        return refuse(check, BY_EFORMAT, "joined, but the entry before it is not the root of the tree before",
                      entry->tree);
    if (up->window != entry->window || up->payload_max != entry->payload_max ||
        up->slot_base != entry->slot_base || entry->depth > 1)
        return refuse(check, BY_EFORMAT, "joined, but window, payload or slots differ from the entry before",
                      entry->slot_base);
    if (up->nleaf != check->job.rank_count || entry->nleaf != check->job.rank_count ||
        check->job.rank_count > UINT16_MAX / 2)
        return refuse(check, BY_EFORMAT, "a pair's trees do not join all ranks, or more than 32767",
                      entry->nleaf);
    return 0;
}

static int check_entries(struct table_check *check)
{
    struct by_image_entry entry, before = {.joined = 1};
    uint32_t least = 0; /* job << 16 | tree; 0xffffffff is never a key, because jobs are below 1024 */
    uint64_t children = 0;
    uint16_t gen = 0; /* of `before` */
    int error;

    for (begin(check, "entry"); check->index < check->header.count[BY_SECTION_ENTRY]; check->index++) {
        by_image_entry(check->image, check->index, &entry);
        if (((uint32_t)entry.job << 16 | entry.tree) < least)
            return refuse(check, BY_EFORMAT, "entries do not ascend by job and tree; the tree is",
                          entry.tree);
        least = ((uint32_t)entry.job << 16 | entry.tree) + 1;
        if (entry.first_child != children)
            return refuse(check, BY_EFORMAT, "children do not follow those of the entry before, from",
                          entry.first_child);
        if (entry.child_count == 0 || entry.child_count > BY_FAMILY_MAX)
            return refuse(check, BY_ELIMIT, "number of children is not in 1..1024", entry.child_count);
        children += entry.child_count;
        if (children > check->header.count[BY_SECTION_CHILD])
            return refuse(check, BY_EFORMAT, "children lie beyond the child section, up to", children);
        error = check_entry(check, &entry);
        if (!error && entry.joined)
            error = check_joined(check, &entry, &before, gen);
        if (!error)
            error = check_sets(check, &entry);
        if (error)
            return error;
        before = entry;
        gen = check->job.gen;
    }
    check->section = "child";
    check->index = (uint32_t)children;
    if (children != check->header.count[BY_SECTION_CHILD])
        return refuse(check, BY_EFORMAT, "children belong to no entry, of",
                      check->header.count[BY_SECTION_CHILD]);
    return 0;
}

/* Checks a leaf whose parent is this host's own entry against that entry. */
static int check_local(struct table_check *check, const struct by_image_leaf *leaf,
                       const struct by_image_entry *entry)
{
    struct by_image_child child;

    if (leaf->parent_child >= entry->child_count)
        return refuse(check, BY_EFORMAT, "own entry does not have this child", leaf->parent_child);
    by_image_child(check->image, entry->first_child + leaf->parent_child, &child);
    if (child.port != BY_PORT_LOCAL)
        return refuse(check, BY_EFORMAT, "child of the own entry is not local", leaf->parent_child);
    if (leaf->window != entry->window || leaf->payload_max != entry->payload_max)
        return refuse(check, BY_EFORMAT, "window or payload differs from the own entry's", leaf->window);
    return 0;
}

/* What the nodes of its tree can do: at least what every call needs. */
static int check_abilities(struct table_check *check, const struct by_image_leaf *leaf)
{
    if (!(leaf->modes >> BY_MODE_FAST & 1))
        return refuse(check, BY_EFORMAT, "mode fast is not among the modes", leaf->modes);
    if (!(leaf->ops >> BY_OP_BOR & 1))
        return refuse(check, BY_EFORMAT, "bor, which all copies use, is not among the operators", leaf->ops);
    if (!(leaf->dtypes >> BY_DTYPE_U8 & 1))
        return refuse(check, BY_EFORMAT, "u8, which all copies use, is not among the types", leaf->dtypes);
    return 0;
}

static int check_leaf(struct table_check *check, const struct by_image_leaf *leaf)
{
    int error = check_tree(check, leaf->job, leaf->tree);

    if (!error)
        error = check_shape(check, leaf->window, leaf->payload_max);
    if (error)
        return error;
    if (check->header.kind != BY_NODE_HOST || check->job.rank == BY_RANK_NONE)
        return refuse(check, BY_EFORMAT, "this node is not a rank of the job", leaf->job);
    if (leaf->parent_child >= BY_CHILDREN_MAX)
        return refuse(check, BY_EFORMAT, "own bit at the parent is not below 64", leaf->parent_child);
    if (leaf->collectives != BY_LEAF_ROUNDS &&
        (leaf->collectives == 0 || (leaf->collectives & ~COLLECTIVES) != 0))
        return refuse(check, BY_EFORMAT, "collectives are missing, or unknown", leaf->collectives);
    if (leaf->owner != BY_RANK_NONE && leaf->owner >= check->job.rank_count)
        return refuse(check, BY_EFORMAT, "owner is not below the rank count", leaf->owner);
    if (leaf->share == 0)
        return refuse(check, BY_EFORMAT, "share is zero", 0);
    error = check_abilities(check, leaf);
    if (error || leaf->parent_port == BY_PORT_LOCAL)
        return error;
    if (leaf->parent_node == BY_NODE_NONE || leaf->parent_node == check->header.node)
        return refuse(check, BY_EFORMAT, "parent is missing, or is this node itself", leaf->parent_node);
    return check_address(check, leaf->parent_port, leaf->parent_ip, leaf->parent_udp_port, leaf->payload_max);
}

/* Checks the halves of pairs: a tree down follows its tree up, and serves the same. `up` is the
 * leaf before, or NULL if that is not a tree up; so is `leaf` behind the last one. */
static int check_half(struct table_check *check, const struct by_image_leaf *leaf,
                      const struct by_image_leaf *up)
{
    int down = leaf != NULL && leaf->half == BY_HALF_DOWN;

    if (leaf != NULL && leaf->half > BY_HALF_DOWN)
        return refuse(check, BY_EFORMAT, "half is none of 0, 1 and 2", leaf->half);
    if ((up != NULL) != down)
        return refuse(check, BY_EFORMAT, "half of a pair without the other: tree",
                      up != NULL ? up->tree : leaf->tree);
    if (!down)
        return 0;
    if (leaf->job != up->job || leaf->tree != up->tree + 1u || leaf->share != up->share ||
        leaf->owner != up->owner || leaf->collectives != up->collectives || leaf->window != up->window ||
        leaf->payload_max != up->payload_max || leaf->modes != up->modes || leaf->ops != up->ops ||
        leaf->dtypes != up->dtypes)
        return refuse(check, BY_EFORMAT, "halves of a pair do not follow each other, or differ: tree",
                      leaf->tree);
    if (check->job.rank_count > UINT16_MAX / 2)
        return refuse(check, BY_ELIMIT, "a pair of trees joins more than 32767 ranks", check->job.rank_count);
    return 0;
}

/* Checks leaves and entries together: both ascend, so one cursor finds the entry of a leaf. */
static int check_leaves(struct table_check *check)
{
    struct by_image_leaf leaf, before = {0};
    struct by_image_entry entry = {0};
    uint32_t least = 0, key, entry_key = 0, entry_next = 0;
    int error;

    for (begin(check, "leaf"); check->index < check->header.count[BY_SECTION_LEAF]; check->index++) {
        by_image_leaf(check->image, check->index, &leaf);
        key = (uint32_t)leaf.job << 16 | leaf.tree;
        if (key < least)
            return refuse(check, BY_EFORMAT, "leaves do not ascend by job and tree; the tree is", leaf.tree);
        least = key + 1;
        error = check_leaf(check, &leaf);
        if (!error)
            error = check_half(check, &leaf, before.half == BY_HALF_UP ? &before : NULL);
        if (error)
            return error;
        before = leaf;
        while ((entry_next == 0 || entry_key < key) && entry_next < check->header.count[BY_SECTION_ENTRY]) {
            by_image_entry(check->image, entry_next++, &entry);
            entry_key = (uint32_t)entry.job << 16 | entry.tree;
        }
        if (leaf.parent_port == BY_PORT_LOCAL) {
            if (entry_next == 0 || entry_key != key)
                return refuse(check, BY_EFORMAT, "parent is local, but this node has no entry of tree",
                              leaf.tree);
            error = check_local(check, &leaf, &entry);
            if (error)
                return error;
        }
    }
    return check_half(check, NULL, before.half == BY_HALF_UP ? &before : NULL);
}

static int relay_ascends(const struct by_image_relay *a, const struct by_image_relay *b)
{
    if (a->job != b->job)
        return a->job < b->job;
    if (a->tree != b->tree)
        return a->tree < b->tree;
    if (a->src_ip != b->src_ip)
        return a->src_ip < b->src_ip;
    return a->dst_ip < b->dst_ip;
}

static int check_relays(struct table_check *check)
{
    struct by_image_relay relay, last = {0};
    int error;

    for (begin(check, "relay"); check->index < check->header.count[BY_SECTION_RELAY]; check->index++) {
        by_image_relay(check->image, check->index, &relay);
        if (check->index > 0 && !relay_ascends(&last, &relay))
            return refuse(check, BY_EFORMAT, "relays do not ascend; the tree is", relay.tree);
        last.job = relay.job;
        last.tree = relay.tree;
        last.src_ip = relay.src_ip;
        last.dst_ip = relay.dst_ip;
        error = check_tree(check, relay.job, relay.tree);
        if (error)
            return error;
        if (relay.src_ip == 0 || relay.dst_ip == 0 || relay.src_ip == relay.dst_ip)
            return refuse(check, BY_EFORMAT, "addresses are zero, or equal", relay.src_ip);
        if (relay.port >= check->header.count[BY_SECTION_PORT])
            return refuse(check, BY_EFORMAT, "port is not one of this node's", relay.port);
        if (relay.from > check->header.count[BY_SECTION_PORT])
            return refuse(check, BY_EFORMAT, "receiving port is not one of this node's", relay.from - 1u);
    }
    return 0;
}

/* Checks a further relay between a node and its parent. */
static int check_hop_relay(struct table_check *check, const struct by_image_hop *hop)
{
    if (hop->parent == BY_NODE_NONE || hop->relays < 2)
        return refuse(check, BY_EFORMAT, "a relay above the root, or the first one: its place is",
                      hop->relays);
    if (hop->via == BY_NODE_NONE || hop->via == hop->node || hop->via == hop->parent)
        return refuse(check, BY_EFORMAT, "a further relay is missing, or is one of its neighbours", hop->via);
    return 0;
}

static int check_hops(struct table_check *check)
{
    struct by_image_hop hop;
    uint16_t last = 0;
    int error;

    for (begin(check, "hop"); check->index < check->header.count[BY_SECTION_HOP]; check->index++) {
        by_image_hop(check->image, check->index, &hop);
        if (hop.job < last)
            return refuse(check, BY_EFORMAT, "jobs of the hops do not ascend", hop.job);
        last = hop.job;
        error = check_tree(check, hop.job, hop.tree);
        if (error)
            return error;
        if (hop.node == BY_NODE_NONE || hop.node == hop.parent)
            return refuse(check, BY_EFORMAT, "node is missing, or is its own parent", hop.node);
        if (!by_image_hop_is_own(&hop)) {
            error = check_hop_relay(check, &hop);
            if (error)
                return error;
            continue;
        }
        if (hop.parent != BY_NODE_NONE && hop.child >= BY_CHILDREN_MAX)
            return refuse(check, BY_EFORMAT, "bit at the parent is not below 64", hop.child);
        if (hop.relays == 0 ? hop.via != 0 : hop.via == BY_NODE_NONE || hop.via == hop.node)
            return refuse(check, BY_EFORMAT, "relay to the parent is missing, or is not counted", hop.via);
    }
    return 0;
}

static int check_names(struct table_check *check)
{
    struct by_image_name name;
    uint32_t least = 0;

    for (begin(check, "name"); check->index < check->header.count[BY_SECTION_NAME]; check->index++) {
        by_image_name(check->image, check->index, &name);
        if (name.node == BY_NODE_NONE || name.node < least)
            return refuse(check, BY_EFORMAT, "node ids do not ascend, or are the reserved one", name.node);
        least = name.node + 1u;
        if (!name_is_sound(name.name))
            return refuse(check, BY_EFORMAT, "name is empty, or holds control characters; the node is",
                          name.node);
    }
    return 0;
}

static int check_keys(struct table_check *check)
{
    return by_image_keys_check(check->image, check->fault);
}

int by_image_check(const uint8_t *image, size_t bytes, const struct by_image_limits *limits,
                   struct by_image_fault *fault)
{
    static int (*const sections[])(struct table_check *) = {
        check_header, check_reserved, check_ports, check_jobs,  check_entries,
        check_leaves, check_relays,   check_hops,  check_names, check_keys,
    };
    struct table_check check;
    int error;

    check.image = image;
    check.limits.ports = limits ? limits->ports : 0;
    check.limits.entries = limits ? limits->entries : 0;
    check.limits.slots = limits ? limits->slots : 0;
    check.limits.relays = limits ? limits->relays : 0;
    check.limits.payload_max = limits ? limits->payload_max : 0;
    check.fault = fault;
    begin(&check, "header");
    error = check_frame(&check, bytes);
    for (unsigned i = 0; !error && i < sizeof(sections) / sizeof(sections[0]); i++)
        error = sections[i](&check);
    return error;
}
