/*
 * Shares of ports: the exact waiting times, the use of bandwidth that other jobs leave, and the
 * state that survives a change of tables. Packets that a node only relays are metered like all
 * others and may have any job and length, so most tests use them.
 */
#include "offload/base/bytes.h"
#include "offload/base/prng.h"
#include "tests/unit/offload/engine/rig.h"

#define FROM     3u
#define TO       4u
#define FRAME    66u    /* bytes of a frame beside the UDP payload */
#define DEPTH    65536u /* minimum depth of a job's meter */
#define PORT     32768u /* that of a port's meter */
#define HELD     262144u
#define BYTE     UINT64_C(1000000000)
#define SRC      0x0d000001u
#define DST      0x0d000002u
#define QUARTER  (BY_SHARE_ONE / 4)
#define RATE     32000u /* of the port, in units of 1000 bytes per second */
#define METERED  (RATE * UINT64_C(1000) / 32 * 31)
#define PAYLOAD  1000u
#define ON_CABLE (BY_WIRE_HEADER_BYTES + PAYLOAD + FRAME)

static struct engine_rig rig;

/* Two relayed jobs, 1 and 2, each with its own share; 0: no share. */
static const struct by_image_relay relays[] = {{1, 0, SRC, DST, TO, 1 + FROM},
                                               {2, 0, SRC, DST, TO, 1 + FROM}};
static const struct rig_entry entries[] = {
    {.job = 1, .gen = 1, .root = 1, .children = 2, .window = 64},
    {.job = 2, .gen = 1, .root = 1, .children = 2, .window = 64, .slot_base = 64}};

static int load_of(const struct rig_entry two[2], const struct by_image_relay through[2], uint32_t share1,
                   uint32_t share2, uint32_t rate_in, uint32_t rate_out)
{
    size_t bytes;
    uint8_t *image = (uint8_t *)(uintptr_t)rig_image(two, 2, through, 2, &bytes);
    struct by_image_port port;
    struct by_image_job job;
    int error;

    for (uint32_t i = 0; i < 2; i++) {
        by_image_job(image, i, &job);
        job.share = i == 0 ? share1 : share2;
        by_image_put_job(image, i, &job);
    }
    by_image_port(image, FROM, &port);
    port.rate_in = rate_in;
    by_image_put_port(image, FROM, &port);
    for (uint32_t i = 0; i < 2; i++) { /* the ports of the children */
        by_image_port(image, i, &port);
        port.rate_in = rate_in;
        by_image_put_port(image, i, &port);
    }
    by_image_port(image, TO, &port);
    port.rate_out = rate_out;
    by_image_put_port(image, TO, &port);
    by_image_seal(image);
    error = by_engine_stage(rig.engine, image, bytes, NULL);
    return error ? error : by_engine_commit(rig.engine);
}

static int load(uint32_t share1, uint32_t share2, uint32_t rate_in, uint32_t rate_out)
{
    return load_of(entries, relays, share1, share2, rate_in, rate_out);
}

static int set_up(void **state)
{
    (void)state;
    rig_open(&rig);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

/* Relays a packet of `job` that arrives with the ECN bits `ecn` and must leave with `leaves`.
 * Returns 0 if it passed, UINT64_MAX if it was dropped, else its waiting time (ns). */
static uint64_t pass_as(uint16_t job, uint32_t payload, int held, uint8_t ecn, uint8_t leaves)
{
    static uint8_t data[BY_WIRE_HEADER_BYTES + RIG_PAYLOAD];
    struct by_header header = {.type = BY_TYPE_CONTRIB,
                               .op = BY_OP_SUM,
                               .dtype = BY_DTYPE_I32,
                               .mode = BY_MODE_FAST,
                               .job = job,
                               .gen = 1,
                               .count = (uint16_t)(payload / 4),
                               .nleaf = 1};
    struct by_rx rx = {.data = data,
                       .bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + payload),
                       .port = FROM,
                       .src_ip = SRC,
                       .dst_ip = DST,
                       .ecn = ecn,
                       .held = (uint8_t)held};

    by_header_encode(&header, data);
    assert_int_equal(by_engine_step(rig.engine, rig.now_ns, &rx, 1, rig.tx, RIG_TX, &rig.tx_count), 1);
    if (rig.tx_count == 0)
        return UINT64_MAX;
    assert_int_equal(rig.tx_count, 1);
    assert_int_equal(rig.tx[0].rx_index, 0);
    if (rig.tx[0].kind == BY_TX_RELAY) {
        assert_int_equal(rig.tx[0].ecn, leaves);
        return 0;
    }
    assert_int_equal(rig.tx[0].kind, BY_TX_HOLD);
    assert_int_equal(rig.tx[0].port, FROM);
    return rig.tx[0].wait_ns;
}

