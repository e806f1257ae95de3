/*
 * Recovery as a step, first by hand, then in random orders of everything that can happen: work never
 * overlaps, calls go on only with tables that are on the switches, and once the faults end every rank is in
 * one generation. A failure prints the seed: BANYAN_TEST_SEED=N replays it.
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

#include "control/daemon/recover.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"

#define JOBS    2
#define RANKS   4
#define NODES   6 /* 0 and 1 are spines: without both of them there is no path */
#define LINKS   4
#define STEP_NS UINT64_C(20000000)
#define NEVER   UINT32_MAX
#define TRUST   UINT64_C(10000000000)

/* How long what swallows packets is held at first (ns); in random worlds shorter. */
static uint64_t trust_ns = TRUST;

/* A rank's process. */
struct process {
    bool here, failed, go;
    uint16_t image_of;    /* the attempt whose table came on this connection */
    uint16_t gen, frozen; /* frozen: the attempt, or 0 */
    uint32_t away;        /* rounds until it comes back */
    uint64_t nonce;
};

static struct world {
    struct by_recover *recover;
    struct by_prng prng;
    uint64_t now_ns;
    struct process rank[JOBS][RANKS];
    uint16_t job_failed[JOBS];
    uint32_t plan_in, push_in; /* rounds until the work is done, or NEVER */
    uint16_t planned[JOBS], given[JOBS], pushed[JOBS];
    bool push_fails;
    unsigned plans, pushes, freezes, goes, settled, fails, renewals;
    char last[BY_RECOVER_TEXT];
} w;

static bool uses(void *user, uint32_t job, bool is_link, uint32_t what)
{
    (void)user;
    return is_link ? what % JOBS == job : what < 3 || what == 3 + job;
}

static void name_part(void *user, bool is_link, uint32_t what, char *text, size_t bytes)
{
    (void)user;
    snprintf(text, bytes, "%s %u", is_link ? "link" : "switch", what);
}

static void name_rank(void *user, uint32_t job, uint16_t rank, char *text, size_t bytes)
{
    (void)user;
    snprintf(text, bytes, "rank %u of job %u", rank, job);
}

static void act(void *user, const struct by_recover_action *action)
{
    struct process *rank = &w.rank[action->job][action->rank];

    (void)user;
    switch (action->what) {
    case BY_DO_PLAN:
        assert_true(w.plan_in == NEVER && w.push_in == NEVER);
        w.plan_in = (uint32_t)by_prng_below(&w.prng, 4);
        w.plans++;
        break;
    case BY_DO_PUSH:
        assert_true(w.plan_in == NEVER && w.push_in == NEVER);
        w.push_in = (uint32_t)by_prng_below(&w.prng, 4);
        w.pushes++;
        memcpy(w.given, w.planned, sizeof(w.given));
        break;
    case BY_DO_WELCOME:
        assert_true(rank->here);
        assert_int_equal(action->image, rank->gen == 0);
        if (rank->gen == 0)
            rank->gen = by_recover_base(w.recover, action->job);
        break;
    case BY_DO_FREEZE:
        assert_true(rank->here);
        assert_int_not_equal(by_recover_next(w.recover, action->job),
                             by_recover_base(w.recover, action->job));
        assert_int_equal(w.planned[action->job], by_recover_next(w.recover, action->job));
        if (action->image)
            rank->image_of = w.planned[action->job];
        assert_int_equal(rank->image_of, w.planned[action->job]);
        w.freezes++;
        w.given[action->job] = w.planned[action->job];
        if (rank->failed || rank->gen == w.planned[action->job])
            break;
        if (rank->frozen != w.planned[action->job])
            rank->go = false;
        rank->frozen = w.planned[action->job];
        break;
    case BY_DO_GO:
        assert_true(rank->here);
        assert_int_equal(w.pushed[action->job], by_recover_next(w.recover, action->job));
        rank->go |= rank->frozen == w.pushed[action->job];
        w.goes++;
        break;
    case BY_DO_FAIL:
        assert_true(rank->here);
        assert_true(action->error < 0 && action->text[0] != 0);
        rank->failed = true;
        w.job_failed[action->job] = 1;
        snprintf(w.last, sizeof(w.last), "%s", action->text);
        w.fails++;
        break;
    case BY_DO_SETTLED:
        w.settled++;
        break;
    case BY_DO_LOG:
        assert_true(action->text[0] != 0);
        w.renewals += strcmp(action->text, "job 2: many chunks") == 0;
        break;
    }
}

