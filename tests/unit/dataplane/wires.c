/* Implements wires.h. */
#include "tests/unit/dataplane/wires.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_lcore.h>
#include <rte_mempool.h>

#include "dataplane/port_steer.h"
#include "offload/base/bytes.h"
#include "offload/reduce/reduce.h"

/* Frames of one wire and direction (count). */
#define FRAMES 4096u
/* The hosts repair what has not come back for this long (ns). */
#define REPAIR_NS 5000000u
/* Credits of one datagram (count): more than the chunks of a lane, so that some have several
 * workers. */
#define CREDITS 12u

/* The queues of a port in both directions, and its DPDK device, which moves nothing. */
struct wires_wire {
    struct rte_ring *to_switch[BY_WORKERS_MAX], *from_switch[BY_WORKERS_MAX];
    unsigned queues;
    const struct by_port_ops *device;
};

static struct wires_wire wire[BY_PORTS_MAX];

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "wires: %s failed\n", what);
    abort();
}

static uint64_t clock_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

#ifdef __SANITIZE_THREAD__
/*
 * DPDK's library is not instrumented, so ThreadSanitizer does not see that its pools order the uses
 * of a buffer by two threads. A lock around their functions shows it.
 */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static rte_mempool_enqueue_t pool_enqueue;
static rte_mempool_dequeue_t pool_dequeue;

static int locked_enqueue(struct rte_mempool *pool, void *const *objects, unsigned count)
{
    int result;

    pthread_mutex_lock(&pool_lock);
    result = pool_enqueue(pool, objects, count);
    pthread_mutex_unlock(&pool_lock);
    return result;
}

static int locked_dequeue(struct rte_mempool *pool, void **objects, unsigned count)
{
    int result;

    pthread_mutex_lock(&pool_lock);
    result = pool_dequeue(pool, objects, count);
    pthread_mutex_unlock(&pool_lock);
    return result;
}

static void lock_pools(void)
{
    for (unsigned i = 0; i < rte_mempool_ops_table.num_ops; i++) {
        struct rte_mempool_ops *ops = &rte_mempool_ops_table.ops[i];

        if (strcmp(ops->name, "ring_mp_mc") != 0 || ops->enqueue == locked_enqueue)
            continue;
        pool_enqueue = ops->enqueue;
        pool_dequeue = ops->dequeue;
        ops->enqueue = locked_enqueue;
        ops->dequeue = locked_dequeue;
    }
}
#else
static void lock_pools(void)
{
}
#endif

/* ---- ports ---- */

static uint16_t wire_receive(struct by_port *port, struct rte_mbuf **frames, uint16_t count)
{
    return (uint16_t)rte_ring_sc_dequeue_burst(wire[port->index].to_switch[port->lane_queue], (void **)frames,
                                               count, NULL);
}

static uint16_t wire_send(struct by_port *port, struct rte_mbuf **frames, uint16_t count)
{
    return (uint16_t)rte_ring_sp_enqueue_burst(wire[port->index].from_switch[port->lane_queue],
                                               (void **)frames, count, NULL);
}

static bool wire_settle(struct by_port *port)
{
    (void)port;
    return true;
}

static void wire_count(struct by_port *port, struct by_dp_port_counters *counters)
{
    (void)port;
    (void)counters;
}

static bool wire_is_down(const struct by_port *port)
{
    (void)port;
    return false;
}

static void wire_close(struct by_port *port)
{
    if (port->started)
        wire[port->index].device->close(port);
}

static const struct by_port_ops wire_ops = {.start = NULL,
                                            .receive = wire_receive,
                                            .send = wire_send,
                                            .flush = NULL,
                                            .is_crowded = NULL,
                                            .settle = wire_settle,
                                            .count = wire_count,
                                            .is_down = wire_is_down,
                                            .close = wire_close};

static struct rte_ring *make_ring(void)
{
    struct rte_ring *ring = aligned_alloc(64, ((size_t)rte_ring_get_memsize(FRAMES) + 63) / 64 * 64);

    if (!ring || rte_ring_init(ring, "wire", FRAMES, RING_F_SP_ENQ | RING_F_SC_DEQ) != 0)
        fail("a ring");
    return ring;
}

