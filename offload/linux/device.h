/*
 * Facts of a network interface that the kernel and its driver report: state, MAC address, MTU,
 * speed, queues, driver, NUMA node, offloads. `banyan doctor`, `banyan discover` and banyan-switchd
 * read them. Any thread.
 */
#ifndef BY_LINUX_DEVICE_H
#define BY_LINUX_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

/* Texts are "" and numbers 0 where neither kernel nor driver reports a value. */
struct by_device {
    bool exists, is_up, has_carrier;
    bool is_ethernet; /* else loopback, a tunnel, ... */
    uint8_t mac[6];
    uint32_t mtu;            /* bytes of an IP packet */
    uint32_t speed_mbps;     /* of the link; also of virtual interfaces, whose drivers report one */
    uint32_t queues;         /* receive queues */
    uint32_t ring, ring_max; /* receive descriptors: current and maximum */
    uint32_t numa;           /* 1 + the number of the NUMA node of its slot */
    char driver[32];
    char bus[32];       /* the device's address, such as "0000:41:00.0"; "" for virtual interfaces */
    char features[128]; /* offloads that are on, separated by blanks */
};

/* Reads the facts of the interface `name` in the caller's network namespace. */
void by_device_read(const char *name, struct by_device *device);
/* Reads the MAC address alone; false if there is no such interface. */
bool by_device_mac(const char *name, uint8_t mac[6]);
/* Returns 1 + the number of the NUMA node of a PCI address; 0 if unknown. */
uint32_t by_device_numa(const char *bus);
/* Writes the addresses of the interface with their prefix lengths, separated by blanks, as many as
 * fit: IPv4, then IPv6 except link-local ones. */
void by_device_addresses(const char *name, char *text, uint32_t room);

#endif
