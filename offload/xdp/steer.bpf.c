// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0
/*
 * Redirects a job's packets to its AF_XDP sockets: UDP to the host's address and the job's port
 * goes to the socket of the receive queue, everything else to the kernel. Each interface and job
 * has its own copy of the program; the loader (host-driver/xdp_program.c) sets the two constants.
 * There are two entry points, because a program for frames larger than a page declares that by its
 * section name.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "offload/wire/frame.h"

#define QUEUES_MAX 64

struct {
    __uint(type, BPF_MAP_TYPE_XSKMAP);
    __uint(max_entries, QUEUES_MAX);
    __type(key, __u32);
    __type(value, __u32);
} by_sockets SEC(".maps");

const volatile __u32 by_own_ip = 0;   /* network order */
const volatile __u32 by_udp_port = 0; /* network order, in the low half */

static __always_inline int steer(struct xdp_md *ctx)
{
    void *data = (void *)(long)ctx->data;
    void *end = (void *)(long)ctx->data_end;
    struct ethhdr *ethernet = data;
    struct iphdr *ip = (void *)(ethernet + 1);
    struct udphdr *udp = (void *)(ip + 1);

    if ((void *)(udp + 1) > end)
        return XDP_PASS;
    if (ethernet->h_proto != bpf_htons(ETH_P_IP) || ip->version != 4 || ip->ihl != 5 ||
        ip->protocol != IPPROTO_UDP)
        return XDP_PASS;
    if (ip->daddr != by_own_ip || udp->dest != (__be16)by_udp_port ||
        (ip->frag_off & bpf_htons(BY_IP_FRAGMENT_BITS)) != 0)
        return XDP_PASS;
    /* For a queue without a socket, the packet goes to the kernel. */
    return bpf_redirect_map(&by_sockets, ctx->rx_queue_index, XDP_PASS);
}

SEC("xdp")
int by_steer(struct xdp_md *ctx)
{
    return steer(ctx);
}

SEC("xdp.frags")
int by_steer_frags(struct xdp_md *ctx)
{
    return steer(ctx);
}

char by_license[] SEC("license") = "Dual BSD/GPL";
