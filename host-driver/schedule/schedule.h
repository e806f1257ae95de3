/*
 * Executes schedules of `banyan steady` and `banyan plan -c all-to-all|scatter|gather` between
 * hosts: all-to-all, scatter, gather and reduce whose messages take the paths that the schedule
 * names, with ranks that pass on and combine what others send. A call is divided into operations of
 * the schedule, which follow one another closely, as in its steady state. The order of sends is the
 * schedule's; when a send begins is decided by its data alone, and by whether the receiver has
 * begun the operation: so what is sent can always be received, and nothing can block for ever.
 * Only by_schedule_open blocks. Thread: the communicator's.
 */
#ifndef BY_HOST_SCHEDULE_SCHEDULE_H
#define BY_HOST_SCHEDULE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "host-driver/schedule/program.h"
#include "offload/endpoint/endpoint.h"

#define BY_SCHEDULE_FILES_MAX 8u

struct by_mesh_fault;
struct by_peers;
struct by_schedule;
struct by_team;

/* X(name, "help") */
#define BY_SCHEDULE_COUNTER_LIST(X)                                                                          \
    X(calls, "calls that schedules of BANYAN_SCHEDULE execute")                                              \
    X(operations, "operations of these schedules")                                                           \
    X(messages, "messages sent in them")                                                                     \
    X(tx_bytes, "bytes sent in them, with heads")                                                            \
    X(rx_bytes, "bytes received in them")

struct by_schedule_counters {
#define X(name, help) uint64_t name;
    BY_SCHEDULE_COUNTER_LIST(X)
#undef X
};

/* Reads the schedules of `paths`, at most BY_SCHEDULE_FILES_MAX with commas between, and connects.
 * All ranks call it while they meet, with the same files. `team` must stay valid. 0, or an error
 * with its text, not the same at all ranks. */
int by_schedule_open(const char *paths, const struct by_team *team, struct by_peers *peers, uint32_t key,
                     uint64_t deadline_ns, struct by_schedule **schedule);
void by_schedule_close(struct by_schedule *schedule);
/* Writes ", and all-to-all by the schedule FILE" for each schedule. */
void by_schedule_describe(const struct by_schedule *schedule, char *text, size_t bytes);
/* Whether a schedule executes calls like this one; alike at all ranks. */
bool by_schedule_serves(const struct by_schedule *schedule, const struct by_call *call);
/* Like by_fallback_post and _test. The call must be one that it serves. */
int by_schedule_post(struct by_schedule *schedule, const struct by_call *call, uint32_t *id);
int by_schedule_test(struct by_schedule *schedule, uint32_t id);
/* Whether a call is under way. */
bool by_schedule_is_busy(const struct by_schedule *schedule);
/* Ends all calls with `error`. */
void by_schedule_end(struct by_schedule *schedule, int error);
/* Moves what it can; returns a number above 0 if anything moved. Sets `fault` on a failure:
 * BY_EIO, BY_EMISMATCH, BY_ENOMEM or BY_EUNSUPPORTED. */
uint64_t by_schedule_step(struct by_schedule *schedule, struct by_mesh_fault *fault);
/* Returns a rank that the calls wait for; the own rank if there is none. */
uint32_t by_schedule_waits_for(const struct by_schedule *schedule);
/* Returns a descriptor that is readable when a step can move something. */
int by_schedule_fd(const struct by_schedule *schedule);
/* Returns the text for a fault BY_EUNSUPPORTED or BY_EMISMATCH; "" for others. */
const char *by_schedule_text(const struct by_schedule *schedule);
const struct by_schedule_counters *by_schedule_counters(const struct by_schedule *schedule);

#endif
