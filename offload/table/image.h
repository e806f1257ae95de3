/*
 * The table image: the bytes that a controller writes and a node loads. One image holds the tables
 * of one node (switch or host) for all jobs. Network byte order, fixed-size records in sections,
 * one CRC32C over the whole image.
 *
 * Layout: the header (BY_IMAGE_HEADER_BYTES), then the sections in the order of enum by_section,
 * each with `count` records of the size in the section list, without gaps. docs/man/banyan-image.5
 * describes each field. The accessors read one record. Call them only on an image that
 * by_image_check() has accepted; they cannot fail then. Pure; any thread.
 *
 * Roles of a node:
 *   ENTRY  The node is interior or root of a tree, and runs the engine for it.
 *   LEAF   The host is a rank in a tree, and runs the endpoint.
 *   RELAY  The switch forwards packets between two neighbours in a tree without interpreting them.
 * A host that is interior or root has both an ENTRY and a LEAF. Its own leaf is then a child of its
 * entry with port BY_PORT_LOCAL, and the leaf's parent port is BY_PORT_LOCAL.
 */
#ifndef BY_TABLE_IMAGE_H
#define BY_TABLE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "offload/base/limits.h"
#include "offload/wire/ipv6.h"

#define BY_IMAGE_MAGIC        0x42594e54u /* "BYNT" */
#define BY_IMAGE_VERSION      2u
#define BY_IMAGE_VERSION_IPV6 3u /* of an image with a section ADDRESS; otherwise the same */
#define BY_IMAGE_HEADER_BYTES 128u
#define BY_PORT_LOCAL         0xffffu /* "port" between a host's endpoint and its own engine */
#define BY_NODE_NONE          0xffffu
#define BY_RANK_NONE          0xffffu
#define BY_HOP_RELAY          255u /* `child` of a HOP that describes a further relay */

enum by_node_kind { BY_NODE_SWITCH = 1, BY_NODE_HOST = 2 };

/* X(NAME, value, record bytes): sections in file order. */
#define BY_SECTION_LIST(X)                                                                                   \
    X(PORT, 0, 84)                                                                                           \
    X(JOB, 1, 16)                                                                                            \
    X(ENTRY, 2, 40)                                                                                          \
    X(CHILD, 3, 16)                                                                                          \
    X(LEAF, 4, 48)                                                                                           \
    X(RELAY, 5, 16)                                                                                          \
    X(HOP, 6, 12)                                                                                            \
    X(NAME, 7, 52)                                                                                           \
    X(ADDRESS, 8, 20)                                                                                        \
    X(KEY, 9, 20)

#define X(name, value, bytes) BY_SECTION_##name = (value),
enum by_section { BY_SECTION_LIST(X) BY_SECTION_COUNT };
#undef X

struct by_image_header {
    uint64_t cookie;      /* the controller's id of the plan and job set; `banyan show` prints it */
    uint16_t node;        /* id of this node in the fabric */
    uint8_t kind;         /* enum by_node_kind */
    uint32_t slot_count;  /* slots (of two banks each) that the entries use in all: 0 <= slot_base +
                             by_image_entry_slots <= slot_count */
    uint16_t payload_max; /* largest chunk of any entry or leaf, bytes */
    char name[BY_NAME_MAX + 1];
    uint32_t count[BY_SECTION_COUNT];
};

/* A port of this node, and the other end of its cable. Index = port number of the switch or
 * interface of the host. */
struct by_image_port {
    char name[BY_NAME_MAX + 1]; /* interface: "p0" on switches, "eth0" on hosts of the test network */
    uint32_t own_ip;            /* host order; or the number of an IPv6 address, as all addresses here */
    uint32_t peer_ip;           /* 0: a bridge; neighbours are the receivers of packets themselves */
    uint8_t own_mac[6];         /* 0: that of the interface */
    uint8_t peer_mac[6];        /* 0: learned by ARP or neighbour discovery */
    uint16_t peer_node;
    uint16_t mtu; /* bytes of an IP packet */
    /* The rates of the cable to and from this node, in 1000 bytes of whole frames per second; 0:
     * unknown, and then its shares are not enforced. */
    uint32_t rate_in, rate_out;
    uint16_t vlan; /* of the frames on the cable, 1 to BY_VLAN_MAX (IEEE 802.1Q); 0: they have no tag */
};

