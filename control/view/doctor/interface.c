/*
 * Reads the facts of one interface: those of offload/linux/device.h, its addresses, and the XDP
 * support of its driver by the kernel's netlink family "netdev" (Linux 6.3). See machine.h.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/genetlink.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "control/view/doctor/machine.h"
#include "offload/linux/device.h"
#include "offload/linux/feature.h"

/*
 * From linux/netdev.h, which older headers lack. A device is queried by index; its features are
 * bits.
 */
#define NETDEV_DEV_GET          1
#define NETDEV_DEV_IFINDEX      1
#define NETDEV_DEV_XDP_FEATURES 3
#define NETDEV_XDP_BASIC        1u

/* A generic netlink message with one attribute. */
struct interface_question {
    struct nlmsghdr head;
    struct genlmsghdr command;
    char attribute[64];
};

struct interface_answer {
    struct nlmsghdr head;
    struct genlmsghdr command;
    char attributes[4096];
};

/* Sends a request and receives the answer. Returns the bytes of its attributes, or -1. */
static int ask_netlink(int fd, uint16_t family, uint8_t command, uint16_t type, const void *value,
                       size_t bytes, struct interface_answer *answer)
{
    struct interface_question question = {.command = {.cmd = command, .version = 1}};
    struct nlattr head = {.nla_type = type, .nla_len = (uint16_t)(NLA_HDRLEN + bytes)};
    ssize_t count;

    memcpy(question.attribute, &head, sizeof(head));
    memcpy(question.attribute + NLA_HDRLEN, value, bytes);
    question.head =
        (struct nlmsghdr){.nlmsg_len = (uint32_t)(NLMSG_HDRLEN + GENL_HDRLEN + NLA_ALIGN(head.nla_len)),
                          .nlmsg_type = family,
                          .nlmsg_flags = NLM_F_REQUEST};
    if (send(fd, &question, question.head.nlmsg_len, 0) < 0)
        return -1;
    count = recv(fd, answer, sizeof(*answer), 0);
    if (count < (ssize_t)(NLMSG_HDRLEN + GENL_HDRLEN) || answer->head.nlmsg_type == NLMSG_ERROR)
        return -1;
    return (int)(count - (ssize_t)(NLMSG_HDRLEN + GENL_HDRLEN));
}

/*
 * Finds an attribute among `size` bytes of attributes; returns the length of its value, 0 if it is
 * not there.
 */
static int find_attribute(const char *attributes, int size, uint16_t type, const char **value)
{
    for (int at = 0; at + (int)NLA_HDRLEN <= size;) {
        struct nlattr head;

        memcpy(&head, attributes + at, sizeof(head));
        if (head.nla_len < NLA_HDRLEN || at + head.nla_len > size)
            return 0;
        *value = attributes + at + NLA_HDRLEN;
        if ((head.nla_type & NLA_TYPE_MASK) == type)
            return head.nla_len - (int)NLA_HDRLEN;
        at += (int)NLA_ALIGN(head.nla_len);
    }
    return 0;
}

/* Copies an attribute of an answer; returns false if it is not there. */
static bool take_attribute(const struct interface_answer *answer, int size, uint16_t type, void *value,
                           size_t bytes)
{
    const char *from;

    if (find_attribute(answer->attributes, size, type, &from) < (int)bytes)
        return false;
    memcpy(value, from, bytes);
    return true;
}

/* Returns 1 for yes, 0 for no, -1 for unknown. */
static int has_native_xdp(const char *name)
{
    static const char netdev[] = "netdev";
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC), result = -1, size;
    struct timeval limit = {.tv_sec = 1};
    uint32_t index = if_nametoindex(name);
    uint64_t features;
    uint16_t family;
    struct interface_answer answer;

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    size = ask_netlink(fd, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, netdev, sizeof(netdev),
                       &answer);
    if (take_attribute(&answer, size, CTRL_ATTR_FAMILY_ID, &family, sizeof(family))) {
        size = ask_netlink(fd, family, NETDEV_DEV_GET, NETDEV_DEV_IFINDEX, &index, sizeof(index), &answer);
        if (take_attribute(&answer, size, NETDEV_DEV_XDP_FEATURES, &features, sizeof(features)))
            result = (features & NETDEV_XDP_BASIC) != 0;
    }
    close(fd);
    return result;
}

