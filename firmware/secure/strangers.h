/*
 * Lines of a log about people that nobody knows: whoever can reach a port makes one, as often as it
 * is let in. The first few are said as they come, then one a second, which says how many more there
 * were; so does a last one when nobody comes any more. Neighbours: firmware/linux/server.c,
 * control/service/daemon/members.c. Pure: time is an argument, the lines are the caller's; one
 * thread for each.
 */
#ifndef BY_SECURE_STRANGERS_H
#define BY_SECURE_STRANGERS_H

#include <stdbool.h>
#include <stdint.h>

#include "offload/base/rate.h"

/* Lines: a second in the long run, and at once (count). */
#define BY_STRANGERS_PER_S 1u
#define BY_STRANGERS_BURST 10u
/* Who was not told of is when nobody has come for so long (ns). */
#define BY_STRANGERS_REST_NS UINT64_C(2000000000)
/* ", and 18446744073709551615 more in the last 18446744073 s", its end included (bytes). */
#define BY_STRANGERS_MORE_MAX 64u

struct by_strangers {
    struct by_rate rate;
    uint64_t more;              /* of whom nothing was said since the last line (count) */
    uint64_t since_ns, last_ns; /* when the first and the last of them came */
};

void by_strangers_start(struct by_strangers *strangers);
/* One more, at `now_ns` (monotonic). True: it is to be said, with `more` in its line: "", or ", and
 * N more in the last T s". False: it is counted. */
bool by_strangers_come(struct by_strangers *strangers, uint64_t now_ns, char more[BY_STRANGERS_MORE_MAX]);
/* True when those who were counted are to be told of now, since nobody comes any more: `more` as
 * above. Cheap while there are none. */
bool by_strangers_rest(struct by_strangers *strangers, uint64_t now_ns, char more[BY_STRANGERS_MORE_MAX]);

#endif
