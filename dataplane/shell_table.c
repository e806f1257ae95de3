/*
 * The table, the counters and the ports of a shell, over all its workers: what the control channel
 * and telemetry read and change. Other workers are held at their gates meanwhile, until the loop
 * has served the request. Loop's thread of the main worker, except for by_shell_pulse.
 */
#include <string.h>

#include "dataplane/interface.h"
#include "dataplane/state.h"
#include "offload/base/errors.h"

static unsigned worker_count(const struct by_shell *shell)
{
    return shell->workers ? shell->workers->count : 1;
}

static struct by_shell *worker_of(struct by_shell *shell, unsigned index)
{
    return shell->workers ? shell->workers->worker[index].shell : shell;
}

static void hold(struct by_shell *shell)
{
    if (shell->workers)
        by_workers_hold(shell->workers);
}

uint64_t by_shell_pulse(const struct by_shell *shell)
{
    if (shell->workers)
        return by_workers_pulse(shell->workers);
    return atomic_load_explicit(&shell->pulse, memory_order_relaxed);
}

unsigned by_shell_worker_count(const struct by_shell *shell)
{
    return worker_count(shell);
}

struct by_engine *by_shell_engine(struct by_shell *shell)
{
    return shell->engine;
}

/* ---- the table ---- */

/* Checks that the drivers of all ports can send and receive over IPv6. */
static int check_ipv6(const struct by_shell *shell, const struct by_image_header *header,
                      struct by_image_fault *fault)
{
    for (uint32_t i = 0; i < shell->port_count && header->count[BY_SECTION_ADDRESS] > 0; i++) {
        const struct by_port *port = &shell->ports[i];

        if (port->kind != BY_PORT_IFACE || (port->driver != BY_DRIVER_XDP && port->driver != BY_DRIVER_GSO))
            continue;
        *fault = (struct by_image_fault){
            .section = "port",
            .index = i,
            .what = "the drivers xdp and gso do not support IPv6 links: use --driver auto; IPv6 addresses",
            .value = header->count[BY_SECTION_ADDRESS]};
        return BY_EUNSUPPORTED;
    }
    return 0;
}

/* Checks an image that the engines accept against the ports. */
static int check_ports(const struct by_shell *shell, const uint8_t *image, struct by_image_fault *fault)
{
    struct by_image_header header;

    int result = by_image_addresses_check(image, fault);

    by_image_header(image, &header);
    if (result == 0)
        result = check_ipv6(shell, &header, fault);
    if (result != 0)
        return result;
    for (uint32_t i = 0; i < shell->port_count && i < header.count[BY_SECTION_PORT]; i++) {
        struct by_image_port port;
        unsigned vlan;

        by_image_port(image, i, &port);
        if (shell->ports[i].kind != BY_PORT_IFACE ||
            (vlan = by_interface_vlan(shell->ports[i].name)) == port.vlan)
            continue;
        *fault = (struct by_image_fault){
            .section = "port",
            .index = i,
            .what = "the interface is not one of the VLAN that the table states (ip link add ... type vlan), "
                    "but of VLAN",
            .value = vlan};
        return BY_EINVAL;
    }
    return 0;
}

/* Only the main worker's thread changes tables, and a worker reads its active one alone, so no
 * worker is held while an image is copied and checked. */
int by_shell_stage(struct by_shell *shell, const uint8_t *image, size_t bytes, struct by_image_fault *fault)
{
    int result = 0;

    for (unsigned w = 0; w < worker_count(shell) && result == 0; w++)
        result = by_engine_stage(worker_of(shell, w)->engine, image, bytes, fault);
    if (result == 0)
        result = check_ports(shell, image, fault);
    if (result != 0)
        by_shell_abort(shell);
    return result;
}

void by_shell_abort(struct by_shell *shell)
{
    for (unsigned w = 0; w < worker_count(shell); w++)
        by_engine_abort(worker_of(shell, w)->engine);
}

void by_shell_readdress(struct by_shell *shell)
{
    size_t bytes;
    const uint8_t *image = by_engine_image(shell->engine, &bytes);
    struct by_ipv6_book book;

    by_image_book(image, &book);
    for (uint32_t i = 0; i < shell->port_count; i++) {
        const struct by_batch_port *from = &shell->batch.port[i];
        struct by_port *port = &shell->ports[i];

        port->wrap.book = book;
        if (!from->addressed)
            continue;
        port->carrier.src_ip = from->ip;
        port->wrap.vlan = port->to_owner ? 0 : from->vlan; /* the owner of a port writes its tags */
        port->extra = by_ipv6_is(from->ip) ? BY_IPV6_EXTRA_BYTES : 0;
        port->wrap.ipv6 = book.count > 0 && !port->to_owner;
        port->wraps = port->wrap.vlan != 0 || port->wrap.ipv6;
        port->stencil_receiver = port->stencil_tree = UINT64_MAX; /* matches no frame */
        memcpy(port->carrier.src_mac, from->mac, BY_MAC_BYTES);
        memcpy(port->carrier.dst_mac, from->peer_mac, BY_MAC_BYTES);
    }
    if (shell->groups)
        by_groups_forget(shell->groups);
    if (shell->xdp)
        by_xdp_load(shell->xdp, image, shell->batch.port);
    shell->moves = shell->batch.moves;
}

