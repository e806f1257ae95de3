/* Keyed jobs at a host: its contributions carry the tags that its parent expects, and it accepts
 * only results with its own tags. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/endpoint/state.h"
#include "tests/unit/offload/endpoint/rig.h"

#define BYTES 64u

struct one {
    struct endpoint_rig rig;
    struct by_hop_keys switch_keys; /* shared with this host */
    uint8_t send[BYTES], recv[BYTES];
    struct by_header first;
    uint32_t id;
};

/* Rank 0 of a star with one chunk of an allreduce in flight. */
static struct one *open_one(unsigned cover)
{
    static const struct rig_tree tree = {.payload_max = BYTES};
    struct one *one = calloc(1, sizeof(*one));
    struct by_call call = {.collective = BY_COLLECTIVE_ALLREDUCE,
                           .op = BY_OP_SUM,
                           .dtype = BY_DTYPE_U8,
                           .mode = BY_MODE_FAST,
                           .count = BYTES,
                           .send = one->send,
                           .recv = one->recv};
    /* The transport is shared memory. A tag covers a psum nevertheless. */
    const struct by_endpoint_config config = {.shared = cover != 0};
    struct by_siphash_key key;
    struct by_image_key record;

    rig_cover = (uint8_t)cover;
    rig_open(&one->rig, 3, &tree, 1, &config);
    if (cover) {
        assert_int_equal(by_image_key_find(one->rig.image, 1, &record), 1);
        by_siphash_key_read(&key, record.key);
        by_hop_keys_make(&key, 0, 1, 0, &one->switch_keys); /* node 0 is the switch, 1 the host */
    }
    memset(one->send, 5, BYTES);
    assert_int_equal(by_endpoint_post(one->rig.endpoint, &call, &one->id, NULL), 0);
    assert_int_equal(rig_step(&one->rig), 1);
    one->first = one->rig.sent[0];
    return one;
}

static void close_one(struct one *one)
{
    rig_close(&one->rig);
    free(one);
}

static uint64_t digest(const struct one *one, const struct by_header *header, const uint8_t *payload,
                       uint32_t bytes)
{
    const struct by_endpoint *endpoint = one->rig.endpoint;

    return by_payload_digest(&endpoint->payload_key, endpoint->cover, header->type, payload, bytes);
}

/* Gives the result as the switch would send it, with the tag of `key`. */
static void answer(struct one *one, struct by_header header, uint8_t *payload,
                   const struct by_siphash_key *key)
{
    uint8_t packet[BY_WIRE_HEADER_BYTES + BYTES];
    struct by_rx rx = {.data = packet, .bytes = sizeof(packet), .src_ip = fabric_ip(&one->rig.fabric, 0, 0)};
    struct by_tx tx[16];
    uint32_t count;

    by_header_encode(&header, packet);
    if (key)
        by_header_seal(packet, key, digest(one, &header, payload, BYTES));
    memcpy(packet + BY_WIRE_HEADER_BYTES, payload, BYTES);
    by_endpoint_step(one->rig.endpoint, one->rig.now_ns, &rx, 1, tx, 16, &count);
}

static void a_keyed_contribution_has_the_tag_that_its_parent_wants(void **state)
{
    (void)state;
    for (unsigned cover = BY_COVER_HEADER; cover <= BY_COVER_PAYLOAD; cover++) {
        struct one *one = open_one(cover);
        const uint8_t *header = one->rig.tx[0].header;
        uint64_t want = digest(one, &one->first, one->send, BYTES);

        assert_true(one->first.flags & BY_FLAG_KEYED);
        assert_int_equal(one->first.psum, by_psum(one->send, BYTES));
        assert_int_equal(one->rig.tx[0].direct, 0);
        assert_true((want != 0) == (cover == BY_COVER_PAYLOAD));
        assert_true(by_header_is_sealed(header, &one->switch_keys.in, want));
        assert_false(by_header_is_sealed(header, &one->switch_keys.out, want));
        close_one(one);
    }
}

