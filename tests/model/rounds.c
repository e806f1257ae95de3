/*
 * Moves to a standby: the messages between hosts travel in rounds, by the real code of
 * offload/endpoint/rounds.c. The tree of rounds itself is not explored here, as it is an allreduce
 * like all others. In its place stands what an allreduce promises: a host that has the regions of
 * all ranks for a round has its result, and a region may arrive late, repeatedly, or never. The
 * linker passes the calls of by_endpoint_post and _test to this file (module.mk), which handles
 * those of trees of rounds. Single-threaded.
 */
#include <string.h>

#include "offload/endpoint/rounds.h"
#include "tests/model/model.h"

#define OVER       0xff /* in the place of a round's number */
#define ROUNDS_MAX 40   /* more than any order of events requires */

/* Only what rounds.c reads of a tree; by component. */
static struct by_endpoint trees[MODEL_COMPONENTS_MAX];

int __real_by_endpoint_post(struct by_endpoint *endpoint, const struct by_call *call, uint32_t *id,
                            const char **field);
int __wrap_by_endpoint_post(struct by_endpoint *endpoint, const struct by_call *call, uint32_t *id,
                            const char **field);
int __real_by_endpoint_test(struct by_endpoint *endpoint, uint32_t id, struct by_call_status *status);
int __wrap_by_endpoint_test(struct by_endpoint *endpoint, uint32_t id, struct by_call_status *status);

static struct model_host *host_of(int index)
{
    return (struct model_host *)model.components[index].arena;
}

/* Returns the component of a tree of rounds; -1: an endpoint of calls. */
static int component_of(const struct by_endpoint *endpoint)
{
    return endpoint >= trees && endpoint < trees + MODEL_COMPONENTS_MAX ? (int)(endpoint - trees) : -1;
}

static struct by_level_rounds *rounds_of(int index)
{
    return (struct by_level_rounds *)((uint8_t *)model_resume_of(&model.components[index]) +
                                      MODEL_RESUME_BYTES);
}

/* Sends a round's region to all others. */
static void tell_region(int index, const struct model_region *region, unsigned round)
{
    const struct model_host *host = host_of(index);
    uint8_t data[MODEL_REGION_HEAD + MODEL_REGION_MAX];

    data[0] = MODEL_REGION_MARK;
    data[1] = (uint8_t)model.components[index].rank;
    by_put16(data + 2, (uint16_t)(model.config->gen + host->attempt));
    data[4] = (uint8_t)round;
    by_put32(data + 5, region->size);
    memcpy(data + MODEL_REGION_HEAD, region->bytes, region->used);
    for (int r = 0; r < model.host_count; r++)
        if (r != model.components[index].rank)
            model_tell(index, r, data, MODEL_REGION_HEAD + region->used);
}

/* Writes down this host's region, without the zeros at its end, and sends it. */
int __wrap_by_endpoint_post(struct by_endpoint *endpoint, const struct by_call *call, uint32_t *id,
                            const char **field)
{
    int index = component_of(endpoint);
    struct model_rounds *rounds;
    uint32_t size, used;
    const uint8_t *own;

    if (index < 0)
        return __real_by_endpoint_post(endpoint, call, id, field);
    BY_ASSERT(call->recv == model.components[index].arena + model.components[index].bytes);
    rounds = &host_of(index)->rounds;
    size = (uint32_t)(call->count / (unsigned)model.host_count);
    own = (const uint8_t *)call->send + (size_t)model.components[index].rank * size;
    used = size;
    while (used > 0 && own[used - 1] == 0)
        used--;
    BY_ASSERT(used <= MODEL_REGION_MAX);
    if (rounds->round == ROUNDS_MAX) {
        model_violate("the rounds of a standby have no end");
        return BY_ELIMIT;
    }
    rounds->last = rounds->own;
    rounds->own = (struct model_region){.size = size, .used = (uint8_t)used};
    memcpy(rounds->own.bytes, own, used);
    memset(rounds->others, 0, sizeof(rounds->others));
    rounds->round++;
    rounds->got = (uint8_t)(1u << model.components[index].rank);
    tell_region(index, &rounds->own, rounds->round);
    *id = 0;
    return 0;
}

