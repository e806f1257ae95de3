/*
 * The loop: receives frames, steps the engine, sends frames, and sleeps when there is nothing to
 * do. One round polls every port once and collects banyan's packets into one batch, so that a step
 * sees up to 64 packets; then the engine decides, and the output of all ports is flushed. The
 * control channel and requests of other threads are served between rounds, so between two packets.
 * Loop's thread.
 */
#include <string.h>
#include <time.h>

#include "dataplane/state.h"
#include "offload/wire/frame.h"

/* Packets per engine call (count). */
#define STEP_PACKETS 16u
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

static int mac_equal(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, BY_MAC_BYTES) == 0;
}

/* Whether `ip` is the address of one of the own ports. */
static int is_own_ip(const struct by_shell *shell, uint32_t ip)
{
    for (unsigned i = 0; i < shell->port_count; i++)
        if (shell->ports[i].addressed && shell->ports[i].carrier.src_ip == ip)
            return 1;
    return 0;
}

/*
 * Adds a frame to the batch if it is a banyan packet for this port; else counts and frees it.
 * Packets to an own address must have the switch's UDP port. Packets to other addresses are relayed
 * by the engine, and carry the port of their receiver. `held`: the frame has waited for its job's
 * share.
 */
static void take(struct by_shell *shell, struct rte_mbuf *mbuf, uint16_t index, bool held)
{
    struct by_port *port = &shell->ports[index];
    struct by_rx *rx = &shell->rx[shell->batch_count];
    struct by_frame frame;

    if (by_frame_parse(rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len, &frame) != 0) {
        if (!by_shell_arp(shell, port, mbuf))
            shell->counters.rx_other++;
        rte_pktmbuf_free(mbuf);
        return;
    }
    if (!port->addressed || !mac_equal(frame.dst_mac, port->carrier.src_mac) ||
        (frame.dst_port != BY_UDP_PORT && is_own_ip(shell, frame.dst_ip))) {
        if (port->addressed)
            shell->counters.rx_not_ours++;
        else
            shell->counters.rx_unaddressed++;
        rte_pktmbuf_free(mbuf);
        return;
    }
    *rx = (struct by_rx){.data = frame.data,
                         .bytes = frame.bytes,
                         .port = index,
                         .src_ip = frame.src_ip,
                         .dst_ip = frame.dst_ip,
                         .ecn = frame.ecn,
                         .held = held};
    shell->frames[shell->batch_count++] = mbuf;
}

/* Like take, after --loss, --dup and --reorder. */
static void take_faulty(struct by_shell *shell, struct rte_mbuf *mbuf, uint16_t index)
{
    struct by_held out[3];
    unsigned verdict;
    unsigned count = by_hold_pass(&shell->hold, shell->now_ns, mbuf, index, out, &verdict);

    shell->counters.fault_dropped += verdict == BY_FAULT_DROP;
    shell->counters.fault_duplicated += verdict == BY_FAULT_DUPLICATE;
    shell->counters.fault_held += verdict == BY_FAULT_HOLD;
    for (unsigned i = 0; i < count; i++)
        take(shell, out[i].frame, out[i].port, false);
}

/*
 * Runs the engine on a few packets at a time: its output is sent and the frames are freed before
 * the next packets, so that copies are made in buffers that are still in the cache. A frame that a
 * relay has taken is not freed.
 */
static void step(struct by_shell *shell)
{
    uint32_t done = 0;

    while (done < shell->batch_count) {
        uint32_t count = RTE_MIN(shell->batch_count - done, STEP_PACKETS);
        uint32_t used, tx_count = 0;

        by_engine_allow(shell->engine, shell->park.most - shell->park.count);
        used = by_engine_step(shell->engine, shell->now_ns, shell->rx + done, count, shell->tx, BY_TX_MAX,
                              &tx_count);
        shell->counters.steps++;
        by_shell_transmit(shell, shell->tx, tx_count, done);
        if (used == 0 && tx_count == 0)
            used = count; /* impossible with room for BY_TX_MAX outputs */
        rte_pktmbuf_free_bulk(shell->frames + done, used);
        done += used;
    }
    shell->batch_count = 0;
    for (unsigned i = 0; i < shell->port_count; i++)
        if (shell->ports[i].link)
            by_link_done(shell->ports[i].link);
}

/* Receives one burst from a port whose hosts share memory; its packets need no buffers, unless
 * faults are injected. */
