/*
 * The graph and the schedules of a rank; see circulant.h. Terms: a rank's path is its number
 * written as a sum of decreasing skips, greedily the largest that fits; the last skip is its
 * baseblock. In the ranks from skip[k] to skip[k + 1] - 1, the baseblocks are k and then those of
 * the ranks from 1 on. Any thread.
 */
#include "host-driver/circulant/circulant.h"

#include "offload/base/assert.h"

bool by_circulant_init(struct by_circulant *circulant, uint32_t rank_count)
{
    uint32_t skip = rank_count;

    if (rank_count == 0 || rank_count > BY_CIRCULANT_RANKS_MAX)
        return false;
    circulant->rank_count = rank_count;
    circulant->phase = rank_count > 1 ? 32u - (uint32_t)__builtin_clz(rank_count - 1) : 0;
    for (uint32_t k = circulant->phase + 1; k-- > 0;) {
        circulant->skip[k] = skip;
        skip -= skip / 2;
    }
    return true;
}

uint32_t by_circulant_baseblock(const struct by_circulant *circulant, uint32_t rank)
{
    uint32_t k = circulant->phase;

    BY_ASSERT(rank < circulant->rank_count);
    if (rank == 0)
        return k;
    for (; k > 0 && rank != circulant->skip[k]; k--)
        if (rank > circulant->skip[k])
            rank -= circulant->skip[k];
    return k;
}

/*
 * Computes the first `count` entries of the receive schedule.
 *
 * In round k, rank r receives from r - skip[k], which has the baseblocks of the ranks before it,
 * back to r - skip[k + 1]. Nearer ranks were served in the rounds before k, farther ones will be
 * served later. So for k = 0, 1, ... the search finds the nearest rank y in that window whose
 * baseblock is new to r. Ranks are counted from the previous phase on, so r is p + r; the root, p,
 * has "block" phase, which stands for r's own baseblock in this phase.
 *
 * The search follows the paths of ranks by decreasing skips. A skip that ends below the window's
 * start is followed further. A skip that ends in the window yields its block and is removed from
 * the search, because further paths over it lead to earlier ranks again. Thus a skip is examined a
 * bounded number of times, and the whole search takes O(log p).
 */
static void receive_some(const struct by_circulant *circulant, uint32_t rank, uint32_t count, int8_t *receive)
{
    const uint32_t *skip = circulant->skip;
    uint32_t phase = circulant->phase;
    uint32_t base = by_circulant_baseblock(circulant, rank);
    uint32_t here = circulant->rank_count + rank;
    uint32_t left = (2u << phase) - 1 - (1u << base); /* bit: the skip is still in the search */
    uint32_t below = 2 * circulant->rank_count;       /* later results are before this rank */
    uint32_t start[BY_CIRCULANT_PHASE_MAX + 1];       /* of the path, before each of its skips */
    uint8_t over[BY_CIRCULANT_PHASE_MAX + 1];         /* skips of the path */
    uint32_t depth = 0, at = 0, k = 0;
    uint32_t open = left; /* skips not yet tried at `at` */

    while (k < count) {
        uint32_t e, y;

        /* nothing further beyond `at`: the result is `at` itself, or none */
        if (open == 0) {
            if (depth == 0)
                break;
            depth--;
            y = at;
            at = start[depth];
            e = over[depth];
            open = left & ((1u << e) - 1);
            /* the start of the path is now in the window, and is after y */
            if (at > here - skip[k + 1])
                open = 0;
            if (at > here - skip[k + 1] || y > here - skip[k] || y >= below)
                continue;
        } else {
            e = 31u - (uint32_t)__builtin_clz(open);
            y = at + skip[e];
            open &= ~(1u << e);
            if (y > here - skip[k] || y >= below)
                continue;
            if (y <= here - skip[k + 1]) {
                start[depth] = at;
                over[depth++] = (uint8_t)e;
                at = y;
                continue;
            }
            if (at > here - skip[k + 1]) {
                open = 0;
                continue;
            }
        }
        receive[k++] = (int8_t)(e == phase ? (int)base : (int)e - (int)phase);
        left &= ~(1u << e);
        below = y;
    }
    BY_ASSERT(k == count);
}

void by_circulant_receive(const struct by_circulant *circulant, uint32_t rank, int8_t *receive)
{
    BY_ASSERT(rank < circulant->rank_count);
    receive_some(circulant, rank, circulant->phase, receive);
}

/* Returns what the rank behind the k-th skip receives in round k: the definition. */
static int8_t send_one(const struct by_circulant *circulant, uint32_t rank, uint32_t k)
{
    int8_t receive[BY_CIRCULANT_PHASE_MAX] = {0};
    uint32_t to = rank + circulant->skip[k];

    if (to >= circulant->rank_count)
        to -= circulant->rank_count;
    receive_some(circulant, to, k + 1, receive);
    return receive[k];
}

/*
 * From the last round to the first. The ranks below skip[k + 1] are two copies of the pattern of
 * the ranks below skip[k]; the second copy may end earlier. x is the rank's position in its copy,
 * and `end` the number of ranks from the copy's start on. A rank in the first copy sends to the
 * same position in the second copy what it sends in the next round. A rank in the second copy sends
 * the baseblock of its copy's first rank back into the first copy. If the receiver is not such a
 * position because a copy ends early (at most four rounds of a rank, see the tests), the receiver's
 * own schedule gives the block.
 */
void by_circulant_send(const struct by_circulant *circulant, uint32_t rank, int8_t *send)
{
    uint32_t phase = circulant->phase;
    uint32_t x = rank, end = circulant->rank_count;
    int8_t block;

    BY_ASSERT(rank < circulant->rank_count);
    if (rank == 0) {
        for (uint32_t k = 0; k < phase; k++)
            send[k] = (int8_t)k;
        return;
    }
    block = (int8_t)by_circulant_baseblock(circulant, rank);
    send[0] = (int8_t)(block - (int)phase);
    for (uint32_t k = phase - 1; k > 0; k--) {
        uint32_t skip = circulant->skip[k];
        bool cut;

        if (x < skip) {
            cut = x + skip >= end && (k != 1 || x + skip >= circulant->skip[k + 1]);
            if (end > skip)
                end = skip;
        } else {
            block = (int8_t)((int)k - (int)phase);
            x -= skip;
            end -= skip;
            cut = x == 0 && end >= 2 && end < skip;
        }
        send[k] = cut ? send_one(circulant, rank, k) : block;
    }
}

void by_circulant_schedule(const struct by_circulant *circulant, uint32_t rank,
                           struct by_circulant_schedule *schedule)
{
    by_circulant_receive(circulant, rank, schedule->receive);
    by_circulant_send(circulant, rank, schedule->send);
}
