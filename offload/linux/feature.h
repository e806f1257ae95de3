/*
 * Reads and sets a feature of an interface by its name, such as "tx-udp-segmentation" (as `ethtool
 * -k` lists them): offloads that have no command of their own. Linux only; any thread.
 */
#ifndef BY_LINUX_FEATURE_H
#define BY_LINUX_FEATURE_H

#include <stdbool.h>

/* Segmentation of UDP: on an interface with this feature a GSO batch leaves the kernel in one
 * piece. */
#define BY_FEATURE_UDP_SEGMENTS "tx-udp-segmentation"

/* Returns 1 for on, 0 for off, -1 when unknown. `fd` is any socket in the interface's network
 * namespace. */
int by_feature_get(int fd, const char *interface, const char *name);
/* Returns 0, or -1. */
int by_feature_set(int fd, const char *interface, const char *name, bool on);
/* Returns the VLAN of an interface whose frames the kernel tags (`ip link add ... type vlan`); 0
 * for other interfaces. */
unsigned by_feature_vlan(int fd, const char *interface);
/* Returns whether the interface reports no hardware: veth, bridges, tap devices. */
bool by_feature_virtual(int fd, const char *interface);

#endif
