/* Hosts and ports as text; see hostport.h. */
#include "firmware/secure/hostport.h"

#include <netinet/in.h>
#include <string.h>

#include "offload/base/errors.h"

int by_hostport_read(const char *text, size_t length, struct by_hostport *hostport)
{
    const char *colon = memrchr(text, ':', length);
    uint32_t number = 0;
    bool digits = true; /* otherwise the name of a service */
    size_t host = colon != NULL ? (size_t)(colon - text) : 0, port = colon != NULL ? length - host - 1 : 0;

    if (port == 0 || port >= sizeof(hostport->port))
        return BY_EINVAL;
    for (size_t i = 0; i < port && digits; i++) {
        digits = colon[1 + i] >= '0' && colon[1 + i] <= '9';
        number = digits && number <= 65535 ? 10 * number + (uint32_t)(colon[1 + i] - '0') : number;
    }
    if (digits && number > 65535)
        return BY_EINVAL;
    if (host > 2 && text[0] == '[' && text[host - 1] == ']') {
        text++;
        host -= 2;
    }
    if (host >= sizeof(hostport->host))
        return BY_EINVAL;
    memcpy(hostport->host, text, host);
    hostport->host[host] = 0;
    memcpy(hostport->port, colon + 1, port);
    hostport->port[port] = 0;
    return 0;
}

bool by_hostport_is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}
