/*
 * The switch: ports, buffers, the engine, and the loop between them, like dataplane/ on Linux. It
 * makes no protocol decisions. One processor, no device interrupts taken: everything here runs in
 * the order of the loop.
 */
#ifndef BY_BAREMETAL_SWITCH_H
#define BY_BAREMETAL_SWITCH_H

#include "firmware/baremetal/console.h"
#include "firmware/baremetal/net.h"
#include "firmware/baremetal/store.h"
#include "offload/shell/batch.h"

/* Maximum frames that wait for their jobs' shares (count); further ones are lost. */
#define BY_PARK_MAX 64u

struct by_metal_switch {
    struct by_engine *engine;
    struct by_metal_net **net;
    uint32_t port_count;
    struct by_pool pool;
    struct by_agent *agent;
    struct by_console *console;  /* NULL: no control channel */
    struct by_metal_store store; /* for committed tables, when has_store */
    bool has_store;
    uint64_t provoke_ns; /* time of a deliberate fault (setting fault-at), 0 = never */
    char provoked[16];   /* its kind (setting fault) */
    struct by_parked parked[BY_PARK_MAX];
    struct by_batch batch; /* its frames are struct by_metal_buffer */
};

/* loop.c: moves packets; never returns. */
_Noreturn void by_switch_run(struct by_metal_switch *self);
/* loop.c: what the batch does with buffers and ports; the context is the switch. */
extern const struct by_batch_ops by_switch_batch;
/* send.c: sends outputs of the engine, for by_switch_batch. */
void by_switch_send(void *context, const struct by_tx *tx, uint32_t count);

/* node.c: the switch's interface for its agent; `node` is a struct by_metal_switch. */
extern const struct by_agent_ops by_switch_ops;

#endif
