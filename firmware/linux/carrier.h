/*
 * The carriers of the switch's ports. Interfaces of the kernel report a change by netlink
 * (rtnetlink(7)); other ports are polled every 10 ms. Nothing here blocks. One thread: the shell's.
 */
#ifndef BY_FIRMWARE_LINUX_CARRIER_H
#define BY_FIRMWARE_LINUX_CARRIER_H

#include <stdbool.h>
#include <stdint.h>

struct by_carrier;

struct by_carrier_config {
    unsigned port_count;
    /* Whether a port is an interface of the kernel, and whether it has no carrier now. */
    bool (*is_kernel)(void *context, unsigned port);
    bool (*is_down)(void *context, unsigned port);
    void *context; /* must outlive the carriers */
};

/* Reads the carriers. Returns NULL if there is no memory. If no netlink socket can be opened, it
 * reports this, and all ports are polled every 10 ms. */
struct by_carrier *by_carrier_open(const struct by_carrier_config *config);
/* Returns a descriptor that is readable after a change of an interface, or -1. */
int by_carrier_fd(const struct by_carrier *carrier);
/* Whether a port has lost its carrier, or has it again, since the last call. */
bool by_carrier_changed(struct by_carrier *carrier, uint64_t now_ns);
void by_carrier_close(struct by_carrier *carrier);

#endif
