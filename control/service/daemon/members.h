/*
 * The server of hosts: accepts their connections (offload/wire/member.h), finds the job and rank of
 * each, and forwards messages between ranks. Over TLS the certificate must name the host; over
 * plain connections its name is trusted. The server never blocks. It drops a connection that
 * violates the protocol, sends too much or does not read, and logs the reason. Neighbours:
 * recovery.c gets the events of ranks and sends them frames. The loop's thread; TLS handshakes have
 * their own thread (firmware/secure/acceptor.h).
 */
#ifndef BY_SERVICE_DAEMON_MEMBERS_H
#define BY_SERVICE_DAEMON_MEMBERS_H

#include "control/service/daemon/daemon.h"
#include "offload/wire/member.h"

/* Maximum number of connections (count). */
#define BY_MEMBERS_MAX 4096u
/* Maximum number of bytes queued for one host (a table and messages of other ranks), and for all
 * hosts together. */
#define BY_MEMBERS_WAITING_MAX     ((size_t)64 << 20)
#define BY_MEMBERS_WAITING_ALL_MAX ((size_t)256 << 20)
/* Maximum size of a frame from a connection that is not a rank of a job yet (bytes). */
#define BY_MEMBERS_STRANGER_MAX (BY_MEMBER_FIXED_MAX + BY_MEMBER_PORT_BYTES * BY_PORTS_MAX)
/* Timeout for the HELLO of a connection (milliseconds). */
#define BY_MEMBERS_HELLO_MS 5000u

/* Listens at each address of --members. Returns 0, BY_EINVAL (wrong command line) or BY_EIO, after
 * a line on stderr. */
int by_members_open(struct by_daemon *daemon);
void by_members_close(struct by_daemon *daemon);
/* Checks connections without HELLO, and those whose job does not exist yet; marks the jobs of
 * communicators that are used. */
void by_members_tick(struct by_daemon *daemon);
/* Whether the host of a connected rank accepts standbys. */
bool by_members_stands(const struct by_daemon *daemon, uint16_t job, uint16_t rank);
/* Sends a frame to a rank if it is connected, and if its host accepts such frames. Sets the job and
 * rank of the frame. */
void by_members_send(struct by_daemon *daemon, uint16_t job, uint16_t rank, struct by_member_frame frame);

#endif
