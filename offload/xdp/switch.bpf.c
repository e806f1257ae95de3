// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0
/*
 * The kernel part of a switch on hosts and network cards without DPDK. It replicates and relays,
 * and makes no decisions: the engine chooses the receiving children of each packet, and everything
 * here follows from the table image alone (docs/decisions/0185).
 *
 *   by_port    on each port: relays valid packets of a relay in the table, and passes all others to
 *              the port's AF_XDP socket, where the engine receives them
 *   by_group   at the end of a veth pair into which the switch sends packets for several children:
 *              redirects each to all ports of its group (a devmap) at once
 *   by_child   behind by_group, for each copy: writes the headers for the child behind that port
 *
 * Neighbours: switch.h (maps), dataplane/xdp.c (the loader). Runs on the processor that received or
 * wrote the packet.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "offload/wire/frame.h"
#include "offload/wire/wire.h"
#include "offload/xdp/switch.h"

#define CRC_SLICES 8

/* A complete banyan packet without its payload. */
struct frame {
    struct ethhdr ethernet;
    struct iphdr ip;
    struct udphdr udp;
    __u8 head, type, flags, child;
    __be32 tree; /* job << 16 | tree */
    __u8 words[24];
    __be64 tag;
} __attribute__((packed));

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, BY_XDP_PORTS_MAX + 1);
    __type(key, __u32);
    __type(value, struct by_xdp_inside);
} by_inside SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_XSKMAP);
    __uint(max_entries, BY_XDP_PORTS_MAX);
    __type(key, __u32);
    __type(value, __u32);
} by_sockets SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 1); /* the loader sets the number */
    __type(key, struct by_xdp_relay_key);
    __type(value, struct by_xdp_relay);
} by_relays SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 1);
    __type(key, struct by_xdp_child_key);
    __type(value, struct by_xdp_child);
} by_children SEC(".maps");

/* The ports, as targets of relays. */
struct {
    __uint(type, BPF_MAP_TYPE_DEVMAP);
    __uint(max_entries, BY_XDP_PORTS_MAX);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct bpf_devmap_val));
} by_out SEC(".maps");

struct group_map {
    __uint(type, BPF_MAP_TYPE_DEVMAP);
    __uint(max_entries, BY_XDP_PORTS_MAX);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct bpf_devmap_val));
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, BY_XDP_GROUPS_MAX);
    __type(key, __u32);
    __array(values, struct group_map);
} by_groups SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, BY_XDP_COUNTS);
    __type(key, __u32);
    __type(value, __u64);
} by_counts SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, BY_XDP_PORTS_MAX);
    __type(key, __u32);
    __type(value, struct by_xdp_port_counts);
} by_port_counts SEC(".maps");

/* Table for CRC32C of eight bytes at a time; the loader computes it. */
const volatile __u32 by_crc_table[CRC_SLICES * 256] = {0};

static __always_inline void count(__u32 what)
{
    __u64 *value = bpf_map_lookup_elem(&by_counts, &what);

    if (value)
        *value += 1;
}

static __always_inline __u32 crc_slice(__u64 word, __u32 byte)
{
    return by_crc_table[(CRC_SLICES - 1 - byte) * 256 + (word >> (8 * byte) & 0xff)];
}

/* Computes the header's checksum like by_crc32c_of_32 (offload/base/crc32c.h). Words are
 * little-endian, like the processors on which this runs. */
static __always_inline __u32 crc_of_header(const struct frame *frame)
{
    const __u8 *data = &frame->head;
    __u32 crc = 0xffffffff;

#pragma unroll
    for (int i = 0; i < 4; i++) {
        __u64 word = *(const __u64 *)(data + 8 * i) ^ crc;

        crc = crc_slice(word, 0) ^ crc_slice(word, 1) ^ crc_slice(word, 2) ^ crc_slice(word, 3) ^
              crc_slice(word, 4) ^ crc_slice(word, 5) ^ crc_slice(word, 6) ^ crc_slice(word, 7);
    }
    return ~crc;
}

