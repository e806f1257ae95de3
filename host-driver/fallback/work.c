/* Data processing of a call between hosts; see work.h. */
#include "host-driver/fallback/work.h"

#include <stdlib.h>
#include <string.h>

#include "host-driver/error.h"
#include "host-driver/fallback/exchange.h"
#include "host-driver/isa.h"
#include "offload/wire/types.h"

#define STRIDE (1u << 16) /* elements per kernel call: they fit a cache */

static const struct by_reducer *reducer_of(const struct by_host_work *work, unsigned dtype)
{
    return by_host_reducer(work->call.op, dtype);
}

static int is_wide(const struct by_host_work *work)
{
    return work->kept_dtype != work->call.dtype;
}

/* to = from, converted to the accumulation type. */
static void load(const struct by_host_work *work, uint8_t *to, const uint8_t *from, uint64_t count)
{
    const struct by_reducer *reducer = reducer_of(work, work->call.dtype);

    if (!is_wide(work)) {
        if (to != from && count > 0)
            memmove(to, from, (size_t)(count * reducer->element_bytes));
        return;
    }
    for (uint64_t at = 0; at < count; at += STRIDE)
        reducer->load(to + at * reducer->acc_bytes, from + at * reducer->element_bytes,
                      (uint32_t)(count - at < STRIDE ? count - at : STRIDE));
}

/* Like load, for each shard of a vector separately: a kept 16-bit type may have its own element
 * order (offload/reduce/reduce.h), and a shard is stored as it was loaded. */
static void load_shards(const struct by_team *team, const struct by_host_work *work,
                        const struct by_phase *phase)
{
    uint32_t wire = by_dtype_bytes(work->call.dtype);

    for (uint32_t shard = 0; shard < team->circulant.rank_count; shard++) {
        uint64_t first, end;

        by_phase_shard(team, phase, shard, &first, &end);
        load(work, phase->base + first * phase->element_bytes,
             (const uint8_t *)work->call.send + first * wire, end - first);
    }
}

/* to = from, converted from the accumulation type; destroys `from`. */
static void store(const struct by_host_work *work, uint8_t *to, uint8_t *from, uint64_t count)
{
    const struct by_reducer *reducer = reducer_of(work, work->call.dtype);

    for (uint64_t at = 0; at < count && is_wide(work); at += STRIDE) {
        uint32_t part = (uint32_t)(count - at < STRIDE ? count - at : STRIDE);
        uint8_t *kept = from + at * reducer->acc_bytes;
        uint32_t guard = reducer->psum(kept, (size_t)part * reducer->acc_bytes);

        reducer->store(kept, part, &guard);
        memmove(to + at * reducer->element_bytes, kept, (size_t)part * reducer->element_bytes);
    }
    if (!is_wide(work) && to != from && count > 0)
        memmove(to, from, (size_t)(count * reducer->element_bytes));
}

/* to = to op from, both in the accumulation type. */
static void add(const struct by_host_work *work, uint8_t *to, const uint8_t *from, uint64_t bytes)
{
    const struct by_reducer *reducer = reducer_of(work, work->kept_dtype);
    uint64_t count = bytes / reducer->element_bytes;

    for (uint64_t at = 0; at < count; at += STRIDE) {
        uint32_t part = (uint32_t)(count - at < STRIDE ? count - at : STRIDE);
        uint8_t *sum = to + at * reducer->element_bytes;
        uint32_t guard = reducer->psum(sum, (size_t)part * reducer->element_bytes);

        reducer->accumulate(sum, from + at * reducer->element_bytes, part, &guard);
    }
}

uint32_t by_work_tag(uint32_t rank_count, const struct by_call *call)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a over whole numbers */
    bool unequal = call->offsets != NULL;
    /* The shares of an exchange may be unequal without that all ranks know their sizes; each
     * message shows its own. */
    bool by_pairs = unequal && by_exchange_is(call->collective);
    const uint64_t facts[] = {call->collective, call->op,   call->dtype,
                              call->mode,       call->root, by_pairs ? UINT64_MAX : call->count};

    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
        hash = (hash ^ facts[i]) * UINT64_C(0x100000001b3);
    for (uint32_t rank = 1; unequal && !by_pairs && rank <= rank_count; rank++)
        hash = (hash ^ call->offsets[rank] ^ hash >> 29) * UINT64_C(0x100000001b3);
    return (uint32_t)(hash ^ hash >> 32);
}

