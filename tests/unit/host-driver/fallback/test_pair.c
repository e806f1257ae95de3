/*
 * A pair: its bytes arrive in order whatever the network does, it repeats what is lost and nothing
 * else, it shares a link that is full, and it waits for an end that does not read. SEED=n runs one
 * seed of the first test.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/errors.h"
#include "tests/unit/host-driver/fallback/link.h"

#define SEEDS  300u
#define SECOND UINT64_C(1000000000)

/* A network of any kind, ends of any size. */
static void try_seed(uint64_t seed)
{
    struct by_prng prng = {seed};
    uint32_t slots = 8u << by_prng_below(&prng, 7);
    uint32_t window = 1 + (uint32_t)by_prng_below(&prng, slots);
    struct fallback_link link;

    link_open(&link, seed, slots, window);
    link.loss = (uint32_t)by_prng_below(&prng, 4) * (uint32_t)by_prng_below(&prng, 80);
    link.doubled = (uint32_t)by_prng_below(&prng, 2) * (uint32_t)by_prng_below(&prng, 200);
    link.late = (uint32_t)by_prng_below(&prng, 2) * (uint32_t)by_prng_below(&prng, 300);
    link.damaged = (uint32_t)by_prng_below(&prng, 2) * (uint32_t)by_prng_below(&prng, 50);
    link.queue = 4 + (uint32_t)by_prng_below(&prng, 300);
    link.end[0].want = by_prng_below(&prng, 400000);
    link.end[1].want = by_prng_below(&prng, 3) == 0 ? 0 : by_prng_below(&prng, 400000);
    if (!link_run(&link, 600 * SECOND))
        fail_msg("after 600 s %" PRIu64 " of %" PRIu64 " and %" PRIu64 " of %" PRIu64
                 " bytes are there; replay with SEED=%" PRIu64,
                 link.end[1].read, link.end[0].want, link.end[0].read, link.end[1].want, seed);
    link_close(&link);
}

static void bytes_arrive_in_order_whatever_the_network_does(void **state)
{
    const char *one = getenv("SEED");

    (void)state;
    if (one != NULL)
        try_seed(strtoull(one, NULL, 0));
    for (uint64_t seed = 1; seed <= SEEDS && one == NULL; seed++)
        try_seed(seed);
}

static void on_a_good_network_nothing_is_sent_twice(void **state)
{
    struct fallback_link link;

    (void)state;
    link_open(&link, 1, 512, 512);
    link.end[0].want = 2000 * LINK_BYTES; /* beyond the wrap of its numbers */
    assert_true(link_run(&link, SECOND));
    assert_int_equal(link.end[0].pair.counters.repeated, 0);
    assert_int_equal(link.end[0].pair.counters.timeouts, 0);
    assert_true(link.end[0].pair.counters.sent >= 2000);
    assert_int_equal(link.end[1].pair.counters.come, link.end[0].pair.counters.sent);
    assert_int_equal(link.end[1].pair.counters.doubled, 0);
    /* An answer for several parcels at a time. */
    assert_true(link.end[1].pair.counters.acks < link.end[1].pair.counters.come / 2);
    link_close(&link);
}

/* A queue shorter than the window: losses are due to ourselves, and the link stays in use. */
static void a_link_that_is_full_is_used_and_not_flooded(void **state)
{
    struct fallback_link link;
    uint64_t begin_ns, parcels = 20000;

    (void)state;
    link_open(&link, 7, 512, 512);
    link.queue = 60;
    link.end[0].want = parcels * LINK_BYTES;
    begin_ns = link.now_ns;
    assert_true(link_run(&link, SECOND));
    assert_true(link.dropped > 0);
    assert_true(link.now_ns - begin_ns < parcels * link.packet_ns * 2);
    assert_true(link.end[0].pair.counters.repeated < parcels / 50);
    link_close(&link);
}

/* Fills an end's ring and sends what may go. */
static uint32_t fill(struct fallback_link *link)
{
    static const uint8_t zeros[LINK_BYTES];

    while (by_pair_write(&link->end[0].pair, zeros, sizeof(zeros)) > 0)
        ;
    return link_send(link, 0, true);
}

/* What end 1 would say when everything before `ack` has come, and the parcels of `map` behind it.
 */
