/*
 * The graph and the schedules of a rank; see circulant.h. The words: a rank's path is its number
 * written as a sum of falling skips, always the largest that fits; the last of them is its
 * baseblock. Within the ranks from skip[k] to skip[k + 1] - 1 baseblocks are k and then those of
 * the ranks from 1 on again. Any thread.
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
 * The first `count` entries of the receive schedule. What rank r receives in round k comes from r -
 * skip[k], which has the baseblocks of the ranks before it, as far back as r - skip[k + 1]: nearer
 * ones were served in the rounds before k, farther ones will be. So for k = 0, 1, ... we look for
 * the nearest rank y in that window whose baseblock is new to r; ranks are counted from the phase
 * before on, so that r is p + r and the root, p, has "block" phase: the one that is r's own
 * baseblock in this phase. The search goes down the paths of ranks by falling skips. A skip below
 * the window's begin is followed further; one that ends in the window gives its block, and that
 * skip is taken out of the search, for paths over it lead to the ranks of before again. Thus a skip
 * is looked at a bounded number of times, and the whole takes O(log p).
 */
static void receive_some(const struct by_circulant *circulant, uint32_t rank, uint32_t count, int8_t *receive)
{
    const uint32_t *skip = circulant->skip;
    uint32_t phase = circulant->phase;
    uint32_t base = by_circulant_baseblock(circulant, rank);
    uint32_t here = circulant->rank_count + rank;
    uint32_t left = (2u << phase) - 1 - (1u << base); /* bit: the skip is still in the search */
    uint32_t below = 2 * circulant->rank_count;       /* later finds are before this rank */
    uint32_t start[BY_CIRCULANT_PHASE_MAX + 1];       /* of the path, before each of its skips */
    uint8_t over[BY_CIRCULANT_PHASE_MAX + 1];         /* the skips of the path */
    uint32_t depth = 0, at = 0, k = 0;
    uint32_t open = left; /* skips yet to be tried at `at` */

    while (k < count) {
        uint32_t e, y;

        if (open == 0) { /* nothing more beyond `at`: so it is `at` itself, or nothing */
            if (depth == 0)
                break;
            depth--;
            y = at;
            at = start[depth];
            e = over[depth];
            open = left & ((1u << e) - 1);
            if (at > here - skip[k + 1])
                open = 0; /* where the path began is in the window now, and comes later than y */
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

/* What the rank behind the k-th skip receives in round k: the definition. */
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
 * those below skip[k], the second of which may end earlier; x is the rank's place in the copies,
 * and `end` how many ranks follow from the copy's begin on. A rank in the first copy sends to the
 * same place in the second one what it has sent in the round after; one in the second copy sends
 * the block that its copy's first rank is the first to have, back into the first copy. Where the
 * receiver is no such place because a copy ends early (at most four rounds of a rank, see the
 * tests), the receiver's own schedule tells.
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
