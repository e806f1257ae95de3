/*
 * Repair: duplicates (a node retransmits after a leaf's timeout), WAIT, PROBE, disagreement and
 * ERR. A node has no timers: it reacts to its children's retransmissions, and uses `now` only to
 * space its own repetitions. With a shell that has no clock (now_ns always 0) only the lowest child
 * can cause a sending up. Runs in the engine's thread.
 */
#include "offload/engine/state.h"

#include "offload/base/bytes.h"

int by_interval_begin(struct by_step *step, const struct by_entry *entry, uint32_t index)
{
    struct by_bank *bank = &step->engine->bank[index];

    if ((uint32_t)step->now_ns - bank->tick < step->engine->config.repair_interval_ns)
        return 0;
    bank->tick = (uint32_t)step->now_ns;
    by_sets_tell(step->engine, entry, index, 0);
    return 1;
}

/* Returns 1 when the packet's child may be sent a reply: once per interval, and always without a
 * clock, because the reply answers a packet of the child. */
static int may_tell(struct by_step *step, const struct by_packet *packet)
{
    struct by_bank *set = by_set_of(step->engine, packet->entry, packet->bank, packet->child);

    if (step->now_ns == 0)
        return 1;
    by_interval_begin(step, packet->entry, packet->bank);
    if (set->told & by_child_bit(packet->child))
        return 0;
    set->told |= by_child_bit(packet->child);
    return 1;
}

/* Returns 1 when a packet from `child` may cause a retransmission to the parent. */
static int may_repeat_up(struct by_step *step, const struct by_packet *packet, unsigned child)
{
    return step->now_ns == 0 ? child == 0 : by_interval_begin(step, packet->entry, packet->bank);
}

/* Counts one more WAIT from the parent and returns 1, if it may be passed to the children. */
static int may_pass_wait(struct by_bank *bank)
{
    if (bank->waits == BY_WAITS_MAX)
        return 0;
    bank->waits++;
    return 1;
}

static void tell_of_parent(struct by_step *step, const struct by_packet *packet)
{
    const struct by_wait wait = {
        .node = step->table->node, .at = step->table->node, .state = BY_WAIT_PARENT, .missing = 0};
    uint8_t payload[BY_WAIT_BYTES];

    by_wait_encode(&wait, payload);
    by_send_to_child(step, packet->entry, &packet->header, BY_TYPE_WAIT, packet->child, payload,
                     sizeof(payload));
}

/*
 * Checks a stored payload before it is sent again. The first transmission is not checked: if the
 * payload changes before it leaves the port, the receiver drops the packet, a retransmission
 * follows, and that one is checked.
 */
int by_bank_holds(const struct by_engine *engine, const struct by_entry *entry, uint32_t index)
{
    const struct by_bank *bank = &engine->bank[index];
    const uint8_t *payload =
        bank->state == BY_BANK_UP ? by_bank_partial(engine, index) : by_bank_result(engine, entry, index);

    return !(bank->flags & BY_BANK_DATA) || by_psum(payload, by_bank_bytes(bank)) == bank->psum;
}

static int payload_holds(struct by_step *step, const struct by_packet *packet)
{
    if (by_bank_holds(step->engine, packet->entry, packet->bank))
        return 1;
    by_memory_alarm(step, packet);
    return 0;
}

void by_bank_repeat_up(struct by_step *step, const struct by_entry *entry, uint32_t index)
{
    struct by_bank *bank = &step->engine->bank[index];

    bank->flags &= (uint8_t)~BY_BANK_PASSED;
    bank->waits = 0;
    step->engine->counters.repair_up++;
    by_send_up(step, entry, index, BY_FLAG_RETX);
}

void by_bank_repeat_result(struct by_step *step, const struct by_entry *entry, uint32_t index, uint32_t child)
{
    step->engine->counters.repair_result++;
    by_send_result(step, entry, index, child);
}

/* Sends the complete sum up again, or poisons the chunk when the sum has changed. */
static void repeat_up(struct by_step *step, const struct by_packet *packet)
{
    if (payload_holds(step, packet))
        by_bank_repeat_up(step, packet->entry, packet->bank);
}

/* Returns 1 when the missing children are asked on behalf of the child that was just answered: the
 * first in an interval, or without a clock the lowest that has contributed. */
static int may_ask(const struct by_step *step, const struct by_packet *packet)
{
    return (step->now_ns == 0 ? by_sets_is_lowest : by_sets_told_only)(step->engine, packet->entry,
                                                                       packet->bank, packet->child);
}

