/* Recovery: messages to the ranks of a job, the end of its attempt, and ranks that come and go. See
 * recover.h. The loop's thread. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "control/service/daemon/recover_inside.h"
#include "offload/base/errors.h"

/* ---- actions ---- */

void by_recover_act(struct by_recover *r, struct by_recover_action action)
{
    r->config.act(r->config.user, &action);
}

void by_recover_tell(struct by_recover *r, const char *format, ...)
{
    char text[BY_RECOVER_TEXT];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    by_recover_act(r, (struct by_recover_action){.what = BY_DO_LOG, .text = text});
}

void by_recover_to_rank(struct by_recover *r, enum by_recover_do what, uint32_t j, uint16_t rank, bool image)
{
    by_recover_act(r, (struct by_recover_action){.what = what, .job = j, .rank = rank, .image = image});
}

const char *by_recover_rank_name(const struct by_recover *r, uint32_t j, uint16_t rank, char text[96])
{
    r->config.name_rank(r->config.user, j, rank, text, 96);
    return text;
}

static void freeze(struct by_recover *r, uint32_t j, uint16_t rank)
{
    struct by_recover_state *job = &r->jobs[j];
    struct by_recover_rank *one = &job->ranks[rank];

    by_recover_to_rank(r, BY_DO_FREEZE, j, rank, one->image_sent != job->next);
    one->image_sent = job->next;
    if (r->pushed)
        by_recover_to_rank(r, BY_DO_GO, j, rank, false);
}

void by_recover_freeze_all(struct by_recover *r, uint32_t j)
{
    if (r->jobs[j].unrecorded)
        return;
    r->jobs[j].frozen = true;
    r->jobs[j].said_ns = r->now_ns;
    for (uint16_t k = 0; k < r->jobs[j].rank_count; k++)
        if (r->jobs[j].ranks[k].presence == HERE)
            freeze(r, j, k);
}

/* ---- a job's state ---- */

bool by_recover_any(const struct by_recover_state *job, enum by_recover_presence presence)
{
    for (uint16_t k = 0; k < job->rank_count; k++)
        if (job->ranks[k].presence == presence)
            return true;
    return false;
}

/* Ends the run: the next one requires another generation. */
static void end_run(struct by_recover_state *job)
{
    job->used = true;
    job->failed = false;
    for (uint16_t k = 0; k < job->rank_count; k++)
        if (job->ranks[k].presence != WAITING)
            job->ranks[k] = (struct by_recover_rank){0};
}

void by_recover_touch(struct by_recover_state *job, const char *cause)
{
    job->touched = true;
    if (cause != NULL)
        snprintf(job->cause, sizeof(job->cause), "%s", cause);
}

void by_recover_fail(struct by_recover *r, uint32_t j, int error, const char *format, ...)
{
    struct by_recover_state *job = &r->jobs[j];
    va_list arguments;

    if (job->failed)
        return;
    va_start(arguments, format);
    vsnprintf(job->text, sizeof(job->text), format, arguments);
    va_end(arguments);
    job->failed = true;
    job->error = error;
    job->touched = job->open = job->cut = job->planning = job->unrecorded = job->frozen = false;
    job->cut_ns = 0;
    job->base = job->next;
    by_recover_tell(r, "job %u: %s", job->job, job->text);
    for (uint16_t k = 0; k < job->rank_count; k++)
        if (job->ranks[k].presence == HERE || job->ranks[k].presence == WAITING)
            by_recover_act(r,
                           (struct by_recover_action){
                               .what = BY_DO_FAIL, .job = j, .rank = k, .error = error, .text = job->text});
    if (!by_recover_any(job, HERE) && !by_recover_any(job, WAITING))
        end_run(job);
}

void by_recover_cut(struct by_recover *r, uint32_t j, int error, const char *text)
{
    struct by_recover_state *job = &r->jobs[j];
    /* The trial failed: no chunk has been done since. */
    bool tried =
        job->tried_ns != 0 && r->now_ns - job->tried_ns < r->config.cut_ns && job->moved_ns <= job->tried_ns;

    /* No rank has got this generation yet; ranks may be in the attempt of the previous one. */
    job->next = job->prior;
    job->open = job->next != job->base;
    job->planning = false;
    job->error = error;
    snprintf(job->why, sizeof(job->why), "%s: %s", job->cause, text);
    /* Neither a useless return nor a trial extends the wait. */
    if (job->cut_ns == 0 || (job->way && !tried))
        job->cut_ns = r->now_ns;
    job->way = false;
    job->cut = true;
    by_recover_tell(r, "job %u: %s; the job waits for a path", job->job, job->why);
}

static void welcome(struct by_recover *r, uint32_t j, uint16_t k)
{
    struct by_recover_state *job = &r->jobs[j];
    struct by_recover_rank *rank = &job->ranks[k];

    rank->presence = HERE;
    by_recover_to_rank(r, BY_DO_WELCOME, j, k, rank->gen == 0);
    if (rank->gen == 0)
        rank->gen = job->base;
}

