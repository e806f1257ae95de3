/* The driver of recovery. See recovery.h. The loop's thread. */
#include "control/service/daemon/recovery_inside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/service/daemon/ahead.h"
#include "control/service/daemon/changes.h"
#include "control/service/daemon/jobs.h"
#include "control/service/daemon/members.h"
#include "control/service/daemon/news.h"
#include "control/service/daemon/paths.h"
#include "control/service/daemon/standby_offer.h"
#include "offload/base/errors.h"

/* Interval of ticks while recovery is under way (ns). */
#define TICK_NS 4000000

/* recover.c gets an event at every heartbeat. After a longer gap than so many heartbeats this
 * process had no processor, and answers of that time are still unread (count). */
#define STOOD_BEATS 5u

struct by_job *by_recovery_job(struct by_daemon *daemon, uint32_t place)
{
    return by_jobs_find(daemon, daemon->recovery->places[place].job);
}

uint32_t by_recovery_find(const struct by_recovery *recovery, uint16_t job)
{
    for (uint32_t i = 0; i < recovery->place_count; i++)
        if (recovery->places[i].job == job)
            return i;
    return UINT32_MAX;
}

static void give(struct by_daemon *daemon, struct by_recover_event event)
{
    uint64_t gap_ms = daemon->now_ms - daemon->recovery->given_ms;

    if (daemon->recovery->given_ms != 0 && gap_ms >= (uint64_t)STOOD_BEATS * daemon->options.heartbeat_ms)
        by_recover_stood(daemon->recover, gap_ms * 1000000);
    daemon->recovery->given_ms = daemon->now_ms;
    event.now_ns = daemon->now_ms * 1000000;
    by_recover_event(daemon->recover, &event);
}

/* ---- callbacks of recover.c ---- */

static bool uses(void *user, uint32_t place, bool is_link, uint32_t what)
{
    struct by_daemon *daemon = user;
    const struct by_job *job = by_recovery_job(daemon, place);

    return job != NULL && by_paths_use(daemon, job, is_link, what);
}

static void name_part(void *user, bool is_link, uint32_t what, char *text, size_t bytes)
{
    const struct by_topology *topology = ((struct by_daemon *)user)->topology;

    if (is_link)
        snprintf(text, bytes, "link %s - %s", topology->nodes[topology->links[what].a].name,
                 topology->nodes[topology->links[what].b].name);
    else
        snprintf(text, bytes, "switch %s", topology->nodes[what].name);
}

static void name_rank(void *user, uint32_t place, uint16_t rank, char *text, size_t bytes)
{
    struct by_daemon *daemon = user;
    const struct by_job *job = by_recovery_job(daemon, place);
    int64_t node = job != NULL ? by_job_node(&job->spec, daemon->topology, rank) : -1;

    snprintf(text, bytes, "rank %u (%s)", rank, node >= 0 ? daemon->topology->nodes[node].name : "?");
}

/* ---- images of hosts ---- */

/* Makes the image of a rank from tables, which must be of generation `gen`: a rank must never get
 * other tables under that number. */
static int image_from(struct by_daemon *daemon, const struct by_job *job, const struct by_job_tables *tables,
                      uint16_t gen, uint16_t rank, struct by_change_image *image)
{
    int64_t node = by_job_node(&job->spec, daemon->topology, rank);
    struct by_problem problem = {0};
    int error = BY_ESTATE;

    *image = (struct by_change_image){0};
    if (tables != NULL && tables->gen == gen && node >= 0)
        error = by_lowering_image(tables->lowering, (uint32_t)node, &image->bytes, &image->size, &problem);
    if (error != 0)
        by_daemon_say("job %u: no table of generation %u for rank %u: %s", job->spec.job, gen, rank,
                      problem.text[0] != 0 ? problem.text : by_error_text(error));
    return error;
}

/* Returns the tables of the next generation: those of the current change, or those already on the
 * switches. */
static const struct by_job_tables *next_tables(const struct by_recovery *recovery, const struct by_job *job)
{
    const struct by_change_job *entry =
        recovery->change != NULL ? by_change_find(recovery->change, job->spec.job) : NULL;

    return entry != NULL && entry->anew ? entry->tables : job->tables;
}

/* Saves the images of the base generation before its tables are replaced, for ranks that connect
 * late and begin where the others did. */
