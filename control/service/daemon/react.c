/* Who reacts to events, in which order. See daemon.h; the loop's thread. */
#include "control/service/daemon/daemon.h"
#include "control/service/daemon/http.h"
#include "control/service/daemon/jobs.h"
#include "control/service/daemon/notice.h"
#include "control/service/daemon/recovery.h"
#include "control/service/daemon/renew.h"

void by_daemon_tell(struct by_daemon *daemon, const struct by_daemon_event *event)
{
    if (daemon->start != NULL || daemon->ending)
        return; /* what there is to know is there when the daemon leads */
    if (event->kind == BY_EVENT_TICK) {
        by_http_tick(daemon);
        by_renew_tick(daemon);
    }
    /* Recovering comes first: what it starts has the change, and requests wait. */
    by_recovery_event(daemon, event);
    if (event->kind == BY_EVENT_TICK)
        by_notice_tick(daemon);
    if (event->kind == BY_EVENT_TICK || event->kind == BY_EVENT_PUSHED)
        by_jobs_step(daemon);
}
