/*
 * The properties of a single component, checked after each step of real code and before its state
 * is made canonical: no wrong value, no duplicated or missing leaf, no valid packet refused, no
 * wrong end. Properties of several components are in explore.c (a bank reclaimed while needed) and
 * live.c. Single-threaded.
 */
#include <string.h>

#include "tests/model/model.h"

/* Runs that begin on used tables, and nodes that lost their memory, may be refused correctly. */
static int is_undisturbed(void)
{
    return !(model.config->faults & (MODEL_RESTART | MODEL_CRASH_SAME | MODEL_FLIP));
}

/* ---- hosts ---- */

/* Finds the lives of the ranks whose nonces are in the roll. Returns 0 if a nonce is not one that a
 * rank drew. */
static int lives_in_roll(const struct by_endpoint *endpoint, uint8_t lives[MODEL_HOSTS_MAX])
{
    for (int r = 0; r < model.host_count; r++) {
        uint32_t life = endpoint->roll[r] - model_nonce(r, 0);

        if (life >= MODEL_LIVES_MAX)
            return 0;
        lives[r] = (uint8_t)life;
    }
    return 1;
}

static void check_chunk(const struct model_component *c, const struct by_endpoint *endpoint,
                        const uint8_t *lives, uint32_t k)
{
    const struct model_host *host = (const struct model_host *)c->arena;
    const struct model_chunk *chunk = &model.chunks[k];
    const uint8_t *got = &host->recv[chunk->call][chunk->recv_at[c->rank]];
    uint8_t before[MODEL_PAYLOAD_MAX], right[MODEL_PAYLOAD_MAX];
    int agreed = endpoint->session_phase == BY_SESSION_AGREED;

    if (!(chunk->receivers >> c->rank & 1) || host->spoiled >> chunk->call & 1)
        return;
    memset(before, MODEL_UNTOUCHED, sizeof(before));
    if (model.config->in_place)
        (void)model_value(c->rank, host->life, k, before);
    if (agreed && !chunk->void_ && model_is_done(c, k)) {
        (void)model_sum(lives, (1u << model.host_count) - 1, k, right);
        if (memcmp(got, right, chunk->bytes) != 0)
            model_violate("a rank gets a wrong value");
    } else if (memcmp(got, before, chunk->bytes) != 0) {
        model_violate(chunk->void_ ? "a rank gets a value that the ranks disagree about"
                                   : "a rank's memory is written though its chunk is not done");
    }
}

/* Returns whether this number is that of a node whose memory may change. */
static int is_node(uint16_t node)
{
    return node < model.fabric.node_count && model.engine_of[node] >= 0;
}

static void check_ends(const struct model_component *c, const struct by_endpoint *endpoint)
{
    for (unsigned i = 0; i < MODEL_CALLS_MAX && model.config->calls[i].collective != 0; i++) {
        const struct by_call_state *call = &endpoint->calls[i];
        int error = call->status.error;

        if (call->phase != BY_CALL_ENDED)
            continue;
        if (error == 0) {
            for (uint32_t k = 0; k < model.chunk_count; k++)
                if (model.chunks[k].call == i &&
                    (model.chunks[k].void_ || c->rank < 0 || !model_is_done(c, k)))
                    model_violate("a call ends well though a chunk of it is not done");
        } else if (model.config->end == MODEL_END_DONE) {
            model_violate("a call ends with an error without a cause");
        } else if (model.config->end == MODEL_END_MEMORY) {
            if (error != BY_EABORTED && error != BY_ETIMEDOUT &&
                (error != BY_ECHECKSUM || !is_node(call->status.node)))
                model_violate("a call ends with an error that does not name a node");
        } else if (error != BY_EMISMATCH && error != BY_EABORTED &&
                   (model.config->end == MODEL_END_MISMATCH ||
                    (error != BY_ESTATE && error != BY_ETIMEDOUT))) {
            model_violate("a call ends with an error that does not fit");
        }
    }
}

/* Compares an endpoint's counts with its contents. */
static int books_are_right(const struct model_component *c, const struct by_endpoint *endpoint)
{
    uint32_t flying = 0;

    for (uint32_t l = 0; l < endpoint->lane_count; l++) {
        const struct by_ep_lane *lane = &endpoint->lanes[l];
        uint32_t here = 0;

        if (lane->next - lane->base > lane->mask + 1)
            return 0;
        for (uint32_t i = 0; i <= lane->mask; i++)
            here += lane->flights[i].flags & BY_FLIGHT_SENT;
        if (lane->inflight != here)
            return 0;
        flying += here;
    }
    if (endpoint->inflight != flying)
        return 0;
    for (unsigned i = 0; i < MODEL_CALLS_MAX && model.config->calls[i].collective != 0; i++) {
        uint64_t open = 0;

        for (uint32_t k = 0; k < model.chunk_count; k++)
            open += model.chunks[k].call == i && !model_is_done(c, k);
        if (!model.config->other.collective && endpoint->calls[i].remaining != open)
            return 0;
    }
    return 1;
}