static uint64_t pass(uint16_t job, uint32_t payload, int held)
{
    return pass_as(job, payload, held, 2, held ? 3 : 2);
}

/*
 * A job that never stops. Its meter holds the sum of all packets passed or held since the beginning
 * minus rate times elapsed time, computed with one product. This is exact for any sequence of steps
 * and any value of the clock.
 */
static void waits_are_exact_over_any_steps_and_times(void **state)
{
    static const uint64_t starts[] = {1, UINT64_C(1) << 40, (UINT64_C(1) << 63) - 100000000};
    struct by_prng prng = {7};

    (void)state;
    for (unsigned s = 0; s < 3; s++) {
        unsigned __int128 charged = 0;
        uint64_t begin = starts[s], passed = 0, held = 0, dropped = 0, target = 50;
        int falling = 0;

        rig_close(&rig);
        rig_open(&rig);
        rig.now_ns = begin;
        assert_int_equal(load(BY_SHARE_ONE, 0, RATE, 0), 0);
        for (unsigned i = 0; i < 20000; i++) {
            uint32_t payload = 8 * (uint32_t)by_prng_below(&prng, 128);
            uint64_t amount = (BY_WIRE_HEADER_BYTES + payload + FRAME) * BYTE, got, want = 0;
            unsigned __int128 drained = (unsigned __int128)(rig.now_ns - begin) * METERED;
            uint64_t level = (uint64_t)(charged - drained);

            assert_true(charged >= drained); /* otherwise the test is void */
            if (level + amount > (DEPTH + HELD) * BYTE)
                want = UINT64_MAX;
            else if (level + amount > DEPTH * BYTE)
                want = (level + amount - DEPTH * BYTE + METERED - 1) / METERED;
            got = pass(1, payload, 0);
            if (got != want)
                fail_msg("start %u packet %u: waits %llu, not %llu ns", s, i, (unsigned long long)got,
                         (unsigned long long)want);
            if (want != UINT64_MAX)
                charged += amount;
            passed += want == 0;
            held += want != 0 && want != UINT64_MAX;
            dropped += want == UINT64_MAX;
            if (i < 100)
                continue; /* so that the meter never runs empty */
            /* Around the drain rate, so that the level falls and rises. */
            level = (uint64_t)(charged - drained);
            falling = falling ? level > 20000 * BYTE : dropped >= target;
            target = falling ? dropped + 50 : target;
            rig.now_ns += (falling ? 25000 : 12000) + by_prng_below(&prng, 2000);
        }
        assert_true(passed > 1000 && held > 1000 && dropped > 100);
        assert_int_equal(by_engine_counters(rig.engine)->hold, held);
        assert_int_equal(by_engine_counters(rig.engine)->drop_share, dropped);
    }
}

/* Job 1 sends exactly its share, job 2 ten times the rate of the link. Job 2 gets the remaining
 * rate plus what its meter and its held packets allow, whether it has its own share or not. */
static void a_job_within_its_share_never_waits_whatever_others_send(void **state)
{
    (void)state;
    for (unsigned shared = 0; shared < 2; shared++) {
        uint64_t waits = 0, others = 0, lost = 0, begin = rig.now_ns, carried;
        struct by_engine_share first, second;

        assert_int_equal(load(QUARTER, shared ? QUARTER : 0, RATE, 0), 0);
        for (unsigned i = 0; i < 20000; i++) {
            uint64_t wait;

            if (i % 41 == 0)
                waits += pass(1, PAYLOAD, 0) > 0;
            wait = pass(2, PAYLOAD, 0);
            others += wait > 0;
            lost += wait == UINT64_MAX;
            rig.now_ns += 4 * (ON_CABLE * BYTE / METERED + 1) / 41 + 1;
        }
        assert_int_equal(waits, 0);
        assert_true(others > 19000 && lost > 10000);
        assert_int_equal(by_engine_share(rig.engine, 1, &first), 0);
        assert_int_equal(by_engine_share(rig.engine, shared ? 2 : 0, &second), 0);
        carried = (uint64_t)((unsigned __int128)(rig.now_ns - begin) * METERED / BYTE);
        assert_true(second.rx_bytes <= carried - first.rx_bytes + DEPTH + PORT + 2 * HELD);
        assert_true(second.rx_bytes >= carried - first.rx_bytes);
        rig_close(&rig);
        rig_open(&rig);
    }
}