static __always_inline __u32 fold(__u64 sum)
{
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (__u32)((sum & 0xffff) + (sum >> 16));
}

/* Checks the IP header's checksum (RFC 1071). */
static __always_inline int ip_holds(const struct frame *frame)
{
    const __u32 *word = (const __u32 *)((const __u8 *)frame + sizeof(struct ethhdr));

    return fold((__u64)word[0] + word[1] + word[2] + word[3] + word[4]) == 0xffff;
}

/* Checks for IPv4 without options and fragments, and for valid lengths of IPv4 and UDP, like
 * by_frame_parse. */
static __always_inline int is_datagram(const struct frame *frame, __u64 bytes)
{
    __u32 total = bpf_ntohs(frame->ip.tot_len);

    return frame->ethernet.h_proto == bpf_htons(ETH_P_IP) &&
           ((const __u8 *)frame)[sizeof(struct ethhdr)] == BY_IP_HEAD && frame->ip.protocol == IPPROTO_UDP &&
           (frame->ip.frag_off & bpf_htons(BY_IP_FRAGMENT_BITS)) == 0 &&
           total >= sizeof(struct iphdr) + sizeof(struct udphdr) + BY_WIRE_HEADER_BYTES &&
           total + sizeof(struct ethhdr) <= bytes &&
           bpf_ntohs(frame->udp.len) == total - sizeof(struct iphdr);
}

static __always_inline int same_mac(const __u8 *a, const __u8 *b)
{
    return *(const __u32 *)a == *(const __u32 *)b && *(const __u16 *)(a + 4) == *(const __u16 *)(b + 4);
}

/* Returns whether a packet without a payload would be followed by another of its kind, like
 * by_datagram_first. */
static __always_inline int is_followed(const struct frame *frame, const void *end)
{
    const __u8 *next = (const __u8 *)(frame + 1);

    return next + 8 <= (const __u8 *)end && *(const __be32 *)(next + 4) == frame->tree &&
           next[0] == frame->head && (next[2] & BY_FLAG_NODATA);
}

/* Returns whether the engine would relay this packet. Packets with any defect go to the engine,
 * which counts them. */
static __always_inline int is_sound(const struct frame *frame, const void *end)
{
    __u32 payload = bpf_ntohs(frame->udp.len) - sizeof(struct udphdr) - BY_WIRE_HEADER_BYTES;

    if (frame->head != BY_WIRE_HEAD || frame->type == 0 || frame->type >= BY_TYPE_COUNT ||
        (frame->flags & ~BY_FLAGS_KNOWN) != 0)
        return 0;
    if ((frame->flags & BY_FLAG_NODATA) && payload != 0 &&
        !(payload >= BY_WIRE_HEADER_BYTES && is_followed(frame, end)))
        return 0;
    if (!ip_holds(frame))
        return 0;
    /* A relay has no keys; the receiver, which has them, checks the tag of a keyed packet. */
    return (frame->flags & BY_FLAG_KEYED) || bpf_be64_to_cpu(frame->tag) == crc_of_header(frame);
}

static __always_inline void count_rx(__u32 port, __u64 bytes)
{
    struct by_xdp_port_counts *counts = bpf_map_lookup_elem(&by_port_counts, &port);

    if (counts) {
        counts->rx_packets++;
        counts->rx_bytes += bytes;
    }
}

static __always_inline void count_tx(__u32 port, __u64 bytes)
{
    struct by_xdp_port_counts *counts = bpf_map_lookup_elem(&by_port_counts, &port);

    if (counts) {
        counts->tx_packets++;
        counts->tx_bytes += bytes;
    }
}

/* Relays a packet for another node: replaces its MAC addresses, and clears the UDP checksum, which
 * the sender may have left to its link. Returns 0 when no relay applies. */
