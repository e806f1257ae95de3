/*
 * Mode DET: sums and products of floats in an order that the tree alone determines: ((pair 0 + pair
 * 1) + pair 2) ..., with pair p = (child 2p + child 2p + 1). Within a pair both orders give the
 * same bits.
 *
 * - Values of the first pair are added where all sums are.
 * - A later pair is *in turn* when it and all pairs before it are complete. Pairs that come in turn
 *   together are added in one pass, from the packets of a run and from where values waited.
 * - A value that arrives too early waits, as received, in a *place*: half of the payload of one of
 *   the entry's banks behind those of its chunks.
 *
 * A chunk needs at most as many places as it has such banks, but all chunks share them. The place
 * freed last is used first, so that waiting values are in the nearest cache while they are few.
 * Neighbours: contrib.c, which calls this. Runs in the engine's thread.
 */
#include "offload/engine/state.h"

#include "offload/base/bytes.h"

/* ---- places ---- */

/* Returns a free place + 1; 0 when the list of free places is damaged. */
static uint32_t place_take(struct by_engine *engine, const struct by_entry *entry)
{
    uint32_t *free_count = by_places_free(engine, entry);
    uint32_t count = by_place_count(entry), place;

    if (*free_count == 0 || *free_count > count)
        return 0;
    place = by_places_of(engine, entry)[--*free_count];
    return place < count ? place + 1 : 0;
}

static void place_leave(struct by_engine *engine, const struct by_entry *entry, uint32_t place)
{
    uint32_t *free_count = by_places_free(engine, entry);

    if (*free_count < by_place_count(entry))
        by_places_of(engine, entry)[(*free_count)++] = place - 1;
}

/* ---- waiting payloads ---- */

static uint32_t seal_of(const struct by_pair *pair)
{
    uint32_t word =
        pair->psum[0] ^ pair->psum[1] ^ (pair->place[0] & BY_PAIR_PLACE) ^ (pair->place[1] & BY_PAIR_PLACE);

    return (word ^ word >> 16) & 0xffffu;
}

void by_pair_seal(struct by_pair *pair)
{
    uint32_t seal = seal_of(pair);

    pair->place[0] = (pair->place[0] & BY_PAIR_PLACE) | seal << 24;
    pair->place[1] = (pair->place[1] & BY_PAIR_PLACE) | seal >> 8 << 24;
}

static int is_sealed(const struct by_pair *pair)
{
    return seal_of(pair) == (pair->place[0] >> 24 | pair->place[1] >> 24 << 8);
}

/* Returns the waiting payload of the even or the odd child, or NULL. */
static const uint8_t *waiting(const struct by_engine *engine, const struct by_entry *entry,
                              const struct by_pair *pair, unsigned odd)
{
    uint32_t place = pair->place[odd] & BY_PAIR_PLACE;

    return place != 0 ? by_place_at(engine, entry, place - 1) : NULL;
}

static void leave(struct by_engine *engine, const struct by_entry *entry, struct by_pair *pair)
{
    for (unsigned odd = 0; odd < 2; odd++)
        if (pair->place[odd] & BY_PAIR_PLACE)
            place_leave(engine, entry, pair->place[odd] & BY_PAIR_PLACE);
    *pair = (struct by_pair){{0, 0}, {0, 0}}; /* and sealed */
}

void by_pairs_start(struct by_engine *engine, const struct by_entry *entry)
{
    uint32_t count = by_place_count(entry);

    if (count == 0)
        return;
    *by_places_free(engine, entry) = count;
    for (uint32_t i = 0; i < count; i++)
        by_places_of(engine, entry)[i] = count - 1 - i;
    by_zero(by_pair_of(engine, entry, 2 * entry->slot_base, 1), count / 2 * sizeof(struct by_pair));
}

void by_pairs_clear(struct by_engine *engine, const struct by_entry *entry, uint32_t bank)
{
    for (uint32_t i = 1; i < entry->slots / entry->window; i++) {
        struct by_pair *pair = by_pair_of(engine, entry, bank, i);

        if (!is_sealed(pair)) /* its places are lost; a later allocation failure raises the memory alarm */
            pair->place[0] = pair->place[1] = 0;
        leave(engine, entry, pair);
    }
}

/* ---- values that wait ---- */

/* Returns the entry's children of its own tree among the first `count`. At the root of a pair of
 * trees, those of the tree down have no values. */
static uint64_t first_children(const struct by_entry *entry, uint32_t count)
{
    uint32_t most = count < entry->own_count ? count : entry->own_count;

    return most < BY_CHILDREN_MAX ? (UINT64_C(1) << most) - 1 : UINT64_MAX;
}

