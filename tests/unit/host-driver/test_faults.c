/* Injected faults: exactly the drawn faults happen. */
#include <string.h>

#include "host-driver/faults.h"
#include "tests/unit/host-driver/rig.h"

#define PACKETS 4032u /* a multiple of every batch size used */

static struct by_faults faults;
static uint32_t seen[PACKETS];
static uint32_t order[PACKETS * 2];
static uint32_t order_count;

/* Passes PACKETS numbered packets in batches of `batch`, overwrites the memory of each batch
 * afterwards, and records the output. */
static void pass_all(uint32_t loss, uint32_t duplicate, uint32_t reorder, uint32_t batch)
{
    struct by_fault fault = {.prng.state = 42, .loss = loss, .duplicate = duplicate, .reorder = reorder};
    uint32_t numbers[BY_RX_BATCH];
    struct by_rx in[BY_RX_BATCH], out[BY_FAULTS_OUT_MAX];
    uint64_t now_ns = 0;

    memset(seen, 0, sizeof(seen));
    order_count = 0;
    assert_int_equal(by_faults_init(&faults, &fault, 64), 0);
    for (uint32_t first = 0; first < PACKETS + 10 * batch; first += batch) {
        uint32_t count = first < PACKETS ? batch : 0;
        uint32_t got;

        for (uint32_t i = 0; i < count; i++) {
            numbers[i] = first + i;
            in[i] = (struct by_rx){.data = (const uint8_t *)&numbers[i], .bytes = 4, .port = 3};
        }
        now_ns += count > 0 ? 1000 : 1000000;
        got = by_faults_apply(&faults, now_ns, in, count, out);
        assert_true(got <= BY_FAULTS_OUT_MAX);
        for (uint32_t i = 0; i < got; i++) {
            uint32_t number;

            assert_int_equal(out[i].bytes, 4);
            assert_int_equal(out[i].port, 3);
            memcpy(&number, out[i].data, 4);
            assert_true(number < PACKETS);
            seen[number]++;
            order[order_count++] = number;
        }
        memset(numbers, 0xff, sizeof(numbers));
    }
    assert_true(by_faults_deadline(&faults) == UINT64_MAX);
    by_faults_free(&faults);
}

static void loss_of_one_half_drops_about_one_half_and_doubles_none(void **state)
{
    uint32_t lost = 0;

    (void)state;
    pass_all(0x80000000u, 0, 0, 64);
    for (uint32_t i = 0; i < PACKETS; i++) {
        assert_true(seen[i] <= 1);
        lost += seen[i] == 0;
    }
    assert_true(lost > PACKETS * 4 / 10 && lost < PACKETS * 6 / 10);
    assert_int_equal(faults.dropped, lost);
}

static void duplication_of_all_doubles_each_packet(void **state)
{
    (void)state;
    pass_all(0, 0xffffffffu, 0, 64);
    for (uint32_t i = 0; i < PACKETS; i++)
        assert_int_equal(seen[i], 2);
}

static void reordering_loses_nothing_and_lets_later_packets_overtake(void **state)
{
    static const uint32_t batches[] = {1, 3, 64};

    (void)state;
    for (size_t b = 0; b < sizeof(batches) / sizeof(batches[0]); b++) {
        uint32_t overtaken = 0;

        pass_all(0, 0, 0x20000000u, batches[b]);
        for (uint32_t i = 0; i < PACKETS; i++)
            assert_int_equal(seen[i], 1);
        for (uint32_t i = 1; i < order_count; i++)
            overtaken += order[i] < order[i - 1];
        assert_true(overtaken > PACKETS / 20);
    }
}

static void a_held_packet_comes_back_when_nothing_else_comes(void **state)
{
    struct by_fault fault = {.prng.state = 1, .reorder = 0xffffffffu};
    uint32_t number = 5;
    struct by_rx in = {.data = (const uint8_t *)&number, .bytes = 4};
    struct by_rx out[BY_FAULTS_OUT_MAX];
    uint64_t due;

    (void)state;
    assert_int_equal(by_faults_init(&faults, &fault, 64), 0);
    assert_int_equal(by_faults_apply(&faults, 1000, &in, 1, out), 0);
    due = by_faults_deadline(&faults);
    assert_true(due != UINT64_MAX && due > 1000);
    assert_int_equal(by_faults_apply(&faults, due - 1, NULL, 0, out), 0);
    assert_int_equal(by_faults_apply(&faults, due, NULL, 0, out), 1);
    assert_true(by_faults_deadline(&faults) == UINT64_MAX);
    by_faults_free(&faults);
}

static void the_same_seed_gives_the_same_faults(void **state)
{
    static uint32_t first[PACKETS * 2];
    uint32_t first_count;

    (void)state;
    pass_all(0x10000000u, 0x10000000u, 0x10000000u, 16);
    memcpy(first, order, sizeof(first));
    first_count = order_count;
    pass_all(0x10000000u, 0x10000000u, 0x10000000u, 16);
    assert_int_equal(order_count, first_count);
    assert_memory_equal(order, first, first_count * sizeof(order[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_of_one_half_drops_about_one_half_and_doubles_none),
        cmocka_unit_test(duplication_of_all_doubles_each_packet),
        cmocka_unit_test(reordering_loses_nothing_and_lets_later_packets_overtake),
        cmocka_unit_test(a_held_packet_comes_back_when_nothing_else_comes),
        cmocka_unit_test(the_same_seed_gives_the_same_faults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
