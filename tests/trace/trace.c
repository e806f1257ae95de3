/* Implements trace.h: the trace's table and frames. */
#include "tests/trace/trace.h"

#include <stdlib.h>
#include <string.h>

#include "offload/base/bytes.h"
#include "offload/reduce/reduce.h"
#include "offload/table/image.h"
#include "offload/wire/frame.h"
#include "offload/wire/wire.h"
#include "tests/unit/firmware/star.h"

#define JOB       STAR_JOB
#define GEN       STAR_GEN
#define ROOT      0u /* tree 0: all ports are children */
#define INNER     1u /* tree 1: port 3 is the parent */
#define RELAYED   2u /* tree 2: relayed */
#define PARENT    3u
#define PARENT_ME 2u          /* this switch's bit at the parent */
#define FAR_IP    0xc6120900u /* behind port 2 */
#define WORDS     (TRACE_PAYLOAD_MAX / 4)

static unsigned children(unsigned tree)
{
    return tree == ROOT ? TRACE_PORTS : TRACE_PORTS - 1;
}

static void put_entry(uint8_t *image, unsigned tree, uint32_t first_child, uint32_t slot_base)
{
    struct by_image_entry entry = {.job = JOB,
                                   .tree = (uint16_t)tree,
                                   .parent_node = tree == ROOT ? BY_NODE_NONE : 1 + PARENT,
                                   .parent_port = tree == ROOT ? 0 : PARENT,
                                   .parent_ip = tree == ROOT ? 0 : star_host_ip(PARENT),
                                   .parent_udp_port = tree == ROOT ? 0 : BY_UDP_PORT,
                                   .parent_child = tree == ROOT ? 0 : PARENT_ME,
                                   .child_count = (uint8_t)children(tree),
                                   .first_child = first_child,
                                   .window = TRACE_WINDOW,
                                   .payload_max = TRACE_PAYLOAD_MAX,
                                   .slot_base = slot_base,
                                   .nleaf = (uint16_t)children(tree),
                                   .depth = (uint8_t)by_image_det_depth(children(tree))};

    by_image_put_entry(image, tree, &entry);
    for (unsigned i = 0; i < children(tree); i++) {
        struct by_image_child child = {.port = (uint16_t)i,
                                       .node = (uint16_t)(1 + i),
                                       .ip = star_host_ip(i),
                                       .udp_port = BY_UDP_PORT,
                                       .rank = (uint16_t)i};

        by_image_put_child(image, first_child + i, &child);
    }
}

uint8_t *trace_image(size_t *bytes)
{
    uint32_t root_slots = TRACE_WINDOW * by_image_det_depth(children(ROOT));
    uint32_t inner_slots = TRACE_WINDOW * by_image_det_depth(children(INNER));
    struct by_image_header header = {.cookie = 1,
                                     .kind = BY_NODE_SWITCH,
                                     .slot_count = root_slots + inner_slots,
                                     .payload_max = TRACE_PAYLOAD_MAX,
                                     .name = "star"};
    struct by_image_job job = {.job = JOB,
                               .gen = GEN,
                               .rank_count = TRACE_PORTS,
                               .rank = BY_RANK_NONE,
                               .tree_count = RELAYED + 1,
                               .udp_port = BY_UDP_PORT};
    struct by_image_relay relay = {
        .job = JOB, .tree = RELAYED, .src_ip = star_host_ip(0), .dst_ip = FAR_IP, .port = 2, .from = 1};
    uint8_t *image;

    header.count[BY_SECTION_PORT] = TRACE_PORTS;
    header.count[BY_SECTION_JOB] = 1;
    header.count[BY_SECTION_ENTRY] = TRACE_TREES;
    header.count[BY_SECTION_CHILD] = children(ROOT) + children(INNER);
    header.count[BY_SECTION_RELAY] = 1;
    *bytes = by_image_bytes(header.count);
    image = calloc(1, *bytes);
    if (!image)
        abort();
    by_image_put_header(image, &header);
    for (unsigned i = 0; i < TRACE_PORTS; i++) {
        struct by_image_port port = {.name = {'p', (char)('0' + i)},
                                     .own_ip = star_port_ip(i),
                                     .peer_ip = star_host_ip(i),
                                     .peer_node = (uint16_t)(1 + i),
                                     .mtu = 1500};

        star_mac(port.own_ip, port.own_mac);
        star_mac(port.peer_ip, port.peer_mac);
        by_image_put_port(image, i, &port);
    }
    by_image_put_job(image, 0, &job);
    put_entry(image, ROOT, 0, 0);
    put_entry(image, INNER, children(ROOT), root_slots);
    by_image_put_relay(image, 0, &relay);
    by_image_seal(image);
    return image;
}

