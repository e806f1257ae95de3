/*
 * Levelling in rounds: several ranks, the real engine of one switch, and a network that drops and
 * repeats packets. Each plane is a generation with an engine of its own: plane 0 has the calls, the
 * others are standbys with a tree for calls and one for rounds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/prng.h"
#include "offload/endpoint/levelling.h"
#include "offload/endpoint/rounds.h"
#include "offload/engine/engine.h"
#include "offload/reduce/reduce.h"
#include "tests/sim/fabric.h"

#define RANKS       3
#define PLANES      3
#define GEN         7 /* of plane 0 */
#define BYTES       64u
#define CHUNKS      8u
#define SESSION     2u /* chunks before those of calls: the roll call and the opening */
#define INBOX_MAX   512u
#define PACKET_MAX  (BY_WIRE_HEADER_BYTES + BY_PAYLOAD_DEFAULT)
#define TX_CAPACITY 256u
#define TURNS_MAX   3000u

struct rounds_packet {
    uint16_t bytes;
    uint8_t data[PACKET_MAX];
};

struct inbox {
    uint32_t count;
    struct rounds_packet packets[INBOX_MAX];
};

/* One rank: its calls, and an attempt. */
struct rank {
    struct by_endpoint *calls, *tree;
    struct by_resume *resume;
    struct by_level_rounds *rounds;
    void *resume_memory, *rounds_memory;
    int plane; /* of its calls */
    uint32_t id;
    uint8_t send[64 * BYTES], recv[64 * BYTES];
};

static struct fabric fabrics[PLANES];
static uint8_t *images[PLANES][RANKS + 1];
static size_t image_bytes[PLANES][RANKS + 1];
static struct by_engine *engines[PLANES];
static struct rank ranks[RANKS];
static struct by_prng prng;
static uint64_t now_ns;
static uint32_t loss;           /* percent of packets that are lost; as many are repeated */
static uint64_t results[RANKS]; /* plane 0: bit c: the rank receives the result of the call's chunk c */
static int deaf;                /* the rank that receives nothing; -1: none */
static int is_dead[PLANES];     /* its switch has failed */
static struct inbox inboxes[RANKS];
static uint16_t window;

static void *room(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

    assert_non_null(memory);
    return memory;
}

static void open_plane(int p)
{
    struct fabric *fabric = &fabrics[p];
    struct by_engine_config config = {
        .slot_count_max = 3 * 4096, .payload_max = 1024, .image_bytes_max = 1u << 16, .entry_count_max = 4};
    struct by_image_fault fault;

    fabric_star(fabric, RANKS, 10000, 1000);
    fabric_job_add(fabric, 1, (uint16_t)(GEN + p));
    for (int t = 0; t < 1 + (p > 0); t++) {
        struct fabric_tree *tree = fabric_tree_add(fabric, 0, 0, 0, NULL);

        tree->window = t > 0 ? 16 : window;
        tree->payload_max = t > 0 ? 1024 : BYTES;
        if (t > 0)
            tree->collectives = BY_LEAF_ROUNDS;
    }
    for (int n = 0; n <= RANKS; n++)
        images[p][n] = fabric_image(fabric, n, &image_bytes[p][n]);
    config.isa = by_isa_best();
    assert_int_equal(
        by_engine_init(&engines[p], room(by_engine_size(&config)), by_engine_size(&config), &config), 0);
    assert_int_equal(by_engine_stage(engines[p], images[p][0], image_bytes[p][0], &fault), 0);
    assert_int_equal(by_engine_commit(engines[p]), 0);
    is_dead[p] = 0;
}

static struct by_endpoint_config config_of(int p, int r)
{
    return (struct by_endpoint_config){.image = images[p][r + 1],
                                       .image_bytes = image_bytes[p][r + 1],
                                       .job = 1,
                                       .isa = by_isa_best(),
                                       .nonce = (uint32_t)by_prng_next(&prng),
                                       .rto_min_ns = 1000000,
                                       .rto_max_ns = 4000000,
                                       .stall_ns = UINT64_C(60000000000),
                                       .resume = 1};
}

static struct by_endpoint *open_endpoint(int p, int r, int is_tree)
{
    struct by_endpoint_config config = config_of(p, r);
    struct by_endpoint *endpoint;
    size_t bytes;

