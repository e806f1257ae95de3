/*
 * Opens and closes the shell: ports, packet pools, the engine and its memory, the idle loop's
 * descriptors, telemetry. loop.c runs in between. Main thread, which becomes the loop's.
 */
#include "dataplane/shell.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_mbuf.h>

#include "dataplane/eal.h"
#include "dataplane/pool.h"
#include "dataplane/port_steer.h"
#include "dataplane/port_way.h"
#include "dataplane/say.h"
#include "dataplane/state.h"
#include "offload/base/errors.h"
#include "offload/reduce/reduce.h"

/* Packet buffers beside those that ports hold: one batch (count). */
#define FRAMES_BASE 1024u
#define HEADERS     8192u
/* Payloads that ports may hold at a time (count); further ones are copied. */
#define SHARES 4096u
/* The same where drivers release a packet only when they need its descriptor again: the engine has
 * as many spare buffers, so these payloads block no bank. */
#define SHARES_LATE 2048u
/* Segments that a thread's cache may hold (count), where there are several workers. */
#define SHARES_CACHED 512u
#define HEADER_ROOM   (RTE_PKTMBUF_HEADROOM + 256u)
/* Least time between two repairs of one bank (ns): about one round trip through a loaded lab. */
#define REPAIR_NS 500000u
/* Payload of jumbo frames, used if all ports allow it (bytes). */
#define PAYLOAD_JUMBO 8192u
#define CACHE_LINE    64u
/* If hosts share this core: rounds that yield before a sleep (count). Waking a sleeper takes a
 * system call of theirs, which takes ten times a round trip through memory. */
#define LINK_YIELDS 50u
/* The same for ports with rings, where waking a sleeper takes an interrupt. */
#define RING_YIELDS 10u

void by_shell_strip(struct by_shell *shell)
{
    rte_mempool_free(shell->share_pool);
    by_eal_memory_free(shell->engine_memory, shell->engine_bytes, shell->has_device);
    shell->share_pool = NULL;
    shell->engine_memory = NULL;
}

/* Frees the parts of an open or partially opened shell. */
static void release(struct by_shell *shell)
{
    by_batch_close(&shell->batch);
    if (shell->group_port)
        rte_pktmbuf_free_bulk(shell->group_port->queue, shell->group_port->queued);
    free(shell->group_port);
    by_groups_close(shell->groups);
    by_xdp_close(shell->xdp); /* first, so that the kernel receives all further packets */
    for (unsigned i = 0; i < shell->port_count; i++)
        by_port_close(&shell->ports[i]);
    by_workers_close(shell->workers);
    rte_mempool_free(shell->header_pool);
    rte_mempool_free(shell->frame_pool);
    by_shell_strip(shell);
    by_eal_memory_free(shell->payload_memory, shell->payload_bytes, false);
    if (shell->payload_fd >= 0)
        close(shell->payload_fd);
    if (shell->handoff.event >= 0)
        by_handoff_close(&shell->handoff);
    free(shell->ports);
    free(shell);
}

static unsigned yields_of(const struct by_shell *shell)
{
    for (unsigned i = 0; i < shell->port_count && !shell->has_links; i++)
        if (shell->ports[i].kind == BY_PORT_IFACE && shell->ports[i].driver == BY_DRIVER_RING)
            return RING_YIELDS;
    return shell->has_links ? LINK_YIELDS : 0;
}

static int probe_ports(struct by_shell *shell, const struct by_shell_config *config)
{
    int result;

    if (config->port_count == 0 || config->port_count > BY_PORTS_MAX ||
        config->port_count > RTE_MAX_ETHPORTS) {
        by_say("%u ports: a switch has 1 to %u", config->port_count,
               RTE_MIN(BY_PORTS_MAX, (unsigned)RTE_MAX_ETHPORTS));
        return BY_ELIMIT;
    }
    shell->ports = calloc(config->port_count, sizeof *shell->ports);
    if (!shell->ports)
        return BY_ENOMEM;
    for (unsigned i = 0; i < config->port_count; i++) {
        result = by_port_probe(&shell->ports[i], i, &config->ports[i], config->driver);
        shell->port_count = i + 1;
        shell->has_device = shell->has_device || config->ports[i].kind == BY_PORT_PCI;
        shell->has_late =
            shell->has_late || config->ports[i].kind == BY_PORT_PCI || config->ports[i].kind == BY_PORT_VDEV;
        shell->has_links = shell->has_links || config->ports[i].kind == BY_PORT_SHM;
        if (result != 0)
            return result;
    }
    if (shell->has_device && shell->has_links) {
        by_say("--pci and --shm: memory that a NIC reads cannot be shared with hosts; use one of them");
        return BY_EINVAL;
    }
    return 0;
}

