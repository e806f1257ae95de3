// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0
/*
 * Copies each frame that an interface receives into a ring (tcx at ingress, since Linux 6.6; BPF
 * ring buffer, since Linux 5.8), before the network stack sees it. The loader and reader is
 * offload/linux/ring.c. The kernel requires the size of a record as a constant, so there are three:
 * for one packet without a payload, for several, and for the longest frame.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>

#include <bpf/bpf_helpers.h>

#include "offload/wire/frame.h"
#include "offload/xdp/ring.h"

/* Results of a tcx program, which older headers lack. */
#define NEXT (-1)
#define DROP 2
/* Frames up to these lengths have records of their own size (bytes). */
#define SHORT_BYTES  (2 * BY_RECORD_LINE + BY_RECORD_LINE / 4)
#define MIDDLE_BYTES 704

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096); /* the loader sets it */
} by_frames SEC(".maps");

const volatile struct by_ring_constants by_constants = {0};
struct by_ring_shared by_shared;

/* Load from the packet in host order, also from non-linear packets; they end the program with
 * result 0 if the packet is too short. */
unsigned long long load_byte(void *skb, unsigned long long at) asm("llvm.bpf.load.byte");
unsigned long long load_half(void *skb, unsigned long long at) asm("llvm.bpf.load.half");
unsigned long long load_word(void *skb, unsigned long long at) asm("llvm.bpf.load.word");

/* Offsets in a frame over IPv6 (RFC 8200). */
#define AT_NEXT6     20
#define AT_RECEIVER6 38
#define AT_PORT6     56

static __always_inline int is_ours_ipv6(struct __sk_buff *skb)
{
    return load_half(skb, BY_FRAME_AT_TYPE) == ETH_P_IPV6 && load_byte(skb, AT_NEXT6) == IPPROTO_UDP &&
           load_word(skb, AT_RECEIVER6) == by_constants.ipv6[0] &&
           load_word(skb, AT_RECEIVER6 + 4) == by_constants.ipv6[1] &&
           load_word(skb, AT_RECEIVER6 + 8) == by_constants.ipv6[2] &&
           load_word(skb, AT_RECEIVER6 + 12) == by_constants.ipv6[3] &&
           load_half(skb, AT_PORT6) == by_constants.udp_port;
}

/* Frames with a tag are for the kernel's interface of their VLAN. */
static __always_inline int is_wanted(struct __sk_buff *skb)
{
    if (skb->vlan_present)
        return 0;
    if (by_constants.ipv6[0] | by_constants.ipv6[1] | by_constants.ipv6[2] | by_constants.ipv6[3])
        return is_ours_ipv6(skb);
    return by_constants.all ||
           (load_half(skb, BY_FRAME_AT_TYPE) == ETH_P_IP && load_byte(skb, BY_FRAME_AT_IP) == BY_IP_HEAD &&
            load_byte(skb, BY_FRAME_AT_PROTOCOL) == IPPROTO_UDP &&
            load_word(skb, BY_FRAME_AT_RECEIVER) == by_constants.ip &&
            load_half(skb, BY_FRAME_AT_PORT) == by_constants.udp_port);
}

/* Copies a frame of at most `room` bytes into a new record. NULL where the ring has no room. */
static __always_inline __u8 *copy(struct __sk_buff *skb, __u32 bytes, __u32 room)
{
    __u8 *record = bpf_ringbuf_reserve(&by_frames, BY_RECORD_BYTES(room) - BY_RECORD_KERNEL, 0);

    if (!record) {
        __sync_fetch_and_add(&by_shared.lost, 1);
        return record;
    }
    *(__u32 *)record = bytes;
    if (bytes > 0 && bpf_skb_load_bytes(skb, 0, record + BY_RECORD_FRAME - BY_RECORD_KERNEL, bytes) != 0)
        *(__u32 *)record = 0;
    return record;
}

/*
 * Wakes the reader. A host sleeps on its socket, so the frame is also passed to the network stack.
 * This costs a quarter of the interrupt with which this processor would wake a thread that polls
 * the ring. A switch has no such socket; a discarded record carries the wake-up.
 */
static __always_inline int wake(void)
{
    void *nothing;

    by_shared.asleep = 0;
    if (!by_constants.all)
        return NEXT;
    nothing = bpf_ringbuf_reserve(&by_frames, BY_RECORD_LINE - BY_RECORD_KERNEL, 0);
    if (nothing)
        bpf_ringbuf_discard(nothing, BPF_RB_FORCE_WAKEUP);
    return DROP;
}

SEC("tc")
int by_ring(struct __sk_buff *skb)
{
    __u32 bytes = skb->len;
    __u8 *record;

    if (!is_wanted(skb))
        return NEXT;
    if (bytes <= SHORT_BYTES)
        record = copy(skb, bytes, SHORT_BYTES);
    else if (bytes <= MIDDLE_BYTES)
        record = copy(skb, bytes, MIDDLE_BYTES);
    else if (bytes <= by_constants.frame_bytes)
        record = copy(skb, bytes, by_constants.frame_bytes);
    else
        record = copy(skb, 0, 0);
    if (!record)
        return DROP;
    /* The reader announces its sleep and then checks the ring once more, so the record must be
     * visible before `asleep` is read. bpf_ringbuf_submit has the barrier between them. */
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    return *(volatile __u32 *)&by_shared.asleep ? wake() : DROP;
}

char by_license[] SEC("license") = "Dual BSD/GPL";
