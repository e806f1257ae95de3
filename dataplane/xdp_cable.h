/*
 * A veth pair in a network namespace of its own, which nobody else sees, and which goes away with
 * the last descriptor that was opened in it, however the process ends. Main thread, while it
 * starts.
 */
#ifndef BY_DATAPLANE_XDP_CABLE_H
#define BY_DATAPLANE_XDP_CABLE_H

#include <stdint.h>

/* The two ends. */
#define BY_XDP_CABLE_NEAR "near"
#define BY_XDP_CABLE_FAR  "far"

/*
 * Takes the calling thread into a new namespace with the pair, both ends up. `*outside` is the way
 * back. 0, or a negative errno; then the thread is where it was.
 */
int by_xdp_cable_enter(int *outside, uint32_t mtu);
/* Back. 0, or a negative errno: the thread is in the wrong namespace. */
int by_xdp_cable_leave(int outside);

#endif
