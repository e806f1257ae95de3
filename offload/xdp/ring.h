/*
 * Data that the program of a ring (ring.bpf.c) shares with the ring's reader
 * (offload/linux/ring.c): the layout of a record, the program's constants and two words. Plain data
 * with the kernel's types.
 */
#ifndef BY_XDP_RING_H
#define BY_XDP_RING_H

#include <linux/types.h>

/*
 * A slot: its state, padding, and the frame. A slot is a whole number of cache lines; the payload
 * behind the 82 bytes of headers of a banyan packet begins one. The state is written last: the
 * number of the frame in its upper half, counted from 1, so that a reader that awaits this number
 * needs no earlier state to be cleared, and in the lower half the frame's length (0: it was too
 * long).
 */
#define BY_SLOT_LINE  64u
#define BY_SLOT_FRAME 46u

/* Bytes of the slot of a frame of at most `frame_bytes`. */
#define BY_SLOT_BYTES(frame_bytes)                                                                           \
    ((BY_SLOT_FRAME + (frame_bytes) + BY_SLOT_LINE - 1) / BY_SLOT_LINE * BY_SLOT_LINE)

/* The program's constants. */
struct by_ring_constants {
    __u32 all;         /* 1: every frame of the interface; 0: UDP to `ip` or `ipv6` and `udp_port` only */
    __u32 ip;          /* host order */
    __u32 udp_port;    /* host order */
    __u32 frame_bytes; /* longest frame, with its Ethernet header */
    __u32 slots;       /* of the ring: a power of two */
    __u32 fenced;      /* 1: the processor may reorder stores, so that a state takes a barrier */
    __u32 ipv6[4];     /* host order; all 0: IPv4 */
};

/* Written by one side each, apart from `asleep`, each word in a cache line of its own. */
struct by_ring_shared {
    __u64 reserved __attribute__((aligned(64))); /* frames that have got a slot (count) */
    __u64 returned __attribute__((aligned(64))); /* frames whose slots the reader has returned (count) */
    __u32 asleep __attribute__((aligned(64)));   /* the reader sleeps: wake it with the next frame */
    __u64 lost __attribute__((aligned(64)));     /* frames for which the ring had no slot (count) */
};

#endif
