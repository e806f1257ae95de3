/*
 * Carries calls over into the trees of another generation, when all ranks are level. A chunk is
 * merely a range of bytes of a call's shard. The ranges that the old trees have done are listed
 * (done.c), and the lanes of the new trees traverse the calls from the oldest running one, dividing
 * the rest by their own shares and sizes. All ranks have the same calls done and the same list, so
 * they divide alike. Pure; the endpoint's thread.
 */
#include "offload/endpoint/levelling.h"

/* A lane's position: everything before it is done. */
struct position {
    uint32_t call, shard;
    uint64_t at;
};

static struct position position_of(const struct by_ep_lane *lane)
{
    const struct by_ep_cursor *cursor = &lane->cursor;

    if (lane->base != lane->next) {
        const struct by_trace *trace = by_trace_at(lane, lane->base);

        return (struct position){trace->call, trace->shard, trace->at};
    }
    if (cursor->active)
        return (struct position){cursor->call, cursor->shard, cursor->at};
    return (struct position){cursor->call, 0, 0};
}

/* Returns the call of that number if it runs, else NULL. */
static struct by_call_state *running(struct by_endpoint *endpoint, uint32_t number)
{
    struct by_call_state *call = by_call_at(endpoint, number);

    return call->phase == BY_CALL_RUNNING && call->number == number ? call : NULL;
}

/* Returns the oldest running call, or the next one to be posted. */
static uint32_t oldest(struct by_endpoint *endpoint)
{
    uint32_t number = endpoint->posted - BY_CALLS_MAX;

    while (number != endpoint->posted && running(endpoint, number) == NULL)
        number++;
    return number;
}

/* Records bytes as done in `to`, or only counts them. */
static void note(struct by_endpoint *to, const struct by_done *done, uint32_t *count)
{
    ++*count;
    if (to != NULL)
        by_done_add(to, done);
}

/* Collects what the old lane has done of the running calls. */
static void collect_lane(struct by_endpoint *old, const struct by_ep_lane *lane, struct by_endpoint *to,
                         uint32_t *count)
{
    struct position position = position_of(lane);

    for (uint32_t n = oldest(old); n != old->posted && (int32_t)(n - position.call) <= 0; n++) {
        const struct by_call_state *call = running(old, n);
        struct by_done done = {.call = n};

        if (call == NULL || call->call.collective == BY_COLLECTIVE_BARRIER)
            continue;
        for (; by_cursor_segment(old, lane, call, &done.shard, &done.from, &done.to); done.shard++) {
            if (n == position.call && done.shard > position.shard)
                break;
            if (n == position.call && done.shard == position.shard && done.to > position.at)
                done.to = position.at;
            if (done.from < done.to)
                note(to, &done, count);
        }
    }
    for (uint32_t seq = lane->base; seq != lane->next; seq++) {
        const struct by_trace *trace = by_trace_at(lane, seq);

        if (by_lane_is_done(lane, seq) && trace->kind != BY_CHUNK_EMPTY && running(old, trace->call) != NULL)
            note(to,
                 &(struct by_done){.from = trace->at,
                                   .to = trace->at + trace->bytes,
                                   .call = trace->call,
                                   .shard = trace->shard},
                 count);
    }
}

/* Collects what is done of the running calls; returns the number of records. Before the session
 * there are none. */
static uint32_t collect(struct by_endpoint *old, struct by_endpoint *to)
{
    uint32_t count = 0;

    if (old->session_phase != BY_SESSION_AGREED)
        return 0;
    for (uint32_t i = 0; i < old->done_count; i++)
        if (running(old, old->done[i].call) != NULL)
            note(to, &old->done[i], &count);
    for (uint32_t l = 0; l < old->lane_count; l++)
        collect_lane(old, &old->lanes[l], to, &count);
    return count;
}

size_t by_resume_copy_size(const struct by_resume *resume, const struct by_endpoint_config *config)
{
    size_t bytes = by_endpoint_size(config);

    if (bytes == 0)
        return 0;
    return (bytes + collect(resume->endpoint, NULL) * sizeof(struct by_done) + 63) & ~(size_t)63;
}

/* Returns 0 when `to` can replace `old`. */
static int check(struct by_endpoint *old, const struct by_endpoint *to)
{
    if (to->rank != old->rank || to->rank_count != old->rank_count || to->gen == old->gen ||
        to->config.job != old->config.job)
        return BY_EINVAL;
    for (uint32_t n = oldest(old); n != old->posted; n++) {
        const struct by_call_state *call = running(old, n);

        if (call != NULL && !by_endpoint_serves_call(to, &call->call))
            return BY_EUNSUPPORTED;
    }
    return 0;
}

static void take_session(const struct by_endpoint *old, struct by_endpoint *to)
{
    to->config.nonce = old->config.nonce;
    if (old->session_phase != BY_SESSION_AGREED)
        return; /* the roll call is repeated: nothing else has been sent yet */
    to->session_phase = BY_SESSION_AGREED;
    to->session_salt = old->session_salt;
    by_copy(to->roll, old->roll, old->rank_count * sizeof(uint32_t));
}

static void take_calls(struct by_endpoint *old, struct by_endpoint *to)
{
    int any = 0;

    to->posted = old->posted;
    for (uint32_t c = 0; c < BY_CALLS_MAX; c++)
        to->calls[c] = old->calls[c];
    for (uint32_t l = 0; l < to->lane_count; l++)
        to->lanes[l].cursor.call = oldest(to);
    for (uint32_t n = oldest(to); n != to->posted; n++) {
        struct by_call_state *call = running(to, n);

        if (call == NULL)
            continue;
        any = 1;
        by_cursor_plan(to, call);
    }
    if (any && to->session_phase != BY_SESSION_AGREED)
        by_session_begin(to);
    for (uint32_t l = 0; l < to->lane_count; l++)
        if (by_cursor_seek(to, &to->lanes[l]))
            by_send_ready(to, &to->lanes[l]);
}

int by_resume_copy(struct by_resume *resume, struct by_endpoint **endpoint, void *memory, size_t bytes,
                   const struct by_endpoint_config *config)
{
    struct by_endpoint *old = resume->endpoint, *to;
    size_t size = by_endpoint_size(config);
    int error;

    if (!by_resume_is_level(resume) || resume->over || old->dead != 0)
        return BY_ESTATE;
    if (size != 0 && bytes < by_resume_copy_size(resume, config))
        return BY_ENOMEM;
    error = by_endpoint_init(&to, memory, bytes, config);
    if (error == 0)
        error = check(old, to);
    if (error != 0)
        return error;
    to->done = (struct by_done *)((uint8_t *)memory + size);
    to->done_room = collect(old, NULL);
    (void)collect(old, to);
    to->counters = old->counters;
    to->counters.gone_on++;
    to->now_ns = old->now_ns;
    take_session(old, to);
    take_calls(old, to);
    resume->over = 1;
    resume->endpoint = NULL;
    *endpoint = to;
    return 0;
}
