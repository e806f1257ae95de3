/*
 * Bits that flip in a node's slots while a chunk waits there: in a bank's header, in its sum, in
 * the result, in the slots of mode DET. Each flip either changes nothing that is sent, or ends the
 * chunk with an objection that names the node. No value with a flipped bit leaves with a valid
 * psum, count of leaves and witness.
 */
#include "tests/unit/offload/engine/rig.h"

#include "offload/engine/state.h"

#define COUNT 9u

static struct engine_rig rig;
static float input[4][COUNT];
static uint32_t witness_of_all;

/* What the node has sent since the flip. */
static struct {
    unsigned values;    /* RESULTs and CONTRIBs that a receiver would accept */
    unsigned damaged;   /* packets whose payload does not match the psum */
    unsigned alarms;    /* ERR(MEMORY) that name this node */
    unsigned wrong;     /* accepted, but not the correct value */
    unsigned other_err; /* other ERRs */
} outcome;

static const struct rig_entry entries[] = {
    {.job = 1, .gen = 7, .root = 1, .children = 4, .window = 2, .depth = 2},
    {.job = 1, .gen = 7, .root = 0, .children = 4, .window = 2, .depth = 2},
};

/* Floats are correct here if all their bits are. */
static int same_bits(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

static void judge(const struct rig_entry *entry, const float *right, const float *down)
{
    for (uint32_t i = 0; i < rig.tx_count; i++) {
        const struct by_tx *tx = &rig.tx[i];
        uint8_t bytes[BY_WIRE_HEADER_BYTES + 256];
        const uint8_t *body = tx->payload ? tx->payload : tx->small, *payload;
        struct by_header header;
        struct by_err err;

        memcpy(bytes, tx->header, BY_WIRE_HEADER_BYTES);
        memcpy(bytes + BY_WIRE_HEADER_BYTES, body, tx->payload_bytes);
        assert_int_equal(by_header_decode(bytes, BY_WIRE_HEADER_BYTES + tx->payload_bytes, &header, &payload),
                         tx->payload_bytes);
        if (by_psum(payload, tx->payload_bytes) != header.psum) {
            outcome.damaged++;
        } else if (header.type == BY_TYPE_ERR) {
            assert_int_equal(by_err_decode(payload, tx->payload_bytes, &err), 0);
            if (err.reason == BY_ERR_MEMORY && err.node == RIG_NODE)
                outcome.alarms++;
            else
                outcome.other_err++;
        } else if (header.type == BY_TYPE_RESULT || header.type == BY_TYPE_CONTRIB) {
            const float *value = header.type == BY_TYPE_RESULT && !entry->root ? down : right;
            int own = header.type == BY_TYPE_CONTRIB || entry->root; /* otherwise nleaf is the parent's */
            int sound = !own || (header.nleaf == 4 && header.witness == witness_of_all);

            if (!sound || header.optag != 0x1234 || header.count != COUNT || header.op != BY_OP_SUM ||
                header.seq != 0) {
                outcome.damaged++; /* a receiver compares these with its own */
            } else {
                outcome.values++;
                outcome.wrong += (header.flags & BY_FLAG_NODATA) != 0 || tx->payload_bytes != 4 * COUNT ||
                                 !same_bits(payload, value, 4u * COUNT);
            }
        }
    }
    rig_release(&rig);
}

static void give(const struct rig_entry *entry, unsigned child, unsigned mode, const float *right,
                 const float *down)
{
    struct rig_packet packet = rig_contrib(entry, child, 0, input[child], COUNT);

    packet.header.mode = (uint8_t)mode;
    rig.now_ns += 2 * RIG_INTERVAL_NS;
    rig_send(&rig, &packet);
    judge(entry, right, down);
}

static void answer(const struct rig_entry *entry, unsigned mode, const float *right, const float *down)
{
    struct rig_packet packet = rig_result(entry, 0, down, COUNT);

    packet.header.mode = (uint8_t)mode;
    rig_send(&rig, &packet);
    judge(entry, right, down);
}

#define VALUE (4 * COUNT)
#define WHOLE (sizeof(struct by_bank) + 2 * VALUE)
/* Mode DET adds the state of the second pair and two places for waiting values. */
#define WHOLE_DET (WHOLE + sizeof(struct by_pair) + 2 * VALUE)

/* Byte `byte` of bank 0: its header, its value, its result, and the state of mode DET. */
static uint8_t *byte_at(const struct rig_entry *entry, size_t byte)
{
    const struct by_entry *built =
        by_entry_find(rig.engine->active, (uint32_t)entry->job << 16 | entry->tree);
    uint8_t *part[] = {(uint8_t *)&rig.engine->bank[0],
                       by_bank_partial(rig.engine, 0),
                       by_bank_partial(rig.engine, 0) + rig.engine->payload_half,
                       (uint8_t *)by_pair_of(rig.engine, built, 0, 1),
                       by_place_at(rig.engine, built, 0),
                       by_place_at(rig.engine, built, 1)};
    const size_t bytes[] = {sizeof(struct by_bank), VALUE, VALUE, sizeof(struct by_pair), VALUE, VALUE};

    for (unsigned i = 0; i < 6; byte -= bytes[i++])
        if (byte < bytes[i])
            return part[i] + byte;
    return NULL;
}

/* Bits of a header that only space repairs, or count packets that the shell still sends. */
static int is_spacing(size_t byte, unsigned bit)
{
    return (byte >= offsetof(struct by_bank, told) && byte < offsetof(struct by_bank, seq)) ||
           (byte >= offsetof(struct by_bank, psum) + 4 && byte < offsetof(struct by_bank, count)) ||
           (byte == offsetof(struct by_bank, flags) && (BY_BANK_SPACING >> bit & 1));
}

/* The mode, and whether the last child sends first: its value then waits for the others. */
static const struct flips_way {
    uint8_t mode, backwards;
} ways[] = {{BY_MODE_FAST, 0}, {BY_MODE_DET, 0}, {BY_MODE_DET, 1}};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

/* Runs one chunk with `bit` of `byte` flipped before step `when`. The steps are contributions 0 to
 * 3, then (below the root) the parent's answer, then each child again. */
static void run_flip(const struct rig_entry *entry, struct flips_way way, size_t byte, unsigned bit,
                     unsigned when)
{
    float right[COUNT], down[COUNT];
    uint8_t *at;

    for (unsigned e = 0; e < COUNT; e++) {
        right[e] = 0;
        for (unsigned c = 0; c < 4; c++)
            right[e] += input[c][e] = (float)(1 + e + 16 * c);
        down[e] = 1000 + (float)e;
    }
    memset(&outcome, 0, sizeof(outcome));
    at = byte_at(entry, byte);
    assert_non_null(at);
    for (unsigned step = 0; step < 9; step++) {
        if (step == when) {
            memset(&outcome, 0, sizeof(outcome));
            *at ^= (uint8_t)(1u << bit);
        }
        if (step < 4)
            give(entry, way.backwards ? 3 - step : step, way.mode, right, down);
        else if (step > 4)
            give(entry, step - 5, way.mode, right, down);
        else if (!entry->root)
            answer(entry, way.mode, right, down);
    }
}

static void count_witness(void)
{
    witness_of_all = 0;
    for (unsigned c = 0; c < 4; c++)
        witness_of_all += by_leaf_tag(1, (uint16_t)c);
}

static void fresh(const struct rig_entry *entry)
{
    rig_start(&rig, entry, 1);
    count_witness();
}

/* Loads the same node with a new generation: all its banks are new. */
static void renew(struct rig_entry *entry)
{
    const uint8_t *image;
    size_t bytes;

    entry->gen++;
    image = rig_image(entry, 1, NULL, 0, &bytes);
    assert_int_equal(by_engine_stage(rig.engine, image, bytes, NULL), 0);
    assert_int_equal(by_engine_commit(rig.engine), 0);
}

static void every_flipped_bit_is_named_or_harmless(void **state)
{
    unsigned named = 0, harmless = 0;

    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        struct rig_entry entry = entries[k];

        fresh(&entry);
        for (unsigned w = 0; w < WAYS; w++)
            for (size_t byte = 0; byte < (ways[w].mode == BY_MODE_DET ? WHOLE_DET : WHOLE); byte++)
                for (unsigned bit = 0; bit < 8; bit++)
                    for (unsigned when = 1; when <= 8; when++) {
                        if (byte >= offsetof(struct by_bank, psum) + 4 &&
                            byte < offsetof(struct by_bank, psum) + 7)
                            continue; /* refs: see docs/arithmetic.md */
                        renew(&entry);
                        run_flip(&entry, ways[w], byte, bit, when);
                        if (outcome.wrong != 0 || outcome.other_err != 0 ||
                            (outcome.damaged != 0 && outcome.alarms == 0))
                            fail_msg("%s, %s: bit %u of byte %zu before step %u: %u wrong values, %u other "
                                     "errors, %u damaged packets, %u alarms",
                                     entry.root ? "root" : "below", by_mode_name(ways[w].mode), bit, byte,
                                     when, outcome.wrong, outcome.other_err, outcome.damaged, outcome.alarms);
                        named += outcome.alarms != 0;
                        harmless += outcome.alarms == 0;
                    }
        rig_close(&rig);
    }
    print_message("%u flips named, %u without effect\n", named, harmless);
    assert_true(named > 10000 && harmless > 0);
}

