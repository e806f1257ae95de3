/*
 * The kernel's half of a switch whose ports have the driver xdp: programs
 * (offload/xdp/switch.bpf.c) that relay, and replicate what the switch sends to several ports.
 * Filled from the table image at each commit. It decides nothing: what it cannot or may not take
 * comes to the switch like on any other port, and what it is not given to replicate leaves by the
 * ports. All of it is bound to descriptors of this process, so that nothing stays behind however it
 * ends. Loop's thread.
 */
#ifndef BY_DATAPLANE_XDP_H
#define BY_DATAPLANE_XDP_H

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/gso.h"
#include "offload/wire/packet.h"
#include "offload/xdp/switch.h"

struct by_xdp;

struct by_xdp_config {
    const char *name;     /* of the switch */
    uint32_t entry_count; /* of a table at most */
    uint32_t relay_count;
    bool relays; /* take relays; else the switch does, so that injected faults meet them */
};

/* Loads the programs. 0; or BY_EPERM, BY_EIO or BY_EUNSUPPORTED, reported. */
int by_xdp_open(struct by_xdp **xdp, const struct by_xdp_config *config);
/* Puts the program on the interface of port `port`, whose frames then come to `socket`, its AF_XDP
 * socket. 0; BY_EBUSY (another program is there), BY_EUNSUPPORTED (no native XDP), BY_EIO,
 * reported. */
int by_xdp_add(struct by_xdp *xdp, uint32_t port, const char *interface, int socket);
/* Detaches all and frees. NULL is allowed. */
void by_xdp_close(struct by_xdp *xdp);

/* The table from now on. `image` stays valid until the next one. */
void by_xdp_load(struct by_xdp *xdp, const uint8_t *image);
/* Asks which ports can take frames from the kernel, now and again; to be called often. */
void by_xdp_refresh(struct by_xdp *xdp, uint64_t now_ns);
/*
 * The group of the ports of `count` results, which differ in their receivers alone; -1 when they
 * are not all for ports that the kernel can serve. A frame whose first four bytes are that number
 * (in this machine's order), with IP addresses 0.0.0.0 and UDP port 0, given to by_xdp_gso, leaves
 * by each of these ports with the addresses of the child there.
 */
int32_t by_xdp_group(struct by_xdp *xdp, const struct by_tx *tx, uint32_t count);
struct by_gso *by_xdp_gso(struct by_xdp *xdp);

/* Counts since the start. */
void by_xdp_read(const struct by_xdp *xdp, uint64_t counts[BY_XDP_COUNTS]);
void by_xdp_read_port(const struct by_xdp *xdp, uint32_t port, struct by_xdp_port_counts *counts);

#endif
