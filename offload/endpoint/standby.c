/* When a rank moves to a standby generation, and to which; see standby.h. Pure; the endpoint's
 * thread. */
#include "offload/endpoint/standby.h"
#include "offload/endpoint/state.h"

/* Checks of the chunks in flight within the patience (count). */
#define LOOKS 16u
/* An attempt may take so many times the patience; each further one twice as long as the one
 * before. */
#define ATTEMPT 4u

/* Whether the attempt has taken too long, and its tree is not waiting for a rank. */
static bool has_failed(const struct by_standby_move *move, uint64_t patience_ns, uint64_t now_ns)
{
    uint64_t most_ns = ATTEMPT * patience_ns > move->attempt_ns ? ATTEMPT * patience_ns : move->attempt_ns;

    return move->broken || (now_ns - move->began_ns >= most_ns << (move->tried - 1) &&
                            by_endpoint_is_cut(move->list[move->tried - 1].rounds, 0, now_ns, patience_ns));
}

/* Returns the next standby that can be used, counted from 1; 0: none. */
static uint32_t next(const struct by_standby_move *move)
{
    for (uint32_t s = move->tried; s < move->count; s++)
        if (move->list[s].rounds != NULL)
            return s + 1;
    return 0;
}

/* Returns whether the standby serves in place of the tree at `place` of the table. */
static bool replaces(const struct by_standby_move *move, uint32_t s, uint32_t place)
{
    const struct by_standby_tree *tree = &move->list[s];

    return !move->left && place / 8 < tree->mask_bytes && tree->mask[place / 8] >> place % 8 & 1;
}

/* Returns the standby, counted from 1, that serves in place of the trees whose chunks have waited
 * for the patience; 0: no tree has stopped. */
static uint32_t first(const struct by_standby_move *move, const struct by_endpoint *calls,
                      uint64_t patience_ns, uint64_t now_ns)
{
    bool serves[BY_STANDBYS_MAX], some = false;

    for (uint32_t s = 0; s < move->count; s++)
        serves[s] = move->list[s].rounds != NULL;
    for (uint32_t place = 0; place < calls->lane_count; place++) {
        if (!by_endpoint_is_cut(calls, place, now_ns, patience_ns))
            continue;
        some = true;
        for (uint32_t s = 0; s < move->count; s++)
            serves[s] &= replaces(move, s, place);
    }
    for (uint32_t s = 0; s < move->count && some; s++)
        if (serves[s])
            return s + 1;
    return some ? next(move) : 0;
}

uint32_t by_standby_move_choose(struct by_standby_move *move, const struct by_endpoint *calls,
                                uint64_t patience_ns, uint64_t now_ns)
{
    for (uint32_t s = move->count; s > move->tried; s--)
        if (move->list[s - 1].rounds != NULL && by_endpoint_counters(move->list[s - 1].rounds)->probe > 0)
            return s; /* another rank waits there */
    if (now_ns - move->looked_ns < patience_ns / LOOKS)
        return 0;
    move->looked_ns = now_ns;
    if (move->tried > 0)
        return has_failed(move, patience_ns, now_ns) ? next(move) : 0;
    if (move->left && patience_ns < move->again_ns)
        patience_ns = move->again_ns;
    return by_endpoint_inflight(calls) > 0 ? first(move, calls, patience_ns, now_ns) : 0;
}

void by_standby_move_begin(struct by_standby_move *move, uint32_t to, uint64_t now_ns)
{
    move->tried = to;
    move->broken = false;
    move->began_ns = now_ns;
}

bool by_standby_move_is_stuck(const struct by_standby_move *move, uint64_t patience_ns, uint64_t now_ns)
{
    return move->tried > 0 && next(move) == 0 && has_failed(move, patience_ns, now_ns);
}

uint64_t by_standby_move_deadline(const struct by_standby_move *move, const struct by_endpoint *calls,
                                  uint64_t patience_ns)
{
    if (next(move) == 0 || (move->tried == 0 && by_endpoint_inflight(calls) == 0))
        return UINT64_MAX;
    return move->looked_ns + patience_ns / LOOKS;
}
