/*
 * The part of the model checker that runs with every `make test`: the quick configurations, and
 * evidence that the reduced spaces are complete. mutations.sh shows that broken rules are detected.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/wire/seal.h"
#include "tests/model/model.h"

#define STATES_MAX 20000000

static void every_quick_configuration_is_safe_and_live(void **state)
{
    unsigned count = 0;

    (void)state;
    for (unsigned c = 0; c < model_config_count; c++) {
        struct model_result result;

        if (!(model_configs[c].set & MODEL_SET_QUICK))
            continue;
        model_run(&model_configs[c], STATES_MAX, &result);
        if (result.violation != NULL || !result.complete || !result.live)
            fail_msg(
                "%s: %s; to see it again: make build/release/tools/model && build/release/tools/model %s",
                model_configs[c].name, result.violation ? result.violation : "stuck, or too large",
                model_configs[c].name);
        count++;
    }
    assert_true(count >= 20);
}

/* Explores with losses as actions and every set of messages as a separate state, and with
 * reduction: the components reach the same states, and neither space has a dead end. */
static void the_reduction_reaches_what_is_reached_without_it(void **state)
{
    static const struct model_call one = {BY_COLLECTIVE_ALLREDUCE, BY_OP_SUM, BY_DTYPE_U64, 0, 0, 1};
    static const struct model_call two = {BY_COLLECTIVE_ALLREDUCE, BY_OP_SUM, BY_DTYPE_U64, 0, 0, 2};
    unsigned count = 2;
    struct model_config configs[] = {
        {.tree = "R(ab)", .window = 1, .calls = {one}, .mute = 1, .end = MODEL_END_DONE},
        {.tree = "R(ab)", .window = 1, .calls = {two}, .mute = 1, .end = MODEL_END_DONE},
        /* The following take minutes, with MODEL_FULL (`make model`). */
        {.tree = "R(S(a)c)", .window = 1, .calls = {one}, .mute = 1, .end = MODEL_END_DONE},
        {.tree = "R(S(ab))", .window = 1, .calls = {one}, .mute = 1, .end = MODEL_END_DONE},
        {.tree = "R(ab)", .window = 2, .calls = {one}, .mute = 1, .in_place = 1, .end = MODEL_END_DONE},
        {.tree = "R(ab)", .window = 1, .calls = {one}, .mute = 1, .exact = 1, .end = MODEL_END_DONE},
    };

    (void)state;
    if (getenv("MODEL_FULL") != NULL)
        count = sizeof(configs) / sizeof(configs[0]);
    for (unsigned c = 0; c < count; c++) {
        struct model_result reduced, plain;

        model_run(&configs[c], STATES_MAX, &reduced);
        configs[c].plain = 1;
        model_run(&configs[c], STATES_MAX, &plain);
        assert_null(reduced.violation);
        assert_null(plain.violation);
        assert_true(reduced.complete && plain.complete);
        assert_true(reduced.live && plain.live);
        if (reduced.vectors != plain.vectors)
            fail_msg("configuration %u: %llu vectors reduced, %llu without", c,
                     (unsigned long long)reduced.vectors, (unsigned long long)plain.vectors);
        assert_true(reduced.states < plain.states);
    }
}

/* Tags exclude only messages that nothing in the cluster has sent: the same states and the same
 * paths. */
static void a_keyed_cluster_reaches_what_is_reached_without_keys(void **state)
{
    (void)state;
    for (unsigned c = 0; c < model_config_count; c++) {
        struct model_config config = model_configs[c];
        struct model_result without, with;

        if (strcmp(config.name, "exact-short") != 0)
            continue;
        model_run(&config, STATES_MAX, &without);
        config.cover = BY_COVER_PAYLOAD;
        model_run(&config, STATES_MAX, &with);
        assert_null(with.violation);
        assert_true(with.complete && with.live);
        assert_int_equal(with.states, without.states);
        assert_int_equal(with.transitions, without.transitions);
        assert_int_equal(with.vectors, without.vectors);
        return;
    }
    fail_msg("no configuration of that name");
}

static void exploring_twice_gives_the_same_space(void **state)
{
    struct model_result first, second;

    (void)state;
    for (unsigned c = 0; c < model_config_count; c++) {
        if (strcmp(model_configs[c].name, "flip") != 0)
            continue;
        model_run(&model_configs[c], STATES_MAX, &first);
        model_run(&model_configs[c], STATES_MAX, &second);
        assert_int_equal(first.states, second.states);
        assert_int_equal(first.transitions, second.transitions);
        assert_int_equal(first.vectors, second.vectors);
        return;
    }
    fail_msg("no configuration of that name");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_quick_configuration_is_safe_and_live),
        cmocka_unit_test(the_reduction_reaches_what_is_reached_without_it),
        cmocka_unit_test(a_keyed_cluster_reaches_what_is_reached_without_keys),
        cmocka_unit_test(exploring_twice_gives_the_same_space),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
