/*
 * The IPv6 addresses of an image: the book that gives their numbers, and its check. Apart from
 * check.c, so that a node without IPv6 links neither. Pure; any thread.
 */
#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/table/layout.h"
#include "offload/wire/wire.h"

BY_STATIC_ASSERT(BY_IPV6_RECORD_BYTES == 20, "a record of ADDRESS is one of a book");

void by_image_book(const uint8_t *image, struct by_ipv6_book *book)
{
    struct by_image_header header;

    by_image_header(image, &header);
    book->count = header.count[BY_SECTION_ADDRESS];
    book->records = image + by_image_offset(header.count, BY_SECTION_ADDRESS, 0);
}

/* What the check has read. */
struct address_check {
    const uint8_t *image;
    struct by_image_header header;
    struct by_ipv6_book book;
    struct by_image_fault *fault;
};

static int refuse(const struct address_check *check, const char *section, uint32_t index, const char *what,
                  uint64_t value)
{
    if (check->fault != NULL)
        *check->fault =
            (struct by_image_fault){.section = section, .index = index, .what = what, .value = value};
    return BY_EFORMAT;
}

static int check_book(const struct address_check *check)
{
    struct by_image_address last, at;

    by_zero(&last, sizeof(last));
    for (uint32_t i = 0; i < check->book.count; i++, last = at) {
        unsigned same = 0;

        by_image_address(check->image, i, &at);
        if (at.number <= last.number || !by_ipv6_is(at.number))
            return refuse(check, "address", i, "numbers do not ascend from 1 to 16777215: number", at.number);
        if (by_ipv6_kind(at.address) != BY_IPV6_UNICAST)
            return refuse(check, "address", i, "no end of a link can have this IPv6 address: number",
                          at.number);
        while (same < BY_IPV6_BYTES && last.address[same] == at.address[same])
            same++;
        if (same == BY_IPV6_BYTES || last.address[same] > at.address[same])
            return refuse(check, "address", i, "IPv6 addresses do not ascend: number", at.number);
    }
    return 0;
}

BY_STATIC_ASSERT(BY_IPV6_NUMBER_MAX == 16777215, "named in a text above");

/* Whether an address is one of IPv4, or 0, or a number that the book has. */
static int is_known(const struct address_check *check, uint32_t ip)
{
    return !by_ipv6_is(ip) || by_ipv6_address(&check->book, ip) != NULL;
}

/* Checks a neighbour in a tree, at a port that by_image_check has accepted. */
static int check_neighbour(const struct address_check *check, const char *section, uint32_t index,
                           uint16_t port, uint32_t ip, uint32_t payload)
{
    struct by_image_port record;

    if (port == BY_PORT_LOCAL)
        return 0;
    by_image_port(check->image, port, &record);
    if (!is_known(check, ip))
        return refuse(check, section, index, "address of a neighbour is not in the address section", ip);
    if (by_ipv6_is(record.own_ip) != by_ipv6_is(ip))
        return refuse(check, section, index, "address of a neighbour is of another family than its port's",
                      port);
    if (by_ipv6_is(ip) && payload + 20u + 8u + BY_WIRE_HEADER_BYTES + BY_IPV6_EXTRA_BYTES > record.mtu)
        return refuse(check, section, index, "payload and IPv6 headers exceed the MTU of the port, which is",
                      record.mtu);
    return 0;
}

static int check_ports(const struct address_check *check)
{
    struct by_image_port port;

    for (uint32_t i = 0; i < check->header.count[BY_SECTION_PORT]; i++) {
        by_image_port(check->image, i, &port);
        if (!is_known(check, port.own_ip) || !is_known(check, port.peer_ip))
            return refuse(check, "port", i, "address is not in the address section", port.own_ip);
        if (port.peer_ip != 0 && by_ipv6_is(port.own_ip) != by_ipv6_is(port.peer_ip))
            return refuse(check, "port", i, "addresses of its ends are of different families", port.own_ip);
    }
    return 0;
}

static int check_entry(const struct address_check *check, uint32_t index)
{
    struct by_image_entry entry;
    struct by_image_child child;
    int error = 0;

    by_image_entry(check->image, index, &entry);
    if (entry.parent_node != BY_NODE_NONE)
        error = check_neighbour(check, "entry", index, entry.parent_port, entry.parent_ip, entry.payload_max);
    for (uint32_t i = 0; i < entry.child_count && error == 0; i++) {
        by_image_child(check->image, entry.first_child + i, &child);
        error =
            check_neighbour(check, "child", entry.first_child + i, child.port, child.ip, entry.payload_max);
    }
    return error;
}

static int check_leaf(const struct address_check *check, uint32_t index)
{
    struct by_image_leaf leaf;

    by_image_leaf(check->image, index, &leaf);
    return check_neighbour(check, "leaf", index, leaf.parent_port, leaf.parent_ip, leaf.payload_max);
}

static int check_relay(const struct address_check *check, uint32_t index)
{
    struct by_image_relay relay;

    by_image_relay(check->image, index, &relay);
    if (!is_known(check, relay.src_ip) || !is_known(check, relay.dst_ip))
        return refuse(check, "relay", index, "address is not in the address section", relay.src_ip);
    if (by_ipv6_is(relay.src_ip) != by_ipv6_is(relay.dst_ip))
        return refuse(check, "relay", index, "addresses are of different families", relay.src_ip);
    return 0;
}

int by_image_addresses_check(const uint8_t *image, struct by_image_fault *fault)
{
    struct address_check check;
    uint16_t version = by_get16(image + BY_IMAGE_AT_VERSION);
    int error;

    check.image = image;
    check.fault = fault;
    by_image_header(image, &check.header);
    by_image_book(image, &check.book);
    if ((version == BY_IMAGE_VERSION_IPV6) != (check.book.count > 0)) {
        refuse(&check, "header", 0, "version is not 3 with IPv6 addresses and 2 without: it is", version);
        return BY_EVERSION;
    }
    error = check_book(&check);
    if (error == 0)
        error = check_ports(&check);
    for (uint32_t i = 0; i < check.header.count[BY_SECTION_ENTRY] && error == 0; i++)
        error = check_entry(&check, i);
    for (uint32_t i = 0; i < check.header.count[BY_SECTION_LEAF] && error == 0; i++)
        error = check_leaf(&check, i);
    for (uint32_t i = 0; i < check.header.count[BY_SECTION_RELAY] && error == 0; i++)
        error = check_relay(&check, i);
    return error;
}
