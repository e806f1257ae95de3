/* Inputs, expected results and checks of banyan-sim; see check.h. */
#include "host-driver/tools/sim/check.h"

#include <stdlib.h>
#include <string.h>

#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

#define LINE_FLOATS 16u /* offset between the inputs of two ranks */
#define POISON      0xa5

static float *floats(uint64_t count)
{
    return aligned_alloc(64, (count * sizeof(float) + 127) / 64 * 64);
}

static void fill(struct sim_check *check, uint64_t seed)
{
    uint64_t ranks = check->rank_count, ahead = ranks * LINE_FLOATS;
    int reducing = by_collective_reduces(check->collective);
    struct by_prng prng = {seed ^ 0x6461746121u};

    for (uint64_t i = 0; i < check->all + (reducing ? ahead : 0); i++)
        check->input[i] = (float)(by_prng_next(&prng) >> 56);
    if (!reducing) {
        memcpy(check->want, check->input, check->all * sizeof(float));
        return;
    }
    for (uint64_t i = 0; i < check->all && i < LINE_FLOATS; i++) {
        check->want[i] = 0;
        for (uint64_t r = 0; r < ranks; r++)
            check->want[i] += check->input[i + r * LINE_FLOATS];
    }
    /* One line further on, one rank leaves the sum and one joins it: exact, since all are small
     * integers. */
    for (uint64_t i = LINE_FLOATS; i < check->all; i++)
        check->want[i] = check->want[i - LINE_FLOATS] - check->input[i - LINE_FLOATS] +
                         check->input[i - LINE_FLOATS + ahead];
}

int check_open(struct sim_check *check, unsigned collective, uint32_t root, uint64_t count, uint64_t seed,
               const uint8_t *image)
{
    memset(check, 0, sizeof(*check));
    check->collective = collective;
    check->root = root;
    check->count = collective == BY_COLLECTIVE_BARRIER ? 0 : count;
    check->first_rank = -1;
    if (chunks_open(&check->chunks, image) != 0)
        return BY_ENOMEM;
    check->rank_count = check->chunks.rank_count;
    check->all = check->count * (by_collective_is_sharded(collective) ? check->rank_count : 1);
    check->input = floats(check->all + (uint64_t)check->rank_count * LINE_FLOATS);
    check->want = floats(check->all);
    check->out = floats(check->all);
    check->taken_count = calloc(check->rank_count, sizeof(uint64_t));
    if (check->input == NULL || check->want == NULL || check->out == NULL || check->taken_count == NULL)
        return BY_ENOMEM;
    fill(check, seed);
    chunks_add_session(&check->chunks);
    return 0;
}

void check_close(struct sim_check *check)
{
    chunks_close(&check->chunks);
    free(check->input);
    free(check->want);
    free(check->out);
    free(check->taken);
    free(check->taken_count);
}

void check_spoil(struct sim_check *check)
{
    if (check->all > 0)
        ((uint32_t *)(void *)check->input)[check->all / 2] ^= UINT32_C(1) << 22;
}

void check_call(const struct sim_check *check, uint32_t rank, struct by_call *call)
{
    uint64_t shard = rank * check->count;

    *call = (struct by_call){.collective = (uint8_t)check->collective,
                             .op = BY_OP_SUM,
                             .dtype = BY_DTYPE_F32,
                             .mode = BY_MODE_FAST,
                             .root = (uint16_t)check->root,
                             .count = check->count};
    switch ((enum by_collective)check->collective) {
    case BY_COLLECTIVE_ALLREDUCE:
    case BY_COLLECTIVE_REDUCE:
        call->send = check->input + (uint64_t)rank * LINE_FLOATS;
        call->recv = check->collective == BY_COLLECTIVE_ALLREDUCE || rank == check->root ? check->out : NULL;
        break;
    case BY_COLLECTIVE_REDUCE_SCATTER:
        call->send = check->input + (uint64_t)rank * LINE_FLOATS;
        call->recv = check->out + shard;
        break;
    case BY_COLLECTIVE_ALLGATHER:
        call->send = check->input + shard;
        call->recv = check->out;
        break;
    case BY_COLLECTIVE_BROADCAST:
        call->send = rank == check->root ? check->input : NULL;
        call->recv = rank == check->root ? NULL : check->out;
        break;
    case BY_COLLECTIVE_BARRIER:
    default:
        break;
    }
}

