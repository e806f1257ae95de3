/* Loss, duplication and reordering at receive; see hold.h. base/fault.h makes the random decisions,
 * so a seed reproduces a run. */
#include "offload/shell/hold.h"

static void remove_at(struct by_hold *hold, uint32_t index, struct by_held *out)
{
    *out = hold->held[index];
    for (uint32_t i = index + 1; i < hold->count; i++)
        hold->held[i - 1] = hold->held[i];
    hold->count--;
}

/* Lets one more frame overtake the held ones; returns one that has been overtaken often enough. */
static uint32_t overtake(struct by_hold *hold, struct by_held *out)
{
    uint32_t ready = hold->count;

    for (uint32_t i = 0; i < hold->count; i++) {
        if (hold->held[i].distance > 0)
            hold->held[i].distance--;
        if (hold->held[i].distance == 0 && ready == hold->count)
            ready = i;
    }
    if (ready == hold->count)
        return 0;
    remove_at(hold, ready, out);
    return 1;
}

uint32_t by_hold_pass(struct by_hold *hold, uint64_t now_ns, void *frame, uint16_t port,
                      struct by_held out[3], enum by_fault_verdict *verdict)
{
    struct by_held one = {.frame = frame, .port = port};
    uint32_t count = 0;

    *verdict = by_fault_draw(&hold->fault);
    if (*verdict == BY_FAULT_DROP)
        return 0;
    if (*verdict == BY_FAULT_HOLD && hold->count < BY_HOLD_MAX) {
        one.distance = (uint16_t)(1 + by_prng_below(&hold->fault.prng, BY_HOLD_DISTANCE));
        one.due_ns = now_ns + BY_HOLD_NS;
        hold->held[hold->count++] = one;
        return 0;
    }
    out[count++] = one;
    if (*verdict == BY_FAULT_DUPLICATE)
        out[count++] = one;
    return count + overtake(hold, &out[count]);
}

uint32_t by_hold_due(struct by_hold *hold, uint64_t now_ns, struct by_held *out)
{
    if (hold->count == 0 || hold->held[0].due_ns > now_ns) /* the first one came first */
        return 0;
    remove_at(hold, 0, out);
    return 1;
}
