/*
 * From the first heartbeats to leadership. First the daemon reads the switches, until each has
 * answered or is down. Then comes the election: if a switch has a writer other than the last run of
 * this daemon, its requests are counted for a while. If they continue, another controller leads,
 * and this one ends, unless it was started with --takeover. The loop's thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "control/base/alloc.h"
#include "control/service/daemon/daemon.h"
#include "control/service/daemon/jobs.h"
#include "control/service/daemon/state.h"
#include "control/tables/file.h"
#include "offload/linux/notify.h"

/* How long a writer's requests are counted (milliseconds): longer than the longest heartbeat. */
#define LOOK_MS 1200u

struct by_start {
    bool looking;
    uint64_t since_ms;
    uint64_t *count; /* by switch: requests of writers when the counting began */
};

void by_start_open(struct by_daemon *daemon)
{
    daemon->start = by_alloc(1, sizeof(*daemon->start));
    daemon->start->count = by_alloc(daemon->switch_count, sizeof(uint64_t));
    by_switches_start(daemon);
}

void by_start_close(struct by_daemon *daemon)
{
    if (daemon->start != NULL)
        free(daemon->start->count);
    free(daemon->start);
    daemon->start = NULL;
}

/* Creates the jobs of the command line, which daemon.c has checked. */
static void create_jobs(struct by_daemon *daemon)
{
    for (uint32_t i = 0; i < daemon->options.job_count; i++) {
        struct by_job_spec spec;
        struct by_problem problem = {0};

        if (by_job_parse(daemon->options.jobs[i], daemon->topology, &spec, &problem) != 0)
            continue;
        if (by_jobs_find(daemon, spec.job) != NULL)
            by_job_spec_free(&spec); /* loaded from the last run */
        else
            by_jobs_create(daemon, &spec, NULL, NULL);
    }
}

/*
 * Whether the push may have gone through: one of its switches has its image, and all had validated
 * it, so the others get it again. If all of them have restarted since, or do not answer, nothing
 * shows what became of it. It may have been acknowledged without a record of its end (the disk was
 * full), so it is completed too.
 */
static bool has_begun(struct by_daemon *daemon, const struct by_state_open_push *push,
                      const struct by_push_target *targets, uint32_t count)
{
    bool denied = false;

    for (uint32_t i = 0; i < push->count; i++) {
        const struct by_state_target *target = &push->targets[i];
        const struct by_daemon_switch *device = by_switch_find(daemon, target->node);
        uint64_t nonce;

        if (device == NULL || device->state != BY_SWITCH_UP)
            continue;
        if (device->hello.table_hash == target->hash)
            return true;
        nonce = device->hello.boot_nonce;
        for (uint32_t j = 0; j < count; j++) /* it may have restarted since its heartbeat */
            if (targets[j].boot_nonce != 0 && targets[j].name == device->name)
                nonce = targets[j].boot_nonce;
        denied |= nonce == target->nonce;
    }
    return !denied;
}

/* Settles a push that the last run began. */
static int settle(struct by_daemon *daemon, struct by_problem *problem)
{
    struct by_push_target *targets = by_alloc(daemon->switch_count, sizeof(*targets));
    struct by_session_options access = daemon->options.access;
    enum by_push_settled settled = BY_PUSH_CLEAR;
    struct by_state_open_push push;
    struct by_problem ignored = {0};
    uint32_t count = 0;
    bool forward, known = true;
    int error = by_state_pending(daemon->state, &push, problem);

    for (uint32_t i = 0; i < push.count && error == 0; i++) {
        struct by_daemon_switch *device = by_switch_find(daemon, push.targets[i].node);

        if (device != NULL && device->state == BY_SWITCH_UP)
            targets[count++] = (struct by_push_target){.name = device->name, .address = device->address};
    }
    access.election_id = daemon->election_id;
    if (error == 0 && count > 0)
        known = by_push_settle(targets, count, &access, &settled, &ignored) == 0;
    if (!known)
        by_daemon_say("%s", ignored.text);
    /* The last requests of the former controller may have taken effect after the heartbeats seen
     * here. Settling has fenced it off, so these hashes are final. */
    for (uint32_t i = 0; i < count && known; i++)
        by_switch_find(daemon, (uint32_t)by_topology_find(daemon->topology, targets[i].name))
            ->hello.table_hash = targets[i].hash;
    if (error == 0 && push.push_id != 0) {
        /* A push without switches was complete as soon as it was recorded: hosts may use it. */
        forward = settled == BY_PUSH_FORWARD || has_begun(daemon, &push, targets, count);
        by_daemon_say("a push was in progress when the last controller ended: it is %s",
                      forward ? "completed" : "discarded");
        error = by_state_settle(daemon->state, forward, problem);
    }
    by_state_pending_free(&push);
    free(targets);
    return error;
}

/* Loads jobs and tables of the last run. */
static int adopt(struct by_daemon *daemon, struct by_problem *problem)
{
    struct by_job **jobs;
    uint32_t count;
    int error = by_state_jobs(daemon->state, &jobs, &count, problem);

    if (error == 0)
        error = by_state_ended(daemon->state, daemon->gen_seen, problem);
    for (uint32_t i = 0; i < count; i++)
        by_jobs_insert(daemon, jobs[i]);
    free(jobs);
    for (uint32_t i = 0; i < daemon->switch_count && error == 0; i++) {
        struct by_daemon_switch *device = &daemon->switches[i];
        struct by_problem damage = {0};
        uint64_t nonce;

        if (by_state_image(daemon->state, device->node, &device->image, &nonce, &damage) != 0)
            by_daemon_say("%s", damage.text);
        device->restarted = device->state == BY_SWITCH_UP && nonce != 0 && nonce != device->hello.boot_nonce;
    }
    return error;
}