void trace_open(struct trace *trace, uint64_t seed)
{
    *trace = (struct trace){.prng.state = seed};
    for (unsigned tree = 0; tree < TRACE_TREES; tree++)
        trace->tree[tree].left = (UINT64_C(1) << children(tree)) - 1;
}

static uint32_t below(struct trace *trace, uint32_t bound)
{
    return (uint32_t)by_prng_below(&trace->prng, bound);
}

/* The properties of a chunk that all ranks know: derived from its number, so that they agree. */
struct trace_chunk {
    struct by_header header;
    unsigned collective;
    unsigned root; /* the child that has the data or needs them */
};

/* Copied data are bytes. */
static int is_copied(unsigned collective)
{
    return collective == BY_COLLECTIVE_BROADCAST || collective == BY_COLLECTIVE_ALLGATHER;
}

static struct trace_chunk chunk_of(unsigned tree, uint32_t seq)
{
    struct by_prng prng = {.state = (uint64_t)tree << 32 | seq};
    struct by_header header = {.job = JOB, .tree = (uint16_t)tree, .gen = GEN, .seq = seq};
    struct trace_chunk chunk = {.collective = 1 + (unsigned)by_prng_below(&prng, BY_COLLECTIVE_COUNT - 1),
                                .root = (unsigned)by_prng_below(&prng, children(tree))};

    header.dtype = (uint8_t)(1 + by_prng_below(&prng, BY_DTYPE_COUNT - 1));
    header.op =
        (uint8_t)(1 + by_prng_below(&prng, header.dtype < BY_DTYPE_F16 || by_prng_below(&prng, 100) == 0
                                               ? BY_OP_COUNT - 1
                                               : (uint64_t)BY_OP_MAX));
    header.mode = BY_MODE_FAST;
    if (header.dtype >= BY_DTYPE_F16)
        header.mode = (uint8_t)(by_prng_below(&prng, 12) == 0 ? BY_MODE_EXACT : 1 + by_prng_below(&prng, 2));
    if (is_copied(chunk.collective)) {
        header.op = BY_OP_BOR;
        header.dtype = BY_DTYPE_U8;
        header.mode = BY_MODE_FAST;
    }
    header.count = (uint16_t)by_prng_below(&prng, TRACE_PAYLOAD_MAX / by_dtype_bytes(header.dtype) + 1);
    if (chunk.collective == BY_COLLECTIVE_BARRIER)
        header.count = 0;
    header.optag = by_optag(seq, chunk.collective, (uint16_t)chunk.root, header.count);
    chunk.header = header;
    return chunk;
}

static struct by_header chunk_header(unsigned tree, uint32_t seq)
{
    return chunk_of(tree, seq).header;
}

/* Returns the flags of a child's contribution to a chunk; occasionally they do not match the
 * collective. */
static uint8_t flags_of(struct trace *trace, const struct trace_chunk *chunk, unsigned child)
{
    int is_root = child == chunk->root;
    uint8_t flags = 0;

    if (is_copied(chunk->collective))
        flags = is_root ? BY_FLAG_ACKONLY : BY_FLAG_NODATA;
    else if (chunk->collective == BY_COLLECTIVE_BARRIER)
        flags = BY_FLAG_NODATA | BY_FLAG_ACKONLY;
    else if (chunk->collective != BY_COLLECTIVE_ALLREDUCE && !is_root)
        flags = BY_FLAG_ACKONLY;
    if (below(trace, 40) == 0)
        flags ^= BY_FLAG_NODATA;
    if (below(trace, 40) == 0)
        flags ^= BY_FLAG_ACKONLY;
    if (below(trace, 10) == 0)
        flags |= BY_FLAG_RETX;
    return flags;
}

/* Writes values of an element type. Floats are small numbers, since the bits of a NaN depend on the
 * processor. */
