/*
 * A node with several engines: each chunk is served by exactly one of them, by_engine_workers names
 * it, and what cannot be spread stays together. All engines of a test get every packet, so that
 * only their own filter keeps them apart.
 */
#include <math.h>
#include <stdbool.h>

#include "offload/base/bytes.h"
#include "offload/base/prng.h"
#include "offload/wire/datagram.h"
#include "offload/wire/stripe.h"
#include "tests/unit/offload/engine/rig.h"

#define WINDOW 64u

static const struct rig_entry tree = {
    .job = 1, .tree = 2, .gen = 7, .root = 1, .children = 3, .window = WINDOW};
static const float values[4] = {1, 2, 3, 4}, sums[4] = {3, 6, 9, 12};

static struct engine_rig node[BY_WORKERS_MAX];

static void load_all(unsigned workers, const uint8_t *image, size_t bytes)
{
    struct by_image_fault fault = {0};

    for (unsigned w = 0; w < workers; w++) {
        if (by_engine_stage(node[w].engine, image, bytes, &fault) != 0)
            fail_msg("%s %u: %s", fault.section, fault.index, fault.what);
        assert_int_equal(by_engine_commit(node[w].engine), 0);
    }
}

static void open_all(unsigned workers, const struct rig_entry *entries, uint32_t count)
{
    const uint8_t *image;
    size_t bytes;

    rig_workers = (uint16_t)workers;
    for (unsigned w = 0; w < workers; w++) {
        rig_worker = (uint16_t)w;
        rig_open(&node[w]);
    }
    rig_worker = rig_workers = 0;
    image = rig_image(entries, count, NULL, 0, &bytes);
    load_all(workers, image, bytes);
}

static void close_all(unsigned workers)
{
    for (unsigned w = 0; w < workers; w++)
        rig_close(&node[w]);
}

/* The workers of a packet with this header, as bits. */
static uint64_t workers_of(const uint8_t *data, size_t bytes, uint32_t dst_ip)
{
    const struct by_rx rx = {
        .data = data, .bytes = (uint16_t)bytes, .port = 0, .src_ip = RIG_CHILD_IP, .dst_ip = dst_ip};
    return by_engine_workers(node[0].engine, &rx);
}

static uint64_t worker_of_chunk(const struct rig_entry *entry, uint32_t seq)
{
    struct rig_packet packet = rig_credit(entry, 0, seq, 4, 0);
    uint8_t bytes[BY_WIRE_HEADER_BYTES];

    by_header_encode(&packet.header, bytes);
    return workers_of(bytes, sizeof bytes, RIG_OWN_IP);
}

/* Removes GAPs from the last step's actions: tests that leave out chunks cause them. */
static void forget_requests(struct engine_rig *rig)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < rig->tx_count; i++)
        if (rig->tx[i].header[1] != BY_TYPE_GAP)
            rig->tx[kept++] = rig->tx[i];
    rig->tx_count = kept;
}

/* Sends a chunk's contributions to all engines. Returns those that sent results, as bits. */
static uint64_t serve(unsigned workers, const struct rig_entry *entry, uint32_t seq)
{
    uint64_t served = 0;

    for (unsigned w = 0; w < workers; w++)
        for (unsigned child = 0; child < entry->children; child++) {
            struct rig_packet packet = rig_contrib(entry, child, seq, values, 4);

            rig_send(&node[w], &packet);
            forget_requests(&node[w]);
            if (node[w].tx_count == 0)
                continue;
            assert_int_equal(child, entry->children - 1u);
            rig_expect_results(&node[w], entry, seq, sums, 4);
            rig_release(&node[w]);
            served |= UINT64_C(1) << w;
        }
    return served;
}

