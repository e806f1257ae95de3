/*
 * Counters of both ends reveal blackholes, and nothing else is mistaken for one. A small world: two
 * leaves, two spines and four hosts, whose links carry requests and answers that are lost,
 * retransmitted after increasing times, dropped by a blackhole, or delayed because a node is
 * stopped. Counters are read ten times a second, or more often as when ranks wait, at different
 * times for each end. A failure prints the seed: BANYAN_TEST_SEED=N replays it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "control/service/daemon/blackhole.h"
#include "offload/base/prng.h"

enum { HOST0, HOST1, HOST2, HOST3, LEAF0, LEAF1, SPINE0, SPINE1, NODES };
enum { LINKS = 8, LANES = 2, L0_S0 = 4, L0_S1 = 5, L1_S0 = 6, HOST_LINK = 2 };
#define BEAT_MS   100u
#define RTO_MS    5u
#define RTO_MAX   200u
#define BRISK_MS  8u /* the longest of the first pauses, with a controller */
#define BRISK     24u
#define FOREVER   UINT64_MAX
#define WORLDS    60u
#define WORLDS_MS 20000u

static const struct by_blackhole_link cables[LINKS] = {
    {{HOST0, LEAF0}},  {{HOST1, LEAF0}},  {{HOST2, LEAF1}},  {{HOST3, LEAF1}},
    {{LEAF0, SPINE0}}, {{LEAF0, SPINE1}}, {{LEAF1, SPINE0}}, {{LEAF1, SPINE1}},
};
static const bool switches[NODES] = {[LEAF0] = true, [LEAF1] = true, [SPINE0] = true, [SPINE1] = true};

/* The requests of one end of a link to the other, one after another. */
struct lane {
    uint64_t due_ms; /* time of the next request or retransmission */
    uint32_t rto_ms, tries;
};

struct blackhole_cable {
    bool idle;                     /* no requests */
    bool swallows[2];              /* frames sent by this end are dropped */
    uint64_t sent[2], received[2]; /* by end */
    uint64_t waiting[2];           /* frames that arrived at this end while it was stopped */
    struct lane lane[2][LANES];
};

static struct blackhole_world {
    struct by_blackhole *blackhole;
    struct by_prng prng;
    uint64_t now_ms, seed;
    uint32_t beat_ms; /* interval of the requests for counters */
    uint32_t loss;    /* percent */
    bool doubles;     /* pauses double from the first one on, as without a controller */
    struct blackhole_cable cable[LINKS];
    uint64_t still_ms[NODES];                  /* stopped until then */
    bool mute[NODES];                          /* receives frames but sends none */
    uint64_t asked_ms[NODES], read_ms[NODES];  /* times of the current request for counters */
    uint64_t answer_ms[NODES], next_ms[NODES]; /* times of its answer and of the next request */
    struct by_blackhole_sample sample[NODES][LINKS];
    bool pending[NODES], was_read[NODES];
} w;

static unsigned end_of(uint32_t link, uint32_t node)
{
    return cables[link].node[1] == node;
}

static bool stands(uint32_t node)
{
    return w.now_ms < w.still_ms[node];
}

static uint32_t chance(uint32_t of)
{
    return (uint32_t)by_prng_below(&w.prng, of);
}

static void open_world(uint64_t seed)
{
    memset(&w, 0, sizeof(w));
    w.seed = w.prng.state = seed;
    w.now_ms = 1000000;
    w.beat_ms = BEAT_MS;
    w.doubles = seed % 2 == 1;
    w.blackhole = by_blackhole_open(cables, LINKS, switches, NODES, BEAT_MS);
    assert_non_null(w.blackhole);
    for (uint32_t n = 0; n < NODES; n++)
        w.next_ms[n] = w.now_ms + chance(BEAT_MS);
    for (uint32_t l = 0; l < LINKS; l++)
        for (unsigned i = 0; i < 2 * LANES; i++)
            w.cable[l].lane[i / LANES][i % LANES] =
                (struct lane){.due_ms = w.now_ms + chance(20), .rto_ms = RTO_MS};
}

