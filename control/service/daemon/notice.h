/* Watches the counters of switches and hosts: passes them to blackhole.h and, while ranks wait,
 * reports blackholes to recovery. The loop's thread. */
#ifndef BY_SERVICE_DAEMON_NOTICE_H
#define BY_SERVICE_DAEMON_NOTICE_H

#include "control/service/daemon/daemon.h"

void by_notice_open(struct by_daemon *daemon);
void by_notice_close(struct by_daemon *daemon);
/* Takes the counters of a switch's answer. */
void by_notice_switch(struct by_daemon *daemon, const struct by_daemon_switch *device,
                      const struct by_beat *beat);
/* Takes the port counters of a host's rank: `bytes` of data of ALIVE (offload/wire/member.h). */
void by_notice_host(struct by_daemon *daemon, uint32_t node, const uint8_t *data, uint32_t bytes);
/* Searches for blackholes while ranks wait. */
void by_notice_tick(struct by_daemon *daemon);

#endif
