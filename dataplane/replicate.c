/*
 * Turns the engine's actions into frames. A result for many children is one payload: on a port that
 * takes chains, each child gets a small header mbuf chained to ONE segment, which points into the
 * engine's bank; its reference count is the number of children, and when the last copy has left,
 * the bank is released. On other ports (net_af_xdp, net_vhost) each child gets a copy. Where the
 * kernel can (group.h, xdp.h) it is given one packet for all. A relayed packet leaves in the buffer
 * that it came in, with new MAC addresses. Loop's thread.
 */
#include <string.h>

#include "dataplane/state.h"
#include "offload/base/bytes.h"
#include "offload/wire/datagram.h"
#include "offload/wire/frame.h"

/* Job and tree in a banyan header. */
#define TREE_BYTES 4u

/* Lies in the private area of a segment's mbuf. */
struct replicate_share {
    struct rte_mbuf_ext_shared_info info;
    struct by_engine *engine;
    uint32_t ref;
    uint32_t count; /* releases that the engine is owed */
};

size_t by_share_private_bytes(void)
{
    return RTE_ALIGN(sizeof(struct replicate_share), RTE_MBUF_PRIV_ALIGN);
}

/* DPDK has freed the last reference to a segment. */
static void share_free(void *address, void *opaque)
{
    struct replicate_share *share = opaque;

    (void)address;
    for (uint32_t i = 0; i < share->count; i++)
        by_engine_release(share->engine, share->ref);
}

/* A segment that is the payload of `count` actions in `frames` frames, which hold a reference to it
 * each. NULL when the pool is empty. */
static struct rte_mbuf *share_make(struct by_shell *shell, const struct by_tx *tx, uint32_t count,
                                   uint32_t frames)
{
    struct rte_mbuf *segment = rte_pktmbuf_alloc(shell->share_pool);
    struct replicate_share *share;
    void *payload = (void *)(uintptr_t)tx->payload; /* never written: the segment is only sent */

    if (!segment)
        return NULL;
    share = rte_mbuf_to_priv(segment);
    *share = (struct replicate_share){.engine = shell->engine, .ref = tx->ref, .count = count};
    share->info.free_cb = share_free;
    share->info.fcb_opaque = share;
    rte_mbuf_ext_refcnt_set(&share->info, 1);
    /* Bus addresses are virtual addresses wherever chains are sent (shell.c); asking DPDK for one
     * reads a file. */
    rte_pktmbuf_attach_extbuf(segment, payload, (rte_iova_t)(uintptr_t)payload, tx->payload_bytes,
                              &share->info);
    segment->data_off = 0;
    segment->data_len = tx->payload_bytes;
    segment->pkt_len = tx->payload_bytes;
    rte_mbuf_refcnt_set(segment, (uint16_t)frames);
    return segment;
}

/* What the port sends next differs from what it sent last in its length, receiver, tree or class:
 * headers anew. */
static void cut_stencil(struct by_port *port, const struct by_tx *tx)
{
    struct by_frame *frame = &port->carrier;

    frame->dst_ip = tx->dst_ip;
    frame->src_port = by_frame_source_port(by_get32(tx->header + BY_HEADER_AT_JOB));
    frame->dst_port = tx->udp_port;
    frame->ecn = tx->ecn;
    frame->bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + tx->payload_bytes);
    by_frame_build(frame, port->stencil);
}

/* Writes the 82 bytes in front of a payload. */
static void write_headers(struct by_port *port, const struct by_tx *tx, uint8_t *room)
{
    uint64_t receiver = (uint64_t)tx->dst_ip << 32 | (uint32_t)tx->udp_port << 16 | tx->payload_bytes;
    uint64_t tree = (uint64_t)by_get32(tx->header + 4) << 8 | tx->ecn; /* and job */

    if (port->stencil_receiver != receiver || port->stencil_tree != tree) {
        cut_stencil(port, tx);
        port->stencil_receiver = receiver;
        port->stencil_tree = tree;
    }
    memcpy(room, port->stencil, sizeof port->stencil); /* a few bytes more, in whole moves */
    memcpy(room + BY_FRAME_HEADER_BYTES, tx->header, BY_WIRE_HEADER_BYTES);
}

