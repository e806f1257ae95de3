/*
 * The two tables of an engine. An image is copied into the idle table, checked, and turned into the
 * structures of the step; a commit swaps the tables. Only the two look-ups run per packet. Runs in
 * the engine's thread.
 */
#include "offload/engine/state.h"

#include "offload/base/bytes.h"
#include "offload/base/errors.h"

static struct by_table *idle_table(struct by_engine *engine)
{
    return engine->active == &engine->table[0] ? &engine->table[1] : &engine->table[0];
}

static int refuse(struct by_image_fault *fault, int error, const char *section, uint32_t index,
                  const char *what, uint64_t value)
{
    if (fault) {
        fault->section = section;
        fault->index = index;
        fault->what = what;
        fault->value = value;
    }
    return error;
}

/* ---- checks that need the engine's memory ---- */

/* Returns the slots of an entry, including those of its sets. */
static uint32_t slots_of(const struct by_entry *entry)
{
    return entry->slots + entry->sets * entry->window;
}

static int check_overlap(struct by_engine *engine, const struct by_table *table, struct by_image_fault *fault)
{
    by_zero(engine->slot_used, ((size_t)engine->config.slot_count_max + 63) / 64 * 8);
    for (uint32_t i = 0; i < table->entry_count; i++) {
        const struct by_entry *entry = &table->entry[i];

        for (uint32_t slot = entry->slot_base; slot < entry->slot_base + slots_of(entry); slot++) {
            uint64_t bit = UINT64_C(1) << (slot & 63);

            if (engine->slot_used[slot / 64] & bit)
                return refuse(fault, BY_EFORMAT, "entry", i, "slots overlap those of another entry, at slot",
                              slot);
            engine->slot_used[slot / 64] |= bit;
        }
    }
    return 0;
}

/* Returns 1 when two entries of the same job, tree and generation have the same place in the tree,
 * the same slots and the same key. */
static int same_shape(const struct by_table *a_table, const struct by_entry *a,
                      const struct by_table *b_table, const struct by_entry *b)
{
    if (a->slot_base != b->slot_base || a->window != b->window || a->slots != b->slots ||
        a->sets != b->sets || a->nleaf != b->nleaf || a->payload_max != b->payload_max ||
        a->child_count != b->child_count || a->own_count != b->own_count || a->joined != b->joined ||
        a->has_parent != b->has_parent)
        return 0;
    if (a->has_parent && (a->parent.address != b->parent.address ||
                          a->parent.udp_port != b->parent.udp_port || a->parent_child != b->parent_child))
        return 0;
    if (a->cover != b->cover || !by_equal(&a->payload_key, &b->payload_key, sizeof(a->payload_key)))
        return 0;
    for (uint32_t i = 0; i < a->child_count; i++) {
        const struct by_neighbour *x = &a_table->child[a->first_child + i];
        const struct by_neighbour *y = &b_table->child[b->first_child + i];

        if (x->address != y->address || x->udp_port != y->udp_port)
            return 0;
    }
    return 1;
}

/* Finds the entries that already run, and refuses entries that changed without a new generation. */
static int check_running(const struct by_table *active, struct by_table *table, struct by_image_fault *fault)
{
    for (uint32_t i = 0; i < table->entry_count; i++) {
        struct by_entry *entry = &table->entry[i];
        const struct by_entry *running = by_entry_find(active, entry->key);

        entry->stays = 0;
        if (!running || running->gen != entry->gen)
            continue;
        if (!same_shape(active, running, table, entry))
            return refuse(fault, BY_EBUSY, "entry", i,
                          "differs from the running entry of the same job, tree and generation; the "
                          "generation must change from",
                          entry->gen);
        entry->stays = 1;
    }
    return 0;
}

/* ---- building ---- */

/* Chooses the size of a hash for `count` items, clears it, and returns its shift. */
static uint32_t clear_cells(uint32_t *cell, uint32_t count)
{
    uint32_t log2 = 1;

    while ((UINT32_C(1) << log2) < 2 * count)
        log2++;
    by_zero(cell, sizeof(*cell) << log2);
    return 32 - log2;
}

