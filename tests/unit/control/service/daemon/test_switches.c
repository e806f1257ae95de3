/* The state of switches and links from heartbeats, with the watches and the other parts of the
 * daemon replaced by records of requests and reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/daemon.h"
#include "control/service/daemon/news.h"
#include "control/service/daemon/paths.h"
#include "control/service/daemon/state.h"
#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/record.h"
#include "tests/unit/control/tables/bench.h"

enum { H0, H1, X0, X1, X2, NODES };
enum { H0_X0, X0_X1, X1_H1, X1_X2, LINKS };
#define BEAT_MS 100u

struct switches_watch {
    struct by_watch_options options;
    uint64_t election_id;
    unsigned asked, taken;
    bool stopped;
};

static struct {
    struct by_daemon daemon;
    struct switches_watch watches[3];
    uint32_t started;
    bool needed[NODES]; /* jobs have no path without the node */
    uint64_t election;  /* of an earlier daemon */
} rig;

static struct switches_watch *own(struct by_watch *watch)
{
    return (struct switches_watch *)watch;
}

/* ---- the other parts ---- */

struct by_watch *by_watch_start(const struct by_watch_options *options, struct by_event_queue *events)
{
    struct switches_watch *watch = &rig.watches[rig.started++];

    (void)events;
    watch->options = *options;
    return (struct by_watch *)watch;
}

void by_watch_lead(struct by_watch *watch, uint64_t election_id)
{
    own(watch)->election_id = election_id;
}

void by_watch_now(struct by_watch *watch)
{
    own(watch)->asked++;
}

void by_watch_taken(struct by_watch *watch)
{
    own(watch)->taken++;
}

void by_watch_stop(struct by_watch *watch)
{
    own(watch)->stopped = true;
}

void by_news_tell(struct by_news *news, enum by_news_grade grade, const char *format, ...)
{
    char text[600];
    va_list arguments;

    (void)news;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    record("%s: %s\n", grade == BY_NEWS_GOOD ? "good" : grade == BY_NEWS_BAD ? "bad" : "plain", text);
}

void by_daemon_retire(struct by_daemon *daemon, const char *format, ...)
{
    char text[600];
    va_list arguments;

    (void)daemon;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    record("retire: %s\n", text);
}

void by_daemon_tell(struct by_daemon *daemon, const struct by_daemon_event *event)
{
    static const char *const names[] = {
        [BY_EVENT_ANSWERED] = "answered",       [BY_EVENT_SWITCH_UP] = "up", [BY_EVENT_SWITCH_DOWN] = "down",
        [BY_EVENT_SWITCH_GONE] = "gone",        [BY_EVENT_LINK_UP] = "up",   [BY_EVENT_LINK_DOWN] = "down",
        [BY_EVENT_SWITCH_REBOOTED] = "rebooted"};

    assert_non_null(names[event->kind]);
    assert_int_equal(event->kind == BY_EVENT_ANSWERED, event->beat != NULL);
    if (event->kind == BY_EVENT_LINK_UP || event->kind == BY_EVENT_LINK_DOWN)
        record("link %u %s\n", event->link, names[event->kind]);
    else
        record("%s %s\n", names[event->kind], daemon->topology->nodes[event->node].name);
}

bool by_paths_need(const struct by_daemon *daemon, uint32_t node)
{
    (void)daemon;
    return rig.needed[node];
}

uint64_t by_state_election(const struct by_state *state)
{
    (void)state;
    return rig.election;
}

/* ---- the fabric and its heartbeats ---- */

