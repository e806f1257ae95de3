/*
 * bench-multicast: the reference for replication (tests/bench/switchd.sh): the loop of DPDK's
 * sample application ipv4_multicast, which Debian does not ship, written from its description in
 * DPDK's user guides. Each frame for a group goes to every port as a header in its own buffer,
 * chained to the one payload by reference count, or for up to two ports to a clone of it; other
 * frames are dropped. Ports that do not accept chains (net_af_xdp) get a copy. The group is the
 * address of the first port in the star of bench-hosts.
 *
 *   bench-multicast EAL-OPTIONS...
 *
 * Upon SIGINT or SIGTERM prints "FRAMES NANOSECONDS": frames sent, and the time of the rounds with
 * frames. One thread.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_fbk_hash.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "tests/unit/firmware/star.h"

#define BURST       32u
#define DESCRIPTORS 1024u
/* Up to this many copies of a frame are clones, as in the sample. */
#define CLONE_PORTS 2u
#define CLONE_SEGS  2u
#define PREFETCH    3u
/* Frames that wait to fill a burst are sent after this time (us). */
#define DRAIN_US 100u
#define BUFFERS  4608u
#define ROOM     (2048u + RTE_PKTMBUF_HEADROOM)

static struct {
    unsigned ports;
    bool chains;
    struct rte_mempool *packets, *headers, *clones;
    struct rte_fbk_hash_table *groups;
    struct rte_ether_addr address[STAR_HOSTS_MAX];
    uint16_t queued[STAR_HOSTS_MAX];
    struct rte_mbuf *queue[STAR_HOSTS_MAX][BURST];
    uint64_t sent;
} self;

static volatile sig_atomic_t stopping;

static void stop(int signal)
{
    stopping = signal;
}

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "bench-multicast: %s failed\n", what);
    exit(3);
}

static void drain(unsigned port)
{
    uint16_t sent = rte_eth_tx_burst((uint16_t)port, 0, self.queue[port], self.queued[port]);

    self.sent += sent;
    for (; sent < self.queued[port]; sent++)
        rte_pktmbuf_free(self.queue[port][sent]);
    self.queued[port] = 0;
}

/* Puts an Ethernet header before the frame and queues it. */
static void send_frame(struct rte_mbuf *frame, const struct rte_ether_addr *to, unsigned port)
{
    struct rte_ether_hdr *ethernet =
        (struct rte_ether_hdr *)(void *)rte_pktmbuf_prepend(frame, (uint16_t)sizeof *ethernet);

    rte_ether_addr_copy(to, &ethernet->dst_addr);
    rte_ether_addr_copy(&self.address[port], &ethernet->src_addr);
    ethernet->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
    self.queue[port][self.queued[port]++] = frame;
    if (self.queued[port] == BURST)
        drain(port);
}

/* Returns another frame with the payload of `frame`; NULL if no buffer is free. */
static struct rte_mbuf *another(struct rte_mbuf *frame, bool clone)
{
    struct rte_mbuf *header;

    if (!self.chains)
        return rte_pktmbuf_copy(frame, self.packets, 0, UINT32_MAX);
    header = rte_pktmbuf_alloc(self.headers);
    if (!header)
        return NULL;
    if (clone) {
        frame = rte_pktmbuf_clone(frame, self.clones);
        if (!frame) {
            rte_pktmbuf_free(header);
            return NULL;
        }
    }
    header->next = frame;
    header->pkt_len = header->data_len + frame->pkt_len;
    header->nb_segs = (uint16_t)(frame->nb_segs + 1);
    return header;
}

static void forward(struct rte_mbuf *frame)
{
    const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(const void *)rte_pktmbuf_adj(
        frame, (uint16_t)sizeof(struct rte_ether_hdr));
    uint32_t group = ip ? rte_be_to_cpu_32(ip->dst_addr) : 0;
    int32_t mask = ip ? rte_fbk_hash_lookup(self.groups, group) : -1;
    struct rte_ether_addr to = {
        .addr_bytes = {0x01, 0x00, 0x5e, group >> 16 & 0x7f, group >> 8 & 0xff, group & 0xff}};
    unsigned port = 0;
    bool clone;

    if (mask <= 0) {
        rte_pktmbuf_free(frame);
        return;
    }
    clone = !self.chains ||
            ((unsigned)__builtin_popcount((unsigned)mask) <= CLONE_PORTS && frame->nb_segs <= CLONE_SEGS);
    if (!clone)
        rte_pktmbuf_refcnt_update(frame, (int16_t)__builtin_popcount((unsigned)mask));
    for (; mask != (clone ? 1 : 0); mask >>= 1, port++) {
        struct rte_mbuf *copy = mask & 1 ? another(frame, clone) : NULL;

        if (copy)
            send_frame(copy, &to, port);
        else if (!clone && (mask & 1))
            rte_pktmbuf_free(frame);
    }
    /* Clones share the payload with the frame itself, which is the last copy. */
    if (clone)
        send_frame(frame, &to, port);
    else
        rte_pktmbuf_free(frame);
}

