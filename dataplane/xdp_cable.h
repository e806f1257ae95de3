/*
 * A veth pair in a private network namespace, which disappears with the last descriptor that was
 * opened in it, however the process ends. Main thread, at start-up.
 */
#ifndef BY_DATAPLANE_XDP_CABLE_H
#define BY_DATAPLANE_XDP_CABLE_H

#include <stdint.h>

/* The two ends. */
#define BY_XDP_CABLE_NEAR "near"
#define BY_XDP_CABLE_FAR  "far"

/*
 * Moves the calling thread into a new namespace with the pair, both ends up. `*outside` refers to
 * the old namespace. 0, or a negative errno; then the thread is still in the old one.
 */
int by_xdp_cable_enter(int *outside, uint32_t mtu);
/* Returns to the old namespace. 0, or a negative errno: the thread is in the wrong namespace. */
int by_xdp_cable_leave(int outside);

#endif
