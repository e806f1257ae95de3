/* The steps of a change, on the worker and on the loop. See changes.h. */
#include "control/service/daemon/changes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/service/daemon/ahead_plans.h"
#include "control/service/daemon/standby_sets.h"
#include "control/service/daemon/state.h"
#include "control/tables/keyed.h"
#include "offload/base/errors.h"

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void by_change_loss(const struct by_daemon *daemon, struct by_fabric_loss *loss)
{
    const struct by_topology *topology = daemon->topology;

    by_fabric_loss_copy(loss, &daemon->loss, topology);
    for (uint32_t n = 0; daemon->recover != NULL && n < topology->node_count; n++)
        loss->nodes[n] |= by_recover_held(daemon->recover, false, n);
    for (uint32_t l = 0; daemon->recover != NULL && l < topology->link_count; l++)
        loss->links[l] |= by_recover_held(daemon->recover, true, l);
}

struct by_change *by_change_new(struct by_daemon *daemon)
{
    struct by_change *change = by_alloc(1, sizeof(*change));
    uint32_t n = daemon->topology->node_count;

    change->topology = daemon->topology;
    change->lower = daemon->options.lower;
    change->state = daemon->state;
    change->access = daemon->options.access;
    change->access.election_id = daemon->election_id;
    change->events = daemon->events;
    change->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (change->stop_fd < 0)
        change->stop_fd = 0; /* then plans and pushes end only with their time limits */
    change->apart = (struct by_apart){.limit_ms = daemon->options.plan_limit_s * 1000,
                                      .stop_fd = by_work_stop_fd(daemon->work),
                                      .yield_fd = change->stop_fd};
    by_change_loss(daemon, &change->loss);
    change->limits = by_alloc(n, sizeof(*change->limits));
    change->images = by_alloc(n, sizeof(*change->images));
    for (uint32_t i = 0; i < daemon->switch_count; i++) {
        const by_HelloReply *hello = &daemon->switches[i].hello;

        change->limits[daemon->switches[i].node] = (struct by_admit_limits){.ports = hello->port_count,
                                                                            .slots = hello->slot_count,
                                                                            .entries = hello->entry_max,
                                                                            .payload_max = hello->payload_max,
                                                                            .shares = hello->share_max};
    }
    change->jobs = by_alloc(BY_DAEMON_JOBS_MAX, sizeof(*change->jobs));
    for (uint32_t i = 0; i < daemon->job_count; i++)
        if (daemon->jobs[i]->tables != NULL && daemon->jobs[i]->state != BY_JOB_FAILED)
            change->jobs[change->job_count++] = (struct by_change_job){.job = daemon->jobs[i]};
    return change;
}

struct by_change_job *by_change_find(const struct by_change *change, uint16_t job)
{
    for (uint32_t i = 0; i < change->job_count; i++)
        if (change->jobs[i].job->spec.job == job)
            return &change->jobs[i];
    return NULL;
}

void by_change_touch(struct by_change *change, struct by_job *job, bool repair)
{
    struct by_change_job *entry = by_change_find(change, job->spec.job);
    uint32_t at = 0;

    if (entry == NULL) {
        while (at < change->job_count && change->jobs[at].job->spec.job < job->spec.job)
            at++;
        memmove(&change->jobs[at + 1], &change->jobs[at], (change->job_count - at) * sizeof(*change->jobs));
        change->job_count++;
        entry = &change->jobs[at];
        *entry = (struct by_change_job){.job = job};
    }
    job->gen_last = by_job_gen_next(job->gen_last);
    entry->anew = true;
    entry->repair = repair;
    entry->gen = job->gen_last;
}

void by_change_stand(struct by_change *change, const struct by_job *job, uint16_t gen, uint32_t count)
{
    struct by_change_job *entry = by_change_find(change, job->spec.job);

    entry->stand = true;
    entry->standby_gen = gen;
    entry->standby_most = count;
}

