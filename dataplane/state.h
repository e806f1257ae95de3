/* What the shell's files share: one struct, owned by the loop's thread. Not for other rooms. */
#ifndef BY_DATAPLANE_STATE_H
#define BY_DATAPLANE_STATE_H

#include <stdatomic.h>

#include "dataplane/group.h"
#include "dataplane/handoff.h"
#include "dataplane/hold.h"
#include "dataplane/idle.h"
#include "dataplane/shell.h"
#include "offload/base/park.h"

/* Packets of one step (count): what a round collects before the engine sees it. */
#define BY_BATCH_MAX 64u
/* Room behind it: with fault injection one received frame makes at most three. */
#define BY_BATCH_ROOM (BY_BATCH_MAX + 3u * BY_PORT_BURST)
/* Actions of one step (count). */
#define BY_TX_MAX (4u * BY_CHILDREN_MAX + 2u)
/* Frames that wait for their jobs' shares (count); what does not fit is lost. */
#define BY_PARK_MAX 1024u

struct by_shell {
    struct by_engine *engine;
    struct by_port *ports;
    struct by_xdp *xdp;          /* the kernel's half, or NULL: no port has the driver xdp */
    struct by_port *group_port;  /* with it: what the kernel replicates leaves by this */
    struct by_dp_groups *groups; /* children that get the same by rings, or NULL: fewer than two such ports */
    unsigned port_count;
    bool has_links;  /* hosts share memory with us */
    bool has_device; /* a NIC reads packet buffers and the engine's memory */
    uint32_t payload_max;
    uint64_t now_ns;
    _Atomic int stopping;
    _Atomic uint64_t pulse;          /* written by the loop alone */
    struct rte_mempool *frame_pool;  /* received frames and linear copies */
    struct rte_mempool *header_pool; /* headers of chained packets */
    struct rte_mempool *share_pool;  /* segments that point into the engine's memory */
    struct by_shell_counters counters;
    uint64_t counted_ns; /* when the kernel's counts were read */
    struct by_hold hold;
    struct by_park park;
    struct by_parked parked[BY_PARK_MAX];
    struct by_idle idle;
    struct by_handoff handoff;
    int control_fd;
    void (*control)(void *context);
    void *control_context;
    uint64_t control_due_ns;
    void *engine_memory; /* tables and keys, which no host sees */
    size_t engine_bytes;
    void *payload_memory; /* the banks' payloads, where hosts read them; NULL: they are in engine_memory */
    int payload_fd;       /* by which they do, or -1 */
    size_t payload_bytes;
    uint32_t first_port; /* of the next round: no port is always first */
    uint32_t batch_count;
    struct by_rx rx[BY_BATCH_ROOM];
    struct rte_mbuf *frames[BY_BATCH_ROOM]; /* of rx; NULL once a relay has taken it */
    struct by_tx tx[BY_TX_MAX];
};

/* loop.c: one round over all ports: receives, steps, sends. Returns the frames received. */
unsigned by_shell_round(struct by_shell *shell);
/* replicate.c: turns the actions of a step into frames on ports. `rx_first` is the index of the
 * step's first packet in the batch. */
void by_shell_transmit(struct by_shell *shell, const struct by_tx *tx, uint32_t tx_count, uint32_t rx_first);
/* replicate.c: private bytes of a buffer of share_pool. */
size_t by_share_private_bytes(void);
/* arp.c: answers an ARP request for the port's own address. 1 when the frame was one (answered or
 * not). */
int by_shell_arp(struct by_shell *shell, struct by_port *port, const struct rte_mbuf *frame);
/* telemetry.c: registers /banyan/... once; the shell is the one that answers until it is taken back
 * with NULL. */
int by_telemetry_register(struct by_shell *shell);

#endif