static void give(struct by_recover_event event)
{
    event.now_ns = w.now_ns;
    by_recover_event(w.recover, &event);
}

static void come(uint32_t job, uint16_t rank)
{
    struct process *one = &w.rank[job][rank];

    one->here = true;
    one->image_of = 0;
    give((struct by_recover_event){
        .type = BY_RECOVER_RANK_CAME, .job = job, .rank = rank, .gen = one->gen, .number = one->nonce});
}

static void leave(uint32_t job, uint16_t rank, bool dies)
{
    w.rank[job][rank].here = false;
    give((struct by_recover_event){
        .type = dies ? BY_RECOVER_RANK_DIED : BY_RECOVER_RANK_LEFT, .job = job, .rank = rank});
}

/* A controller for the jobs as they are: of one that starts anew their tables have been used. */
static void open_controller(bool used)
{
    struct by_recover_config config = {.node_count = NODES,
                                       .link_count = LINKS,
                                       .trust_ns = trust_ns,
                                       .uses = uses,
                                       .name_part = name_part,
                                       .name_rank = name_rank,
                                       .act = act};

    w.plan_in = w.push_in = NEVER;
    w.recover = by_recover_open(&config);
    assert_non_null(w.recover);
    for (uint32_t j = 0; j < JOBS; j++)
        assert_int_equal(by_recover_add(w.recover, &(struct by_recover_job){.job = (uint16_t)(j + 1),
                                                                            .rank_count = RANKS,
                                                                            .gen = 1,
                                                                            .used = used}),
                         j);
}

static void open_world(uint64_t seed)
{
    memset(&w, 0, sizeof(w));
    w.prng.state = seed;
    w.now_ns = 1000000000;
    open_controller(false);
    for (uint32_t j = 0; j < JOBS; j++)
        for (uint16_t k = 0; k < RANKS; k++) {
            w.rank[j][k].nonce = by_prng_next(&w.prng);
            come(j, k);
        }
}

static void finish_plan(void)
{
    const bool *lost = by_recover_lost_nodes(w.recover);

    w.plan_in = NEVER;
    for (uint32_t j = 0; j < JOBS; j++) {
        if (!by_recover_planning(w.recover, j))
            continue;
        /* No generation that anybody was given is planned again: its tables would differ. */
        assert_true(by_recover_next(w.recover, j) > w.given[j]);
        w.planned[j] = by_recover_next(w.recover, j);
        if (lost[0] && lost[1])
            give((struct by_recover_event){
                .type = BY_RECOVER_NO_PLAN, .job = j, .error = BY_ENOENT, .text = "ranks 0 and 2 are apart"});
    }
    give((struct by_recover_event){.type = BY_RECOVER_PLANNED});
}

static void finish_push(bool fails)
{
    w.push_in = NEVER;
    for (uint32_t j = 0; j < JOBS && !fails; j++)
        w.pushed[j] = w.planned[j];
    give((struct by_recover_event){
        .type = BY_RECOVER_PUSHED, .error = fails ? BY_EIO : 0, .text = "switch 2 does not answer"});
}

/* All ranks know the attempt, and who has its tables goes on. */
static void carry(uint32_t job)
{
    for (uint16_t k = 0; k < RANKS; k++) {
        struct process *one = &w.rank[job][k];
        bool all = one->frozen != 0 && one->go && !one->failed;

        for (uint16_t m = 0; m < RANKS; m++)
            all &= w.rank[job][m].frozen == one->frozen || w.rank[job][m].gen == one->frozen;
        if (!all || by_prng_below(&w.prng, 3) == 0)
            continue;
        one->gen = one->frozen;
        one->frozen = 0;
        one->go = false;
        if (one->here)
            give((struct by_recover_event){
                .type = BY_RECOVER_RANK_CARRIED, .job = job, .rank = k, .gen = one->gen});
    }
}

/* Work gets done and ranks go on; nobody comes. */
static void round_alone(void)
{
    w.now_ns += STEP_NS;
    if (w.plan_in != NEVER && w.plan_in-- == 0)
        finish_plan();
    else if (w.push_in != NEVER && w.push_in-- == 0)
        finish_push(false);
    for (uint32_t j = 0; j < JOBS; j++)
        carry(j);
    give((struct by_recover_event){.type = BY_RECOVER_TICK});
}