/* Returns how many pairs, from the first on, are in turn when the children `have` have contributed:
 * the first one always is. */
static uint8_t count_in_turn(const struct by_packet *packet, uint64_t have)
{
    uint64_t missing = first_children(packet->entry, BY_CHILDREN_MAX) & ~have;
    uint32_t first = missing ? (uint32_t)__builtin_ctzll(missing) / 2 : packet->pairs;

    return first > 0 ? (uint8_t)first : 1;
}

/* A payload that may change while it is in its producer's memory, and must be checked. */
static int is_restless(const struct by_packet *packet)
{
    return packet->apart && !packet->direct;
}

enum by_added by_pairs_keep(struct by_step *step, const struct by_packet *packet,
                            const struct by_reducer *reducer)
{
    const struct by_entry *entry = packet->entry;
    struct by_engine *engine = step->engine;
    struct by_pair *pair = by_pair_of(engine, entry, packet->bank, packet->child / 2u);
    uint32_t place = is_sealed(pair) ? place_take(engine, entry) : 0, psum;
    unsigned odd = packet->child & 1u;

    if (place == 0)
        return BY_ADDED_TO_DAMAGE;
    psum = reducer->psum_copy(by_place_at(engine, entry, place - 1), packet->payload, packet->bytes);
    if (psum != packet->header.psum && !packet->direct) {
        place_leave(engine, entry, place);
        return BY_ADDED_NOT;
    }
    pair->psum[odd] = psum;
    pair->place[odd] = place;
    by_pair_seal(pair);
    return BY_ADDED;
}

/* ---- sums ---- */

/* The values of a run that are in turn. */
struct given {
    const struct by_packet *packet; /* the run */
    uint64_t have;                  /* children that have contributed when it has been taken */
    uint8_t first, end;             /* pairs that come in turn with it */
    uint8_t checked;                /* the psums of its values in turn have been verified */
    uint8_t at[BY_CHILDREN_MAX];    /* 1 + the index of the packet with a child's value in turn; 0: none */
};

/* What one pass adds. */
struct turn {
    struct by_terms terms;
    uint32_t waited;              /* bit p: values of pair p have waited */
    uint8_t child[BY_GATHER_MAX]; /* whose value each input is */
};

/* Returns the packet with the child's value, or NULL. */
static const struct by_packet *packet_of(const struct given *given, uint32_t child)
{
    return given->at[child] > 0 ? &given->packet[given->at[child] - 1] : NULL;
}

static const struct by_pair *pair_of(const struct by_step *step, const struct given *given, uint32_t child)
{
    return by_pair_of(step->engine, given->packet->entry, given->packet->bank, child / 2);
}

/* Appends the values of pair `index` to the turn. Returns 0 when what waits is damaged. */
static int put_pair(const struct by_step *step, const struct given *given, uint32_t index, struct turn *turn)
{
    struct by_terms *terms = &turn->terms;
    uint32_t before = terms->inputs;

    for (uint32_t child = 2 * index; child < 2 * index + 2; child++) {
        const struct by_packet *packet = packet_of(given, child);
        const uint8_t *payload = packet ? packet->payload : NULL;

        if (!packet && index > 0 && given->have >> child & 1) {
            const struct by_pair *pair = pair_of(step, given, child);

            if (!is_sealed(pair))
                return 0;
            payload = waiting(step->engine, given->packet->entry, pair, child & 1);
            turn->waited |= (uint32_t)(payload != NULL) << index;
        }
        if (payload) { /* else the child has sent no data */
            terms->in[terms->inputs] = payload;
            turn->child[terms->inputs++] = (uint8_t)child;
        }
    }
    terms->pairs |= (uint8_t)((terms->inputs == before + 2) << before);
    return 1;
}

/* Adds one turn to the sum. With BY_ADDED_NOT the bank still has no data, and *wrong is the index
 * of the first packet whose psum is wrong. */
static enum by_added add_turn(const struct by_step *step, const struct given *given, struct turn *turn,
                              const struct by_reducer *reducer, uint32_t *wrong)
{
    struct by_bank *bank = &step->engine->bank[given->packet->bank];
    uint8_t *partial = by_bank_partial(step->engine, given->packet->bank);
    uint32_t guard = reducer->add_terms(partial, &turn->terms, bank->count), least = UINT32_MAX;

    if (turn->terms.begun && turn->terms.before != bank->psum)
        return BY_ADDED_TO_DAMAGE;
    for (uint32_t k = 0; k < turn->terms.inputs; k++) {
        uint32_t child = turn->child[k], psum = turn->terms.psum[k];
        const struct by_packet *packet = packet_of(given, child);

        if (!packet && psum != pair_of(step, given, child)->psum[child & 1])
            return BY_ADDED_TO_DAMAGE;
        if (packet && psum != packet->header.psum && !packet->direct && !given->checked &&
            given->at[child] <= least)
            least = given->at[child] - 1u;
    }
    if (least != UINT32_MAX) {
        *wrong = least;
        return BY_ADDED_NOT;
    }
    bank->psum = guard;
    bank->flags |= BY_BANK_DATA;
    return BY_ADDED;
}

