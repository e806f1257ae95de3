/*
 * The table image: the bytes that a controller writes and a node loads. One image holds everything
 * that one node (switch or host) knows of all jobs. Network byte order, fixed-size records in
 * sections, one CRC32C over all.
 *
 * Layout: header (BY_IMAGE_HEADER_BYTES), then the sections in the order of enum by_section, each
 * `count` records of the size in the section list, no gaps. docs/man/banyan-image.5 shows each
 * field. The accessors read one record; an image is only read through them after by_image_check()
 * has accepted it, so they cannot fail. Pure; any thread.
 *
 * Roles: an ENTRY makes the node an interior node or root of a tree (it runs the engine for it). A
 * LEAF makes a host a rank in a tree (it runs the endpoint). A host that is interior or root has
 * both; its own leaf is then a child of its entry with port BY_PORT_LOCAL, and the leaf's parent
 * port is BY_PORT_LOCAL. A RELAY makes a switch pass on packets between two neighbours in a tree
 * without looking inside.
 */
#ifndef BY_TABLE_IMAGE_H
#define BY_TABLE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "offload/base/limits.h"

#define BY_IMAGE_MAGIC        0x42594e54u /* "BYNT" */
#define BY_IMAGE_VERSION      1u
#define BY_IMAGE_HEADER_BYTES 128u
#define BY_PORT_LOCAL         0xffffu /* "port" between a host's endpoint and its own engine */
#define BY_NODE_NONE          0xffffu
#define BY_RANK_NONE          0xffffu
#define BY_HOP_RELAY          255u /* `child` of a HOP that is a further relay's */

enum by_node_kind { BY_NODE_SWITCH = 1, BY_NODE_HOST = 2 };

/* X(NAME, value, record bytes): sections in file order. */
#define BY_SECTION_LIST(X)                                                                                   \
    X(PORT, 0, 80)                                                                                           \
    X(JOB, 1, 16)                                                                                            \
    X(ENTRY, 2, 40)                                                                                          \
    X(CHILD, 3, 16)                                                                                          \
    X(LEAF, 4, 48)                                                                                           \
    X(RELAY, 5, 16)                                                                                          \
    X(HOP, 6, 12)                                                                                            \
    X(NAME, 7, 52)                                                                                           \
    X(KEY, 8, 20)

#define X(name, value, bytes) BY_SECTION_##name = (value),
enum by_section { BY_SECTION_LIST(X) BY_SECTION_COUNT };
#undef X

struct by_image_header {
    uint64_t cookie;      /* the controller's: identifies the plan and job set; read back by `banyan show` */
    uint16_t node;        /* id of this node in the fabric */
    uint8_t kind;         /* enum by_node_kind */
    uint32_t slot_count;  /* slots (of two banks each) that the entries use in all: 0 <= slot_base +
                             by_image_entry_slots <=  slot_count */
    uint16_t payload_max; /* largest chunk of any entry or leaf, bytes */
    char name[BY_NAME_MAX + 1];
    uint32_t count[BY_SECTION_COUNT];
};

/* A port of this node, and what is at the other end of the cable. Index = port number of switch or
 * interface of host. */
struct by_image_port {
    char name[BY_NAME_MAX + 1]; /* interface: "p0" on switches, "eth0" on hosts of the lab */
    uint32_t own_ip;            /* host order */
    uint32_t peer_ip;
    uint8_t own_mac[6];
    uint8_t peer_mac[6];
    uint16_t peer_node;
    uint16_t mtu; /* bytes of IP packet */
    /* What the cable carries to us and from us, 1000 bytes of whole frames a second; 0: not known,
     * and then no share of it is kept. */
    uint32_t rate_in, rate_out;
};

struct by_image_job {
    uint16_t job; /* < BY_JOBS_MAX, ascending */
    uint16_t gen;
    uint16_t rank_count;
    uint16_t rank; /* this host's, or BY_RANK_NONE */
    uint16_t tree_count;
    uint16_t udp_port; /* on which the job's hosts listen (switches: BY_UDP_PORT always) */
    uint32_t share;    /* of each port's rates that is kept for it, in parts of BY_SHARE_ONE; 0: what others
                          leave */
};

