/* The addresses of a table as those of sockets, and as text. Numbers of IPv6 addresses
 * (offload/wire/ipv6.h) are found in the table's book. Any thread. */
#ifndef BY_HOST_ADDRESS_H
#define BY_HOST_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "offload/table/image.h"

/* Bytes of an address as text (INET6_ADDRSTRLEN). */
#define BY_IP_TEXT 46

union by_host_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

/* Sets the address and port of a socket. Returns its bytes, or 0 if the book does not have the
 * number. */
socklen_t by_host_address_set(union by_host_address *address, const struct by_ipv6_book *book, uint32_t ip,
                              uint16_t port);
/* Returns the address or number of a socket's address; 0: the book does not have it. */
uint32_t by_host_address_ip(const union by_host_address *address, const struct by_ipv6_book *book);

/* Returns the UDP port of a socket's address. */
static inline uint16_t by_host_address_port(const union by_host_address *address)
{
    /* At the same place in both. */
    return ntohs(address->four.sin_port);
}

/* Formats an IPv4 address in host order, such as "198.18.0.1". */
void by_ip_text(uint32_t ip, char text[BY_IP_TEXT]);
/* Formats an address of a table: also "fd00:1::2". */
void by_image_ip_text(const uint8_t *image, uint32_t ip, char text[BY_IP_TEXT]);
/* Refuses a table with IPv6 addresses for a transport that does not support them. 0, or
 * BY_EUNSUPPORTED with a text that names the transport and the remedy. */
int by_ipv6_refuse(const uint8_t *image, const char *transport);

#endif