    config.rounds = (uint8_t)is_tree;
    config.resume = !is_tree;
    bytes = by_endpoint_size(&config);
    assert_int_equal(by_endpoint_init(&endpoint, room(bytes), bytes, &config), 0);
    return endpoint;
}

static void start(uint64_t seed, uint32_t lost, uint16_t slots)
{
    memset(ranks, 0, sizeof(ranks));
    memset(inboxes, 0, sizeof(inboxes));
    prng.state = seed;
    now_ns = 1000000000;
    loss = 0;
    deaf = -1;
    window = slots;
    for (int p = 0; p < PLANES; p++)
        open_plane(p);
    loss = lost;
    for (int r = 0; r < RANKS; r++) {
        ranks[r].calls = open_endpoint(0, r, 0);
        memset(ranks[r].send, 1 << r, sizeof(ranks[r].send));
        memset(ranks[r].recv, 0xee, sizeof(ranks[r].recv));
        results[r] = UINT64_MAX;
    }
}

static void end_attempt(struct rank *rank)
{
    free(rank->tree);
    free(rank->resume_memory);
    free(rank->rounds_memory);
    rank->tree = NULL;
    rank->rounds = NULL;
    rank->resume_memory = rank->rounds_memory = NULL;
}

static void stop(void)
{
    for (int r = 0; r < RANKS; r++) {
        end_attempt(&ranks[r]);
        free(ranks[r].calls);
    }
    for (int p = 0; p < PLANES; p++) {
        free(engines[p]);
        for (int n = 0; n <= RANKS; n++)
            free(images[p][n]);
    }
}

/* ---- the network ---- */

/* Gives the answer of the switch to a rank, later. */
static void deliver(int p, const struct by_tx *tx)
{
    int r = fabric_peer(&fabrics[p], 0, tx->port) - 1;
    struct inbox *inbox = &inboxes[r];
    uint32_t seq = by_get32(tx->header + BY_HEADER_AT_SEQ);

    if (r == deaf || (p == 0 && tx->header[BY_HEADER_AT_TYPE] == BY_TYPE_RESULT && seq >= SESSION &&
                      !(results[r] >> (seq - SESSION) & 1)))
        return;
    for (uint32_t copies = by_prng_below(&prng, 100) < loss ? 0 : 1 + (by_prng_below(&prng, 100) < loss);
         copies > 0 && inbox->count < INBOX_MAX; copies--) {
        struct rounds_packet *packet = &inbox->packets[inbox->count++];
        const uint8_t *payload = tx->payload != NULL ? tx->payload : tx->small;

        packet->bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + tx->payload_bytes);
        memcpy(packet->data, tx->header, BY_WIRE_HEADER_BYTES);
        memcpy(packet->data + BY_WIRE_HEADER_BYTES, payload, tx->payload_bytes);
    }
}

static void give_switch(int p, int r, const struct by_tx *tx)
{
    int link = fabrics[p].nodes[r + 1].port_link[0];
    uint8_t data[PACKET_MAX];
    struct by_rx rx = {.data = data,
                       .bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + tx->payload_bytes),
                       .port = (uint16_t)fabric_port_to(&fabrics[p], 0, r + 1),
                       .src_ip = fabric_ip(&fabrics[p], link, r + 1),
                       .dst_ip = fabric_ip(&fabrics[p], link, 0)};
    struct by_tx out[TX_CAPACITY];
    uint32_t count;

    if (is_dead[p] || by_prng_below(&prng, 100) < loss)
        return;
    memcpy(data, tx->header, BY_WIRE_HEADER_BYTES);
    if (tx->payload_bytes > 0)
        memcpy(data + BY_WIRE_HEADER_BYTES, tx->payload != NULL ? tx->payload : tx->small, tx->payload_bytes);
    for (uint32_t copies = 1 + (by_prng_below(&prng, 100) < loss); copies > 0; copies--) {
        by_engine_allow(engines[p], UINT32_MAX);
        assert_int_equal(by_engine_step(engines[p], now_ns, &rx, 1, out, TX_CAPACITY, &count), 1);
        for (uint32_t i = 0; i < count; i++) {
            deliver(p, &out[i]);
            if (out[i].ref != BY_REF_NONE)
                by_engine_release(engines[p], out[i].ref);
        }
    }
}

