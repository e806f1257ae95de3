/* The list of what earlier generations have done, against bitmaps: random intervals of three calls
 * and two shards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/prng.h"
#include "offload/endpoint/state.h"

#define CALLS  3u
#define SHARDS 2u
#define BYTES  24u         /* of a shard */
#define FIRST  0xfffffffeu /* call numbers wrap around */

static struct by_endpoint endpoint;
static struct by_done room[CALLS * SHARDS * BYTES];
static uint8_t model[CALLS][SHARDS][BYTES + 1];

/* The list is sorted, and its intervals neither touch nor are empty. */
static void expect_order(void)
{
    for (uint32_t i = 0; i < endpoint.done_count; i++) {
        const struct by_done *one = &room[i], *next = &room[i + 1];

        assert_true(one->from < one->to);
        if (i + 1 == endpoint.done_count)
            break;
        if (one->call == next->call && one->shard == next->shard)
            assert_true(one->to < next->from);
        else
            assert_true(one->call - FIRST < next->call - FIRST ||
                        (one->call == next->call && one->shard < next->shard));
    }
}

static void expect_gaps(uint32_t call, uint32_t shard)
{
    const uint8_t *bits = model[call][shard];

    for (uint64_t at = 0; at <= BYTES; at++)
        for (uint64_t end = at; end <= BYTES; end++) {
            uint64_t start = at, stop, got_start, got_stop;

            while (start < end && bits[start])
                start++;
            stop = start;
            while (stop < end && !bits[stop])
                stop++;
            assert_int_equal(by_done_gap(&endpoint, FIRST + call, shard, at, end, &got_start, &got_stop),
                             start < end);
            if (start == end)
                continue;
            assert_true(got_start == start);
            assert_true(got_stop == stop);
        }
}

static void the_list_has_the_bytes_that_were_added(void **state)
{
    struct by_prng prng = {505};

    (void)state;
    for (unsigned round = 0; round < 200; round++) {
        uint32_t last = 0;

        memset(&endpoint, 0, sizeof(endpoint));
        memset(model, 0, sizeof(model));
        endpoint.done = room;
        endpoint.done_room = sizeof(room) / sizeof(room[0]);
        assert_false(by_done_any(&endpoint, FIRST));
        for (unsigned i = 0; i < 12; i++) {
            uint32_t call = (uint32_t)by_prng_below(&prng, CALLS),
                     shard = (uint32_t)by_prng_below(&prng, SHARDS);
            uint64_t from = by_prng_below(&prng, BYTES), to = from + 1 + by_prng_below(&prng, 6);

            to = to < BYTES ? to : BYTES;
            by_done_add(&endpoint,
                        &(struct by_done){.call = FIRST + call, .shard = shard, .from = from, .to = to});
            memset(&model[call][shard][from], 1, to - from);
            last = call > last ? call : last;
            expect_order();
        }
        for (uint32_t call = 0; call < CALLS; call++) {
            assert_int_equal(by_done_any(&endpoint, FIRST + call), call <= last);
            for (uint32_t shard = 0; shard < SHARDS; shard++)
                expect_gaps(call, shard);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_has_the_bytes_that_were_added),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