static __always_inline int relay(struct xdp_md *ctx, const struct by_xdp_inside *inside)
{
    void *end = (void *)(long)ctx->data_end;
    struct frame *frame = (void *)(long)ctx->data;
    const struct by_xdp_relay *to;
    struct by_xdp_relay_key key;
    __u64 bytes = ctx->data_end - ctx->data;

    if ((void *)(frame + 1) > end || !inside->addressed || !is_datagram(frame, bytes) ||
        !same_mac(frame->ethernet.h_dest, inside->own_mac))
        return 0;
    key.tree = frame->tree;
    key.src_ip = frame->ip.saddr;
    key.dst_ip = frame->ip.daddr;
    to = bpf_map_lookup_elem(&by_relays, &key);
    if (!to || (to->from != 0 && to->from != inside->port + 1) || !is_sound(frame, end))
        return 0;
    __builtin_memcpy(&frame->ethernet, to->peer_mac, 2 * BY_XDP_MAC_BYTES);
    frame->udp.check = 0;
    count(BY_XDP_RELAYED);
    count_rx(inside->port, bytes);
    count_tx(to->port, bytes);
    return (int)bpf_redirect_map(&by_out, to->port, XDP_DROP);
}

SEC("xdp")
int by_port(struct xdp_md *ctx)
{
    __u32 interface = ctx->ingress_ifindex;
    const struct by_xdp_inside *inside = bpf_map_lookup_elem(&by_inside, &interface);
    int verdict;

    if (!inside)
        return XDP_PASS;
    verdict = relay(ctx, inside);
    return verdict ? verdict : (int)bpf_redirect_map(&by_sockets, inside->port, XDP_PASS);
}

/* The first four bytes of a packet from the switch name the group; by_child overwrites them with
 * MAC addresses. */
SEC("xdp")
int by_group(struct xdp_md *ctx)
{
    void *end = (void *)(long)ctx->data_end;
    struct frame *frame = (void *)(long)ctx->data;
    void *ports;
    __u32 group;

    if ((void *)(frame + 1) > end)
        return XDP_DROP; /* the kernel's own packet, such as neighbour discovery */
    group = *(const __u32 *)frame;
    ports = bpf_map_lookup_elem(&by_groups, &group);
    if (!ports) {
        count(BY_XDP_LOST);
        return XDP_DROP;
    }
    /* BPF_F_EXCLUDE_INGRESS is not used: the veth pair is in no group, and the index of its end in
     * its namespace may equal a port's index here. */
    return (int)bpf_redirect_map(ports, 0, BPF_F_BROADCAST);
}

/* Writes the addresses of a copy. Its IP checksum is that of addresses 0.0.0.0 so far (RFC
 * 1624). */
SEC("xdp/devmap")
int by_child(struct xdp_md *ctx)
{
    void *end = (void *)(long)ctx->data_end;
    struct frame *frame = (void *)(long)ctx->data;
    const struct by_xdp_child *child;
    struct by_xdp_child_key key;
    __u64 sum;

    if ((void *)(frame + 1) > end)
        return XDP_DROP;
    key.tree = frame->tree;
    key.interface = ctx->egress_ifindex;
    child = bpf_map_lookup_elem(&by_children, &key);
    if (!child) {
        count(BY_XDP_LOST);
        return XDP_DROP;
    }
    __builtin_memcpy(&frame->ethernet, child->peer_mac, 2 * BY_XDP_MAC_BYTES);
    frame->ip.saddr = child->src_ip;
    frame->ip.daddr = child->dst_ip;
    sum = (__u64)(__u16)~frame->ip.check + child->src_ip + child->dst_ip;
    frame->ip.check = (__u16)~fold(sum);
    frame->udp.dest = child->udp_port;
    frame->udp.check = 0; /* a checksum from the veth pair would be for other addresses */
    count(BY_XDP_REPLICATED);
    count_tx(child->port, ctx->data_end - ctx->data);
    return XDP_PASS;
}

char by_license[] SEC("license") = "Dual BSD/GPL";
