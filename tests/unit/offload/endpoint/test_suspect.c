/* How a call without progress ends: which node the endpoint probes, which node it reports, and how
 * it reports a mismatch between ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/endpoint/state.h"

#define MS    UINT64_C(1000000)
#define STALL (1000 * MS)

/*
 * A fabric of three levels: core0 above spine0 and spine1, spine0 above leaf0, spine1 above leaf1,
 * and two hosts below each leaf. The endpoint under test is h0, below leaf0.
 */
#include "tests/sim/fabric.h"

struct suspect_bench {
    struct fabric fabric;
    uint8_t *image;
    struct by_endpoint *endpoint;
    uint64_t now_ns;
    uint32_t id;
    uint32_t probes, contribs;
    struct by_header last; /* the last contribution */
};

static uint8_t buffer[64];

static int named(const struct suspect_bench *b, const char *name)
{
    for (int n = 0; n < b->fabric.node_count; n++)
        if (strcmp(b->fabric.nodes[n].name, name) == 0)
            return n;
    return BY_NODE_NONE;
}

static void bench_give(struct suspect_bench *b, const struct by_header *header, const uint8_t *payload,
                       uint32_t bytes, int from_parent)
{
    uint8_t packet[BY_WIRE_HEADER_BYTES + 64];
    struct by_image_leaf leaf;
    struct by_rx rx = {.data = packet, .bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + bytes)};
    struct by_tx tx[16];
    uint32_t count;

    by_image_leaf(b->image, 0, &leaf);
    rx.port = leaf.parent_port;
    rx.src_ip = leaf.parent_ip;
    if (header != NULL) {
        struct by_header whole = *header;

        whole.psum = by_psum(payload, bytes);
        by_header_encode(&whole, packet);
        memcpy(packet + BY_WIRE_HEADER_BYTES, payload, bytes);
    }
    by_endpoint_step(b->endpoint, b->now_ns, &rx, header != NULL && from_parent, tx, 16, &count);
    for (uint32_t i = 0; i < count; i++) {
        struct by_header h;
        const uint8_t *unused;

        assert_int_equal(by_header_decode(tx[i].header, BY_WIRE_HEADER_BYTES, &h, &unused), 0);
        b->probes += h.type == BY_TYPE_PROBE;
        b->contribs += h.type == BY_TYPE_CONTRIB;
        if (h.type == BY_TYPE_CONTRIB)
            b->last = h;
    }
}

static struct suspect_bench *bench_open(void)
{
    struct suspect_bench *b = calloc(1, sizeof(*b));
    struct by_endpoint_config config = {.job = 1, .stall_ns = STALL};
    struct by_call call = {
        .collective = BY_COLLECTIVE_ALLREDUCE, .op = BY_OP_SUM, .dtype = BY_DTYPE_U8, .mode = BY_MODE_FAST};
    size_t bytes;

    fabric_three_level(&b->fabric, 2, 1, 2, 1000, 1000);
    fabric_job_add(&b->fabric, 1, 3);
    assert_non_null(fabric_tree_add(&b->fabric, 0, named(b, "core0"), 0, NULL));
    b->image = fabric_image(&b->fabric, named(b, "h0"), &config.image_bytes);
    config.image = b->image;
    bytes = by_endpoint_size(&config);
    assert_int_equal(by_endpoint_init(&b->endpoint, aligned_alloc(64, bytes), bytes, &config), 0);
    b->endpoint->session_phase = BY_SESSION_AGREED;
    b->now_ns = 5;
    call.count = sizeof(buffer);
    call.send = call.recv = buffer;
    assert_int_equal(by_endpoint_post(b->endpoint, &call, &b->id, NULL), 0);
    bench_give(b, NULL, NULL, 0, 0);
    assert_int_equal(b->contribs, 1);
    return b;
}

static void bench_close(struct suspect_bench *b)
{
    free(b->endpoint);
    free(b->image);
    free(b);
}

