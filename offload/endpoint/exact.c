/*
 * Sums of floats in mode EXACT: two calls on the wire for one call of the user. The first agrees on
 * the scales of all blocks, by a maximum over all ranks; the second waits for it and adds integers.
 * Output is computed chunk by chunk when it is due, into the caller's scratch memory, where it
 * stays for repairs; input is converted to floats as it is written. Neighbours:
 * offload/reduce/exact.h has the arithmetic, call.c opens both calls. Pure; the endpoint's thread.
 */
#include "offload/endpoint/state.h"

#include "offload/reduce/exact.h"

/* The scratch memory: the words of all blocks, shard after shard, then the integers of all
 * elements. */
static uint64_t blocks_of(uint64_t count)
{
    return (count + BY_EXACT_BLOCK - 1) / BY_EXACT_BLOCK;
}

static uint32_t shards_of(const struct by_endpoint *endpoint, const struct by_call *call)
{
    return call->collective == BY_COLLECTIVE_REDUCE_SCATTER ? endpoint->rank_count : 1;
}

static const struct by_exact *exact_of(const struct by_endpoint *endpoint, const struct by_call *call)
{
    const struct by_exact *exact = by_exact_get(endpoint->config.isa, call->dtype);

    BY_ASSERT(exact != NULL);
    return exact;
}

int by_exact_is_for(const struct by_call *call)
{
    return call->mode == BY_MODE_EXACT && by_collective_reduces(call->collective) &&
           by_reduction_dtype(BY_MODE_EXACT, call->op, call->dtype) != call->dtype;
}

/* Returns the first block of a shard. With shards of unequal size up to a block before each is
 * unused, so that no sum over shards is needed. */
static uint64_t block_first(const struct by_call *call, uint32_t shard)
{
    return call->offsets != NULL ? call->offsets[shard] / BY_EXACT_BLOCK + shard
                                 : shard * blocks_of(call->count);
}

/* Returns the last shard that begins at or before `at`, in elements or in blocks. */
static uint32_t shard_of(const struct by_endpoint *endpoint, const struct by_call *call, uint64_t at,
                         int of_blocks)
{
    uint32_t low = 0, high = shards_of(endpoint, call) - 1;

    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;

        if ((of_blocks ? block_first(call, middle) : by_call_shard_first(call, middle)) <= at)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

uint64_t by_endpoint_scratch(const struct by_endpoint *endpoint, const struct by_call *call)
{
    uint32_t shards = shards_of(endpoint, call);

    if (!by_exact_is_for(call) || endpoint->rank_count == 1 || call->count == 0)
        return 0;
    return block_first(call, shards) * BY_EXACT_SCALE_BYTES +
           by_call_shard_first(call, shards) * exact_of(endpoint, call)->wide_bytes;
}

struct by_call by_exact_scales(const struct by_endpoint *endpoint, const struct by_call *call)
{
    return (struct by_call){.collective = BY_COLLECTIVE_ALLREDUCE,
                            .op = BY_OP_MAX,
                            .dtype = BY_DTYPE_U32,
                            .mode = BY_MODE_EXACT,
                            .count = block_first(call, shards_of(endpoint, call)) * BY_EXACT_WORDS,
                            .send = call->scratch,
                            .recv = call->scratch};
}

uint8_t *by_exact_integers(const struct by_endpoint *endpoint, const struct by_call *call)
{
    return (uint8_t *)call->scratch + block_first(call, shards_of(endpoint, call)) * BY_EXACT_SCALE_BYTES;
}

/* Returns the number of elements from `at` of a shard up to `end`, or to the end of their block. */
static uint32_t run_length(uint64_t at, uint64_t end)
{
    uint64_t block_end = (at / BY_EXACT_BLOCK + 1) * BY_EXACT_BLOCK;

    return (uint32_t)((end < block_end ? end : block_end) - at);
}

static void words_read(const struct by_call *call, uint64_t block, uint32_t words[BY_EXACT_WORDS])
{
    const uint8_t *at = (const uint8_t *)call->scratch + block * BY_EXACT_SCALE_BYTES;

    by_copy(words, at, BY_EXACT_SCALE_BYTES);
}

/* Computes the words of the blocks whose scales are in the chunk, from this rank's elements. */
static void fill_scales(const struct by_endpoint *endpoint, const struct by_call *user,
                        const struct by_flight *flight)
{
    const struct by_exact *exact = exact_of(endpoint, user);
    const uint8_t *send = user->send;
    uint64_t block = (uint64_t)(flight->send - (const uint8_t *)user->scratch) / BY_EXACT_SCALE_BYTES;
    uint64_t end = block + flight->bytes / BY_EXACT_SCALE_BYTES;

    for (; block < end; block++) {
        uint32_t shard = shard_of(endpoint, user, block, 1);
        uint64_t at = (block - block_first(user, shard)) * BY_EXACT_BLOCK;
        uint64_t count = by_call_shard_count(user, shard);
        uint32_t words[BY_EXACT_WORDS] = {0};

        if (at < count)
            exact->scale(send + (by_call_shard_first(user, shard) + at) * exact->element_bytes,
                         run_length(at, count), words);
        by_copy((uint8_t *)user->scratch + block * BY_EXACT_SCALE_BYTES, words, BY_EXACT_SCALE_BYTES);
    }
}

/* Converts this rank's elements of the chunk to integers. */
static void fill_integers(const struct by_endpoint *endpoint, const struct by_call *user,
                          const struct by_flight *flight)
{
    const struct by_exact *exact = exact_of(endpoint, user);
    uint8_t *integers = by_exact_integers(endpoint, user);
    const uint8_t *send = user->send;
    uint64_t first = (uint64_t)(flight->send - integers) / exact->wide_bytes;
    uint32_t shard = shard_of(endpoint, user, first, 0);
    uint64_t at = first - by_call_shard_first(user, shard), end = at + flight->count;

    while (at < end) {
        uint32_t count = run_length(at, end);
        uint64_t element = by_call_shard_first(user, shard) + at;
        uint32_t words[BY_EXACT_WORDS];

        words_read(user, block_first(user, shard) + at / BY_EXACT_BLOCK, words);
        exact->quantise(send + element * exact->element_bytes, count, words, endpoint->rank_count,
                        integers + element * exact->wide_bytes);
        at += count;
    }
}

void by_exact_fill(struct by_endpoint *endpoint, const struct by_call_state *state,
                   const struct by_flight *flight)
{
    if (flight->count == 0)
        return;
    if (state->part == BY_PART_SCALES)
        fill_scales(endpoint, &by_call_at(endpoint, state->number + 1)->call, flight);
    else
        fill_integers(endpoint, &state->call, flight);
}

void by_exact_deliver(const struct by_endpoint *endpoint, const struct by_call_state *state,
                      const struct by_flight *flight, const uint8_t *payload)
{
    const struct by_call *call = &state->call;
    const struct by_exact *exact = exact_of(endpoint, call);
    uint32_t shard = call->collective == BY_COLLECTIVE_REDUCE_SCATTER ? endpoint->rank : 0;
    uint64_t at = (uint64_t)(flight->recv - (const uint8_t *)call->recv) / exact->element_bytes;
    uint64_t end = at + flight->count;
    uint8_t *to = flight->recv;

    while (at < end) {
        uint32_t count = run_length(at, end);
        uint32_t words[BY_EXACT_WORDS];

        words_read(call, block_first(call, shard) + at / BY_EXACT_BLOCK, words);
        exact->restore(payload, count, words, endpoint->rank_count, to);
        payload += (size_t)count * exact->wide_bytes;
        to += (size_t)count * exact->element_bytes;
        at += count;
    }
}
