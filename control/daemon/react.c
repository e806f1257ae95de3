/* Who reacts to events, in which order. See daemon.h; the loop's thread. */
#include "control/daemon/daemon.h"
#include "control/daemon/jobs.h"

void by_daemon_tell(struct by_daemon *daemon, const struct by_event *event)
{
    /* Recovering comes first: what it starts has the change, and requests wait. */
    if (event->kind == BY_EVENT_TICK || event->kind == BY_EVENT_PUSHED)
        by_jobs_step(daemon);
}