static void each_chunk_is_served_by_the_worker_that_the_function_names(void **state)
{
    (void)state;
    for (unsigned workers = 2; workers <= 8; workers++) {
        uint64_t seen = 0, elsewhere = 0;

        open_all(workers, &tree, 1);
        for (uint32_t seq = 0; seq < 6 * WINDOW; seq++) {
            uint32_t lane =
                by_lane(by_lane_first(1u << 16 | 2), by_lane_span(WINDOW, BY_LANE_SHIFT), BY_LANE_SHIFT, seq);
            uint64_t served = serve(workers, &tree, seq);

            assert_int_equal(served, UINT64_C(1) << by_lane_worker(lane, workers));
            assert_int_equal(served, worker_of_chunk(&tree, seq));
            seen |= served;
        }
        assert_int_equal(seen, (UINT64_C(1) << workers) - 1);
        for (unsigned w = 0; w < workers; w++)
            elsewhere += by_engine_counters(node[w].engine)->elsewhere;
        assert_int_equal(elsewhere, 6 * WINDOW * tree.children * (workers - 1));
        close_all(workers);
    }
}

static void the_only_engine_of_a_node_has_all_chunks(void **state)
{
    (void)state;
    rig_start(&node[0], &tree, 1);
    for (uint32_t seq = 0; seq < 4 * WINDOW; seq++) {
        assert_int_equal(serve(1, &tree, seq), 1);
        assert_int_equal(worker_of_chunk(&tree, seq), 1);
    }
    assert_int_equal(by_engine_counters(node[0].engine)->elsewhere, 0);
    close_all(1);
}

/* The first tree's slots for mode DET are behind those of its chunks. */
static void each_entry_is_spread_over_as_many_workers_as_it_has_banks(void **state)
{
    static const uint16_t windows[] = {1, 2, 4, 8, 16, 64};

    (void)state;
    for (unsigned i = 0; i < sizeof windows / sizeof windows[0]; i++)
        for (unsigned workers = 2; workers <= 8; workers++) {
            const struct rig_entry entries[] = {
                {.job = 1, .gen = 7, .root = 1, .children = 3, .window = windows[i], .depth = 2},
                {.job = 1,
                 .tree = 1,
                 .gen = 7,
                 .root = 1,
                 .children = 3,
                 .window = windows[i],
                 .slot_base = 2u * windows[i]}};
            unsigned banks = 2u * windows[i];
            uint64_t seen[2] = {0};

            open_all(workers, entries, 2);
            for (uint32_t seq = 0; seq < 4 * banks; seq++)
                for (unsigned e = 0; e < 2; e++) {
                    uint64_t served = serve(workers, &entries[e], seq);

                    assert_int_equal(served, worker_of_chunk(&entries[e], seq));
                    seen[e] |= served;
                }
            for (unsigned e = 0; e < 2; e++)
                assert_int_equal(__builtin_popcountll(seen[e]), workers < banks ? workers : banks);
            close_all(workers);
        }
}

#define DET_CHILDREN 7u
#define DET_WINDOW   16u
#define DET_COUNT    5u

static const struct rig_entry det = {.job = 1,
                                     .tree = 4,
                                     .gen = 7,
                                     .root = 1,
                                     .children = DET_CHILDREN,
                                     .window = DET_WINDOW,
                                     .depth = (DET_CHILDREN + 1) / 2};
static float det_input[DET_WINDOW][DET_CHILDREN][DET_COUNT];

static void det_draw(struct by_prng *prng)
{
    for (unsigned i = 0; i < DET_WINDOW * DET_CHILDREN * DET_COUNT; i++)
        det_input[i / (DET_CHILDREN * DET_COUNT)][i / DET_COUNT % DET_CHILDREN][i % DET_COUNT] =
            ldexpf((float)by_prng_below(prng, 1u << 24) - 0x1p23f, (int)by_prng_below(prng, 41) - 43);
}

/* The sum in the order that docs/arithmetic.md defines: pairs of children, then the pairs. */
static float det_sum(const float input[DET_CHILDREN][DET_COUNT], unsigned element)
{
    float sum = 0;

    for (unsigned c = 0; c < DET_CHILDREN; c += 2) {
        float pair = input[c][element];

        if (c + 1 < DET_CHILDREN)
            pair += input[c + 1][element];
        sum = c == 0 ? pair : sum + pair;
    }
    return sum;
}

/* Gives all engines one child's contributions to a window of chunks; the last child completes them.
 * Returns the engines that sent results, as bits. */
