/*
 * bench-hosts: the hosts of a star on DPDK ports, as load for a program in the middle:
 * banyan-switchd, dpdk-testpmd or bench-multicast (tests/bench/switchd.sh). A window of chunks is
 * in flight; a chunk is complete when each host has received one frame of it. Frames are built
 * once, and only their seq is written for each transmission, so that the load costs less than what
 * it measures. One thread.
 *
 *   bench-hosts EAL-OPTIONS... -- sum|copy|fan SECONDS WINDOW COUNT
 *
 * sum: all hosts send data. copy: host 0 sends data, the others credits. fan: only host 0 sends.
 * COUNT: i32 elements of a chunk. Prints "FRAMES_PER_SECOND IDLE_PERCENT RESENT WRONG": frames that
 * came back; the part of the time without work (if it is small, the load was at its limit, and the
 * program in the middle perhaps not); retransmitted chunks; wrong results.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "offload/base/bytes.h"
#include "tests/unit/firmware/star.h"

#define BATCH       32u
#define WINDOW_MAX  1024u
#define DESCRIPTORS 1024u
/* Buffers of a host's pool, and of the pool into which all receive (count). */
#define SEND_BUFFERS    2048u
#define RECEIVE_BUFFERS 5120u
#define BUFFER_ROOM     2048u
#define AT_BANYAN       BY_FRAME_HEADER_BYTES
#define AT_SEQ          (BY_FRAME_HEADER_BYTES + 12)
#define AT_PAYLOAD      (BY_FRAME_HEADER_BYTES + BY_WIRE_HEADER_BYTES)
/* Without progress for RESEND_MS the oldest chunk is retransmitted. The first results
 * may take START_S, until the other program runs. */
#define RESEND_MS 20u
#define START_S   15u
/* One result in this many is checked. */
#define LOOK_EVERY 64u

enum traffic { SUM, COPY, FAN };

static struct {
    struct star star;
    enum traffic traffic;
    uint32_t window;
    uint16_t count; /* elements */
    uint32_t next, oldest;
    uint32_t missing[WINDOW_MAX]; /* hosts that have not received their frame of the chunk */
    struct rte_mempool *pool[STAR_HOSTS_MAX];
    uint64_t came, resent, wrong, idle, moved;
} load;

static volatile sig_atomic_t stopping;

static void stop(int signal)
{
    stopping = signal;
}

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "bench-hosts: %s failed\n", what);
    exit(3);
}

/* A buffer of a host's pool always holds that host's frame; only the seq changes. */
static void fill(struct rte_mempool *pool, void *opaque, void *object, unsigned index)
{
    static uint8_t packet[BUFFER_ROOM];
    struct rte_mbuf *mbuf = object;
    unsigned host = *(unsigned *)opaque;
    size_t bytes = star_contribution(&load.star, host, 0, 0, load.count, packet);

    (void)pool;
    (void)index;
    if (load.traffic == COPY && host > 0) {
        struct by_header header;
        const uint8_t *payload;

        by_header_decode(packet, bytes, &header, &payload);
        header.flags |= BY_FLAG_NODATA;
        header.psum = 0;
        by_header_encode(&header, packet);
        bytes = BY_WIRE_HEADER_BYTES;
    }
    mbuf->data_off = RTE_PKTMBUF_HEADROOM;
    star_frame(host, packet, bytes, rte_pktmbuf_mtod(mbuf, uint8_t *));
}

static uint16_t frame_bytes(unsigned host)
{
    uint32_t payload = load.traffic == COPY && host > 0 ? 0 : 4u * load.count;

    return (uint16_t)(AT_PAYLOAD + payload);
}

