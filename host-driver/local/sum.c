/* Sums of the ranks of a host; see sum.h. */
#include "host-driver/local/sum.h"

#include <stdalign.h>
#include <string.h>

#include "host-driver/float_env.h"
#include "host-driver/isa.h"

#define BLOCK 2048u /* elements summed at once: they and all inputs fit a first-level cache */

/* Sums one block into `acc`. The guard detects memory that changes while a slot waits for packets,
 * which is not the case here. */
static void sum_block(const struct by_reducer *reducer, uint8_t *acc, const uint8_t *const *in,
                      uint32_t inputs, uint32_t count)
{
    uint32_t psums[BY_GATHER_MAX], guard, done = 1;

    if (reducer->gather != NULL && inputs > 1) {
        done = inputs < BY_GATHER_MAX ? inputs : BY_GATHER_MAX;
        guard = reducer->gather(acc, (const void *const *)in, done, count, psums);
    } else {
        guard = reducer->load(acc, in[0], count);
    }
    for (; done < inputs; done++)
        reducer->accumulate(acc, in[done], count, &guard);
    reducer->store(acc, count, &guard);
}

void by_mates_sum(unsigned op, unsigned dtype, void *out, const void *const *in, uint32_t inputs,
                  uint64_t count)
{
    const struct by_reducer *reducer = by_host_reducer(op, dtype);
    alignas(64) uint8_t wide[BLOCK * 4]; /* f16 and bf16 accumulate in 4 bytes */
    uint64_t float_env = by_float_env_enter();

    for (uint64_t at = 0; at < count; at += BLOCK) {
        const uint8_t *block[BY_MATES_SUM_MAX];
        uint32_t part = count - at < BLOCK ? (uint32_t)(count - at) : BLOCK;
        uint8_t *to = (uint8_t *)out + at * reducer->element_bytes;
        uint8_t *acc = reducer->acc_bytes == reducer->element_bytes ? to : wide;

        block[0] = (const uint8_t *)in[0] + at * reducer->element_bytes;
        for (uint32_t i = 1; i < inputs; i++)
            block[i] = (const uint8_t *)in[i] + at * reducer->element_bytes;
        sum_block(reducer, acc, block, inputs, part);
        if (acc != to)
            memcpy(to, acc, (size_t)part * reducer->element_bytes);
    }
    by_float_env_leave(float_env);
}
