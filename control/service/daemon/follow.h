/*
 * What a banyand serves while it follows: at the doors of its options (http.h) its status and
 * metrics, which name it as a follower, and the leader. All other requests get 503 with the leader
 * as the reason; commands with a list of addresses then use the next one. The leader's thread waits
 * for etcd meanwhile, so libmicrohttpd has a thread of its own. Neighbours: lead.c, which sees the
 * leader; http.c serves the same doors once this process leads.
 */
#ifndef BY_SERVICE_DAEMON_FOLLOW_H
#define BY_SERVICE_DAEMON_FOLLOW_H

#include "control/service/daemon/daemon.h"

struct by_follow;

/* Opens no door yet. The options and the name of the topology must outlive it. */
struct by_follow *by_follow_open(struct by_daemon_options *options, const char *topology);
/*
 * Records a look for by_lead_wait, whose context is a struct by_follow. The first one opens the
 * doors; port 0 becomes the free port found. Returns 0, or BY_EIO with `problem` when a door cannot
 * be opened: this process could not lead either. One thread at a time.
 */
int by_follow_see(void *context, const char *leader, const char *text, struct by_problem *problem);
/* Closes the doors and frees everything. NULL is allowed. */
void by_follow_close(struct by_follow *follow);

#endif
