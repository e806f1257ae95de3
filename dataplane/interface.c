/*
 * Kernel interfaces as ports. net_af_xdp costs the least CPU per packet where it works: frames that
 * fit a page, an interface with one receive queue (its sockets are bound to queues). net_af_packet
 * works on every interface and MTU. docs/decisions has the measurements. Start-up only.
 */
#include "dataplane/interface.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xdp/libxdp.h>

#include "dataplane/say.h"
#include "offload/base/errors.h"
#include "offload/linux/feature.h"

/* Rings of net_af_packet: frames per direction (count), bytes of a frame and of a block, for MTUs
 * up to SMALL_MTU_MAX and above. A block holds a whole number of frames (the driver relies on it),
 * and blocks are whole pages. */
#define RING_FRAMES       1024u
#define RING_FRAME_BYTES  2048u
#define RING_BLOCK_BYTES  65536u
#define SMALL_MTU_MAX     1900u
#define JUMBO_FRAMES      512u
#define JUMBO_FRAME_BYTES 10240u
#define JUMBO_BLOCK_BYTES 40960u
/* Ethernet header and FCS (bytes). */
#define FRAME_BYTES_BESIDE_MTU 18u
/* Largest MTU for AF_XDP: a page less mbuf, headroom and alignment. */
#define AF_XDP_MTU_MAX 3400u

/* Lists the existing interfaces, for an error text. */
static void list_interfaces(char *text, size_t bytes)
{
    struct if_nameindex *list = if_nameindex();
    size_t used = 0;

    text[0] = 0;
    for (struct if_nameindex *i = list; i && i->if_index; i++)
        if (used + strlen(i->if_name) + 3 < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", i->if_name);
    if (list)
        if_freenameindex(list);
}

/* Checks that this process may open a raw socket. */
static int check_raw(const char *name)
{
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        by_say("--iface %s: no permission to open raw sockets (%s): run as root, or give the program "
               "CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF",
               name, strerror(errno));
        return BY_EPERM;
    }
    close(fd);
    return 0;
}

int by_interface_check(const char *name)
{
    char existing[512];

    if (if_nametoindex(name) != 0)
        return check_raw(name);
    list_interfaces(existing, sizeof existing);
    by_say("--iface %s: no such interface; available: %s", name, existing);
    return BY_ENOENT;
}

/* Reads the MTU and brings the interface up. */
int by_interface_ready(const char *name, uint16_t *mtu)
{
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int result = 0;

    if (fd < 0) {
        by_say("--iface %s: cannot open a socket: %s", name, strerror(errno));
        return BY_EIO;
    }
    snprintf(request.ifr_name, sizeof request.ifr_name, "%.*s", IFNAMSIZ - 1, name);
    if (ioctl(fd, SIOCGIFMTU, &request) != 0) {
        by_say("--iface %s: MTU: %s", name, strerror(errno));
        result = BY_EIO;
        goto out;
    }
    *mtu = (uint16_t)(request.ifr_mtu > 65535 ? 65535 : request.ifr_mtu);
    if (ioctl(fd, SIOCGIFFLAGS, &request) != 0 || (request.ifr_flags & IFF_UP))
        goto out;
    request.ifr_flags |= IFF_UP;
    if (ioctl(fd, SIOCSIFFLAGS, &request) != 0) {
        by_say("--iface %s is down and cannot be brought up: %s; `ip link set %s up`", name, strerror(errno),
               name);
        result = errno == EPERM ? BY_EPERM : BY_EIO;
    }
out:
    close(fd);
    return result;
}

unsigned by_interface_vlan(const char *name)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    unsigned vlan = fd >= 0 ? by_feature_vlan(fd, name) : 0;

    if (fd >= 0)
        close(fd);
    return vlan;
}

void by_interface_mac(const char *name, uint8_t mac[6])
{
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    memset(mac, 0, 6);
    if (fd < 0)
        return;
    snprintf(request.ifr_name, sizeof request.ifr_name, "%.*s", IFNAMSIZ - 1, name);
    if (ioctl(fd, SIOCGIFHWADDR, &request) == 0)
        memcpy(mac, request.ifr_hwaddr.sa_data, 6);
    close(fd);
}

bool by_interface_is_down(const char *name)
{
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool down = false;

    if (fd < 0)
        return false;
    snprintf(request.ifr_name, sizeof request.ifr_name, "%.*s", IFNAMSIZ - 1, name);
    if (ioctl(fd, SIOCGIFFLAGS, &request) != 0)
        down = errno == ENODEV;
    else
        down = (request.ifr_flags & (IFF_UP | IFF_RUNNING)) != (IFF_UP | IFF_RUNNING);
    close(fd);
    return down;
}

unsigned by_interface_queues(const char *name)
{
    struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
    struct ifreq request = {.ifr_data = (char *)&channels};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    unsigned count = 1;

    snprintf(request.ifr_name, sizeof request.ifr_name, "%.*s", IFNAMSIZ - 1, name);
    if (fd >= 0 && ioctl(fd, SIOCETHTOOL, &request) == 0)
        count = channels.rx_count + channels.combined_count;
    if (fd >= 0)
        close(fd);
    return count;
}

bool by_interface_single_frames(const char *name)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool single =
        fd >= 0 && by_feature_virtual(fd, name) && by_feature_get(fd, name, BY_FEATURE_UDP_SEGMENTS) == 0;

    if (fd >= 0)
        close(fd);
    return single;
}

unsigned by_interface_driver(const char *name, uint16_t mtu)
{
    return mtu <= SMALL_MTU_MAX && by_interface_queues(name) <= 1 ? BY_DRIVER_AF_XDP : BY_DRIVER_AF_PACKET;
}

bool by_interface_fits(const char *name, uint16_t mtu)
{
    if (mtu <= AF_XDP_MTU_MAX)
        return true;
    by_say("--iface %s: MTU %u does not fit a frame of AF_XDP (at most %u): use --driver af_packet or a "
           "smaller MTU",
           name, mtu, AF_XDP_MTU_MAX);
    return false;
}

int by_interface_device(const char *name, unsigned index, unsigned driver, uint16_t mtu, char device[64],
                        char arguments[256])
{
    bool jumbo = mtu > SMALL_MTU_MAX;

    if (driver == BY_DRIVER_AF_XDP && !by_interface_fits(name, mtu))
        return BY_ELIMIT;
    if (driver == BY_DRIVER_AF_XDP) {
        /* Their warnings describe fallbacks that require no action by the user; errors are
         * returned. */
        libbpf_set_print(NULL);
        libxdp_set_print(NULL);
        snprintf(device, 64, "net_af_xdp%u", index);
        snprintf(arguments, 256, "iface=%s,start_queue=0,queue_count=1", name);
        return 0;
    }
    snprintf(device, 64, "net_af_packet%u", index);
    snprintf(arguments, 256, "iface=%s,qpairs=1,framesz=%u,blocksz=%u,framecnt=%u,qdisc_bypass=1", name,
             jumbo ? JUMBO_FRAME_BYTES : RING_FRAME_BYTES, jumbo ? JUMBO_BLOCK_BYTES : RING_BLOCK_BYTES,
             jumbo ? JUMBO_FRAMES : RING_FRAMES);
    return 0;
}

uint32_t by_interface_buffer_bytes(unsigned driver, uint16_t mtu)
{
    if (mtu <= SMALL_MTU_MAX)
        return RING_FRAME_BYTES;
    return driver == BY_DRIVER_AF_PACKET ? JUMBO_FRAME_BYTES : mtu + FRAME_BYTES_BESIDE_MTU;
}