static unsigned receive_shared(struct by_shell *shell, uint16_t index)
{
    struct by_port *port = &shell->ports[index];
    struct by_rx *rx = shell->rx + shell->batch_count;
    uint32_t count = by_link_receive(port->link, index, rx, BY_LINK_BURST);
    struct by_rx some[BY_LINK_BURST];

    port->counters.rx_packets += count;
    for (uint32_t i = 0; i < count; i++)
        port->counters.rx_bytes += BY_FRAME_HEADER_BYTES + rx[i].bytes;
    if (!port->addressed) {
        shell->counters.rx_unaddressed += count;
        by_link_done(port->link);
    } else if (!by_fault_enabled(&shell->hold.fault)) {
        memset(shell->frames + shell->batch_count, 0, count * sizeof shell->frames[0]);
        shell->batch_count += count;
    } else {
        memcpy(some, rx, count * sizeof some[0]);
        for (uint32_t i = 0; i < count; i++) {
            struct rte_mbuf *frame = by_link_frame(&some[i], &port->carrier, shell->frame_pool);

            if (frame)
                take_faulty(shell, frame, index);
        }
        by_link_done(port->link);
    }
    return count;
}

/* Receives one burst from one port into the batch. */
static unsigned receive(struct by_shell *shell, uint16_t index)
{
    struct rte_mbuf *frames[BY_PORT_BURST];
    uint16_t count = by_port_receive(&shell->ports[index], frames, BY_PORT_BURST / 2);

    for (uint16_t i = 0; i < count; i++) {
        rte_prefetch0(rte_pktmbuf_mtod(frames[i], const uint8_t *));
        rte_prefetch0(rte_pktmbuf_mtod_offset(frames[i], const uint8_t *, RTE_CACHE_LINE_SIZE));
    }
    if (by_fault_enabled(&shell->hold.fault)) {
        for (uint16_t i = 0; i < count; i++)
            take_faulty(shell, frames[i], index);
    } else {
        for (uint16_t i = 0; i < count; i++)
            take(shell, frames[i], index, false);
    }
    return count;
}

unsigned by_shell_round(struct by_shell *shell)
{
    struct by_parked parked;
    struct by_held held;
    unsigned received = 0;

    for (unsigned i = 0; i < shell->port_count; i++) {
        uint16_t index = (uint16_t)((shell->first_port + i) % shell->port_count);

        received += shell->ports[index].link ? receive_shared(shell, index) : receive(shell, index);
        if (shell->batch_count >= BY_BATCH_MAX)
            step(shell);
    }
    shell->first_port = (shell->first_port + 1) % shell->port_count;
    while (shell->hold.count && shell->batch_count < BY_BATCH_MAX &&
           by_hold_due(&shell->hold, shell->now_ns, &held))
        take(shell, held.frame, held.port, false);
    while (shell->batch_count < BY_BATCH_MAX && by_park_take(&shell->park, shell->now_ns, &parked))
        take(shell, parked.frame, parked.port, true);
    if (shell->batch_count)
        step(shell);
    if (shell->groups)
        by_groups_flush(shell->groups); /* payloads before packets without payload */
    for (unsigned i = 0; i < shell->port_count; i++)
        if (shell->ports[i].queued || shell->ports[i].gathered || shell->ports[i].link)
            by_port_flush(&shell->ports[i]);
    if (shell->group_port && shell->group_port->queued)
        by_port_flush(shell->group_port);
    shell->counters.loops++;
    return received;
}

/* Serves the control channel and other threads: immediately after a sleep, else every
 * millisecond. */
static void serve(struct by_shell *shell)
{
    if (by_handoff_pending(&shell->handoff))
        by_handoff_serve(&shell->handoff);
    if (shell->now_ns >= shell->control_due_ns) {
        if (shell->control)
            shell->control(shell->control_context);
        for (unsigned i = 0; i < shell->port_count; i++)
            if (shell->ports[i].link)
                by_link_serve(shell->ports[i].link);
        if (shell->xdp)
            by_xdp_refresh(shell->xdp, shell->now_ns);
        shell->control_due_ns = shell->now_ns + CONTROL_EVERY_NS;
    }
}

/* Returns how long the loop may sleep: until a held or parked frame is due, or until a port can try
 * again to send. */
static uint64_t sleep_most(struct by_shell *shell)
{
    uint64_t most = shell->hold.count ? BY_HOLD_NS : SLEEP_NS;

    if (by_park_due(&shell->park) < shell->now_ns + most)
        most = by_park_due(&shell->park) > shell->now_ns ? by_park_due(&shell->park) - shell->now_ns : 0;
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

void by_shell_run(struct by_shell *shell)
{
    bool busy = false;

    while (!atomic_load_explicit(&shell->stopping, memory_order_relaxed)) {
        uint64_t now_ns = clock_ns();

        shell->counters.busy_ns += busy ? now_ns - shell->now_ns : 0;
        shell->now_ns = now_ns;
        beat(shell, BY_PULSE_CONTROL);
        serve(shell);
        beat(shell, BY_PULSE_PORTS);
        busy = by_shell_round(shell) > 0;
        if (busy) {
            by_idle_busy(&shell->idle);
            continue;
        }
        beat(shell, BY_PULSE_REST);
        if (by_idle_wait(&shell->idle, sleep_most(shell))) {
            shell->counters.sleeps++;
            shell->control_due_ns = 0;
        }
    }
}