static void round_of(bool calm)
{
    w.now_ns += STEP_NS;
    if (w.plan_in != NEVER && w.plan_in-- == 0)
        finish_plan();
    else if (w.push_in != NEVER && w.push_in-- == 0)
        finish_push(!calm && by_prng_below(&w.prng, 6) == 0);
    for (uint32_t j = 0; j < JOBS; j++) {
        for (uint16_t k = 0; k < RANKS; k++)
            if (!w.rank[j][k].here && (calm || w.rank[j][k].away-- == 0))
                come(j, k);
        carry(j);
    }
    give((struct by_recover_event){.type = BY_RECOVER_TICK});
}

/* Rounds without faults, until nothing is to do; at least so many. */
static void rounds(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        round_of(true);
}

static void one_fault_or_renewal_is_one_attempt(void **state)
{
    (void)state;
    open_world(1);
    give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 3}); /* job 0's alone */
    rounds(40);
    assert_int_equal(w.plans, 1);
    assert_true(w.pushes == 1 && w.settled == 1);
    assert_int_equal(by_recover_base(w.recover, 0), 2);
    assert_int_equal(by_recover_base(w.recover, 1), 1);
    for (unsigned i = 0; i < 2; i++) /* new keys for job 1: the second time they are on their way */
        give((struct by_recover_event){.type = BY_RECOVER_RENEW, .job = 1, .text = "many chunks"});
    rounds(40);
    assert_true(w.plans == 2 && by_recover_base(w.recover, 0) == 2 && by_recover_base(w.recover, 1) == 2);
    assert_true(by_recover_is_quiet(w.recover) && w.renewals == 1); /* and is said once */
    by_recover_close(w.recover);
}

static void what_comes_back_is_used_after_a_while(void **state)
{
    (void)state;
    open_world(2);
    give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 0});
    rounds(40);
    assert_true(by_recover_lost_nodes(w.recover)[0]);
    give((struct by_recover_event){.type = BY_RECOVER_SWITCH_REBOOTED, .what = 0});
    rounds(50);
    assert_int_equal(w.plans, 1);
    rounds(100);
    assert_int_equal(w.plans, 2);
    assert_false(by_recover_lost_nodes(w.recover)[0]);
    assert_int_equal(by_recover_base(w.recover, 0), 3);
    assert_int_equal(by_recover_base(w.recover, 1), 3);
    by_recover_close(w.recover);
}

static void without_a_path_the_ranks_are_told_the_cut(void **state)
{
    (void)state;
    open_world(3);
    give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 0});
    give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 1});
    rounds(100);
    assert_int_equal(w.fails, 0); /* it may be back at once */
    rounds(90);
    assert_int_equal(w.fails, JOBS * RANKS);
    assert_string_equal(w.last, "switch 1 does not answer: ranks 0 and 2 are apart");
    by_recover_close(w.recover);
}

static void a_switch_without_another_path_may_come_back_in_time(void **state)
{
    (void)state;
    open_world(9);
    give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 0});
    rounds(30);
    give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 1});
    rounds(60);
    give((struct by_recover_event){.type = BY_RECOVER_SWITCH_REBOOTED, .what = 1});
    rounds(200);
    assert_int_equal(w.fails, 0);
    assert_true(by_recover_is_quiet(w.recover));
    for (uint32_t j = 0; j < JOBS; j++)
        for (uint16_t k = 0; k < RANKS; k++)
            assert_int_equal(w.rank[j][k].gen, by_recover_base(w.recover, j));
    assert_int_equal(by_recover_base(w.recover, 0), 4); /* 3 was tried, and is used up */
    by_recover_close(w.recover);
}

static void a_dead_rank_ends_the_others_calls_by_its_name(void **state)
{
    (void)state;
    open_world(4);
    leave(1, 2, true);
    w.rank[1][2].away = NEVER;
    for (int i = 0; i < 100; i++) {
        w.now_ns += STEP_NS;
        give((struct by_recover_event){.type = BY_RECOVER_TICK});
    }
    assert_int_equal(w.fails, RANKS - 1);
    assert_non_null(strstr(w.last, "rank 2 of job 1 has died"));
    by_recover_close(w.recover);
}

static void a_new_run_gets_a_generation_of_its_own(void **state)
{
    (void)state;
    open_world(5);
    for (uint16_t k = 0; k < RANKS; k++)
        leave(0, k, false);
    for (uint16_t k = 0; k < RANKS; k++) {
        w.rank[0][k].gen = 0;
        w.rank[0][k].nonce++;
        come(0, k);
    }
    assert_int_equal(w.rank[0][0].gen, 0); /* not yet */
    rounds(20);
    for (uint16_t k = 0; k < RANKS; k++)
        assert_int_equal(w.rank[0][k].gen, 2);
    assert_int_equal(w.fails, 0);
    by_recover_close(w.recover);
}

