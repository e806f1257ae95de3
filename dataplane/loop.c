/*
 * The loop: runs rounds of the batch (offload/shell/batch.h) on DPDK's ports, and sleeps when there
 * is nothing to do. The control channel and requests of other threads are served between rounds, so
 * between two packets. Loop's thread.
 */
#include <arpa/inet.h>
#include <string.h>
#include <time.h>

#include "dataplane/mark.h"
#include "dataplane/say.h"
#include "dataplane/state.h"
#include "offload/shell/batch_inline.h"

/* Interval of control channel checks while packets flow (ns). */
#define CONTROL_EVERY_NS 1000000u
/* Longest sleep while a port holds frames that it could not send (ns). */
#define UNSETTLED_NS 100000u
/* Longest sleep (ns), for events that no descriptor signals. */
#define SLEEP_NS 1000000000u

static uint64_t clock_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Receives one burst from a port whose hosts share memory; its packets need no buffers, unless
 * faults are injected. */
static uint32_t receive_shared(struct by_shell *shell, uint16_t index)
{
    struct by_port *port = &shell->ports[index];
    struct by_batch *batch = &shell->batch;
    struct by_rx *rx = batch->arrived + batch->count;
    uint32_t count = by_link_receive(port->link, index, rx, BY_LINK_BURST);
    struct by_rx some[BY_LINK_BURST];

    port->counters.rx_packets += count;
    for (uint32_t i = 0; i < count; i++)
        port->counters.rx_bytes += BY_FRAME_HEADER_BYTES + port->extra + rx[i].bytes;
    if (!batch->port[index].addressed) {
        batch->counters.rx_unaddressed += count;
        by_link_done(port->link);
    } else if (!by_fault_enabled(&batch->hold.fault)) {
        memset(batch->arrived_frame + batch->count, 0, count * sizeof batch->arrived_frame[0]);
        batch->count += count;
    } else {
        memcpy(some, rx, count * sizeof some[0]);
        for (uint32_t i = 0; i < count; i++) {
            struct rte_mbuf *frame = by_link_frame(&some[i], &port->carrier, shell->frame_pool);

            if (frame)
                by_batch_receive(batch, index, frame, rte_pktmbuf_mtod(frame, uint8_t *), frame->data_len);
        }
        by_link_done(port->link);
    }
    return count;
}

/* Copies a frame that its driver has split over several buffers (jumbo frames, where a NIC supports
 * buffers of few sizes) into one; frees it. NULL, and counted: no buffer, or the frame is longer
 * than the port's MTU. */
static struct rte_mbuf *join(struct by_shell *shell, struct rte_mbuf *frame)
{
    struct rte_mbuf *whole = rte_pktmbuf_alloc(shell->frame_pool);
    uint32_t bytes = rte_pktmbuf_pkt_len(frame);
    char *room = whole && bytes <= UINT16_MAX ? rte_pktmbuf_append(whole, (uint16_t)bytes) : NULL;
    const void *data = room ? rte_pktmbuf_read(frame, 0, bytes, room) : NULL;

    if (data && data != room)
        memcpy(room, data, bytes);
    rte_pktmbuf_free(frame);
    if (data)
        return whole;
    rte_pktmbuf_free(whole);
    shell->batch.counters.rx_other++;
    return NULL;
}

/* Loads what the batch and the engine read first: all headers. */
static void prefetch(const struct rte_mbuf *frame)
{
    rte_prefetch0(rte_pktmbuf_mtod(frame, const uint8_t *));
    rte_prefetch0(rte_pktmbuf_mtod_offset(frame, const uint8_t *, RTE_CACHE_LINE_SIZE));
}

/* Takes a received frame into the batch, or gives it to the worker that has its chunk. */
static __attribute__((noinline)) void receive_one(struct by_shell *shell, uint16_t index,
                                                  struct rte_mbuf *frame, bool crowded)
{
    struct by_port *port = &shell->ports[index];

