/*
 * Which interfaces take frames that the kernel redirects to them (NETDEV_XDP_ACT_NDO_XMIT, netdev
 * netlink, since Linux 6.3). A network card says so by its driver; a veth does when its peer takes
 * frames one by one, that is, has an XDP program or GRO, which comes and goes with the programs
 * there. What is redirected to others is lost without a word. Loop's thread.
 */
#ifndef BY_DATAPLANE_XDP_READY_H
#define BY_DATAPLANE_XDP_READY_H

#include <stdint.h>

struct by_xdp_ready {
    int fd;          /* netlink, or -1 */
    uint16_t family; /* of netdev */
};

/* 0, or a negative errno: the kernel cannot say. */
int by_xdp_ready_open(struct by_xdp_ready *ready);
void by_xdp_ready_close(struct by_xdp_ready *ready);
/* 1, or 0: it does not, or the kernel does not say. */
int by_xdp_ready_ask(const struct by_xdp_ready *ready, uint32_t interface_index);

#endif
