/* Geometry: which trees serve a call, how its bytes are divided among them, how a segment is
 * divided into chunks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/endpoint/state.h"
#include "tests/unit/offload/endpoint/rig.h"

#define AR (1u << BY_COLLECTIVE_ALLREDUCE)
#define RS (1u << BY_COLLECTIVE_REDUCE_SCATTER)
#define AG (1u << BY_COLLECTIVE_ALLGATHER)
#define BC (1u << BY_COLLECTIVE_BROADCAST)
#define RE (1u << BY_COLLECTIVE_REDUCE)
#define BA (1u << BY_COLLECTIVE_BARRIER)

static void scaling_is_exact_for_numbers_of_any_size(void **state)
{
    static const uint64_t values[] = {0,
                                      1,
                                      2,
                                      3,
                                      63,
                                      64,
                                      1000003,
                                      UINT32_MAX,
                                      (uint64_t)UINT32_MAX + 1,
                                      (UINT64_C(1) << 45) - 1,
                                      UINT64_C(123456789012345),
                                      UINT64_C(1) << 61,
                                      (UINT64_C(1) << 62) - 1};
    unsigned count = sizeof(values) / sizeof(values[0]);

    (void)state;
    for (unsigned a = 0; a < count; a++)
        for (unsigned c = 1; c < count; c++)
            for (unsigned b = 0; b <= c; b++) {
                unsigned __int128 exact = (unsigned __int128)values[a] * values[b] / values[c];

                assert_int_equal(by_share_scale(values[a], values[b], values[c]), (uint64_t)exact);
            }
}

/* The ends of a call's segments on trees with these shares. */
struct split_row {
    uint64_t total;
    uint32_t share[4];
    uint64_t end[4];
};

static void a_call_is_split_in_proportion_at_multiples_of_64_bytes(void **state)
{
    static const struct split_row rows[] = {
        {1024, {1, 1}, {512, 1024}},
        {1000, {1, 1}, {512, 1000}},
        {100, {1, 1, 1}, {64, 100, 100}},
        {63, {1, 1}, {63, 63}},
        {64, {1, 1}, {64, 64}},
        {65, {1, 1}, {64, 65}},
        {0, {1, 2}, {0, 0}},
        {4096, {1, 2, 1}, {1024, 3072, 4096}},
        {6400, {1, 0xffffffff, 3}, {64, 6400, 6400}},
    };

    (void)state;
    for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct endpoint_rig *rig = malloc(sizeof(*rig));
        struct rig_tree trees[4] = {{0}};
        int count = 0;
        uint64_t at = 0;

        while (count < 4 && rows[r].share[count] > 0) {
            trees[count].share = rows[r].share[count];
            count++;
        }
        rig_open(rig, 2, trees, count, NULL);
        for (int t = 0; t < count; t++) {
            uint64_t start, end;

            by_share_segment(rig->endpoint, &rig->endpoint->lanes[t], BY_GROUP_ALLREDUCE, rows[r].total,
                             &start, &end);
            assert_int_equal(start, at);
            assert_int_equal(end, rows[r].end[t]);
            at = end;
        }
        assert_int_equal(at, rows[r].total);
        rig_close(rig);
        free(rig);
    }
}

struct group_row {
    struct rig_tree trees[4];
    unsigned collective;
    uint32_t rank;
    unsigned members; /* one bit for each tree that serves it */
};

static void a_call_goes_to_the_trees_planned_for_it_then_to_those_of_allreduce(void **state)
{
    static const struct group_row rows[] = {
        {{{.collectives = AR}, {.collectives = AR}}, BY_COLLECTIVE_ALLREDUCE, 0, 3},
        {{{.collectives = AR}, {.collectives = AG, .owner = 1}, {.collectives = AG, .owner = 2}},
         BY_COLLECTIVE_ALLGATHER,
         0,
         2},
        {{{.collectives = AR}, {.collectives = AG, .owner = 1}, {.collectives = AG, .owner = 2}},
         BY_COLLECTIVE_ALLGATHER,
         1,
         4},
        {{{.collectives = AR}, {.collectives = AG, .owner = 1}, {.collectives = AG, .owner = 2}},
         BY_COLLECTIVE_ALLGATHER,
         2,
         1},
        {{{.collectives = AR}, {.collectives = AG | RS, .owner = 1}, {.collectives = AG}},
         BY_COLLECTIVE_ALLGATHER,
         2,
         4},
        {{{.collectives = AR}, {.collectives = AG | RS, .owner = 1}}, BY_COLLECTIVE_REDUCE_SCATTER, 0, 2},
        {{{.collectives = AR}, {.collectives = BC, .owner = 3}}, BY_COLLECTIVE_BROADCAST, 2, 2},
        {{{.collectives = AR}, {.collectives = BC, .owner = 3}}, BY_COLLECTIVE_REDUCE, 2, 1},
        {{{.collectives = AR}, {.collectives = BA}}, BY_COLLECTIVE_BARRIER, 0, 2},
        {{{.collectives = AR}, {.collectives = RS}}, BY_COLLECTIVE_BARRIER, 0, 1},
        {{{.collectives = AG}, {.collectives = RS}}, BY_COLLECTIVE_ALLREDUCE, 0, 0},
    };

    (void)state;
    for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct endpoint_rig *rig = malloc(sizeof(*rig));
        unsigned members = 0, count = 0;
        uint32_t group;

        while (count < 4 && rows[r].trees[count].collectives != 0)
            count++;
        rig_open(rig, 3, rows[r].trees, (int)count, NULL);
        group = by_share_group(rig->endpoint, rows[r].collective, rows[r].rank);
        for (unsigned t = 0; t < count && group != BY_GROUP_NONE; t++)
            members |= (unsigned)by_share_member(rig->endpoint, &rig->endpoint->lanes[t], group) << t;
        assert_int_equal(members, rows[r].members);
        rig_close(rig);
        free(rig);
    }
}

