/* Recovery as a step function, event by event: which actions follow each event of a rank, of the
 * end of a job and of requested work, word for word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/service/daemon/recover.h"
#include "offload/base/errors.h"

enum { RANKS = 3, NODES = 2, LINKS = 1 };
#define MS UINT64_C(1000000)

static struct {
    struct by_recover *recover;
    uint64_t now_ns;
    bool unused[NODES]; /* no job uses the node */
    char done[4096];    /* the actions since the last check, a line each */
} rig;

static bool uses(void *user, uint32_t job, bool is_link, uint32_t what)
{
    (void)user;
    (void)job;
    return is_link || !rig.unused[what];
}

static void name_part(void *user, bool is_link, uint32_t what, char *text, size_t bytes)
{
    (void)user;
    snprintf(text, bytes, "%s %u", is_link ? "link" : "switch", what);
}

static void name_rank(void *user, uint32_t job, uint16_t rank, char *text, size_t bytes)
{
    (void)user;
    snprintf(text, bytes, "rank %u of %u", rank, job);
}

static void act(void *user, const struct by_recover_action *action)
{
    static const char *const names[] = {
        [BY_DO_PLAN] = "plan", [BY_DO_PUSH] = "push", [BY_DO_WELCOME] = "welcome", [BY_DO_FREEZE] = "freeze",
        [BY_DO_GO] = "go",     [BY_DO_FAIL] = "fail", [BY_DO_SETTLED] = "settled", [BY_DO_LOG] = "log"};
    size_t used = strlen(rig.done);
    char *at = rig.done + used;
    size_t room = sizeof(rig.done) - used;

    (void)user;
    if (action->what == BY_DO_LOG)
        snprintf(at, room, "log %s\n", action->text);
    else if (action->what == BY_DO_FAIL)
        snprintf(at, room, "fail %u.%u %d %s\n", action->job, action->rank, action->error, action->text);
    else if (action->what == BY_DO_WELCOME || action->what == BY_DO_FREEZE)
        snprintf(at, room, "%s %u.%u%s\n", names[action->what], action->job, action->rank,
                 action->image ? " with table" : "");
    else if (action->what == BY_DO_GO)
        snprintf(at, room, "go %u.%u\n", action->job, action->rank);
    else if (action->what == BY_DO_SETTLED)
        snprintf(at, room, "settled %u\n", action->job);
    else
        snprintf(at, room, "%s\n", names[action->what]);
}

static void give(struct by_recover_event event)
{
    event.now_ns = rig.now_ns;
    by_recover_event(rig.recover, &event);
}

static void expect(const char *actions)
{
    assert_string_equal(rig.done, actions);
    rig.done[0] = 0;
}

static void rank(enum by_recover_type type, uint32_t job, uint16_t number, uint16_t gen, uint64_t nonce)
{
    give((struct by_recover_event){.type = type, .job = job, .rank = number, .gen = gen, .number = nonce});
}

static void rig_open(bool used)
{
    struct by_recover_config config = {.node_count = NODES,
                                       .link_count = LINKS,
                                       .uses = uses,
                                       .name_part = name_part,
                                       .name_rank = name_rank,
                                       .act = act};

    memset(&rig, 0, sizeof(rig));
    rig.now_ns = 1000 * MS;
    rig.recover = by_recover_open(&config);
    assert_int_equal(
        by_recover_add(rig.recover,
                       &(struct by_recover_job){.job = 9, .rank_count = RANKS, .gen = 4, .used = used}),
        0);
    give((struct by_recover_event){.type = BY_RECOVER_TICK});
}

static void rig_close(void)
{
    by_recover_close(rig.recover);
}

static void part(enum by_recover_type type, uint32_t what)
{
    give((struct by_recover_event){.type = type, .what = what, .text = "drops packets silently"});
}

static void work(enum by_recover_type type, int error, const char *text)
{
    give((struct by_recover_event){.type = type, .error = error, .text = text});
}

static void later(uint64_t ms)
{
    rig.now_ns += ms * MS;
    give((struct by_recover_event){.type = BY_RECOVER_TICK});
}

static void generations(uint16_t base, uint16_t next)
{
    assert_int_equal(by_recover_base(rig.recover, 0), base);
    assert_int_equal(by_recover_next(rig.recover, 0), next);
}

/* All ranks of a first run. */
static void all_come(void)
{
    for (uint16_t k = 0; k < (uint16_t)RANKS; k++) {
        assert_false(by_recover_has_rank(rig.recover, 0, k));
        rank(BY_RECOVER_RANK_CAME, 0, k, 0, 10 + k);
        assert_true(by_recover_has_rank(rig.recover, 0, k));
    }
    assert_false(by_recover_has_rank(rig.recover, 0, RANKS));
    assert_false(by_recover_has_rank(rig.recover, 1, 0));
    expect("welcome 0.0 with table\nwelcome 0.1 with table\nwelcome 0.2 with table\n");
}