/* Reads the generations of jobs in tables of another controller. */
static void read_stranger(struct by_daemon *daemon, const struct by_daemon_switch *device)
{
    struct by_session *session = NULL;
    struct by_image_header header = {0};
    struct by_problem problem = {0};
    uint8_t *image = NULL;
    size_t bytes = 0;
    int error = by_session_open(device->address, &daemon->options.access, &session, &problem);

    if (error == 0)
        error = by_session_read(session, &image, &bytes, &problem);
    if (error == 0)
        error = by_image_explain(image, bytes, &problem);
    if (error != 0)
        by_daemon_say("switch %s: cannot read its table: %s", device->name, problem.text);
    else
        by_image_header(image, &header);
    for (uint32_t i = 0; error == 0 && i < header.count[BY_SECTION_JOB]; i++) {
        struct by_image_job job;

        by_image_job(image, i, &job);
        if (job.gen > daemon->gen_seen[job.job])
            daemon->gen_seen[job.job] = job.gen;
    }
    free(image);
    by_session_close(session);
}

static void read_strangers(struct by_daemon *daemon)
{
    for (uint32_t i = 0; i < daemon->switch_count; i++) {
        const struct by_daemon_switch *device = &daemon->switches[i];

        if (device->state != BY_SWITCH_UP || device->hello.table_hash == 0 ||
            device->hello.table_hash == device->image.hash)
            continue;
        by_daemon_say("switch %s has table %016" PRIx64
                      ", which is not from this controller: the next change "
                      "replaces it",
                      device->name, (uint64_t)device->hello.table_hash);
        read_stranger(daemon, device);
    }
}

/* Begins to lead: from here on events are handled. */
static void go(struct by_daemon *daemon)
{
    uint32_t up = 0;
    char http[32] = "off";

    if (daemon->options.http)
        snprintf(http, sizeof(http), "127.0.0.1:%u", daemon->options.http_port);
    by_start_close(daemon);
    for (uint32_t i = 0; i < daemon->switch_count; i++)
        up += daemon->switches[i].state == BY_SWITCH_UP;
    printf("banyand: ready, %u of %u switches are up, %u jobs run, election id %" PRIu64
           ", socket %s, http %s\n",
           up, daemon->switch_count, daemon->job_count, daemon->election_id,
           daemon->options.socket != NULL ? daemon->options.socket : "off", http);
    fflush(stdout);
    by_notify("READY=1");
    by_daemon_tell(daemon, &(struct by_daemon_event){.kind = BY_EVENT_LED});
    for (uint32_t i = 0; i < daemon->switch_count; i++) {
        struct by_daemon_switch *device = &daemon->switches[i];

        if (!device->restarted)
            continue;
        device->restarted = false;
        by_daemon_say("switch %s has restarted since the last controller ended", device->name);
        by_daemon_tell(daemon,
                       &(struct by_daemon_event){.kind = BY_EVENT_SWITCH_REBOOTED, .node = device->node});
    }
    create_jobs(daemon);
}

static void lead(struct by_daemon *daemon)
{
    uint64_t highest = by_state_election(daemon->state);
    struct by_problem problem = {0};
    int error;

    for (uint32_t i = 0; i < daemon->switch_count; i++)
        if (daemon->switches[i].hello.election_id > highest)
            highest = daemon->switches[i].hello.election_id;
    daemon->election_id = by_push_election();
    if (daemon->election_id <= highest) /* the clocks differ */
        daemon->election_id = highest + 1;
    error = by_state_elect(daemon->state, daemon->election_id, &problem);
    by_switches_lead(daemon);
    if (error == 0)
        error = settle(daemon, &problem);
    if (error == 0)
        error = adopt(daemon, &problem);
    if (error == 0)
        read_strangers(daemon);
    if (error != 0)
        by_daemon_end(daemon, 3, "%s", problem.text);
    else
        go(daemon);
}

/* Returns a switch that got a writer's request since the counting began, or NULL. */
static const struct by_daemon_switch *find_led(const struct by_daemon *daemon)
{
    for (uint32_t i = 0; i < daemon->switch_count; i++)
        if (daemon->switches[i].state == BY_SWITCH_UP &&
            daemon->switches[i].hello.election_count != daemon->start->count[i])
            return &daemon->switches[i];
    return NULL;
}

void by_start_tick(struct by_daemon *daemon)
{
    struct by_start *start = daemon->start;
    const struct by_daemon_switch *led;
    bool strangers = false;

    for (uint32_t i = 0; i < daemon->switch_count; i++) {
        if (daemon->switches[i].state == BY_SWITCH_UNKNOWN)
            return;
        /* A lower id is of an earlier run, whose successor ended before the switch knew it. */
        strangers |= daemon->switches[i].hello.election_id > by_state_election(daemon->state);
    }
    if (strangers && !daemon->options.takeover && !start->looking) {
        start->looking = true;
        start->since_ms = daemon->now_ms;
        for (uint32_t i = 0; i < daemon->switch_count; i++)
            start->count[i] = daemon->switches[i].hello.election_count;
        return;
    }
    led = start->looking ? find_led(daemon) : NULL;
    if (led != NULL)
        by_daemon_end(daemon, 3,
                      "switch %s is led by another controller, with election id %" PRIu64
                      ": end that one, or start this one with --takeover",
                      led->name, (uint64_t)led->hello.election_id);
    else if (!start->looking || daemon->now_ms - start->since_ms >= LOOK_MS)
        lead(daemon);
}
