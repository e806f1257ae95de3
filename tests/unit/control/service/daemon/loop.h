/* The server of hosts of a fabric of two hosts, h0 and h1, with a loop of the test's own in place
 * of the daemon's. One at a time; single-threaded. */
#ifndef BY_TEST_DAEMON_LOOP_H
#define BY_TEST_DAEMON_LOOP_H

#include "control/service/daemon/members.h"

/* Opens it with these options; what by_members_open says. */
int members_open(const struct by_daemon_options *options);
void members_close(void);
struct by_daemon *members_daemon(void);
/* A job more, "1=allreduce", that runs; the daemon's, until members_close. */
struct by_job *members_job(const char *text);
/* What there is to do, once, and a tick. */
void members_turn(void);

#endif
