/*
 * What a switch and its programs in the kernel (switch.bpf.c) share: the keys and values of their
 * maps. The loader is dataplane/xdp.c, which fills them from the table image. Numbers that are also
 * on the wire are in network byte order here. Plain data; the kernel's own types, since both sides
 * have them.
 */
#ifndef BY_XDP_SWITCH_H
#define BY_XDP_SWITCH_H

#include <linux/types.h>

/* Ports of a switch (count): BY_PORTS_MAX. */
#define BY_XDP_PORTS_MAX 64u
/* Groups, that is, sets of ports to which one packet is replicated (count). A tree needs one for
 * all its children, and one more for each set of them without a rank that wants nothing back; a
 * star of 32 hosts needs 33 for all collectives. Sets beyond these are served by user space. */
#define BY_XDP_GROUPS_MAX 128u
#define BY_XDP_MAC_BYTES  6u

/* A port, by its interface's index: frames that are not for its address are user space's business.
 */
struct by_xdp_inside {
    __u32 port;
    __u8 own_mac[BY_XDP_MAC_BYTES];
    __u8 addressed; /* the table names the port */
    __u8 zero;
};

/* A relay of the table, and how its packets leave. */
struct by_xdp_relay_key {
    __be32 tree; /* job << 16 | tree, as in a header */
    __be32 src_ip, dst_ip;
};
struct by_xdp_relay {
    __u32 port;
    __u32 from;                      /* 1 + the port that packets come by; 0: by any */
    __u8 peer_mac[BY_XDP_MAC_BYTES]; /* in the order of a frame, so that both are one copy */
    __u8 own_mac[BY_XDP_MAC_BYTES];
};

/* A child of an entry, by the interface behind which it is. */
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

/* Counts since the start; each processor has its own. */
enum by_xdp_count {
    BY_XDP_RELAYED,    /* packets relayed */
    BY_XDP_REPLICATED, /* copies made of packets to groups */
    BY_XDP_LOST,       /* packets to a group, or copies, for which a map had no word */
    BY_XDP_COUNTS
};

/* What crossed a port without user space; bytes are those of whole frames. */
struct by_xdp_port_counts {
    __u64 rx_packets, rx_bytes, tx_packets, tx_bytes;
};

#endif
