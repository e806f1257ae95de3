/*
 * Canonical local states: two arenas that differ only in data that no later step can detect get the
 * same bytes (docs/model.md explains why for each kind of data). Clocks are set to MODEL_NOW_NS,
 * counters to 0. Memory that is overwritten before it is read gets a pattern, so that code that
 * reads it nevertheless gets a wrong sum. If hints for clocks are not part of the state
 * (config.exact is 0), they are cleared: an adversary that keeps every message can do everything
 * that the hints can cause. Single-threaded.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/model/model.h"

/* The maximum difference of transmission numbers that a comparison can distinguish from larger
 * ones: thresholds are at most BY_LOSS_THRESHOLD_MAX. */
#define GAP_MAX (BY_LOSS_THRESHOLD_MAX + 1)
/* Transmission numbers are shifted so that the latest one has this value; older ones are beyond the
 * wrap. */
#define ORDER_LAST  3u
#define NUMBERS_MAX 16

/* ---- hosts ---- */

struct canon_number {
    uint32_t *at;
    uint32_t ago; /* number of later transmissions */
};

static void sort_numbers(struct canon_number *number, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t j = i; j > 0 && number[j].ago < number[j - 1].ago; j--) {
            struct canon_number swap = number[j];

            number[j] = number[j - 1];
            number[j - 1] = swap;
        }
}

/*
 * Shifts the transmission numbers of a lane, and closes gaps that have no effect: those larger than
 * every threshold, and those before the oldest flight, since a negative difference of any size is
 * not a loss.
 */
static void squeeze_orders(struct by_ep_lane *lane)
{
    struct canon_number number[NUMBERS_MAX];
    uint32_t count = 0, at = ORDER_LAST, ago = 0, oldest = 0;

    for (uint32_t i = 0; i <= lane->mask; i++)
        if (lane->flights[i].flags & BY_FLIGHT_SENT) {
            number[count] =
                (struct canon_number){&lane->flights[i].order, lane->order - lane->flights[i].order};
            if (number[count].ago > oldest)
                oldest = number[count].ago;
            count++;
        }
    if (count == 0 || lane->order - lane->revive_order >= oldest)
        lane->revive = 0; /* nothing in flight is older, now or later */
    if (lane->revive == 0)
        lane->revive_order = lane->order_heard;
    number[count++] = (struct canon_number){&lane->order_heard, lane->order - lane->order_heard};
    number[count++] = (struct canon_number){&lane->revive_order, lane->order - lane->revive_order};
    sort_numbers(number, count);
    lane->order = ORDER_LAST;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t limit = number[i].ago > oldest ? 1 : GAP_MAX;
        uint32_t gap = number[i].ago - ago < limit ? number[i].ago - ago : limit;

        ago = number[i].ago;
        at -= gap;
        *number[i].at = at;
    }
}

/* Puts flights in the order of their chunks, and clears how often and why they were sent. */
static void forget_hints(struct by_ep_lane *lane)
{
    uint16_t before = BY_FLIGHT_NONE;

    lane->order = lane->order_heard = lane->revive_order = ORDER_LAST;
    lane->revive = 0;
    lane->threshold = BY_LOSS_THRESHOLD;
    lane->oldest = lane->newest = BY_FLIGHT_NONE;
    for (uint32_t seq = lane->base; seq != lane->next; seq++) {
        uint16_t slot = (uint16_t)(seq & lane->mask);
        struct by_flight *flight = &lane->flights[slot];

        if (!(flight->flags & BY_FLIGHT_SENT))
            continue;
        flight->flags &= (uint8_t) ~(BY_FLIGHT_RETX | BY_FLIGHT_TIMED | BY_FLIGHT_HELD);
        flight->order = ++lane->order;
        flight->older = before;
        flight->newer = BY_FLIGHT_NONE;
        if (before == BY_FLIGHT_NONE)
            lane->oldest = slot;
        else
            lane->flights[before].newer = slot;
        lane->newest = before = slot;
    }
    lane->order_heard = lane->revive_order = ORDER_LAST;
}

