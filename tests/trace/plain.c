/* The engine in memory, with the minimum that a shell must do; the reference for the other shells.
 * Uses the scalar kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload/base/bytes.h"
#include "offload/engine/engine.h"
#include "offload/reduce/reduce.h"
#include "offload/wire/frame.h"
#include "offload/wire/stripe.h"
#include "tests/trace/trace.h"

#define TX_MAX (BY_CHILDREN_MAX + 2)

static struct by_engine *engine;
static struct by_image_port ports[TRACE_PORTS];

void trace_plain_open(const uint8_t *image, size_t bytes)
{
    struct by_engine_config config = {.slot_count_max = 256,
                                      .payload_max = TRACE_PAYLOAD_MAX,
                                      .image_bytes_max = 1 << 16,
                                      .entry_count_max = 16,
                                      .relay_count_max = 16,
                                      .repair_interval_ns = 1,
                                      .isa = BY_ISA_SCALAR};
    struct by_image_fault fault = {0};
    void *memory = aligned_alloc(64, (by_engine_size(&config) + 63) / 64 * 64);

    if (!memory || by_engine_init(&engine, memory, by_engine_size(&config), &config) != 0 ||
        by_engine_stage(engine, image, bytes, &fault) != 0 || by_engine_commit(engine) != 0) {
        fprintf(stderr, "trace: the engine refuses the table: %s %u: %s\n", fault.section, fault.index,
                fault.what);
        exit(1);
    }
    for (unsigned i = 0; i < TRACE_PORTS; i++)
        by_image_port(image, i, &ports[i]);
}

static struct trace_frame *add(struct trace_out *out, unsigned port, size_t bytes)
{
    struct trace_frame *frame = &out->frame[out->count++];

    if (out->count > TRACE_OUT_MAX || bytes > TRACE_FRAME_MAX)
        abort();
    frame->port = port;
    frame->bytes = bytes;
    return frame;
}

static void send_tx(const struct by_tx *tx, const struct trace_frame *in, struct trace_out *out)
{
    const struct by_image_port *port = &ports[tx->port];
    struct by_frame fields = {.src_ip = port->own_ip,
                              .dst_ip = tx->dst_ip,
                              .dst_port = tx->udp_port,
                              .ecn = tx->ecn,
                              .bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + tx->payload_bytes)};
    struct trace_frame *frame;

    if (tx->kind == BY_TX_RELAY) {
        frame = add(out, tx->port, in->bytes);
        memcpy(frame->data, in->data, in->bytes);
        memcpy(frame->data, port->peer_mac, BY_MAC_BYTES);
        memcpy(frame->data + BY_MAC_BYTES, port->own_mac, BY_MAC_BYTES);
        by_put16(frame->data + 40, 0);
        return;
    }
    fields.src_port = by_source_port(by_get32(tx->header + BY_HEADER_AT_JOB),
                                     by_get32(tx->header + BY_HEADER_AT_SEQ), tx->udp_port);
    memcpy(fields.src_mac, port->own_mac, BY_MAC_BYTES);
    memcpy(fields.dst_mac, port->peer_mac, BY_MAC_BYTES);
    frame = add(out, tx->port, BY_FRAME_HEADER_BYTES + (size_t)fields.bytes);
    by_frame_build(&fields, frame->data);
    memcpy(frame->data + BY_FRAME_HEADER_BYTES, tx->header, BY_WIRE_HEADER_BYTES);
    memcpy(frame->data + BY_FRAME_HEADER_BYTES + BY_WIRE_HEADER_BYTES, tx->payload ? tx->payload : tx->small,
           tx->payload_bytes);
    if (tx->ref != BY_REF_NONE)
        by_engine_release(engine, tx->ref);
}

static int is_own(uint32_t ip)
{
    for (unsigned i = 0; i < TRACE_PORTS; i++)
        if (ports[i].own_ip == ip)
            return 1;
    return 0;
}

void trace_plain_step(const struct trace_frame *in, struct trace_out *out)
{
    const struct by_image_port *port = &ports[in->port];
    struct by_tx tx[TX_MAX];
    struct by_frame frame;
    struct by_rx rx;
    uint8_t arp[BY_FRAME_HEADER_BYTES];
    uint32_t count = 0;

    out->count = 0;
    if (by_frame_parse(in->data, in->bytes, &frame) != 0) {
        if (by_arp_reply(in->data, in->bytes, port->own_ip, port->own_mac, arp) > 0)
            memcpy(add(out, in->port, sizeof arp)->data, arp, sizeof arp);
        return;
    }
    if (memcmp(frame.dst_mac, port->own_mac, BY_MAC_BYTES) != 0 ||
        (is_own(frame.dst_ip) && frame.dst_port != BY_UDP_PORT))
        return;
    rx = (struct by_rx){.data = frame.data,
                        .bytes = frame.bytes,
                        .port = (uint16_t)in->port,
                        .src_ip = frame.src_ip,
                        .dst_ip = frame.dst_ip,
                        .ecn = frame.ecn};
    for (uint32_t done = 0; done == 0;) { /* a datagram may take several steps */
        done = by_engine_step(engine, 0, &rx, 1, tx, TX_MAX, &count);
        for (uint32_t i = 0; i < count; i++)
            send_tx(&tx[i], in, out);
    }
}
