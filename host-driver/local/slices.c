/* The geometry of slices; see slices.h. */
#include "host-driver/local/slices.h"

#include <string.h>

#include <banyan/banyan.h>

#include "offload/wire/types.h"

/* ---- kinds of calls */

bool by_slices_is_rooted(unsigned collective)
{
    return collective == BANYAN_SCATTER || collective == BANYAN_GATHER || by_collective_is_rooted(collective);
}

/* Whether the data are shares of the ranks; with BANYAN_ALLTOALL each rank gives one to each. */
static bool is_sharded(unsigned collective)
{
    return collective == BANYAN_ALLTOALL || collective == BANYAN_SCATTER || collective == BANYAN_GATHER ||
           by_collective_is_sharded(collective);
}

/* ---- ranges */

static uint64_t shard_count(const struct by_call *call, uint32_t rank)
{
    return call->offsets != NULL ? call->offsets[rank + 1] - call->offsets[rank] : call->count;
}

static uint64_t shard_first(const struct by_call *call, uint32_t rank)
{
    return call->offsets != NULL ? call->offsets[rank] : rank * call->count;
}

/* Returns the elements of a call without shards, or of its largest shard. */
static uint64_t length_of(const struct by_call *call, const struct by_seats *seats)
{
    uint64_t most = 0;

    if (call->offsets == NULL)
        return call->count;
    for (uint32_t rank = 0; rank < seats->rank_count; rank++)
        most = shard_count(call, rank) > most ? shard_count(call, rank) : most;
    return most;
}

/* A number for the call as the user made it, equal on all ranks (FNV-1a of whole numbers). */
static uint64_t name_of(const struct by_call *call, const struct by_seats *seats)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    hash = (hash ^ call->count) * UINT64_C(0x100000001b3);
    if (by_slices_is_rooted(call->collective))
        hash = (hash ^ (call->root + 1u)) * UINT64_C(0x100000001b3);
    for (uint32_t rank = 1; call->offsets != NULL && rank <= seats->rank_count; rank++) {
        hash = (hash ^ call->offsets[rank]) * UINT64_C(0x100000001b3);
        hash ^= hash >> 29;
    }
    return hash != 0 ? hash : 1;
}

void by_slices_cut(struct by_slices *slices, const struct by_call *call, const struct by_seats *seats,
                   uint64_t slot_bytes)
{
    bool sharded = is_sharded(call->collective);
    uint32_t element_bytes = by_dtype_bytes(call->dtype);
    uint64_t length = length_of(call, seats);
    uint64_t body = slot_bytes / element_bytes / (sharded ? seats->rank_count : 1);

    *slices = (struct by_slices){.seats = seats,
                                 .call = *call,
                                 .count = length > 0 ? (length + body - 1) / body : 1,
                                 .length = length,
                                 .body = body,
                                 .element_bytes = element_bytes,
                                 .sharded = sharded};
    slices->call.whole = call->collective == BY_COLLECTIVE_BARRIER ? 0 : name_of(call, seats);
}

/* Elements of the call, or of each shard, before slice `index`. */
static uint64_t before(const struct by_slices *slices, uint64_t index)
{
    uint64_t at = index * slices->body;

    return at < slices->length ? at : slices->length;
}

/* The elements [*from, *to) of rank `rank`'s shard that are in slice `index`. */
static uint64_t piece(const struct by_slices *slices, uint64_t index, uint32_t rank, uint64_t *from)
{
    uint64_t count = shard_count(&slices->call, rank);
    uint64_t to = before(slices, index + 1);

    *from = before(slices, index);
    *from = *from < count ? *from : count;
    return (to < count ? to : count) - *from;
}

/* Elements of a slot before those of the rank at `place` in the order of hosts. */
static uint64_t slot_first(const struct by_slices *slices, uint64_t index, uint32_t place)
{
    uint64_t sum = 0, from;

    if (slices->call.offsets == NULL)
        return place * (before(slices, index + 1) - before(slices, index));
    for (uint32_t i = 0; i < place; i++)
        sum += piece(slices, index, slices->seats->order[i], &from);
    return sum;
}

uint64_t by_slices_bytes(const struct by_slices *slices, uint64_t index)
{
    if (slices->call.collective == BY_COLLECTIVE_BARRIER)
        return 0;
    if (slices->sharded)
        return slot_first(slices, index, slices->seats->rank_count) * slices->element_bytes;
    return (before(slices, index + 1) - before(slices, index)) * slices->element_bytes;
}

