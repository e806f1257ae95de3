/*
 * The loop: frames in, steps of the engine, frames out, the control channel, and sleep when there
 * was nothing to do. A round polls every port once and collects the banyan packets into one batch,
 * like dataplane/loop.c. Before it sleeps, the loop enables the interrupt of every ring and polls
 * once more; an interrupt that arrives in between ends the sleep at once.
 */
#include "firmware/baremetal/clock.h"
#include "firmware/baremetal/fault.h"
#include "firmware/baremetal/interrupt.h"
#include "firmware/baremetal/log.h"
#include "firmware/baremetal/processor.h"
#include "firmware/baremetal/switch.h"
#include "firmware/baremetal/watchdog.h"
#include "offload/base/bytes.h"

/* Maximum sleep (ns), for events that no device reports. */
#define SLEEP_NS 1000000000u

static bool is_own_ip(const struct by_metal_switch *self, uint32_t ip)
{
    for (uint32_t i = 0; i < self->port_count; i++)
        if (self->net[i]->addressed && self->net[i]->own_ip == ip)
            return true;
    return false;
}

/*
 * Adds a frame to the batch when it is a banyan packet for this port; else counts and drops it.
 * Packets to this switch's addresses must have banyan's UDP port; the engine relays packets to
 * others.
 */
static void take(struct by_metal_switch *self, uint16_t buffer, uint16_t port, bool held)
{
    struct by_metal_net *net = self->net[port];
    struct by_frame frame;

    if (by_frame_parse(by_pool_frame(&self->pool, buffer), self->pool.buffer[buffer].bytes, &frame) != 0) {
        if (!by_switch_arp(self, net, buffer))
            self->counters.rx_other++;
    } else if (!net->addressed) {
        self->counters.rx_unaddressed++;
    } else if (!by_equal(frame.dst_mac, net->own_mac, BY_MAC_BYTES) ||
               (frame.dst_port != BY_UDP_PORT && is_own_ip(self, frame.dst_ip))) {
        self->counters.rx_not_ours++;
    } else {
        self->rx[self->batch_count] = (struct by_rx){.data = frame.data,
                                                     .bytes = frame.bytes,
                                                     .port = port,
                                                     .src_ip = frame.src_ip,
                                                     .dst_ip = frame.dst_ip,
                                                     .ecn = frame.ecn,
                                                     .held = held};
        self->buffer[self->batch_count++] = buffer;
        return;
    }
    by_pool_drop(&self->pool, buffer);
}

/* Like take, after applying the configured faults. */
static void take_disturbed(struct by_metal_switch *self, uint16_t buffer, uint16_t port)
{
    struct by_disturbed out[3];
    unsigned verdict;
    uint32_t count = by_disturb_pass(&self->disturb, &self->pool, self->now_ns, buffer, port, out, &verdict);

    self->counters.fault_dropped += verdict == BY_FAULT_DROP;
    self->counters.fault_duplicated += verdict == BY_FAULT_DUPLICATE;
    self->counters.fault_held += verdict == BY_FAULT_HOLD;
    for (uint32_t i = 0; i < count; i++)
        take(self, out[i].buffer, out[i].port, false);
}

/* Steps until the batch is consumed, sending after each step; then drops the frames that no relay
 * used. */
static void step(struct by_metal_switch *self)
{
    uint32_t done = 0;

    while (done < self->batch_count) {
        uint32_t used, tx_count = 0;

        by_engine_allow(self->engine, self->park.most - self->park.count);
        used = by_engine_step(self->engine, self->is_timeless ? 0 : self->now_ns, self->rx + done,
                              self->batch_count - done, self->tx, BY_TX_MAX, &tx_count);
        self->counters.steps++;
        by_switch_send(self, self->tx, tx_count, done);
        if (used == 0 && tx_count == 0)
            break; /* cannot happen with room for BY_TX_MAX actions */
        done += used;
    }
    for (uint32_t i = 0; i < self->batch_count; i++)
        if (self->buffer[i] != BY_BUFFER_NONE)
            by_pool_drop(&self->pool, self->buffer[i]);
    self->batch_count = 0;
}

