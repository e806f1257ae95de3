// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0
/*
 * Copies each frame that an interface receives into a ring of slots (tcx at ingress, since Linux
 * 6.6), before the network stack sees it. The loader and reader is offload/linux/ring.c.
 *
 * Several processors may run the program at once. A frame reserves its slot by a compare-and-swap,
 * which is a full barrier, and publishes it by a plain store of the slot's state. The reader
 * announces its sleep and then checks that no slot is reserved that it has not taken; the program
 * reserves and then reads the announcement. So one of both sees the other, and the stores of a
 * frame, which wait for cache lines of the reader's processor, delay nothing.
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
/* Attempts to reserve a slot beside other processors (count). Each follows a frame that another
 * processor has reserved meanwhile. Without CAP_PERFMON the kernel refuses the program with 16. */
#define TRIES 6

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(key_size, 4);
    __uint(value_size, 64); /* the loader sets value_size and max_entries */
    __uint(max_entries, 1);
} by_slots SEC(".maps");

/* Its descriptor wakes a reader that polls it. */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096); /* the loader sets a page */
} by_bell SEC(".maps");

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

/* Returns the number of the frame that gets the next slot, counted from 0; -1: no slot is free. */
static __always_inline long long reserve(void)
{
    for (int i = 0; i < TRIES; i++) {
        __u64 at = *(volatile __u64 *)&by_shared.reserved;

        if (at - *(volatile __u64 *)&by_shared.returned >= by_constants.slots)
            break;
        if (__sync_val_compare_and_swap(&by_shared.reserved, at, at + 1) == at)
            return (long long)at;
    }
    __sync_fetch_and_add(&by_shared.lost, 1);
    return -1;
}

/* Copies the frame into its slot. */
static __always_inline void fill(struct __sk_buff *skb, __u8 *slot, __u64 number)
{
    __u64 bytes = skb->len, state;

    asm volatile("" : "+r"(bytes)); /* the verifier follows the comparisons of this copy */
    if (bytes == 0 || bytes > by_constants.frame_bytes ||
        bpf_skb_load_bytes(skb, 0, slot + BY_SLOT_FRAME, (__u32)bytes) != 0)
        bytes = 0;
    state = (number + 1) << 32 | bytes;
    if (by_constants.fenced)
        __sync_lock_test_and_set((__u64 *)(void *)slot, state);
    else
        *(volatile __u64 *)(void *)slot = state;
}

/*
 * Wakes the reader. A host sleeps on its socket, so the frame is also passed to the network stack.
 * This costs a quarter of the interrupt with which this processor would wake a thread that polls
 * the ring. A switch has no such socket; a discarded record of the bell carries the wake-up.
 */
static __always_inline int wake(void)
{
    void *nothing;

    by_shared.asleep = 0;
    if (!by_constants.all)
        return NEXT;
    nothing = bpf_ringbuf_reserve(&by_bell, 8, 0);
    if (nothing)
        bpf_ringbuf_discard(nothing, BPF_RB_FORCE_WAKEUP);
    return DROP;
}

SEC("tc")
int by_ring(struct __sk_buff *skb)
{
    long long number;
    __u32 index;
    __u8 *slot;

    if (!is_wanted(skb))
        return NEXT;
    number = reserve();
    if (number < 0)
        return DROP;
    index = (__u32)number & (by_constants.slots - 1);
    slot = bpf_map_lookup_elem(&by_slots, &index);
    if (!slot)
        return DROP; /* cannot happen */
    fill(skb, slot, (__u64)number);
    return *(volatile __u32 *)&by_shared.asleep ? wake() : DROP;
}

char by_license[] SEC("license") = "Dual BSD/GPL";
