/*
 * Gaps: repair where a packet was lost. Links keep packets in order, nearly always. So a
 * neighbour's later chunk that arrives without an earlier one is a sign that the earlier one was
 * lost on this hop, and the neighbour still has it in its bank. The receiver requests it by a GAP,
 * which names the chunks that it lacks and a later one that it has. The sender answers only for
 * chunks that it sent before that later one (RACK, RFC 8985, section 3.1): all others are still on
 * their way, or not complete yet. So whatever the receiver knows about times, a request causes a
 * retransmission only after a loss or a reordering, as far as the sender can compare. The memory of
 * sent packets is the banks. A worker follows the chunks of its own lanes only. Neighbours:
 * contrib.c and result.c enter what they accept; repair.c is the last resort, caused by the timers
 * of hosts. Runs in the engine's thread.
 */
#include "offload/engine/state.h"

#include "offload/base/bytes.h"

/* Chunks whose banks one packet may cause to be examined (count). */
#define WALK_MAX 64u

static struct by_hop_stream *stream_of(const struct by_step *step, const struct by_packet *packet)
{
    struct by_table *table = step->engine->active;

    if (packet->header.type == BY_TYPE_RESULT)
        return &table->entry[packet->entry - table->entry].parent.stream;
    return &table->child[packet->entry->first_child + packet->child].stream;
}

/* ---- the side that lacks chunks ---- */

/* Returns 1 when the packet's sender should have sent chunk `seq` to this worker, and it has not
 * arrived. Earlier chunks than one with START have START, too. Two calls of one function keep a
 * node's code small. */
static __attribute__((noinline)) int is_missing(const struct by_step *step, const struct by_packet *packet,
                                                uint32_t seq)
{
    const struct by_entry *entry = packet->entry;
    uint32_t index = by_bank_index(entry, seq);
    const struct by_bank *bank = &step->engine->bank[index];

    if (!by_chunk_is_mine(entry, seq))
        return 0;
    if (packet->header.type == BY_TYPE_RESULT)
        return bank->seq == seq && bank->state == BY_BANK_UP;
    if (bank->seq == seq)
        return bank->state == BY_BANK_AGG &&
               !(by_set_of(step->engine, entry, index, packet->child)->have & by_child_bit(packet->child));
    return by_bank_is_free(bank, entry, seq, packet->header.flags);
}

/* A chunk that was sent once arrives after later ones: it was not lost but late, by this many
 * chunks, because the hop reorders. */
static void learn_order(const struct by_packet *packet, struct by_hop_stream *stream)
{
    uint32_t extent = stream->next - packet->header.seq;

    if (extent > stream->late && extent <= packet->entry->window / 2)
        stream->late = extent;
}

/* Returns the time after which the stream's requests are repeated (ns). */
static uint32_t patience_of(const struct by_step *step, const struct by_hop_stream *stream)
{
    return stream->patience > 0 ? stream->patience : (uint32_t)step->engine->config.repair_interval_ns;
}

/* A chunk arrives after later ones. With RETX it shows how long a request takes. */
static void learn(const struct by_step *step, const struct by_packet *packet, struct by_hop_stream *stream)
{
    uint32_t seq = packet->header.seq;

    if (!(packet->header.flags & BY_FLAG_RETX)) {
        learn_order(packet, stream);
    } else if (seq == stream->hole && (int32_t)(stream->asked - seq) > 0) {
        uint32_t took = (uint32_t)step->now_ns - stream->asked_at, before = patience_of(step, stream);

        stream->patience = before - before / 4 + took / 2;
        if (stream->late > 0)
            stream->late--;
    }
}

static void ask(struct by_step *step, const struct by_packet *packet, uint32_t first, uint8_t missing,
                uint32_t seen)
{
    const struct by_gap gap = {.seen = seen, .missing = missing};
    struct by_header like = packet->header;
    uint8_t payload[BY_GAP_BYTES];

    like.seq = first;
    like.flags = 0;
    by_gap_encode(&gap, payload);
    if (packet->header.type == BY_TYPE_RESULT)
        by_send_to_parent(step, packet->entry, &like, BY_TYPE_GAP, payload, BY_GAP_BYTES);
    else
        by_send_to_child(step, packet->entry, &like, BY_TYPE_GAP, packet->child, payload, BY_GAP_BYTES);
}

