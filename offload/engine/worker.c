/*
 * Nodes with several engines, one for each worker. A staged table says which chunks of each entry
 * are this engine's, and to which workers a received datagram goes. Neighbours: load.c, engine.c;
 * meter.c, which divides the shares of links among the workers by their lanes. Runs in the engine's
 * thread, and reads only what commits change.
 */
#include "offload/engine/state.h"

#include "offload/base/bytes.h"
#include "offload/wire/datagram.h"

/* Bits for the sequence numbers whose lanes are this worker's. */
static uint64_t mine_of(const struct by_engine *engine, const struct by_entry *entry)
{
    uint64_t mine = 0;

    if (engine->config.worker_count < 2)
        return UINT64_MAX;
    for (uint32_t i = 0; i < BY_LANES; i++) {
        uint32_t lane =
            by_lane(entry->lane_first, entry->lane_span, entry->lane_shift, i << entry->lane_shift);

        if (by_lane_worker(lane, engine->config.worker_count) == engine->config.worker)
            mine |= UINT64_C(1) << i;
    }
    return mine;
}

static void keep_lanes(struct by_entry *entry, const struct by_entry *from)
{
    entry->lane_first = from->lane_first;
    entry->lane_span = from->lane_span;
    entry->lane_shift = from->lane_shift;
}

void by_lanes_assign(const struct by_engine *engine, struct by_table *table)
{
    for (uint32_t i = 0; i < table->entry_count; i++) {
        struct by_entry *entry = &table->entry[i];

        if (entry->joined) { /* its packets use the banks of the entry before it */
            keep_lanes(entry, &table->entry[i - 1]);
        } else if (entry->stays) {
            keep_lanes(entry, by_entry_find(engine->active, entry->key));
        } else {
            entry->lane_first = (uint8_t)by_lane_first(entry->key);
            entry->lane_shift = (uint8_t)by_lane_shift(entry->window, engine->config.worker_count);
            entry->lane_span = (uint8_t)by_lane_span(entry->window, entry->lane_shift);
        }
        entry->mine = mine_of(engine, entry);
    }
}

/* Adds to `part` how many of the `span` lanes from `first` on workers before this one have, and how
 * many with this one, in parts of BY_LANES. */
static void add_lanes(const struct by_engine *engine, uint32_t first, uint32_t span,
                      struct by_lane_part *part)
{
    uint32_t each = BY_LANES / span;

    for (uint32_t i = 0; i < span; i++) {
        uint32_t worker = by_lane_worker((first + i) % BY_LANES, engine->config.worker_count);

        part->first += worker < engine->config.worker ? each : 0;
        part->end += worker <= engine->config.worker ? each : 0;
    }
    part->whole += BY_LANES;
}

void by_lanes_part(const struct by_engine *engine, const struct by_table *table, struct by_lane_part *parts)
{
    for (uint32_t i = 0; i < table->share_count; i++)
        parts[i] = (struct by_lane_part){0, 1, 1};
    if (engine->config.worker_count < 2)
        return;
    by_zero(parts, table->share_count * sizeof *parts);
    for (uint32_t i = 0; i < table->entry_count; i++) {
        const struct by_entry *entry = &table->entry[i];

        if (table->share_of[entry->key >> 16] > 0)
            add_lanes(engine, entry->lane_first, entry->lane_span, &parts[table->share_of[entry->key >> 16]]);
    }
    for (uint32_t i = 0; i < table->relay_count; i++)
        if (table->share_of[table->relay[i].key >> 16] > 0)
            add_lanes(engine, 0, BY_LANES, &parts[table->share_of[table->relay[i].key >> 16]]);
    for (uint32_t i = 0; i < table->share_count; i++)
        if (parts[i].whole == 0) /* the ports, and jobs whose packets do not pass here */
            add_lanes(engine, 0, BY_LANES, &parts[i]);
}

int by_address_is_own(const struct by_table *table, const struct by_rx *rx)
{
    if (rx->port == BY_PORT_LOCAL || (rx->port < table->port_count && table->own_ip[rx->port] == rx->dst_ip))
        return 1;
    for (uint32_t i = 0; i < table->port_count; i++)
        if (table->own_ip[i] == rx->dst_ip)
            return 1;
    return 0;
}

static uint64_t worker_bit(const struct by_engine *engine, const struct by_entry *entry,
                           const uint8_t *header)
{
    uint32_t lane =
        by_lane(entry->lane_first, entry->lane_span, entry->lane_shift, by_get32(header + BY_HEADER_AT_SEQ));

    return UINT64_C(1) << by_lane_worker(lane, engine->config.worker_count);
}

uint64_t by_engine_workers(const struct by_engine *engine, const struct by_rx *rx)
{
    const struct by_table *table = engine->active;
    const struct by_entry *entry = NULL;
    const uint8_t *end = rx->data + rx->bytes;
    uint64_t workers;
    uint32_t key, lane;

    if (engine->config.worker_count < 2 || rx->bytes < BY_WIRE_HEADER_BYTES)
        return UINT64_C(1) << engine->config.worker;
    key = by_get32(rx->data + BY_HEADER_AT_JOB);
    entry = by_entry_find(table, key);
    if (!entry && !table->metered)
        return UINT64_C(1) << engine->config.worker;
    if (!entry) {
        lane = by_lane(by_lane_first(key), BY_LANES, BY_LANE_SHIFT, by_get32(rx->data + BY_HEADER_AT_SEQ));
        return UINT64_C(1) << by_lane_worker(lane, engine->config.worker_count);
    }
    workers = worker_bit(engine, entry, rx->data);
    if (rx->payload != NULL || by_datagram_first(rx->data, rx->bytes) == rx->bytes ||
        !by_address_is_own(table, rx))
        return workers;
    for (const uint8_t *at = rx->data + BY_WIRE_HEADER_BYTES; end - at >= (int)BY_WIRE_HEADER_BYTES;
         at += BY_WIRE_HEADER_BYTES)
        workers |= worker_bit(engine, entry, at);
    return workers;
}
