/*
 * What goes in and out of a step, of the engine and of the endpoint alike: packets received and
 * packets to send, so that a shell moves both with the same code. The arrays belong to the caller
 * of the step.
 */
#ifndef BY_WIRE_PACKET_H
#define BY_WIRE_PACKET_H

#include <stdint.h>

#include "offload/wire/wire.h"

/* A datagram that came to our UDP port. `data` must stay valid during the step. */
struct by_rx {
    const uint8_t *data;    /* the UDP payload: banyan header, then payload */
    const uint8_t *payload; /* where the payload lies, if not behind the header; else NULL */
    uint16_t bytes;         /* of header and payload */
    uint16_t port;          /* port index, or BY_PORT_LOCAL for what this host's other half sent */
    uint32_t src_ip;        /* host order; ignored for BY_PORT_LOCAL */
    uint32_t dst_ip;        /* as received: a relay keys on it */
    uint8_t ecn;            /* the IP header's two bits; 3 is CE */
    /* The payload lies where its maker has it, no wire was on its way: a CONTRIB outside keyed jobs
     * has no psum then. */
    uint8_t direct;
    uint8_t held; /* 1: it has waited as BY_TX_HOLD said */
};

enum by_tx_kind {
    BY_TX_SEND = 1, /* header and payload, from our own address on `port` */
    BY_TX_RELAY,    /* pass on the rx packet `rx_index` of this step unchanged, by `port` */
    BY_TX_HOLD      /* give the rx packet `rx_index` again after `wait_ns`, with `held` set */
};

/* No reference to release. */
#define BY_REF_NONE 0xffffffffu

/*
 * A packet to send. The payload is referenced, not copied. With `ref` != BY_REF_NONE it stays valid
 * and unchanged until the shell calls by_engine_release(engine, ref), once for each by_tx that
 * carried it. With BY_REF_NONE it lies in memory of the caller (a user's buffer) or, where
 * `payload` is NULL, in `small`. Consecutive by_tx with the same ref carry the same payload: send
 * it by reference count.
 */
struct by_tx {
    uint8_t kind; /* enum by_tx_kind */
    uint8_t ecn;
    uint8_t direct;    /* a CONTRIB without a psum: whoever gives it to a wire makes one */
    uint16_t port;     /* or BY_PORT_LOCAL: hand it to this host's other half */
    uint16_t udp_port; /* destination, host order */
    uint16_t payload_bytes;
    uint16_t rx_index; /* BY_TX_RELAY, BY_TX_HOLD */
    uint32_t dst_ip;   /* host order; the source is the port's own address */
    uint32_t ref;
    uint32_t wait_ns; /* BY_TX_HOLD */
    const uint8_t *payload;
    uint8_t header[BY_WIRE_HEADER_BYTES];
    uint8_t small[BY_ERR_BYTES]; /* payload of WAIT and ERR, when payload is NULL and payload_bytes > 0 */
};

#endif