/* Whether a rank receives the values of a chunk of `shard`. */
static int is_for(const struct sim_check *check, uint32_t rank, uint32_t shard)
{
    switch ((enum by_collective)check->collective) {
    case BY_COLLECTIVE_ALLREDUCE:
    /* a rank's own shard is copied for it when its chunk is acknowledged */
    case BY_COLLECTIVE_ALLGATHER:
        return 1;
    case BY_COLLECTIVE_REDUCE_SCATTER:
        return rank == shard;
    case BY_COLLECTIVE_REDUCE:
        return rank == check->root;
    case BY_COLLECTIVE_BROADCAST:
        return rank != check->root;
    case BY_COLLECTIVE_BARRIER:
    default:
        return 0;
    }
}

int check_begin(struct sim_check *check)
{
    int error = chunks_add_call(&check->chunks, check->collective, check->root, check->count * sizeof(float));

    if (error != 0)
        return error;
    check->taken_words = (check->chunks.chunk_count + 63) / 64;
    free(check->taken);
    check->taken = calloc(check->taken_words * check->rank_count + 1, sizeof(uint64_t));
    memset(check->taken_count, 0, check->rank_count * sizeof(uint64_t));
    return check->taken == NULL ? BY_ENOMEM : 0;
}

static uint8_t *place_of(const struct sim_check *check, float *vector, const struct chunks_chunk *chunk)
{
    uint64_t shard = by_collective_is_sharded(check->collective) ? chunk->shard * check->count : 0;

    return (uint8_t *)(vector + shard) + chunk->offset;
}

static uint64_t *taken_word(const struct sim_check *check, uint32_t rank, uint64_t index)
{
    return &check->taken[rank * check->taken_words + index / 64];
}

/* Records the chunks that the burst may deliver, and overwrites their places. */
static void before(struct sim_check *check, uint32_t rank, const struct by_rx *rx, uint32_t count)
{
    check->pending_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct chunks_chunk chunk;
        int again = 0;

        if (rx[i].bytes < BY_WIRE_HEADER_BYTES || rx[i].data[1] != BY_TYPE_RESULT)
            continue;
        if (!chunks_find(&check->chunks, by_get16(rx[i].data + 6), by_get32(rx[i].data + 12), &chunk) ||
            !is_for(check, rank, chunk.shard) ||
            *taken_word(check, rank, chunk.index) >> (chunk.index % 64) & 1)
            continue;
        for (uint32_t p = 0; p < check->pending_count; p++)
            again |= check->pending[p].chunk.index == chunk.index;
        if (again)
            continue;
        memset(place_of(check, check->out, &chunk), POISON, chunk.bytes);
        check->pending[check->pending_count++].chunk = chunk;
    }
}

static int is_worthless(const uint8_t *bytes, uint32_t count)
{
    return bytes[0] == POISON && (count == 1 || memcmp(bytes, bytes + 1, count - 1) == 0);
}

static void after(struct sim_check *check, uint32_t rank)
{
    for (uint32_t p = 0; p < check->pending_count; p++) {
        const struct chunks_chunk *chunk = &check->pending[p].chunk;
        const uint8_t *is = place_of(check, check->out, chunk), *want = place_of(check, check->want, chunk);

        if (memcmp(is, want, chunk->bytes) != 0) {
            if (is_worthless(is, chunk->bytes))
                continue; /* the endpoint has dropped it, and will receive it again */
            for (uint32_t e = 0; e < chunk->bytes; e += sizeof(float))
                check->wrong += memcmp(is + e, want + e, sizeof(float)) != 0;
            if (check->first_rank < 0)
                check->first_rank = (int)rank;
        }
        *taken_word(check, rank, chunk->index) |= UINT64_C(1) << (chunk->index % 64);
        check->taken_count[rank]++;
        check->checked += chunk->bytes / sizeof(float);
    }
    check->pending_count = 0;
}

void check_burst(struct sim_check *check, uint32_t rank, const struct by_rx *rx, uint32_t count, int done)
{
    if (check->taken == NULL)
        return;
    if (done)
        after(check, rank);
    else
        before(check, rank, rx, count);
}

uint64_t check_missing(const struct sim_check *check)
{
    uint64_t missing = 0;

    for (uint32_t rank = 0; rank < check->rank_count; rank++) {
        uint64_t due = 0;

        for (uint32_t t = 0; t < check->chunks.tree_count; t++)
            for (uint32_t r = 0; r < check->chunks.trees[t].run_count; r++)
                if (is_for(check, rank, check->chunks.trees[t].runs[r].shard))
                    due += check->chunks.trees[t].runs[r].count;
        missing += due - check->taken_count[rank];
    }
    return missing;
}
