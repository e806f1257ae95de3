/*
 * Whether a packet comes from the neighbour that it names. Keyed jobs: whether that neighbour made
 * it, for this node, in this direction. This check precedes any access to a bank, so that a packet
 * that is forged, replayed elsewhere or sent back costs only a hash and a counter. Neighbours:
 * offload/wire/seal.h computes tags; send.c writes them. Runs in the engine's thread.
 */
#include "offload/engine/state.h"

int by_packet_is_from_child(struct by_step *step, const struct by_packet *packet)
{
    const struct by_entry *entry = packet->entry;

    if (packet->child >= entry->child_count) {
        step->engine->counters.drop_child++;
        return 0;
    }
    if (packet->address != step->table->child[entry->first_child + packet->child].address) {
        step->engine->counters.drop_ingress++;
        return 0;
    }
    return 1;
}

int by_packet_is_from_parent(const struct by_packet *packet)
{
    const struct by_entry *entry = packet->entry;

    return entry->has_parent && packet->address == entry->parent.address &&
           (packet->header.child == entry->parent_child || packet->header.child == BY_WIRE_CHILD_ALL);
}

/* Returns the keys shared with the neighbour that the packet names, if it comes from there; else
 * counts the reason. */
static const struct by_hop_keys *find_keys(struct by_step *step, const struct by_packet *packet)
{
    const struct by_entry *entry = packet->entry;
    unsigned type = packet->header.type;

    if (type != BY_TYPE_CONTRIB && by_packet_is_from_parent(packet))
        return &entry->parent_keys;
    if (type == BY_TYPE_RESULT) {
        step->engine->counters.drop_ingress++;
        return NULL;
    }
    return by_packet_is_from_child(step, packet) ? &step->table->keys[entry->first_child + packet->child]
                                                 : NULL;
}

int by_packet_is_genuine(struct by_step *step, const uint8_t *header, const struct by_packet *packet)
{
    const struct by_entry *entry = packet->entry;
    const struct by_hop_keys *keys;

    if ((entry->cover != BY_COVER_NONE) != ((packet->header.flags & BY_FLAG_KEYED) != 0)) {
        step->engine->counters.drop_key++;
        return 0;
    }
    if (entry->cover == BY_COVER_NONE)
        return 1;
    keys = find_keys(step, packet);
    if (keys == NULL)
        return 0;
    if (by_header_is_sealed(header, &keys->in,
                            by_payload_digest(&entry->payload_key, entry->cover, packet->header.type,
                                              packet->payload, packet->bytes)))
        return 1;
    step->engine->counters.drop_key++;
    return 0;
}
