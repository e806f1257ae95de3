/*
 * Table images: writing and reading. The check refuses each field out of its range and names it. No
 * truncation, no flipped bit, and no flipped bit under a valid CRC passes the check and harms a
 * reader (run with SANITIZE=address,undefined).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"
#include "offload/table/layout.h"
#include "tests/unit/offload/table/sample.h"

static struct table_sample sample;
static uint8_t image[SAMPLE_BYTES_MAX];

static int setup(void **state)
{
    (void)state;
    memset(image, 0xff, sizeof(image));
    sample_fill(&sample);
    return 0;
}

static void a_sound_image_passes_and_reads_back_as_written(void **state)
{
    size_t bytes = sample_write(&sample, image);
    struct by_image_fault fault = {0};
    struct table_sample got;

    (void)state;
    if (by_image_check(image, bytes, NULL, &fault) != 0)
        fail_msg("%s %u: %s %llu", fault.section, fault.index, fault.what, (unsigned long long)fault.value);
    memset(&got, 0, sizeof(got));
    by_image_header(image, &got.header);
    assert_memory_equal(&got.header, &sample.header, sizeof(got.header));
#define READ(noun)                                                                                           \
    for (uint32_t i = 0; i < sizeof(got.noun) / sizeof(got.noun[0]); i++) {                                  \
        by_image_##noun(image, i, &got.noun[i]);                                                             \
        assert_memory_equal(&got.noun[i], &sample.noun[i], sizeof(got.noun[i]));                             \
    }
    READ(port)
    READ(job)
    READ(entry)
    READ(child)
    READ(leaf)
    READ(relay)
    READ(hop)
    READ(name)
    READ(key)
#undef READ
}

static void a_switch_without_anything_is_a_sound_image(void **state)
{
    struct by_image_header header = {.node = 1, .kind = BY_NODE_SWITCH, .name = "s"};

    (void)state;
    by_image_put_header(image, &header);
    by_image_seal(image);
    assert_int_equal(by_image_bytes(header.count), BY_IMAGE_HEADER_BYTES);
    assert_int_equal(by_image_check(image, BY_IMAGE_HEADER_BYTES, NULL, NULL), 0);
}

struct image_row {
    const char *section;
    uint32_t index;
    const char *what; /* a part of the message */
    size_t at;        /* offset in struct table_sample */
    size_t size;
    uint64_t value;
    int error;
};

#define ROW(noun, i, field, v, text)                                                                         \
    {                                                                                                        \
#noun, i, text, offsetof(struct table_sample, noun[i].field), sizeof(sample.noun[0].field), v,       \
            BY_EFORMAT                                                                                       \
    }
#define LIMIT(noun, i, field, v, text)                                                                       \
    {                                                                                                        \
#noun, i, text, offsetof(struct table_sample, noun[i].field), sizeof(sample.noun[0].field), v,       \
            BY_ELIMIT                                                                                        \
    }
#define HEADER(field, v, text, error)                                                                        \
    {                                                                                                        \
        "header", 0, text, offsetof(struct table_sample, header.field), sizeof(sample.header.field), v,      \
            error                                                                                            \
    }