void by_change_leave(struct by_change *change, const struct by_job *job)
{
    struct by_change_job *entry = by_change_find(change, job->spec.job);

    change->ended = job->spec.job;
    if (entry == NULL)
        return;
    memmove(entry, entry + 1, (size_t)(change->jobs + change->job_count - (entry + 1)) * sizeof(*entry));
    change->job_count--;
}

/* Writes why the windows are smaller than possible: a switch is too small, or other jobs hold
 * slots. */
static void note_window(const struct by_change *change, const struct by_job_tables *tables, uint32_t full,
                        char *note, size_t bytes)
{
    for (uint32_t i = 0; i < change->topology->node_count; i++) {
        uint64_t need = (uint64_t)tables->need[i].slots / tables->window * full;

        if (change->topology->nodes[i].compute || change->limits[i].slots == 0 ||
            need <= change->limits[i].slots)
            continue;
        snprintf(note, bytes,
                 "its windows are %u slots instead of %u, which would require %llu of the %u slots of %s",
                 tables->window, full, (unsigned long long)need, change->limits[i].slots,
                 change->topology->nodes[i].name);
        return;
    }
    snprintf(note, bytes, "its windows are %u slots instead of %u: more do not fit beside the other jobs",
             tables->window, full);
}

/* Lists the other jobs of the change that have tables by now, with their standbys if `stand`; the
 * caller frees it. */
static struct by_admit_job *list_others(const struct by_change *change, const struct by_change_job *entry,
                                        bool stand, uint32_t *count)
{
    struct by_admit_job *others =
        by_alloc((size_t)change->job_count * (BY_STANDBYS_MAX + 1), sizeof(*others));

    *count = 0;
    for (uint32_t i = 0; i < change->job_count; i++) {
        const struct by_change_job *other = &change->jobs[i];
        struct by_job_tables *const *standbys;
        uint32_t standby_count;

        if (other == entry || other->error != 0 || by_change_tables(other) == NULL)
            continue;
        others[(*count)++] =
            (struct by_admit_job){.spec = &other->job->spec, .tables = by_change_tables(other)};
        standbys = by_change_standbys(change, other, &standby_count);
        for (uint32_t k = 0; stand && k < standby_count; k++)
            others[(*count)++] = (struct by_admit_job){.spec = &other->job->spec, .tables = standbys[k]};
    }
    return others;
}

/* Returns the window of a new communicator. */
static uint32_t budget(const struct by_change *change, const struct by_change_job *entry)
{
    uint32_t count, window;
    struct by_admit_job *others = list_others(change, entry, true, &count);

    window = by_admit_budget(change->topology, others, count, change->limits);
    free(others);
    return window;
}

/* Finds slots for the job beside the others, with a smaller window if `shrink`. */
static int admit_slots(struct by_change *change, struct by_change_job *entry, bool shrink)
{
    struct by_admit_job job = {.spec = &entry->job->spec, .tables = entry->tables};
    uint32_t count, fits = 0, asked = entry->tables->window;
    uint32_t least = entry->job->spec.is_group ? BY_ADMIT_WINDOW_LEAST : 1;
    struct by_admit_job *others = list_others(change, entry, true, &count);
    int error = by_admit_slots(change->topology, &job, others, count, change->limits, &fits, &entry->problem);

    if (error != 0 && fits >= least && shrink) {
        entry->tables->window = fits;
        error = by_fabric_lower(change->topology, entry->job->spec.job, &change->lower, entry->tables,
                                &entry->problem);
        if (error == 0)
            error =
                by_admit_slots(change->topology, &job, others, count, change->limits, &fits, &entry->problem);
        if (error == 0)
            note_window(change, entry->tables, asked, entry->tables->note, sizeof(entry->tables->note));
    }
    free(others);
    return error;
}

/* Whether a job has standbys, which give way to jobs. */
static bool has_standbys(const struct by_change *change)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < change->job_count && count == 0; i++)
        by_change_standbys(change, &change->jobs[i], &count);
    return count > 0;
}

