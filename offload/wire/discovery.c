/* Solicitations and advertisements of neighbours (RFC 4861); see discovery.h. Pure; any thread. */
#include "offload/wire/discovery.h"

#include "offload/base/bytes.h"
#include "offload/base/errors.h"

enum {
    TYPE_IPV6 = 0x86dd,
    NEXT_ICMP = 58,
    HOP_LIMIT = 255, /* proves that no router has forwarded the message */
    SOLICITATION = 135,
    ADVERTISEMENT = 136,
    AT_VERSION = 14,
    AT_PAYLOAD = 18,
    AT_NEXT = 20,
    AT_HOPS = 21,
    AT_SRC = 22,
    AT_DST = 38,
    AT_ICMP = 54, /* type, code, checksum, flags (32 bits), target, options */
    AT_CHECKSUM = 56,
    AT_FLAGS = 58,
    AT_TARGET = 62,
    AT_OPTION = 78,
    MESSAGE_BYTES = 24, /* without options */
    OPTION_UNIT = 8,    /* options state their length in these (bytes) */
    OPTION_SOURCE = 1,
    OPTION_TARGET = 2,
    FLAG_SOLICITED = 0x40,
    FLAG_OVERRIDE = 0x20,
};

static const uint8_t unspecified[BY_IPV6_BYTES];
/* The groups of all nodes, and of the nodes whose address ends with the same three bytes (RFC
 * 4291, section 2.7.1). */
static const uint8_t all_nodes[BY_IPV6_BYTES] = {0xff, 2, [15] = 1};
static const uint8_t solicited[BY_IPV6_BYTES] = {0xff, 2, [11] = 1, [12] = 0xff};

/* Returns the sum of the words of a message and its pseudo header (RFC 8200, section 8.1): all ones
 * if its checksum is right. */
static uint32_t sum_of(const uint8_t *frame, uint32_t bytes)
{
    uint32_t sum = NEXT_ICMP + bytes;

    for (uint32_t i = 0; i < 2 * BY_IPV6_BYTES; i += 2)
        sum += by_get16(frame + AT_SRC + i);
    for (uint32_t i = 0; i + 1 < bytes; i += 2)
        sum += by_get16(frame + AT_ICMP + i);
    if (bytes % 2 != 0)
        sum += (uint32_t)frame[AT_ICMP + bytes - 1] << 8;
    sum = (sum & 0xffff) + (sum >> 16);
    return (sum & 0xffff) + (sum >> 16);
}

/* Sets `mac` to the address in the option of this type, if there is one. Returns whether the
 * options are valid. */
static bool read_options(const uint8_t *option, uint32_t bytes, uint8_t type, uint8_t mac[BY_MAC_BYTES],
                         bool *found)
{
    *found = false;
    while (bytes > 0) {
        uint32_t length = bytes < 2 ? 0 : (uint32_t)option[1] * OPTION_UNIT;

        if (length == 0 || length > bytes)
            return false;
        if (option[0] == type) {
            by_copy(mac, option + 2, BY_MAC_BYTES);
            *found = true;
        }
        option += length;
        bytes -= length;
    }
    return true;
}

static bool is_solicited_group(const uint8_t *address)
{
    return by_equal(address, solicited, 13);
}

int by_discovery_parse(const uint8_t *data, size_t bytes, struct by_discovery_message *message)
{
    uint32_t length;
    bool found, anonymous, multicast;

    if (bytes < AT_OPTION || by_get16(data + BY_FRAME_AT_TYPE) != TYPE_IPV6 || data[AT_VERSION] >> 4 != 6 ||
        data[AT_NEXT] != NEXT_ICMP || data[AT_HOPS] != HOP_LIMIT)
        return BY_EFORMAT;
    length = by_get16(data + AT_PAYLOAD);
    if (length < MESSAGE_BYTES || length > bytes - AT_ICMP ||
        (data[AT_ICMP] != SOLICITATION && data[AT_ICMP] != ADVERTISEMENT) || data[AT_ICMP + 1] != 0 ||
        data[AT_TARGET] == 0xff)
        return BY_EFORMAT;
    if (sum_of(data, length) != 0xffff)
        return BY_ECHECKSUM;
    message->is_solicitation = data[AT_ICMP] == SOLICITATION;
    by_copy(message->src_mac, data + BY_MAC_BYTES, BY_MAC_BYTES);
    if (!read_options(data + AT_OPTION, length - MESSAGE_BYTES,
                      message->is_solicitation ? OPTION_SOURCE : OPTION_TARGET, message->src_mac, &found))
        return BY_EFORMAT;
    anonymous = by_equal(data + AT_SRC, unspecified, BY_IPV6_BYTES);
    multicast = data[AT_DST] == 0xff;
    if (anonymous && (!message->is_solicitation || found || !is_solicited_group(data + AT_DST)))
        return BY_EFORMAT;
    if (!message->is_solicitation && multicast && (data[AT_FLAGS] & FLAG_SOLICITED))
        return BY_EFORMAT;
    if ((message->src_mac[0] & 1) || (by_get32(message->src_mac) | by_get16(message->src_mac + 4)) == 0)
        return BY_EFORMAT;
    by_copy(message->src, data + AT_SRC, BY_IPV6_BYTES);
    by_copy(message->target, data + AT_TARGET, BY_IPV6_BYTES);
    return 0;
}

