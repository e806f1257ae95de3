/* The pair and its namespace; see xdp_cable.h. Sources: rtnetlink(7), linux/veth.h. Main thread. */
#include "dataplane/xdp_cable.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* A request to the kernel to which attributes are appended. */
struct xdp_cable_request {
    struct nlmsghdr head;
    struct ifinfomsg link;
    uint8_t rest[512];
};

/* Appends an attribute; returns its start, so that its end can be set later. */
static struct rtattr *add(struct xdp_cable_request *request, uint16_t type, const void *value, size_t bytes)
{
    struct rtattr *attribute =
        (struct rtattr *)(void *)((uint8_t *)request + NLMSG_ALIGN(request->head.nlmsg_len));

    attribute->rta_type = type;
    attribute->rta_len = (uint16_t)RTA_LENGTH(bytes);
    if (bytes > 0)
        memcpy(RTA_DATA(attribute), value, bytes);
    request->head.nlmsg_len = NLMSG_ALIGN(request->head.nlmsg_len) + RTA_ALIGN(attribute->rta_len);
    return attribute;
}

static void end(const struct xdp_cable_request *request, struct rtattr *attribute)
{
    attribute->rta_len =
        (uint16_t)((const uint8_t *)request + request->head.nlmsg_len - (const uint8_t *)attribute);
}

static int make_pair(uint32_t mtu)
{
    struct xdp_cable_request request = {
        .head = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
                 .nlmsg_type = RTM_NEWLINK,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK}};
    const struct ifinfomsg none = {0};
    struct rtattr *info, *data, *peer;
    _Alignas(8) char answer[1024];
    const struct nlmsghdr *head = (const struct nlmsghdr *)(void *)answer;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), error = 0;
    ssize_t got;

    if (fd < 0)
        return -errno;
    add(&request, IFLA_IFNAME, BY_XDP_CABLE_NEAR, sizeof BY_XDP_CABLE_NEAR);
    add(&request, IFLA_MTU, &mtu, sizeof mtu);
    info = add(&request, IFLA_LINKINFO, NULL, 0);
    add(&request, IFLA_INFO_KIND, "veth", sizeof "veth");
    data = add(&request, IFLA_INFO_DATA, NULL, 0);
    peer = add(&request, VETH_INFO_PEER, &none, sizeof none);
    add(&request, IFLA_IFNAME, BY_XDP_CABLE_FAR, sizeof BY_XDP_CABLE_FAR);
    add(&request, IFLA_MTU, &mtu, sizeof mtu);
    end(&request, peer);
    end(&request, data);
    end(&request, info);
    if (send(fd, &request, request.head.nlmsg_len, 0) < 0 || (got = recv(fd, answer, sizeof answer, 0)) < 0)
        error = -errno;
    else if (got < (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)) || head->nlmsg_type != NLMSG_ERROR)
        error = -EPROTO;
    else
        error = ((const struct nlmsgerr *)NLMSG_DATA(head))->error;
    close(fd);
    return error;
}

static int bring_up(const char *name)
{
    struct ifreq request = {.ifr_flags = IFF_UP | IFF_NOARP};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), error = 0;

    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) != 0)
        error = -errno;
    if (fd >= 0)
        close(fd);
    return error;
}

int by_xdp_cable_leave(int outside)
{
    int error = setns(outside, CLONE_NEWNET) == 0 ? 0 : -errno;

    close(outside);
    return error;
}

int by_xdp_cable_enter(int *outside, uint32_t mtu)
{
    int error;

    *outside = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (*outside < 0)
        return -errno;
    if (unshare(CLONE_NEWNET) != 0) {
        error = -errno;
        close(*outside);
        return error;
    }
    error = make_pair(mtu);
    if (error == 0)
        error = bring_up(BY_XDP_CABLE_NEAR);
    if (error == 0)
        error = bring_up(BY_XDP_CABLE_FAR);
    if (error != 0)
        (void)by_xdp_cable_leave(*outside);
    return error;
}
