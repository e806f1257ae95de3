/* The limits of the detection of blackholes, with samples written by hand: how many frames, in
 * which time, at which ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "control/service/daemon/blackhole.h"

/* Hosts 0 and 1 at switch 2, which has a link to switch 3. */
enum { HOST0, HOST1, SWITCH2, SWITCH3, NODES, LINKS = 3 };

static const struct by_blackhole_link links[LINKS] = {
    {{HOST0, SWITCH2}}, {{HOST1, SWITCH2}}, {{SWITCH2, SWITCH3}}};
static const bool switches[NODES] = {false, false, true, true};
static struct by_blackhole *blackhole;

static void open_at(uint32_t beat_ms)
{
    blackhole = by_blackhole_open(links, LINKS, switches, NODES, beat_ms);
    assert_non_null(blackhole);
}

/* A sample that was read in no time. */
static void take(uint32_t link, unsigned end, uint64_t at_ms, uint64_t sent, uint64_t received)
{
    by_blackhole_take(blackhole, link, end,
                      &(struct by_blackhole_sample){
                          .asked_ms = at_ms, .answered_ms = at_ms, .sent = sent, .received = received});
}

/* Searches among the links whose bits are set. */
static bool find(unsigned bits, struct by_blackhole_found *found)
{
    bool used[LINKS];

    for (uint32_t l = 0; l < LINKS; l++)
        used[l] = bits >> l & 1;
    memset(found, 0xa5, sizeof(*found));
    return by_blackhole_find(blackhole, used, found);
}

/* End 0 of link 0 has sent `frames` frames until 400 ms, none of which arrived; the last sample of
 * both ends is at `last_ms`. */
static bool lost(unsigned frames, uint64_t last_ms, struct by_blackhole_found *found)
{
    bool result;

    open_at(100);
    for (uint64_t t = 1000; t < 1000 + last_ms; t += 100) {
        uint64_t sent = 10 + (t > 1000 ? frames : 0);

        take(0, 0, t, sent, 70);
        take(0, 1, t, 90, 50);
    }
    take(0, 0, 1000 + last_ms, 10 + frames, 70);
    take(0, 1, 1000 + last_ms, 90, 50);
    result = find(1, found);
    by_blackhole_close(blackhole);
    return result;
}

static void three_frames_in_450_ms_or_six_before_are_enough(void **state)
{
    struct by_blackhole_found found;

    (void)state;
    assert_false(lost(2, 450, &found));
    assert_true(lost(3, 450, &found));
    assert_true(found.is_link);
    assert_false(found.both);
    assert_false(found.silent);
    assert_int_equal(found.what, 0);
    assert_int_equal(found.from, 0);
    assert_int_equal(found.frames, 3);
    assert_int_equal(found.span_ms, 450);
    assert_false(lost(5, 449, &found));
    assert_true(lost(6, 449, &found));
    assert_int_equal(found.frames, 6);
    assert_int_equal(found.span_ms, 449);
}

/* Samples every `step_ms`, at which end 1 has sent 100 frames more each time, and end 0 received
 * none. */
static bool lost_back(uint32_t beat_ms, uint64_t step_ms, unsigned samples)
{
    struct by_blackhole_found found;
    bool result;

    open_at(beat_ms);
    for (unsigned i = 0; i < samples; i++) {
        take(0, 0, 1000 + i * step_ms, 10, 70);
        take(0, 1, 1000 + i * step_ms, 100 * i, 50);
    }
    result = find(1, &found);
    if (result)
        assert_int_equal(found.from, 1);
    by_blackhole_close(blackhole);
    return result;
}

static void four_samples_must_span_the_window(void **state)
{
    (void)state;
    assert_false(lost_back(100, 100, 3));
    assert_true(lost_back(100, 100, 4));
    assert_true(lost_back(100, 11, 4));  /* 33 ms */
    assert_false(lost_back(100, 10, 4)); /* 30 ms */
    assert_false(lost_back(200, 21, 4)); /* of slower heartbeats: 64 ms */
    assert_true(lost_back(200, 22, 4));
    assert_true(lost_back(50, 11, 4)); /* faster ones change nothing */
    assert_false(lost_back(50, 10, 4));
}

/* End 0 sends 100 frames between two samples, of which end 1 receives none from 1000 to 1180 ms. */
static bool lost_between(uint64_t first_ms, uint64_t last_ms)
{
    struct by_blackhole_found found;
    bool result;

    open_at(100);
    take(0, 0, first_ms, 10, 70);
    take(0, 0, last_ms, 110, 70);
    for (unsigned i = 0; i < 4; i++)
        take(0, 1, 1000 + 60 * i, 90, 50);
    result = find(1, &found);
    by_blackhole_close(blackhole);
    return result;
}

