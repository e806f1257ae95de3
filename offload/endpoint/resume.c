/*
 * Levelling. Each rank:
 *   1. sends its REPORT of what it has to all others;
 *   2. finds the chunks that some rank has and it lacks;
 *   3. requests each from a rank that has it (NEED), which sends it (COPY);
 *   4. reports when nothing is missing (LEVEL).
 * A rank that lacks a chunk decides alone, from the reports, which are the same everywhere; a rank
 * that sends one checks only what it holds. Neighbours: retain.c holds the data, resume_copy.c
 * continues the calls. Pure; the endpoint's thread.
 *
 * A rank is frozen before it reports, and no rank decides before all have reported. Otherwise a
 * rank could receive a packet after its report and complete a chunk that others then reduce again,
 * from an input that its result has overwritten. No rank continues before all are level, because a
 * rank that had continued could not provide its data if another node died.
 */
#include "offload/endpoint/levelling.h"

#define VERSION    1u
#define HEAD_BYTES BY_LEVELLING_HEAD_BYTES
#define NEED_BYTES BY_LEVELLING_NEED_BYTES
#define COPY_BYTES BY_LEVELLING_COPY_BYTES
#define LANES_AT   (HEAD_BYTES + 4u)

static size_t align_up(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* Returns the bytes of a lane in a report: its base, and a bit for each chunk from there on. */
static uint32_t lane_bytes(const struct by_ep_lane *lane)
{
    return 4 + (lane->mask + 8) / 8;
}

static uint32_t report_bytes(const struct by_endpoint *endpoint)
{
    uint32_t bytes = 0;

    for (uint32_t l = 0; l < endpoint->lane_count; l++)
        bytes += lane_bytes(&endpoint->lanes[l]);
    return bytes;
}

size_t by_resume_size(const struct by_endpoint *endpoint)
{
    return align_up(sizeof(struct by_resume)) + align_up(endpoint->rank_count) +
           align_up(endpoint->lane_count * sizeof(uint32_t)) +
           align_up((size_t)endpoint->rank_count * report_bytes(endpoint));
}

size_t by_resume_message_max(const struct by_endpoint *endpoint)
{
    size_t most = LANES_AT + report_bytes(endpoint);

    for (uint32_t l = 0; l < endpoint->lane_count; l++)
        if (most < COPY_BYTES + endpoint->lanes[l].payload_max)
            most = COPY_BYTES + endpoint->lanes[l].payload_max;
    return most;
}

static uint8_t *report_of(const struct by_resume *resume, uint32_t rank)
{
    return resume->reports + (size_t)rank * resume->report_bytes;
}

/* Writes this rank's report of its current state. */
static void report_make(struct by_resume *resume)
{
    const struct by_endpoint *endpoint = resume->endpoint;

    for (uint32_t l = 0; l < endpoint->lane_count; l++) {
        const struct by_ep_lane *lane = &endpoint->lanes[l];
        uint8_t *at = report_of(resume, endpoint->rank) + resume->lane_at[l];

        by_zero(at, lane_bytes(lane));
        by_put32(at, lane->base);
        for (uint32_t seq = lane->base; seq != lane->next; seq++)
            if (by_lane_is_done(lane, seq))
                at[4 + (seq - lane->base) / 8] |= (uint8_t)(1u << (seq - lane->base) % 8);
    }
}

/* Returns whether the rank had a chunk's result when it reported. */
static int has(const struct by_resume *resume, uint32_t rank, uint32_t l, uint32_t seq)
{
    const uint8_t *at = report_of(resume, rank) + resume->lane_at[l];
    int32_t ahead = (int32_t)(seq - by_get32(at));

    if (!(resume->heard[rank] & BY_HEARD_DETAIL))
        return 0;
    if (ahead < 0)
        return 1;
    return ahead <= (int32_t)resume->endpoint->lanes[l].mask && at[4 + ahead / 8] >> ahead % 8 & 1;
}

/* Returns a rank that has the chunk, a different one for different chunks; BY_RANK_NONE: it must be
 * reduced again. */
static uint32_t holder_of(const struct by_resume *resume, uint32_t l, uint32_t seq)
{
    uint32_t ranks = resume->agreed ? resume->endpoint->rank_count : 0;

    for (uint32_t i = 0; i < ranks; i++)
        if (has(resume, (seq + i) % ranks, l, seq))
            return (seq + i) % ranks;
    return BY_RANK_NONE;
}

/* ---- what is missing ---- */

static void complete(struct by_resume *resume, struct by_ep_lane *lane, struct by_flight *flight)
{
    by_accept_done(resume->endpoint, lane, flight);
    if (--resume->missing == 0)
        resume->endpoint->level = 1;
}

/* Adds inputs in the order of ranks, at the chunk's owner. The owner's own input comes from its
 * buffer; the sum so far is in the chunk's place. */
static void add_input(struct by_resume *resume, struct by_ep_lane *lane, struct by_flight *flight,
                      const uint8_t *input)
{
    struct by_endpoint *endpoint = resume->endpoint;
    const struct by_call_state *call = &endpoint->calls[flight->call];
    const struct by_reducer *reducer =
        by_reducer_get(endpoint->config.isa, call->op, by_reduction_dtype(call->mode, call->op, call->dtype));
    struct by_trace *trace = by_trace_at(lane, flight->seq);
    uint8_t *sum = by_retain_at(lane, flight->seq);
    uint32_t guard = 0;

    BY_ASSERT(reducer != NULL);
    for (; trace->added == endpoint->rank || input != NULL; trace->added++) {
        const uint8_t *next = trace->added == endpoint->rank ? flight->send : input;

        if (next == input)
            input = NULL;
        guard = reducer->psum(sum, (size_t)flight->count * reducer->acc_bytes);
        if (trace->added == 0)
            guard = reducer->load(sum, next, flight->count);
        else
            (void)reducer->accumulate(sum, next, flight->count, &guard);
    }
    if (trace->added < endpoint->rank_count)
        return;
    guard = reducer->psum(sum, (size_t)flight->count * reducer->acc_bytes);
    (void)reducer->store(sum, flight->count, &guard);
    by_accept_deliver(endpoint, flight, sum);
    complete(resume, lane, flight);
}

/* After all have reported: completes the chunks that need no copy, and counts the others. */
static void decide(struct by_resume *resume)
{
    struct by_endpoint *endpoint = resume->endpoint;

    resume->decided = 1;
    resume->missing = 1;
    for (uint32_t l = 0; l < endpoint->lane_count; l++) {
        struct by_ep_lane *lane = &endpoint->lanes[l];

        for (uint32_t seq = lane->base; seq != lane->next; seq++) {
            struct by_flight *flight = by_flight_at(lane, seq);
            const struct by_trace *trace = by_trace_at(lane, seq);
            int own = trace->owner == endpoint->rank;

            if (by_lane_is_done(lane, seq) || holder_of(resume, l, seq) == BY_RANK_NONE)
                continue;
            resume->missing++;
            if (trace->kind == BY_CHUNK_TO && own) {
                add_input(resume, lane, flight, NULL);
            } else if (trace->kind == BY_CHUNK_EMPTY || (trace->kind == BY_CHUNK_FROM && own) ||
                       trace->kind == BY_CHUNK_TO) {
                by_accept_deliver(endpoint, flight, NULL);
                complete(resume, lane, flight);
            }
        }
    }
    if (--resume->missing == 0)
        endpoint->level = 1;
}

int by_resume_begin(struct by_resume **resume, void *memory, struct by_endpoint *endpoint, uint16_t attempt)
{
    struct by_resume *r = memory;
    uint8_t *at = (uint8_t *)memory + align_up(sizeof(*r));
    uint32_t bytes = 0;

    if (endpoint->dead != 0 || !endpoint->config.resume)
        return BY_ESTATE;
    if (endpoint->gen == attempt)
        return BY_EINVAL;
    for (uint32_t l = 0; l < endpoint->lane_count; l++)
        if (endpoint->lanes[l].half != BY_HALF_NONE)
            return BY_EUNSUPPORTED; /* the value and the inputs of a chunk are on different lanes */
    by_zero(memory, by_resume_size(endpoint));
    r->endpoint = endpoint;
    r->attempt = attempt;
    r->job = endpoint->config.job;
    r->rank = endpoint->rank;
    r->rank_count = endpoint->rank_count;
    r->was_level = endpoint->level;
    r->agreed = endpoint->session_phase == BY_SESSION_AGREED;
    r->report_bytes = report_bytes(endpoint);
    r->heard = at;
    at += align_up(endpoint->rank_count);
    r->lane_at = (uint32_t *)at;
    at += align_up(endpoint->lane_count * sizeof(uint32_t));
    r->reports = at;
    for (uint32_t l = 0; l < endpoint->lane_count; l++) {
        r->lane_at[l] = bytes;
        bytes += lane_bytes(&endpoint->lanes[l]);
    }
    r->answer_to = r->ask_to = BY_RANK_NONE;
    endpoint->frozen = 1;
    report_make(r);
    r->heard[endpoint->rank] = BY_HEARD_REPORT | BY_HEARD_DETAIL;
    *resume = r;
    if (++r->report_count == r->rank_count)
        decide(r);
    return 0;
}

/* Returns the rank to request a chunk from; BY_RANK_NONE: it is not missing. */
static uint32_t whom_to_ask(const struct by_resume *resume, uint32_t l, uint32_t seq)
{
    const struct by_ep_lane *lane = &resume->endpoint->lanes[l];
    const struct by_trace *trace = by_trace_at(lane, seq);
    uint32_t holder;

    if (lane->next - seq - 1 > lane->mask || by_lane_is_done(lane, seq))
        return BY_RANK_NONE;
    holder = holder_of(resume, l, seq);
    return holder != BY_RANK_NONE && trace->kind == BY_CHUNK_TO ? trace->added : holder;
}

/* ---- messages in ---- */

static int take_report(struct by_resume *resume, uint16_t rank, const uint8_t *data, size_t bytes)
{
    const struct by_endpoint *endpoint = resume->endpoint;
    int32_t newer;

    if (bytes < LANES_AT)
        return BY_EFORMAT;
    if (resume->heard[rank] & BY_HEARD_REPORT)
        return 0;
    newer = (int16_t)(by_get16(data + HEAD_BYTES) - endpoint->gen);
    /* A generation begins only when all ranks are level in the previous one; a rank that is behind
     * has nothing in it. */
    if ((newer < 0 && !data[HEAD_BYTES + 2]) || (newer > 0 && !endpoint->level))
        return BY_ESTATE;
    if (newer == 0) {
        if (bytes != LANES_AT + resume->report_bytes)
            return BY_EFORMAT;
        by_copy(report_of(resume, rank), data + LANES_AT, resume->report_bytes);
        resume->heard[rank] |= BY_HEARD_DETAIL;
        resume->agreed |= data[HEAD_BYTES + 3] & 1u;
    }
    resume->heard[rank] |= BY_HEARD_REPORT;
    if (++resume->report_count == endpoint->rank_count)
        decide(resume);
    return 0;
}

/* Returns the lane and the chunk that a message refers to; NULL: not in this endpoint. */
static struct by_ep_lane *lane_of(const struct by_resume *resume, const uint8_t *data, uint32_t *seq)
{
    uint32_t l = by_get16(data + HEAD_BYTES + 2);

    *seq = by_get32(data + HEAD_BYTES + 4);
    if (by_get16(data + HEAD_BYTES) != resume->endpoint->gen || l >= resume->endpoint->lane_count)
        return NULL;
    return &resume->endpoint->lanes[l];
}

static int take_need(struct by_resume *resume, uint16_t rank, const uint8_t *data, size_t bytes)
{
    struct by_ep_lane *lane;
    uint32_t seq, held;

    if (bytes != NEED_BYTES)
        return BY_EFORMAT;
    lane = lane_of(resume, data, &seq);
    if (lane == NULL || by_retain_held(resume->endpoint, lane, seq, &held) == NULL)
        return 0;
    resume->answer_to = rank;
    resume->answer_lane = (uint16_t)(lane - resume->endpoint->lanes);
    resume->answer_seq = seq;
    return 0;
}

static int take_copy(struct by_resume *resume, uint16_t rank, const uint8_t *data, size_t bytes)
{
    struct by_ep_lane *lane;
    struct by_flight *flight;
    const struct by_trace *trace;
    uint32_t seq, l;

    if (bytes < COPY_BYTES)
        return BY_EFORMAT;
    lane = lane_of(resume, data, &seq);
    if (lane == NULL || !resume->decided)
        return 0;
    l = (uint32_t)(lane - resume->endpoint->lanes);
    if (whom_to_ask(resume, l, seq) != rank)
        return 0;
    if (by_psum(data + COPY_BYTES, bytes - COPY_BYTES) != by_get32(data + NEED_BYTES))
        return BY_ECHECKSUM;
    flight = by_flight_at(lane, seq);
    trace = by_trace_at(lane, seq);
    if (bytes - COPY_BYTES != (trace->kind == BY_CHUNK_TO ? flight->bytes : trace->held_bytes))
        return BY_EFORMAT;
    resume->endpoint->counters.copied++;
    if (trace->kind != BY_CHUNK_TO) {
        by_copy(flight->recv, data + COPY_BYTES, bytes - COPY_BYTES);
        complete(resume, lane, flight);
        return 0;
    }
    add_input(resume, lane, flight, data + COPY_BYTES);
    resume->ask_to = whom_to_ask(resume, l, seq);
    resume->ask_lane = (uint16_t)l;
    resume->ask_seq = seq;
    return 0;
}

static void take_level(struct by_resume *resume, uint16_t rank)
{
    resume->level_count += !(resume->heard[rank] & BY_HEARD_LEVEL);
    resume->heard[rank] |= BY_HEARD_LEVEL;
}

int by_resume_take(struct by_resume *resume, const uint8_t *data, size_t bytes)
{
    uint16_t rank;

    if (bytes < HEAD_BYTES || data[0] != VERSION)
        return BY_EFORMAT;
    rank = by_get16(data + 6);
    if (resume->over || by_get16(data + 2) != resume->endpoint->config.job ||
        by_get16(data + 4) != resume->attempt || rank >= resume->endpoint->rank_count ||
        rank == resume->endpoint->rank)
        return 0;
    switch (data[1]) {
    case BY_LEVELLING_REPORT:
        return take_report(resume, rank, data, bytes);
    case BY_LEVELLING_NEED:
        return take_need(resume, rank, data, bytes);
    case BY_LEVELLING_COPY:
        return take_copy(resume, rank, data, bytes);
    case BY_LEVELLING_LEVEL:
        take_level(resume, rank);
        return 0;
    default:
        return BY_EFORMAT;
    }
}

/* ---- messages out ---- */

static void head(const struct by_resume *resume, enum by_levelling_type type, uint8_t *data)
{
    data[0] = VERSION;
    data[1] = (uint8_t)type;
    by_put16(data + 2, resume->job);
    by_put16(data + 4, resume->attempt);
    by_put16(data + 6, resume->rank);
}

static size_t say_chunk(const struct by_resume *resume, enum by_levelling_type type, uint16_t lane,
                        uint32_t seq, uint8_t *data)
{
    head(resume, type, data);
    by_put16(data + HEAD_BYTES, resume->endpoint->gen);
    by_put16(data + HEAD_BYTES + 2, lane);
    by_put32(data + HEAD_BYTES + 4, seq);
    return NEED_BYTES;
}

size_t by_resume_put_copy(const struct by_resume *resume, uint16_t l, uint32_t seq, uint8_t *data)
{
    uint32_t bytes;
    const uint8_t *held = by_retain_held(resume->endpoint, &resume->endpoint->lanes[l], seq, &bytes);

    (void)say_chunk(resume, BY_LEVELLING_COPY, l, seq, data);
    by_put32(data + NEED_BYTES, by_psum_copy(data + COPY_BYTES, held, bytes));
    return COPY_BYTES + bytes;
}

static size_t say_copy(struct by_resume *resume, uint8_t *data, uint16_t *to)
{
    *to = resume->answer_to;
    resume->answer_to = BY_RANK_NONE;
    return by_resume_put_copy(resume, resume->answer_lane, resume->answer_seq, data);
}

static size_t say_need(struct by_resume *resume, uint8_t *data, uint16_t *to)
{
    *to = (uint16_t)resume->ask_to;
    resume->ask_to = BY_RANK_NONE;
    return say_chunk(resume, BY_LEVELLING_NEED, resume->ask_lane, resume->ask_seq, data);
}

/* Finds the next chunk to request; returns 1 when there is one. */
static int find_need(struct by_resume *resume)
{
    const struct by_endpoint *endpoint = resume->endpoint;

    for (; resume->need_lane < endpoint->lane_count; resume->need_lane++, resume->need_at = 0) {
        const struct by_ep_lane *lane = &endpoint->lanes[resume->need_lane];

        while (resume->need_at <= lane->mask) {
            uint32_t seq = lane->next - ++resume->need_at;

            resume->ask_to = whom_to_ask(resume, resume->need_lane, seq);
            resume->ask_lane = (uint16_t)resume->need_lane;
            resume->ask_seq = seq;
            if (resume->ask_to != BY_RANK_NONE)
                return 1;
        }
    }
    return 0;
}

/* Finds the next other rank to send to, or all of them; returns 1 when there is one. */
static int find_rank(const struct by_resume *resume, uint32_t *next, uint16_t *to)
{
    if (resume->shared && *next == 0) {
        *next = resume->rank_count;
        *to = BY_RANK_NONE;
        return 1;
    }
    *next += *next == resume->rank;
    if (*next >= resume->rank_count)
        return 0;
    *to = (uint16_t)(*next)++;
    return 1;
}

size_t by_resume_say(struct by_resume *resume, uint8_t *data, uint16_t *to)
{
    if (!resume->over) {
        const struct by_endpoint *endpoint = resume->endpoint;

        if (resume->answer_to != BY_RANK_NONE)
            return say_copy(resume, data, to);
        if (resume->ask_to != BY_RANK_NONE)
            return say_need(resume, data, to);
        if (find_rank(resume, &resume->report_next, to)) {
            head(resume, BY_LEVELLING_REPORT, data);
            by_put16(data + HEAD_BYTES, endpoint->gen);
            data[HEAD_BYTES + 2] = resume->was_level;
            data[HEAD_BYTES + 3] = endpoint->session_phase == BY_SESSION_AGREED;
            by_copy(data + LANES_AT, report_of(resume, endpoint->rank), resume->report_bytes);
            return LANES_AT + resume->report_bytes;
        }
        if (!resume->decided)
            return 0;
        if (find_need(resume))
            return say_need(resume, data, to);
        if (resume->missing > 0)
            return 0;
    }
    if (!find_rank(resume, &resume->level_next, to))
        return 0;
    head(resume, BY_LEVELLING_LEVEL, data);
    return HEAD_BYTES;
}

void by_resume_share(struct by_resume *resume)
{
    resume->shared = 1;
}

void by_resume_repeat(struct by_resume *resume)
{
    if (resume->shared)
        resume->ask_to = BY_RANK_NONE; /* found again with the others */
    else
        resume->report_next = resume->level_next = 0;
    resume->need_lane = resume->need_at = 0;
}

int by_resume_is_level(const struct by_resume *resume)
{
    return resume->decided && resume->missing == 0 && resume->level_count + 1u == resume->rank_count;
}

uint16_t by_resume_awaited(const struct by_resume *resume)
{
    for (uint16_t rank = 0; rank < resume->rank_count; rank++)
        if (rank != resume->rank &&
            !(resume->heard[rank] & (resume->decided ? BY_HEARD_LEVEL : BY_HEARD_REPORT)))
            return rank;
    return BY_RANK_NONE;
}