static void keep_base(struct by_daemon *daemon)
{
    struct by_recovery *recovery = daemon->recovery;

    for (uint32_t i = 0; i < recovery->place_count; i++) {
        struct by_recovery_place *affected = &recovery->places[i];
        const struct by_job *job = affected->job != 0 ? by_recovery_job(daemon, i) : NULL;
        uint16_t base = by_recover_base(daemon->recover, i);

        if (job == NULL || base == by_recover_next(daemon->recover, i) || job->tables == NULL ||
            job->tables->gen != base)
            continue;
        for (uint32_t k = 0; k < affected->rank_count; k++)
            if (affected->image_of[k].bytes == NULL)
                image_from(daemon, job, job->tables, base, (uint16_t)k, &affected->image_of[k]);
    }
}

static void forget_base(struct by_recovery_place *affected)
{
    for (uint32_t k = 0; k < affected->rank_count; k++) {
        free(affected->image_of[k].bytes);
        affected->image_of[k] = (struct by_change_image){0};
    }
}

/* ---- actions ---- */

static void send_frame(struct by_daemon *daemon, const struct by_recover_action *action, uint8_t type,
                       uint16_t gen, const struct by_change_image *image)
{
    struct by_member_frame frame = {.type = type, .gen = gen};

    if (image != NULL && image->bytes != NULL) {
        frame.data = image->bytes;
        frame.bytes = (uint32_t)image->size;
    }
    by_members_send(daemon, daemon->recovery->places[action->job].job, action->rank, frame);
}

static void do_welcome(struct by_daemon *daemon, const struct by_recover_action *action)
{
    struct by_recovery *recovery = daemon->recovery;
    const struct by_job *job = by_recovery_job(daemon, action->job);
    struct by_change_image own = {0}, *image = &recovery->places[action->job].image_of[action->rank];

    if (job == NULL)
        return;
    if (action->image && image->bytes == NULL &&
        image_from(daemon, job, job->tables, by_recover_base(daemon->recover, action->job), action->rank,
                   &own) == 0)
        image = &own;
    send_frame(daemon, action, BY_MEMBER_WELCOME, by_recover_base(daemon->recover, action->job),
               action->image ? image : NULL);
    free(own.bytes);
    if (job->tables != NULL && job->tables->gen == by_recover_base(daemon->recover, action->job))
        by_standby_offer(daemon, job, action->rank);
}

static void do_freeze(struct by_daemon *daemon, const struct by_recover_action *action)
{
    struct by_recovery *recovery = daemon->recovery;
    const struct by_job *job = by_recovery_job(daemon, action->job);
    struct by_change_image image = {0};

    if (job == NULL || (action->image &&
                        image_from(daemon, job, next_tables(recovery, job),
                                   by_recover_next(daemon->recover, action->job), action->rank, &image) != 0))
        return;
    send_frame(daemon, action, BY_MEMBER_FREEZE, by_recover_next(daemon->recover, action->job), &image);
    free(image.bytes);
}

static void do_fail(struct by_daemon *daemon, const struct by_recover_action *action)
{
    size_t bytes = strlen(action->text);

    by_members_send(daemon, daemon->recovery->places[action->job].job, action->rank,
                    (struct by_member_frame){
                        .type = BY_MEMBER_FAIL,
                        .code = action->error,
                        .data = (const uint8_t *)action->text,
                        .bytes = (uint32_t)(bytes < BY_MEMBER_TEXT_MAX ? bytes : BY_MEMBER_TEXT_MAX)});
}

static void do_settled(struct by_daemon *daemon, const struct by_recover_action *action)
{
    struct by_recovery_place *affected = &daemon->recovery->places[action->job];
    struct by_job *job = by_recovery_job(daemon, action->job);

    forget_base(affected);
    if (job == NULL)
        return;
    job->state = BY_JOB_RUNNING;
    by_news_tell(daemon->news, BY_NEWS_GOOD,
                 "job %u is in generation %u, %" PRIu64 " ms after the planning began (%" PRIu64
                 " ms to hosts, %" PRIu64 " ms to switches; %" PRIu64 " ms after the first report of a wait)",
                 affected->job, by_recover_base(daemon->recover, action->job),
                 daemon->now_ms - affected->since_ms, affected->planned_ms - affected->since_ms,
                 affected->pushed_ms - affected->since_ms,
                 daemon->now_ms - affected->since_ms + affected->waited_ms);
}