static void open_rig(void)
{
    struct by_daemon *daemon = &rig.daemon;
    struct by_problem problem = {0};

    memset(&rig, 0, sizeof(rig));
    record_clear();
    daemon->topology = bench_topology("h0 h1 x0* x1* x2*", "h0-x0 x0-x1 x1-h1 x1-x2");
    assert_int_equal(by_address_map_make(daemon->topology, &daemon->map, &problem), 0);
    daemon->links = by_alloc(LINKS, sizeof(*daemon->links));
    daemon->loss.nodes = by_alloc(NODES, sizeof(bool));
    daemon->loss.links = by_alloc(LINKS, sizeof(bool));
    daemon->switches = by_alloc(3, sizeof(*daemon->switches));
    daemon->switch_of = by_alloc(NODES, sizeof(*daemon->switch_of));
    daemon->switch_of[H0] = daemon->switch_of[H1] = UINT32_MAX;
    daemon->options.heartbeat_ms = BEAT_MS;
    daemon->options.access.keys = "keys";
    daemon->options.access.psk = "psk";
    for (uint32_t i = 0; i < 3; i++) {
        struct by_daemon_switch *device = &daemon->switches[daemon->switch_count];

        daemon->switch_of[X0 + i] = daemon->switch_count++;
        device->node = X0 + i;
        device->name = daemon->topology->nodes[X0 + i].name;
        snprintf(device->address, sizeof(device->address), "unix:/run/%u", i);
    }
    by_switches_start(daemon);
}

static void close_rig(void)
{
    struct by_daemon *daemon = &rig.daemon;

    free(daemon->switch_of);
    free(daemon->switches);
    free(daemon->loss.links);
    free(daemon->loss.nodes);
    free(daemon->links);
    by_address_map_free(&daemon->map);
    by_topology_free(daemon->topology);
}

static struct by_daemon_switch *at(uint32_t node)
{
    return &rig.daemon.switches[node - X0];
}

static void beat(struct by_beat given, bool suspected)
{
    struct by_beat *copy = by_alloc(1, sizeof(*copy));
    struct switches_watch *watch = own(at(given.node)->watch);
    unsigned taken = watch->taken;

    *copy = given;
    by_switches_beat(&rig.daemon, copy, suspected);
    assert_int_equal(watch->taken, taken + 1); /* else the watch never posts another one */
}

/* An answer whose ports have a carrier, but those in `down` (by port). */
static struct by_beat answer(uint32_t node, unsigned down)
{
    struct by_beat given = {.node = node, .hello = {.boot_nonce = 7, .table_hash = 5}};

    given.counters.ports_count = (pb_size_t)rig.daemon.map.port_count[node];
    for (uint32_t p = 0; p < rig.daemon.map.port_count[node]; p++)
        given.counters.ports[p].down = down >> p & 1;
    return given;
}

static void all_up(void)
{
    for (uint32_t n = X0; n < NODES; n++)
        beat(answer(n, 0), false);
    record_clear();
}

static struct by_beat silence(uint32_t node, uint64_t silent_ms)
{
    return (struct by_beat){.node = node,
                            .error = BY_ETIMEDOUT,
                            .silent_ms = silent_ms,
                            .patience_ms = UINT32_MAX,
                            .problem = {.text = "it is late"}};
}

/* ---- tests ---- */

static void each_switch_is_watched_and_only_the_ends_of_links_are_asked(void **state)
{
    struct by_daemon *daemon = &rig.daemon;

    (void)state;
    open_rig();
    assert_int_equal(rig.started, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct by_watch_options *options = &rig.watches[i].options;

        assert_ptr_equal(own(daemon->switches[i].watch), &rig.watches[i]);
        assert_int_equal(daemon->switches[i].state, BY_SWITCH_UNKNOWN);
        assert_int_equal(options->node, X0 + i);
        assert_string_equal(options->name, daemon->topology->nodes[X0 + i].name);
        assert_string_equal(options->address, daemon->switches[i].address);
        assert_string_equal(options->keys, "keys");
        assert_string_equal(options->psk, "psk");
        assert_int_equal(options->heartbeat_ms, BEAT_MS);
    }
    daemon->election_id = 77;
    by_switches_lead(daemon);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(rig.watches[i].election_id == 77);
    for (uint32_t l = 0; l < LINKS; l++) {
        static const unsigned asked[LINKS][3] = {{1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 1, 1}};
        bool used[LINKS] = {false};

        used[l] = true;
        for (uint32_t i = 0; i < 3; i++)
            rig.watches[i].asked = 0;
        by_switches_ask(daemon, used);
        for (uint32_t i = 0; i < 3; i++)
            assert_int_equal(rig.watches[i].asked, asked[l][i]);
    }
    by_switches_stop(daemon);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(rig.watches[i].stopped && daemon->switches[i].watch == NULL);
    close_rig();
}

