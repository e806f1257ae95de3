/*
 * From the first heartbeats to leading. Switches are read until each has answered or been given up. Then the
 * election: where a switch has had a writer, and that one is not ourselves of before, its requests are
 * counted for a while; if they go on, another controller leads, and this one ends, unless it shall take over.
 * The loop's thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "control/daemon/daemon.h"
#include "control/daemon/jobs.h"
#include "control/topology/alloc.h"

/* How long a writer's requests are counted (milliseconds): longer than the longest heartbeat. */
#define LOOK_MS 1200u

struct by_start {
    bool looking;
    uint64_t since_ms;
    uint64_t *count; /* by switch: requests of writers when the look began */
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

/* Jobs of the command line are checked already (main.c). */
static void create_jobs(struct by_daemon *daemon)
{
    for (uint32_t i = 0; i < daemon->options.job_count; i++) {
        struct by_job_spec spec;
        struct by_problem problem = {0};

        if (by_job_parse(daemon->options.jobs[i], daemon->topology, &spec, &problem) == 0)
            by_jobs_create(daemon, &spec, NULL, NULL);
    }
}

static void lead(struct by_daemon *daemon)
{
    uint64_t highest = 0;
    uint32_t up = 0;

    for (uint32_t i = 0; i < daemon->switch_count; i++) {
        if (daemon->switches[i].hello.election_id > highest)
            highest = daemon->switches[i].hello.election_id;
        up += daemon->switches[i].state == BY_SWITCH_UP;
    }
    daemon->election_id = by_push_election();
    if (daemon->election_id <= highest) /* clocks differ */
        daemon->election_id = highest + 1;
    by_switches_lead(daemon);
    by_start_close(daemon);
    printf("banyand: ready, %u of %u switches are up, election id %" PRIu64 "\n", up, daemon->switch_count,
           daemon->election_id);
    fflush(stdout);
    create_jobs(daemon);
}

/* A switch that a writer has asked something since the look began, or NULL. */
static const struct by_switch *find_led(const struct by_daemon *daemon)
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
    const struct by_switch *led;
    bool strangers = false;

    for (uint32_t i = 0; i < daemon->switch_count; i++) {
        if (daemon->switches[i].state == BY_SWITCH_UNKNOWN)
            return;
        strangers |= daemon->switches[i].hello.election_id != 0;
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
