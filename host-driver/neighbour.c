/* The kernel's neighbour table, by rtnetlink(7). See neighbour.h. */
#include "host-driver/neighbour.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host-driver/clock.h"
#include "host-driver/error.h"
#include "offload/base/errors.h"
#include "offload/linux/feature.h"

/* States in which the kernel would send to the address. */
#define VALID (NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY)
/* Bytes of an answer. */
#define ANSWER_BYTES 8192u

struct neighbour_row {
    uint32_t interface, ip;
    uint64_t due_ns;
    bool known;
    uint8_t mac[6];
};

struct by_host_neighbours {
    int fd;
    uint32_t count, sequence;
    struct neighbour_row row[BY_HOST_NEIGHBOURS_MAX];
};

/* A request about one neighbour. */
struct neighbour_request {
    struct nlmsghdr head;
    struct ndmsg about;
    struct rtattr attribute;
    uint32_t ip;
};

int by_host_neighbours_open(struct by_host_neighbours **neighbours)
{
    struct by_host_neighbours *own = calloc(1, sizeof(*own));
    const struct timeval limit = {.tv_usec = 100000};

    if (own == NULL)
        return by_fail(BY_ENOMEM, "no memory for the table of neighbours: %zu bytes", sizeof(*own));
    own->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (own->fd < 0) {
        int error = by_fail(BY_EIO, "no socket for the kernel's neighbours: %s", strerror(errno));

        free(own);
        return error;
    }
    setsockopt(own->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)); /* the kernel answers at once */
    *neighbours = own;
    return 0;
}

void by_host_neighbours_close(struct by_host_neighbours *neighbours)
{
    if (neighbours == NULL)
        return;
    close(neighbours->fd);
    free(neighbours);
}

static bool request(struct by_host_neighbours *neighbours, const struct neighbour_row *row, uint16_t type,
                    uint16_t flags, uint8_t use)
{
    struct neighbour_request request = {
        .head = {.nlmsg_len = sizeof(request),
                 .nlmsg_type = type,
                 .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
                 .nlmsg_seq = ++neighbours->sequence},
        .about = {.ndm_family = AF_INET, .ndm_ifindex = (int)row->interface, .ndm_flags = use},
        .attribute = {.rta_len = RTA_LENGTH(sizeof(request.ip)), .rta_type = NDA_DST},
        .ip = htonl(row->ip)};

    return send(neighbours->fd, &request, sizeof(request), 0) == (ssize_t)sizeof(request);
}

/* Takes the MAC address out of an answer of the kernel. */
static void take(struct neighbour_row *row, const struct nlmsghdr *head)
{
    const struct ndmsg *about = NLMSG_DATA(head);
    int left = (int)(head->nlmsg_len - NLMSG_LENGTH(sizeof(*about)));

    if (head->nlmsg_type != RTM_NEWNEIGH || left < 0 || !(about->ndm_state & VALID))
        return;
    for (const struct rtattr *each = (const struct rtattr *)(const void *)(about + 1); RTA_OK(each, left);
         each = RTA_NEXT(each, left))
        if (each->rta_type == NDA_LLADDR && RTA_PAYLOAD(each) == sizeof(row->mac)) {
            memcpy(row->mac, RTA_DATA(each), sizeof(row->mac));
            row->known = true;
        }
}

/* Asks the kernel for the address; lets it send a request if it has none, and confirm an old
 * one. */
static void look_up(struct by_host_neighbours *neighbours, struct neighbour_row *row)
{
    _Alignas(struct nlmsghdr) char answer[ANSWER_BYTES];
    bool answered = false;

    row->known = false;
    if (!request(neighbours, row, RTM_GETNEIGH, 0, 0))
        return;
    while (!answered) {
        ssize_t bytes = recv(neighbours->fd, answer, sizeof(answer), 0);
        int left = (int)bytes;

        if (bytes < 0 && errno == EINTR)
            continue;
        if (bytes <= 0)
            break;
        for (const struct nlmsghdr *head = (const struct nlmsghdr *)(const void *)answer;
             left > 0 && NLMSG_OK(head, (unsigned)left); head = NLMSG_NEXT(head, left)) {
            if (head->nlmsg_seq != neighbours->sequence)
                continue; /* late */
            answered = true;
            take(row, head);
        }
    }
    request(neighbours, row, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, NTF_USE);
}

const uint8_t *by_host_neighbour(struct by_host_neighbours *neighbours, uint32_t interface, uint32_t ip)
{
    uint64_t now_ns = by_clock_ns();
    struct neighbour_row *row;
    uint32_t i = 0;

    while (i < neighbours->count &&
           (neighbours->row[i].interface != interface || neighbours->row[i].ip != ip))
        i++;
    if (i == BY_HOST_NEIGHBOURS_MAX)
        return NULL;
    row = &neighbours->row[i];
    if (i == neighbours->count) {
        neighbours->count++;
        *row = (struct neighbour_row){.interface = interface, .ip = ip};
    }
    if (now_ns >= row->due_ns) {
        look_up(neighbours, row);
        row->due_ns = now_ns + (row->known ? BY_HOST_NEIGHBOUR_AGAIN_NS : BY_HOST_NEIGHBOUR_SOON_NS);
    }
    return row->known ? row->mac : NULL;
}

int by_host_mac(const char *interface, uint8_t mac[6])
{
    struct ifreq query = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), error = 0;

    memcpy(query.ifr_name, interface, strnlen(interface, IFNAMSIZ - 1));
    if (fd < 0 || ioctl(fd, SIOCGIFHWADDR, &query) != 0)
        error = by_fail(BY_ENOENT, "interface %s of the table: %s", interface, strerror(errno));
    else
        memcpy(mac, query.ifr_hwaddr.sa_data, 6);
    if (fd >= 0)
        close(fd);
    return error;
}

int by_host_vlan_check(const char *interface, uint16_t vlan)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    unsigned own;

    if (fd < 0)
        return by_fail(BY_EIO, "no socket: %s", strerror(errno));
    own = by_feature_vlan(fd, interface);
    close(fd);
    if (own == vlan)
        return 0;
    if (vlan == 0)
        return by_fail(
            BY_EINVAL,
            "%s is the interface of VLAN %u, and the table states no VLAN: name its VLAN, or another "
            "interface, in the site file",
            interface, own);
    if (own != 0)
        return by_fail(BY_EINVAL,
                       "%s is the interface of VLAN %u, and the table states VLAN %u: name the interface of "
                       "that VLAN in the site file",
                       interface, own, vlan);
    return by_fail(
        BY_EINVAL,
        "%s has no VLAN, and the table states VLAN %u: make an interface for it (ip link add link %s "
        "name %s.%u type vlan id %u) and name that one in the site file",
        interface, vlan, interface, interface, vlan, vlan);
}
