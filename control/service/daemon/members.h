/*
 * The server of hosts: takes their connections (offload/wire/member.h), finds which rank of which
 * job each is, and carries what ranks tell each other. Over TLS a host is the one that its
 * certificate names; over plain connections it is believed. It never waits for anybody; who speaks
 * wrongly, says too much or does not take what it is sent is cut off, with the reason in the log.
 * Neighbours: recovery.c is told of ranks and sends them frames. The loop's thread; handshakes have
 * one of their own (firmware/secure/acceptor.h).
 */
#ifndef BY_SERVICE_DAEMON_MEMBERS_H
#define BY_SERVICE_DAEMON_MEMBERS_H

#include "control/service/daemon/daemon.h"
#include "offload/wire/member.h"

/* Connections at a time (count). */
#define BY_MEMBERS_MAX 4096u
/* Bytes that wait for one host at most, a table and messages of others, and for all hosts together.
 */
#define BY_MEMBERS_WAITING_MAX     ((size_t)64 << 20)
#define BY_MEMBERS_WAITING_ALL_MAX ((size_t)256 << 20)
/* Bytes of a frame that are taken from a connection that is no rank of a job yet. */
#define BY_MEMBERS_STRANGER_MAX (BY_MEMBER_FIXED_MAX + BY_MEMBER_PORT_BYTES * BY_PORTS_MAX)
/* A connection that does not say who it is ends after (milliseconds). */
#define BY_MEMBERS_HELLO_MS 5000u

/* Listens at each address of --members. 0; BY_EINVAL (the command line's fault) or BY_EIO, after
 * a line on stderr. */
int by_members_open(struct by_daemon *daemon);
void by_members_close(struct by_daemon *daemon);
/* Looks after those who have not said who they are, or whose job is not there yet. */
void by_members_tick(struct by_daemon *daemon);
/* Sends a frame to a rank, if it is connected; job and rank are filled in. */
void by_members_send(struct by_daemon *daemon, uint16_t job, uint16_t rank, struct by_member_frame frame);

#endif
