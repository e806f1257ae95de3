/* Which results the endpoint accepts, what it writes, and how it counts the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/endpoint/endpoint.h"
#include "tests/unit/offload/endpoint/rig.h"

#define RANKS 3
#define BYTES 64 /* one chunk of the rig */

/* One allreduce of u8 in flight: `chunks` chunks of 64 bytes. */
struct accept_flight {
    struct endpoint_rig rig;
    uint8_t send[64 * BYTES], recv[64 * BYTES];
    uint32_t id;
    struct by_header first; /* the contribution for seq 0 */
};

static struct accept_flight *flight_open(unsigned collective, unsigned root, int in_place, unsigned chunks,
                                         uint16_t window)
{
    struct accept_flight *f = calloc(1, sizeof(*f));
    struct rig_tree tree = {.window = window};
    struct by_call call = {.collective = (uint8_t)collective,
                           .op = BY_OP_SUM,
                           .dtype = BY_DTYPE_U8,
                           .mode = BY_MODE_FAST,
                           .root = (uint16_t)root,
                           .count = chunks * BYTES,
                           .send = f->send,
                           .recv = in_place ? f->send : f->recv};

    memset(f->send, 1, sizeof(f->send));
    memset(f->recv, 2, sizeof(f->recv));
    rig_open(&f->rig, RANKS, &tree, 1, NULL);
    assert_int_equal(by_endpoint_post(f->rig.endpoint, &call, &f->id, NULL), 0);
    assert_true(rig_step(&f->rig) > 0);
    f->first = f->rig.sent[0];
    return f;
}

static void flight_close(struct accept_flight *f)
{
    rig_close(&f->rig);
    free(f);
}

/* Ways to corrupt a result, and the counter that must grow. */
struct spoil_row {
    const char *what;
    void (*spoil)(struct by_header *header);
    uint32_t payload_bytes; /* bytes given with the header */
    size_t counter;
};

static void spoil_job(struct by_header *h)
{
    h->job++;
}
static void spoil_tree(struct by_header *h)
{
    h->tree = 5;
}
static void spoil_gen(struct by_header *h)
{
    h->gen--;
}
static void spoil_child(struct by_header *h)
{
    h->child++;
}
static void spoil_type(struct by_header *h)
{
    h->type = BY_TYPE_CONTRIB;
}
static void spoil_op(struct by_header *h)
{
    h->op = BY_OP_MAX;
}
static void spoil_dtype(struct by_header *h)
{
    h->dtype = BY_DTYPE_I8;
}
static void spoil_mode(struct by_header *h)
{
    h->mode = BY_MODE_DET;
}
static void spoil_count(struct by_header *h)
{
    h->count--;
}
static void spoil_optag(struct by_header *h)
{
    h->optag ^= 1;
}
static void spoil_poison(struct by_header *h)
{
    h->flags |= BY_FLAG_POISON;
}
static void spoil_nodata(struct by_header *h)
{
    h->flags |= BY_FLAG_NODATA;
}
static void spoil_seq(struct by_header *h)
{
    h->seq += 4;
}
static void spoil_psum(struct by_header *h)
{
    h->psum++;
}
static void spoil_nleaf(struct by_header *h)
{
    h->nleaf--;
}
static void spoil_witness(struct by_header *h)
{
    h->witness ^= 0x80000000u;
}

#define AT(name) offsetof(struct by_endpoint_counters, name)