    if (frame->nb_segs > 1 && !(frame = join(shell, frame)))
        return;
    if (!by_vlan_strip(frame, shell->batch.port[index].vlan)) {
        shell->batch.counters.rx_vlan++;
        rte_pktmbuf_free(frame);
        return;
    }
    if (port->wrap.ipv6)
        by_wrap_fold(&port->wrap, frame);
    if (crowded)
        port->counters.marked += by_mark_frame(frame);
    if (!shell->workers || by_workers_keep(shell, index, frame))
        by_batch_receive(&shell->batch, index, frame, rte_pktmbuf_mtod(frame, const uint8_t *),
                         frame->data_len);
}

/* Receives one burst from one port into the batch. Where nothing changes frames on their way, one
 * with the headers of the port's last one, which has no tag, is taken as it is. */
static uint32_t receive(struct by_shell *shell, uint16_t index)
{
    struct rte_mbuf *frames[BY_BATCH_BURST];
    struct by_port *port = &shell->ports[index];
    struct by_batch *batch = &shell->batch;
    const struct by_batch_last *last = &batch->port[index].last;
    uint16_t count = by_port_receive(port, frames, (uint16_t)batch->burst);
    bool crowded = count == batch->burst && port->ops->is_crowded && port->ops->is_crowded(port);
    bool plain = batch->port[index].vlan == 0 && !port->wrap.ipv6 && !crowded && !shell->workers &&
                 !by_fault_enabled(&batch->hold.fault);

    for (uint16_t i = 0; i < count; i++)
        prefetch(frames[i]);
    for (uint16_t i = 0; i < count; i++) {
        struct rte_mbuf *frame = frames[i];

        if (!plain || frame->nb_segs > 1 || (frame->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) ||
            !by_batch_take_alike(batch, last, frame, rte_pktmbuf_mtod(frame, const uint8_t *),
                                 frame->data_len))
            receive_one(shell, index, frame, crowded);
    }
    if (shell->workers)
        by_workers_pass(shell);
    return count;
}

/* Takes frames that another worker has received into the batch. */
static uint32_t receive_handed(struct by_shell *shell, unsigned from)
{
    struct rte_mbuf *frames[BY_BATCH_BURST];
    uint32_t count, all = 0;

    do {
        count = by_workers_take(shell, from, frames, BY_BATCH_BURST);
        for (uint32_t i = 0; i < count; i++)
            rte_prefetch0(frames[i]);
        for (uint32_t i = 0; i < count; i++)
            prefetch(frames[i]);
        for (uint32_t i = 0; i < count; i++)
            by_batch_receive(&shell->batch, frames[i]->port, frames[i],
                             rte_pktmbuf_mtod(frames[i], const uint8_t *), frames[i]->data_len);
        all += count;
    } while (count == BY_BATCH_BURST && all < BY_BATCH_MAX && shell->batch.count < BY_BATCH_MAX);
    return all;
}

/* The sources behind the ports are the other workers. */
static uint32_t batch_receive(void *context, uint16_t source)
{
    struct by_shell *shell = context;

    if (source >= shell->port_count)
        return receive_handed(shell, source - shell->port_count);
    if (!by_workers_poll(shell, source))
        return 0;
    return shell->ports[source].link ? receive_shared(shell, source) : receive(shell, source);
}

static uint8_t *batch_data(void *context, void *frame, uint32_t *bytes)
{
    (void)context;
    *bytes = rte_pktmbuf_data_len((struct rte_mbuf *)frame);
    return rte_pktmbuf_mtod((struct rte_mbuf *)frame, uint8_t *);
}

static void batch_share(void *context, void *frame)
{
    (void)context;
    rte_mbuf_refcnt_update(frame, 1);
}

/* Returns the frames to their pool together, if they are what received frames nearly always are:
 * one buffer with one owner. */
