/*
 * An engine's memory and its step. Packets are handled in batches: first each is decoded and its
 * entry found, while its bank is being prefetched into the cache; then each is handled by the file
 * for its type. Neighbours: load.c (tables), meter.c (shares), verify.c (keyed jobs), contrib.c,
 * result.c, repair.c (the state machine), spare.c (buffers), send.c (actions), view.c (telemetry),
 * worker.c (nodes with several engines).
 * Runs in the engine's thread.
 */
#include "offload/engine/state.h"

#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/wire/datagram.h"

/* Packets decoded ahead (count): enough to hide a miss of the last-level cache behind the work on
 * the others, and as many as one pass sums. A build for size must have a small stack. */
#ifdef __OPTIMIZE_SIZE__
#define BATCH 4u
#define APART __attribute__((noinline)) /* larger in the function that calls it */
#else
#define BATCH BY_GATHER_MAX
#define APART inline
#endif
/* Cache lines of a bank's payload to prefetch (count); the processor's own prefetcher does the
 * rest. */
#define AHEAD 4u
/* Congestion Experienced in the ECN bits of the IP header (RFC 3168). */
#define ECN_MARKED 3u

static size_t round_up(size_t bytes)
{
    return (bytes + BY_LINE - 1) & ~(size_t)(BY_LINE - 1);
}

/* Returns the least power of two >= 2 * count, so that hashes are at most half full. */
static uint32_t cells_for(uint32_t count)
{
    uint32_t cells = 2;

    while (cells < 2 * count)
        cells *= 2;
    return cells;
}

static uint32_t child_count_max(const struct by_engine_config *config)
{
    uint32_t by_image = config->image_bytes_max / 16; /* bytes of a child's record */
    uint64_t by_entries = (uint64_t)config->entry_count_max * BY_FAMILY_MAX;

    return by_image < by_entries ? by_image : (uint32_t)by_entries;
}

static int config_is_sound(const struct by_engine_config *config)
{
    return config->slot_count_max > 0 && config->slot_count_max <= UINT32_MAX / 4 &&
           config->payload_max >= 8 && config->payload_max <= BY_PAYLOAD_MAX &&
           config->headroom % BY_LINE == 0 && config->image_bytes_max >= BY_IMAGE_HEADER_BYTES &&
           config->image_bytes_max <= BY_IMAGE_BYTES_MAX && config->entry_count_max > 0 &&
           config->entry_count_max <= BY_ENTRIES_MAX && config->relay_count_max <= BY_RELAYS_MAX &&
           config->spare_count <= BY_SPARES_MAX && config->worker_count <= BY_WORKERS_MAX &&
           (config->worker < config->worker_count || config->worker + config->worker_count == 0) &&
           config->meter_count_max <= by_engine_meters(BY_TABLE_PORTS_MAX, BY_SHARES_MAX);
}

static uint32_t port_count_max(const struct by_engine_config *config)
{
    uint32_t by_image = config->image_bytes_max / 80; /* bytes of a port's record */

    return by_image < BY_TABLE_PORTS_MAX ? by_image : BY_TABLE_PORTS_MAX;
}

/* Reserves `bytes` of the memory at *at. Without a memory it only counts and returns no address. */
static void *carve(uint8_t *memory, uint64_t *at, uint64_t bytes)
{
    void *result = memory ? memory + *at : NULL;

    *at += (bytes + BY_LINE - 1) & ~(uint64_t)(BY_LINE - 1);
    return result;
}

/* Lays out everything behind the engine and returns the total bytes. With `engine` NULL it only
 * counts. */