struct heard {
    const char *node;
    unsigned state;
    uint64_t missing;
    const char *at; /* NULL: the node itself */
};

static void hear_wait(struct suspect_bench *b, const struct heard *heard)
{
    struct by_wait wait = {.node = (uint16_t)named(b, heard->node),
                           .state = (uint8_t)heard->state,
                           .at = (uint16_t)named(b, heard->at != NULL ? heard->at : heard->node),
                           .missing = heard->missing};
    struct by_header header = b->last;
    uint8_t payload[BY_WAIT_BYTES];

    header.type = BY_TYPE_WAIT;
    header.flags = 0;
    by_wait_encode(&wait, payload);
    bench_give(b, &header, payload, BY_WAIT_BYTES, 1);
}

/* Advances the time from timer to timer until the call ends. Answers each probe with the WAITs of
 * `heard` (may be NULL). */
static int bench_end(struct suspect_bench *b, const struct heard heard[3], struct by_call_status *status)
{
    int error;

    while ((error = by_endpoint_test(b->endpoint, b->id, status)) == BY_EAGAIN) {
        assert_true(by_endpoint_deadline(b->endpoint) != UINT64_MAX);
        assert_true(by_endpoint_deadline(b->endpoint) > b->now_ns);
        b->now_ns = by_endpoint_deadline(b->endpoint);
        bench_give(b, NULL, NULL, 0, 0);
        for (unsigned h = 0; heard != NULL && h < 3 && heard[h].node != NULL; h++)
            hear_wait(b, &heard[h]);
    }
    return error;
}

static void a_call_without_progress_ends_in_time_and_names_the_silent_parent(void **state)
{
    struct suspect_bench *b = bench_open();
    struct by_call_status status;
    struct by_call call = {.collective = BY_COLLECTIVE_BARRIER};
    uint32_t id;

    (void)state;
    assert_int_equal(bench_end(b, NULL, &status), BY_ETIMEDOUT);
    assert_in_range(b->now_ns, 5 + STALL, 5 + STALL + (UINT64_C(1) << BY_WHEEL_TICK));
    assert_int_equal(status.error, BY_ETIMEDOUT);
    assert_int_equal(status.tree, 0);
    assert_int_equal(status.seq, 0);
    assert_int_equal(status.node, named(b, "leaf0"));
    assert_int_equal(status.wait_state, 0);
    assert_int_equal(status.missing_node, BY_NODE_NONE);
    assert_int_equal(by_endpoint_post(b->endpoint, &call, &id, NULL), BY_ESTATE);
    bench_close(b);
}

static void probes_begin_after_a_quarter_of_the_time(void **state)
{
    struct suspect_bench *b = bench_open();

    (void)state;
    while (b->probes == 0) {
        b->now_ns = by_endpoint_deadline(b->endpoint);
        bench_give(b, NULL, NULL, 0, 0);
    }
    assert_in_range(b->now_ns, STALL / 4, STALL / 2);
    assert_in_range(b->contribs, 3, 20);
    bench_close(b);
}

struct suspect_row {
    struct heard heard[3];
    const char *node;
    unsigned state;
    const char *missing;
};

