/*
 * The switch's end of the key mode (firmware/secure/psk.h): a channel that is guarded takes
 * requests of sealed frames alone. What is refused is counted by reason; it costs its session, is
 * answered in plain words, and a line with many of them is not read for a while, so that tags
 * cannot be guessed at its speed. Agent's thread.
 */
#ifndef BY_FIRMWARE_AGENT_GUARD_H
#define BY_FIRMWARE_AGENT_GUARD_H

#include "firmware/secure/psk.h"
#include "offload/base/rate.h"

/* Refusals on a line: a second in the long run, and at once (count). */
#define BY_GUARD_REFUSALS_PER_S 20u
#define BY_GUARD_REFUSALS_BURST 40u

/* X(name, "help"): counts since start. */
#define BY_GUARD_COUNTER_LIST(X)                                                                             \
    X(sessions, "sessions that were asked for; who asks has not shown yet that he has the key")              \
    X(plain, "refused: a request without the key mode")                                                      \
    X(cut, "refused: a frame of the key mode of an impossible length or kind")                               \
    X(closed, "refused: a sealed request without a session")                                                 \
    X(forged, "refused: a tag that the key does not make")                                                   \
    X(stale, "refused: a request that was played again, or is out of order")

struct by_guard_counters {
#define X(name, help) uint64_t name;
    BY_GUARD_COUNTER_LIST(X)
#undef X
};

/* Of one line: its clients come and go, this stays. */
struct by_guard {
    struct by_siphash_key key;
    uint64_t boot_nonce; /* another one in each life of the switch: nonces of sessions begin with it */
    uint64_t next;       /* and go on with this: the line, and how many it has had */
    struct by_rate refusals;
    struct by_guard_counters counters;
};

/* `line`: another one for each line of the switch. */
void by_guard_open(struct by_guard *guard, const struct by_siphash_key *key, uint64_t boot_nonce,
                   uint16_t line);

#endif
