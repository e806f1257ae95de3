/*
 * Sends the standbys of a job's tables to its hosts, with the set of trees that each replaces
 * (PROTOCOL.md, "Standbys at the controller"). Neighbours: recovery.c, for a rank that comes, and
 * standby.c. The loop's thread.
 */
#ifndef BY_SERVICE_DAEMON_STANDBY_OFFER_H
#define BY_SERVICE_DAEMON_STANDBY_OFFER_H

#include "control/service/daemon/daemon.h"

/* Sends the standbys of the job's tables to a rank, or to all; first ends earlier ones of the same
 * tables if `ends`. */
void by_standby_offer(struct by_daemon *daemon, const struct by_job *job, uint16_t rank);
void by_standby_tell(struct by_daemon *daemon, const struct by_job *job, bool ends);

#endif