static void put_cell(uint32_t *cell, uint32_t shift, uint32_t key, uint32_t index)
{
    uint32_t mask = (UINT32_C(1) << (32 - shift)) - 1;
    uint32_t at = by_cell(key, shift);

    while (cell[at] != 0)
        at = (at + 1) & mask;
    cell[at] = index + 1;
}

/* Derives the keys of an entry and of its children from the key of the job. */
static void build_keys(struct by_table *table, struct by_entry *entry, const struct by_image_entry *record,
                       const struct by_image_key *job)
{
    struct by_siphash_key key;

    entry->cover = BY_COVER_NONE;
    by_zero(&entry->payload_key, sizeof(entry->payload_key));
    if (job == NULL)
        return;
    entry->cover = job->cover;
    by_siphash_key_read(&key, job->key);
    by_payload_key_make(&key, &entry->payload_key);
    if (entry->has_parent)
        by_hop_keys_make(&key, table->node, record->parent_node, 1, &entry->parent_keys);
    for (uint32_t i = 0; i < record->child_count; i++) {
        struct by_image_child child;

        by_image_child(table->image, record->first_child + i, &child);
        by_hop_keys_make(&key, table->node, child.node, 0, &table->keys[record->first_child + i]);
    }
}

/*
 * Bounds the number of leaves in the value of each child. A rank's value holds one leaf; nodes
 * below share the leaves that remain. Where several children are nodes, only their total is known,
 * and that each holds at least one leaf.
 */
static void bound_leaves(struct by_table *table, const struct by_image_entry *record)
{
    uint16_t most = (uint16_t)(record->nleaf - (record->child_count - 1u));
    struct by_image_child child;
    uint32_t nodes = 0;

    for (uint32_t i = 0; i < record->child_count; i++) {
        by_image_child(table->image, record->first_child + i, &child);
        nodes += child.rank == BY_RANK_NONE;
    }
    for (uint32_t i = 0; i < record->child_count; i++) {
        struct by_neighbour *to = &table->child[record->first_child + i];

        by_image_child(table->image, record->first_child + i, &child);
        to->nleaf_least = child.rank == BY_RANK_NONE && nodes == 1 ? most : 1;
        to->nleaf_span = child.rank == BY_RANK_NONE ? (uint16_t)(most - to->nleaf_least) : 0;
    }
}

/* Adds the children of a pair's tree down to the entry of the tree up: each chunk requires all of
 * both. The records of their children are adjacent. */
static void join(struct by_entry *up, const struct by_entry *down)
{
    up->child_count = (uint16_t)(up->child_count + down->child_count);
    up->nleaf = (uint16_t)(up->nleaf + down->nleaf);
    up->all = by_set_all(up, 0);
}

static void build_entry(struct by_table *table, uint32_t index, uint16_t gen, const struct by_image_key *key)
{
    struct by_entry *entry = &table->entry[index];
    struct by_image_entry record;
    struct by_image_child child;

    by_image_entry(table->image, index, &record);
    entry->key = (uint32_t)record.job << 16 | record.tree;
    entry->gen = gen;
    entry->child_count = entry->own_count = record.child_count;
    entry->joined = record.joined;
    entry->parent_child = record.parent_child;
    entry->slot_base = record.slot_base;
    entry->first_child = record.first_child;
    entry->window = record.window;
    entry->slots =
        by_image_entry_slots(&record) - (record.joined ? 0u : record.sets * (uint32_t)record.window);
    entry->payload_max = record.payload_max;
    entry->nleaf = record.nleaf;
    entry->window_log2 = (uint8_t)__builtin_ctz(record.window);
    entry->has_parent = record.parent_node != BY_NODE_NONE;
    entry->sets = record.sets;
    entry->all = by_set_all(entry, 0);
    entry->parent.address = entry->has_parent ? by_address(record.parent_port, record.parent_ip) : 0;
    entry->parent.udp_port = record.parent_udp_port;
    entry->parent.stream = (struct by_hop_stream){0};
    for (uint32_t i = 0; i < record.child_count; i++) {
        struct by_neighbour *to = &table->child[record.first_child + i];

        by_image_child(table->image, record.first_child + i, &child);
        to->address = by_address(child.port, child.ip);
        to->udp_port = child.udp_port;
        to->stream = (struct by_hop_stream){0};
    }
    bound_leaves(table, &record);
    build_keys(table, entry, &record, key);
    put_cell(table->entry_cell, table->entry_shift, entry->key, index);
    if (record.joined)
        join(entry - 1, entry);
    if (table->fan < entry[-record.joined].child_count + 2u)
        table->fan = entry[-record.joined].child_count + 2u;
    if (table->fan < BY_GAP_CHUNKS)
        table->fan = BY_GAP_CHUNKS;
}

