/* Implements acts.h. */
#include "tests/unit/control/service/daemon/acts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/errors.h"

struct acts_rig acts;

static bool uses(void *user, uint32_t job, bool is_link, uint32_t what)
{
    (void)user;
    (void)job;
    return is_link || !acts.unused[what];
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
    size_t used = strlen(acts.done);
    char *at = acts.done + used;
    size_t room = sizeof(acts.done) - used;

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

void acts_give(struct by_recover_event event)
{
    event.now_ns = acts.now_ns;
    by_recover_event(acts.recover, &event);
}

void acts_expect(const char *actions)
{
    assert_string_equal(acts.done, actions);
    acts.done[0] = 0;
}

void acts_rank(enum by_recover_type type, uint32_t job, uint16_t number, uint16_t gen, uint64_t nonce)
{
    acts_give(
        (struct by_recover_event){.type = type, .job = job, .rank = number, .gen = gen, .number = nonce});
}

void acts_open(bool used)
{
    struct by_recover_config config = {.node_count = NODES,
                                       .link_count = LINKS,
                                       .uses = uses,
                                       .name_part = name_part,
                                       .name_rank = name_rank,
                                       .act = act};

    memset(&acts, 0, sizeof(acts));
    acts.now_ns = 1000 * MS;
    acts.recover = by_recover_open(&config);
    assert_int_equal(
        by_recover_add(acts.recover,
                       &(struct by_recover_job){.job = 9, .rank_count = RANKS, .gen = 4, .used = used}),
        0);
    acts_give((struct by_recover_event){.type = BY_RECOVER_TICK});
}

void acts_close(void)
{
    by_recover_close(acts.recover);
}

void acts_part(enum by_recover_type type, uint32_t what)
{
    acts_give((struct by_recover_event){.type = type, .what = what, .text = "drops packets silently"});
}

void acts_work(enum by_recover_type type, int error, const char *text)
{
    acts_give((struct by_recover_event){.type = type, .error = error, .text = text});
}

void acts_later(uint64_t ms)
{
    acts.now_ns += ms * MS;
    acts_give((struct by_recover_event){.type = BY_RECOVER_TICK});
}

void acts_generations(uint16_t base, uint16_t next)
{
    assert_int_equal(by_recover_base(acts.recover, 0), base);
    assert_int_equal(by_recover_next(acts.recover, 0), next);
}

/* All ranks of a first run. */
void acts_come(void)
{
    for (uint16_t k = 0; k < (uint16_t)RANKS; k++) {
        assert_false(by_recover_has_rank(acts.recover, 0, k));
        acts_rank(BY_RECOVER_RANK_CAME, 0, k, 0, 10 + k);
        assert_true(by_recover_has_rank(acts.recover, 0, k));
    }
    assert_false(by_recover_has_rank(acts.recover, 0, RANKS));
    assert_false(by_recover_has_rank(acts.recover, 1, 0));
    acts_expect("welcome 0.0 with table\nwelcome 0.1 with table\nwelcome 0.2 with table\n");
}

/* What is planned and pushed becomes the next generation of all ranks. */
void acts_move(uint16_t from, uint16_t to)
{
    acts_generations(from, to);
    acts_work(BY_RECOVER_PLANNED, 0, NULL);
    acts_expect("freeze 0.0 with table\nfreeze 0.1 with table\nfreeze 0.2 with table\npush\n");
    acts_work(BY_RECOVER_PUSHED, 0, NULL);
    acts_expect("go 0.0\ngo 0.1\ngo 0.2\n");
    acts_rank(BY_RECOVER_RANK_CARRIED, 0, 0, to, 0);
    acts_rank(BY_RECOVER_RANK_CARRIED, 0, 1, from, 0); /* of the attempt before */
    acts_rank(BY_RECOVER_RANK_CARRIED, 0, 2, to, 0);
    acts_expect("");
    acts_generations(from, to);
    assert_false(by_recover_is_quiet(acts.recover));
    acts_rank(BY_RECOVER_RANK_CARRIED, 0, 1, to, 0);
    acts_expect("settled 0\n");
    acts_generations(to, to);
    acts_later(0);
    assert_true(by_recover_is_quiet(acts.recover));
}

/* No plan exists for the job, and the switches get tables without it. */
void acts_no_plan(void)
{
    acts_give((struct by_recover_event){
        .type = BY_RECOVER_NO_PLAN, .job = 0, .error = BY_ENOENT, .text = "no path"});
    acts_work(BY_RECOVER_PLANNED, 0, NULL);
    acts_work(BY_RECOVER_PUSHED, 0, NULL);
    acts.done[0] = 0;
}

void acts_ranks(enum by_recover_type type, uint16_t gen)
{
    for (uint16_t k = 0; k < (uint16_t)RANKS; k++)
        acts_rank(type, 0, k, gen, 0);
}

void acts_renew(uint32_t job)
{
    acts_give((struct by_recover_event){.type = BY_RECOVER_RENEW, .job = job, .text = "why"});
}

void acts_start(void)
{
    acts_open(false);
    acts_come();
}
