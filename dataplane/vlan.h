/*
 * Tags of VLANs (IEEE 802.1Q) on the ports whose frames DPDK moves: inserted into frames that leave
 * by a port with a VLAN, and removed from those that arrive. Kernel interfaces have their VLANs
 * from the kernel. Loop's thread.
 */
#ifndef BY_DATAPLANE_VLAN_H
#define BY_DATAPLANE_VLAN_H

#include <rte_mbuf.h>

#include "offload/wire/frame.h"

/* Inserts a tag; a frame that others use is copied. Returns the frame, or NULL, after it freed it,
 * if there is no room. */
static inline struct rte_mbuf *by_vlan_tag(struct rte_mbuf *frame, uint16_t vlan)
{
    if (rte_mbuf_refcnt_read(frame) > 1) {
        struct rte_mbuf *own = rte_pktmbuf_copy(frame, frame->pool, 0, UINT32_MAX);

        rte_pktmbuf_free(frame);
        frame = own;
    }
    if (!frame || !rte_pktmbuf_prepend(frame, BY_FRAME_TAG_BYTES)) {
        rte_pktmbuf_free(frame);
        return NULL;
    }
    by_frame_tag(rte_pktmbuf_mtod_offset(frame, uint8_t *, BY_FRAME_TAG_BYTES), vlan);
    return frame;
}

/* Removes the tag of a received frame that is one buffer, if it has one. Returns whether the frame
 * belongs to `vlan`; 0: frames without a tag. */
static inline bool by_vlan_strip(struct rte_mbuf *frame, uint16_t vlan)
{
    uint8_t *data = rte_pktmbuf_mtod(frame, uint8_t *);
    uint16_t tag;

    if (frame->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) /* by the driver */
        return (frame->vlan_tci & 0xfffu) == vlan;
    tag = by_frame_vlan(data, frame->data_len);
    if (tag != 0 && tag == vlan) {
        by_frame_untag(data);
        rte_pktmbuf_adj(frame, BY_FRAME_TAG_BYTES);
    }
    return tag == vlan;
}

#endif
