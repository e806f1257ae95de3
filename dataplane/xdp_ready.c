/* Queries netdev's netlink family; see xdp_ready.h. Sources:
 * Documentation/netlink/specs/netdev.yaml and genetlink of Linux; this system's headers may be
 * older. Loop's thread. */
#include "dataplane/xdp_ready.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define FAMILY           "netdev"
#define CMD_DEV_GET      1u
#define ATTR_INDEX       1u
#define ATTR_FEATURES    3u
#define FEATURE_NDO_XMIT 4u /* of 64 bits */

/* A request with one attribute. */
struct xdp_ready_request {
    struct nlmsghdr head;
    struct genlmsghdr generic;
    struct nlattr attribute;
    uint8_t value[16];
};

/* Sends the request and returns an attribute of the answer: a pointer into `answer`, or NULL (and
 * errno) if there is none. */
static const void *ask(int fd, uint16_t family, uint8_t command, uint16_t attribute, const void *value,
                       uint16_t bytes, uint16_t wanted, uint16_t least, char *answer, size_t answer_bytes)
{
    struct xdp_ready_request request = {
        .head = {.nlmsg_type = family, .nlmsg_flags = NLM_F_REQUEST},
        .generic = {.cmd = command, .version = 1},
        .attribute = {.nla_len = (uint16_t)(NLA_HDRLEN + bytes), .nla_type = attribute}};
    const struct nlmsghdr *head = (const struct nlmsghdr *)(void *)answer;
    ssize_t got;

    memcpy(request.value, value, bytes);
    request.head.nlmsg_len = (uint32_t)(NLMSG_LENGTH(GENL_HDRLEN) + NLA_ALIGN(request.attribute.nla_len));
    if (send(fd, &request, request.head.nlmsg_len, 0) < 0)
        return NULL;
    got = recv(fd, answer, answer_bytes, 0);
    if (got < (ssize_t)NLMSG_LENGTH(GENL_HDRLEN) || !NLMSG_OK(head, (size_t)got) ||
        head->nlmsg_type == NLMSG_ERROR) {
        errno = got < 0 ? errno : ENOENT;
        return NULL;
    }
    for (uint32_t at = NLMSG_LENGTH(GENL_HDRLEN); at + NLA_HDRLEN <= head->nlmsg_len;) {
        const struct nlattr *found = (const struct nlattr *)(void *)(answer + at);

        if (found->nla_len < NLA_HDRLEN || at + found->nla_len > head->nlmsg_len)
            break;
        if ((found->nla_type & NLA_TYPE_MASK) == wanted && found->nla_len >= NLA_HDRLEN + least)
            return (const char *)found + NLA_HDRLEN;
        at += NLA_ALIGN(found->nla_len);
    }
    errno = ENOENT;
    return NULL;
}

int by_xdp_ready_open(struct by_xdp_ready *ready)
{
    const struct timeval patience = {.tv_usec = 100000};
    _Alignas(8) char answer[4096];
    const void *family = NULL;
    int error;

    ready->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
    if (ready->fd >= 0 && setsockopt(ready->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0)
        family = ask(ready->fd, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, FAMILY,
                     sizeof FAMILY, CTRL_ATTR_FAMILY_ID, sizeof ready->family, answer, sizeof answer);
    if (family) {
        memcpy(&ready->family, family, sizeof ready->family);
        return 0;
    }
    error = -errno;
    by_xdp_ready_close(ready);
    return error;
}

void by_xdp_ready_close(struct by_xdp_ready *ready)
{
    if (ready->fd >= 0)
        close(ready->fd);
    ready->fd = -1;
}

int by_xdp_ready_ask(const struct by_xdp_ready *ready, uint32_t interface_index)
{
    _Alignas(8) char answer[4096];
    const void *found = NULL;
    uint64_t features = 0;

    if (ready->fd >= 0)
        found = ask(ready->fd, ready->family, CMD_DEV_GET, ATTR_INDEX, &interface_index,
                    sizeof interface_index, ATTR_FEATURES, sizeof features, answer, sizeof answer);
    if (found)
        memcpy(&features, found, sizeof features);
    return (features & FEATURE_NDO_XMIT) != 0;
}
