/* The base of the core: bytes, CRC32C, errors, fault injection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/bytes.h"
#include "offload/base/crc32c.h"
#include "offload/base/errors.h"
#include "offload/base/fault.h"
#include "offload/base/park.h"
#include "offload/base/prng.h"
#include "offload/base/rate.h"
#include "offload/base/siphash.h"

static void integers_lie_in_network_byte_order(void **state)
{
    uint8_t b[9] = {0};

    (void)state;
    by_put16(b + 1, 0x0102);
    assert_memory_equal(b, "\0\1\2\0", 4);
    by_put32(b + 1, 0x01020304);
    assert_memory_equal(b, "\0\1\2\3\4\0", 6);
    by_put64(b + 1, UINT64_C(0x0102030405060708));
    assert_memory_equal(b, "\0\1\2\3\4\5\6\7\10", 9);
    assert_int_equal(by_get16(b + 1), 0x0102);
    assert_int_equal(by_get32(b + 1), 0x01020304);
    assert_true(by_get64(b + 1) == UINT64_C(0x0102030405060708));
    memset(b, 0xff, 9);
    assert_int_equal(by_get16(b), 0xffff);
    assert_true(by_get32(b) == 0xffffffff);
    assert_true(by_get64(b) == UINT64_MAX);
}

static void copy_zero_and_equal_touch_exactly_their_range(void **state)
{
    uint8_t from[128], to[128];

    (void)state;
    for (unsigned i = 0; i < 128; i++)
        from[i] = (uint8_t)(i + 1);
    for (unsigned bytes = 0; bytes < 100; bytes++) {
        memset(to, 0xee, sizeof(to));
        by_copy(to + 3, from + 1, bytes);
        assert_memory_equal(to + 3, from + 1, bytes);
        assert_int_equal(to[2], 0xee);
        assert_int_equal(to[3 + bytes], 0xee);
        assert_int_equal(by_equal(to + 3, from + 1, bytes), 1);
        assert_int_equal(by_equal(to + 3, from + 1, bytes + 1), 0);
        by_zero(to + 3, bytes);
        for (unsigned i = 0; i < bytes; i++)
            assert_int_equal(to[3 + i], 0);
        assert_int_equal(to[2], 0xee);
        assert_int_equal(to[3 + bytes], 0xee);
    }
}

/* RFC 3720, appendix B.4. */
static void crc32c_gives_the_values_of_rfc_3720(void **state)
{
    uint8_t b[32];

    (void)state;
    assert_true(by_crc32c(0, "123456789", 9) == 0xe3069283);
    memset(b, 0, 32);
    assert_true(by_crc32c(0, b, 32) == 0x8a9136aa);
    memset(b, 0xff, 32);
    assert_true(by_crc32c(0, b, 32) == 0x62a8ab43);
    for (unsigned i = 0; i < 32; i++)
        b[i] = (uint8_t)i;
    assert_true(by_crc32c(0, b, 32) == 0x46dd794e);
    for (unsigned cut = 0; cut <= 32; cut++)
        assert_true(by_crc32c(by_crc32c(0, b, cut), b + cut, 32 - cut) == 0x46dd794e);
}

