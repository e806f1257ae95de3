/* State shared by the files of the shell: one struct, owned by the loop's thread. Private to this
 * folder. */
#ifndef BY_DATAPLANE_STATE_H
#define BY_DATAPLANE_STATE_H

#include <stdatomic.h>

#include "dataplane/group.h"
#include "dataplane/handoff.h"
#include "dataplane/hold.h"
#include "dataplane/idle.h"
#include "dataplane/shell.h"
#include "offload/base/park.h"

/* Packets of one step (count), which a round collects for the engine. */
#define BY_BATCH_MAX 64u
/* Capacity of the batch: with fault injection one received frame yields at most three. */
#define BY_BATCH_ROOM (BY_BATCH_MAX + 3u * BY_PORT_BURST)
/* Maximum outputs of one step (count). */
#define BY_TX_MAX (4u * BY_CHILDREN_MAX + 2u)
/* Maximum frames that wait for the shares of their jobs (count); further frames are lost. */
#define BY_PARK_MAX 1024u

struct by_shell {
    struct by_engine *engine;
    struct by_port *ports;
    /* the XDP part of the switch, or NULL: no port has the driver xdp */
    struct by_xdp *xdp;
    struct by_port *group_port; /* with xdp: sends the packets that the kernel replicates */
    /* groups of children that the kernel serves through rings, or NULL: fewer than two such
     * ports */
    struct by_dp_groups *groups;
    unsigned port_count;
    bool has_links;  /* some hosts share memory with the switch */
    bool has_device; /* a NIC reads packet buffers and the engine's memory */
    uint32_t payload_max;
    uint64_t now_ns;
    _Atomic int stopping;
    _Atomic uint64_t pulse;          /* written only by the loop */
    struct rte_mempool *frame_pool;  /* received frames and linear copies */
    struct rte_mempool *header_pool; /* headers of chained packets */
    struct rte_mempool *share_pool;  /* segments that point into the engine's memory */
    struct by_shell_counters counters;
    uint64_t counted_ns; /* time of the last read of the kernel's counters */
    struct by_hold hold;
    struct by_park park;
    struct by_parked parked[BY_PARK_MAX];
    struct by_idle idle;
    struct by_handoff handoff;
    int control_fd;
    void (*control)(void *context);
    void *control_context;
    uint64_t control_due_ns;
    void *engine_memory; /* tables and keys, invisible to hosts */
    size_t engine_bytes;
    /* payloads of the banks, which hosts read; NULL: they are in engine_memory */
    void *payload_memory;
    int payload_fd; /* descriptor through which hosts read them, or -1 */
    size_t payload_bytes;
    uint32_t first_port; /* first port of the next round; rotates for fairness */
    uint32_t batch_count;
    struct by_rx rx[BY_BATCH_ROOM];
    struct rte_mbuf *frames[BY_BATCH_ROOM]; /* of rx; NULL after a relay has taken it */
    struct by_tx tx[BY_TX_MAX];
};

/* loop.c: runs one round over all ports: receives, steps, sends. Returns the number of received
 * frames. */
unsigned by_shell_round(struct by_shell *shell);
/* replicate.c: turns the outputs of a step into frames on ports. `rx_first` is the index of the
 * step's first packet in the batch. */
void by_shell_transmit(struct by_shell *shell, const struct by_tx *tx, uint32_t tx_count, uint32_t rx_first);
/* replicate.c: returns the private bytes of a buffer of share_pool. */
size_t by_share_private_bytes(void);
/* arp.c: answers an ARP request for the port's own address. 1 if the frame was an ARP request
 * (answered or not). */
int by_shell_arp(struct by_shell *shell, struct by_port *port, const struct rte_mbuf *frame);
/* telemetry.c: registers /banyan/... once. This shell answers until by_telemetry_register(NULL). */
int by_telemetry_register(struct by_shell *shell);

#endif