static void canon_lane(struct by_ep_lane *lane)
{
    for (uint32_t i = 0; i <= lane->mask; i++) {
        struct by_flight *flight = &lane->flights[i];

        flight->sent_ns = flight->first_ns = MODEL_NOW_NS;
        if (flight->flags & BY_FLIGHT_SENT)
            continue;
        flight->order = 0;
        flight->older = flight->newer = BY_FLIGHT_NONE;
    }
    lane->heard = lane->base - 1; /* a request names some chunk that was heard */
    lane->timer_ns = lane->heard_ns = MODEL_NOW_NS;
    lane->backoff = lane->probes = 0;
    lane->srtt = lane->rttvar = lane->interval = 0;
    lane->rtt_low = lane->rtt_low_next = lane->rtt_near = 0;
    lane->rtt_epoch_ns = 0;
    memset(&lane->wait, 0, sizeof(lane->wait)); /* the node that a failed call would report */
    memset(&lane->hint, 0, sizeof(lane->hint));
    if (model.config->exact)
        squeeze_orders(lane);
    else
        forget_hints(lane);
}

/* The wheel's contents depend on the time, except for the chunks in flight. */
static void canon_timers(struct by_endpoint *endpoint)
{
    by_timer_init(endpoint);
    endpoint->wheel.tick = MODEL_NOW_NS >> BY_WHEEL_TICK;
    for (uint32_t l = 0; l < endpoint->lane_count; l++) {
        struct by_ep_lane *lane = &endpoint->lanes[l];

        lane->timer_tick = lane->timer_next = lane->timer_prior = 0;
        if (lane->inflight > 0 && endpoint->dead == 0)
            by_timer_set(endpoint, lane);
    }
}

/* Retained data of chunks that all ranks have are not needed, nor are data in places of other
 * chunks. */
static void canon_kept(struct by_ep_lane *lane)
{
    uint32_t window = lane->mask + 1;

    for (uint32_t slot = 0; slot < window && lane->traces != NULL; slot++) {
        int used = 0;

        for (uint32_t ago = 1; ago <= 2 * window; ago++) {
            uint32_t seq = lane->next - ago;
            struct by_trace *trace = by_trace_at(lane, seq);

            if ((seq & lane->mask) != slot || trace->kind == 0 || trace->seq != seq)
                continue;
            if (ago > window && by_lane_is_done(lane, seq + window))
                *trace = (struct by_trace){.seq = seq, .call = trace->call, .kind = trace->kind};
            used |= trace->kept || (trace->added > 0 && !by_lane_is_done(lane, seq));
        }
        if (!used)
            memset(by_retain_at(lane, slot), MODEL_STALE, 2u * lane->payload_max);
    }
}

/* If nothing is missing, the rank sends only its own report. */
static void canon_resume(int c)
{
    struct by_resume *resume = model_resume_of(&model.components[c]);

    if (resume->decided && resume->missing == 0 && resume->reports != NULL) {
        for (uint32_t r = 0; r < resume->rank_count; r++) {
            resume->heard[r] &= (uint8_t)~BY_HEARD_DETAIL;
            if (r != resume->rank || resume->over)
                memset(resume->reports + r * resume->report_bytes, 0, resume->report_bytes);
            if (resume->over)
                resume->heard[r] = 0;
        }
    }
    if (resume->over)
        resume->level_count = 0;
}

void model_canon_host(int c)
{
    struct by_endpoint *endpoint = model_endpoint_of(&model.components[c]);

    memset(&endpoint->counters, 0, sizeof(endpoint->counters));
    endpoint->now_ns = MODEL_NOW_NS;
    endpoint->window_cut_ns = 0;
    /* No window here is wider than what losses cut it to, so these decide nothing. */
    endpoint->loss_count = endpoint->loss_results = endpoint->loss_usual = endpoint->loss_patience = 0;
    endpoint->mark_seen = endpoint->doubt = 0;
    for (uint32_t l = 0; l < endpoint->lane_count; l++) {
        canon_lane(&endpoint->lanes[l]);
        canon_kept(&endpoint->lanes[l]);
    }
    if (model.config->faults & MODEL_RESUME)
        canon_resume(c);
    canon_timers(endpoint);
    for (uint32_t i = 0; i < BY_CALLS_MAX + 2; i++) {
        struct by_call_status *status = &endpoint->calls[i].status;
        struct by_call_status blank = {.error = status->error, .session = status->session};

        if (endpoint->calls[i].phase == BY_CALL_ENDED) {
            memset(status, 0, sizeof(*status));
            status->error = blank.error;
            status->session = blank.session;
        }
    }
}

