/* Standbys of jobs. See standby.h. */
#include "control/service/daemon/standby.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/service/daemon/ahead.h"
#include "control/service/daemon/changes.h"
#include "control/service/daemon/jobs.h"
#include "control/service/daemon/news.h"
#include "control/service/daemon/recovery.h"
#include "control/service/daemon/standby_offer.h"
#include "offload/base/errors.h"

/* Standbys are added when no table has changed for so long (ms), so that they delay no series of
 * changes. */
#define AFTER_MS 1000u
/* A job that moves again within so many times its last stay stays twice as long. */
#define AGAIN 4u
/* The longest stay (ms). */
#define STAY_MAX_MS UINT64_C(3600000)
/* The stay after a failure that is known by then (ms). */
#define STAY_KNOWN_MS 500u

/* ---- moves ---- */

/* Makes a standby the tables of the job. The later standbys stay until the next change. */
static void use(struct by_job *job, uint32_t place)
{
    struct by_job_tables *old = job->tables, *tables = old->standbys[place];

    for (uint32_t i = place + 1; i < old->standby_count; i++) {
        struct by_job_tables *later = old->standbys[i];

        free(later->replaces); /* which refers to the old tables */
        later->replaces = NULL;
        tables->standbys[tables->standby_count++] = later;
    }
    old->standby_count = place;
    free(tables->replaces);
    tables->replaces = NULL;
    job->tables = tables;
    by_job_tables_free(job->left);
    job->left = old;
}

void by_standby_moved(struct by_daemon *daemon, uint16_t number, uint16_t gen)
{
    struct by_job *job = by_jobs_find(daemon, number);
    uint32_t place = 0;

    if (job == NULL || job->tables == NULL || job->state != BY_JOB_RUNNING || daemon->start != NULL)
        return;
    while (place < job->tables->standby_count && job->tables->standbys[place]->gen != gen)
        place++;
    /* During a change the worker reads the tables. */
    if (place == job->tables->standby_count || daemon->change != NULL ||
        !by_recovery_move(daemon, number, gen))
        return;
    by_news_tell(daemon->news, BY_NEWS_BAD,
                 "job %u: its ranks have moved from generation %u to standby generation %u", number,
                 job->tables->gen, gen);
    use(job, place);
    daemon->counts.moves++;
    job->moved_ms = daemon->now_ms;
    if (job->moved_end_ms != 0 && daemon->now_ms - job->moved_end_ms < AGAIN * job->moved_hold_ms)
        job->moved_hold_ms = job->moved_hold_ms < STAY_MAX_MS / 2 ? 2 * job->moved_hold_ms : STAY_MAX_MS;
    else
        job->moved_hold_ms = daemon->options.trust_ms;
}

/* Whether plans avoid a part that the job has used before it moved. */
static bool knows_why(const struct by_daemon *daemon, const struct by_job *job)
{
    struct by_fabric_loss loss;
    bool hit;

    if (job->left == NULL)
        return false;
    by_change_loss(daemon, &loss);
    hit = by_fabric_is_hit(daemon->topology, job->left, &loss);
    by_fabric_loss_free(&loss);
    return hit;
}

static uint64_t stay_ms(const struct by_daemon *daemon, const struct by_job *job)
{
    return daemon->now_ms - job->moved_ms >= STAY_KNOWN_MS && knows_why(daemon, job) ? STAY_KNOWN_MS
                                                                                     : job->moved_hold_ms;
}

/* A job that uses a standby, whose windows are small, gets trees of a new plan: soon if the cause
 * of its move is known, else when it has done so for a while, because those parts that its ranks
 * left may work again, or may not. Also ends the stay of a job that has other trees. */
static void leave(struct by_daemon *daemon, struct by_job *job)
{
    bool stands = job->tables->first_tree > 0;
    char text[160];

    if (!stands && job->moved_ms != 0) {
        job->moved_ms = 0;
        job->moved_end_ms = daemon->now_ms;
        by_job_tables_free(job->left);
        job->left = NULL;
    } else if (stands && job->moved_ms == 0) { /* since before this daemon led */
        job->moved_ms = daemon->now_ms;
        job->moved_hold_ms = daemon->options.trust_ms;
    } else if (stands && daemon->now_ms - job->moved_ms >= stay_ms(daemon, job)) {
        snprintf(text, sizeof(text),
                 "it has used standby generation %u for %" PRIu64 ".%" PRIu64 " s: planning again",
                 job->tables->gen, (daemon->now_ms - job->moved_ms) / 1000,
                 (daemon->now_ms - job->moved_ms) / 100 % 10);
        by_recovery_leave(daemon, job->spec.job, text);
    }
}

/* ---- changes ---- */