/* What is planned and pushed becomes the next generation of all ranks. */
static void all_move(uint16_t from, uint16_t to)
{
    generations(from, to);
    work(BY_RECOVER_PLANNED, 0, NULL);
    expect("freeze 0.0 with table\nfreeze 0.1 with table\nfreeze 0.2 with table\npush\n");
    work(BY_RECOVER_PUSHED, 0, NULL);
    expect("go 0.0\ngo 0.1\ngo 0.2\n");
    rank(BY_RECOVER_RANK_CARRIED, 0, 0, to, 0);
    rank(BY_RECOVER_RANK_CARRIED, 0, 1, from, 0); /* of the attempt before */
    rank(BY_RECOVER_RANK_CARRIED, 0, 2, to, 0);
    expect("");
    generations(from, to);
    assert_false(by_recover_is_quiet(rig.recover));
    rank(BY_RECOVER_RANK_CARRIED, 0, 1, to, 0);
    expect("settled 0\n");
    generations(to, to);
    later(0);
    assert_true(by_recover_is_quiet(rig.recover));
}

static void a_process_that_restarts_ends_the_calls_of_all(void **state)
{
    (void)state;
    rig_open(false);
    expect("");
    all_come();
    rank(BY_RECOVER_RANK_CAME, 0, 1, 4, 11); /* the same process connects again */
    expect("welcome 0.1\n");
    rank(BY_RECOVER_RANK_CAME, 0, 1, 4, 77);
    expect("log job 9: rank 1 of 0 restarted while the job ran\n"
           "fail 0.0 -17 rank 1 of 0 restarted while the job ran\n"
           "fail 0.1 -17 rank 1 of 0 restarted while the job ran\n"
           "fail 0.2 -17 rank 1 of 0 restarted while the job ran\n"
           "fail 0.1 -17 rank 1 of 0 restarted while the job ran\n");
    rank(BY_RECOVER_RANK_LEFT, 0, 0, 4, 0);
    rank(BY_RECOVER_RANK_CAME, 0, 0, 0, 90); /* others of the failed run are still there */
    expect("fail 0.0 -17 rank 1 of 0 restarted while the job ran\n");
    rig_close();
}

static void a_new_run_waits_for_a_generation_that_is_on_the_switches(void **state)
{
    (void)state;
    rig_open(false);
    all_come();
    for (uint16_t k = 0; k < (uint16_t)RANKS; k++)
        rank(BY_RECOVER_RANK_LEFT, 0, k, 4, 0);
    expect("");
    generations(4, 4);
    rank(BY_RECOVER_RANK_CAME, 0, 0, 0, 91);
    expect("plan\n");
    assert_true(by_recover_planning(rig.recover, 0));
    assert_false(by_recover_planning(rig.recover, 1));
    generations(4, 5);
    work(BY_RECOVER_PLANNED, 0, NULL);
    expect("push\n");
    assert_false(by_recover_planning(rig.recover, 0));
    rank(BY_RECOVER_RANK_CAME, 0, 1, 0, 92);
    expect("");
    work(BY_RECOVER_PUSHED, 0, NULL);
    expect("settled 0\nwelcome 0.0 with table\nwelcome 0.1 with table\n");
    generations(5, 5);
    rank(BY_RECOVER_RANK_CAME, 0, 2, 0, 93);
    expect("welcome 0.2 with table\n");
    rig_close();
}

static void a_rank_of_another_generation_is_taken_along(void **state)
{
    (void)state;
    rig_open(true);
    rank(BY_RECOVER_RANK_CAME, 0, 0, 6, 10); /* newer than this daemon knows */
    expect("welcome 0.0\nplan\n");
    generations(4, 7); /* no generation is used twice */
    rig_close();
}

static void a_fault_and_a_renewal_move_all_ranks(void **state)
{
    (void)state;
    rig_open(false);
    all_come();
    part(BY_RECOVER_SWITCH_DOWN, 1);
    expect("log switch 1 does not answer: planning again\nplan\n");
    assert_true(by_recover_lost_nodes(rig.recover)[1]);
    assert_false(by_recover_lost_nodes(rig.recover)[0]);
    all_move(4, 5);
    give((struct by_recover_event){.type = BY_RECOVER_RENEW, .job = 0, .text = "many chunks"});
    expect("log job 9: many chunks\nplan\n");
    all_move(5, 6);
    part(BY_RECOVER_LINK_DOWN, 0);
    expect("log link 0 is down: planning again\nplan\n");
    assert_true(by_recover_lost_links(rig.recover)[0]);
    all_move(6, 7);
    rig_close();
}

