/*
 * Framing of the control channel: a 32-bit big-endian length, then a message. Pieces of any size
 * are accepted; one message at a time is passed to the agent. A length that no message can have
 * cannot be skipped safely, so the client gets an error and the stream ends. Agent's thread.
 */
#include <string.h>

#include "firmware/agent/inside.h"
#include "firmware/agent/refuse.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"

void by_channel_init(struct by_channel *channel, struct by_guard *guard)
{
    channel->have = 0;
    channel->closed = 0;
    channel->hasty = 0;
    channel->notify = 0;
    channel->guard = guard;
    channel->psk = (struct by_psk){0};
    by_rate_start(&channel->rate, BY_CHANNEL_REQUESTS_PER_S, BY_CHANNEL_REQUESTS_BURST);
}

uint64_t by_channel_wait_ns(const struct by_channel *channel, struct by_agent *agent)
{
    uint64_t now_ns = by_agent_now(agent);
    uint64_t hasty_ns = channel->hasty ? by_rate_wait_ns(&channel->rate, now_ns) : 0;
    uint64_t refused_ns =
        channel->guard && now_ns != 0 ? by_rate_wait_ns(&channel->guard->refusals, now_ns) : 0;

    return hasty_ns > refused_ns ? hasty_ns : refused_ns;
}

size_t by_channel_answer(struct by_channel *channel, struct by_agent *agent, const uint8_t *message,
                         size_t bytes, uint8_t *out, size_t capacity)
{
    size_t made;

    channel->hasty = !by_rate_take(&channel->rate, by_agent_now(agent));
    if (!channel->hasty) {
        made = by_agent_answer(agent, message, bytes, out, capacity);
        channel->notify |= by_agent_asks_notices(agent);
        return made;
    }
    by_agent_note(agent, "a client exceeds its request rate: it has to wait");
    return by_refuse_rate(out, capacity);
}

/* Copies the missing bytes of the frame, up to `want`; returns how many were copied. */
static size_t fill(struct by_channel *channel, uint32_t want, const uint8_t *data, size_t bytes)
{
    size_t missing = want - channel->have;
    size_t taken = bytes < missing ? bytes : missing;

    memcpy(channel->frame + channel->have, data, taken);
    channel->have += (uint32_t)taken;
    return taken;
}

int32_t by_channel_step(struct by_channel *channel, struct by_agent *agent, const uint8_t *data, size_t bytes,
                        size_t *used, uint8_t *out, size_t capacity)
{
    uint32_t length;
    size_t answer;

    *used = 0;
    if (channel->closed)
        return BY_EFORMAT;
    if (capacity < BY_CHANNEL_OUT_MIN)
        return 0;
    if (channel->have < BY_CONTROL_LENGTH_BYTES)
        *used = fill(channel, BY_CONTROL_LENGTH_BYTES, data, bytes);
    if (channel->have < BY_CONTROL_LENGTH_BYTES)
        return 0;
    length = by_get32(channel->frame);
    if (length == 0 || length > BY_REQUEST_BYTES_MAX + (channel->guard ? BY_PSK_BYTES : 0)) {
        channel->closed = 1;
        answer = by_refuse_length(length, out + BY_CONTROL_LENGTH_BYTES, capacity - BY_CONTROL_LENGTH_BYTES);
    } else {
        *used += fill(channel, BY_CONTROL_LENGTH_BYTES + length, data + *used, bytes - *used);
        if (channel->have < BY_CONTROL_LENGTH_BYTES + length)
            return 0;
        channel->have = 0;
        answer = (channel->guard ? by_guard_answer : by_channel_answer)(
            channel, agent, channel->frame + BY_CONTROL_LENGTH_BYTES, length, out + BY_CONTROL_LENGTH_BYTES,
            capacity - BY_CONTROL_LENGTH_BYTES);
    }
    by_put32(out, (uint32_t)answer);
    return (int32_t)(BY_CONTROL_LENGTH_BYTES + answer);
}
