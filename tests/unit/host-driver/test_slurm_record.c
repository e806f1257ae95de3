/* What the plugin for Slurm reads: records, shares, settings; and what a step does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host-driver/plugin/slurm/record.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void a_record_is_found_behind_other_text(void **state)
{
    static const struct {
        const char *comment;
        enum by_slurm_kind kind;
        uint32_t number;
        const char *reason;
    } cases[] = {
        {NULL, BY_SLURM_ABSENT, 0, NULL},
        {"", BY_SLURM_ABSENT, 0, NULL},
        {"a note", BY_SLURM_ABSENT, 0, NULL},
        {"a note on banyan: job 3", BY_SLURM_ABSENT, 0, NULL},
        {"banyan: job 1", BY_SLURM_JOB, 1, NULL},
        {"banyan: job 1023", BY_SLURM_JOB, 1023, NULL},
        {"a note; banyan: job 7", BY_SLURM_JOB, 7, NULL},
        {"banyan: job 1; banyan: job 2", BY_SLURM_JOB, 2, NULL},
        {"banyan: job 1; banyan: no slots", BY_SLURM_REFUSED, 0, "no slots"},
        {"banyan: job 3: link a - b: a share of 1/4 would fit", BY_SLURM_REFUSED, 0,
         "job 3: link a - b: a share of 1/4 would fit"},
        {"banyan: job 0", BY_SLURM_REFUSED, 0, "job 0"},
        {"banyan: job 1024", BY_SLURM_REFUSED, 0, "job 1024"},
        {"banyan: job 18446744073709551617", BY_SLURM_REFUSED, 0, "job 18446744073709551617"},
        {"banyan: job -1", BY_SLURM_REFUSED, 0, "job -1"},
        {"banyan: job ", BY_SLURM_REFUSED, 0, "job "},
        {"banyan: ", BY_SLURM_REFUSED, 0, ""},
        {" banyan: job 3", BY_SLURM_ABSENT, 0, NULL},
    };
    struct by_slurm_record record;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        by_slurm_record_read(cases[i].comment, &record);
        assert_int_equal(record.kind, cases[i].kind);
        assert_int_equal(record.number, cases[i].number);
        if (cases[i].reason != NULL)
            assert_string_equal(record.reason, cases[i].reason);
        else
            assert_null(record.reason);
    }
}

static void a_share_consists_of_digits_and_three_signs(void **state)
{
    static const char *const valid[] = {"no", "yes", "1/4", "0.25", ".5", "25%", "1"};
    static const char *const wrong[] = {"",
                                        "bananas",
                                        "1/4 ",
                                        "-1",
                                        "1;2",
                                        "$(id)",
                                        "/",
                                        "%",
                                        "NO",
                                        "1e3",
                                        "11111111111111111111111111111111111111111"};

    (void)state;
    for (size_t i = 0; i < COUNT(valid); i++)
        assert_true(by_slurm_share_is_valid(valid[i]));
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_false(by_slurm_share_is_valid(wrong[i]));
}

static const char *read_words(struct by_slurm_settings *settings, int count, const char *const *words)
{
    char *copy[8];

    for (int i = 0; i < count; i++)
        copy[i] = (char *)(uintptr_t)words[i];
    return by_slurm_settings_read(count, copy, settings);
}

static void settings_have_defaults(void **state)
{
    static const char *const least[] = {"controller=tcp:head:46250"};
    static const char *const all[] = {"refused=fail", "keys=/k", "default=1/4", "controller=unix:/s"};
    struct by_slurm_settings settings;

    (void)state;
    assert_null(read_words(&settings, 1, least));
    assert_string_equal(settings.controller, "tcp:head:46250");
    assert_string_equal(settings.share, "no");
    assert_null(settings.keys);
    assert_false(settings.fails);
    assert_null(read_words(&settings, 4, all));
    assert_string_equal(settings.controller, "unix:/s");
    assert_string_equal(settings.keys, "/k");
    assert_string_equal(settings.share, "1/4");
    assert_true(settings.fails);
}

static void a_wrong_setting_is_named(void **state)
{
    static const char *const wrong[] = {
        "controller=", "controller", "refused=no", "refused=", "default=much", "keys=", "controllers=a", ""};
    const char *words[2] = {"controller=a"};
    struct by_slurm_settings settings;

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        words[1] = wrong[i];
        assert_string_equal(read_words(&settings, 2, words), wrong[i]);
    }
    assert_string_equal(read_words(&settings, 0, NULL), "");
}

static void a_step_joins_only_where_it_has_all_nodes(void **state)
{
    static const struct by_slurm_record job = {.kind = BY_SLURM_JOB, .number = 3},
                                        refused = {.kind = BY_SLURM_REFUSED, .reason = "full"},
                                        absent = {.kind = BY_SLURM_ABSENT};
    static const struct {
        struct by_slurm_step step;
        const struct by_slurm_record *record;
        enum by_slurm_use use;
    } cases[] = {
        {{NULL, "no", "a.out", 4, 4}, &job, BY_SLURM_USE},
        {{"1/4", "no", "a.out", 4, 4}, &job, BY_SLURM_USE},
        {{"no", "yes", "a.out", 4, 4}, &job, BY_SLURM_PLAIN},
        {{NULL, "no", "a.out", 3, 4}, &job, BY_SLURM_PART},
        {{NULL, "no", "orted", 3, 4}, &job, BY_SLURM_USE},
        {{NULL, "no", "/usr/bin/orted", 3, 4}, &job, BY_SLURM_USE},
        {{NULL, "no", "/usr/bin/orted2", 3, 4}, &job, BY_SLURM_PART},
        {{"no", "no", "orted", 3, 4}, &job, BY_SLURM_PLAIN},
        {{NULL, "no", NULL, 3, 4}, &job, BY_SLURM_PART},
        {{NULL, "no", NULL, 4, 4}, &refused, BY_SLURM_DENIED},
        {{"no", "no", NULL, 4, 4}, &refused, BY_SLURM_PLAIN},
        {{NULL, "no", NULL, 4, 4}, &absent, BY_SLURM_PLAIN},
        {{NULL, "1/4", NULL, 4, 4}, &absent, BY_SLURM_MISSING},
        {{"yes", "no", NULL, 4, 4}, &absent, BY_SLURM_MISSING},
        {{"no", "yes", NULL, 4, 4}, &absent, BY_SLURM_PLAIN},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(by_slurm_decide(&cases[i].step, cases[i].record), cases[i].use);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_found_behind_other_text),
        cmocka_unit_test(a_share_consists_of_digits_and_three_signs),
        cmocka_unit_test(settings_have_defaults),
        cmocka_unit_test(a_wrong_setting_is_named),
        cmocka_unit_test(a_step_joins_only_where_it_has_all_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