/* One step of a rank's endpoint in a plane, with all packets that have arrived for it. */
static void step(int p, int r, struct by_endpoint *endpoint)
{
    static struct inbox taken;
    struct by_rx rx[INBOX_MAX];
    struct by_tx tx[TX_CAPACITY];
    int link = fabrics[p].nodes[r + 1].port_link[0];
    uint32_t count;

    taken = inboxes[r];
    inboxes[r].count = 0;
    for (uint32_t i = 0; i < taken.count; i++)
        rx[i] = (struct by_rx){.data = taken.packets[i].data,
                               .bytes = taken.packets[i].bytes,
                               .src_ip = fabric_ip(&fabrics[p], link, 0),
                               .dst_ip = fabric_ip(&fabrics[p], link, r + 1)};
    count = taken.count;
    do {
        (void)by_endpoint_step(endpoint, now_ns, rx, count, tx, TX_CAPACITY, &count);
        for (uint32_t i = 0; i < count; i++)
            give_switch(p, r, &tx[i]);
        if (count < TX_CAPACITY)
            return;
        count = 0;
    } while (1);
}

static void run_calls(unsigned turns)
{
    for (unsigned turn = 0; turn < turns; turn++) {
        now_ns += 100000;
        for (int r = 0; r < RANKS; r++)
            step(ranks[r].plane, r, ranks[r].calls);
    }
}

static void post(unsigned collective, uint64_t count)
{
    for (int r = 0; r < RANKS; r++) {
        const struct by_call call = {.collective = (uint8_t)collective,
                                     .op = BY_OP_SUM,
                                     .dtype = BY_DTYPE_U8,
                                     .mode = BY_MODE_FAST,
                                     .count = count,
                                     .root = 1,
                                     .send = ranks[r].send,
                                     .recv = ranks[r].recv};

        assert_int_equal(by_endpoint_post(ranks[r].calls, &call, &ranks[r].id, NULL), 0);
    }
}

/* ---- attempts ---- */

/* Freezes the rank's calls, and posts the first round in plane p. */
static void enter(int p, int r)
{
    struct rank *rank = &ranks[r];

    end_attempt(rank);
    rank->tree = open_endpoint(p, r, 1);
    rank->resume_memory = room(by_resume_size(rank->calls));
    rank->rounds_memory = room(by_level_rounds_size(rank->calls));
    assert_int_equal(by_resume_begin(&rank->resume, rank->resume_memory, rank->calls, (uint16_t)(GEN + p)),
                     0);
    assert_int_equal(by_level_rounds_begin(&rank->rounds, rank->rounds_memory, rank->resume, rank->tree), 0);
}

static int is_over(int r)
{
    return ranks[r].rounds != NULL && by_level_rounds_is_over(ranks[r].rounds);
}

/* Returns how many ranks see the end of the rounds in plane p, within so many turns. */
static int run_rounds(int p, unsigned turns)
{
    int over = 0;

    for (unsigned turn = 0; turn < turns && over < RANKS; turn++) {
        now_ns += 100000;
        over = 0;
        for (int r = 0; r < RANKS; r++) {
            if (ranks[r].tree == NULL)
                continue;
            step(p, r, ranks[r].tree);
            assert_in_range(by_level_rounds_step(ranks[r].rounds), 0, 1);
            over += is_over(r);
        }
    }
    return over;
}

static void carry(int p, int r)
{
    struct rank *rank = &ranks[r];
    struct by_endpoint_config config = config_of(p, r);
    struct by_endpoint *old = rank->calls;
    size_t bytes = by_resume_copy_size(rank->resume, &config);

    assert_true(by_resume_is_level(rank->resume));
    assert_int_equal(by_resume_copy(rank->resume, &rank->calls, room(bytes), bytes, &config), 0);
    free(old);
    rank->plane = p;
    end_attempt(rank);
}

static void enter_all(int p)
{
    for (int r = 0; r < RANKS; r++)
        enter(p, r);
}

static void carry_all(int p)
{
    for (int r = 0; r < RANKS; r++)
        carry(p, r);
}

