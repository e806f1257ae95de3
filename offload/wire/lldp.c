/* Encodes and decodes LLDP frames; see lldp.h. IEEE 802.1AB-2016, clauses 8 and 9. Any thread. */
#include "offload/wire/lldp.h"

#include "offload/base/bytes.h"

#define ETHERNET_BYTES  14u
#define FRAME_BYTES_MIN 60u
/* An element: 7 bits of type, 9 bits of length, then its value. */
#define HEAD_BYTES   2u
#define LENGTH_BITS  9u
#define LENGTH_MASK  0x1ffu
#define BRIDGE_BIT   0x0004u /* of the system's capabilities */
#define ROUTER_BIT   0x0010u
#define STATION_BIT  0x0080u
#define CHASSIS_MAC  4u
#define PORT_MAC     3u
#define LOCAL        7u
#define PORT_IFNAME  5u
#define ABILITY_SIZE 4u /* bytes of the capabilities: those of the system, those that are enabled */

enum element { END, CHASSIS, PORT, TTL, DESCRIPTION, NAME, SYSTEM, ABILITIES };

/* The nearest bridge's group address: bridges do not forward frames to it. */
static const uint8_t group[BY_MAC_BYTES] = {0x01, 0x80, 0xc2, 0, 0, 0x0e};

static size_t length_of(const char *text)
{
    size_t bytes = 0;

    while (bytes < BY_NAME_MAX && text[bytes])
        bytes++;
    return bytes;
}

/* Appends an element with the `bytes` bytes at `value`, after a subtype if that is not 0. */
static size_t put(uint8_t *frame, size_t at, unsigned type, uint8_t subtype, const void *value, size_t bytes)
{
    size_t more = subtype != 0;

    by_put16(frame + at, (uint16_t)(type << LENGTH_BITS | (bytes + more)));
    at += HEAD_BYTES;
    if (more)
        frame[at++] = subtype;
    by_copy(frame + at, value, bytes);
    return at + bytes;
}

size_t by_lldp_encode(const struct by_lldp *lldp, uint8_t frame[BY_LLDP_BYTES_MAX])
{
    uint8_t ttl[2], abilities[ABILITY_SIZE];
    size_t at = ETHERNET_BYTES;

    by_zero(frame, BY_LLDP_BYTES_MAX);
    by_copy(frame, group, BY_MAC_BYTES);
    by_copy(frame + BY_MAC_BYTES, lldp->source, BY_MAC_BYTES);
    by_put16(frame + BY_FRAME_AT_TYPE, BY_LLDP_ETHERTYPE);
    by_put16(ttl, lldp->ttl_s);
    by_put16(abilities, BRIDGE_BIT | STATION_BIT);
    by_put16(abilities + 2, lldp->forwards ? BRIDGE_BIT : STATION_BIT);
    at = put(frame, at, CHASSIS, LOCAL, lldp->node, length_of(lldp->node));
    at = put(frame, at, PORT, PORT_IFNAME, lldp->port, length_of(lldp->port));
    at = put(frame, at, TTL, 0, ttl, sizeof ttl);
    at = put(frame, at, NAME, 0, lldp->node, length_of(lldp->node));
    at = put(frame, at, ABILITIES, 0, abilities, sizeof abilities);
    at = put(frame, at, END, 0, ttl, 0);
    return at < FRAME_BYTES_MIN ? FRAME_BYTES_MIN : at;
}

/* Copies a text; what is not printable ASCII becomes '?'. */
static void take_text(char out[BY_NAME_MAX + 1], const uint8_t *value, size_t bytes)
{
    size_t i = 0;

    for (; i < bytes && i < BY_NAME_MAX; i++)
        out[i] = value[i] > 0x20 && value[i] < 0x7f ? (char)value[i] : '?';
    out[i] = 0;
}

static void take_mac(char out[BY_NAME_MAX + 1], const uint8_t *mac)
{
    static const char digits[] = "0123456789abcdef";
    size_t at = 0;

    for (size_t i = 0; i < BY_MAC_BYTES; i++) {
        if (i > 0)
            out[at++] = ':';
        out[at++] = digits[mac[i] >> 4];
        out[at++] = digits[mac[i] & 15];
    }
    out[at] = 0;
}

/* Reads an identifier: a subtype, then a MAC address or another value. */
static bool take_identifier(char out[BY_NAME_MAX + 1], const uint8_t *value, size_t bytes, uint8_t mac_type)
{
    if (bytes < 2)
        return false;
    if (value[0] == mac_type && bytes == 1 + BY_MAC_BYTES)
        take_mac(out, value + 1);
    else
        take_text(out, value + 1, bytes - 1);
    return true;
}

/* Reads one of the mandatory elements, which have this order. */
static bool take_mandatory(struct by_lldp *lldp, unsigned type, const uint8_t *value, size_t bytes)
{
    if (type == CHASSIS)
        return take_identifier(lldp->node, value, bytes, CHASSIS_MAC);
    if (type == PORT)
        return take_identifier(lldp->port, value, bytes, PORT_MAC);
    if (bytes < 2)
        return false;
    lldp->ttl_s = by_get16(value);
    return true;
}

bool by_lldp_parse(const uint8_t *frame, size_t bytes, struct by_lldp *lldp)
{
    size_t at = ETHERNET_BYTES;
    unsigned expected = CHASSIS;

    by_zero(lldp, sizeof *lldp);
    if (bytes < ETHERNET_BYTES || by_get16(frame + BY_FRAME_AT_TYPE) != BY_LLDP_ETHERTYPE)
        return false;
    by_copy(lldp->source, frame + BY_MAC_BYTES, BY_MAC_BYTES);
    while (at + HEAD_BYTES <= bytes) {
        uint16_t head = by_get16(frame + at);
        unsigned type = head >> LENGTH_BITS;
        size_t size = head & LENGTH_MASK;
        const uint8_t *value = frame + at + HEAD_BYTES;

        if (size > bytes - at - HEAD_BYTES)
            return false;
        at += HEAD_BYTES + size;
        if (expected <= TTL) {
            if (type != expected++ || !take_mandatory(lldp, type, value, size))
                return false;
        } else if (type == END) {
            break;
        } else if (type == NAME && size > 0) {
            take_text(lldp->node, value, size);
        } else if (type == DESCRIPTION) {
            take_text(lldp->description, value, size);
        } else if (type == ABILITIES && size >= ABILITY_SIZE) {
            lldp->forwards = (by_get16(value + 2) & (BRIDGE_BIT | ROUTER_BIT)) != 0;
        }
    }
    return expected > TTL;
}
