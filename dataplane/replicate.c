/*
 * Turns the engine's output into frames. A result for many children has one payload. On a port that
 * supports chains, each child gets a small header mbuf chained to ONE segment, which points into
 * the engine's bank; its reference count is the number of children, and the bank is released when
 * the last frame has left. On ports whose drivers copy each frame before their send call returns
 * (net_vhost) the headers are written before the payload in the engine's memory. On other ports
 * (net_af_xdp) each child gets a copy. If the kernel supports it (group.h, xdp.h), it gets one
 * packet for all children. Loop's thread.
 */
#include <string.h>

#include "dataplane/state.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/wire/datagram.h"
#include "offload/wire/frame.h"
#include "offload/wire/stripe.h"

/* Bytes of job and tree in a banyan header. */
#define TREE_BYTES 4u
/* References to a buffer that is sent: the driver's, which frees what it has copied, and one that
 * keeps it. */
#define KEPT 2u
/* Most outputs that one call lends (count). */
#define LEND_MAX 256u
/* The smallest hugepages that DPDK uses. */
#define HUGEPAGE_BYTES ((uintptr_t)2 << 20)

/* Stored in the private area of a segment's mbuf. */
struct replicate_share {
    struct rte_mbuf_ext_shared_info info;
    struct by_shell *shell; /* of the engine */
    uint32_t ref;
    uint32_t count; /* references of the engine to release */
};

int by_lender_open(struct by_lender *lender, struct rte_mempool *pool)
{
    for (unsigned i = 0; i < BY_PORT_BURST; i++) {
        lender->buffer[i] = rte_pktmbuf_alloc(pool);
        if (!lender->buffer[i])
            return BY_ENOMEM;
        lender->buffer[i]->data_off = 0;
    }
    return 0;
}

size_t by_share_private_bytes(void)
{
    return RTE_ALIGN(sizeof(struct replicate_share), RTE_MBUF_PRIV_ALIGN);
}

/* DPDK calls it when the last reference to a segment is freed. */
static void share_free(void *address, void *opaque)
{
    struct replicate_share *share = opaque;

    (void)address;
    if (share->shell->workers) {
        by_workers_return(share->shell, share->ref, share->count);
        return;
    }
    by_engine_release_all(share->shell->engine, share->ref, share->count);
}

/* Creates a segment for the payload of `count` outputs in `frames` frames, each of which holds a
 * reference to it. NULL if the pool is empty. */
static struct rte_mbuf *share_make(struct by_shell *shell, const struct by_tx *tx, uint32_t count,
                                   uint32_t frames)
{
    struct rte_mbuf *segment = rte_pktmbuf_alloc(shell->share_pool);
    struct replicate_share *share;
    void *payload = (void *)(uintptr_t)tx->payload; /* never written: the segment is only sent */

    if (!segment)
        return NULL;
    share = rte_mbuf_to_priv(segment);
    *share = (struct replicate_share){.shell = shell, .ref = tx->ref, .count = count};
    share->info.free_cb = share_free;
    share->info.fcb_opaque = share;
    rte_mbuf_ext_refcnt_set(&share->info, 1);
    /* Bus addresses equal virtual addresses wherever chains are sent (shell.c); DPDK's lookup would
     * read a file. */
    rte_pktmbuf_attach_extbuf(segment, payload, (rte_iova_t)(uintptr_t)payload, tx->payload_bytes,
                              &share->info);
    segment->data_off = 0;
    segment->data_len = tx->payload_bytes;
    segment->pkt_len = tx->payload_bytes;
    rte_mbuf_refcnt_set(segment, (uint16_t)frames);
    return segment;
}

/* What a stencil is for: address, port and length; job, tree and class. */
static inline uint64_t receiver_of(const struct by_tx *tx)
{
    return (uint64_t)tx->dst_ip << 32 | (uint32_t)tx->udp_port << 16 | tx->payload_bytes;
}

static inline uint64_t tree_of(const struct by_tx *tx)
{
    return (uint64_t)by_get32(tx->header + BY_HEADER_AT_JOB) << 8 | tx->ecn;
}

/* Rebuilds the headers if the next packet differs from the last one in its length, receiver, tree
 * or class. The source port names the lanes of packets to nodes, which may have several workers;
 * but batches of the kernel consist of frames with one source port. */
