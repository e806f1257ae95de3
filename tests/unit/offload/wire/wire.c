/* Headers that must be refused, for each bit and kind; copies; tags of leaves and calls; payloads
 * of WAIT and ERR. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/bytes.h"
#include "offload/base/crc32c.h"
#include "offload/base/errors.h"
#include "offload/wire/wire_inline.h"

#define PACKET_BYTES (BY_WIRE_HEADER_BYTES + BY_PAYLOAD_MAX + 1)

static uint8_t packet[PACKET_BYTES];

static void build(void)
{
    const struct by_header header = {.type = BY_TYPE_CONTRIB,
                                     .child = 2,
                                     .op = BY_OP_SUM,
                                     .dtype = BY_DTYPE_F32,
                                     .mode = BY_MODE_FAST,
                                     .job = 3,
                                     .tree = 4,
                                     .gen = 5,
                                     .count = 2,
                                     .nleaf = 1,
                                     .seq = 6,
                                     .witness = 7,
                                     .psum = 8,
                                     .optag = 9};

    by_header_encode(&header, packet);
}

/* Renews the tag after a change. */
static void reseal(void)
{
    by_put64(packet + 32, by_crc32c(0, packet, 32));
}

static int32_t decode(size_t size)
{
    struct by_header header;
    const uint8_t *payload;

    return by_header_decode(packet, size, &header, &payload);
}

static void malformed_headers_are_refused_for_their_own_reason(void **state)
{
    static const struct {
        const char *what;
        int at; /* offset of the byte to change; -1: none */
        uint8_t value;
        size_t size;
        int sealed;
        int32_t want;
    } rows[] = {
        {"sound, no payload", -1, 0, 40, 1, 0},
        {"sound, payload of 8", -1, 0, 48, 1, 8},
        {"sound, the largest payload", -1, 0, 40 + BY_PAYLOAD_MAX, 1, BY_PAYLOAD_MAX},
        {"empty", -1, 0, 0, 1, BY_EFORMAT},
        {"one byte", -1, 0, 1, 1, BY_EFORMAT},
        {"a byte short of a header", -1, 0, 39, 1, BY_EFORMAT},
        {"payload too long", -1, 0, 41 + BY_PAYLOAD_MAX, 1, BY_EFORMAT},
        {"version 0", 0, 0x05, 48, 1, BY_EVERSION},
        {"version 2", 0, 0x25, 48, 1, BY_EVERSION},
        {"header of 4 units", 0, 0x14, 48, 1, BY_EFORMAT},
        {"header of 6 units", 0, 0x16, 48, 1, BY_EFORMAT},
        {"header of 0 units", 0, 0x10, 48, 1, BY_EFORMAT},
        {"type 0", 1, 0, 48, 1, BY_EFORMAT},
        {"type beyond the last", 1, BY_TYPE_COUNT, 48, 1, BY_EFORMAT},
        {"type 255", 1, 255, 48, 1, BY_EFORMAT},
        {"NODATA with a payload", 2, BY_FLAG_NODATA, 48, 1, BY_EFORMAT},
        {"NODATA without", 2, BY_FLAG_NODATA, 40, 1, 0},
        {"START", 2, BY_FLAG_START | BY_FLAG_NODATA, 40, 1, 0},
        {"a keyed header, whose tag is its receiver's business", 2, BY_FLAG_KEYED, 48, 0, 8},
        {"another child, tag not renewed", 3, 1, 48, 0, BY_ECHECKSUM},
        {"upper half of the tag is not zero", 33, 1, 48, 0, BY_ECHECKSUM},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        build();
        if (rows[i].at >= 0)
            packet[rows[i].at] = rows[i].value;
        if (rows[i].sealed)
            reseal();
        if (decode(rows[i].size) != rows[i].want)
            fail_msg("%s: %d", rows[i].what, (int)decode(rows[i].size));
    }
}

static void every_flipped_bit_of_a_header_is_noticed(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 8 * BY_WIRE_HEADER_BYTES; bit++) {
        build();
        packet[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (packet[2] & BY_FLAG_KEYED)
            continue; /* refused in jobs without keys (engine/keyed.c) */
        if (decode(48) >= 0)
            fail_msg("bit %u", bit);
    }
}

static void a_header_is_never_read_beyond_its_size(void **state)
{
    (void)state;
    build();
    for (size_t size = 0; size < BY_WIRE_HEADER_BYTES; size++) {
        uint8_t *exact = malloc(size + 1); /* the sanitizer checks the end */
        struct by_header header;
        const uint8_t *payload;

        memcpy(exact + 1, packet, size);
        assert_int_equal(by_header_decode(exact + 1, size, &header, &payload), BY_EFORMAT);
        free(exact);
    }
}