/* The counters are read as often as ranks that wait cause it, or only regularly. */
static void hurry(void)
{
    static const uint32_t beats[] = {10, 25, BEAT_MS};

    w.beat_ms = beats[chance(sizeof(beats) / sizeof(beats[0]))];
}

/* Sends a frame from this end. Returns true if the other end processes it. */
static bool carry(uint32_t link, unsigned from)
{
    struct blackhole_cable *cable = &w.cable[link];
    uint32_t to = cables[link].node[1 - from];

    cable->sent[from]++;
    if (cable->swallows[from] || chance(100) < w.loss)
        return false;
    if (stands(to)) {
        cable->waiting[1 - from]++; /* it waits in the node's ring */
        return false;
    }
    cable->received[1 - from]++;
    return !w.mute[to];
}

static void run_lane(uint32_t link, unsigned end, struct lane *lane)
{
    uint32_t node = cables[link].node[end];

    if (w.cable[link].idle || stands(node) || w.mute[node] || w.now_ms < lane->due_ms)
        return;
    if (carry(link, end) && carry(link, 1 - end)) {
        lane->rto_ms = RTO_MS;
        lane->tries = 0;
        lane->due_ms = w.now_ms + 1;
    } else {
        lane->due_ms = w.now_ms + lane->rto_ms;
        lane->rto_ms = lane->rto_ms * 2 < RTO_MAX ? lane->rto_ms * 2 : RTO_MAX;
        if (!w.doubles && ++lane->tries <= BRISK && lane->rto_ms > BRISK_MS)
            lane->rto_ms = BRISK_MS;
    }
}

/* A node that continues processes the frames that arrived meanwhile. */
static void wake(void)
{
    for (uint32_t l = 0; l < LINKS; l++)
        for (unsigned e = 0; e < 2; e++)
            if (!stands(cables[l].node[e])) {
                w.cable[l].received[e] += w.cable[l].waiting[e];
                w.cable[l].waiting[e] = 0;
            }
}

/* Requests a node's counters. They are read some time later, and arrive some time after that. */
static void run_counters(uint32_t node)
{
    if (!w.pending[node] && w.now_ms >= w.next_ms[node]) {
        w.pending[node] = true;
        w.was_read[node] = false;
        w.asked_ms[node] = w.now_ms;
        w.read_ms[node] = w.now_ms + chance(chance(8) == 0 ? 40 : 3);
        w.next_ms[node] += w.beat_ms;
    }
    if (w.pending[node] && !w.was_read[node] && w.now_ms >= w.read_ms[node] && !stands(node)) {
        w.was_read[node] = true;
        w.answer_ms[node] = w.now_ms + chance(chance(8) == 0 ? 40 : 3);
        for (uint32_t l = 0; l < LINKS; l++)
            w.sample[node][l] =
                (struct by_blackhole_sample){.asked_ms = w.asked_ms[node],
                                             .sent = w.cable[l].sent[end_of(l, node)],
                                             .received = w.cable[l].received[end_of(l, node)]};
    }
    if (!w.pending[node] || !w.was_read[node] || w.now_ms < w.answer_ms[node])
        return;
    w.pending[node] = false;
    for (uint32_t l = 0; l < LINKS; l++) {
        if (cables[l].node[0] != node && cables[l].node[1] != node)
            continue;
        w.sample[node][l].answered_ms = w.now_ms;
        by_blackhole_take(w.blackhole, l, end_of(l, node), &w.sample[node][l]);
    }
}

static bool look(struct by_blackhole_found *found)
{
    bool used[LINKS];

    memset(used, 1, sizeof(used));
    return by_blackhole_find(w.blackhole, used, found);
}

/* Runs for this time and judges the counters regularly, as if ranks waited all the time. Returns
 * true as soon as a blackhole is found. */