static __attribute__((noinline)) void cut_stencil(struct by_shell *shell, struct by_port *port,
                                                  const struct by_tx *tx)
{
    uint32_t tree = by_get32(tx->header + BY_HEADER_AT_JOB);
    struct by_frame *frame = &port->carrier;
    const uint8_t *mac = by_batch_mac(&shell->batch, port->index, tx->dst_ip);

    if (mac) /* the batch sends nothing to an unknown neighbour */
        memcpy(frame->dst_mac, mac, BY_MAC_BYTES);
    frame->dst_ip = tx->dst_ip;
    frame->src_port = by_tree_port(tree);
    port->lane_port =
        tx->udp_port == BY_UDP_PORT && !port->gso && !port->xsk ? frame->src_port | BY_LANE_PORT : 0;
    port->lane_first = (uint8_t)by_lane_first(tree);
    frame->dst_port = tx->udp_port;
    frame->ecn = tx->ecn;
    frame->bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + tx->payload_bytes);
    by_frame_build(frame, port->stencil);
    port->stencil_receiver = receiver_of(tx);
    port->stencil_tree = tree_of(tx);
}

/* Writes the 82 bytes before a payload. */
static inline void write_headers(struct by_shell *shell, struct by_port *port, const struct by_tx *tx,
                                 uint8_t *room)
{
    if (__builtin_expect((port->stencil_receiver ^ receiver_of(tx)) | (port->stencil_tree ^ tree_of(tx)),
                         0) != 0)
        cut_stencil(shell, port, tx);
    memcpy(room, port->stencil, sizeof port->stencil); /* copies a few bytes more, in full words */
    if (port->lane_port != 0)
        by_put16(room + BY_FRAME_AT_UDP,
                 port->lane_port | (uint16_t)by_lane(port->lane_first, BY_LANES, BY_LANE_SHIFT,
                                                     by_get32(tx->header + BY_HEADER_AT_SEQ)));
    memcpy(room + BY_FRAME_HEADER_BYTES, tx->header, BY_WIRE_HEADER_BYTES);
}

/* Sends one buffer that contains everything, or counts that there is none. */
static void send_copy(struct by_shell *shell, struct by_port *port, const struct by_tx *tx)
{
    const uint8_t *payload = tx->payload ? tx->payload : tx->small;
    uint16_t bytes = (uint16_t)(BY_PORT_FRAME_OVERHEAD + tx->payload_bytes);
    struct rte_mbuf *frame =
        rte_pktmbuf_alloc(tx->payload || !port->multi_segs ? shell->frame_pool : shell->header_pool);
    char *room = frame ? rte_pktmbuf_append(frame, bytes) : NULL;

    if (room) {
        write_headers(shell, port, tx, (uint8_t *)room);
        memcpy(room + BY_PORT_FRAME_OVERHEAD, payload, tx->payload_bytes);
        if (tx->payload_bytes)
            shell->batch.counters.tx_copied++;
        by_port_send(port, frame);
    } else {
        rte_pktmbuf_free(frame);
        shell->batch.counters.tx_no_memory++;
    }
}

/* The same; releases the engine's reference immediately. */
static void send_linear(struct by_shell *shell, struct by_port *port, const struct by_tx *tx)
{
    send_copy(shell, port, tx);
    if (tx->ref != BY_REF_NONE)
        by_engine_release(shell->engine, tx->ref);
}

/* Points a buffer at a frame in the engine's memory. */
static void point(struct rte_mbuf *buffer, uint8_t *frame, uint16_t bytes)
{
    buffer->buf_addr = frame;
    buffer->buf_len = bytes;
    buffer->data_len = bytes;
    buffer->pkt_len = bytes;
    rte_mbuf_refcnt_set(buffer, KEPT);
}

/* Sends the frames in the first `count` buffers, of `bytes` bytes together, and copies of those
 * that the port has no room for. */
static void lend_burst(struct by_shell *shell, struct by_port *port, const struct by_tx *const *tx,
                       uint16_t count, uint64_t bytes)
{
    struct by_lender *lender = &shell->lender;
    uint16_t sent;

    if (port->queued > 0)
        by_port_flush(port); /* the port's results stay in order */
    sent = port->ops->send(port, lender->buffer, count);
    for (uint16_t i = sent; i < count; i++) {
        bytes -= lender->buffer[i]->pkt_len;
        send_copy(shell, port, tx[i]);
    }
    port->counters.tx_packets += sent;
    port->counters.tx_bytes += bytes;
    shell->batch.counters.tx_shared += sent;
}

