/*
 * The layout of an image: one list of fields for each kind of record. image.c generates the reader
 * and the writer from it, and check.c finds the bytes that must be zero. Records have no gaps
 * between fields; the rest at the end is reserved. Pure; any thread.
 */
#ifndef BY_TABLE_LAYOUT_H
#define BY_TABLE_LAYOUT_H

#include "offload/base/assert.h"
#include "offload/table/image.h"

#define BY_IMAGE_NAME_BYTES (BY_NAME_MAX + 1)

/* Offsets of the header's fields that are not in struct by_image_header. */
enum by_image_at {
    BY_IMAGE_AT_MAGIC = 0,
    BY_IMAGE_AT_VERSION = 4,
    BY_IMAGE_AT_HEADER_BYTES = 6,
    BY_IMAGE_AT_BYTES = 8,  /* of the whole image */
    BY_IMAGE_AT_CRC = 12,   /* CRC32C of all other bytes */
    BY_IMAGE_AT_COUNT = 32, /* 32 bits for each of the first eight sections */
    BY_IMAGE_AT_MORE = 116, /* and for the later sections, the last one first */
};

/* X(kind, field, offset): kind is U8, U16, U32, U64, MAC, IPV6, NAME or KEY, or LOW and then HIGH,
 * the two bytes of a 16-bit number in different places. */
#define BY_IMAGE_HEADER_FIELDS(X)                                                                            \
    X(U64, cookie, 16)                                                                                       \
    X(U32, slot_count, 24)                                                                                   \
    X(U16, payload_max, 28)                                                                                  \
    X(U16, node, 30)                                                                                         \
    X(NAME, name, 64)                                                                                        \
    X(U8, kind, 112)
/* Reserved: the byte between `kind` and the counts that follow it, and the bytes behind these
 * counts. */
#define BY_IMAGE_HEADER_GAP  113u
#define BY_IMAGE_HEADER_USED 124u

#define BY_IMAGE_PORT_FIELDS(X)                                                                              \
    X(NAME, name, 0)                                                                                         \
    X(U32, own_ip, 48)                                                                                       \
    X(U32, peer_ip, 52)                                                                                      \
    X(MAC, own_mac, 56)                                                                                      \
    X(MAC, peer_mac, 62)                                                                                     \
    X(U16, peer_node, 68)                                                                                    \
    X(U16, mtu, 70)                                                                                          \
    X(U32, rate_in, 72)                                                                                      \
    X(U32, rate_out, 76)                                                                                     \
    X(U16, vlan, 80)
#define BY_IMAGE_JOB_FIELDS(X)                                                                               \
    X(U16, job, 0)                                                                                           \
    X(U16, gen, 2)                                                                                           \
    X(U16, rank_count, 4)                                                                                    \
    X(U16, rank, 6)                                                                                          \
    X(U16, tree_count, 8)                                                                                    \
    X(U16, udp_port, 10)                                                                                     \
    X(U32, share, 12)
#define BY_IMAGE_ENTRY_FIELDS(X)                                                                             \
    X(U16, job, 0)                                                                                           \
    X(U16, tree, 2)                                                                                          \
    X(U16, parent_port, 4)                                                                                   \
    X(U16, parent_node, 6)                                                                                   \
    X(U32, parent_ip, 8)                                                                                     \
    X(U16, parent_udp_port, 12)                                                                              \
    X(U8, parent_child, 14)                                                                                  \
    X(LOW, child_count, 15)                                                                                  \
    X(U32, first_child, 16)                                                                                  \
    X(U16, window, 20)                                                                                       \
    X(U16, payload_max, 22)                                                                                  \
    X(U32, slot_base, 24)                                                                                    \
    X(U16, nleaf, 28)                                                                                        \
    X(U8, depth, 30)                                                                                         \
    X(U8, joined, 31)                                                                                        \
    X(HIGH, child_count, 32)                                                                                 \
    X(U8, sets, 33)
#define BY_IMAGE_CHILD_FIELDS(X)                                                                             \
    X(U16, port, 0)                                                                                          \
    X(U16, node, 2)                                                                                          \
    X(U32, ip, 4)                                                                                            \
    X(U16, udp_port, 8)                                                                                      \
    X(U16, rank, 10)
