/* Facts of an interface by ioctl(2), ethtool and sysfs; see device.h. Source: linux/ethtool.h. */
#include "offload/linux/device.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "offload/linux/feature.h"

/* Words of a bitmap of link modes (count); kernels have some 4. */
#define MODE_WORDS_MAX 64

struct device_speed {
    struct ethtool_link_settings head;
    uint32_t words[3 * MODE_WORDS_MAX];
};

/* Offloads that matter to banyan, by ethtool's names. */
static const char *const features[] = {"rx-checksum",       "tx-checksum-ip-generic", "tx-checksum-ipv4",
                                       "tx-scatter-gather", "tx-udp-segmentation",    "rx-gro",
                                       "rx-gro-hw",         "rx-vlan-hw-parse"};

static int ask_ethtool(int fd, const char *name, void *command)
{
    struct ifreq request = {.ifr_data = command};

    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    return ioctl(fd, SIOCETHTOOL, &request);
}

static int ask_interface(int fd, const char *name, unsigned long what, struct ifreq *request)
{
    memset(request, 0, sizeof(*request));
    snprintf(request->ifr_name, sizeof(request->ifr_name), "%s", name);
    return ioctl(fd, what, request);
}

/* The first call reports the size of the bitmaps as a negative number, the second all settings. */
static uint32_t read_speed(int fd, const char *name)
{
    struct device_speed speed = {.head = {.cmd = ETHTOOL_GLINKSETTINGS}};
    int8_t words;

    if (ask_ethtool(fd, name, &speed) != 0 || speed.head.link_mode_masks_nwords >= 0)
        return 0;
    words = (int8_t)-speed.head.link_mode_masks_nwords;
    if (words > MODE_WORDS_MAX)
        return 0;
    speed.head =
        (struct ethtool_link_settings){.cmd = ETHTOOL_GLINKSETTINGS, .link_mode_masks_nwords = words};
    if (ask_ethtool(fd, name, &speed) != 0 || speed.head.speed == (uint32_t)SPEED_UNKNOWN)
        return 0;
    return speed.head.speed;
}

/* sysfs lists PCI devices in all network namespaces, interfaces only in that of its mount. */
uint32_t by_device_numa(const char *bus)
{
    char path[96];
    FILE *file;
    int node = -1;

    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.40s/numa_node", bus);
    file = fopen(path, "re");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%d", &node) != 1)
        node = -1;
    fclose(file);
    return node < 0 ? 0 : (uint32_t)node + 1;
}

static void read_driver(int fd, struct by_device *device, const char *name)
{
    struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
    struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
    struct ethtool_ringparam rings = {.cmd = ETHTOOL_GRINGPARAM};
    size_t used = 0;

    if (ask_ethtool(fd, name, &info) == 0) {
        snprintf(device->driver, sizeof(device->driver), "%.31s", info.driver);
        if (!by_feature_virtual(fd, name))
            snprintf(device->bus, sizeof(device->bus), "%.31s", info.bus_info);
    }
    if (device->bus[0] != 0)
        device->numa = by_device_numa(device->bus);
    if (ask_ethtool(fd, name, &channels) == 0)
        device->queues = channels.rx_count + channels.combined_count;
    if (ask_ethtool(fd, name, &rings) == 0) {
        device->ring = rings.rx_pending;
        device->ring_max = rings.rx_max_pending;
    }
    for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++)
        if (by_feature_get(fd, name, features[i]) == 1 &&
            used + strlen(features[i]) + 2 < sizeof(device->features))
            used += (size_t)snprintf(device->features + used, sizeof(device->features) - used, "%s%s",
                                     used > 0 ? " " : "", features[i]);
}

void by_device_read(const char *name, struct by_device *device)
{
    struct ethtool_value link = {.cmd = ETHTOOL_GLINK};
    struct ifreq request;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    *device = (struct by_device){.exists = false};
    if (fd < 0)
        return;
    device->exists = strlen(name) < IFNAMSIZ && ask_interface(fd, name, SIOCGIFFLAGS, &request) == 0;
    if (device->exists) {
        device->is_up = (request.ifr_flags & IFF_UP) != 0;
        device->has_carrier = (request.ifr_flags & IFF_RUNNING) != 0;
        /* more current than IFF_RUNNING, which the kernel sets up to a second late */
        if (ask_ethtool(fd, name, &link) == 0)
            device->has_carrier = link.data != 0;
        if (ask_interface(fd, name, SIOCGIFMTU, &request) == 0)
            device->mtu = (uint32_t)request.ifr_mtu;
        if (ask_interface(fd, name, SIOCGIFHWADDR, &request) == 0) {
            device->is_ethernet = request.ifr_hwaddr.sa_family == ARPHRD_ETHER;
            memcpy(device->mac, request.ifr_hwaddr.sa_data, sizeof(device->mac));
        }
        device->speed_mbps = read_speed(fd, name);
        read_driver(fd, device, name);
    }
    close(fd);
}

bool by_device_mac(const char *name, uint8_t mac[6])
{
    struct ifreq request;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool found = fd >= 0 && ask_interface(fd, name, SIOCGIFHWADDR, &request) == 0;

    if (found)
        memcpy(mac, request.ifr_hwaddr.sa_data, 6);
    if (fd >= 0)
        close(fd);
    return found;
}

/* Counts the leading ones of a netmask. */
static unsigned prefix_of(const uint8_t *mask, size_t bytes)
{
    unsigned bits = 0;

    while (bits < 8 * bytes && (mask[bits / 8] >> (7 - bits % 8) & 1) != 0)
        bits++;
    return bits;
}

/* Writes one address; false if it is of another family, or link-local. */
static bool write_address(const struct ifaddrs *entry, int family, char *text, size_t room)
{
    char address[INET6_ADDRSTRLEN];
    struct sockaddr_in in, mask;
    struct sockaddr_in6 in6, mask6;

    if (entry->ifa_addr == NULL || entry->ifa_netmask == NULL || entry->ifa_addr->sa_family != family)
        return false;
    if (family == AF_INET) {
        memcpy(&in, entry->ifa_addr, sizeof(in));
        memcpy(&mask, entry->ifa_netmask, sizeof(mask));
        inet_ntop(AF_INET, &in.sin_addr, address, sizeof(address));
        snprintf(text, room, "%s/%u", address, prefix_of((const uint8_t *)&mask.sin_addr, 4));
        return true;
    }
    memcpy(&in6, entry->ifa_addr, sizeof(in6));
    memcpy(&mask6, entry->ifa_netmask, sizeof(mask6));
    if (IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr))
        return false;
    inet_ntop(AF_INET6, &in6.sin6_addr, address, sizeof(address));
    snprintf(text, room, "%s/%u", address, prefix_of(mask6.sin6_addr.s6_addr, 16));
    return true;
}

void by_device_addresses(const char *name, char *text, uint32_t room)
{
    static const int families[] = {AF_INET, AF_INET6};
    struct ifaddrs *list = NULL;
    size_t used = 0;

    text[0] = 0;
    if (getifaddrs(&list) != 0)
        return;
    for (size_t family = 0; family < 2; family++)
        for (const struct ifaddrs *i = list; i != NULL; i = i->ifa_next) {
            char one[INET6_ADDRSTRLEN + 8];

            if (strcmp(i->ifa_name, name) != 0 || !write_address(i, families[family], one, sizeof(one)) ||
                used + strlen(one) + 2 > room)
                continue;
            used += (size_t)snprintf(text + used, room - used, "%s%s", used > 0 ? " " : "", one);
        }
    freeifaddrs(list);
}
