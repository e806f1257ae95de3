/*
 * The switch: ports, buffers, the engine, and the loop between them, like dataplane/ on Linux. It
 * makes no protocol decisions. One processor, no device interrupts taken: everything here runs in
 * the order of the loop.
 */
#ifndef BY_BAREMETAL_SWITCH_H
#define BY_BAREMETAL_SWITCH_H

#include "firmware/baremetal/console.h"
#include "firmware/baremetal/disturb.h"
#include "firmware/baremetal/net.h"
#include "firmware/baremetal/store.h"
#include "offload/base/park.h"

/* Packets of one step (count): the number that a round collects before the engine's step, and the
 * room beyond it (with fault injection one received frame yields at most three). */
#define BY_BATCH_MAX  64u
#define BY_BURST_MAX  32u
#define BY_BATCH_ROOM (BY_BATCH_MAX + 3u * BY_BURST_MAX)
/* Maximum actions of one step (count). */
#define BY_TX_MAX (4u * BY_CHILDREN_MAX + 2u)
/* Maximum frames that wait for their jobs' shares (count); further ones are lost. */
#define BY_PARK_MAX 64u

/* X(name, "help"): counts since start; the names are those of banyan-switchd. */
#define BY_SWITCH_COUNTER_LIST(X)                                                                            \
    X(loops, "rounds over all ports")                                                                        \
    X(sleeps, "times that the switch slept because nothing came")                                            \
    X(steps, "batches given to the engine")                                                                  \
    X(rx_other, "frames that are not banyan's: passed over")                                                 \
    X(rx_not_ours, "banyan frames for another MAC address or UDP port")                                      \
    X(rx_unaddressed, "frames on a port that the table does not name")                                       \
    X(arp_replies, "ARP requests answered")                                                                  \
    X(fault_dropped, "frames dropped on purpose (setting loss)")                                             \
    X(fault_duplicated, "frames doubled on purpose (setting dup)")                                           \
    X(fault_held, "frames held back on purpose (setting reorder)")                                           \
    X(tx_shared, "packets sent as headers chained to a shared payload")                                      \
    X(tx_copied, "packets sent as a copy, since the payload is not the engine's")                            \
    X(tx_relayed, "packets relayed in the buffer that they came in")                                         \
    X(tx_no_memory, "packets dropped: the port took no more, or there was no buffer")                        \
    X(tx_no_port, "packets dropped: the port does not exist or has no address")

struct by_switch_counters {
#define X(name, help) uint64_t name;
    BY_SWITCH_COUNTER_LIST(X)
#undef X
};

struct by_metal_switch {
    struct by_engine *engine;
    struct by_metal_net **net;
    uint32_t port_count;
    struct by_pool pool;
    struct by_agent *agent;
    struct by_console *console;  /* NULL: no control channel */
    struct by_metal_store store; /* for committed tables, when has_store */
    bool has_store;
    uint64_t now_ns;
    uint64_t provoke_ns; /* time of a deliberate fault (setting fault-at), 0 = never */
    char provoked[16];   /* its kind (setting fault) */
    bool is_timeless;    /* the engine gets no clock, so that a trace is repeatable (setting clock) */
    uint32_t first_port; /* of the next round, so that no port is always first */
    struct by_disturb disturb;
    struct by_park park;
    struct by_parked parked[BY_PARK_MAX];
    struct by_switch_counters counters;
    uint32_t batch_count;
    struct by_rx rx[BY_BATCH_ROOM];
    uint16_t buffer[BY_BATCH_ROOM]; /* buffers of rx; BY_BUFFER_NONE once a relay uses one */
    struct by_tx tx[BY_TX_MAX];
};

/* loop.c: moves packets; never returns. */
_Noreturn void by_switch_run(struct by_metal_switch *self);
/* loop.c: commits the engine's staged table and reads the ports' addresses from it, like
 * by_engine_commit. */
int by_switch_commit(struct by_metal_switch *self);
/* send.c: turns the actions of a step into frames on ports; `rx_first` is the index of the step's
 * first packet in the batch. */
void by_switch_send(struct by_metal_switch *self, const struct by_tx *tx, uint32_t tx_count,
                    uint32_t rx_first);
/* send.c: answers an ARP request for the port's own address. Returns true when the frame was ARP,
 * answered or not. */
bool by_switch_arp(struct by_metal_switch *self, struct by_metal_net *net, uint16_t buffer);

/* node.c: the switch's interface for its agent; `node` is a struct by_metal_switch. */
extern const struct by_agent_ops by_switch_ops;

#endif
