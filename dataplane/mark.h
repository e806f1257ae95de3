/*
 * ECN marks of the switch's own queues (RFC 3168): a port whose receive queue is half full, or
 * whose transmit queue is full, writes Congestion Experienced into the IP headers of the frames
 * that it handles meanwhile. Hosts then narrow their windows before a queue drops. Loop's thread.
 */
#ifndef BY_DATAPLANE_MARK_H
#define BY_DATAPLANE_MARK_H

#include <stdbool.h>

#include <rte_mbuf.h>

#include "offload/base/bytes.h"
#include "offload/wire/frame.h"

/* The type of IPv4 and the first byte of its header without options. */
#define BY_MARK_HEAD (0x0800u << 8 | BY_IP_HEAD)
/* Congestion Experienced, of the two ECN bits; 0 is a sender without ECN. */
#define BY_MARK_CE 3u

/* Marks a frame whose sender supports ECN. Returns false for a frame that it leaves as it is: it is
 * not IPv4, its sender does not support ECN, it is marked already, or its headers are shared. */
static inline bool by_mark_frame(struct rte_mbuf *frame)
{
    uint8_t *data = rte_pktmbuf_mtod(frame, uint8_t *);
    uint32_t ecn;

    if (frame->data_len < BY_FRAME_HEADER_BYTES || rte_mbuf_refcnt_read(frame) != 1 ||
        !RTE_MBUF_DIRECT(frame) || by_get32(data + BY_FRAME_AT_TYPE) >> 8 != BY_MARK_HEAD)
        return false;
    ecn = data[BY_FRAME_AT_CLASS] & BY_MARK_CE;
    if (ecn == 0 || ecn == BY_MARK_CE)
        return false;
    by_frame_mark(data, BY_MARK_CE);
    return true;
}

#endif
