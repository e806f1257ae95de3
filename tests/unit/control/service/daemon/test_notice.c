/* The evaluation of counters: from which ports of which host or switch a sample of a link is taken,
 * and how what drops packets is described. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/notice.h"
#include "control/service/daemon/rates.h"
#include "control/service/daemon/recovery.h"
#include "offload/base/bytes.h"
#include "offload/wire/member.h"
#include "tests/unit/control/tables/bench.h"

enum { H0, H1, X0, X1, NODES };
enum { H0_X0, H1_X0, X0_X1, LINKS };

static struct {
    struct by_daemon daemon;
    struct by_daemon_switch switches[2];
    struct by_job jobs[2];
    bool member[NODES];
    bool waits, used[LINKS];
    char told[400];  /* the last part that was found to drop packets */
    char rates[400]; /* since the last check */
} rig;

/* ---- the other parts ---- */

bool by_recovery_waiting(struct by_daemon *daemon, bool *used)
{
    assert_ptr_equal(daemon, &rig.daemon);
    memcpy(used, rig.used, sizeof(rig.used));
    return rig.waits;
}

void by_recovery_swallows(struct by_daemon *daemon, bool is_link, uint32_t what, const char *text)
{
    assert_ptr_equal(daemon, &rig.daemon);
    snprintf(rig.told, sizeof(rig.told), "%s %u %s", is_link ? "link" : "node", what, text);
}

void by_rates_take(struct by_rates *rates, uint32_t link, unsigned end, uint64_t at_ms, uint64_t sent,
                   uint64_t received)
{
    size_t used = strlen(rig.rates);

    (void)rates;
    snprintf(rig.rates + used, sizeof(rig.rates) - used, "%u.%u at %u: %u, %u\n", link, end, (unsigned)at_ms,
             (unsigned)sent, (unsigned)received);
}

void by_daemon_end(struct by_daemon *daemon, int status, const char *format, ...)
{
    (void)daemon;
    fail_msg("ends with %d: %s", status, format);
}

/* ---- the daemon ---- */

static int set_up(void **state)
{
    struct by_daemon *daemon = &rig.daemon;
    struct by_problem problem = {0};

    (void)state;
    memset(&rig, 0, sizeof(rig));
    daemon->topology = bench_topology("h0 h1 x0* x1*", "h0-x0 x0-h1 x0-x1");
    assert_int_equal(by_address_map_make(daemon->topology, &daemon->map, &problem), 0);
    daemon->options.heartbeat_ms = 100;
    daemon->now_ms = 10000;
    for (uint32_t i = 0; i < 2; i++) {
        rig.switches[i].node = X0 + i;
        rig.jobs[i].spec.job = (uint16_t)(i + 1);
        daemon->jobs[i] = &rig.jobs[i];
    }
    daemon->job_count = 1;
    by_notice_open(daemon);
    rig.waits = true;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    by_notice_close(&rig.daemon);
    assert_null(rig.daemon.notice);
    by_notice_close(&rig.daemon);
    by_address_map_free(&rig.daemon.map);
    by_topology_free(rig.daemon.topology);
    return 0;
}

/* Frames sent and received by the ports of a switch so far. */
static void count_switch(uint32_t node, uint32_t ports, const uint64_t (*frames)[2])
{
    static struct by_beat beat;

    beat = (struct by_beat){.asked_ms = rig.daemon.now_ms, .answered_ms = rig.daemon.now_ms};
    beat.counters.ports_count = (pb_size_t)ports;
    for (uint32_t p = 0; p < ports; p++)
        beat.counters.ports[p] = (by_PortCounters){.tx_packets = frames[p][0],
                                                   .rx_packets = frames[p][1],
                                                   .tx_bytes = 100 * frames[p][0],
                                                   .rx_bytes = 100 * frames[p][1]};
    by_notice_switch(&rig.daemon, &rig.switches[node - X0], &beat);
}

static void count_host(uint32_t node, uint64_t sent, uint64_t received, uint32_t bytes)
{
    uint8_t data[2 * BY_MEMBER_PORT_BYTES] = {0};

    by_put64(data, sent);
    by_put64(data + 8, received);
    by_notice_host(&rig.daemon, node, data, bytes);
}

/* Lets host `node` send ten frames in each of six periods of 100 ms to x0, which receives none, and
 * sends ten to it, of which `arrive` arrive. */
static void lose(uint32_t node, uint64_t arrive, uint32_t bytes)
{
    for (uint64_t i = 0; i < 6; i++) {
        uint64_t frames[3][2] = {{7, 7}, {7, 7}, {7, 7}};

        frames[node == H0 ? 0 : 1][0] += 10 * i;
        count_host(node, 5 + 10 * i, 5 + arrive * i, bytes);
        count_switch(X0, 3, (const uint64_t(*)[2])frames);
        rig.daemon.now_ms += 100;
    }
    by_notice_tick(&rig.daemon);
}

/* ---- tests ---- */

