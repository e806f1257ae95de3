/*
 * A communicator's link to the controller (BANYAN_CONTROLLER). Through it the communicator obtains
 * its table if it has no other, reports that it is alive and which nodes it suspects, and continues
 * on other trees after the failure of a node or link (offload/endpoint/resume.h); the controller
 * then forwards the messages between the ranks. It runs within the communicator's progress: nothing
 * happens while the program is outside the library. Without the setting it does nothing. Thread:
 * the communicator's.
 */
#ifndef BY_HOST_MEMBER_H
#define BY_HOST_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

struct banyan_comm;
struct banyan_context;
struct by_call;
struct by_member;
struct pollfd;

/* Maximum number of entries in by_member_fds. */
#define BY_MEMBER_FDS 1u

/* 1 if the context has a controller. */
int by_member_wanted(const struct banyan_context *context);
/*
 * Connects the communicator to the controller, if there is one. If the context has no table, waits
 * for the table of `job` (0: the only one) and installs it in the communicator; otherwise does not
 * wait. 0, or an error with its text.
 */
int by_member_open(struct banyan_comm *comm, uint32_t job);
/* Reports that the communicator is complete: rank and job are set. */
void by_member_ready(struct banyan_comm *comm);
/* Announces that this rank leaves and frees everything, including the table, which the communicator
 * must no longer use. */
void by_member_close(struct banyan_comm *comm);
/* Whether durations of operations are reported to the controller. */
bool by_member_measures(const struct banyan_comm *comm);
/* Counts an operation that has ended without an error. */
void by_member_measure(struct banyan_comm *comm, const struct by_call *call, uint64_t duration_ns);
/* Runs one round, cheap if nothing is due. 1 if something arrived or the calls continue in another
 * generation. */
uint32_t by_member_step(struct banyan_comm *comm, uint64_t now_ns);
/* Latest time of the next step (ns). */
uint64_t by_member_deadline(const struct banyan_comm *comm);
uint32_t by_member_fds(const struct banyan_comm *comm, struct pollfd *fds);
/* Reports that poll found input: the next step reads it. */
void by_member_woken(struct banyan_comm *comm);

#endif