/*
 * A job in one generation. A job may have several records, for the generation in use and then its
 * standbys, at most BY_STANDBYS_MAX: all have the same ranks and port, and other generations.
 */
struct by_image_job {
    uint16_t job; /* < BY_JOBS_MAX, ascending */
    uint16_t gen;
    uint16_t rank_count;
    uint16_t rank;       /* this host's rank, or BY_RANK_NONE */
    uint16_t tree_count; /* its trees are below it, and not below that of the job's record before */
    uint16_t udp_port;   /* UDP port of the job's hosts (switches: always BY_UDP_PORT) */
    uint32_t share;      /* part of each port's rates reserved for the job, in units of 1/BY_SHARE_ONE; 0: the
                            unused rest. It is that of all records of the job, and 0 in all but the first */
};

struct by_image_entry {
    uint16_t job;
    uint16_t tree;        /* (job, tree) ascending */
    uint16_t parent_port; /* no meaning if parent_node is BY_NODE_NONE: this node is the root */
    uint16_t parent_node;
    uint32_t parent_ip;
    uint16_t parent_udp_port;
    uint8_t
        parent_child; /* this node's bit in the parent's bitmap: its number among the children, modulo 64 */
    uint16_t child_count; /* 1..BY_FAMILY_MAX */
    uint32_t first_child; /* index into CHILD: the sum of child_count of the preceding entries */
    uint16_t window;      /* slots, a power of two */
    uint16_t payload_max; /* bytes of a chunk, a multiple of 8 */
    uint32_t slot_base;   /* the slot ranges of entries do not overlap */
    uint16_t nleaf;       /* leaves below this node */
    uint8_t depth; /* slots for each place of the window: 1 (0 means the same), or by_image_det_depth(), which
                      lets the entry sum in mode DET */
    uint8_t sets;  /* further slots for each place of the window, one for each 64 children beyond the first 64
                      (at the root of a pair: of both trees) */
    uint8_t joined; /* 1: the root of a pair's tree down. It has the banks of the entry before it, the root of
                       the tree up (tree - 1): one chunk joins the children of both. It has no slots */
};

/* Returns the slots for each place of the window that an entry of `child_count` children requires
 * for mode DET: one for each two children, because two values have the same sum in either order. */
static inline uint32_t by_image_det_depth(uint32_t child_count)
{
    return child_count > 1 ? (child_count + 1) / 2 : 1;
}

/* Returns the sets of 64 children beyond the first that `child_count` children require. */
static inline uint32_t by_image_sets(uint32_t child_count)
{
    return child_count > BY_CHILDREN_MAX ? (child_count - 1) / BY_CHILDREN_MAX : 0;
}

/* Returns the number of slots of an entry, from slot_base on. */
static inline uint32_t by_image_entry_slots(const struct by_image_entry *entry)
{
    return entry->joined ? 0 : entry->window * ((entry->depth > 1 ? entry->depth : 1u) + entry->sets);
}

struct by_image_child {
    uint16_t port; /* or BY_PORT_LOCAL */
    uint16_t node;
    uint32_t ip;
    uint16_t udp_port;
    uint16_t rank; /* the leaf's rank if the child is a leaf, else BY_RANK_NONE */
};

/*
 * A pair of trees with a common root serves a collective as one tree does: contributions travel on
 * the tree up, results on the tree down, whose number is one higher. Every chunk has the same
 * sequence number on both. All other fields of the two leaves that do not describe the parent are
 * equal.
 */
enum by_half { BY_HALF_NONE, BY_HALF_UP, BY_HALF_DOWN };

