/* Rounds and data of all-to-all, scatter and gather; see exchange.h. */
#include "host-driver/fallback/exchange.h"

#include <stdlib.h>
#include <string.h>

#include <banyan/banyan.h>

#include "host-driver/error.h"
#include "host-driver/fallback/work.h"
#include "offload/wire/types.h"

bool by_exchange_is(unsigned collective)
{
    return collective >= BANYAN_ALLTOALL && collective <= BANYAN_GATHER;
}

const char *by_exchange_name(unsigned collective)
{
    static const char *const name[] = {"all-to-all", "scatter", "gather"};

    return by_exchange_is(collective) ? name[collective - BANYAN_ALLTOALL] : "?";
}

uint64_t by_exchange_number(const struct by_call *call, uint32_t rank_count, enum by_exchange_numbers kind,
                            uint32_t peer)
{
    if (call->offsets != NULL)
        return call->offsets[(size_t)kind * rank_count + peer];
    if (kind == BY_SEND_COUNT || kind == BY_RECV_COUNT)
        return call->count;
    if (call->collective == BANYAN_ALLTOALL ||
        call->collective == (kind == BY_SEND_AT ? BANYAN_SCATTER : BANYAN_GATHER))
        return peer * call->count;
    return 0;
}

/* Whether `sender` has a message for `receiver`. */
static bool has_message(const struct by_call *call, uint32_t sender, uint32_t receiver)
{
    return call->collective == BANYAN_ALLTOALL ||
           call->root == (call->collective == BANYAN_SCATTER ? sender : receiver);
}

static unsigned __int128 cost_ps(const struct by_team *team, uint64_t messages, uint64_t shares,
                                 uint64_t share_bytes)
{
    return (unsigned __int128)messages * team->latency_ns * 1000u +
           (unsigned __int128)shares * share_bytes * team->gap_ps;
}

bool by_exchange_is_direct(const struct by_team *team, const struct by_call *call)
{
    uint32_t p = team->circulant.rank_count;
    uint64_t bytes = call->count * by_dtype_bytes(call->dtype);

    if (call->offsets != NULL)
        return true;
    if (team->few_files)
        return false;
    return team->way == BY_WAY_RING ||
           cost_ps(team, p - 1, p - 1, bytes) <= cost_ps(team, team->circulant.phase, team->moves, bytes);
}

uint64_t by_exchange_predict_ns(const struct by_team *team, const struct by_call *call, uint64_t *rounds)
{
    bool direct = by_exchange_is_direct(team, call);
    uint32_t p = team->circulant.rank_count;
    uint64_t bytes = call->offsets != NULL ? 0 : call->count * by_dtype_bytes(call->dtype);
    /* of a tree each byte leaves the root, or arrives there, once */
    uint64_t shares = direct || call->collective != BANYAN_ALLTOALL ? p - 1 : team->moves;

    *rounds = direct ? p - 1 : team->circulant.phase;
    return (uint64_t)(cost_ps(team, *rounds, shares, bytes) / 1000u);
}

void by_exchange_keep(const struct by_team *team, const struct by_call *call, const void *send)
{
    uint32_t p = team->circulant.rank_count, size = by_dtype_bytes(call->dtype);
    uint64_t count = by_exchange_number(call, p, BY_SEND_COUNT, team->rank);
    uint8_t *to = call->recv;
    const uint8_t *from = send;

    if (!has_message(call, team->rank, team->rank) || count == 0)
        return;
    from += by_exchange_number(call, p, BY_SEND_AT, team->rank) * size;
    to += by_exchange_number(call, p, BY_RECV_AT, team->rank) * size;
    if (to != from)
        memcpy(to, from, (size_t)(count * size));
}

uint64_t by_exchange_extent(const struct by_team *team, const struct by_call *call)
{
    uint32_t p = team->circulant.rank_count;
    uint64_t extent = 0;

    for (uint32_t peer = 0; peer < p; peer++) {
        uint64_t end =
            by_exchange_number(call, p, BY_SEND_AT, peer) + by_exchange_number(call, p, BY_SEND_COUNT, peer);

        extent = end > extent ? end : extent;
    }
    return extent;
}

/* The memory of a call has, in this order, a copy of the data to send if they are in place, and the
 * shares of other ranks on their way. Those of an all-to-all have two places each: one is sent from
 * while the other receives. */
int by_exchange_begin(const struct by_team *team, struct by_host_work *work)
{
    const struct by_call *call = &work->call;
    uint32_t p = team->circulant.rank_count, size = by_dtype_bytes(call->dtype);
    bool direct = by_exchange_is_direct(team, call), all = call->collective == BANYAN_ALLTOALL;
    bool at_root = !all && team->rank == call->root;
    uint64_t copied = all && call->send == call->recv ? by_exchange_extent(team, call) * size : 0;
    uint64_t relayed = direct || at_root ? 0 : (all ? 2u : 1u) * p * call->count * size;
    struct by_phase *phase = &work->phase[work->phase_count++];

    *phase = (struct by_phase){
        .kind = direct                               ? BY_PHASE_DIRECT
                : all                                ? BY_PHASE_ROUTED
                : call->collective == BANYAN_SCATTER ? BY_PHASE_SPREAD
                                                     : BY_PHASE_COLLECT,
        .root = call->root,
        .element_bytes = size,
        .count = call->count,
        .call = call,
        .send = call->send,
        .base = call->recv,
    };
    if (copied + relayed > 0) {
        work->memory = malloc((size_t)(copied + relayed));
        if (work->memory == NULL)
            return BY_ENOMEM;
    }
    if (copied > 0)
        phase->send = memcpy(work->memory, call->send, (size_t)copied);
    if (relayed > 0)
        phase->relayed = work->memory + copied;
    by_exchange_keep(team, call, phase->send);
    return 0;
}

