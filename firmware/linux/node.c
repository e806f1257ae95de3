/* The switch's interface for its agent: thin functions over shell and engine. One thread: the
 * shell's. */
#include "firmware/linux/node.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dataplane/facts.h"
#include "dataplane/port_way.h"
#include "dataplane/say.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"
#include "proto/control.pb.h"

static struct by_shell *shell_of(void *node)
{
    return ((struct by_switchd_node *)node)->shell;
}

static int node_stage(void *node, const uint8_t *image, size_t bytes, struct by_image_fault *fault)
{
    return by_shell_stage(shell_of(node), image, bytes, fault);
}

static int node_commit(void *node)
{
    return by_shell_commit(shell_of(node));
}

static void node_abort(void *node)
{
    by_shell_abort(shell_of(node));
}

static const uint8_t *node_image(void *node, size_t *bytes)
{
    return by_engine_image(by_shell_engine(shell_of(node)), bytes);
}

/* A counter: its name and its offset in its struct. */
struct linux_node_counter_row {
    const char *name;
    size_t offset;
};

static const struct linux_node_counter_row engine_rows[] = {
#define X(name, help) {#name, offsetof(struct by_engine_counters, name)},
    BY_ENGINE_COUNTER_LIST(X)
#undef X
};
static const struct linux_node_counter_row shell_rows[] = {
#define X(name, help) {"shell_" #name, offsetof(struct by_shell_counters, batch.name)},
    BY_BATCH_COUNTER_LIST(X)
#undef X
#define X(name, help) {"shell_" #name, offsetof(struct by_shell_counters, name)},
        BY_SHELL_COUNTER_LIST(X)
#undef X
};
#define ENGINE_ROWS (sizeof engine_rows / sizeof engine_rows[0])
#define SHELL_ROWS  (sizeof shell_rows / sizeof shell_rows[0])

BY_STATIC_ASSERT(ENGINE_ROWS + SHELL_ROWS <= sizeof(((by_CountersReply *)0)->engine) / sizeof(by_Counter),
                 "all counters fit one answer (control.options)");

/* Returns the engine's counters, then the shell's. */
static int node_counter(void *node, uint32_t index, struct by_agent_counter *out)
{
    const char *counters = (const char *)by_shell_engine_counters(shell_of(node));
    const struct linux_node_counter_row *row = engine_rows;

    if (index >= ENGINE_ROWS) {
        index -= ENGINE_ROWS;
        counters = (const char *)by_shell_counters(shell_of(node));
        row = shell_rows;
        if (index >= SHELL_ROWS)
            return BY_ENOENT;
    }
    out->name = row[index].name;
    memcpy(&out->value, counters + row[index].offset, sizeof out->value);
    return 0;
}

static int node_port(void *node, uint32_t index, struct by_agent_port *out)
{
    struct by_port *port = by_shell_port(shell_of(node), index);
    struct by_dp_port_counters counters;

    if (!port)
        return BY_ENOENT;
    by_shell_port_read(shell_of(node), index, &counters);
    *out = (struct by_agent_port){.name = port->name,
                                  .rx_packets = counters.rx_packets,
                                  .rx_bytes = counters.rx_bytes,
                                  .tx_packets = counters.tx_packets,
                                  .tx_bytes = counters.tx_bytes,
                                  .rx_dropped = counters.rx_dropped,
                                  .tx_dropped = counters.tx_dropped,
                                  .down = by_port_is_down(port),
                                  .silent = by_shell_silent(shell_of(node), index)};
    return 0;
}

static int node_way(void *node, uint32_t index, struct by_agent_way *out)
{
    const struct by_port *port = by_shell_port(shell_of(node), index);
    static struct by_port_way way; /* the loop's thread alone calls this */

    if (!port)
        return BY_ENOENT;
    by_port_way(port, &way);
    *out = (struct by_agent_way){.name = port->name,
                                 .driver = way.driver,
                                 .why = way.why,
                                 .offloads = way.offloads,
                                 .steer = way.steer,
                                 .mtu = port->mtu,
                                 .rx_queues = way.rx_queues,
                                 .tx_queues = way.tx_queues,
                                 .rx_descriptors = way.rx_descriptors,
                                 .tx_descriptors = way.tx_descriptors,
                                 .mbps = way.mbps,
                                 .by_reference = way.by_reference,
                                 .late = way.late,
                                 .promiscuous = way.promiscuous,
                                 .down = by_port_is_down(port)};
    return 0;
}

static int node_share(void *node, uint32_t index, struct by_engine_share *out)
{
    return by_shell_share(shell_of(node), index, out);
}