static void a_sealed_header_tells_each_flipped_bit(void **state)
{
    struct by_bank bank = {.have = 5, .want = 4, .seq = 77, .optag = 0xdeadbeef, .state = BY_BANK_AGG};

    (void)state;
    for (size_t byte = 0; byte < sizeof(bank); byte++)
        for (unsigned bit = 0; bit < 8; bit++) {
            by_bank_seal(&bank);
            ((uint8_t *)&bank)[byte] ^= (uint8_t)(1u << bit);
            assert_int_equal(by_bank_is_sealed(&bank), is_spacing(byte, bit));
            ((uint8_t *)&bank)[byte] ^= (uint8_t)(1u << bit);
        }
}

/* After an alarm the whole chunk is void: later packets get the same objection. The bank's next
 * chunk is valid again. */
static void after_an_alarm_the_chunk_stays_void_and_the_next_is_sound(void **state)
{
    const struct rig_entry *entry = &entries[0];

    (void)state;
    fresh(entry);
    run_flip(entry, ways[0], sizeof(struct by_bank) + 3, 6, 2);
    assert_int_equal(outcome.values, 0);
    assert_true(outcome.alarms > 4);
    assert_int_equal(by_engine_counters(rig.engine)->alarm_memory, 1);
    for (unsigned c = 0; c < 4; c++) {
        struct rig_packet packet = rig_contrib(entry, c, 2 * entry->window, input[c], COUNT);

        rig_send(&rig, &packet);
    }
    assert_int_equal(rig.tx_count, 4);
    assert_int_equal(rig_action(&rig, entry, 0, NULL).type, BY_TYPE_RESULT);
    rig_close(&rig);
}

