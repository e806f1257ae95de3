/*
 * Finds the call that an optag represents. An optag is a hash: it shows that two ranks are in
 * different calls, but not in which. The other rank can only be in a few: the same call or a few
 * before or after it, of any collective, from any root, over counts that this rank has itself or
 * that the chunk shows. All are tried, once, after a run has failed. Neighbours: accept.c calls
 * this when ranks disagree. Pure; the endpoint's thread.
 */
#include "offload/endpoint/state.h"

/* Calls tried before and after this rank's (count). */
#define NUMBERS 8u
/* Maximum roots tried (count): bounds the time to some 10 ms. */
#define ROOTS_MAX  1024u
#define COUNTS_MAX (BY_CALLS_MAX + 8u)

static uint32_t add_count(uint64_t *counts, uint32_t size, uint64_t count)
{
    for (uint32_t i = 0; i < size; i++)
        if (counts[i] == count)
            return size;
    counts[size] = count;
    return size + 1;
}

/* Lists the element counts of whole calls that `side` may be in. */
static uint32_t list_counts(const struct by_endpoint *endpoint, const struct by_call_state *own,
                            const struct by_err_side *side, uint64_t counts[COUNTS_MAX])
{
    uint64_t ranks = endpoint->rank_count;
    uint32_t size = 0;

    size = add_count(counts, size, own->told_count);
    size = add_count(counts, size, 0);
    size = add_count(counts, size, own->call.count * ranks);
    size = add_count(counts, size, own->call.count / ranks);
    for (uint32_t bytes = 1; bytes <= 8; bytes *= 2) /* the chunk is the whole call, copied as bytes or not */
        size = add_count(counts, size, side->count / bytes);
    for (uint32_t c = 0; c < BY_CALLS_MAX; c++)
        size = add_count(counts, size, endpoint->calls[c].told_count);
    return size;
}

/* For unequal shards, and for a part of a larger call, an optag has a hash: this rank can resolve
 * it only if it has such a call itself. */
static void say_shards(const struct by_endpoint *endpoint, struct by_call_said *said)
{
    for (uint32_t c = 0; c < BY_CALLS_MAX; c++) {
        const struct by_call_state *call = &endpoint->calls[c];

        if ((call->call.offsets == NULL && call->call.whole == 0) || call->told_count != said->count)
            continue;
        said->unequal = call->call.offsets != NULL;
        said->count = call->call.count;
        return;
    }
}

static int try_roots(const struct by_endpoint *endpoint, uint32_t optag, struct by_call_said *said)
{
    int rooted = by_collective_is_rooted(said->collective);
    uint32_t roots = !rooted ? 1 : endpoint->rank_count < ROOTS_MAX ? endpoint->rank_count : ROOTS_MAX;

    for (uint32_t root = 0; root < roots; root++) {
        if (by_optag(said->number, said->collective, (uint16_t)root, said->count) != optag)
            continue;
        said->root = (uint16_t)root;
        said->known = 1;
        return 1;
    }
    return 0;
}

void by_guess(const struct by_endpoint *endpoint, const struct by_call_state *own,
              const struct by_err_side *side, struct by_call_said *said)
{
    uint32_t optag = side->optag ^ endpoint->session_salt;
    uint64_t counts[COUNTS_MAX];
    uint32_t size = list_counts(endpoint, own, side, counts);

    said->own = side->optag == own->optag && side->op == own->op && side->dtype == own->dtype &&
                (side->mode == own->mode || side->count == 0); /* a word has no mode of its own */
    /* This rank's number first, then numbers further and further from it. */
    for (uint32_t n = 0; n <= 2 * NUMBERS; n++)
        for (uint32_t c = 0; c < size; c++)
            for (unsigned collective = 1; collective < BY_COLLECTIVE_COUNT; collective++) {
                said->number = n % 2 ? own->number + (n + 1) / 2 : own->number - n / 2;
                said->collective = (uint8_t)collective;
                said->count = counts[c];
                if (!try_roots(endpoint, optag, said))
                    continue;
                say_shards(endpoint, said);
                return;
            }
    said->known = 0;
}