static uint64_t det_contribute(unsigned workers, unsigned child, uint32_t first, bool last)
{
    uint64_t served = 0;

    for (uint32_t i = 0; i < DET_WINDOW; i++)
        for (unsigned w = 0; w < workers; w++) {
            struct rig_packet packet = rig_contrib(&det, child, first + i, det_input[i][child], DET_COUNT);
            float sums_of_chunk[DET_COUNT];

            packet.header.mode = BY_MODE_DET;
            rig_send(&node[w], &packet);
            forget_requests(&node[w]);
            if (node[w].tx_count == 0)
                continue;
            assert_true(last);
            assert_int_equal(UINT64_C(1) << w, worker_of_chunk(&det, first + i));
            for (unsigned e = 0; e < DET_COUNT; e++)
                sums_of_chunk[e] = det_sum(det_input[i], e);
            assert_int_equal(node[w].tx_count, DET_CHILDREN);
            assert_memory_equal(node[w].tx[0].payload, sums_of_chunk, sizeof sums_of_chunk);
            rig_release(&node[w]);
            served |= UINT64_C(1) << w;
        }
    return served;
}

/* Every chunk of a window waits for its first pair while the values of all other children wait in
 * places, of which each engine has a list of its own. */
static void sums_in_mode_det_have_the_same_bits_with_any_number_of_workers(void **state)
{
    struct by_prng prng = {20260101};

    (void)state;
    for (unsigned workers = 1; workers <= 8; workers++) {
        uint64_t seen = 0;

        if (workers == 1)
            rig_start(&node[0], &det, 1);
        else
            open_all(workers, &det, 1);
        for (uint32_t first = 0; first < 6 * DET_WINDOW; first += DET_WINDOW) {
            det_draw(&prng);
            for (unsigned child = DET_CHILDREN; child-- > 0;)
                seen |= det_contribute(workers, child, first, child == 0);
        }
        assert_int_equal(seen, (UINT64_C(1) << workers) - 1);
        close_all(workers);
    }
}

/* Sends packets of one chunk to all engines, each in a step of its own. Returns the engines that
 * sent `results` packets at the end, as bits. */
static uint64_t serve_packets(unsigned workers, const struct rig_packet *packets, unsigned count,
                              uint32_t results)
{
    uint64_t served = 0;

    for (unsigned w = 0; w < workers; w++)
        for (unsigned i = 0; i < count; i++) {
            rig_send(&node[w], &packets[i]);
            if (node[w].tx_count == 0)
                continue;
            assert_int_equal(i, count - 1);
            assert_int_equal(node[w].tx_count, results);
            for (uint32_t t = 0; t < results; t++)
                assert_int_equal(node[w].tx[t].header[BY_HEADER_AT_TYPE], BY_TYPE_RESULT);
            served |= UINT64_C(1) << w;
        }
    return served;
}

/* The bank of a chunk is one for both trees of a pair, so its worker is, too. */
static void both_trees_of_a_pair_are_served_by_the_worker_of_the_tree_up(void **state)
{
    static const struct rig_entry pair[2] = {
        {.job = 1, .tree = 0, .gen = 7, .root = 1, .children = 2, .window = WINDOW, .nleaf = 3},
        {.job = 1, .tree = 1, .gen = 7, .root = 1, .children = 3, .window = WINDOW, .nleaf = 3, .joined = 1}};

    (void)state;
    assert_int_not_equal(by_lane_first(1u << 16), by_lane_first(1u << 16 | 1));
    for (unsigned workers = 2; workers <= 8; workers++) {
        uint64_t seen = 0;

        open_all(workers, pair, 2);
        for (uint32_t seq = 0; seq < 3 * WINDOW; seq++) {
            struct rig_packet packets[5];
            uint64_t served;

            for (unsigned c = 0; c < 3; c++)
                packets[c] = rig_credit(&pair[1], c, seq, 4, 0);
            for (unsigned c = 0; c < 2; c++) {
                packets[3 + c] = rig_contrib(&pair[0], c, seq, values, 4);
                packets[3 + c].header.flags = BY_FLAG_ACKONLY;
                packets[3 + c].header.nleaf = c == 0 ? 2 : 1;
            }
            served = serve_packets(workers, packets, 5, 5);
            assert_int_equal(served, worker_of_chunk(&pair[0], seq));
            assert_int_equal(served, worker_of_chunk(&pair[1], seq));
            seen |= served;
            for (unsigned w = 0; w < workers; w++)
                if (served >> w & 1)
                    rig_release(&node[w]);
        }
        assert_int_equal(seen, (UINT64_C(1) << workers) - 1);
        close_all(workers);
    }
}