static uint64_t lay_out(struct by_engine *engine, const struct by_engine_config *config)
{
    uint8_t *memory = (uint8_t *)engine;
    size_t half = round_up(config->payload_max) + config->headroom;
    size_t stride = 2 * half + BY_LINE;
    uint64_t banks = 2 * (uint64_t)config->slot_count_max, metered = config->meter_count_max > 0;
    uint64_t buffers = banks + config->spare_count, assigned = config->spare_count > 0;
    uint64_t at = 0;
    struct by_table unused;

    carve(memory, &at, sizeof(struct by_engine));
    for (unsigned i = 0; i < 2; i++) {
        struct by_table *table = engine ? &engine->table[i] : &unused;

        table->image = carve(memory, &at, config->image_bytes_max);
        table->entry = carve(memory, &at, (uint64_t)config->entry_count_max * sizeof(struct by_entry));
        table->child = carve(memory, &at, (uint64_t)child_count_max(config) * sizeof(struct by_neighbour));
        table->keys = carve(memory, &at, (uint64_t)child_count_max(config) * sizeof(struct by_hop_keys));
        table->own_ip = carve(memory, &at, (uint64_t)port_count_max(config) * sizeof(uint32_t));
        table->meter = carve(memory, &at, (uint64_t)config->meter_count_max * sizeof(struct by_meter));
        table->share = carve(memory, &at, metered * (BY_SHARES_MAX + 1) * sizeof(*table->share));
        table->share_of = carve(memory, &at, metered * BY_JOBS_MAX);
        table->relay = carve(memory, &at, (uint64_t)config->relay_count_max * sizeof(struct by_relay));
        table->entry_cell =
            carve(memory, &at, (uint64_t)cells_for(config->entry_count_max) * sizeof(uint32_t));
        table->relay_cell =
            carve(memory, &at, (uint64_t)cells_for(config->relay_count_max) * sizeof(uint32_t));
    }
    {
        void *used = carve(memory, &at, ((uint64_t)config->slot_count_max + 63) / 64 * 8);
        void *pair = carve(memory, &at, banks * sizeof(struct by_pair));
        void *place = carve(memory, &at, 2 * banks * sizeof(uint32_t));
        void *bank = carve(memory, &at, banks * sizeof(struct by_bank));
        void *buffer_of = carve(memory, &at, assigned * banks * sizeof(uint32_t));
        void *holder = carve(memory, &at, assigned * buffers * sizeof(uint32_t));
        void *spare = carve(memory, &at, config->spare_count * sizeof(uint32_t));
        void *payload = config->payload ? config->payload : carve(memory, &at, buffers * stride);

        if (engine) {
            engine->slot_used = used;
            engine->pair = pair;
            engine->place = place;
            engine->bank = bank;
            engine->buffer_of = assigned ? buffer_of : NULL;
            engine->holder = holder;
            engine->spare = spare;
            engine->payload = (uint8_t *)payload + config->headroom;
            engine->payload_half = half;
            engine->payload_objection = 2 * half - config->headroom;
            engine->payload_stride = stride;
        }
    }
    return at;
}

BY_STATIC_ASSERT(BY_ERR_BYTES <= BY_LINE, "an objection has one line behind a bank's payload");

size_t by_engine_size(const struct by_engine_config *config)
{
    uint64_t bytes;

    if (!config_is_sound(config))
        return 0;
    bytes = lay_out(NULL, config);
    return bytes <= SIZE_MAX / 2 ? (size_t)bytes : 0;
}

size_t by_engine_payload_size(const struct by_engine_config *config)
{
    struct by_engine_config apart;
    size_t whole, rest;

    by_copy(&apart, config, sizeof(apart));
    apart.payload = NULL;
    whole = by_engine_size(&apart);
    apart.payload = &apart;
    rest = by_engine_size(&apart);
    return whole > 0 && rest > 0 ? whole - rest : 0;
}

int by_engine_init(struct by_engine **engine, void *memory, size_t bytes,
                   const struct by_engine_config *config)
{
    size_t need = by_engine_size(config);
    struct by_engine *e = memory;

    if (need == 0 || (uintptr_t)memory % BY_LINE != 0 || (uintptr_t)config->payload % BY_LINE != 0)
        return BY_EINVAL;
    if (bytes < need)
        return BY_ENOMEM;
    by_zero(e, sizeof(*e));
    by_copy(&e->config, config, sizeof(e->config));
    lay_out(e, config);
    for (unsigned i = 0; i < 2; i++) {
        struct by_table *table = &e->table[i];

        table->entry_shift = table->relay_shift = 31; /* two cells, both free */
        table->entry_cell[0] = table->entry_cell[1] = 0;
        table->relay_cell[0] = table->relay_cell[1] = 0;
        table->fan = 1;
    }
    e->active = &e->table[0];
    for (unsigned i = 0; i < 256; i++)
        e->reducer[i] = by_reducer_get(config->isa, i >> 4, i & 15);
    by_zero(e->bank, 2 * (size_t)config->slot_count_max * sizeof(struct by_bank));
    by_spares_start(e);
    *engine = e;
    return 0;
}

/* ---- the step ---- */

static void count_malformed(struct by_engine_counters *counters, int32_t error)
{
    if (error == BY_EVERSION)
        counters->drop_version++;
    else if (error == BY_ECHECKSUM)
        counters->drop_tag++;
    else
        counters->drop_format++;
}

/* Returns the ECN bits of a packet after marking. A sender without ECN (0) must not receive marks
 * (RFC 3168, section 5). */
