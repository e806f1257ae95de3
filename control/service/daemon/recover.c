/* The attempts of recovery. See recover.h. The loop's thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/service/daemon/recover_inside.h"
#include "offload/base/errors.h"

#define QUIET_NS  UINT64_C(2000000000)
#define GRACE_NS  UINT64_C(1500000000)
#define CUT_NS    UINT64_C(3500000000)
#define REPEAT_NS UINT64_C(4000000)
#define TRUST_NS  UINT64_C(10000000000)
/* Messages of one reminder (count) for which its interval suffices. Larger jobs, in which each rank
 * reports to each, are reminded less often. */
#define REMINDER 160u
/* The interval grows by a quarter with each reminder after which no rank has resumed, this many
 * times at most (count), to 0.1 s. */
#define REPEATS_GROW 15u
#define RETRY_NS     UINT64_C(200000000) /* delay after a failed push */
/* Ranks that have moved to a standby have all seen the same round of messages (PROTOCOL.md), and
 * differ by its repetitions. */
#define FOLLOW_NS UINT64_C(1000000000)
/* Waiting ranks report at least every 100 ms. Without a report for this long, none waits. */
#define WAITS_GAP_NS UINT64_C(350000000)
/* After this time the cause is more than one lost packet. */
#define WAITS_NS UINT64_C(40000000)

static uint16_t after(uint16_t gen)
{
    return gen == UINT16_MAX ? 1 : (uint16_t)(gen + 1);
}

/* ---- attempts ---- */

static void start_plan(struct by_recover *r)
{
    bool some = false, lost = r->phase == SETTLING && !r->pushed; /* the last push failed */

    for (uint32_t j = 0; j < r->job_count; j++) {
        struct by_recover_state *job = &r->jobs[j];

        if (!job->exists || !(job->touched || (lost && by_recover_is_on(job))) || job->failed)
            continue;
        job->prior = job->planning ? job->prior : job->next;
        job->next = job->last = after(job->last);
        job->touched = job->cut = false;
        job->reminders = 0;
        job->open = job->planning = some = true;
    }
    r->wanted = false;
    if (!some)
        return;
    r->phase = PLANNING;
    r->pushed = false;
    by_recover_act(r, (struct by_recover_action){.what = BY_DO_PLAN});
}

/* Plans all touched jobs as soon as possible. */
void by_recover_want(struct by_recover *r)
{
    r->wanted = true;
    if (r->phase == IDLE || r->phase == SETTLING)
        start_plan(r);
}

/* Plans another generation of the job, unless one is under way, which has new keys anyway. A failed
 * job needs none. */
static void renew(struct by_recover *r, struct by_recover_state *job, const char *what, const char *text)
{
    char cause[64];

    if (job->failed || job->open || job->touched)
        return;
    snprintf(cause, sizeof(cause), "job %u %s", job->job, what);
    by_recover_tell(r, "job %u: %s", job->job, text);
    by_recover_touch(job, cause);
    by_recover_want(r);
}

static void take_renewal(struct by_recover *r, const struct by_recover_event *event)
{
    if (event->job < r->job_count && r->jobs[event->job].exists)
        renew(r, &r->jobs[event->job], event->number != 0 ? "leaves a standby" : "has new keys", event->text);
}

/* A rank has stopped its calls to move to a standby, and none serves. */
static void take_stuck(struct by_recover *r, const struct by_recover_event *event)
{
    struct by_recover_state *job = &r->jobs[event->job];
    char name[96], text[200];

    snprintf(text, sizeof(text), "%s has left its trees, and no standby serves: planning again",
             by_recover_rank_name(r, event->job, event->rank, name));
    if (!job->cut)
        renew(r, job, "has stopped", text);
}

static void take_planned(struct by_recover *r, const struct by_recover_event *event)
{
    if (r->phase != PLANNING)
        return;
    r->phase = IDLE;
    if (r->wanted) {
        start_plan(r);
        if (r->phase == PLANNING)
            return;
    }
    for (uint32_t j = 0; j < r->job_count; j++) {
        struct by_recover_state *job = &r->jobs[j];

        if (job->planning)
            job->unrecorded = event->number != 0;
        job->planning = false;
        if (!by_recover_is_on(job))
            continue;
        job->way = true;
        if (event->error != 0)
            by_recover_fail(r, j, event->error, "%s: %s", job->cause, event->text);
        else
            by_recover_freeze_all(r, j);
    }
    /* Also when no job continues: the push removes failed jobs from the switches. */
    r->phase = event->error != 0 ? IDLE : PUSHING;
    if (event->error == 0)
        by_recover_act(r, (struct by_recover_action){.what = BY_DO_PUSH});
}