static void act(void *user, const struct by_recover_action *action)
{
    struct by_daemon *daemon = user;

    switch (action->what) {
    case BY_DO_PLAN:
        daemon->recovery->plan_wanted = true;
        daemon->recovery->push_wanted = false;
        break;
    case BY_DO_PUSH:
        daemon->recovery->push_wanted = true;
        break;
    case BY_DO_WELCOME:
        do_welcome(daemon, action);
        break;
    case BY_DO_FREEZE:
        do_freeze(daemon, action);
        break;
    case BY_DO_GO:
        send_frame(daemon, action, BY_MEMBER_GO, by_recover_next(daemon->recover, action->job), NULL);
        break;
    case BY_DO_FAIL:
        do_fail(daemon, action);
        break;
    case BY_DO_SETTLED:
        do_settled(daemon, action);
        break;
    case BY_DO_LOG:
        by_news_tell(daemon->news, BY_NEWS_PLAIN, "%s", action->text);
        break;
    }
}

/* ---- changes ---- */

static void step(struct by_daemon *daemon);

static void forget_change(struct by_daemon *daemon)
{
    by_change_free(daemon->recovery->change);
    daemon->recovery->change = NULL;
    daemon->change = NULL;
}

static void on_pushed(struct by_daemon *daemon, struct by_change *change)
{
    struct by_recovery *recovery = daemon->recovery;
    struct by_problem problem = change->problem;
    int error = change->error;

    recovery->works = false;
    recovery->pushing_ms = 0;
    free(change->targets);
    free(change->target_nodes);
    change->targets = NULL;
    change->target_nodes = NULL;
    change->target_count = 0;
    if (error == 0) {
        for (uint32_t i = 0; i < recovery->place_count; i++)
            recovery->places[i].pushed_ms = daemon->now_ms;
        keep_base(daemon);
        by_change_adopt(daemon, change);
        forget_change(daemon);
    }
    give(daemon, (struct by_recover_event){.type = BY_RECOVER_PUSHED, .error = error, .text = problem.text});
    step(daemon);
}

static void on_planned(struct by_daemon *daemon, struct by_change *change)
{
    struct by_recovery *recovery = daemon->recovery;

    recovery->works = false;
    for (uint32_t i = 0; i < recovery->place_count; i++) {
        const struct by_change_job *entry =
            recovery->places[i].job != 0 ? by_change_find(change, recovery->places[i].job) : NULL;
        struct by_job *job = entry != NULL ? by_recovery_job(daemon, i) : NULL;

        recovery->places[i].planned_ms = daemon->now_ms;
        if (job != NULL && entry->tables != NULL && entry->tables->ahead)
            by_news_tell(daemon->news, BY_NEWS_PLAIN, "job %u: its plan was made in advance", job->spec.job);
        if (job == NULL || !entry->anew || entry->error == 0)
            continue;
        job->state = BY_JOB_FAILED;
        snprintf(job->text, sizeof(job->text), "%s", entry->problem.text);
        give(daemon,
             (struct by_recover_event){
                 .type = BY_RECOVER_NO_PLAN, .job = i, .error = entry->error, .text = entry->problem.text});
    }
    /* Without a record, a controller that takes over would use these numbers for other tables. */
    give(daemon, (struct by_recover_event){.type = BY_RECOVER_PLANNED,
                                           .number = !change->recorded,
                                           .error = change->error,
                                           .text = change->problem.text});
    if (!recovery->push_wanted)
        forget_change(daemon);
    step(daemon);
}

static void start_plan(struct by_daemon *daemon)
{
    struct by_recovery *recovery = daemon->recovery;
    struct by_change *change = by_change_new(daemon);
    const bool *nodes = by_recover_lost_nodes(daemon->recover),
               *links = by_recover_lost_links(daemon->recover);
    struct by_fabric_loss loss;
    bool whole = true;

    /* Avoids also parts that have not been back for long, and parts that were lost since the last
     * decision. */
    for (uint32_t n = 0; n < daemon->topology->node_count; n++)
        whole &= !(change->loss.nodes[n] |= nodes[n]);
    for (uint32_t l = 0; l < daemon->topology->link_count; l++)
        whole &= !(change->loss.links[l] |= links[l]);
    by_fabric_loss_copy(&loss, &change->loss, daemon->topology);
    by_fabric_loss_free(&change->loss);
    change->loss = loss;
    for (uint32_t i = 0; i < recovery->place_count; i++) {
        struct by_job *job = recovery->places[i].job != 0 ? by_recovery_job(daemon, i) : NULL;

        if (job == NULL || !by_recover_planning(daemon->recover, i))
            continue;
        by_change_touch(change, job, !whole);
        job->gen_last = by_change_find(change, job->spec.job)->gen = by_recover_next(daemon->recover, i);
        if (job->state != BY_JOB_RECOVERING || recovery->places[i].since_ms == 0) {
            recovery->places[i].since_ms = daemon->now_ms;
            recovery->places[i].waited_ms = by_recover_waited_ns(daemon->recover, i) / 1000000;
        }
        job->state = BY_JOB_RECOVERING;
    }
    recovery->change = change;
    recovery->works = true;
    by_ahead_stop(daemon);
    by_change_plan(daemon, change, on_planned);
}