static void the_place_nearest_to_the_cause_is_named(void **state)
{
    /* Bits of children: leaf0: h0 0, h1 1; spines: leaf 0; core0: spine0 0, spine1 1. */
    static const struct suspect_row rows[] = {
        {{{"leaf0", BY_WAIT_CHILDREN, 2, NULL}}, "leaf0", BY_WAIT_CHILDREN, "h1"},
        {{{"leaf0", BY_WAIT_PARENT, 0, NULL}}, "leaf0", BY_WAIT_PARENT, "spine0"},
        {{{"leaf0", BY_WAIT_PARENT, 0, NULL}, {"spine0", BY_WAIT_PARENT, 0, NULL}},
         "spine0",
         BY_WAIT_PARENT,
         "core0"},
        {{{"spine0", BY_WAIT_PARENT, 0, NULL}, {"leaf0", BY_WAIT_PARENT, 0, NULL}},
         "spine0",
         BY_WAIT_PARENT,
         "core0"},
        {{{"leaf0", BY_WAIT_PARENT, 0, NULL},
          {"core0", BY_WAIT_CHILDREN, 2, NULL},
          {"leaf0", BY_WAIT_PARENT, 0, NULL}},
         "core0",
         BY_WAIT_CHILDREN,
         "spine1"},
        /* first h1 was late, then the core did not respond */
        {{{"leaf0", BY_WAIT_CHILDREN, 2, NULL},
          {"leaf0", BY_WAIT_PARENT, 0, NULL},
          {"spine0", BY_WAIT_PARENT, 0, NULL}},
         "spine0",
         BY_WAIT_PARENT,
         "core0"},
        {{{"core0", BY_WAIT_CHILDREN, 3, NULL}, {"core0", BY_WAIT_CHILDREN, 2, NULL}},
         "core0",
         BY_WAIT_CHILDREN,
         "spine1"},
        /* the core reports a WAIT from the other branch: its node is no ancestor, but nearest to
         * the cause */
        {{{"leaf0", BY_WAIT_PARENT, 0, NULL},
          {"core0", BY_WAIT_CHILDREN, 2, "leaf1"},
          {"leaf0", BY_WAIT_PARENT, 0, NULL}},
         "leaf1",
         BY_WAIT_CHILDREN,
         "h3"},
        {{{"core0", BY_WAIT_CHILDREN, 2, NULL}, {"core0", BY_WAIT_CHILDREN, 1, "spine1"}},
         "spine1",
         BY_WAIT_CHILDREN,
         "leaf1"},
        {{{"core0", BY_WAIT_CHILDREN, 1, "leaf1"}, {"core0", BY_WAIT_CHILDREN, 2, NULL}},
         "core0",
         BY_WAIT_CHILDREN,
         "spine1"},
        {{{"leaf0", BY_WAIT_PARENT, 0, NULL}, {"spine0", BY_WAIT_CHILDREN, 2, "leaf0"}},
         "leaf0",
         BY_WAIT_CHILDREN,
         "h1"},
        /* no node of the tree, so that no record names its parent */
        {{{"nobody", BY_WAIT_PARENT, 0, NULL}}, "nobody", BY_WAIT_PARENT, "nobody"},
    };

    (void)state;
    for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct suspect_bench *b = bench_open();
        struct by_call_status status;

        assert_int_equal(bench_end(b, rows[r].heard, &status), BY_ETIMEDOUT);
        assert_int_equal(status.node, named(b, rows[r].node));
        assert_int_equal(status.wait_state, rows[r].state);
        assert_int_equal(status.missing_node, named(b, rows[r].missing));
        bench_close(b);
    }
}

static void who_has_fallen_silent_is_believed_no_longer(void **state)
{
    static const struct heard before[] = {{"leaf0", BY_WAIT_PARENT, 0, NULL},
                                          {"spine0", BY_WAIT_PARENT, 0, NULL}};
    static const struct heard after[3] = {{"leaf0", BY_WAIT_PARENT, 0, NULL}};
    struct by_call_status status;

    (void)state;
    for (unsigned leaf_lives = 0; leaf_lives < 2; leaf_lives++) {
        struct suspect_bench *b = bench_open();

        for (unsigned h = 0; h < 2; h++)
            hear_wait(b, &before[h]);
        assert_int_equal(bench_end(b, leaf_lives ? after : NULL, &status), BY_ETIMEDOUT);
        assert_int_equal(status.node, named(b, "leaf0"));
        assert_int_equal(status.wait_state, leaf_lives ? BY_WAIT_PARENT : 0);
        assert_int_equal(status.missing_node, leaf_lives ? (unsigned)named(b, "spine0") : BY_NODE_NONE);
        bench_close(b);
    }
}

