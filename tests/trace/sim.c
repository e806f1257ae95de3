/*
 * The simulator: its own nodes and cables (host-driver/sim), in which no time passes. The frames
 * that arrive at the switch's neighbours are those that it has sent. A simulated packet has
 * addresses and a UDP payload but is not a frame: this file makes the headers, and frames that
 * never become packets have no meaning here.
 */
#include <stdlib.h>
#include <string.h>

#include "host-driver/sim/inside.h"
#include "offload/base/bytes.h"
#include "offload/wire/frame.h"
#include "offload/wire/stripe.h"
#include "tests/trace/trace.h"
#include "tests/unit/firmware/star.h"

#define SWITCH 0u /* node; port i leads to node 1 + i */

static struct by_world *world;
static struct by_image_port ports[TRACE_PORTS];

/* Returns a neighbour that runs nothing. */
static struct by_world_node neighbour(unsigned port)
{
    struct by_image_header header = {.kind = BY_NODE_HOST, .node = (uint16_t)(1 + port), .name = "host"};
    struct by_image_port record = {
        .name = "eth0", .own_ip = ports[port].peer_ip, .peer_ip = ports[port].own_ip, .mtu = ports[port].mtu};
    struct by_world_node node = {0};

    header.count[BY_SECTION_PORT] = 1;
    memcpy(record.own_mac, ports[port].peer_mac, BY_MAC_BYTES);
    memcpy(record.peer_mac, ports[port].own_mac, BY_MAC_BYTES);
    node.image_bytes = by_image_bytes(header.count);
    node.image = calloc(1, node.image_bytes);
    if (node.image == NULL)
        abort();
    by_image_put_header(node.image, &header);
    by_image_put_port(node.image, 0, &record);
    by_image_seal(node.image);
    return node;
}

void trace_sim_open(const uint8_t *image, size_t bytes)
{
    struct by_world_node nodes[1 + TRACE_PORTS] = {{.image = malloc(bytes), .image_bytes = bytes}};
    struct by_world_arc arcs[2 * TRACE_PORTS];
    struct by_world_fabric fabric = {.node_count = 1 + TRACE_PORTS,
                                     .arc_count = 2 * TRACE_PORTS,
                                     .job_count = 1,
                                     .nodes = nodes,
                                     .arcs = arcs,
                                     .jobs = {STAR_JOB}};
    struct by_world_config config = {.burst = 1, .repair_interval_ns = 1};

    if (nodes[SWITCH].image == NULL)
        abort();
    memcpy(nodes[SWITCH].image, image, bytes);
    for (unsigned i = 0; i < TRACE_PORTS; i++) {
        by_image_port(image, i, &ports[i]);
        nodes[1 + i] = neighbour(i);
        arcs[2 * i] =
            (struct by_world_arc){.from = SWITCH, .to = 1 + i, .from_port = (uint16_t)i, .ps_den = 1};
        arcs[2 * i + 1] =
            (struct by_world_arc){.from = 1 + i, .to = SWITCH, .to_port = (uint16_t)i, .ps_den = 1};
    }
    world = by_world_create(&fabric, &config, NULL, NULL);
}

void trace_sim_close(void)
{
    by_world_destroy(world);
}

static int is_own(uint32_t ip)
{
    for (unsigned i = 0; i < TRACE_PORTS; i++)
        if (ports[i].own_ip == ip)
            return 1;
    return 0;
}

/* Makes a frame from a packet that arrived at a neighbour. A relayed frame is the incoming one with
 * other MAC addresses. */
static void record(const struct trace_frame *in, unsigned port, const struct by_sim_parcel *parcel,
                   struct trace_out *out)
{
    struct trace_frame *to = &out->frame[out->count++];
    struct by_frame fields = {.src_ip = parcel->src_ip,
                              .dst_ip = parcel->dst_ip,
                              .src_port =
                                  by_source_port(by_get32(parcel->data + BY_HEADER_AT_JOB),
                                                 by_get32(parcel->data + BY_HEADER_AT_SEQ), parcel->udp_port),
                              .dst_port = parcel->udp_port,
                              .ecn = parcel->ecn,
                              .bytes = parcel->bytes};

    if (out->count > TRACE_OUT_MAX || BY_FRAME_HEADER_BYTES + (size_t)parcel->bytes > TRACE_FRAME_MAX)
        abort();
    memcpy(fields.src_mac, ports[port].own_mac, BY_MAC_BYTES);
    memcpy(fields.dst_mac, ports[port].peer_mac, BY_MAC_BYTES);
    to->port = port;
    to->bytes = BY_FRAME_HEADER_BYTES + (size_t)parcel->bytes;
    by_frame_build(&fields, to->data);
    if (!is_own(parcel->src_ip)) {
        to->bytes = in->bytes;
        memcpy(to->data, in->data, in->bytes);
        memcpy(to->data, fields.dst_mac, BY_MAC_BYTES);
        memcpy(to->data + BY_MAC_BYTES, fields.src_mac, BY_MAC_BYTES);
        by_put16(to->data + 40, 0);
    }
    memcpy(to->data + BY_FRAME_HEADER_BYTES, parcel->data, parcel->bytes);
}

int trace_sim_step(const struct trace_frame *in, struct trace_out *out)
{
    struct by_tx tx = {.ref = BY_REF_NONE};
    struct by_sim_parcel *parcel;
    struct by_sim_event event;
    struct by_frame frame;
    int is_first = 1;

    out->count = 0;
    if (by_frame_parse(in->data, in->bytes, &frame) != 0 ||
        memcmp(frame.dst_mac, ports[in->port].own_mac, BY_MAC_BYTES) != 0 ||
        (is_own(frame.dst_ip) && frame.dst_port != BY_UDP_PORT) || frame.bytes < BY_WIRE_HEADER_BYTES)
        return 0;
    /* As a cable would deliver it. */
    tx.payload = frame.data + BY_WIRE_HEADER_BYTES;
    tx.payload_bytes = (uint16_t)(frame.bytes - BY_WIRE_HEADER_BYTES);
    tx.udp_port = frame.dst_port;
    tx.dst_ip = frame.dst_ip;
    tx.ecn = frame.ecn;
    memcpy(tx.header, frame.data, BY_WIRE_HEADER_BYTES);
    parcel = by_parcel_make(world, &tx);
    parcel->src_ip = frame.src_ip;
    parcel->port = (uint16_t)in->port;
    by_heap_push(&world->heap, 0, BY_EVENT_ARRIVE, SWITCH, parcel);
    while (by_heap_pop(&world->heap, &event)) {
        if (event.kind == BY_EVENT_POLL) {
            by_sim_node_on_poll(world, event.index, event.at_ps);
        } else if (event.kind == BY_EVENT_DEPART) {
            by_cable_on_depart(world, event.index);
        } else if (is_first) {
            is_first = 0;
            by_sim_node_on_arrive(world, SWITCH, event.parcel);
        } else {
            record(in, event.index - 1, event.parcel, out);
            by_parcel_put(world, event.parcel);
        }
    }
    return 1;
}