static void a_switch_whose_ranks_move_on_is_left_alone(void **state)
{
    (void)state;
    open_world(6);
    for (int i = 0; i < 50; i++) {
        give((struct by_recover_event){
            .type = BY_RECOVER_RANK_ALIVE, .job = 0, .rank = 1, .number = (uint64_t)i + 1});
        give((struct by_recover_event){
            .type = BY_RECOVER_RANK_ALIVE, .job = 1, .rank = 1, .number = (uint64_t)i + 1});
        if (i == 10)
            give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 2});
        rounds(1);
    }
    assert_int_equal(w.plans, 0);
    give((struct by_recover_event){.type = BY_RECOVER_RANK_SUSPECTS, .job = 0, .rank = 1, .what = 2});
    give((struct by_recover_event){.type = BY_RECOVER_RANK_SUSPECTS, .job = 1, .rank = 1, .what = 2});
    rounds(40);
    assert_int_equal(w.plans, 1);
    by_recover_close(w.recover);
}

static void swallows(bool is_link, uint32_t what)
{
    give((struct by_recover_event){.type = is_link ? BY_RECOVER_LINK_SWALLOWS : BY_RECOVER_SWITCH_SWALLOWS,
                                   .what = what,
                                   .text = "swallows packets: 9 sent by leaf0, none received by spine0"});
}

static void seconds(unsigned count)
{
    rounds((unsigned)(count * (UINT64_C(1000000000) / STEP_NS)));
}

static void what_swallows_packets_is_let_in_again_later_each_time(void **state)
{
    const bool *lost;

    (void)state;
    open_world(11);
    lost = by_recover_lost_links(w.recover);
    for (unsigned times = 1; times <= 3; times++) {
        swallows(true, 0);
        seconds(1);
        assert_int_equal(w.plans, 2 * times - 1);
        assert_true(lost[0]);
        seconds((10u << (times - 1)) - 2);
        assert_true(lost[0]);
        assert_int_equal(w.plans, 2 * times - 1);
        seconds(2);
        assert_false(lost[0]);
        assert_int_equal(w.plans, 2 * times);
        assert_true(by_recover_is_quiet(w.recover));
    }
    seconds(200); /* all is well for long: it begins anew */
    swallows(true, 0);
    seconds(9);
    assert_true(lost[0]);
    seconds(2);
    assert_false(lost[0]);
    assert_int_equal(w.fails, 0);
    by_recover_close(w.recover);
}

static void what_is_held_and_down_comes_back_when_both_are_over(void **state)
{
    const bool *lost;

    (void)state;
    open_world(12);
    lost = by_recover_lost_links(w.recover);
    swallows(true, 1);
    seconds(1);
    give((struct by_recover_event){.type = BY_RECOVER_LINK_DOWN, .what = 1});
    seconds(1);
    give((struct by_recover_event){.type = BY_RECOVER_LINK_UP, .what = 1});
    seconds(5);
    assert_true(lost[1]); /* its carrier was never the matter */
    give((struct by_recover_event){.type = BY_RECOVER_LINK_DOWN, .what = 1});
    seconds(10);
    assert_true(lost[1]); /* no longer held, but down */
    give((struct by_recover_event){.type = BY_RECOVER_LINK_UP, .what = 1});
    seconds(3);
    assert_false(lost[1]);
    by_recover_close(w.recover);
}

static void without_another_way_what_swallows_is_tried_once_before_the_cut_is_told(void **state)
{
    (void)state;
    open_world(13);
    give((struct by_recover_event){.type = BY_RECOVER_SWITCH_GONE, .what = 0});
    seconds(1);
    swallows(false, 1);
    rounds(20);
    assert_int_equal(w.fails, 0);
    assert_true(by_recover_lost_nodes(w.recover)[1]);
    rounds(50); /* it is tried: this time it works */
    assert_false(by_recover_lost_nodes(w.recover)[1]);
    seconds(2);
    assert_true(by_recover_is_quiet(w.recover));
    assert_int_equal(w.fails, 0);
    seconds(5);
    swallows(false, 1);
    seconds(2);
    assert_true(by_recover_lost_nodes(w.recover)[1]); /* not again so soon */
    seconds(2);
    assert_int_equal(w.fails, JOBS * RANKS);
    assert_string_equal(w.last,
                        "switch 1 swallows packets: 9 sent by leaf0, none received by spine0: ranks 0 "
                        "and 2 are apart");
    by_recover_close(w.recover);
}

