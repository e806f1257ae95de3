/*
 * Input and output of a step, the same for engine and endpoint: packets received and packets to
 * send. A shell moves both with the same code. The arrays belong to the caller of the step.
 */
#ifndef BY_WIRE_PACKET_H
#define BY_WIRE_PACKET_H

#include <stdint.h>

#include "offload/wire/wire.h"

/* A datagram received on banyan's UDP port. `data` must stay valid during the step. */
struct by_rx {
    const uint8_t *data;    /* the UDP payload: banyan header, then payload */
    const uint8_t *payload; /* the payload, if it is not behind the header; else NULL */
    uint16_t bytes;         /* of header and payload */
    uint16_t port; /* port index, or BY_PORT_LOCAL for packets between this host's own engine and endpoint */
    uint32_t src_ip; /* host order; ignored for BY_PORT_LOCAL */
    uint32_t dst_ip; /* as received: relays are looked up by it */
    uint8_t ecn;     /* the IP header's two bits; 3 is CE */
    /* The payload is still in its producer's memory and has not crossed a wire. A CONTRIB outside
     * keyed jobs then has no psum. */
    uint8_t direct;
    uint8_t held; /* 1: the packet has waited because of BY_TX_HOLD */
};

enum by_tx_kind {
    BY_TX_SEND = 1, /* header and payload, from the own address of `port` */
    BY_TX_RELAY,    /* send the rx packet `rx_index` of this step unchanged through `port` */
    BY_TX_HOLD      /* pass the rx packet `rx_index` in again after `wait_ns`, with `held` set */
};

/* No reference to release. */
#define BY_REF_NONE 0xffffffffu

/*
 * A packet to send. The payload is referenced, not copied:
 * - With `ref` != BY_REF_NONE it stays valid and unchanged until the shell calls
 *   by_engine_release(engine, ref), once for each by_tx that carried it.
 * - With BY_REF_NONE it is in the caller's memory (a user's buffer) or, if `payload` is NULL, in
 *   `small`.
 * Consecutive by_tx with the same ref carry the same payload and can share one reference.
 */
struct by_tx {
    uint8_t kind; /* enum by_tx_kind */
    uint8_t ecn;
    uint8_t direct; /* a CONTRIB without a psum: the shell adds one before it sends the packet over a wire */
    uint16_t port;  /* or BY_PORT_LOCAL: pass to this host's own engine or endpoint */
    uint16_t udp_port; /* destination, host order */
    uint16_t payload_bytes;
    uint16_t rx_index; /* BY_TX_RELAY, BY_TX_HOLD */
    uint32_t dst_ip;   /* host order; the source is the own address of the port */
    uint32_t ref;
    uint32_t wait_ns; /* BY_TX_HOLD */
    const uint8_t *payload;
    uint8_t header[BY_WIRE_HEADER_BYTES];
    uint8_t small[BY_ERR_BYTES]; /* payload of WAIT and ERR, when payload is NULL and payload_bytes > 0 */
};

#endif