/* The chunks and elements of each tree, counted by run_call, which posts a call and answers for the
 * parent until the call ends. */
struct share_tally {
    uint32_t chunks[4];
    uint64_t elements[4];
    uint16_t last_count[4];
};

static void run_call(struct endpoint_rig *rig, const struct by_call *call, struct share_tally *tally)
{
    uint32_t id, seen[4] = {0};
    int moved = 1;

    memset(tally, 0, sizeof(*tally));
    assert_int_equal(by_endpoint_post(rig->endpoint, call, &id, NULL), 0);
    rig_step(rig);
    for (int t = 0; t < rig->fabric.jobs[0].tree_count; t++)
        seen[t] = rig->endpoint->lanes[t].base;
    while (moved) {
        struct by_header headers[512];
        uint32_t count = rig->sent_count;

        assert_true(count <= 512);
        memcpy(headers, rig->sent, count * sizeof(headers[0]));
        moved = 0;
        for (uint32_t i = 0; i < count; i++) {
            struct by_header *h = &headers[i];
            unsigned bytes = (unsigned)h->count * by_dtype_bytes(h->dtype);

            if (h->seq != seen[h->tree])
                fail_msg("tree %u: seq %u after %u", h->tree, h->seq, seen[h->tree]);
            seen[h->tree]++;
            tally->chunks[h->tree]++;
            tally->elements[h->tree] += h->count;
            tally->last_count[h->tree] = h->count;
            rig_answer(rig, h, bytes, 0);
            if (rig->sent_count > 0) {
                assert_true(count + rig->sent_count <= 512);
                memcpy(headers + count, rig->sent, rig->sent_count * sizeof(headers[0]));
                count += rig->sent_count;
            }
        }
    }
    assert_int_equal(by_endpoint_test(rig->endpoint, id, NULL), 0);
}

struct chunk_row {
    unsigned collective, dtype;
    uint64_t count;
    uint32_t share[2];
    uint32_t chunks[2];
    uint64_t elements[2];
    uint16_t last[2];
};