static uint8_t marked(uint8_t ecn)
{
    return ecn == 0 ? 0 : ECN_MARKED;
}

/* Forwards a datagram for another node, as a whole and by its first packet; a damaged datagram ends
 * here. `rx` is the first packet and `whole` the datagram's bytes; for a later packet `whole` is 0.
 * Returns 0 when the packet is for this node. */
static int relayed(struct by_step *step, const struct by_rx *rx, uint32_t rx_index, uint32_t key,
                   uint32_t whole)
{
    const struct by_relay *relay;
    struct by_tx *tx;

    if (by_address_is_own(step->table, rx))
        return 0;
    relay = by_relay_find(step->table, key, rx->src_ip, rx->dst_ip);
    if (!relay)
        return 0;
    if (whole == 0) {
        step->engine->counters.drop_entry++;
        return 1;
    }
    if (!by_image_relay_takes(relay->from, rx->port)) {
        step->engine->counters.drop_ingress++; /* forged: it must not use the links behind this node */
        return 1;
    }
    if (step->table->metered) {
        if (!by_meter_admits(step, rx, rx_index, whole, (uint16_t)(key >> 16), relay->port))
            return 1;
        by_meter_sent(step, (uint16_t)(key >> 16), relay->port, whole);
    }
    tx = &step->tx[step->tx_count++];
    tx->kind = BY_TX_RELAY;
    tx->ecn = rx->held && by_meter_marks(step, rx->port) ? marked(rx->ecn) : rx->ecn;
    tx->direct = 0;
    tx->port = relay->port;
    tx->udp_port = 0;
    tx->payload_bytes = 0;
    tx->rx_index = (uint16_t)rx_index;
    tx->dst_ip = rx->dst_ip;
    tx->ref = BY_REF_NONE;
    tx->payload = NULL;
    step->engine->counters.relay++;
    return 1;
}

/* Returns 1 when the packet comes from the neighbour that it names. The handlers drop other
 * packets. */
static int is_from_neighbour(const struct by_table *table, const struct by_packet *packet)
{
    const struct by_entry *entry = packet->entry;

    return (entry->has_parent && packet->address == entry->parent.address) ||
           (packet->child < entry->child_count &&
            packet->address == table->child[entry->first_child + packet->child].address);
}

/*
 * Finds the number of the child that a packet names, in an entry of more than 64 children or of a
 * pair's tree down: among the children with this bit, the address decides. Returns the entry of the
 * chunk's bank.
 */
static const struct by_entry *find_child(const struct by_table *table, const struct by_entry *entry,
                                         struct by_packet *packet)
{
    const struct by_entry *lead = entry->joined ? entry - 1 : entry;
    uint32_t count = entry->joined ? entry->child_count : entry->own_count;
    uint32_t first = entry->joined ? lead->own_count : 0;

    packet->child = BY_CHILD_NONE; /* it has no such child */
    for (uint32_t child = packet->header.child; child < count; child += BY_CHILDREN_MAX) {
        packet->child = first + child;
        if (packet->header.child >= BY_CHILDREN_MAX ||
            table->child[lead->first_child + packet->child].address == packet->address)
            break;
    }
    if (packet->header.child >= BY_CHILDREN_MAX)
        packet->child = BY_CHILD_NONE;
    return lead;
}

static inline uint32_t key_of(const struct by_header *header)
{
    return (uint32_t)header->job << 16 | header->tree;
}

/* Finds the entry of a packet whose header is not like the one before it. Returns 0 when there is
 * none, it has another generation, or the chunk is another worker's. */
static inline int find_entry(struct by_step *step, const struct by_header *header)
{
    struct by_engine_counters *counters = &step->engine->counters;
    uint32_t key = key_of(header);

    if (!step->entry || step->entry->key != key) {
        const struct by_entry *entry = by_entry_find(step->table, key);

        if (!entry) {
            counters->drop_entry++;
            return 0;
        }
        step->entry = entry;
    }
    if (step->entry->gen != header->gen) {
        counters->drop_gen++;
        return 0;
    }
    if (__builtin_expect(!by_chunk_is_mine(step->entry, header->seq), 0)) {
        counters->elsewhere++;
        return 0;
    }
    return 1;
}

