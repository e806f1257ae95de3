/*
 * Ranks that continue after switches fail: results are exact to the bit whatever is lost between
 * ranks and controller, and calls keep their requests and counters. Ranks that cannot continue end
 * with an error that gives the reason. A failed round prints its seed: BANYAN_TEST_SEED=N replays
 * it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "host-driver/clock.h"
#include "host-driver/comm.h"
#include "host-driver/image_file.h"
#include "tests/unit/host-driver/hub.h"
#include "tests/unit/host-driver/hub_calls.h"
#include "tests/unit/host-driver/rig.h"

static void in_mid_allreduce_a_switch_dies_and_the_result_is_right(void **state)
{
    uint64_t before;

    (void)state;
    hub_open(&hub, 1, false);
    hub_join(&hub);
    hub_post(HUB_IN_PLACE);
    hub_run_for(100);
    before = hub_counter(&hub, 1, "endpoint/result");
    hub_kill(&hub, 0);
    hub_freeze(&hub, 2, true);
    hub_push(&hub, 2);
    hub_go(&hub, 2);
    hub_until(hub_carried(&hub, 2) == HUB_HOSTS);
    hub_check(HUB_IN_PLACE);
    for (int r = 0; r < HUB_HOSTS; r++)
        assert_int_equal(hub_counter(&hub, r, "endpoint/gone_on"), 1);
    assert_true(hub_counter(&hub, 1, "endpoint/result") > before);
    /* The next call runs on the new trees, without a second roll call. */
    hub_post(HUB_IN_PLACE);
    hub_check(HUB_IN_PLACE);
    assert_int_equal(hub_counter(&hub, 0, "endpoint/session"), 1);
    hub_close(&hub);
}

/* While the switches have no tables yet, level ranks get the memory for the new trees ready. */
static void level_ranks_have_their_memory_before_the_switches_are_ready(void **state)
{
    const void *memory[HUB_HOSTS] = {0};

    (void)state;
    hub_open(&hub, 7, false);
    hub_join(&hub);
    hub_post(HUB_IN_PLACE);
    hub_run_for(100);
    hub_kill(&hub, 0);
    hub_freeze(&hub, 2, true);
    for (int r = 0; r < HUB_HOSTS; r++) {
        hub_until(hub.comm[r]->progress.next_memory != NULL);
        memory[r] = hub.comm[r]->progress.next_memory;
    }
    hub_freeze(&hub, 2, false); /* a reminder changes nothing */
    for (int i = 0; i < 50; i++)
        hub_turn_all();
    hub_push(&hub, 2);
    hub_go(&hub, 2);
    hub_until(hub_carried(&hub, 2) == HUB_HOSTS);
    for (int r = 0; r < HUB_HOSTS; r++) {
        assert_ptr_equal(hub.comm[r]->progress.endpoint_memory, memory[r]);
        assert_null(hub.comm[r]->progress.next_memory);
    }
    hub_check(HUB_IN_PLACE);
    hub_close(&hub);
}

static void a_host_becomes_the_root_of_the_trees(void **state)
{
    (void)state;
    hub_open(&hub, 2, true);
    hub_join(&hub);
    assert_int_equal(hub_counter(&hub, 0, "engine/complete"), 0);
    hub_post(HUB_IN_PLACE);
    hub_run_for(100);
    hub_kill(&hub, 0);
    hub_freeze(&hub, 2, true);
    hub_push(&hub, 2);
    hub_go(&hub, 2);
    hub_check(HUB_IN_PLACE);
    assert_true(hub_counter(&hub, 0, "engine/complete") > 0);
    /* A second generation: the engine's counters continue. */
    {
        uint64_t complete = hub_counter(&hub, 0, "engine/complete");

        hub_post(HUB_IN_PLACE);
        hub_run_for(50);
        hub_freeze(&hub, 3, true);
        hub_push(&hub, 3);
        hub_go(&hub, 3);
        hub_check(HUB_IN_PLACE);
        assert_true(hub_counter(&hub, 0, "engine/complete") > complete);
    }
    hub_close(&hub);
}

static void the_controller_dies_in_between(void **state)
{
    (void)state;
    hub_open(&hub, 3, false);
    hub_join(&hub);
    hub_post(HUB_IN_PLACE);
    hub_run_for(100);
    hub_kill(&hub, 0);
    hub_freeze(&hub, 2, true);
    hub_until(hub.heard >= 3); /* some ranks have sent their reports */
    hub_stop(&hub);
    for (int i = 0; i < 200; i++)
        hub_turn_all();
    hub_start(&hub);
    hub_until(hub_members(&hub) == HUB_HOSTS);
    hub_push(&hub, 2);
    hub_freeze(&hub, 2, true);
    hub_go(&hub, 2);
    hub_until(hub_carried(&hub, 2) == HUB_HOSTS);
    hub_check(HUB_IN_PLACE);
    hub_close(&hub);
}