/* Admits the job beside the others. */
static int admit(struct by_change *change, struct by_change_job *entry, bool shrink)
{
    struct by_admit_job job = {.spec = &entry->job->spec, .tables = entry->tables};
    struct by_admit_job *others;
    uint32_t count;
    int error = by_admit_fabric(change->topology, entry->tables->lowering, change->limits, &entry->problem);

    if (error != 0)
        return error;
    error = admit_slots(change, entry, shrink && !has_standbys(change));
    if (error == BY_ELIMIT && has_standbys(change)) {
        change->bare = true;
        error = admit_slots(change, entry, shrink);
    }
    others = list_others(change, entry, false, &count);
    if (error == 0)
        error = by_admit_share(change->topology, &job, others, count, change->limits, &entry->problem);
    free(others);
    return error;
}

/* Makes the tables of one job. */
static int make_job(struct by_change *change, struct by_change_job *entry)
{
    const struct by_job_spec *spec = &entry->job->spec;
    const struct by_job_tables *old = entry->job->tables;
    struct by_job_tables *tables = by_alloc(1, sizeof(*tables));
    bool shrink = old != NULL || spec->window == 0;
    int error;

    entry->tables = tables;
    tables->gen = entry->gen;
    tables->window = old != NULL ? old->window : spec->window;
    if (old == NULL && spec->is_group)
        tables->window = budget(change, entry);
    tables->lost_links = by_alloc(change->topology->link_count, sizeof(*tables->lost_links));
    memcpy(tables->lost_links, change->loss.links,
           change->topology->link_count * sizeof(*tables->lost_links));
    error = by_lower_draw(tables->secret, &entry->problem);
    if (error == 0)
        error = by_fabric_plan(
            change->topology, spec, &change->loss, entry->repair ? old : NULL,
            entry->repair ? by_ahead_find(entry->job->ahead, change->topology, &change->loss) : NULL,
            &change->apart, tables, &entry->problem);
    if (error == 0)
        error = by_fabric_lower(change->topology, spec->job, &change->lower, tables, &entry->problem);
    if (error == 0)
        error = admit(change, entry, shrink);
    if (error != 0) {
        by_job_tables_free(tables);
        entry->tables = NULL;
    }
    return error;
}

/* Finds slots for a standby beside all jobs, with a smaller window if necessary. */
static int admit_standby(struct by_change *change, struct by_change_job *entry, struct by_job_tables *tables)
{
    struct by_admit_job job = {.spec = &entry->job->spec, .tables = tables};
    uint32_t count, fits;
    struct by_admit_job *others = list_others(change, NULL, true, &count);
    int error = by_admit_slots(change->topology, &job, others, count, change->limits, &fits, &entry->problem);

    if (error != 0 && fits >= BY_ADMIT_WINDOW_LEAST) {
        tables->window = fits;
        error =
            by_fabric_lower(change->topology, entry->job->spec.job, &change->lower, tables, &entry->problem);
        if (error == 0)
            error =
                by_admit_slots(change->topology, &job, others, count, change->limits, &fits, &entry->problem);
    }
    free(others);
    return error;
}

/* Makes the standbys of a job; entry->problem: why there are no more. Returns 0, or BY_EABORTED
 * when the change must end. */
static int make_standbys(struct by_change *change, struct by_change_job *entry)
{
    struct by_standby_sets sets = {.topology = change->topology,
                                   .job = entry->job,
                                   .loss = &change->loss,
                                   .lower = &change->lower,
                                   .apart = &change->apart};
    const struct by_job_tables *last = entry->job->tables;
    uint16_t gen = entry->standby_gen;
    int error = by_standby_sets_find(&sets, &entry->problem);

    while (error == 0 && entry->standby_count < entry->standby_most) {
        struct by_job_tables *tables;

        error = by_standby_sets_make(&sets, entry->standby_most - entry->standby_count, gen, last, &tables,
                                     &entry->problem);
        if (error == 0)
            error = admit_standby(change, entry, tables);
        if (error != 0) {
            by_job_tables_free(tables);
            break;
        }
        by_standby_sets_take(&sets, tables);
        entry->standbys[entry->standby_count++] = tables;
        last = tables;
        gen = by_job_gen_next(gen);
    }
    entry->part_count = sets.part_count;
    entry->covered_count = sets.covered_count;
    by_standby_sets_free(&sets);
    return error == BY_EABORTED ? error : 0;
}