static void frames_count_that_had_time_to_arrive(void **state)
{
    const uint64_t until_ms = 1180 - BY_BLACKHOLE_TRANSIT_MS;

    (void)state;
    assert_true(lost_between(1000, until_ms));
    assert_false(lost_between(999, until_ms)); /* they may have arrived before */
    assert_false(lost_between(1000, until_ms + 1));
    assert_false(lost_between(until_ms, until_ms)); /* in no time */
}

static void a_gap_or_a_restart_begins_anew(void **state)
{
    struct by_blackhole_found found;

    (void)state;
    assert_true(lost_back(100, 280, 4));
    assert_false(lost_back(100, 281, 20)); /* the end stood still */
    assert_true(lost_back(200, 560, 4));
    assert_false(lost_back(200, 561, 20));
    open_at(100);
    for (unsigned i = 0; i < 4; i++) {
        take(0, 0, 1000 + 100 * i, 10, i < 2 ? 70 : 69); /* the counter goes back */
        take(0, 1, 1000 + 100 * i, 100 * i, 50);
    }
    assert_false(find(1, &found));
    for (unsigned i = 4; i < 6; i++) {
        take(0, 0, 1000 + 100 * i, 10, 69);
        take(0, 1, 1000 + 100 * i, 100 * i, 50);
    }
    assert_true(find(1, &found));  /* four samples since */
    assert_false(find(6, &found)); /* the link is not used */
    by_blackhole_close(blackhole);
}

/* Both ends of link 2 send, and nothing arrives; until `forget`. */
static void fill_link_2(void)
{
    for (unsigned i = 0; i < 4; i++) {
        take(2, 0, 1000 + 100 * i, 100 * i, 50);
        take(2, 1, 1000 + 100 * i, 100 * i, 50);
    }
}

static void what_is_forgotten_is_judged_anew(void **state)
{
    struct by_blackhole_found found;

    (void)state;
    open_at(100);
    fill_link_2();
    by_blackhole_forget(blackhole, true, 0); /* other parts */
    by_blackhole_forget(blackhole, true, 1);
    by_blackhole_forget(blackhole, false, HOST0);
    by_blackhole_forget(blackhole, false, HOST1);
    assert_true(find(4, &found));
    assert_true(found.is_link);
    assert_true(found.both);
    assert_int_equal(found.what, 2);
    assert_int_equal(found.from, 0);
    by_blackhole_forget(blackhole, true, 2);
    assert_false(find(4, &found));
    fill_link_2();
    assert_true(find(4, &found));
    by_blackhole_forget(blackhole, false, SWITCH2);
    assert_false(find(4, &found));
    fill_link_2();
    by_blackhole_forget(blackhole, false, SWITCH3);
    assert_false(find(4, &found));
    by_blackhole_close(blackhole);
}

/* In three times `step_ms` frames arrive at switch 2 on links 0 and 1, `first` and `second` of
 * them, and it sends `sent`. */
static bool takes_in(unsigned step_ms, unsigned first, unsigned second, unsigned sent, unsigned used,
                     struct by_blackhole_found *found)
{
    bool result;

    open_at(100);
    for (unsigned i = 0; i < 4; i++)
        for (uint32_t l = 0; l < 2; l++) {
            take(l, 0, 1000 + step_ms * i, 500 + (l == 0 ? first : second) * (i > 0), 60);
            take(l, 1, 1000 + step_ms * i, 80 + (i > 0 ? sent : 0), 40 + (l == 0 ? first : second) * (i > 0));
        }
    result = find(used, found);
    by_blackhole_close(blackhole);
    return result;
}

static bool takes_all(unsigned first, unsigned second, unsigned sent, unsigned used,
                      struct by_blackhole_found *found)
{
    return takes_in(150, first, second, sent, used, found);
}

static void a_switch_that_sends_nothing_took_frames_on_two_links(void **state)
{
    struct by_blackhole_found found;

    (void)state;
    assert_true(takes_all(3, 4, 0, 3, &found));
    assert_false(found.is_link);
    assert_true(found.silent);
    assert_int_equal(found.what, SWITCH2);
    assert_int_equal(found.frames, 7);
    assert_int_equal(found.span_ms, 450);
    assert_false(takes_in(149, 30, 40, 0, 3, &found)); /* it may be late */
    assert_false(takes_all(3, 2, 0, 3, &found));
    assert_false(takes_all(2, 3, 0, 3, &found));
    assert_false(takes_all(3, 4, 1, 3, &found));
    assert_false(takes_all(3, 4, 0, 1, &found)); /* one link alone */
}

