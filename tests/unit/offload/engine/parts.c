/*
 * Shares of ports in a node with several engines: each has the part of a share that its lanes are
 * of the job's, the parts add up to the share, and all engines together enforce it, also for a job
 * that runs when its first share is pushed. by_engine_workers deals the packets, as a switch does.
 */
#include "offload/base/bytes.h"
#include "offload/engine/state.h"
#include "tests/unit/offload/engine/rig.h"

#define FROM     3u
#define TO       4u
#define SRC      0x0d000001u
#define DST      0x0d000002u
#define FRAME    66u    /* bytes of a frame beside the UDP payload */
#define DEPTH    65536u /* minimum depth of a job's meter */
#define PORT     32768u /* that of a port's meter */
#define HELD     262144u
#define BYTE     UINT64_C(1000000000)
#define QUARTER  (BY_SHARE_ONE / 4)
#define RATE     32000u /* of a port, in units of 1000 bytes per second */
#define METERED  (RATE * UINT64_C(1000) / 32 * 31)
#define COUNT    250u
#define ON_CABLE (BY_WIRE_HEADER_BYTES + 4 * COUNT + FRAME)
/* The bytes of a lane's chunks. */
#define LANE     (8u * (RIG_PAYLOAD + BY_WIRE_HEADER_BYTES + FRAME))
#define NODE_MAX 32u

static struct engine_rig node[NODE_MAX];

/* Jobs 1 and 2 have an entry each, and a relay of a tree without an entry here. */
static struct rig_entry entries[2] = {
    {.job = 1, .gen = 1, .root = 1, .children = 2, .window = 64},
    {.job = 2, .gen = 1, .root = 1, .children = 2, .window = 64, .slot_base = 64}};
static const struct by_image_relay relays[2] = {{1, 1, SRC, DST, TO, 1 + FROM},
                                                {2, 1, SRC, DST, TO, 1 + FROM}};

/* What each engine's meters accept beyond their part (bytes): lanes in a row. The last lane and the
 * first have one worker where their number does not divide 64. */
static uint64_t row_of(unsigned workers)
{
    return workers == 1 ? 0 : 64 % workers == 0 ? LANE : 2 * LANE;
}

static void open_all(unsigned workers)
{
    rig_workers = (uint16_t)(workers > 1 ? workers : 0);
    for (unsigned w = 0; w < workers; w++) {
        rig_worker = (uint16_t)w;
        rig_open(&node[w]);
    }
    rig_worker = rig_workers = 0;
}

static void close_all(unsigned workers)
{
    for (unsigned w = 0; w < workers; w++)
        rig_close(&node[w]);
}

/* Loads a table in which both jobs have `share`, at ports of RATE plus `odd`; 0: no shares. */
static void load_all(unsigned workers, uint32_t relay_count, uint32_t share, uint32_t odd)
{
    size_t bytes;
    uint8_t *image = (uint8_t *)(uintptr_t)rig_image(entries, 2, relays, relay_count, &bytes);
    struct by_image_fault fault = {0};
    struct by_image_port port;
    struct by_image_job job;

    for (uint32_t i = 0; i < 2; i++) {
        by_image_job(image, i, &job);
        job.share = share;
        by_image_put_job(image, i, &job);
    }
    for (uint32_t i = 0; i < RIG_PORTS; i++) {
        by_image_port(image, i, &port);
        port.rate_in = RATE + odd;
        by_image_put_port(image, i, &port);
    }
    by_image_seal(image);
    for (unsigned w = 0; w < workers; w++) {
        if (by_engine_stage(node[w].engine, image, bytes, &fault) != 0)
            fail_msg("%s %u: %s", fault.section, fault.index, fault.what);
        assert_int_equal(by_engine_commit(node[w].engine), 0);
    }
}