/* Builds everything that the step needs from a checked image in table->image. */
static void build(struct by_table *table)
{
    struct by_image_header header;
    struct by_image_job job = {0};
    struct by_image_relay relay;
    struct by_image_port port;
    struct by_image_entry entry;
    struct by_image_key key;
    uint32_t job_next = 0, place = 0;
    int keyed = 0;

    by_image_header(table->image, &header);
    table->node = header.node;
    table->entry_count = header.count[BY_SECTION_ENTRY];
    table->relay_count = header.count[BY_SECTION_RELAY];
    table->port_count = header.count[BY_SECTION_PORT];
    table->fan = 1; /* a relay */
    table->entry_shift = clear_cells(table->entry_cell, table->entry_count);
    table->relay_shift = clear_cells(table->relay_cell, table->relay_count);
    for (uint32_t i = 0; i < table->port_count; i++) {
        by_image_port(table->image, i, &port);
        table->own_ip[i] = port.own_ip;
    }
    for (uint32_t i = 0; i < table->entry_count; i++) {
        by_image_entry(table->image, i, &entry);
        while (job_next == 0 || job.job != entry.job || entry.tree >= job.tree_count) {
            place = job_next == 0 || job.job != entry.job ? 0 : place + 1;
            by_image_job(table->image, job_next++, &job);
            if (job.job == entry.job && entry.tree < job.tree_count)
                keyed = by_image_key_at(table->image, job.job, place, &key);
        }
        build_entry(table, i, job.gen, keyed ? &key : NULL);
    }
    for (uint32_t i = 0; i < table->relay_count; i++) {
        struct by_relay *to = &table->relay[i];

        by_image_relay(table->image, i, &relay);
        to->key = (uint32_t)relay.job << 16 | relay.tree;
        to->src_ip = relay.src_ip;
        to->dst_ip = relay.dst_ip;
        to->port = relay.port;
        to->from = relay.from;
        put_cell(table->relay_cell, table->relay_shift, by_relay_key(to->key, to->src_ip, to->dst_ip), i);
    }
}

/* ---- look-ups ---- */

const struct by_entry *by_entry_find(const struct by_table *table, uint32_t key)
{
    uint32_t mask = (UINT32_C(1) << (32 - table->entry_shift)) - 1;
    uint32_t at = by_cell(key, table->entry_shift);

    for (; table->entry_cell[at] != 0; at = (at + 1) & mask) {
        const struct by_entry *entry = &table->entry[table->entry_cell[at] - 1];

        if (entry->key == key)
            return entry;
    }
    return NULL;
}

const struct by_relay *by_relay_find(const struct by_table *table, uint32_t key, uint32_t src_ip,
                                     uint32_t dst_ip)
{
    uint32_t mask = (UINT32_C(1) << (32 - table->relay_shift)) - 1;
    uint32_t at = by_cell(by_relay_key(key, src_ip, dst_ip), table->relay_shift);

    for (; table->relay_cell[at] != 0; at = (at + 1) & mask) {
        const struct by_relay *relay = &table->relay[table->relay_cell[at] - 1];

        if (relay->key == key && relay->src_ip == src_ip && relay->dst_ip == dst_ip)
            return relay;
    }
    return NULL;
}