static void batch_drop(void *context, void **frames, uint32_t count)
{
    void *whole[BY_BATCH_BURST];
    struct rte_mempool *pool = NULL;
    unsigned held = 0;

    (void)context;
    for (uint32_t i = 0; i < count; i++) {
        struct rte_mbuf *frame = frames[i];

        if (!frame)
            continue;
        if (rte_mbuf_refcnt_read(frame) != 1 || frame->next || !RTE_MBUF_DIRECT(frame)) {
            rte_pktmbuf_free(frame);
            continue;
        }
        if (held == BY_BATCH_BURST || (held > 0 && frame->pool != pool)) {
            rte_mempool_put_bulk(pool, whole, held);
            held = 0;
        }
        pool = frame->pool;
        whole[held++] = frame;
    }
    if (held > 0)
        rte_mempool_put_bulk(pool, whole, held);
}

/* A packet from shared memory has no buffer yet. */
static void *batch_make(void *context, const struct by_rx *rx, uint16_t port)
{
    struct by_shell *shell = context;

    return rx->payload ? by_link_frame(rx, &shell->ports[port].carrier, shell->frame_pool) : NULL;
}

static void batch_forward(void *context, uint16_t port, void *frame)
{
    struct by_shell *shell = context;

    by_port_send(&shell->ports[port], frame);
}

static bool batch_reply(void *context, uint16_t port, const uint8_t *frame, uint32_t bytes)
{
    struct by_shell *shell = context;
    struct rte_mbuf *answer = rte_pktmbuf_alloc(shell->frame_pool);
    char *room = answer ? rte_pktmbuf_append(answer, (uint16_t)bytes) : NULL;

    if (!room) {
        rte_pktmbuf_free(answer);
        return false;
    }
    memcpy(room, frame, bytes);
    by_port_send(&shell->ports[port], answer);
    return true;
}

/* Reports a neighbour that does not answer ARP or neighbour discovery, or answers again. */
static void batch_neighbour(void *context, const struct by_shell_neighbour *neighbour)
{
    const struct by_shell *shell = context;
    const struct by_port *port = &shell->ports[neighbour->port];
    const uint8_t *ipv6 = by_ipv6_address(&port->wrap.book, neighbour->ip);
    struct in_addr address = {.s_addr = htonl(neighbour->ip)};
    const char *how = ipv6 ? "neighbour discovery" : "ARP";
    char ip[INET6_ADDRSTRLEN] = "";

    if (ipv6)
        inet_ntop(AF_INET6, ipv6, ip, sizeof ip);
    else
        inet_ntop(AF_INET, &address, ip, sizeof ip);
    if (!neighbour->silent)
        by_say("the neighbour %s at port %s answers %s again", ip, port->name, how);
    else if (neighbour->known)
        by_say("the neighbour %s at port %s does not answer %s any more: packets for it are sent to its last "
               "MAC address; check its cable, address and VLAN",
               ip, port->name, how);
    else
        by_say("the neighbour %s at port %s does not answer %s: packets for it are dropped; check its cable, "
               "address and VLAN",
               ip, port->name, how);
}

/* Hosts may reuse the memory of the packets that they have sent. */
static void batch_done(void *context)
{
    struct by_shell *shell = context;

    for (unsigned i = 0; i < shell->port_count && shell->has_links; i++)
        if (shell->ports[i].link)
            by_link_done(shell->ports[i].link);
}

const struct by_batch_ops by_shell_batch = {
    .receive = batch_receive,
    .data = batch_data,
    .share = batch_share,
    .drop = batch_drop,
    .make = batch_make,
    .forward = batch_forward,
    .reply = batch_reply,
    .send = by_shell_send,
    .neighbour = batch_neighbour,
    .done = batch_done,
};