static void a_rank_that_does_not_return_is_dead(void **state)
{
    (void)state;
    rig_open(false);
    all_come();
    rank(BY_RECOVER_RANK_DIED, 0, 2, 4, 0);
    assert_false(by_recover_has_rank(rig.recover, 0, 2));
    later(1499);
    expect("");
    later(1);
    expect("log job 9: rank 2 of 0 failed: its connection to the controller was closed\n"
           "fail 0.0 -17 rank 2 of 0 failed: its connection to the controller was closed\n"
           "fail 0.1 -17 rank 2 of 0 failed: its connection to the controller was closed\n");
    rig_close();
}

static void a_rank_that_returns_in_time_goes_on(void **state)
{
    (void)state;
    rig_open(false);
    all_come();
    rank(BY_RECOVER_RANK_DIED, 0, 2, 4, 0);
    later(1499);
    rank(BY_RECOVER_RANK_CAME, 0, 2, 4, 12);
    expect("welcome 0.2\n");
    later(5000);
    expect("");
    rig_close();
}

static void reminders_come_to_all_ranks_and_less_often_each_time(void **state)
{
    (void)state;
    rig_open(false);
    all_come();
    part(BY_RECOVER_SWITCH_DOWN, 1);
    work(BY_RECOVER_PLANNED, 0, NULL);
    rig.done[0] = 0;
    later(3);
    expect("");
    later(1);
    expect("freeze 0.0\nfreeze 0.1\nfreeze 0.2\n");
    later(4); /* a quarter more than the first time, 5 ms */
    rig.now_ns += MS - 1;
    later(0);
    expect("");
    rig.now_ns += 1;
    later(0);
    expect("freeze 0.0\nfreeze 0.1\nfreeze 0.2\n");
    work(BY_RECOVER_PUSHED, 0, NULL);
    rig.done[0] = 0;
    rank(BY_RECOVER_RANK_CARRIED, 0, 1, 5, 0); /* there is progress: fast again */
    later(3);
    expect("");
    later(1);
    expect("freeze 0.0\ngo 0.0\nfreeze 0.1\ngo 0.1\nfreeze 0.2\ngo 0.2\n");
    rig_close();
}

static void the_end_of_a_job_is_told_to_its_ranks_once(void **state)
{
    (void)state;
    rig_open(false);
    rank(BY_RECOVER_RANK_CAME, 0, 0, 0, 10);
    rank(BY_RECOVER_RANK_CAME, 0, 1, 0, 11);
    expect("welcome 0.0 with table\nwelcome 0.1 with table\n");
    by_recover_remove(rig.recover, 1); /* there is none */
    by_recover_remove(rig.recover, 7);
    expect("");
    generations(4, 4);
    by_recover_remove(rig.recover, 0);
    expect("log job 9: the job was ended at the controller\n"
           "fail 0.0 -17 the job was ended at the controller\n"
           "fail 0.1 -17 the job was ended at the controller\n");
    by_recover_remove(rig.recover, 0);
    expect("");
    generations(0, 0);
    assert_false(by_recover_has_rank(rig.recover, 0, 0));
    /* Its place is the next job's. */
    assert_int_equal(
        by_recover_add(rig.recover,
                       &(struct by_recover_job){.job = 3, .rank_count = 1, .gen = 8, .last = 11}),
        0);
    assert_int_equal(
        by_recover_add(rig.recover, &(struct by_recover_job){.job = 4, .rank_count = 1, .gen = 2}), 1);
    generations(8, 8);
    give((struct by_recover_event){.type = BY_RECOVER_RENEW, .job = 0, .text = "why"});
    expect("log job 3: why\nplan\n");
    generations(8, 12); /* after the highest of any attempt */
    rig_close();
}

static void work_that_fails_says_why(void **state)
{
    (void)state;
    rig_open(false);
    all_come();
    part(BY_RECOVER_SWITCH_GONE, 0);
    expect("log switch 0 has ended: planning again\nplan\n");
    work(BY_RECOVER_PLANNED, 0, NULL);
    rig.done[0] = 0;
    work(BY_RECOVER_PUSHED, BY_EIO, "switch 1 does not answer");
    assert_non_null(strstr(rig.done, "log the tables could not be pushed: switch 1 does not answer"));
    rig_close();
}

static void parts_that_no_job_uses_are_named_and_nothing_is_planned(void **state)
{
    (void)state;
    rig_open(false);
    all_come();
    rig.unused[1] = true;
    part(BY_RECOVER_SWITCH_DOWN, 1);
    expect("log switch 1 does not answer: no job uses it\n");
    part(BY_RECOVER_SWITCH_DOWN, 1); /* it is lost already */
    expect("");
    part(BY_RECOVER_SWITCH_UP, 1);
    expect("log switch 1 is back; it will be used once it has been up for a while\n");
    part(BY_RECOVER_SWITCH_UP, 1);
    expect("");
    later(1999);
    expect("");
    assert_true(by_recover_lost_nodes(rig.recover)[1]);
    later(1);
    expect("log the fabric has recovered: planning again\nplan\n");
    assert_false(by_recover_lost_nodes(rig.recover)[1]);
    rig_close();
}