static bool run(uint64_t ms, struct by_blackhole_found *found)
{
    for (uint64_t end = w.now_ms + ms; w.now_ms < end; w.now_ms++) {
        for (uint32_t n = 0; n < NODES; n++)
            run_counters(n); /* counters first, then the ring, like a switch that wakes up */
        wake();
        for (uint32_t l = 0; l < LINKS; l++)
            for (unsigned i = 0; i < 2 * LANES; i++)
                run_lane(l, i / LANES, &w.cable[l].lane[i / LANES][i % LANES]);
        if (w.now_ms % w.beat_ms == 0 && look(found)) {
            w.now_ms++;
            return true;
        }
    }
    return false;
}

static void close_world(void)
{
    by_blackhole_close(w.blackhole);
}

static uint64_t first_seed(unsigned *worlds)
{
    const char *given = getenv("BANYAN_TEST_SEED");

    *worlds = given != NULL ? 1 : WORLDS;
    return given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
}

#define FAIL(...)                                                                                            \
    do {                                                                                                     \
        fprintf(stderr, " BANYAN_TEST_SEED=%llu\n", (unsigned long long)w.seed);                             \
        fail_msg(__VA_ARGS__);                                                                               \
    } while (0)

static void losses_that_the_protocol_repairs_condemn_nothing(void **state)
{
    unsigned worlds;
    uint64_t seed = first_seed(&worlds);

    (void)state;
    for (unsigned i = 0; i < worlds; i++) {
        struct by_blackhole_found found;

        open_world(seed + i);
        hurry();
        w.loss = 1 + (uint32_t)((seed + i) % (w.beat_ms < BEAT_MS ? 10 : 20));
        if (run(WORLDS_MS, &found))
            FAIL("%u%% loss: found %s %u, %u frames", w.loss, found.is_link ? "link" : "node", found.what,
                 (unsigned)found.frames);
        close_world();
    }
}

static void who_stands_still_for_a_while_is_not_condemned(void **state)
{
    unsigned worlds;
    uint64_t seed = first_seed(&worlds);

    (void)state;
    for (unsigned i = 0; i < worlds; i++) {
        struct by_blackhole_found found;

        open_world(seed + i);
        w.loss = chance(10);
        hurry();
        for (unsigned k = 0; k < 12; k++) {
            w.still_ms[chance(NODES)] = w.now_ms + 50 + chance(1500);
            if (run(WORLDS_MS / 12, &found))
                FAIL("found %s %u", found.is_link ? "link" : "node", found.what);
        }
        close_world();
    }
}

/* Links other than the faulty one carry no more requests, each with a chance of 1/2, since their
 * nodes wait behind the fault. */
static void calm_others(uint32_t link)
{
    for (uint32_t l = 0; l < LINKS; l++)
        w.cable[l].idle = l != link && chance(2) == 0;
}

static void a_link_that_swallows_packets_is_found_in_time(void **state)
{
    unsigned worlds;
    uint64_t seed = first_seed(&worlds);

    (void)state;
    for (unsigned i = 0; i < worlds; i++) {
        uint32_t link, way;
        struct by_blackhole_found found = {0};
        uint64_t since;

        open_world(seed + i);
        w.loss = chance(21);
        hurry();
        assert_false(run(1000 + chance(1000), &found));
        link = chance(LINKS);
        way = chance(3); /* one end, the other, both */
        w.cable[link].swallows[0] = way != 1;
        w.cable[link].swallows[1] = way != 0;
        calm_others(link);
        /* The faults of this link and of a spine whose frames all pass it look alike; the link is
         * reported. */
        since = w.now_ms;
        if (!run(2500, &found))
            FAIL("link %u, way %u: not found", link, way);
        if (!found.is_link || found.what != link || (way < 2 && found.from != way) ||
            found.frames < BY_BLACKHOLE_FRAMES)
            FAIL("link %u, way %u: found %s %u from end %u", link, way, found.is_link ? "link" : "node",
                 found.what, found.from);
        assert_true(w.now_ms - since >= BY_BLACKHOLE_WINDOW_MS);
        assert_true(found.span_ms >= BY_BLACKHOLE_WINDOW_MS);
        by_blackhole_forget(w.blackhole, true, link);
        assert_false(look(&found)); /* each fault is reported once */
        close_world();
    }
}