/* Whether results leave by this port from the engine's memory. */
static bool lends(const struct by_port *port)
{
    return port->copies && !port->wraps;
}

/* Releases the engine's references of `count` outputs; those of one payload together. */
static void release_runs(struct by_shell *shell, const struct by_tx *tx, uint32_t count)
{
    uint32_t run;

    for (; count > 0; tx += run, count -= run) {
        for (run = 1; run < count && tx[run].ref == tx->ref; run++)
            ;
        by_engine_release_all(shell->engine, tx->ref, run);
    }
}

/* Sends the outputs of one port, in their order: `next` leads from one to the next. */
static void lend_port(struct by_shell *shell, unsigned index, const struct by_tx *tx, const uint16_t *next)
{
    struct by_lender *lender = &shell->lender;
    struct by_port *port = &shell->ports[index];
    const struct by_tx *burst[BY_PORT_BURST];
    uint16_t last = lender->last[index];
    uint64_t bytes = 0;
    unsigned count = 0;

    for (uint16_t i = lender->first[index];; i = next[i]) {
        uint8_t *frame = (uint8_t *)(uintptr_t)tx[i].payload - BY_PORT_FRAME_OVERHEAD;
        uint16_t size = (uint16_t)(BY_PORT_FRAME_OVERHEAD + tx[i].payload_bytes);

        write_headers(shell, port, &tx[i], frame);
        point(lender->buffer[count], frame, size);
        burst[count++] = &tx[i];
        bytes += size;
        if (count < BY_PORT_BURST && i != last)
            continue;
        lend_burst(shell, port, burst, (uint16_t)count, bytes);
        if (i == last)
            break;
        count = 0;
        bytes = 0;
    }
}

/*
 * Sends results without copies to ports whose drivers copy each frame before their send call
 * returns: outputs, from the first on, that are payloads of the engine for such ports. The headers
 * are written into the room before the payload, so that a frame is one buffer, and the next child's
 * headers replace them. Returns the number of outputs, whose references are released. Each port
 * gets its own in order.
 */
static uint32_t lend(struct by_shell *shell, const struct by_tx *tx, uint32_t tx_count)
{
    struct by_lender *lender = &shell->lender;
    uint16_t next[LEND_MAX];
    uint64_t ports = 0;
    uint32_t run = 0;

    for (; run < tx_count && run < LEND_MAX; run++) {
        uint16_t port = tx[run].port;

        if (tx[run].ref == BY_REF_NONE || tx[run].payload_bytes == 0)
            break;
        if (ports >> port & 1) {
            next[lender->last[port]] = (uint16_t)run;
        } else {
            if (!lends(&shell->ports[port]))
                break;
            lender->first[port] = (uint16_t)run;
            ports |= UINT64_C(1) << port;
        }
        lender->last[port] = (uint16_t)run;
    }
    for (; ports != 0; ports &= ports - 1)
        lend_port(shell, (unsigned)__builtin_ctzll(ports), tx, next);
    release_runs(shell, tx, run);
    return run;
}

/* Appends a packet without payload to others of its tree for this receiver that wait beside the
 * port's queue. False if there are none, or no room. */
static bool gather(struct by_shell *shell, struct by_port *port, const struct by_tx *tx)
{
    struct by_frame *frame = &port->gathered_frame;
    uint8_t *headers;
    char *room;

    if (!port->gathered || frame->dst_ip != tx->dst_ip || frame->dst_port != tx->udp_port ||
        frame->ecn != tx->ecn || port->gathered_count >= by_datagram_room(shell->payload_max))
        return false;
    headers = rte_pktmbuf_mtod(port->gathered, uint8_t *);
    if (memcmp(headers + BY_FRAME_HEADER_BYTES + BY_HEADER_AT_JOB, tx->header + BY_HEADER_AT_JOB,
               TREE_BYTES) != 0)
        return false;
    room = rte_pktmbuf_append(port->gathered, BY_WIRE_HEADER_BYTES);
    if (!room)
        return false;
    memcpy(room, tx->header, BY_WIRE_HEADER_BYTES);
    frame->bytes += BY_WIRE_HEADER_BYTES;
    by_frame_build(frame, headers);
    port->gathered_count++;
    return true;
}