static void switches_are_found_by_node_and_links_by_port(void **state)
{
    struct by_daemon *daemon = &rig.daemon;

    (void)state;
    open_rig();
    assert_null(by_switch_find(daemon, H0));
    assert_ptr_equal(by_switch_find(daemon, X1), &daemon->switches[1]);
    assert_int_equal(by_switch_link(daemon, at(X1), 0), X0_X1);
    assert_int_equal(by_switch_link(daemon, at(X1), 1), X1_H1);
    assert_int_equal(by_switch_link(daemon, at(X1), 2), X1_X2);
    assert_true(by_switch_link(daemon, at(X1), 3) == UINT32_MAX);
    assert_int_equal(by_switch_link(daemon, at(X2), 0), X1_X2);
    close_rig();
}

static void the_bound_of_chunks_is_the_sum_of_the_counters_that_a_chunk_increases(void **state)
{
    static const struct {
        const char *name;
        uint64_t value;
    } values[] = {{"complete", 1},
                  {"up", 20},
                  {"late", 300},
                  {"relay", 4000},
                  {"upward", 5000},
                  {"rx", 600000},
                  {"shell_kernel_relayed", 7000000}};
    by_CountersReply counters = {.engine_count = sizeof(values) / sizeof(values[0])};

    (void)state;
    assert_int_equal(by_switch_chunks(&(by_CountersReply){0}), 0);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        counters.engine[i].value = values[i].value;
        snprintf(counters.engine[i].name, sizeof(counters.engine[i].name), "%s", values[i].name);
    }
    assert_int_equal(by_switch_chunks(&counters), 7004021);
    counters.engine_count = 0; /* what is behind them is of an earlier answer */
    snprintf(counters.engine[0].name, sizeof(counters.engine[0].name), "up");
    assert_int_equal(by_switch_chunks(&counters), 0);
}

static void the_first_answer_brings_a_switch_up_and_each_is_passed_on(void **state)
{
    struct by_beat given;

    (void)state;
    open_rig();
    given = answer(X0, 0);
    given.has_waiting = true;
    given.waiting.entries_count = 2;
    given.counters.engine_count = 1;
    given.counters.engine[0].value = 9;
    snprintf(given.counters.engine[0].name, sizeof(given.counters.engine[0].name), "up");
    rig.daemon.loss.nodes[X0] = true;
    beat(given, false);
    record_expect("answered x0\ngood: switch x0 is up\nup x0\n");
    assert_int_equal(at(X0)->state, BY_SWITCH_UP);
    assert_int_equal(at(X1)->state, BY_SWITCH_UNKNOWN);
    assert_false(rig.daemon.loss.nodes[X0]);
    assert_true(at(X0)->hello.boot_nonce == 7 && at(X0)->chunks == 9 && at(X0)->counters.engine_count == 1);
    assert_true(at(X0)->waiting.entries_count == 2 && at(X0)->waiting_table == 5);
    given.has_waiting = false; /* it is requested less often, and the last one is kept */
    given.waiting.entries_count = 0;
    given.hello.table_hash = 6;
    beat(given, false);
    record_expect("answered x0\n");
    assert_true(at(X0)->waiting.entries_count == 2 && at(X0)->waiting_table == 5);
    assert_true(at(X0)->hello.table_hash == 6);
    assert_int_equal(rig.daemon.counts.switch_reboots, 0);
    close_rig();
}

static void another_boot_nonce_is_a_restart(void **state)
{
    struct by_beat given;

    (void)state;
    open_rig();
    all_up();
    given = answer(X1, 0);
    given.hello.boot_nonce = 8;
    beat(given, false);
    record_expect("answered x1\nbad: switch x1 has restarted and lost its tables\nrebooted x1\n");
    assert_int_equal(rig.daemon.counts.switch_reboots, 1);
    beat(given, false);
    record_expect("answered x1\n");
    beat(silence(X1, 300), false);
    record_expect("bad: switch x1 is down: no answer for 300 ms: it is late\ndown x1\n");
    given.hello.boot_nonce = 9; /* also while it was down */
    beat(given, false);
    record_expect("answered x1\nbad: switch x1 has restarted and lost its tables\nrebooted x1\n");
    assert_int_equal(rig.daemon.counts.switch_reboots, 2);
    assert_false(rig.daemon.loss.nodes[X1]);
    close_rig();
}