static void a_result_with_one_wrong_field_is_dropped_and_counted_by_kind(void **state)
{
    static const struct spoil_row rows[] = {
        {"job", spoil_job, BYTES, AT(drop_entry)},       {"tree", spoil_tree, BYTES, AT(drop_entry)},
        {"gen", spoil_gen, BYTES, AT(drop_entry)},       {"child", spoil_child, BYTES, AT(drop_ingress)},
        {"type", spoil_type, BYTES, AT(drop_ingress)},   {"op", spoil_op, BYTES, AT(drop_match)},
        {"dtype", spoil_dtype, BYTES, AT(drop_match)},   {"mode", spoil_mode, BYTES, AT(drop_match)},
        {"count", spoil_count, BYTES, AT(drop_match)},   {"optag", spoil_optag, BYTES, AT(drop_match)},
        {"poison", spoil_poison, BYTES, AT(drop_match)}, {"no payload", spoil_nodata, 0, AT(drop_match)},
        {"size", NULL, BYTES - 4, AT(drop_match)},       {"a seq not sent", spoil_seq, BYTES, AT(drop_match)},
        {"psum", spoil_psum, BYTES, AT(drop_psum)},
    };
    uint8_t payload[BYTES];

    (void)state;
    memset(payload, 9, sizeof(payload));
    for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct accept_flight *f = flight_open(BY_COLLECTIVE_ALLREDUCE, 0, 0, 1, 4);
        struct by_endpoint_counters before = *by_endpoint_counters(f->rig.endpoint), after;
        struct by_header result = rig_result(&f->rig, &f->first, payload, BYTES);

        if (rows[r].spoil != NULL)
            rows[r].spoil(&result);
        rig_give(&f->rig, &result, payload, rows[r].payload_bytes);
        after = *by_endpoint_counters(f->rig.endpoint);
        if (*(const uint64_t *)((const char *)&after + rows[r].counter) !=
            *(const uint64_t *)((const char *)&before + rows[r].counter) + 1)
            fail_msg("wrong %s is not counted where it should be", rows[r].what);
        assert_int_equal(after.result, before.result);
        assert_int_equal(after.rx, before.rx + 1);
        assert_int_equal(f->recv[0], 2);
        assert_int_equal(by_endpoint_test(f->rig.endpoint, f->id, NULL), BY_EAGAIN);
        /* the correct result is still accepted */
        rig_answer(&f->rig, &f->first, BYTES, 9);
        assert_int_equal(by_endpoint_test(f->rig.endpoint, f->id, NULL), 0);
        assert_memory_equal(f->recv, payload, BYTES);
        flight_close(f);
    }
}

/* Header and psum are valid, so the link is not the cause, and a retransmission would not repair
 * it. */
static void a_result_that_lacks_a_leaf_ends_the_call_and_names_where_it_came_from(void **state)
{
    static void (*const spoil[])(struct by_header *) = {spoil_nleaf, spoil_witness};

    (void)state;
    for (unsigned r = 0; r < 2; r++) {
        struct accept_flight *f = flight_open(BY_COLLECTIVE_ALLREDUCE, 0, 0, 1, 4);
        struct by_header result = rig_result(&f->rig, &f->first, f->send, BYTES);
        struct by_call_status status;

        spoil[r](&result);
        rig_give(&f->rig, &result, f->send, BYTES);
        assert_int_equal(by_endpoint_counters(f->rig.endpoint)->drop_witness, 1);
        assert_int_equal(by_endpoint_counters(f->rig.endpoint)->result, 0);
        assert_int_equal(f->recv[0], 2);
        assert_int_equal(by_endpoint_test(f->rig.endpoint, f->id, &status), BY_ECHECKSUM);
        assert_int_equal(status.node, 0); /* the switch */
        assert_int_equal(status.seq, f->first.seq);
        assert_int_equal(status.err.reason, 0);
        flight_close(f);
    }
}

static void a_packet_that_is_no_packet_of_ours_is_counted_as_format(void **state)
{
    struct accept_flight *f = flight_open(BY_COLLECTIVE_ALLREDUCE, 0, 0, 1, 4);
    uint8_t bytes[BY_WIRE_HEADER_BYTES + BYTES];
    struct by_rx rx = {.data = bytes, .src_ip = fabric_ip(&f->rig.fabric, 0, 0)};
    struct by_tx tx[4];
    struct by_header result = rig_result(&f->rig, &f->first, f->send, BYTES);
    uint32_t count;

    (void)state;
    by_header_encode(&result, bytes);
    bytes[12] ^= 1; /* the header's tag no longer matches */
    rx.bytes = sizeof(bytes);
    by_endpoint_step(f->rig.endpoint, f->rig.now_ns, &rx, 1, tx, 4, &count);
    for (unsigned size = 0; size < BY_WIRE_HEADER_BYTES; size++) {
        rx.bytes = (uint16_t)size;
        by_endpoint_step(f->rig.endpoint, f->rig.now_ns, &rx, 1, tx, 4, &count);
    }
    assert_int_equal(by_endpoint_counters(f->rig.endpoint)->drop_format, BY_WIRE_HEADER_BYTES + 1);
    flight_close(f);
}