/* Chooses the largest payload that all ports can carry, unless the user has set one. */
static int choose_payload(struct by_shell *shell, const struct by_shell_config *config)
{
    uint32_t limit = config->payload_limit ? config->payload_limit : BY_PAYLOAD_MAX;
    uint32_t fits = BY_PAYLOAD_MAX;

    if (config->payload_max > limit || config->payload_max % 8 != 0) {
        by_say("--payload-max %u: it must be a multiple of 8, at most %u on this board", config->payload_max,
               limit);
        return BY_ELIMIT;
    }
    shell->payload_max = config->payload_max;
    for (unsigned i = 0; i < shell->port_count; i++)
        by_port_raise(&shell->ports[i], shell->payload_max);
    if (shell->payload_max)
        return 0;
    for (unsigned i = 0; i < shell->port_count; i++)
        fits = RTE_MIN(fits, by_port_payload_max(&shell->ports[i]));
    if (fits >= PAYLOAD_JUMBO)
        fits = PAYLOAD_JUMBO;
    else if (fits >= BY_PAYLOAD_DEFAULT && fits < 2 * BY_PAYLOAD_DEFAULT)
        fits = BY_PAYLOAD_DEFAULT;
    shell->payload_max = RTE_MIN(fits, limit) / CACHE_LINE * CACHE_LINE;
    if (shell->payload_max == 0) {
        by_say("the ports' MTU leaves %u bytes of payload: a switch needs at least %u (an MTU of %u)", fits,
               CACHE_LINE, CACHE_LINE + BY_PORT_MTU_OVERHEAD);
        return BY_ELIMIT;
    }
    return 0;
}

static int make_pools(struct by_shell *shell, unsigned workers)
{
    unsigned frames = (FRAMES_BASE + BY_PARK_MAX) * workers, headers = HEADERS * workers;
    size_t room = 0;

    if (workers > 1)
        frames += 2 * BY_HAND_FRAMES * workers;

    for (unsigned i = 0; i < shell->port_count; i++) {
        frames += shell->ports[i].frames_held;
        headers += shell->ports[i].headers_held;
        room = RTE_MAX(room, by_port_buffer_bytes(&shell->ports[i]));
    }
    shell->frame_pool = by_pool_make("frames", frames, 0, room + RTE_PKTMBUF_HEADROOM, shell->has_device);
    if (shell->frame_pool)
        shell->header_pool = by_pool_make("headers", headers, 0, HEADER_ROOM, shell->has_device);
    return shell->header_pool ? 0 : BY_ENOMEM;
}

/* Returns how many payloads of one engine ports may hold at a time, and makes their segments. Other
 * workers that free segments keep some in caches of theirs. */
static uint32_t make_shares(struct by_shell *shell, unsigned workers)
{
    uint32_t count = (shell->has_late ? SHARES_LATE : SHARES) + SHARES_CACHED * (workers - 1);
    char name[16];

    for (unsigned i = 0; i < shell->port_count; i++)
        shell->lends = shell->lends || shell->ports[i].copies;
    snprintf(name, sizeof name, "shares%u", shell->worker);
    shell->share_pool = by_pool_make(name, count + shell->lends * BY_PORT_BURST, by_share_private_bytes(), 0,
                                     shell->has_device);
    return count;
}