/* Lets the timer run only while recovery is under way. */
static void set_timer(struct by_daemon *daemon)
{
    struct by_recovery *recovery = daemon->recovery;
    bool ticks = !by_recover_is_quiet(daemon->recover);
    struct timespec period = {.tv_nsec = ticks ? TICK_NS : 0};

    if (ticks == recovery->ticks)
        return;
    recovery->ticks = ticks;
    timerfd_settime(recovery->timer.fd, 0, &(struct itimerspec){.it_interval = period, .it_value = period},
                    NULL);
}

/* Jobs whose attempt has ended without them, because their ranks have failed, have their tables and
 * may be ended. */
static void release_jobs(struct by_daemon *daemon)
{
    for (uint32_t i = 0; i < daemon->recovery->place_count; i++) {
        struct by_job *job = daemon->recovery->places[i].job != 0 ? by_recovery_job(daemon, i) : NULL;

        if (job != NULL && job->state == BY_JOB_RECOVERING && !by_recover_is_under_way(daemon->recover, i))
            job->state = BY_JOB_RUNNING;
    }
}

/* Starts the requested work, unless a change of another module is under way. */
static void step(struct by_daemon *daemon)
{
    struct by_recovery *recovery = daemon->recovery;

    if (recovery->change == NULL)
        release_jobs(daemon);
    /* The change waits for another push after one that failed, and a new plan replaces it. */
    if (recovery->plan_wanted && recovery->change != NULL && !recovery->works)
        forget_change(daemon);
    set_timer(daemon);
    if (recovery->change != NULL && recovery->push_wanted) {
        recovery->push_wanted = false;
        recovery->works = true;
        recovery->pushing_ms = daemon->now_ms;
        by_change_push(daemon, recovery->change, on_pushed);
        return;
    }
    if (!recovery->plan_wanted || daemon->start != NULL)
        return;
    if (daemon->change != NULL) {
        by_change_yield(daemon->change);
        return;
    }
    recovery->plan_wanted = false;
    start_plan(daemon);
}

static void query_targets(struct by_daemon *daemon)
{
    const struct by_change *change = daemon->recovery->change;
    bool *used = by_alloc(daemon->topology->link_count, sizeof(*used));

    for (uint32_t l = 0; l < daemon->topology->link_count; l++)
        used[l] = by_change_has_target(change, daemon->topology->links[l].a) ||
                  by_change_has_target(change, daemon->topology->links[l].b);
    by_switches_ask(daemon, used);
    free(used);
}

static void on_timer(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    uint64_t count;

    (void)events;
    if (read(watcher->fd, &count, sizeof(count)) != (ssize_t)sizeof(count) || daemon->ending)
        return;
    give(daemon, (struct by_recover_event){.type = BY_RECOVER_TICK});
    step(daemon);
    if (by_recovery_is_slow(daemon))
        query_targets(daemon);
}

/* ---- jobs that begin and end ---- */

/* Adds a job. For jobs older than this daemon it is unknown whether a run has begun, so it assumes
 * that one has. A job that had failed when the last controller ended is planned again. */
static void add(struct by_daemon *daemon, const struct by_job *job)
{
    struct by_recovery *recovery = daemon->recovery;
    uint32_t ranks = by_job_rank_count(&job->spec, daemon->topology);
    uint32_t place =
        by_recover_add(daemon->recover,
                       &(struct by_recover_job){.job = job->spec.job,
                                                .rank_count = (uint16_t)ranks,
                                                .gen = job->tables != NULL ? job->tables->gen : job->gen_last,
                                                .last = job->gen_last,
                                                .used = !recovery->begun || job->is_kept,
                                                .lost = job->state == BY_JOB_FAILED});

    if (place == UINT32_MAX)
        return;
    if (place >= recovery->place_count) {
        recovery->places = by_realloc(recovery->places, place + 1, sizeof(*recovery->places));
        recovery->place_count = place + 1;
    }
    recovery->places[place] =
        (struct by_recovery_place){.job = job->spec.job,
                                   .rank_count = ranks,
                                   .image_of = by_alloc(ranks, sizeof(struct by_change_image))};
}