static const struct image_row rows[] = {
    HEADER(kind, 0, "kind", BY_EFORMAT),
    HEADER(kind, 3, "kind", BY_EFORMAT),
    HEADER(node, BY_NODE_NONE, "node id", BY_EFORMAT),
    HEADER(name[0], 0, "name", BY_EFORMAT),
    HEADER(name[1], '\n', "name", BY_EFORMAT),
    HEADER(payload_max, BY_PAYLOAD_MAX + 1, "payload", BY_ELIMIT),
    ROW(port, 0, name[0], 0, "name"),
    ROW(port, 1, name[3], '0', "name is also that of port"),
    ROW(port, 1, own_ip, 0, "address is zero"),
    ROW(port, 1, own_ip, 0xc6120000, "address is also that of port"),
    ROW(port, 0, own_mac[0], 3, "multicast"),
    ROW(port, 0, peer_mac[0], 1, "multicast"),
    ROW(port, 0, mtu, 67, "MTU"),
    ROW(port, 0, vlan, 4095, "VLAN"),
    ROW(port, 0, peer_ip, 0, "bridge"),
    LIMIT(job, 1, job, 1024, "1024"),
    ROW(job, 1, job, 1, "ascend"),
    ROW(job, 1, job, 0, "ascend"),
    ROW(job, 0, rank_count, 0, "no ranks"),
    ROW(job, 0, rank, 4, "rank"),
    LIMIT(job, 0, tree_count, 0, "trees"),
    LIMIT(job, 0, tree_count, 8193, "trees"),
    ROW(job, 0, udp_port, 0, "UDP"),
    ROW(key, 1, job, 1, "ascend"),
    ROW(key, 0, job, 2, "job section"),
    ROW(key, 1, job, 6, "job section"),
    ROW(key, 0, cover, 0, "cover"),
    ROW(key, 0, cover, 3, "cover"),
    ROW(entry, 0, job, 2, "job section"),
    ROW(entry, 0, tree, 3, "tree"),
    ROW(entry, 1, job, 1, "ascend"),
    ROW(entry, 1, tree, 3, "tree is not below"),
    ROW(entry, 1, parent_port, 2, "port"),
    ROW(entry, 1, parent_port, BY_PORT_LOCAL, "port"),
    ROW(entry, 1, parent_ip, 0, "address"),
    ROW(entry, 1, parent_udp_port, 0, "UDP"),
    ROW(entry, 1, parent_child, 64, "bit at the parent"),
    ROW(entry, 1, parent_node, 7, "itself"),
    LIMIT(entry, 0, child_count, 0, "children"),
    LIMIT(entry, 1, child_count, 1025, "children"),
    ROW(entry, 0, joined, 1, "joined"),
    ROW(entry, 1, joined, 2, "joined"),
    ROW(entry, 1, sets, 1, "slots"),
    ROW(entry, 0, child_count, 3, "children"),
    ROW(entry, 1, first_child, 1, "follow"),
    ROW(entry, 1, first_child, 3, "follow"),
    ROW(entry, 0, window, 0, "power of two"),
    ROW(entry, 0, window, 6, "power of two"),
    ROW(entry, 0, window, 8192, "power of two"),
    ROW(entry, 0, window, 32, "slots"),
    ROW(entry, 1, slot_base, 9, "slots"),
    ROW(entry, 1, slot_base, 0xfffffff0, "slots"),
    ROW(entry, 0, payload_max, 0, "multiple of 8"),
    ROW(entry, 0, payload_max, 1004, "multiple of 8"),
    ROW(entry, 0, payload_max, 1416, "multiple of 8"),
    ROW(entry, 0, nleaf, 1, "leaves"),
    ROW(entry, 0, nleaf, 5, "leaves"),
    {"entry", 0, "port", offsetof(struct table_sample, child[0].port), 2, 2, BY_EFORMAT},
    {"entry", 0, "local", offsetof(struct table_sample, child[0].port), 2, BY_PORT_LOCAL, BY_EFORMAT},
    {"entry", 0, "itself", offsetof(struct table_sample, child[0].node), 2, 7, BY_EFORMAT},
    {"entry", 0, "local", offsetof(struct table_sample, child[1].node), 2, 6, BY_EFORMAT},
    {"entry", 0, "local", offsetof(struct table_sample, child[1].rank), 2, 3, BY_EFORMAT},
    {"entry", 0, "rank", offsetof(struct table_sample, child[1].rank), 2, 4, BY_EFORMAT},
    {"entry", 1, "twice", offsetof(struct table_sample, child[3].node), 2, 4, BY_EFORMAT},
    {"entry", 1, "twice", offsetof(struct table_sample, child[3].ip), 4, 0xc6120001, BY_EFORMAT},
    {"entry", 1, "also the parent", offsetof(struct table_sample, child[3].node), 2, 2, BY_EFORMAT},
    {"entry", 1, "local", offsetof(struct table_sample, child[3].port), 2, BY_PORT_LOCAL, BY_EFORMAT},
    {"entry", 1, "address", offsetof(struct table_sample, child[3].ip), 4, 0, BY_EFORMAT},
    {"entry", 1, "UDP", offsetof(struct table_sample, child[3].udp_port), 2, 0, BY_EFORMAT},
    {"entry", 0, "MTU", offsetof(struct table_sample, port[0].mtu), 2, 1475, BY_EFORMAT},
    ROW(leaf, 1, tree, 0, "ascend"),
    ROW(leaf, 1, tree, 3, "tree"),
    ROW(leaf, 1, job, 5, "not a rank"),
    ROW(leaf, 1, job, 9, "job section"),
    ROW(leaf, 1, parent_port, 2, "port"),
    ROW(leaf, 1, parent_port, BY_PORT_LOCAL, "no entry of tree"),
    ROW(leaf, 1, parent_node, 7, "itself"),
    ROW(leaf, 1, parent_node, BY_NODE_NONE, "missing"),
    ROW(leaf, 1, parent_ip, 0, "address"),
    ROW(leaf, 1, parent_udp_port, 0, "UDP"),
    ROW(leaf, 1, parent_child, 64, "bit at the parent"),
    ROW(leaf, 0, parent_child, 2, "does not have this child"),
    ROW(leaf, 0, parent_child, 0, "not local"),
    ROW(leaf, 0, window, 16, "differs"),
    ROW(leaf, 0, payload_max, 1400, "differs"),
    ROW(leaf, 1, window, 3, "power of two"),
    ROW(leaf, 1, payload_max, 7, "multiple of 8"),
    ROW(leaf, 1, collectives, 0, "collectives"),
    ROW(leaf, 1, collectives, 1, "collectives"),
    ROW(leaf, 1, collectives, 128, "collectives"),
    ROW(leaf, 1, owner, 4, "owner"),
    ROW(leaf, 1, share, 0, "share"),
    ROW(leaf, 0, modes, 0, "mode fast"),
    ROW(leaf, 0, modes, 4, "mode fast"),
    ROW(leaf, 0, ops, 0x3e, "bor"),
    ROW(leaf, 0, dtypes, 0x7fa, "u8"),
    ROW(leaf, 1, modes, 0, "mode fast"),
    ROW(relay, 1, tree, 0, "ascend"),
    ROW(relay, 1, src_ip, 0xc6120001, "ascend"),
    ROW(relay, 1, tree, 3, "tree"),
    ROW(relay, 1, job, 2, "job section"),
    ROW(relay, 1, dst_ip, 0, "zero"),
    ROW(relay, 1, dst_ip, 0xc6120009, "equal"),
    ROW(relay, 0, src_ip, 0, "zero"),
    ROW(relay, 0, port, 2, "port"),
    ROW(relay, 0, port, BY_PORT_LOCAL, "port"),
    ROW(job, 0, share, BY_SHARE_ONE + 1, "share"),
    ROW(relay, 0, from, 3, "receiving port"),
    ROW(relay, 1, from, UINT16_MAX, "receiving port"),
    ROW(hop, 0, tree, 3, "tree"),
    ROW(hop, 1, job, 0, "ascend"),
    ROW(hop, 2, node, BY_NODE_NONE, "missing"),
    ROW(hop, 2, node, 7, "own parent"),
    ROW(hop, 2, child, 64, "bit at the parent"),
    ROW(hop, 1, child, BY_HOP_RELAY, "a relay above the root"),
    ROW(hop, 0, child, BY_HOP_RELAY, "or the first one"),
    ROW(name, 1, node, 2, "ascend"),
    ROW(name, 2, node, BY_NODE_NONE, "ascend"),
    ROW(name, 1, name[0], 0, "name"),
    ROW(name, 1, name[1], 0x7f, "name"),
};

