/* Limits the log lines about unauthenticated connections; see strangers.h. Pure. */
#include "firmware/secure/strangers.h"

#include <inttypes.h>
#include <stdio.h>

#define SECOND_NS UINT64_C(1000000000)

void by_strangers_start(struct by_strangers *strangers)
{
    *strangers = (struct by_strangers){0};
    by_rate_start(&strangers->rate, BY_STRANGERS_PER_S, BY_STRANGERS_BURST);
}

/* Writes the number of suppressed connections and their time span, rounded up to seconds, and
 * resets the number. */
static void count_out(struct by_strangers *strangers, uint64_t now_ns, char more[BY_STRANGERS_MORE_MAX])
{
    uint64_t span_ns = now_ns - strangers->since_ns;

    more[0] = 0;
    if (strangers->more > 0)
        snprintf(more, BY_STRANGERS_MORE_MAX, ", and %" PRIu64 " more in the last %" PRIu64 " s",
                 strangers->more, span_ns > 0 ? 1 + (span_ns - 1) / SECOND_NS : 1);
    strangers->more = 0;
}

bool by_strangers_come(struct by_strangers *strangers, uint64_t now_ns, char more[BY_STRANGERS_MORE_MAX])
{
    if (by_rate_take(&strangers->rate, now_ns)) {
        count_out(strangers, now_ns, more);
        return true;
    }
    if (strangers->more++ == 0)
        strangers->since_ns = now_ns;
    strangers->last_ns = now_ns;
    return false;
}

bool by_strangers_rest(struct by_strangers *strangers, uint64_t now_ns, char more[BY_STRANGERS_MORE_MAX])
{
    if (strangers->more == 0 || now_ns - strangers->last_ns < BY_STRANGERS_REST_NS)
        return false;
    count_out(strangers, now_ns, more);
    return true;
}