static void lay_wires(struct by_shell *shell)
{
    for (unsigned i = 0; i < shell->port_count; i++) {
        struct by_port *port = by_shell_port(shell, i);

        wire[i] = (struct wires_wire){.queues = port->rx_queues, .device = port->ops};
        for (unsigned queue = 0; queue < wire[i].queues; queue++) {
            wire[i].to_switch[queue] = make_ring();
            wire[i].from_switch[queue] = make_ring();
        }
        port->ops = &wire_ops;
        for (unsigned w = 0; w < by_shell_worker_count(shell) && wire[i].queues > 1; w++)
            shell->workers->worker[w].shell->ports[i].ops = &wire_ops;
    }
    if (shell->workers)
        by_workers_release(shell->workers);
}

void wires_open(struct wires *wires, const struct star *star, unsigned workers, bool queues,
                const struct by_fault *fault)
{
    static char names[BY_PORTS_MAX][32];
    static unsigned generation;
    struct by_port_spec specs[BY_PORTS_MAX];
    struct by_shell_config config = {.name = "wires",
                                     .ports = specs,
                                     .port_count = star->hosts,
                                     .driver = BY_DRIVER_AUTO,
                                     .slot_count = (uint32_t)star->trees * star->window,
                                     .payload_max = star->payload_max,
                                     .entry_count = star->trees,
                                     .relay_count = 1,
                                     .image_bytes_max = 1 << 20,
                                     .worker_count = workers,
                                     .one_queue = !queues,
                                     .control_fd = -1};

    lock_pools();
    memset(wires, 0, sizeof *wires);
    wires->star = *star;
    wires->count = (uint16_t)(star->payload_max / 4);
    wires->flight = star->window;
    if (fault)
        config.fault = *fault;
    generation++;
    for (unsigned i = 0; i < star->hosts; i++) {
        snprintf(names[i], sizeof names[i], "net_null_%u_%u", generation, i);
        specs[i] = (struct by_port_spec){.kind = BY_PORT_VDEV, .text = names[i]};
    }
    if (by_shell_open(&wires->shell, &config) != 0)
        fail("the switch");
    lay_wires(wires->shell);
    /* These ports take chains. A switch with one worker frees them in its own thread, not in that
     * of the hosts. */
    for (unsigned i = 0; i < star->hosts && workers > 1; i++)
        for (unsigned w = 0; w < workers; w++)
            wires->shell->workers->worker[w].shell->ports[i].multi_segs = true;
}

/* ---- the switch's thread ---- */

static void *run_switch(void *shell)
{
    rte_thread_register();
    by_shell_run(shell);
    rte_thread_unregister();
    return NULL;
}

void wires_start(struct wires *wires)
{
    if (pthread_create(&wires->thread, NULL, run_switch, wires->shell) != 0)
        fail("a thread");
}

void wires_stop(struct wires *wires)
{
    by_shell_stop(wires->shell);
    pthread_join(wires->thread, NULL);
}

void wires_close(struct wires *wires)
{
    unsigned ports = wires->shell->port_count;
    struct rte_mbuf *frame;

    for (unsigned i = 0; i < ports; i++)
        for (unsigned queue = 0; queue < wire[i].queues; queue++) {
            while (rte_ring_sc_dequeue(wire[i].to_switch[queue], (void **)&frame) == 0)
                rte_pktmbuf_free(frame);
            while (rte_ring_sc_dequeue(wire[i].from_switch[queue], (void **)&frame) == 0)
                rte_pktmbuf_free(frame);
        }
    by_shell_close(wires->shell);
    for (unsigned i = 0; i < ports; i++)
        for (unsigned queue = 0; queue < wire[i].queues; queue++) {
            free(wire[i].to_switch[queue]);
            free(wire[i].from_switch[queue]);
        }
}

void wires_ask(const struct wires *wires, void (*function)(void *context), void *context)
{
    if (!by_handoff_call(&wires->shell->handoff, function, context))
        fail("the switch's answer");
}

struct wires_table {
    struct by_shell *shell;
    uint8_t *image;
    size_t bytes;
    uint64_t ns;
};