void model_check_host(int index)
{
    const struct model_component *c = &model.components[index];
    const struct by_endpoint *endpoint = model_endpoint_of(c);
    const struct by_endpoint_counters *counters = &endpoint->counters;
    uint8_t lives[MODEL_HOSTS_MAX] = {0};

    if (endpoint->dead == 0 && !books_are_right(c, endpoint)) {
        model_violate("a rank's window and what it counts do not fit together");
        return;
    }
    if (endpoint->session_phase == BY_SESSION_AGREED && !lives_in_roll(endpoint, lives))
        model_violate("a session has a nonce that nobody drew");
    for (uint32_t k = 0; k < model.chunk_count; k++)
        check_chunk(c, endpoint, lives, k);
    check_ends(c, endpoint);
    if (counters->drop_format + counters->drop_ingress > 0 || counters->drop_key > 0 ||
        (counters->drop_psum > 0 && !(model.config->faults & MODEL_DAMAGE)))
        model_violate("a rank cannot read what a sound node sends");
    if (counters->drop_witness > 0)
        model_violate("a result's witness does not fit");
    if (is_undisturbed() && counters->drop_match > 0)
        model_violate("a rank is sent a result that is not for it");
}

/* ---- nodes ---- */

/* Returns the ranks below the child with bit `bit` of `node`. */
static uint32_t leaves_below(const struct fabric_job *job, const struct fabric_tree *tree, int node,
                             unsigned bit)
{
    uint32_t leaves = 0;
    int child = -1;

    for (int n = 0; n < model.fabric.node_count && child < 0; n++)
        if (tree->parent[n] == node && bit-- == 0)
            child = n;
    for (int r = 0; r < job->rank_count; r++) {
        int up = job->rank_node[r];

        if (child < 0) { /* the node's own leaf */
            leaves |= up == node ? 1u << r : 0;
            continue;
        }
        while (up >= 0 && up != child)
            up = tree->parent[up];
        leaves |= up == child ? 1u << r : 0;
    }
    return leaves;
}

static void sum_of_roll(const uint8_t *lives, uint32_t leaves, uint32_t offset, uint8_t *bytes)
{
    uint8_t all[4 * MODEL_HOSTS_MAX + MODEL_PAYLOAD_MAX] = {0};

    for (int r = 0; r < model.host_count; r++) {
        uint32_t nonce = model_nonce(r, lives[r]);

        if (leaves >> r & 1)
            memcpy(all + 4 * r, &nonce, 4);
    }
    memcpy(bytes, all + offset, model.payload);
}

/* Returns whether the bytes are the sum over exactly these leaves, each in one of its lives. */
static int is_sum(const struct by_entry *entry, int k, uint32_t leaves, uint32_t offset, const uint8_t *value,
                  uint16_t bytes)
{
    uint8_t lives[MODEL_HOSTS_MAX] = {0}, right[MODEL_PAYLOAD_MAX];
    unsigned choices = 1, each = model.config->faults & MODEL_RESTART ? model.config->fault_count + 1u : 1;

    for (int r = 0; r < model.host_count; r++)
        choices *= each;
    for (unsigned choice = 0; choice < choices; choice++) {
        for (unsigned r = 0, rest = choice; r < (unsigned)model.host_count; r++, rest /= each)
            lives[r] =
                (uint8_t)(model.config->faults & MODEL_RESUME  ? 0
                          : model.config->faults & MODEL_CRASH ? (unsigned)(entry->gen - model.config->gen)
                                                               : rest % each);
        if (k == MODEL_ROLL)
            sum_of_roll(lives, leaves, offset * model.payload, right);
        else
            (void)model_sum(lives, leaves, (uint32_t)k, right);
        if (memcmp(value, right, bytes) == 0)
            return 1;
    }
    return 0;
}

