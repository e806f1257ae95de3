/*
 * Finds the interfaces that accept frames redirected by the kernel (NETDEV_XDP_ACT_NDO_XMIT, netdev
 * netlink, since Linux 6.3). A network card's driver reports it. A veth does when its peer accepts
 * single frames, which means that the peer has an XDP program or GRO; this changes with the
 * programs there. Frames redirected to other interfaces are lost silently. Loop's thread.
 */
#ifndef BY_DATAPLANE_XDP_READY_H
#define BY_DATAPLANE_XDP_READY_H

#include <stdint.h>

struct by_xdp_ready {
    int fd;          /* netlink, or -1 */
    uint16_t family; /* netlink family number of netdev */
};

/* 0, or a negative errno: the kernel does not support the query. */
int by_xdp_ready_open(struct by_xdp_ready *ready);
void by_xdp_ready_close(struct by_xdp_ready *ready);
/* 1 if the interface accepts such frames; 0 if not, or if the kernel does not report it. */
int by_xdp_ready_ask(const struct by_xdp_ready *ready, uint32_t interface_index);

#endif