/* The calls have gone on in plane p: they end with the right result. */
static void expect_sums(void)
{
    loss = 0;
    run_calls(TURNS_MAX);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(by_endpoint_test(ranks[r].calls, ranks[r].id, NULL), 0);
        for (uint32_t i = 0; i < CHUNKS * BYTES; i++)
            assert_int_equal(ranks[r].recv[i], (1 << RANKS) - 1);
    }
}

/* An allreduce in which ranks 0 and 1 have results that others lack, when the switch fails. */
static void break_allreduce(uint64_t seed, uint32_t lost)
{
    start(seed, lost, 4);
    results[0] = 0x1d; /* chunks 0, 2, 3, 4 */
    results[1] = 0x13;
    results[2] = 0x01;
    post(BY_COLLECTIVE_ALLREDUCE, (uint64_t)CHUNKS * BYTES);
    run_calls(400);
    is_dead[0] = 1;
}

static void what_some_rank_has_reaches_all_that_lack_it(void **state)
{
    (void)state;
    break_allreduce(1, 0);
    enter_all(1);
    assert_int_equal(run_rounds(1, TURNS_MAX), RANKS);
    assert_int_equal(ranks[0].calls->counters.copied, 1);
    assert_int_equal(ranks[1].calls->counters.copied, 2);
    assert_int_equal(ranks[2].calls->counters.copied, 4);
    for (int r = 0; r < RANKS; r++) {
        assert_true(ranks[r].calls->level);
        /* reports, requests, copies, level */
        assert_int_equal(by_level_rounds_count(ranks[r].rounds), 4);
        assert_int_equal(by_level_rounds_step(ranks[r].rounds), 0);
        carry(1, r);
    }
    expect_sums();
    stop();
}

static void rounds_bear_loss_and_repetition(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        break_allreduce(seed, 10);
        enter_all(1);
        assert_int_equal(run_rounds(1, TURNS_MAX), RANKS);
        carry_all(1);
        expect_sums();
        stop();
    }
}

static void a_rank_may_enter_late_and_is_called(void **state)
{
    (void)state;
    break_allreduce(3, 0);
    ranks[2].tree = open_endpoint(1, 2, 1);
    enter(1, 0);
    enter(1, 1);
    for (unsigned turn = 0; turn < 100; turn++) {
        now_ns += 100000;
        step(1, 2, ranks[2].tree);
        for (int r = 0; r < 2; r++) {
            step(1, r, ranks[r].tree);
            assert_int_equal(by_level_rounds_step(ranks[r].rounds), 0);
        }
    }
    assert_true(by_endpoint_counters(ranks[2].tree)->probe > 0);
    assert_false(is_over(0));
    enter(1, 2);
    assert_int_equal(run_rounds(1, TURNS_MAX), RANKS);
    carry_all(1);
    expect_sums();
    stop();
}

static void an_abandoned_attempt_is_followed_by_another(void **state)
{
    (void)state;
    for (unsigned turns = 1; turns < 30; turns++) {
        int over;

        break_allreduce(turns, turns % 3);
        enter_all(1);
        over = run_rounds(1, turns);
        is_dead[1] = 1;
        memset(inboxes, 0, sizeof(inboxes));
        over = run_rounds(1, 20);
        for (int r = 0; r < RANKS; r++)
            if (is_over(r))
                carry(1, r); /* and no chunk completes there */
        for (int r = 0; r < RANKS; r++) {
            assert_true(over == 0 || ranks[r].plane == 1 || ranks[r].calls->level);
            enter(2, r);
        }
        assert_int_equal(run_rounds(2, TURNS_MAX), RANKS);
        carry_all(2);
        expect_sums();
        stop();
    }
}

/* The result of the last round does not reach a rank at first, and in the second case never. */
static void a_rank_may_miss_the_end(void **state)
{
    (void)state;
    for (int never = 0; never < 2; never++) {
        uint32_t last;

        break_allreduce(11, 0);
        enter_all(1);
        for (last = 0; last < 3; last = by_level_rounds_count(ranks[2].rounds))
            (void)run_rounds(1, 1);
        deaf = 2;
        assert_int_equal(run_rounds(1, 200), 2);
        assert_false(is_over(2));
        assert_true(ranks[2].calls->level);
        for (int r = 0; r < 2; r++)
            carry(1, r);
        run_calls(1);
        deaf = -1;
        if (never) {
            is_dead[1] = 1;
            memset(inboxes, 0, sizeof(inboxes));
            enter_all(2);
        }
        (void)run_rounds(1 + never, 200);
        for (int r = never ? 0 : 2; r < RANKS; r++) {
            assert_true(is_over(r));
            carry(1 + never, r);
        }
        expect_sums();
        stop();
    }
}

