/* Network ports; see net.h. */
#include "firmware/baremetal/net.h"

#include "firmware/baremetal/cache.h"
#include "firmware/baremetal/clock.h"
#include "offload/base/assert.h"
#include "offload/base/bytes.h"

enum { QUEUE_RX = 0, QUEUE_TX = 1 };
/* The feature VIRTIO_NET_F_MAC: the device's configuration begins with its MAC address. */
#define FEATURE_MAC (UINT64_C(1) << 5)
/* The feature VIRTIO_NET_F_STATUS, and the offset of the low byte of `status` in the device's
 * configuration. */
#define FEATURE_STATUS (UINT64_C(1) << 16)
#define CONFIG_STATUS  6u
#define STATUS_LINK_UP 1u
/* How long to wait for a full ring before a packet is dropped (ns). */
#define FULL_NS 2000000u

/* Gives every idle descriptor a buffer, while there are any. */
static void refill(struct by_metal_net *net)
{
    while (net->idle_count > 0) {
        uint16_t buffer = by_pool_take(net->pool), at;

        if (buffer == BY_BUFFER_NONE)
            break;
        at = net->idle[--net->idle_count];
        net->posted[at] = buffer;
        by_cache_drop(net->pool->buffer[buffer].data, net->pool->room);
        net->rx.descriptor[at] =
            (struct by_ring_descriptor){.address = (uintptr_t)net->pool->buffer[buffer].data + BY_BUFFER_LEAD,
                                        .bytes = net->pool->room - BY_BUFFER_LEAD,
                                        .flags = BY_RING_DEVICE_WRITES};
        by_virtio_ring_offer(&net->rx, at);
    }
    by_virtio_ring_publish(&net->rx);
}

void by_net_open(struct by_metal_net *net, uint32_t index, const struct by_virtio *device,
                 struct by_pool *pool, struct by_engine *engine)
{
    uint64_t features;

    *net = (struct by_metal_net){.device = *device, .pool = pool, .engine = engine, .name = "p"};
    net->name[1] = (char)('0' + index / 10);
    net->name[2] = (char)('0' + index % 10);
    if (index < 10) {
        net->name[1] = net->name[2];
        net->name[2] = 0;
    }
    features = by_virtio_start(device, FEATURE_MAC | FEATURE_STATUS);
    net->tells_link = (features & FEATURE_STATUS) != 0;
    for (uint32_t i = 0; i < sizeof(net->mac) && (features & FEATURE_MAC) != 0; i++)
        net->mac[i] = by_virtio_config8(device, i);
    by_virtio_ring(device, QUEUE_RX, &net->rx);
    by_virtio_ring(device, QUEUE_TX, &net->tx);
    net->slot_count = net->tx.size / 2;
    for (uint16_t i = 0; i < net->slot_count; i++)
        net->slot_free[net->slot_free_count++] = i;
    for (uint16_t i = 0; i < net->rx.size; i++)
        net->idle[net->idle_count++] = i;
    by_virtio_run(device);
    refill(net);
}

bool by_net_is_down(const struct by_metal_net *net)
{
    return net->tells_link && !(by_virtio_config8(&net->device, CONFIG_STATUS) & STATUS_LINK_UP);
}

uint32_t by_net_receive(struct by_metal_net *net, uint16_t *buffers, uint32_t most)
{
    uint32_t count = 0, bytes;
    uint16_t at;

    while (count < most && by_virtio_ring_take(&net->rx, &at, &bytes)) {
        uint16_t buffer = net->posted[at];

        net->idle[net->idle_count++] = at;
        if (bytes < BY_NET_HEADER_BYTES || bytes > net->pool->room - BY_BUFFER_LEAD) {
            by_pool_drop(net->pool, buffer);
            continue;
        }
        by_cache_drop(net->pool->buffer[buffer].data, BY_BUFFER_LEAD + bytes);
        net->pool->buffer[buffer].bytes = (uint16_t)(bytes - BY_NET_HEADER_BYTES);
        net->rx_packets++;
        net->rx_bytes += bytes - BY_NET_HEADER_BYTES;
        buffers[count++] = buffer;
    }
    if (net->idle_count > 0)
        refill(net);
    return count;
}

bool by_net_untag(struct by_metal_net *net, uint16_t buffer, uint16_t vlan)
{
    struct by_metal_buffer *frame = &net->pool->buffer[buffer];
    uint8_t *data = frame->data + frame->at;
    uint16_t tag = by_frame_vlan(data, frame->bytes);

    if (tag != 0 && tag == vlan) {
        by_frame_untag(data);
        frame->at += BY_FRAME_TAG_BYTES;
        frame->bytes -= BY_FRAME_TAG_BYTES;
    }
    return tag == vlan;
}

