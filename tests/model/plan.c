/*
 * The meaning of each chunk of a configuration: which ranks have data in it, which get it, and its
 * correct value. The contribution of each rank in each run is a different power of 8, so a wrong
 * sum shows which contribution is missing, duplicated, or of another run. The chunk's number is in
 * the upper bits; in resumed calls a sum shows which chunk each rank has added. Pure;
 * single-threaded.
 */
#include <string.h>

#include "offload/base/bytes.h"
#include "tests/model/model.h"

/* Bits of a value: 3 for each rank and life, the chunk, the position in it; 52 in all. */
#define SESSION_WINDOWS 8u /* between the first chunks of two sessions, at least */
#define CHUNK_BIT       36
#define PLACE_BIT       43
/* With MODEL_RESUME and u64: two bits for each chunk; at most 7 chunks and 3 ranks. */
#define DIGIT_BIT 50

const struct model_call *model_call_of(int rank, unsigned call)
{
    const struct model_config *config = model.config;
    unsigned last = 0;

    while (last + 1 < MODEL_CALLS_MAX && config->calls[last + 1].collective != 0)
        last++;
    if (rank == 1 && call == last && config->other.collective != 0)
        return &config->other;
    return &config->calls[call];
}

uint64_t model_call_elements(const struct model_call *call)
{
    return (uint64_t)call->chunks * model.payload / by_dtype_bytes(call->dtype);
}

static void add_chunk(const struct model_call *call, uint8_t number, uint32_t shard, uint32_t j,
                      uint32_t *next)
{
    struct model_chunk *chunk = &model.chunks[model.chunk_count];
    uint32_t all = (1u << model.host_count) - 1;
    int sharded =
        call->collective == BY_COLLECTIVE_ALLGATHER || call->collective == BY_COLLECTIVE_REDUCE_SCATTER;

    BY_ASSERT(model.chunk_count < MODEL_CHUNKS_MAX);
    model.chunk_count++;
    memset(chunk, 0, sizeof(*chunk));
    chunk->call = number;
    chunk->tree = model.config->tree_b != NULL && j >= call->chunks / 2;
    chunk->offset = next[chunk->tree]++;
    chunk->bytes = call->collective == BY_COLLECTIVE_BARRIER ? 0 : model.payload;
    chunk->source = MODEL_ALL;
    chunk->receivers = all;
    chunk->void_ = model.config->other.collective != 0 &&
                   (number + 1 == MODEL_CALLS_MAX || model.config->calls[number + 1].collective == 0);
    switch (call->collective) {
    case BY_COLLECTIVE_REDUCE:
        chunk->receivers = 1u << call->root;
        break;
    case BY_COLLECTIVE_REDUCE_SCATTER:
        chunk->receivers = 1u << shard;
        break;
    case BY_COLLECTIVE_BROADCAST:
        chunk->source = (int16_t)call->root;
        break;
    case BY_COLLECTIVE_ALLGATHER:
        chunk->source = (int16_t)shard;
        break;
    case BY_COLLECTIVE_BARRIER:
        chunk->source = MODEL_NOBODY;
        chunk->receivers = 0;
        break;
    default:
        break;
    }
    for (int h = 0; h < model.host_count; h++) {
        uint32_t in_all = (sharded ? shard * call->chunks : 0) + j;

        chunk->send_at[h] = (call->collective == BY_COLLECTIVE_REDUCE_SCATTER ? in_all : j) * model.payload;
        chunk->recv_at[h] = (call->collective == BY_COLLECTIVE_ALLGATHER ? in_all : j) * model.payload;
    }
}

void model_plan(void)
{
    uint32_t next[2] = {model.roll_chunks + 1, 1}; /* after the roll call and the openings */

    model.chunk_count = 0;
    for (uint8_t c = 0; c < MODEL_CALLS_MAX && model.config->calls[c].collective != 0; c++) {
        const struct model_call *call = &model.config->calls[c];
        int sharded =
            call->collective == BY_COLLECTIVE_ALLGATHER || call->collective == BY_COLLECTIVE_REDUCE_SCATTER;
        uint32_t shards = sharded ? (uint32_t)model.host_count : 1;

        for (uint32_t shard = 0; shard < shards; shard++)
            for (uint32_t j = 0; j < call->chunks; j++)
                add_chunk(call, c, shard, j, next);
    }
}

/* Returns the number of a chunk's session. Sessions on used tables, and those that ranks call again
 * after a node's memory has changed, begin eight windows or a multiple of them later; all chunks of
 * a run fit between. */
uint32_t model_session(uint32_t seq)
{
    return model.config->faults & (MODEL_RESTART | MODEL_FLIP)
               ? (seq - model.config->first_seq) / (SESSION_WINDOWS * model.config->window)
               : 0;
}

uint32_t model_offset(uint32_t seq)
{
    return seq - model.config->first_seq - model_session(seq) * SESSION_WINDOWS * model.config->window;
}

int model_chunk_at(unsigned tree, uint32_t seq)
{
    uint32_t offset = model_offset(seq);

    if (tree == 0 && offset < model.roll_chunks)
        return MODEL_ROLL;
    if (offset == (tree == 0 ? model.roll_chunks : 0))
        return MODEL_OPENING;
    for (uint32_t k = 0; k < model.chunk_count; k++)
        if (model.chunks[k].tree == tree && model.chunks[k].offset == offset)
            return (int)k;
    return MODEL_NO_CHUNK;
}

static int is_real(uint32_t k)
{
    return model.config->calls[model.chunks[k].call].dtype == BY_DTYPE_F64;
}

int model_value(int rank, unsigned life, uint32_t k, uint8_t *bytes)
{
    const struct model_chunk *chunk = &model.chunks[k];

    if (chunk->source != MODEL_ALL && chunk->source != rank)
        return 0;
    for (uint32_t at = 0; at < chunk->bytes; at += 8) {
        uint64_t value = UINT64_C(1) << 3 * ((unsigned)rank * MODEL_LIVES_MAX + life);
        double real;

        value += (uint64_t)(k + 1) << CHUNK_BIT;
        value += (uint64_t)at << PLACE_BIT;
        if (model.config->faults & MODEL_RESUME && !is_real(k))
            value += UINT64_C(1) << (DIGIT_BIT + 2 * k);
        real = (double)value; /* exact, as are sums */
        memcpy(bytes + at, is_real(k) ? (const void *)&real : &value, 8);
    }
    return 1;
}

int model_sum(const uint8_t *lives, uint32_t ranks, uint32_t k, uint8_t *bytes)
{
    uint8_t part[MODEL_PAYLOAD_MAX];
    int any = 0;

    memset(bytes, 0, MODEL_PAYLOAD_MAX);
    for (int h = 0; h < model.host_count; h++) {
        if (!(ranks >> h & 1) || !model_value(h, lives[h], k, part))
            continue;
        any = 1;
        for (uint32_t at = 0; at < model.chunks[k].bytes; at += 8) {
            uint64_t sum, value;
            double x, y;

            memcpy(&sum, bytes + at, 8);
            memcpy(&value, part + at, 8);
            memcpy(&x, bytes + at, 8);
            memcpy(&y, part + at, 8);
            sum += value;
            x += y;
            memcpy(bytes + at, is_real(k) ? (const void *)&x : &sum, 8);
        }
    }
    return any;
}
