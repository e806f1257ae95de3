/* Shared-memory cables; see link.h. link_host.c handles connections of hosts. Loop's thread. */
#include "dataplane/link.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "dataplane/link_host.h"
#include "offload/base/bytes.h"
#include "offload/reduce/reduce.h"

#define TRANSIENT_PORT 0xc000u

/* ---- receive ---- */

/* Releases the engine's references for packets that the host has read. */
static void reap(struct by_dp_link *link, struct by_link_host *host)
{
    uint32_t head = __atomic_load_n(&host->sender.queue->head, __ATOMIC_ACQUIRE);

    /* A head beyond the sent packets is invalid. */
    if (head - host->reaped > host->sender.tail - host->reaped)
        return;
    for (; host->reaped != head; host->reaped++) {
        uint32_t *ref = &host->ref[host->reaped & (BY_SHM_SLOTS - 1)];

        if (*ref != BY_REF_NONE)
            by_engine_release(link->engine, *ref);
        *ref = BY_REF_NONE;
    }
}

static uint32_t receive_host(struct by_dp_link *link, struct by_link_host *host, uint16_t port,
                             struct by_rx *rx, uint32_t count)
{
    uint32_t got = 0;

    if (host->asleep)
        by_link_host_wake(host);
    reap(link, host);
    for (uint32_t looked = 0; looked < count && link->taken_count < BY_LINK_BATCH; looked++) {
        uint32_t slot = host->receiver.head;
        const struct by_shm_packet *next = by_shm_take(&host->receiver);
        struct by_shm_packet *packet = &link->taken[link->taken_count];
        const uint8_t *payload;

        if (!next)
            break;
        *packet = *next; /* a copy, since the host may overwrite it at any time */
        payload =
            by_shm_payload(packet, host->cable, host->room_bytes, 0, slot, host->memory, host->memory_bytes);
        if (!payload) {
            link->dropped++;
            continue;
        }
        link->taken_count++;
        rx[got++] = (struct by_rx){.data = packet->header,
                                   .payload = payload,
                                   .bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + packet->payload_bytes),
                                   .port = port,
                                   .src_ip = packet->src_ip,
                                   .dst_ip = packet->dst_ip,
                                   .ecn = packet->ecn,
                                   .direct = packet->direct};
    }
    return got;
}

uint32_t by_link_receive(struct by_dp_link *link, uint16_t port, struct by_rx *rx, uint32_t count)
{
    uint32_t got = 0;
    uint64_t rings;

    if (link->rung)
        link->rung = read(link->again, &rings, sizeof rings) < 0;
    for (unsigned i = 0; i < link->host_count && got < count; i++) {
        struct by_link_host *host = link->host[(link->first + i) % link->host_count];

        if (host->greeted)
            got += receive_host(link, host, port, rx + got, count - got);
    }
    link->first++;
    return got;
}

void by_link_done(struct by_dp_link *link)
{
    if (link->taken_count == 0)
        return;
    for (unsigned i = 0; i < link->host_count; i++)
        if (link->host[i]->greeted)
            by_shm_done(&link->host[i]->receiver);
    link->taken_count = 0;
}

/* ---- send ---- */

static struct by_link_host *find_host(struct by_dp_link *link, uint16_t udp_port)
{
    for (unsigned i = 0; i < link->host_count; i++)
        if (link->host[i]->greeted && link->host[i]->hello.udp_port == udp_port)
            return link->host[i];
    return NULL;
}

/* Returns a slot for the host's next packet, whose reference will be `ref`. NULL if the host is
 * that far behind, or claims to have read packets that were never sent. */
static struct by_shm_packet *slot_of(struct by_dp_link *link, struct by_link_host *host, uint32_t ref)
{
    struct by_shm_packet *packet = host ? by_shm_slot(&host->sender) : NULL;

    if (!packet)
        return NULL;
    if (host->sender.tail - host->reaped >= BY_SHM_SLOTS) {
        reap(link, host); /* the slot is free, so its previous content has been read */
        if (host->sender.tail - host->reaped >= BY_SHM_SLOTS)
            return NULL;
    }
    host->ref[host->sender.tail & (BY_SHM_SLOTS - 1)] = ref;
    return packet;
}

bool by_link_send(struct by_dp_link *link, const struct by_tx *tx, uint32_t src_ip)
{
    struct by_link_host *host = find_host(link, tx->udp_port);
    struct by_shm_packet *packet = slot_of(link, host, tx->ref);

    if (!packet) {
        if (tx->ref != BY_REF_NONE)
            by_engine_release(link->engine, tx->ref);
        return false;
    }
    packet->src_ip = src_ip;
    packet->dst_ip = tx->dst_ip;
    packet->udp_port = tx->udp_port;
    packet->payload_bytes = tx->payload_bytes;
    packet->ecn = tx->ecn;
    packet->direct = tx->payload != NULL;
    memcpy(packet->header, tx->header, BY_WIRE_HEADER_BYTES);
    if (tx->payload) {
        packet->place = BY_SHM_THERE;
        packet->at = (uint64_t)(tx->payload - link->memory);
    } else {
        packet->place = BY_SHM_SMALL;
        memcpy(packet->small, tx->small, tx->payload_bytes);
    }
    by_shm_put(&host->sender);
    return true;
}

