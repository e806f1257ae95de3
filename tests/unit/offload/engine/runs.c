/*
 * A step that is given many packets has the effect of as many steps with one packet each, although
 * it takes contributions to one chunk as a run. Two engines get the same random packets, right and
 * wrong ones, in both ways; their actions and counters are compared.
 */
#include "tests/unit/offload/engine/rig.h"

#include <stdio.h>
#include <time.h>

#include "offload/base/prng.h"

#define BURSTS  4000u
#define MOST    48u /* packets of a burst */
#define COUNT   21u /* elements: vectors and a rest */
#define TX_ALL  4096u
#define ENTRIES 4u

/* A root with few children, a node with more than one gather takes, a root of pairs (mode DET), and
 * a node of halves. */
static const struct rig_entry entries[ENTRIES] = {
    {.job = 1, .tree = 0, .gen = 1, .root = 1, .children = 4, .window = 4, .slot_base = 0},
    {.job = 1, .tree = 1, .gen = 1, .children = 12, .window = 4, .slot_base = 8},
    {.job = 1, .tree = 2, .gen = 1, .root = 1, .children = 5, .window = 4, .slot_base = 16, .depth = 3},
    {.job = 1, .tree = 3, .gen = 1, .children = 8, .window = 4, .slot_base = 32}};

struct runs_action {
    uint8_t header[BY_WIRE_HEADER_BYTES];
    uint8_t payload[RIG_PAYLOAD];
    uint16_t bytes, port;
    uint32_t dst_ip, ref;
};

/* An engine and the actions of the current burst. */
struct runs_side {
    struct engine_rig rig;
    struct runs_action action[TX_ALL];
    uint32_t count;
};

static struct runs_side single, many;
static struct by_prng prng;
static uint32_t first[ENTRIES]; /* the oldest chunk of each entry that still gets packets */

static uint32_t below(uint32_t bound)
{
    return (uint32_t)by_prng_below(&prng, bound);
}

/* Passes over chunks that need no more packets. */
static void advance(uint32_t index)
{
    uint32_t window = entries[index].window;
    struct by_bank_view view;

    while (by_engine_bank(single.rig.engine, index, first[index] % window, first[index] / window % 2,
                          &view) == 0 &&
           view.seq == first[index] && (view.state == BY_BANK_DONE || view.state == BY_BANK_POISON))
        first[index]++;
}

static struct rig_packet draw(uint8_t *payload)
{
    uint32_t index = below(ENTRIES), seq, kind = below(100);
    const struct rig_entry *entry = &entries[index];
    struct rig_packet packet;
    float values[COUNT];

    seq = first[index] + below(3);
    for (unsigned i = 0; i < COUNT; i++)
        values[i] = (float)(int)below(1000) - 500;
    memcpy(payload, values, sizeof values);
    if (kind < 15)
        packet = rig_credit(entry, below(entry->children), seq, COUNT, below(2) ? BY_FLAG_ACKONLY : 0);
    else if (kind < 20 && !entry->root)
        packet = rig_result(entry, seq, (const float *)payload, COUNT);
    else
        packet = rig_contrib(entry, below(entry->children), seq, (const float *)payload, COUNT);
    packet.header.mode = entry->depth ? BY_MODE_DET : BY_MODE_FAST;
    if (index == 3) {
        packet.header.dtype = BY_DTYPE_BF16;
        packet.bytes /= 2;
    }
    packet.header.psum = by_psum(payload, packet.bytes);
    packet.psum_as_given = 1;
    switch (below(120)) { /* few are wrong, so that most chunks are completed */
    case 0:
    case 1:
    case 2:
        packet.header.psum ^= 1;
        break;
    case 3:
        packet.src_ip++;
        break;
    case 4:
        packet.header.nleaf = 3;
        break;
    case 5:
        packet.header.optag ^= below(8) == 0;
        break;
    case 6:
        packet.header.child = 60;
        break;
    case 7:
        packet.bytes = (uint16_t)(packet.bytes / 2);
        break;
    case 8:
        packet.header.flags |= BY_FLAG_RETX;
        break;
    case 9:
        packet.header.gen++;
        break;
    case 10:
        packet.direct = 1;
        break;
    case 11:
        packet.header.count = (uint16_t)(packet.header.count - (below(8) == 0));
        break;
    case 12:
        packet.header.op = below(8) == 0 ? BY_OP_MAX : packet.header.op;
        break;
    default:
        break;
    }
    return packet;
}