/* With absent_ns a call waits longer for ranks, as long as a node reports them, and not longer for
 * nodes between. */
static void absent_ranks_are_waited_for_longer_than_a_silent_network(void **state)
{
    static const struct {
        struct heard heard[3];
        unsigned times; /* of STALL, at which the call ends */
        int error_node;
    } rows[] = {
        {{{"core0", BY_WAIT_CHILDREN, 2, "leaf1"}}, 5, 1}, /* h3 */
        {{{"leaf0", BY_WAIT_CHILDREN, 2, NULL}}, 5, 1},    /* h1 */
        {{{"core0", BY_WAIT_CHILDREN, 2, NULL}}, 1, 1},    /* spine1 */
        {{{"leaf0", BY_WAIT_PARENT, 0, NULL}, {"spine0", BY_WAIT_PARENT, 0, NULL}}, 1, 1},
        {{{NULL, 0, 0, NULL}}, 1, 0},
    };
    struct by_call_status status;

    (void)state;
    for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct suspect_bench *b = bench_open();

        b->endpoint->config.absent_ns = 5 * STALL;
        assert_int_equal(bench_end(b, rows[r].error_node ? rows[r].heard : NULL, &status), BY_ETIMEDOUT);
        assert_in_range(b->now_ns, rows[r].times * STALL, rows[r].times * STALL + STALL / 4);
        bench_close(b);
    }
}

/* Only a report that ranks alone are missing, and a recent one, excludes a failed part; the reports
 * of nodes further up, which wait for the node that reports, do not matter meanwhile. */
static void a_tree_is_cut_unless_only_ranks_are_missing(void **state)
{
    const uint64_t wait_ns = STALL / 8;
    const struct heard between = {"core0", BY_WAIT_CHILDREN, 2, NULL};
    const struct heard absent = {"core0", BY_WAIT_CHILDREN, 2, "leaf1"};
    struct suspect_bench *b = bench_open();
    uint64_t timeout_ns;

    (void)state;
    b->now_ns += wait_ns - 1;
    assert_false(by_endpoint_is_cut(b->endpoint, 0, b->now_ns, wait_ns));
    b->now_ns++;
    assert_true(by_endpoint_is_cut(b->endpoint, 0, b->now_ns, wait_ns));
    assert_false(by_endpoint_is_cut(b->endpoint, 1, b->now_ns, wait_ns)); /* there is no such tree */
    hear_wait(b, &between);
    assert_true(by_endpoint_is_cut(b->endpoint, 0, b->now_ns, wait_ns));
    hear_wait(b, &absent);
    hear_wait(b, &between);
    assert_false(by_endpoint_is_cut(b->endpoint, 0, b->now_ns, wait_ns));
    timeout_ns = by_pace_timeout(b->endpoint, &b->endpoint->lanes[0]);
    b->now_ns += wait_ns + 3 * timeout_ns;
    assert_false(by_endpoint_is_cut(b->endpoint, 0, b->now_ns, wait_ns));
    assert_true(by_endpoint_is_cut(b->endpoint, 0, b->now_ns + 1, wait_ns));
    b->endpoint->frozen = 1;
    assert_false(by_endpoint_is_cut(b->endpoint, 0, b->now_ns + 1, wait_ns));
    bench_close(b);
}

/* A node that reported an absent rank and then falls silent is the failure. */
static void a_silence_after_a_report_of_an_absent_rank_ends_the_call(void **state)
{
    static const struct heard absent = {"leaf0", BY_WAIT_CHILDREN, 2, NULL};
    struct suspect_bench *b = bench_open();
    struct by_call_status status;

    (void)state;
    b->endpoint->config.absent_ns = 100 * STALL;
    while (b->now_ns < 3 * STALL) {
        b->now_ns = by_endpoint_deadline(b->endpoint);
        bench_give(b, NULL, NULL, 0, 0);
        hear_wait(b, &absent);
    }
    assert_int_equal(by_endpoint_test(b->endpoint, b->id, &status), BY_EAGAIN);
    assert_int_equal(bench_end(b, NULL, &status), BY_ETIMEDOUT);
    assert_in_range(b->now_ns, 3 * STALL, 4 * STALL);
    assert_int_equal(status.node, named(b, "leaf0"));
    assert_int_equal(status.wait_state, 0);
    bench_close(b);
}