/* Reports the standbys of a job, and why there are not more. */
static void report(struct by_daemon *daemon, const struct by_change_job *entry)
{
    const struct by_job_tables *tables = entry->job->tables;
    uint32_t count = tables->standby_count;
    char what[60], why[240] = "";

    if (entry->covered_count < entry->part_count && entry->problem.text[0] != 0)
        snprintf(why, sizeof(why), ": %.230s", entry->problem.text);
    if (count == 0) {
        by_news_tell(daemon->news, BY_NEWS_PLAIN, "job %u: no standby generations%s", entry->job->spec.job,
                     why[0] != 0 ? why : ": it can do without none of its switches and links");
        return;
    }
    if (count == 1)
        snprintf(what, sizeof(what), "standby generation %u avoids", tables->standbys[0]->gen);
    else
        snprintf(what, sizeof(what), "standby generations %u to %u avoid", tables->standbys[0]->gen,
                 tables->standbys[count - 1]->gen);
    by_news_tell(daemon->news, BY_NEWS_PLAIN,
                 "job %u: %s %u of the %u switches and links that it can do without%s", entry->job->spec.job,
                 what, entry->covered_count, entry->part_count, why);
}

/* Sends hosts what has changed. */
static void tell_hosts(struct by_daemon *daemon)
{
    for (uint32_t i = 0; i < daemon->job_count; i++) {
        struct by_job *job = daemon->jobs[i];

        if (job->standby_tells && job->tables != NULL)
            by_standby_tell(daemon, job, job->standby_ends);
        job->standby_tells = job->standby_ends = false;
    }
}

static void end_change(struct by_daemon *daemon, struct by_change *change)
{
    by_change_free(change);
    daemon->change = NULL;
}

static void on_pushed(struct by_daemon *daemon, struct by_change *change)
{
    if (change->error == 0) {
        by_change_adopt(daemon, change);
        tell_hosts(daemon);
        for (uint32_t i = 0; i < change->job_count; i++) {
            if (!change->jobs[i].stand)
                continue;
            change->jobs[i].job->standby_gen = change->jobs[i].job->tables->gen;
            report(daemon, &change->jobs[i]);
        }
    } else {
        by_daemon_say("tables with standbys could not be pushed: %s", change->problem.text);
    }
    end_change(daemon, change);
}

static void on_planned(struct by_daemon *daemon, struct by_change *change)
{
    bool some = false;

    for (uint32_t i = 0; i < change->job_count; i++)
        some |= change->jobs[i].standby_count > 0 ||
                (change->jobs[i].stand && change->jobs[i].job->tables->standby_count > 0);
    if (change->error == 0 && some) {
        by_change_push(daemon, change, on_pushed);
        return;
    }
    for (uint32_t i = 0; i < change->job_count; i++) {
        if (!change->jobs[i].stand || change->error == BY_EABORTED)
            continue;
        change->jobs[i].job->standby_gen = change->jobs[i].job->tables->gen;
        report(daemon, &change->jobs[i]);
    }
    if (change->error != 0 && change->error != BY_EABORTED)
        by_daemon_say("tables with standbys could not be made: %s", change->problem.text);
    end_change(daemon, change);
}

/* Returns a switch whose tables cannot have standbys, or NULL. */
static const char *find_unable(const struct by_daemon *daemon)
{
    for (uint32_t i = 0; i < daemon->switch_count; i++)
        if (daemon->switches[i].state == BY_SWITCH_UP &&
            !(daemon->switches[i].hello.able & by_Able_ABLE_STANDBY))
            return daemon->switches[i].name;
    return NULL;
}

/* Whether the job lacks standbys, or has more than are wanted. */
static bool is_due(const struct by_daemon *daemon, const struct by_job *job)
{
    if (job->state != BY_JOB_RUNNING || job->tables == NULL || job->spec.is_group)
        return false;
    if (daemon->options.standby == 0)
        return job->tables->standby_count > 0;
    return job->standby_gen != job->tables->gen;
}

static void start(struct by_daemon *daemon)
{
    const char *unable = daemon->options.standby > 0 ? find_unable(daemon) : NULL;
    struct by_change *change = NULL;

    for (uint32_t i = 0; i < daemon->job_count; i++) {
        struct by_job *job = daemon->jobs[i];
        uint16_t first = 0;

        if (!is_due(daemon, job))
            continue;
        if (unable != NULL) {
            job->standby_gen = job->tables->gen;
            by_news_tell(daemon->news, BY_NEWS_PLAIN,
                         "job %u: no standby generations: the software of switch %s is too old for them",
                         job->spec.job, unable);
            continue;
        }
        if (daemon->options.standby > 0)
            first = by_recovery_reserve(daemon, job, daemon->options.standby);
        if (daemon->options.standby > 0 && first == 0)
            continue;
        if (change == NULL)
            change = by_change_new(daemon);
        by_change_stand(change, job, first, daemon->options.standby);
    }
    if (change != NULL)
        by_change_plan(daemon, change, on_planned);
}

void by_standby_tick(struct by_daemon *daemon)
{
    bool quiet = !daemon->ending && daemon->change == NULL && daemon->start == NULL &&
                 daemon->recover != NULL && by_recover_is_quiet(daemon->recover);

    tell_hosts(daemon);
    for (uint32_t i = 0; i < daemon->job_count && quiet; i++)
        if (daemon->jobs[i]->state == BY_JOB_RUNNING && daemon->jobs[i]->tables != NULL)
            leave(daemon, daemon->jobs[i]);
    /* The process of ahead.c makes plans that standbys may use. */
    if (quiet && daemon->change == NULL && by_recover_is_quiet(daemon->recover) && daemon->ahead == NULL &&
        daemon->now_ms - daemon->pushed_ms >= AFTER_MS)
        start(daemon);
}
