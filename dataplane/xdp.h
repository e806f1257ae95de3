/*
 * The part of a switch in the kernel, for ports with the driver xdp: programs
 * (offload/xdp/switch.bpf.c) that relay packets, and replicate packets that the switch sends to
 * several ports. Each commit fills them from the table image. They take no decisions: packets that
 * they cannot or may not process reach the switch as on any other port, and packets that they are
 * not asked to replicate leave through the ports. Everything is bound to descriptors of this
 * process, so nothing remains after it ends, however it ends. Loop's thread.
 */
#ifndef BY_DATAPLANE_XDP_H
#define BY_DATAPLANE_XDP_H

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/gso.h"
#include "offload/shell/batch.h"
#include "offload/wire/packet.h"
#include "offload/xdp/switch.h"

struct by_xdp;

struct by_xdp_config {
    const char *name;     /* of the switch */
    uint32_t entry_count; /* maximum in a table */
    uint32_t relay_count;
    /* relay in the kernel; else in the switch, so that injected faults affect relayed packets */
    bool relays;
};

/* Loads the programs. 0; or BY_EPERM, BY_EIO or BY_EUNSUPPORTED, reported. */
int by_xdp_open(struct by_xdp **xdp, const struct by_xdp_config *config);
/* Attaches the program to the interface of port `port`; its frames then reach `socket`, its AF_XDP
 * socket. 0; BY_EBUSY (another program is attached), BY_EUNSUPPORTED (no native XDP) or BY_EIO,
 * reported. */
int by_xdp_add(struct by_xdp *xdp, uint32_t port, const char *interface, int socket);
/* Detaches and frees everything. Accepts NULL. */
void by_xdp_close(struct by_xdp *xdp);

/* Installs a table, with the MAC addresses of the batch's `ports`. `image` and `ports` must stay
 * valid until the next call. */
void by_xdp_load(struct by_xdp *xdp, const uint8_t *image, const struct by_batch_port *ports);
/* Queries from time to time which ports accept frames from the kernel; call it often. */
void by_xdp_refresh(struct by_xdp *xdp, uint64_t now_ns);
/*
 * Returns the group of the ports of `count` results, which differ only in their receivers; -1 if
 * the kernel cannot serve all of these ports. A frame whose first four bytes are that number (in
 * this machine's byte order), with IP addresses 0.0.0.0 and UDP port 0, sent through by_xdp_gso,
 * leaves through each of these ports with the addresses of the child there.
 */
int32_t by_xdp_group(struct by_xdp *xdp, const struct by_tx *tx, uint32_t count);
struct by_gso *by_xdp_gso(struct by_xdp *xdp);

/* Read the counters since the start. */
void by_xdp_read(const struct by_xdp *xdp, uint64_t counts[BY_XDP_COUNTS]);
void by_xdp_read_port(const struct by_xdp *xdp, uint32_t port, struct by_xdp_port_counts *counts);

#endif
