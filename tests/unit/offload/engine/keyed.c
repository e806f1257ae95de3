/*
 * Keyed jobs at a node: it accepts what its neighbours made. It drops forged, altered, misdirected,
 * reflected and unkeyed packets before they touch a bank. The packets that it sends have tags that
 * their receivers accept.
 */
#include "tests/unit/offload/engine/rig.h"

#include "offload/wire/seal.h"

#define COUNT 4u

static const struct rig_entry entry = {.job = 3, .tree = 1, .gen = 7, .children = 3, .window = 4};
static const struct by_siphash_key job_key = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
static const float values[COUNT] = {1, 2, 3, 4}, sum[COUNT] = {3, 6, 9, 12};

/* Loads the entry, keyed with this cover; 0: without a key. */
static void start(struct engine_rig *rig, const struct rig_entry *of, unsigned cover)
{
    struct by_image_key key = {.job = 3, .cover = (uint8_t)cover};
    static uint8_t keyed[1 << 16];
    const uint8_t *image;
    size_t bytes;

    for (uint8_t i = 0; i < 16; i++)
        key.key[i] = i;
    rig_open(rig);
    image = rig_image(of, 1, NULL, 0, &bytes);
    bytes = by_image_put_keys(image, &key, cover ? 1 : 0, keyed);
    assert_int_equal(by_engine_stage(rig->engine, keyed, bytes, NULL), 0);
    assert_int_equal(by_engine_commit(rig->engine), 0);
}

/* Returns the keys of a neighbour, from the neighbour's side. */
static struct by_hop_keys keys_of(uint16_t node, int is_parent)
{
    struct by_hop_keys keys;

    by_hop_keys_make(&job_key, node, RIG_NODE, !is_parent, &keys);
    return keys;
}

static uint64_t digest_of(unsigned cover, unsigned type, const uint8_t *payload, uint32_t bytes)
{
    struct by_siphash_key key;

    by_payload_key_make(&job_key, &key);
    return by_payload_digest(&key, cover, type, payload, bytes);
}

/* The packet's bytes, sealed with `key`. */
static size_t bytes_of(const struct rig_packet *packet, unsigned cover, const struct by_siphash_key *key,
                       uint8_t bytes[256])
{
    struct by_header header = packet->header;

    header.flags |= BY_FLAG_KEYED;
    header.psum = by_psum(packet->payload, packet->bytes);
    by_header_encode(&header, bytes);
    if (packet->bytes > 0)
        memcpy(bytes + BY_WIRE_HEADER_BYTES, packet->payload, packet->bytes);
    by_header_seal(bytes, key, digest_of(cover, header.type, packet->payload, packet->bytes));
    return BY_WIRE_HEADER_BYTES + packet->bytes;
}

static void give(struct engine_rig *rig, const struct rig_packet *packet, const uint8_t *bytes, size_t size)
{
    uint8_t *exact = malloc(size);

    memcpy(exact, bytes, size);
    rig_send_bytes(rig, exact, size, packet->port, packet->src_ip, packet->dst_ip);
    free(exact);
}

static void contribute(struct engine_rig *rig, unsigned cover, unsigned child, uint32_t seq)
{
    struct rig_packet packet = rig_contrib(&entry, child, seq, values, COUNT);
    struct by_hop_keys keys = keys_of((uint16_t)(100 + child), 0);
    uint8_t bytes[256] = {0};

    give(rig, &packet, bytes, bytes_of(&packet, cover, &keys.out, bytes));
}

/* The neighbour of action `index` accepts its tag; other neighbours do not. */
static void expect_tag(struct engine_rig *rig, uint32_t index, unsigned cover)
{
    const struct by_tx *tx = &rig->tx[index];
    const uint8_t *payload;
    struct by_header header = rig_action(rig, &entry, index, &payload);
    int up = tx->port == RIG_PARENT_PORT;
    struct by_hop_keys keys = keys_of(up ? 50 : (uint16_t)(100 + header.child), up),
                       other = keys_of(up ? 51 : (uint16_t)(101 + header.child), up);
    uint64_t digest = digest_of(cover, header.type, payload, tx->payload_bytes);

    assert_true(header.flags & BY_FLAG_KEYED);
    assert_true(by_header_is_sealed(tx->header, &keys.in, digest));
    assert_false(by_header_is_sealed(tx->header, &keys.out, digest));
    assert_false(by_header_is_sealed(tx->header, &other.in, digest));
}