struct by_image_entry {
    uint16_t job;
    uint16_t tree;        /* (job, tree) ascending */
    uint16_t parent_port; /* BY_NODE_NONE in parent_node: this node is the root, and parent_* mean nothing */
    uint16_t parent_node;
    uint32_t parent_ip;
    uint16_t parent_udp_port;
    uint8_t parent_child; /* our bit in the parent's bitmap */
    uint8_t child_count;  /* 1..BY_CHILDREN_MAX */
    uint32_t first_child; /* index into CHILD: the sum of child_count of the entries before */
    uint16_t window;      /* slots, a power of two */
    uint16_t payload_max; /* bytes of a chunk, a multiple of 8 */
    uint32_t slot_base;   /* entries' ranges of slots do not overlap */
    uint16_t nleaf;       /* leaves below this node */
    uint8_t depth;        /* slots for each place of the window: 1 (0 means the same), or
                             by_image_det_depth(), by which the entry can sum in mode DET */
};

/* Slots for each place of the window that an entry of `child_count` children needs for mode DET:
 * one for each two children, as two values have the same sum in either order. */
static inline uint32_t by_image_det_depth(uint32_t child_count)
{
    return child_count > 1 ? (child_count + 1) / 2 : 1;
}

/* Slots of an entry from slot_base on. */
static inline uint32_t by_image_entry_slots(const struct by_image_entry *entry)
{
    return entry->window * (entry->depth > 1 ? entry->depth : 1u);
}

struct by_image_child {
    uint16_t port; /* or BY_PORT_LOCAL */
    uint16_t node;
    uint32_t ip;
    uint16_t udp_port;
    uint16_t rank; /* of the leaf when the child is one, else BY_RANK_NONE */
};

/* A host's place as a leaf of a tree, and what the tree is for. */
struct by_image_leaf {
    uint16_t job;
    uint16_t tree;
    uint16_t parent_port; /* or BY_PORT_LOCAL */
    uint16_t parent_node;
    uint32_t parent_ip;
    uint16_t parent_udp_port;
    uint8_t parent_child;
    uint16_t window;
    uint16_t payload_max;
    uint16_t collectives; /* bit 1 << enum by_collective: what this tree was planned for */
    uint16_t owner;       /* rank whose shard (allgather, reduce-scatter) or root (broadcast, reduce) the tree
                             serves, or BY_RANK_NONE: all */
    uint32_t share;       /* weight of the tree among those of the same collective and owner; > 0 */
    /* What every node of the tree supports. A reader ignores bits that it does not know. */
    uint8_t modes;   /* bit 1 << enum by_mode, FAST among them: orders in which it adds floats */
    uint16_t ops;    /* bit 1 << enum by_op, BOR among them, */
    uint16_t dtypes; /* bit 1 << enum by_dtype, U8 among them: what it reduces, as it travels */
};

/* Packets of (job, tree) from src_ip to dst_ip leave by `port`; nothing else in them changes but
 * the MAC addresses. */
struct by_image_relay {
    uint16_t job;
    uint16_t tree;
    uint32_t src_ip;
    uint32_t dst_ip;
    uint16_t port;
    uint16_t from; /* 1 + the port that they come by; 0: by any, as in images of old */
};

/* Does a packet that comes by `port` come by the port of a relay whose `from` this is? */
static inline int by_image_relay_takes(uint16_t from, uint32_t port)
{
    return from == 0 || from == port + 1;
}

/* On hosts: the whole tree, so that an error can name who is missing. Where there are several
 * relays between a node and its parent, each but the first has a record too, with BY_HOP_RELAY for
 * `child`. */
struct by_image_hop {
    uint16_t job;
    uint16_t tree;
    uint16_t node;
    uint16_t parent; /* BY_NODE_NONE: root */
    uint8_t child;   /* node's bit at the parent */
    uint8_t relays;  /* nodes between them, which pass packets on; 255: as many or more. BY_HOP_RELAY: its
                        place  among them, from 2 on */
    uint16_t via;    /* the first of those above `node`; 0 when there is none. BY_HOP_RELAY: that relay */
};

/* Is it the record of `node` itself, and not of a relay above it? */
static inline int by_image_hop_is_own(const struct by_image_hop *hop)
{
    return hop->child != BY_HOP_RELAY;
}

struct by_image_name {
    uint16_t node;
    uint16_t rank; /* of the host, or BY_RANK_NONE. Ranks here are those of the first job of this node */
    char name[BY_NAME_MAX + 1];
};

/* The key of a job whose packets are keyed, on nodes that run its trees; relays need none. */
struct by_image_key {
    uint8_t key[16];
    uint16_t job;  /* ascending */
    uint8_t cover; /* enum by_cover of offload/wire/seal.h, but for none */
};