static void only_a_result_with_the_right_tag_ends_a_keyed_call(void **state)
{
    (void)state;
    for (unsigned cover = BY_COVER_HEADER; cover <= BY_COVER_PAYLOAD; cover++) {
        struct one *one = open_one(cover);
        const struct by_endpoint_counters *counters = by_endpoint_counters(one->rig.endpoint);
        uint8_t payload[BYTES];
        struct by_header result, plain;
        struct by_siphash_key foreign = {1, 2};

        memset(payload, 9, BYTES);
        result = rig_result(&one->rig, &one->first, payload, BYTES);
        plain = result;
        result.flags |= BY_FLAG_KEYED;
        plain.flags &= (uint8_t)~BY_FLAG_KEYED;
        answer(one, plain, payload, NULL);
        assert_int_equal(counters->drop_key, 1);
        answer(one, result, payload, &foreign);
        assert_int_equal(counters->drop_key, 2);
        answer(one, result, payload, &one->switch_keys.in); /* the key of the direction to the switch */
        assert_int_equal(counters->drop_key, 3);
        assert_int_equal(by_endpoint_test(one->rig.endpoint, one->id, NULL), BY_EAGAIN);
        assert_int_equal(one->recv[0], 0);
        answer(one, result, payload, &one->switch_keys.out);
        assert_int_equal(counters->drop_key, 3);
        assert_int_equal(by_endpoint_test(one->rig.endpoint, one->id, NULL), 0);
        assert_int_equal(one->recv[0], 9);
        close_one(one);
    }
}

/* Gives a WAIT or ERR from the switch, with the tag of `key`. Afterwards adds `shifted` to one byte
 * and subtracts it from another, so that the psum stays valid. */
static void hear(struct one *one, unsigned type, const struct by_siphash_key *key, unsigned shifted)
{
    const struct by_err err = {.node = 0, .reason = BY_ERR_WINDOW, .seq = one->first.seq};
    const struct by_wait wait = {.node = 0, .at = 0, .state = BY_WAIT_CHILDREN, .missing = 2};
    uint8_t packet[BY_WIRE_HEADER_BYTES + BY_ERR_BYTES], *payload = packet + BY_WIRE_HEADER_BYTES;
    uint32_t bytes = type == BY_TYPE_ERR ? BY_ERR_BYTES : BY_WAIT_BYTES, count;
    struct by_rx rx = {.data = packet,
                       .bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + bytes),
                       .src_ip = fabric_ip(&one->rig.fabric, 0, 0)};
    struct by_header header = one->first;
    struct by_tx tx[16];

    if (type == BY_TYPE_ERR)
        by_err_encode(&err, payload);
    else
        by_wait_encode(&wait, payload);
    header.type = (uint8_t)type;
    header.flags = BY_FLAG_KEYED;
    header.psum = by_psum(payload, bytes);
    by_header_encode(&header, packet);
    by_header_seal(packet, key, digest(one, &header, payload, bytes));
    payload[4] = (uint8_t)(payload[4] + shifted);
    payload[8] = (uint8_t)(payload[8] - shifted);
    by_endpoint_step(one->rig.endpoint, one->rig.now_ns, &rx, 1, tx, 16, &count);
}

static void only_waits_and_errors_with_the_right_tag_are_heard(void **state)
{
    const struct by_siphash_key foreign = {1, 2};

    (void)state;
    for (unsigned cover = BY_COVER_HEADER; cover <= BY_COVER_PAYLOAD; cover++) {
        struct one *one = open_one(cover);
        const struct by_endpoint_counters *counters = by_endpoint_counters(one->rig.endpoint);

        for (unsigned i = 0; i < 2; i++) {
            unsigned type = i ? BY_TYPE_ERR : BY_TYPE_WAIT;

            hear(one, type, &foreign, 0);
            assert_int_equal(counters->drop_key, 2 * i + 1);
            hear(one, type, &one->switch_keys.out, 1);
            assert_int_equal(counters->drop_key, 2 * i + 2);
            assert_int_equal(counters->wait + counters->err, i);
            hear(one, type, &one->switch_keys.out, 0);
            assert_int_equal(counters->drop_key, 2 * i + 2);
            assert_int_equal(counters->wait + counters->err, i + 1);
        }
        close_one(one);
    }
}

static void a_job_without_keys_takes_no_keyed_packet(void **state)
{
    struct one *one = open_one(BY_COVER_NONE);
    struct by_siphash_key any = {3, 4};
    uint8_t payload[BYTES] = {0};
    struct by_header result = rig_result(&one->rig, &one->first, payload, BYTES);

    (void)state;
    result.flags |= BY_FLAG_KEYED;
    answer(one, result, payload, &any);
    assert_int_equal(by_endpoint_counters(one->rig.endpoint)->drop_key, 1);
    assert_int_equal(by_endpoint_test(one->rig.endpoint, one->id, NULL), BY_EAGAIN);
    close_one(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_keyed_contribution_has_the_tag_that_its_parent_wants),
        cmocka_unit_test(only_a_result_with_the_right_tag_ends_a_keyed_call),
        cmocka_unit_test(only_waits_and_errors_with_the_right_tag_are_heard),
        cmocka_unit_test(a_job_without_keys_takes_no_keyed_packet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