/* Requests the first chunks that count as lost and have not been requested, or not for long. */
static void ask_for_lost(struct by_step *step, const struct by_packet *packet, struct by_hop_stream *stream)
{
    uint32_t end = stream->next - 1 - stream->late, first = 0;
    uint8_t missing = 0;

    if ((uint32_t)step->now_ns - stream->asked_at > patience_of(step, stream) ||
        (int32_t)(stream->asked - stream->hole) < 0)
        stream->asked = stream->hole;
    for (uint32_t walk = 0; walk < WALK_MAX && (int32_t)(end - stream->asked) > 0; walk++, stream->asked++) {
        if (missing && stream->asked - first >= BY_GAP_CHUNKS)
            break;
        if (!is_missing(step, packet, stream->asked))
            continue;
        if (!missing)
            first = stream->asked;
        missing |= (uint8_t)(1u << (stream->asked - first));
    }
    if (!missing)
        return;
    stream->asked_at = (uint32_t)step->now_ns;
    ask(step, packet, first, missing, stream->next - 1);
}

/* Enters a packet that is not the next one of a stream without a hole. */
static __attribute__((noinline)) void enter(struct by_step *step, const struct by_packet *packet,
                                            struct by_hop_stream *stream)
{
    uint32_t seq = packet->header.seq;

    /* Banks hold two windows, and no host sends a chunk before it has the result of the one a
     * window earlier. What is further away, in either direction, begins the stream. */
    if (stream->next - 1 - seq >= 2 * packet->entry->window)
        stream->next = seq + 1;
    else
        learn(step, packet, stream);
    if (stream->next - stream->hole > packet->entry->window)
        stream->hole = stream->asked = stream->next;
    for (uint32_t walk = 0; walk < WALK_MAX && stream->hole != stream->next; walk++) {
        if (is_missing(step, packet, stream->hole))
            break;
        stream->hole++;
    }
    if (stream->hole != stream->next)
        ask_for_lost(step, packet, stream);
}

void by_stream_enter(struct by_step *step, const struct by_packet *packet)
{
    struct by_hop_stream *stream = stream_of(step, packet);

    if (!by_stream_follow(stream, packet->header.seq))
        enter(step, packet, stream);
}

/* ---- the side that has them ---- */

/* Returns 1 when chunk `seq`, in `bank`, was last sent after chunk `seen`. A chunk that has left
 * its bank, or that another worker has sent, cannot tell. */
static int is_sent_after(const struct by_step *step, const struct by_packet *packet,
                         const struct by_bank *bank, uint32_t seen, int to_parent)
{
    const struct by_bank *later = &step->engine->bank[by_bank_index(packet->entry, seen)];

    if (later->seq != seen)
        return 0;
    return (int32_t)(to_parent ? bank->tick - later->tick : bank->down - later->down) > 0;
}

/* Sends a chunk's sum or result to the neighbour that lacks it, if it is complete in this worker
 * and was sent before chunk `seen`. */
static void send_again(struct by_step *step, const struct by_packet *packet, uint32_t seq, uint32_t seen,
                       int to_parent)
{
    struct by_engine *engine = step->engine;
    uint32_t index = by_bank_index(packet->entry, seq);
    struct by_bank *bank = &engine->bank[index];

    if (!by_chunk_is_mine(packet->entry, seq) || bank->seq != seq ||
        bank->state != (to_parent ? BY_BANK_UP : BY_BANK_DONE) ||
        !by_sets_are_sealed(engine, packet->entry, index) ||
        is_sent_after(step, packet, bank, seen, to_parent))
        return;
    if (!by_bank_holds(engine, packet->entry, index))
        return; /* a host's retransmission finds it, and tells all ranks */
    if (to_parent) {
        bank->tick = (uint32_t)step->now_ns;
        by_sets_tell(engine, packet->entry, index, 0);
        by_bank_repeat_up(step, packet->entry, index);
    } else {
        by_bank_repeat_result(step, packet->entry, index, packet->child);
    }
}

void by_gap_take(struct by_step *step, const struct by_packet *packet)
{
    int from_parent = by_packet_origin(step, packet, BY_GAP_BYTES);
    struct by_gap gap;

    if (from_parent < 0)
        return;
    if (by_gap_decode(packet->payload, packet->bytes, &gap) != 0) {
        step->engine->counters.drop_format++;
        return;
    }
    for (unsigned i = 0; i < BY_GAP_CHUNKS; i++)
        if (gap.missing >> i & 1)
            send_again(step, packet, packet->header.seq + i, gap.seen, from_parent);
}