static void a_trial_in_vain_does_not_put_the_end_off(void **state)
{
    (void)state;
    open_world(16);
    give((struct by_recover_event){.type = BY_RECOVER_SWITCH_GONE, .what = 0});
    seconds(1);
    swallows(false, 1);
    rounds(60); /* it is tried after a second */
    assert_false(by_recover_lost_nodes(w.recover)[1]);
    rounds(40);
    swallows(false, 1);
    assert_int_equal(w.fails, 0);
    rounds(85); /* three and a half seconds after the first time */
    assert_int_equal(w.fails, JOBS * RANKS);
    by_recover_close(w.recover);
}

static void a_job_without_a_way_goes_on_as_long_as_its_ranks_do(void **state)
{
    (void)state;
    open_world(14);
    give((struct by_recover_event){.type = BY_RECOVER_SWITCH_GONE, .what = 0});
    give((struct by_recover_event){.type = BY_RECOVER_SWITCH_GONE, .what = 1});
    for (unsigned i = 0; i < 300; i++) { /* it is our way to them that has ended */
        for (uint32_t j = 0; j < JOBS; j++)
            give((struct by_recover_event){
                .type = BY_RECOVER_RANK_ALIVE, .job = j, .rank = 1, .number = (uint64_t)i + 1});
        rounds(1);
    }
    assert_int_equal(w.fails, 0);
    rounds(20);
    assert_int_equal(w.fails, JOBS * RANKS);
    by_recover_close(w.recover);
}

static void ranks_wait_when_they_say_so_for_a_while(void **state)
{
    (void)state;
    open_world(15);
    for (unsigned i = 0; i < 20; i++) {
        if (i % 5 == 0)
            give((struct by_recover_event){
                .type = BY_RECOVER_RANK_SUSPECTS, .job = 0, .rank = (uint16_t)(i % RANKS), .what = 2});
        rounds(1);
        assert_int_equal(by_recover_waits(w.recover, 0), i >= 9); /* 200 ms */
        assert_false(by_recover_waits(w.recover, 1));
    }
    rounds(20);
    assert_false(by_recover_waits(w.recover, 0)); /* nobody says so any more */
    give((struct by_recover_event){.type = BY_RECOVER_RANK_SUSPECTS, .job = 0, .rank = 1, .what = 2});
    assert_false(by_recover_waits(w.recover, 0)); /* one chunk was late */
    by_recover_close(w.recover);
}

/* The controller has started anew, plans what was lost meanwhile, and ranks come back one after another. */
static void ranks_that_come_back_to_a_new_controller_are_taken_along(void **state)
{
    (void)state;
    open_world(8);
    by_recover_close(w.recover);
    open_controller(true);
    for (unsigned i = 0; i < 40; i++) {
        if (i == 0)
            give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = 0});
        if (i % 4 == 1 && i / 4 < RANKS) {
            come(0, (uint16_t)(i / 4));
            come(1, (uint16_t)(3 - i / 4));
        }
        round_alone();
    }
    rounds(60);
    assert_true(by_recover_is_quiet(w.recover));
    assert_int_equal(w.fails, 0);
    for (uint32_t j = 0; j < JOBS; j++)
        for (uint16_t k = 0; k < RANKS; k++)
            assert_int_equal(w.rank[j][k].gen, by_recover_base(w.recover, j));
    by_recover_close(w.recover);
}

/* ---- random orders ---- */

static void fault(bool two_paths)
{
    uint32_t node = (uint32_t)by_prng_below(&w.prng, NODES), link = (uint32_t)by_prng_below(&w.prng, LINKS);
    uint32_t job = (uint32_t)by_prng_below(&w.prng, JOBS);
    uint16_t rank = (uint16_t)by_prng_below(&w.prng, RANKS);

    if (two_paths && node == 1)
        node = 0;
    switch (by_prng_below(&w.prng, 10)) {
    case 0:
        give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = node});
        break;
    case 1:
        give((struct by_recover_event){.type = BY_RECOVER_SWITCH_UP, .what = node});
        break;
    case 2:
        give((struct by_recover_event){.type = BY_RECOVER_SWITCH_REBOOTED, .what = node});
        break;
    case 3:
        give((struct by_recover_event){.type = BY_RECOVER_LINK_DOWN, .what = link});
        break;
    case 4:
        give((struct by_recover_event){.type = BY_RECOVER_LINK_UP, .what = link});
        break;
    case 5:
        give((struct by_recover_event){.type = BY_RECOVER_SWITCH_GONE, .what = node});
        break;
    case 6:
        swallows(false, node);
        break;
    case 7:
        swallows(true, link);
        break;
    case 8: /* the connection alone */
        if (w.rank[job][rank].here) {
            leave(job, rank, true);
            w.rank[job][rank].away = (uint32_t)by_prng_below(&w.prng, 40);
        }
        break;
    default:
        give((struct by_recover_event){
            .type = BY_RECOVER_RANK_SUSPECTS, .job = job, .rank = rank, .what = node});
        break;
    }
}