/* Answers a child that asks for, or retransmits, the chunk in its bank. */
static void answer(struct by_step *step, const struct by_packet *packet)
{
    struct by_bank *bank = &step->engine->bank[packet->bank];
    uint32_t child = packet->child;

    switch (bank->state) {
    case BY_BANK_AGG:
        if (may_tell(step, packet)) {
            by_place_tell(step, packet);
            if (may_ask(step, packet))
                by_place_ask(step, packet);
        }
        break;
    case BY_BANK_UP:
        if (may_repeat_up(step, packet, child))
            repeat_up(step, packet);
        if (bank->state == BY_BANK_UP && may_tell(step, packet))
            tell_of_parent(step, packet);
        break;
    case BY_BANK_DONE:
        if (!payload_holds(step, packet))
            break;
        by_bank_repeat_result(step, packet->entry, packet->bank, child);
        break;
    default:
        BY_ASSERT(0); /* the callers have handled the other states */
    }
}

void by_duplicate_answer(struct by_step *step, const struct by_packet *packet)
{
    step->engine->counters.duplicate++;
    if (!(packet->header.flags & BY_FLAG_RETX))
        by_stream_enter(step, packet);
    answer(step, packet);
}

/* ---- disagreement ---- */

static void side_of_bank(struct by_err_side *side, const struct by_bank *bank)
{
    side->op = bank->op;
    side->dtype = bank->dtype;
    side->mode = bank->mode;
    side->child = bank->claimer;
    side->count = bank->count;
    side->optag = bank->optag;
}

static void side_of_packet(struct by_err_side *side, const struct by_header *header)
{
    side->op = header->op;
    side->dtype = header->dtype;
    side->mode = header->mode;
    side->child = header->child;
    side->count = header->count;
    side->optag = header->optag;
}

static void objection(struct by_step *step, const struct by_packet *packet, unsigned reason,
                      uint8_t payload[BY_ERR_BYTES])
{
    const struct by_bank *bank = &step->engine->bank[packet->bank];
    struct by_err err;

    err.node = step->table->node;
    err.reason = (uint8_t)reason;
    err.seq = packet->header.seq;
    err.expected_seq = bank->seq;
    /* Bits of children mean nothing in the other tree of a pair, or in another set. */
    err.agree = bank->seq == packet->header.seq && !by_entry_is_apart(packet->entry) ? bank->have : 0;
    side_of_bank(&err.first, bank);
    side_of_packet(&err.other, &packet->header);
    by_err_encode(&err, payload);
}

/* Voids the bank's chunk permanently, and sends the objection to all children but `except` and,
 * with `up`, to the parent. */
static void poison(struct by_step *step, const struct by_packet *packet, const uint8_t payload[BY_ERR_BYTES],
                   uint32_t except, int up)
{
    const struct by_entry *entry = packet->entry;
    struct by_bank *bank = &step->engine->bank[packet->bank];
    struct by_header like = packet->header;
    uint8_t *kept = by_bank_objection(step->engine, packet->bank);

    if (bank->seq != like.seq)
        bank->flags =
            (uint8_t)((bank->flags & ~BY_BANK_START) | (like.flags & BY_FLAG_START ? BY_BANK_START : 0));
    bank->seq = like.seq;
    bank->state = BY_BANK_POISON;
    bank->tick = (uint32_t)step->now_ns;
    by_sets_tell(step->engine, entry, packet->bank, UINT64_MAX);
    by_bank_seal(bank);
    by_copy(kept, payload, BY_ERR_BYTES);
    if (by_entry_is_apart(entry))
        by_put64(kept + BY_ERR_AT_AGREE, 0);
    step->engine->counters.poison++;
    like.flags |= BY_FLAG_POISON;
    by_send_to_children(step, entry, &like, BY_TYPE_ERR, except, kept, BY_ERR_BYTES);
    if (up && entry->has_parent)
        by_send_to_parent(step, entry, &like, BY_TYPE_ERR, kept, BY_ERR_BYTES);
}

void by_poison_begin(struct by_step *step, const struct by_packet *packet, unsigned reason)
{
    uint8_t payload[BY_ERR_BYTES];

    objection(step, packet, reason, payload);
    poison(step, packet, payload, BY_CHILD_NONE, 1);
}

void by_memory_alarm(struct by_step *step, const struct by_packet *packet)
{
    step->engine->counters.alarm_memory++;
    by_poison_begin(step, packet, BY_ERR_MEMORY);
}