static void a_wait_for_another_chunk_or_of_a_wrong_size_says_nothing(void **state)
{
    struct suspect_bench *b = bench_open();
    struct by_call_status status;
    struct by_header header = b->last;
    uint8_t payload[BY_WAIT_BYTES] = {0};

    (void)state;
    header.type = BY_TYPE_WAIT;
    header.flags = 0;
    bench_give(b, &header, payload, BY_WAIT_BYTES, 1); /* an invalid state */
    bench_give(b, &header, payload, BY_WAIT_BYTES - 4, 1);
    assert_int_equal(by_endpoint_counters(b->endpoint)->drop_format, 2);
    b->last.seq += 1;
    hear_wait(b, &(struct heard){"leaf0", BY_WAIT_CHILDREN, 2, NULL});
    assert_int_equal(by_endpoint_counters(b->endpoint)->wait, 1);
    b->last.seq -= 1;
    assert_int_equal(bench_end(b, NULL, &status), BY_ETIMEDOUT);
    assert_int_equal(status.wait_state, 0);
    bench_close(b);
}

/* Puts records in front of the tree's own, in place of those of h2, h3, leaf1 and spine1. */
static void put_hops_before(struct suspect_bench *b, const struct by_image_hop added[4])
{
    static const char *const gone[] = {"h2", "h3", "leaf1", "spine1"};
    const struct by_ep_lane *lane = &b->endpoint->lanes[0];
    struct by_image_hop kept[16];
    uint32_t count = 0;

    for (uint32_t h = lane->hop_first; h < lane->hop_end; h++) {
        int keeps = 1;

        by_image_hop(b->image, h, &kept[count]);
        for (unsigned g = 0; g < 4; g++)
            keeps = keeps && kept[count].node != named(b, gone[g]);
        count += (uint32_t)keeps;
    }
    assert_int_equal(4 + count, lane->hop_end - lane->hop_first);
    for (uint32_t h = 0; h < 4; h++)
        by_image_put_hop(b->image, lane->hop_first + h, &added[h]);
    for (uint32_t h = 0; h < count; h++)
        by_image_put_hop(b->image, lane->hop_first + 4 + h, &kept[h]);
}

/* Records of another job, of another tree, and of a relay look alike otherwise; a host that is an
 * inner node of the tree has a record for its own rank, whose parent it is itself. */
static void only_records_of_nodes_of_the_tree_name_them(void **state)
{
    struct suspect_bench *b = bench_open();
    const uint16_t h0 = (uint16_t)named(b, "h0"), h3 = (uint16_t)named(b, "h3"),
                   leaf0 = (uint16_t)named(b, "leaf0");
    const struct by_image_hop added[4] = {
        {.job = 2, .node = leaf0, .parent = h3},
        {.job = 1, .tree = 1, .node = leaf0, .parent = h3},
        {.job = 1, .node = leaf0, .parent = h3, .child = BY_HOP_RELAY, .relays = 2},
        {.job = 1, .node = h0, .parent = h0}};
    struct by_ep_lane *lane = &b->endpoint->lanes[0];
    struct by_call_status status;

    (void)state;
    put_hops_before(b, added);
    assert_int_equal(by_suspect_upper(b->endpoint, lane), leaf0);
    lane->parent_node = h0; /* as at a host that runs an engine beside this endpoint */
    assert_int_equal(by_suspect_upper(b->endpoint, lane), leaf0);
    lane->parent_node = leaf0;
    hear_wait(b, &(struct heard){"leaf0", BY_WAIT_PARENT, 0, NULL});
    by_suspect_fill(b->endpoint, lane, &status);
    assert_int_equal(status.node, leaf0);
    assert_int_equal(status.missing_node, named(b, "spine0"));
    bench_close(b);
}

