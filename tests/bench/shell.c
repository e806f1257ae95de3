/*
 * bench-shell: the cost of banyan-switchd's loop by itself, on memory ports in this process:
 * nanoseconds of processor time for each frame that arrives and leaves, sums and copies, beside a
 * loop that only swaps MAC addresses on the same ports; and with results lent to ports that would
 * copy them, as on vhost-user rings. Drivers cost next to nothing here, so that this is banyan's
 * own part. Frames have 1408 bytes of payload. Needs no root and no hugepages. One thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_ethdev.h>

#include "dataplane/eal.h"
#include "dataplane/say.h"
#include "dataplane/state.h"
#include "offload/base/bytes.h"
#include "tests/unit/firmware/star.h"

#define PORTS_MAX 8u
#define WINDOW    128u
#define COUNT     352u
/* Frames of each port in one round (count): as many as the load of tests/bench/switchd.sh sends. */
#define BATCH  32u
#define CHUNKS (400u * BATCH)
/* Runs of one measurement (count), of which the least counts. */
#define TIMES   8u
#define PAYLOAD (4u * COUNT)

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "bench-shell: %s failed\n", what);
    exit(3);
}

static uint64_t cpu_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* A driver that would copy each frame before its send call returns, as net_vhost does. */
static uint64_t sunk;

static uint16_t sink(struct by_port *port, struct rte_mbuf **frames, uint16_t count)
{
    (void)port;
    for (uint16_t i = 0; i < count; i++)
        rte_mbuf_refcnt_set(frames[i], (uint16_t)(rte_mbuf_refcnt_read(frames[i]) - 1));
    sunk += count;
    return count;
}

/* Gives all ports such a driver: results leave from the engine's memory. */
static void lend_all(struct by_shell *shell, const struct by_shell_config *config)
{
    static struct by_port_ops ops;

    ops = *shell->ports[0].ops;
    ops.send = sink;
    for (unsigned i = 0; i < shell->port_count; i++) {
        shell->ports[i].ops = &ops;
        shell->ports[i].copies = true;
        shell->ports[i].multi_segs = false;
    }
    by_shell_strip(shell);
    if (by_shell_equip(shell, config) != 0)
        fail("the engine");
    shell->batch.engine = shell->engine;
    shell->batch.step_packets = BY_BATCH_ROUND;
}

static struct by_shell *open_shell(unsigned ports, bool lent)
{
    static char names[PORTS_MAX][32];
    static unsigned generation;
    struct by_port_spec specs[PORTS_MAX];
    struct by_shell_config config = {.name = "bench",
                                     .ports = specs,
                                     .port_count = ports,
                                     .driver = BY_DRIVER_AUTO,
                                     .slot_count = WINDOW,
                                     .payload_max = PAYLOAD,
                                     .payload_limit = PAYLOAD,
                                     .entry_count = 1,
                                     .relay_count = 1,
                                     .image_bytes_max = 1 << 16,
                                     .control_fd = -1};
    const struct star star = {
        .hosts = (uint16_t)ports, .trees = 1, .window = WINDOW, .payload_max = PAYLOAD, .mtu = 1500};
    struct by_image_fault fault = {0};
    struct by_shell *shell;
    size_t bytes;
    uint8_t *image = star_image(&star, &bytes);

    generation++;
    for (unsigned i = 0; i < ports; i++) {
        snprintf(names[i], sizeof names[i], "net_ring_%u_%u", generation, i);
        specs[i] = (struct by_port_spec){.kind = BY_PORT_VDEV, .text = names[i]};
    }
    if (by_shell_open(&shell, &config) != 0)
        fail("the shell");
    if (lent)
        lend_all(shell, &config);
    if (by_engine_stage(by_shell_engine(shell), image, bytes, &fault) != 0 || by_shell_commit(shell) != 0)
        fail("the shell");
    free(image);
    return shell;
}

/* Puts BATCH frames from `first` on where port `host` will receive them; credits if `bytes` is that
 * of a header. */
static void inject(struct by_shell *shell, unsigned host, uint32_t first, const uint8_t *frame,
                   uint16_t bytes)
{
    struct rte_mbuf *frames[BATCH];

    if (rte_pktmbuf_alloc_bulk(shell->frame_pool, frames, BATCH) != 0)
        fail("a buffer");
    for (uint32_t i = 0; i < BATCH; i++) {
        uint8_t *data = rte_pktmbuf_mtod(frames[i], uint8_t *);

        memcpy(data, frame, bytes);
        by_put32(data + BY_FRAME_HEADER_BYTES + 12, first + i);
        star_retag(data + BY_FRAME_HEADER_BYTES);
        frames[i]->data_len = bytes;
        frames[i]->pkt_len = bytes;
    }
    if (rte_eth_tx_burst(shell->ports[host].id, 0, frames, BATCH) != BATCH)
        fail("a memory port");
}

