// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0
/*
 * Gives clones of a packet to other interfaces (tcx at egress, since Linux 6.6), before a GSO batch
 * is cut. Each clone shares the payload's memory and has its own headers. It runs inside the
 * sender's system call, so the memory that both share requires no barriers. It copies packets that
 * have the mark while a send is in progress; others pass. A clone keeps its headers, because the
 * kernel allocates new headers for the original before they are overwritten. The mark is removed,
 * so that the same program at another interface's egress passes the clone. The loader and sender is
 * offload/linux/copies.c.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "offload/xdp/copies.h"

/* Results of a tcx program, which older headers lack. */
#define NEXT (-1)
#define DROP 2

struct by_copies_shared by_shared;

SEC("tc")
int by_copy(struct __sk_buff *skb)
{
    if (skb->mark != BY_COPY_MARK || !by_shared.armed)
        return NEXT;
    by_shared.armed = 0;
    skb->mark = 0;
    for (__u32 i = 0; i < BY_COPIES_MAX; i++) {
        struct by_copy *copy = &by_shared.copy[i];

        if (bpf_skb_store_bytes(skb, 0, copy->header, sizeof(copy->header), 0) != 0)
            return DROP;
        if (copy->interface == 0)
            return NEXT;
        copy->result = (__s32)bpf_clone_redirect(skb, copy->interface, 0);
    }
    return DROP;
}

char by_license[] SEC("license") = "Dual BSD/GPL";
