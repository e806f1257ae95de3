/*
 * A kernel interface that becomes a port: whether it exists and may be used, its MTU, and which virtual
 * device with which arguments drives it. Start-up only.
 */
#ifndef BY_DATAPLANE_INTERFACE_H
#define BY_DATAPLANE_INTERFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum by_port_driver {
    BY_DRIVER_AUTO = 1,
    BY_DRIVER_AF_PACKET,
    BY_DRIVER_AF_XDP,
    BY_DRIVER_GSO,
    BY_DRIVER_RING
};

/* The interface exists and we may open raw sockets. 0, BY_ENOENT (those that exist are named) or BY_EPERM,
 * reported. */
int by_interface_check(const char *name);
/* Reads the MTU and brings the interface up. 0, BY_EPERM or BY_EIO, reported. */
int by_interface_ready(const char *name, uint16_t *mtu);
/* The interface is gone, or not up, or has no carrier. Three short system calls, at any time. */
bool by_interface_is_down(const char *name);
/* The driver for BY_DRIVER_AUTO on this interface. */
unsigned by_interface_driver(const char *name, uint16_t mtu);
/* The virtual device's name and arguments. 0, or BY_ELIMIT when the MTU does not fit the driver, reported. */
int by_interface_device(const char *name, unsigned index, unsigned driver, uint16_t mtu, char device[64],
                        char arguments[256]);
/* Bytes of a receive buffer that the driver asks for. */
uint32_t by_interface_buffer_bytes(unsigned driver, uint16_t mtu);

#endif