/* The slots of an entry's further sets of children have the lanes of their chunks. */
static void an_entry_of_more_than_64_children_is_spread(void **state)
{
    static const struct rig_entry wide = {
        .job = 1, .tree = 3, .gen = 7, .root = 1, .children = 70, .window = 16};
    uint64_t seen = 0;

    (void)state;
    open_all(4, &wide, 1);
    for (uint32_t seq = 0; seq < 4 * 16; seq++) {
        struct rig_packet packets[70];
        uint64_t served;

        for (unsigned c = 0; c < 70; c++)
            packets[c] = rig_contrib(&wide, c, seq, values, 4);
        served = serve_packets(4, packets, 70, 70);
        assert_int_equal(served, worker_of_chunk(&wide, seq));
        seen |= served;
        for (unsigned w = 0; w < 4; w++)
            if (served >> w & 1) {
                float sum;

                memcpy(&sum, node[w].tx[69].payload, sizeof sum);
                assert_true(sum == 70 * values[0]);
                rig_release(&node[w]);
            }
    }
    assert_int_equal(seen, 15);
    close_all(4);
}

/* Writes `count` credits of consecutive chunks. */
static size_t credits(uint8_t *bytes, uint32_t seq, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct rig_packet packet = rig_credit(&tree, 0, seq + i, 4, 0);

        by_header_encode(&packet.header, bytes + i * BY_WIRE_HEADER_BYTES);
    }
    return (size_t)count * BY_WIRE_HEADER_BYTES;
}

static void a_datagram_goes_to_each_worker_that_has_packets_of_it(void **state)
{
    uint8_t bytes[BY_DATAGRAM_PACKETS_MAX * BY_WIRE_HEADER_BYTES];
    uint64_t contributions = 0, named;

    (void)state;
    open_all(3, &tree, 1);
    named = workers_of(bytes, credits(bytes, 4, 16), RIG_OWN_IP); /* 4 to 7, 8 to 15, 16 to 19 */
    assert_int_equal(named, 7);
    for (unsigned w = 0; w < 3; w++) {
        rig_send_bytes(&node[w], bytes, sizeof bytes, 0, RIG_CHILD_IP, RIG_OWN_IP);
        assert_in_range(by_engine_counters(node[w].engine)->contrib, 4, 8);
        contributions += by_engine_counters(node[w].engine)->contrib;
    }
    assert_int_equal(contributions, 16);
    assert_int_equal(__builtin_popcountll(workers_of(bytes, credits(bytes, 8, 8), RIG_OWN_IP)), 1);
    close_all(3);
}

static void a_datagram_for_others_goes_to_one_worker(void **state)
{
    static const struct by_image_relay relay = {1, 3, 0x0d000001, 0x0d000002, 4, 4};
    uint8_t bytes[BY_DATAGRAM_PACKETS_MAX * BY_WIRE_HEADER_BYTES];
    size_t image_bytes, size;
    const uint8_t *image;

    (void)state;
    open_all(3, &tree, 1);
    image = rig_image(&tree, 1, &relay, 1, &image_bytes);
    load_all(3, image, image_bytes);
    size = credits(bytes, 4, 16);
    assert_int_equal(__builtin_popcountll(workers_of(bytes, size, 0x0d000002)), 1);
    by_put16(bytes + BY_HEADER_AT_TREE, 3); /* no entry: the receiver relays it */
    for (unsigned w = 0; w < 3; w++) {
        const struct by_rx rx = {
            .data = bytes, .bytes = (uint16_t)size, .port = 3, .src_ip = 0x0d000001, .dst_ip = 0x0d000002};
        assert_int_equal(by_engine_workers(node[w].engine, &rx), 1u << w);
    }
    /* Fewer bytes than a header name no tree. */
    assert_int_equal(workers_of(bytes, BY_WIRE_HEADER_BYTES - 1, RIG_OWN_IP), 1);
    close_all(3);
}