unsigned by_shell_round(struct by_shell *shell)
{
    unsigned received;

    if (shell->workers)
        by_workers_begin(shell);
    received = by_batch_round(&shell->batch);
    if (shell->workers)
        received += by_workers_send(shell);
    if (shell->moves != shell->batch.moves)
        by_shell_readdress(shell);
    if (shell->groups)
        by_groups_flush(shell->groups); /* payloads before packets without payload */
    for (unsigned i = 0; i < shell->port_count; i++)
        if (shell->ports[i].queued || shell->ports[i].gathered || shell->ports[i].link)
            by_port_flush(&shell->ports[i]);
    if (shell->group_port && shell->group_port->queued)
        by_port_flush(shell->group_port);
    if (shell->workers)
        by_workers_wake(shell);
    return received;
}

/* Serves the control channel and other threads: immediately after a sleep, else every
 * millisecond. */
static void serve(struct by_shell *shell)
{
    if (by_handoff_pending(&shell->handoff))
        by_handoff_serve(&shell->handoff);
    if (shell->batch.now_ns >= shell->control_due_ns) {
        if (shell->control)
            shell->control(shell->control_context);
        for (unsigned i = 0; i < shell->port_count; i++)
            if (shell->ports[i].link)
                by_link_serve(shell->ports[i].link);
        if (shell->xdp)
            by_xdp_refresh(shell->xdp, shell->batch.now_ns);
        shell->control_due_ns = shell->batch.now_ns + CONTROL_EVERY_NS;
    }
    if (shell->workers && shell->worker == 0)
        by_workers_release(shell->workers);
}

/* Returns how long the loop may sleep: until a held or parked frame is due, or until a port can try
 * again to send. */
static uint64_t sleep_most(struct by_shell *shell)
{
    uint64_t most = by_batch_idle_ns(&shell->batch, SLEEP_NS);

    if (!by_idle_will_sleep(&shell->idle))
        return most;
    for (unsigned i = 0; i < shell->port_count; i++)
        if (!by_port_settle(&shell->ports[i]) && most > UNSETTLED_NS)
            most = UNSETTLED_NS;
    return most;
}

/* Publishes that the loop has progressed, and its current place. */
static void beat(struct by_shell *shell, enum by_pulse place)
{
    uint64_t pulse = atomic_load_explicit(&shell->pulse, memory_order_relaxed);

    atomic_store_explicit(&shell->pulse, (pulse & ~(uint64_t)BY_PULSE_MASK) + BY_PULSE_MASK + 1 + place,
                          memory_order_relaxed);
}

/* Sleeps if there has been nothing to do for some rounds; returns true if it slept. */
static bool rest(struct by_shell *shell)
{
    bool sleeps = by_idle_will_sleep(&shell->idle), slept;
    uint64_t most = sleep_most(shell);

    if (!shell->workers || !sleeps)
        return by_idle_wait(&shell->idle, most);
    if (!by_workers_rest(shell))
        return false;
    slept = by_idle_wait(&shell->idle, most);
    by_workers_rise(shell);
    by_handoff_clear(&shell->handoff);
    return slept;
}

static void run_loop(struct by_shell *shell, const _Atomic int *stopping)
{
    bool busy = false;

    while (!atomic_load_explicit(stopping, memory_order_relaxed)) {
        uint64_t now_ns = clock_ns();

        shell->counters.busy_ns += busy ? now_ns - shell->batch.now_ns : 0;
        shell->batch.now_ns = now_ns;
        if (shell->workers && shell->worker > 0)
            by_workers_halt(shell);
        beat(shell, BY_PULSE_CONTROL);
        serve(shell);
        beat(shell, BY_PULSE_PORTS);
        busy = by_shell_round(shell) > 0;
        if (busy) {
            by_idle_busy(&shell->idle);
            continue;
        }
        beat(shell, BY_PULSE_REST);
        if (rest(shell)) {
            shell->batch.counters.sleeps++;
            shell->control_due_ns = 0;
        }
    }
}

void by_shell_run(struct by_shell *shell)
{
    if (shell->workers && by_workers_start(shell->workers, run_loop) != 0)
        atomic_store_explicit(&shell->stopping, 1, memory_order_relaxed);
    run_loop(shell, &shell->stopping);
    if (shell->workers)
        by_workers_join(shell->workers);
}