static int node_waiting(void *node, uint32_t index, struct by_bank_view *out)
{
    return by_shell_oldest(shell_of(node), index, out);
}

static void node_keep(void *node, const uint8_t *image, size_t bytes)
{
    struct by_switchd_store *store = ((struct by_switchd_node *)node)->store;

    if (store)
        by_switchd_store_put(store, image, bytes);
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void node_clock(void *node, uint64_t *now_ns, uint64_t *unix_ns)
{
    (void)node;
    *now_ns = clock_ns(CLOCK_MONOTONIC);
    *unix_ns = clock_ns(CLOCK_REALTIME);
}

static int node_interface(void *node, uint32_t index, struct by_agent_interface *out)
{
    const struct by_port *port = by_shell_port(shell_of(node), index);
    struct by_device facts;

    if (!port)
        return BY_ENOENT;
    by_port_facts(port, &facts);
    out->is_kernel = port->kind == BY_PORT_IFACE;
    out->down = by_port_is_down(port);
    out->mtu = facts.mtu;
    out->speed_mbps = facts.speed_mbps;
    out->queues = facts.queues;
    out->numa = facts.numa;
    memcpy(out->mac, facts.mac, sizeof out->mac);
    snprintf(out->name, sizeof out->name, "%s", port->name);
    snprintf(out->driver, sizeof out->driver, "%s", facts.driver);
    snprintf(out->bus, sizeof out->bus, "%s", facts.bus);
    snprintf(out->features, sizeof out->features, "%s", facts.features);
    if (out->is_kernel)
        by_device_addresses(port->name, out->addresses, sizeof out->addresses);
    if (!out->down) /* what was heard through a cable that is gone */
        out->neighbour = by_shell_neighbour(shell_of(node), index);
    return 0;
}

static void node_announce(void *node)
{
    by_shell_announce(shell_of(node), ((struct by_switchd_node *)node)->name);
}

const struct by_agent_ops by_node_ops = {
    .stage = node_stage,
    .commit = node_commit,
    .abort = node_abort,
    .image = node_image,
    .counter = node_counter,
    .port = node_port,
    .share = node_share,
    .way = node_way,
    .waiting = node_waiting,
    .keep = node_keep,
    .clock = node_clock,
    .interface = node_interface,
    .announce = node_announce,
};

static bool is_kernel(void *shell, unsigned port)
{
    return by_shell_port(shell, port)->kind == BY_PORT_IFACE;
}

static bool is_down(void *shell, unsigned port)
{
    return by_port_is_down(by_shell_port(shell, port));
}

struct by_carrier *by_node_carrier(struct by_shell *shell)
{
    return by_carrier_open(&(struct by_carrier_config){.port_count = by_shell_port_count(shell),
                                                       .is_kernel = is_kernel,
                                                       .is_down = is_down,
                                                       .context = shell});
}

/* Reads a whole file into memory that the caller frees; returns NULL when it cannot be read or is
 * larger than any image, after reporting it. */
static uint8_t *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    uint8_t *image = file ? malloc(BY_IMAGE_BYTES_MAX) : NULL;

    *bytes = image ? fread(image, 1, BY_IMAGE_BYTES_MAX, file) : 0;
    if (!image || ferror(file) || !feof(file)) {
        by_say("--table %s: %s", path,
               image && !ferror(file) ? "larger than any table image" : strerror(errno));
        free(image);
        image = NULL;
    }
    if (file)
        fclose(file);
    return image;
}

int by_node_load(struct by_shell *shell, const char *path)
{
    struct by_image_fault fault = {0};
    struct by_image_header header;
    size_t bytes;
    uint8_t *image = read_file(path, &bytes);
    int result;

    if (!image)
        return BY_ENOENT;
    result = by_shell_stage(shell, image, bytes, &fault);
    if (result == 0) {
        by_image_header(image, &header);
        if (header.kind != BY_NODE_SWITCH || header.count[BY_SECTION_PORT] > by_shell_port_count(shell)) {
            by_say("--table %s: it is for %s %s with %u ports; this is a switch with %u", path,
                   header.kind == BY_NODE_SWITCH ? "switch" : "host", header.name,
                   header.count[BY_SECTION_PORT], by_shell_port_count(shell));
            result = BY_EINVAL;
        } else {
            result = by_shell_commit(shell);
        }
    } else {
        by_say("--table %s: %s %u: %s (%" PRIu64 ")", path, fault.section ? fault.section : "image",
               fault.index, fault.what ? fault.what : by_error_text(result), fault.value);
    }
    free(image);
    return result;
}