static uint32_t receive(struct by_metal_switch *self, uint16_t port)
{
    uint16_t buffers[BY_BURST_MAX];
    uint32_t count = by_net_receive(self->net[port], buffers, BY_BURST_MAX);

    for (uint32_t i = 0; i < count; i++) {
        if (by_fault_enabled(&self->disturb.fault))
            take_disturbed(self, buffers[i], port);
        else
            take(self, buffers[i], port, false);
    }
    return count;
}

/* Runs one round over all ports; returns the frames received. */
static uint32_t go_round(struct by_metal_switch *self)
{
    struct by_disturbed held;
    struct by_parked parked;
    uint32_t received = 0;

    for (uint32_t i = 0; i < self->port_count; i++)
        by_net_reclaim(self->net[i]);
    for (uint32_t i = 0; i < self->port_count; i++) {
        received += receive(self, (uint16_t)((self->first_port + i) % self->port_count));
        if (self->batch_count >= BY_BATCH_MAX)
            step(self);
    }
    self->first_port = (self->first_port + 1) % self->port_count;
    while (self->disturb.count && self->batch_count < BY_BATCH_MAX &&
           by_disturb_due(&self->disturb, self->now_ns, &held))
        take(self, held.buffer, held.port, false);
    while (self->batch_count < BY_BATCH_MAX && by_park_take(&self->park, self->now_ns, &parked))
        take(self, (uint16_t)(uintptr_t)parked.frame, parked.port, true);
    if (self->batch_count)
        step(self);
    for (uint32_t i = 0; i < self->port_count; i++)
        by_net_flush(self->net[i]);
    self->counters.loops++;
    return received;
}

/* Enables or disables the interrupts of all rings; returns true when there is input already. */
static bool alert(struct by_metal_switch *self, bool wanted)
{
    bool is_there = false;

    for (uint32_t i = 0; i < self->port_count; i++)
        is_there = by_net_alert(self->net[i], wanted) || is_there;
    if (self->console)
        is_there = by_console_alert(self->console, wanted) || is_there;
    return is_there;
}

static void rest(struct by_metal_switch *self)
{
    if (!alert(self, true)) {
        uint64_t parked_ns = by_park_due(&self->park), now_ns = by_clock_ns();
        uint64_t most = self->disturb.count ? BY_DISTURB_NS : SLEEP_NS;

        parked_ns = parked_ns > now_ns ? parked_ns - now_ns : 1;
        by_clock_alarm(parked_ns < most ? parked_ns : most);
        by_interrupt_sleep();
        by_clock_quiet();
        self->counters.sleeps++;
        for (uint32_t i = 0; i < self->port_count; i++)
            by_virtio_quiet(&self->net[i]->device);
        if (self->console)
            by_virtio_quiet(&self->console->device);
        by_interrupt_clear();
    }
    alert(self, false);
}

/* Writes a piece of a table to flash. The outcome is logged and added to the journal. */
static bool keep(struct by_metal_switch *self)
{
    bool done = by_metal_store_step(&self->store);
    const char *word = by_metal_store_word(&self->store);

    if (word) {
        by_log_say(word, NULL);
        by_agent_note(self->agent, word);
    }
    return done;
}

void by_switch_run(struct by_metal_switch *self)
{
    for (;;) {
        uint32_t done;

        self->now_ns = by_clock_ns();
        by_watchdog_beat();
        if (self->provoke_ns != 0 && self->now_ns >= self->provoke_ns)
            by_fault_provoke(self->provoked);
        done = self->console ? by_console_serve(self->console) : 0;
        done += go_round(self);
        done += self->has_store && keep(self);
        if (done == 0)
            rest(self);
    }
}

int by_switch_commit(struct by_metal_switch *self)
{
    struct by_image_header header;
    const uint8_t *image;
    size_t bytes;
    int result = by_engine_commit(self->engine);

    if (result != 0)
        return result;
    image = by_engine_image(self->engine, &bytes);
    by_image_header(image, &header);
    for (uint32_t i = 0; i < self->port_count; i++) {
        struct by_metal_net *net = self->net[i];
        struct by_image_port record;

        net->addressed = i < header.count[BY_SECTION_PORT];
        if (!net->addressed)
            continue;
        by_image_port(image, i, &record);
        net->own_ip = record.own_ip;
        by_copy(net->own_mac, record.own_mac, BY_MAC_BYTES);
        by_copy(net->peer_mac, record.peer_mac, BY_MAC_BYTES);
    }
    return 0;
}
