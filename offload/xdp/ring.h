/*
 * Data that the program of a ring (ring.bpf.c) shares with the ring's reader
 * (offload/linux/ring.c): the layout of a record, the program's constants and two words. Plain data
 * with the kernel's types.
 */
#ifndef BY_XDP_RING_H
#define BY_XDP_RING_H

#include <linux/types.h>

/* A record: the kernel's 8 bytes, the frame's length (0: it was too long), padding, and the frame.
 * A record is a whole number of cache lines; the payload behind the 82 bytes of headers of a banyan
 * packet begins one. */
#define BY_RECORD_LINE   64u
#define BY_RECORD_KERNEL 8u
#define BY_RECORD_FRAME  46u

/* Bytes of the record of a frame of at most `frame_bytes`. */
#define BY_RECORD_BYTES(frame_bytes)                                                                         \
    ((BY_RECORD_FRAME + (frame_bytes) + BY_RECORD_LINE - 1) / BY_RECORD_LINE * BY_RECORD_LINE)

/* The program's constants. */
struct by_ring_constants {
    __u32 all;         /* 1: every frame of the interface; 0: UDP to `ip` or `ipv6` and `udp_port` only */
    __u32 ip;          /* host order */
    __u32 udp_port;    /* host order */
    __u32 frame_bytes; /* longest frame, with its Ethernet header */
    __u32 ipv6[4];     /* host order; all 0: IPv4 */
};

/* Written by both sides, each word in a cache line of its own. */
struct by_ring_shared {
    __u32 asleep __attribute__((aligned(64))); /* the reader sleeps: wake it with the next frame */
    __u64 lost __attribute__((aligned(64)));   /* frames for which the ring had no room (count) */
};

#endif