static void without_records_the_waiting_node_alone_is_named(void **state)
{
    struct suspect_bench *b = bench_open();
    struct by_ep_lane *lane = &b->endpoint->lanes[0];
    struct by_call_status status;

    (void)state;
    hear_wait(b, &(struct heard){"leaf0", BY_WAIT_CHILDREN, 2, NULL});
    lane->hop_first = lane->hop_end = 0;
    by_suspect_fill(b->endpoint, lane, &status);
    assert_int_equal(status.node, named(b, "leaf0"));
    assert_int_equal(status.missing, 2);
    assert_int_equal(status.missing_node, BY_NODE_NONE);
    lane->parent_node = b->endpoint->node;
    assert_int_equal(by_suspect_upper(b->endpoint, lane), BY_NODE_NONE);
    bench_close(b);
}

static void hear_err(struct suspect_bench *b, unsigned reason, uint32_t seq)
{
    struct by_err err = {.node = (uint16_t)named(b, "spine0"),
                         .reason = (uint8_t)reason,
                         .seq = seq,
                         .first = {.op = BY_OP_SUM, .dtype = BY_DTYPE_U8, .child = 0, .count = 64},
                         .other = {.op = BY_OP_MAX, .dtype = BY_DTYPE_U8, .child = 1, .count = 64}};
    struct by_header header = b->last;
    uint8_t payload[BY_ERR_BYTES];

    header.type = BY_TYPE_ERR;
    header.flags = 0;
    header.seq = seq;
    by_err_encode(&err, payload);
    bench_give(b, &header, payload, BY_ERR_BYTES, 1);
}

static void ranks_that_disagree_end_with_both_sides_of_it(void **state)
{
    struct suspect_bench *b = bench_open();
    struct by_call call = {.collective = BY_COLLECTIVE_BARRIER};
    struct by_call_status status;
    uint32_t other;

    (void)state;
    assert_int_equal(by_endpoint_post(b->endpoint, &call, &other, NULL), 0);
    hear_err(b, BY_ERR_MISMATCH, 77); /* a chunk that is not in flight: ignored */
    assert_int_equal(by_endpoint_test(b->endpoint, b->id, &status), BY_EAGAIN);
    hear_err(b, BY_ERR_MISMATCH, 0);
    assert_int_equal(by_endpoint_test(b->endpoint, b->id, &status), BY_EMISMATCH);
    assert_int_equal(status.node, named(b, "spine0"));
    assert_int_equal(status.err.first.op, BY_OP_SUM);
    assert_int_equal(status.err.other.op, BY_OP_MAX);
    assert_int_equal(by_endpoint_test(b->endpoint, other, &status), BY_EABORTED);
    assert_int_equal(by_endpoint_post(b->endpoint, &call, &other, NULL), BY_ESTATE);
    bench_close(b);
}

static void a_node_whose_memory_failed_is_named(void **state)
{
    struct suspect_bench *b = bench_open();
    struct by_call_status status;

    (void)state;
    hear_err(b, BY_ERR_MEMORY, 0);
    assert_int_equal(by_endpoint_test(b->endpoint, b->id, &status), BY_ECHECKSUM);
    assert_int_equal(status.node, named(b, "spine0"));
    assert_int_equal(status.err.reason, BY_ERR_MEMORY);
    bench_close(b);
}

