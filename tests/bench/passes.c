/*
 * bench-passes: the cost of psum and of a slot's guard in the addition of a payload, and whether
 * one pass for all would be cheaper (docs/decisions/0080). Sums of f32 on a payload of 1024 bytes:
 * packets are consecutive in a buffer that only the last cache holds, as a network card leaves
 * them; slots are in a window of 64. Ways to add, each with its best of many interleaved rounds:
 *
 *   add               only the sum, without any check
 *   guard             the kernel: it checks the slot's words and sums them again as it adds to them
 *   psum, then guard  as in the engine: a damaged payload is detected before the sum changes
 *   one pass          psum, sum and guard at once, in place: a damaged payload is detected only
 *                     after the sum is destroyed
 *   one pass, aside   the same into a second slot, which counts only if psum matches: safe
 *
 * Single-threaded.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "offload/reduce/psum.h"
#include "offload/reduce/reduce.h"

#define PAYLOAD 1024u
#define STRIDE  1536u /* from one packet to the next */
#define PACKETS 2048u /* 3 MB */
#define SLOTS   128u
#define SLOT    2112u /* two halves and a line, as in the engine: no two slots share lines of a cache */
#define ROUNDS  400u

typedef float vector __attribute__((vector_size(BY_VECTOR_BYTES)));
typedef float vector_at __attribute__((vector_size(BY_VECTOR_BYTES), aligned(1), may_alias));

static uint8_t *packets, *slots;
static const struct by_reducer *reducer;
static volatile uint32_t sink;

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Replaces a NaN by the canonical NaN, as in the kernels. */
static inline vector sum_of(vector a, vector b)
{
    vector r = a + b;
    by_words is = (by_words)(r == r); /* NOLINT(misc-redundant-expression): false for a NaN */
    by_words nan = (by_words){0} + 0x7fc00000u;

    return (vector)(((by_words)r & is) | (nan & ~is));
}

static uint32_t add(uint8_t *slot, const uint8_t *payload)
{
    for (size_t i = 0; i < PAYLOAD; i += BY_VECTOR_BYTES)
        *(vector_at *)(slot + i) = sum_of(*(vector_at *)(slot + i), *(const vector_at *)(payload + i));
    return slot[0];
}

static uint32_t guard(uint8_t *slot, const uint8_t *payload)
{
    uint32_t word = 0;

    reducer->accumulate(slot, payload, PAYLOAD / 4, &word);
    return word;
}

static uint32_t psum_then_guard(uint8_t *slot, const uint8_t *payload)
{
    uint32_t word = 0, psum = reducer->psum(payload, PAYLOAD);

    if (psum == 1)
        return 0;
    reducer->accumulate(slot, payload, PAYLOAD / 4, &word);
    return word + psum;
}

static inline uint32_t pass(uint8_t *to, const uint8_t *from, const uint8_t *payload)
{
    by_words before = {0}, after = {0}, psum = {0};

    for (size_t i = 0; i < PAYLOAD; i += BY_VECTOR_BYTES) {
        vector a = *(const vector_at *)(from + i), b = *(const vector_at *)(payload + i), r = sum_of(a, b);

        before += (by_words)a;
        psum += (by_words)b;
        after += (by_words)r;
        *(vector_at *)(to + i) = r;
    }
    return by_words_total(before) + by_words_total(after) + by_words_total(psum);
}

static uint32_t one_pass(uint8_t *slot, const uint8_t *payload)
{
    return pass(slot, slot, payload);
}

static uint32_t one_pass_aside(uint8_t *slot, const uint8_t *payload)
{
    static unsigned half[SLOTS];
    size_t index = (size_t)(slot - slots) / SLOT;
    unsigned from = half[index];

    half[index] = !from;
    return pass(slot + (from ? 0 : PAYLOAD), slot + (from ? PAYLOAD : 0), payload);
}

static const struct {
    const char *name;
    uint32_t (*run)(uint8_t *slot, const uint8_t *payload);
} ways[] = {{"add", add},
            {"guard", guard},
            {"psum, then guard", psum_then_guard},
            {"one pass", one_pass},
            {"one pass, aside", one_pass_aside}};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

int main(void)
{
    double best[WAYS] = {0};

    reducer = by_reducer_get(by_isa_best(), BY_OP_SUM, BY_DTYPE_F32);
#if BY_VECTOR_BYTES == 32
    if (!by_isa_usable(BY_ISA_AVX2)) {
        printf("passes: this processor lacks AVX2, which this comparison is compiled for\n");
        return 0;
    }
#endif
    packets = aligned_alloc(64, (size_t)PACKETS * STRIDE);
    slots = aligned_alloc(64, (size_t)SLOTS * SLOT);
    if (packets == NULL || slots == NULL)
        return 1;
    memset(slots, 0, (size_t)SLOTS * SLOT);
    for (size_t i = 0; i < (size_t)PACKETS * STRIDE; i += 4)
        memcpy(packets + i, &(const float){0.5f}, 4);
    for (unsigned round = 0; round < ROUNDS; round++)
        for (size_t w = 0; w < WAYS; w++) {
            double start, took;
            uint32_t sum = 0;

            if (round % 16 == 0)
                memset(slots, 0, (size_t)SLOTS * SLOT);
            start = now_ns();
            /* Four children one after another, as chunks complete. */
            for (unsigned p = 0; p < PACKETS; p++)
                sum += ways[w].run(slots + (size_t)(p / 4 % SLOTS) * SLOT, packets + (size_t)p * STRIDE);
            took = (now_ns() - start) / PACKETS;
            sink = sum;
            if (best[w] == 0 || took < best[w])
                best[w] = took;
        }
    printf("\npsum and guard in the addition of %u bytes of f32 (%s), packets in the last cache\n", PAYLOAD,
           by_isa_name(by_isa_best()));
    printf("%-18s %8s %8s\n", "way", "ns", "of add");
    for (size_t w = 0; w < WAYS; w++)
        printf("%-18s %8.1f %8.2f\n", ways[w].name, best[w], best[0] / best[w]);
    free(packets);
    free(slots);
    return 0;
}