/* Gives a packet to the engines that by_engine_workers names. Returns 1 if it passed at once. */
static int give(unsigned workers, struct by_rx *rx, const struct by_header *header)
{
    static uint8_t data[BY_WIRE_HEADER_BYTES + 4 * COUNT];
    uint64_t named;
    unsigned w;

    by_header_encode(header, data);
    rx->data = data;
    rx->bytes = sizeof data;
    named = by_engine_workers(node[0].engine, rx);
    w = (unsigned)__builtin_ctzll(named);
    assert_true(named == UINT64_C(1) << w && w < workers);
    assert_int_equal(
        by_engine_step(node[w].engine, node[0].now_ns, rx, 1, node[w].tx, RIG_TX, &node[w].tx_count), 1);
    return node[w].tx_count == 1 && node[w].tx[0].kind == BY_TX_RELAY;
}

/* Relays a packet of `job`, of chunk `seq`. */
static int relay(unsigned workers, uint16_t job, uint32_t seq)
{
    const struct by_header header = {.type = BY_TYPE_CONTRIB,
                                     .op = BY_OP_SUM,
                                     .dtype = BY_DTYPE_I32,
                                     .mode = BY_MODE_FAST,
                                     .job = job,
                                     .tree = 1,
                                     .gen = 1,
                                     .seq = seq,
                                     .count = COUNT,
                                     .nleaf = 1};
    struct by_rx rx = {.port = FROM, .src_ip = SRC, .dst_ip = DST};

    return give(workers, &rx, &header);
}

/* Child 0 of a job's entry contributes to chunk `seq`; the machine may have no use for it. */
static void contribute(unsigned workers, uint16_t job, uint32_t seq)
{
    static const float values[COUNT];
    struct rig_packet packet = rig_contrib(&entries[job - 1], 0, seq, values, COUNT);
    struct by_rx rx = {.port = packet.port, .src_ip = packet.src_ip, .dst_ip = packet.dst_ip};

    (void)give(workers, &rx, &packet.header);
}

static struct by_engine_share share_of(unsigned workers, uint32_t index)
{
    struct by_engine_share sum, one;

    assert_int_equal(by_engine_share(node[0].engine, index, &sum), 0);
    for (unsigned w = 1; w < workers; w++) {
        assert_int_equal(by_engine_share(node[w].engine, index, &one), 0);
        sum.rx_bytes += one.rx_bytes;
        sum.held += one.held;
        sum.dropped += one.dropped;
    }
    return sum;
}

static const struct by_meter *meter_of(unsigned w, uint32_t share)
{
    const struct by_table *table = node[w].engine->active;

    return &table->meter[(size_t)2 * FROM * table->share_count + share];
}

/* Checks the sums of all workers' meters of share `index`. `none`: some workers have no lane of the
 * job, and get none of its packets. */
static void check_parts(unsigned workers, uint32_t index, int none, const struct by_meter *whole)
{
    uint64_t rate = 0, depth = 0;

    for (unsigned w = 0; w < workers; w++) {
        int idle = none && node[w].engine->active->entry[0].mine == 0;

        assert_true(!idle || meter_of(w, index)->rate == 1);
        rate += idle ? 0 : meter_of(w, index)->rate;
        depth += meter_of(w, index)->depth;
    }
    assert_true(rate == whole->rate);
    assert_true(depth == whole->depth + workers * row_of(workers) * BYTE);
}

/* Integers: nothing is lost or won by the division, for any number of workers and any window. */
static void the_parts_of_all_workers_add_up_to_the_share(void **state)
{
    static const uint32_t counts[] = {1, 2, 3, 4, 7, 32};
    struct by_meter whole[3];

    (void)state;
    for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        open_all(counts[i]);
        for (uint16_t window = 1; window <= 64; window *= 4)
            for (uint32_t relay_count = 0; relay_count <= 2; relay_count += 2) {
                entries[0].window = window;
                entries[0].gen++;
                load_all(counts[i], relay_count, QUARTER / 3 + 1, 7);
                for (uint32_t s = 0; s < 3; s++) {
                    if (counts[i] == 1)
                        whole[s] = *meter_of(0, s);
                    check_parts(counts[i], s, s == 1 && relay_count == 0, &whole[s]);
                }
            }
        close_all(counts[i]);
    }
    entries[0].window = 64;
    entries[0].gen = 1;
}