/* Ends the attempt when all ranks are in the new generation, or when none is present. */
void by_recover_settle(struct by_recover *r, uint32_t j)
{
    struct by_recover_state *job = &r->jobs[j];

    if (!by_recover_is_on(job) || !r->pushed)
        return;
    if (by_recover_any(job, HERE) || by_recover_any(job, GONE))
        for (uint16_t k = 0; k < job->rank_count; k++)
            if (job->ranks[k].presence != HERE || job->ranks[k].gen != job->next)
                return;
    job->open = job->frozen = false;
    job->waits_ns = 0; /* those reports concerned the old trees */
    job->used = by_recover_any(job, HERE);
    job->base = job->next;
    by_recover_act(r, (struct by_recover_action){.what = BY_DO_SETTLED, .job = j});
    for (uint16_t k = 0; k < job->rank_count; k++)
        if (job->ranks[k].presence == WAITING)
            welcome(r, j, k);
}

/* ---- ranks ---- */

void by_recover_came(struct by_recover *r, const struct by_recover_event *event)
{
    struct by_recover_state *job = &r->jobs[event->job];
    struct by_recover_rank *rank = &job->ranks[event->rank];
    bool was = rank->presence == HERE || rank->presence == GONE;
    char name[96], cause[128];

    if (was && rank->nonce != event->number) {
        by_recover_fail(r, event->job, BY_EABORTED, "%s restarted while the job ran",
                        by_recover_rank_name(r, event->job, event->rank, name));
        was = false;
    }
    if (job->failed) {
        if (was || !job->used || by_recover_any(job, HERE)) {
            rank->presence = HERE;
            rank->nonce = event->number;
            by_recover_act(r, (struct by_recover_action){.what = BY_DO_FAIL,
                                                         .job = event->job,
                                                         .rank = event->rank,
                                                         .error = job->error,
                                                         .text = job->text});
            return;
        }
        end_run(job);
    }
    rank->nonce = event->number;
    rank->gen = event->gen;
    rank->image_sent = 0;
    if (!was && rank->gen == 0 && !by_recover_any(job, HERE) && !by_recover_any(job, GONE) && job->used) {
        /* The first rank of a new run, while a former run has used the tables. */
        rank->presence = WAITING;
        if (!job->open) {
            snprintf(cause, sizeof(cause), "a new run of job %u", job->job);
            by_recover_touch(job, cause);
            by_recover_want(r);
        }
        return;
    }
    welcome(r, event->job, event->rank);
    for (uint16_t k = 0; k < job->rank_count; k++)
        if (job->ranks[k].presence == WAITING) /* then it is not a new run */
            welcome(r, event->job, k);
    if (job->open) {
        if (by_recover_is_on(job) && (r->phase == PUSHING || r->phase == SETTLING))
            by_recover_freeze_all(r, event->job); /* messages of both sides may be lost */
    } else if (rank->gen != job->base) {
        /* This daemon has lost the newer generation, or the rank missed it. */
        if ((int16_t)(rank->gen - job->last) > 0)
            job->last = rank->gen;
        snprintf(cause, sizeof(cause), "%s is in generation %u",
                 by_recover_rank_name(r, event->job, event->rank, name), rank->gen);
        by_recover_touch(job, cause);
        by_recover_want(r);
    } else {
        job->used = true;
    }
}

void by_recover_gone(struct by_recover *r, const struct by_recover_event *event)
{
    struct by_recover_state *job = &r->jobs[event->job];
    struct by_recover_rank *rank = &job->ranks[event->rank];
    char name[96];

    if (rank->presence == WAITING) {
        *rank = (struct by_recover_rank){0};
        return;
    }
    if (rank->presence != HERE)
        return;
    rank->presence = event->type == BY_RECOVER_RANK_LEFT ? LEFT : GONE;
    rank->gone_ns = r->now_ns;
    /* Ranks that have not frozen continue, and may have completed their calls in a standby. */
    if (rank->presence == LEFT && job->open && (job->frozen || !job->unrecorded) &&
        (by_recover_any(job, HERE) || by_recover_any(job, GONE)))
        by_recover_fail(r, event->job, BY_EABORTED,
                        "%s: %s has ended, and its data of the others' calls is lost", job->cause,
                        by_recover_rank_name(r, event->job, event->rank, name));
    if (!by_recover_any(job, HERE) && !by_recover_any(job, GONE))
        end_run(job);
}

/* Ranks that have not returned in time after their connection ended are dead. */
void by_recover_bury(struct by_recover *r, uint32_t j)
{
    struct by_recover_state *job = &r->jobs[j];
    char name[96];

    for (uint16_t k = 0; k < job->rank_count; k++) {
        struct by_recover_rank *rank = &job->ranks[k];

        if (rank->presence != GONE || r->now_ns - rank->gone_ns < r->config.grace_ns)
            continue;
        rank->presence = LEFT;
        if (!job->failed && (by_recover_any(job, HERE) || by_recover_any(job, GONE)))
            by_recover_fail(r, j, BY_EABORTED, "%s failed: its connection to the controller was closed",
                            by_recover_rank_name(r, j, k, name));
    }
    if (!by_recover_any(job, HERE) && !by_recover_any(job, GONE) && by_recover_any(job, LEFT))
        end_run(job);
}
