/* Which instruction sets the processor supports: compared with what the kernel reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "offload/reduce/isa.h"
#include "offload/reduce/reduce.h"

/* Whether the first processor has all of these flags (NULL-terminated). */
static bool has_flags(const char *const *flags)
{
    static char line[8192];
    FILE *info = fopen("/proc/cpuinfo", "r");
    bool found = false;

    assert_non_null(info);
    while (!found && fgets(line, sizeof(line), info) != NULL)
        found = strncmp(line, "flags", 5) == 0 || strncmp(line, "Features", 8) == 0;
    fclose(info);
    line[strcspn(line, "\n")] = ' ';
    for (; found && *flags != NULL; flags++) {
        char word[32];

        snprintf(word, sizeof(word), " %s ", *flags);
        found = strstr(line, word) != NULL;
    }
    return found;
}

static void instruction_sets_are_those_that_the_kernel_reports(void **state)
{
    static const char *const avx2[] = {"avx", "avx2", "f16c", NULL};
    static const char *const avx512[] = {"avx2", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl", NULL};
    static const char *const neon[] = {"asimd", NULL};

    (void)state;
    assert_int_equal(by_isa_usable(BY_ISA_SCALAR), 1);
    assert_int_equal(by_isa_usable(BY_ISA_AVX2), has_flags(avx2));
    assert_int_equal(by_isa_usable(BY_ISA_AVX512), has_flags(avx512));
    assert_int_equal(by_isa_usable(BY_ISA_NEON), has_flags(neon));
    assert_int_equal(by_isa_usable(0), 0);
    assert_int_equal(by_isa_usable(BY_ISA_COUNT), 0);
}

#if defined(__x86_64__)
/* The bits of the Intel SDM: volume 2, CPUID, leaf 1 and 7; volume 1, section 13.3. */
static const struct by_isa_x86 with_all = {
    .leaf1_ecx = 1u << 27 /* OSXSAVE */ | 1u << 28 /* AVX */ | 1u << 29 /* F16C */,
    .leaf7_ebx =
        1u << 5 /* AVX2 */ | 1u << 16 /* F */ | 1u << 17 /* DQ */ | 1u << 30 /* BW */ | 1u << 31 /* VL */,
    .xcr0 = 0x2 /* XMM */ | 0x4 /* YMM */ | 0x20 /* masks */ | 0x40 /* ZMM 0-15 */ | 0x80 /* ZMM 16-31 */,
};

static void an_instruction_set_needs_each_of_its_bits(void **state)
{
    enum { AVX2_LEAF7 = 1 << 5, AVX2_XCR0 = 0x6 };

    (void)state;
    assert_int_equal(by_isa_x86_has(&with_all, BY_ISA_AVX2), 1);
    assert_int_equal(by_isa_x86_has(&with_all, BY_ISA_AVX512), 1);
    for (unsigned bit = 0; bit < 32; bit++) {
        struct by_isa_x86 less = with_all;

        less.leaf1_ecx &= ~(1u << bit);
        assert_int_equal(by_isa_x86_has(&less, BY_ISA_AVX2), less.leaf1_ecx == with_all.leaf1_ecx);
        assert_int_equal(by_isa_x86_has(&less, BY_ISA_AVX512), less.leaf1_ecx == with_all.leaf1_ecx);
        less = with_all;
        less.leaf7_ebx &= ~(1u << bit);
        assert_int_equal(by_isa_x86_has(&less, BY_ISA_AVX2), (less.leaf7_ebx & AVX2_LEAF7) != 0);
        assert_int_equal(by_isa_x86_has(&less, BY_ISA_AVX512), less.leaf7_ebx == with_all.leaf7_ebx);
        less = with_all;
        less.xcr0 &= ~(1u << bit);
        assert_int_equal(by_isa_x86_has(&less, BY_ISA_AVX2), (less.xcr0 & AVX2_XCR0) == AVX2_XCR0);
        assert_int_equal(by_isa_x86_has(&less, BY_ISA_AVX512), less.xcr0 == with_all.xcr0);
    }
}

static void a_processor_without_leaves_is_scalar(void **state)
{
    const struct by_isa_x86 none = {0};

    (void)state;
    assert_int_equal(by_isa_x86_has(&none, BY_ISA_SCALAR), 1);
    assert_int_equal(by_isa_x86_has(&none, BY_ISA_AVX2), 0);
    assert_int_equal(by_isa_x86_has(&none, BY_ISA_AVX512), 0);
}

static void no_processor_of_x86_has_those_of_others(void **state)
{
    (void)state;
    assert_int_equal(by_isa_x86_has(&with_all, 0), 0);
    assert_int_equal(by_isa_x86_has(&with_all, BY_ISA_NEON), 0);
    assert_int_equal(by_isa_x86_has(&with_all, BY_ISA_COUNT), 0);
}
#endif

static void the_best_is_the_last_that_is_usable(void **state)
{
    unsigned best = by_isa_best();

    (void)state;
    assert_true(by_isa_usable(best));
    for (unsigned isa = best + 1; isa < BY_ISA_COUNT; isa++)
        assert_false(by_isa_usable(isa));
}

static void each_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(by_isa_name(BY_ISA_SCALAR), "scalar");
    assert_string_equal(by_isa_name(BY_ISA_AVX2), "avx2");
    assert_string_equal(by_isa_name(BY_ISA_AVX512), "avx512");
    assert_string_equal(by_isa_name(BY_ISA_NEON), "neon");
    assert_string_equal(by_isa_name(BY_ISA_COUNT), "?");
    assert_string_equal(by_isa_name(UINT32_MAX), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instruction_sets_are_those_that_the_kernel_reports),
#if defined(__x86_64__)
        cmocka_unit_test(an_instruction_set_needs_each_of_its_bits),
        cmocka_unit_test(a_processor_without_leaves_is_scalar),
        cmocka_unit_test(no_processor_of_x86_has_those_of_others),
#endif
        cmocka_unit_test(the_best_is_the_last_that_is_usable),
        cmocka_unit_test(each_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
