/*
 * Shared by the tests of offload/reduce: the instruction sets to test, elements by index, the seed
 * and how to replay it. Include after cmocka.h.
 */
#ifndef BY_TESTS_REDUCE_CHECK_H
#define BY_TESTS_REDUCE_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "offload/base/prng.h"
#include "offload/reduce/reduce.h"

/* Loops over the instruction sets that can run here. */
#define FOR_EACH_ISA(isa)                                                                                    \
    for (unsigned isa = BY_ISA_SCALAR; isa < BY_ISA_COUNT; isa++)                                            \
        if (by_isa_usable(isa))

static inline uint64_t element_get(const void *base, unsigned bytes, size_t index)
{
    uint64_t value = 0;

    memcpy(&value, (const uint8_t *)base + index * bytes, bytes);
    return value;
}

static inline void element_put(void *base, unsigned bytes, size_t index, uint64_t value)
{
    memcpy((uint8_t *)base + index * bytes, &value, bytes);
}

/* Returns the position of element `index` of `count` in a slot. bf16 is in whole blocks of 32, in
 * which elements with an even index come first. */
static inline uint32_t slot_place(unsigned dtype, uint32_t index, uint32_t count)
{
    if (dtype != BY_DTYPE_BF16 || index >= count / 32 * 32)
        return index;
    return index / 32 * 32 + index % 2 * 16 + index % 32 / 2;
}

/* Returns the seed of this run: BY_TEST_SEED, else the time. */
static inline uint64_t seed_get(void)
{
    const char *text = getenv("BY_TEST_SEED");

    return text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
}

static inline void seed_print(const char *program, uint64_t seed)
{
    fprintf(stderr, "replay: BY_TEST_SEED=%llu build/release/tests/%s\n", (unsigned long long)seed, program);
}

/* Prints the tested instruction sets and those that this processor lacks. */
static inline void isa_print(void)
{
    for (unsigned isa = BY_ISA_SCALAR; isa < BY_ISA_COUNT; isa++)
        printf("%s: %s\n", by_isa_name(isa),
               by_isa_usable(isa) ? "tested" : "skipped, not on this processor");
}

#endif
