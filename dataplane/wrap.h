/*
 * The form of frames on a cable where it is not the one that the loop handles: the tag of a VLAN
 * (IEEE 802.1Q), and IPv6 (offload/wire/fold.h). Frames of DPDK's ports have both; kernel
 * interfaces have their VLANs from the kernel. Loop's thread of the port's owner.
 */
#ifndef BY_DATAPLANE_WRAP_H
#define BY_DATAPLANE_WRAP_H

#include <rte_mbuf.h>

#include "offload/wire/fold.h"

/* What a port has on its cable. */
struct by_wrap {
    uint16_t vlan;            /* tag of frames sent; 0: none */
    bool ipv6;                /* the active table has IPv6 addresses: frames are folded and unfolded */
    struct by_ipv6_book book; /* of the active table */
    struct by_fold_asker asker;
};

/* Gives a frame the form that it has on the cable of a port; a frame that others use is copied.
 * Returns the frame, or NULL, after it freed it, if there is no room, or the table does not have
 * one of its IPv6 addresses. */
struct rte_mbuf *by_wrap_frame(const struct by_wrap *wrap, struct rte_mbuf *frame);

/* Folds a received frame of IPv6, which is one buffer. */
void by_wrap_fold(struct by_wrap *wrap, struct rte_mbuf *frame);

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