static void segments_are_cut_into_chunks_with_a_short_last_one(void **state)
{
    static const struct chunk_row rows[] = {
        {BY_COLLECTIVE_ALLREDUCE, BY_DTYPE_F32, 16, {1}, {1}, {16}, {16}},
        {BY_COLLECTIVE_ALLREDUCE, BY_DTYPE_F32, 17, {1}, {2}, {17}, {1}},
        {BY_COLLECTIVE_ALLREDUCE, BY_DTYPE_F64, 17, {1}, {3}, {17}, {1}},
        {BY_COLLECTIVE_ALLREDUCE, BY_DTYPE_U8, 1, {1}, {1}, {1}, {1}},
        {BY_COLLECTIVE_ALLREDUCE, BY_DTYPE_U8, 1000, {1}, {16}, {1000}, {40}},
        {BY_COLLECTIVE_ALLREDUCE, BY_DTYPE_BF16, 100, {1, 1}, {2, 2}, {64, 36}, {32, 4}},
        {BY_COLLECTIVE_REDUCE, BY_DTYPE_I64, 24, {1, 2}, {1, 2}, {8, 16}, {8, 8}},
        /* copied as bytes; each of three shards is split separately */
        {BY_COLLECTIVE_ALLGATHER, BY_DTYPE_F64, 9, {1}, {6}, {216}, {8}},
        {BY_COLLECTIVE_ALLGATHER, BY_DTYPE_U8, 130, {1, 1}, {6, 3}, {384, 6}, {64, 2}},
        {BY_COLLECTIVE_REDUCE_SCATTER, BY_DTYPE_I32, 33, {1, 1}, {6, 3}, {96, 3}, {16, 1}},
        {BY_COLLECTIVE_BROADCAST, BY_DTYPE_F32, 33, {1, 1}, {2, 1}, {128, 4}, {64, 4}},
        {BY_COLLECTIVE_BARRIER, 0, 0, {1, 1}, {1, 0}, {0, 0}, {0, 0}},
        /* only the packet by which ranks in different calls detect the mismatch */
        {BY_COLLECTIVE_ALLREDUCE, BY_DTYPE_F32, 0, {1, 1}, {1, 0}, {0, 0}, {0, 0}},
    };

    (void)state;
    for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct endpoint_rig *rig = malloc(sizeof(*rig));
        struct rig_tree trees[2] = {{.share = rows[r].share[0]}, {.share = rows[r].share[1]}};
        static uint8_t send[4096], recv[4096];
        struct by_call call = {.collective = (uint8_t)rows[r].collective,
                               .op = BY_OP_SUM,
                               .dtype = (uint8_t)rows[r].dtype,
                               .mode = BY_MODE_FAST,
                               .count = rows[r].count,
                               .send = send,
                               .recv = recv};
        struct share_tally tally;

        rig_open(rig, 3, trees, rows[r].share[1] > 0 ? 2 : 1, NULL);
        run_call(rig, &call, &tally);
        for (int t = 0; t < 2; t++) {
            assert_int_equal(tally.chunks[t], rows[r].chunks[t]);
            assert_int_equal(tally.elements[t], rows[r].elements[t]);
            assert_int_equal(tally.last_count[t], rows[r].last[t]);
        }
        run_call(rig, &call, &tally); /* again: sequence numbers continue across calls */
        assert_int_equal(tally.chunks[0], rows[r].chunks[0]);
        rig_close(rig);
        free(rig);
    }
}

struct short_row {
    uint16_t collectives[3]; /* by tree, with packets of 256 bytes */
    uint8_t collective, mode;
    uint64_t count; /* bytes */
    uint32_t chunks[3];
    uint8_t modes; /* that the first tree supports; 0: all */
};

/* Otherwise the first tree carries an empty chunk, and each other tree its part. */
static void calls_of_one_packet_use_the_first_tree_alone(void **state)
{
    static const struct short_row rows[] = {
        {{AR, AR, AR}, BY_COLLECTIVE_ALLREDUCE, BY_MODE_FAST, 256, {1, 0, 0}, 0},
        {{AR, AR, AR}, BY_COLLECTIVE_ALLREDUCE, BY_MODE_FAST, 257, {1, 1, 1}, 0},
        {{AR, BC, RE}, BY_COLLECTIVE_BROADCAST, BY_MODE_FAST, 1, {1, 0, 0}, 0},
        {{AR, BC, RE}, BY_COLLECTIVE_BROADCAST, BY_MODE_FAST, 256, {1, 0, 0}, 0},
        {{AR, BC, RE}, BY_COLLECTIVE_BROADCAST, BY_MODE_FAST, 257, {1, 2, 0}, 0},
        {{AR, BC, RE}, BY_COLLECTIVE_REDUCE, BY_MODE_FAST, 256, {1, 0, 0}, 0},
        {{AR, BC, RE}, BY_COLLECTIVE_REDUCE, BY_MODE_FAST, 257, {1, 0, 2}, 0},
        {{BC, AR, RE}, BY_COLLECTIVE_REDUCE, BY_MODE_FAST, 256, {0, 1, 0}, 0},
        {{RS, BC, RE}, BY_COLLECTIVE_BROADCAST, BY_MODE_FAST, 256, {1, 1, 0}, 0}, /* none of allreduce */
        {{AR, RS, AG}, BY_COLLECTIVE_ALLGATHER, BY_MODE_FAST, 1, {1, 0, 3}, 0},
        {{AR, RS, BA}, BY_COLLECTIVE_BARRIER, BY_MODE_FAST, 0, {1, 0, 1}, 0},
        {{AR, BC, RE}, BY_COLLECTIVE_REDUCE, BY_MODE_DET, 256, {1, 0, 0}, 0},
        {{AR, BC, RE}, BY_COLLECTIVE_REDUCE, BY_MODE_DET, 256, {1, 0, 1}, 1u << BY_MODE_FAST},
        {{AR, BC, RE}, BY_COLLECTIVE_BROADCAST, BY_MODE_DET, 256, {1, 0, 0}, 1u << BY_MODE_FAST},
    };

    (void)state;
    for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct endpoint_rig *rig = malloc(sizeof(*rig));
        struct rig_tree trees[3] = {{0}};
        static uint8_t send[4096], recv[4096];
        struct by_call call = {.collective = rows[r].collective,
                               .op = BY_OP_MAX,
                               .dtype = BY_DTYPE_U8,
                               .mode = rows[r].mode,
                               .count = rows[r].count,
                               .send = send,
                               .recv = recv};
        struct share_tally tally;

        for (int t = 0; t < 3; t++)
            trees[t] = (struct rig_tree){.collectives = rows[r].collectives[t], .payload_max = 256};
        trees[0].modes = rows[r].modes;
        rig_open(rig, 3, trees, 3, NULL);
        run_call(rig, &call, &tally);
        for (int t = 0; t < 3; t++) {
            assert_int_equal(tally.chunks[t], rows[r].chunks[t]);
            if (call.collective != BY_COLLECTIVE_BARRIER && tally.elements[t] > 0)
                assert_int_equal(by_endpoint_chunks(rig->endpoint, &call, (uint16_t)t), rows[r].chunks[t]);
        }
        rig_close(rig);
        free(rig);
    }
}

