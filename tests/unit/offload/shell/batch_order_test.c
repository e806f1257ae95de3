/* The packet loop of a switch brings the contributions to a chunk together, the chunks of a tree
 * still complete in order, and each port's packets stay in order: a receiver takes a sequence
 * number that is missing as a loss, and the engine would request it. Streams of several trees,
 * whose packets arrive by four ports that lag behind each other at random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "offload/base/bytes.h"
#include "offload/base/prng.h"
#include "offload/reduce/reduce.h"
#include "offload/shell/batch.h"
#include "offload/table/image.h"
#include "tests/unit/firmware/star.h"

#define HOSTS     4u
#define TREES     (BY_BATCH_CLASSES + 2u) /* the last two share classes of the sort with the first */
#define USED      9u                      /* trees with packets */
#define WINDOW    128u
#define COUNT     4u
#define CHUNKS    2000u
#define FRAME_MAX 256u

static const struct star star = {
    .hosts = HOSTS, .trees = TREES, .window = WINDOW, .payload_max = 64, .mtu = 1500};

static struct {
    struct by_engine *engine;
    struct by_batch batch;
    struct by_prng prng;
    uint32_t next[HOSTS][TREES]; /* sequence number that a host sends next */
    uint32_t done[HOSTS][TREES]; /* sequence number of which a host expects the result */
    uint8_t frame[HOSTS][BY_BATCH_BURST][FRAME_MAX];
} world;

/* Trees of the job 1 that share classes, and those of the last and the first class. */
static uint16_t tree_at(unsigned used)
{
    static const uint16_t trees[USED] = {
        0, 1, 2, 3, 4, BY_BATCH_CLASSES - 8, BY_BATCH_CLASSES - 7, TREES - 2, TREES - 1};

    return trees[used];
}

static uint32_t world_receive(void *context, uint16_t port)
{
    uint32_t count = 0, most = (uint32_t)by_prng_below(&world.prng, world.batch.burst + 1);

    (void)context;
    for (uint32_t tries = 0; tries < 2 * most && count < most; tries++) {
        uint16_t tree = tree_at((unsigned)by_prng_below(&world.prng, USED));
        uint32_t seq = world.next[port][tree];
        uint8_t packet[FRAME_MAX], *frame = world.frame[port][count];
        size_t bytes;

        if (seq == CHUNKS || seq >= world.done[port][tree] + WINDOW)
            continue;
        bytes = star_frame(port, packet, star_contribution(&star, port, tree, seq, COUNT, packet), frame);
        world.next[port][tree]++;
        count++;
        by_batch_receive(&world.batch, port, NULL, frame, (uint32_t)bytes);
    }
    return count;
}

static void world_drop(void *context, void **frames, uint32_t count)
{
    (void)context;
    for (uint32_t i = 0; i < count; i++)
        assert_null(frames[i]);
}

static void world_send(void *context, const struct by_tx *tx, uint32_t count)
{
    (void)context;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t tree = by_get16(tx[i].header + BY_HEADER_AT_TREE);

        assert_int_equal(tx[i].header[BY_HEADER_AT_TYPE], BY_TYPE_RESULT);
        assert_in_range(tree, 0, TREES - 1);
        assert_int_equal(by_get32(tx[i].header + BY_HEADER_AT_SEQ), world.done[tx[i].port][tree]);
        world.done[tx[i].port][tree]++;
        if (tx[i].ref != BY_REF_NONE)
            by_engine_release(world.engine, tx[i].ref);
    }
}

/* The batch calls no other operation in this test. */
static const struct by_batch_ops ops = {.receive = world_receive,
                                        .data = NULL,
                                        .share = NULL,
                                        .drop = world_drop,
                                        .make = NULL,
                                        .forward = NULL,
                                        .reply = NULL,
                                        .send = world_send,
                                        .neighbour = NULL,
                                        .done = NULL};

/* In each round every host sends the next chunks of two trees, in turns: so many packets. */
static uint32_t turns_count;

static uint32_t receive_turns(void *context, uint16_t port)
{
    (void)context;
    for (uint32_t i = 0; i < turns_count; i++) {
        uint8_t packet[FRAME_MAX], *frame = world.frame[port][i];
        uint16_t tree = (uint16_t)(i % 2);
        size_t bytes =
            star_frame(port, packet,
                       star_contribution(&star, port, tree, world.next[port][tree]++, COUNT, packet), frame);

        by_batch_receive(&world.batch, port, NULL, frame, (uint32_t)bytes);
    }
    return turns_count;
}

static void contributions_to_a_chunk_reach_the_engine_together(void)
{
    struct by_batch_ops turns = ops;

    turns.receive = receive_turns;
    for (turns_count = 2; turns_count <= 8; turns_count += 2) {
        world.batch.ops = &turns;
        by_batch_round(&world.batch);
        world.batch.ops = &ops;
        for (uint32_t i = 0; i < HOSTS * turns_count; i += HOSTS) {
            const uint8_t *first = world.batch.rx[i].data;

            for (uint32_t host = 0; host < HOSTS; host++) {
                const uint8_t *packet = world.batch.rx[i + host].data;

                assert_memory_equal(packet + BY_HEADER_AT_JOB, first + BY_HEADER_AT_JOB, 4);
                assert_memory_equal(packet + BY_HEADER_AT_SEQ, first + BY_HEADER_AT_SEQ, 4);
            }
        }
    }
}