static void a_switch_that_restarted_is_used_again_at_once(void **state)
{
    (void)state;
    rig_open(false);
    all_come();
    part(BY_RECOVER_SWITCH_REBOOTED, 1);
    expect("log switch 1 restarted: planning again\nplan\n");
    assert_false(by_recover_lost_nodes(rig.recover)[1]);
    all_move(4, 5);
    part(BY_RECOVER_SWITCH_GONE, 1);
    expect("log switch 1 has ended: planning again\nplan\n");
    all_move(5, 6);
    part(BY_RECOVER_SWITCH_REBOOTED, 1); /* it was lost, and has to prove itself */
    expect("log switch 1 is back; it will be used once it has been up for a while\n");
    rig_close();
}

/* Holds a link that drops packets for so many milliseconds: what is moved is done as well. */
static void held_for(uint64_t ms, uint16_t from)
{
    part(BY_RECOVER_LINK_SWALLOWS, 0);
    expect("log link 0 drops packets silently: planning again\nplan\n");
    all_move(from, from + 1);
    assert_true(by_recover_held(rig.recover, true, 0));
    later(ms - 1);
    assert_true(by_recover_held(rig.recover, true, 0));
    expect("");
    later(1);
    assert_false(by_recover_held(rig.recover, true, 0));
    expect("log the fabric has recovered: planning again\nplan\n");
    all_move(from + 1, from + 2);
}

static void what_drops_packets_again_soon_is_held_twice_as_long(void **state)
{
    (void)state;
    rig_open(false);
    all_come();
    held_for(10000, 4);
    held_for(20000, 6);
    later(4 * 20000 - 1); /* not long enough in use */
    held_for(40000, 8);
    later(4 * 40000);
    held_for(10000, 10);
    rig_close();
}

/* No plan exists for the job, and the switches get tables without it. */
static void no_plan(void)
{
    give((struct by_recover_event){
        .type = BY_RECOVER_NO_PLAN, .job = 0, .error = BY_ENOENT, .text = "no path"});
    work(BY_RECOVER_PLANNED, 0, NULL);
    work(BY_RECOVER_PUSHED, 0, NULL);
    rig.done[0] = 0;
}

/* Switch 1 drops packets, and is tried again after a second, because there is no other path. It
 * works, and ends so many milliseconds later. */
static void try_and_lose(uint64_t ms)
{
    rig_open(false);
    all_come();
    part(BY_RECOVER_SWITCH_SWALLOWS, 1);
    no_plan();
    later(999);
    expect("");
    later(1);
    expect("log using parts that dropped packets again, because a job has no other path\nplan\n");
    generations(4, 6);
    all_move(4, 6);
    later(ms - 1);
    rig.now_ns += MS;
    part(BY_RECOVER_SWITCH_GONE, 1);
    expect("log switch 1 has ended: planning again\nplan\n");
    no_plan();
}

static void a_path_that_a_trial_gave_for_as_long_as_a_wait_was_a_path(void **state)
{
    (void)state;
    try_and_lose(3499); /* the trial failed: the wait goes on */
    later(0);
    assert_non_null(strstr(rig.done, "fail 0.0 -7 switch 1 has ended: no path\n"));
    rig_close();
    try_and_lose(3500);
    later(3499);
    expect("");
    later(1);
    assert_non_null(strstr(rig.done, "fail 0.0 -7 switch 1 has ended: no path\n"));
    rig_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_that_restarts_ends_the_calls_of_all),
        cmocka_unit_test(a_new_run_waits_for_a_generation_that_is_on_the_switches),
        cmocka_unit_test(a_rank_of_another_generation_is_taken_along),
        cmocka_unit_test(a_fault_and_a_renewal_move_all_ranks),
        cmocka_unit_test(a_rank_that_does_not_return_is_dead),
        cmocka_unit_test(a_rank_that_returns_in_time_goes_on),
        cmocka_unit_test(reminders_come_to_all_ranks_and_less_often_each_time),
        cmocka_unit_test(the_end_of_a_job_is_told_to_its_ranks_once),
        cmocka_unit_test(work_that_fails_says_why),
        cmocka_unit_test(parts_that_no_job_uses_are_named_and_nothing_is_planned),
        cmocka_unit_test(a_switch_that_restarted_is_used_again_at_once),
        cmocka_unit_test(what_drops_packets_again_soon_is_held_twice_as_long),
        cmocka_unit_test(a_path_that_a_trial_gave_for_as_long_as_a_wait_was_a_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
