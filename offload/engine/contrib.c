/*
 * CONTRIB: a child's value for a chunk. The first contribution claims the bank, each is added once,
 * and the last completes the chunk at this node. Then the sum is sent to the parent, or, at the
 * root, to all children (PROTOCOL.md, "The machine"). Contributions to one chunk that follow one
 * another in a step are taken as a run, which has the effect of taking them one by one: the bank is
 * entered and sealed once, and values that begin a sum are added in one pass. Every packet that has
 * no effect is counted under its own reason. Runs in the engine's thread.
 */
#include "offload/engine/state.h"

#include "offload/base/bytes.h"

/* Returns 1 when the value holds as many leaves as the child has. Otherwise the sum would be wrong,
 * and this node would appear to have caused the damage. The child that sent a wrong value remains
 * the missing one. */
static int has_leaves_of(const struct by_header *header, const struct by_neighbour *child)
{
    return (uint16_t)(header->nleaf - child->nleaf_least) <= child->nleaf_span;
}

/* Returns the kernels for the packet's types, or NULL when this node lacks the kernels or the slots
 * for the mode. */
static const struct by_reducer *find_reducer(const struct by_step *step, const struct by_packet *packet)
{
    const struct by_header *header = &packet->header;
    unsigned dtype;

    if (packet->pairs * packet->entry->window > packet->entry->slots)
        return NULL;
    dtype = by_reduction_dtype(header->mode, header->op, header->dtype);
    return step->engine->reducer[header->op << 4 | dtype];
}

static void claim(struct by_step *step, const struct by_packet *packet)
{
    const struct by_header *header = &packet->header;
    struct by_bank *bank = &step->engine->bank[packet->bank];

    /* chunks that did not complete may have left values of mode DET behind */
    if (bank->state == BY_BANK_POISON || bank->state == BY_BANK_AGG)
        by_pairs_clear(step->engine, packet->entry, packet->bank);
    by_sets_claim(step->engine, packet->entry, packet->bank);
    bank->tick = (uint32_t)step->now_ns;
    bank->seq = header->seq;
    bank->optag = header->optag;
    bank->witness = 0;
    bank->psum = 0;
    bank->count = header->count;
    bank->nleaf = 0;
    bank->state = BY_BANK_AGG;
    /* one store, because the seal reads all four at once */
    bank->claimed = by_bank_claim_of(header);
    bank->flags = header->flags & BY_FLAG_START ? BY_BANK_START : 0;
    bank->waits = 0;
}

/* Completes the chunk at this node, after all children have contributed. */
static void complete(struct by_step *step, const struct by_packet *packet, const struct by_reducer *reducer)
{
    const struct by_entry *entry = packet->entry;
    struct by_bank *bank = &step->engine->bank[packet->bank];
    int sound = bank->nleaf == entry->nleaf;

    if ((bank->flags & BY_BANK_DATA) && reducer->acc_bytes != reducer->element_bytes)
        sound &= reducer->store(by_bank_partial(step->engine, packet->bank), bank->count, &bank->psum);
    if (!sound) {
        by_memory_alarm(step, packet);
        return;
    }
    by_sets_tell(step->engine, entry, packet->bank, 0);
    bank->tick = bank->down = (uint32_t)step->now_ns;
    bank->state = entry->has_parent ? BY_BANK_UP : BY_BANK_DONE;
    by_bank_seal(bank);
    if (entry->has_parent) {
        step->engine->counters.up++;
        by_send_up(step, entry, packet->bank, 0);
    } else {
        step->engine->counters.complete++;
        by_send_results(step, entry, packet->bank);
    }
}

/*
 * Copies or adds the payload after checking its psum; with a wrong psum the sum remains unchanged.
 * The same pass checks and renews the sum's own guard. A payload that crossed no wire (`direct`) is
 * not checked.
 */
static enum by_added add(struct by_step *step, const struct by_packet *packet,
                         const struct by_reducer *reducer)
{
    const struct by_header *header = &packet->header;
    struct by_bank *bank = &step->engine->bank[packet->bank];
    uint8_t *partial = by_bank_partial(step->engine, packet->bank);

    if (!(bank->flags & BY_BANK_DATA) && reducer->acc_bytes == reducer->element_bytes) {
        /* The partial sum has no readers yet, so copy and check are one pass. */
        uint32_t psum = reducer->psum_copy(partial, packet->payload, packet->bytes);

        if (psum != header->psum && !packet->direct)
            return BY_ADDED_NOT;
        bank->psum = psum;
    } else if (!packet->direct && reducer->psum(packet->payload, packet->bytes) != header->psum) {
        return BY_ADDED_NOT;
    } else if (!(bank->flags & BY_BANK_DATA)) {
        bank->psum = reducer->load(partial, packet->payload, header->count);
    } else if (!reducer->accumulate(partial, packet->payload, header->count, &bank->psum)) {
        return BY_ADDED_TO_DAMAGE;
    }
    bank->flags |= BY_BANK_DATA;
    return BY_ADDED;
}

