/*
 * One call between hosts: its phases, what they work on, and what is done to the data before,
 * between and after them. No I/O; one thread.
 */
#ifndef BY_HOST_FALLBACK_WORK_H
#define BY_HOST_FALLBACK_WORK_H

#include "host-driver/fallback/moves.h"
#include "offload/endpoint/endpoint.h"

#define BY_WORK_PHASES_MAX 2u

struct by_host_work {
    struct by_call call;
    uint32_t tag; /* of what the call is, for the heads of its messages */
    struct by_phase phase[BY_WORK_PHASES_MAX];
    uint32_t phase_count;
    uint8_t *memory;    /* vectors of its own, or NULL */
    uint8_t kept_dtype; /* of the elements of a vector that is summed: f32 for f16 and bf16 */
};

/* Whether the call's mode runs between hosts: sums of floats in mode exact do not. */
bool by_work_supports(const struct by_call *call);
/* What the call will take where a message of s bytes takes latency_ns + s * gap_ps / 1000
 * nanoseconds: an estimate, the same at all ranks. `rounds` may be NULL. Of `team` the schedules
 * are not needed. */
uint64_t by_work_predict_ns(const struct by_team *team, const struct by_call *call, uint64_t *rounds);
/* Plans the call and loads its data. 0, BY_ENOMEM, or BY_EUNSUPPORTED. */
int by_work_begin(const struct by_team *team, const struct by_call *call, struct by_host_work *work);
/* Before round `round` of phase `index`. */
void by_work_prepare(const struct by_team *team, struct by_host_work *work, uint32_t index, uint32_t round);
/* Adds `count` received pieces, which lie behind each other at `from`, to where they belong. */
void by_work_fold(struct by_host_work *work, const struct iovec *piece, uint32_t count, const uint8_t *from);
/* After phase `index`. */
void by_work_finish(const struct by_team *team, struct by_host_work *work, uint32_t index);
void by_work_end(struct by_host_work *work);

#endif