static void what_nobody_else_uses_is_anybodys(void **state)
{
    struct by_engine_share share;

    (void)state;
    assert_int_equal(load(QUARTER, QUARTER, RATE, 0), 0);
    for (unsigned i = 0; i < 20000; i++) { /* four times its share: the whole port */
        assert_int_equal(pass(1, PAYLOAD, 0), 0);
        rig.now_ns += ON_CABLE * BYTE / METERED + 1;
    }
    /* Then job 2 starts: job 1 must wait, job 2 need not. */
    for (unsigned i = 0; i < 2000; i++) {
        (void)pass(1, PAYLOAD, 0);
        if (i % 4 == 0)
            assert_int_equal(pass(2, PAYLOAD, 0), 0);
        rig.now_ns += ON_CABLE * BYTE / METERED + 1;
    }
    assert_true(by_engine_counters(rig.engine)->hold > 100);
    assert_int_equal(by_engine_share(rig.engine, 0, &share), 0);
    assert_int_equal(share.job, 0);
    assert_int_equal(share.rx_bytes, 0);
    assert_int_equal(by_engine_share(rig.engine, 1, &share), 0);
    assert_int_equal(share.job, 1);
    assert_int_equal(share.share, QUARTER);
    assert_true(share.rx_bytes == (22000 - share.dropped) * ON_CABLE);
    assert_true(share.held == by_engine_counters(rig.engine)->hold);
    assert_int_equal(by_engine_share(rig.engine, 2, &share), 0);
    assert_true(share.job == 2 && share.rx_bytes == 500 * ON_CABLE && share.held == 0 && share.dropped == 0);
    assert_int_equal(by_engine_share(rig.engine, 3, &share), BY_ENOENT);
}

static void what_has_waited_goes_on_marked(void **state)
{
    (void)state;
    assert_int_equal(load(QUARTER, 0, RATE, 0), 0);
    for (unsigned i = 0; i < 80; i++)
        (void)pass(1, PAYLOAD, 0);
    assert_true(pass(1, PAYLOAD, 0) > 0);
    assert_int_equal(pass(1, PAYLOAD, 1), 0); /* immediately, and not charged a second time */
    assert_true(pass(1, PAYLOAD, 0) > 0);
}

/* RFC 3168, section 5: a mark has no meaning to a sender that does not support ECN. */
static void what_has_waited_goes_on_unmarked_where_its_sender_knows_no_ecn(void **state)
{
    (void)state;
    assert_int_equal(load(QUARTER, 0, RATE, 0), 0);
    for (unsigned i = 0; i < 80; i++)
        (void)pass(1, PAYLOAD, 0);
    assert_true(pass_as(1, PAYLOAD, 0, 0, 0) > 0);
    for (uint8_t ecn = 0; ecn < 4; ecn++)
        assert_int_equal(pass_as(1, PAYLOAD, 1, ecn, ecn == 0 ? 0 : 3), 0);
}

static void what_finds_no_room_to_wait_is_on_nobodys_account(void **state)
{
    uint64_t passed = 0, wait;
    struct by_engine_share share;

    (void)state;
    assert_int_equal(load(QUARTER, 0, RATE, 0), 0);
    by_engine_allow(rig.engine, 0);
    while (pass(1, PAYLOAD, 0) == 0)
        passed++;
    for (unsigned i = 1; i < 1000; i++)
        assert_true(pass(1, PAYLOAD, 0) == UINT64_MAX);
    assert_int_equal(by_engine_share(rig.engine, 1, &share), 0);
    assert_true(share.rx_bytes == passed * ON_CABLE && share.held == 0 && share.dropped == 1000);
    assert_int_equal(by_engine_counters(rig.engine)->drop_room, 1000);
    assert_int_equal(by_engine_counters(rig.engine)->drop_share, 0);
    /* The same time as if none of the dropped packets had arrived; there is room for one packet. */
    wait = ((passed + 1) * ON_CABLE - DEPTH) * BYTE;
    by_engine_allow(rig.engine, 1);
    assert_int_equal(pass(1, PAYLOAD, 0), (wait + METERED / 4 - 1) / (METERED / 4));
    assert_true(pass(1, PAYLOAD, 0) == UINT64_MAX);
    assert_int_equal(by_engine_share(rig.engine, 1, &share), 0);
    assert_true(share.rx_bytes == (passed + 1) * ON_CABLE && share.held == 1 && share.dropped == 1001);
    rig.now_ns += 100000000;
    assert_int_equal(pass(1, PAYLOAD, 0), 0); /* a packet that need not wait needs no room */
}