static struct by_phase *add_phase(struct by_host_work *work, enum by_phase_kind kind, uint8_t *base,
                                  uint64_t count, uint32_t element_bytes)
{
    struct by_phase *phase = &work->phase[work->phase_count++];

    *phase = (struct by_phase){.kind = kind,
                               .root = work->call.root,
                               .element_bytes = element_bytes,
                               .count = count,
                               .offsets = work->call.offsets,
                               .base = base};
    return phase;
}

/* Allocates memory for `count` elements of the accumulation type. */
static int take(struct by_host_work *work, uint64_t count)
{
    size_t bytes = (size_t)(count * by_dtype_bytes(work->kept_dtype));

    work->memory = aligned_alloc(64, (bytes + 64) / 64 * 64);
    return work->memory != NULL ? 0 : BY_ENOMEM;
}

/* Small vectors are sent whole to all ranks rather than cut, summed and sent again: one phase of
 * rounds instead of two. It pays off as long as the extra bytes cost less than the saved rounds. */
static int is_small(const struct by_team *team, uint64_t bytes, uint32_t times)
{
    unsigned __int128 gap = (unsigned __int128)bytes * times * team->gap_ps;

    return gap <= (unsigned __int128)team->latency_ns * 1000u * team->circulant.phase;
}

/* Returns the accumulation type. */
static uint8_t kept_of(const struct by_call *call)
{
    return call->dtype == BY_DTYPE_F16 || call->dtype == BY_DTYPE_BF16 ? (uint8_t)BY_DTYPE_F32 : call->dtype;
}

/* Returns the first phase of an allreduce, which is its only phase or the first of two. */
static enum by_phase_kind allreduce_kind(const struct by_team *team, const struct by_call *call)
{
    uint64_t bytes = call->count * by_dtype_bytes(call->dtype);

    if (team->circulant.rank_count > 1 && !by_reduction_is_ordered(call->op, call->dtype) &&
        kept_of(call) == call->dtype && is_small(team, bytes, team->circulant.phase))
        return BY_PHASE_CENSUS;
    if (team->circulant.rank_count > 1 && is_small(team, bytes, team->circulant.rank_count))
        return BY_PHASE_SMALL;
    return BY_PHASE_SCATTER;
}

static int begin_allreduce(const struct by_team *team, struct by_host_work *work)
{
    const struct by_call *call = &work->call;
    enum by_phase_kind kind = allreduce_kind(team, call);
    uint32_t p = team->circulant.rank_count;
    uint32_t wire = by_dtype_bytes(call->dtype), kept = by_dtype_bytes(work->kept_dtype);
    uint8_t *base = call->recv;

    if (kind == BY_PHASE_CENSUS) {
        if (take(work, 3 * call->count) != 0) /* S, the value sent, and the own value */
            return BY_ENOMEM;
        add_phase(work, BY_PHASE_CENSUS, work->memory, call->count, wire)->census =
            work->memory + call->count * wire;
        load(work, work->memory + 2 * call->count * wire, call->send, call->count);
        return 0;
    }
    if (kind == BY_PHASE_SMALL) {
        if (take(work, (p + 1) * call->count) != 0) /* vectors of all ranks, and their sum */
            return BY_ENOMEM;
        memcpy(work->memory + team->rank * call->count * wire, call->send, (size_t)(call->count * wire));
        add_phase(work, BY_PHASE_SMALL, work->memory, p * call->count, wire);
        return 0;
    }
    if (is_wide(work)) {
        if (take(work, call->count) != 0)
            return BY_ENOMEM;
        base = work->memory;
    }
    load_shards(team, work, add_phase(work, BY_PHASE_SCATTER, base, call->count, kept));
    add_phase(work, BY_PHASE_GATHER, call->recv, call->count, wire);
    return 0;
}

static int begin_reduce(const struct by_team *team, struct by_host_work *work)
{
    const struct by_call *call = &work->call;
    uint64_t count = call->count;
    uint8_t *base = call->recv;

    if (call->collective == BY_COLLECTIVE_REDUCE_SCATTER && call->offsets == NULL)
        count *= team->circulant.rank_count;
    if (call->collective == BY_COLLECTIVE_REDUCE_SCATTER || is_wide(work) || team->rank != call->root) {
        if (take(work, count) != 0)
            return BY_ENOMEM;
        base = work->memory;
    }
    if (call->collective == BY_COLLECTIVE_REDUCE) {
        load(work, base, call->send, count);
        add_phase(work, BY_PHASE_REDUCE, base, count, by_dtype_bytes(work->kept_dtype));
    } else {
        load_shards(team, work,
                    add_phase(work, BY_PHASE_SCATTER, base, count, by_dtype_bytes(work->kept_dtype)));
    }
    return 0;
}

