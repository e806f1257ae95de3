/*
 * Standbys of jobs: sets of trees that lie in the tables of all switches beside those in use, so
 * that ranks can move to one without banyand (PROTOCOL.md, "Standbys at the controller"). When
 * nothing else is to do, a change adds them (standby_sets.h chooses them); hosts get their tables
 * of them; when ranks have moved, the standby becomes the tables of the job, which is planned again
 * later. Neighbours: recovery.c reports ranks, changes.c makes and drops standbys. The loop's
 * thread.
 */
#ifndef BY_SERVICE_DAEMON_STANDBY_H
#define BY_SERVICE_DAEMON_STANDBY_H

#include "control/service/daemon/daemon.h"

/* Standbys of a job without --standby: two usually avoid each part that the job can do without. */
#define BY_STANDBY_DEFAULT 2u

/* Starts a change if jobs lack standbys, and plans jobs again that have used one for long. Called
 * at each heartbeat. */
void by_standby_tick(struct by_daemon *daemon);
/* A rank of the job is in this generation. */
void by_standby_moved(struct by_daemon *daemon, uint16_t job, uint16_t gen);

#endif