static void a_result_from_another_port_or_address_is_dropped(void **state)
{
    struct accept_flight *f = flight_open(BY_COLLECTIVE_ALLREDUCE, 0, 0, 1, 4);
    struct by_header result = rig_result(&f->rig, &f->first, f->send, BYTES);
    uint32_t ip = fabric_ip(&f->rig.fabric, 0, 0);

    (void)state;
    rig_give_from(&f->rig, 1, ip, &result, f->send, BYTES);
    rig_give_from(&f->rig, 0, ip + 1, &result, f->send, BYTES);
    rig_give_from(&f->rig, BY_PORT_LOCAL, ip, &result, f->send, BYTES);
    assert_int_equal(by_endpoint_counters(f->rig.endpoint)->drop_ingress, 3);
    assert_int_equal(by_endpoint_counters(f->rig.endpoint)->result, 0);
    flight_close(f);
}

static void a_result_addressed_to_all_children_is_accepted(void **state)
{
    struct accept_flight *f = flight_open(BY_COLLECTIVE_ALLREDUCE, 0, 0, 1, 4);
    struct by_header result = rig_result(&f->rig, &f->first, f->send, BYTES);

    (void)state;
    result.child = BY_WIRE_CHILD_ALL;
    rig_give(&f->rig, &result, f->send, BYTES);
    assert_int_equal(by_endpoint_test(f->rig.endpoint, f->id, NULL), 0);
    flight_close(f);
}

static void a_result_is_written_once_and_a_second_one_is_a_duplicate(void **state)
{
    struct accept_flight *f = flight_open(BY_COLLECTIVE_ALLREDUCE, 0, 0, 2, 4);

    (void)state;
    rig_answer(&f->rig, &f->first, BYTES, 7);
    assert_int_equal(f->recv[0], 7);
    memset(
        f->recv, 3,
        BYTES); /* its owner may write only after the end; this shows whether the endpoint writes it twice */
    rig_answer(&f->rig, &f->first, BYTES, 8);
    assert_int_equal(f->recv[0], 3);
    assert_int_equal(by_endpoint_counters(f->rig.endpoint)->duplicate, 1);
    assert_int_equal(by_endpoint_counters(f->rig.endpoint)->result, 1);
    flight_close(f);
}

static void a_late_result_of_a_reused_slot_is_a_duplicate(void **state)
{
    struct accept_flight *f = flight_open(BY_COLLECTIVE_ALLREDUCE, 0, 0, 12, 4);
    struct by_header headers[4];

    (void)state;
    memcpy(headers, f->rig.sent, sizeof(headers));
    for (int i = 0; i < 4; i++)
        rig_answer(&f->rig, &headers[i], BYTES, 7);
    assert_true(rig_sent(&f->rig, BY_TYPE_CONTRIB, 7));
    rig_answer(&f->rig, &headers[0], BYTES, 8); /* seq 0 again, while seq 4 holds its slot */
    assert_int_equal(by_endpoint_counters(f->rig.endpoint)->duplicate, 1);
    assert_int_equal(f->recv[0], 7);
    assert_int_equal(f->recv[4 * BYTES], 2);
    flight_close(f);
}

static void an_in_place_input_stays_until_its_result_is_accepted(void **state)
{
    struct accept_flight *f = flight_open(BY_COLLECTIVE_ALLREDUCE, 0, 1, 1, 4);
    struct by_header result;
    uint8_t payload[BYTES];

    (void)state;
    memset(payload, 9, sizeof(payload));
    result = rig_result(&f->rig, &f->first, payload, BYTES);
    result.psum++;
    rig_give(&f->rig, &result, payload, BYTES);
    assert_int_equal(f->send[0], 1);
    f->rig.now_ns += 500000000;
    assert_int_equal(rig_step(&f->rig), 1); /* sent again, from the same bytes */
    assert_int_equal(f->rig.tx[0].payload == f->send, 1);
    assert_int_equal(f->rig.sent[0].flags, BY_FLAG_RETX);
    assert_int_equal(f->rig.sent[0].psum, f->first.psum);
    rig_answer(&f->rig, &f->first, BYTES, 9);
    assert_memory_equal(f->send, payload, BYTES);
    flight_close(f);
}

/* The flags that each role sends, and what the endpoint writes. */
struct role_row {
    unsigned collective, root;
    uint8_t flags;
    int written; /* 0: nothing, 1: the result, 2: a copy of the rank's own input */
};

