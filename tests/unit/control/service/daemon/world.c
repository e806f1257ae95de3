/* Implements world.h. */
#include "tests/unit/control/service/daemon/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/errors.h"

#define STEP_NS UINT64_C(20000000)
#define NEVER   UINT32_MAX

uint64_t world_trust_ns = WORLD_TRUST_NS;
struct daemon_world world;

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
    struct process *rank = &world.rank[action->job][action->rank];

    (void)user;
    switch (action->what) {
    case BY_DO_PLAN:
        assert_true(world.plan_in == NEVER && world.push_in == NEVER);
        world.plan_in = (uint32_t)by_prng_below(&world.prng, 4);
        world.plans++;
        break;
    case BY_DO_PUSH:
        assert_true(world.plan_in == NEVER && world.push_in == NEVER);
        world.push_in = (uint32_t)by_prng_below(&world.prng, 4);
        world.pushes++;
        memcpy(world.given, world.planned, sizeof(world.given));
        break;
    case BY_DO_WELCOME:
        assert_true(rank->here);
        assert_int_equal(action->image, rank->gen == 0);
        if (rank->gen == 0)
            rank->gen = by_recover_base(world.recover, action->job);
        break;
    case BY_DO_FREEZE:
        assert_true(rank->here);
        assert_int_not_equal(by_recover_next(world.recover, action->job),
                             by_recover_base(world.recover, action->job));
        assert_int_equal(world.planned[action->job], by_recover_next(world.recover, action->job));
        if (action->image)
            rank->image_of = world.planned[action->job];
        assert_int_equal(rank->image_of, world.planned[action->job]);
        world.freezes++;
        world.given[action->job] = world.planned[action->job];
        if (rank->failed || rank->gen == world.planned[action->job])
            break;
        if (rank->frozen != world.planned[action->job])
            rank->go = false;
        rank->frozen = world.planned[action->job];
        break;
    case BY_DO_GO:
        assert_true(rank->here);
        assert_int_equal(world.pushed[action->job], by_recover_next(world.recover, action->job));
        rank->go |= rank->frozen == world.pushed[action->job];
        world.goes++;
        break;
    case BY_DO_FAIL:
        assert_true(rank->here);
        assert_true(action->error < 0 && action->text[0] != 0);
        rank->failed = true;
        world.job_failed[action->job] = 1;
        snprintf(world.last[action->job], sizeof(world.last[0]), "%s", action->text);
        world.fails++;
        break;
    case BY_DO_SETTLED:
        world.settled++;
        break;
    case BY_DO_LOG:
        assert_true(action->text[0] != 0);
        world.renewals += strcmp(action->text, "job 2: many chunks") == 0;
        break;
    }
}

void world_give(struct by_recover_event event)
{
    event.now_ns = world.now_ns;
    by_recover_event(world.recover, &event);
}

void world_come(uint32_t job, uint16_t rank)
{
    struct process *one = &world.rank[job][rank];

    one->here = true;
    one->image_of = 0;
    world_give((struct by_recover_event){
        .type = BY_RECOVER_RANK_CAME, .job = job, .rank = rank, .gen = one->gen, .number = one->nonce});
}

void world_leave(uint32_t job, uint16_t rank, bool dies)
{
    world.rank[job][rank].here = false;
    world_give((struct by_recover_event){
        .type = dies ? BY_RECOVER_RANK_DIED : BY_RECOVER_RANK_LEFT, .job = job, .rank = rank});
}

/* Makes a controller for the present jobs; `used`: it has restarted, so their tables have been
 * used. */
void world_controller(bool used)
{
    struct by_recover_config config = {.node_count = NODES,
                                       .link_count = LINKS,
                                       .trust_ns = world_trust_ns,
                                       .uses = uses,
                                       .name_part = name_part,
                                       .name_rank = name_rank,
                                       .act = act};

    world.plan_in = world.push_in = NEVER;
    world.recover = by_recover_open(&config);
    assert_non_null(world.recover);
    for (uint32_t j = 0; j < JOBS; j++)
        assert_int_equal(by_recover_add(world.recover, &(struct by_recover_job){.job = (uint16_t)(j + 1),
                                                                                .rank_count = RANKS,
                                                                                .gen = 1,
                                                                                .used = used}),
                         j);
}