static void a_rank_that_another_host_misses_ends_the_call(void **state)
{
    struct suspect_bench *b = bench_open();
    struct by_call_status status;

    (void)state;
    hear_err(b, BY_ERR_RANK, 0);
    assert_int_equal(by_endpoint_test(b->endpoint, b->id, &status), BY_EIO);
    assert_int_equal(status.node, named(b, "spine0"));
    assert_int_equal(status.err.reason, BY_ERR_RANK);
    bench_close(b);
}

/* The objection is to the first chunk that this host has not sent, once on each tree. */
static void a_host_tells_the_others_which_rank_it_misses(void **state)
{
    struct suspect_bench *b = bench_open();
    uint32_t count = 0, told = 0;
    struct by_tx tx[64];
    uint32_t highest = b->last.seq;

    (void)state;
    by_endpoint_tell_lost(b->endpoint, 70000, BY_FATE_ENDED);
    for (int step = 0; step < 2; step++) {
        by_endpoint_step(b->endpoint, 1, NULL, 0, tx, 64, &count);
        for (uint32_t i = 0; i < count; i++) {
            struct by_header header;
            struct by_err err;
            const uint8_t *payload;
            uint8_t packet[BY_WIRE_HEADER_BYTES + BY_ERR_BYTES];

            memcpy(packet, tx[i].header, BY_WIRE_HEADER_BYTES);
            memcpy(packet + BY_WIRE_HEADER_BYTES, tx[i].small, BY_ERR_BYTES);
            if (tx[i].payload_bytes != BY_ERR_BYTES)
                continue;
            assert_int_equal(by_header_decode(packet, sizeof(packet), &header, &payload), BY_ERR_BYTES);
            assert_int_equal(header.type, BY_TYPE_ERR);
            assert_int_equal(by_psum(payload, BY_ERR_BYTES), header.psum);
            assert_int_equal(by_err_decode(payload, BY_ERR_BYTES, &err), 0);
            assert_int_equal(err.reason, BY_ERR_RANK);
            assert_int_equal(err.expected_seq, 70000);
            assert_int_equal(err.first.count, BY_FATE_ENDED);
            assert_true((int32_t)(header.seq - highest) > 0);
            told++;
        }
    }
    assert_int_equal(told, 1);
    bench_close(b);
}

static void a_corrupted_objection_ends_nothing(void **state)
{
    struct suspect_bench *b = bench_open();
    struct by_err err = {.reason = BY_ERR_MISMATCH};
    struct by_header header = b->last;
    uint8_t packet[BY_WIRE_HEADER_BYTES + BY_ERR_BYTES];
    struct by_rx rx = {.data = packet, .bytes = sizeof(packet)};
    struct by_image_leaf leaf;
    struct by_tx tx[4];
    uint32_t count;

    (void)state;
    by_image_leaf(b->image, 0, &leaf);
    rx.port = leaf.parent_port;
    rx.src_ip = leaf.parent_ip;
    header.type = BY_TYPE_ERR;
    header.flags = 0;
    by_err_encode(&err, packet + BY_WIRE_HEADER_BYTES);
    header.psum = by_psum(packet + BY_WIRE_HEADER_BYTES, BY_ERR_BYTES) + 1;
    by_header_encode(&header, packet);
    by_endpoint_step(b->endpoint, b->now_ns, &rx, 1, tx, 4, &count);
    assert_int_equal(by_endpoint_test(b->endpoint, b->id, NULL), BY_EAGAIN);
    assert_int_equal(by_endpoint_counters(b->endpoint)->drop_psum, 1);
    bench_close(b);
}

static void an_operation_that_a_node_lacks_ends_the_call(void **state)
{
    struct suspect_bench *b = bench_open();

    (void)state;
    hear_err(b, BY_ERR_UNSUPPORTED, 0);
    assert_int_equal(by_endpoint_test(b->endpoint, b->id, NULL), BY_EUNSUPPORTED);
    bench_close(b);
}

