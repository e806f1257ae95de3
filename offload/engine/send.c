/*
 * Turns banks into packets. A header is encoded once for all children and copied for each.
 * Payloads are referenced, and every packet that points into a bank is counted in the bank's refs.
 * Runs in the engine's thread.
 */
#include "offload/engine/state.h"

#include "offload/base/bytes.h"

/* ECT(0) of RFC 3168: routers on the path may mark the packets; marks travel along the tree as
 * BY_FLAG_CE. */
#define ECN_CAPABLE 2u

/* Addresses a packet of this node to a neighbour. */
static inline void address(struct by_tx *tx, const struct by_neighbour *to)
{
    tx->kind = BY_TX_SEND;
    tx->ecn = ECN_CAPABLE;
    tx->direct = 0;
    tx->port = (uint16_t)(to->address >> 32);
    tx->udp_port = to->udp_port;
    tx->rx_index = 0;
    tx->dst_ip = (uint32_t)to->address;
}

static struct by_tx *next_tx(struct by_step *step, const struct by_neighbour *to)
{
    struct by_tx *tx = &step->tx[step->tx_count++];

    address(tx, to);
    return tx;
}

/* Points `tx` to `bytes` at `payload` in the bank, and takes a reference to the bank if there is a
 * payload. */
static __attribute__((noinline)) void refer(struct by_step *step, struct by_tx *tx, uint32_t bank,
                                            const uint8_t *payload, uint16_t bytes)
{
    tx->payload_bytes = bytes;
    if (bytes == 0) {
        tx->ref = BY_REF_NONE;
        tx->payload = NULL;
        return;
    }
    tx->ref = by_bank_buffer(step->engine, bank);
    tx->payload = payload;
    step->engine->bank[bank].refs++;
}

/* Returns the payload digest for the tag of a packet in this entry. */
static uint64_t digest_of(const struct by_entry *entry, unsigned type, const uint8_t *payload, uint32_t bytes)
{
    return entry->cover ? by_payload_digest(&entry->payload_key, entry->cover, type, payload, bytes) : 0;
}

/* Writes the tag of a keyed job for the neighbour that shares `keys`. */
static void seal(struct by_tx *tx, const struct by_entry *entry, const struct by_hop_keys *keys,
                 uint64_t digest)
{
    if (entry->cover)
        by_header_seal(tx->header, &keys->out, digest);
}

static uint8_t key_flag(const struct by_entry *entry)
{
    return entry->cover ? BY_FLAG_KEYED : 0;
}

static void describe(struct by_header *header, const struct by_entry *entry, const struct by_bank *bank)
{
    header->flags = key_flag(entry);
    if (bank->flags & BY_BANK_CE)
        header->flags |= BY_FLAG_CE;
    if (bank->flags & BY_BANK_RESENT)
        header->flags |= BY_FLAG_RETX;
    header->op = bank->op;
    header->dtype = bank->dtype;
    header->mode = bank->mode;
    header->job = (uint16_t)(entry->key >> 16);
    header->tree = (uint16_t)entry->key;
    header->gen = entry->gen;
    header->count = bank->count;
    header->nleaf = bank->nleaf;
    header->seq = bank->seq;
    header->witness = bank->witness;
    header->psum = bank->psum;
    header->optag = bank->optag;
}

void by_send_up(struct by_step *step, const struct by_entry *entry, uint32_t index, uint8_t flags)
{
    const struct by_bank *bank = &step->engine->bank[index];
    struct by_tx *tx = next_tx(step, &entry->parent);
    struct by_header header;

    describe(&header, entry, bank);
    header.type = BY_TYPE_CONTRIB;
    header.flags |= flags;
    if (bank->flags & BY_BANK_START)
        header.flags |= BY_FLAG_START;
    if (!(bank->flags & BY_BANK_DATA))
        header.flags |= BY_FLAG_NODATA;
    if (bank->want == 0 && (entry->sets == 0 || by_sets_want_nothing(step->engine, entry, index)))
        header.flags |= BY_FLAG_ACKONLY;
    header.child = entry->parent_child;
    by_header_encode(&header, tx->header);
    refer(step, tx, index, by_bank_partial(step->engine, index), by_bank_bytes(bank));
    seal(tx, entry, &entry->parent_keys, digest_of(entry, header.type, tx->payload, tx->payload_bytes));
}

void by_send_result(struct by_step *step, const struct by_entry *entry, uint32_t index, unsigned child)
{
    const struct by_bank *bank = &step->engine->bank[index];
    struct by_tx *tx = next_tx(step, &step->table->child[entry->first_child + child]);
    int data = (bank->flags & BY_BANK_DATA) &&
               (by_set_of(step->engine, entry, index, child)->want & by_child_bit(child));
    struct by_header header;

    describe(&header, entry, bank);
    header.type = BY_TYPE_RESULT;
    header.flags |= BY_FLAG_RETX;
    by_child_address(entry, child, &header);
    if (!data) {
        header.flags |= BY_FLAG_NODATA;
        header.psum = 0;
    }
    by_header_encode(&header, tx->header);
    refer(step, tx, index, by_bank_result(step->engine, entry, index), data ? by_bank_bytes(bank) : 0);
    seal(tx, entry, &step->table->keys[entry->first_child + child],
         digest_of(entry, header.type, tx->payload, tx->payload_bytes));
}