static void trees_take_turns_in_proportion_to_their_shares(void **state)
{
    struct endpoint_rig *rig = malloc(sizeof(*rig));
    struct rig_tree trees[2] = {{.share = 1, .window = 64}, {.share = 3, .window = 64}};
    static uint8_t send[25600], recv[25600];
    struct by_call call = {
        .collective = BY_COLLECTIVE_ALLREDUCE, .op = BY_OP_SUM, .dtype = BY_DTYPE_U8, .mode = BY_MODE_FAST};
    struct by_endpoint_config config = {.inflight_max = 40};
    uint32_t id, first = 0;

    (void)state;
    call.count = sizeof(send);
    call.send = send;
    call.recv = recv;
    rig_open(rig, 2, trees, 2, &config);
    assert_int_equal(by_endpoint_post(rig->endpoint, &call, &id, NULL), 0);
    assert_int_equal(rig_step(rig), 40);
    for (uint32_t i = 0; i < rig->sent_count; i++)
        first += rig->sent[i].tree == 0;
    assert_in_range(first, 9, 12);
    rig_close(rig);
    free(rig);
}

#define TURN_CHUNKS 20400u

/* A rank with many chunks to send and no answers. With 64 units of a turn, shares of 14/15 and 1/15
 * got 59 and 4 of them: the last tree fell behind by 6 %. */
static void turns_follow_shares_exactly(void **state)
{
    static const struct {
        uint32_t share[3];
        uint16_t window[3];
        uint32_t inflight, chunks[3];
    } rows[] = {
        {{15, 14, 1}, {4096, 4096, 4096}, 3000, {1500, 1400, 100}},
        {{1000, 999, 1}, {4096, 4096, 4096}, 2000, {1000, 999, 1}},
        {{20000, 300, 100}, {4, 4096, 4096}, 204, {4, 150, 50}},
    };
    struct endpoint_rig *rig = malloc(sizeof(*rig));
    uint8_t *data = calloc(TURN_CHUNKS, 64);

    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct rig_tree trees[3] = {{.share = rows[r].share[0], .window = rows[r].window[0]},
                                    {.share = rows[r].share[1], .window = rows[r].window[1]},
                                    {.share = rows[r].share[2], .window = rows[r].window[2]}};
        struct by_call call = {.collective = BY_COLLECTIVE_ALLREDUCE,
                               .op = BY_OP_SUM,
                               .dtype = BY_DTYPE_U8,
                               .mode = BY_MODE_FAST,
                               .count = TURN_CHUNKS * 64,
                               .send = data,
                               .recv = data};
        uint32_t id, chunks[3] = {0};

        rig_open(rig, 2, trees, 3, NULL);
        rig->endpoint->window = rows[r].inflight;
        assert_int_equal(by_endpoint_post(rig->endpoint, &call, &id, NULL), 0);
        assert_int_equal(rig_step(rig), rows[r].inflight);
        for (uint32_t i = 0; i < rig->sent_count; i++)
            chunks[rig->sent[i].tree]++;
        for (uint32_t t = 0; t < 3; t++)
            assert_in_range(chunks[t] + 1, rows[r].chunks[t], rows[r].chunks[t] + 2);
        rig_close(rig);
    }
    free(data);
    free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scaling_is_exact_for_numbers_of_any_size),
        cmocka_unit_test(a_call_is_split_in_proportion_at_multiples_of_64_bytes),
        cmocka_unit_test(a_call_goes_to_the_trees_planned_for_it_then_to_those_of_allreduce),
        cmocka_unit_test(segments_are_cut_into_chunks_with_a_short_last_one),
        cmocka_unit_test(calls_of_one_packet_use_the_first_tree_alone),
        cmocka_unit_test(trees_take_turns_in_proportion_to_their_shares),
        cmocka_unit_test(turns_follow_shares_exactly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
