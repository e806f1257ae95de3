/*
 * Notices: counters that a client gets without a request, because a port has lost its carrier or
 * has it again. The server of the channel decides when; see agent.h. Agent's thread.
 */
#include <string.h>

#include "firmware/agent/inside.h"
#include "offload/base/assert.h"
#include "offload/base/bytes.h"

int by_agent_asks_notices(const struct by_agent *agent)
{
    return agent->response.which_body == by_Response_counters_tag && agent->request.body.counters.notify;
}

size_t by_agent_notice(struct by_agent *agent, uint8_t *out, size_t capacity)
{
    memset(&agent->response, 0, sizeof agent->response);
    agent->response.version = BY_CONTROL_VERSION;
    by_agent_answer_counters(agent);
    return by_agent_encode(agent, out, capacity);
}

size_t by_channel_notice(struct by_channel *channel, struct by_agent *agent, uint8_t *out, size_t capacity)
{
    uint8_t *body = out + BY_CONTROL_LENGTH_BYTES;
    size_t made;

    BY_ASSERT(capacity >= BY_CHANNEL_OUT_MIN);
    if (!channel->notify || channel->closed || (channel->guard && !channel->psk.is_open))
        return 0;
    if (channel->guard) {
        made = by_agent_notice(agent, body + BY_PSK_HEAD_BYTES, BY_RESPONSE_BYTES_MAX);
        made = by_psk_seal(&channel->psk, body, made);
    } else {
        made = by_agent_notice(agent, body, BY_RESPONSE_BYTES_MAX);
    }
    by_put32(out, (uint32_t)made);
    return BY_CONTROL_LENGTH_BYTES + made;
}