/* An image in which job 1 has a share of a port with a rate. */
static const uint8_t *shared_image(const struct rig_entry *entry, size_t *bytes)
{
    uint8_t *image = (uint8_t *)(uintptr_t)rig_image(entry, 1, NULL, 0, bytes);
    struct by_image_port port;
    struct by_image_job job;

    by_image_job(image, 0, &job);
    job.share = BY_SHARE_ONE / 2;
    by_image_put_job(image, 0, &job);
    by_image_port(image, 0, &port);
    port.rate_in = port.rate_out = 1000000;
    by_image_put_port(image, 0, &port);
    by_image_seal(image);
    return image;
}

/* Entries have the same workers with and without shares, so one that runs keeps its banks. */
static void a_table_with_shares_is_served_by_all_workers(void **state)
{
    struct rig_entry next = tree;
    const uint8_t *image;
    size_t bytes;
    uint64_t seen = 0;

    (void)state;
    open_all(4, &tree, 1);
    image = shared_image(&tree, &bytes);
    load_all(4, image, bytes);
    for (uint32_t seq = 0; seq < 3 * WINDOW; seq++)
        assert_int_equal(serve(4, &tree, seq), worker_of_chunk(&tree, seq));
    next.gen++;
    image = shared_image(&next, &bytes);
    load_all(4, image, bytes);
    for (uint32_t seq = 0; seq < 3 * WINDOW; seq++) {
        uint64_t served = serve(4, &next, seq);

        assert_int_equal(served, worker_of_chunk(&next, seq));
        seen |= served;
    }
    assert_int_equal(seen, 15);
    /* What has no entry is metered by the worker of its lane, whichever receives it. */
    next.job = 9;
    for (uint32_t seq = 0; seq < 64; seq++)
        assert_int_equal(
            worker_of_chunk(&next, seq),
            1u << by_lane_worker(by_lane(by_lane_first(9u << 16 | 2), BY_LANES, BY_LANE_SHIFT, seq), 4));
    close_all(4);
}

/* While the engines activate a table one after the other, chunks of the old generation are served
 * by engines with the old table only, those of the new one by engines with the new one. */
static void no_chunk_is_served_by_two_generations(void **state)
{
    struct rig_entry next = tree;
    size_t bytes;
    const uint8_t *image;
    struct by_bank_view view;

    (void)state;
    next.gen++;
    open_all(4, &tree, 1);
    image = rig_image(&next, 1, NULL, 0, &bytes);
    for (unsigned w = 0; w < 4; w++)
        assert_int_equal(by_engine_stage(node[w].engine, image, bytes, NULL), 0);
    for (unsigned done = 0; done <= 4; done++) {
        uint64_t new_ones = (UINT64_C(1) << done) - 1;

        for (uint32_t seq = done; seq < WINDOW; seq += 5) {
            uint64_t owner = worker_of_chunk(&tree, seq);

            assert_int_equal(serve(4, &tree, seq), owner & ~new_ones);
            assert_int_equal(serve(4, &next, seq), owner & new_ones);
        }
        if (done < 4)
            assert_int_equal(by_engine_commit(node[done].engine), 0);
    }
    for (uint32_t slot = 0, mine = 0; slot < WINDOW; slot++, mine = 0) {
        for (unsigned w = 0; w < 4; w++)
            mine += by_engine_bank(node[w].engine, 0, slot, 0, &view) == 0;
        assert_int_equal(mine, 1);
    }
    close_all(4);
}

static void the_oldest_open_chunk_is_one_of_the_workers_own(void **state)
{
    struct by_bank_view view;
    uint32_t least = UINT32_MAX;

    (void)state;
    open_all(2, &tree, 1);
    for (uint32_t seq = 0; seq < WINDOW; seq++)
        for (unsigned w = 0; w < 2; w++) {
            struct rig_packet packet = rig_contrib(&tree, 0, seq, values, 4);

            rig_send(&node[w], &packet);
        }
    for (unsigned w = 0; w < 2; w++) {
        assert_int_equal(by_engine_oldest(node[w].engine, 0, &view), 0);
        assert_int_equal(worker_of_chunk(&tree, view.seq), 1u << w);
        least = view.seq < least ? view.seq : least;
    }
    assert_int_equal(least, 0);
    close_all(2);
}