static void answer(struct fallback_link *link, uint32_t ack, uint8_t map, uint32_t newest)
{
    struct by_parcel parcel = {.kind = BY_PARCEL_ACK,
                               .order = BY_PAIR_FIRST + newest,
                               .ack = BY_PAIR_FIRST + ack,
                               .room = 64,
                               .bytes = 1,
                               .payload = &map};

    by_pair_take(&link->end[0].pair, &parcel, link->now_ns);
}

static uint32_t next_seq(struct fallback_link *link)
{
    struct by_parcel parcel;

    assert_true(by_pair_next(&link->end[0].pair, link->now_ns, &parcel));
    assert_int_equal(parcel.kind, BY_PARCEL_DATA);
    return parcel.seq - BY_PAIR_FIRST;
}

static void a_parcel_is_repeated_when_three_later_ones_have_arrived(void **state)
{
    struct by_parcel parcel;
    struct fallback_link link;

    (void)state;
    link_open(&link, 1, 64, 64);
    assert_int_equal(fill(&link), 10); /* RFC 6928 */
    answer(&link, 0, 0x2, 2);          /* 2 has come, 0 and 1 have not */
    assert_int_equal(link.end[0].pair.out.lost, 0);
    answer(&link, 0, 0x6, 3); /* and 3 */
    assert_int_equal(link.end[0].pair.out.lost, 1);
    assert_int_equal(link.end[0].pair.tempo.window, 5); /* half of 10 and the one that arrived before */
    answer(&link, 0, 0xe, 4);                           /* and 4: both are lost, and the window halves once */
    assert_int_equal(link.end[0].pair.out.lost, 2);
    assert_int_equal(link.end[0].pair.tempo.window, 5);
    answer(&link, 0, 0xfe, 8);
    assert_int_equal(next_seq(&link), 0);
    /* The repeated one is lost again: what left after it tells. */
    assert_int_equal(next_seq(&link), 1);
    assert_int_equal(next_seq(&link), 10);
    answer(&link, 0, 0xff, 11);
    while (by_pair_next(&link.end[0].pair, link.now_ns, &parcel))
        ;
    assert_int_equal(link.end[0].pair.out.slot[(BY_PAIR_FIRST + 0) & 63].order, BY_PAIR_FIRST + 10);
    assert_int_equal(link.end[0].pair.out.lost, 0);
    answer(&link, 0, 0xff, 13);
    assert_int_equal(link.end[0].pair.out.lost, 2); /* with 9 */
    link_close(&link);
}

static void a_time_out_doubles_and_one_for_nothing_is_taken_back(void **state)
{
    struct by_host_pair *pair;
    struct fallback_link link;

    (void)state;
    link_open(&link, 1, 64, 64);
    pair = &link.end[0].pair;
    fill(&link);
    assert_int_equal(by_pair_deadline(pair), link.now_ns + BY_TEMPO_FIRST_NS);
    link.now_ns += BY_TEMPO_FIRST_NS;
    assert_int_equal(link_send(&link, 0, true), 1); /* window 1: RFC 5681 */
    assert_int_equal(pair->out.lost, 9);
    assert_int_equal(by_pair_deadline(pair), link.now_ns + 2 * BY_TEMPO_FIRST_NS);
    /* An answer to a transmission from before: what was sent has only been late. */
    answer(&link, 4, 0, 3);
    assert_int_equal(pair->tempo.window, 10 + 4);
    assert_int_equal(pair->out.lost, 0);
    assert_int_equal(pair->out.flight, 6);
    /* An answer to the repeated one would not have changed the loss. */
    link.now_ns += BY_TEMPO_MOST_NS;
    assert_true(link_send(&link, 0, true) > 0);
    answer(&link, 5, 0, pair->out.order - 1 - BY_PAIR_FIRST);
    assert_true(pair->tempo.window <= 2);
    link_close(&link);
}

static void an_end_that_does_not_read_is_waited_for(void **state)
{
    struct fallback_link link;

    (void)state;
    link_open(&link, 3, 64, 32);
    link.loss = 200; /* of answers that tell of room, too */
    link.deaf[1] = true;
    link.end[0].want = 500 * LINK_BYTES;
    assert_false(link_run(&link, 20 * SECOND));
    assert_int_equal(link.end[1].read, 0);
    assert_true(link.end[1].pair.counters.come <= 32);
    /* It is asked now and then, and not all the time. */
    assert_true(link.end[0].pair.counters.sent < 300);
    link.deaf[1] = false;
    assert_true(link_run(&link, 20 * SECOND));
    link_close(&link);
}