/* Frees the places of a turn that has been added. */
static void leave_places(const struct by_step *step, const struct by_packet *packet, uint32_t waited)
{
    for (; waited != 0; waited &= waited - 1)
        leave(step->engine, packet->entry,
              by_pair_of(step->engine, packet->entry, packet->bank, (uint32_t)__builtin_ctz(waited)));
}

/* Finds what is in turn with the first `count` packets of the run at `packet`. */
static void find_turns(const struct by_step *step, const struct by_packet *packet, uint32_t count,
                       struct given *given)
{
    const struct by_bank *bank = &step->engine->bank[packet->bank];

    given->packet = packet;
    given->have = bank->have;
    given->first = (packet->entry->all & ~bank->have & 3) ? 0 : count_in_turn(packet, bank->have);
    for (uint32_t i = 0; i < count; i++)
        given->have |= by_child_bit(packet[i].child);
    given->end = count_in_turn(packet, given->have);
    /* as long as there is no value, a pass that is wrong does no harm */
    given->checked =
        (bank->flags & BY_BANK_DATA) || 2 * (uint32_t)(given->end - given->first) > BY_GATHER_MAX;
    by_zero(given->at, sizeof(given->at));
    for (uint32_t i = 0; i < count; i++)
        if (packet[i].child / 2 < given->end && !(packet[i].header.flags & BY_FLAG_NODATA))
            given->at[packet[i].child] = (uint8_t)(i + 1);
}

/*
 * Verifies the psums of values in turn before the sum changes. A single restless value waits
 * instead, so that what has been verified is added; in the first pair, it is added like those of
 * other modes. With BY_ADDED_NOT *wrong is the index of the first packet that is not verified.
 */
static enum by_added check(struct by_step *step, uint32_t count, const struct by_reducer *reducer,
                           struct given *given, uint32_t *wrong)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct by_packet *packet = &given->packet[i];

        if (given->at[packet->child] == 0 || packet->direct)
            continue;
        if (is_restless(packet) && packet->child >= 2 && count == 1) {
            given->at[packet->child] = 0;
            return by_pairs_keep(step, packet, reducer);
        }
        if ((is_restless(packet) && count > 1) ||
            reducer->psum(packet->payload, packet->bytes) != packet->header.psum) {
            *wrong = i;
            return BY_ADDED_NOT;
        }
    }
    return BY_ADDED;
}

/* Sums what is in turn with the first `count` packets of a run. */
static enum by_added sum(struct by_step *step, const struct by_packet *packet, uint32_t count,
                         const struct by_reducer *reducer, struct given *given, uint32_t *wrong)
{
    const struct by_bank *bank = &step->engine->bank[packet->bank];
    enum by_added added;

    find_turns(step, packet, count, given);
    *wrong = 0;
    if (given->checked && (added = check(step, count, reducer, given, wrong)) != BY_ADDED)
        return added;
    for (uint32_t index = given->first; index < given->end;) {
        struct turn turn;

        turn.terms.begun = (bank->flags & BY_BANK_DATA) != 0;
        turn.terms.inputs = turn.terms.pairs = turn.waited = 0;
        for (; index < given->end && turn.terms.inputs + 2u <= BY_GATHER_MAX; index++)
            if (!put_pair(step, given, index, &turn))
                return BY_ADDED_TO_DAMAGE;
        if (turn.terms.inputs == 0)
            continue;
        added = add_turn(step, given, &turn, reducer, wrong);
        if (added != BY_ADDED)
            return added;
        leave_places(step, packet, turn.waited);
    }
    return BY_ADDED;
}

enum by_added by_pairs_sum(struct by_step *step, const struct by_packet *packet, uint32_t *count,
                           const struct by_reducer *reducer, uint64_t *summed)
{
    enum by_added added;
    struct given given;
    uint32_t wrong;

    while ((added = sum(step, packet, *count, reducer, &given, &wrong)) == BY_ADDED_NOT && *count > 1)
        *count = wrong > 0 ? wrong : 1;
    *summed = first_children(packet->entry, 2u * given.end);
    return added;
}
