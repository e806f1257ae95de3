/*
 * The actions that the adversary may take at a node: deliver a packet, before or after the end of a
 * bank's repair interval; release a reference late; erase its memory; install the table of another
 * generation. Uses only real code: by_engine_step, by_engine_release, by_engine_init,
 * by_engine_stage, by_engine_commit. Single-threaded.
 */
#include <string.h>

#include "tests/model/model.h"

#define BANKS_MAX 32

/* Payloads that a shell still references must not have changed. */
static void check_held(const struct model_component *c)
{
    const struct model_engine *extra = (const struct model_engine *)c->arena;

    for (int i = 0; i < MODEL_HELD_MAX; i++)
        if (extra->held[i].used &&
            memcmp(c->arena + extra->held[i].at, extra->held[i].copy, extra->held[i].bytes) != 0)
            model_violate("a payload changes while a packet still points to it");
}

/* With a spare buffer for each payload that the shell may keep, no chunk is refused. */
static void check_busy(const struct by_engine *engine)
{
    if (model.config->spares >= MODEL_HELD_MAX && engine->counters.drop_busy > 0)
        model_violate("a chunk is refused although a spare buffer must be free");
}

/* The shell keeps the reference of `tx` if it may and has room; otherwise it releases it
 * immediately. */
static void hold(const struct model_component *c, const struct by_tx *tx)
{
    struct model_engine *extra = (struct model_engine *)c->arena;
    uint32_t at = (uint32_t)(tx->payload - c->arena);
    struct model_held *held = NULL;

    for (int i = 0; i < MODEL_HELD_MAX; i++) {
        if (extra->held[i].used && extra->held[i].at == at)
            break;
        if (!extra->held[i].used) {
            held = &extra->held[i];
            break;
        }
    }
    if (!(model.config->faults & MODEL_HOLD) || held == NULL) {
        by_engine_release(model_engine_of(c), tx->ref);
        return;
    }
    *held = (struct model_held){.used = 1, .bytes = (uint8_t)tx->payload_bytes, .ref = tx->ref, .at = at};
    memcpy(held->copy, tx->payload, tx->payload_bytes);
}

static int release(const struct model_component *c, unsigned i)
{
    struct model_engine *extra = (struct model_engine *)c->arena;
    uint32_t ref = extra->held[i].ref;

    if (!extra->held[i].used)
        return 0;
    memset(&extra->held[i], 0, sizeof(extra->held[i]));
    by_engine_release(model_engine_of(c), ref);
    return 1;
}

static int crash(const struct model_component *c)
{
    struct model_engine *extra = (struct model_engine *)c->arena;
    struct by_engine *engine = model_engine_of(c);
    struct by_engine_config config = engine->config;

    if (extra->forgotten || extra->crashes >= model.config->fault_count ||
        !(model.config->faults & (MODEL_CRASH | MODEL_CRASH_SAME)))
        return 0;
    memset(extra->held, 0, sizeof(extra->held));
    extra->resent = 0;
    memset(engine, 0, c->block_bytes);
    (void)by_engine_init(&engine, engine, c->block_bytes, &config);
    extra->crashes++;
    extra->forgotten = 1;
    return 1;
}

static int install(int c, unsigned life)
{
    const struct model_engine *extra = (const struct model_engine *)model.components[c].arena;

    if (!(model.config->faults & (MODEL_CRASH | MODEL_CRASH_SAME)))
        return 0;
    if (model.config->faults & MODEL_CRASH_SAME ? !extra->forgotten || life != extra->life
                                                : life <= extra->life || life > model_later())
        return 0;
    model_engine_install(c, life);
    return 1;
}

static void flip_place(struct by_engine *engine, const struct by_entry *entry, uint32_t index, uint32_t place)
{
    struct by_bank *bank = &engine->bank[index];
    uint8_t *payload = by_bank_partial(engine, index);

    switch (place) {
    case 0:
        bank->have ^= 1;
        break;
    case 1:
        bank->want ^= 2;
        break;
    case 2:
        bank->seq ^= 1;
        break;
    case 3:
        bank->seq ^= 2u * entry->window;
        break;
    case 4:
        bank->seq ^= 1u << 31;
        break;
    case 5:
        bank->optag ^= 1;
        break;
    case 6:
        bank->witness ^= 1;
        break;
    case 7:
        bank->psum ^= 1;
        break;
    case 8:
        bank->count ^= 1;
        break;
    case 9:
        bank->nleaf ^= 1;
        break;
    case 10:
        bank->state ^= 1; /* swaps AGG and UP, DONE and POISON */
        break;
    case 11:
        bank->state ^= 6; /* swaps AGG and DONE */
        break;
    case 12:
        bank->flags ^= BY_BANK_DATA;
        break;
    default:
        payload[0] ^= 1;
        payload[engine->payload_half] ^= 1; /* at most one of the two is in use */
        break;
    }
}

static int flip(const struct model_component *c, uint32_t what)
{
    struct model_engine *extra = (struct model_engine *)c->arena;
    struct by_engine *engine = model_engine_of(c);
    const struct by_entry *entry = &engine->active->entry[0];
    uint32_t index = 2 * entry->slot_base + what / MODEL_FLIP_PLACES;

    if (!(model.config->faults & MODEL_FLIP) || extra->flips >= model.config->fault_count)
        return 0;
    extra->flips++;
    flip_place(engine, entry, index, what % MODEL_FLIP_PLACES);
    return 1;
}