static struct by_lower_job lower_job(const struct by_job *job, const struct by_job_tables *tables,
                                     struct by_fraction share)
{
    return (struct by_lower_job){.job = job->spec.job,
                                 .first_tree = tables->first_tree,
                                 .plan_count = tables->plan_count,
                                 .plans = (const struct by_plan *const *)tables->plans,
                                 .gen = tables->gen,
                                 .window = tables->window,
                                 .slot_base = tables->slot_base,
                                 .lost_links = tables->lost_links,
                                 .secret = tables->secret,
                                 .share = by_lower_share(share)};
}

/* Lists all generations of all jobs that have tables; the caller frees it. */
static struct by_lower_job *list_generations(const struct by_change *change, uint32_t *count)
{
    struct by_lower_job *jobs = by_alloc((size_t)change->job_count * (BY_STANDBYS_MAX + 1), sizeof(*jobs));

    *count = 0;
    for (uint32_t i = 0; i < change->job_count; i++) {
        const struct by_change_job *entry = &change->jobs[i];
        const struct by_job_tables *tables = entry->error == 0 ? by_change_tables(entry) : NULL;
        uint32_t standby_count;
        struct by_job_tables *const *standbys = by_change_standbys(change, entry, &standby_count);

        if (tables != NULL)
            jobs[(*count)++] = lower_job(entry->job, tables, entry->job->spec.share);
        for (uint32_t k = 0; k < standby_count; k++)
            jobs[(*count)++] = lower_job(entry->job, standbys[k], (struct by_fraction){0, 1});
    }
    return jobs;
}

/* Makes the images of all switches, for all jobs that have tables. */
static int make_images(struct by_change *change)
{
    uint32_t count;
    struct by_lower_job *jobs = list_generations(change, &count);
    struct by_lower_options options = change->lower;
    struct by_lowering *lowering = NULL;
    int error;

    options.slots = UINT32_MAX; /* admission has checked each switch */
    error = by_lower(change->topology, jobs, count, &options, &lowering, &change->problem);
    for (uint32_t i = 0; i < change->topology->node_count && error == 0; i++) {
        struct by_change_image *image = &change->images[i];

        if (!by_site_is_switch(change->topology, i))
            continue;
        error = by_lowering_image(lowering, i, &image->bytes, &image->size, &change->problem);
        if (error == 0)
            image->hash = by_image_hash(image->bytes, image->size);
    }
    by_lowering_free(lowering);
    free(jobs);
    return error;
}

static void run_plan(struct by_task *task)
{
    struct by_change *change = (struct by_change *)task;
    struct by_problem ignored = {0};
    double start = seconds_now();

    for (uint32_t i = 0; i < change->job_count && change->error == 0; i++) {
        struct by_change_job *entry = &change->jobs[i];

        if (entry->anew)
            entry->error = make_job(change, entry);
        if (entry->error == BY_EABORTED)
            change->error = entry->error;
    }
    for (uint32_t i = 0; i < change->job_count && change->error == 0; i++)
        if (change->jobs[i].stand)
            change->error = make_standbys(change, &change->jobs[i]);
    if (change->error == 0)
        change->error = make_images(change);
    if (change->error == 0)
        change->recorded = by_state_reserve(change->state, change, &ignored) == 0; /* else with the push */
    change->plan_seconds = seconds_now() - start;
}

static void plan_done(struct by_daemon *daemon, struct by_task *task)
{
    struct by_change *change = (struct by_change *)task;

    daemon->counts.plan_seconds += change->plan_seconds;
    change->planned(daemon, change);
}

void by_change_plan(struct by_daemon *daemon, struct by_change *change, by_change_fn *planned)
{
    daemon->change = change;
    change->planned = planned;
    change->task = (struct by_task){.run = run_plan, .done = plan_done};
    by_work_do(daemon->work, &change->task);
}

