/*
 * Which DPDK device is at each port of a host: reads BANYAN_DPDK_PORTS, and writes messages of the
 * dataplane, which name options of banyan-switchd, with the settings of a host. Pure; any thread.
 */
#ifndef BY_HOST_DPDK_DEVICE_H
#define BY_HOST_DPDK_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "dataplane/port.h"
#include "offload/table/image.h"

/* Bytes of a device's text with its terminating zero: a kernel interface, a PCI address with its
 * domain, or DPDK's name and arguments of a virtual device. */
#define BY_DPDK_DEVICE_BYTES 256u

struct by_dpdk_device {
    char text[BY_DPDK_DEVICE_BYTES];
    uint8_t kind; /* enum by_port_kind: BY_PORT_IFACE, BY_PORT_PCI or BY_PORT_VDEV */
};

/*
 * Assigns a device to each of `count` ports from `list`: devices separated by semicolons, in the
 * order of the ports, or each as PORT=DEVICE. A port that the list does not name is the interface
 * of its own name. 0, or BY_EINVAL with the reason in `why`.
 */
int by_dpdk_devices_read(const char *list, const struct by_image_port *ports, uint32_t count,
                         struct by_dpdk_device *devices, char *why, size_t why_bytes);

/* Copies `line` and replaces each option of banyan-switchd by the setting of a host. */
void by_dpdk_words(const char *line, char *text, size_t bytes);

#endif