static void collect(struct runs_side *side)
{
    for (uint32_t i = 0; i < side->rig.tx_count; i++) {
        const struct by_tx *tx = &side->rig.tx[i];
        struct runs_action *action = &side->action[side->count++];

        assert_true(side->count < TX_ALL);
        memcpy(action->header, tx->header, BY_WIRE_HEADER_BYTES);
        memcpy(action->payload, tx->payload ? tx->payload : tx->small, tx->payload_bytes);
        action->bytes = tx->payload_bytes;
        action->port = tx->port;
        action->dst_ip = tx->dst_ip;
        action->ref = tx->ref;
    }
}

/* Gives `count` packets, at most `each` in a step. */
static void give(struct runs_side *side, const struct by_rx *rx, uint32_t count, uint32_t each)
{
    side->count = 0;
    for (uint32_t done = 0; done < count;) {
        uint32_t most = count - done < each ? count - done : each;

        done += by_engine_step(side->rig.engine, side->rig.now_ns, rx + done, most, side->rig.tx, RIG_TX,
                               &side->rig.tx_count);
        collect(side);
    }
    side->rig.now_ns += RIG_INTERVAL_NS / 8;
}

static void release(struct runs_side *side)
{
    for (uint32_t i = 0; i < side->count; i++)
        if (side->action[i].ref != BY_REF_NONE)
            by_engine_release(side->rig.engine, side->action[i].ref);
}

static int is_same(const struct runs_action *a, const struct runs_action *b)
{
    return memcmp(a->header, b->header, BY_WIRE_HEADER_BYTES) == 0 && a->bytes == b->bytes &&
           memcmp(a->payload, b->payload, a->bytes) == 0 && a->port == b->port && a->dst_ip == b->dst_ip &&
           a->ref == b->ref;
}

/* Sorts packets by entry and chunk, as a shell does; equal ones keep their order. */
static void sort(struct rig_packet *packet, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t j = i; j > 0; j--) {
            const struct by_header *a = &packet[j - 1].header, *b = &packet[j].header;
            struct rig_packet kept = packet[j];

            if (a->tree < b->tree || (a->tree == b->tree && a->seq <= b->seq))
                break;
            packet[j] = packet[j - 1];
            packet[j - 1] = kept;
        }
}

static void burst(void)
{
    static uint8_t payload[MOST][4 * COUNT], data[MOST][BY_WIRE_HEADER_BYTES + 4 * COUNT];
    struct rig_packet packet[MOST];
    struct by_rx rx[MOST];
    uint32_t count = 1 + below(MOST);

    for (uint32_t i = 0; i < ENTRIES; i++)
        advance(i);
    for (uint32_t i = 0; i < count; i++)
        packet[i] = draw(payload[i]);
    if (below(4) != 0)
        sort(packet, count);
    for (uint32_t i = 0; i < count; i++) {
        by_header_encode(&packet[i].header, data[i]);
        if (packet[i].bytes > 0)
            memcpy(data[i] + BY_WIRE_HEADER_BYTES, packet[i].payload, packet[i].bytes);
        rx[i] = (struct by_rx){.data = data[i],
                               .bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + packet[i].bytes),
                               .port = packet[i].port,
                               .src_ip = packet[i].src_ip,
                               .dst_ip = packet[i].dst_ip,
                               .direct = packet[i].direct};
    }
    give(&single, rx, count, 1);
    give(&many, rx, count, count);
    assert_int_equal(single.count, many.count);
    for (uint32_t i = 0; i < single.count; i++)
        assert_true(is_same(&single.action[i], &many.action[i]));
    assert_memory_equal(by_engine_counters(single.rig.engine), by_engine_counters(many.rig.engine),
                        sizeof(struct by_engine_counters));
    release(&single);
    release(&many);
}