/* Why an image was refused, for people: "entry 3: window 48 is not a power of two". Static texts,
 * numbers beside them. */
struct by_image_fault {
    const char *section; /* "header", "port", "entry", ... */
    uint32_t index;      /* record in the section */
    const char *what;    /* what is wrong, with the limit */
    uint64_t value;      /* the offending value */
};

/* What a board can hold; 0 in a field means the core's own limit. */
struct by_image_limits {
    uint32_t ports, entries, slots, relays, payload_max;
};

/*
 * Checks every byte: lengths, CRC, each field's range, indices, order, uniqueness, ports of
 * children and parents, limits; reserved bytes are zero. 0, or BY_EFORMAT, BY_EVERSION,
 * BY_ECHECKSUM, BY_ELIMIT with `fault` (may be NULL) filled. Never reads beyond `bytes`. O(records)
 * time and no memory: orders are required. Jobs, entries, leaves, relays and names strictly ascend
 * by their keys, hops ascend by job, and the children of the entries lie one after another. That
 * entries' ranges of slots do not overlap needs memory, and is checked by by_engine_stage.
 */
int by_image_check(const uint8_t *image, size_t bytes, const struct by_image_limits *limits,
                   struct by_image_fault *fault);

void by_image_header(const uint8_t *image, struct by_image_header *out);
void by_image_port(const uint8_t *image, uint32_t index, struct by_image_port *out);
void by_image_job(const uint8_t *image, uint32_t index, struct by_image_job *out);
void by_image_entry(const uint8_t *image, uint32_t index, struct by_image_entry *out);
void by_image_child(const uint8_t *image, uint32_t index, struct by_image_child *out);
void by_image_leaf(const uint8_t *image, uint32_t index, struct by_image_leaf *out);
void by_image_relay(const uint8_t *image, uint32_t index, struct by_image_relay *out);
void by_image_hop(const uint8_t *image, uint32_t index, struct by_image_hop *out);
void by_image_name(const uint8_t *image, uint32_t index, struct by_image_name *out);
void by_image_key(const uint8_t *image, uint32_t index, struct by_image_key *out);
/* 1 and the key of `job`, or 0: its packets are not keyed. */
int by_image_key_find(const uint8_t *image, uint16_t job, struct by_image_key *out);
/* What a key may be called by: nobody learns it from this. */
uint64_t by_image_key_id(const struct by_image_key *key);

/* 64-bit content hash of a whole image (any bytes): what `show` prints and a commit names. Not
 * cryptographic, but of keys, and of the CRC over them, it tells nothing. */
uint64_t by_image_hash(const uint8_t *image, size_t bytes);

/*
 * Writing. Bytes needed for the given counts; then put the header (its counts fix the layout), each
 * record, and seal (length, the version, CRC). The caller owns the
 * buffer. A put of an index beyond its section asserts.
 */
size_t by_image_bytes(const uint32_t count[BY_SECTION_COUNT]);
void by_image_put_header(uint8_t *image, const struct by_image_header *header);
void by_image_put_port(uint8_t *image, uint32_t index, const struct by_image_port *port);
void by_image_put_job(uint8_t *image, uint32_t index, const struct by_image_job *job);
void by_image_put_entry(uint8_t *image, uint32_t index, const struct by_image_entry *entry);
void by_image_put_child(uint8_t *image, uint32_t index, const struct by_image_child *child);
void by_image_put_leaf(uint8_t *image, uint32_t index, const struct by_image_leaf *leaf);
void by_image_put_relay(uint8_t *image, uint32_t index, const struct by_image_relay *relay);
void by_image_put_hop(uint8_t *image, uint32_t index, const struct by_image_hop *hop);
void by_image_put_name(uint8_t *image, uint32_t index, const struct by_image_name *name);
void by_image_put_key(uint8_t *image, uint32_t index, const struct by_image_key *key);
void by_image_seal(uint8_t *image);

/* Bytes of the checked `image` once it has keys of at most `key_count` jobs. */
size_t by_image_keyed_bytes(const uint8_t *image, uint32_t key_count);
/*
 * Writes to `out`, of that many bytes, `image` with those of `keys[key_count]` (ascending by job)
 * whose jobs run here, as entry or leaf, in place of the keys that it had, and seals it. Returns
 * its bytes.
 */
size_t by_image_put_keys(const uint8_t *image, const struct by_image_key *keys, uint32_t key_count,
                         uint8_t *out);

#endif
