/* How findings are shown: as aligned text, with groups without problems folded, and as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "control/base/report.h"
#include "tests/unit/control/view/doctor/sound.h"

static struct by_report make_report(void)
{
    struct by_report report = {.check = "mtu"};

    by_report_add(&report, BY_GRADE_TROUBLE, "eth0", "raise it", "has %d", 1400);
    by_report_add(&report, BY_GRADE_OK, "eth1", NULL, "has 1500");
    report.check = "hugepages";
    by_report_add(&report, BY_GRADE_ADVICE, "", "make some", "there are none");
    return report;
}

static char *print(bool verbose, bool json)
{
    struct by_report report = make_report();
    char *text = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);

    if (json)
        by_report_print_json(&report, stream);
    else
        by_report_print(&report, verbose, false, stream);
    fclose(stream);
    by_report_free(&report);
    return text;
}

static void what_is_well_is_folded_and_the_worst_comes_last(void **state)
{
    char *text = print(false, false);

    (void)state;
    assert_string_equal(text, "advice   hugepages  there are none\n"
                              "                    -> make some\n"
                              "trouble  mtu        eth0: has 1400\n"
                              "                    -> raise it\n"
                              "1 ok, 1 advice, 1 trouble\n");
    free(text);
}

static void verbosely_what_is_well_is_shown_too(void **state)
{
    char *text = print(true, false);

    (void)state;
    assert_non_null(strstr(text, "ok       mtu        eth1: has 1500\n"));
    free(text);
}

static void json_has_every_finding(void **state)
{
    char *text = print(false, true);
    json_t *root = json_loads(text, 0, NULL);

    (void)state;
    assert_non_null(root);
    assert_int_equal(json_array_size(json_object_get(root, "findings")), 3);
    assert_int_equal(json_integer_value(json_object_get(root, "trouble")), 1);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(json_object_get(root, "findings"), 0), "remedy")),
        "raise it");
    json_decref(root);
    free(text);
}

int test_report(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_well_is_folded_and_the_worst_comes_last),
        cmocka_unit_test(verbosely_what_is_well_is_shown_too),
        cmocka_unit_test(json_has_every_finding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