static void what_is_dropped_for_what_went_out_is_on_nobodys_account(void **state)
{
    uint64_t taken = 0, what = 0;
    struct by_engine_share share;

    (void)state;
    assert_int_equal(load(QUARTER, 0, RATE, 100), 0); /* it leaves on a far slower link */
    for (; what != UINT64_MAX && taken < 1000; taken += what != UINT64_MAX) {
        rig.now_ns += 1000000; /* so that the packet never waits for its incoming link */
        what = pass(1, PAYLOAD, 0);
        if (what != 0 && what != UINT64_MAX) /* its waiting time is over */
            assert_int_equal(pass_as(1, PAYLOAD, 1, 2, 2), 0);
    }
    assert_true(taken > DEPTH / ON_CABLE && taken < 1000);
    assert_int_equal(by_engine_share(rig.engine, 1, &share), 0);
    assert_true(share.dropped == 1 && share.rx_bytes == taken * ON_CABLE &&
                share.tx_bytes == taken * ON_CABLE);
    assert_int_equal(by_engine_counters(rig.engine)->drop_share, 1);
}

/* The root of a tree has no parent, so no neighbour has address 0. */
static void who_is_nobodys_neighbour_takes_no_room(void **state)
{
    static const float values[250] = {0};
    struct rig_packet packet = rig_contrib(&entries[0], 0, 0, values, 250);
    struct by_engine_share share;

    (void)state;
    assert_int_equal(load(QUARTER, 0, RATE, 0), 0);
    packet.src_ip = 0;
    for (unsigned i = 0; i < 1000; i++) {
        rig_send(&rig, &packet);
        rig_expect_drop_of(&rig, drop_ingress);
        assert_int_equal(rig.tx_count, 0);
    }
    assert_int_equal(by_engine_share(rig.engine, 1, &share), 0);
    assert_true(share.rx_bytes == 0 && share.held == 0 && share.dropped == 0);
}

static void a_contribution_that_has_waited_marks_its_result(void **state)
{
    float values[250] = {1, 2};
    struct rig_packet packet;
    uint8_t data[BY_WIRE_HEADER_BYTES + sizeof(values)];
    struct by_rx rx = {.data = data, .bytes = sizeof(data), .held = 1};

    (void)state;
    assert_int_equal(load(QUARTER, 0, RATE, 0), 0);
    packet = rig_contrib(&entries[0], 1, 1, values, 250);
    for (unsigned i = 0; i < 80; i++)
        rig_send(&rig, &packet); /* duplicates, which use the same bandwidth */
    assert_true(by_engine_counters(rig.engine)->hold > 0);
    packet = rig_contrib(&entries[0], 0, 0, values, 250);
    rig_send(&rig, &packet);
    packet = rig_contrib(&entries[0], 1, 0, values, 250);
    packet.header.psum = by_psum(values, sizeof(values));
    by_header_encode(&packet.header, data);
    memcpy(data + BY_WIRE_HEADER_BYTES, values, sizeof(values));
    rx.port = packet.port;
    rx.src_ip = packet.src_ip;
    rx.dst_ip = packet.dst_ip;
    assert_int_equal(by_engine_step(rig.engine, rig.now_ns, &rx, 1, rig.tx, RIG_TX, &rig.tx_count), 1);
    assert_int_equal(rig.tx_count, 2);
    assert_true(rig.tx[0].header[2] & BY_FLAG_CE);
    rig_release(&rig);
}

static void what_went_out_makes_wait_who_asks_for_more(void **state)
{
    (void)state;
    assert_int_equal(load(QUARTER, 0, 0, RATE), 0); /* the link on which it leaves */
    for (unsigned i = 0; i < 1 + DEPTH / ON_CABLE; i++)
        assert_int_equal(pass(1, PAYLOAD, 0), 0);
    assert_true(pass(1, PAYLOAD, 0) > 0);
    rig.now_ns += 100000000;
    assert_int_equal(pass(1, PAYLOAD, 0), 0);
}

