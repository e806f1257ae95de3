/* Which instruction sets the processor supports: compared with what the kernel reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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
    assert_true(by_isa_usable(BY_ISA_SCALAR));
    assert_int_equal(by_isa_usable(BY_ISA_AVX2) != 0, has_flags(avx2));
    assert_int_equal(by_isa_usable(BY_ISA_AVX512) != 0, has_flags(avx512));
    assert_int_equal(by_isa_usable(BY_ISA_NEON) != 0, has_flags(neon));
    assert_false(by_isa_usable(BY_ISA_COUNT));
}

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
        cmocka_unit_test(the_best_is_the_last_that_is_usable),
        cmocka_unit_test(each_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