/* Finds the bank of such a packet, and prefetches it if the packet before had another one. */
static inline void find_bank(struct by_step *step, const struct by_entry *entry,
                             const struct by_header *header)
{
    const struct by_engine *engine = step->engine;
    uint32_t bank = by_bank_index(entry, header->seq);
    const uint8_t *payload;

    step->pairs = (uint16_t)by_pair_count(entry, header->mode, header->op, header->dtype);
    if (bank == step->bank)
        return;
    step->bank = bank;
    __builtin_prefetch(&engine->bank[bank], 1);
    payload = by_bank_partial(engine, bank);
    for (unsigned i = 0; i < AHEAD; i++)
        __builtin_prefetch(payload + i * BY_LINE, 1);
}

/*
 * First pass: header, entry, bank. `whole`: bytes of the datagram if this is its first packet, else
 * 0. Returns 1 when the whole datagram is finished: it was for others, or it is held.
 */
static APART int classify(struct by_step *step, const struct by_rx *rx, uint32_t rx_index, uint32_t whole,
                          struct by_packet *packet)
{
    struct by_engine *engine = step->engine;
    const struct by_entry *entry;
    union by_header_words words;
    uint8_t has_like = step->has_like;
    int32_t bytes;

    packet->entry = NULL;
    step->has_like = 0;
    bytes = by_header_read(rx->data, rx->bytes, &packet->header, &words);
    if (__builtin_expect(bytes < 0, 0)) {
        count_malformed(&engine->counters, bytes);
        return 0;
    }
    packet->payload = rx->payload ? rx->payload : rx->data + BY_WIRE_HEADER_BYTES;
    if (step->table->relay_count > 0 && relayed(step, rx, rx_index, key_of(&packet->header), whole))
        return 1;
    packet->follows = has_like && by_header_is_like(&words, &step->like);
    if (!packet->follows && !find_entry(step, &packet->header))
        return 0;
    entry = step->entry;
    packet->address = by_address(rx->port, rx->src_ip);
    packet->child = packet->header.child;
    if (__builtin_expect(entry->joined | entry->sets, 0))
        entry = find_child(step->table, entry, packet);
    packet->entry = entry;
    packet->bytes = (uint16_t)bytes;
    if (__builtin_expect((entry->cover | (packet->header.flags & BY_FLAG_KEYED)) != 0, 0) &&
        !by_packet_is_genuine(step, rx->data, packet)) {
        packet->entry = NULL;
        return 0;
    }
    if (__builtin_expect(step->table->metered && whole > 0, 0) && is_from_neighbour(step->table, packet) &&
        !by_meter_admits(step, rx, rx_index, whole, packet->header.job, rx->port)) {
        packet->entry = NULL;
        return 1;
    }
    if (rx->ecn == ECN_MARKED || (__builtin_expect(rx->held, 0) && by_meter_marks(step, rx->port)))
        packet->header.flags |= BY_FLAG_CE;
    packet->direct = rx->direct && packet->header.type == BY_TYPE_CONTRIB && !entry->cover;
    packet->apart = rx->payload != NULL;
    if (!packet->follows)
        find_bank(step, entry, &packet->header);
    packet->bank = step->bank;
    packet->pairs = step->pairs;
    step->has_like = 1;
    step->like = words;
    return 0;
}

/* Prefetches the payload, which is in the shell's receive buffers. */
static void ask_for_payload(const struct by_packet *packet)
{
    for (unsigned at = 0; at < packet->bytes; at += 4 * BY_LINE)
        for (unsigned line = 0; line < 4; line++)
            __builtin_prefetch(packet->payload + at + line * BY_LINE, 0);
}

/* Second pass: the state machine. Returns how many of the `count` packets are handled. */
static uint32_t handle(struct by_step *step, const struct by_packet *packet, uint32_t count)
{
    if (__builtin_expect(!by_bank_is_sealed(&step->engine->bank[packet->bank]), 0) ||
        (__builtin_expect(packet->entry->sets, 0) &&
         !by_sets_are_sealed(step->engine, packet->entry, packet->bank))) {
        by_broken_answer(step, packet);
        return 1;
    }
    switch (packet->header.type) {
    case BY_TYPE_CONTRIB:
        return by_contrib_take(step, packet, count);
    case BY_TYPE_RESULT:
        by_result_take(step, packet);
        break;
    case BY_TYPE_WAIT:
        by_wait_take(step, packet);
        break;
    case BY_TYPE_ERR:
        by_err_take(step, packet);
        break;
    case BY_TYPE_PROBE:
        by_probe_take(step, packet);
        break;
    case BY_TYPE_GAP:
        by_gap_take(step, packet);
        break;
    default:
        BY_ASSERT(0); /* by_header_decode refuses other types */
    }
    return 1;
}

