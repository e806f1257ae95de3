/*
 * Mode DET: sums and products of floats in an order that the tree alone determines: ((pair 0 + pair
 * 1) + pair 2) ..., with pair p = (child 2p + child 2p + 1). Within a pair both orders give the
 * same bits.
 *
 * - The first pair is added where all sums are.
 * - A pair is *in turn* when all pairs before it are in the sum. Then its second value is added
 *   together with the waiting first one, in one pass.
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

/* ---- contributions ---- */

static uint64_t children_before(uint32_t pair)
{
    return (UINT64_C(1) << 2 * pair) - 1;
}

/* Returns those children of `pair` that the entry has. */
static uint64_t children_of(const struct by_entry *entry, uint32_t pair)
{
    return UINT64_C(3) << 2 * pair & entry->all;
}

/* Keeps the payload until its pair can be added. */
static enum by_added keep(struct by_step *step, const struct by_packet *packet,
                          const struct by_reducer *reducer, struct by_pair *pair)
{
    const struct by_header *header = &packet->header;
    const struct by_entry *entry = packet->entry;
    struct by_engine *engine = step->engine;
    uint32_t place = place_take(engine, entry), psum;
    unsigned odd = packet->child & 1u;

    if (place == 0)
        return BY_ADDED_TO_DAMAGE;
    psum = reducer->psum_copy(by_place_at(engine, entry, place - 1), packet->payload, packet->bytes);
    if (psum != header->psum && !packet->direct) {
        place_leave(engine, entry, place);
        return BY_ADDED_NOT;
    }
    pair->psum[odd] = psum;
    pair->place[odd] = place;
    by_pair_seal(pair);
    return BY_ADDED;
}

/* Adds the waiting payloads of `pair` to the chunk's sum, and `payload` unless it is NULL; its psum
 * has been checked. */
static enum by_added fold(struct by_step *step, const struct by_packet *packet,
                          const struct by_reducer *reducer, struct by_pair *pair, const uint8_t *payload)
{
    const struct by_entry *entry = packet->entry;
    struct by_bank *bank = &step->engine->bank[packet->bank];
    uint8_t *sum = by_bank_partial(step->engine, packet->bank);
    size_t bytes = (size_t)bank->count * reducer->element_bytes;
    const uint8_t *value[3];
    uint32_t psum = payload ? packet->header.psum : 0;
    unsigned count = 0;
    int holds = 1;

    for (unsigned odd = 0; odd < 2; odd++)
        if ((value[count] = waiting(step->engine, entry, pair, odd)) != NULL) {
            psum += pair->psum[odd];
            count++;
        }
    if (payload)
        value[count++] = payload;
    if (count == 2 && (bank->flags & BY_BANK_DATA)) {
        holds = reducer->accumulate_pair(sum, value[0], value[1], psum, bank->count, &bank->psum);
    } else if (count > 0) {
        holds = reducer->psum(value[0], bytes) + (count > 1 ? reducer->psum(value[1], bytes) : 0) == psum;
        if (bank->flags & BY_BANK_DATA)
            holds &= reducer->accumulate(sum, value[0], bank->count, &bank->psum);
        else
            bank->psum = reducer->load(sum, value[0], bank->count);
        if (count > 1)
            holds &= reducer->accumulate(sum, value[1], bank->count, &bank->psum);
    } else {
        return BY_ADDED;
    }
    bank->flags |= BY_BANK_DATA;
    leave(step->engine, entry, pair);
    return holds ? BY_ADDED : BY_ADDED_TO_DAMAGE;
}

enum by_added by_pairs_take(struct by_step *step, const struct by_packet *packet,
                            const struct by_reducer *reducer)
{
    const struct by_header *header = &packet->header;
    const struct by_entry *entry = packet->entry;
    uint32_t index = packet->child / 2u;
    struct by_pair *pair = by_pair_of(step->engine, entry, packet->bank, index);
    uint64_t have = step->engine->bank[packet->bank].have | UINT64_C(1) << packet->child;

    if (!is_sealed(pair))
        return BY_ADDED_TO_DAMAGE;
    /* A payload that its producer may change is read once: it is copied here, and
     * by_pairs_advance() adds the copy. */
    if (packet->direct || packet->apart ||
        (~have & (children_before(index) | children_of(entry, index))) != 0)
        return keep(step, packet, reducer, pair);
    if (reducer->psum(packet->payload, packet->bytes) != header->psum)
        return BY_ADDED_NOT;
    return fold(step, packet, reducer, pair, packet->payload);
}

int by_pairs_advance(struct by_step *step, const struct by_packet *packet, const struct by_reducer *reducer)
{
    const struct by_entry *entry = packet->entry;
    uint64_t missing = entry->all & ~step->engine->bank[packet->bank].have;
    uint32_t index = packet->child / 2u;

    if ((missing & (children_before(index) | children_of(entry, index))) != 0)
        return 1;
    for (index += index == 0; index < packet->pairs && (missing & children_of(entry, index)) == 0; index++) {
        struct by_pair *pair = by_pair_of(step->engine, entry, packet->bank, index);

        if (!is_sealed(pair) || fold(step, packet, reducer, pair, NULL) != BY_ADDED)
            return 0;
    }
    return 1;
}