/* The endpoint copies data directly from the parent's memory before it can check the psum. */
static void a_direct_result_that_fails_its_psum_ends_the_call_only_where_it_lies_over_the_input(void **state)
{
    (void)state;
    for (int in_place = 0; in_place < 2; in_place++) {
        struct accept_flight *f = flight_open(BY_COLLECTIVE_ALLREDUCE, 0, in_place, 1, 4);
        uint8_t payload[BYTES];
        struct by_header result;
        struct by_call_status status;

        memset(payload, 9, sizeof(payload));
        result = rig_result(&f->rig, &f->first, payload, BYTES);
        result.psum++;
        rig_direct = 1;
        rig_give(&f->rig, &result, payload, BYTES);
        assert_int_equal(by_endpoint_counters(f->rig.endpoint)->drop_psum, 1);
        if (in_place) {
            assert_int_equal(by_endpoint_test(f->rig.endpoint, f->id, &status), BY_ECHECKSUM);
            assert_int_equal(status.node, 0); /* the parent */
        } else {
            assert_int_equal(by_endpoint_test(f->rig.endpoint, f->id, NULL), BY_EAGAIN);
            result.psum--;
            rig_give(&f->rig, &result, payload, BYTES);
            assert_int_equal(by_endpoint_test(f->rig.endpoint, f->id, NULL), 0);
            assert_memory_equal(f->recv, payload, BYTES);
        }
        rig_direct = 0;
        flight_close(f);
    }
}

static void each_role_sends_its_flags_and_receives_what_it_needs(void **state)
{
    static const struct role_row rows[] = {
        {BY_COLLECTIVE_ALLREDUCE, 0, 0, 1},
        {BY_COLLECTIVE_REDUCE, 0, 0, 1},
        {BY_COLLECTIVE_REDUCE, 1, BY_FLAG_ACKONLY, 0},
        {BY_COLLECTIVE_BROADCAST, 0, BY_FLAG_ACKONLY, 2},
        {BY_COLLECTIVE_BROADCAST, 1, BY_FLAG_NODATA, 1},
    };

    (void)state;
    for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct accept_flight *f = flight_open(rows[r].collective, rows[r].root, 0, 1, 4);
        static const uint8_t wanted[] = {2, 9, 1};

        assert_int_equal(f->first.flags, rows[r].flags);
        assert_int_equal(f->rig.tx[0].payload_bytes, rows[r].flags & BY_FLAG_NODATA ? 0 : BYTES);
        rig_answer(&f->rig, &f->first, BYTES, 9);
        assert_int_equal(by_endpoint_test(f->rig.endpoint, f->id, NULL), 0);
        for (unsigned i = 0; i < BYTES; i++)
            assert_int_equal(f->recv[i], wanted[rows[r].written]);
        flight_close(f);
    }
}

static void a_rank_that_needs_no_value_accepts_one_from_a_multicast(void **state)
{
    struct accept_flight *f = flight_open(BY_COLLECTIVE_REDUCE, 1, 0, 1, 4);
    struct by_header result = rig_result(&f->rig, &f->first, NULL, 0);
    uint8_t payload[BYTES] = {0};

    (void)state;
    result.flags = 0;
    result.child = BY_WIRE_CHILD_ALL;
    rig_give(&f->rig, &result, payload, BYTES);
    assert_int_equal(by_endpoint_test(f->rig.endpoint, f->id, NULL), 0);
    assert_int_equal(f->recv[0], 2);
    flight_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_with_one_wrong_field_is_dropped_and_counted_by_kind),
        cmocka_unit_test(a_result_that_lacks_a_leaf_ends_the_call_and_names_where_it_came_from),
        cmocka_unit_test(a_packet_that_is_no_packet_of_ours_is_counted_as_format),
        cmocka_unit_test(a_result_from_another_port_or_address_is_dropped),
        cmocka_unit_test(a_result_addressed_to_all_children_is_accepted),
        cmocka_unit_test(a_result_is_written_once_and_a_second_one_is_a_duplicate),
        cmocka_unit_test(a_late_result_of_a_reused_slot_is_a_duplicate),
        cmocka_unit_test(an_in_place_input_stays_until_its_result_is_accepted),
        cmocka_unit_test(a_direct_result_that_fails_its_psum_ends_the_call_only_where_it_lies_over_the_input),
        cmocka_unit_test(each_role_sends_its_flags_and_receives_what_it_needs),
        cmocka_unit_test(a_rank_that_needs_no_value_accepts_one_from_a_multicast),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