static void a_keyed_chunk_goes_up_and_comes_down_with_tags(void **state)
{
    (void)state;
    for (unsigned cover = BY_COVER_HEADER; cover <= BY_COVER_PAYLOAD; cover++) {
        struct by_hop_keys parent = keys_of(50, 1);
        struct rig_packet result;
        uint8_t bytes[256] = {0};
        struct engine_rig rig;

        start(&rig, &entry, cover);
        for (unsigned child = 0; child < 3; child++)
            contribute(&rig, cover, child, 0);
        rig_expect_up(&rig, &entry, 0, BY_FLAG_KEYED, sum, COUNT);
        expect_tag(&rig, 0, cover);
        rig_release(&rig);
        contribute(&rig, cover, 1, 0); /* again: the chunk waits for the parent */
        expect_tag(&rig, 0, cover);
        expect_tag(&rig, rig.tx_count - 1, cover);
        rig_release(&rig);
        result = rig_result(&entry, 0, values, COUNT);
        give(&rig, &result, bytes, bytes_of(&result, cover, &parent.out, bytes));
        rig_expect_results(&rig, &entry, 0, values, COUNT);
        for (uint32_t i = 0; i < 3; i++)
            expect_tag(&rig, i, cover);
        rig_release(&rig);
        contribute(&rig, cover, 2, 0);
        assert_int_equal(rig.tx_count, 1);
        expect_tag(&rig, 0, cover);
        rig_release(&rig);
        rig_close(&rig);
    }
}

/* Gives bytes that must change only one counter. */
static void expect_refused(struct engine_rig *rig, const struct rig_packet *packet, const uint8_t *bytes,
                           size_t size)
{
    struct by_bank_view before = rig_bank(rig, 0, 0, 0), after;

    give(rig, packet, bytes, size);
    rig_expect_drop_of(rig, drop_key);
    assert_int_equal(rig->tx_count, 0);
    after = rig_bank(rig, 0, 0, 0);
    assert_memory_equal(&after, &before, sizeof(after));
}

static void any_flipped_bit_of_a_keyed_packet_is_refused(void **state)
{
    struct rig_packet packet = rig_contrib(&entry, 1, 0, values, COUNT);
    struct by_hop_keys keys = keys_of(101, 0);
    uint8_t bytes[256] = {0}, changed[256];
    struct by_engine_counters before;
    struct engine_rig rig;
    size_t size;

    (void)state;
    start(&rig, &entry, BY_COVER_PAYLOAD);
    size = bytes_of(&packet, BY_COVER_PAYLOAD, &keys.out, bytes);
    before = *by_engine_counters(rig.engine);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        memcpy(changed, bytes, size);
        changed[bit / 8] ^= (uint8_t)(1u << bit % 8);
        give(&rig, &packet, changed, size);
        assert_int_equal(rig.tx_count, 0);
    }
    assert_int_equal(by_engine_counters(rig.engine)->contrib, before.contrib);
    assert_int_equal(rig_bank(&rig, 0, 0, 0).state, BY_BANK_VOID);
    give(&rig, &packet, bytes, size);
    assert_int_equal(by_engine_counters(rig.engine)->contrib, before.contrib + 1);
    rig_close(&rig);
}

static void a_payload_with_the_same_psum_is_refused_where_tags_cover_payloads(void **state)
{
    (void)state;
    for (unsigned cover = BY_COVER_HEADER; cover <= BY_COVER_PAYLOAD; cover++) {
        struct rig_packet packet = rig_contrib(&entry, 1, 0, values, COUNT);
        struct by_hop_keys keys = keys_of(101, 0);
        uint8_t bytes[256] = {0};
        struct engine_rig rig;
        size_t size;

        start(&rig, &entry, cover);
        size = bytes_of(&packet, cover, &keys.out, bytes);
        bytes[BY_WIRE_HEADER_BYTES]++; /* keeps the psum */
        bytes[BY_WIRE_HEADER_BYTES + 5]++;
        bytes[BY_WIRE_HEADER_BYTES + 9]--;
        bytes[BY_WIRE_HEADER_BYTES + 12]--;
        if (cover == BY_COVER_PAYLOAD) {
            expect_refused(&rig, &packet, bytes, size);
        } else {
            give(&rig, &packet, bytes, size);
            assert_int_equal(by_engine_counters(rig.engine)->drop_key, 0);
        }
        rig_close(&rig);
    }
}

