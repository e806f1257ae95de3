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
#define HEARD_BYTES (BY_WAIT_BYTES + 9u)
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

    return packet->header.seq - bank->seq == 2 * packet->entry->window && bank->state != BY_BANK_AGG &&
           bank->state != BY_BANK_UP;
}

static uint64_t missing_of(const struct by_step *step, const struct by_packet *packet)
{
    uint64_t have = is_begun(step, packet) ? step->engine->bank[packet->bank].have : 0;

    return packet->entry->all & ~have;
}

/* Finds the deepest place that is known to wait for the packet's chunk: this node, or the one that
 * a missing child reported. */
static void find_place(const struct by_step *step, const struct by_packet *packet, struct by_wait *wait)
{
    const struct by_bank *bank = &step->engine->bank[packet->bank];
    const uint8_t *heard = by_bank_objection(step->engine, packet->bank);
    struct by_wait below;

    wait->node = wait->at = step->table->node;
    wait->state = BY_WAIT_CHILDREN;
    wait->missing = missing_of(step, packet);
    if (!is_begun(step, packet) || !(bank->flags & BY_BANK_HEARD) ||
        !(wait->missing >> heard[CHILD_AT] & 1) || step->now_ns - by_get64(heard + HEARD_AT) > BY_PLACE_NS ||
        by_wait_decode(heard, BY_WAIT_BYTES, &below) != 0)
        return;
    wait->at = below.at;
    wait->missing = below.missing;
}

void by_place_tell(struct by_step *step, const struct by_packet *packet)
{
    uint8_t payload[BY_WAIT_BYTES];
    struct by_wait wait;

    find_place(step, packet, &wait);
    if (by_entry_is_pair(packet->entry)) { /* a place in the other tree means nothing to the child */
        wait.at = step->table->node;
        wait.missing = by_children_beside(packet->entry, packet->header.child, missing_of(step, packet));
    }
    by_wait_encode(&wait, payload);
    by_send_to_children(step, packet->entry, &packet->header, BY_TYPE_WAIT,
                        UINT64_C(1) << packet->header.child, payload, BY_WAIT_BYTES);
}

static void tell_parent(struct by_step *step, const struct by_packet *packet, const struct by_wait *wait)
{
    uint8_t payload[BY_WAIT_BYTES];

    by_wait_encode(wait, payload);
    by_send_to_parent(step, packet->entry, &packet->header, BY_TYPE_WAIT, payload, BY_WAIT_BYTES);
}

void by_place_ask(struct by_step *step, const struct by_packet *packet)
{
    uint64_t missing = missing_of(step, packet);

    if (missing != 0)
        by_send_to_children(step, packet->entry, &packet->header, BY_TYPE_PROBE, missing & -missing, NULL, 0);
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
        !(missing_of(step, packet) >> packet->header.child & 1))
        return 0;
    if (begun) {
        uint8_t *heard = by_bank_objection(step->engine, packet->bank);

        by_copy(heard, packet->payload, BY_WAIT_BYTES);
        by_put64(heard + HEARD_AT, step->now_ns);
        heard[CHILD_AT] = packet->header.child;
        bank->flags |= BY_BANK_HEARD;
    }
    if (packet->entry->has_parent) {
        ours.node = step->table->node;
        tell_parent(step, packet, &ours);
    }
    return 1;
}