/* Job 1 sends exactly its share, job 2 ten times the rate of the link. Job 2 gets the rest. */
static void a_job_within_its_share_never_waits_on_any_worker(void **state)
{
    (void)state;
    for (unsigned workers = 1; workers <= 8; workers++) {
        uint64_t begin, carried, passed = 0;
        struct by_engine_share first, second;
        uint32_t sent = 0;

        open_all(workers);
        load_all(workers, 2, QUARTER, 0);
        begin = node[0].now_ns;
        for (uint32_t i = 0; i < 20000; i++) {
            if (i % 41 == 0)
                passed += (uint64_t)relay(workers, 1, sent++);
            (void)relay(workers, 2, i);
            node[0].now_ns += 4 * (ON_CABLE * BYTE / METERED + 1) / 41 + 1;
        }
        assert_int_equal(passed, sent);
        first = share_of(workers, 1);
        second = share_of(workers, 2);
        assert_true(first.rx_bytes == sent * ON_CABLE && first.held == 0 && first.dropped == 0);
        assert_true(second.held > 1000 && second.dropped > 10000);
        carried = (uint64_t)((unsigned __int128)(node[0].now_ns - begin) * METERED / BYTE);
        assert_true(second.rx_bytes >= carried - first.rx_bytes);
        assert_true(second.rx_bytes <=
                    carried - first.rx_bytes + DEPTH + PORT + 2 * HELD + 4 * workers * row_of(workers));
        close_all(workers);
    }
}

/* Both jobs run on all workers when their first shares are pushed, and send eight times the rate of
 * the link: together they get the rate, and neither more than what the other leaves. */
static void shares_hold_for_jobs_that_run_when_they_are_pushed(void **state)
{
    (void)state;
    for (unsigned workers = 1; workers <= 8; workers++) {
        uint64_t begin, carried,
            slack = 2 * (uint64_t)(DEPTH + HELD) + PORT + HELD + 6 * workers * row_of(workers);

        open_all(workers);
        load_all(workers, 0, 0, 0);
        for (uint32_t i = 0; i < 64; i++)
            contribute(workers, 1 + i % 2, i);
        load_all(workers, 0, BY_SHARE_ONE / 2, 0);
        for (unsigned w = 0; w < workers; w++)
            assert_true(node[w].engine->active->entry[0].stays && node[w].engine->active->entry[0].mine != 0);
        begin = node[0].now_ns;
        for (uint32_t i = 0; i < 80000; i++) {
            contribute(workers, 1 + i % 2, 64 + i / 2);
            node[0].now_ns += (ON_CABLE * BYTE / METERED + 1) / 8;
        }
        carried = (uint64_t)((unsigned __int128)(node[0].now_ns - begin) * METERED / BYTE);
        for (uint32_t s = 1; s <= 2; s++) {
            struct by_engine_share share = share_of(workers, s);

            assert_true(share.rx_bytes >= carried / 2);
            if (share.rx_bytes > carried / 2 + slack)
                fail_msg("%u workers, job %u: %llu bytes, its share is %llu and %llu for bursts", workers, s,
                         (unsigned long long)share.rx_bytes, (unsigned long long)carried / 2,
                         (unsigned long long)slack);
            assert_true(share.dropped > 10000);
        }
        close_all(workers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_of_all_workers_add_up_to_the_share),
        cmocka_unit_test(a_job_within_its_share_never_waits_on_any_worker),
        cmocka_unit_test(shares_hold_for_jobs_that_run_when_they_are_pushed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