int by_shell_equip(struct by_shell *shell, const struct by_shell_config *config)
{
    uint32_t shares = make_shares(shell, RTE_MAX(config->worker_count, 1u));
    struct by_engine_config engine = {
        .slot_count_max = config->slot_count,
        .payload_max = (uint16_t)shell->payload_max,
        .image_bytes_max = config->image_bytes_max,
        .entry_count_max = config->entry_count,
        .relay_count_max = config->relay_count,
        .repair_interval_ns = REPAIR_NS,
        .isa = by_isa_best(),
        .alike = shell->xdp || shell->groups,
        .tx_max = BY_TX_MAX,
        .meter_count_max = by_engine_meters(shell->port_count, BY_SHARES_MAX),
        .headroom = shell->lends ? BY_LEND_ROOM : 0,
        .spare_count = shell->has_late ? shares : 0,
        .worker = (uint16_t)shell->worker,
        .worker_count = config->worker_count > 1 ? (uint16_t)config->worker_count : 0,
    };

    if (!shell->share_pool || (shell->lends && by_lender_open(&shell->lender, shell->share_pool) != 0))
        return BY_ENOMEM;

    if (shell->has_links) {
        shell->payload_bytes = by_engine_payload_size(&engine);
        if (shell->payload_bytes > 0)
            engine.payload = shell->payload_memory =
                by_eal_memory_shared(shell->payload_bytes, &shell->payload_fd);
    }
    shell->engine_bytes = by_engine_size(&engine);
    if (shell->engine_bytes == 0) {
        by_say("the engine does not support %u slots of %u bytes, %u entries, %u relays: a number is out of "
               "its range",
               config->slot_count, shell->payload_max, config->entry_count, config->relay_count);
        return BY_ELIMIT;
    }
    shell->engine_memory = by_eal_memory("engine", shell->engine_bytes, shell->has_device);
    if (!shell->engine_memory || (shell->has_links && !shell->payload_memory)) {
        by_say("no memory for %u slots of 2 x %u bytes (%zu MiB): use fewer (--slots) or provide more "
               "hugepages",
               config->slot_count, 2 * shell->payload_max,
               (shell->engine_bytes + shell->payload_bytes) >> 20);
        return BY_ENOMEM;
    }
    return by_engine_init(&shell->engine, shell->engine_memory, shell->engine_bytes, &engine);
}

/* Opens the programs of ports that need them. With faults injected at receive, every packet must
 * reach the switch. */
static int open_xdp(struct by_shell *shell, const struct by_shell_config *config)
{
    const struct by_xdp_config xdp = {.entry_count = config->entry_count,
                                      .relay_count = config->relay_count,
                                      .relays = !by_fault_enabled(&config->fault)};
    bool any = false;
    int result;

    for (unsigned i = 0; i < shell->port_count; i++)
        if (shell->ports[i].xsk)
            any = true;
    result = any ? by_xdp_open(&shell->xdp, &xdp) : 0;
    if (!any || result != 0)
        return result;
    shell->group_port = calloc(1, sizeof *shell->group_port);
    if (!shell->group_port)
        return BY_ENOMEM;
    by_port_gso_borrow(shell->group_port, by_xdp_gso(shell->xdp));
    return 0;
}

/* Decides how results leave by a card, and reports it. A card that uses physical addresses cannot
 * read a payload from the engine's memory, which may not be physically contiguous. */
static void choose_way(struct by_port *port)
{
    struct by_port_way way;

    port->multi_segs = port->multi_segs && rte_eal_iova_mode() == RTE_IOVA_VA;
    by_port_way(port, &way);
    by_say("port %s: %s, MTU %u, results %s%s", port->name, way.driver, port->mtu,
           way.by_reference ? "by reference, " : "as copies: ", way.why);
}

/* Reports a device whose frames are handed over, and what helps. */
static void say_steer(const struct by_port *port, unsigned workers)
{
    if (!by_port_is_device(port) || port->kind == BY_PORT_IFACE || port->steer != BY_STEER_HANDED)
        return;
    if (port->kind == BY_PORT_VDEV)
        by_say("port %s: one worker receives and hands over, because %s: add queues=%u, if the device has "
               "this argument",
               port->name, port->steer_why, workers);
    else
        by_say("port %s: one worker receives and hands over, because %s: use fewer --cores, or a card with "
               "RSS on UDP ports and %u queues",
               port->name, port->steer_why, workers);
}

static int start_ports(struct by_shell *shell, unsigned workers, bool one_queue)
{
    for (unsigned i = 0; i < shell->port_count; i++) {
        int result =
            by_port_start(&shell->ports[i], shell->frame_pool, (uint16_t)shell->payload_max, shell->xdp);

        if (result != 0)
            return result;
        if (shell->ports[i].link)
            by_link_start(shell->ports[i].link, (uint16_t)i, shell->engine, shell->payload_memory,
                          shell->payload_bytes, shell->payload_fd);
        if (shell->ports[i].kind == BY_PORT_PCI)
            choose_way(&shell->ports[i]);
        if (workers > 1 && !one_queue)
            say_steer(&shell->ports[i], workers);
    }
    return 0;
}

static void watch(struct by_shell *shell)
{
    for (unsigned i = 0; i < shell->port_count; i++) {
        if (!by_workers_poll(shell, i))
            continue;
        shell->idle.all_bells = shell->idle.all_bells && shell->ports[i].bell_count > 0;
        for (unsigned j = 0; j < shell->ports[i].bell_count; j++)
            if (by_idle_watch(&shell->idle, shell->ports[i].bells[j]) != 0)
                shell->idle.all_bells = false;
    }
    /* The last two places are reserved for these. */
    (void)by_idle_watch(&shell->idle, shell->handoff.event);
    if (shell->control_fd >= 0)
        (void)by_idle_watch(&shell->idle, shell->control_fd);
}

