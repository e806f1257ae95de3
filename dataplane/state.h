/* State shared by the files of the shell: one struct, owned by the loop's thread. Private to this
 * folder. */
#ifndef BY_DATAPLANE_STATE_H
#define BY_DATAPLANE_STATE_H

#include <stdatomic.h>

#include "dataplane/group.h"
#include "dataplane/handoff.h"
#include "dataplane/idle.h"
#include "dataplane/shell.h"
#include "dataplane/workers.h"
#include "offload/shell/batch.h"

/* Maximum frames that wait for the shares of their jobs (count); further frames are lost. */
#define BY_PARK_MAX 1024u

/* Room before a payload in the engine's memory (bytes), where ports copy from there: for the
 * headers, in whole cache lines. */
#define BY_LEND_ROOM 128u

/* Frames in the engine's memory (replicate.c). */
struct by_lender {
    struct rte_mbuf *buffer[BY_PORT_BURST];           /* they point at the frames of one send call */
    uint16_t first[BY_PORTS_MAX], last[BY_PORTS_MAX]; /* of a port's outputs, during a call */
};

struct by_shell {
    struct by_workers *workers; /* NULL: this shell is the only worker */
    unsigned worker;            /* its number */
    struct by_engine *engine;
    struct by_port *ports;
    /* the XDP part of the switch, or NULL: no port has the driver xdp */
    struct by_xdp *xdp;
    struct by_port *group_port; /* with xdp: sends the packets that the kernel replicates */
    /* groups of children that the kernel serves at ports of the drivers ring and gso, or NULL:
     * fewer than two such ports */
    struct by_dp_groups *groups;
    unsigned port_count;
    bool has_links;  /* some hosts share memory with the switch */
    bool has_device; /* a NIC reads packet buffers and the engine's memory */
    bool lends;      /* some drivers copy results out of the engine's memory */
    bool has_late;   /* some drivers may release packets late: PCI and virtual devices */
    uint32_t payload_max;
    _Atomic int stopping;
    _Atomic uint64_t pulse;          /* written only by the loop */
    struct rte_mempool *frame_pool;  /* received frames and linear copies */
    struct rte_mempool *header_pool; /* headers of chained packets */
    struct rte_mempool *share_pool;  /* segments that point into the engine's memory */
    struct by_shell_counters counters;
    uint32_t moves;      /* of the batch, when the ports got their MAC addresses */
    uint64_t counted_ns; /* time of the last read of the kernel's counters */
    struct by_parked parked[BY_PARK_MAX];
    struct by_lender lender;
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
    struct by_batch batch; /* its frames are struct rte_mbuf */
};

/* loop.c: runs one round over all ports: receives, steps, sends. Returns the number of received
 * frames. */
unsigned by_shell_round(struct by_shell *shell);
/* shell.c: makes the engine and the segments of a shell with ports, and what else its loop needs.
 * by_shell_strip frees the former. */
int by_shell_equip(struct by_shell *shell, const struct by_shell_config *config);
int by_shell_ready(struct by_shell *shell, const struct by_shell_config *config);
void by_shell_strip(struct by_shell *shell);
/* shell_table.c: sets what is built from the addresses of the batch's ports: after a commit, and
 * when a neighbour has got another MAC address. */
void by_shell_readdress(struct by_shell *shell);
/* loop.c: what the batch does with mbufs and ports; the context is the shell. */
extern const struct by_batch_ops by_shell_batch;
/* replicate.c: sends outputs of the engine, for by_shell_batch. */
void by_shell_send(void *context, const struct by_tx *tx, uint32_t count);
/* replicate.c: takes buffers from the pool, to which they do not return. 0 or BY_ENOMEM, not
 * reported. */
int by_lender_open(struct by_lender *lender, struct rte_mempool *pool);
/* replicate.c: returns the private bytes of a buffer of share_pool. */
size_t by_share_private_bytes(void);
/* telemetry.c: registers /banyan/... once. This shell answers until by_telemetry_register(NULL). */
int by_telemetry_register(struct by_shell *shell);

#endif
