/*
 * One call between hosts: its phases, their data, and the processing before, between and after the
 * phases. No I/O; one thread.
 */
#ifndef BY_HOST_FALLBACK_WORK_H
#define BY_HOST_FALLBACK_WORK_H

#include "host-driver/fallback/moves.h"
#include "offload/endpoint/endpoint.h"

#define BY_WORK_PHASES_MAX 2u

struct by_host_work {
    struct by_call call;
    uint32_t tag; /* hash of the call, for the heads of its messages */
    struct by_phase phase[BY_WORK_PHASES_MAX];
    uint32_t phase_count;
    uint8_t *memory;    /* own vectors, or NULL */
    uint8_t kept_dtype; /* element type of a vector that is summed: f32 for f16 and bf16 */
};

/* Whether the call can run between hosts; sums of floats in mode exact cannot. */
bool by_work_supports(const struct by_call *call);
/* Returns a hash of what all ranks must agree on in a call, for the heads of its messages. */
uint32_t by_work_tag(uint32_t rank_count, const struct by_call *call);
/* Predicts the duration of the call if a message of s bytes takes latency_ns + s * gap_ps / 1000
 * nanoseconds: an estimate, equal at all ranks. `rounds` may be NULL. `team` needs no schedules. */
uint64_t by_work_predict_ns(const struct by_team *team, const struct by_call *call, uint64_t *rounds);
/* Plans the call and loads its data. 0, BY_ENOMEM or BY_EUNSUPPORTED. */
int by_work_begin(const struct by_team *team, const struct by_call *call, struct by_host_work *work);
/* Called before round `round` of phase `index`. */
void by_work_prepare(const struct by_team *team, struct by_host_work *work, uint32_t index, uint32_t round);
/* Adds `count` received pieces, contiguous at `from`, to their destinations. */
void by_work_fold(struct by_host_work *work, const struct iovec *piece, uint32_t count, const uint8_t *from);
/* Called after phase `index`. */
void by_work_finish(const struct by_team *team, struct by_host_work *work, uint32_t index);
void by_work_end(struct by_host_work *work);

#endif