/* ---- nodes ---- */

/* Clears payload that the next chunk overwrites before it reads it, unless a packet still points to
 * it. */
static void spoil(uint8_t *payload, size_t bytes, const struct by_bank *bank)
{
    if (bank->refs == 0)
        memset(payload, MODEL_STALE, bytes);
}

/* Offset of the time in a node's record of a missing child's report (offload/engine/place.c). */
#define HEARD_AT BY_WAIT_BYTES

static void canon_objection(struct by_engine *engine, uint32_t index)
{
    struct by_bank *bank = &engine->bank[index];
    uint8_t *objection = by_bank_objection(engine, index);

    if (bank->state == BY_BANK_POISON)
        return;
    if (!model.config->exact || bank->state != BY_BANK_AGG)
        bank->flags &= (uint8_t)~BY_BANK_HEARD;
    if (bank->flags & BY_BANK_HEARD)
        by_put64(objection + HEARD_AT, model.config->clock ? MODEL_NOW_NS : 0);
    else
        memset(objection, MODEL_STALE, BY_ERR_BYTES);
}

/*
 * Moves values that wait for their pair in mode DET (offload/engine/pairs.c) to the places from 0
 * on, in the order of chunks and children, since the next free place depends on the past. The other
 * places are free.
 */
static void canon_places(struct by_engine *engine, const struct by_entry *entry)
{
    uint32_t count = by_place_count(entry), used = 0, half = (uint32_t)engine->payload_half;
    uint8_t *value = malloc((size_t)count * half + 1);

    if (!value)
        abort();
    for (uint32_t i = 0; i < 2 * entry->window; i++) {
        uint32_t index = 2 * entry->slot_base + i;
        const struct by_bank *bank = &engine->bank[index];
        int waits = bank->state == BY_BANK_AGG && bank->mode == BY_MODE_DET;

        for (uint32_t p = 1; p < entry->slots / entry->window; p++) {
            struct by_pair *pair = by_pair_of(engine, entry, index, p);

            for (unsigned odd = 0; odd < 2; odd++) {
                uint32_t place = pair->place[odd] & BY_PAIR_PLACE;

                pair->place[odd] = 0;
                if (!waits || place == 0) {
                    pair->psum[odd] = 0;
                    continue;
                }
                memcpy(value + (size_t)used * half, by_place_at(engine, entry, place - 1), half);
                pair->place[odd] = ++used;
            }
            by_pair_seal(pair);
        }
    }
    for (uint32_t place = 0; place < count; place++)
        if (place < used)
            memcpy(by_place_at(engine, entry, place), value + (size_t)place * half, half);
        else
            memset(by_place_at(engine, entry, place), MODEL_STALE, half);
    free(value);
    if (count > 0) {
        for (uint32_t i = 0; i < count; i++)
            by_places_of(engine, entry)[i] = count - 1 - i;
        *by_places_free(engine, entry) = count - used;
    }
}

static void canon_bank(struct by_engine *engine, const struct by_entry *entry, uint32_t index)
{
    struct by_bank *bank = &engine->bank[index];
    uint8_t *partial = by_bank_partial(engine, index);
    size_t half = engine->payload_half;
    int data = (bank->flags & BY_BANK_DATA) != 0;
    int sealed = by_bank_is_sealed(bank);

    bank->tick = bank->down = model.config->clock ? (uint32_t)MODEL_NOW_NS : 0;
    if (!model.config->exact) {
        bank->told = 0;
        bank->waits = 0;
        bank->flags &= (uint8_t) ~(BY_BANK_PASSED | BY_BANK_RESENT);
    }
    canon_objection(engine, index);
    by_bank_seal(bank);
    if (!sealed) /* a bit has flipped; otherwise a property would be broken */
        bank->seal ^= 0xffffu;
    if (!data || bank->state == BY_BANK_VOID || bank->state == BY_BANK_POISON ||
        (bank->state == BY_BANK_DONE && entry->has_parent))
        spoil(partial, half, bank);
    if (!data || bank->state != BY_BANK_DONE || !entry->has_parent)
        spoil(partial + half, half, bank);
}

