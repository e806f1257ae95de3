/*
 * Connects recovery to the daemon: passes events of switches, links and ranks to recover.c, and
 * performs its actions with changes (change.h) and frames to ranks (members.h). The loop's thread.
 */
#ifndef BY_SERVICE_DAEMON_RECOVERY_H
#define BY_SERVICE_DAEMON_RECOVERY_H

#include "control/service/daemon/daemon.h"
#include "control/service/daemon/recover.h"

void by_recovery_open(struct by_daemon *daemon);
void by_recovery_close(struct by_daemon *daemon);
/* Handles an event of by_daemon_tell. */
void by_recovery_event(struct by_daemon *daemon, const struct by_daemon_event *event);
/* Handles a BY_RECOVER_RANK_* event. `number`: see recover.h. */
void by_recovery_rank(struct by_daemon *daemon, enum by_recover_type type, uint16_t job, uint16_t rank,
                      uint16_t gen, uint64_t number);
/* Whether a rank of the job is connected. */
bool by_recovery_has_rank(const struct by_daemon *daemon, uint16_t job, uint16_t rank);
/* Whether ranks that use the switch have reported a wait just now and have another path. */
bool by_recovery_suspects(struct by_daemon *daemon, uint32_t node);
/* Returns, by link, what the job uses if one of its ranks has reported a wait just now; else
 * NULL. */
const bool *by_recovery_suspected(struct by_daemon *daemon, uint16_t job);
/* Writes to the caller's array, by link, whether ranks that have waited for a while use it. Returns
 * whether there are such ranks. */
bool by_recovery_waiting(struct by_daemon *daemon, bool *used);
/* A link or switch is a blackhole. `text`: see recover.h. */
void by_recovery_swallows(struct by_daemon *daemon, bool is_link, uint32_t what, const char *text);
/* Give the job another generation: and so other keys; because it uses a standby. `why`: the text of
 * BY_RECOVER_RENEW. */
void by_recovery_renew(struct by_daemon *daemon, uint16_t job, const char *why);
void by_recovery_leave(struct by_daemon *daemon, uint16_t job, const char *why);
/* See by_recover_move. */
bool by_recovery_move(struct by_daemon *daemon, uint16_t job, uint16_t gen);
/* Returns the first of `count` generations of the job that nothing else gets; 0: recover.c does not
 * have the job yet. */
uint16_t by_recovery_reserve(struct by_daemon *daemon, struct by_job *job, uint32_t count);

#endif