/* Classifies the next packet of rx[*done], and advances within it or past it. */
static inline void next_packet(struct by_step *step, const struct by_rx *rx, uint32_t *done,
                               struct by_packet *packet)
{
    struct by_engine *engine = step->engine;
    const struct by_rx *taken = &rx[*done];
    uint32_t at =
        engine->datagram == taken->data && engine->datagram_at < taken->bytes ? engine->datagram_at : 0;
    uint16_t left = (uint16_t)(taken->bytes - at);
    /* A payload that is stored separately means a single packet. */
    uint16_t bytes = taken->payload ? left : by_datagram_first(taken->data + at, left);
    uint32_t whole = at == 0 ? taken->bytes : 0, index = *done;
    struct by_rx part;

    *done += bytes == left;
    if (__builtin_expect(bytes != taken->bytes, 0)) {
        part = *taken;
        part.data += at;
        part.bytes = bytes;
        engine->datagram = bytes == left ? NULL : taken->data;
        engine->datagram_at = at + bytes;
        taken = &part;
    }
    if (classify(step, taken, index, whole, packet) && bytes != left) {
        *done += 1;
        engine->datagram = NULL;
    }
}

/* Classifies up to `most` packets of rx[*done] to rx[rx_count - 1]; returns how many. */
static __attribute__((noinline)) uint32_t classify_some(struct by_step *step, const struct by_rx *rx,
                                                        uint32_t rx_count, uint32_t *done,
                                                        struct by_packet *packet, uint32_t most)
{
    uint32_t count = 0;

    for (; count < most && *done < rx_count; count++, packet++)
        next_packet(step, rx, done, packet);
    step->engine->counters.rx += count;
    return count;
}

uint32_t by_engine_tx_least(const struct by_engine *engine)
{
    return engine->active->fan > BY_CHILDREN_MAX + 2 ? engine->active->fan : BY_CHILDREN_MAX + 2;
}

/* Returns how many packets, from the first on, belong to its bank. */
static uint32_t count_alike(const struct by_packet *packet, uint32_t count)
{
    uint32_t alike = 1;

    while (alike < count && packet[alike].entry && packet[alike].bank == packet->bank)
        alike++;
    return alike;
}

/*
 * Handles the packets that are decoded, and returns how many remain: with `more`, the last ones of
 * the batch stay if further packets of their chunk may follow, so that they form one run. They move
 * to the front.
 */
static uint32_t handle_all(struct by_step *step, struct by_packet *packet, uint32_t count, int more)
{
    uint32_t at = 0;

    while (at < count) {
        uint32_t alike;

        if (!packet[at].entry) {
            at++;
            continue;
        }
        alike = count_alike(&packet[at], count - at);
        if (more && at > 0 && at + alike == count && alike < packet[at].entry->child_count)
            break;
        for (uint32_t i = at + alike; i < count && i < at + 2 * alike; i++)
            if (packet[i].entry)
                ask_for_payload(&packet[i]); /* loads while these are added */
        at += handle(step, &packet[at], alike);
    }
    for (uint32_t i = at; i < count; i++)
        by_copy(&packet[i - at], &packet[i], sizeof(packet[i]));
    return count - at;
}

uint32_t by_engine_step(struct by_engine *engine, uint64_t now_ns, const struct by_rx *rx, uint32_t rx_count,
                        struct by_tx *tx, uint32_t tx_capacity, uint32_t *tx_count)
{
    struct by_step step = {
        .engine = engine, .table = engine->active, .now_ns = now_ns, .tx = tx, .bank = UINT32_MAX};
    struct by_packet packet[BATCH];
    uint32_t done = 0, count = 0, fan = step.table->fan;

    BY_ASSERT(tx_capacity >= by_engine_tx_least(engine));
    for (;;) {
        uint32_t most = (tx_capacity - step.tx_count) / fan; /* packets whose actions fit */

        if (most > BATCH)
            most = BATCH;
        if (count < most)
            count += classify_some(&step, rx, rx_count, &done, packet + count, most - count);
        if (count == 0)
            break;
        count = handle_all(&step, packet, count, done < rx_count && most == BATCH);
    }
    if (step.table->metered)
        by_meter_step(&step);
    *tx_count = step.tx_count;
    return done;
}

void by_engine_allow(struct by_engine *engine, uint32_t held)
{
    engine->held_most = held;
}

const struct by_engine_counters *by_engine_counters(const struct by_engine *engine)
{
    return &engine->counters;
}

void by_engine_inherit(struct by_engine *engine, const struct by_engine *old)
{
    by_copy(&engine->counters, &old->counters, sizeof(engine->counters));
}