static int record_push(void *user, struct by_problem *problem)
{
    struct by_change *change = user;
    int error = by_state_begin(change->state, change, problem);

    change->begun = error == 0;
    if (change->begun && !change->recorded) {
        change->recorded = true;
        by_event_put(change->events, &(struct by_daemon_event){.kind = BY_EVENT_RECORDED});
    }
    return error;
}

/* Writes the record of a push that does not wait until the disk has it. */
static int write_push(void *user, struct by_problem *problem)
{
    struct by_change *change = user;
    int error = by_state_write(change->state, change, problem);

    change->begun = error == 0;
    return error;
}

static void run_push(struct by_task *task)
{
    struct by_change *change = (struct by_change *)task;
    struct by_push_record record = {.write = record_push, .user = change};
    enum by_push_settled settled;
    double start = seconds_now();
    /* While an earlier push may be settled at the next start, its switches must stay as it left
     * them until this one is recorded. */
    bool alone = change->target_count == 0 || !by_state_is_settled(change->state);

    change->settled = true;
    change->begun = false;
    change->push_seconds = 0; /* that of an earlier push of the change is counted */
    change->late = !alone && by_state_may_follow(change->state, change);
    if (change->late)
        record.write = write_push;
    change->error = alone ? record_push(change, &change->problem) : 0;
    if (change->error == 0 && change->target_count > 0)
        change->error = by_push_recorded(change->targets, change->target_count, &change->access,
                                         alone ? NULL : &record, &change->problem);
    if (!change->begun)
        return; /* nothing was recorded, and the record of an earlier push stays */
    if (change->error != 0) {
        struct by_problem ignored = {0};

        change->settled =
            by_push_settle(change->targets, change->target_count, &change->access, &settled, &ignored) == 0;
        if (change->settled && settled == BY_PUSH_FORWARD)
            change->error = 0;
    }
    if (change->late && change->error != 0) {
        /* Switches may have committed. If this program ends now, the store lacks their tables, and
         * the next one replaces them. */
        by_state_discard(change->state);
        change->begun = false;
    }
    change->push_seconds = seconds_now() - start;
    for (uint32_t i = 0; i < change->target_count; i++)
        change->sent += change->targets[i].sent;
}

/* Records the end of a push, or the whole push. No one waits for it: until then the next start
 * would decide. */
static void run_record(struct by_task *task)
{
    const struct by_change_record *record = (struct by_change_record *)task;

    if (record->late) {
        by_state_commit(record->state);
        return;
    }
    by_state_finish(record->state, record->done, record->settled);
}

static void record_done(struct by_daemon *daemon, struct by_task *task)
{
    (void)daemon;
    (void)task;
}

static void push_done(struct by_daemon *daemon, struct by_task *task)
{
    struct by_change *change = (struct by_change *)task;
    int error = change->error;

    daemon->pushed_ms = daemon->now_ms;
    /* The worker has ended the previous record: its tasks keep their order. */
    if (change->begun) {
        daemon->record = (struct by_change_record){.task = {.run = run_record, .done = record_done},
                                                   .state = change->state,
                                                   .late = change->late,
                                                   .done = error == 0,
                                                   .settled = change->settled};
        by_work_do(daemon->work, &daemon->record.task);
    }
    daemon->counts.pushes++;
    daemon->counts.push_errors += error != 0;
    daemon->counts.push_seconds += change->push_seconds;
    for (uint32_t i = 0; i < change->target_count && error == 0; i++) {
        struct by_daemon_switch *device = by_switch_find(daemon, change->target_nodes[i]);

        device->hello.table_hash = change->targets[i].hash; /* until the next answer confirms it */
    }
    change->pushed(daemon, change);
    by_daemon_tell(daemon, &(struct by_daemon_event){.kind = BY_EVENT_PUSHED, .error = error});
}

