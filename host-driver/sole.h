/*
 * One program of a job at a time on a host. Tables remain on switches when a program ends, and the
 * next one begins a new session on them; two at once would take each other's chunks. A communicator
 * with a table therefore holds a name that ends with its process, however that ends. Neighbours:
 * comm_open.c. Any thread.
 */
#ifndef BY_HOST_SOLE_H
#define BY_HOST_SOLE_H

#include <stdint.h>

/*
 * Takes the name of `job` at the address `ip` (host order) and UDP port of this host. Returns 0 and
 * a file descriptor to close when the communicator ends; BY_EBUSY: another process has it, which
 * the error's text names; or another error with its text.
 */
int by_sole_begin(uint16_t job, uint32_t ip, uint16_t udp_port, int *fd);

#endif
