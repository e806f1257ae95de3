/* The order in which the parts of banyand handle events. See reduce.h. */
#include "control/service/daemon/reduce.h"

#include "control/service/daemon/ahead.h"
#include "control/service/daemon/groups.h"
#include "control/service/daemon/history.h"
#include "control/service/daemon/http.h"
#include "control/service/daemon/jobs.h"
#include "control/service/daemon/latency.h"
#include "control/service/daemon/members.h"
#include "control/service/daemon/notice.h"
#include "control/service/daemon/recovery.h"
#include "control/service/daemon/renew.h"
#include "control/service/daemon/standby.h"

/* Handles an event while this daemon leads. Before that, the state of switches and links is only
 * recorded; after BY_EVENT_LED recovery reads it. */
static void lead(struct by_daemon *daemon, const struct by_daemon_event *event)
{
    if (event->kind == BY_EVENT_TICK) {
        by_http_tick(daemon);
        by_history_tick(daemon);
        by_renew_tick(daemon);
    }
    /* Recovery precedes requests: while its change is under way, requests wait. */
    by_recovery_event(daemon, event);
    if (event->kind == BY_EVENT_TICK) {
        by_members_tick(daemon);
        by_groups_tick(daemon);
        by_notice_tick(daemon);
    }
    if (event->kind == BY_EVENT_TICK || event->kind == BY_EVENT_PUSHED)
        by_jobs_step(daemon);
    if (event->kind == BY_EVENT_TICK) {
        by_ahead_tick(daemon);
        by_standby_tick(daemon);
    }
}

void by_reduce(struct by_daemon *daemon, const struct by_daemon_event *event)
{
    const bool *used;

    switch (event->kind) {
    case BY_EVENT_BEAT:
        by_switches_beat(daemon, event->beat,
                         event->beat->error != 0 && by_recovery_suspects(daemon, event->beat->node));
        if (daemon->start == NULL && !daemon->ending)
            by_notice_tick(daemon);
        break;
    case BY_EVENT_WORKED:
        event->task->done(daemon, event->task);
        return;
    case BY_EVENT_ANSWERED:
        by_notice_switch(daemon, by_switch_find(daemon, event->node), event->beat);
        return;
    case BY_EVENT_COUNTED:
        by_notice_host(daemon, event->node, event->data, event->bytes);
        return;
    case BY_EVENT_MEASURED:
        by_latency_take(daemon, event);
        return;
    case BY_EVENT_RANK:
        /* ALIVE repeats what a change that was under way has ignored. */
        if (event->rank_event == BY_RECOVER_RANK_CAME || event->rank_event == BY_RECOVER_RANK_CARRIED ||
            event->rank_event == BY_RECOVER_RANK_ALIVE)
            by_standby_moved(daemon, event->job, event->gen);
        by_recovery_rank(daemon, event->rank_event, event->job, event->rank, event->gen, event->number);
        used =
            event->rank_event == BY_RECOVER_RANK_SUSPECTS ? by_recovery_suspected(daemon, event->job) : NULL;
        if (used != NULL)
            by_switches_ask(daemon, used);
        return;
    case BY_EVENT_LED:
    case BY_EVENT_SWITCH_UP:
    case BY_EVENT_SWITCH_DOWN:
    case BY_EVENT_SWITCH_GONE:
    case BY_EVENT_SWITCH_REBOOTED:
    case BY_EVENT_LINK_DOWN:
    case BY_EVENT_LINK_UP:
    case BY_EVENT_RECORDED:
    case BY_EVENT_PUSHED:
    case BY_EVENT_TICK:
    default:
        if (daemon->start == NULL && !daemon->ending)
            lead(daemon, event);
        break;
    }
    /* A heartbeat may be the last one for which the election waits. */
    if (daemon->start != NULL && !daemon->ending &&
        (event->kind == BY_EVENT_BEAT || event->kind == BY_EVENT_TICK))
        by_start_tick(daemon);
}