static void an_error_that_may_heal_is_named_only_when_the_time_is_over(void **state)
{
    struct suspect_bench *b = bench_open();
    struct by_call_status status;

    (void)state;
    hear_err(b, BY_ERR_NO_ENTRY, 0);
    assert_int_equal(by_endpoint_test(b->endpoint, b->id, NULL), BY_EAGAIN);
    assert_int_equal(bench_end(b, NULL, &status), BY_ETIMEDOUT);
    assert_int_equal(status.node, named(b, "spine0"));
    assert_int_equal(status.err.reason, BY_ERR_NO_ENTRY);
    bench_close(b);
}

/* A WAIT and an ERR were about chunk 0, which has arrived since. */
static void what_was_said_of_an_earlier_chunk_does_not_count_for_the_next(void **state)
{
    for (unsigned by_err = 0; by_err < 2; by_err++) {
        struct suspect_bench *b = bench_open();
        struct by_call call = {.collective = BY_COLLECTIVE_BARRIER};
        struct by_header result = b->last;
        struct by_call_status status;
        uint32_t id;

        (void)state;
        assert_int_equal(by_endpoint_post(b->endpoint, &call, &id, NULL), 0);
        bench_give(b, NULL, NULL, 0, 0);
        assert_int_equal(b->last.seq, 1);
        b->last.seq = 0;
        if (by_err)
            hear_err(b, BY_ERR_NO_ENTRY, 0);
        else
            hear_wait(b, &(struct heard){"core0", BY_WAIT_CHILDREN, 2, NULL});
        b->now_ns += STALL / 8;
        assert_int_equal(by_endpoint_suspects(b->endpoint, b->now_ns, 1, &status), 1);
        assert_int_equal(status.node, named(b, by_err ? "spine0" : "core0"));
        result.type = BY_TYPE_RESULT;
        result.nleaf = 4;
        result.witness = 0;
        for (uint16_t rank = 0; rank < 4; rank++)
            result.witness += by_leaf_tag(1, rank);
        bench_give(b, &result, buffer, sizeof(buffer), 1);
        assert_int_equal(by_endpoint_test(b->endpoint, b->id, NULL), 0);
        b->now_ns += STALL / 8;
        assert_int_equal(by_endpoint_suspects(b->endpoint, b->now_ns, 1, &status), 1);
        assert_int_equal(status.seq, 1);
        assert_int_equal(status.node, named(b, "leaf0"));
        assert_int_equal(status.wait_state, 0);
        assert_int_equal(status.err.reason, 0);
        bench_close(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_without_progress_ends_in_time_and_names_the_silent_parent),
        cmocka_unit_test(probes_begin_after_a_quarter_of_the_time),
        cmocka_unit_test(the_place_nearest_to_the_cause_is_named),
        cmocka_unit_test(who_has_fallen_silent_is_believed_no_longer),
        cmocka_unit_test(absent_ranks_are_waited_for_longer_than_a_silent_network),
        cmocka_unit_test(a_tree_is_cut_unless_only_ranks_are_missing),
        cmocka_unit_test(a_silence_after_a_report_of_an_absent_rank_ends_the_call),
        cmocka_unit_test(a_wait_for_another_chunk_or_of_a_wrong_size_says_nothing),
        cmocka_unit_test(only_records_of_nodes_of_the_tree_name_them),
        cmocka_unit_test(without_records_the_waiting_node_alone_is_named),
        cmocka_unit_test(what_was_said_of_an_earlier_chunk_does_not_count_for_the_next),
        cmocka_unit_test(ranks_that_disagree_end_with_both_sides_of_it),
        cmocka_unit_test(a_node_whose_memory_failed_is_named),
        cmocka_unit_test(a_rank_that_another_host_misses_ends_the_call),
        cmocka_unit_test(a_host_tells_the_others_which_rank_it_misses),
        cmocka_unit_test(a_corrupted_objection_ends_nothing),
        cmocka_unit_test(an_operation_that_a_node_lacks_ends_the_call),
        cmocka_unit_test(an_error_that_may_heal_is_named_only_when_the_time_is_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
