/* Frames as they are on a cable; see wrap.h. */
#include "dataplane/wrap.h"

#include <string.h>

/* Replaces the headers of a frame to an IPv6 address. NULL: no room, or no such address. */
static uint8_t *unfold(const struct by_wrap *wrap, struct rte_mbuf *frame)
{
    uint8_t headers[BY_DISCOVERY_BYTES], *data = rte_pktmbuf_mtod(frame, uint8_t *);
    int32_t bytes = frame->data_len < BY_FRAME_HEADER_BYTES
                        ? 0 /* of another protocol, such as LLDP */
                        : by_unfold(&wrap->book, &wrap->asker, data, headers);

    if (bytes == 0)
        return data;
    data = bytes < 0
               ? NULL
               : (uint8_t *)rte_pktmbuf_prepend(frame, (uint16_t)(bytes - (int32_t)BY_FRAME_HEADER_BYTES));
    if (data)
        memcpy(data, headers, (size_t)bytes);
    return data;
}

/* Inserts the tag of a VLAN. NULL: no room. */
static uint8_t *tag(struct rte_mbuf *frame, uint16_t vlan)
{
    uint8_t *data = (uint8_t *)rte_pktmbuf_prepend(frame, BY_FRAME_TAG_BYTES);

    if (data)
        by_frame_tag(data + BY_FRAME_TAG_BYTES, vlan);
    return data;
}

struct rte_mbuf *by_wrap_frame(const struct by_wrap *wrap, struct rte_mbuf *frame)
{
    if (rte_mbuf_refcnt_read(frame) > 1) {
        struct rte_mbuf *own = rte_pktmbuf_copy(frame, frame->pool, 0, UINT32_MAX);

        rte_pktmbuf_free(frame);
        frame = own;
    }
    if (!frame || (wrap->ipv6 && !unfold(wrap, frame)) || (wrap->vlan != 0 && !tag(frame, wrap->vlan))) {
        rte_pktmbuf_free(frame);
        return NULL;
    }
    return frame;
}

void by_wrap_fold(struct by_wrap *wrap, struct rte_mbuf *frame)
{
    uint32_t bytes = frame->data_len;
    uint32_t at = by_fold(&wrap->book, &wrap->asker, rte_pktmbuf_mtod(frame, uint8_t *), &bytes);

    if (at > 0)
        rte_pktmbuf_adj(frame, (uint16_t)at);
    if (bytes < frame->data_len)
        rte_pktmbuf_trim(frame, (uint16_t)(frame->data_len - bytes));
}