/* Packets of a scenario, three characters each: tree and chunk of a contribution, 'A' with data and
 * 'a' without; a third one makes it another packet with the same bytes: 'p' of another type, 's'
 * shorter than a header. */
static uint32_t receive_scenario(void *context, uint16_t port)
{
    const char *text = context;
    uint32_t count = (uint32_t)strlen(text) / 3;

    if (port != 0)
        return 0;
    for (uint32_t i = 0; i < count; i++, text += 3) {
        uint8_t packet[FRAME_MAX], *frame = world.frame[0][i];
        size_t bytes = star_contribution(&star, 0, (uint16_t)((text[0] & 0x1f) - 1),
                                         (uint32_t)(text[1] - '0'), text[0] >= 'a' ? 0 : COUNT, packet);

        if (text[2] == 'p')
            packet[BY_HEADER_AT_TYPE] = BY_TYPE_PROBE;
        else if (text[2] == 's')
            bytes = BY_WIRE_HEADER_BYTES - 1;
        by_batch_receive(&world.batch, 0, NULL, frame, (uint32_t)star_frame(0, packet, bytes, frame));
    }
    return count;
}

static void send_any(void *context, const struct by_tx *tx, uint32_t count)
{
    (void)context;
    for (uint32_t i = 0; i < count; i++)
        if (tx[i].ref != BY_REF_NONE)
            by_engine_release(world.engine, tx[i].ref);
}

/* Each batch and the order in which the engine gets its packets. */
static void packets_that_are_no_contributions_keep_their_places(void **state)
{
    static const struct {
        const char *packets, *order;
    } scenarios[] = {
        {"A0 ", "0"},
        {"A0 B0 A0 B0 ", "0213"},
        {"A0 B0 C0 A0 B0 C0 ", "031425"},
        {"a0 b0 a0 b0 ", "0213"},             /* without a payload */
        {"A1 A0 A1 A0 ", "1302"},             /* the chunks of a tree in order */
        {"A0 A1 A2 A0 A1 A2 ", "031425"},     /* one after the other */
        {"A2 A1 A0 A2 A1 A0 ", "251403"},     /* in the reverse order */
        {"A1 A0 A2 A1 A1 A2 A0 ", "1603425"}, /* of different counts */
        {"A0 A0pA0 A0pA0 ", "13024"},         /* others stay where they are */
        {"A0 A0sA0 A0sA0 ", "13024"},
        {"A1 B0pA0 B1sA1 ", "21304"},
        {"A0pA0pA0sA0s", "0123"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        struct by_batch_ops scenario = ops;

        scenario.receive = receive_scenario;
        scenario.send = send_any;
        world.batch.ops = &scenario;
        world.batch.context = (void *)(uintptr_t)scenarios[i].packets;
        by_batch_round(&world.batch);
        for (uint32_t at = 0; scenarios[i].order[at] != 0; at++) {
            uint32_t from = (uint32_t)(scenarios[i].order[at] - '0');

            if (world.batch.rx[at].data != world.frame[0][from] + BY_FRAME_HEADER_BYTES)
                fail_msg("'%s': packet %u is not number %u", scenarios[i].packets, at, from);
        }
    }
}

static void *memory;

static int world_begin(void **state)
{
    const struct by_engine_config config = {.slot_count_max = TREES * WINDOW,
                                            .payload_max = 64,
                                            .image_bytes_max = 65536,
                                            .entry_count_max = TREES,
                                            .repair_interval_ns = 1000000000,
                                            .isa = by_isa_best()};
    size_t bytes = by_engine_size(&config), image_bytes;
    uint8_t *image = star_image(&star, &image_bytes);
    struct by_image_fault fault;

    (void)state;
    memset(&world, 0, sizeof world);
    memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(memory);
    assert_int_equal(by_engine_init(&world.engine, memory, bytes, &config), 0);
    by_batch_open(&world.batch, &ops, NULL, world.engine, HOSTS);
    world.batch.now_ns = 1000000;
    assert_int_equal(by_engine_stage(world.engine, image, image_bytes, &fault), 0);
    assert_int_equal(by_engine_commit(world.engine), 0);
    by_batch_address(&world.batch);
    free(image);
    return 0;
}

static int world_end(void **state)
{
    (void)state;
    by_batch_close(&world.batch);
    free(memory);
    return 0;
}

static void chunks_of_a_tree_complete_in_order(void **state)
{
    const char *text = getenv("BY_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
    uint32_t rounds = 0;

    (void)state;
    printf("replay: BY_TEST_SEED=%llu build/release/tests/batch_order_test\n", (unsigned long long)seed);
    world.prng.state = seed;
    contributions_to_a_chunk_reach_the_engine_together();
    for (bool done = false; !done; rounds++) {
        by_batch_round(&world.batch);
        assert_true(rounds < 100 * USED * CHUNKS);
        done = true;
        for (unsigned i = 0; i < HOSTS * USED; i++)
            done &= world.done[i / USED][tree_at(i % USED)] == CHUNKS;
    }
    assert_int_equal(by_engine_counters(world.engine)->contrib, HOSTS * USED * CHUNKS);
    assert_int_equal(by_engine_counters(world.engine)->duplicate, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(chunks_of_a_tree_complete_in_order, world_begin, world_end),
        cmocka_unit_test_setup_teardown(packets_that_are_no_contributions_keep_their_places, world_begin,
                                        world_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