/* The workers stand still from the commit until the loop has served the request. */
static void load(void *context)
{
    struct wires_table *table = context;
    struct by_image_fault fault = {0};
    uint64_t begin;

    if (by_shell_stage(table->shell, table->image, table->bytes, &fault) != 0)
        fail(fault.what ? fault.what : "a table");
    begin = clock_ns();
    if (by_shell_commit(table->shell) != 0)
        fail("a commit");
    if (table->shell->workers)
        by_workers_release(table->shell->workers);
    table->ns = clock_ns() - begin;
}

/* Has the switch learn the hosts' MAC addresses. */
static void forget_macs(uint8_t *image, unsigned hosts)
{
    for (unsigned i = 0; i < hosts; i++) {
        struct by_image_port port;

        by_image_port(image, i, &port);
        memset(port.peer_mac, 0, sizeof port.peer_mac);
        by_image_put_port(image, i, &port);
    }
}

/* Gives the job its share of the ports. */
static void put_share(uint8_t *image, unsigned hosts, uint32_t rate)
{
    struct by_image_job job;

    by_image_job(image, 0, &job);
    job.share = BY_SHARE_ONE / 2;
    by_image_put_job(image, 0, &job);
    for (unsigned i = 0; i < hosts; i++) {
        struct by_image_port port;

        by_image_port(image, i, &port);
        port.rate_in = port.rate_out = rate;
        by_image_put_port(image, i, &port);
    }
}

uint64_t wires_push(const struct wires *wires, uint16_t gen)
{
    struct wires_table table = {.shell = wires->shell};
    struct by_image_job job;

    table.image = star_image(&wires->star, &table.bytes);
    by_image_job(table.image, 0, &job);
    job.gen = gen;
    by_image_put_job(table.image, 0, &job);
    if (wires->learned)
        forget_macs(table.image, wires->star.hosts);
    if (wires->rate > 0)
        put_share(table.image, wires->star.hosts, wires->rate);
    by_image_seal(table.image);
    if (wires->thread)
        wires_ask(wires, load, &table);
    else
        load(&table);
    free(table.image);
    return table.ns;
}

void wires_renew(struct wires *wires, uint16_t gen)
{
    if (gen != wires->gen)
        memset(wires->tree, 0, sizeof wires->tree);
    wires->gen = gen;
}

uint64_t wires_load(struct wires *wires, uint16_t gen)
{
    uint64_t ns = wires_push(wires, gen);

    wires_renew(wires, gen);
    return ns;
}

/* ---- hosts ---- */

/* Puts a frame on the wire of a host, which frees it if there is no room. */
static void put_frame(unsigned host, unsigned queue, struct rte_mbuf *frame)
{
    frame->pkt_len = frame->data_len;
    if (rte_ring_sp_enqueue(wire[host].to_switch[queue], frame) != 0)
        rte_pktmbuf_free(frame);
}

/* The queue of a frame: a card's RSS looks at the low bits of the source port. A stray frame is in
 * any other one. */
static unsigned queue_of(struct wires *wires, unsigned host, const uint8_t *frame)
{
    unsigned port = by_get16(frame + BY_FRAME_AT_UDP), queue = 0;

    if (wires->strays)
        return (unsigned)(by_prng_next(&wires->prng) % wire[host].queues);
    if (wire[host].queues > 1 && port & BY_LANE_PORT)
        queue =
            by_steer_queue(host, by_lane_worker(port % BY_LANE_PORT, wire[host].queues), wire[host].queues);
    return queue;
}

/* Puts a packet of `bytes` bytes on the wire of a host. */
static void put(struct wires *wires, unsigned host, const uint8_t *packet, size_t bytes)
{
    struct rte_mbuf *frame = rte_pktmbuf_alloc(wires->shell->frame_pool);
    uint8_t *data;

    if (!frame)
        return; /* lost: the hosts repair it */
    data = rte_pktmbuf_mtod(frame, uint8_t *);
    frame->data_len = (uint16_t)star_frame(host, packet, bytes, data);
    by_put16(data + BY_FRAME_AT_UDP,
             by_lane_port(by_get32(packet + BY_HEADER_AT_JOB), by_get32(packet + BY_HEADER_AT_SEQ)));
    put_frame(host, queue_of(wires, host, data), frame);
}