static void open_port(unsigned host, struct rte_mempool *receive)
{
    struct rte_eth_conf config = {0};
    uint16_t rx = DESCRIPTORS, tx = DESCRIPTORS;
    char name[32];

    snprintf(name, sizeof name, "host%u", host);
    load.pool[host] = rte_pktmbuf_pool_create(name, SEND_BUFFERS, 256, 0, BUFFER_ROOM + RTE_PKTMBUF_HEADROOM,
                                              SOCKET_ID_ANY);
    if (!load.pool[host])
        fail("the pool of a host");
    rte_mempool_obj_iter(load.pool[host], fill, &host);
    if (rte_eth_dev_configure((uint16_t)host, 1, 1, &config) != 0 ||
        rte_eth_dev_adjust_nb_rx_tx_desc((uint16_t)host, &rx, &tx) != 0 ||
        rte_eth_rx_queue_setup((uint16_t)host, 0, rx, SOCKET_ID_ANY, NULL, receive) != 0 ||
        rte_eth_tx_queue_setup((uint16_t)host, 0, tx, SOCKET_ID_ANY, NULL) != 0 ||
        rte_eth_dev_start((uint16_t)host) != 0)
        fail("a port");
    rte_eth_promiscuous_enable((uint16_t)host);
}

static void send_chunks(unsigned host, uint32_t first, uint32_t count)
{
    struct rte_mbuf *frames[BATCH];
    uint32_t sent = 0;

    if (load.traffic == FAN && host > 0)
        return;
    if (rte_pktmbuf_alloc_bulk(load.pool[host], frames, count) != 0)
        return; /* retransmitted in time */
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *data = rte_pktmbuf_mtod(frames[i], uint8_t *);

        by_put32(data + AT_SEQ, first + i);
        star_retag(data + AT_BANYAN);
        frames[i]->data_len = frame_bytes(host);
        frames[i]->pkt_len = frames[i]->data_len;
    }
    for (unsigned tries = 0; sent < count && tries < 1000; tries++)
        sent += rte_eth_tx_burst((uint16_t)host, 0, frames + sent, (uint16_t)(count - sent));
    if (sent < count)
        rte_pktmbuf_free_bulk(frames + sent, count - sent);
}

/* Element k of the result, if there is one: the frames hold what star_contribution writes for
 * seq 0. */
static void look(const struct rte_mbuf *frame, uint32_t seq)
{
    const uint8_t *data = rte_pktmbuf_mtod(frame, const uint8_t *);
    unsigned k = seq / LOOK_EVERY % load.count;
    int32_t value;

    if (data[AT_BANYAN + 1] != BY_TYPE_RESULT)
        return;
    memcpy(&value, data + AT_PAYLOAD + 4 * k, 4);
    load.wrong += value != (load.traffic == SUM ? star_sum(&load.star, 0, k) : (int32_t)k);
}

/* Takes a frame that arrived at `host`. */
static void take(unsigned host, const struct rte_mbuf *frame)
{
    const uint8_t *data = rte_pktmbuf_mtod(frame, const uint8_t *);
    uint32_t seq = by_get32(data + AT_SEQ);
    uint32_t *missing = &load.missing[seq % load.window];

    if (frame->data_len < AT_PAYLOAD || data[AT_BANYAN + 1] > BY_TYPE_RESULT ||
        seq - load.oldest >= load.window || !(*missing >> host & 1))
        return;
    *missing &= ~(1u << host);
    load.came++;
    if (seq % LOOK_EVERY == 0)
        look(frame, seq);
}

static unsigned receive_all(void)
{
    unsigned received = 0;

    for (unsigned host = 0; host < load.star.hosts; host++) {
        struct rte_mbuf *frames[BATCH];
        uint16_t count = rte_eth_rx_burst((uint16_t)host, 0, frames, BATCH);

        for (uint16_t i = 0; i < count; i++)
            rte_prefetch0(rte_pktmbuf_mtod(frames[i], uint8_t *) + AT_BANYAN);
        for (uint16_t i = 0; i < count; i++)
            take(host, frames[i]);
        rte_pktmbuf_free_bulk(frames, count);
        received += count;
    }
    return received;
}

