/* The memory range shared with switches: pieces do not overlap, and released pieces are reused and
 * zeroed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host-driver/arena.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"

#define MIB    ((uint64_t)1 << 20)
#define PIECES 40u

static void pieces_do_not_overlap_and_come_clean(void **state)
{
    struct by_arena *arena;
    struct by_prng prng = {.state = 1};
    uint8_t *piece[PIECES] = {NULL};
    uint64_t bytes[PIECES] = {0};

    (void)state;
    assert_int_equal(by_arena_open(&arena, 64 * MIB), 0);
    for (unsigned turn = 0; turn < 2000; turn++) {
        unsigned i = by_prng_below(&prng, PIECES);

        if (piece[i] != NULL) {
            for (uint64_t at = 0; at < bytes[i]; at += 997)
                assert_int_equal(piece[i][at], i + 1); /* no other piece overlaps */
            assert_int_equal(by_arena_give(arena, piece[i]), 0);
            piece[i] = NULL;
            continue;
        }
        bytes[i] = 1 + by_prng_below(&prng, turn % 7 == 0 ? 3u << 20 : 1u << 16);
        piece[i] = by_arena_take(arena, bytes[i]);
        if (piece[i] == NULL)
            continue;
        assert_true(by_arena_offset(arena, piece[i], bytes[i]) != UINT64_MAX);
        for (uint64_t at = 0; at < bytes[i]; at += 997)
            assert_int_equal(piece[i][at], 0);
        memset(piece[i], (int)i + 1, bytes[i]);
    }
    by_arena_close(arena);
}

static void what_does_not_fit_is_not_given(void **state)
{
    struct by_arena *arena;
    void *whole;
    int local = 0;

    (void)state;
    assert_int_equal(by_arena_open(&arena, 4 * MIB), 0);
    assert_null(by_arena_take(arena, 4 * MIB + 1));
    assert_null(by_arena_take(arena, UINT64_MAX));
    whole = by_arena_take(arena, 4 * MIB);
    assert_non_null(whole);
    assert_null(by_arena_take(arena, 1));
    assert_int_equal(by_arena_give(arena, (uint8_t *)whole + 1), BY_EINVAL);
    assert_int_equal(by_arena_give(arena, whole), 0);
    assert_int_equal(by_arena_give(arena, whole), BY_EINVAL);
    assert_true(by_arena_offset(arena, &local, sizeof(local)) == UINT64_MAX);
    assert_true(by_arena_offset(arena, whole, by_arena_bytes(arena) + 1) == UINT64_MAX);
    by_arena_close(arena);
    assert_int_equal(by_arena_open(&arena, 0), 0);
    assert_null(by_arena_take(arena, 1));
    by_arena_close(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_do_not_overlap_and_come_clean),
        cmocka_unit_test(what_does_not_fit_is_not_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