static void begin_allgather(const struct by_team *team, struct by_host_work *work)
{
    const struct by_call *call = &work->call;
    uint32_t bytes = by_dtype_bytes(call->dtype);
    uint64_t count = call->offsets != NULL ? call->count : call->count * team->circulant.rank_count;
    struct by_phase *phase = add_phase(work, BY_PHASE_GATHER, call->recv, count, bytes);
    uint64_t first, end;

    by_phase_shard(team, phase, team->rank, &first, &end);
    if (first < end && phase->base + first * bytes != call->send)
        memcpy(phase->base + first * bytes, call->send, (size_t)((end - first) * bytes));
}

bool by_work_supports(const struct by_call *call)
{
    bool reduces = by_collective_reduces(call->collective);

    return !reduces || by_reduction_dtype(call->mode, call->op, call->dtype) == call->dtype;
}

/* Returns the duration of a phase of `count` elements; adds its rounds. If every rank has a shard,
 * each rank receives the shards of the others once, over all rounds; else each round moves a block
 * of the whole. */
static uint64_t phase_ns(const struct by_team *team, enum by_phase_kind kind, uint64_t count,
                         uint32_t element_bytes, uint64_t *rounds)
{
    struct by_phase phase = {.kind = kind, .count = count, .element_bytes = element_bytes};
    bool sharded = kind == BY_PHASE_GATHER || kind == BY_PHASE_SCATTER || kind == BY_PHASE_SMALL;
    unsigned __int128 bytes = (unsigned __int128)count * element_bytes; /* in sequence */

    by_phase_plan(team, &phase);
    if (!sharded)
        bytes = bytes * phase.round_count / phase.block_count;
    *rounds += phase.round_count;
    return phase.round_count * team->latency_ns + (uint64_t)(bytes * team->gap_ps / 1000u);
}

uint64_t by_work_predict_ns(const struct by_team *team, const struct by_call *call, uint64_t *rounds)
{
    uint64_t all = call->offsets != NULL ? call->count : call->count * team->circulant.rank_count;
    uint32_t wire = by_dtype_bytes(call->dtype), kept = by_dtype_bytes(kept_of(call));
    uint64_t unused = 0;

    if (rounds == NULL)
        rounds = &unused;
    *rounds = 0;
    if (by_exchange_is(call->collective))
        return by_exchange_predict_ns(team, call, rounds);
    switch ((enum by_collective)call->collective) {
    case BY_COLLECTIVE_ALLREDUCE:
        switch (allreduce_kind(team, call)) {
        case BY_PHASE_CENSUS:
            return phase_ns(team, BY_PHASE_CENSUS, call->count, wire, rounds);
        case BY_PHASE_SMALL:
            return phase_ns(team, BY_PHASE_SMALL, all, wire, rounds);
        case BY_PHASE_BROADCAST:
        case BY_PHASE_REDUCE:
        case BY_PHASE_GATHER:
        case BY_PHASE_SCATTER:
        case BY_PHASE_TOKEN:
        case BY_PHASE_DIRECT:
        case BY_PHASE_ROUTED:
        case BY_PHASE_SPREAD:
        case BY_PHASE_COLLECT:
        default:
            return phase_ns(team, BY_PHASE_SCATTER, call->count, kept, rounds) +
                   phase_ns(team, BY_PHASE_GATHER, call->count, wire, rounds);
        }
    case BY_COLLECTIVE_REDUCE:
        return phase_ns(team, BY_PHASE_REDUCE, call->count, kept, rounds);
    case BY_COLLECTIVE_REDUCE_SCATTER:
        return phase_ns(team, BY_PHASE_SCATTER, all, kept, rounds);
    case BY_COLLECTIVE_ALLGATHER:
        return phase_ns(team, BY_PHASE_GATHER, all, wire, rounds);
    case BY_COLLECTIVE_BROADCAST:
        return phase_ns(team, BY_PHASE_BROADCAST, call->count, wire, rounds);
    case BY_COLLECTIVE_BARRIER:
    default:
        return phase_ns(team, BY_PHASE_TOKEN, 0, 1, rounds);
    }
}