static void a_keyed_value_from_memory_needs_its_psum_all_the_same(void **state)
{
    struct rig_packet packet = rig_contrib(&entry, 1, 0, values, COUNT);
    struct by_hop_keys keys = keys_of(101, 0);
    uint8_t bytes[256] = {0};
    struct by_rx rx = {
        .data = bytes, .port = packet.port, .src_ip = packet.src_ip, .dst_ip = packet.dst_ip, .direct = 1};
    struct engine_rig rig;
    uint32_t sent;

    (void)state;
    start(&rig, &entry, BY_COVER_HEADER);
    rx.bytes = (uint16_t)bytes_of(&packet, BY_COVER_HEADER, &keys.out, bytes);
    bytes[BY_WIRE_HEADER_BYTES]++;
    assert_int_equal(by_engine_step(rig.engine, 0, &rx, 1, rig.tx, RIG_TX, &sent), 1);
    assert_int_equal(by_engine_counters(rig.engine)->drop_psum, 1);
    bytes[BY_WIRE_HEADER_BYTES]--;
    assert_int_equal(by_engine_step(rig.engine, 0, &rx, 1, rig.tx, RIG_TX, &sent), 1);
    assert_int_equal(by_engine_counters(rig.engine)->contrib, 1);
    rig_close(&rig);
}

static void a_packet_of_another_place_key_direction_or_mode_is_refused(void **state)
{
    struct by_siphash_key foreign = {1, 2};
    struct engine_rig rig;

    (void)state;
    for (unsigned row = 0; row < 6; row++) {
        struct rig_packet packet = rig_contrib(&entry, 1, 0, values, COUNT);
        struct by_hop_keys keys = keys_of(101, 0);
        unsigned cover = BY_COVER_HEADER;
        uint8_t bytes[256] = {0};
        size_t size;

        start(&rig, &entry, row == 5 ? 0 : cover);
        switch (row) {
        case 0: /* recorded at another hop of the job, replayed as child 1 */
            keys = keys_of(102, 0);
            break;
        case 1: /* a key of another job or generation */
            by_hop_keys_make(&foreign, 101, RIG_NODE, 1, &keys);
            break;
        case 2: /* what this node sent to child 1, returned to it */
            keys.out = keys.in;
            break;
        case 3: /* what a parent with that number would send */
            keys = keys_of(101, 1);
            break;
        default:
            break;
        }
        size = bytes_of(&packet, cover, &keys.out, bytes);
        if (row == 4) { /* a valid packet of a job without keys */
            struct by_header header = packet.header;

            header.psum = by_psum(values, sizeof(values));
            by_header_encode(&header, bytes);
        } /* row 5: a keyed packet for a job without keys */
        expect_refused(&rig, &packet, bytes, size);
        rig_close(&rig);
    }
}

/* Returns a PROBE, WAIT or ERR about chunk 0, of child 1 or of the parent. */
static struct rig_packet word_of(unsigned type, int from_parent, uint8_t payload[BY_ERR_BYTES])
{
    const struct by_err err = {.node = 44, .reason = BY_ERR_MISMATCH, .seq = 0};
    const struct by_wait wait = {.node = 44, .at = 44, .state = BY_WAIT_CHILDREN, .missing = 1};
    struct rig_packet packet =
        from_parent ? rig_result(&entry, 0, values, COUNT) : rig_contrib(&entry, 1, 0, values, COUNT);

    packet.header.type = (uint8_t)type;
    packet.header.flags = type == BY_TYPE_ERR ? BY_FLAG_POISON : 0;
    packet.payload = payload;
    packet.bytes = type == BY_TYPE_ERR ? BY_ERR_BYTES : type == BY_TYPE_WAIT ? BY_WAIT_BYTES : 0;
    if (type == BY_TYPE_ERR)
        by_err_encode(&err, payload);
    else if (type == BY_TYPE_WAIT)
        by_wait_encode(&wait, payload);
    return packet;
}

