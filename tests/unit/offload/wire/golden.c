/*
 * Golden packets: the files of tests/golden, made by an independent encoder, against offload/wire
 * in both directions. Run from the root of the tree.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/reduce/reduce.h"
#include "offload/wire/discovery.h"
#include "offload/wire/seal.h"
#include "offload/wire/wire.h"

struct golden {
    const char *name;
    struct by_header header;
    uint16_t bytes; /* of the payload */
    uint8_t payload[48];
};

static const struct golden golden[] = {
    {"contrib-f32",
     {.type = BY_TYPE_CONTRIB,
      .child = 3,
      .op = BY_OP_SUM,
      .dtype = BY_DTYPE_F32,
      .mode = BY_MODE_FAST,
      .job = 7,
      .tree = 2,
      .gen = 5,
      .count = 4,
      .nleaf = 1,
      .seq = 0x01020304,
      .witness = 0xdeadbeef,
      .optag = 0xcafef00d},
     16,
     {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40, 0, 0, 0, 0xbf}},
    {"contrib-nodata",
     {.type = BY_TYPE_CONTRIB,
      .flags = BY_FLAG_NODATA | BY_FLAG_ACKONLY,
      .child = 1,
      .op = BY_OP_BOR,
      .dtype = BY_DTYPE_U8,
      .mode = BY_MODE_FAST,
      .job = 1023,
      .tree = 8191,
      .gen = 0xffff,
      .count = 1408,
      .nleaf = 2,
      .seq = 0xffffffff,
      .witness = 1,
      .optag = 1},
     0,
     {0}},
    {"contrib-odd",
     {.type = BY_TYPE_CONTRIB,
      .flags = BY_FLAG_RETX,
      .op = BY_OP_BXOR,
      .dtype = BY_DTYPE_U8,
      .mode = BY_MODE_FAST,
      .job = 1,
      .gen = 1,
      .count = 3,
      .nleaf = 1,
      .seq = 256,
      .witness = 0x80000000,
      .optag = 0x12345678},
     3,
     {0xff, 0x01, 0x80}},
    {"result-all",
     {.type = BY_TYPE_RESULT,
      .flags = BY_FLAG_CE,
      .child = BY_WIRE_CHILD_ALL,
      .op = BY_OP_MAX,
      .dtype = BY_DTYPE_I64,
      .mode = BY_MODE_FAST,
      .job = 2,
      .tree = 1,
      .gen = 9,
      .count = 1,
      .nleaf = 64,
      .seq = 77,
      .witness = 0x01010101,
      .optag = 5},
     8,
     {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
    {"result-nodata",
     {.type = BY_TYPE_RESULT,
      .flags = BY_FLAG_NODATA,
      .child = 2,
      .op = BY_OP_SUM,
      .dtype = BY_DTYPE_BF16,
      .mode = BY_MODE_FAST,
      .job = 1,
      .gen = 1,
      .count = 4096,
      .nleaf = 3,
      .seq = 3,
      .witness = 9,
      .optag = 0xffffffff},
     0,
     {0}},
    {"wait",
     {.type = BY_TYPE_WAIT,
      .op = BY_OP_SUM,
      .dtype = BY_DTYPE_F32,
      .mode = BY_MODE_FAST,
      .job = 1,
      .gen = 1,
      .count = 4,
      .nleaf = 1,
      .seq = 5},
     BY_WAIT_BYTES,
     {0, 12, 1, 0, 2, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2}},
    {"err-mismatch",
     {.type = BY_TYPE_ERR,
      .flags = BY_FLAG_POISON,
      .child = 2,
      .op = BY_OP_SUM,
      .dtype = BY_DTYPE_F32,
      .mode = BY_MODE_FAST,
      .job = 1,
      .gen = 1,
      .count = 4,
      .nleaf = 1,
      .seq = 6},
     BY_ERR_BYTES,
     {0, 3, 1, 0, 0, 0, 0, 6, 0,    0,    0,    6,    1, 9, 1, 0, 0, 4, 0, 0, 0xaa, 0xaa, 0x55, 0x55,
      4, 3, 1, 2, 0, 8, 0, 0, 0x55, 0x55, 0xaa, 0xaa, 0, 0, 0, 0, 0, 0, 0, 2, 0,    0,    0,    1}},
    {"gap",
     {.type = BY_TYPE_GAP,
      .child = 3,
      .op = BY_OP_SUM,
      .dtype = BY_DTYPE_F32,
      .mode = BY_MODE_FAST,
      .job = 1,
      .gen = 1,
      .seq = 9},
     BY_GAP_BYTES,
     {0, 0, 0, 20, 0x85, 0, 0, 0}},
    {"probe",
     {.type = BY_TYPE_PROBE,
      .child = 4,
      .op = BY_OP_SUM,
      .dtype = BY_DTYPE_F32,
      .mode = BY_MODE_FAST,
      .job = 1,
      .gen = 1,
      .seq = 9},
     0,
     {0}},
};

#define GOLDEN_COUNT (sizeof(golden) / sizeof(golden[0]))

/* Reads the bytes of a .hex file. Returns 0 if it cannot be read. */
static size_t read_hex(const char *name, uint8_t *bytes, size_t capacity)
{
    char path[128], line[256];
    size_t count = 0;
    FILE *file;

    snprintf(path, sizeof(path), "tests/golden/%s.hex", name);
    file = fopen(path, "r");
    if (!file) {
        print_error("%s: cannot be opened; run this from the root of the tree\n", path);
        return 0;
    }
    while (fgets(line, sizeof(line), file)) {
        char *at = line, *end;

        if (line[0] == '#')
            continue;
        for (;; at = end) {
            unsigned long value = strtoul(at, &end, 16);

            if (end == at || count == capacity)
                break;
            bytes[count++] = (uint8_t)value;
        }
    }
    fclose(file);
    return count;
}

static void encoding_gives_the_golden_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < GOLDEN_COUNT; i++) {
        uint8_t want[128], got[128];
        struct by_header header = golden[i].header;
        size_t bytes = read_hex(golden[i].name, want, sizeof(want));

        assert_int_equal(bytes, BY_WIRE_HEADER_BYTES + golden[i].bytes);
        header.psum = by_psum(golden[i].payload, golden[i].bytes);
        by_header_encode(&header, got);
        memcpy(got + BY_WIRE_HEADER_BYTES, golden[i].payload, golden[i].bytes);
        assert_memory_equal(got, want, bytes);
    }
}

