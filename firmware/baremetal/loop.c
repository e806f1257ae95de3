/*
 * The loop: runs rounds of the batch (offload/shell/batch.h) on virtio ports, serves the control
 * channel, and sleeps when there was nothing to do. Before it sleeps, the loop enables the
 * interrupt of every ring and polls once more; an interrupt that arrives in between ends the sleep
 * at once.
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

static uint16_t index_of(const struct by_metal_switch *self, const void *frame)
{
    return (uint16_t)((const struct by_metal_buffer *)frame - self->pool.buffer);
}

static uint32_t batch_receive(void *context, uint16_t port)
{
    struct by_metal_switch *self = context;
    uint16_t buffers[BY_BATCH_BURST];
    uint32_t count = by_net_receive(self->net[port], buffers, self->batch.burst);

    for (uint32_t i = 0; i < count; i++) {
        struct by_metal_buffer *buffer = &self->pool.buffer[buffers[i]];

        if (!by_net_untag(self->net[port], buffers[i], self->batch.port[port].vlan)) {
            self->batch.counters.rx_vlan++;
            by_pool_drop(&self->pool, buffers[i]);
            continue;
        }
        by_batch_receive(&self->batch, port, buffer, by_pool_frame(&self->pool, buffers[i]), buffer->bytes);
    }
    return count;
}

static uint8_t *batch_data(void *context, void *frame, uint32_t *bytes)
{
    const struct by_metal_switch *self = context;

    *bytes = ((struct by_metal_buffer *)frame)->bytes;
    return by_pool_frame(&self->pool, index_of(self, frame));
}

static void batch_share(void *context, void *frame)
{
    (void)context;
    ((struct by_metal_buffer *)frame)->users++;
}

static void batch_drop(void *context, void **frames, uint32_t count)
{
    struct by_metal_switch *self = context;

    for (uint32_t i = 0; i < count; i++)
        if (frames[i] != NULL)
            by_pool_drop(&self->pool, index_of(self, frames[i]));
}

/* All packets have frames. */
static void *batch_make(void *context, const struct by_rx *rx, uint16_t port)
{
    (void)context;
    (void)rx;
    (void)port;
    return NULL;
}

static void batch_forward(void *context, uint16_t port, void *frame)
{
    struct by_metal_switch *self = context;

    by_net_forward(self->net[port], index_of(self, frame));
}

static bool batch_reply(void *context, uint16_t port, const uint8_t *frame, uint32_t bytes)
{
    struct by_metal_switch *self = context;
    uint8_t *head = bytes <= BY_NET_HEAD_BYTES ? by_net_head(self->net[port]) : NULL;

    if (head == NULL)
        return false;
    by_copy(head, frame, bytes);
    by_net_send(self->net[port], bytes, NULL, 0, BY_REF_NONE, BY_BUFFER_NONE);
    return true;
}

static void add_address(struct by_text *text, uint32_t ip)
{
    for (unsigned shift = 32; shift > 0; shift -= 8) {
        by_text_number(text, ip >> (shift - 8) & 0xff);
        by_text_add(text, shift > 8 ? "." : "");
    }
}

/* Reports a neighbour that does not answer ARP, or answers again. */
static void batch_neighbour(void *context, const struct by_shell_neighbour *neighbour)
{
    const struct by_metal_switch *self = context;
    struct by_log log;
    struct by_text *text = by_log_start(&log);

    by_text_add(text, "the neighbour ");
    add_address(text, neighbour->ip);
    by_text_add(text, " at port ");
    by_text_add(text, self->net[neighbour->port]->name);
    by_text_add(text, neighbour->silent ? " does not answer ARP: check its cable, address and VLAN"
                                        : " answers ARP again");
    by_log_end(&log);
}

const struct by_batch_ops by_switch_batch = {
    .receive = batch_receive,
    .data = batch_data,
    .share = batch_share,
    .drop = batch_drop,
    .make = batch_make,
    .forward = batch_forward,
    .reply = batch_reply,
    .send = by_switch_send,
    .neighbour = batch_neighbour,
    .done = NULL,
};

/* Runs one round over all ports; returns the frames received. */
static uint32_t go_round(struct by_metal_switch *self)
{
    uint32_t received;

    for (uint32_t i = 0; i < self->port_count; i++)
        by_net_reclaim(self->net[i]);
    received = by_batch_round(&self->batch);
    for (uint32_t i = 0; i < self->port_count; i++)
        by_net_flush(self->net[i]);
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
        uint64_t idle_ns;

        self->batch.now_ns = by_clock_ns();
        idle_ns = by_batch_idle_ns(&self->batch, SLEEP_NS);
        by_clock_alarm(idle_ns > 0 ? idle_ns : 1);
        by_interrupt_sleep();
        by_clock_quiet();
        self->batch.counters.sleeps++;
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

        self->batch.now_ns = by_clock_ns();
        by_watchdog_beat();
        if (self->provoke_ns != 0 && self->batch.now_ns >= self->provoke_ns)
            by_fault_provoke(self->provoked);
        done = self->console ? by_console_serve(self->console) : 0;
        done += go_round(self);
        done += self->has_store && keep(self);
        if (done == 0)
            rest(self);
    }
}