static void sync_jobs(struct by_daemon *daemon)
{
    struct by_recovery *recovery = daemon->recovery;

    for (uint32_t i = 0; i < recovery->place_count; i++) {
        struct by_recovery_place *affected = &recovery->places[i];
        const struct by_job *job = affected->job != 0 ? by_recovery_job(daemon, i) : NULL;

        if (affected->job == 0 || (job != NULL && job->state != BY_JOB_ENDING))
            continue;
        by_recover_remove(daemon->recover, i);
        forget_base(affected);
        free(affected->image_of);
        *affected = (struct by_recovery_place){0};
    }
    for (uint32_t i = 0; i < daemon->job_count; i++) {
        const struct by_job *job = daemon->jobs[i];

        if (((job->tables != NULL && job->state == BY_JOB_RUNNING) || job->state == BY_JOB_FAILED) &&
            by_recovery_find(recovery, job->spec.job) == UINT32_MAX)
            add(daemon, job);
    }
}

/* ---- blackholes ---- */

void by_recovery_swallows(struct by_daemon *daemon, bool is_link, uint32_t what, const char *text)
{
    give(daemon,
         (struct by_recover_event){.type = is_link ? BY_RECOVER_LINK_SWALLOWS : BY_RECOVER_SWITCH_SWALLOWS,
                                   .what = what,
                                   .text = text});
    step(daemon);
}

/* ---- events ---- */

/* Reports the parts that were down before this daemon led. */
static void begin(struct by_daemon *daemon)
{
    daemon->recovery->begun = true;
    for (uint32_t i = 0; i < daemon->switch_count; i++)
        if (daemon->switches[i].state != BY_SWITCH_UP)
            give(daemon,
                 (struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = daemon->switches[i].node});
    for (uint32_t l = 0; l < daemon->topology->link_count; l++)
        if (daemon->links[l].down)
            give(daemon, (struct by_recover_event){.type = BY_RECOVER_LINK_DOWN, .what = l});
}

/* Gives recover.c the jobs that have come or gone. The first event, whether of the fabric or of a
 * rank, is preceded by the parts that are down: their return would otherwise be ignored. */
static void catch_up(struct by_daemon *daemon)
{
    sync_jobs(daemon);
    if (!daemon->recovery->begun)
        begin(daemon);
}

/* The worker has recorded a change, of recovery or of another part. */
static void on_recorded(struct by_daemon *daemon)
{
    struct by_recovery *recovery = daemon->recovery;

    if (recovery == NULL || recovery->change == NULL || !recovery->change->recorded)
        return;
    for (uint32_t i = 0; i < recovery->place_count; i++)
        recovery->places[i].planned_ms = daemon->now_ms;
    give(daemon, (struct by_recover_event){.type = BY_RECOVER_RECORDED});
}

void by_recovery_event(struct by_daemon *daemon, const struct by_daemon_event *event)
{
    static const enum by_recover_type types[] = {[BY_EVENT_SWITCH_UP] = BY_RECOVER_SWITCH_UP,
                                                 [BY_EVENT_SWITCH_DOWN] = BY_RECOVER_SWITCH_DOWN,
                                                 [BY_EVENT_SWITCH_GONE] = BY_RECOVER_SWITCH_GONE,
                                                 [BY_EVENT_SWITCH_REBOOTED] = BY_RECOVER_SWITCH_REBOOTED,
                                                 [BY_EVENT_LINK_DOWN] = BY_RECOVER_LINK_DOWN,
                                                 [BY_EVENT_LINK_UP] = BY_RECOVER_LINK_UP,
                                                 [BY_EVENT_TICK] = BY_RECOVER_TICK};
    bool is_link = event->kind == BY_EVENT_LINK_DOWN || event->kind == BY_EVENT_LINK_UP;

    if (event->kind == BY_EVENT_RECORDED)
        on_recorded(daemon);
    /* A job that has ended is forgotten before another one can get its number. */
    if (daemon->recovery != NULL && event->kind == BY_EVENT_PUSHED) {
        catch_up(daemon);
        step(daemon); /* the change has left its room, which the next request would take */
    }
    if (daemon->recovery == NULL || event->kind >= sizeof(types) / sizeof(types[0]) ||
        types[event->kind] == 0)
        return;
    catch_up(daemon);
    give(daemon,
         (struct by_recover_event){.type = types[event->kind], .what = is_link ? event->link : event->node});
    /* Running jobs do not wait until a push, of recovery or for another job, has reached its time
     * limit. */
    if ((event->kind == BY_EVENT_SWITCH_DOWN || event->kind == BY_EVENT_SWITCH_GONE) &&
        (daemon->recovery->pushing_ms != 0 || daemon->recovery->plan_wanted) && daemon->change != NULL &&
        by_change_has_target(daemon->change, event->node))
        by_change_stop(daemon->change);
    step(daemon);
}