void by_net_reclaim(struct by_metal_net *net)
{
    uint32_t bytes;
    uint16_t head;

    while (by_virtio_ring_take(&net->tx, &head, &bytes)) {
        struct by_net_slot *slot = &net->slot[head / 2];

        if (slot->ref != BY_REF_NONE)
            by_engine_release(net->engine, slot->ref);
        if (slot->buffer != BY_BUFFER_NONE)
            by_pool_drop(net->pool, slot->buffer);
        net->slot_free[net->slot_free_count++] = head / 2;
    }
}

/* Waits a while for a free slot if the device is behind; returns false when there is none. */
static bool await_slot(struct by_metal_net *net)
{
    uint64_t begin;

    if (net->slot_free_count > 0)
        return true;
    by_net_reclaim(net);
    if (net->slot_free_count > 0)
        return true;
    by_net_flush(net);
    begin = by_clock_ns();
    while (net->slot_free_count == 0 && by_clock_ns() - begin < FULL_NS)
        by_net_reclaim(net);
    if (net->slot_free_count > 0)
        return true;
    net->tx_dropped++;
    return false;
}

uint8_t *by_net_head(struct by_metal_net *net)
{
    if (!await_slot(net))
        return NULL;
    return net->slot[net->slot_free[net->slot_free_count - 1]].head + BY_BUFFER_LEAD + BY_NET_HEADER_BYTES;
}

/* Offers the next slot to the device: `head_bytes` at `head` and the descriptors chained to
 * them. */
static void offer(struct by_metal_net *net, const uint8_t *head, uint32_t head_bytes, const uint8_t *payload,
                  uint32_t payload_bytes)
{
    uint16_t at = (uint16_t)(2 * net->slot_free[--net->slot_free_count]);
    struct by_ring_descriptor *descriptor = &net->tx.descriptor[at];

    by_cache_clean(head, head_bytes);
    descriptor[0] = (struct by_ring_descriptor){.address = (uintptr_t)head, .bytes = head_bytes};
    if (payload_bytes > 0) {
        by_cache_clean(payload, payload_bytes);
        descriptor[0].flags = BY_RING_NEXT;
        descriptor[0].next = (uint16_t)(at + 1);
        descriptor[1] = (struct by_ring_descriptor){.address = (uintptr_t)payload, .bytes = payload_bytes};
    }
    net->tx_packets++;
    net->tx_bytes += head_bytes + payload_bytes - BY_NET_HEADER_BYTES;
    by_virtio_ring_offer(&net->tx, at);
}

/* Writes the device's header before the frame at `frame`, and a tag if the port has a VLAN. Returns
 * where the device begins to read; adds the bytes to `*bytes`. */
static uint8_t *begin(const struct by_metal_net *net, uint8_t *frame, uint32_t *bytes)
{
    uint8_t *start = frame - BY_NET_HEADER_BYTES;

    if (net->vlan != 0) {
        by_frame_tag(frame, net->vlan);
        start -= BY_FRAME_TAG_BYTES;
        *bytes += BY_FRAME_TAG_BYTES;
    }
    by_zero(start, BY_NET_HEADER_BYTES);
    *bytes += BY_NET_HEADER_BYTES;
    return start;
}

void by_net_send(struct by_metal_net *net, uint32_t head_bytes, const uint8_t *payload,
                 uint32_t payload_bytes, uint32_t ref, uint16_t buffer)
{
    struct by_net_slot *slot = &net->slot[net->slot_free[net->slot_free_count - 1]];
    const uint8_t *start;

    BY_ASSERT(net->slot_free_count > 0 && head_bytes <= BY_NET_HEAD_BYTES);
    slot->ref = ref;
    slot->buffer = buffer;
    start = begin(net, slot->head + BY_BUFFER_LEAD + BY_NET_HEADER_BYTES, &head_bytes);
    offer(net, start, head_bytes, payload, payload_bytes);
}

void by_net_forward(struct by_metal_net *net, uint16_t buffer)
{
    const struct by_metal_buffer *frame = &net->pool->buffer[buffer];
    struct by_net_slot *slot;
    const uint8_t *start;
    uint32_t bytes;

    if (!await_slot(net)) {
        by_pool_drop(net->pool, buffer);
        return;
    }
    slot = &net->slot[net->slot_free[net->slot_free_count - 1]];
    slot->ref = BY_REF_NONE;
    slot->buffer = buffer;
    bytes = frame->bytes;
    start = begin(net, frame->data + frame->at, &bytes);
    offer(net, start, bytes, NULL, 0);
}

void by_net_flush(struct by_metal_net *net)
{
    by_virtio_ring_publish(&net->tx);
}

bool by_net_alert(struct by_metal_net *net, bool wanted)
{
    bool rx = by_virtio_ring_alert(&net->rx, wanted);
    bool tx = by_virtio_ring_alert(&net->tx, wanted && net->slot_free_count < net->slot_count);

    return rx || tx;
}