/* Sends a packet without payload: in a frame with others, or in a frame of its own, which others
 * may join. */
static void send_empty(struct by_shell *shell, struct by_port *port, const struct by_tx *tx)
{
    struct rte_mbuf *frame;
    uint8_t *room;

    if (gather(shell, port, tx))
        return;
    frame = rte_pktmbuf_alloc(shell->frame_pool);
    if (!frame) {
        shell->batch.counters.tx_no_memory++;
        return;
    }
    room = (uint8_t *)rte_pktmbuf_append(frame, BY_PORT_FRAME_OVERHEAD);
    write_headers(shell, port, tx, room);
    if (port->gathered)
        by_port_send(port, port->gathered);
    port->gathered = frame;
    port->gathered_count = 1;
    port->gathered_frame = port->carrier;
    port->gathered_frame.src_port = by_get16(room + BY_FRAME_AT_UDP);
}

/* Chains the headers in `head` and the payload into a frame. */
static void chain(struct rte_mbuf *head, struct rte_mbuf *segment)
{
    head->data_len = BY_PORT_FRAME_OVERHEAD;
    head->next = segment;
    head->nb_segs = 2;
    head->pkt_len = BY_PORT_FRAME_OVERHEAD + (uint32_t)segment->data_len;
}

/*
 * Sends one payload to `count` ports that support chains: a small header buffer for each, chained
 * to the one segment. False if there is no segment.
 */
static bool send_shared(struct by_shell *shell, const struct by_tx *tx, uint32_t count)
{
    struct rte_mbuf *head[BY_CHILDREN_MAX];
    struct rte_mbuf *segment = share_make(shell, tx, count, count);

    if (!segment)
        return false;
    if (rte_pktmbuf_alloc_bulk(shell->header_pool, head, count) != 0) {
        shell->batch.counters.tx_no_memory += count;
        rte_mbuf_refcnt_set(segment, 1);
        rte_pktmbuf_free_seg(segment);
        return true;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct by_port *port = &shell->ports[tx[i].port];

        write_headers(shell, port, &tx[i], rte_pktmbuf_mtod(head[i], uint8_t *));
        chain(head[i], segment);
        by_port_send(port, head[i]);
    }
    shell->batch.counters.tx_shared += count;
    return true;
}

/*
 * Sends one payload to `count` ports without chains: a copy for each, while it is in the
 * first-level cache. Releases the engine's references immediately. False if there are not enough
 * buffers.
 */
static bool send_copies(struct by_shell *shell, const struct by_tx *tx, uint32_t count)
{
    struct rte_mbuf *frame[BY_CHILDREN_MAX];
    uint16_t bytes = (uint16_t)(BY_PORT_FRAME_OVERHEAD + tx->payload_bytes);

    if (rte_pktmbuf_alloc_bulk(shell->frame_pool, frame, count) != 0)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        struct by_port *port = &shell->ports[tx[i].port];
        uint8_t *room = rte_pktmbuf_mtod(frame[i], uint8_t *);

        write_headers(shell, port, &tx[i], room);
        memcpy(room + BY_PORT_FRAME_OVERHEAD, tx->payload, tx->payload_bytes);
        frame[i]->data_len = bytes;
        frame[i]->pkt_len = bytes;
        by_port_send(port, frame[i]);
    }
    by_engine_release_all(shell->engine, tx->ref, count);
    shell->batch.counters.tx_copied += count;
    return true;
}

/* Creates a frame for the first of `count` results, which all share its payload; banyan's header is
 * complete, the other headers are not. NULL if there are no buffers. */
static struct rte_mbuf *make_one(struct by_shell *shell, const struct by_tx *tx, uint32_t count)
{
    struct rte_mbuf *head = rte_pktmbuf_alloc(shell->header_pool);
    struct rte_mbuf *segment = head ? share_make(shell, tx, count, 1) : NULL;