static void an_end_that_is_gone_is_given_up(void **state)
{
    struct by_parcel parcel;
    struct fallback_link link;

    (void)state;
    link_open(&link, 1, 64, 64);
    fill(&link);
    by_pair_abandon(&link.end[0].pair);
    assert_true(by_pair_settled(&link.end[0].pair));
    assert_false(by_pair_next(&link.end[0].pair, link.now_ns + SECOND, &parcel));
    assert_int_equal(by_pair_deadline(&link.end[0].pair), UINT64_MAX);
    answer(&link, 4, 0, 3); /* late */
    assert_true(by_pair_settled(&link.end[0].pair));
    link_close(&link);
}

static void what_makes_no_sense_changes_nothing(void **state)
{
    uint8_t payload[LINK_BYTES + 1] = {0};
    struct by_parcel cases[] = {
        {.kind = BY_PARCEL_ACK, .ack = BY_PAIR_FIRST + 11, .room = 9},          /* was not sent */
        {.kind = BY_PARCEL_ACK, .ack = BY_PAIR_FIRST - 1, .room = 9},           /* before the first */
        {.kind = BY_PARCEL_ACK, .ack = BY_PAIR_FIRST + 2, .room = UINT16_MAX},  /* no such room */
        {.kind = BY_PARCEL_DATA, .seq = BY_PAIR_FIRST, .bytes = LINK_BYTES + 1} /* too long */
    };
    struct fallback_link link;

    (void)state;
    link_open(&link, 1, 64, 64);
    fill(&link);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_host_pair before = link.end[0].pair;

        cases[i].payload = payload;
        if (cases[i].kind == BY_PARCEL_DATA)
            cases[i].ack = BY_PAIR_FIRST;
        by_pair_take(&link.end[0].pair, &cases[i], link.now_ns);
        assert_memory_equal(&before, &link.end[0].pair, sizeof(before));
    }
    link_close(&link);
}

/* ---- the parts */

static void times_are_smoothed_as_rfc_6298_says(void **state)
{
    struct by_tempo tempo;

    (void)state;
    by_tempo_begin(&tempo, 0);
    assert_int_equal(tempo.timeout_ns, BY_TEMPO_FIRST_NS);
    by_tempo_sample(&tempo, 40000000);
    assert_int_equal(tempo.smooth_ns, 40000000);
    assert_int_equal(tempo.variance_ns, 20000000);
    assert_int_equal(tempo.timeout_ns, 120000000);
    by_tempo_sample(&tempo, 80000000);
    assert_int_equal(tempo.smooth_ns, 45000000);
    assert_int_equal(tempo.variance_ns, 25000000);
    assert_int_equal(tempo.timeout_ns, 145000000);
    for (int i = 0; i < 100; i++)
        by_tempo_sample(&tempo, 10000);
    assert_int_equal(tempo.timeout_ns, BY_TEMPO_LEAST_NS);
    for (int i = 0; i < 10; i++)
        by_tempo_wait(&tempo);
    assert_int_equal(tempo.timeout_ns, BY_TEMPO_MOST_NS);
}

static void the_window_grows_and_halves_as_rfc_5681_says(void **state)
{
    struct by_tempo tempo;

    (void)state;
    by_tempo_begin(&tempo, 100);
    by_tempo_arrived(&tempo, 10, true);
    assert_int_equal(tempo.window, 20);
    by_tempo_arrived(&tempo, 20, false); /* it was not the window that held us up */
    assert_int_equal(tempo.window, 20);
    by_tempo_lost(&tempo, 105, 120);
    assert_int_equal(tempo.window, 10);
    by_tempo_lost(&tempo, 119, 125); /* of the same flight */
    assert_int_equal(tempo.window, 10);
    by_tempo_arrived(&tempo, 9, true);
    assert_int_equal(tempo.window, 10);
    by_tempo_arrived(&tempo, 1, true);
    assert_int_equal(tempo.window, 11);
    by_tempo_lost(&tempo, 120, 130);
    assert_int_equal(tempo.window, 5);
    for (int i = 0; i < 10; i++)
        by_tempo_lost(&tempo, 130 + (uint32_t)i, 131 + (uint32_t)i);
    assert_int_equal(tempo.window, 2);
    by_tempo_begin(&tempo, 100);
    by_tempo_lost(&tempo, 0x80000100, 0x80000110); /* the first one, after billions that arrived */
    assert_int_equal(tempo.window, 5);
}