/* Sends what the window allows; returns true if it has sent anything. */
static bool send_all(uint64_t now)
{
    uint32_t before = load.oldest, all = UINT32_MAX >> (32 - load.star.hosts);

    while (load.oldest != load.next && load.missing[load.oldest % load.window] == 0)
        load.oldest++;
    if (load.oldest != before || load.oldest == load.next)
        load.moved = now;
    if (load.window - (load.next - load.oldest) >= BATCH) {
        for (uint32_t i = 0; i < BATCH; i++)
            load.missing[(load.next + i) % load.window] = all;
        for (unsigned host = 0; host < load.star.hosts; host++)
            send_chunks(host, load.next, BATCH);
        load.next += BATCH;
        return true;
    }
    if (now - load.moved > rte_get_tsc_hz() / 1000 * RESEND_MS) {
        for (unsigned host = 0; host < load.star.hosts; host++)
            send_chunks(host, load.oldest, 1);
        load.moved = now;
        load.resent++;
    }
    return false;
}

/* Runs until `until`, or until a chunk beyond `chunk` is complete. */
static void run(uint64_t until, uint32_t chunk)
{
    uint64_t now = rte_get_tsc_cycles();

    while (!stopping && now < until && load.oldest < chunk) {
        bool busy = receive_all() > 0;
        uint64_t then = now;

        busy = send_all(now) || busy;
        now = rte_get_tsc_cycles();
        if (!busy)
            load.idle += now - then;
    }
}

static int measure(unsigned seconds)
{
    uint64_t hz = rte_get_tsc_hz(), begin = rte_get_tsc_cycles();
    double took;

    load.moved = begin;
    run(begin + START_S * hz, 2 * load.window);
    if (load.oldest == 0) {
        fprintf(stderr, "bench-hosts: nothing came back within %u s\n", START_S);
        return 3;
    }
    load.came = load.resent = load.idle = 0;
    begin = rte_get_tsc_cycles();
    run(begin + seconds * hz, UINT32_MAX);
    took = (double)(rte_get_tsc_cycles() - begin);
    printf("%.0f %.0f %" PRIu64 " %" PRIu64 "\n", (double)load.came * (double)hz / took,
           100.0 * (double)load.idle / took, load.resent, load.wrong);
    return load.wrong > 0;
}

int main(int argc, char **argv)
{
    int used = rte_eal_init(argc, argv), result;
    struct rte_mempool *receive;

    if (used < 0)
        fail("DPDK's start");
    argc -= used;
    argv += used;
    load.star = (struct star){.hosts = rte_eth_dev_count_avail(), .trees = 1};
    if (argc != 5 || load.star.hosts == 0 || load.star.hosts > STAR_HOSTS_MAX) {
        fputs("usage: bench-hosts EAL-OPTIONS -- sum|copy|fan SECONDS WINDOW COUNT\n", stderr);
        return 2;
    }
    load.traffic = argv[1][0] == 's' ? SUM : argv[1][0] == 'c' ? COPY : FAN;
    load.window = (uint32_t)atoi(argv[3]);
    load.count = (uint16_t)atoi(argv[4]);
    if (load.window < BATCH || load.window > WINDOW_MAX || (load.window & (load.window - 1)) != 0 ||
        load.count == 0 || AT_PAYLOAD + 4u * load.count > BUFFER_ROOM) {
        fprintf(stderr,
                "bench-hosts: WINDOW: a power of two from %u to %u; COUNT: a frame of at most %u bytes\n",
                BATCH, WINDOW_MAX, BUFFER_ROOM);
        return 2;
    }
    receive = rte_pktmbuf_pool_create("receive", RECEIVE_BUFFERS * load.star.hosts, 256, 0,
                                      BUFFER_ROOM + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
    if (!receive)
        fail("the pool to receive into");
    for (unsigned host = 0; host < load.star.hosts; host++)
        open_port(host, receive);
    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    result = measure((unsigned)atoi(argv[2]));
    for (unsigned host = 0; host < load.star.hosts; host++)
        rte_eth_dev_stop((uint16_t)host);
    rte_eal_cleanup();
    return result;
}