/* Answers the switch's question for a host's MAC address. */
static void answer(struct wires *wires, unsigned host, const uint8_t *question, size_t bytes)
{
    struct rte_mbuf *frame = rte_pktmbuf_alloc(wires->shell->frame_pool);
    uint8_t mac[BY_MAC_BYTES];

    if (!frame)
        return; /* it asks again */
    star_mac(star_host_ip(host), mac);
    frame->data_len =
        (uint16_t)by_arp_reply(question, bytes, star_host_ip(host), mac, rte_pktmbuf_mtod(frame, uint8_t *));
    if (frame->data_len > 0)
        put_frame(host, wires->strays ? (unsigned)(by_prng_next(&wires->prng) % wire[host].queues) : 0,
                  frame);
    else
        rte_pktmbuf_free(frame);
}

/* The values of each generation differ, so that a sum over two of them is wrong. */
static uint32_t shift_of(uint16_t gen)
{
    return 7919u * gen;
}

static size_t make(struct wires *wires, unsigned host, uint16_t tree, uint32_t seq, uint8_t *packet)
{
    size_t bytes =
        star_contribution(&wires->star, host, tree, seq + shift_of(wires->gen), wires->count, packet);

    by_put32(packet + BY_HEADER_AT_SEQ, seq);
    by_put16(packet + BY_HEADER_AT_GEN, wires->gen);
    if (wires->credits >> host & 1) {
        packet[BY_HEADER_AT_FLAGS] |= BY_FLAG_NODATA;
        by_put32(packet + BY_HEADER_AT_PSUM, 0);
        bytes = BY_WIRE_HEADER_BYTES;
    }
    star_retag(packet);
    return bytes;
}

/* Sends a host's contributions to chunks `first` up to `end` that have no result yet. */
static void contribute(struct wires *wires, unsigned host, uint16_t tree, uint32_t first, uint32_t end)
{
    uint8_t packet[CREDITS * BY_WIRE_HEADER_BYTES + 4 * WIRES_COUNT_MAX];
    size_t gathered = 0;

    for (uint32_t seq = first; seq != end; seq++) {
        if (wires->tree[tree].got[seq % wires->star.window] >> host & 1)
            continue;
        if (!(wires->credits >> host & 1)) {
            put(wires, host, packet, make(wires, host, tree, seq, packet));
            continue;
        }
        gathered += make(wires, host, tree, seq, packet + gathered);
        if (gathered == CREDITS * BY_WIRE_HEADER_BYTES) {
            put(wires, host, packet, gathered);
            gathered = 0;
        }
    }
    if (gathered > 0)
        put(wires, host, packet, gathered);
}

/* The sum of element k of a chunk, over the hosts that send data. */
static int32_t sum_of(const struct wires *wires, const struct by_header *header, unsigned k)
{
    int32_t sum = 0;

    for (unsigned host = 0; host < wires->star.hosts; host++)
        if (!(wires->credits >> host & 1))
            sum += (int32_t)(1000 * host + header->seq + shift_of(header->gen) + k);
    return sum;
}

static void take_result(struct wires *wires, unsigned host, const struct by_header *header,
                        const uint8_t *payload, int32_t bytes)
{
    struct wires_tree *tree = &wires->tree[header->tree];
    uint32_t *got = &tree->got[header->seq % wires->star.window];
    bool right = bytes == 4 * wires->count && header->nleaf == wires->star.hosts;

    for (unsigned k = 0; k < wires->count && right; k++) {
        int32_t value;

        memcpy(&value, payload + 4 * k, sizeof value);
        right = value == sum_of(wires, header, k);
    }
    wires->wrong += !right;
    wires->late += header->gen != wires->gen;
    if (header->gen != wires->gen || header->seq - tree->done >= tree->sent - tree->done || *got >> host & 1)
        return; /* late, or a repetition */
    wires->results++;
    *got |= UINT32_C(1) << host;
}

