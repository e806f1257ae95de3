/*
 * Calls that resume in the next generation: the messages between hosts outside the network, with
 * real code throughout (by_resume_begin, _take, _say, _carry), in any order, repeatedly or never.
 * This file derives the completed chunks from the plan and from those completed when the endpoint
 * began, not from the lists of the code under test. Single-threaded.
 */
#include <string.h>

#include "tests/model/model.h"

/* Calls are in the order of chunks; those of a tree are visited in the order of their numbers. */
static uint32_t seq_now(const struct model_host *host, const struct by_ep_lane *lane,
                        const struct model_chunk *chunk, uint32_t k)
{
    const struct model_chunk *chunks = model.chunks;
    uint32_t seq = 0;

    if (host->block == 0)
        return lane->start + chunk->offset;
    for (uint32_t other = 0; other < k; other++)
        seq += !(host->resumed >> other & 1) &&
               (model.config->after != NULL || chunks[other].tree == chunk->tree);
    if (!host->rolled)
        seq += 1 + (model.config->after != NULL || chunk->tree == 0 ? model.roll_chunks : 0);
    return seq;
}

int model_is_done(const struct model_component *c, uint32_t k)
{
    const struct model_host *host = (const struct model_host *)c->arena;
    const struct model_chunk *chunk = &model.chunks[k];
    const struct by_endpoint *endpoint = model_endpoint_of(c);
    const struct by_ep_lane *lane;
    uint32_t seq;

    if (host->resumed >> k & 1)
        return 1;
    lane = &endpoint->lanes[host->block > 0 && model.config->after != NULL ? 0 : chunk->tree];
    seq = seq_now(host, lane, chunk, k);
    if ((int32_t)(seq - lane->base) < 0)
        return 1;
    return (int32_t)(seq - lane->next) < 0 && by_lane_is_done(lane, seq);
}

void model_spoil(int index)
{
    const struct model_component *c = &model.components[index];
    struct model_host *host = (struct model_host *)c->arena;
    const struct by_endpoint *endpoint = model_endpoint_of(c);

    if (!(model.config->faults & MODEL_RESUME))
        return;
    for (unsigned i = 0; i < MODEL_CALLS_MAX && model.config->calls[i].collective != 0; i++) {
        if (endpoint->calls[i].phase != BY_CALL_ENDED || host->spoiled >> i & 1)
            continue;
        memset(host->send[i], MODEL_STALE, sizeof(host->send[i]));
        memset(host->recv[i], MODEL_STALE, sizeof(host->recv[i]));
        host->spoiled |= (uint8_t)(1u << i);
    }
}

static void say_all(int c)
{
    struct by_resume *resume = model_resume_of(&model.components[c]);
    uint8_t data[BY_WIRE_HEADER_BYTES + MODEL_PAYLOAD_MAX];
    uint16_t to;
    size_t bytes;

    if (!resume->over)
        BY_ASSERT(by_resume_message_max(resume->endpoint) <= sizeof(data));
    while ((bytes = by_resume_say(resume, data, &to)) > 0)
        model_tell(c, to, data, bytes);
}

/* Freezes for a later attempt. */
static int freeze(int index, unsigned later)
{
    const struct model_component *c = &model.components[index];
    struct model_host *host = (struct model_host *)c->arena;
    struct by_endpoint *endpoint = model_endpoint_of(c);
    struct by_resume *resume;

    if (host->attempt + later > model_later())
        return 0;
    host->attempt = (uint8_t)(host->attempt + later);
    BY_ASSERT(c->block_at + MODEL_LIVES_MAX * c->block_bytes + by_resume_size(endpoint) <= c->bytes);
    if (by_resume_begin(&resume, model_resume_of(c), endpoint,
                        (uint16_t)(model.config->gen + host->attempt)) != 0)
        model_violate("calls cannot be resumed");
    else if (host->attempt <= model.config->standbys)
        model_rounds_begin(index);
    else
        say_all(index);
    return 1;
}

/* The endpoint resumes in the generation of the attempt. */
static void carry(int index)
{
    const struct model_component *c = &model.components[index];
    struct model_host *host = (struct model_host *)c->arena;
    struct by_resume *resume = model_resume_of(c);
    struct by_endpoint_config config = model_endpoint_config(c, host->attempt);
    struct by_endpoint *endpoint;
    struct by_tx tx[MODEL_BURST];
    size_t old = c->block_at + host->block * c->block_bytes;
    uint32_t done = 0, count;

    for (uint32_t k = 0; k < model.chunk_count; k++)
        done |= (uint32_t)model_is_done(c, k) << k;
    host->rolled = model_endpoint_of(c)->session_phase == BY_SESSION_AGREED;
    BY_ASSERT(by_resume_copy_size(resume, &config) <= c->block_bytes);
    if (by_resume_copy(resume, &endpoint, c->arena + c->block_at + host->attempt * c->block_bytes,
                       c->block_bytes, &config) != 0) {
        model_violate("calls cannot be carried over");
        return;
    }
    memcpy(c->arena + old, c->base + old, c->block_bytes); /* its memory is free again */
    host->resumed = done;
    host->block = host->attempt;
    by_endpoint_step(endpoint, MODEL_NOW_NS, NULL, 0, tx, MODEL_BURST, &count);
    for (uint32_t i = 0; i < count; i++)
        model_send(index, &tx[i], tx[i].payload != NULL ? tx[i].payload : tx[i].small);
}

int model_resume_act(int index, uint32_t action, const struct model_message *message)
{
    const struct model_host *host = (const struct model_host *)model.components[index].arena;
    struct by_resume *resume = model_resume_of(&model.components[index]);
    int stands = host->attempt <= model.config->standbys;

    if (action == MODEL_ACT_RESTART || action == MODEL_ACT_PATIENCE)
        return freeze(index, action == MODEL_ACT_PATIENCE ? 2 : 1);
    if (host->attempt == 0)
        return 0;
    if (action == MODEL_ACT_REPEAT) {
        if (stands) {
            model_rounds_repeat(index);
            return 1;
        }
        by_resume_repeat(resume);
        say_all(index);
        return 1;
    }
    if (stands != (message->data[0] != 1)) /* of another attempt */
        return 1;
    if (stands) {
        if (model_rounds_take(index, message))
            carry(index);
        return 1;
    }
    if (by_resume_take(resume, message->data, message->bytes) != 0) {
        model_violate("ranks cannot be made level");
        return 1;
    }
    say_all(index);
    if (!resume->over && by_resume_is_level(resume))
        carry(index);
    return 1;
}
