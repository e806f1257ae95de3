/* Visits a switch and reads its facts. See switches.h. Single-threaded. */
#include "control/view/doctor/switches.h"

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/*
 * The kernel reports a new carrier up to a second late, so a port that seems down is queried again
 * after this time (us).
 */
#define LATE_US 1200000u

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static bool has_down(const by_CountersReply *counters)
{
    for (pb_size_t i = 0; i < counters->ports_count; i++)
        if (counters->ports[i].down)
            return true;
    return false;
}

void by_switch_facts_read(struct by_switch_facts *facts, const struct by_session_options *access)
{
    struct by_session *session = NULL;
    uint64_t begin;

    facts->ahead_ns = INT64_MIN;
    facts->error = by_session_open(facts->address, access, &session, &facts->problem);
    if (facts->error != 0)
        return;
    begin = clock_ns(CLOCK_MONOTONIC);
    facts->error = by_session_hello(session, &facts->hello, &facts->problem);
    facts->round_ns = clock_ns(CLOCK_MONOTONIC) - begin;
    if (facts->error == 0 && facts->hello.unix_ns != 0)
        facts->ahead_ns = (int64_t)(facts->hello.unix_ns - (clock_ns(CLOCK_REALTIME) - facts->round_ns / 2));
    if (facts->error == 0)
        facts->error = by_session_counters(session, &facts->counters, &facts->problem);
    if (facts->error == 0 && has_down(&facts->counters)) {
        usleep(LATE_US);
        facts->error = by_session_counters(session, &facts->counters, &facts->problem);
    }
    /* An older switch does not describe its ports. */
    if (facts->error == 0 && by_session_ports(session, 0, &facts->ports, &facts->problem) != 0)
        facts->ports = (by_PortsReply)by_PortsReply_init_zero;
    by_session_close(session);
}

void by_switch_facts_free(struct by_switch_facts *facts)
{
    free(facts->name);
    free(facts->address);
    free(facts->path);
    free(facts->image);
}