/*
 * Whether an XDP program is attached to the interface. It may take frames before any other
 * receiver.
 */
static bool has_program(const char *name)
{
    struct {
        struct nlmsghdr head;
        struct ifinfomsg interface;
    } question = {
        .head = {.nlmsg_len = sizeof(question), .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST},
        .interface = {.ifi_index = (int)if_nametoindex(name)}};
    static char answer[16384];
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    struct timeval limit = {.tv_sec = 1};
    const char *nested = NULL, *mode = NULL;
    bool found = false;
    ssize_t count = -1;
    int size;

    if (fd < 0)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if (send(fd, &question, sizeof(question), 0) == (ssize_t)sizeof(question))
        count = recv(fd, answer, sizeof(answer), 0);
    close(fd);
    if (count <= (ssize_t)sizeof(question))
        return false;
    size = find_attribute(answer + sizeof(question), (int)(count - (ssize_t)sizeof(question)), IFLA_XDP,
                          &nested);
    if (find_attribute(nested, size, IFLA_XDP_ATTACHED, &mode) > 0)
        found = *mode != XDP_ATTACHED_NONE;
    return found;
}

static void read_addresses(struct by_interface *interface)
{
    struct ifaddrs *list = NULL;

    if (getifaddrs(&list) != 0)
        return;
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        struct sockaddr_in address;

        if (!i->ifa_addr || strcmp(i->ifa_name, interface->name) != 0)
            continue;
        if (i->ifa_addr->sa_family == AF_INET6 && interface->ipv6_count < BY_ADDRESSES_MAX)
            memcpy(interface->ipv6[interface->ipv6_count++],
                   &((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr, BY_IPV6_BYTES);
        if (i->ifa_addr->sa_family != AF_INET || interface->address_count == BY_ADDRESSES_MAX)
            continue;
        memcpy(&address, i->ifa_addr, sizeof(address));
        interface->addresses[interface->address_count++] = ntohl(address.sin_addr.s_addr);
    }
    freeifaddrs(list);
}

static void list_existing(struct by_interface *interface)
{
    struct if_nameindex *list = if_nameindex();
    size_t used = 0;

    for (const struct if_nameindex *i = list; i && i->if_index; i++)
        if (used + strlen(i->if_name) + 3 < sizeof(interface->existing))
            used += (size_t)snprintf(interface->existing + used, sizeof(interface->existing) - used, "%s%s",
                                     used ? ", " : "", i->if_name);
    if (list)
        if_freenameindex(list);
}

/*
 * Whether the reverse path filter is strict: the stricter of the interface's setting and the
 * setting for all interfaces applies.
 */
static bool is_strict(const char *name)
{
    static const char path[] = "/proc/sys/net/ipv4/conf/%.40s/rp_filter";
    int most = 0;

    for (int i = 0; i < 2; i++) {
        char whole[128];
        int value = 0;
        FILE *file;

        snprintf(whole, sizeof(whole), path, i ? "all" : name);
        file = fopen(whole, "re");
        if (file && fscanf(file, "%d", &value) == 1 && value > most)
            most = value;
        if (file)
            fclose(file);
    }
    return most == 1;
}

void by_interface_read(const char *name, struct by_interface *interface)
{
    struct by_device device;
    int fd, segments;

    *interface = (struct by_interface){.cuts = -1, .native_xdp = -1};
    snprintf(interface->name, sizeof(interface->name), "%s", name);
    by_device_read(name, &device);
    interface->exists = device.exists;
    if (!interface->exists) {
        list_existing(interface);
        return;
    }
    interface->is_up = device.is_up;
    interface->has_carrier = device.has_carrier;
    interface->mtu = device.mtu;
    memcpy(interface->mac, device.mac, sizeof(interface->mac));
    interface->queues = device.queues;
    interface->ring = device.ring;
    interface->ring_max = device.ring_max;
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    segments = fd < 0 ? -1 : by_feature_get(fd, name, BY_FEATURE_UDP_SEGMENTS);
    interface->cuts = segments < 0 ? -1 : segments == 0;
    interface->native_xdp = has_native_xdp(name);
    interface->has_program = has_program(name);
    interface->is_strict = is_strict(name);
    read_addresses(interface);
    if (fd >= 0)
        close(fd);
}