static void a_field_out_of_its_range_is_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct image_row *row = &rows[i];
        struct by_image_fault fault = {0};
        size_t bytes;
        int error;

        sample_fill(&sample);
        memcpy((uint8_t *)&sample + row->at, &row->value, row->size); /* little-endian */
        bytes = sample_write(&sample, image);
        error = by_image_check(image, bytes, NULL, &fault);
        if (error != row->error || strcmp(fault.section, row->section) != 0 || fault.index != row->index ||
            !strstr(fault.what, row->what))
            fail_msg("row %zu (%s %u, %s = %llu): error %d, %s %u: %s %llu", i, row->section, row->index,
                     row->what, (unsigned long long)row->value, error, fault.section ? fault.section : "-",
                     fault.index, fault.what ? fault.what : "-", (unsigned long long)fault.value);
        assert_int_equal(by_image_check(image, bytes, NULL, NULL), error);
    }
}

static void a_rank_on_a_switch_is_refused(void **state)
{
    struct by_image_fault fault;
    size_t bytes;

    (void)state;
    sample.header.kind = BY_NODE_SWITCH;
    bytes = sample_write(&sample, image);
    assert_int_equal(by_image_check(image, bytes, NULL, &fault), BY_EFORMAT);
    assert_string_equal(fault.section, "job");
    sample.job[0].rank = BY_RANK_NONE;
    bytes = sample_write(&sample, image);
    assert_int_equal(by_image_check(image, bytes, NULL, &fault), BY_EFORMAT);
    assert_string_equal(fault.section, "entry");
    assert_non_null(strstr(fault.what, "local"));
}

