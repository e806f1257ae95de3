/* A binary heap of events. Single-threaded. */
#include "tests/sim/heap.h"

#include <stdlib.h>

static int before(const struct event *a, const struct event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->number < b->number;
}

void heap_push(struct heap *heap, uint64_t at_ns, int kind, int index, struct packet *packet)
{
    struct event event = {at_ns, heap->number++, kind, index, packet};
    size_t at = heap->count++;

    if (heap->count > heap->capacity) {
        heap->capacity = heap->capacity > 0 ? heap->capacity * 2 : 1024;
        heap->events = realloc(heap->events, heap->capacity * sizeof(struct event));
        if (heap->events == NULL)
            abort();
    }
    while (at > 0 && before(&event, &heap->events[(at - 1) / 2])) {
        heap->events[at] = heap->events[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->events[at] = event;
}

int heap_pop(struct heap *heap, struct event *event)
{
    struct event last;
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

void heap_free(struct heap *heap)
{
    free(heap->events);
    *heap = (struct heap){0};
}