static void a_step_of_many_packets_is_as_many_steps_of_one(void **state)
{
    const char *text = getenv("BY_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
    const struct by_engine_counters *counters;

    (void)state;
    printf("replay: BY_TEST_SEED=%llu build/release/tests/unit-engine-runs\n", (unsigned long long)seed);
    prng = (struct by_prng){seed};
    rig_start(&single.rig, entries, ENTRIES);
    rig_start(&many.rig, entries, ENTRIES);
    for (uint32_t i = 0; i < BURSTS; i++)
        burst();
    counters = by_engine_counters(many.rig.engine);
    printf("%llu contributions, %llu with a wrong psum, %llu duplicates, %llu complete, %llu up\n",
           (unsigned long long)counters->contrib, (unsigned long long)counters->drop_psum,
           (unsigned long long)counters->duplicate, (unsigned long long)counters->complete,
           (unsigned long long)counters->up);
    assert_true(counters->complete > BURSTS / 8 && counters->up > BURSTS / 32 && counters->drop_psum > 100 &&
                counters->poison > 0);
    rig_close(&single.rig);
    rig_close(&many.rig);
}

static void a_damaged_value_among_others_of_its_chunk_is_lost_alone(void **state)
{
    static uint8_t data[4][BY_WIRE_HEADER_BYTES + 4 * COUNT];
    struct by_engine_counters before;
    struct engine_rig rig;
    struct by_rx rx[4];
    float values[COUNT];

    (void)state;
    rig_start(&rig, entries, ENTRIES);
    for (unsigned c = 0; c < 4; c++) {
        struct rig_packet packet = rig_contrib(&entries[0], c, 0, values, COUNT);

        for (unsigned i = 0; i < COUNT; i++)
            values[i] = (float)(i + c);
        packet.header.psum = by_psum(values, sizeof values) + (c == 2); /* the third is damaged */
        by_header_encode(&packet.header, data[c]);
        memcpy(data[c] + BY_WIRE_HEADER_BYTES, values, sizeof values);
        rx[c] = (struct by_rx){.data = data[c],
                               .bytes = sizeof data[c],
                               .port = packet.port,
                               .src_ip = packet.src_ip,
                               .dst_ip = packet.dst_ip};
    }
    before = *by_engine_counters(rig.engine);
    assert_int_equal(by_engine_step(rig.engine, rig.now_ns, rx, 4, rig.tx, RIG_TX, &rig.tx_count), 4);
    assert_int_equal(rig.tx_count, 0);
    assert_int_equal(by_engine_counters(rig.engine)->contrib - before.contrib, 3);
    assert_int_equal(by_engine_counters(rig.engine)->drop_psum - before.drop_psum, 1);
    {
        struct rig_packet packet = rig_contrib(&entries[0], 2, 0, values, COUNT);
        float sums[COUNT];

        for (unsigned i = 0; i < COUNT; i++) {
            values[i] = (float)(i + 2);
            sums[i] = (float)(4 * i + 6);
        }
        rig_send(&rig, &packet);
        rig_expect_results(&rig, &entries[0], 0, sums, COUNT);
    }
    rig_close(&rig);
}

/* ---- mode DET ---- */

#define DET_COUNT  45u /* elements: of f16 and bf16 a whole block and a rest */
#define DET_CHUNKS 24u /* for each number of children */
#define DET_BYTES  (8u * DET_COUNT)

/* A chunk of mode DET: what each child contributes, and the packets in the order of their
 * arrival. */
struct runs_chunk {
    uint8_t op, dtype;
    unsigned children;
    uint64_t data; /* children that contribute values */
    uint8_t value[BY_CHILDREN_MAX][DET_BYTES];
    uint8_t right[DET_BYTES]; /* the sum as it leaves the node */
    uint8_t packet[2 * BY_CHILDREN_MAX][BY_WIRE_HEADER_BYTES + DET_BYTES];
    struct by_rx rx[2 * BY_CHILDREN_MAX];
    uint32_t count;
};

/* Values at which the order, the sign of a zero or the bits of a NaN are visible, and others. */
static void draw_value(uint8_t *value, unsigned dtype)
{
    static const uint32_t special[] = {0x00000000, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                       0xffc12345, 0x7f812345, 0x00000001, 0x7f7fffff, 0x33800000};
    unsigned size = by_dtype_bytes(dtype);

    for (unsigned i = 0; i < DET_COUNT; i++) {
        uint32_t bits = below(8) == 0 ? special[below(sizeof(special) / sizeof(*special))]
                                      : (uint32_t)by_prng_next(&prng) % 0x08000000u + 0x3c000000u;
        uint64_t element = bits;

        if (dtype == BY_DTYPE_F64) /* the same exponent, fraction and sign, and more digits */
            element = (uint64_t)(bits & 0x80000000u) << 32 | (uint64_t)(bits & 0x7fffffffu) << 29 |
                      ((bits & 0x7f800000u) == 0x7f800000u ? UINT64_C(0x7ff0000000000000) : below(1u << 29));
        else if (dtype == BY_DTYPE_BF16)
            element = bits >> 16;
        else if (dtype == BY_DTYPE_F16)
            element = (bits & 0x80000000u) >> 16 | (bits >> 13 & 0x7fffu);
        memcpy(value + i * size, &element, size);
    }
}

/* Adds one pair after another by the scalar kernels. */
static void sum_pairs(struct runs_chunk *chunk)
{
    static uint8_t pair[8 * DET_COUNT], acc[8 * DET_COUNT];
    const struct by_reducer *scalar = by_reducer_get(BY_ISA_SCALAR, chunk->op, chunk->dtype);
    const struct by_reducer *fold =
        by_reducer_get(BY_ISA_SCALAR, chunk->op, scalar->acc_bytes == 4 ? BY_DTYPE_F32 : chunk->dtype);
    uint32_t guard = 0, pair_guard = 0;
    int begun = 0;

    for (unsigned p = 0; 2 * p < chunk->children; p++) {
        int held = 0;

        for (unsigned c = 2 * p; c < 2 * p + 2 && c < chunk->children; c++) {
            if (!(chunk->data >> c & 1))
                continue;
            if (held)
                assert_true(scalar->accumulate(pair, chunk->value[c], DET_COUNT, &pair_guard));
            else
                pair_guard = scalar->load(pair, chunk->value[c], DET_COUNT);
            held = 1;
        }
        if (held && begun) {
            assert_true(fold->accumulate(acc, pair, DET_COUNT, &guard));
        } else if (held) {
            memcpy(acc, pair, sizeof(acc));
            guard = pair_guard;
            begun = 1;
        }
    }
    assert_true(scalar->store(acc, DET_COUNT, &guard));
    memcpy(chunk->right, acc, (size_t)DET_COUNT * scalar->element_bytes);
}

static void put_packet(struct runs_chunk *chunk, const struct rig_entry *entry, unsigned child, uint32_t seq,
                       int damaged)
{
    uint8_t *data = chunk->packet[chunk->count];
    int empty = !(chunk->data >> child & 1);
    struct rig_packet packet =
        empty ? rig_credit(entry, child, seq, DET_COUNT, 0) : rig_contrib(entry, child, seq, NULL, DET_COUNT);
    uint16_t bytes = empty ? 0 : (uint16_t)(DET_COUNT * by_dtype_bytes(chunk->dtype));
    struct by_rx *rx = &chunk->rx[chunk->count++];

    packet.header.op = chunk->op;
    packet.header.dtype = chunk->dtype;
    packet.header.mode = BY_MODE_DET;
    packet.header.psum = by_psum(chunk->value[child], bytes) + (damaged && !empty);
    memcpy(data + BY_WIRE_HEADER_BYTES, chunk->value[child], bytes);
    by_header_encode(&packet.header, data);
    *rx = (struct by_rx){.data = data,
                         .bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + bytes),
                         .port = packet.port,
                         .src_ip = packet.src_ip,
                         .dst_ip = packet.dst_ip,
                         .payload = bytes > 0 && below(6) == 0 ? data + BY_WIRE_HEADER_BYTES : NULL,
                         .direct = !damaged && below(6) == 0};
}

