/*
 * Moves packets between a node and its cables, behind the functions of by_transport_ops: UDP
 * sockets or rings of frames (udp.c), AF_XDP (afxdp.c), ports of DPDK (dpdk.c), memory shared with
 * the switch (shm.c) or memory of one process (memory.c). Thread: the thread of the communicator
 * that owns the transport. A transport makes no protocol decisions: it neither retries nor
 * reorders. It drops and counts a packet that it cannot send, and the protocol retransmits it.
 */
#ifndef BY_HOST_TRANSPORT_H
#define BY_HOST_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-driver/settings.h"
#include "offload/base/limits.h"
#include "offload/table/image.h"
#include "offload/wire/packet.h"

/* Maximum number of descriptors that poll() sleeps on: AF_XDP has a socket for each of up to eight
 * queues of a port. */
#define BY_TRANSPORT_FDS_MAX (8u * BY_PORTS_MAX)

struct pollfd;
struct by_arena;
struct by_transport;

/* X(name, "help"): counters of one port. Bytes count whole Ethernet frames without preamble and
 * checksum. */
#define BY_PORT_COUNTER_LIST(X)                                                                              \
    X(rx_packets, "packets received")                                                                        \
    X(rx_bytes, "bytes received")                                                                            \
    X(tx_packets, "packets sent")                                                                            \
    X(tx_bytes, "bytes sent")                                                                                \
    X(rx_drop, "packets received and dropped: truncated or foreign")                                         \
    X(tx_drop, "packets not sent: no room, or refused by the system")

struct by_port_counters {
#define X(name, help) uint64_t name;
    BY_PORT_COUNTER_LIST(X)
#undef X
};

/* Headers of a frame before the UDP payload: Ethernet, IPv4, UDP. */
#define BY_FRAME_OVERHEAD 42u
/* Maximum number of packets that one call of rx returns. */
#define BY_RX_BATCH 64u
/* Smallest frame on a cable, without the checksum of 4 bytes; shorter frames are padded. */
#define BY_FRAME_LEAST 60u

struct by_transport_ops {
    const char *name; /* "udp", "afxdp", "dpdk", "shm", "memory" */
    /* Receives up to BY_RX_BATCH packets. Their data are valid until rx_done, which must be called
     * before the next rx. Never blocks. */
    uint32_t (*rx)(struct by_transport *transport, struct by_rx rx[BY_RX_BATCH]);
    void (*rx_done)(struct by_transport *transport);
    /* Sends `count` packets, none to BY_PORT_LOCAL; their payloads may be reused after the call.
     * `rx` are the packets to which BY_TX_RELAY refers. */
    void (*tx)(struct by_transport *transport, const struct by_tx *const *tx, uint32_t count,
               const struct by_rx *rx);
    /* Fills the descriptors that poll() may sleep on, at most BY_TRANSPORT_FDS_MAX; returns their
     * number. 0: cannot sleep. */
    uint32_t (*fds)(struct by_transport *transport, struct pollfd *fds);
    void (*close)(struct by_transport *transport);
    /* The table was replaced by one with the same ports, in `image`. NULL: nothing to do. */
    void (*readdress)(struct by_transport *transport, const uint8_t *image);
};

struct by_transport {
    const struct by_transport_ops *ops;
    uint32_t port_count;
    /* empty polls that yield the core before a sleep, because the sender may share it */
    uint32_t yields;
    bool shared;            /* packets cross memory shared with their receivers, not a wire */
    uint32_t inflight_max;  /* chunks that always fit the receive buffers; 0 = no known limit */
    uint32_t batch;         /* packets of a tree that it sends best together; 0 = any number */
    struct by_arena *arena; /* memory that switches read in place, or NULL */
    /* reason for this transport and mode, for the line on stderr; may be empty */
    char note[192];
    /* of the last packet that the system refused, for the text of a timeout; 0 = none */
    int last_errno;
    uint16_t last_errno_port;
    struct by_port_counters ports[BY_PORTS_MAX];
};

struct by_transport_config {
    const uint8_t *image;
    size_t image_bytes;
    uint16_t udp_port;    /* on which the hosts of this job listen */
    uint16_t payload_max; /* largest payload of the job's trees at this node, bytes */
    const struct by_settings *settings;
    bool quiet; /* the reason for udp is in the note only */
    bool rings; /* udp: require rings of frames on all ports */
};

/* Each function opens all ports of the image, or none. 0, or an error with its text. The caller
 * closes the transport with ops->close. */
int by_udp_open(const struct by_transport_config *config, struct by_transport **transport);
/* Whether all ports are virtual links that carry single frames; there, udp with rings is the
 * fastest transport. */
bool by_udp_single_frames(const struct by_transport_config *config);
int by_afxdp_open(const struct by_transport_config *config, struct by_transport **transport);
int by_shm_open(const struct by_transport_config *config, struct by_transport **transport);
int by_dpdk_open(const struct by_transport_config *config, struct by_transport **transport);
/* Opens the transport `wanted`: "auto", "afxdp", "udp", "dpdk" or "shm". */
int by_transport_open(const struct by_transport_config *config, const char *wanted,
                      struct by_transport **transport);

/* Bytes on a cable of a packet with `size` bytes of UDP payload over IPv4. */
static inline uint64_t by_frame_bytes(uint32_t size)
{
    return size + BY_FRAME_OVERHEAD < BY_FRAME_LEAST ? BY_FRAME_LEAST : size + BY_FRAME_OVERHEAD;
}

/* The same for a packet to or from an address of a table, of either family. */
static inline uint64_t by_packet_bytes(uint32_t ip, uint32_t size)
{
    return by_frame_bytes(size + (by_ipv6_is(ip) ? BY_IPV6_EXTRA_BYTES : 0));
}

/* Returns the payload of `tx`, external or inline. */
static inline const uint8_t *by_tx_payload(const struct by_tx *tx)
{
    return tx->payload != NULL ? tx->payload : tx->small;
}

#endif
