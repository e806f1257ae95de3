/* Implements flip.h. Accesses the engine's memory layout directly. */
#include "tests/sim/flip.h"

#include "offload/engine/state.h"

#define TRIES 2000u

/* Returns a byte of the bank's header that matters. */
static uint8_t *header_byte(struct by_bank *bank, struct by_prng *prng, unsigned *bit)
{
    for (;;) {
        size_t byte = by_prng_below(prng, sizeof(*bank));

        *bit = (unsigned)by_prng_below(prng, 8);
        if (byte >= offsetof(struct by_bank, told) && byte < offsetof(struct by_bank, seq))
            continue; /* told, tick, down */
        if (byte >= offsetof(struct by_bank, psum) + 4 && byte < offsetof(struct by_bank, count))
            continue; /* refs, waits */
        if (byte == offsetof(struct by_bank, flags) && (BY_BANK_SPACING >> *bit & 1))
            continue;
        return (uint8_t *)bank + byte;
    }
}

/* Returns a byte below `bytes` of a payload, but within its memory: an earlier flip may have
 * damaged the inputs of `bytes`. */
static size_t payload_byte(const struct by_engine *engine, struct by_prng *prng, size_t bytes)
{
    size_t most = bytes < engine->payload_half ? bytes : engine->payload_half;

    return most > 0 ? by_prng_below(prng, most) : 0;
}

int flip_slot(struct by_engine *engine, struct by_prng *prng)
{
    const struct by_table *table = engine->active;

    for (unsigned i = 0; i < TRIES && table->entry_count > 0; i++) {
        const struct by_entry *entry = &table->entry[by_prng_below(prng, table->entry_count)];
        uint32_t place = (uint32_t)by_prng_below(prng, 2 * entry->window);
        uint32_t index = 2 * entry->slot_base + place;
        struct by_bank *bank = &engine->bank[index];
        uint32_t bytes = by_bank_bytes(bank);
        uint32_t pairs = entry->slots / entry->window;
        unsigned bit;
        uint8_t *at;

        if (bank->state != BY_BANK_AGG && bank->state != BY_BANK_UP && bank->state != BY_BANK_DONE)
            continue;
        if (bank->state == BY_BANK_AGG && bank->mode == BY_MODE_DET && pairs > 1 && bank->count > 0 &&
            by_prng_below(prng, 2)) {
            const struct by_pair *pair =
                by_pair_of(engine, entry, index, 1 + (uint32_t)by_prng_below(prng, pairs - 1));
            uint32_t waits = pair->place[by_prng_below(prng, 2)] & BY_PAIR_PLACE;

            if (waits > 0 && waits <= by_place_count(entry))
                at = by_place_at(engine, entry, waits - 1) +
                     payload_byte(engine, prng, (size_t)bank->count * by_dtype_bytes(bank->dtype));
            else
                at = (uint8_t *)pair + by_prng_below(prng, sizeof(*pair));
            bit = (unsigned)by_prng_below(prng, 8);
        } else if (bytes == 0 || by_prng_below(prng, 2)) {
            at = header_byte(bank, prng, &bit);
        } else {
            at = bank->state == BY_BANK_DONE ? by_bank_result(engine, entry, index)
                                             : by_bank_partial(engine, index);
            at += payload_byte(engine, prng, bytes);
            bit = (unsigned)by_prng_below(prng, 8);
        }
        *at ^= (uint8_t)(1u << bit);
        return 1;
    }
    return 0;
}