void world_open(uint64_t seed)
{
    memset(&world, 0, sizeof(world));
    world.prng.state = seed;
    world.now_ns = 1000000000;
    world_controller(false);
    for (uint32_t j = 0; j < JOBS; j++)
        for (uint16_t k = 0; k < RANKS; k++) {
            world.rank[j][k].nonce = by_prng_next(&world.prng);
            world_come(j, k);
        }
}

/* Jobs that are not in the last plan keep the tables of before. */
static void finish_plan(void)
{
    const bool *lost = by_recover_lost_nodes(world.recover);

    world.plan_in = NEVER;
    for (uint32_t j = 0; j < JOBS; j++) {
        world.pushing[j] = by_recover_planning(world.recover, j);
        if (!world.pushing[j])
            continue;
        /* A generation that any rank has is never planned again, since its tables would differ. */
        assert_true(by_recover_next(world.recover, j) > world.given[j]);
        world.planned[j] = by_recover_next(world.recover, j);
        if (world.stranded[j] || (lost[0] && lost[1]))
            world_give((struct by_recover_event){
                .type = BY_RECOVER_NO_PLAN, .job = j, .error = BY_ENOENT, .text = "ranks 0 and 2 are apart"});
    }
    world_give((struct by_recover_event){.type = BY_RECOVER_PLANNED});
}

static void finish_push(bool fails)
{
    world.push_in = NEVER;
    for (uint32_t j = 0; j < JOBS && !fails; j++)
        if (world.pushing[j])
            world.pushed[j] = world.planned[j];
    world_give((struct by_recover_event){
        .type = BY_RECOVER_PUSHED, .error = fails ? BY_EIO : 0, .text = "switch 2 does not answer"});
}

/* If all ranks know the attempt, those with its tables resume. */
static void carry(uint32_t job)
{
    for (uint16_t k = 0; k < RANKS; k++) {
        struct process *one = &world.rank[job][k];
        bool all = one->frozen != 0 && one->go && !one->failed;

        for (uint16_t m = 0; m < RANKS; m++)
            all &= world.rank[job][m].frozen == one->frozen || world.rank[job][m].gen == one->frozen;
        if (!all || by_prng_below(&world.prng, 3) == 0)
            continue;
        one->gen = one->frozen;
        one->frozen = 0;
        one->go = false;
        if (one->here)
            world_give((struct by_recover_event){
                .type = BY_RECOVER_RANK_CARRIED, .job = job, .rank = k, .gen = one->gen});
    }
}

/* Work progresses and ranks resume; no rank comes back. */
void world_round_alone(void)
{
    world.now_ns += STEP_NS;
    if (world.plan_in != NEVER && world.plan_in-- == 0)
        finish_plan();
    else if (world.push_in != NEVER && world.push_in-- == 0)
        finish_push(false);
    for (uint32_t j = 0; j < JOBS; j++)
        carry(j);
    world_give((struct by_recover_event){.type = BY_RECOVER_TICK});
}

void world_round(bool calm)
{
    world.now_ns += STEP_NS;
    if (world.plan_in != NEVER && world.plan_in-- == 0)
        finish_plan();
    else if (world.push_in != NEVER && world.push_in-- == 0)
        finish_push(!calm && by_prng_below(&world.prng, 6) == 0);
    for (uint32_t j = 0; j < JOBS; j++) {
        for (uint16_t k = 0; k < RANKS; k++)
            if (!world.rank[j][k].here && (calm || world.rank[j][k].away-- == 0))
                world_come(j, k);
        carry(j);
    }
    world_give((struct by_recover_event){.type = BY_RECOVER_TICK});
}

/* Runs this number of rounds without faults. */
void world_rounds(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        world_round(true);
}

void world_swallows(bool is_link, uint32_t what)
{
    world_give((struct by_recover_event){
        .type = is_link ? BY_RECOVER_LINK_SWALLOWS : BY_RECOVER_SWITCH_SWALLOWS,
        .what = what,
        .text = "drops packets silently: 9 sent by leaf0, none received by spine0"});
}

void world_seconds(unsigned count)
{
    world_rounds((unsigned)(count * (UINT64_C(1000000000) / STEP_NS)));
}