static void a_parcel_is_read_as_it_was_written(void **state)
{
    uint8_t datagram[BY_PARCEL_HEADER_BYTES + 5] = {0};
    struct by_parcel parcel = {.nonce = 0x01020304,
                               .rank = 999,
                               .kind = BY_PARCEL_DATA,
                               .push = true,
                               .seq = UINT32_MAX,
                               .order = 7,
                               .ack = 8,
                               .room = 512,
                               .bytes = 5};
    struct by_parcel read;

    (void)state;
    by_parcel_write(&parcel, datagram);
    assert_int_equal(by_parcel_read(datagram, sizeof(datagram), &read), 0);
    parcel.payload = datagram + BY_PARCEL_HEADER_BYTES;
    assert_int_equal(read.nonce, parcel.nonce);
    assert_int_equal(read.rank, parcel.rank);
    assert_int_equal(read.kind, parcel.kind);
    assert_int_equal(read.push, parcel.push);
    assert_int_equal(read.seq, parcel.seq);
    assert_int_equal(read.order, parcel.order);
    assert_int_equal(read.ack, parcel.ack);
    assert_int_equal(read.room, parcel.room);
    assert_int_equal(read.bytes, parcel.bytes);
    assert_ptr_equal(read.payload, parcel.payload);
}

static void a_damaged_or_foreign_parcel_is_refused(void **state)
{
    const struct by_parcel wrong[] = {
        {.kind = 0, .bytes = 5},
        {.kind = BY_PARCEL_ACK + 1, .bytes = 5},
        {.kind = BY_PARCEL_DATA, .bytes = 4}, /* and 5 are there */
        {.kind = BY_PARCEL_DATA, .bytes = 6},
        {.kind = BY_PARCEL_DATA, .bytes = UINT16_MAX},
    };
    const struct by_parcel right = {.kind = BY_PARCEL_DATA, .bytes = 5}, empty = {.kind = BY_PARCEL_DATA};
    const struct by_parcel map = {.kind = BY_PARCEL_ACK, .bytes = BY_PARCEL_MAP_BYTES + 1};
    uint8_t datagram[BY_PARCEL_HEADER_BYTES + BY_PARCEL_MAP_BYTES + 1] = {0};
    size_t size = BY_PARCEL_HEADER_BYTES + 5;
    struct by_parcel read;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        by_parcel_write(&wrong[i], datagram);
        assert_int_equal(by_parcel_read(datagram, size, &read), BY_EFORMAT);
    }
    by_parcel_write(&empty, datagram);
    assert_int_equal(by_parcel_read(datagram, BY_PARCEL_HEADER_BYTES, &read), BY_EFORMAT);
    by_parcel_write(&map, datagram);
    assert_int_equal(by_parcel_read(datagram, sizeof(datagram), &read), BY_EFORMAT);
    by_parcel_write(&right, datagram);
    for (size_t short_size = 0; short_size < size; short_size++)
        assert_int_equal(by_parcel_read(datagram, short_size, &read), BY_EFORMAT);
    for (uint32_t bit = 0; bit < 8 * BY_PARCEL_HEADER_BYTES; bit++) {
        datagram[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(by_parcel_read(datagram, size, &read), BY_EFORMAT);
        datagram[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_int_equal(by_parcel_read(datagram, size, &read), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_arrive_in_order_whatever_the_network_does),
        cmocka_unit_test(on_a_good_network_nothing_is_sent_twice),
        cmocka_unit_test(a_link_that_is_full_is_used_and_not_flooded),
        cmocka_unit_test(a_parcel_is_repeated_when_three_later_ones_have_arrived),
        cmocka_unit_test(a_time_out_doubles_and_one_for_nothing_is_taken_back),
        cmocka_unit_test(an_end_that_does_not_read_is_waited_for),
        cmocka_unit_test(an_end_that_is_gone_is_given_up),
        cmocka_unit_test(what_makes_no_sense_changes_nothing),
        cmocka_unit_test(times_are_smoothed_as_rfc_6298_says),
        cmocka_unit_test(the_window_grows_and_halves_as_rfc_5681_says),
        cmocka_unit_test(a_parcel_is_read_as_it_was_written),
        cmocka_unit_test(a_damaged_or_foreign_parcel_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