/* Draws the contributions of a chunk, which arrive in any order; some arrive damaged first. */
static void draw_chunk(struct runs_chunk *chunk, const struct rig_entry *entry, uint32_t seq)
{
    static const uint8_t dtypes[] = {BY_DTYPE_F16, BY_DTYPE_BF16, BY_DTYPE_F32, BY_DTYPE_F64};
    unsigned order[BY_CHILDREN_MAX];

    chunk->op = seq % 2 ? BY_OP_PROD : BY_OP_SUM;
    chunk->dtype = dtypes[seq / 2 % 4];
    chunk->children = entry->children;
    chunk->count = 0;
    chunk->data = below(3) == 0 ? by_prng_next(&prng) | UINT64_C(1) << below(entry->children) : UINT64_MAX;
    for (unsigned c = 0; c < entry->children; c++) {
        unsigned place = below(c + 1);

        order[c] = order[place];
        order[place] = c;
        draw_value(chunk->value[c], chunk->dtype);
    }
    if (below(4) == 0) /* in order */
        for (unsigned c = 0; c < entry->children; c++)
            order[c] = c;
    for (unsigned i = 0; i < entry->children; i++) {
        int twice = below(12) == 0 && chunk->data >> order[i] & 1;

        if (twice)
            put_packet(chunk, entry, order[i], seq, 1);
        put_packet(chunk, entry, order[i], seq, 0);
    }
    sum_pairs(chunk);
}