/* Ranks may get the tables of the attempt. */
static void take_recorded(struct by_recover *r)
{
    for (uint32_t j = 0; r->phase == PUSHING && j < r->job_count; j++) {
        struct by_recover_state *job = &r->jobs[j];
        bool held = job->unrecorded;

        job->unrecorded = false;
        if (held && by_recover_is_on(job))
            by_recover_freeze_all(r, j);
    }
}

static void take_pushed(struct by_recover *r, const struct by_recover_event *event)
{
    if (r->phase != PUSHING)
        return;
    if (event->error == 0)
        take_recorded(r);
    if (event->error != 0) {
        by_recover_tell(r, "the tables could not be pushed: %s", event->text != NULL ? event->text : "?");
        r->retry_ns = r->now_ns + RETRY_NS;
    } else {
        r->pushed = true;
    }
    r->phase = SETTLING;
    if (r->wanted) {
        start_plan(r);
        if (r->phase == PLANNING)
            return;
    }
    for (uint32_t j = 0; event->error == 0 && j < r->job_count; j++) {
        struct by_recover_state *job = &r->jobs[j];

        for (uint16_t k = 0; by_recover_is_on(job) && k < job->rank_count; k++)
            if (job->ranks[k].presence == HERE)
                by_recover_to_rank(r, BY_DO_GO, j, k, false);
        by_recover_settle(r, j);
    }
}

/* Returns the interval between two reminders of a job's ranks. */
static uint64_t pause_of(const struct by_recover *r, const struct by_recover_state *job)
{
    uint64_t messages = (uint64_t)job->rank_count * job->rank_count;
    uint64_t pause_ns = r->config.repeat_ns * (messages > REMINDER ? messages / REMINDER : 1);

    for (uint32_t i = 0; i < job->reminders; i++)
        pause_ns += pause_ns / 4;
    return pause_ns;
}

/* After a move to a standby, ranks that have not followed need an attempt. */
static void follow(struct by_recover *r, uint32_t j)
{
    struct by_recover_state *job = &r->jobs[j];
    char name[96], cause[128];

    if (job->followed_ns == 0 || r->now_ns - job->followed_ns < FOLLOW_NS)
        return;
    job->followed_ns = 0;
    for (uint16_t k = 0; k < job->rank_count && !job->open && !job->touched && !job->failed; k++) {
        if (job->ranks[k].presence != HERE || job->ranks[k].gen == job->base)
            continue;
        snprintf(cause, sizeof(cause), "%s has not followed to generation %u",
                 by_recover_rank_name(r, j, k, name), job->base);
        by_recover_tell(r, "job %u: %s: planning again", job->job, cause);
        by_recover_touch(job, cause);
        by_recover_want(r);
    }
}

static void tick(struct by_recover *r)
{
    bool open = false;

    by_recover_parts_tick(r);
    for (uint32_t j = 0; j < r->job_count; j++) {
        struct by_recover_state *job = &r->jobs[j];

        if (!job->exists)
            continue;
        by_recover_bury(r, j);
        follow(r, j);
        /* If its ranks make progress, the parts are lost to this daemon only. */
        if (job->cut && r->now_ns - job->cut_ns >= r->config.cut_ns && !by_recover_moves(r, job))
            by_recover_fail(r, j, job->error, "%s", job->why);
        if (by_recover_is_on(job) && (r->phase == PUSHING || r->phase == SETTLING) && !job->unrecorded &&
            r->now_ns - job->said_ns >= pause_of(r, job)) {
            by_recover_freeze_all(r, j);
            job->reminders += job->reminders < REPEATS_GROW;
        }
        by_recover_settle(r, j);
        open |= job->open && !job->cut;
    }
    if (r->phase == SETTLING && !r->pushed && r->now_ns >= r->retry_ns) {
        r->phase = PUSHING;
        by_recover_act(r, (struct by_recover_action){.what = BY_DO_PUSH});
    } else if (r->phase == SETTLING && r->pushed && !open) {
        r->phase = IDLE;
    }
    by_recover_parts_recovery(r);
}

