/*
 * The actions that the adversary may take at a host: deliver a packet, let a timer expire, end its
 * patience, end and restart its process. Each is one call of the real by_endpoint_step at a time
 * that causes exactly this. Single-threaded.
 */
#include "tests/model/model.h"

static void send_all(int c, const struct by_tx *tx, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        model_send(c, &tx[i], tx[i].payload != NULL ? tx[i].payload : tx[i].small);
}

static void step_at(int c, uint64_t now_ns, const struct by_rx *rx)
{
    struct by_endpoint *endpoint = model_endpoint_of(&model.components[c]);
    struct by_tx tx[MODEL_BURST];
    uint32_t count, rounds = 0;

    do {
        by_endpoint_step(endpoint, now_ns, rx, rx != NULL, tx, MODEL_BURST, &count);
        send_all(c, tx, count);
        rx = NULL;
        if (rounds++ == MODEL_BURST) {
            model_violate("an endpoint sends without end");
            return;
        }
    } while (count == MODEL_BURST);
}

/* Lets the timer of only this lane expire. */
static int timer(int c, uint32_t lane)
{
    struct by_endpoint *endpoint = model_endpoint_of(&model.components[c]);

    if (lane >= endpoint->lane_count || endpoint->dead != 0 || endpoint->lanes[lane].inflight == 0)
        return 0;
    for (uint32_t l = 0; l < endpoint->lane_count; l++)
        if (l != lane)
            endpoint->lanes[l].timer_ns = 2 * MODEL_NOW_NS;
    step_at(c, by_timer_due(endpoint, &endpoint->lanes[lane]) + (UINT64_C(1) << BY_WHEEL_TICK), NULL);
    return 1;
}

static int wait_for(int c, uint64_t patience_part)
{
    struct by_endpoint *endpoint = model_endpoint_of(&model.components[c]);

    if (endpoint->dead != 0 || endpoint->inflight == 0)
        return 0;
    step_at(c, MODEL_NOW_NS + endpoint->config.stall_ns / patience_part, NULL);
    return 1;
}

static int restart(int c)
{
    const struct model_host *host = (const struct model_host *)model.components[c].arena;

    if (host->life >= model.config->fault_count || !(model.config->faults & (MODEL_RESTART | MODEL_CRASH)))
        return 0;
    model_host_begin(c, host->life + 1u);
    return 1;
}

int model_host_act(int c, uint32_t action, const struct model_message *message)
{
    struct by_rx rx;

    switch (action) {
    case MODEL_ACT_TIMER:
    case MODEL_ACT_TIMER_B:
        return timer(c, action - MODEL_ACT_TIMER);
    case MODEL_ACT_PROBE:
        return model.config->probes && wait_for(c, 4);
    case MODEL_ACT_PATIENCE:
        if (model.config->standbys > 0)
            return model_resume_act(c, action, NULL);
        return (model.config->end == MODEL_END_ANY || model.config->end == MODEL_END_MEMORY) &&
               wait_for(c, 1);
    case MODEL_ACT_RESTART:
        if (!(model.config->faults & MODEL_RESUME))
            return restart(c);
        return model_resume_act(c, action, NULL);
    case MODEL_ACT_REPEAT:
        return model.config->faults & MODEL_RESUME && model_resume_act(c, action, NULL);
    default:
        break;
    }
    if (message != NULL && (action - MODEL_ACT_MESSAGE) % 2 != 0)
        message = model.config->faults & MODEL_DAMAGE ? model_damaged(message) : NULL;
    if (message == NULL)
        return 0;
    if (message->port == MODEL_PORT_BESIDE)
        return model_resume_act(c, action, message);
    rx = (struct by_rx){.data = message->data,
                        .bytes = message->bytes,
                        .port = message->port,
                        .src_ip = message->src_ip,
                        .dst_ip = message->dst_ip,
                        .ecn = 2};
    step_at(c, MODEL_NOW_NS, &rx);
    return 1;
}
