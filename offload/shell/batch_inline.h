/* The part of batch.h that each received frame needs: its comparison with the last one of its
 * port. */
#ifndef BY_SHELL_BATCH_INLINE_H
#define BY_SHELL_BATCH_INLINE_H

#include "offload/base/assert.h"
#include "offload/shell/batch.h"

typedef uint64_t by_batch_word __attribute__((aligned(1), may_alias));

/* Returns the bits in which words of two headers differ. */
static inline uint64_t by_batch_differ(const uint8_t *a, const uint8_t *b, uint32_t at)
{
    return *(const by_batch_word *)(a + at) ^ *(const by_batch_word *)(b + at);
}

BY_STATIC_ASSERT(BY_FRAME_HEADER_BYTES > 40 && BY_FRAME_HEADER_BYTES <= 48, "headers are six words");

/* Whether a frame has the headers of the port's last one. The last word overlaps the one before. */
static inline bool by_batch_is_alike(const struct by_batch_last *last, const uint8_t *data, uint32_t bytes)
{
    const uint8_t *headers = last->headers;

    return last->rx.bytes != 0 && bytes >= BY_FRAME_HEADER_BYTES + (uint32_t)last->rx.bytes &&
           (by_batch_differ(data, headers, 0) | by_batch_differ(data, headers, 8) |
            by_batch_differ(data, headers, 16) | by_batch_differ(data, headers, 24) |
            by_batch_differ(data, headers, 32) | by_batch_differ(data, headers, BY_FRAME_HEADER_BYTES - 8)) ==
               0;
}

/* Adds a packet like `like`, except for its contents, to the batch. */
static inline struct by_rx *by_batch_add(struct by_batch *batch, const struct by_rx *like, void *frame,
                                         const uint8_t *data)
{
    struct by_rx *rx = &batch->arrived[batch->count];

    *rx = *like;
    rx->data = data + BY_FRAME_HEADER_BYTES;
    batch->arrived_frame[batch->count++] = frame;
    return rx;
}

/* Adds a frame to the batch if it has the headers of its port's last one, as by_batch_receive does
 * where no faults are injected. False: it is not added. */
static inline bool by_batch_take_alike(struct by_batch *batch, const struct by_batch_last *last, void *frame,
                                       const uint8_t *data, uint32_t bytes)
{
    if (__builtin_expect(!by_batch_is_alike(last, data, bytes), 0))
        return false;
    by_batch_add(batch, &last->rx, frame, data);
    return true;
}

#endif