/* One buffer with everything in it. The engine's reference is given back at once. */
static void send_linear(struct by_shell *shell, struct by_port *port, const struct by_tx *tx)
{
    const uint8_t *payload = tx->payload ? tx->payload : tx->small;
    uint16_t bytes = (uint16_t)(BY_PORT_FRAME_OVERHEAD + tx->payload_bytes);
    struct rte_mbuf *frame =
        rte_pktmbuf_alloc(tx->payload || !port->multi_segs ? shell->frame_pool : shell->header_pool);
    char *room = frame ? rte_pktmbuf_append(frame, bytes) : NULL;

    if (room) {
        write_headers(port, tx, (uint8_t *)room);
        memcpy(room + BY_PORT_FRAME_OVERHEAD, payload, tx->payload_bytes);
        if (tx->payload_bytes)
            shell->counters.tx_copied++;
        by_port_send(port, frame);
    } else {
        rte_pktmbuf_free(frame);
        shell->counters.tx_no_memory++;
    }
    if (tx->ref != BY_REF_NONE)
        by_engine_release(shell->engine, tx->ref);
}

/* Puts a packet without a payload behind others of its tree to this receiver that wait beside the
 * port's queue. False when there are none, or no room. */
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

/* A packet without a payload: in a frame with others, or in one of its own, which others may join.
 */
static void send_empty(struct by_shell *shell, struct by_port *port, const struct by_tx *tx)
{
    struct rte_mbuf *frame;

    if (gather(shell, port, tx))
        return;
    frame = rte_pktmbuf_alloc(shell->frame_pool);
    if (!frame) {
        shell->counters.tx_no_memory++;
        return;
    }
    write_headers(port, tx, (uint8_t *)rte_pktmbuf_append(frame, BY_PORT_FRAME_OVERHEAD));
    if (port->gathered)
        by_port_send(port, port->gathered);
    port->gathered = frame;
    port->gathered_count = 1;
    port->gathered_frame = port->carrier;
}

/* A frame of headers in `head` and the payload. */
static void chain(struct rte_mbuf *head, struct rte_mbuf *segment)
{
    head->data_len = BY_PORT_FRAME_OVERHEAD;
    head->next = segment;
    head->nb_segs = 2;
    head->pkt_len = BY_PORT_FRAME_OVERHEAD + (uint32_t)segment->data_len;
}

/*
 * One payload to `count` ports that take chains: for each a small buffer with headers, chained to
 * the one segment. False when there is no segment.
 */
static bool send_shared(struct by_shell *shell, const struct by_tx *tx, uint32_t count)
{
    struct rte_mbuf *head[BY_CHILDREN_MAX];
    struct rte_mbuf *segment = share_make(shell, tx, count, count);

    if (!segment)
        return false;
    if (rte_pktmbuf_alloc_bulk(shell->header_pool, head, count) != 0) {
        shell->counters.tx_no_memory += count;
        rte_mbuf_refcnt_set(segment, 1);
        rte_pktmbuf_free_seg(segment);
        return true;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct by_port *port = &shell->ports[tx[i].port];

        write_headers(port, &tx[i], rte_pktmbuf_mtod(head[i], uint8_t *));
        chain(head[i], segment);
        by_port_send(port, head[i]);
    }
    shell->counters.tx_shared += count;
    return true;
}

/*
 * One payload to `count` ports that take no chains: a copy for each, while it is in the first-level
 * cache. The engine's references are given back at once. False when there are not enough buffers.
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

        write_headers(port, &tx[i], room);
        memcpy(room + BY_PORT_FRAME_OVERHEAD, tx->payload, tx->payload_bytes);
        frame[i]->data_len = bytes;
        frame[i]->pkt_len = bytes;
        by_port_send(port, frame[i]);
        by_engine_release(shell->engine, tx->ref);
    }
    shell->counters.tx_copied += count;
    return true;
}

/* A received frame, ours from now on; `port` is that by which it goes on, or came. NULL, and
 * counted: there is none, as when it is relayed twice, or doubled on purpose. */
static struct rte_mbuf *take_frame(struct by_shell *shell, const struct by_port *port, uint32_t index)
{
    struct rte_mbuf *frame = shell->frames[index];

    /* What came through shared memory has no buffer yet. */
    if (!frame && shell->rx[index].payload)
        frame = by_link_frame(&shell->rx[index], &port->carrier, shell->frame_pool);
    if (!frame)
        shell->counters.tx_no_memory++;
    shell->frames[index] = NULL;
    return frame;
}

/* The received frame goes on as it is, but for its MAC addresses. */
static void send_relay(struct by_shell *shell, struct by_port *port, const struct by_tx *tx, uint32_t index)
{
    struct rte_mbuf *frame = take_frame(shell, port, index);
    uint8_t *data;

    if (!frame)
        return;
    data = rte_pktmbuf_mtod(frame, uint8_t *);
    memcpy(data, port->carrier.dst_mac, BY_MAC_BYTES);
    memcpy(data + BY_MAC_BYTES, port->carrier.src_mac, BY_MAC_BYTES);
    /* A checksum that the sender left to its link is none: none is legal (RFC 768), a wrong one is
     * not. */
    by_put16(data + BY_FRAME_AT_UDP_CHECKSUM, 0);
    if (tx->ecn != shell->rx[index].ecn)
        by_frame_mark(data, tx->ecn);
    shell->counters.tx_relayed++;
    by_port_send(port, frame);
}

