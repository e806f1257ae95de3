/*
 * A kernel interface that becomes a port: whether it exists and may be used, its MTU, and which
 * virtual device with which arguments drives it. Start-up only.
 */
#ifndef BY_DATAPLANE_INTERFACE_H
#define BY_DATAPLANE_INTERFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(NAME, "name"): what drives a kernel interface; AUTO chooses AF_XDP or AF_PACKET, which are
 * DPDK's. */
#define BY_DRIVER_LIST(X)                                                                                    \
    X(AUTO, "auto")                                                                                          \
    X(RING, "ring")                                                                                          \
    X(AF_PACKET, "af_packet")                                                                                \
    X(AF_XDP, "af_xdp")                                                                                      \
    X(XDP, "xdp")                                                                                            \
    X(GSO, "gso")

enum by_port_driver {
    BY_DRIVER_NONE = 0,
#define X(name, text) BY_DRIVER_##name,
    BY_DRIVER_LIST(X)
#undef X
};

/* The driver of that name; BY_DRIVER_NONE, reported as of `source` ("--driver"), when there is
 * none. */
unsigned by_driver_named(const char *source, const char *text);

/* The interface exists and we may open raw sockets. 0, BY_ENOENT (those that exist are named) or
 * BY_EPERM, reported. */
int by_interface_check(const char *name);
/* Reads the MTU and brings the interface up. 0, BY_EPERM or BY_EIO, reported. */
int by_interface_ready(const char *name, uint16_t *mtu);
/* The interface is gone, or not up, or has no carrier. Three short system calls, at any time. */
bool by_interface_is_down(const char *name);
/* Receive queues that are in use; 1 where the driver does not say. */
unsigned by_interface_queues(const char *name);
/* Do frames of this MTU fit a page, as AF_XDP wants them? If not, that is reported. */
bool by_interface_fits(const char *name, uint16_t mtu);
/* The driver for BY_DRIVER_AUTO on this interface. */
/* Whether it is a virtual link with single frames, which the kernel cuts before it: there rings are
 * the fastest. */
bool by_interface_single_frames(const char *name);
unsigned by_interface_driver(const char *name, uint16_t mtu);
/* The virtual device's name and arguments. 0, or BY_ELIMIT when the MTU does not fit the driver,
 * reported. */
int by_interface_device(const char *name, unsigned index, unsigned driver, uint16_t mtu, char device[64],
                        char arguments[256]);
/* Bytes of a receive buffer that the driver asks for. */
uint32_t by_interface_buffer_bytes(unsigned driver, uint16_t mtu);

#endif