/* Packets of a job with the key 0, 1 .. 15, between the parent, node 3, and node 9. */
static void keyed_packets_have_the_golden_tags(void **state)
{
    static const struct {
        const char *name;
        unsigned type, cover;
        int down;
    } rows[] = {{"keyed-contrib", BY_TYPE_CONTRIB, BY_COVER_HEADER, 0},
                {"keyed-result", BY_TYPE_RESULT, BY_COVER_PAYLOAD, 1},
                {"keyed-wait", BY_TYPE_WAIT, BY_COVER_HEADER, 1},
                {"keyed-gap", BY_TYPE_GAP, BY_COVER_HEADER, 1}};
    struct by_siphash_key key = {0x0706050403020100, 0x0f0e0d0c0b0a0908}, payload_key;
    struct by_hop_keys child, parent;

    (void)state;
    by_hop_keys_make(&key, 9, 3, 1, &child);
    by_hop_keys_make(&key, 3, 9, 0, &parent);
    by_payload_key_make(&key, &payload_key);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct by_hop_keys *from = rows[i].down ? &parent : &child,
                                 *to = rows[i].down ? &child : &parent;
        uint8_t want[128], got[128];
        size_t bytes = read_hex(rows[i].name, want, sizeof(want));
        const uint8_t *payload;
        struct by_header header;
        uint64_t digest;

        assert_int_equal(by_header_decode(want, bytes, &header, &payload), bytes - BY_WIRE_HEADER_BYTES);
        assert_int_equal(header.type, rows[i].type);
        assert_int_equal(header.flags, BY_FLAG_KEYED);
        digest = by_payload_digest(&payload_key, rows[i].cover, rows[i].type, payload,
                                   (uint32_t)bytes - BY_WIRE_HEADER_BYTES);
        by_header_encode(&header, got);
        by_header_seal(got, &from->out, digest);
        assert_memory_equal(got, want, BY_WIRE_HEADER_BYTES);
        assert_true(by_header_is_sealed(want, &to->in, digest));
        assert_false(by_header_is_sealed(want, &to->out, digest)); /* returned to the sender */
        assert_false(by_header_is_sealed(want, &from->in, digest));
        for (size_t bit = 0; bit < 8 * bytes; bit++) {
            want[bit / 8] ^= (uint8_t)(1u << bit % 8);
            digest = by_payload_digest(&payload_key, rows[i].cover, rows[i].type, payload,
                                       (uint32_t)bytes - BY_WIRE_HEADER_BYTES);
            /* A payload without cover is protected by the psum, which the tag covers. */
            assert_int_equal(by_header_is_sealed(want, &to->in, digest),
                             bit >= 8 * BY_WIRE_HEADER_BYTES && i == 0);
            want[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
}

static void decoding_golden_bytes_gives_every_field(void **state)
{
    (void)state;
    for (size_t i = 0; i < GOLDEN_COUNT; i++) {
        const struct by_header *want = &golden[i].header;
        const uint8_t *payload;
        struct by_header got;
        uint8_t bytes[128];
        size_t size = read_hex(golden[i].name, bytes, sizeof(bytes));

        assert_int_equal(by_header_decode(bytes, size, &got, &payload), golden[i].bytes);
        assert_memory_equal(payload, golden[i].payload, golden[i].bytes);
        assert_int_equal(got.psum, by_psum(payload, golden[i].bytes));
        assert_int_equal(got.type, want->type);
        assert_int_equal(got.flags, want->flags);
        assert_int_equal(got.child, want->child);
        assert_int_equal(got.op, want->op);
        assert_int_equal(got.dtype, want->dtype);
        assert_int_equal(got.mode, want->mode);
        assert_int_equal(got.job, want->job);
        assert_int_equal(got.tree, want->tree);
        assert_int_equal(got.gen, want->gen);
        assert_int_equal(got.count, want->count);
        assert_int_equal(got.nleaf, want->nleaf);
        assert_int_equal(got.seq, want->seq);
        assert_int_equal(got.witness, want->witness);
        assert_int_equal(got.optag, want->optag);
    }
}

/* The addresses of the golden frames, as a book. */
static const uint8_t addresses[2][BY_IPV6_RECORD_BYTES] = {
    {0, 0, 0, 1, 0xfd, 0, 0, 1, [19] = 2},
    {0, 0, 0, 2, 0xfd, 0, 0, 1, [16] = 0xa1, 0xb2, 0xc3, 0xd4},
};
static const struct by_ipv6_book book = {addresses[0], 2};
static const uint8_t sender[BY_MAC_BYTES] = {2, 0x62, 0xfd, 0, 0, 2},
                     receiver[BY_MAC_BYTES] = {2, 0x62, 0xfd, 0, 0, 3};

static void frames_of_both_forms_are_the_golden_ones(void **state)
{
    (void)state;
    for (unsigned six = 0; six < 2; six++) {
        size_t head = six ? BY_IPV6_HEADER_BYTES : BY_FRAME_HEADER_BYTES;
        uint8_t want[128], got[128], packet[128];
        size_t bytes = read_hex(six ? "frame-ipv6" : "frame-ipv4", want, sizeof(want));
        size_t packet_bytes = read_hex("contrib-nodata", packet, sizeof(packet));
        struct by_frame frame, fields = {.src_ip = six ? 1 : 0xc6120002,
                                         .dst_ip = six ? 2 : 0xc6120003,
                                         .src_port = 50000,
                                         .dst_port = 46247,
                                         .ecn = 2,
                                         .bytes = (uint16_t)packet_bytes};

        memcpy(fields.src_mac, sender, BY_MAC_BYTES);
        memcpy(fields.dst_mac, receiver, BY_MAC_BYTES);
        assert_int_equal(bytes, head + packet_bytes);
        memset(got, 0xff, sizeof(got));
        if (six)
            assert_int_equal(by_ipv6_build(&book, &fields, got), 0);
        else
            by_frame_build(&fields, got);
        assert_memory_equal(got, want, head);
        assert_int_equal(
            six ? by_ipv6_parse(&book, want, bytes, &frame) : by_frame_parse(want, bytes, &frame), 0);
        assert_memory_equal(frame.src_mac, sender, BY_MAC_BYTES);
        assert_memory_equal(frame.dst_mac, receiver, BY_MAC_BYTES);
        assert_int_equal(frame.src_ip, fields.src_ip);
        assert_int_equal(frame.dst_ip, fields.dst_ip);
        assert_int_equal(frame.src_port, 50000);
        assert_int_equal(frame.dst_port, 46247);
        assert_int_equal(frame.ecn, 2);
        assert_int_equal(frame.bytes, packet_bytes);
        assert_memory_equal(frame.data, packet, packet_bytes);
    }
}

static void neighbour_discovery_has_the_golden_bytes(void **state)
{
    uint8_t want[128], got[BY_DISCOVERY_BYTES];
    struct by_discovery_message message;

    (void)state;
    assert_int_equal(read_hex("neighbour-solicit", want, sizeof(want)), BY_DISCOVERY_BYTES);
    by_discovery_solicit(sender, addresses[0] + 4, NULL, addresses[1] + 4, got);
    assert_memory_equal(got, want, BY_DISCOVERY_BYTES);
    assert_int_equal(by_discovery_parse(want, BY_DISCOVERY_BYTES, &message), 0);
    assert_true(message.is_solicitation);
    assert_memory_equal(message.src_mac, sender, BY_MAC_BYTES);
    assert_memory_equal(message.src, addresses[0] + 4, BY_IPV6_BYTES);
    assert_memory_equal(message.target, addresses[1] + 4, BY_IPV6_BYTES);

    assert_int_equal(read_hex("neighbour-advertise", want, sizeof(want)), BY_DISCOVERY_BYTES);
    by_discovery_advertise(receiver, addresses[1] + 4, sender, addresses[0] + 4, got);
    assert_memory_equal(got, want, BY_DISCOVERY_BYTES);
    assert_int_equal(by_discovery_parse(want, BY_DISCOVERY_BYTES, &message), 0);
    assert_false(message.is_solicitation);
    assert_memory_equal(message.src_mac, receiver, BY_MAC_BYTES);
    assert_memory_equal(message.target, addresses[1] + 4, BY_IPV6_BYTES);
}

static const struct golden *find(const char *name)
{
    for (size_t i = 0; i < GOLDEN_COUNT; i++)
        if (strcmp(golden[i].name, name) == 0)
            return &golden[i];
    return NULL;
}

static void the_payload_of_wait_is_the_golden_one(void **state)
{
    struct by_wait wait = {
        .node = 12, .state = BY_WAIT_CHILDREN, .at = 513, .missing = UINT64_C(1) << 40 | 2};
    struct by_wait got;
    uint8_t bytes[BY_WAIT_BYTES];

    (void)state;
    memset(bytes, 0xff, sizeof(bytes));
    by_wait_encode(&wait, bytes);
    assert_memory_equal(bytes, find("wait")->payload, sizeof(bytes));
    assert_int_equal(by_wait_decode(bytes, sizeof(bytes), &got), 0);
    assert_int_equal(got.node, wait.node);
    assert_int_equal(got.state, wait.state);
    assert_int_equal(got.at, wait.at);
    assert_true(got.missing == wait.missing);
    wait.set = 3; /* of the children: missing begins at child 192 */
    by_wait_encode(&wait, bytes);
    assert_int_equal(by_wait_decode(bytes, sizeof(bytes), &got), 0);
    assert_true(got.set == 3 && bytes[3] == 3);
}

static void the_payload_of_err_is_the_golden_one(void **state)
{
    struct by_err err = {.node = 3,
                         .reason = BY_ERR_MISMATCH,
                         .seq = 6,
                         .expected_seq = 6,
                         .first = {BY_OP_SUM, BY_DTYPE_F32, BY_MODE_FAST, 0, 4, 0xaaaa5555},
                         .other = {BY_OP_MAX, BY_DTYPE_I32, BY_MODE_FAST, 2, 8, 0x5555aaaa},
                         .agree = UINT64_C(1) << 33 | 1};
    struct by_err got;
    uint8_t bytes[BY_ERR_BYTES];

    (void)state;
    memset(bytes, 0xff, sizeof(bytes));
    by_err_encode(&err, bytes);
    assert_memory_equal(bytes, find("err-mismatch")->payload, sizeof(bytes));
    assert_int_equal(by_err_decode(bytes, sizeof(bytes), &got), 0);
    assert_int_equal(got.node, 3);
    assert_int_equal(got.reason, BY_ERR_MISMATCH);
    assert_int_equal(got.seq, 6);
    assert_int_equal(got.expected_seq, 6);
    assert_int_equal(got.first.op, BY_OP_SUM);
    assert_int_equal(got.first.dtype, BY_DTYPE_F32);
    assert_int_equal(got.first.count, 4);
    assert_int_equal(got.first.optag, 0xaaaa5555);
    assert_int_equal(got.other.op, BY_OP_MAX);
    assert_int_equal(got.other.mode, BY_MODE_FAST);
    assert_int_equal(got.other.child, 2);
    assert_int_equal(got.other.count, 8);
    assert_int_equal(got.other.optag, 0x5555aaaa);
    assert_true(got.agree == err.agree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoding_gives_the_golden_bytes),
        cmocka_unit_test(frames_of_both_forms_are_the_golden_ones),
        cmocka_unit_test(neighbour_discovery_has_the_golden_bytes),
        cmocka_unit_test(keyed_packets_have_the_golden_tags),
        cmocka_unit_test(decoding_golden_bytes_gives_every_field),
        cmocka_unit_test(the_payload_of_wait_is_the_golden_one),
        cmocka_unit_test(the_payload_of_err_is_the_golden_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