static void nothing_is_metered_without_shares_rates_or_a_clock(void **state)
{
    struct by_engine_share share;

    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        assert_int_equal(load(round == 0 ? 0 : QUARTER, 0, round == 1 ? 0 : RATE, 0), 0);
        if (round == 2)
            rig.now_ns = 0;
        else
            assert_int_equal(by_engine_share(rig.engine, 0, &share), BY_ENOENT);
        for (unsigned i = 0; i < 1000; i++)
            assert_int_equal(pass(1, PAYLOAD, 0), 0);
    }
}

static void a_change_of_tables_forgives_nothing_and_changes_shares_of_jobs_that_run(void **state)
{
    struct by_engine_share share;
    uint64_t before, after;

    (void)state;
    assert_int_equal(load(QUARTER, 0, RATE, 0), 0);
    for (unsigned i = 0; i < DEPTH / ON_CABLE; i++)
        assert_int_equal(pass(1, PAYLOAD, 0), 0);
    before = pass(1, PAYLOAD, 0);
    assert_int_equal(load(QUARTER, 0, RATE, 0), 0);
    after = pass(1, PAYLOAD, 0);
    /* Meters keep their levels, up to their depth: packets that wait are not charged again. */
    assert_true(before > 0 && after == (ON_CABLE * BYTE + METERED - 1) / METERED);
    assert_int_equal(load(QUARTER * 2, QUARTER, RATE, 0), 0);
    assert_int_equal(by_engine_share(rig.engine, 1, &share), 0);
    assert_true(share.share == QUARTER * 2 && share.rx_bytes == (DEPTH / ON_CABLE + 2) * ON_CABLE &&
                share.held == 2);
}

static void a_change_of_tables_keeps_what_jobs_without_a_share_had_beside_job_0(void **state)
{
    struct by_image_relay through[2] = {relays[0], relays[1]};
    struct rig_entry two[2] = {entries[0], entries[1]};
    struct by_engine_share share;

    (void)state;
    through[0].job = two[0].job = 0;
    for (unsigned round = 0; round < 2; round++) {
        assert_int_equal(load_of(two, through, QUARTER, 0, RATE, 0), 0);
        for (unsigned i = 0; i < 3 && round == 0; i++)
            assert_int_equal(pass(i == 0 ? 0 : 2, PAYLOAD, 0), 0);
        assert_int_equal(by_engine_share(rig.engine, 0, &share), 0);
        assert_true(share.share == 0 && share.rx_bytes == UINT64_C(2) * ON_CABLE);
        assert_int_equal(by_engine_share(rig.engine, 1, &share), 0);
        assert_true(share.share == QUARTER && share.rx_bytes == ON_CABLE);
    }
}

static void more_shares_than_there_is_room_for_are_refused(void **state)
{
    const struct by_engine_config config = {.slot_count_max = 1024,
                                            .payload_max = RIG_PAYLOAD,
                                            .image_bytes_max = 1 << 16,
                                            .entry_count_max = 64,
                                            .relay_count_max = 16,
                                            .isa = by_isa_best(),
                                            .meter_count_max = by_engine_meters(RIG_PORTS, 1)};

    (void)state;
    free(rig.memory);
    rig.memory = aligned_alloc(64, by_engine_size(&config));
    assert_int_equal(by_engine_init(&rig.engine, rig.memory, by_engine_size(&config), &config), 0);
    assert_int_equal(load(QUARTER, QUARTER, RATE, 0), BY_ELIMIT);
    assert_int_equal(load(QUARTER, 0, RATE, 0), 0);
    assert_int_equal(load(BY_SHARE_ONE + 1, 0, RATE, 0), BY_EFORMAT);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(waits_are_exact_over_any_steps_and_times),
        T(a_job_within_its_share_never_waits_whatever_others_send),
        T(what_nobody_else_uses_is_anybodys),
        T(what_has_waited_goes_on_marked),
        T(what_has_waited_goes_on_unmarked_where_its_sender_knows_no_ecn),
        T(what_finds_no_room_to_wait_is_on_nobodys_account),
        T(what_is_dropped_for_what_went_out_is_on_nobodys_account),
        T(who_is_nobodys_neighbour_takes_no_room),
        T(a_contribution_that_has_waited_marks_its_result),
        T(what_went_out_makes_wait_who_asks_for_more),
        T(nothing_is_metered_without_shares_rates_or_a_clock),
        T(a_change_of_tables_forgives_nothing_and_changes_shares_of_jobs_that_run),
        T(a_change_of_tables_keeps_what_jobs_without_a_share_had_beside_job_0),
        T(more_shares_than_there_is_room_for_are_refused),
    };
#undef T

    return cmocka_run_group_tests(tests, NULL, NULL);
}
