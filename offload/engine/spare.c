/*
 * Spare payload buffers, for shells that release payloads late (a NIC's driver frees packets when
 * it needs their descriptors again). A chunk whose bank is still being sent takes a spare buffer;
 * the old buffer becomes a spare one at its last release. Initially buffer i belongs to bank i, and
 * the buffers behind the banks' are spare. Runs in the engine's thread.
 */
#include "offload/engine/state.h"

/* In `holder`: no bank has the buffer; the other bits count its references. */
#define DETACHED 0x80000000u

void by_spares_start(struct by_engine *engine)
{
    uint32_t banks = 2 * engine->config.slot_count_max;

    if (!engine->buffer_of)
        return;
    for (uint32_t i = 0; i < banks; i++)
        engine->buffer_of[i] = engine->holder[i] = i;
    engine->spare_free = engine->config.spare_count;
    for (uint32_t i = 0; i < engine->spare_free; i++) {
        engine->spare[i] = banks + engine->spare_free - 1 - i;
        engine->holder[engine->spare[i]] = DETACHED;
    }
}

int by_spare_take(struct by_engine *engine, uint32_t bank)
{
    uint32_t old = by_bank_buffer(engine, bank), buffer;

    if (engine->spare_free == 0)
        return 0;
    buffer = engine->spare[--engine->spare_free];
    engine->holder[old] = DETACHED | engine->bank[bank].refs;
    engine->holder[buffer] = bank;
    engine->buffer_of[bank] = buffer;
    engine->bank[bank].refs = 0;
    engine->counters.spare++;
    return 1;
}

void by_engine_release_all(struct by_engine *engine, uint32_t ref, uint32_t count)
{
    uint32_t holder = ref;

    BY_ASSERT(ref < 2 * engine->config.slot_count_max + engine->config.spare_count);
    if (engine->buffer_of)
        holder = engine->holder[ref];
    if (holder & DETACHED) {
        BY_ASSERT(holder - DETACHED >= count && engine->spare_free < engine->config.spare_count);
        engine->holder[ref] = holder -= count;
        if (holder == DETACHED)
            engine->spare[engine->spare_free++] = ref;
        return;
    }
    BY_ASSERT(holder < 2 * engine->config.slot_count_max && engine->bank[holder].refs >= count);
    engine->bank[holder].refs = (engine->bank[holder].refs - count) & 0xffffffu;
}