    if (!segment) {
        rte_pktmbuf_free(head);
        return NULL;
    }
    memcpy(rte_pktmbuf_mtod_offset(head, uint8_t *, BY_FRAME_HEADER_BYTES), tx->header, BY_WIRE_HEADER_BYTES);
    chain(head, segment);
    return head;
}

/* Sends one payload to `count` ports through the driver xdp, whose programs set the addresses of
 * the copies. False if it cannot. */
static bool send_xdp(struct by_shell *shell, const struct by_tx *tx, uint32_t count)
{
    const int32_t number = by_xdp_group(shell->xdp, tx, count);
    struct by_frame frame = {.src_port = by_tree_port(by_get32(tx->header + BY_HEADER_AT_JOB)),
                             .ecn = tx->ecn,
                             .bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + tx->payload_bytes)};
    struct rte_mbuf *one = number >= 0 ? make_one(shell, tx, count) : NULL;
    uint8_t *room;

    if (!one)
        return false;
    room = rte_pktmbuf_mtod(one, uint8_t *);
    by_frame_build(&frame, room);
    memcpy(room, &number, sizeof number);
    by_port_send(shell->group_port, one);
    return true;
}

/* Sends one payload to `count` ports through the kernel, which makes the copies. False if it
 * cannot. */
static bool send_group(struct by_shell *shell, const struct by_tx *tx, uint32_t count)
{
    struct by_dp_group *group;
    struct rte_mbuf *one;

    if (shell->ports[tx->port].wrap.ipv6)
        return false; /* the programs in the kernel write headers of IPv4 */
    if (shell->xdp)
        return send_xdp(shell, tx, count);
    group = shell->groups ? by_groups_find(shell->groups, &shell->batch, tx, count) : NULL;
    one = group ? make_one(shell, tx, count) : NULL;
    if (!one)
        return false;
    write_headers(shell, &shell->ports[tx->port], tx, rte_pktmbuf_mtod(one, uint8_t *));
    by_group_send(shell->groups, group, one);
    return true;
}

/* Returns how many outputs, from the first on, share one payload and go to ports of the first
 * port's kind. */
static uint32_t shared_run(const struct by_shell *shell, const struct by_tx *tx, uint32_t tx_count)
{
    uint32_t count = 0;

    if (tx->ref == BY_REF_NONE || !tx->payload || tx->payload_bytes == 0)
        return 0;
    /* A bank may have two payloads in flight: the one sent up and the one that came back. */
    while (count < tx_count && count < BY_CHILDREN_MAX && tx[count].ref == tx->ref &&
           tx[count].payload == tx->payload && tx[count].payload_bytes == tx->payload_bytes) {
        const struct by_port *port = &shell->ports[tx[count].port];

        if (port->link || port->multi_segs != shell->ports[tx->port].multi_segs)
            break;
        count++;
    }
    return count;
}

/* Whether a NIC may be unable to read the payload where it is: emulated ones read no buffer that
 * crosses two hugepages, unless these are adjacent in physical memory, and report nothing. */
static bool crosses_pages(const struct by_shell *shell, const struct by_tx *tx)
{
    uintptr_t first = (uintptr_t)tx->payload, last = first + tx->payload_bytes - 1u;

    return shell->has_device && ((first ^ last) & ~(HUGEPAGE_BYTES - 1)) != 0;
}

void by_shell_send(void *context, const struct by_tx *tx, uint32_t tx_count)
{
    struct by_shell *shell = context;
    uint32_t run;

    for (uint32_t i = 0; i < tx_count; i += run) {
        struct by_port *port = &shell->ports[tx[i].port];

        if (port->link) {
            by_port_send_shared(port, &tx[i]);
            run = 1;
            continue;
        }
        if (lends(port) && (run = lend(shell, &tx[i], tx_count - i)) > 0)
            continue;
        run = shared_run(shell, &tx[i], tx_count - i);
        if (run > 1 && send_group(shell, &tx[i], run))
            continue;
        if (run > 0 && (port->multi_segs && !crosses_pages(shell, &tx[i]) ? send_shared(shell, &tx[i], run)
                                                                          : send_copies(shell, &tx[i], run)))
            continue;
        run = 1;
        if (tx[i].payload_bytes == 0 && by_datagram_joins(tx[i].header))
            send_empty(shell, port, &tx[i]);
        else
            send_linear(shell, port, &tx[i]);
    }
}