static int agrees(const struct by_bank *bank, const struct by_header *header)
{
    return bank->op == header->op && bank->dtype == header->dtype && bank->mode == header->mode &&
           bank->count == header->count && bank->optag == header->optag;
}

/* Assigns the bank to the packet's chunk. Returns 1 when the packet may be added, 0 when it is
 * finished. */
static int enter_bank(struct by_step *step, const struct by_packet *packet)
{
    struct by_engine_counters *counters = &step->engine->counters;
    struct by_bank *bank = &step->engine->bank[packet->bank];
    uint32_t ahead = packet->header.seq - bank->seq;

    if (ahead == 0 && bank->state != BY_BANK_VOID) {
        if (bank->state == BY_BANK_POISON)
            by_poison_answer(step, packet);
        else if (!agrees(bank, &packet->header))
            by_poison_begin(step, packet, BY_ERR_MISMATCH);
        else if (by_set_of(step->engine, packet->entry, packet->bank, packet->child)->have &
                 by_child_bit(packet->child))
            by_duplicate_answer(step, packet);
        else
            return 1;
        return 0;
    }
    if (by_bank_is_free(bank, packet->entry, packet->header.seq, packet->header.flags)) {
        if (bank->refs != 0 && !by_spare_take(step->engine, packet->bank)) {
            counters->drop_busy++;
            return 0;
        }
        claim(step, packet);
        return 1;
    }
    if (ahead == 0 || (int32_t)ahead < 0) {
        /* Either a late packet, whose sender ignores the answer, or a run that begins on used
         * tables and asks where. */
        by_stale_answer(step, packet);
        return 0;
    }
    by_window_answer(step, packet);
    return 0;
}

/* Returns 1 when the bank accepts the packet's contribution; else the packet is finished, and
 * counted. */
static int enter(struct by_step *step, const struct by_packet *packet, const struct by_reducer *reducer)
{
    const struct by_header *header = &packet->header;

    if (!by_packet_is_from_child(step, packet))
        return 0;
    if (!has_leaves_of(header, &step->table->child[packet->entry->first_child + packet->child])) {
        step->engine->counters.drop_leaves++;
        return 0;
    }
    if (reducer) {
        uint32_t bytes = (uint32_t)header->count * reducer->element_bytes;

        if (bytes > packet->entry->payload_max ||
            (!(header->flags & BY_FLAG_NODATA) && bytes != packet->bytes)) {
            step->engine->counters.drop_count++;
            return 0;
        }
    }
    if (!enter_bank(step, packet))
        return 0;
    if (!reducer) {
        by_poison_begin(step, packet, BY_ERR_UNSUPPORTED);
        return 0;
    }
    return 1;
}

/*
 * Returns how many packets, from the first on, the bank accepts one after another: the first has
 * been accepted; each further one has a like header and is of another child, and enter() would
 * find no fault in it.
 */
static uint32_t count_run(const struct by_step *step, const struct by_packet *packet, uint32_t count,
                          const struct by_reducer *reducer)
{
    const struct by_bank *bank = &step->engine->bank[packet->bank];
    const struct by_neighbour *child = &step->table->child[packet->entry->first_child];
    uint32_t children = packet->entry->child_count, run = 1;
    uint64_t have = bank->have | by_child_bit(packet->child);
    uint32_t bytes = (uint32_t)bank->count * reducer->element_bytes;

    for (; run < count; run++) {
        const struct by_packet *next = &packet[run];
        const struct by_header *header = &next->header;
        const struct by_neighbour *from = &child[next->child];

        if (!next->follows || next->child >= children || next->address != from->address ||
            (have & by_child_bit(next->child)) || !has_leaves_of(header, from) ||
            (!(header->flags & BY_FLAG_NODATA) && next->bytes != bytes))
            break;
        have |= by_child_bit(next->child);
    }
    return run;
}

/*
 * Sums the payloads of a run of packets into a bank that has no data yet: one pass combines and
 * checks them. Returns 1 when all of them hold; else the bank still has no data, and the caller
 * adds them one by one.
 */
static int gather(struct by_step *step, const struct by_packet *packet, uint32_t run,
                  const struct by_reducer *reducer)
{
    struct by_bank *bank = &step->engine->bank[packet->bank];
    const struct by_packet *from[BY_GATHER_MAX];
    const void *in[BY_GATHER_MAX];
    uint32_t psums[BY_GATHER_MAX], inputs = 0, guard;

    if (!BY_GATHERS || (bank->flags & BY_BANK_DATA))
        return 0;
    for (uint32_t i = 0; i < run; i++) {
        if (packet[i].header.flags & BY_FLAG_NODATA)
            continue;
        if (inputs == BY_GATHER_MAX)
            return 0;
        from[inputs] = &packet[i];
        in[inputs++] = packet[i].payload;
    }
    if (inputs < 2)
        return 0;
    guard = reducer->gather(by_bank_partial(step->engine, packet->bank), in, inputs, bank->count, psums);
    for (uint32_t i = 0; i < inputs; i++)
        if (psums[i] != from[i]->header.psum && !from[i]->direct)
            return 0;
    bank->psum = guard;
    bank->flags |= BY_BANK_DATA;
    return 1;
}