/* Sends the objection up again. */
static void object_again(struct by_step *step, const struct by_packet *packet)
{
    struct by_header like = packet->header;

    like.flags |= BY_FLAG_POISON;
    by_send_to_parent(step, packet->entry, &like, BY_TYPE_ERR, by_bank_objection(step->engine, packet->bank),
                      BY_ERR_BYTES);
}

void by_poison_answer(struct by_step *step, const struct by_packet *packet)
{
    const struct by_entry *entry = packet->entry;
    const uint8_t *payload = by_bank_objection(step->engine, packet->bank);
    struct by_header like = packet->header;

    step->engine->counters.drop_poison++;
    like.flags |= BY_FLAG_POISON;
    if (entry->has_parent && may_repeat_up(step, packet, packet->child))
        object_again(step, packet);
    if (may_tell(step, packet))
        by_send_to_child(step, entry, &like, BY_TYPE_ERR, packet->child, payload, BY_ERR_BYTES);
}

/*
 * A bank with a wrong seal is untrusted, even as to which chunk it holds. It is out of use until
 * the next generation: every packet to it, of whatever chunk, is answered that the chunk is void.
 * Voiding only the first packet's chunk would let a late packet of an old chunk hide the damage
 * from ranks that still need the bank's chunk. The seal remains wrong in one fixed way, so that
 * packets to intact banks cost nothing extra.
 */
static int is_known_broken(const struct by_bank *bank)
{
    return bank->state == BY_BANK_POISON && (bank->flags & BY_BANK_BROKEN) &&
           (bank->seal ^ by_bank_seal_of(bank)) == UINT16_MAX;
}

void by_broken_answer(struct by_step *step, const struct by_packet *packet)
{
    struct by_bank *bank = &step->engine->bank[packet->bank];
    int from_parent = by_packet_is_from_parent(packet);

    if (!is_known_broken(bank)) {
        by_sets_claim(step->engine, packet->entry, packet->bank);
        bank->flags = BY_BANK_BROKEN;
        by_memory_alarm(step, packet);
        bank->seal ^= 0xffffu;
        return;
    }
    if (!from_parent && !by_packet_is_from_child(step, packet))
        return;
    if (packet->header.type == BY_TYPE_CONTRIB || (packet->header.type == BY_TYPE_PROBE && !from_parent))
        by_poison_answer(step, packet);
    else if (packet->header.type == BY_TYPE_PROBE && may_repeat_up(step, packet, 0))
        object_again(step, packet);
    else
        step->engine->counters.drop_poison++;
}

/* Sends the sender of this packet the sequence number that the bank is at. */
static void tell_place(struct by_step *step, const struct by_packet *packet)
{
    const struct by_bank *bank = &step->engine->bank[packet->bank];
    struct by_header like = packet->header;
    uint8_t payload[BY_ERR_BYTES];

    objection(step, packet, BY_ERR_WINDOW, payload);
    like.flags = bank->flags & BY_BANK_START ? BY_FLAG_START : 0; /* of the chunk in the bank */
    by_send_to_child(step, packet->entry, &like, BY_TYPE_ERR, packet->child, payload, BY_ERR_BYTES);
}

void by_window_answer(struct by_step *step, const struct by_packet *packet)
{
    step->engine->counters.drop_window++;
    tell_place(step, packet);
}

void by_stale_answer(struct by_step *step, const struct by_packet *packet)
{
    step->engine->counters.drop_stale++;
    tell_place(step, packet);
}

/* ---- packets that repair ---- */

int by_packet_origin(struct by_step *step, const struct by_packet *packet, unsigned bytes)
{
    int from_parent = by_packet_is_from_parent(packet);

    if (!from_parent && !by_packet_is_from_child(step, packet))
        return -1;
    if (packet->bytes != bytes) {
        step->engine->counters.drop_count++;
        return -1;
    }
    if (by_psum(packet->payload, packet->bytes) != packet->header.psum) {
        step->engine->counters.drop_psum++;
        return -1;
    }
    return from_parent;
}

/* Handles WAIT. From the parent: an ancestor waits, and the children are informed; each time this
 * node asks, every ancestor may answer once. From a child: the answer to this node's question. */
void by_wait_take(struct by_step *step, const struct by_packet *packet)
{
    struct by_engine_counters *counters = &step->engine->counters;
    struct by_bank *bank = &step->engine->bank[packet->bank];
    int from_parent = by_packet_origin(step, packet, BY_WAIT_BYTES);
    struct by_wait wait;

    if (from_parent < 0)
        return;
    if (by_wait_decode(packet->payload, packet->bytes, &wait) != 0) {
        counters->drop_format++;
        return;
    }
    if (!from_parent) {
        if (!by_place_hear(step, packet, &wait))
            counters->drop_state++;
        return;
    }
    if (packet->header.seq != bank->seq || bank->state != BY_BANK_UP || !may_pass_wait(bank)) {
        counters->drop_state++;
        return;
    }
    by_send_to_children(step, packet->entry, &packet->header, BY_TYPE_WAIT, BY_CHILD_NONE, packet->payload,
                        BY_WAIT_BYTES);
}