static void a_copied_header_equals_one_encoded_anew(void **state)
{
    struct by_header header = {.type = BY_TYPE_RESULT,
                               .flags = BY_FLAG_RETX,
                               .child = 77,
                               .job = 1,
                               .seq = 5,
                               .count = 3,
                               .psum = 7};
    uint8_t like[BY_WIRE_HEADER_BYTES], copied[BY_WIRE_HEADER_BYTES], fresh[BY_WIRE_HEADER_BYTES];

    (void)state;
    by_header_encode(&header, like);
    for (unsigned child = 0; child < 256; child++) {
        uint64_t fourth;

        header.child = (uint8_t)child;
        header.flags = child & 1 ? BY_FLAG_NODATA : child & 2 ? BY_FLAG_KEYED : BY_FLAG_CE;
        header.psum = child;
        by_header_encode(&header, fresh);
        memcpy(&fourth, fresh + BY_HEADER_AT_PSUM, sizeof(fourth));
        by_header_copy(like, by_get64(fresh), fourth, copied);
        assert_memory_equal(copied, fresh, sizeof(fresh));
    }
}

/* Headers are like each other if they differ in flags, child, witness, nleaf, psum or tag at
 * most. */
static void a_header_with_another_bit_is_like_it_only_in_what_contributions_may_differ_in(void **state)
{
    const uint8_t free_bytes[] = {2,  3,  16, 17, 18, 19, 22, 23, 24, 25,
                                  26, 27, 32, 33, 34, 35, 36, 37, 38, 39};
    union by_header_words like, words;
    struct by_header header;

    (void)state;
    build();
    assert_true(by_header_read(packet, BY_WIRE_HEADER_BYTES, &header, &like) >= 0);
    for (unsigned bit = 0; bit < 8 * BY_WIRE_HEADER_BYTES; bit++) {
        int may_differ = memchr(free_bytes, (int)(bit / 8), sizeof(free_bytes)) != NULL;

        packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
        (void)by_header_read(packet, BY_WIRE_HEADER_BYTES, &header, &words);
        assert_int_equal(by_header_is_like(&words, &like), may_differ);
        packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* A missing leaf together with a duplicated one changes the witness only if their tags differ. */
static void leaf_tags_of_a_job_are_almost_all_different(void **state)
{
    static uint32_t tags[4096];
    unsigned equal = 0;

    (void)state;
    for (unsigned rank = 0; rank < 4096; rank++)
        tags[rank] = by_leaf_tag(1, (uint16_t)rank);
    qsort(tags, 4096, sizeof(tags[0]), compare);
    for (unsigned i = 1; i < 4096; i++)
        equal += tags[i] == tags[i - 1];
    assert_true(equal <= 1);
    assert_int_not_equal(by_leaf_tag(1, 0), by_leaf_tag(2, 0));
    assert_int_not_equal(by_leaf_tag(0, 1), by_leaf_tag(1, 0));
}

/* Ranks of different builds must agree, so the values are fixed: splitmix64 of the fields that
 * wire.h names. */
static void tags_keep_their_values(void **state)
{
    (void)state;
    assert_int_equal(by_leaf_tag(0, 0), 0xe220a839);
    assert_int_equal(by_leaf_tag(1, 2), 0x9a9f5e06);
    assert_int_equal(by_optag(0, BY_COLLECTIVE_ALLREDUCE, 0, 1000), 0xb10a503f);
}

static void an_optag_depends_on_each_part_of_the_call(void **state)
{
    uint32_t tag = by_optag(7, BY_COLLECTIVE_REDUCE, 3, 100);

    (void)state;
    assert_int_equal(tag, by_optag(7, BY_COLLECTIVE_REDUCE, 3, 100));
    assert_int_not_equal(tag, by_optag(8, BY_COLLECTIVE_REDUCE, 3, 100));
    assert_int_not_equal(tag, by_optag(7, BY_COLLECTIVE_BROADCAST, 3, 100));
    assert_int_not_equal(tag, by_optag(7, BY_COLLECTIVE_REDUCE, 4, 100));
    assert_int_not_equal(tag, by_optag(7, BY_COLLECTIVE_REDUCE, 3, 101));
    assert_int_not_equal(tag, by_optag(7, BY_COLLECTIVE_REDUCE, 3, 100 + (UINT64_C(1) << 32)));
}

static void wait_and_err_of_another_size_or_kind_are_refused(void **state)
{
    uint8_t bytes[64] = {0};
    struct by_wait wait = {.node = 1, .state = BY_WAIT_PARENT};
    struct by_err err = {.node = 1, .reason = BY_ERR_UNSUPPORTED};
    struct by_gap gap = {.seen = 0x01020384, .missing = 0x85};

    (void)state;
    by_wait_encode(&wait, bytes);
    for (size_t size = 0; size < sizeof(bytes); size++)
        assert_int_equal(by_wait_decode(bytes, size, &wait), size == BY_WAIT_BYTES ? 0 : BY_EFORMAT);
    for (unsigned value = 0; value < 256; value++) {
        bytes[2] = (uint8_t)value;
        assert_int_equal(by_wait_decode(bytes, BY_WAIT_BYTES, &wait),
                         value == 1 || value == 2 ? 0 : BY_EFORMAT);
    }
    by_err_encode(&err, bytes);
    for (size_t size = 0; size < sizeof(bytes); size++)
        assert_int_equal(by_err_decode(bytes, size, &err), size == BY_ERR_BYTES ? 0 : BY_EFORMAT);
    for (unsigned value = 0; value < 256; value++) {
        bytes[2] = (uint8_t)value;
        assert_int_equal(by_err_decode(bytes, BY_ERR_BYTES, &err),
                         value >= BY_ERR_MISMATCH && value <= BY_ERR_RANK ? 0 : BY_EFORMAT);
    }
    by_gap_encode(&gap, bytes);
    assert_memory_equal(bytes, ((uint8_t[]){1, 2, 3, 0x84, 0x85, 0, 0, 0}), BY_GAP_BYTES);
    for (size_t size = 0; size < sizeof(bytes); size++)
        assert_int_equal(by_gap_decode(bytes, size, &gap), size == BY_GAP_BYTES ? 0 : BY_EFORMAT);
    gap = (struct by_gap){0};
    assert_int_equal(by_gap_decode(bytes, BY_GAP_BYTES, &gap), 0);
    assert_int_equal(gap.seen, 0x01020384);
    assert_int_equal(gap.missing, 0x85);
    for (unsigned value = 0; value < 256; value++) {
        bytes[4] = (uint8_t)value;
        assert_int_equal(by_gap_decode(bytes, BY_GAP_BYTES, &gap), value & 1 ? 0 : BY_EFORMAT);
    }
}

static void names_are_known_for_every_type(void **state)
{
    (void)state;
    assert_string_equal(by_type_name(BY_TYPE_CONTRIB), "contrib");
    assert_string_equal(by_type_name(BY_TYPE_PROBE), "probe");
    assert_string_equal(by_type_name(0), "?");
    assert_string_equal(by_type_name(BY_TYPE_COUNT), "?");
    for (unsigned op = 1; op < BY_OP_COUNT; op++)
        assert_int_equal(by_op_from_name(by_op_name(op)), op);
    for (unsigned dtype = 1; dtype < BY_DTYPE_COUNT; dtype++)
        assert_int_equal(by_dtype_from_name(by_dtype_name(dtype)), dtype);
    for (unsigned c = 1; c < BY_COLLECTIVE_COUNT; c++)
        assert_int_equal(by_collective_from_name(by_collective_name(c)), c);
    assert_int_equal(by_op_from_name("su"), 0);
    assert_int_equal(by_op_from_name("summ"), 0);
    assert_int_equal(by_dtype_bytes(0), 0);
    assert_int_equal(by_dtype_bytes(BY_DTYPE_COUNT), 0);
    assert_int_equal(by_dtype_bytes(BY_DTYPE_BF16), 2);
}

static void collectives_have_their_properties(void **state)
{
    static const struct {
        unsigned collective, rooted, sharded, reduces, way;
    } rows[] = {{0, 0, 0, 0, 0},
                {BY_COLLECTIVE_ALLREDUCE, 0, 0, 1, BY_DATA_BOTH},
                {BY_COLLECTIVE_REDUCE_SCATTER, 0, 1, 1, BY_DATA_UP},
                {BY_COLLECTIVE_ALLGATHER, 0, 1, 0, BY_DATA_DOWN},
                {BY_COLLECTIVE_BROADCAST, 1, 0, 0, BY_DATA_DOWN},
                {BY_COLLECTIVE_REDUCE, 1, 0, 1, BY_DATA_UP},
                {BY_COLLECTIVE_BARRIER, 0, 0, 0, BY_DATA_BOTH},
                {BY_COLLECTIVE_COUNT, 0, 0, 0, 0},
                {255, 0, 0, 0, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(by_collective_is_rooted(rows[i].collective), rows[i].rooted);
        assert_int_equal(by_collective_is_sharded(rows[i].collective), rows[i].sharded);
        assert_int_equal(by_collective_reduces(rows[i].collective), rows[i].reduces);
        assert_int_equal(by_collective_way(rows[i].collective), rows[i].way);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_headers_are_refused_for_their_own_reason),
        cmocka_unit_test(every_flipped_bit_of_a_header_is_noticed),
        cmocka_unit_test(a_header_is_never_read_beyond_its_size),
        cmocka_unit_test(a_copied_header_equals_one_encoded_anew),
        cmocka_unit_test(a_header_with_another_bit_is_like_it_only_in_what_contributions_may_differ_in),
        cmocka_unit_test(leaf_tags_of_a_job_are_almost_all_different),
        cmocka_unit_test(tags_keep_their_values),
        cmocka_unit_test(an_optag_depends_on_each_part_of_the_call),
        cmocka_unit_test(wait_and_err_of_another_size_or_kind_are_refused),
        cmocka_unit_test(names_are_known_for_every_type),
        cmocka_unit_test(collectives_have_their_properties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
