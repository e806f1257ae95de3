/*
 * Turns the engine's actions into frames. A result for many children is one payload: on a port that takes
 * chains, each child gets a small header mbuf chained to ONE segment, which points into the engine's bank;
 * its reference count is the number of children, and when the last copy has left, the bank is released. On
 * other ports (net_af_xdp) each child gets a linear copy. A relayed packet leaves in the buffer that it came
 * in, with new MAC addresses. Loop's thread.
 */
#include <string.h>

#include "dataplane/state.h"
#include "offload/base/bytes.h"
#include "offload/wire/frame.h"

/* Source ports carry entropy for ECMP and RSS: the dynamic range, by job and tree. */
#define SOURCE_PORT_BASE 0xc000u
#define SOURCE_PORT_MASK 0x3fffu
#define UDP_CHECKSUM_AT  40u /* in a frame */

/* Lies in the private area of a segment's mbuf. */
struct share {
    struct rte_mbuf_ext_shared_info info;
    struct by_engine *engine;
    uint32_t ref;
    uint32_t count; /* releases that the engine is owed */
};

size_t by_share_private_bytes(void)
{
    return RTE_ALIGN(sizeof(struct share), RTE_MBUF_PRIV_ALIGN);
}

/* DPDK has freed the last reference to a segment. */
static void share_free(void *address, void *opaque)
{
    struct share *share = opaque;

    (void)address;
    for (uint32_t i = 0; i < share->count; i++)
        by_engine_release(share->engine, share->ref);
}

/* A segment that is `bytes` at `payload`, in the engine's memory; we hold one reference to it. NULL when the
 * pool is empty. */
static struct rte_mbuf *share_make(struct by_shell *shell, const struct by_tx *tx)
{
    struct rte_mbuf *segment = rte_pktmbuf_alloc(shell->share_pool);
    struct share *share;
    void *payload = (void *)(uintptr_t)tx->payload; /* never written: the segment is only sent */

    if (!segment)
        return NULL;
    share = rte_mbuf_to_priv(segment);
    *share = (struct share){.engine = shell->engine, .ref = tx->ref};
    share->info.free_cb = share_free;
    share->info.fcb_opaque = share;
    rte_mbuf_ext_refcnt_set(&share->info, 1);
    /* Bus addresses are virtual addresses wherever chains are sent (shell.c); asking DPDK for one reads a
     * file. */
    rte_pktmbuf_attach_extbuf(segment, payload, (rte_iova_t)(uintptr_t)payload, tx->payload_bytes,
                              &share->info);
    segment->data_off = 0;
    segment->data_len = tx->payload_bytes;
    segment->pkt_len = tx->payload_bytes;
    return segment;
}

/* Writes the 82 bytes in front of a payload. */
static void write_headers(const struct by_port *port, const struct by_tx *tx, uint8_t *room)
{
    struct by_frame frame = {
        .src_ip = port->own_ip,
        .dst_ip = tx->dst_ip,
        .src_port =
            (uint16_t)(SOURCE_PORT_BASE |
                       ((by_get16(tx->header + 4) * 31u + by_get16(tx->header + 6)) & SOURCE_PORT_MASK)),
        .dst_port = tx->udp_port,
        .ecn = tx->ecn,
        .bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + tx->payload_bytes),
    };

    memcpy(frame.src_mac, port->own_mac, sizeof frame.src_mac);
    memcpy(frame.dst_mac, port->peer_mac, sizeof frame.dst_mac);
    by_frame_build(&frame, room);
    memcpy(room + BY_FRAME_HEADER_BYTES, tx->header, BY_WIRE_HEADER_BYTES);
}

/* Headers in a small buffer, chained to the segment. */
static void send_shared(struct by_shell *shell, struct by_port *port, const struct by_tx *tx,
                        struct rte_mbuf *segment)
{
    struct rte_mbuf *head = rte_pktmbuf_alloc(shell->header_pool);
    struct share *share = rte_mbuf_to_priv(segment);
    char *room = head ? rte_pktmbuf_append(head, BY_PORT_FRAME_OVERHEAD) : NULL;

    if (!room) {
        rte_pktmbuf_free(head);
        shell->counters.tx_no_memory++;
        by_engine_release(shell->engine, tx->ref);
        return;
    }
    write_headers(port, tx, (uint8_t *)room);
    rte_mbuf_refcnt_update(segment, 1);
    share->count++;
    head->next = segment;
    head->nb_segs = 2;
    head->pkt_len = (uint32_t)head->data_len + segment->data_len;
    shell->counters.tx_shared++;
    by_port_send(port, head);
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

/* The received frame goes on as it is, but for its MAC addresses. A frame that is relayed twice, or doubled
 * on purpose, is counted. */
static void send_relay(struct by_shell *shell, struct by_port *port, struct rte_mbuf **slot)
{
    struct rte_mbuf *frame = *slot;
    uint8_t *data;

    if (!frame) {
        shell->counters.tx_no_memory++;
        return;
    }
    *slot = NULL;
    data = rte_pktmbuf_mtod(frame, uint8_t *);
    memcpy(data, port->peer_mac, sizeof port->peer_mac);
    memcpy(data + sizeof port->peer_mac, port->own_mac, sizeof port->own_mac);
    /* A checksum that the sender left to its link is none: none is legal (RFC 768), a wrong one is not. */
    by_put16(data + UDP_CHECKSUM_AT, 0);
    shell->counters.tx_relayed++;
    by_port_send(port, frame);
}

static struct by_port *port_of(struct by_shell *shell, const struct by_tx *tx)
{
    struct by_port *port = tx->port < shell->port_count ? &shell->ports[tx->port] : NULL;

    return port && port->addressed ? port : NULL;
}

void by_shell_transmit(struct by_shell *shell, const struct by_tx *tx, uint32_t tx_count, uint32_t rx_first)
{
    struct rte_mbuf *segment = NULL; /* of the run of actions with this ref */
    uint32_t segment_ref = BY_REF_NONE;

    for (uint32_t i = 0; i < tx_count; i++, tx++) {
        struct by_port *port = port_of(shell, tx);

        if (segment && tx->ref != segment_ref) {
            rte_pktmbuf_free_seg(segment);
            segment = NULL;
        }
        if (!port) {
            shell->counters.tx_no_port++;
            if (tx->kind == BY_TX_SEND && tx->ref != BY_REF_NONE)
                by_engine_release(shell->engine, tx->ref);
            continue;
        }
        if (tx->kind == BY_TX_RELAY) {
            send_relay(shell, port, &shell->frames[rx_first + tx->rx_index]);
            continue;
        }
        if (tx->ref == BY_REF_NONE || !tx->payload || tx->payload_bytes == 0 || !port->multi_segs) {
            send_linear(shell, port, tx);
            continue;
        }
        if (!segment) {
            segment = share_make(shell, tx);
            segment_ref = tx->ref;
        }
        if (segment)
            send_shared(shell, port, tx, segment);
        else
            send_linear(shell, port, tx);
    }
    if (segment)
        rte_pktmbuf_free_seg(segment);
}