/* A damaged header may belong to any chunk. So a late packet of an old chunk must not hide the
 * damage from children that need the bank's last chunk, and the bank must not sum a later chunk. */
static void a_broken_header_is_told_to_whoever_comes_whatever_the_chunk(void **state)
{
    struct rig_entry entry = entries[1];
    uint32_t window = entry.window;

    (void)state;
    fresh(&entry);
    for (uint32_t seq = 0; seq <= 2 * window; seq += 2 * window) /* the bank's first and second chunks */
        for (unsigned c = 0; c < 4; c++) {
            struct rig_packet packet = rig_contrib(&entry, c, seq, input[c], COUNT);

            rig_send(&rig, &packet);
            rig_release(&rig);
            if (c == 3 && seq == 0) {
                packet = rig_result(&entry, seq, input[0], COUNT);
                rig_send(&rig, &packet);
                rig_release(&rig);
            }
        }
    rig.engine->bank[0].have ^= 2;
    for (uint32_t seq = 0; seq <= 8 * window;
         seq += 2 * window) { /* a late chunk, the chunk in the bank, and later ones */
        struct rig_packet packet = rig_contrib(&entry, 1, seq, input[1], COUNT);
        const uint8_t *payload;
        struct by_err err;

        rig.now_ns += 2 * RIG_INTERVAL_NS;
        rig_send(&rig, &packet);
        assert_true(rig.tx_count >= 2); /* at least the child and the parent */
        for (uint32_t i = 0; i < rig.tx_count; i++) {
            struct by_header header = rig_action(&rig, &entry, i, &payload);

            assert_int_equal(header.type, BY_TYPE_ERR);
            assert_int_equal(header.seq, seq);
            assert_int_equal(by_err_decode(payload, BY_ERR_BYTES, &err), 0);
            assert_int_equal(err.reason, BY_ERR_MEMORY);
            assert_int_equal(err.node, RIG_NODE);
        }
    }
    assert_int_equal(by_engine_counters(rig.engine)->alarm_memory, 1);
    renew(&entry);
    for (unsigned c = 0; c < 4; c++) {
        struct rig_packet packet = rig_contrib(&entry, c, 0, input[c], COUNT);

        rig_send(&rig, &packet);
    }
    assert_int_equal(rig.tx_count, 1);
    assert_int_equal(rig_action(&rig, &entry, 0, NULL).type, BY_TYPE_CONTRIB);
    rig_close(&rig);
}