static void one_world(uint64_t seed)
{
    open_world(seed);
    for (unsigned i = by_prng_below(&w.prng, 400); i > 0; i--) {
        if (by_prng_below(&w.prng, 5) == 0)
            fault(seed % 2 == 0);
        round_of(false);
    }
    for (uint32_t n = 0; n < NODES; n++)
        give((struct by_recover_event){.type = BY_RECOVER_SWITCH_UP, .what = n});
    for (uint32_t l = 0; l < LINKS; l++)
        give((struct by_recover_event){.type = BY_RECOVER_LINK_UP, .what = l});
    rounds(700);
    assert_true(by_recover_is_quiet(w.recover));
    assert_true(w.fails == 0 || seed % 2 == 1);
    for (uint32_t j = 0; j < JOBS; j++) {
        assert_int_equal(by_recover_base(w.recover, j), by_recover_next(w.recover, j));
        if (w.job_failed[j])
            continue;
        for (uint16_t k = 0; k < RANKS; k++) {
            assert_int_equal(w.rank[j][k].gen, by_recover_base(w.recover, j));
            assert_int_equal(w.rank[j][k].frozen, 0);
        }
    }
    for (uint32_t n = 0; n < NODES; n++)
        assert_false(by_recover_lost_nodes(w.recover)[n]);
    for (uint32_t l = 0; l < LINKS; l++)
        assert_false(by_recover_lost_links(w.recover)[l]);
    by_recover_close(w.recover);
}

static void whatever_happens_all_ranks_end_in_one_generation(void **state)
{
    const char *given = getenv("BANYAN_TEST_SEED");
    uint64_t first = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    unsigned worlds = given != NULL ? 1 : 3000;

    (void)state;
    trust_ns = UINT64_C(100000000);
    for (unsigned i = 0; i < worlds; i++) {
        static char line[64];

        /* cmocka prints nothing of a value: the last line says which world it was. */
        snprintf(line, sizeof(line), "BANYAN_TEST_SEED=%llu", (unsigned long long)(first + i));
        setenv("BANYAN_TEST_WORLD", line, 1);
        if (given != NULL || i % 1000 == 0)
            fprintf(stderr, " %s\n", line);
        one_world(first + i);
    }
}

/* Says which world failed. */
static int tear_down(void **state)
{
    (void)state;
    if (getenv("BANYAN_TEST_WORLD") != NULL)
        fprintf(stderr, " the last world was of %s\n", getenv("BANYAN_TEST_WORLD"));
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_fault_or_renewal_is_one_attempt),
        cmocka_unit_test(what_comes_back_is_used_after_a_while),
        cmocka_unit_test(without_a_path_the_ranks_are_told_the_cut),
        cmocka_unit_test(a_switch_without_another_path_may_come_back_in_time),
        cmocka_unit_test(a_dead_rank_ends_the_others_calls_by_its_name),
        cmocka_unit_test(a_new_run_gets_a_generation_of_its_own),
        cmocka_unit_test(ranks_that_come_back_to_a_new_controller_are_taken_along),
        cmocka_unit_test(a_switch_whose_ranks_move_on_is_left_alone),
        cmocka_unit_test(what_swallows_packets_is_let_in_again_later_each_time),
        cmocka_unit_test(what_is_held_and_down_comes_back_when_both_are_over),
        cmocka_unit_test(without_another_way_what_swallows_is_tried_once_before_the_cut_is_told),
        cmocka_unit_test(a_trial_in_vain_does_not_put_the_end_off),
        cmocka_unit_test(a_job_without_a_way_goes_on_as_long_as_its_ranks_do),
        cmocka_unit_test(ranks_wait_when_they_say_so_for_a_while),
        cmocka_unit_test_teardown(whatever_happens_all_ranks_end_in_one_generation, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
