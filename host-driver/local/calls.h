/*
 * The calls that a rank has posted, cut into slices, which are numbered over all calls. Each stage
 * of the slices (give, add, take) has a cursor. Shared by local.c and single.c. Pure.
 */
#ifndef BY_HOST_LOCAL_CALLS_H
#define BY_HOST_LOCAL_CALLS_H

#include <stdint.h>

#include "host-driver/local/slices.h"
#include "offload/endpoint/endpoint.h"

struct by_mates_slice;

enum by_sliced_state { BY_SLICED_FREE, BY_SLICED_RUNNING, BY_SLICED_ENDED };

struct by_sliced_call {
    enum by_sliced_state state;
    int result;
    uint64_t first; /* number of its first slice */
    struct by_slices slices;
};

/* All zeros: no call was posted yet. */
struct by_sliced_calls {
    struct by_sliced_call call[BY_CALLS_MAX];
    uint32_t posted; /* calls */
    uint64_t end;    /* slices of all posted calls */
};

/* The next slice of a stage, and the number of its call. All zeros: the first one. */
struct by_slice_cursor {
    uint64_t slice;
    uint32_t call;
};

/* Like by_endpoint_post and _test. */
int by_sliced_post(struct by_sliced_calls *calls, const struct by_call *call, const struct by_seats *seats,
                   uint32_t slot_bytes, uint32_t *id);
int by_sliced_test(struct by_sliced_calls *calls, uint32_t id);
/* Ends all running calls with `error`. */
void by_sliced_end(struct by_sliced_calls *calls, int error);

/* Returns how the call of a cursor's slice is cut. */
static inline const struct by_slices *by_sliced_at(const struct by_sliced_calls *calls,
                                                   const struct by_slice_cursor *cursor)
{
    return &calls->call[cursor->call % BY_CALLS_MAX].slices;
}

/* Returns the number of a cursor's slice within its call. */
static inline uint64_t by_sliced_index(const struct by_sliced_calls *calls,
                                       const struct by_slice_cursor *cursor)
{
    return cursor->slice - calls->call[cursor->call % BY_CALLS_MAX].first;
}

/* Advances to the next slice. */
void by_sliced_next(const struct by_sliced_calls *calls, struct by_slice_cursor *cursor);
/* The same for the last stage: the call ends with its last slice. */
void by_sliced_take(struct by_sliced_calls *calls, struct by_slice_cursor *cursor);
/* Describes the call of a cursor's slice, for comparison between the ranks. */
void by_sliced_describe(const struct by_sliced_calls *calls, const struct by_slice_cursor *cursor,
                        struct by_mates_slice *slice);

#endif