int by_shell_ready(struct by_shell *shell, const struct by_shell_config *config)
{
    by_batch_open(&shell->batch, &by_shell_batch, shell, shell->engine, shell->port_count);
    if (shell->lends) /* one send call for the results of a round */
        shell->batch.step_packets = BY_BATCH_ROUND;
    by_park_open(&shell->batch.park, shell->parked, BY_PARK_MAX);
    for (unsigned i = 0; i < shell->port_count; i++) {
        if (shell->ports[i].gso) /* whole batches, so that their results are as long */
            shell->batch.burst = BY_BATCH_BURST;
        shell->batch.late |= (uint64_t)!by_workers_own(shell, i) << i;
        shell->batch.port[i].is_memory = shell->ports[i].link != NULL;
        shell->batch.port[i].is_untagged = shell->ports[i].kind == BY_PORT_IFACE;
        memcpy(shell->batch.port[i].hardware_mac, shell->ports[i].mac, BY_MAC_BYTES);
    }
    if (shell->workers)
        shell->batch.source_count += shell->workers->count;
    shell->batch.hold.fault = config->fault;
    shell->batch.hold.fault.prng.state += shell->worker;
    by_idle_open(&shell->idle);
    shell->idle.yields = yields_of(shell);
    if (by_handoff_open(&shell->handoff) != 0) {
        by_say("cannot open a descriptor for the idle loop: %s", strerror(errno));
        return BY_EIO;
    }
    watch(shell);
    return 0;
}

/* Returns how many workers these ports can have; reports it if that is fewer than asked for. */
static unsigned choose_workers(const struct by_shell *shell, const struct by_shell_config *config)
{
    for (unsigned i = 0; i < shell->port_count && config->worker_count > 1; i++)
        if (shell->ports[i].link || shell->ports[i].xsk) {
            by_say("%u cores: port %s has %s, which one core serves: running on 1; --cores 1 asks for this",
                   config->worker_count, shell->ports[i].name,
                   shell->ports[i].link ? "hosts that share memory" : "the driver xdp");
            return 1;
        }
    return RTE_MAX(config->worker_count, 1u);
}

static int open_rest(struct by_shell *shell, const struct by_shell_config *config)
{
    int result;

    if (config->worker_count == 1)
        shell->groups = by_groups_open(shell->ports, shell->port_count);
    if ((result = by_shell_equip(shell, config)) != 0 ||
        (result = start_ports(shell, config->worker_count, config->one_queue)) != 0)
        return result;
    if (config->worker_count > 1 && (result = by_workers_open(shell, config)) != 0)
        return result;
    return by_shell_ready(shell, config);
}

int by_shell_open(struct by_shell **out, const struct by_shell_config *config)
{
    struct by_shell_config chosen;
    struct by_shell *shell = NULL;
    int result;

    if (posix_memalign((void **)&shell, CACHE_LINE, sizeof *shell) != 0)
        return BY_ENOMEM;
    memset(shell, 0, sizeof *shell);
    shell->control_fd = config->control_fd;
    shell->payload_fd = -1;
    shell->control = config->control;
    shell->control_context = config->control_context;
    shell->handoff.event = -1;
    if ((result = probe_ports(shell, config)) != 0 || (result = choose_payload(shell, config)) != 0 ||
        (result = open_xdp(shell, config)) != 0)
        goto err_release;
    chosen = *config;
    chosen.worker_count = choose_workers(shell, config);
    for (unsigned i = 0; i < shell->port_count; i++)
        by_port_steer_choose(&shell->ports[i], chosen.worker_count, config->one_queue);
    if ((result = make_pools(shell, chosen.worker_count)) != 0 || (result = open_rest(shell, &chosen)) != 0)
        goto err_release;
    by_telemetry_register(shell);
    *out = shell;
    return 0;
err_release:
    release(shell);
    return result;
}

void by_shell_close(struct by_shell *shell)
{
    by_telemetry_register(NULL);
    release(shell);
}

void by_shell_stop(struct by_shell *shell)
{
    atomic_store_explicit(&shell->stopping, 1, memory_order_relaxed);
    by_handoff_wake(&shell->handoff);
}

uint32_t by_shell_payload_max(const struct by_shell *shell)
{
    return shell->payload_max;
}

unsigned by_shell_port_count(const struct by_shell *shell)
{
    return shell->port_count;
}