int by_work_begin(const struct by_team *team, const struct by_call *call, struct by_host_work *work)
{
    int error = 0;

    memset(work, 0, sizeof(*work));
    work->call = *call;
    work->tag = by_work_tag(team->circulant.rank_count, call);
    work->kept_dtype = kept_of(call);
    if (!by_work_supports(call))
        return BY_EUNSUPPORTED;
    if (by_exchange_is(call->collective)) {
        error = by_exchange_begin(team, work);
        by_phase_plan(team, &work->phase[0]);
        return error;
    }
    switch ((enum by_collective)call->collective) {
    case BY_COLLECTIVE_ALLREDUCE:
        error = begin_allreduce(team, work);
        break;
    case BY_COLLECTIVE_REDUCE:
    case BY_COLLECTIVE_REDUCE_SCATTER:
        error = begin_reduce(team, work);
        break;
    case BY_COLLECTIVE_ALLGATHER:
        begin_allgather(team, work);
        break;
    case BY_COLLECTIVE_BROADCAST: /* the root only reads */
        add_phase(work, BY_PHASE_BROADCAST,
                  call->recv != NULL ? call->recv : (uint8_t *)(uintptr_t)call->send, call->count,
                  by_dtype_bytes(call->dtype));
        break;
    case BY_COLLECTIVE_BARRIER:
    default:
        add_phase(work, BY_PHASE_TOKEN, NULL, 0, 1);
        break;
    }
    for (uint32_t i = 0; error == 0 && i < work->phase_count; i++)
        by_phase_plan(team, &work->phase[i]);
    return error;
}

void by_work_prepare(const struct by_team *team, struct by_host_work *work, uint32_t index, uint32_t round)
{
    const struct by_phase *phase = &work->phase[index];
    size_t bytes = (size_t)(phase->count * phase->element_bytes);
    const uint8_t *own = work->memory + 2 * bytes;
    struct by_circulant_fold fold;

    if (phase->kind != BY_PHASE_CENSUS)
        return;
    by_circulant_census(&team->circulant, team->rank, round, &fold);
    memcpy(phase->census, round == 0 ? own : phase->base, bytes);
    if (round > 0 && fold.count > 0)
        add(work, phase->census, own, bytes);
}

void by_work_fold(struct by_host_work *work, const struct iovec *piece, uint32_t count, const uint8_t *from)
{
    for (uint32_t i = 0; i < count; i++) {
        add(work, piece[i].iov_base, from, piece[i].iov_len);
        from += piece[i].iov_len;
    }
}

/* Adds the vectors of all ranks in rank order, so that all ranks get the same bits. */
static void add_in_order(const struct by_team *team, struct by_host_work *work)
{
    const struct by_call *call = &work->call;
    const struct by_reducer *reducer = reducer_of(work, call->dtype);
    uint64_t bytes = call->count * reducer->element_bytes;
    uint8_t *sum = work->memory + team->circulant.rank_count * bytes;

    for (uint64_t at = 0; at < call->count; at += STRIDE) {
        uint32_t part = (uint32_t)(call->count - at < STRIDE ? call->count - at : STRIDE);
        const uint8_t *first = work->memory + at * reducer->element_bytes;
        uint32_t guard = reducer->load(sum, first, part);

        for (uint32_t rank = 1; rank < team->circulant.rank_count; rank++)
            reducer->accumulate(sum, first + rank * bytes, part, &guard);
        reducer->store(sum, part, &guard);
        memcpy((uint8_t *)call->recv + at * reducer->element_bytes, sum,
               (size_t)part * reducer->element_bytes);
    }
}

void by_work_finish(const struct by_team *team, struct by_host_work *work, uint32_t index)
{
    const struct by_call *call = &work->call;
    const struct by_phase *phase = &work->phase[index];
    uint64_t bytes = phase->count * phase->element_bytes;
    uint64_t first, end;

    if (phase->kind == BY_PHASE_CENSUS) {
        add(work, phase->base, work->memory + 2 * bytes, bytes);
        memcpy(call->recv, phase->base, (size_t)bytes);
    } else if (phase->kind == BY_PHASE_SMALL) {
        add_in_order(team, work);
    } else if (phase->kind == BY_PHASE_SCATTER) {
        by_phase_shard(team, phase, team->rank, &first, &end);
        if (call->collective == BY_COLLECTIVE_REDUCE_SCATTER)
            store(work, call->recv, phase->base + first * phase->element_bytes, end - first);
        else if (is_wide(work))
            store(work, (uint8_t *)call->recv + first * by_dtype_bytes(call->dtype),
                  phase->base + first * phase->element_bytes, end - first);
    } else if (phase->kind == BY_PHASE_REDUCE && team->rank == call->root && phase->base != call->recv) {
        store(work, call->recv, phase->base, phase->count);
    }
}

void by_work_end(struct by_host_work *work)
{
    free(work->memory);
    work->memory = NULL;
}