/* Passes an ERR to the leaves when the parent has lost its state or has no such tree; this voids
 * nothing here. */
static void pass_complaint(struct by_step *step, const struct by_packet *packet, int from_parent)
{
    struct by_bank *bank = &step->engine->bank[packet->bank];

    if (!from_parent || packet->header.seq != bank->seq || bank->state != BY_BANK_UP ||
        (bank->flags & BY_BANK_PASSED)) {
        step->engine->counters.drop_state++;
        return;
    }
    bank->flags |= BY_BANK_PASSED;
    by_send_to_children(step, packet->entry, &packet->header, BY_TYPE_ERR, BY_CHILD_NONE, packet->payload,
                        BY_ERR_BYTES);
}

void by_err_take(struct by_step *step, const struct by_packet *packet)
{
    struct by_engine_counters *counters = &step->engine->counters;
    const struct by_entry *entry = packet->entry;
    struct by_bank *bank = &step->engine->bank[packet->bank];
    uint32_t ahead = packet->header.seq - bank->seq;
    int from_parent = by_packet_origin(step, packet, BY_ERR_BYTES);
    struct by_err err;

    if (from_parent < 0)
        return;
    if (by_err_decode(packet->payload, packet->bytes, &err) != 0) {
        counters->drop_format++;
        return;
    }
    if (err.reason == BY_ERR_WINDOW || err.reason == BY_ERR_NO_ENTRY) {
        pass_complaint(step, packet, from_parent);
    } else if ((ahead == 0 && bank->state == BY_BANK_VOID) || (int32_t)ahead < 0) {
        counters->drop_stale++;
    } else if (ahead == 0 && bank->state == BY_BANK_POISON) {
        counters->drop_poison++; /* it has been passed on already */
    } else if (ahead == 0 ||
               (ahead == 2 * entry->window && bank->state != BY_BANK_AGG && bank->state != BY_BANK_UP)) {
        poison(step, packet, packet->payload, from_parent ? BY_CHILD_NONE : packet->child, !from_parent);
    } else {
        counters->drop_window++;
    }
}

/* Handles the parent's PROBE: the parent lacks this node's sum or its objection. */
static void take_question(struct by_step *step, const struct by_packet *packet)
{
    struct by_engine_counters *counters = &step->engine->counters;
    struct by_bank *bank = &step->engine->bank[packet->bank];

    if (by_place_asked(step, packet))
        return;
    if (packet->header.seq != bank->seq || (bank->state != BY_BANK_UP && bank->state != BY_BANK_POISON)) {
        counters->drop_state++;
        return;
    }
    if (step->now_ns != 0 && !by_interval_begin(step, packet->entry, packet->bank)) {
        counters->drop_state++;
        return;
    }
    if (bank->state == BY_BANK_UP)
        repeat_up(step, packet);
    else
        object_again(step, packet); /* the ranks below may have ended, so nothing else would trigger it */
}

/* Handles PROBE: a child or the parent asks for the state of a chunk. */
void by_probe_take(struct by_step *step, const struct by_packet *packet)
{
    struct by_engine_counters *counters = &step->engine->counters;
    const struct by_entry *entry = packet->entry;
    const struct by_bank *bank = &step->engine->bank[packet->bank];
    uint32_t ahead = packet->header.seq - bank->seq;
    int from_parent = by_packet_is_from_parent(packet);

    if (!from_parent && !by_packet_is_from_child(step, packet))
        return;
    if (packet->bytes != 0)
        counters->drop_count++;
    else if (from_parent)
        take_question(step, packet);
    else if (ahead == 0 && bank->state == BY_BANK_POISON)
        by_poison_answer(step, packet);
    else if (ahead == 0 && bank->state != BY_BANK_VOID)
        answer(step, packet);
    else if (ahead == 2 * entry->window ||
             by_bank_is_free(bank, entry, packet->header.seq, packet->header.flags))
        by_place_tell(step, packet);
    else if (ahead == 0 || (int32_t)ahead < 0)
        by_stale_answer(step, packet);
    else
        by_window_answer(step, packet);
}
