/* Read-only view of an engine's banks for telemetry. To be called by the engine's thread, like
 * everything else. */
#include "offload/engine/state.h"

#include "offload/base/errors.h"

static void view_bank(const struct by_engine *engine, const struct by_entry *entry, uint32_t index,
                      struct by_bank_view *view)
{
    const struct by_bank *bank = &engine->bank[index];

    view->seq = bank->seq;
    view->state = bank->state;
    view->have = bank->have;
    view->missing = entry->all & ~bank->have;
    view->nleaf = bank->nleaf;
    view->refs = bank->refs;
}

int by_engine_bank(const struct by_engine *engine, uint32_t entry, uint32_t slot, unsigned bank,
                   struct by_bank_view *view)
{
    const struct by_table *table = engine->active;

    if (entry >= table->entry_count || slot >= table->entry[entry].window || bank > 1)
        return BY_ENOENT;
    if (!by_bank_is_mine(&table->entry[entry], 2 * slot + bank))
        return BY_EAGAIN;
    view_bank(engine, &table->entry[entry], 2 * (table->entry[entry].slot_base + slot) + bank, view);
    return 0;
}

int by_engine_oldest(const struct by_engine *engine, uint32_t entry, struct by_bank_view *view)
{
    const struct by_table *table = engine->active;
    const struct by_entry *e = &table->entry[entry];
    uint32_t oldest = 0;
    int found = 0;

    if (entry >= table->entry_count)
        return BY_ENOENT;
    for (uint32_t i = 2 * e->slot_base; i < 2 * (e->slot_base + e->window); i++) {
        const struct by_bank *bank = &engine->bank[i];

        if ((bank->state != BY_BANK_AGG && bank->state != BY_BANK_UP) ||
            !by_bank_is_mine(e, i - 2 * e->slot_base))
            continue;
        if (!found || (int32_t)(bank->seq - engine->bank[oldest].seq) < 0)
            oldest = i;
        found = 1;
    }
    if (!found)
        return BY_ENOENT;
    view_bank(engine, e, oldest, view);
    return 0;
}

const char *by_bank_state_name(unsigned state)
{
    static const char *const name[] = {"?", "void", "agg", "up", "done", "poison"};

    return state < sizeof(name) / sizeof(name[0]) ? name[state] : name[0];
}
