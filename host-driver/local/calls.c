/* The queue of calls; see calls.h. */
#include "host-driver/local/calls.h"

#include "host-driver/local/mates.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

int by_sliced_post(struct by_sliced_calls *calls, const struct by_call *call, const struct by_seats *seats,
                   uint32_t slot_bytes, uint32_t *id)
{
    struct by_sliced_call *next = &calls->call[calls->posted % BY_CALLS_MAX];

    if (next->state != BY_SLICED_FREE)
        return BY_EAGAIN;
    next->state = BY_SLICED_RUNNING;
    next->first = calls->end;
    by_slices_cut(&next->slices, call, seats, slot_bytes);
    calls->end += next->slices.count;
    *id = calls->posted++;
    return 0;
}

int by_sliced_test(struct by_sliced_calls *calls, uint32_t id)
{
    struct by_sliced_call *call = &calls->call[id % BY_CALLS_MAX];

    if (call->state == BY_SLICED_RUNNING)
        return BY_EAGAIN;
    call->state = BY_SLICED_FREE;
    return call->result;
}

void by_sliced_end(struct by_sliced_calls *calls, int error)
{
    for (uint32_t i = 0; i < BY_CALLS_MAX; i++)
        if (calls->call[i].state == BY_SLICED_RUNNING) {
            calls->call[i].state = BY_SLICED_ENDED;
            calls->call[i].result = error;
        }
}

void by_sliced_next(const struct by_sliced_calls *calls, struct by_slice_cursor *cursor)
{
    if (by_sliced_index(calls, cursor) + 1 == by_sliced_at(calls, cursor)->count)
        cursor->call++;
    cursor->slice++;
}

void by_sliced_take(struct by_sliced_calls *calls, struct by_slice_cursor *cursor)
{
    struct by_sliced_call *call = &calls->call[cursor->call % BY_CALLS_MAX];

    if (by_sliced_index(calls, cursor) + 1 == call->slices.count) {
        call->state = BY_SLICED_ENDED;
        call->result = 0;
    }
    by_sliced_next(calls, cursor);
}

void by_sliced_describe(const struct by_sliced_calls *calls, const struct by_slice_cursor *cursor,
                        struct by_mates_slice *slice)
{
    const struct by_call *of = &by_sliced_at(calls, cursor)->call;
    bool reduces = by_collective_reduces(of->collective);

    *slice = (struct by_mates_slice){.call = cursor->call,
                                     .whole = of->whole,
                                     .count = of->count,
                                     .root = by_slices_is_rooted(of->collective) ? of->root : 0,
                                     .collective = of->collective,
                                     .op = reduces ? of->op : (uint8_t)BY_OP_BOR,
                                     .dtype = of->dtype,
                                     .mode = reduces ? of->mode : (uint8_t)BY_MODE_FAST};
}