/* ---- copies */

static void copy(void *to, const void *from, uint64_t bytes)
{
    if (bytes > 0 && to != from)
        memcpy(to, from, (size_t)bytes);
}

/* Copies one slice of all shards between the user's buffer, in rank order, and a slot. */
static void copy_shards(const struct by_slices *slices, uint64_t index, uint8_t *user, uint8_t *slot,
                        bool to_user)
{
    for (uint32_t i = 0; i < slices->seats->rank_count; i++) {
        uint32_t rank = slices->seats->order[i];
        uint64_t from, bytes = piece(slices, index, rank, &from) * slices->element_bytes;
        uint8_t *at = user + (shard_first(&slices->call, rank) + from) * slices->element_bytes;

        copy(to_user ? at : slot, to_user ? slot : at, bytes);
        slot += bytes;
    }
}

/* Place of this rank's own piece in a slot. */
static uint64_t own_at(const struct by_slices *slices, uint64_t index)
{
    const struct by_seats *seats = slices->seats;

    return slot_first(slices, index, seats->first[seats->host] + seats->index) * slices->element_bytes;
}

bool by_slices_gives(const struct by_slices *slices)
{
    switch ((unsigned)slices->call.collective) {
    case BY_COLLECTIVE_BROADCAST:
    case BANYAN_SCATTER:
        return slices->call.root == slices->seats->rank;
    case BY_COLLECTIVE_BARRIER:
        return false;
    case BY_COLLECTIVE_ALLREDUCE:
    case BY_COLLECTIVE_REDUCE:
    case BY_COLLECTIVE_ALLGATHER:
    case BY_COLLECTIVE_REDUCE_SCATTER:
    default:
        return true;
    }
}

const void *by_slices_input(const struct by_slices *slices, uint64_t index)
{
    if (slices->sharded || !by_slices_gives(slices))
        return NULL;
    return (const uint8_t *)slices->call.send + before(slices, index) * slices->element_bytes;
}

void by_slices_pack(const struct by_slices *slices, uint64_t index, uint8_t *slot)
{
    const struct by_call *call = &slices->call;
    uint64_t from, count;

    if (!by_slices_gives(slices))
        return;
    if (!slices->sharded) {
        copy(slot, by_slices_input(slices, index), by_slices_bytes(slices, index));
        return;
    }
    if (call->collective == BY_COLLECTIVE_REDUCE_SCATTER || call->collective == BANYAN_ALLTOALL ||
        call->collective == BANYAN_SCATTER) {
        copy_shards(slices, index, (uint8_t *)(uintptr_t)call->send, slot, false);
        return;
    }
    count = piece(slices, index, slices->seats->rank, &from);
    if (count > 0)
        copy(slot + own_at(slices, index), (const uint8_t *)call->send + from * slices->element_bytes,
             count * slices->element_bytes);
}

void *by_slices_output(const struct by_slices *slices, uint64_t index, uint64_t *at, uint64_t *bytes)
{
    const struct by_call *call = &slices->call;
    uint64_t from = before(slices, index);

    *at = 0;
    *bytes = by_slices_bytes(slices, index);
    if (call->collective == BY_COLLECTIVE_REDUCE && call->root != slices->seats->rank)
        return NULL;
    if (call->collective == BY_COLLECTIVE_REDUCE_SCATTER) {
        *bytes = piece(slices, index, slices->seats->rank, &from) * slices->element_bytes;
        *at = own_at(slices, index);
    }
    return *bytes > 0 ? (uint8_t *)call->recv + from * slices->element_bytes : NULL;
}

/* Copies this rank's piece in `slot` to shard `shard` of its buffer. */
static void copy_piece(const struct by_slices *slices, uint64_t index, uint32_t shard, const uint8_t *slot)
{
    const struct by_call *call = &slices->call;
    uint64_t from, count = piece(slices, index, slices->seats->rank, &from);

    copy((uint8_t *)call->recv + (shard_first(call, shard) + from) * slices->element_bytes,
         slot + own_at(slices, index), count * slices->element_bytes);
}

void by_slices_unpack_from(const struct by_slices *slices, uint64_t index, uint32_t from, const uint8_t *slot)
{
    copy_piece(slices, index, from, slot);
}