/* Takes one burst of a port; returns the number of frames. */
static unsigned serve(unsigned port)
{
    struct rte_mbuf *frames[BURST];
    unsigned count = rte_eth_rx_burst((uint16_t)port, 0, frames, BURST);

    for (unsigned i = 0; i < count && i < PREFETCH; i++)
        rte_prefetch0(rte_pktmbuf_mtod(frames[i], void *));
    for (unsigned i = 0; i < count; i++) {
        if (i + PREFETCH < count)
            rte_prefetch0(rte_pktmbuf_mtod(frames[i + PREFETCH], void *));
        forward(frames[i]);
    }
    return count;
}

static void open_ports(void)
{
    struct rte_fbk_hash_params parameters = {.name = "groups", .entries = 1024, .entries_per_bucket = 4};
    struct rte_eth_dev_info info;

    self.packets = rte_pktmbuf_pool_create("packets", BUFFERS * self.ports, 256, 0, ROOM, SOCKET_ID_ANY);
    self.headers = rte_pktmbuf_pool_create("headers", 8192, 256, 0, 2 * RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
    self.clones = rte_pktmbuf_pool_create("clones", 8192, 256, 0, 0, SOCKET_ID_ANY);
    self.groups = rte_fbk_hash_create(&parameters);
    if (!self.packets || !self.headers || !self.clones || !self.groups)
        fail("the pools and the groups");
    if (rte_fbk_hash_add_key(self.groups, star_port_ip(0), (uint16_t)((1u << self.ports) - 1)) != 0)
        fail("the group");
    self.chains = true;
    for (unsigned port = 0; port < self.ports; port++) {
        struct rte_eth_conf config = {0};
        uint16_t rx = DESCRIPTORS, tx = DESCRIPTORS;

        if (rte_eth_dev_info_get((uint16_t)port, &info) != 0)
            fail("a port");
        config.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
        self.chains = self.chains && config.txmode.offloads != 0;
        if (rte_eth_dev_configure((uint16_t)port, 1, 1, &config) != 0 ||
            rte_eth_dev_adjust_nb_rx_tx_desc((uint16_t)port, &rx, &tx) != 0 ||
            rte_eth_rx_queue_setup((uint16_t)port, 0, rx, SOCKET_ID_ANY, NULL, self.packets) != 0 ||
            rte_eth_tx_queue_setup((uint16_t)port, 0, tx, SOCKET_ID_ANY, NULL) != 0 ||
            rte_eth_macaddr_get((uint16_t)port, &self.address[port]) != 0 ||
            rte_eth_dev_start((uint16_t)port) != 0)
            fail("a port");
        rte_eth_promiscuous_enable((uint16_t)port);
    }
}

int main(int argc, char **argv)
{
    uint64_t busy = 0, now, drained = 0, drain_every;

    if (rte_eal_init(argc, argv) < 0)
        fail("DPDK's start");
    self.ports = rte_eth_dev_count_avail();
    if (self.ports == 0 || self.ports > 15)
        fail("1 to 15 ports");
    open_ports();
    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    puts("bench-multicast: ready");
    fflush(stdout);
    drain_every = rte_get_tsc_hz() / 1000000 * DRAIN_US;
    now = rte_get_tsc_cycles();
    while (!stopping) {
        unsigned came = 0;
        uint64_t then = now;

        if (now - drained > drain_every) {
            for (unsigned port = 0; port < self.ports; port++)
                if (self.queued[port])
                    drain(port);
            drained = now;
        }
        for (unsigned port = 0; port < self.ports; port++)
            came += serve(port);
        now = rte_get_tsc_cycles();
        if (came > 0)
            busy += now - then;
    }
    printf("%" PRIu64 " %.0f\n", self.sent, (double)busy * 1e9 / (double)rte_get_tsc_hz());
    for (unsigned port = 0; port < self.ports; port++)
        rte_eth_dev_stop((uint16_t)port);
    rte_eal_cleanup();
    return 0;
}