/* Removes the frames that a port has sent; returns their number. */
static unsigned drain(struct by_shell *shell, unsigned host)
{
    struct rte_mbuf *frames[2 * BATCH];
    unsigned count = rte_eth_rx_burst(shell->ports[host].id, 0, frames, 2 * BATCH);

    rte_pktmbuf_free_bulk(frames, count);
    return count;
}

/* The reference: testpmd's macswap. */
static void swap_round(struct by_shell *shell)
{
    for (unsigned port = 0; port < shell->port_count; port++) {
        struct rte_mbuf *frames[BATCH];
        uint16_t count = rte_eth_rx_burst(shell->ports[port].id, 0, frames, BATCH);

        for (uint16_t i = 0; i < count; i++) {
            struct rte_ether_hdr *ethernet;
            struct rte_ether_addr address;

            if (i + 1 < count)
                rte_prefetch0(rte_pktmbuf_mtod(frames[i + 1], void *));
            ethernet = rte_pktmbuf_mtod(frames[i], struct rte_ether_hdr *);
            rte_ether_addr_copy(&ethernet->dst_addr, &address);
            rte_ether_addr_copy(&ethernet->src_addr, &ethernet->dst_addr);
            rte_ether_addr_copy(&address, &ethernet->src_addr);
        }
        if (rte_eth_tx_burst(shell->ports[port].id, 0, frames, count) != count)
            fail("a memory port");
    }
}

enum shell_what { SWAP, SUM, COPY };

/* Nanoseconds per sent frame: the least of some runs. `lent`: results leave from the engine's
 * memory. */
static double measure(unsigned ports, enum shell_what what, bool lent, uint32_t times)
{
    static uint8_t packet[2048], frame[PORTS_MAX][2048];
    const struct star star = {.hosts = (uint16_t)ports, .trees = 1};
    struct by_shell *shell = open_shell(ports, lent);
    uint64_t spent = 0, sent = 0, least = UINT64_MAX;
    uint16_t bytes[PORTS_MAX];

    for (unsigned host = 0; host < ports; host++) {
        size_t size = star_contribution(&star, host, 0, 0, COUNT, packet);
        struct by_header header;
        const uint8_t *payload;

        if (what == COPY && host > 0) {
            by_header_decode(packet, size, &header, &payload);
            header.flags |= BY_FLAG_NODATA;
            header.psum = 0;
            by_header_encode(&header, packet);
            size = BY_WIRE_HEADER_BYTES;
        }
        bytes[host] = (uint16_t)star_frame(host, packet, size, frame[host]);
    }
    for (uint32_t seq = 0; seq < times * CHUNKS; seq += BATCH) {
        uint64_t begin;

        for (unsigned host = 0; host < ports; host++)
            inject(shell, host, seq, frame[host], bytes[host]);
        begin = cpu_ns();
        if (what == SWAP)
            swap_round(shell);
        else
            for (uint32_t taken = 0; taken < BATCH; taken += shell->batch.burst)
                by_shell_round(shell);
        spent += cpu_ns() - begin;
        for (unsigned host = 0; host < ports; host++)
            sent += drain(shell, host);
        sent += sunk;
        sunk = 0;
        if ((seq + BATCH) % CHUNKS == 0) {
            if (sent != (uint64_t)CHUNKS * ports)
                fail("a round");
            least = spent < least ? spent : least;
            spent = sent = 0;
        }
    }
    by_shell_close(shell);
    return (double)least / (CHUNKS * ports);
}

int main(int argc, char **argv)
{
    struct by_eal_config config = {.name = "bench", .no_huge = true};

    by_say_name("bench");
    if (by_eal_start(&config) != 0)
        fail("DPDK's start");
    if (argc >= 4) { /* PORTS sum|copy TIMES [lent]: only one of them, for a profiler */
        printf("%.1f\n", measure((unsigned)atoi(argv[1]), strcmp(argv[2], "sum") == 0 ? SUM : COPY, argc > 4,
                                 (uint32_t)atoi(argv[3])));
        by_eal_stop();
        return 0;
    }
    puts("# the switch's loop on memory ports, ns of processor time for each frame sent (1408 bytes of "
         "payload), best of 8");
    printf("# %5s %8s %8s %8s %8s %8s\n", "ports", "macswap", "sum", "copy", "lent sum", "copy");
    for (unsigned ports = 2; ports <= PORTS_MAX; ports *= 2)
        printf("  %5u %8.1f %8.1f %8.1f %8.1f %8.1f\n", ports, measure(ports, SWAP, false, TIMES),
               measure(ports, SUM, false, TIMES), measure(ports, COPY, false, TIMES),
               measure(ports, SUM, true, TIMES), measure(ports, COPY, true, TIMES));
    by_eal_stop();
    return 0;
}