static void take(struct wires *wires, unsigned host, struct rte_mbuf *frame)
{
    uint8_t room[BY_PORT_FRAME_OVERHEAD + 4 * WIRES_COUNT_MAX + 64];
    const uint8_t *whole =
        frame->pkt_len <= sizeof room ? rte_pktmbuf_read(frame, 0, frame->pkt_len, room) : NULL;
    struct by_frame fields;
    struct by_header header;
    uint8_t mac[BY_MAC_BYTES];
    const uint8_t *payload;
    int32_t bytes;

    if (whole && wires->learned && by_get16(whole + BY_FRAME_AT_TYPE) == RTE_ETHER_TYPE_ARP) {
        answer(wires, host, whole, frame->pkt_len);
        return;
    }
    if (!whole || by_frame_parse(whole, frame->pkt_len, &fields) != 0)
        fail("a frame from the switch");
    star_mac(star_host_ip(host), mac);
    wires->wrong += memcmp(mac, fields.dst_mac, sizeof mac) != 0;
    bytes = by_header_decode(fields.data, fields.bytes, &header, &payload);
    if (bytes < 0 || by_psum(payload, (uint32_t)bytes) != header.psum)
        wires->wrong++; /* nothing between the switch and here damages frames */
    else if (header.type == BY_TYPE_RESULT && header.tree < wires->star.trees)
        take_result(wires, host, &header, payload, bytes);
}

struct rte_ring *wires_ring(unsigned port, unsigned queue, bool to_switch)
{
    return to_switch ? wire[port].to_switch[queue] : wire[port].from_switch[queue];
}

static bool receive_from(struct wires *wires, unsigned host, struct rte_ring *ring)
{
    struct rte_mbuf *frames[64];
    unsigned count = rte_ring_sc_dequeue_burst(ring, (void **)frames, 64, NULL);

    for (unsigned i = 0; i < count; i++)
        if (wires->loss == 0 || (double)(by_prng_next(&wires->prng) >> 11) * 0x1p-53 >= wires->loss)
            take(wires, host, frames[i]);
    rte_pktmbuf_free_bulk(frames, count);
    return count > 0;
}

/* Takes some of what the switch has sent; false if there was nothing. */
static bool receive_some(struct wires *wires)
{
    bool any = false;

    for (unsigned host = 0; host < wires->star.hosts; host++)
        for (unsigned queue = 0; queue < wire[host].queues; queue++)
            any = receive_from(wires, host, wire[host].from_switch[queue]) || any;
    return any;
}

/* Sends what a tree's window allows; returns whether all of its chunks are done. */
static bool advance(struct wires *wires, uint16_t number, uint32_t chunks)
{
    struct wires_tree *tree = &wires->tree[number];
    uint32_t all = (uint32_t)((UINT64_C(1) << wires->star.hosts) - 1), end;

    while (tree->done != tree->sent && tree->got[tree->done % wires->star.window] == all)
        tree->done++;
    end = tree->done + wires->flight < chunks ? tree->done + wires->flight : chunks;
    if (end > tree->sent) {
        uint32_t first = tree->sent;

        for (uint32_t seq = first; seq != end; seq++)
            tree->got[seq % wires->star.window] = 0;
        tree->sent = end;
        for (unsigned host = 0; host < wires->star.hosts; host++)
            contribute(wires, host, number, first, end);
    }
    return tree->done == chunks;
}

/* Sends what the trees' windows allow up to chunk `chunks`; returns whether all are done. */
static bool send_more(struct wires *wires, unsigned trees, uint32_t chunks)
{
    bool done = true;

    for (unsigned tree = 0; tree < trees; tree++)
        done = advance(wires, tree, chunks) && done;
    return done;
}

void wires_step(struct wires *wires, unsigned trees, uint32_t chunks)
{
    (void)send_more(wires, trees, chunks);
    if (!receive_some(wires))
        sched_yield();
}

bool wires_run(struct wires *wires, unsigned trees, uint32_t chunks, unsigned seconds)
{
    uint64_t moved_ns = clock_ns(), repaired_ns = moved_ns;

    for (;;) {
        uint64_t results = wires->results, now_ns;
        if (send_more(wires, trees, chunks))
            return true;
        if (!receive_some(wires))
            sched_yield();
        now_ns = clock_ns();
        if (wires->results != results)
            moved_ns = repaired_ns = now_ns;
        if (now_ns - moved_ns > seconds * UINT64_C(1000000000))
            return false;
        if (now_ns - repaired_ns < REPAIR_NS)
            continue;
        repaired_ns = now_ns;
        wires->repairs++;
        for (unsigned tree = 0; tree < trees; tree++)
            for (unsigned host = 0; host < wires->star.hosts; host++)
                contribute(wires, host, tree, wires->tree[tree].done, wires->tree[tree].sent);
    }
}