static void fill(struct trace *trace, unsigned dtype, uint8_t *payload, size_t bytes)
{
    for (size_t at = 0; at < bytes; at++)
        payload[at] = (uint8_t)below(trace, 256);
    for (size_t at = 0; dtype == BY_DTYPE_F32 && at + 4 <= bytes; at += 4) {
        float value = (float)((int32_t)below(trace, 1u << 20) - (1 << 19)) / 1024;

        memcpy(payload + at, &value, 4);
    }
    for (size_t at = 0; dtype == BY_DTYPE_F64 && at + 8 <= bytes; at += 8) {
        double value = ((double)below(trace, 1u << 30) - (1 << 29)) / 4096;

        memcpy(payload + at, &value, 8);
    }
    for (size_t at = 0; (dtype == BY_DTYPE_F16 || dtype == BY_DTYPE_BF16) && at + 2 <= bytes; at += 2)
        payload[at + 1] = (uint8_t)((payload[at + 1] & 0x8f) | 0x30); /* an exponent in the middle */
}

/* Makes a frame from the neighbour at `port`: header, then `bytes` of payload at `payload`. */
static void send_packet(struct trace *trace, struct trace_frame *frame, unsigned port,
                        struct by_header *header, const uint8_t *payload, size_t bytes)
{
    uint8_t *packet = frame->data + BY_FRAME_HEADER_BYTES;
    /* Relayed packets have one sender; occasionally another cable claims its address. */
    int forged = header->tree == RELAYED && below(trace, 4) == 0;
    struct by_frame fields = {.src_ip = star_host_ip(forged ? 0 : port),
                              .dst_ip = header->tree == RELAYED ? FAR_IP : star_port_ip(port),
                              .src_port = BY_UDP_PORT,
                              .dst_port = BY_UDP_PORT,
                              .ecn = below(trace, 30) == 0 ? 3 : 2,
                              .bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + bytes)};

    memcpy(packet + BY_WIRE_HEADER_BYTES, payload, bytes);
    header->psum = by_psum(packet + BY_WIRE_HEADER_BYTES, bytes);
    by_header_encode(header, packet);
    star_mac(fields.src_ip, fields.src_mac);
    star_mac(star_port_ip(port), fields.dst_mac);
    by_frame_build(&fields, frame->data);
    frame->port = port;
    frame->bytes = BY_FRAME_HEADER_BYTES + fields.bytes;
}

static void contribute(struct trace *trace, struct trace_frame *frame, unsigned tree, uint32_t seq,
                       unsigned child)
{
    struct trace_chunk chunk = chunk_of(tree, seq);
    struct by_header header = chunk.header;
    size_t bytes = (size_t)header.count * by_dtype_bytes(header.dtype);
    uint8_t payload[TRACE_PAYLOAD_MAX];

    header.type = BY_TYPE_CONTRIB;
    header.child = (uint8_t)child;
    header.nleaf = 1;
    header.witness = by_leaf_tag(JOB, (uint16_t)child);
    header.flags = flags_of(trace, &chunk, child);
    fill(trace, header.dtype, payload, bytes);
    if (header.flags & BY_FLAG_NODATA)
        bytes = 0;
    send_packet(trace, frame, child, &header, payload, bytes);
}

/* Several credits in one datagram, for consecutive chunks; occasionally one of them is damaged. */
static void credits(struct trace *trace, struct trace_frame *frame)
{
    unsigned tree = below(trace, TRACE_TREES), child = below(trace, children(tree));
    uint32_t seq = trace->tree[tree].seq + below(trace, 3), count = 2 + below(trace, 3);
    uint8_t payload[TRACE_PAYLOAD_MAX];
    struct by_header header = {0};

    for (uint32_t i = 0; i < count; i++) {
        header = chunk_header(tree, seq + i);
        header.type = BY_TYPE_CONTRIB;
        header.child = (uint8_t)child;
        header.nleaf = 1;
        header.witness = by_leaf_tag(JOB, (uint16_t)child);
        header.flags = BY_FLAG_NODATA | (below(trace, 3) == 0 ? BY_FLAG_ACKONLY : 0);
        by_header_encode(&header, payload + i * BY_WIRE_HEADER_BYTES);
    }
    if (below(trace, 10) == 0)
        payload[below(trace, count * BY_WIRE_HEADER_BYTES)] ^= 1;
    /* send_packet writes the header of the first packet with the sum of an empty payload. */
    header = chunk_header(tree, seq);
    send_packet(trace, frame, child, &header, payload + BY_WIRE_HEADER_BYTES,
                (count - 1) * BY_WIRE_HEADER_BYTES);
    memcpy(frame->data + BY_FRAME_HEADER_BYTES, payload, BY_WIRE_HEADER_BYTES);
}

