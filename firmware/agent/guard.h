/*
 * The switch's end of the key mode (firmware/secure/psk.h): a guarded channel accepts only requests
 * in sealed frames. A refused frame is counted by reason, ends its session, and is answered in a
 * plain message. A line with many refusals is not read for a while, so that tags cannot be guessed
 * at its speed. Agent's thread.
 */
#ifndef BY_FIRMWARE_AGENT_GUARD_H
#define BY_FIRMWARE_AGENT_GUARD_H

#include "firmware/secure/psk.h"
#include "offload/base/rate.h"

/* Refusals on a line: per second in the long run, and in a burst (count). */
#define BY_GUARD_REFUSALS_PER_S 20u
#define BY_GUARD_REFUSALS_BURST 40u

/* X(name, "help"): counts since start. */
#define BY_GUARD_COUNTER_LIST(X)                                                                             \
    X(sessions, "sessions requested; the client has not proved yet that it has the key")                     \
    X(plain, "refused: a request without the key mode")                                                      \
    X(cut, "refused: a frame of the key mode of an invalid length or kind")                                  \
    X(closed, "refused: a sealed request without a session")                                                 \
    X(forged, "refused: a tag not made with the key")                                                        \
    X(stale, "refused: a request that is repeated or out of order")

struct by_guard_counters {
#define X(name, help) uint64_t name;
    BY_GUARD_COUNTER_LIST(X)
#undef X
};

/* State of one line, which outlives its clients. */
struct by_guard {
    struct by_siphash_key key;
    uint64_t boot_nonce; /* different after each start of the switch: nonces of sessions begin with it */
    uint64_t next;       /* the rest of the nonce: the line, and its number of sessions */
    struct by_rate refusals;
    struct by_guard_counters counters;
};

/* Opens the guard of a line. `line` must be different for each line of the switch. */
void by_guard_open(struct by_guard *guard, const struct by_siphash_key *key, uint64_t boot_nonce,
                   uint16_t line);

#endif