/* Sends a frame to the host with its UDP port. */
static bool send_frame(struct by_dp_link *link, const struct rte_mbuf *mbuf)
{
    struct by_frame frame;
    struct by_link_host *host;
    struct by_shm_packet *packet;

    if (by_frame_parse(rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len, &frame) != 0 ||
        frame.bytes < BY_WIRE_HEADER_BYTES)
        return false;
    host = find_host(link, frame.dst_port);
    packet = slot_of(link, host, BY_REF_NONE);
    if (!packet || frame.bytes - BY_WIRE_HEADER_BYTES > host->room_bytes)
        return false;
    packet->src_ip = frame.src_ip;
    packet->dst_ip = frame.dst_ip;
    packet->udp_port = frame.dst_port;
    packet->payload_bytes = (uint16_t)(frame.bytes - BY_WIRE_HEADER_BYTES);
    packet->ecn = frame.ecn;
    packet->direct = 0;
    packet->place = BY_SHM_COPY;
    memcpy(packet->header, frame.data, BY_WIRE_HEADER_BYTES);
    memcpy(by_shm_room(host->cable, host->room_bytes, 1, host->sender.tail),
           frame.data + BY_WIRE_HEADER_BYTES, packet->payload_bytes);
    by_shm_put(&host->sender);
    return true;
}

uint16_t by_link_send_frames(struct by_dp_link *link, struct rte_mbuf **frames, uint16_t count)
{
    for (uint16_t i = 0; i < count; i++)
        link->lost += !send_frame(link, frames[i]);
    rte_pktmbuf_free_bulk(frames, count);
    return count;
}

void by_link_flush(struct by_dp_link *link)
{
    for (unsigned i = 0; i < link->host_count; i++)
        if (link->host[i]->greeted && by_shm_publish(&link->host[i]->sender))
            by_link_bell(link->host[i]);
}

void by_link_doze(struct by_dp_link *link)
{
    const uint64_t one = 1;

    for (unsigned i = 0; i < link->host_count; i++) {
        struct by_link_host *host = link->host[i];

        if (!host->greeted)
            continue;
        host->asleep = true;
        if (!by_shm_doze(&host->receiver))
            link->rung = link->rung || write(link->again, &one, sizeof one) == (ssize_t)sizeof one;
    }
}

void by_link_dropped(const struct by_dp_link *link, uint64_t *received, uint64_t *sent)
{
    *received += link->dropped;
    *sent += link->lost;
}

/* Adds the psum that a packet of `bytes` needs when it continues over a wire. */
static void put_psum(uint8_t *packet, uint16_t bytes)
{
    struct by_header header;
    const uint8_t *payload;
    int32_t size = by_header_decode(packet, bytes, &header, &payload);

    if (size < 0)
        return; /* no receiver */
    header.psum = by_psum(payload, (size_t)size);
    by_header_encode(&header, packet);
}

struct rte_mbuf *by_link_frame(const struct by_rx *rx, const struct by_frame *carrier,
                               struct rte_mempool *pool)
{
    struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
    /* Data from by_link_receive point into the packet. */
    const struct by_shm_packet *packet =
        (const struct by_shm_packet *)(const void *)(rx->data - offsetof(struct by_shm_packet, header));
    struct by_frame frame = *carrier;
    uint8_t *room;

    if (!mbuf)
        return NULL;
    room = (uint8_t *)rte_pktmbuf_append(mbuf, (uint16_t)(BY_FRAME_HEADER_BYTES + rx->bytes));
    if (!room) {
        rte_pktmbuf_free(mbuf);
        return NULL;
    }
    frame.src_ip = rx->src_ip;
    frame.dst_ip = rx->dst_ip;
    frame.src_port = TRANSIENT_PORT;
    frame.dst_port = packet->udp_port;
    frame.ecn = rx->ecn;
    frame.bytes = rx->bytes;
    memcpy(frame.dst_mac, carrier->src_mac, BY_MAC_BYTES);
    memcpy(frame.src_mac, carrier->dst_mac, BY_MAC_BYTES);
    by_frame_build(&frame, room);
    memcpy(room + BY_FRAME_HEADER_BYTES, rx->data, BY_WIRE_HEADER_BYTES);
    memcpy(room + BY_FRAME_HEADER_BYTES + BY_WIRE_HEADER_BYTES, rx->payload,
           (size_t)rx->bytes - BY_WIRE_HEADER_BYTES);
    if (rx->direct)
        put_psum(room + BY_FRAME_HEADER_BYTES, rx->bytes);
    return mbuf;
}
