/*
 * The network interfaces that the plugin offers to NCCL as devices: those of BANYAN_NCCL_INTERFACE,
 * or all that are up and have an address, without the loopback interface. Found once in a process.
 */
#ifndef BY_PLUGIN_NCCL_DEVICE_H
#define BY_PLUGIN_NCCL_DEVICE_H

#include <netinet/in.h>
#include <stdint.h>

#define BY_NCCL_DEVICES_MAX 16

struct by_nccl_device {
    char name[16];
    char pci_path[512]; /* "" for an interface without a device */
    uint64_t guid;
    int speed_mbps;
    struct sockaddr_storage address; /* port 0 */
};

/* Finds the devices, unless an earlier call has; a result of abi.h. */
int by_nccl_devices_find(void);

/* Number of devices, and device `index`, which stays valid; NULL beyond the last. */
int by_nccl_device_count(void);
const struct by_nccl_device *by_nccl_device_at(int index);

#endif