/* Gives the result of the round if all regions are there, into the memory of the call, which begins
 * behind all that is part of the state. */
int __wrap_by_endpoint_test(struct by_endpoint *endpoint, uint32_t id, struct by_call_status *status)
{
    int index = component_of(endpoint);
    const struct model_rounds *rounds;
    uint8_t *regions;

    if (index < 0)
        return __real_by_endpoint_test(endpoint, id, status);
    rounds = &host_of(index)->rounds;
    if (rounds->got != (1u << model.host_count) - 1)
        return BY_EAGAIN;
    regions = model.components[index].arena + model.components[index].bytes;
    for (int r = 0; r < model.host_count; r++) {
        const struct model_region *region =
            r == model.components[index].rank ? &rounds->own : &rounds->others[r];

        if (region->size != rounds->own.size)
            model_violate("ranks disagree on the size of a round");
        memset(regions + (size_t)r * rounds->own.size, 0, rounds->own.size);
        memcpy(regions + (size_t)r * rounds->own.size, region->bytes, region->used);
    }
    return 0;
}

size_t model_rounds_bytes(const struct by_endpoint *endpoint, size_t *scratch)
{
    size_t bytes = by_level_rounds_size(endpoint), ranks = endpoint->rank_count;

    /* The regions are at the end: at most 4 MiB together, in lines of 64 bytes each. */
    *scratch = ranks * (((size_t)4 << 20) / ranks & ~(size_t)63);
    return bytes - *scratch;
}

void model_rounds_begin(int index)
{
    struct model_host *host = host_of(index);
    struct by_resume *resume = model_resume_of(&model.components[index]);
    struct by_level_rounds *rounds;

    memset(&host->rounds, 0, sizeof(host->rounds));
    trees[index].gen = resume->attempt;
    trees[index].rank = resume->rank;
    trees[index].rank_count = resume->rank_count;
    trees[index].config.job = MODEL_JOB;
    if (by_level_rounds_begin(&rounds, rounds_of(index), resume, &trees[index]) != 0)
        model_violate("the rounds of a standby cannot begin");
}

/* The regions of the last two rounds are repeated: others may lack the last result. */
void model_rounds_repeat(int index)
{
    const struct model_rounds *rounds = &host_of(index)->rounds;
    unsigned round = rounds->round == OVER ? rounds->rounds_count : rounds->round;

    if (round > 1)
        tell_region(index, &rounds->last, round - 1);
    tell_region(index, &rounds->own, round);
}

int model_rounds_take(int index, const struct model_message *message)
{
    struct model_host *host = host_of(index);
    struct model_rounds *rounds = &host->rounds;
    uint8_t rank = message->data[1];
    struct model_region *region = &rounds->others[rank];
    int error;

    if (by_get16(message->data + 2) != (uint16_t)(model.config->gen + host->attempt) ||
        message->data[4] != rounds->round || rounds->got >> rank & 1)
        return 0;
    region->size = by_get32(message->data + 5);
    region->used = (uint8_t)(message->bytes - MODEL_REGION_HEAD);
    memcpy(region->bytes, message->data + MODEL_REGION_HEAD, region->used);
    rounds->got |= (uint8_t)(1u << rank);
    trees[index].gen = (uint16_t)(model.config->gen + host->attempt);
    error = by_level_rounds_step(rounds_of(index));
    if (error < 0)
        model_violate("ranks cannot be made level");
    if (!by_level_rounds_is_over(rounds_of(index)))
        return 0;
    /* Only the regions are still needed. */
    rounds->rounds_count = rounds->round;
    rounds->round = OVER;
    rounds->got = 0;
    memset(rounds->others, 0, sizeof(rounds->others));
    memset(rounds_of(index), 0,
           model.components[index].bytes -
               (size_t)((uint8_t *)rounds_of(index) - model.components[index].arena));
    return 1;
}
