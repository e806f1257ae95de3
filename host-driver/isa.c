/* See isa.h. */
#include "host-driver/isa.h"

#include <stdatomic.h>

unsigned by_host_isa(void)
{
    static atomic_uint kept; /* the set plus 1; 0: not detected. Threads that detect at once agree. */
    unsigned known = atomic_load_explicit(&kept, memory_order_relaxed);

    if (known == 0) {
        known = by_isa_best() + 1;
        atomic_store_explicit(&kept, known, memory_order_relaxed);
    }
    return known - 1;
}

const struct by_reducer *by_host_reducer(unsigned op, unsigned dtype)
{
    return by_reducer_get(by_host_isa(), op, dtype);
}