void by_slices_unpack(const struct by_slices *slices, uint64_t index, const uint8_t *slot)
{
    const struct by_call *call = &slices->call;
    bool is_root = call->root == slices->seats->rank;
    uint64_t at, bytes;
    void *out;

    switch ((unsigned)call->collective) {
    case BY_COLLECTIVE_REDUCE:
        if (!is_root)
            return;
        break;
    case BY_COLLECTIVE_BROADCAST:
        if (is_root && call->recv == NULL)
            return;
        break;
    case BANYAN_GATHER:
        if (!is_root)
            return;
        copy_shards(slices, index, call->recv, (uint8_t *)(uintptr_t)slot, true);
        return;
    case BANYAN_SCATTER:
        copy_piece(slices, index, 0, slot);
        return;
    case BY_COLLECTIVE_ALLGATHER:
        copy_shards(slices, index, call->recv, (uint8_t *)(uintptr_t)slot, true);
        return;
    case BY_COLLECTIVE_REDUCE_SCATTER:
        out = by_slices_output(slices, index, &at, &bytes);
        if (out != NULL)
            copy(out, slot + at, bytes);
        return;
    case BY_COLLECTIVE_BARRIER:
        return;
    case BY_COLLECTIVE_ALLREDUCE:
    default:
        break;
    }
    copy((uint8_t *)call->recv + before(slices, index) * slices->element_bytes, slot,
         by_slices_bytes(slices, index));
}

/* ---- calls between hosts */

/* Fills the shards of hosts; with equal ones the call has no offsets. */
static void host_shards(const struct by_slices *slices, uint64_t index, struct by_call *outer,
                        uint64_t *offsets)
{
    const struct by_seats *seats = slices->seats;
    bool equal = true;

    offsets[0] = 0;
    for (uint32_t host = 0; host < seats->host_count; host++) {
        uint64_t from;

        offsets[host + 1] = offsets[host];
        for (uint32_t i = seats->first[host]; i < seats->first[host + 1]; i++)
            offsets[host + 1] += piece(slices, index, seats->order[i], &from);
        equal = equal && offsets[host + 1] - offsets[host] == offsets[1];
    }
    outer->count = equal ? offsets[1] : offsets[seats->host_count];
    outer->offsets = equal ? NULL : offsets;
}

void by_slices_outer(const struct by_slices *slices, uint64_t index, uint8_t *slot, struct by_call *outer,
                     uint64_t *offsets)
{
    const struct by_seats *seats = slices->seats;
    uint8_t *own = NULL;

    *outer = slices->call;
    outer->send = outer->recv = slot;
    outer->scratch = NULL;
    outer->root = by_collective_is_rooted(outer->collective) ? seats->host_of[outer->root] : 0;
    outer->count = before(slices, index + 1) - before(slices, index);
    if (slices->sharded) {
        host_shards(slices, index, outer, offsets);
        if (slot != NULL)
            own = slot + slot_first(slices, index, seats->first[seats->host]) * slices->element_bytes;
        if (outer->collective == BY_COLLECTIVE_ALLGATHER)
            outer->send = own;
        else
            outer->recv = own;
    }
    if (outer->collective == BY_COLLECTIVE_REDUCE && outer->root != seats->host)
        outer->recv = NULL;
    if (outer->collective == BY_COLLECTIVE_BROADCAST && outer->root == seats->host)
        outer->recv = NULL;
    if (outer->collective == BY_COLLECTIVE_BROADCAST && outer->root != seats->host)
        outer->send = NULL;
}

void by_slices_direct(const struct by_slices *slices, uint64_t index, struct by_call *outer)
{
    uint64_t at = before(slices, index) * slices->element_bytes;
    const struct by_call *call = &slices->call;

    outer->send = call->send != NULL ? (const uint8_t *)call->send + at : NULL;
    outer->recv = call->recv != NULL ? (uint8_t *)call->recv + at : NULL;
}

void by_slices_whole(const struct by_call *call, const struct by_seats *seats, struct by_call *outer,
                     uint64_t *offsets)
{
    struct by_slices slices = {.seats = seats,
                               .call = *call,
                               .count = 1,
                               .length = length_of(call, seats),
                               .sharded = by_collective_is_sharded(call->collective)};

    slices.body = slices.length;
    slices.element_bytes = by_dtype_bytes(call->dtype);
    by_slices_outer(&slices, 0, NULL, outer, offsets);
}