/* Free buffers have no content, and no order. */
static void canon_spares(struct by_engine *engine)
{
    for (uint32_t i = 0; i < engine->spare_free; i++) {
        memset(engine->payload + engine->spare[i] * engine->payload_stride, MODEL_STALE,
               engine->payload_stride);
        for (uint32_t j = i; j > 0 && engine->spare[j - 1] < engine->spare[j]; j--) {
            uint32_t swap = engine->spare[j];

            engine->spare[j] = engine->spare[j - 1];
            engine->spare[j - 1] = swap;
        }
    }
    for (uint32_t i = engine->spare_free; i < engine->config.spare_count; i++)
        engine->spare[i] = 0;
}

static int has_value(const struct by_engine *engine, const struct by_entry *entry, uint32_t bank,
                     uint32_t child)
{
    return (by_set_of(engine, entry, bank, child)->have & by_child_bit(child)) != 0;
}

/* Returns one after the latest chunk of the stream of `child`, or of the parent (child < 0). */
static uint32_t stream_end(const struct by_engine *engine, const struct by_entry *entry, int child)
{
    uint32_t end = engine->bank[2 * entry->slot_base].seq;

    for (uint32_t i = 0; i < 2 * entry->window; i++) {
        uint32_t index = 2 * entry->slot_base + i;
        const struct by_bank *bank = &engine->bank[index];
        int here = child >= 0 ? bank->state >= BY_BANK_AGG && bank->state <= BY_BANK_DONE &&
                                    has_value(engine, entry, index, (uint32_t)child)
                              : bank->state == BY_BANK_DONE;

        if ((int32_t)((here ? bank->seq + 1 : bank->seq - 2 * entry->window) - end) > 0)
            end = bank->seq + 1;
    }
    return end;
}

static int stream_lacks(const struct by_engine *engine, const struct by_entry *entry, int child, uint32_t seq)
{
    uint32_t index = by_bank_index(entry, seq);
    const struct by_bank *bank = &engine->bank[index];

    if (child < 0)
        return bank->seq == seq && bank->state == BY_BANK_UP;
    if (bank->seq == seq)
        return bank->state == BY_BANK_AGG && !has_value(engine, entry, index, (uint32_t)child);
    return (int32_t)(seq - bank->seq) > 0; /* in a session's first windows by any number */
}

/*
 * A stream only decides when a node requests chunks. In its canonical form it has requested
 * nothing, so a node requests whatever is missing with each later packet.
 */
static void canon_stream(const struct by_engine *engine, const struct by_entry *entry, int child,
                         struct by_hop_stream *stream)
{
    stream->next = stream_end(engine, entry, child);
    stream->hole = stream->next - entry->window;
    while (stream->hole != stream->next && !stream_lacks(engine, entry, child, stream->hole))
        stream->hole++;
    stream->asked = stream->hole;
    stream->asked_at = model.config->clock ? (uint32_t)MODEL_NOW_NS : 0;
    stream->patience = (uint32_t)MODEL_INTERVAL_NS;
    stream->late = 0;
}

static void canon_streams(struct by_engine *engine)
{
    for (unsigned t = 0; t < 2; t++) {
        struct by_table *table = &engine->table[t];

        for (uint32_t e = 0; e < table->entry_count; e++) {
            struct by_entry *entry = &table->entry[e];

            if (entry->joined) /* its children are in the entry before it */
                continue;
            memset(&entry->parent.stream, 0, sizeof(entry->parent.stream));
            for (int i = 0; i < entry->child_count; i++)
                memset(&table->child[entry->first_child + (uint32_t)i].stream, 0,
                       sizeof(struct by_hop_stream));
            if (table != engine->active)
                continue;
            if (entry->has_parent)
                canon_stream(engine, entry, -1, &entry->parent.stream);
            for (int i = 0; i < entry->child_count; i++)
                canon_stream(engine, entry, i, &table->child[entry->first_child + (uint32_t)i].stream);
        }
    }
}

void model_canon_engine(int c)
{
    struct by_engine *engine = model_engine_of(&model.components[c]);

    memset(&engine->counters, 0, sizeof(engine->counters));
    canon_spares(engine);
    canon_streams(engine);
    for (uint32_t e = 0; e < engine->active->entry_count; e++) {
        const struct by_entry *entry = &engine->active->entry[e];

        for (uint32_t i = 0; i < 2 * entry->window; i++)
            canon_bank(engine, entry, 2 * entry->slot_base + i);
        canon_places(engine, entry);
    }
}