/* Returns NULL, or how a bank's value differs from that of chunk k. */
static const char *value_fault(const struct by_engine *engine, const struct by_entry *entry, uint32_t index,
                               uint32_t leaves, int k)
{
    const struct by_bank *bank = &engine->bank[index];
    int back = bank->state == BY_BANK_DONE && entry->has_parent;
    const uint8_t *value = back ? by_bank_result(engine, entry, index) : by_bank_partial(engine, index);
    uint32_t offset = model_offset(bank->seq);
    uint32_t bytes =
        k == MODEL_ROLL ? 4u * (uint32_t)model.host_count - offset * model.payload : model.chunks[k].bytes;
    uint32_t sources = leaves;

    if (bank->mode == BY_MODE_DET && bank->state == BY_BANK_AGG)
        return NULL; /* incomplete: the value is in several parts */
    if (bytes > model.payload)
        bytes = model.payload;
    if (k >= 0 && model.chunks[k].source != MODEL_ALL)
        sources = model.chunks[k].source < 0 ? 0 : leaves & 1u << model.chunks[k].source;
    if (!back && (sources != 0) != ((bank->flags & BY_BANK_DATA) != 0))
        return "a node has lost data, or has data that nobody sent";
    if (!(bank->flags & BY_BANK_DATA))
        return NULL;
    if (!is_sum(entry, k, leaves, offset, value, (uint16_t)bytes))
        return "a node holds a wrong sum";
    if (bank->state != BY_BANK_AGG &&
        (by_bank_bytes(bank) != bytes || by_psum(value, (uint32_t)bytes) != bank->psum))
        return "a node holds a sum with a wrong checksum";
    return NULL;
}

/* In a resumed generation the chunk of a number depends on the chunks completed in the previous
 * one: it must be that of some chunk; the hosts check which one. */
static const char *resumed_fault(const struct by_engine *engine, const struct by_entry *entry, uint32_t index,
                                 uint32_t leaves)
{
    const struct by_bank *bank = &engine->bank[index];
    int k = bank->seq < model.roll_chunks ? MODEL_ROLL : 0;
    const char *fault;

    if (bank->flags & BY_BANK_START && bank->count == 0)
        return bank->flags & BY_BANK_DATA ? "an opening has data" : NULL;
    fault = value_fault(engine, entry, index, leaves, k);

    while (fault != NULL && ++k < (int)model.chunk_count)
        fault = value_fault(engine, entry, index, leaves, k);
    return fault;
}

static void check_bank(const struct model_component *c, const struct by_engine *engine,
                       const struct by_entry *entry, uint32_t index)
{
    const struct by_bank *bank = &engine->bank[index];
    unsigned t = entry->key & 0xffff;
    const struct fabric_job *job = model_job(entry->gen);
    const struct fabric_tree *tree = &job->trees[t];
    uint32_t leaves = 0, witness = 0;
    int k = model_chunk_at(t, bank->seq);
    const char *fault = NULL;

    if (!by_bank_is_sealed(bank))
        model_violate("a bank is left without its seal");
    if (bank->state != BY_BANK_AGG && bank->state != BY_BANK_UP && bank->state != BY_BANK_DONE)
        return;
    for (unsigned bit = 0; bit < entry->child_count; bit++)
        if (bank->have >> bit & 1)
            leaves |= leaves_below(job, tree, c->node, bit);
    if (bank->state == BY_BANK_DONE && entry->has_parent)
        leaves = (1u << model.host_count) - 1;
    for (int r = 0; r < model.host_count; r++)
        if (leaves >> r & 1)
            witness += by_leaf_tag(MODEL_JOB, (uint16_t)r);
    if (bank->nleaf != __builtin_popcount(leaves) || bank->witness != witness)
        model_violate("a leaf is added twice, or not at all");
    else if (model.config->faults & MODEL_RESUME && entry->gen != model.config->gen)
        fault = resumed_fault(engine, entry, index, leaves);
    else if (k == MODEL_NO_CHUNK)
        fault = "a bank holds a chunk that nobody sends";
    else if (k == MODEL_OPENING)
        fault = bank->flags & BY_BANK_DATA ? "an opening has data" : NULL;
    else if (k == MODEL_ROLL || !model.chunks[k].void_)
        fault = value_fault(engine, entry, index, leaves, k);
    if (fault != NULL)
        model_violate(fault);
}

/* Mode DET: each place of an entry is free, or holds exactly one waiting value. */
static void check_places(const struct by_engine *engine, const struct by_entry *entry)
{
    uint32_t count = by_place_count(entry), places = 0;
    uint64_t seen = 0;

    if (count == 0)
        return;
    for (uint32_t i = 0; i < *by_places_free(engine, entry) && i < count; i++, places++)
        seen |= UINT64_C(1) << by_places_of(engine, entry)[i];
    for (uint32_t i = 0; i < 2 * entry->window; i++)
        for (uint32_t p = 1; p < entry->slots / entry->window; p++)
            for (unsigned odd = 0; odd < 2; odd++) {
                uint32_t place = by_pair_of(engine, entry, 2 * entry->slot_base + i, p)->place[odd];

                if ((place & BY_PAIR_PLACE) == 0)
                    continue;
                seen |= UINT64_C(1) << ((place & BY_PAIR_PLACE) - 1);
                places++;
            }
    if (count > 63 || places != count || seen != (UINT64_C(1) << count) - 1)
        model_violate("a place for what waits is lost, or shared");
}