/* The heartbeats after which a switch is down, for each of its states. */
static void a_switch_is_down_after_its_own_time(void **state)
{
    static const struct {
        enum by_switch_state before;
        uint32_t heartbeat_ms;
        bool gone, led, suspected, needed;
        uint32_t patience_ms;
        uint64_t down_ms; /* the first silence that makes it down; 0: any does */
    } cases[] = {
        {BY_SWITCH_UP, 100, false, false, false, false, UINT32_MAX, 300},
        {BY_SWITCH_UP, 60, false, false, false, false, UINT32_MAX, 180},
        {BY_SWITCH_UP, 100, false, false, false, true, UINT32_MAX, 800},
        {BY_SWITCH_UP, 100, false, false, true, false, 40, 40},
        {BY_SWITCH_UP, 100, false, false, true, true, 40, 40},
        {BY_SWITCH_UP, 100, false, false, true, false, 299, 299},
        {BY_SWITCH_UP, 100, false, false, true, true, 300, 800},
        {BY_SWITCH_UP, 100, false, false, true, false, UINT32_MAX, 300},
        {BY_SWITCH_UP, 100, false, false, false, false, 40, 300}, /* no rank that uses it waits */
        {BY_SWITCH_UP, 100, true, false, false, true, UINT32_MAX, 0},
        {BY_SWITCH_UNKNOWN, 100, false, false, false, false, UINT32_MAX, 1000},
        {BY_SWITCH_UNKNOWN, 100, false, true, false, false, UINT32_MAX, 1000},
        {BY_SWITCH_UNKNOWN, 100, true, false, false, false, UINT32_MAX, 1000},
        {BY_SWITCH_UNKNOWN, 100, true, true, false, false, UINT32_MAX, 0},
        {BY_SWITCH_UNKNOWN, 334, false, false, false, false, UINT32_MAX, 1002},
        {BY_SWITCH_UNKNOWN, 300, false, false, false, true, UINT32_MAX, 2400},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (unsigned late = 0; late < 2; late++) {
            uint64_t silent_ms = cases[i].down_ms - 1 + late;
            struct by_beat given = silence(X1, silent_ms);
            char text[120];

            if (cases[i].down_ms == 0 && late == 0)
                continue;
            open_rig();
            rig.election = cases[i].led ? 3 : 0;
            rig.needed[X1] = cases[i].needed;
            rig.daemon.options.heartbeat_ms = cases[i].heartbeat_ms;
            if (cases[i].before == BY_SWITCH_UP)
                all_up();
            given.gone = cases[i].gone;
            given.patience_ms = cases[i].patience_ms;
            beat(given, cases[i].suspected);
            text[0] = 0;
            if (late && cases[i].gone)
                snprintf(text, sizeof(text),
                         "bad: switch x1 is down: its process has ended: it is late\ngone x1\n");
            else if (late)
                snprintf(text, sizeof(text),
                         "bad: switch x1 is down: no answer for %llu ms: it is late\ndown x1\n",
                         (unsigned long long)silent_ms);
            if (strcmp(recorded, text) != 0)
                fail_msg("case %zu after %llu ms: '%s' instead of '%s'", i, (unsigned long long)silent_ms,
                         recorded, text);
            assert_int_equal(at(X1)->state, late ? BY_SWITCH_DOWN : cases[i].before);
            assert_int_equal(rig.daemon.loss.nodes[X1], late);
            assert_int_equal(rig.daemon.counts.switch_downs, late);
            assert_false(rig.daemon.loss.nodes[X0]);
            close_rig();
        }
    }
}

/* The status shows them. */
static void the_reason_and_the_time_of_a_silence_are_kept_until_the_next_answer(void **state)
{
    struct by_beat given;

    (void)state;
    open_rig();
    all_up();
    beat(silence(X0, 120), false);
    record_expect("");
    assert_string_equal(at(X0)->text, "it is late");
    assert_int_equal(at(X0)->silent_ms, 120);
    beat(answer(X0, 0), false);
    record_expect("answered x0\n");
    assert_string_equal(at(X0)->text, "");
    assert_int_equal(at(X0)->silent_ms, 0);
    beat(silence(X0, 300), false);
    record_expect("bad: switch x0 is down: no answer for 300 ms: it is late\ndown x0\n");
    given = silence(X0, 400); /* reported once; its silence lasts on */
    given.gone = true;
    snprintf(given.problem.text, sizeof(given.problem.text), "nothing listens there");
    beat(given, true);
    record_expect("");
    assert_string_equal(at(X0)->text, "nothing listens there");
    assert_int_equal(at(X0)->silent_ms, 400);
    assert_int_equal(rig.daemon.counts.switch_downs, 1);
    beat(answer(X0, 0), false);
    record_expect("answered x0\ngood: switch x0 is up\nup x0\n");
    assert_string_equal(at(X0)->text, "");
    assert_int_equal(at(X0)->silent_ms, 0);
    close_rig();
}