/* Sends the result to children [first, end), which are of one tree and one set. */
static void send_results(struct by_step *step, const struct by_entry *entry, uint32_t index, uint32_t first,
                         uint32_t end)
{
    struct by_bank *bank = &step->engine->bank[index];
    const struct by_neighbour *child = &step->table->child[entry->first_child];
    const struct by_hop_keys *keys = &step->table->keys[entry->first_child];
    const uint8_t *payload = by_bank_result(step->engine, entry, index);
    const struct by_bank *set = by_set_of(step->engine, entry, index, first);
    uint64_t want = (bank->flags & BY_BANK_DATA ? set->want : 0) >> first % BY_CHILDREN_MAX;
    uint16_t bytes = by_bank_bytes(bank);
    uint8_t like[BY_WIRE_HEADER_BYTES];
    int alike = step->engine->config.alike && !entry->cover; /* a keyed tag is valid for one child only */
    uint64_t digest = want ? digest_of(entry, BY_TYPE_RESULT, payload, bytes) : 0;
    uint32_t ref = by_bank_buffer(step->engine, index), refs = 0;
    struct by_tx *tx = &step->tx[step->tx_count];
    uint64_t head, psum_optag, optag; /* words of the headers, the last one of those without data */
    struct by_header header;
    unsigned number;

    describe(&header, entry, bank);
    header.type = BY_TYPE_RESULT;
    by_child_address(entry, first, &header);
    number = header.child;
    header.child = 0;
    by_header_encode(&header, like);
    head = by_get64(like + BY_HEADER_AT_HEAD);
    psum_optag = *(const by_header_word *)(like + BY_HEADER_AT_PSUM);
    optag = psum_optag >> 32 << 32;
    step->tx_count += end - first;
    for (uint32_t i = first; i < end; i++, want >>= 1, tx++) {
        int data = want & 1;
        uint32_t own; /* flag and child */

        address(tx, &child[i]);
        tx->payload_bytes = data ? bytes : 0;
        if (tx->payload_bytes > 0) {
            tx->ref = ref;
            tx->payload = payload;
            refs++;
        } else {
            tx->ref = BY_REF_NONE;
            tx->payload = NULL;
        }
        own = data ? (alike ? BY_WIRE_CHILD_ALL : number) : BY_FLAG_NODATA << 8 | number;
        by_header_copy(like, head | (uint64_t)own << 32, data ? psum_optag : optag, tx->header);
        if (entry->cover)
            seal(tx, entry, &keys[i], data ? digest : 0);
        number = (number + 1) % BY_CHILDREN_MAX;
    }
    bank->refs += refs;
}

void by_send_results(struct by_step *step, const struct by_entry *entry, uint32_t index)
{
    for (uint32_t first = 0, end; first < entry->child_count; first = end) {
        uint32_t limit = first < entry->own_count ? entry->own_count : entry->child_count;

        end = (first / BY_CHILDREN_MAX + 1) * BY_CHILDREN_MAX;
        end = end < limit ? end : limit;
        send_results(step, entry, index, first, end);
    }
    step->engine->counters.tx_result += entry->child_count;
}

/* ---- WAIT, ERR, PROBE and GAP ---- */

static void send_small(struct by_step *step, const struct by_entry *entry, const struct by_neighbour *to,
                       const struct by_hop_keys *keys, const struct by_header *like, unsigned type,
                       unsigned child, const uint8_t *payload, unsigned bytes)
{
    struct by_tx *tx = next_tx(step, to);
    struct by_header header;

    header.type = (uint8_t)type;
    header.flags = (like->flags & (BY_FLAG_POISON | BY_FLAG_START)) | key_flag(entry);
    header.child = (uint8_t)child;
    header.tree = like->tree;
    header.op = like->op;
    header.dtype = like->dtype;
    header.mode = like->mode;
    header.job = like->job;
    header.gen = like->gen;
    header.count = like->count;
    header.nleaf = 0;
    header.seq = like->seq;
    header.witness = 0;
    header.psum = by_psum(payload, bytes);
    header.optag = like->optag;
    by_header_encode(&header, tx->header);
    seal(tx, entry, keys, digest_of(entry, type, payload, bytes));
    tx->ref = BY_REF_NONE;
    tx->payload = NULL;
    tx->payload_bytes = (uint16_t)bytes;
    by_copy(tx->small, payload, bytes);
    if (type == BY_TYPE_WAIT)
        step->engine->counters.wait++;
    else if (type == BY_TYPE_PROBE)
        step->engine->counters.probe++;
    else if (type == BY_TYPE_GAP)
        step->engine->counters.gap++;
    else
        step->engine->counters.err++;
}

void by_send_to_child(struct by_step *step, const struct by_entry *entry, const struct by_header *like,
                      unsigned type, uint32_t child, const uint8_t *payload, unsigned bytes)
{
    uint32_t index = entry->first_child + child;
    struct by_header addressed = *like;

    by_child_address(entry, child, &addressed);
    send_small(step, entry, &step->table->child[index], &step->table->keys[index], &addressed, type,
               addressed.child, payload, bytes);
}

void by_send_to_children(struct by_step *step, const struct by_entry *entry, const struct by_header *like,
                         unsigned type, uint32_t except, const uint8_t *payload, unsigned bytes)
{
    for (uint32_t child = 0; child < entry->child_count; child++)
        if (child != except)
            by_send_to_child(step, entry, like, type, child, payload, bytes);
}

void by_send_to_parent(struct by_step *step, const struct by_entry *entry, const struct by_header *like,
                       unsigned type, const uint8_t *payload, unsigned bytes)
{
    send_small(step, entry, &entry->parent, &entry->parent_keys, like, type, entry->parent_child, payload,
               bytes);
}