void model_check_engine(int index)
{
    const struct model_component *c = &model.components[index];
    const struct by_engine *engine = model_engine_of(c);
    const struct by_engine_counters *counters = &engine->counters;

    if (((const struct model_engine *)c->arena)->flips > 0)
        return; /* only the values at the ranks matter */
    for (uint32_t e = 0; e < engine->active->entry_count; e++) {
        const struct by_entry *entry = &engine->active->entry[e];

        for (uint32_t i = 0; i < 2 * entry->window; i++)
            check_bank(c, engine, entry, 2 * entry->slot_base + i);
        check_places(engine, entry);
    }
    if (counters->drop_format + counters->drop_version + counters->drop_tag + counters->drop_child +
                counters->drop_ingress + counters->drop_count >
            0 ||
        counters->drop_key > 0 || (counters->drop_psum > 0 && !(model.config->faults & MODEL_DAMAGE)))
        model_violate("a node cannot read what a sound neighbour sends");
    if (counters->alarm_memory > 0)
        model_violate("a node believes that its memory has changed");
    if (is_undisturbed() && counters->alarm_lost_state > 0)
        model_violate("a node believes that it has lost state");
    if (is_undisturbed() && counters->drop_window > 0)
        model_violate("a node believes a sound leaf beyond its window");
    if (model.config->end == MODEL_END_DONE && counters->poison > 0)
        model_violate("a chunk is poisoned though the ranks agree");
}

/* ---- facts ---- */

static void gather_host(const struct model_component *c, struct model_facts *facts)
{
    const struct by_endpoint *endpoint = model_endpoint_of(c);

    facts->life = ((const struct model_host *)c->arena)->life;
    if (model.config->faults & MODEL_RESUME)
        facts->life = ((const struct model_host *)c->arena)->attempt;
    facts->gen = endpoint->gen;
    facts->dead = endpoint->dead != 0;
    facts->ended = facts->ended_well = 1;
    for (unsigned i = 0; i < MODEL_CALLS_MAX && model.config->calls[i].collective != 0; i++) {
        const struct by_call_state *call = &endpoint->calls[i];
        int is_last = i + 1 == MODEL_CALLS_MAX || model.config->calls[i + 1].collective == 0;

        if (call->phase == BY_CALL_ENDED && call->status.error != 0) {
            facts->failed = 1;
            facts->named |= call->status.error == BY_ECHECKSUM;
        }
        if (call->phase != BY_CALL_ENDED)
            facts->ended = facts->ended_well = 0;
        else if (model.config->end == MODEL_END_DONE && call->status.error != 0)
            facts->ended_well = 0;
        else if (model.config->end == MODEL_END_MISMATCH && is_last && call->status.error != BY_EMISMATCH)
            facts->ended_well = 0;
    }
    for (uint32_t l = 0; l < endpoint->lane_count && l < 2; l++) {
        const struct by_ep_lane *lane = &endpoint->lanes[l];

        facts->base[l] = lane->base;
        facts->next[l] = lane->next;
        for (uint32_t seq = lane->base; seq != lane->next; seq++)
            if (by_flight_at(lane, seq)->flags & BY_FLIGHT_SENT)
                facts->flying[l] |= 1u << (seq - lane->base);
    }
}

void model_gather_facts(int index, struct model_facts *facts)
{
    const struct model_component *c = &model.components[index];
    const struct model_engine *extra = (const struct model_engine *)c->arena;
    const struct by_engine *engine = model_engine_of(c);

    if (c->kind == MODEL_HOST) {
        gather_host(c, facts);
        return;
    }
    facts->life = extra->life;
    facts->crashes = extra->crashes;
    facts->forgotten = extra->forgotten;
    facts->gen = (uint16_t)(model.config->gen + extra->life);
    if (extra->flips > 0)
        return; /* the apparent needs of its banks have no meaning */
    for (uint32_t e = 0; e < engine->active->entry_count; e++) {
        const struct by_entry *entry = &engine->active->entry[e];

        for (uint32_t i = 0; i < 2 * entry->window; i++) {
            const struct by_bank *bank = &engine->bank[2 * entry->slot_base + i];

            if ((bank->state == BY_BANK_AGG || bank->state == BY_BANK_UP) && facts->open_count < 8) {
                facts->open[facts->open_count].tree = (uint16_t)entry->key;
                facts->open[facts->open_count++].seq = bank->seq;
            }
        }
    }
}