/* ---- stage and commit ---- */

int by_engine_stage(struct by_engine *engine, const uint8_t *image, size_t bytes,
                    struct by_image_fault *fault)
{
    const struct by_engine_config *config = &engine->config;
    struct by_image_limits limits = {.entries = config->entry_count_max,
                                     .slots = config->slot_count_max,
                                     .relays = config->relay_count_max,
                                     .payload_max = config->payload_max};
    struct by_table *table = idle_table(engine);
    struct by_image_header header;
    int error;

    engine->staged = NULL;
    table->bytes = 0;
    if (bytes > config->image_bytes_max)
        return refuse(fault, BY_ELIMIT, "header", 0, "image is longer than this node can hold", bytes);
    by_copy(table->image, image, bytes);
    error = by_image_check(table->image, bytes, &limits, fault);
    if (error)
        return error;
    by_image_header(table->image, &header);
    if (header.count[BY_SECTION_RELAY] > config->relay_count_max)
        return refuse(fault, BY_ELIMIT, "header", 0, "more relays than this node can hold",
                      header.count[BY_SECTION_RELAY]);
    build(table);
    if (table->fan > (config->tx_max ? config->tx_max : BY_CHILDREN_MAX + 2u))
        return refuse(fault, BY_ELIMIT, "header", 0,
                      "more children of an entry, or pair, than this node can answer", table->fan - 2);
    error = check_overlap(engine, table, fault);
    if (!error)
        error = check_running(engine->active, table, fault);
    if (error)
        return error;
    by_lanes_assign(engine, table);
    error = by_meters_build(engine, table, fault);
    if (error)
        return error;
    table->bytes = bytes;
    engine->staged = table;
    return 0;
}

/* Starts this worker's banks of a new entry. Packets of an earlier entry with these slots may still
 * point into them, so refs are kept. */
static void start_banks(struct by_engine *engine, const struct by_entry *entry)
{
    for (uint32_t i = 0; i < 2 * slots_of(entry); i++) {
        struct by_bank *bank = &engine->bank[2 * entry->slot_base + i];

        if (!by_bank_is_mine(entry, i % (2 * entry->window)))
            continue;
        bank->have = bank->want = bank->told = 0;
        bank->tick = bank->down = 0;
        bank->nleaf = 0;
        bank->flags = 0;
        bank->state = BY_BANK_VOID;
    }
    for (uint32_t seq = 0; seq < 2 * entry->window; seq++)
        if (by_chunk_is_mine(entry, seq))
            engine->bank[by_bank_index(entry, seq)].seq = seq - 2 * entry->window;
    if (entry->mine != 0)
        by_pairs_start(engine, entry);
    for (uint32_t i = 0; i < 2 * slots_of(entry); i++)
        if (by_bank_is_mine(entry, i % (2 * entry->window)))
            by_bank_seal(&engine->bank[2 * entry->slot_base + i]);
}

int by_engine_commit(struct by_engine *engine)
{
    struct by_table *table = engine->staged;

    if (!table)
        return BY_ESTATE;
    for (uint32_t i = 0; i < table->entry_count; i++)
        if (!table->entry[i].stays && !table->entry[i].joined)
            start_banks(engine, &table->entry[i]);
    by_meters_inherit(table, engine->active);
    engine->active = table;
    engine->staged = NULL;
    return 0;
}

void by_engine_abort(struct by_engine *engine)
{
    engine->staged = NULL;
}

const uint8_t *by_engine_image(const struct by_engine *engine, size_t *bytes)
{
    *bytes = engine->active->bytes;
    return *bytes > 0 ? engine->active->image : NULL;
}

const uint8_t *by_engine_staged(const struct by_engine *engine, size_t *bytes)
{
    *bytes = engine->staged ? engine->staged->bytes : 0;
    return engine->staged ? engine->staged->image : NULL;
}