static void result(struct trace *trace, struct trace_frame *frame, uint32_t seq)
{
    struct by_header header = chunk_header(INNER, seq);
    size_t bytes = (size_t)header.count * by_dtype_bytes(header.dtype);
    uint8_t payload[TRACE_PAYLOAD_MAX];

    header.type = BY_TYPE_RESULT;
    header.child = below(trace, 2) ? BY_WIRE_CHILD_ALL : PARENT_ME;
    header.nleaf = 9;
    header.witness = below(trace, UINT32_MAX);
    if (below(trace, 12) == 0) {
        header.flags |= BY_FLAG_NODATA;
        bytes = 0;
    }
    fill(trace, BY_DTYPE_U8, payload, bytes);
    send_packet(trace, frame, PARENT, &header, payload, bytes);
}

/* Makes a frame that brings a chunk closer to completion. */
static void progress(struct trace *trace, struct trace_frame *frame)
{
    unsigned index = below(trace, TRACE_TREES), child;
    struct trace_tree *tree = &trace->tree[index];

    do
        child = below(trace, children(index));
    while (tree->left != 0 && !(tree->left >> child & 1));
    if (below(trace, 8) == 0) {
        /* The packet is lost; instead another child retransmits. */
        trace->lost++;
        contribute(trace, frame, index, tree->seq, below(trace, children(index)));
        return;
    }
    if (tree->wants_result) {
        result(trace, frame, tree->seq);
        tree->wants_result = 0;
    } else {
        tree->left &= ~(UINT64_C(1) << child);
        contribute(trace, frame, index, tree->seq, child);
        tree->wants_result = index == INNER && tree->left == 0;
    }
    if (tree->left == 0 && !tree->wants_result) {
        struct trace_chunk chunk = chunk_of(index, tree->seq);

        trace->chunks[chunk.collective]++;
        if (!is_copied(chunk.collective) && chunk.header.count > 0)
            trace->modes[chunk.header.mode]++;
        tree->seq++;
        tree->left = (UINT64_C(1) << children(index)) - 1;
    }
}

/* Returns a number near that of the current chunk: up to two windows back or one ahead. */
static uint32_t near(struct trace *trace, unsigned tree)
{
    return trace->tree[tree].seq + below(trace, 3 * TRACE_WINDOW + 2) - 2 * TRACE_WINDOW - 1;
}

/* WAIT, ERR and PROBE, from a child or from the parent. */
static void ask(struct trace *trace, struct trace_frame *frame)
{
    unsigned tree = below(trace, TRACE_TREES), port = below(trace, TRACE_PORTS);
    struct by_header header = chunk_header(tree, near(trace, tree));
    struct by_wait wait = {.node = (uint16_t)(1 + port),
                           .state = (uint8_t)(BY_WAIT_CHILDREN + below(trace, 2)),
                           .at = (uint16_t)(1 + port),
                           .missing = below(trace, 8)};
    /* Objections that void a chunk are rare; otherwise no chunk would be summed. */
    struct by_err err = {.node = (uint16_t)(1 + port),
                         .reason = (uint8_t)(below(trace, 4) ? BY_ERR_WINDOW : 1 + below(trace, BY_ERR_RANK)),
                         .seq = header.seq,
                         .agree = 1};
    struct by_gap gap = {.seen = header.seq + 1 + below(trace, 4),
                         .missing = (uint8_t)(1 + 2 * below(trace, 128))};
    uint8_t payload[BY_ERR_BYTES];
    size_t bytes = 0;

    header.count = 0;
    header.child = (uint8_t)(tree == INNER && port == PARENT ? PARENT_ME : port);
    header.type = (uint8_t)(BY_TYPE_WAIT + below(trace, 4));
    if (header.type == BY_TYPE_GAP) {
        by_gap_encode(&gap, payload);
        bytes = BY_GAP_BYTES;
    } else if (header.type == BY_TYPE_WAIT) {
        by_wait_encode(&wait, payload);
        bytes = BY_WAIT_BYTES;
    } else if (header.type == BY_TYPE_ERR) {
        by_err_encode(&err, payload);
        bytes = BY_ERR_BYTES;
    }
    send_packet(trace, frame, port, &header, payload, bytes);
}