static void heartbeats_with_a_wrong_table_are_counted(void **state)
{
    struct by_daemon_switch *device;
    uint8_t bytes[1] = {0};

    (void)state;
    open_rig();
    device = at(X2);
    beat(answer(X2, 0), false);
    assert_int_equal(device->stray_beats, 0); /* it has no assigned table */
    device->image = (struct by_change_image){.bytes = bytes, .size = 1, .hash = 6};
    for (uint32_t i = 1; i < 4; i++) {
        beat(answer(X2, 0), false);
        assert_int_equal(device->stray_beats, i);
    }
    device->image.hash = 5;
    beat(answer(X2, 0), false);
    assert_int_equal(device->stray_beats, 0);
    close_rig();
}

static void a_link_is_down_if_a_switch_at_either_end_has_no_carrier(void **state)
{
    struct by_daemon *daemon = &rig.daemon;

    (void)state;
    open_rig();
    all_up();
    beat(answer(X0, 2), false);
    record_expect("answered x0\nbad: link x0 - x1 is down: no carrier\nlink 1 down\n");
    assert_true(daemon->links[X0_X1].down && daemon->loss.links[X0_X1]);
    assert_false(daemon->links[H0_X0].down || daemon->loss.links[H0_X0]);
    assert_int_equal(daemon->counts.link_downs, 1);
    beat(answer(X1, 1), false); /* the other end, too */
    record_expect("answered x1\n");
    beat(answer(X0, 0), false);
    record_expect("answered x0\n");
    assert_true(daemon->links[X0_X1].down);
    beat(answer(X1, 0), false);
    record_expect("answered x1\ngood: link x0 - x1 is up\nlink 1 up\n");
    assert_false(daemon->links[X0_X1].down || daemon->loss.links[X0_X1]);
    beat(answer(X1, 6), false);
    record_expect("answered x1\nbad: link x1 - h1 is down: no carrier\nlink 2 down\n"
                  "bad: link x1 - x2 is down: no carrier\nlink 3 down\n");
    assert_int_equal(daemon->counts.link_downs, 3);
    close_rig();
}

/* The carrier is unknown then. */
static void a_link_stays_as_it_is_while_the_switches_at_its_ends_are_down(void **state)
{
    struct by_daemon *daemon = &rig.daemon;

    (void)state;
    open_rig();
    all_up();
    beat(answer(X0, 3), false);
    beat(answer(X1, 1), false);
    record_clear();
    beat(silence(X0, 300), false); /* the other end still reports it */
    record_expect("bad: switch x0 is down: no answer for 300 ms: it is late\ndown x0\n");
    beat(silence(X1, 300), false);
    record_expect("bad: switch x1 is down: no answer for 300 ms: it is late\ndown x1\n");
    assert_true(daemon->links[H0_X0].down && daemon->links[X0_X1].down);
    assert_true(daemon->loss.links[H0_X0] && daemon->loss.links[X0_X1]);
    beat(answer(X1, 0), false);
    record_expect("answered x1\ngood: switch x1 is up\nup x1\ngood: link x0 - x1 is up\nlink 1 up\n");
    beat(answer(X0, 0), false);
    record_expect("answered x0\ngood: switch x0 is up\nup x0\ngood: link h0 - x0 is up\nlink 0 up\n");
    close_rig();
}

/* The carrier that a switch reported before it went down does not count. */
static void the_end_that_answers_decides_about_a_link(void **state)
{
    (void)state;
    open_rig();
    all_up();
    beat(answer(X2, 1), false);
    record_expect("answered x2\nbad: link x1 - x2 is down: no carrier\nlink 3 down\n");
    beat(silence(X2, 300), false);
    record_expect("bad: switch x2 is down: no answer for 300 ms: it is late\ndown x2\n"
                  "good: link x1 - x2 is up\nlink 3 up\n");
    close_rig();
}