static void every_error_has_a_name_and_a_sentence(void **state)
{
    (void)state;
#define X(name, value, text)                                                                                 \
    assert_string_equal(by_error_name(BY_##name), #name);                                                    \
    assert_string_equal(by_error_text(BY_##name), text);
    BY_ERROR_LIST(X)
#undef X
    assert_string_equal(by_error_name(0), "OK");
    assert_string_equal(by_error_name(-1000), "UNKNOWN");
    assert_string_equal(by_error_text(1), "unknown error");
}

static void faults_come_as_often_as_asked_and_the_same_for_a_seed(void **state)
{
    struct by_fault a = {.prng = {7}, .loss = 1u << 30, .duplicate = 1u << 29, .reorder = 1u << 29}, b = a;
    struct by_fault none = {.prng = {7}};
    unsigned seen[5] = {0};

    (void)state;
    assert_int_equal(by_fault_enabled(&a), 1);
    assert_int_equal(by_fault_enabled(&none), 0);
    for (unsigned i = 0; i < 100000; i++) {
        enum by_fault_verdict verdict = by_fault_draw(&a);

        assert_int_equal(verdict, by_fault_draw(&b));
        assert_int_equal(by_fault_draw(&none), BY_FAULT_PASS);
        seen[verdict]++;
    }
    assert_in_range(seen[BY_FAULT_DROP], 24000, 26000);
    assert_in_range(seen[BY_FAULT_DUPLICATE], 8500, 10300); /* an eighth of the remaining packets */
    assert_in_range(seen[BY_FAULT_HOLD], 8500, 10300);
}

/* Appendix A of the paper has the last row. The others come from the reference program of its
 * authors: key 0, 1 .. 15 and messages 0, 1 .. of each length. */
static void siphash_gives_the_values_of_its_paper(void **state)
{
    static const uint64_t want[16] = {
        0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d,
        0xcf2794e0277187b7, 0x18765564cd99a68d, 0xcbc9466e58fee3ce, 0xab0200f58b01d137,
        0x93f5f5799a932462, 0x9e0082df0ba9e4b0, 0x7a5dbbc594ddb9f3, 0xf4b32f46226bada7,
        0x751e8fbc860ee5fb, 0x14ea5627c0843d90, 0xf723ca908e7af2ee, 0xa129ca6149be45e5,
    };
    struct by_siphash_key key;
    uint8_t bytes[17];

    (void)state;
    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)i;
    by_siphash_key_read(&key, bytes);
    assert_true(key.k0 == UINT64_C(0x0706050403020100) && key.k1 == UINT64_C(0x0f0e0d0c0b0a0908));
    for (unsigned n = 0; n < 16; n++) {
        assert_true(by_siphash(&key, bytes, n) == want[n]);
        memmove(bytes + 1, bytes, 16); /* at another alignment */
        assert_true(by_siphash(&key, bytes + 1, n) == want[n]);
        memmove(bytes, bytes + 1, 16);
    }
}

static void parked_frames_come_when_they_are_due_and_in_their_order(void **state)
{
    enum { ROOM = 50 };
    static char frames[ROOM];
    struct by_parked memory[ROOM], got, last = {0};
    struct by_prng prng = {3};
    struct by_park park;

    (void)state;
    by_park_open(&park, memory, ROOM);
    assert_true(by_park_due(&park) == UINT64_MAX);
    for (unsigned round = 0; round < 200; round++) {
        uint32_t parked = 0;
        uint64_t now = round * 100;

        while (by_park_put(&park, now + by_prng_below(&prng, 20), &frames[parked], (uint16_t)parked))
            parked++;
        assert_int_equal(parked, ROOM);
        last = (struct by_parked){0};
        for (uint64_t at = now; parked > 0; at++) {
            assert_true(by_park_due(&park) >= at);
            while (by_park_take(&park, at, &got)) {
                assert_true(got.due_ns == at && (last.due_ns < at || last.order < got.order));
                assert_ptr_equal(got.frame, &frames[got.port]);
                last = got;
                parked--;
            }
        }
        assert_false(by_park_take(&park, UINT64_MAX, &got));
    }
}

static void a_rate_allows_its_burst_and_then_one_after_the_other(void **state)
{
    const uint64_t each = 1000000, begin = 5000000000;
    struct by_rate rate;

    (void)state;
    by_rate_start(&rate, 1000, 3);
    for (unsigned pause = 1; pause < 4; pause++) { /* however long it was */
        uint64_t now = begin + pause * pause * 100 * each;

        for (unsigned i = 0; i < 3; i++) {
            assert_true(by_rate_wait_ns(&rate, now) == 0);
            assert_true(by_rate_take(&rate, now));
        }
        assert_false(by_rate_take(&rate, now));
        assert_true(by_rate_wait_ns(&rate, now) == each);
        assert_false(by_rate_take(&rate, now + each - 1));
        assert_true(by_rate_wait_ns(&rate, now + each - 1) == 1);
        assert_true(by_rate_take(&rate, now + each));
        assert_false(by_rate_take(&rate, now + each));
        assert_false(by_rate_take(&rate, now)); /* a clock that goes back gives nothing */
        assert_true(by_rate_take(&rate, 0) && by_rate_wait_ns(&rate, 0) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_lie_in_network_byte_order),
        cmocka_unit_test(copy_zero_and_equal_touch_exactly_their_range),
        cmocka_unit_test(crc32c_gives_the_values_of_rfc_3720),
        cmocka_unit_test(siphash_gives_the_values_of_its_paper),
        cmocka_unit_test(every_error_has_a_name_and_a_sentence),
        cmocka_unit_test(parked_frames_come_when_they_are_due_and_in_their_order),
        cmocka_unit_test(a_rate_allows_its_burst_and_then_one_after_the_other),
        cmocka_unit_test(faults_come_as_often_as_asked_and_the_same_for_a_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