static void an_image_beyond_the_limits_of_a_board_is_refused(void **state)
{
    static const struct {
        struct by_image_limits limits;
        int want;
    } cases[] = {
        {{2, 2, 24, 2, 1408}, 0},
        {{1, 2, 24, 2, 1408}, BY_ELIMIT},
        {{2, 1, 24, 2, 1408}, BY_ELIMIT},
        {{2, 2, 23, 2, 1408}, BY_ELIMIT},
        {{2, 2, 24, 1, 1408}, BY_ELIMIT},
        {{2, 2, 24, 2, 1400}, BY_ELIMIT},
        {{0, 0, 0, 0, 0}, 0},
        {{9999, 99999, 24, 99999, 9999}, 0},
    };
    size_t bytes = sample_write(&sample, image);

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(by_image_check(image, bytes, &cases[i].limits, NULL), cases[i].want);
}

static void frames_of_images_are_refused_for_their_own_reason(void **state)
{
    static const struct {
        unsigned at;
        uint32_t value;
        const char *what;
        int error;
    } cases[] = {
        {0, 0x42594e55, "not a table image", BY_EFORMAT},
        {4, 1u << 16 | 128, "version", BY_EVERSION},
        {4, 4u << 16 | 128, "version", BY_EVERSION},
        {4, 2u << 16 | 136, "header length", BY_EFORMAT},
        {8, 5000, "length", BY_EFORMAT},
        {32, 3, "add up", BY_EFORMAT},
        {36, 0xffffffff, "add up", BY_EFORMAT},
        {60, 0x80000000, "add up", BY_EFORMAT},
        {68, 'x', "name", BY_EFORMAT},
        {112, BY_NODE_HOST << 24 | 1, "reserved", BY_EFORMAT},
        {120, 0x80000000, "add up", BY_EFORMAT},
        {124, 1, "reserved", BY_EFORMAT},
        {116, 0x80000000, "add up", BY_EFORMAT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_image_fault fault = {0};
        size_t bytes = sample_write(&sample, image);

        by_put32(image + cases[i].at, cases[i].value);
        sample_reseal(image, bytes);
        assert_int_equal(by_image_check(image, bytes, NULL, &fault), cases[i].error);
        assert_non_null(strstr(fault.what, cases[i].what));
    }
}

static void abilities_that_a_reader_does_not_know_are_ignored(void **state)
{
    size_t bytes;

    (void)state;
    sample.leaf[0].modes |= 0x80;
    sample.leaf[0].ops |= 0x8000;
    sample.leaf[0].dtypes |= 0x8000;
    bytes = sample_write(&sample, image);
    assert_int_equal(by_image_check(image, bytes, NULL, NULL), 0);
    sample.leaf[0].modes = 0;
    bytes = sample_write(&sample, image);
    assert_int_equal(by_image_check(image, bytes, NULL, NULL), BY_EFORMAT);
}

static void reserved_bytes_of_every_record_must_be_zero(void **state)
{
    (void)state;
    for (unsigned s = 0; s < BY_SECTION_COUNT; s++)
        for (uint32_t b = by_image_record_used(s); b < by_image_record_bytes(s); b++) {
            size_t bytes = sample_write(&sample, image);
            struct by_image_fault fault;

            image[by_image_offset(sample.header.count, s, 1) + b] = 1;
            sample_reseal(image, bytes);
            assert_int_equal(by_image_check(image, bytes, NULL, &fault), BY_EFORMAT);
            assert_int_equal(fault.index, 1);
            assert_non_null(strstr(fault.what, "reserved"));
        }
}

/* Reads everything that a valid image contains. */
static void read_all(const uint8_t *bytes)
{
    struct by_image_header header;
    struct table_sample got;

    by_image_header(bytes, &header);
#define READ(NAME, noun)                                                                                     \
    for (uint32_t i = 0; i < header.count[BY_SECTION_##NAME]; i++)                                           \
        by_image_##noun(bytes, i, &got.noun[0]);
    BY_IMAGE_RECORD_LIST(READ)
#undef READ
}

static void every_truncation_is_refused(void **state)
{
    size_t bytes = sample_write(&sample, image);

    (void)state;
    for (size_t size = 0; size < bytes; size++) {
        uint8_t *exact = malloc(size + 1); /* ASan detects reads past the end */

        memcpy(exact + 1, image, size);
        assert_true(by_image_check(exact + 1, size, NULL, NULL) < 0);
        if (size >= BY_IMAGE_HEADER_BYTES) { /* also if the length and CRC match this size */
            by_put32(exact + 1 + 8, (uint32_t)size);
            sample_reseal(exact + 1, size);
            assert_int_equal(by_image_check(exact + 1, size, NULL, NULL), BY_EFORMAT);
        }
        free(exact);
    }
    assert_true(by_image_check(image, bytes + 1, NULL, NULL) < 0);
}

static void every_flipped_bit_is_refused(void **state)
{
    size_t bytes = sample_write(&sample, image);

    (void)state;
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        image[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (by_image_check(image, bytes, NULL, NULL) == 0)
            fail_msg("bit %zu", bit);
        image[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_int_equal(by_image_check(image, bytes, NULL, NULL), 0);
}

static void a_flipped_bit_under_a_right_crc_harms_nobody(void **state)
{
    size_t bytes = sample_write(&sample, image);
    uint8_t *exact = malloc(bytes);
    unsigned accepted = 0;

    (void)state;
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        memcpy(exact, image, bytes);
        exact[bit / 8] ^= (uint8_t)(1 << bit % 8);
        sample_reseal(exact, bytes);
        if (by_image_check(exact, bytes, NULL, NULL) == 0) {
            accepted++;
            read_all(exact);
        }
    }
    /* Names, addresses, cookies and generations may have any value: many images remain valid. */
    assert_true(accepted > 0);
    free(exact);
}

static void random_bytes_under_a_right_crc_harm_nobody(void **state)
{
    struct by_prng prng = {1};
    size_t bytes = sample_write(&sample, image);
    uint8_t *exact = malloc(bytes);

    (void)state;
    for (unsigned round = 0; round < 100000; round++) {
        memcpy(exact, image, bytes);
        for (unsigned n = 0; n < 1 + round % 4; n++)
            exact[by_prng_below(&prng, bytes)] = (uint8_t)by_prng_next(&prng);
        sample_reseal(exact, bytes);
        if (by_image_check(exact, bytes, NULL, NULL) == 0)
            read_all(exact);
    }
    free(exact);
}

static void the_hash_changes_with_every_byte_and_the_length(void **state)
{
    size_t bytes = sample_write(&sample, image);
    uint64_t hash = by_image_hash(image, bytes);

    (void)state;
    assert_true(hash == by_image_hash(image, bytes));
    for (size_t i = 0; i < bytes; i++) {
        int crc = i >= 12 && i < 16; /* the CRC of an image with keys is not hashed */

        image[i] ^= 0x40;
        assert_true((by_image_hash(image, bytes) != hash) == !crc);
        image[i] ^= 0x40;
        assert_true(by_image_hash(image, i) != hash);
    }
    memset(image, 0, 32);
    for (size_t a = 0; a < 32; a++)
        for (size_t b = 0; b < a; b++)
            assert_true(by_image_hash(image, a) != by_image_hash(image, b));
}

static void keys_are_found_by_their_job_and_named_without_being_told(void **state)
{
    struct by_image_key key, other;

    (void)state;
    sample_write(&sample, image);
    assert_int_equal(by_image_key_find(image, 5, &key), 1);
    assert_memory_equal(key.key, sample.key[1].key, sizeof(key.key));
    assert_int_equal(key.cover, 2);
    assert_int_equal(by_image_key_find(image, 2, &other), 0);
    assert_int_equal(by_image_key_find(image, 1, &other), 1);
    assert_true(by_image_key_id(&key) != by_image_key_id(&other));
    other = key;
    other.key[15] ^= 1;
    assert_true(by_image_key_id(&key) != by_image_key_id(&other));
}

/* Hashes of many images with one key reveal at most the key's name. */
static void of_keys_and_of_the_crc_over_them_the_hash_holds_the_name_alone(void **state)
{
    size_t bytes = sample_write(&sample, image);
    uint64_t hash = by_image_hash(image, bytes);

    (void)state;
    by_put32(image + 12, ~by_get32(image + 12));
    assert_true(by_image_hash(image, bytes) == hash);
    sample.key[0].key[5] ^= 1;
    sample_write(&sample, image);
    assert_true(by_image_hash(image, bytes) != hash);
}

static void keys_go_to_images_whose_node_runs_their_jobs(void **state)
{
    static const struct by_image_key keys[3] = {{{4}, 1, 1, 0}, {{5}, 3, 1, 0}, {{6}, 5, 2, 0}};
    uint8_t out[SAMPLE_BYTES_MAX + 64];
    size_t bytes = sample_write(&sample, image), size;
    struct by_image_header header;
    struct by_image_key key;

    (void)state;
    assert_true(by_image_keyed_bytes(image, 3) <= sizeof(out));
    size = by_image_put_keys(image, keys, 3, out);
    assert_int_equal(size, bytes); /* replaces two keys by two */
    assert_int_equal(by_image_check(out, size, NULL, NULL), 0);
    by_image_header(out, &header);
    assert_int_equal(header.count[BY_SECTION_KEY], 2);
    assert_true(by_image_key_find(out, 1, &key) && key.key[0] == 4);
    assert_true(by_image_key_find(out, 5, &key) && key.key[0] == 6 && key.cover == 2);
    assert_memory_equal(out + 128, image + 128, size - 128 - 40);
    size = by_image_put_keys(image, keys + 1, 1, out); /* the node does not run job 3 */
    assert_int_equal(size, bytes - 40);
    assert_int_equal(by_image_check(out, size, NULL, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_sound_image_passes_and_reads_back_as_written, setup),
        cmocka_unit_test_setup(a_switch_without_anything_is_a_sound_image, setup),
        cmocka_unit_test_setup(a_field_out_of_its_range_is_refused_by_name, setup),
        cmocka_unit_test_setup(a_rank_on_a_switch_is_refused, setup),
        cmocka_unit_test_setup(an_image_beyond_the_limits_of_a_board_is_refused, setup),
        cmocka_unit_test_setup(frames_of_images_are_refused_for_their_own_reason, setup),
        cmocka_unit_test_setup(abilities_that_a_reader_does_not_know_are_ignored, setup),
        cmocka_unit_test_setup(reserved_bytes_of_every_record_must_be_zero, setup),
        cmocka_unit_test_setup(every_truncation_is_refused, setup),
        cmocka_unit_test_setup(every_flipped_bit_is_refused, setup),
        cmocka_unit_test_setup(a_flipped_bit_under_a_right_crc_harms_nobody, setup),
        cmocka_unit_test_setup(random_bytes_under_a_right_crc_harm_nobody, setup),
        cmocka_unit_test_setup(keys_are_found_by_their_job_and_named_without_being_told, setup),
        cmocka_unit_test_setup(of_keys_and_of_the_crc_over_them_the_hash_holds_the_name_alone, setup),
        cmocka_unit_test_setup(keys_go_to_images_whose_node_runs_their_jobs, setup),
        cmocka_unit_test_setup(the_hash_changes_with_every_byte_and_the_length, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
