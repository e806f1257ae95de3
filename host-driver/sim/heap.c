/* A binary heap of events. Single-threaded. */
#include "host-driver/sim/heap.h"

#include <stdlib.h>

static int before(const struct by_sim_event *a, const struct by_sim_event *b)
{
    return a->at_ps != b->at_ps ? a->at_ps < b->at_ps : a->number < b->number;
}

void by_heap_push(struct by_heap *heap, uint64_t at_ps, int kind, uint32_t index,
                  struct by_sim_parcel *parcel)
{
    struct by_sim_event event = {at_ps, heap->number++, kind, index, parcel};
    size_t at = heap->count++;

    if (heap->count > heap->capacity) {
        heap->capacity = heap->capacity > 0 ? heap->capacity * 2 : 1024;
        heap->events = realloc(heap->events, heap->capacity * sizeof(struct by_sim_event));
        if (heap->events == NULL)
            abort();
    }
    while (at > 0 && before(&event, &heap->events[(at - 1) / 2])) {
        heap->events[at] = heap->events[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->events[at] = event;
}

int by_heap_pop(struct by_heap *heap, struct by_sim_event *event)
{
    struct by_sim_event last;
    size_t at = 0;

    if (heap->count == 0)
        return 0;
    *event = heap->events[0];
    last = heap->events[--heap->count];
    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && before(&heap->events[child + 1], &heap->events[child]))
            child++;
        if (!before(&heap->events[child], &last))
            break;
        heap->events[at] = heap->events[child];
        at = child;
    }
    if (heap->count > 0)
        heap->events[at] = last;
    return 1;
}

void by_heap_free(struct by_heap *heap)
{
    free(heap->events);
    *heap = (struct by_heap){0};
}