/* A host's place as a leaf of a tree, and the purpose of the tree. */
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
    uint16_t collectives; /* bit 1 << enum by_collective: the collectives that this tree was planned for */
    uint16_t owner;       /* rank whose shard (allgather, reduce-scatter) or root (broadcast, reduce) the tree
                             serves, or BY_RANK_NONE: all */
    uint32_t share;       /* weight of the tree among those of the same collective and owner; > 0 */
    /* What every node of the tree supports. A reader ignores bits that it does not know. */
    uint8_t modes;   /* bit 1 << enum by_mode, FAST among them: orders in which it adds floats */
    uint16_t ops;    /* bit 1 << enum by_op, BOR among them, */
    uint16_t dtypes; /* bit 1 << enum by_dtype, U8 among them: what it reduces, as it travels */
    uint8_t half;    /* enum by_half */
};

/* A bit of `modes`: all nodes between the tree's root and its leaves are switches that run banyan,
 * whose queues mark packets (ECN) before they drop any. */
#define BY_LEAF_MARKS 0x80u
/* The value of `collectives` of a tree that carries rounds of levelling and no calls (PROTOCOL.md,
 * "Standby generations"). It is the last tree of its job. */
#define BY_LEAF_ROUNDS 0x8000u

/* Packets of (job, tree) from src_ip to dst_ip leave by `port`, with new MAC addresses and
 * otherwise unchanged. */
struct by_image_relay {
    uint16_t job;
    uint16_t tree;
    uint32_t src_ip;
    uint32_t dst_ip;
    uint16_t port;
    uint16_t from; /* 1 + the port on which they must arrive; 0: any, as in old images */
};

/* Returns nonzero if a packet that arrives by `port` matches a relay with this `from`. */
static inline int by_image_relay_takes(uint16_t from, uint32_t port)
{
    return from == 0 || from == port + 1;
}

/* On hosts: the whole tree, so that an error can name the missing ranks. Where several relays are
 * between a node and its parent, each but the first also has a record, with BY_HOP_RELAY in
 * `child`. */
struct by_image_hop {
    uint16_t job;
    uint16_t tree;
    uint16_t node;
    uint16_t parent; /* BY_NODE_NONE: root */
    uint8_t child;   /* node's bit at the parent; children of a parent follow in the order of their numbers */
    uint8_t relays;  /* number of relays between node and parent; 255: as many or more. BY_HOP_RELAY: the
                        relay's place among them, from 2 on */
    uint16_t via;    /* the first relay above `node`; 0: none. BY_HOP_RELAY: that relay */
};

/* Returns nonzero if the record describes `node` itself and not a relay above it. */
static inline int by_image_hop_is_own(const struct by_image_hop *hop)
{
    return hop->child != BY_HOP_RELAY;
}

/* Finds the numbers of a parent's children from their records: they follow each other in the order
 * of the numbers, without a host's own leaf, which has number 0. All zero before the first
 * record. */
struct by_hop_count {
    uint32_t next;
};

/* Returns the number of the next child of the same parent. */
static inline uint32_t by_hop_number(struct by_hop_count *count, const struct by_image_hop *hop)
{
    if (count->next == 0)
        count->next = hop->child;
    /* Where records are not in that order, as in images of up to 64 children, the bit is the
     * number. */
    return count->next++ % BY_CHILDREN_MAX == hop->child ? count->next - 1 : hop->child;
}

struct by_image_name {
    uint16_t node;
    uint16_t rank; /* the host's rank in the first job of this node, or BY_RANK_NONE */
    char name[BY_NAME_MAX + 1];
};

/* An IPv6 address and the number that stands for it in the fields of this image (ipv6.h of
 * offload/wire). Numbers and addresses ascend. Two images of one lowering number alike. */
struct by_image_address {
    uint32_t number;
    uint8_t address[16];
};

/* The key of a keyed job, on nodes that run its trees; relays need none. */
struct by_image_key {
    uint8_t key[16];
    uint16_t job;  /* ascending, and then by place */
    uint8_t cover; /* enum by_cover of offload/wire/seal.h, except NONE */
    uint8_t place; /* of its generation: number among the job's records in the section JOB */
};

/* The reason for refusing an image, for messages such as "entry 3: window 48 is not a power of
 * two". Static texts with numbers. */
struct by_image_fault {
    const char *section; /* "header", "port", "entry", ... */
    uint32_t index;      /* index of the record in the section */
    const char *what;    /* the error, with the limit */
    uint64_t value;      /* the offending value */
};