/* Gives all engines what child 0 contributes to chunks [first, end). */
static void contribute(uint32_t first, uint32_t end)
{
    for (uint32_t seq = first; seq < end; seq++)
        for (unsigned w = 0; w < 2; w++) {
            struct rig_packet packet = rig_contrib(&tree, 0, seq, values, 4);

            rig_send(&node[w], &packet);
        }
}

static void a_worker_requests_only_lost_chunks_of_its_own(void **state)
{
    unsigned owner;

    (void)state;
    open_all(2, &tree, 1);
    owner = worker_of_chunk(&tree, 7) == 2;
    contribute(0, 7); /* chunk 7 is lost; the next ones belong to the other worker */
    contribute(8, 16);
    assert_int_equal(by_engine_counters(node[owner].engine)->gap, 0);
    contribute(16, 32);
    assert_int_equal(by_engine_counters(node[owner].engine)->gap, 1);
    assert_int_equal(by_engine_counters(node[!owner].engine)->gap, 0);
    close_all(2);
}

static void a_request_is_answered_by_the_worker_of_its_first_chunk(void **state)
{
    struct rig_packet packet = rig_credit(&tree, 1, 6, 0, 0);
    struct by_gap gap = {.seen = 9, .missing = 7}; /* 6, 7 and 8, which is another worker's, like 9 */
    uint8_t payload[BY_GAP_BYTES];

    (void)state;
    open_all(2, &tree, 1);
    for (uint32_t seq = 0; seq < 16; seq++)
        assert_int_equal(serve(2, &tree, seq), worker_of_chunk(&tree, seq));
    by_gap_encode(&gap, payload);
    packet.header.type = BY_TYPE_GAP;
    packet.header.flags = 0;
    packet.payload = payload;
    packet.bytes = BY_GAP_BYTES;
    for (unsigned w = 0; w < 2; w++) {
        rig_send(&node[w], &packet);
        assert_int_equal(node[w].tx_count, worker_of_chunk(&tree, 6) == UINT64_C(1) << w ? 2 : 0);
        for (uint32_t i = 0; i < node[w].tx_count; i++)
            assert_int_equal(rig_action(&node[w], &tree, i, NULL).seq, 6 + i);
    }
    close_all(2);
}

static void a_config_with_a_worker_out_of_range_is_refused(void **state)
{
    struct by_engine_config config = {
        .slot_count_max = 8, .payload_max = 64, .image_bytes_max = 4096, .entry_count_max = 1};

    (void)state;
    assert_true(by_engine_size(&config) > 0);
    config.worker = 1;
    assert_int_equal(by_engine_size(&config), 0);
    config.worker_count = 1;
    assert_int_equal(by_engine_size(&config), 0);
    config.worker_count = 2;
    assert_true(by_engine_size(&config) > 0);
    config.worker_count = BY_WORKERS_MAX + 1;
    assert_int_equal(by_engine_size(&config), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_chunk_is_served_by_the_worker_that_the_function_names),
        cmocka_unit_test(the_only_engine_of_a_node_has_all_chunks),
        cmocka_unit_test(each_entry_is_spread_over_as_many_workers_as_it_has_banks),
        cmocka_unit_test(sums_in_mode_det_have_the_same_bits_with_any_number_of_workers),
        cmocka_unit_test(both_trees_of_a_pair_are_served_by_the_worker_of_the_tree_up),
        cmocka_unit_test(an_entry_of_more_than_64_children_is_spread),
        cmocka_unit_test(a_datagram_goes_to_each_worker_that_has_packets_of_it),
        cmocka_unit_test(a_datagram_for_others_goes_to_one_worker),
        cmocka_unit_test(a_table_with_shares_is_served_by_all_workers),
        cmocka_unit_test(no_chunk_is_served_by_two_generations),
        cmocka_unit_test(the_oldest_open_chunk_is_one_of_the_workers_own),
        cmocka_unit_test(a_worker_requests_only_lost_chunks_of_its_own),
        cmocka_unit_test(a_request_is_answered_by_the_worker_of_its_first_chunk),
        cmocka_unit_test(a_config_with_a_worker_out_of_range_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