static void without_its_controller_data_go_on(void **state)
{
    (void)state;
    hub_open(&hub, 4, false);
    hub_join(&hub);
    hub_post(HUB_IN_PLACE);
    hub_run_for(20);
    hub_stop(&hub);
    hub_check(HUB_IN_PLACE);
    hub_post(HUB_IN_PLACE);
    hub_check(HUB_IN_PLACE);
    hub_close(&hub);
}

/* ---- random rounds ---- */

/* Acts as a reliable controller until all ranks have resumed: sends reminders, and tables to ranks
 * that reconnect. */
static void care(uint16_t gen, struct by_prng *prng)
{
    uint64_t begin_ns = by_clock_ns(), reminded_ns = begin_ns;
    bool cut = by_prng_below(prng, 3) == 0;

    for (; hub_carried(&hub, gen) < HUB_HOSTS; hub_turn_all()) {
        if (by_clock_ns() - begin_ns > HUB_WAIT_S * UINT64_C(1000000000))
            fail_msg("not all have gone on in generation %u within %d s", gen, HUB_WAIT_S);
        if (cut && by_prng_below(prng, 400) == 0) {
            cut = false;
            hub_stop(&hub);
            hub_start(&hub);
        }
        if (by_clock_ns() - reminded_ns > 20000000u) {
            reminded_ns = by_clock_ns();
            hub_freeze(&hub, gen, true);
            hub_go(&hub, gen);
        }
    }
}

static void one_round(uint64_t seed)
{
    struct by_prng prng = {seed};
    unsigned which;
    bool inner, second;

    which = (unsigned)by_prng_below(&prng, HUB_IN_PLACE);
    inner = by_prng_below(&prng, 2) == 1;
    second = by_prng_below(&prng, 2) == 1;
    hub_open(&hub, seed, inner);
    hub.loss = (unsigned)by_prng_below(&prng, 4);
    hub_join(&hub);
    hub_post(which);
    hub_run_for(by_prng_below(&prng, 100));
    hub_kill(&hub, 0);
    hub_freeze(&hub, 2, true);
    for (uint64_t i = by_prng_below(&prng, 60); i > 0; i--)
        hub_turn_all();
    hub_push(&hub, 2);
    hub_go(&hub, 2);
    if (second) { /* while some ranks may have resumed and others not */
        for (uint64_t i = by_prng_below(&prng, 400); i > 0; i--)
            hub_turn_all();
        hub_kill(&hub, 1);
        hub_freeze(&hub, 3, true);
        hub_push(&hub, 3);
        hub_go(&hub, 3);
    }
    care(second ? 3 : 2, &prng);
    hub_check(which);
    hub_post(which);
    hub_check(which);
    hub_close(&hub);
}

static void rounds_with_random_faults_end_right(void **state)
{
    (void)state;
    hub_random(one_round);
}

/* ---- ends ---- */

static void what_cannot_go_on_ends_with_the_controllers_words(void **state)
{
    int done = 0;

    (void)state;
    hub_open(&hub, 5, false);
    hub_join(&hub);
    hub_post(HUB_IN_PLACE);
    hub_run_for(50);
    hub_kill(&hub, 0);
    hub_fail(&hub, BANYAN_ENOENT, "leaf s0 is dead, and rank 1 (h1) hangs on it alone");
    for (int r = 0; r < HUB_HOSTS; r++) {
        banyan_status_t status = BANYAN_OK;

        for (uint64_t begin_ns = by_clock_ns(); status == BANYAN_OK && !done;) {
            hub_turn(&hub);
            status = banyan_test(hub_request[r], &done);
            if (by_clock_ns() - begin_ns > 2 * HUB_WAIT_S * UINT64_C(1000000000))
                fail_msg("rank %d does not end", r);
        }
        done = 0;
        assert_int_equal(status, BANYAN_ENOENT);
        assert_non_null(strstr(banyan_last_error(), "rank 1 (h1) hangs on it alone"));
        expect(banyan_post(hub_request[r]), BANYAN_ESTATE, "hangs on it alone");
        assert_int_equal(banyan_comm_async_error(hub.comm[r]), BANYAN_ENOENT);
    }
    hub_close(&hub);
}

static void who_waits_too_long_says_for_what(void **state)
{
    banyan_status_t status = BANYAN_OK;
    int done = 0;

    (void)state;
    rig_set("BANYAN_TIMEOUT", "0.3");
    hub_open(&hub, 6, false);
    hub_join(&hub);
    hub_post(HUB_IN_PLACE);
    hub_run_for(50);
    hub_kill(&hub, 0);
    hub_freeze(&hub, 2, true); /* without GO */
    for (uint64_t begin_ns = by_clock_ns(); status == BANYAN_OK && !done;) {
        hub_turn(&hub);
        for (int r = HUB_HOSTS - 1; r > 0; r--)
            (void)banyan_test(hub_request[r], &done);
        done = 0;
        status = banyan_test(hub_request[0], &done);
        if (by_clock_ns() - begin_ns > 2 * HUB_WAIT_S * UINT64_C(1000000000))
            fail_msg("rank 0 does not end");
    }
    rig_set("BANYAN_TIMEOUT", NULL);
    assert_int_equal(status, BANYAN_ETIMEDOUT);
    assert_non_null(strstr(banyan_last_error(), "has not confirmed that all switches have their tables"));
    hub_close(&hub);
}

