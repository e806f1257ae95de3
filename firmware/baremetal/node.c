/* The switch's interface for its agent: thin functions over switch and engine. */
#include <stddef.h>

#include "firmware/baremetal/clock.h"
#include "firmware/baremetal/switch.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"
#include "proto/control.pb.h"

static int node_stage(void *node, const uint8_t *image, size_t bytes, struct by_image_fault *fault)
{
    struct by_engine *engine = ((struct by_metal_switch *)node)->engine;
    int result = by_engine_stage(engine, image, bytes, fault);
    struct by_image_header header;

    if (result != 0)
        return result;
    by_image_header(image, &header);
    if (header.count[BY_SECTION_ADDRESS] == 0)
        return 0;
    by_engine_abort(engine);
    *fault = (struct by_image_fault){
        .section = "header",
        .what = "this switch does not support IPv6: give its links IPv4 addresses in the site file; IPv6 "
                "addresses",
        .value = header.count[BY_SECTION_ADDRESS]};
    return BY_EUNSUPPORTED;
}

static int node_commit(void *node)
{
    struct by_metal_switch *self = node;
    int result = by_engine_commit(self->engine);

    if (result != 0)
        return result;
    by_batch_address(&self->batch);
    for (uint32_t i = 0; i < self->port_count; i++)
        self->net[i]->vlan = self->batch.port[i].vlan;
    return 0;
}

static void node_abort(void *node)
{
    by_engine_abort(((struct by_metal_switch *)node)->engine);
}

static const uint8_t *node_image(void *node, size_t *bytes)
{
    return by_engine_image(((struct by_metal_switch *)node)->engine, bytes);
}

/* A counter: its name and its offset in its struct. */
struct node_counter_row {
    const char *name;
    uint32_t offset;
};

static const struct node_counter_row engine_rows[] = {
#define X(name, help) {#name, offsetof(struct by_engine_counters, name)},
    BY_ENGINE_COUNTER_LIST(X)
#undef X
};
static const struct node_counter_row switch_rows[] = {
#define X(name, help) {"shell_" #name, offsetof(struct by_batch_counters, name)},
    BY_BATCH_COUNTER_LIST(X)
#undef X
};
static const struct node_counter_row guard_rows[] = {
#define X(name, help) {"control_" #name, offsetof(struct by_guard_counters, name)},
    BY_GUARD_COUNTER_LIST(X)
#undef X
};
#define GUARD_ROWS  (sizeof guard_rows / sizeof guard_rows[0])
#define ENGINE_ROWS (sizeof engine_rows / sizeof engine_rows[0])
#define SWITCH_ROWS (sizeof switch_rows / sizeof switch_rows[0])

BY_STATIC_ASSERT(ENGINE_ROWS + SWITCH_ROWS + GUARD_ROWS <=
                     sizeof(((by_CountersReply *)0)->engine) / sizeof(by_Counter),
                 "all counters fit one answer (control.options)");

static int node_counter(void *node, uint32_t index, struct by_agent_counter *out)
{
    const struct by_metal_switch *self = node;
    const uint8_t *counters = (const uint8_t *)by_engine_counters(self->engine);
    const struct node_counter_row *row = engine_rows;
    struct by_guard_counters guard = {0};

    if (index >= ENGINE_ROWS) {
        index -= ENGINE_ROWS;
        counters = (const uint8_t *)&self->batch.counters;
        row = switch_rows;
    }
    if (row == switch_rows && index >= SWITCH_ROWS) {
        index -= SWITCH_ROWS;
        if (index >= GUARD_ROWS)
            return BY_ENOENT;
        by_console_count(self->console, &guard);
        counters = (const uint8_t *)&guard;
        row = guard_rows;
    }
    *out = (struct by_agent_counter){.name = row[index].name,
                                     .value = *(const uint64_t *)(counters + row[index].offset)};
    return 0;
}

static int node_port(void *node, uint32_t index, struct by_agent_port *out)
{
    const struct by_metal_switch *self = node;
    const struct by_shell_neighbour *silent;
    const struct by_metal_net *net;

    if (index >= self->port_count)
        return BY_ENOENT;
    net = self->net[index];
    silent = by_batch_silent(&self->batch, (uint16_t)index);
    *out = (struct by_agent_port){.name = net->name,
                                  .rx_packets = net->rx_packets,
                                  .rx_bytes = net->rx_bytes,
                                  .tx_packets = net->tx_packets,
                                  .tx_bytes = net->tx_bytes,
                                  .tx_dropped = net->tx_dropped,
                                  .down = by_net_is_down(net),
                                  .silent = silent != NULL ? silent->ip : 0};
    return 0;
}

static int node_share(void *node, uint32_t index, struct by_engine_share *out)
{
    return by_engine_share(((struct by_metal_switch *)node)->engine, index, out);
}

static int node_waiting(void *node, uint32_t index, struct by_bank_view *out)
{
    return by_engine_oldest(((struct by_metal_switch *)node)->engine, index, out);
}

static void node_keep(void *node, const uint8_t *image, size_t bytes)
{
    struct by_metal_switch *self = node;

    if (self->has_store)
        by_metal_store_put(&self->store, image, bytes);
}

static void node_clock(void *node, uint64_t *now_ns, uint64_t *unix_ns)
{
    (void)node;
    *now_ns = by_clock_ns();
    *unix_ns = 0;
}

const struct by_agent_ops by_switch_ops = {
    .stage = node_stage,
    .commit = node_commit,
    .abort = node_abort,
    .image = node_image,
    .counter = node_counter,
    .port = node_port,
    .share = node_share,
    .way = NULL,
    .waiting = node_waiting,
    .keep = node_keep,
    .clock = node_clock,
    .interface = NULL,
    .announce = NULL,
};
