/* Loss, duplication and reordering at receive; see disturb.h. */
#include "firmware/baremetal/disturb.h"

static void remove_at(struct by_disturb *disturb, uint32_t index, struct by_disturbed *out)
{
    *out = disturb->held[index];
    for (uint32_t i = index + 1; i < disturb->count; i++)
        disturb->held[i - 1] = disturb->held[i];
    disturb->count--;
}

/* Counts one more frame that overtakes the held ones; passes on the first one that is due. */
static uint32_t overtake(struct by_disturb *disturb, struct by_disturbed *out)
{
    uint32_t ready = disturb->count;

    for (uint32_t i = disturb->count; i-- > 0;) {
        if (disturb->held[i].distance > 0)
            disturb->held[i].distance--;
        if (disturb->held[i].distance == 0)
            ready = i;
    }
    if (ready == disturb->count)
        return 0;
    remove_at(disturb, ready, out);
    return 1;
}

uint32_t by_disturb_pass(struct by_disturb *disturb, struct by_pool *pool, uint64_t now_ns, uint16_t buffer,
                         uint16_t port, struct by_disturbed out[3], unsigned *verdict)
{
    struct by_disturbed one = {.buffer = buffer, .port = port};
    uint32_t count = 0;

    *verdict = by_fault_draw(&disturb->fault);
    if (*verdict == BY_FAULT_DROP) {
        by_pool_drop(pool, buffer);
        return 0;
    }
    if (*verdict == BY_FAULT_HOLD && disturb->count < BY_DISTURB_MAX) {
        one.distance = (uint16_t)(1 + by_prng_below(&disturb->fault.prng, BY_DISTURB_DISTANCE));
        one.due_ns = now_ns + BY_DISTURB_NS;
        disturb->held[disturb->count++] = one;
        return 0;
    }
    out[count++] = one;
    if (*verdict == BY_FAULT_DUPLICATE) {
        pool->buffer[buffer].users++;
        out[count++] = one;
    }
    return count + overtake(disturb, &out[count]);
}

uint32_t by_disturb_due(struct by_disturb *disturb, uint64_t now_ns, struct by_disturbed *out)
{
    for (uint32_t i = 0; i < disturb->count; i++) {
        if (disturb->held[i].due_ns <= now_ns) {
            remove_at(disturb, i, out);
            return 1;
        }
    }
    return 0;
}
