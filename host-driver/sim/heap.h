/* The event queue, ordered by time, then by insertion, so that the same seed gives the same run.
 * Single-threaded. */
#ifndef BY_SIM_HEAP_H
#define BY_SIM_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct by_sim_parcel;

struct by_sim_event {
    uint64_t at_ps;
    uint64_t number;
    int kind;
    uint32_t index;
    struct by_sim_parcel *parcel;
};

struct by_heap {
    struct by_sim_event *events;
    size_t count, capacity;
    uint64_t number;
};

void by_heap_push(struct by_heap *heap, uint64_t at_ps, int kind, uint32_t index,
                  struct by_sim_parcel *parcel);
/* Returns 1 and the earliest event, or 0 if there is none. */
int by_heap_pop(struct by_heap *heap, struct by_sim_event *event);
void by_heap_free(struct by_heap *heap);

#endif