/* Keeps the received frame until it is due. */
static void park(struct by_shell *shell, const struct by_tx *tx, uint32_t index)
{
    struct by_port *port = &shell->ports[tx->port];
    struct rte_mbuf *frame = take_frame(shell, port, index);

    if (frame && !by_park_put(&shell->park, shell->now_ns + tx->wait_ns, frame, tx->port)) {
        shell->counters.tx_no_memory++; /* not where the engine knows how many there is room for */
        rte_pktmbuf_free(frame);
    }
}

/* A frame of the first of `count` results, whose payload is everybody's; its headers but banyan's
 * are still to be written. NULL when there are no buffers. */
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

/* One payload to `count` ports by way of the driver xdp, whose programs give the copies their
 * addresses. False when it cannot. */
static bool send_xdp(struct by_shell *shell, const struct by_tx *tx, uint32_t count)
{
    const int32_t number = by_xdp_group(shell->xdp, tx, count);
    struct by_frame frame = {.src_port = by_frame_source_port(by_get32(tx->header + BY_HEADER_AT_JOB)),
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

/* One payload to `count` ports by way of the kernel, which makes the copies. False when it cannot.
 */
static bool send_group(struct by_shell *shell, const struct by_tx *tx, uint32_t count)
{
    struct by_dp_group *group;
    struct rte_mbuf *one;

    if (shell->xdp)
        return send_xdp(shell, tx, count);
    group = shell->groups ? by_groups_find(shell->groups, tx, count) : NULL;
    one = group ? make_one(shell, tx, count) : NULL;
    if (!one)
        return false;
    write_headers(&shell->ports[tx->port], tx, rte_pktmbuf_mtod(one, uint8_t *));
    by_group_send(shell->groups, group, one);
    return true;
}

static struct by_port *port_of(const struct by_shell *shell, const struct by_tx *tx)
{
    struct by_port *port = tx->port < shell->port_count ? &shell->ports[tx->port] : NULL;

    return port && port->addressed ? port : NULL;
}

/* How many of the actions, from the first on, have one payload and go to ports of the first one's
 * kind. */
static uint32_t shared_run(const struct by_shell *shell, const struct by_tx *tx, uint32_t tx_count,
                           const struct by_port *first)
{
    uint32_t count = 0;

    if (!first || tx->kind != BY_TX_SEND || tx->ref == BY_REF_NONE || !tx->payload || tx->payload_bytes == 0)
        return 0;
    /* A bank may have two payloads under way, what it sent up and what came back. */
    while (count < tx_count && count < BY_CHILDREN_MAX && tx[count].ref == tx->ref &&
           tx[count].payload == tx->payload && tx[count].payload_bytes == tx->payload_bytes) {
        const struct by_port *port = port_of(shell, &tx[count]);

        if (!port || port->link || port->multi_segs != first->multi_segs)
            break;
        count++;
    }
    return count;
}

void by_shell_transmit(struct by_shell *shell, const struct by_tx *tx, uint32_t tx_count, uint32_t rx_first)
{
    uint32_t run;

    for (uint32_t i = 0; i < tx_count; i += run) {
        struct by_port *port = port_of(shell, &tx[i]);

        if (port && port->link && tx[i].kind == BY_TX_SEND) {
            by_port_send_shared(port, &tx[i]);
            run = 1;
            continue;
        }
        run = shared_run(shell, &tx[i], tx_count - i, port);
        if (run > 1 && send_group(shell, &tx[i], run))
            continue;
        if (run > 0 && (port->multi_segs ? send_shared(shell, &tx[i], run) : send_copies(shell, &tx[i], run)))
            continue;
        run = 1;
        if (!port) {
            shell->counters.tx_no_port++;
            if (tx[i].kind == BY_TX_SEND && tx[i].ref != BY_REF_NONE)
                by_engine_release(shell->engine, tx[i].ref);
        } else if (tx[i].kind == BY_TX_SEND && tx[i].payload_bytes == 0 && by_datagram_joins(tx[i].header)) {
            send_empty(shell, port, &tx[i]);
        } else if (tx[i].kind == BY_TX_RELAY) {
            send_relay(shell, port, &tx[i], rx_first + tx[i].rx_index);
        } else if (tx[i].kind == BY_TX_HOLD) {
            park(shell, &tx[i], rx_first + tx[i].rx_index);
        } else {
            send_linear(shell, port, &tx[i]);
        }
    }
}
