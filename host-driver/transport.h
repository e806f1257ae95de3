/*
 * What moves packets between a node and its cables, behind the functions of by_transport_ops: UDP
 * sockets or rings of frames (udp.c), AF_XDP (afxdp.c), memory shared with the switch (shm.c) or
 * memory of one process (memory.c). A transport belongs to one thread, that of its communicator. It
 * takes no protocol decision: it neither retries nor reorders; a packet that it cannot send is
 * dropped and counted, and the protocol retransmits it.
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

/* What poll() sleeps on at most (count): AF_XDP has a socket for each of up to eight queues of a
 * port. */
#define BY_TRANSPORT_FDS_MAX (8u * BY_PORTS_MAX)

struct pollfd;
struct by_arena;
struct by_transport;

/* X(name, "help"): of one port. Bytes are whole Ethernet frames, as a cable carries them but for
 * preamble and checksum. */
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
/* Packets that one call of rx gives at most. */
#define BY_RX_BATCH 64u
/* The least cable frame; shorter ones are padded. Without the checksum of 4 bytes. */
#define BY_FRAME_LEAST 60u

struct by_transport_ops {
    const char *name; /* "udp", "afxdp", "shm", "memory" */
    /* Up to BY_RX_BATCH packets; their data stay valid until rx_done, which must be called before
     * the next rx. Never blocks. */
    uint32_t (*rx)(struct by_transport *transport, struct by_rx rx[BY_RX_BATCH]);
    void (*rx_done)(struct by_transport *transport);
    /* Sends `count` packets, none of them to BY_PORT_LOCAL; payloads are used no more when it
     * returns. `rx` are the packets that BY_TX_RELAY refers to. */
    void (*tx)(struct by_transport *transport, const struct by_tx *const *tx, uint32_t count,
               const struct by_rx *rx);
    /* Fills what poll() may sleep on, BY_TRANSPORT_FDS_MAX at most; returns how many. 0: cannot
     * sleep. */
    uint32_t (*fds)(struct by_transport *transport, struct pollfd *fds);
    void (*close)(struct by_transport *transport);
};

struct by_transport {
    const struct by_transport_ops *ops;
    uint32_t port_count;
    uint32_t yields; /* empty polls in which others may run, before a sleep: who sends may share our core */
    bool shared;     /* packets cross memory that we share with their receivers, no wire */
    uint32_t inflight_max;  /* chunks that the receive buffers hold for sure; 0 = no limit known */
    struct by_arena *arena; /* memory that switches read in place, or NULL */
    char note[192];         /* why this transport and mode, for the line on stderr; may be empty */
    int last_errno; /* of the last packet that the system refused, for the text of a timeout; 0 = none */
    uint16_t last_errno_port;
    struct by_port_counters ports[BY_PORTS_MAX];
};

struct by_transport_config {
    const uint8_t *image;
    size_t image_bytes;
    uint16_t udp_port;    /* on which this job's hosts listen */
    uint16_t payload_max; /* largest payload of the job's trees here, bytes */
    const struct by_settings *settings;
    bool rings; /* udp: rings of frames on all ports, or an error */
};

/* Each opens all ports of the image, or none. 0, or an error with its text set. The caller closes
 * with ops->close. */
int by_udp_open(const struct by_transport_config *config, struct by_transport **transport);
/* Whether all ports are virtual links that carry single frames, where udp with rings is the
 * fastest. */
bool by_udp_single_frames(const struct by_transport_config *config);
int by_afxdp_open(const struct by_transport_config *config, struct by_transport **transport);
int by_shm_open(const struct by_transport_config *config, struct by_transport **transport);
/* Opens what `wanted` says: "auto", "afxdp", "udp" or "shm". */
int by_transport_open(const struct by_transport_config *config, const char *wanted,
                      struct by_transport **transport);

/* Bytes that a packet of `size` bytes of UDP payload takes on a cable. */
static inline uint64_t by_frame_bytes(uint32_t size)
{
    return size + BY_FRAME_OVERHEAD < BY_FRAME_LEAST ? BY_FRAME_LEAST : size + BY_FRAME_OVERHEAD;
}

/* The payload of `tx`, wherever it lies. */
static inline const uint8_t *by_tx_payload(const struct by_tx *tx)
{
    return tx->payload != NULL ? tx->payload : tx->small;
}

#endif