/* Handles an event of a job, by its number. Ignores jobs that recover.c does not have. */
static void take(struct by_daemon *daemon, uint16_t job, struct by_recover_event event)
{
    if (daemon->recovery == NULL)
        return;
    catch_up(daemon);
    event.job = by_recovery_find(daemon->recovery, job);
    if (event.job == UINT32_MAX)
        return;
    give(daemon, event);
    step(daemon);
}

void by_recovery_rank(struct by_daemon *daemon, enum by_recover_type type, uint16_t job, uint16_t rank,
                      uint16_t gen, uint64_t number)
{
    take(daemon, job, (struct by_recover_event){.type = type, .rank = rank, .gen = gen, .number = number});
}

void by_recovery_renew(struct by_daemon *daemon, uint16_t job, const char *why)
{
    take(daemon, job, (struct by_recover_event){.type = BY_RECOVER_RENEW, .text = why});
}

void by_recovery_leave(struct by_daemon *daemon, uint16_t job, const char *why)
{
    take(daemon, job, (struct by_recover_event){.type = BY_RECOVER_RENEW, .number = 1, .text = why});
}

bool by_recovery_move(struct by_daemon *daemon, uint16_t job, uint16_t gen)
{
    if (daemon->recovery == NULL)
        return false;
    catch_up(daemon);
    return by_recover_move(daemon->recover, by_recovery_find(daemon->recovery, job), gen);
}

uint16_t by_recovery_reserve(struct by_daemon *daemon, struct by_job *job, uint32_t count)
{
    uint16_t first =
        by_recover_reserve(daemon->recover, by_recovery_find(daemon->recovery, job->spec.job), count);

    if (first == 0)
        return 0;
    job->gen_last = first;
    for (uint32_t i = 1; i < count; i++)
        job->gen_last = by_job_gen_next(job->gen_last);
    return first;
}

void by_recovery_open(struct by_daemon *daemon)
{
    struct by_recover_config config = {.node_count = daemon->topology->node_count,
                                       .link_count = daemon->topology->link_count,
                                       .trust_ns = daemon->options.trust_ms * UINT64_C(1000000),
                                       .quiet_ns = daemon->options.quiet_ms * UINT64_C(1000000),
                                       .uses = uses,
                                       .name_part = name_part,
                                       .name_rank = name_rank,
                                       .act = act,
                                       .user = daemon};

    daemon->recovery = by_alloc(1, sizeof(*daemon->recovery));
    daemon->recover = by_recover_open(&config);
    daemon->recovery->timer = (struct by_watcher){
        .fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), .ready = on_timer};
    if (daemon->recover == NULL)
        by_daemon_end(daemon, 3, "no memory for %u nodes", daemon->topology->node_count);
    else if (daemon->recovery->timer.fd < 0 ||
             by_daemon_watch(daemon, &daemon->recovery->timer, EPOLLIN) != 0)
        by_daemon_end(daemon, 3, "cannot create a timer: %s", strerror(errno));
}

void by_recovery_close(struct by_daemon *daemon)
{
    struct by_recovery *recovery = daemon->recovery;

    if (recovery == NULL)
        return;
    for (uint32_t i = 0; i < recovery->place_count; i++) {
        forget_base(&recovery->places[i]);
        free(recovery->places[i].image_of);
    }
    free(recovery->places);
    if (recovery->timer.fd >= 0) {
        by_daemon_unwatch(daemon, &recovery->timer);
        close(recovery->timer.fd);
    }
    by_recover_close(daemon->recover);
    free(recovery);
    daemon->recovery = NULL;
}