/* For several nodes below, only the total number of leaves is known. */
static void a_sum_of_too_few_leaves_is_an_alarm(void **state)
{
    const struct rig_entry six = {
        .job = 1, .tree = 0, .gen = 1, .root = 1, .children = 4, .window = 2, .nleaf = 6};
    const struct rig_entry *entry = &six;
    struct by_err err;
    const uint8_t *payload;

    (void)state;
    fresh(entry);
    for (unsigned c = 0; c < 4; c++) {
        struct rig_packet packet = rig_contrib(entry, c, 0, input[c], COUNT);

        packet.header.nleaf = c == 2 ? 2 : 1;
        rig_send(&rig, &packet);
    }
    assert_int_equal(rig.tx_count, 4);
    assert_int_equal(rig_action(&rig, entry, 0, &payload).type, BY_TYPE_ERR);
    assert_int_equal(by_err_decode(payload, BY_ERR_BYTES, &err), 0);
    assert_int_equal(err.reason, BY_ERR_MEMORY);
    rig_close(&rig);
}

/* The child is at fault, not the memory of this node. The node drops the value, and the child stays
 * missing. */
static void a_value_of_other_leaves_than_its_child_has_is_dropped(void **state)
{
    static const struct {
        uint64_t ranks;
        uint16_t nleaf;    /* of all children */
        uint16_t sound[4]; /* what the children send */
        uint16_t wrong[4]; /* values of child 2; the terminating 0 is wrong too */
    } rows[] = {
        {.ranks = 15, .nleaf = 4, .sound = {1, 1, 1, 1}, .wrong = {2, UINT16_MAX, 4}},
        {.ranks = 11, .nleaf = 9, .sound = {1, 1, 6, 1}, .wrong = {5, 7, 1}},
        {.ranks = 3, .nleaf = 9, .sound = {1, 1, 5, 2}, .wrong = {7, 8, UINT16_MAX}},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct rig_entry entry = {.job = 1,
                                        .gen = 1,
                                        .root = 1,
                                        .children = 4,
                                        .window = 2,
                                        .nleaf = rows[i].nleaf,
                                        .ranks = rows[i].ranks};

        fresh(&entry);
        for (unsigned c = 0; c < 4; c++) {
            struct rig_packet packet = rig_contrib(&entry, c, 0, input[c], COUNT);

            for (unsigned k = 0; c == 2 && k < 4; k++) {
                packet.header.nleaf = rows[i].wrong[k];
                rig_send(&rig, &packet);
                rig_expect_drop_of(&rig, drop_leaves);
                assert_int_equal(rig.tx_count, 0);
            }
            packet.header.nleaf = rows[i].sound[c];
            rig_send(&rig, &packet);
        }
        assert_int_equal(rig.tx_count, 4);
        assert_int_equal(rig_action(&rig, &entry, 0, NULL).type, BY_TYPE_RESULT);
        rig_close(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sealed_header_tells_each_flipped_bit),
        cmocka_unit_test(every_flipped_bit_is_named_or_harmless),
        cmocka_unit_test(after_an_alarm_the_chunk_stays_void_and_the_next_is_sound),
        cmocka_unit_test(a_broken_header_is_told_to_whoever_comes_whatever_the_chunk),
        cmocka_unit_test(a_sum_of_too_few_leaves_is_an_alarm),
        cmocka_unit_test(a_value_of_other_leaves_than_its_child_has_is_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