static void forged_probes_waits_and_errors_are_refused(void **state)
{
    const struct by_siphash_key foreign = {1, 2};

    (void)state;
    for (unsigned row = 0; row < 6; row++) {
        static const unsigned types[] = {BY_TYPE_PROBE, BY_TYPE_WAIT, BY_TYPE_ERR};
        unsigned type = types[row / 2];
        int from_parent = row % 2 == 1;
        uint8_t payload[BY_ERR_BYTES], bytes[256] = {0};
        struct rig_packet packet = word_of(type, from_parent, payload);
        struct by_hop_keys keys = keys_of(from_parent ? 50 : 101, from_parent), forged;
        struct engine_rig rig;
        size_t size;

        start(&rig, &entry, BY_COVER_HEADER);
        contribute(&rig, BY_COVER_HEADER, 0, 0);
        rig_release(&rig);
        by_hop_keys_make(&foreign, from_parent ? 50 : 101, RIG_NODE, !from_parent, &forged);
        size = bytes_of(&packet, BY_COVER_HEADER, &forged.out, bytes);
        expect_refused(&rig, &packet, bytes, size);
        size = bytes_of(&packet, BY_COVER_HEADER, &keys.out, bytes);
        if (packet.bytes > 0) { /* the tag covers the whole payload; these changes keep the psum */
            bytes[BY_WIRE_HEADER_BYTES + 4]++;
            bytes[BY_WIRE_HEADER_BYTES + 8]--;
            expect_refused(&rig, &packet, bytes, size);
            bytes[BY_WIRE_HEADER_BYTES + 4]--;
            bytes[BY_WIRE_HEADER_BYTES + 8]++;
        }
        give(&rig, &packet, bytes, size); /* the original is accepted */
        assert_int_equal(by_engine_counters(rig.engine)->drop_key, packet.bytes > 0 ? 2 : 1);
        rig_release(&rig);
        rig_close(&rig);
    }
}

static void a_genuine_packet_from_the_wrong_address_is_refused_there(void **state)
{
    struct rig_packet packet = rig_contrib(&entry, 1, 0, values, COUNT);
    struct by_hop_keys keys = keys_of(101, 0);
    uint8_t bytes[256] = {0};
    struct engine_rig rig;
    size_t size = bytes_of(&packet, BY_COVER_HEADER, &keys.out, bytes);

    (void)state;
    start(&rig, &entry, BY_COVER_HEADER);
    packet.port = 2;
    give(&rig, &packet, bytes, size);
    rig_expect_drop_of(&rig, drop_ingress);
    packet = rig_contrib(&entry, 1, 0, values, COUNT);
    packet.header.type = BY_TYPE_RESULT; /* children must not send results */
    size = bytes_of(&packet, BY_COVER_HEADER, &keys.out, bytes);
    give(&rig, &packet, bytes, size);
    rig_expect_drop_of(&rig, drop_ingress);
    rig_close(&rig);
}

static void a_packet_played_again_changes_nothing_but_its_own_childs_answer(void **state)
{
    struct by_engine_counters before, after;
    struct engine_rig rig;

    (void)state;
    start(&rig, &entry, BY_COVER_HEADER);
    contribute(&rig, BY_COVER_HEADER, 0, 0);
    before = *by_engine_counters(rig.engine);
    contribute(&rig, BY_COVER_HEADER, 0, 0);
    after = *by_engine_counters(rig.engine);
    assert_int_equal(after.contrib, before.contrib);
    assert_int_equal(after.duplicate, before.duplicate + 1);
    for (uint32_t i = 0; i < rig.tx_count; i++)
        expect_tag(&rig, i, BY_COVER_HEADER);
    rig_release(&rig);
    rig_close(&rig);
}

static void another_key_under_the_same_generation_is_refused(void **state)
{
    struct by_image_key key = {.key = {77}, .job = 3, .cover = BY_COVER_HEADER};
    struct by_image_fault fault = {0};
    static uint8_t keyed[1 << 16];
    const uint8_t *image;
    struct engine_rig rig;
    size_t bytes;

    (void)state;
    start(&rig, &entry, BY_COVER_HEADER);
    image = rig_image(&entry, 1, NULL, 0, &bytes);
    bytes = by_image_put_keys(image, &key, 1, keyed);
    assert_int_equal(by_engine_stage(rig.engine, keyed, bytes, &fault), BY_EBUSY);
    assert_string_equal(fault.section, "entry");
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_keyed_chunk_goes_up_and_comes_down_with_tags),
        cmocka_unit_test(any_flipped_bit_of_a_keyed_packet_is_refused),
        cmocka_unit_test(a_payload_with_the_same_psum_is_refused_where_tags_cover_payloads),
        cmocka_unit_test(a_keyed_value_from_memory_needs_its_psum_all_the_same),
        cmocka_unit_test(a_packet_of_another_place_key_direction_or_mode_is_refused),
        cmocka_unit_test(forged_probes_waits_and_errors_are_refused),
        cmocka_unit_test(a_genuine_packet_from_the_wrong_address_is_refused_there),
        cmocka_unit_test(a_packet_played_again_changes_nothing_but_its_own_childs_answer),
        cmocka_unit_test(another_key_under_the_same_generation_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