/* Writes a message between two addresses; its MAC addresses and the destination are in place. */
static void put_message(uint8_t *frame, uint8_t type, uint8_t flags, const uint8_t *own_mac,
                        const uint8_t *own, const uint8_t *target)
{
    by_copy(frame + BY_MAC_BYTES, own_mac, BY_MAC_BYTES);
    by_put16(frame + BY_FRAME_AT_TYPE, TYPE_IPV6);
    by_put32(frame + AT_VERSION, 6u << 28);
    by_put16(frame + AT_PAYLOAD, BY_DISCOVERY_BYTES - AT_ICMP);
    frame[AT_NEXT] = NEXT_ICMP;
    frame[AT_HOPS] = HOP_LIMIT;
    by_copy(frame + AT_SRC, own, BY_IPV6_BYTES);
    frame[AT_ICMP] = type;
    frame[AT_ICMP + 1] = 0;
    by_put16(frame + AT_CHECKSUM, 0);
    by_put32(frame + AT_FLAGS, (uint32_t)flags << 24);
    by_copy(frame + AT_TARGET, target, BY_IPV6_BYTES);
    frame[AT_OPTION] = type == SOLICITATION ? OPTION_SOURCE : OPTION_TARGET;
    frame[AT_OPTION + 1] = 1;
    by_copy(frame + AT_OPTION + 2, own_mac, BY_MAC_BYTES);
    by_put16(frame + AT_CHECKSUM, (uint16_t)~sum_of(frame, BY_DISCOVERY_BYTES - AT_ICMP));
}

/* The MAC address of a group is 33:33 and the end of its address (RFC 2464, section 7). */
static void put_group(uint8_t *frame, const uint8_t group[BY_IPV6_BYTES])
{
    by_put16(frame, 0x3333);
    by_copy(frame + 2, group + 12, 4);
    by_copy(frame + AT_DST, group, BY_IPV6_BYTES);
}

void by_discovery_solicit(const uint8_t own_mac[BY_MAC_BYTES], const uint8_t own[BY_IPV6_BYTES],
                          const uint8_t *to_mac, const uint8_t target[BY_IPV6_BYTES],
                          uint8_t frame[BY_DISCOVERY_BYTES])
{
    uint8_t group[BY_IPV6_BYTES];

    by_copy(group, solicited, BY_IPV6_BYTES);
    by_copy(group + 13, target + 13, 3);
    if (to_mac == NULL) {
        put_group(frame, group);
    } else {
        by_copy(frame, to_mac, BY_MAC_BYTES);
        by_copy(frame + AT_DST, target, BY_IPV6_BYTES);
    }
    put_message(frame, SOLICITATION, 0, own_mac, own, target);
}

void by_discovery_advertise(const uint8_t own_mac[BY_MAC_BYTES], const uint8_t own[BY_IPV6_BYTES],
                            const uint8_t to_mac[BY_MAC_BYTES], const uint8_t to[BY_IPV6_BYTES],
                            uint8_t frame[BY_DISCOVERY_BYTES])
{
    bool all = by_equal(to, unspecified, BY_IPV6_BYTES);

    if (all) {
        put_group(frame, all_nodes);
    } else {
        by_copy(frame, to_mac, BY_MAC_BYTES);
        by_copy(frame + AT_DST, to, BY_IPV6_BYTES);
    }
    put_message(frame, ADVERTISEMENT, all ? FLAG_OVERRIDE : FLAG_SOLICITED | FLAG_OVERRIDE, own_mac, own,
                own);
}