int by_shell_commit(struct by_shell *shell)
{
    int result = 0;

    hold(shell);
    for (unsigned w = 0; w < worker_count(shell) && result == 0; w++) {
        result = by_engine_commit(worker_of(shell, w)->engine);
        if (result != 0)
            break;
        by_batch_address(&worker_of(shell, w)->batch);
        by_shell_readdress(worker_of(shell, w));
    }
    return result;
}

/* ---- what is read ---- */

int by_shell_share(struct by_shell *shell, uint32_t index, struct by_engine_share *out)
{
    int result = 0;

    hold(shell);
    result = by_engine_share(shell->engine, index, out);
    for (unsigned w = 1; w < worker_count(shell) && result == 0; w++) {
        struct by_engine_share one;

        result = by_engine_share(worker_of(shell, w)->engine, index, &one);
        out->rx_bytes += one.rx_bytes;
        out->tx_bytes += one.tx_bytes;
        out->held += one.held;
        out->dropped += one.dropped;
    }
    return result;
}

int by_shell_oldest(struct by_shell *shell, uint32_t entry, struct by_bank_view *view)
{
    int result = BY_ENOENT;

    hold(shell);
    for (unsigned w = 0; w < worker_count(shell); w++) {
        struct by_bank_view one;

        if (by_engine_oldest(worker_of(shell, w)->engine, entry, &one) != 0)
            continue;
        if (result != 0 || (int32_t)(one.seq - view->seq) < 0)
            *view = one;
        result = 0;
    }
    return result;
}

int by_shell_bank(struct by_shell *shell, uint32_t entry, uint32_t slot, unsigned bank,
                  struct by_bank_view *view)
{
    int result = BY_EAGAIN;

    hold(shell);
    for (unsigned w = 0; w < worker_count(shell) && result == BY_EAGAIN; w++)
        result = by_engine_bank(worker_of(shell, w)->engine, entry, slot, bank, view);
    return result;
}

const struct by_engine_counters *by_shell_engine_counters(struct by_shell *shell)
{
    if (!shell->workers)
        return by_engine_counters(shell->engine);
    by_workers_count(shell->workers);
    return &shell->workers->engine;
}

const struct by_shell_counters *by_shell_counters(struct by_shell *shell)
{
    uint64_t kernel[BY_XDP_COUNTS];

    /* Readers fetch the counters one after another. */
    if (shell->xdp && shell->counted_ns != shell->batch.now_ns) {
        by_xdp_read(shell->xdp, kernel);
        shell->counters.kernel_relayed = kernel[BY_XDP_RELAYED];
        shell->counters.kernel_replicated = kernel[BY_XDP_REPLICATED];
        shell->counters.kernel_lost = kernel[BY_XDP_LOST];
        shell->counted_ns = shell->batch.now_ns;
    }
    if (shell->groups) {
        shell->counters.kernel_replicated = by_groups_counters(shell->groups)->replicated;
        shell->counters.kernel_lost = by_groups_counters(shell->groups)->lost;
    }
    if (shell->workers) {
        by_workers_count(shell->workers);
        return &shell->workers->counters;
    }
    shell->counters.batch = shell->batch.counters;
    return &shell->counters;
}

/* ---- ports ---- */

struct by_port *by_shell_port(struct by_shell *shell, unsigned index)
{
    if (index >= shell->port_count)
        return NULL;
    hold(shell);
    return &worker_of(shell, shell->workers ? shell->workers->owner[index] : 0)->ports[index];
}

/* Frames of workers without queues pass the owner's counters, except those that did not fit its
 * ring. */
void by_shell_port_read(struct by_shell *shell, unsigned index, struct by_dp_port_counters *counters)
{
    by_port_read(by_shell_port(shell, index), counters);
    for (unsigned w = 0; w < worker_count(shell); w++) {
        const struct by_port *view = &worker_of(shell, w)->ports[index];

        if (by_workers_own(worker_of(shell, w), index))
            continue;
        counters->tx_dropped += view->counters.tx_dropped;
        if (view->to_owner)
            continue;
        counters->rx_packets += view->counters.rx_packets;
        counters->rx_bytes += view->counters.rx_bytes;
        counters->tx_packets += view->counters.tx_packets;
        counters->tx_bytes += view->counters.tx_bytes;
        counters->marked += view->counters.marked;
    }
}

/* Only the batch of a port's owner asks its neighbours, and hears all of them. */
static const struct by_batch *batch_of(struct by_shell *shell, unsigned index)
{
    hold(shell);
    return &worker_of(shell, shell->workers ? shell->workers->owner[index] : 0)->batch;
}

uint32_t by_shell_silent(struct by_shell *shell, unsigned index)
{
    const struct by_shell_neighbour *neighbour =
        index < shell->port_count ? by_batch_silent(batch_of(shell, index), (uint16_t)index) : NULL;

    return neighbour ? neighbour->ip : 0;
}

const struct by_lldp *by_shell_neighbour(struct by_shell *shell, unsigned index)
{
    return index < shell->port_count ? by_batch_neighbour(batch_of(shell, index), (uint16_t)index) : NULL;
}
