/*
 * A rate limit for log lines about unauthenticated connections, because every program that can
 * reach a port can cause one. The first few lines are printed at once, then one per second, which
 * includes the number of suppressed ones; a last line reports the rest when no more connections
 * arrive. Neighbours: firmware/linux/server.c, control/service/daemon/members.c. Pure: time is an
 * argument, the caller prints the lines; each object belongs to one thread.
 */
#ifndef BY_SECURE_STRANGERS_H
#define BY_SECURE_STRANGERS_H

#include <stdbool.h>
#include <stdint.h>

#include "offload/base/rate.h"

/* Lines: per second in the long run, and in a burst (count). */
#define BY_STRANGERS_PER_S 1u
#define BY_STRANGERS_BURST 10u
/* Suppressed connections are reported after no connection arrived for this time (ns). */
#define BY_STRANGERS_REST_NS UINT64_C(2000000000)
/* Size of ", and 18446744073709551615 more in the last 18446744073 s" with its terminating zero
 * (bytes). */
#define BY_STRANGERS_MORE_MAX 64u

struct by_strangers {
    struct by_rate rate;
    uint64_t more;              /* suppressed since the last line (count) */
    uint64_t since_ns, last_ns; /* times of the first and the last of them */
};

void by_strangers_start(struct by_strangers *strangers);
/* Counts one connection at `now_ns` (monotonic). Returns true if it is to be reported, with `more`
 * in its line: "", or ", and N more in the last T s". Returns false if it is only counted. */
bool by_strangers_come(struct by_strangers *strangers, uint64_t now_ns, char more[BY_STRANGERS_MORE_MAX]);
/* Returns true when the suppressed ones are to be reported now, because no more connections arrive:
 * `more` as above. Cheap while there are none. */
bool by_strangers_rest(struct by_strangers *strangers, uint64_t now_ns, char more[BY_STRANGERS_MORE_MAX]);

#endif