/* Its first frames arrive, and it has not sent any in the short time that its samples span. */
static void a_switch_that_has_just_started_is_not_silent_yet(void **state)
{
    struct by_blackhole_found found;

    (void)state;
    open_at(100);
    for (unsigned i = 0; i < 4; i++)
        for (uint32_t l = 0; l < 2; l++) {
            take(l, 0, 1000 + 149 * i, 900 + 10 * i, 60);
            take(l, 1, 1000 + 149 * i, 0, 5 + 10 * i);
        }
    assert_false(find(3, &found));
    for (uint32_t l = 0; l < 2; l++) {
        take(l, 0, 1450, 950, 60);
        take(l, 1, 1450, 0, 55);
    }
    assert_true(find(3, &found));
    assert_true(found.silent && found.what == SWITCH2);
    assert_int_equal(found.frames, 100);
    by_blackhole_close(blackhole);
}

/* In 300 ms hosts 0 and 1 send so many frames to switch 2, and it to them; none arrives. */
static bool loses(unsigned first_to, unsigned second_to, unsigned first_from, unsigned second_from,
                  struct by_blackhole_found *found)
{
    bool result;

    open_at(100);
    for (unsigned i = 0; i < 4; i++) {
        take(0, 0, 1000 + 100 * i, i > 0 ? first_to : 0, 60);
        take(0, 1, 1000 + 100 * i, i > 0 ? first_from : 0, 40);
        take(1, 0, 1000 + 100 * i, i > 0 ? second_to : 0, 60);
        take(1, 1, 1000 + 100 * i, i > 0 ? second_from : 0, 40);
    }
    result = find(3, found);
    by_blackhole_close(blackhole);
    return result;
}

static void a_switch_that_loses_all_frames_does_so_on_two_links_and_in_any_direction(void **state)
{
    static const struct {
        unsigned to[2], from[2];
        bool is_switch;
        unsigned frames; /* of the switch, or of the first link that loses some; 0: none is found */
    } cases[] = {
        {{6, 6}, {0, 0}, true, 12}, {{0, 0}, {6, 6}, true, 12}, {{6, 0}, {0, 6}, true, 12},
        {{6, 1}, {0, 0}, true, 7},  {{0, 1}, {6, 0}, true, 7},  {{6, 0}, {0, 1}, true, 7},
        {{7, 6}, {8, 9}, true, 30}, {{6, 0}, {0, 0}, false, 6}, {{0, 0}, {0, 6}, false, 6},
        {{5, 5}, {5, 5}, false, 0}, {{0, 0}, {0, 0}, false, 0}, {{6, 0}, {9, 0}, false, 6},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_blackhole_found found;

        if (loses(cases[i].to[0], cases[i].to[1], cases[i].from[0], cases[i].from[1], &found) !=
            (cases[i].frames > 0))
            fail_msg("case %zu", i);
        if (cases[i].frames == 0)
            continue;
        if (found.is_link == cases[i].is_switch || found.frames != cases[i].frames)
            fail_msg("case %zu: link %d, %u frames", i, found.is_link, (unsigned)found.frames);
        assert_false(found.silent);
        assert_int_equal(found.span_ms, 300);
        if (cases[i].is_switch)
            assert_int_equal(found.what, SWITCH2);
    }
}

/* All frames of both hosts and to them are lost, apart from one that arrives at an end. */
static void a_switch_that_one_frame_reaches_or_leaves_is_not_found(void **state)
{
    struct by_blackhole_found found;

    (void)state;
    for (unsigned place = 0; place < 4; place++) {
        open_at(100);
        for (unsigned i = 0; i < 4; i++)
            for (unsigned p = 0; p < 4; p++)
                take(p / 2, p % 2, 1000 + 100 * i, i > 0 ? 6 : 0, i == 3 && p == place ? 51 : 50);
        assert_true(find(3, &found));
        assert_true(found.is_link && found.what == 0);
        assert_int_equal(found.from, place == 1 ? 1 : 0);
        assert_int_equal(found.both, place >= 2);
        assert_int_equal(found.frames, 6);
        by_blackhole_close(blackhole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_frames_in_450_ms_or_six_before_are_enough),
        cmocka_unit_test(four_samples_must_span_the_window),
        cmocka_unit_test(frames_count_that_had_time_to_arrive),
        cmocka_unit_test(a_gap_or_a_restart_begins_anew),
        cmocka_unit_test(what_is_forgotten_is_judged_anew),
        cmocka_unit_test(a_switch_that_sends_nothing_took_frames_on_two_links),
        cmocka_unit_test(a_switch_that_has_just_started_is_not_silent_yet),
        cmocka_unit_test(a_switch_that_loses_all_frames_does_so_on_two_links_and_in_any_direction),
        cmocka_unit_test(a_switch_that_one_frame_reaches_or_leaves_is_not_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
