/*
 * Collectives between the hosts, for calls that no tree of the table serves. Calls run one after
 * another in the order of their posts, each as rounds of messages (moves.h) over connections
 * (mesh.h). Calls for which the user has given a schedule run beside them, by that schedule
 * (host-driver/schedule). If all ranks run on one host, calls run through its memory instead
 * (host-driver/local/single.h). A rank that fails notifies the others, so that all ranks end with
 * the same reason. Only by_fallback_open blocks; in it all ranks connect. Thread: the
 * communicator's.
 */
#ifndef BY_HOST_FALLBACK_FALLBACK_H
#define BY_HOST_FALLBACK_FALLBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-driver/fallback/mesh.h"
#include "host-driver/fallback/moves.h"
#include "host-driver/fallback/peers.h"
#include "host-driver/schedule/schedule.h"
#include "offload/endpoint/endpoint.h"

struct by_fallback;
struct by_single;
struct pollfd;

/* Maximum that by_fallback_fds fills. */
#define BY_FALLBACK_FDS (BY_MESH_FDS + 2u)

struct by_fallback_config {
    const struct by_meeting *meeting;
    uint32_t key; /* of the job; equal at all ranks */
    enum by_way way;
    bool shares;           /* ranks of one host share memory, if both ends agree */
    bool single;           /* the same for all ranks together, if they all run on one host */
    const char *schedules; /* files of BANYAN_SCHEDULE, or NULL */
    enum by_mesh_reach reach;
    /* a call without progress for this long fails; also the time to wait for other ranks to
     * connect */
    uint64_t stall_ns;
    /* the same for a call that waits for ranks whose machines answer; ignored below stall_ns */
    uint64_t absent_ns;
};

/* X(name, "help") */
#define BY_FALLBACK_COUNTER_LIST(X)                                                                          \
    X(calls, "operations between hosts")                                                                     \
    X(rounds, "their rounds")                                                                                \
    X(messages, "messages sent")                                                                             \
    X(tx_bytes, "bytes sent, with heads of messages")                                                        \
    X(shared_bytes, "of these, through memory to ranks of this host")                                        \
    X(rx_bytes, "bytes received")                                                                            \
    X(single, "operations through the memory of the host of all ranks")

struct by_fallback_counters {
#define X(name, help) uint64_t name;
    BY_FALLBACK_COUNTER_LIST(X)
#undef X
};

/* Connects to the other ranks and measures the network. 0, or an error with its text. */
int by_fallback_open(const struct by_fallback_config *config, struct by_fallback **fallback);
/* The same for ranks that share memory and do not connect: calls that do not run through the memory
 * are refused with BY_EUNSUPPORTED. `rank` of `rank_count`; the times are as in the configuration.
 * Takes over `single`, also when it fails. */
int by_fallback_open_single(struct by_fallback **fallback, struct by_single *single, uint32_t rank,
                            uint32_t rank_count, uint64_t stall_ns, uint64_t absent_ns);
void by_fallback_close(struct by_fallback *fallback);
/* Writes ", and all-to-all by the schedule FILE", or "" without schedules. */
void by_fallback_describe_schedules(const struct by_fallback *fallback, char *text, size_t bytes);
/* Whether such a call runs through the memory of the host that all ranks share. */
bool by_fallback_is_single(const struct by_fallback *fallback, const struct by_call *call);
/* Whether the ranks are connected. */
bool by_fallback_connects(const struct by_fallback *fallback);
/* Whether a schedule executes the call. */
bool by_fallback_is_scheduled(const struct by_fallback *fallback, const struct by_call *call);

/* Like by_endpoint_post, _test and _abort. by_fallback_text returns the text of a failed call. */
int by_fallback_post(struct by_fallback *fallback, const struct by_call *call, uint32_t *id);
int by_fallback_test(struct by_fallback *fallback, uint32_t id);
void by_fallback_abort(struct by_fallback *fallback);
const char *by_fallback_text(const struct by_fallback *fallback);

/* Moves what it can; returns the bytes moved, 0 if there is nothing to do now. */
uint64_t by_fallback_step(struct by_fallback *fallback, uint64_t now_ns);
/* Latest time of the next step of a waiting call; UINT64_MAX if none runs. */
uint64_t by_fallback_deadline(const struct by_fallback *fallback);
/* Fills the descriptors that poll() may sleep on, at most BY_FALLBACK_FDS; returns their number. */
uint32_t by_fallback_fds(const struct by_fallback *fallback, struct pollfd *fds);

const struct by_team *by_fallback_team(const struct by_fallback *fallback);
const struct by_fallback_counters *by_fallback_counters(const struct by_fallback *fallback);
/* Those of the schedules; all 0 without schedules. */
const struct by_schedule_counters *by_fallback_schedule_counters(const struct by_fallback *fallback);

#endif