void by_change_push(struct by_daemon *daemon, struct by_change *change, by_change_fn *pushed)
{
    eventfd_t stops;

    daemon->change = change;
    change->pushed = pushed;
    change->task = (struct by_task){.run = run_push, .done = push_done};
    if (change->stop_fd > 0)
        eventfd_read(change->stop_fd, &stops); /* of the plans, or of an earlier push */
    change->access.stop_fd = change->stop_fd;
    change->push_id = change->access.push_id = by_push_election();
    free(change->targets);
    free(change->target_nodes);
    free(change->nonces);
    change->targets = by_alloc(daemon->switch_count, sizeof(*change->targets));
    change->target_nodes = by_alloc(daemon->switch_count, sizeof(*change->target_nodes));
    change->nonces = by_alloc(daemon->topology->node_count, sizeof(*change->nonces));
    change->target_count = 0;
    for (uint32_t i = 0; i < daemon->switch_count; i++) {
        const struct by_daemon_switch *device = &daemon->switches[i];
        const struct by_change_image *image = &change->images[device->node];

        change->nonces[device->node] = device->hello.boot_nonce;
        if (device->state != BY_SWITCH_UP || device->hello.table_hash == image->hash)
            continue;
        change->target_nodes[change->target_count] = device->node;
        change->targets[change->target_count++] = (struct by_push_target){.name = device->name,
                                                                          .address = device->address,
                                                                          .image = image->bytes,
                                                                          .bytes = image->size,
                                                                          .base = device->image.bytes,
                                                                          .base_bytes = device->image.size};
    }
    by_work_do(daemon->work, &change->task);
}

bool by_change_has_target(const struct by_change *change, uint32_t node)
{
    for (uint32_t i = 0; i < change->target_count; i++)
        if (change->target_nodes[i] == node)
            return true;
    return false;
}

void by_change_stop(struct by_change *change)
{
    if (change->stop_fd > 0)
        eventfd_write(change->stop_fd, 1);
}

void by_change_yield(struct by_change *change)
{
    if (change->targets == NULL)
        by_change_stop(change);
}

/* Gives the tables of a job the new standbys, or none. */
static void adopt_standbys(struct by_change_job *entry)
{
    struct by_job_tables *tables = entry->job->tables;
    uint32_t had = tables->standby_count;

    for (uint32_t i = 0; i < had; i++)
        by_job_tables_free(tables->standbys[i]);
    memcpy(tables->standbys, entry->standbys, sizeof(tables->standbys));
    tables->standby_count = entry->standby_count;
    entry->standby_count = 0;
    if (!entry->stand)
        entry->job->standby_gen = 0; /* it may get them again */
    entry->job->standby_ends |= had > 0;
    entry->job->standby_tells |= had > 0 || tables->standby_count > 0;
}

void by_change_adopt(struct by_daemon *daemon, struct by_change *change)
{
    for (uint32_t i = 0; i < change->job_count; i++) {
        struct by_change_job *entry = &change->jobs[i];

        if (entry->anew && entry->tables != NULL) {
            by_job_tables_free(entry->job->tables);
            entry->job->tables = entry->tables;
            entry->tables = NULL;
        } else if (!entry->anew && (entry->stand || change->bare)) {
            adopt_standbys(entry);
        }
    }
    for (uint32_t i = 0; i < daemon->switch_count; i++) {
        struct by_daemon_switch *device = &daemon->switches[i];

        free(device->image.bytes);
        device->image = change->images[device->node];
        change->images[device->node] = (struct by_change_image){0};
    }
}

void by_change_free(struct by_change *change)
{
    if (change == NULL)
        return;
    for (uint32_t i = 0; i < change->job_count; i++) {
        if (change->jobs[i].anew)
            by_job_tables_free(change->jobs[i].tables);
        for (uint32_t k = 0; k < change->jobs[i].standby_count; k++)
            by_job_tables_free(change->jobs[i].standbys[k]);
    }
    for (uint32_t i = 0; i < change->topology->node_count; i++)
        free(change->images[i].bytes);
    by_fabric_loss_free(&change->loss);
    free(change->limits);
    free(change->images);
    free(change->jobs);
    free(change->targets);
    free(change->target_nodes);
    free(change->nonces);
    if (change->stop_fd > 0)
        close(change->stop_fd);
    free(change);
}
