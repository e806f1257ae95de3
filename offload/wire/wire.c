/*
 * Encoding and decoding of the packet header and of the payloads of WAIT, ERR and GAP, in the
 * layout of PROTOCOL.md. Pure; any thread.
 */
#include "offload/wire/wire.h"

#include "offload/base/assert.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/wire/wire_inline.h"

BY_STATIC_ASSERT(BY_HEADER_AT_CRC + 4 == BY_WIRE_HEADER_BYTES, "the tag ends the header");
BY_STATIC_ASSERT(BY_OP_COUNT <= 16 && BY_DTYPE_COUNT <= 16, "op and dtype share a byte");
BY_STATIC_ASSERT(BY_CHILDREN_MAX < BY_WIRE_CHILD_ALL, "a child index never looks like all children");
BY_STATIC_ASSERT(BY_PAYLOAD_MAX <= UINT16_MAX, "count and payload sizes are 16 bits");

void by_header_encode(const struct by_header *header, uint8_t bytes[BY_WIRE_HEADER_BYTES])
{
    by_put64(bytes + BY_HEADER_AT_HEAD, (uint64_t)(BY_WIRE_HEAD) << 56 | (uint64_t)header->type << 48 |
                                            (uint64_t)header->flags << 40 | (uint64_t)header->child << 32 |
                                            (uint32_t)header->job << 16 | header->tree);
    by_put64(bytes + BY_HEADER_AT_GEN, (uint64_t)header->gen << 48 | (uint64_t)(header->op & 15) << 44 |
                                           (uint64_t)(header->dtype & 15) << 40 |
                                           (uint64_t)header->mode << 32 | header->seq);
    by_put64(bytes + BY_HEADER_AT_WITNESS,
             (uint64_t)header->witness << 32 | (uint32_t)header->count << 16 | header->nleaf);
    by_put64(bytes + BY_HEADER_AT_PSUM, (uint64_t)header->psum << 32 | header->optag);
    by_header_put_tag(bytes, header->flags);
}

int32_t by_header_decode(const uint8_t *bytes, size_t size, struct by_header *header, const uint8_t **payload)
{
    union by_header_words words;
    int32_t payload_bytes = by_header_read(bytes, size, header, &words);

    if (payload_bytes >= 0)
        *payload = bytes + BY_WIRE_HEADER_BYTES;
    return payload_bytes;
}

/* The finalizer of splitmix64: every bit of the result depends on every bit of `z`. */
static uint64_t mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint32_t by_leaf_tag(uint16_t job, uint16_t rank)
{
    return (uint32_t)(mix((uint64_t)job << 16 | rank) >> 32);
}

uint32_t by_optag(uint32_t call, unsigned collective, uint16_t root, uint64_t total_count)
{
    uint64_t z = mix((uint64_t)call << 32 | (uint64_t)(collective & 0xffff) << 16 | root);

    return (uint32_t)(mix(z ^ total_count) >> 32);
}

uint32_t by_session_salt(const uint32_t *nonces, uint32_t count)
{
    uint64_t z = count;

    for (uint32_t r = 0; r < count; r++)
        z = mix(z ^ nonces[r]);
    return (uint32_t)(z >> 32);
}

void by_wait_encode(const struct by_wait *wait, uint8_t bytes[BY_WAIT_BYTES])
{
    by_zero(bytes, BY_WAIT_BYTES);
    by_put16(bytes, wait->node);
    bytes[2] = wait->state;
    bytes[3] = wait->set;
    by_put16(bytes + 4, wait->at);
    by_put64(bytes + 8, wait->missing);
}

int by_wait_decode(const uint8_t *bytes, size_t size, struct by_wait *wait)
{
    if (size != BY_WAIT_BYTES || (bytes[2] != BY_WAIT_CHILDREN && bytes[2] != BY_WAIT_PARENT))
        return BY_EFORMAT;
    wait->node = by_get16(bytes);
    wait->state = bytes[2];
    wait->set = bytes[3];
    wait->at = by_get16(bytes + 4);
    wait->missing = by_get64(bytes + 8);
    return 0;
}

#define ERR_SIDE_BYTES 12u

static void put_side(uint8_t *bytes, const struct by_err_side *side)
{
    bytes[0] = side->op;
    bytes[1] = side->dtype;
    bytes[2] = side->mode;
    bytes[3] = side->child;
    by_put16(bytes + 4, side->count);
    by_put32(bytes + 8, side->optag);
}

static void get_side(const uint8_t *bytes, struct by_err_side *side)
{
    side->op = bytes[0];
    side->dtype = bytes[1];
    side->mode = bytes[2];
    side->child = bytes[3];
    side->count = by_get16(bytes + 4);
    side->optag = by_get32(bytes + 8);
}

void by_err_encode(const struct by_err *err, uint8_t bytes[BY_ERR_BYTES])
{
    by_zero(bytes, BY_ERR_BYTES);
    by_put16(bytes, err->node);
    bytes[2] = err->reason;
    by_put32(bytes + 4, err->seq);
    by_put32(bytes + 8, err->expected_seq);
    put_side(bytes + 12, &err->first);
    put_side(bytes + 12 + ERR_SIDE_BYTES, &err->other);
    by_put64(bytes + BY_ERR_AT_AGREE, err->agree);
}

int by_err_decode(const uint8_t *bytes, size_t size, struct by_err *err)
{
    if (size != BY_ERR_BYTES || bytes[2] < BY_ERR_MISMATCH || bytes[2] > BY_ERR_RANK)
        return BY_EFORMAT;
    err->node = by_get16(bytes);
    err->reason = bytes[2];
    err->seq = by_get32(bytes + 4);
    err->expected_seq = by_get32(bytes + 8);
    get_side(bytes + 12, &err->first);
    get_side(bytes + 12 + ERR_SIDE_BYTES, &err->other);
    err->agree = by_get64(bytes + BY_ERR_AT_AGREE);
    return 0;
}

void by_gap_encode(const struct by_gap *gap, uint8_t bytes[BY_GAP_BYTES])
{
    by_zero(bytes, BY_GAP_BYTES);
    by_put32(bytes, gap->seen);
    bytes[4] = gap->missing;
}

int by_gap_decode(const uint8_t *bytes, size_t size, struct by_gap *gap)
{
    if (size != BY_GAP_BYTES || !(bytes[4] & 1))
        return BY_EFORMAT;
    gap->seen = by_get32(bytes);
    gap->missing = bytes[4];
    return 0;
}

#define X(name, value, text) [value] = (text),
static const char *const type_name[] = {BY_TYPE_LIST(X)};
#undef X

const char *by_type_name(unsigned type)
{
    return type > 0 && type < BY_TYPE_COUNT ? type_name[type] : "?";
}
