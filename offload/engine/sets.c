/*
 * The bitmaps of children. The first 64 children of an entry have their bits in the chunk's bank;
 * each further 64 have theirs in a bank of their own, which holds nothing else (by_set_of). So an
 * entry of up to 64 children touches one cache line, and the sum exists once however many there
 * are. A bank is free for a chunk by the rules of by_bank_is_free. Runs in the engine's thread.
 */
#include "offload/engine/state.h"

int by_bank_is_free(const struct by_bank *bank, const struct by_entry *entry, uint32_t seq, unsigned flags)
{
    uint32_t ahead = seq - bank->seq;

    if (flags & BY_FLAG_START)
        return (int32_t)ahead > 0 || bank->state == BY_BANK_VOID;
    return ahead == 2 * entry->window && bank->state != BY_BANK_AGG && bank->state != BY_BANK_UP;
}

void by_sets_claim(struct by_engine *engine, const struct by_entry *entry, uint32_t bank)
{
    for (uint32_t set = 0; set <= entry->sets; set++) {
        struct by_bank *bits = &engine->bank[by_set_index(entry, bank, set)];

        bits->have = bits->want = bits->told = 0;
        if (set > 0)
            by_bank_seal(bits);
    }
}

void by_sets_tell(struct by_engine *engine, const struct by_entry *entry, uint32_t bank, uint64_t told)
{
    for (uint32_t set = 0; set <= entry->sets; set++)
        engine->bank[by_set_index(entry, bank, set)].told = told;
}

int by_sets_complete(const struct by_engine *engine, const struct by_entry *entry, uint32_t bank)
{
    for (uint32_t set = 0; set <= entry->sets; set++)
        if (engine->bank[by_set_index(entry, bank, set)].have != by_set_all(entry, set))
            return 0;
    return 1;
}

int by_sets_want_nothing(const struct by_engine *engine, const struct by_entry *entry, uint32_t bank)
{
    uint64_t want = 0;

    for (uint32_t set = 0; set <= entry->sets; set++)
        want |= engine->bank[by_set_index(entry, bank, set)].want;
    return want == 0;
}

int by_sets_are_sealed(const struct by_engine *engine, const struct by_entry *entry, uint32_t bank)
{
    for (uint32_t set = 0; set <= entry->sets; set++)
        if (!by_bank_is_sealed(&engine->bank[by_set_index(entry, bank, set)]))
            return 0;
    return 1;
}

int by_sets_told_only(const struct by_engine *engine, const struct by_entry *entry, uint32_t bank,
                      uint32_t child)
{
    for (uint32_t set = 0; set <= entry->sets; set++)
        if (engine->bank[by_set_index(entry, bank, set)].told !=
            (set == child / BY_CHILDREN_MAX ? by_child_bit(child) : 0))
            return 0;
    return 1;
}

int by_sets_is_lowest(const struct by_engine *engine, const struct by_entry *entry, uint32_t bank,
                      uint32_t child)
{
    uint32_t set = 0;

    while (set < entry->sets && engine->bank[by_set_index(entry, bank, set)].have == 0)
        set++;
    return set == child / BY_CHILDREN_MAX &&
           engine->bank[by_set_index(entry, bank, set)].have % by_child_bit(child) == 0 &&
           (engine->bank[by_set_index(entry, bank, set)].have & by_child_bit(child)) != 0;
}
