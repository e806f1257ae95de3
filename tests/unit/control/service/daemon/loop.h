/* The server of hosts for a fabric of two hosts, h0 and h1, with the test's own loop in place of
 * the daemon's. One at a time; single-threaded. */
#ifndef BY_TEST_DAEMON_LOOP_H
#define BY_TEST_DAEMON_LOOP_H

#include "control/service/daemon/members.h"

/* Opens it with these options. Returns the error of by_members_open. */
int members_open(const struct by_daemon_options *options);
void members_close(void);
/* Opens it at a socket in a folder of its own, with `reduce` as the daemon's. Returns the error of
 * by_members_open. */
int members_serve(void (*reduce)(struct by_daemon *daemon, const struct by_daemon_event *event));
/* Closes it and removes the folder. Returns 0, or -1 if something is left in it. */
int members_stop(void);
/* Connects to that socket. Returns the descriptor. */
int members_join(void);
struct by_daemon *members_daemon(void);
/* Adds a running job, "1=allreduce". The daemon owns it until members_close. */
struct by_job *members_job(const char *text);
/* Handles all pending events once, then a tick. */
void members_turn(void);

#endif
