/*
 * The parts of running calls that earlier generations have done, in bytes of their shards. Trees,
 * shares and chunk sizes may all differ between generations, but elements remain the same. All
 * ranks have the same list when they continue in new trees, so they divide the rest into the same
 * chunks. The list has disjoint, sorted intervals; most calls have a few for each earlier tree.
 * Neighbours: resume_copy.c makes the list, cursor.c skips its intervals. Pure; the endpoint's
 * thread.
 */
#include "offload/endpoint/state.h"

/* Returns whether `done` ends before byte `at` of the shard. */
static int is_before(const struct by_done *done, uint32_t call, uint32_t shard, uint64_t at)
{
    if (done->call != call)
        return (int32_t)(done->call - call) < 0;
    if (done->shard != shard)
        return done->shard < shard;
    return done->to < at;
}

/* Returns the first interval that does not end before that byte. */
static uint32_t find(const struct by_endpoint *endpoint, uint32_t call, uint32_t shard, uint64_t at)
{
    uint32_t low = 0, high = endpoint->done_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (is_before(&endpoint->done[middle], call, shard, at))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns whether the intervals are in the same shard and touch: `done` begins at the end of
 * `other` or before. */
static int touches(const struct by_done *done, const struct by_done *other)
{
    return done->call == other->call && done->shard == other->shard && done->from <= other->to;
}

void by_done_add(struct by_endpoint *endpoint, const struct by_done *added)
{
    struct by_done *list = endpoint->done;
    struct by_done whole = *added;
    uint32_t first = find(endpoint, added->call, added->shard, added->from), end = first;

    for (; end < endpoint->done_count && touches(&list[end], &whole); end++) {
        if (list[end].from < whole.from)
            whole.from = list[end].from;
        if (list[end].to > whole.to)
            whole.to = list[end].to;
    }
    if (end == first) {
        BY_ASSERT(endpoint->done_count < endpoint->done_room);
        for (uint32_t i = endpoint->done_count; i > first; i--)
            list[i] = list[i - 1];
        endpoint->done_count++;
    } else {
        for (uint32_t i = end; i < endpoint->done_count; i++)
            list[first + 1 + i - end] = list[i];
        endpoint->done_count -= end - first - 1;
    }
    list[first] = whole;
}

int by_done_any(const struct by_endpoint *endpoint, uint32_t call)
{
    return endpoint->done_count > 0 && (int32_t)(call - endpoint->done[endpoint->done_count - 1].call) <= 0;
}

int by_done_gap(const struct by_endpoint *endpoint, uint32_t call, uint32_t shard, uint64_t at, uint64_t end,
                uint64_t *start, uint64_t *stop)
{
    const struct by_done *list = endpoint->done;
    uint32_t i = by_done_any(endpoint, call) ? find(endpoint, call, shard, at) : endpoint->done_count;

    *stop = end;
    for (; i < endpoint->done_count && list[i].call == call && list[i].shard == shard; i++) {
        if (list[i].from > at) {
            if (list[i].from < end)
                *stop = list[i].from;
            break;
        }
        if (list[i].to > at)
            at = list[i].to;
    }
    *start = at;
    return at < end;
}
