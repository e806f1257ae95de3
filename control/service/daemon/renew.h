/*
 * Renewal of keys. A keyed job gets another generation, and so other keys, long before the sequence
 * numbers of a tree repeat (2^32 chunks): otherwise recorded packets could be replayed under the
 * same key. The counters of the switches bound the number of chunks of a tree. Neighbours:
 * recover.c plans and pushes the next generation as it does after a failure. The loop's thread.
 */
#ifndef BY_SERVICE_DAEMON_RENEW_H
#define BY_SERVICE_DAEMON_RENEW_H

#include "control/service/daemon/daemon.h"

/* Chunks of one tree after which its job is renewed (count): half of the sequence numbers. Ranks
 * need only about a heartbeat to resume. */
#define BY_RENEW_AFTER 2147483648u

/* Renews the keyed jobs that are due. Called at each heartbeat. */
void by_renew_tick(struct by_daemon *daemon);

#endif