/* The capacity of a board; 0 in a field means the core's own limit. */
struct by_image_limits {
    uint32_t ports, entries, slots, relays, payload_max;
};

/*
 * Checks every byte of an image: lengths, CRC, the range of each field, indices, order, uniqueness,
 * ports of children and parents, limits; reserved bytes must be zero. Returns 0, or BY_EFORMAT,
 * BY_EVERSION, BY_ECHECKSUM, BY_ELIMIT with `fault` (may be NULL) filled. Never reads beyond
 * `bytes`. Takes O(records) time and no memory, because the order of records is fixed: jobs,
 * entries, leaves, relays and names strictly ascend by their keys, hops ascend by job, and the
 * children of the entries are adjacent. by_engine_stage checks that the slot ranges of entries do
 * not overlap, because that requires memory.
 */
int by_image_check(const uint8_t *image, size_t bytes, const struct by_image_limits *limits,
                   struct by_image_fault *fault);

/*
 * Checks what by_image_check leaves out: the section ADDRESS, that each number in another section
 * is one of its records, and that neighbours are of their port's family. For nodes that support
 * IPv6; others refuse an image with the section. Returns 0, or BY_EFORMAT or BY_EVERSION with
 * `fault` filled. An unchecked section is safe to read, and packets may then find no receiver.
 */
int by_image_addresses_check(const uint8_t *image, struct by_image_fault *fault);

void by_image_header(const uint8_t *image, struct by_image_header *out);
void by_image_port(const uint8_t *image, uint32_t index, struct by_image_port *out);
void by_image_job(const uint8_t *image, uint32_t index, struct by_image_job *out);
void by_image_entry(const uint8_t *image, uint32_t index, struct by_image_entry *out);
void by_image_child(const uint8_t *image, uint32_t index, struct by_image_child *out);
void by_image_leaf(const uint8_t *image, uint32_t index, struct by_image_leaf *out);
void by_image_relay(const uint8_t *image, uint32_t index, struct by_image_relay *out);
void by_image_hop(const uint8_t *image, uint32_t index, struct by_image_hop *out);
void by_image_name(const uint8_t *image, uint32_t index, struct by_image_name *out);
void by_image_address(const uint8_t *image, uint32_t index, struct by_image_address *out);
void by_image_key(const uint8_t *image, uint32_t index, struct by_image_key *out);
/* Sets the numbers of a checked image's addresses, which point into it. */
void by_image_book(const uint8_t *image, struct by_ipv6_book *book);
/* Returns nonzero if the record is of a standby: another one of its job precedes it. */
int by_image_job_is_standby(const uint8_t *image, uint32_t index);
/* Returns 1 and the key of `job` in the generation of its first record, or 0 when its packets are
 * not keyed; the same for the record at `place` among those of the job. */
int by_image_key_find(const uint8_t *image, uint16_t job, struct by_image_key *out);
int by_image_key_at(const uint8_t *image, uint16_t job, uint32_t place, struct by_image_key *out);
/* Returns an id of a key that does not reveal the key. */
uint64_t by_image_key_id(const struct by_image_key *key);

/* Returns a 64-bit content hash of a whole image (any bytes), which `show` prints and a commit
 * names. Not cryptographic, but reveals nothing of the keys or of the CRC over them. */
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
void by_image_put_address(uint8_t *image, uint32_t index, const struct by_image_address *address);
void by_image_put_key(uint8_t *image, uint32_t index, const struct by_image_key *key);
void by_image_seal(uint8_t *image);

/* Returns the bytes of the checked `image` after adding keys of at most `key_count` jobs. */
size_t by_image_keyed_bytes(const uint8_t *image, uint32_t key_count);
/*
 * Writes `image` to `out` (by_image_keyed_bytes bytes) and seals it. Its keys are replaced by those
 * of `keys[key_count]` (ascending by job and place) whose generations have an entry or leaf here.
 * Returns the bytes written.
 */
size_t by_image_put_keys(const uint8_t *image, const struct by_image_key *keys, uint32_t key_count,
                         uint8_t *out);

#endif
