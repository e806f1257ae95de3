/* Addresses of a table; see address.h. */
#include "host-driver/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "host-driver/error.h"
#include "offload/base/errors.h"

socklen_t by_host_address_set(union by_host_address *address, const struct by_ipv6_book *book, uint32_t ip,
                              uint16_t port)
{
    const uint8_t *six = by_ipv6_address(book, ip);

    memset(address, 0, sizeof(*address));
    if (!by_ipv6_is(ip)) {
        address->four.sin_family = AF_INET;
        address->four.sin_addr.s_addr = htonl(ip);
        address->four.sin_port = htons(port);
        return sizeof(address->four);
    }
    if (six == NULL)
        return 0;
    address->six.sin6_family = AF_INET6;
    address->six.sin6_port = htons(port);
    memcpy(&address->six.sin6_addr, six, BY_IPV6_BYTES);
    return sizeof(address->six);
}

uint32_t by_host_address_ip(const union by_host_address *address, const struct by_ipv6_book *book)
{
    if (address->any.sa_family == AF_INET6)
        return by_ipv6_number(book, address->six.sin6_addr.s6_addr);
    return ntohl(address->four.sin_addr.s_addr);
}

void by_ip_text(uint32_t ip, char text[BY_IP_TEXT])
{
    snprintf(text, BY_IP_TEXT, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255u, ip >> 8 & 255u, ip & 255u);
}

void by_image_ip_text(const uint8_t *image, uint32_t ip, char text[BY_IP_TEXT])
{
    struct by_ipv6_book book;
    const uint8_t *six;

    by_image_book(image, &book);
    six = by_ipv6_address(&book, ip);
    if (six == NULL || inet_ntop(AF_INET6, six, text, BY_IP_TEXT) == NULL)
        by_ip_text(ip, text);
}

int by_ipv6_refuse(const uint8_t *image, const char *transport)
{
    struct by_ipv6_book book;

    by_image_book(image, &book);
    if (book.count == 0)
        return 0;
    return by_fail(BY_EUNSUPPORTED,
                   "the table has links with IPv6 addresses, which the transport %s does not support: use "
                   "BANYAN_TRANSPORT=udp",
                   transport);
}
