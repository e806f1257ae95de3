/*
 * Finding the missing rank. A node sees only which of its own children have not contributed. When a
 * child asks in vain, the node asks one of the missing children (PROBE, downwards). A child that
 * waits itself, or has no contribution for the chunk, reports what it waits for (WAIT, upwards),
 * and every node on the way keeps that place for later questions. This needs no timers: each
 * question answers a packet, and so does each reply. A child that has the chunk complete sends it
 * up again instead, because it may have been lost. Neighbours: repair.c decides when a node is
 * answered. Runs in the engine's thread.
 */
#include "offload/engine/state.h"

#include "offload/base/bytes.h"

/* A missing child's report, stored in the memory for the bank's objection: BY_WAIT_BYTES as sent,
 * the time, and the child. */
#define HEARD_AT    BY_WAIT_BYTES
#define CHILD_AT    (BY_WAIT_BYTES + 8u)
#define HEARD_BYTES (BY_WAIT_BYTES + 10u)
BY_STATIC_ASSERT(HEARD_BYTES <= BY_ERR_BYTES, "what a child said fits the room for an objection");

static int is_begun(const struct by_step *step, const struct by_packet *packet)
{
    const struct by_bank *bank = &step->engine->bank[packet->bank];

    return packet->header.seq == bank->seq && bank->state == BY_BANK_AGG;
}

/* Returns 1 when no child has sent the packet's chunk and its bank is free for it. */
static int is_ahead(const struct by_step *step, const struct by_packet *packet)
{
    const struct by_bank *bank = &step->engine->bank[packet->bank];

    return by_bank_is_free(bank, packet->entry, packet->header.seq, packet->header.flags);
}

/* Returns 1 when `child` has not contributed to the packet's chunk. */
static int is_missing(const struct by_step *step, const struct by_packet *packet, uint32_t child)
{
    const struct by_bank *set = by_set_of(step->engine, packet->entry, packet->bank, child);

    return !is_begun(step, packet) || !(set->have & by_child_bit(child));
}

/* Writes the missing children of one tree, children [first, end) of the entry: the bits of the
 * first 64 numbers in that tree among which any is missing. */
static void list_missing(const struct by_step *step, const struct by_packet *packet, uint32_t first,
                         uint32_t end, struct by_wait *wait)
{
    wait->missing = 0;
    wait->set = 0;
    for (uint32_t child = first; child < end; child++) {
        uint32_t number = child - first, set = number / BY_CHILDREN_MAX;

        if (wait->missing != 0 && wait->set != set)
            break;
        if (!is_missing(step, packet, child))
            continue;
        wait->set = (uint8_t)set;
        wait->missing |= by_child_bit(number);
    }
}

/*
 * Finds the deepest place that is known to wait for the packet's chunk: this node, or the one that
 * a missing child reported. The root of a pair reports itself to children of either tree, because
 * places in the other tree mean nothing to them.
 */
static void find_place(const struct by_step *step, const struct by_packet *packet, struct by_wait *wait)
{
    const struct by_entry *entry = packet->entry;
    const struct by_bank *bank = &step->engine->bank[packet->bank];
    const uint8_t *heard = by_bank_objection(step->engine, packet->bank);
    int down = by_entry_is_pair(entry) && packet->child >= entry->own_count;
    struct by_wait below;

    wait->node = wait->at = step->table->node;
    wait->state = BY_WAIT_CHILDREN;
    list_missing(step, packet, down ? entry->own_count : 0, down ? entry->child_count : entry->own_count,
                 wait);
    if (by_entry_is_pair(entry) || !is_begun(step, packet) || !(bank->flags & BY_BANK_HEARD) ||
        by_get16(heard + CHILD_AT) >= entry->child_count ||
        !is_missing(step, packet, by_get16(heard + CHILD_AT)) ||
        step->now_ns - by_get64(heard + HEARD_AT) > BY_PLACE_NS ||
        by_wait_decode(heard, BY_WAIT_BYTES, &below) != 0)
        return;
    wait->at = below.at;
    wait->missing = below.missing;
    wait->set = below.set;
}

void by_place_tell(struct by_step *step, const struct by_packet *packet)
{
    uint8_t payload[BY_WAIT_BYTES];
    struct by_wait wait;

    find_place(step, packet, &wait);
    by_wait_encode(&wait, payload);
    by_send_to_child(step, packet->entry, &packet->header, BY_TYPE_WAIT, packet->child, payload,
                     BY_WAIT_BYTES);
}

static void tell_parent(struct by_step *step, const struct by_packet *packet, const struct by_wait *wait)
{
    uint8_t payload[BY_WAIT_BYTES];

    by_wait_encode(wait, payload);
    by_send_to_parent(step, packet->entry, &packet->header, BY_TYPE_WAIT, payload, BY_WAIT_BYTES);
}

void by_place_ask(struct by_step *step, const struct by_packet *packet)
{
    uint32_t child = 0;

    while (child < packet->entry->child_count && !is_missing(step, packet, child))
        child++;
    if (child < packet->entry->child_count)
        by_send_to_child(step, packet->entry, &packet->header, BY_TYPE_PROBE, child, NULL, 0);
}

int by_place_asked(struct by_step *step, const struct by_packet *packet)
{
    struct by_wait wait;

    if (!is_begun(step, packet) && !is_ahead(step, packet))
        return 0;
    find_place(step, packet, &wait);
    tell_parent(step, packet, &wait);
    by_place_ask(step, packet);
    return 1;
}

int by_place_hear(struct by_step *step, const struct by_packet *packet, const struct by_wait *wait)
{
    struct by_bank *bank = &step->engine->bank[packet->bank];
    struct by_wait ours = *wait;
    int begun = is_begun(step, packet);

    if (wait->state != BY_WAIT_CHILDREN || (!begun && !is_ahead(step, packet)) ||
        !is_missing(step, packet, packet->child))
        return 0;
    if (begun) {
        uint8_t *heard = by_bank_objection(step->engine, packet->bank);

        by_copy(heard, packet->payload, BY_WAIT_BYTES);
        by_put64(heard + HEARD_AT, step->now_ns);
        by_put16(heard + CHILD_AT, (uint16_t)packet->child);
        bank->flags |= BY_BANK_HEARD;
    }
    if (packet->entry->has_parent) {
        ours.node = step->table->node;
        tell_parent(step, packet, &ours);
    }
    return 1;
}