struct bank_before {
    uint64_t have;
    uint32_t seq;
    uint8_t state;
};

static void note_reclaim(const struct by_engine *engine, const struct bank_before *before,
                         const struct model_message *message, struct model_step *step)
{
    for (uint32_t b = 0; b < 2 * engine->config.slot_count_max; b++) {
        const struct by_bank *bank = &engine->bank[b];

        if (bank->seq == before[b].seq || before[b].state == BY_BANK_VOID || before[b].state == 0)
            continue;
        if ((before[b].state == BY_BANK_AGG || before[b].state == BY_BANK_UP) &&
            model_session(bank->seq) == model_session(before[b].seq))
            model_violate("a bank that still works is reclaimed");
        /* a later session takes the banks of an earlier roll call and opening */
        step->reclaimed = model_session(bank->seq) == model_session(before[b].seq) ||
                          model_chunk_at(by_get16(message->data + 6), before[b].seq) >= 0;
        step->reclaimed_seq = before[b].seq;
        step->tree = by_get16(message->data + 6);
        step->gen = by_get16(message->data + 8);
    }
}

/* Notes, from the packets alone, which banks hold a value that required a repair. */
static void note_resent(const struct model_component *c, const struct bank_before *before,
                        const struct model_message *message)
{
    struct model_engine *extra = (struct model_engine *)c->arena;
    const struct by_engine *engine = model_engine_of(c);
    int resent = (message->data[2] & BY_FLAG_RETX) != 0;

    for (uint32_t b = 0; b < 2 * engine->config.slot_count_max; b++) {
        const struct by_bank *bank = &engine->bank[b];
        int taken = message->data[1] == BY_TYPE_CONTRIB
                        ? bank->have & ~before[b].have || bank->seq != before[b].seq
                        : bank->state != before[b].state;

        if (bank->seq != before[b].seq)
            extra->resent &= ~(1u << b);
        if (taken && resent)
            extra->resent |= 1u << b;
    }
}

/* Endpoints that measure round trips must be able to see whether a value contains something
 * retransmitted. */
static void check_resent(const struct model_component *c, const struct by_tx *tx)
{
    const struct model_engine *extra = (const struct model_engine *)c->arena;
    const struct by_engine *engine = model_engine_of(c);
    uint32_t bank = by_bank_index(&engine->active->entry[0], by_get32(tx->header + 12));

    if (tx->header[1] != BY_TYPE_CONTRIB && tx->header[1] != BY_TYPE_RESULT)
        return;
    if (extra->resent >> bank & 1 && !(tx->header[2] & BY_FLAG_RETX))
        model_violate("a value hides that it is made of something sent again");
}

static void take(int index, const struct model_message *message, uint64_t now_ns, struct model_step *step)
{
    const struct model_component *c = &model.components[index];
    struct by_engine *engine = model_engine_of(c);
    struct by_rx rx = {.data = message->data,
                       .bytes = message->bytes,
                       .port = message->port,
                       .src_ip = message->src_ip,
                       .dst_ip = message->dst_ip,
                       .ecn = 2};
    struct by_tx tx[BY_CHILDREN_MAX + 2];
    struct bank_before before[BANKS_MAX];
    uint32_t count = 0;

    BY_ASSERT(2 * engine->config.slot_count_max <= BANKS_MAX);
    for (uint32_t b = 0; b < 2 * engine->config.slot_count_max; b++)
        before[b] = (struct bank_before){engine->bank[b].have, engine->bank[b].seq, engine->bank[b].state};
    if (by_engine_step(engine, now_ns, &rx, 1, tx, BY_CHILDREN_MAX + 2, &count) != 1)
        model_violate("an engine does not take a packet");
    if (model.config->exact)
        note_resent(c, before, message);
    for (uint32_t i = 0; i < count; i++) {
        if (model.config->exact)
            check_resent(c, &tx[i]);
        model_send(index, &tx[i], tx[i].payload != NULL ? tx[i].payload : tx[i].small);
        if (tx[i].ref != BY_REF_NONE)
            hold(c, &tx[i]);
    }
    check_held(c);
    check_busy(engine);
    if (((const struct model_engine *)c->arena)->flips == 0)
        note_reclaim(engine, before, message, step);
}

int model_node_act(int c, uint32_t action, const struct model_message *message, int late,
                   struct model_step *step)
{
    if (action == MODEL_ACT_CRASH)
        return crash(&model.components[c]);
    if (action >= MODEL_ACT_INSTALL && action <= MODEL_ACT_INSTALL_LAST)
        return install(c, action - MODEL_ACT_INSTALL);
    if (action >= MODEL_ACT_FLIP && action < MODEL_ACT_MESSAGE)
        return flip(&model.components[c], action - MODEL_ACT_FLIP);
    if (action == MODEL_ACT_RELEASE || action == MODEL_ACT_RELEASE_B)
        return release(&model.components[c], action - MODEL_ACT_RELEASE);
    if (message == NULL)
        return 0;
    if (model.config->faults & MODEL_DAMAGE) {
        if (late)
            message = model_damaged(message);
        if (message != NULL)
            take(c, message, 0, step);
        return message != NULL;
    }
    /* Without a clock there is no late packet. If messages already sent are not part of the state,
     * a late packet can do everything that an early one can. */
    if (model.config->clock ? !late && !model.config->exact : late)
        return 0;
    take(c, message, !model.config->clock ? 0 : MODEL_NOW_NS + (late ? MODEL_INTERVAL_NS : 0), step);
    return 1;
}
