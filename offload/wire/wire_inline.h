/*
 * Inline forms of the functions that each packet needs: reading a header, and writing the headers
 * of one result for all children of a node. wire.h has the specification. Pure; any thread.
 */
#ifndef BY_WIRE_WIRE_INLINE_H
#define BY_WIRE_WIRE_INLINE_H

#include "offload/base/assert.h"
#include "offload/base/bytes.h"
#include "offload/base/crc32c.h"
#include "offload/base/errors.h"
#include "offload/wire/wire.h"

/*
 * The header is read and written as words of 8 bytes, because the CRC and the next copy read it in
 * such words: a wide load after narrow stores would wait for all of them.
 */

BY_STATIC_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a word in network order is a swapped one");

typedef uint64_t by_header_word __attribute__((aligned(1), may_alias));

/* The bytes before the tag: a copy, which the packet's sender cannot change. */
union by_header_words {
    uint8_t byte[BY_HEADER_AT_TAG];
    size_t word[BY_HEADER_AT_TAG / sizeof(size_t)];
};

/* Writes the tag of a header with these flags whose first 32 bytes are complete. */
static inline void by_header_put_tag(uint8_t bytes[BY_WIRE_HEADER_BYTES], uint8_t flags)
{
    by_put64(bytes + BY_HEADER_AT_TAG, flags & BY_FLAG_KEYED ? 0 : by_crc32c_of_32(bytes));
}

/* Writes a copy of the encoded header `like` with another first word, as a number, and another
 * fourth one, in the packet's order of bytes. */
static inline void by_header_copy(const uint8_t like[BY_WIRE_HEADER_BYTES], uint64_t first, uint64_t fourth,
                                  uint8_t bytes[BY_WIRE_HEADER_BYTES])
{
    const by_header_word *from = (const by_header_word *)like;
    by_header_word *to = (by_header_word *)bytes;

    to[0] = __builtin_bswap64(first);
    to[1] = from[1];
    to[2] = from[2];
    to[3] = fourth;
    by_header_put_tag(bytes, (uint8_t)(first >> 40));
}

/* Whether two headers are of one type and one chunk, and agree in what all contributions to a chunk
 * agree in: they may differ in flags, child, witness, nleaf and psum. */
static inline int by_header_is_like(const union by_header_words *a, const union by_header_words *b)
{
    static const union by_header_words alike = {
        .byte = {255, 255, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
                 0,   0,   0, 0, 255, 255, 0,   0,   0,   0,   0,   0,   255, 255, 255, 255}};
    size_t differ = 0;

    for (unsigned i = 0; i < sizeof(alike) / sizeof(size_t); i++)
        differ |= (a->word[i] ^ b->word[i]) & alike.word[i];
    return differ == 0;
}

/* Copies the words of a header, and reads all fields but op and dtype, which share a byte. */
#if defined(__SSSE3__)
typedef uint8_t by_header_part __attribute__((vector_size(16)));
typedef uint8_t by_header_part_at __attribute__((vector_size(16), aligned(1), may_alias));

BY_STATIC_ASSERT(offsetof(struct by_header, type) == 0 && offsetof(struct by_header, flags) == 1 &&
                     offsetof(struct by_header, child) == 2 && offsetof(struct by_header, mode) == 5 &&
                     offsetof(struct by_header, job) == 6 && offsetof(struct by_header, tree) == 8 &&
                     offsetof(struct by_header, gen) == 10 && offsetof(struct by_header, count) == 12 &&
                     offsetof(struct by_header, nleaf) == 14 && offsetof(struct by_header, seq) == 16 &&
                     offsetof(struct by_header, witness) == 20 && offsetof(struct by_header, psum) == 24 &&
                     offsetof(struct by_header, optag) == 28 && sizeof(struct by_header) == 32,
                 "the shuffles depend on the places of the fields");

static inline void by_header_read_fields(const uint8_t *bytes, struct by_header *header,
                                         union by_header_words *words)
{
    by_header_part low = ((const by_header_part_at *)bytes)[0], high = ((const by_header_part_at *)bytes)[1];

    ((by_header_part_at *)words)[0] = low;
    ((by_header_part_at *)words)[1] = high;
    ((by_header_part_at *)header)[0] =
        __builtin_shufflevector(low, high, 1, 2, 3, 10, 10, 11, 5, 4, 7, 6, 9, 8, 21, 20, 23, 22);
    ((by_header_part_at *)header)[1] =
        __builtin_shufflevector(low, high, 15, 14, 13, 12, 19, 18, 17, 16, 27, 26, 25, 24, 31, 30, 29, 28);
}
#else
static inline void by_header_read_fields(const uint8_t *bytes, struct by_header *header,
                                         union by_header_words *words)
{
    typedef size_t word_at __attribute__((aligned(1), may_alias));
    const uint8_t *copy = words->byte;

    for (unsigned i = 0; i < sizeof(*words) / sizeof(size_t); i++)
        words->word[i] = ((const word_at *)bytes)[i];
    header->type = copy[BY_HEADER_AT_TYPE];
    header->flags = copy[BY_HEADER_AT_FLAGS];
    header->child = copy[BY_HEADER_AT_CHILD];
    header->job = by_get16(copy + BY_HEADER_AT_JOB);
    header->tree = by_get16(copy + BY_HEADER_AT_TREE);
    header->gen = by_get16(copy + BY_HEADER_AT_GEN);
    header->mode = copy[BY_HEADER_AT_GEN + 3];
    header->seq = by_get32(copy + BY_HEADER_AT_SEQ);
    header->witness = by_get32(copy + BY_HEADER_AT_WITNESS);
    header->count = by_get16(copy + BY_HEADER_AT_COUNT);
    header->nleaf = by_get16(copy + BY_HEADER_AT_COUNT + 2);
    header->psum = by_get32(copy + BY_HEADER_AT_PSUM);
    header->optag = by_get32(copy + BY_HEADER_AT_OPTAG);
}
#endif

/* As by_header_decode, for a payload that follows the header. Every check is of `words`. */
static inline int32_t by_header_read(const uint8_t *bytes, size_t size, struct by_header *header,
                                     union by_header_words *words)
{
    const uint8_t *copy = words->byte;
    uint32_t head, type, flags;

    if (size < BY_WIRE_HEADER_BYTES)
        return BY_EFORMAT;
    by_header_read_fields(bytes, header, words);
    header->op = copy[BY_HEADER_AT_GEN + 2] >> 4;
    header->dtype = copy[BY_HEADER_AT_GEN + 2] & 15;
    head = copy[BY_HEADER_AT_HEAD];
    type = copy[BY_HEADER_AT_TYPE];
    flags = copy[BY_HEADER_AT_FLAGS];
    if (head != BY_WIRE_HEAD)
        return head >> 4 != BY_WIRE_VERSION ? BY_EVERSION : BY_EFORMAT;
    if (!(flags & BY_FLAG_KEYED) && by_get64(bytes + BY_HEADER_AT_TAG) != by_crc32c_of_32(copy))
        return BY_ECHECKSUM;
    size -= BY_WIRE_HEADER_BYTES;
    if (type == 0 || type >= BY_TYPE_COUNT || (flags & ~(uint32_t)BY_FLAGS_KNOWN) != 0 ||
        size > BY_PAYLOAD_MAX || ((flags & BY_FLAG_NODATA) && size != 0))
        return BY_EFORMAT;
    return (int32_t)size;
}

#endif