/* Handles an event of a rank, if the job and the rank exist. */
static void take_rank(struct by_recover *r, const struct by_recover_event *event)
{
    struct by_recover_state *job;
    struct by_recover_rank *rank;

    if (event->job >= r->job_count || !r->jobs[event->job].exists)
        return;
    job = &r->jobs[event->job];
    if (event->rank >= job->rank_count)
        return;
    rank = &job->ranks[event->rank];
    switch (event->type) {
    case BY_RECOVER_RANK_CAME:
        by_recover_came(r, event);
        break;
    case BY_RECOVER_RANK_LEFT:
    case BY_RECOVER_RANK_DIED:
        by_recover_gone(r, event);
        break;
    case BY_RECOVER_RANK_ALIVE:
        if (event->number != rank->chunks)
            job->moved_ns = r->now_ns;
        rank->chunks = event->number;
        break;
    case BY_RECOVER_RANK_SUSPECTS:
        if (job->waits_ns == 0 || r->now_ns - job->waits_ns > WAITS_GAP_NS)
            job->waits_since_ns = r->now_ns;
        job->waits_ns = r->now_ns;
        break;
    case BY_RECOVER_RANK_STUCK:
        take_stuck(r, event);
        break;
    case BY_RECOVER_SWITCH_DOWN:
    case BY_RECOVER_SWITCH_UP:
    case BY_RECOVER_SWITCH_REBOOTED:
    case BY_RECOVER_SWITCH_GONE:
    case BY_RECOVER_LINK_DOWN:
    case BY_RECOVER_LINK_UP:
    case BY_RECOVER_SWITCH_SWALLOWS:
    case BY_RECOVER_LINK_SWALLOWS:
    case BY_RECOVER_RANK_CARRIED:
    case BY_RECOVER_RENEW:
    case BY_RECOVER_NO_PLAN:
    case BY_RECOVER_PLANNED:
    case BY_RECOVER_RECORDED:
    case BY_RECOVER_PUSHED:
    case BY_RECOVER_TICK:
    default: /* CARRIED */
        if (rank->presence != HERE || rank->gen == event->gen)
            break;
        rank->gen = event->gen;
        job->said_ns = r->now_ns;
        job->reminders = 0;
        by_recover_settle(r, event->job);
        break;
    }
}

void by_recover_stood(struct by_recover *r, uint64_t ns)
{
    for (uint32_t j = 0; j < r->job_count; j++) {
        struct by_recover_state *job = &r->jobs[j];

        if (!job->exists)
            continue;
        job->cut_ns += job->cut_ns != 0 ? ns : 0;
        for (uint16_t k = 0; k < job->rank_count; k++)
            job->ranks[k].gone_ns += ns;
    }
}

void by_recover_event(struct by_recover *r, const struct by_recover_event *event)
{
    r->now_ns = event->now_ns;
    switch (event->type) {
    case BY_RECOVER_SWITCH_DOWN:
    case BY_RECOVER_SWITCH_UP:
    case BY_RECOVER_SWITCH_REBOOTED:
    case BY_RECOVER_SWITCH_GONE:
    case BY_RECOVER_SWITCH_SWALLOWS:
    case BY_RECOVER_LINK_DOWN:
    case BY_RECOVER_LINK_UP:
    case BY_RECOVER_LINK_SWALLOWS:
        by_recover_part(r, event);
        break;
    case BY_RECOVER_RENEW:
        take_renewal(r, event);
        break;
    case BY_RECOVER_NO_PLAN:
        if (event->job < r->job_count && r->jobs[event->job].planning && !r->jobs[event->job].touched)
            by_recover_cut(r, event->job, event->error, event->text);
        break;
    case BY_RECOVER_PLANNED:
        take_planned(r, event);
        break;
    case BY_RECOVER_RECORDED:
        take_recorded(r);
        break;
    case BY_RECOVER_PUSHED:
        take_pushed(r, event);
        break;
    case BY_RECOVER_TICK:
        tick(r);
        break;
    case BY_RECOVER_RANK_CAME:
    case BY_RECOVER_RANK_LEFT:
    case BY_RECOVER_RANK_DIED:
    case BY_RECOVER_RANK_ALIVE:
    case BY_RECOVER_RANK_SUSPECTS:
    case BY_RECOVER_RANK_STUCK:
    case BY_RECOVER_RANK_CARRIED:
    default:
        take_rank(r, event);
        break;
    }
}

/* ---- begin and end ---- */

struct by_recover *by_recover_open(const struct by_recover_config *config)
{
    struct by_recover *r = calloc(1, sizeof(*r));
    uint32_t nodes = config->node_count, links = config->link_count;

    if (r == NULL)
        return NULL;
    r->config = *config;
    if (config->quiet_ns == 0)
        r->config.quiet_ns = QUIET_NS;
    if (config->cut_ns == 0)
        r->config.cut_ns = CUT_NS;
    if (config->grace_ns == 0)
        r->config.grace_ns = GRACE_NS;
    if (config->repeat_ns == 0)
        r->config.repeat_ns = REPEAT_NS;
    if (config->trust_ns == 0)
        r->config.trust_ns = TRUST_NS;
    r->phase = IDLE;
    r->lost_nodes = calloc(nodes + 1, sizeof(bool));
    r->lost_links = calloc(links + 1, sizeof(bool));
    r->parts = calloc((size_t)nodes + links + 1, sizeof(*r->parts));
    if (r->lost_nodes != NULL && r->lost_links != NULL && r->parts != NULL)
        return r;
    by_recover_close(r);
    return NULL;
}