static _Atomic int over;

/* Serves the tables of the folder to two hosts. */
static void *serve(void *argument)
{
    while (!atomic_load(&over)) {
        struct timespec pause = {0, 200000};

        hub_turn(argument);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void the_table_comes_from_the_controller(void **state)
{
    struct banyan_context *context[2];
    struct banyan_comm *comm[2];
    int32_t sum[2] = {1, 2};
    char folder[64];
    pthread_t thread;

    (void)state;
    hub_open(&hub, 7, false);
    rig_write_loopback(2, folder);
    for (int h = 0; h < 2; h++) { /* tables of hosts on the loopback interface replace the fabric's */
        char path[96];

        snprintf(path, sizeof(path), "%s/h%d.table", folder, h);
        free(hub.image[1][h].bytes);
        assert_int_equal(by_host_image_read(path, &hub.image[1][h].bytes, &hub.image[1][h].size), 0);
    }
    atomic_store(&over, 0);
    assert_int_equal(pthread_create(&thread, NULL, serve, &hub), 0);
    rig_set("BANYAN_CONTROLLER", hub.socket);
    rig_set("BANYAN_TRANSPORT", "udp");
    for (int h = 0; h < 2; h++) {
        rig_set("BANYAN_NODE", h == 0 ? "h0" : "h1");
        if (banyan_init(NULL, &context[h]) != BANYAN_OK ||
            banyan_comm_create(context[h], 0, &comm[h]) != BANYAN_OK)
            fail_msg("%s", banyan_last_error());
        assert_int_equal(banyan_comm_rank(comm[h]), h);
        assert_int_equal(
            banyan_allreduce_init(comm[h], &sum[h], &sum[h], 1, BANYAN_I32, BANYAN_SUM, &hub_request[h]),
            BANYAN_OK);
        assert_int_equal(banyan_post(hub_request[h]), BANYAN_OK);
    }
    rig_set("BANYAN_TRANSPORT", NULL);
    rig_set("BANYAN_NODE", NULL);
    rig_set("BANYAN_CONTROLLER", NULL);
    for (int left = 2; left > 0;) {
        left = 0;
        for (int h = 0; h < 2; h++) {
            int done;

            assert_int_equal(banyan_test(hub_request[h], &done), BANYAN_OK);
            left += !done;
        }
    }
    for (int h = 0; h < 2; h++) {
        assert_int_equal(sum[h], 3);
        assert_int_equal(banyan_free(hub_request[h]), BANYAN_OK);
        assert_int_equal(banyan_comm_destroy(comm[h]), BANYAN_OK);
        assert_int_equal(banyan_finalize(context[h]), BANYAN_OK);
    }
    atomic_store(&over, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    rig_remove(folder);
    hub_close(&hub);
}

static void a_controller_that_is_not_there_is_named(void **state)
{
    struct banyan_context *context;
    struct banyan_comm *comm;

    (void)state;
    rig_set("BANYAN_TIMEOUT", "0.2");
    rig_set("BANYAN_CONTROLLER", "unix:/tmp/banyan-test-nobody-listens");
    assert_int_equal(banyan_init(NULL, &context), BANYAN_OK);
    expect(banyan_comm_create(context, 0, &comm), BANYAN_ETIMEDOUT, "unix:/tmp/banyan-test-nobody-listens");
    assert_non_null(strstr(banyan_last_error(), "is banyand running"));
    assert_int_equal(banyan_finalize(context), BANYAN_OK);
    rig_set("BANYAN_CONTROLLER", "host:7");
    assert_int_equal(banyan_init(NULL, &context), BANYAN_OK);
    expect(banyan_comm_create(context, 0, &comm), BANYAN_EINVAL,
           "use unix:PATH, tcp:HOST:PORT or tls:HOST:PORT");
    assert_int_equal(banyan_finalize(context), BANYAN_OK);
    rig_set("BANYAN_CONTROLLER", NULL);
    rig_set("BANYAN_TIMEOUT", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_mid_allreduce_a_switch_dies_and_the_result_is_right),
        cmocka_unit_test(level_ranks_have_their_memory_before_the_switches_are_ready),
        cmocka_unit_test(a_host_becomes_the_root_of_the_trees),
        cmocka_unit_test(the_controller_dies_in_between),
        cmocka_unit_test(without_its_controller_data_go_on),
        cmocka_unit_test(rounds_with_random_faults_end_right),
        cmocka_unit_test(what_cannot_go_on_ends_with_the_controllers_words),
        cmocka_unit_test(who_waits_too_long_says_for_what),
        cmocka_unit_test(the_table_comes_from_the_controller),
        cmocka_unit_test(a_controller_that_is_not_there_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
