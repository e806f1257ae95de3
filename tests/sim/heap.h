/* The queue of events in order of time, then of insertion: the same seed gives the same run. Single-threaded.
 */
#ifndef TESTS_SIM_HEAP_H
#define TESTS_SIM_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct packet;

struct event {
    uint64_t at_ns;
    uint64_t number;
    int kind, index;
    struct packet *packet;
};

struct heap {
    struct event *events;
    size_t count, capacity;
    uint64_t number;
};

void heap_push(struct heap *heap, uint64_t at_ns, int kind, int index, struct packet *packet);
/* 1 and the earliest event, or 0 when there is none. */
int heap_pop(struct heap *heap, struct event *event);
void heap_free(struct heap *heap);

#endif
