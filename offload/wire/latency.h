/*
 * How long the operations of a collective took, as a histogram, and its bytes: what a host counts
 * and reports to the controller (PROTOCOL.md, "Members"). All numbers only grow, so that a lost
 * report loses nothing. Neighbours: host-driver/member.c, control/service/daemon/latency.c. Pure;
 * any thread.
 */
#ifndef BY_WIRE_LATENCY_H
#define BY_WIRE_LATENCY_H

#include <stdint.h>

#include "offload/wire/types.h"

/* Classes of durations (count). The last one has no limit. */
#define BY_LATENCY_CLASSES 12u
/* Size of one histogram, and of those of all collectives, in the order of enum by_collective
 * (bytes). */
#define BY_LATENCY_BYTES     ((3u + BY_LATENCY_CLASSES) * 8u)
#define BY_LATENCY_ALL_BYTES (BY_LATENCY_BYTES * (BY_COLLECTIVE_COUNT - 1u))

struct by_latency {
    uint64_t operations, bytes;
    uint64_t duration_ns;                  /* of all operations together */
    uint64_t of_class[BY_LATENCY_CLASSES]; /* operations, by their duration */
};

/* Returns the longest duration of a class (ns): 10 us, and four times the one before. UINT64_MAX
 * for the last class. */
uint64_t by_latency_limit_ns(uint32_t class_index);
/* Adds one operation. */
void by_latency_add(struct by_latency *latency, uint64_t bytes, uint64_t duration_ns);
/* Adds what `now` counts beyond `before`, which the same counter had earlier. */
void by_latency_add_since(struct by_latency *latency, const struct by_latency *before,
                          const struct by_latency *now);
void by_latency_put(const struct by_latency *latency, uint8_t bytes[BY_LATENCY_BYTES]);
void by_latency_get(const uint8_t bytes[BY_LATENCY_BYTES], struct by_latency *latency);

#endif
