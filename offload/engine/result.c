/*
 * RESULT: the parent's answer. A bank that has sent its sum up accepts it once and sends it to
 * every child; later copies end here, so that a repair never becomes a flood. Runs in the engine's
 * thread.
 */
#include "offload/engine/state.h"

/* Returns 1 when the bank waits for exactly this result; else counts the reason. */
static int is_expected(struct by_step *step, const struct by_packet *packet)
{
    struct by_engine_counters *counters = &step->engine->counters;
    const struct by_header *header = &packet->header;
    const struct by_bank *bank = &step->engine->bank[packet->bank];
    uint32_t ahead = header->seq - bank->seq;

    if ((int32_t)ahead < 0 || (ahead == 0 && bank->state == BY_BANK_VOID)) {
        counters->drop_stale++;
    } else if (ahead != 0 || bank->state == BY_BANK_AGG) {
        counters->alarm_lost_state++; /* the parent has completed a chunk without this node */
    } else if (bank->state == BY_BANK_POISON) {
        counters->drop_poison++;
    } else if (bank->state != BY_BANK_UP || header->op != bank->op || header->dtype != bank->dtype ||
               header->mode != bank->mode || header->optag != bank->optag) {
        counters->drop_state++;
        if (bank->state == BY_BANK_DONE)
            by_stream_enter(step, packet);
    } else if (header->count != bank->count ||
               (!(header->flags & BY_FLAG_NODATA) &&
                packet->bytes != (uint32_t)header->count * by_dtype_bytes(by_reduction_dtype(
                                                               header->mode, header->op, header->dtype)))) {
        counters->drop_count++;
    } else {
        return 1;
    }
    return 0;
}

void by_result_take(struct by_step *step, const struct by_packet *packet)
{
    struct by_engine *engine = step->engine;
    const struct by_header *header = &packet->header;
    const struct by_entry *entry = packet->entry;
    struct by_bank *bank = &engine->bank[packet->bank];

    if (!by_packet_is_from_parent(packet)) {
        engine->counters.drop_ingress++;
        return;
    }
    if (!is_expected(step, packet))
        return;
    if (!(header->flags & BY_FLAG_NODATA) && by_psum_copy(by_bank_result(engine, entry, packet->bank),
                                                          packet->payload, packet->bytes) != header->psum) {
        engine->counters.drop_psum++;
        return;
    }
    bank->flags &= (uint8_t)~BY_BANK_DATA;
    if (!(header->flags & BY_FLAG_NODATA))
        bank->flags |= BY_BANK_DATA;
    if (header->flags & BY_FLAG_CE)
        bank->flags |= BY_BANK_CE;
    if (header->flags & BY_FLAG_RETX)
        bank->flags |= BY_BANK_RESENT;
    bank->psum = header->psum;
    bank->nleaf = header->nleaf;
    bank->witness = header->witness;
    bank->down = (uint32_t)step->now_ns;
    bank->state = BY_BANK_DONE;
    by_bank_seal(bank);
    engine->counters.result++;
    by_send_results(step, entry, packet->bank);
    by_stream_enter(step, packet);
}
