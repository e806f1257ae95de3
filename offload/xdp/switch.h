/*
 * Keys and values of the maps that a switch shares with its programs in the kernel (switch.bpf.c).
 * The loader is dataplane/xdp.c, which fills them from the table image. Numbers that are also on
 * the wire are in network byte order here. Plain data with the kernel's types, because both sides
 * have them.
 */
#ifndef BY_XDP_SWITCH_H
#define BY_XDP_SWITCH_H

#include <linux/types.h>

/* Ports of a switch (count): BY_PORTS_MAX. */
#define BY_XDP_PORTS_MAX 64u
/* Groups, that is, sets of ports to which one packet is replicated (count). A tree requires one for
 * all its children, and one more for each set that leaves out a rank that needs no result; a star
 * of 32 hosts requires 33 for all collectives. User space serves further sets. */
#define BY_XDP_GROUPS_MAX 128u
#define BY_XDP_MAC_BYTES  6u

/* A port, keyed by its interface's index. Frames to other addresses are left to user space. */
struct by_xdp_inside {
    __u32 port;
    __u8 own_mac[BY_XDP_MAC_BYTES];
    __u8 addressed; /* the table contains the port */
    __u8 zero;
};

/* A relay of the table, and the output of its packets. */
struct by_xdp_relay_key {
    __be32 tree; /* job << 16 | tree, as in a header */
    __be32 src_ip, dst_ip;
};
struct by_xdp_relay {
    __u32 port;
    __u32 from;                      /* 1 + the port on which packets must arrive; 0: any */
    __u8 peer_mac[BY_XDP_MAC_BYTES]; /* in the order of a frame, so that one copy writes both */
    __u8 own_mac[BY_XDP_MAC_BYTES];
};

/* A child of an entry, keyed by the interface that leads to it. */
struct by_xdp_child_key {
    __be32 tree;
    __u32 interface;
};
struct by_xdp_child {
    __u32 port;
    __u8 peer_mac[BY_XDP_MAC_BYTES];
    __u8 own_mac[BY_XDP_MAC_BYTES];
    __be32 src_ip, dst_ip;
    __be16 udp_port;
    __u16 zero;
};

/* Counts since the start, separate for each processor. */
enum by_xdp_count {
    BY_XDP_RELAYED,    /* packets relayed */
    BY_XDP_REPLICATED, /* copies made of packets to groups */
    BY_XDP_LOST,       /* packets to a group, or copies, without an entry in a map */
    BY_XDP_COUNTS
};

/* Traffic of a port that bypassed user space; bytes are those of whole frames. */
struct by_xdp_port_counts {
    __u64 rx_packets, rx_bytes, tx_packets, tx_bytes;
};

#endif
