/*
 * A kernel interface that becomes a port: its existence and permissions, its MTU, and the virtual
 * device and arguments that drive it. Start-up only.
 */
#ifndef BY_DATAPLANE_INTERFACE_H
#define BY_DATAPLANE_INTERFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(NAME, "name"): drivers of a kernel interface. AUTO selects AF_XDP or AF_PACKET, which are
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

/* Returns the driver with this name. BY_DRIVER_NONE if there is none; reported as a value of
 * `source` ("--driver"). */
unsigned by_driver_named(const char *source, const char *text);

/* Checks that the interface exists and this process may open raw sockets. 0, BY_ENOENT (the text
 * lists the existing interfaces) or BY_EPERM, reported. */
int by_interface_check(const char *name);
/* Reads the MTU and brings the interface up. 0, BY_EPERM or BY_EIO, reported. */
int by_interface_ready(const char *name, uint16_t *mtu);
/* Returns the VLAN whose tags the kernel adds and removes; 0: none. */
unsigned by_interface_vlan(const char *name);
/* Reads the MAC address; zero if there is no such interface. */
void by_interface_mac(const char *name, uint8_t mac[6]);
/* Whether the interface is missing, not up, or without carrier. Three short system calls; may be
 * called at any time. */
bool by_interface_is_down(const char *name);
/* Returns the number of receive queues in use; 1 if the driver does not report it. */
unsigned by_interface_queues(const char *name);
/* Whether frames of this MTU fit a page, as AF_XDP requires. If not, that is reported. */
bool by_interface_fits(const char *name, uint16_t mtu);
/* Whether the interface is a virtual link that carries single frames, for which the kernel cuts GSO
 * batches. Rings are the fastest there. */
bool by_interface_single_frames(const char *name);
/* Selects the driver for BY_DRIVER_AUTO on this interface. */
unsigned by_interface_driver(const char *name, uint16_t mtu);
/* Writes the virtual device's name and arguments. 0, or BY_ELIMIT if the MTU does not fit the
 * driver, reported. */
int by_interface_device(const char *name, unsigned index, unsigned driver, uint16_t mtu, char device[64],
                        char arguments[256]);
/* Returns the size of a receive buffer that the driver requires, in bytes. */
uint32_t by_interface_buffer_bytes(unsigned driver, uint16_t mtu);

#endif