/* Rank 1 is the root, and lacks chunks that others have recorded as complete. */
static void the_root_of_a_reduce_gets_the_inputs_of_all(void **state)
{
    (void)state;
    start(5, 0, 4);
    results[1] = 0x02;
    post(BY_COLLECTIVE_REDUCE, (uint64_t)CHUNKS * BYTES);
    run_calls(400);
    is_dead[0] = 1;
    enter_all(1);
    assert_int_equal(run_rounds(1, TURNS_MAX), RANKS);
    assert_int_equal(ranks[1].calls->counters.copied, 3 * (RANKS - 1));
    assert_int_equal(by_level_rounds_count(ranks[1].rounds), 4);
    carry_all(1);
    loss = 0;
    run_calls(TURNS_MAX);
    for (uint32_t i = 0; i < CHUNKS * BYTES; i++)
        assert_int_equal(ranks[1].recv[i], (1 << RANKS) - 1);
    stop();
}

/* Copies of 64 chunks from one rank have no room in the third round. */
static void a_region_grows_to_what_is_left(void **state)
{
    (void)state;
    start(7, 0, 128);
    results[0] = results[2] = 0;
    post(BY_COLLECTIVE_BROADCAST, UINT64_C(64) * BYTES);
    run_calls(40);
    is_dead[0] = 1;
    enter_all(1);
    assert_int_equal(run_rounds(1, TURNS_MAX), RANKS);
    assert_int_equal(ranks[0].calls->counters.copied, 64);
    assert_int_equal(by_endpoint_test(ranks[0].calls, ranks[0].id, NULL), 0);
    for (uint32_t i = 0; i < 64 * BYTES; i++)
        assert_int_equal(ranks[0].recv[i], 2);
    assert_int_equal(by_level_rounds_count(ranks[0].rounds), 5);
    stop();
}

static void rounds_need_a_tree_of_their_attempt(void **state)
{
    struct by_endpoint_config config;
    struct rank *rank = &ranks[0];

    (void)state;
    start(9, 0, 4);
    config = config_of(0, 0);
    config.rounds = 1;
    assert_int_equal(by_endpoint_size(&config), 0); /* this table has no tree for rounds */
    rank->tree = open_endpoint(2, 0, 1);
    rank->resume_memory = room(by_resume_size(rank->calls));
    rank->rounds_memory = room(by_level_rounds_size(rank->calls));
    assert_int_equal(by_resume_begin(&rank->resume, rank->resume_memory, rank->calls, GEN + 1), 0);
    assert_int_equal(by_level_rounds_begin(&rank->rounds, rank->rounds_memory, rank->resume, rank->tree),
                     BY_EINVAL);
    assert_int_equal(by_resume_begin(&rank->resume, rank->resume_memory, rank->calls, GEN + 2), 0);
    rank->resume->rank_count = rank->tree->rank_count = rank->calls->rank_count = 400;
    rank->calls->lanes[0].payload_max = UINT16_MAX; /* the limit of a region for so many ranks is 16 KiB */
    assert_int_equal(by_level_rounds_begin(&rank->rounds, rank->rounds_memory, rank->resume, rank->tree),
                     BY_EUNSUPPORTED);
    assert_int_equal(by_level_rounds_size(rank->calls), 0);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_some_rank_has_reaches_all_that_lack_it),
        cmocka_unit_test(rounds_bear_loss_and_repetition),
        cmocka_unit_test(a_rank_may_enter_late_and_is_called),
        cmocka_unit_test(an_abandoned_attempt_is_followed_by_another),
        cmocka_unit_test(a_rank_may_miss_the_end),
        cmocka_unit_test(the_root_of_a_reduce_gets_the_inputs_of_all),
        cmocka_unit_test(a_region_grows_to_what_is_left),
        cmocka_unit_test(rounds_need_a_tree_of_their_attempt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
