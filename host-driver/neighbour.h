/*
 * What the kernel has on a port's interface: its own MAC address, its VLAN, and the MAC addresses
 * of neighbours from the kernel's table, for transports that build frames themselves.
 * An address that the kernel does not have is requested from it (ARP), without waiting. Thread: the
 * communicator's.
 */
#ifndef BY_HOST_NEIGHBOUR_H
#define BY_HOST_NEIGHBOUR_H

#include <stdint.h>

/* Neighbours of a host whose addresses are learned (count): further ones cannot be sent to. */
#define BY_HOST_NEIGHBOURS_MAX 256u
/* Interval of queries for an address that is unknown, and for one that is known (ns). */
#define BY_HOST_NEIGHBOUR_SOON_NS  UINT64_C(10000000)
#define BY_HOST_NEIGHBOUR_AGAIN_NS UINT64_C(5000000000)

struct by_host_neighbours;

/* Opens the kernel's table. 0, or an error with its text. */
int by_host_neighbours_open(struct by_host_neighbours **neighbours);
/* Accepts NULL. */
void by_host_neighbours_close(struct by_host_neighbours *neighbours);
/* Returns the MAC address of `ip` (host order) behind the interface with this index, or NULL: it is
 * not known yet, and has been requested. Valid until the next call. */
const uint8_t *by_host_neighbour(struct by_host_neighbours *neighbours, uint32_t interface, uint32_t ip);
/* Checks that the kernel tags the frames of a port's interface as the table states. 0, or an error
 * with its text. */
int by_host_vlan_check(const char *interface, uint16_t vlan);
/* Reads the MAC address of an interface. 0, or an error with its text. */
int by_host_mac(const char *interface, uint8_t mac[6]);

#endif