/* ---- rounds */

static void add(const uint8_t *at, uint64_t bytes, struct iovec *pieces, uint32_t *count, uint64_t *sum)
{
    if (bytes == 0)
        return;
    pieces[(*count)++] = (struct iovec){(void *)(uintptr_t)at, (size_t)bytes};
    *sum += bytes;
}

/* Round i: to the rank i + 1 ranks further. Empty messages are sent too: their heads show whether
 * both ranks expect the same size. */
static void direct_round(const struct by_team *team, const struct by_phase *phase, uint32_t index,
                         struct by_round *round)
{
    const struct by_call *call = phase->call;
    uint32_t p = team->circulant.rank_count, size = phase->element_bytes;

    round->to = (team->rank + index + 1) % p;
    round->from = (team->rank + p - index - 1) % p;
    round->sends = has_message(call, team->rank, round->to);
    round->receives = has_message(call, round->from, team->rank);
    if (round->sends)
        add(phase->send + by_exchange_number(call, p, BY_SEND_AT, round->to) * size,
            by_exchange_number(call, p, BY_SEND_COUNT, round->to) * size, round->send, &round->send_count,
            &round->send_bytes);
    if (round->receives)
        add(phase->base + by_exchange_number(call, p, BY_RECV_AT, round->from) * size,
            by_exchange_number(call, p, BY_RECV_COUNT, round->from) * size, round->receive,
            &round->receive_count, &round->receive_bytes);
}

/* Returns where this rank keeps a share that moves `distance` ranks in all, after `moved` of its
 * moves, of which `left` are to come: at first in its own data, at last in its result. */
static const uint8_t *place_of(const struct by_team *team, const struct by_phase *phase, uint32_t distance,
                               uint32_t moved, uint32_t left)
{
    uint32_t p = team->circulant.rank_count;
    uint64_t bytes = phase->count * phase->element_bytes;

    if (moved == 0)
        return phase->send + (team->rank + distance) % p * bytes;
    if (left == 0)
        return phase->base + (team->rank + p - distance) % p * bytes;
    return phase->relayed + (2u * distance + moved % 2) * bytes;
}

static void routed_round(const struct by_team *team, const struct by_phase *phase, uint32_t index,
                         struct by_round *round)
{
    const struct by_circulant *circulant = &team->circulant;
    uint32_t p = circulant->rank_count, k = circulant->phase - 1 - index;
    uint64_t bytes = phase->count * phase->element_bytes;

    round->to = (team->rank + circulant->skip[k]) % p;
    round->from = (team->rank + p - circulant->skip[k]) % p;
    for (uint32_t distance = 1; distance < p; distance++) {
        uint32_t path = by_circulant_path(circulant, distance);
        uint32_t moved = (uint32_t)__builtin_popcount(path >> k >> 1);
        uint32_t left = (uint32_t)__builtin_popcount(path) - moved;

        if (!(path >> k & 1))
            continue;
        add(place_of(team, phase, distance, moved, left), bytes, round->send, &round->send_count,
            &round->send_bytes);
        add(place_of(team, phase, distance, moved + 1, left - 1), bytes, round->receive,
            &round->receive_count, &round->receive_bytes);
    }
}

/* A scatter or a gather along the tree. The root has all shares in its buffer, in the order of
 * ranks; another rank has its own share in its buffer, and those of the ranks behind it relayed. */
static void tree_round(const struct by_team *team, const struct by_phase *phase, uint32_t index,
                       struct by_round *round)
{
    bool forth = phase->kind == BY_PHASE_SPREAD;
    uint32_t p = team->circulant.rank_count, distance = (team->rank + p - phase->root) % p;
    uint64_t bytes = phase->count * phase->element_bytes, moved = 0;
    const uint8_t *own = forth == (distance == 0) ? phase->send : phase->base;
    struct iovec pieces[2];
    uint32_t pieces_count = 0, straight;
    struct by_circulant_span span;

    by_circulant_scatter(&team->circulant, distance, forth ? index : team->circulant.phase - 1 - index,
                         &span);
    if (!span.sends && !span.receives)
        return;
    if (distance == 0) {
        uint32_t first = (phase->root + span.first) % p;

        straight = span.count < p - first ? span.count : p - first;
        add(own + first * bytes, straight * bytes, pieces, &pieces_count, &moved);
        add(own, (span.count - straight) * bytes, pieces, &pieces_count, &moved);
    } else {
        straight = span.first == distance;
        add(own, straight * bytes, pieces, &pieces_count, &moved);
        add(phase->relayed + (span.first + straight - distance - 1) * bytes, (span.count - straight) * bytes,
            pieces, &pieces_count, &moved);
    }
    round->sends = span.sends == forth;
    round->receives = !round->sends;
    *(round->sends ? &round->to : &round->from) = (phase->root + span.peer) % p;
    memcpy(round->sends ? round->send : round->receive, pieces, pieces_count * sizeof(*pieces));
    *(round->sends ? &round->send_count : &round->receive_count) = pieces_count;
    *(round->sends ? &round->send_bytes : &round->receive_bytes) = moved;
}

void by_exchange_round(const struct by_team *team, const struct by_phase *phase, uint32_t index,
                       struct by_round *round)
{
    if (phase->kind == BY_PHASE_DIRECT)
        direct_round(team, phase, index, round);
    else if (phase->kind == BY_PHASE_ROUTED)
        routed_round(team, phase, index, round);
    else
        tree_round(team, phase, index, round);
}
