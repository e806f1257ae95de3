/* Combines two vectors block by block; see combine.h. */
#include "host-driver/schedule/combine.h"

#include <string.h>

#include "host-driver/isa.h"

void by_combine(unsigned op, unsigned dtype, void *to, const void *left, const void *right, uint64_t count,
                void *scratch)
{
    const struct by_reducer *reducer = by_host_reducer(op, dtype);
    uint32_t stride = BY_COMBINE_BYTES / reducer->acc_bytes;

    for (uint64_t at = 0; at < count; at += stride) {
        uint32_t part = (uint32_t)(count - at < stride ? count - at : stride);
        uint64_t byte = at * reducer->element_bytes;
        uint32_t guard = reducer->load(scratch, (const uint8_t *)left + byte, part);

        reducer->accumulate(scratch, (const uint8_t *)right + byte, part, &guard);
        reducer->store(scratch, part, &guard);
        memcpy((uint8_t *)to + byte, scratch, (size_t)part * reducer->element_bytes);
    }
}