static void a_link_whose_frames_of_one_end_are_lost_is_named_with_the_direction(void **state)
{
    (void)state;
    rig.used[H0_X0] = rig.used[H1_X0] = true;
    lose(H0, 10, BY_MEMBER_PORT_BYTES);
    assert_string_equal(rig.told,
                        "link 0 drops packets silently: 30 sent by h0, none received by x0 in 0.5 s");
    assert_int_equal(rig.daemon.counts.swallows, 1);
    rig.told[0] = 0;
    by_notice_tick(&rig.daemon); /* its samples are forgotten */
    assert_string_equal(rig.told, "");
    lose(H1, 10, BY_MEMBER_PORT_BYTES);
    assert_string_equal(rig.told,
                        "link 1 drops packets silently: 40 sent by h1, none received by x0 in 1.1 s");
}

static void a_link_that_loses_all_is_named_with_both_directions(void **state)
{
    (void)state;
    rig.used[H0_X0] = true;
    lose(H0, 0, BY_MEMBER_PORT_BYTES);
    assert_string_equal(rig.told, "link 0 drops packets silently in both directions: 30 sent by h0, none "
                                  "received by x0 in 0.5 s");
}

static void links_of_ranks_that_do_not_wait_are_not_judged(void **state)
{
    (void)state;
    rig.used[H1_X0] = true;
    lose(H0, 0, BY_MEMBER_PORT_BYTES);
    assert_string_equal(rig.told, "");
    rig.used[H0_X0] = true;
    rig.waits = false;
    by_notice_tick(&rig.daemon);
    assert_string_equal(rig.told, "");
    rig.waits = true;
    by_notice_tick(&rig.daemon);
    assert_string_not_equal(rig.told, "");
}

static void counters_of_a_host_with_ranks_of_several_jobs_do_not_count(void **state)
{
    (void)state;
    rig.used[H0_X0] = rig.used[H1_X0] = true;
    rig.daemon.job_count = 2;
    rig.jobs[1].spec.member = rig.member;
    rig.member[H0] = true;
    lose(H0, 10, BY_MEMBER_PORT_BYTES);
    assert_string_equal(rig.told, "");
    lose(H1, 10, BY_MEMBER_PORT_BYTES); /* the other one is in one job only */
    assert_string_not_equal(rig.told, "");
}

static void counters_that_are_incomplete_or_of_ports_without_a_link_are_ignored(void **state)
{
    (void)state;
    rig.used[H0_X0] = true;
    lose(H0, 10, BY_MEMBER_PORT_BYTES - 1);
    assert_string_equal(rig.told, "");
    lose(H0, 10, 2 * BY_MEMBER_PORT_BYTES); /* it has one link */
    assert_string_not_equal(rig.told, "");
    rig.rates[0] = 0;
    count_switch(X1, 2, (const uint64_t[2][2]){{3, 4}, {5, 6}});
    assert_string_equal(rig.rates, "2.1 at 11200: 300, 400\n");
    rig.rates[0] = 0;
    count_switch(X0, 3, (const uint64_t[3][2]){{300, 400}, {500, 600}, {700, 800}});
    assert_string_equal(rig.rates, "0.1 at 11200: 30000, 40000\n1.0 at 11200: 50000, 60000\n"
                                   "2.0 at 11200: 70000, 80000\n");
}

static void a_switch_that_loses_or_holds_all_is_described(void **state)
{
    (void)state;
    rig.used[H0_X0] = rig.used[H1_X0] = true;
    for (uint64_t i = 0; i < 6; i++) { /* nothing of its two links arrives */
        count_host(H0, 5 + 10 * i, 5, BY_MEMBER_PORT_BYTES);
        count_host(H1, 5 + 10 * i, 5, BY_MEMBER_PORT_BYTES);
        count_switch(X0, 3, (const uint64_t[3][2]){{7 + 10 * i, 7}, {7 + 10 * i, 7}, {7, 7}});
        rig.daemon.now_ms += 100;
    }
    by_notice_tick(&rig.daemon);
    assert_string_equal(rig.told,
                        "node 2 drops packets silently: 140 sent to or by it, none received on any of "
                        "its links in 0.5 s");
    for (uint64_t i = 0; i < 6; i++) { /* all arrives, and nothing leaves it */
        count_host(H0, 105 + 10 * i, 5, BY_MEMBER_PORT_BYTES);
        count_host(H1, 105 + 10 * i, 5, BY_MEMBER_PORT_BYTES);
        count_switch(X0, 3, (const uint64_t[3][2]){{90, 7 + 10 * i}, {90, 7 + 10 * i}, {7, 7}});
        rig.daemon.now_ms += 100;
    }
    by_notice_tick(&rig.daemon);
    assert_string_equal(rig.told,
                        "node 2 forwards nothing: 100 frames arrived at it and none left it in 0.5 s");
    assert_int_equal(rig.daemon.counts.swallows, 2);
}

static void without_counters_nothing_is_evaluated(void **state)
{
    struct by_notice *notice = rig.daemon.notice;

    (void)state;
    rig.daemon.notice = NULL; /* it ends */
    rig.used[H0_X0] = true;
    lose(H0, 0, BY_MEMBER_PORT_BYTES);
    assert_string_equal(rig.told, "");
    rig.daemon.notice = notice;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_link_whose_frames_of_one_end_are_lost_is_named_with_the_direction,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_link_that_loses_all_is_named_with_both_directions, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(links_of_ranks_that_do_not_wait_are_not_judged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(counters_of_a_host_with_ranks_of_several_jobs_do_not_count, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(counters_that_are_incomplete_or_of_ports_without_a_link_are_ignored,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_switch_that_loses_or_holds_all_is_described, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_counters_nothing_is_evaluated, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
