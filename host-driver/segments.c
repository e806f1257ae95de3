/* Batches of segments and the socket buffers for them; see segments.h. */
#include "host-driver/segments.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>

#define SOCKET_BYTES (8 << 20) /* requested; the kernel grants less to unprivileged users */

void by_segments_mark(struct msghdr *message, uint8_t *control, uint32_t stride)
{
    struct cmsghdr *head = (struct cmsghdr *)(void *)control;
    uint16_t value = (uint16_t)stride;

    head->cmsg_level = SOL_UDP;
    head->cmsg_type = UDP_SEGMENT;
    head->cmsg_len = CMSG_LEN(sizeof(value));
    memcpy(CMSG_DATA(head), &value, sizeof(value));
    message->msg_control = control;
    message->msg_controllen = CMSG_SPACE(sizeof(value));
}

uint32_t by_segments_stride(struct msghdr *message, uint32_t bytes)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        int stride;

        if (c->cmsg_level != SOL_UDP || c->cmsg_type != UDP_GRO)
            continue;
        memcpy(&stride, CMSG_DATA(c), sizeof(stride));
        return stride > 0 ? (uint32_t)stride : bytes;
    }
    return bytes;
}

bool by_segments_refused(int why)
{
    return why == EINVAL || why == EMSGSIZE || why == EIO || why == EOPNOTSUPP;
}

uint32_t by_segments_buffers(int fd)
{
    int wanted = SOCKET_BYTES;
    int size = 0;
    socklen_t bytes = sizeof(size);

    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &wanted, sizeof(wanted)) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &wanted, sizeof(wanted));
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &wanted, sizeof(wanted)) != 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof(wanted));
    getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &bytes);
    return (uint32_t)size;
}