/* One lane sends its oldest chunk again and again into a blackhole, as it does while all others
 * wait for it. Returns the time until it is found (ms). */
static uint64_t time_to_find(uint64_t seed, bool doubles)
{
    struct by_blackhole_found found;
    uint64_t since;

    open_world(seed);
    w.doubles = doubles;
    w.beat_ms = 10;
    for (uint32_t l = 0; l < LINKS; l++)
        for (unsigned i = 1; i < 2 * LANES; i++)
            w.cable[l].lane[i / LANES][i % LANES].due_ms = FOREVER;
    assert_false(run(1000 + chance(100), &found));
    w.cable[L0_S0].swallows[0] = w.cable[L0_S0].swallows[1] = true;
    since = w.now_ms;
    assert_true(run(2500, &found));
    assert_true(found.is_link && found.what == L0_S0);
    since = w.now_ms - since;
    close_world();
    return since;
}

static void short_pauses_show_a_blackhole_soon(void **state)
{
    uint64_t most[2] = {0}, sum[2] = {0};

    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++)
        for (unsigned doubles = 0; doubles < 2; doubles++) {
            uint64_t ms = time_to_find(seed, doubles);

            most[doubles] = ms > most[doubles] ? ms : most[doubles];
            sum[doubles] += ms;
        }
    printf("one lane: found after %llu ms, %llu at most; where its pauses double %llu, %llu\n",
           (unsigned long long)sum[0] / 100, (unsigned long long)most[0], (unsigned long long)sum[1] / 100,
           (unsigned long long)most[1]);
    assert_true(most[0] <= 200);
    assert_true(2 * sum[0] < sum[1]);
}

static void a_switch_by_which_all_is_lost_is_named_itself(void **state)
{
    struct by_blackhole_found found;

    (void)state;
    open_world(7);
    assert_false(run(1500, &found));
    w.cable[L0_S0].swallows[0] = w.cable[L1_S0].swallows[0] = true; /* no frame reaches it */
    w.cable[L0_S0].swallows[1] = w.cable[L1_S0].swallows[1] = true; /* no frame leaves it */
    for (uint32_t l = 0; l < LINKS; l++)
        w.cable[l].idle = l != L0_S0 && l != L1_S0;
    assert_true(run(2500, &found));
    if (found.is_link) { /* evidence of the other link may come a few beats later */
        assert_true(found.what == L0_S0 || found.what == L1_S0);
        for (unsigned i = 0; i < 4 && found.is_link; i++)
            assert_true(run(BEAT_MS, &found));
    }
    assert_false(found.is_link);
    assert_false(found.silent);
    assert_int_equal(found.what, SPINE0);
    close_world();
}

static void a_switch_that_takes_everything_and_sends_nothing_is_found(void **state)
{
    struct by_blackhole_found found;

    (void)state;
    open_world(8);
    assert_false(run(1500, &found));
    w.mute[SPINE0] = true;
    assert_true(run(2500, &found));
    assert_false(found.is_link);
    assert_true(found.silent);
    assert_int_equal(found.what, SPINE0);
    close_world();
}

/* A rank computes: the ranks that wait for it send requests and get answers. Or no rank sends
 * anything. */
static void a_fabric_that_waits_for_a_rank_is_left_alone(void **state)
{
    struct by_blackhole_found found;

    (void)state;
    open_world(9);
    for (uint32_t l = 0; l < LINKS; l++)
        w.cable[l].idle = l != L0_S0;
    for (unsigned i = 0; i < 2 * LANES; i++)
        w.cable[L0_S0].lane[i / LANES][i % LANES].rto_ms = RTO_MAX;
    assert_false(run(5000, &found));
    w.cable[L0_S0].idle = true;
    assert_false(run(5000, &found));
    close_world();
}

