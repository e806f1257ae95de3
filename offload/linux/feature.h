/*
 * A feature of an interface by its name, such as "tx-udp-segmentation" (what `ethtool -k` lists):
 * offloads that have no command of their own. Linux alone; any thread.
 */
#ifndef BY_LINUX_FEATURE_H
#define BY_LINUX_FEATURE_H

#include <stdbool.h>

/* Segmentation of UDP: where an interface has it, a train of segments leaves the kernel as one
 * piece. */
#define BY_FEATURE_UDP_SEGMENTS "tx-udp-segmentation"

/* 1 on, 0 off, -1 when the kernel does not say. `fd` is any socket in the interface's network
 * namespace. */
int by_feature_get(int fd, const char *interface, const char *name);
/* 0, or -1. */
int by_feature_set(int fd, const char *interface, const char *name, bool on);
/* Whether no hardware is behind the interface, as far as it says: veth, bridges, tap devices. */
bool by_feature_virtual(int fd, const char *interface);

#endif
