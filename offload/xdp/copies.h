/*
 * Data that the program that copies packets (copies.bpf.c) shares with the sender
 * (offload/linux/copies.c). Plain data with the kernel's types.
 */
#ifndef BY_XDP_COPIES_H
#define BY_XDP_COPIES_H

#include <linux/types.h>

/* Copies of one send, including the one that leaves through the socket's own interface (count). */
#define BY_COPIES_MAX 64u
/* Ethernet, IPv4 and UDP. */
#define BY_COPY_HEADER_BYTES 42u
/* The mark of packets to copy. */
#define BY_COPY_MARK 0x62796370u

struct by_copy {
    __u32 interface;                   /* index; 0: the socket's own, which is the last */
    __s32 result;                      /* of the last send: 0 if the interface accepted it */
    __u8 header[BY_COPY_HEADER_BYTES]; /* replaces the headers that were sent */
    __u8 zero[14];
};

struct by_copies_shared {
    __u32 armed; /* a send is under way, and the program has not seen it yet */
    __u8 zero[60];
    struct by_copy copy[BY_COPIES_MAX];
};

#endif