/* Adds the packet's payload in the order of arrival. */
static enum by_added add_alone(struct by_step *step, const struct by_packet *packet,
                               const struct by_reducer *reducer)
{
    enum by_added added =
        packet->pairs > 1 ? by_pairs_keep(step, packet, reducer) : add(step, packet, reducer);

    if (added == BY_ADDED_NOT)
        step->engine->counters.drop_psum++;
    return added;
}

/* Notes a contribution, whose payload has been added, in its bank and in its child's stream. `from`
 * is its child, in the active table. */
static inline void note(struct by_step *step, const struct by_packet *packet, struct by_bank *bank,
                        struct by_neighbour *from)
{
    const struct by_header *header = &packet->header;
    uint64_t bit = by_child_bit(packet->child);
    uint32_t flags = header->flags;
    struct by_bank *set = bank;

    if (__builtin_expect(packet->child >= BY_CHILDREN_MAX, 0))
        set = by_set_of(step->engine, packet->entry, packet->bank, packet->child);
    set->have |= bit;
    set->want |= flags & BY_FLAG_ACKONLY ? 0 : bit;
    if (__builtin_expect(set != bank, 0))
        by_bank_seal(set);
    bank->nleaf = (uint16_t)(bank->nleaf + header->nleaf);
    bank->witness += header->witness;
    if (__builtin_expect(flags & (BY_FLAG_CE | BY_FLAG_RETX), 0)) {
        if (flags & BY_FLAG_CE)
            bank->flags |= BY_BANK_CE;
        if (flags & BY_FLAG_RETX)
            bank->flags |= BY_BANK_RESENT;
    }
    if (!by_stream_follow(&from->stream, header->seq))
        by_stream_enter(step, packet);
}

/* Adds the payloads of a run, unless they are of the children `summed`, and notes its packets.
 * Returns 0 when the bank's memory has changed: packet *run - 1 has poisoned the chunk. */
static int take_run(struct by_step *step, const struct by_packet *packet, uint32_t *run,
                    const struct by_reducer *reducer, uint64_t summed)
{
    struct by_engine *engine = step->engine;
    struct by_bank *bank = &engine->bank[packet->bank];
    struct by_neighbour *child = &engine->active->child[packet->entry->first_child];
    uint32_t added = 0, empty = 0;
    int sound = 1;

    for (uint32_t i = 0; i < *run; i++, packet++) {
        if (packet->header.flags & BY_FLAG_NODATA) {
            empty++;
        } else if (!(summed & by_child_bit(packet->child))) {
            enum by_added how = add_alone(step, packet, reducer);

            if (how == BY_ADDED_NOT)
                continue;
            if (how == BY_ADDED_TO_DAMAGE) {
                by_memory_alarm(step, packet);
                *run = i + 1;
                sound = 0;
                break;
            }
        }
        added++;
        note(step, packet, bank, &child[packet->child]);
    }
    engine->counters.contrib += added;
    engine->counters.contrib_nodata += empty;
    return sound;
}

/* Sums what one pass can of a run of *run packets, and may shorten it in mode DET. *summed receives
 * the children whose values need not be added any more. */
static enum by_added sum_run(struct by_step *step, const struct by_packet *packet, uint32_t *run,
                             const struct by_reducer *reducer, uint64_t *summed)
{
    *summed = 0;
    if (packet->pairs > 1)
        return by_pairs_sum(step, packet, run, reducer, summed);
    if (*run > 1 && gather(step, packet, *run, reducer))
        *summed = UINT64_MAX;
    return BY_ADDED;
}

uint32_t by_contrib_take(struct by_step *step, const struct by_packet *packet, uint32_t count)
{
    struct by_bank *bank = &step->engine->bank[packet->bank];
    const struct by_reducer *reducer = find_reducer(step, packet);
    enum by_added added;
    uint64_t summed;
    uint32_t run;

    if (!enter(step, packet, reducer))
        return 1;
    run = packet->entry->sets > 0 ? 1 : count_run(step, packet, count, reducer);
    added = sum_run(step, packet, &run, reducer, &summed);
    if (added == BY_ADDED_TO_DAMAGE) {
        by_memory_alarm(step, packet);
        return 1;
    }
    if (added == BY_ADDED_NOT)
        step->engine->counters.drop_psum++;
    else if (!take_run(step, packet, &run, reducer, summed))
        return run;
    if (bank->have == packet->entry->all &&
        (packet->entry->sets == 0 || by_sets_complete(step->engine, packet->entry, packet->bank)))
        complete(step, &packet[run - 1], reducer);
    else
        by_bank_seal(bank); /* also where it was only claimed */
    return run;
}
