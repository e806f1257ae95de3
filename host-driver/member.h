/*
 * A communicator's tie to the controller (BANYAN_CONTROLLER): it gets its table there when it has
 * no other, says that it is alive and whom it suspects, and goes on in other trees when a node or
 * link dies, by offload/endpoint/resume.h, with the controller as the way between ranks. It is
 * served in the communicator's progress: nothing happens while the program is outside the library.
 * Without the setting nothing here does anything. The communicator's thread.
 */
#ifndef BY_HOST_MEMBER_H
#define BY_HOST_MEMBER_H

#include <stdint.h>

struct banyan_comm;
struct banyan_context;
struct by_member;
struct pollfd;

/* At most this many entries in by_member_fds (count). */
#define BY_MEMBER_FDS 1u

/* 1 when a context has a controller. */
int by_member_wanted(const struct banyan_context *context);
/*
 * Ties the communicator to the controller, when it has one. Where the context has no table this
 * waits for the one of `job` (0: the only one) and gives it to the communicator; else it does not
 * wait. 0, or an error with its text.
 */
int by_member_open(struct banyan_comm *comm, uint32_t job);
/* The communicator has all its parts: rank and job are known. */
void by_member_ready(struct banyan_comm *comm);
/* Takes leave and frees everything, the table included; the communicator uses none of it any more.
 */
void by_member_close(struct banyan_comm *comm);
/* One round, cheap when nothing is due. 1 when something came or the calls go on in another
 * generation. */
uint32_t by_member_step(struct banyan_comm *comm, uint64_t now_ns);
/* When to step at the latest (ns). */
uint64_t by_member_deadline(const struct banyan_comm *comm);
uint32_t by_member_fds(const struct banyan_comm *comm, struct pollfd *fds);
/* Poll says that something has come: the next step looks. */
void by_member_woken(struct banyan_comm *comm);

#endif