/* Makes a relayed packet with any contents: any type, with or without a key, several credits.
 * Returns the size after its header (bytes). */
static size_t passing(struct trace *trace, struct by_header *header, uint8_t payload[64])
{
    header->tree = RELAYED;
    header->type = (uint8_t)(BY_TYPE_CONTRIB + below(trace, BY_TYPE_COUNT - 1));
    if (below(trace, 4) == 0)
        header->flags |= BY_FLAG_KEYED;
    if (below(trace, 3) != 0)
        return below(trace, 65);
    header->flags |= BY_FLAG_NODATA;
    if (below(trace, 2) == 0)
        return below(trace, 8) == 0 ? 8 : 0;
    by_header_encode(header, payload);
    return BY_WIRE_HEADER_BYTES;
}

/* Makes a packet with a wrong job, tree, generation or child, or one to be relayed. */
static void foreign(struct trace *trace, struct trace_frame *frame)
{
    unsigned port = below(trace, TRACE_PORTS);
    struct by_header header = chunk_header(ROOT, trace->tree[ROOT].seq);
    uint8_t payload[64] = {0};
    size_t bytes = sizeof payload;

    header.type = BY_TYPE_CONTRIB;
    header.child = (uint8_t)port;
    switch (below(trace, 20)) {
    case 0:
        header.job = 7;
        break;
    case 1:
        header.gen++;
        break;
    case 2:
        header.child = (uint8_t)(port + 1 + below(trace, 80));
        break;
    case 3:
        header.op = (uint8_t)(1 + below(trace, BY_OP_COUNT - 1));
        header.count = 16;
        break;
    default:
        bytes = passing(trace, &header, payload);
        port = below(trace, 8) ? 0 : port;
        break;
    }
    send_packet(trace, frame, port, &header, payload, bytes);
}

void trace_arp(unsigned port, struct trace_frame *frame)
{
    static const uint8_t kind[] = {8, 6, 0, 1, 8, 0, 6, 4, 0, 1};

    memset(frame->data, 0, 60);
    memset(frame->data, 0xff, BY_MAC_BYTES);
    star_mac(star_host_ip(port), frame->data + 6);
    memcpy(frame->data + 12, kind, sizeof kind);
    star_mac(star_host_ip(port), frame->data + 22);
    by_put32(frame->data + 28, star_host_ip(port));
    by_put32(frame->data + 38, star_port_ip(port));
    frame->port = port;
    frame->bytes = 60;
}

/* Damages a valid frame. */
static void damage(struct trace *trace, struct trace_frame *frame)
{
    switch (below(trace, 5)) {
    case 0:
        frame->bytes = 14 + below(trace, (uint32_t)frame->bytes - 14);
        break;
    case 1:
        frame->data[36] ^= 1; /* the UDP port */
        break;
    case 2:
        frame->data[below(trace, BY_MAC_BYTES)] ^= 4;
        break;
    case 3:
        frame->port = (frame->port + 1) % TRACE_PORTS;
        break;
    default:
        frame->data[below(trace, (uint32_t)frame->bytes)] ^= (uint8_t)(1u << below(trace, 8));
        break;
    }
}

void trace_next(struct trace *trace, struct trace_frame *frame)
{
    uint32_t draw = below(trace, 100);
    unsigned tree = below(trace, TRACE_TREES);

    if (draw < 60) {
        progress(trace, frame);
    } else if (draw < 72) {
        contribute(trace, frame, tree, near(trace, tree), below(trace, children(tree)));
    } else if (draw < 75) {
        result(trace, frame, near(trace, INNER));
    } else if (draw < 78) {
        credits(trace, frame);
    } else if (draw < 83) {
        ask(trace, frame);
    } else if (draw < 88) {
        foreign(trace, frame);
        if (below(trace, 4) == 0)
            damage(trace, frame);
    } else if (draw < 91) {
        trace_arp(below(trace, TRACE_PORTS), frame);
        if (below(trace, 3) == 0)
            frame->data[41] ^= 1;
    } else if (draw < 99) {
        contribute(trace, frame, tree, trace->tree[tree].seq, below(trace, children(tree)));
        damage(trace, frame);
    } else {
        frame->port = below(trace, TRACE_PORTS);
        frame->bytes = 14 + below(trace, 200);
        fill(trace, BY_DTYPE_U8, frame->data, frame->bytes);
    }
}