static void a_switch_that_reports_fewer_ports_has_a_carrier_at_the_others(void **state)
{
    struct by_beat given;

    (void)state;
    open_rig();
    all_up();
    given = answer(X1, 4);
    given.counters.ports_count = 2;
    beat(given, false);
    record_expect("answered x1\n");
    close_rig();
}

static void a_notice_shows_a_carrier_and_is_no_heartbeat(void **state)
{
    struct by_beat given;

    (void)state;
    open_rig();
    given = answer(X0, 2);
    given.noticed = true;
    beat(given, false); /* its first answer decides */
    record_expect("");
    assert_int_equal(at(X0)->state, BY_SWITCH_UNKNOWN);
    all_up();
    given.counters.engine_count = 1;
    given.counters.engine[0].value = 12;
    snprintf(given.counters.engine[0].name, sizeof(given.counters.engine[0].name), "relay");
    beat(given, false);
    record_expect("bad: link x0 - x1 is down: no carrier\nlink 1 down\n");
    assert_int_equal(at(X0)->chunks, 12);
    close_rig();
}

static void a_switch_that_refuses_to_report_is_alive(void **state)
{
    struct by_beat given;

    (void)state;
    open_rig();
    all_up();
    given = silence(X0, 5000);
    given.hasty = true;
    beat(given, true);
    record_expect("said: switch x0 is alive but does not report its counters: it is late\n");
    assert_int_equal(at(X0)->state, BY_SWITCH_UP);
    assert_int_equal(at(X0)->silent_ms, 5000);
    assert_string_equal(at(X0)->text, "it is late");
    beat(given, true); /* said once */
    record_expect("");
    beat(silence(X0, 5000), false);
    record_expect("bad: switch x0 is down: no answer for 5000 ms: it is late\ndown x0\n");
    beat(given, false); /* a refusal does not bring it up */
    record_expect("");
    assert_int_equal(at(X0)->state, BY_SWITCH_DOWN);
    close_rig();
}

static void a_switch_with_a_newer_controller_ends_the_leadership(void **state)
{
    struct by_beat given;

    (void)state;
    open_rig();
    all_up();
    given = silence(X0, 5000);
    given.deposed = true;
    beat(given, false);
    record_expect(
        "retire: switch x0 is led by a newer controller (it is late): this one ends; start it again with "
        "--takeover to lead\n");
    assert_int_equal(at(X0)->state, BY_SWITCH_UP);
    rig.daemon.lead = (struct by_lead *)&rig; /* not read */
    beat(given, false);
    record_expect("retire: switch x0 is led by a newer controller (it is late): this one follows now\n");
    close_rig();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_switch_is_watched_and_only_the_ends_of_links_are_asked),
        cmocka_unit_test(switches_are_found_by_node_and_links_by_port),
        cmocka_unit_test(the_bound_of_chunks_is_the_sum_of_the_counters_that_a_chunk_increases),
        cmocka_unit_test(the_first_answer_brings_a_switch_up_and_each_is_passed_on),
        cmocka_unit_test(another_boot_nonce_is_a_restart),
        cmocka_unit_test(a_switch_is_down_after_its_own_time),
        cmocka_unit_test(the_reason_and_the_time_of_a_silence_are_kept_until_the_next_answer),
        cmocka_unit_test(heartbeats_with_a_wrong_table_are_counted),
        cmocka_unit_test(a_link_is_down_if_a_switch_at_either_end_has_no_carrier),
        cmocka_unit_test(a_link_stays_as_it_is_while_the_switches_at_its_ends_are_down),
        cmocka_unit_test(the_end_that_answers_decides_about_a_link),
        cmocka_unit_test(a_switch_that_reports_fewer_ports_has_a_carrier_at_the_others),
        cmocka_unit_test(a_notice_shows_a_carrier_and_is_no_heartbeat),
        cmocka_unit_test(a_switch_that_refuses_to_report_is_alive),
        cmocka_unit_test(a_switch_with_a_newer_controller_ends_the_leadership),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
