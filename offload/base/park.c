/* A binary heap of waiting frames, with the frame that is due first at its root; see park.h. */
#include "offload/base/park.h"

static int is_before(const struct by_parked *a, const struct by_parked *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

int by_park_put(struct by_park *park, uint64_t due_ns, void *frame, uint16_t port)
{
    const struct by_parked one = {.due_ns = due_ns, .order = park->next, .frame = frame, .port = port};
    uint32_t at = park->count;

    if (park->count == park->most)
        return 0;
    park->count++;
    park->next++;
    for (; at > 0 && is_before(&one, &park->at[(at - 1) / 2]); at = (at - 1) / 2)
        park->at[at] = park->at[(at - 1) / 2];
    park->at[at] = one;
    return 1;
}

int by_park_take(struct by_park *park, uint64_t now_ns, struct by_parked *out)
{
    struct by_parked last;
    uint32_t at = 0;

    if (by_park_due(park) > now_ns || park->count == 0)
        return 0;
    *out = park->at[0];
    last = park->at[--park->count];
    while (2 * at + 1 < park->count) {
        uint32_t below = 2 * at + 1;

        if (below + 1 < park->count && is_before(&park->at[below + 1], &park->at[below]))
            below++;
        if (!is_before(&park->at[below], &last))
            break;
        park->at[at] = park->at[below];
        at = below;
    }
    park->at[at] = last;
    return 1;
}
