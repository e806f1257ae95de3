/* Frames over IPv6 in the form of IPv4; see fold.h. Pure; any thread. */
#include "offload/wire/fold.h"

#include "offload/base/bytes.h"
#include "offload/base/errors.h"

enum { TYPE_IPV4 = 0x0800, TYPE_ARP = 0x0806, TYPE_IPV6 = 0x86dd };

/* Folds a solicitation into an ARP request, and an advertisement into a reply. False: it is not
 * one of a node that matters here. */
static bool fold_discovery(const struct by_ipv6_book *book, struct by_fold_asker *asker, uint8_t *data,
                           uint32_t bytes)
{
    static const uint8_t station[BY_MAC_BYTES] = {2};
    struct by_discovery_message message;
    uint8_t request[BY_FRAME_HEADER_BYTES];
    uint32_t target;

    if (by_discovery_parse(data, bytes, &message) != 0)
        return false;
    target = by_ipv6_number(book, message.target);
    if (target == 0)
        return false;
    if (message.is_solicitation) {
        by_copy(asker->mac, message.src_mac, BY_MAC_BYTES);
        by_copy(asker->address, message.src, BY_IPV6_BYTES);
        by_arp_request(message.src_mac, by_ipv6_number(book, message.src), NULL, target, data);
        return true;
    }
    /* An advertisement to all nodes also says where its target is, so the request is made up. */
    by_arp_request(station, 0, NULL, target, request);
    return by_arp_reply(request, sizeof(request), target, message.src_mac, data) != 0;
}

uint32_t by_fold(const struct by_ipv6_book *book, struct by_fold_asker *asker, uint8_t *data, uint32_t *bytes)
{
    struct by_frame frame;

    if (*bytes < BY_IPV6_HEADER_BYTES || by_get16(data + BY_FRAME_AT_TYPE) != TYPE_IPV6)
        return 0;
    if (by_ipv6_parse(book, data, *bytes, &frame) == 0) {
        by_frame_build(&frame, data + BY_IPV6_EXTRA_BYTES);
        *bytes = BY_FRAME_HEADER_BYTES + frame.bytes;
        return BY_IPV6_EXTRA_BYTES;
    }
    if (fold_discovery(book, asker, data, *bytes))
        *bytes = BY_FRAME_HEADER_BYTES;
    return 0;
}

/* Unfolds an ARP request or reply. */
static int32_t unfold_arp(const struct by_ipv6_book *book, const struct by_fold_asker *asker,
                          const uint8_t *frame, uint8_t headers[BY_DISCOVERY_BYTES])
{
    static const uint8_t all[BY_MAC_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    const uint8_t *own, *to;
    struct by_arp arp;

    if (by_arp_parse(frame, BY_FRAME_HEADER_BYTES, &arp) != 0 || !by_ipv6_is(arp.src_ip))
        return 0;
    own = by_ipv6_address(book, arp.src_ip);
    to = by_ipv6_address(book, arp.dst_ip);
    if (!arp.is_request && to == NULL && by_equal(frame, asker->mac, BY_MAC_BYTES))
        to = asker->address;
    if (own == NULL || to == NULL)
        return BY_ENOENT;
    if (arp.is_request)
        by_discovery_solicit(arp.src_mac, own, by_equal(frame, all, BY_MAC_BYTES) ? NULL : frame, to,
                             headers);
    else
        by_discovery_advertise(arp.src_mac, own, frame, to, headers);
    return BY_DISCOVERY_BYTES;
}

int32_t by_unfold(const struct by_ipv6_book *book, const struct by_fold_asker *asker, const uint8_t *frame,
                  uint8_t headers[BY_DISCOVERY_BYTES])
{
    struct by_frame fields;
    uint16_t type = by_get16(frame + BY_FRAME_AT_TYPE);

    if (type == TYPE_ARP)
        return unfold_arp(book, asker, frame, headers);
    /* The first byte of an address of 0.0.0.0/8. */
    if (type != TYPE_IPV4 || frame[BY_FRAME_AT_RECEIVER] != 0)
        return 0;
    by_copy(fields.dst_mac, frame, BY_MAC_BYTES);
    by_copy(fields.src_mac, frame + BY_MAC_BYTES, BY_MAC_BYTES);
    fields.src_ip = by_get32(frame + BY_FRAME_AT_RECEIVER - 4);
    fields.dst_ip = by_get32(frame + BY_FRAME_AT_RECEIVER);
    fields.src_port = by_get16(frame + BY_FRAME_AT_UDP);
    fields.dst_port = by_get16(frame + BY_FRAME_AT_PORT);
    fields.ecn = frame[BY_FRAME_AT_CLASS] & 3;
    fields.bytes = (uint16_t)(by_get16(frame + BY_FRAME_AT_PORT + 2) - 8u);
    if (by_ipv6_build(book, &fields, headers) != 0)
        return BY_ENOENT;
    return BY_IPV6_HEADER_BYTES;
}