static void a_host_that_says_nothing_of_its_counters_is_not_judged(void **state)
{
    struct by_blackhole_found found;

    (void)state;
    open_world(10);
    assert_false(run(1500, &found));
    w.next_ms[HOST2] = FOREVER; /* its program is outside the library */
    w.still_ms[HOST2] = FOREVER;
    assert_false(run(5000, &found));
    close_world();
}

static void counters_that_begin_anew_are_no_evidence(void **state)
{
    struct by_blackhole_found found;

    (void)state;
    open_world(11);
    assert_false(run(1500, &found));
    w.cable[HOST_LINK].sent[1] = w.cable[HOST_LINK].received[1] = 0; /* the leaf has restarted */
    w.cable[HOST_LINK].swallows[1] = true;
    assert_false(run(300, &found));
    assert_true(run(2500, &found));
    assert_int_equal(found.what, HOST_LINK);
    assert_int_equal(found.from, 1);
    close_world();
}

static void links_that_nobody_waits_for_are_not_looked_at(void **state)
{
    struct by_blackhole_found found;
    bool used[LINKS] = {false};

    (void)state;
    open_world(12);
    w.cable[L0_S1].swallows[0] = true;
    for (unsigned i = 0; i < 30; i++) {
        struct by_blackhole_found ignored;

        run(BEAT_MS, &ignored);
    }
    assert_false(by_blackhole_find(w.blackhole, used, &found));
    used[L0_S1] = true;
    assert_true(by_blackhole_find(w.blackhole, used, &found));
    assert_int_equal(found.what, L0_S1);
    close_world();
}

/* Switches are read at each heartbeat, hosts report ten times a second; the two periods are
 * independent. */
static void counters_are_judged_however_often_they_are_read(void **state)
{
    static const struct {
        uint32_t beat_ms, pace_ms;
    } cases[] = {{10, 10}, {25, 25}, {45, 45}, {60, 60}, {100, 100}, {1000, 100}, {1000, 1000}};
    const bool used[1] = {true};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_blackhole *blackhole = by_blackhole_open(cables, 1, switches, NODES, cases[i].beat_ms);
        uint32_t slow = cases[i].beat_ms > BEAT_MS ? cases[i].beat_ms : BEAT_MS;
        struct by_blackhole_found found = {0};
        bool guilty = false;

        assert_non_null(blackhole);
        for (uint64_t now = 10000; now < 10000 + 10 * slow && !guilty; now += cases[i].pace_ms) {
            by_blackhole_take(blackhole, 0, 0,
                              &(struct by_blackhole_sample){
                                  .asked_ms = now - 5, .answered_ms = now, .sent = now / 10, .received = 7});
            by_blackhole_take(blackhole, 0, 1,
                              &(struct by_blackhole_sample){
                                  .asked_ms = now, .answered_ms = now + 5, .sent = 8, .received = 9});
            guilty = by_blackhole_find(blackhole, used, &found);
        }
        if (!guilty)
            fail_msg("nothing found: a heartbeat of %u ms, counters every %u ms", cases[i].beat_ms,
                     cases[i].pace_ms);
        assert_true(found.is_link && found.what == 0 && found.from == 0 && !found.both);
        by_blackhole_close(blackhole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_that_the_protocol_repairs_condemn_nothing),
        cmocka_unit_test(who_stands_still_for_a_while_is_not_condemned),
        cmocka_unit_test(a_link_that_swallows_packets_is_found_in_time),
        cmocka_unit_test(short_pauses_show_a_blackhole_soon),
        cmocka_unit_test(a_switch_by_which_all_is_lost_is_named_itself),
        cmocka_unit_test(a_switch_that_takes_everything_and_sends_nothing_is_found),
        cmocka_unit_test(a_fabric_that_waits_for_a_rank_is_left_alone),
        cmocka_unit_test(a_host_that_says_nothing_of_its_counters_is_not_judged),
        cmocka_unit_test(counters_that_begin_anew_are_no_evidence),
        cmocka_unit_test(links_that_nobody_waits_for_are_not_looked_at),
        cmocka_unit_test(counters_are_judged_however_often_they_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
