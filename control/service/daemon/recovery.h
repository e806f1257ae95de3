/*
 * Recovery at work: gives recover.c what happens to switches, links and ranks, and does what it
 * decides by changes (change.h), and by frames to ranks (members.h). The loop's thread.
 */
#ifndef BY_SERVICE_DAEMON_RECOVERY_H
#define BY_SERVICE_DAEMON_RECOVERY_H

#include "control/service/daemon/daemon.h"
#include "control/service/daemon/recover.h"

void by_recovery_open(struct by_daemon *daemon);
void by_recovery_close(struct by_daemon *daemon);
/* An event of by_daemon_tell. */
void by_recovery_event(struct by_daemon *daemon, const struct by_daemon_event *event);
/* BY_RECOVER_RANK_*: a rank came, left, said something. `number` as recover.h has it. */
void by_recovery_rank(struct by_daemon *daemon, enum by_recover_type type, uint16_t job, uint16_t rank,
                      uint16_t gen, uint64_t number);
/* By link: whether ranks that have waited for a while use it (the caller's array). Whether there
 * are such. */
bool by_recovery_waiting(struct by_daemon *daemon, bool *used);
/* A link or switch swallows packets; `text` as recover.h has it. */
void by_recovery_swallows(struct by_daemon *daemon, bool is_link, uint32_t what, const char *text);
/* The job gets another generation, and with it other keys; `why` as recover.h has it. */
void by_recovery_renew(struct by_daemon *daemon, uint16_t job, const char *why);

#endif