#define BY_IMAGE_LEAF_FIELDS(X)                                                                              \
    X(U16, job, 0)                                                                                           \
    X(U16, tree, 2)                                                                                          \
    X(U16, parent_port, 4)                                                                                   \
    X(U16, parent_node, 6)                                                                                   \
    X(U32, parent_ip, 8)                                                                                     \
    X(U32, share, 12)                                                                                        \
    X(U16, parent_udp_port, 16)                                                                              \
    X(U16, window, 18)                                                                                       \
    X(U16, payload_max, 20)                                                                                  \
    X(U16, collectives, 22)                                                                                  \
    X(U16, owner, 24)                                                                                        \
    X(U8, parent_child, 26)                                                                                  \
    X(U8, modes, 27)                                                                                         \
    X(U16, ops, 28)                                                                                          \
    X(U16, dtypes, 30)                                                                                       \
    X(U8, half, 32)
#define BY_IMAGE_RELAY_FIELDS(X)                                                                             \
    X(U16, job, 0)                                                                                           \
    X(U16, tree, 2)                                                                                          \
    X(U32, src_ip, 4)                                                                                        \
    X(U32, dst_ip, 8)                                                                                        \
    X(U16, port, 12)                                                                                         \
    X(U16, from, 14)
#define BY_IMAGE_HOP_FIELDS(X)                                                                               \
    X(U16, job, 0)                                                                                           \
    X(U16, tree, 2)                                                                                          \
    X(U16, node, 4)                                                                                          \
    X(U16, parent, 6)                                                                                        \
    X(U8, child, 8)                                                                                          \
    X(U8, relays, 9)                                                                                         \
    X(U16, via, 10)
#define BY_IMAGE_NAME_FIELDS(X)                                                                              \
    X(U16, node, 0)                                                                                          \
    X(U16, rank, 2)                                                                                          \
    X(NAME, name, 4)

#define BY_IMAGE_ADDRESS_FIELDS(X)                                                                           \
    X(U32, number, 0)                                                                                        \
    X(IPV6, address, 4)
#define BY_IMAGE_KEY_FIELDS(X)                                                                               \
    X(KEY, key, 0)                                                                                           \
    X(U16, job, 16)                                                                                          \
    X(U8, cover, 18)                                                                                         \
    X(U8, place, 19)

/* Sizes of fields (bytes). */
#define BY_IMAGE_SIZE_U8   1u
#define BY_IMAGE_SIZE_LOW  1u
#define BY_IMAGE_SIZE_HIGH 1u
#define BY_IMAGE_SIZE_U16  2u
#define BY_IMAGE_SIZE_U32  4u
#define BY_IMAGE_SIZE_U64  8u
#define BY_IMAGE_SIZE_MAC  6u
#define BY_IMAGE_SIZE_IPV6 16u
#define BY_IMAGE_SIZE_KEY  16u
#define BY_IMAGE_SIZE_NAME BY_IMAGE_NAME_BYTES

/* X(NAME, noun): generates code for every kind of record. */
#define BY_IMAGE_RECORD_LIST(X)                                                                              \
    X(PORT, port)                                                                                            \
    X(JOB, job)                                                                                              \
    X(ENTRY, entry)                                                                                          \
    X(CHILD, child)                                                                                          \
    X(LEAF, leaf)                                                                                            \
    X(RELAY, relay)                                                                                          \
    X(HOP, hop)                                                                                              \
    X(NAME, name)                                                                                            \
    X(ADDRESS, address)                                                                                      \
    X(KEY, key)

/* Returns the bytes of a record of `section`; the next function returns how many of them its fields
 * use. The rest are zero. */
uint32_t by_image_record_bytes(unsigned section);
uint32_t by_image_record_used(unsigned section);

/* Check the sections JOB and KEY of an image with a right frame. Return 0 or an error with `fault`,
 * which may be NULL. */
int by_image_jobs_check(const uint8_t *image, struct by_image_fault *fault);
int by_image_keys_check(const uint8_t *image, struct by_image_fault *fault);

/* Returns the offset of the count of `section` in the header. */
static inline uint32_t by_image_count_at(unsigned section)
{
    return section < 8 ? BY_IMAGE_AT_COUNT + 4 * section
                       : BY_IMAGE_AT_MORE + 4 * (BY_SECTION_COUNT - 1 - section);
}

/* Returns the offset of record `index` of `section` in an image with these counts. */
size_t by_image_offset(const uint32_t count[BY_SECTION_COUNT], unsigned section, uint32_t index);

#endif
