/*
 * Keyed jobs get another generation, and with it other keys, long before a tree's sequence numbers
 * come again (2^32 chunks): else what was recorded could be played again under the same key. How
 * many chunks a tree can have carried is known from switches' counters. Neighbours: recover.c plans
 * and pushes the next generation as it does after a fault. The loop's thread.
 */
#ifndef BY_SERVICE_DAEMON_RENEW_H
#define BY_SERVICE_DAEMON_RENEW_H

#include "control/service/daemon/daemon.h"

/* Chunks of one tree after which its job is renewed (count): half of what there are numbers for,
 * and ranks need but a heartbeat to go on. */
#define BY_RENEW_AFTER 2147483648u

/* At each heartbeat: renews the keyed jobs that are due. */
void by_renew_tick(struct by_daemon *daemon);

#endif
