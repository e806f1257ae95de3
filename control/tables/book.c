/* The IPv6 addresses that an image uses; see book.h. Pure except for memory. */
#include "control/tables/book.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"

/* Notes that an address is used, if it is a number. */
static void note(bool *used, uint32_t ip)
{
    if (by_ipv6_is(ip))
        used[ip] = true;
}

static void note_all(const uint8_t *image, const struct by_image_header *header, bool *used)
{
    for (uint32_t i = 0; i < header->count[BY_SECTION_PORT]; i++) {
        struct by_image_port port;

        by_image_port(image, i, &port);
        note(used, port.own_ip);
        note(used, port.peer_ip);
    }
    for (uint32_t i = 0; i < header->count[BY_SECTION_ENTRY]; i++) {
        struct by_image_entry entry;

        by_image_entry(image, i, &entry);
        note(used, entry.parent_ip);
    }
    for (uint32_t i = 0; i < header->count[BY_SECTION_CHILD]; i++) {
        struct by_image_child child;

        by_image_child(image, i, &child);
        note(used, child.ip);
    }
    for (uint32_t i = 0; i < header->count[BY_SECTION_LEAF]; i++) {
        struct by_image_leaf leaf;

        by_image_leaf(image, i, &leaf);
        note(used, leaf.parent_ip);
    }
    for (uint32_t i = 0; i < header->count[BY_SECTION_RELAY]; i++) {
        struct by_image_relay relay;

        by_image_relay(image, i, &relay);
        note(used, relay.src_ip);
        note(used, relay.dst_ip);
    }
}

uint8_t *by_emit_addresses(uint8_t *image, const struct by_ipv6_book *book, size_t *size)
{
    bool *used = by_alloc((size_t)book->count + 1, sizeof(*used));
    struct by_image_header header;
    uint32_t next = 0;

    by_image_header(image, &header);
    note_all(image, &header, used);
    for (uint32_t number = 1; number <= book->count; number++)
        header.count[BY_SECTION_ADDRESS] += used[number];
    *size = by_image_bytes(header.count);
    image = by_realloc(image, *size, 1);
    by_image_put_header(image, &header);
    for (uint32_t number = 1; number <= book->count; number++) {
        struct by_image_address address = {.number = number};

        if (!used[number])
            continue;
        memcpy(address.address, by_ipv6_address(book, number), BY_IPV6_BYTES);
        by_image_put_address(image, next++, &address);
    }
    free(used);
    return image;
}