static void runs_in_any_order_and_parts_have_the_bits_of_pairs_that_are_added_one_by_one(void **state)
{
    static struct runs_chunk chunk;
    const char *text = getenv("BY_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
    static struct runs_side side;

    (void)state;
    printf("replay: BY_TEST_SEED=%llu build/release/tests/unit-engine-runs\n", (unsigned long long)seed);
    prng = (struct by_prng){seed};
    for (unsigned children = 3; children <= BY_CHILDREN_MAX; children++) {
        struct rig_entry entry = {.job = 1,
                                  .gen = 1,
                                  .root = 1,
                                  .children = (uint16_t)children,
                                  .window = 4,
                                  .depth = (uint8_t)by_image_det_depth(children)};

        rig_start(&side.rig, &entry, 1);
        for (uint32_t seq = 0; seq < DET_CHUNKS; seq++) {
            draw_chunk(&chunk, &entry, seq);
            side.count = 0;
            for (uint32_t done = 0; done < chunk.count;) {
                uint32_t most = below(3) == 0 ? chunk.count : 1 + below(12);

                most = most < chunk.count - done ? most : chunk.count - done;
                done += by_engine_step(side.rig.engine, side.rig.now_ns, chunk.rx + done, most, side.rig.tx,
                                       RIG_TX, &side.rig.tx_count);
                collect(&side);
            }
            assert_int_equal(side.count, children);
            for (unsigned c = 0; c < children; c++)
                if (side.action[c].bytes > 0 &&
                    memcmp(side.action[c].payload, chunk.right, side.action[c].bytes) != 0)
                    fail_msg("%u children, chunk %u: %s of %s differs at child %u", children, seq,
                             by_op_name(chunk.op), by_dtype_name(chunk.dtype), c);
            release(&side);
        }
        assert_int_equal(by_engine_counters(side.rig.engine)->alarm_memory, 0);
        assert_true(by_engine_counters(side.rig.engine)->drop_psum > 0 || children < 16);
        rig_close(&side.rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_of_many_packets_is_as_many_steps_of_one),
        cmocka_unit_test(a_damaged_value_among_others_of_its_chunk_is_lost_alone),
        cmocka_unit_test(runs_in_any_order_and_parts_have_the_bits_of_pairs_that_are_added_one_by_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
