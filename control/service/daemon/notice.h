/*
 * What the counters of switches and hosts show: gives them to blackhole.h, and, while ranks wait,
 * tells recovery what swallows packets. The loop's thread.
 */
#ifndef BY_SERVICE_DAEMON_NOTICE_H
#define BY_SERVICE_DAEMON_NOTICE_H

#include "control/service/daemon/daemon.h"

void by_notice_open(struct by_daemon *daemon);
void by_notice_close(struct by_daemon *daemon);
/* A switch has answered. */
void by_notice_switch(struct by_daemon *daemon, const struct by_daemon_switch *device,
                      const struct by_beat *beat);
/* A host's rank has said what its ports count: `bytes` of data of ALIVE (offload/wire/member.h). */
void by_notice_host(struct by_daemon *daemon, uint32_t node, const uint8_t *data, uint32_t bytes);
/* Looks whether something swallows packets, when ranks wait. */
void by_notice_tick(struct by_daemon *daemon);

#endif