void by_recover_close(struct by_recover *r)
{
    if (r == NULL)
        return;
    for (uint32_t j = 0; j < r->job_count; j++)
        free(r->jobs[j].ranks);
    free(r->jobs);
    free(r->lost_nodes);
    free(r->lost_links);
    free(r->parts);
    free(r);
}

uint32_t by_recover_add(struct by_recover *r, const struct by_recover_job *given)
{
    uint32_t place = 0;
    struct by_recover_rank *ranks = calloc(given->rank_count + 1u, sizeof(*ranks));

    while (place < r->job_count && r->jobs[place].exists)
        place++;
    if (ranks != NULL && place == r->job_count) {
        struct by_recover_state *jobs = realloc(r->jobs, (place + 1) * sizeof(*jobs));

        if (jobs == NULL) {
            free(ranks);
            ranks = NULL;
        } else {
            r->jobs = jobs;
            r->job_count = place + 1;
        }
    }
    if (ranks == NULL)
        return UINT32_MAX;
    r->jobs[place] = (struct by_recover_state){.exists = true,
                                               .used = given->used,
                                               .job = given->job,
                                               .rank_count = given->rank_count,
                                               .base = given->gen,
                                               .next = given->gen,
                                               .last = given->last != 0 ? given->last : given->gen,
                                               .ranks = ranks};
    if (given->lost) {
        by_recover_touch(&r->jobs[place], "a path is looked for again");
        by_recover_want(r);
    }
    return place;
}

void by_recover_remove(struct by_recover *r, uint32_t j)
{
    if (j >= r->job_count || !r->jobs[j].exists)
        return;
    by_recover_fail(r, j, BY_EABORTED, "the job was ended at the controller");
    free(r->jobs[j].ranks);
    r->jobs[j] = (struct by_recover_state){0};
}

uint16_t by_recover_reserve(struct by_recover *r, uint32_t j, uint32_t count)
{
    uint16_t first = j < r->job_count ? after(r->jobs[j].last) : 0;

    for (uint32_t i = 0; j < r->job_count && i < count; i++)
        r->jobs[j].last = after(r->jobs[j].last);
    return first;
}

bool by_recover_move(struct by_recover *r, uint32_t j, uint16_t gen)
{
    struct by_recover_state *job = j < r->job_count ? &r->jobs[j] : NULL;

    if (job == NULL || !job->exists || job->failed || job->open || job->touched || job->cut || job->planning)
        return false;
    job->base = job->next = gen;
    job->waits_ns = 0; /* those reports concerned the old trees */
    job->followed_ns = r->now_ns;
    return true;
}

const bool *by_recover_lost_nodes(const struct by_recover *r)
{
    return r->lost_nodes;
}

const bool *by_recover_lost_links(const struct by_recover *r)
{
    return r->lost_links;
}

uint16_t by_recover_base(const struct by_recover *r, uint32_t job)
{
    return job < r->job_count ? r->jobs[job].base : 0;
}

uint16_t by_recover_next(const struct by_recover *r, uint32_t job)
{
    return job < r->job_count ? r->jobs[job].next : 0;
}

bool by_recover_planning(const struct by_recover *r, uint32_t job)
{
    return job < r->job_count && r->jobs[job].planning;
}

bool by_recover_is_under_way(const struct by_recover *r, uint32_t j)
{
    const struct by_recover_state *job = j < r->job_count ? &r->jobs[j] : NULL;

    return job != NULL && (job->open || job->touched || job->cut || job->planning);
}

bool by_recover_suspects(const struct by_recover *r, uint32_t j)
{
    const struct by_recover_state *job = j < r->job_count ? &r->jobs[j] : NULL;

    return job != NULL && job->exists && !job->failed && !job->open && !job->cut && job->waits_ns != 0 &&
           r->now_ns - job->waits_ns <= WAITS_GAP_NS;
}

bool by_recover_waits(const struct by_recover *r, uint32_t j)
{
    const struct by_recover_state *job = j < r->job_count ? &r->jobs[j] : NULL;

    return by_recover_suspects(r, j) && r->now_ns - job->waits_since_ns >= WAITS_NS;
}

uint64_t by_recover_waited_ns(const struct by_recover *r, uint32_t j)
{
    const struct by_recover_state *job = j < r->job_count ? &r->jobs[j] : NULL;

    return job != NULL && job->waits_ns != 0 && r->now_ns - job->waits_ns <= WAITS_GAP_NS
               ? r->now_ns - job->waits_since_ns
               : 0;
}

bool by_recover_has_rank(const struct by_recover *r, uint32_t j, uint16_t rank)
{
    const struct by_recover_state *job = j < r->job_count ? &r->jobs[j] : NULL;

    return job != NULL && job->exists && rank < job->rank_count &&
           (job->ranks[rank].presence == WAITING || job->ranks[rank].presence == HERE);
}

bool by_recover_is_quiet(const struct by_recover *r)
{
    return r->phase == IDLE && !r->wanted;
}
