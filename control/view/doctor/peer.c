/*
 * Queries a peer by one ARP request (RFC 826), or a solicitation over IPv6 (RFC 4861). Every host
 * answers it, and a switch with a table answers for its ports; it has no side effects. Without raw
 * sockets, the kernel's neighbour table is read. See machine.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "control/view/doctor/machine.h"
#include "offload/base/bytes.h"

/* Number of requests: a busy machine may be late, and a frame may be lost. */
#define TRIES        3u
#define ARP_BYTES    28u
#define FRAME_BYTES  (14u + ARP_BYTES)
#define ARP_REQUEST  1u
#define ARP_REPLY    2u
#define ARP_ETHERNET 1u
/* Offsets in an ARP packet after its fixed head (RFC 826, for Ethernet and IPv4). */
enum {
    ARP_TYPE = 0,
    ARP_PROTOCOL = 2,
    ARP_LENGTHS = 4,
    ARP_OPERATION = 6,
    ARP_FROM_MAC = 8,
    ARP_FROM_IP = 14,
    ARP_TO_IP = 24
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Looks up /proc/net/arp, with lines "IP type flags MAC mask device"; flag 2 means complete. */
static enum by_peer look_up(const char *interface, uint32_t ip, uint8_t mac[6])
{
    FILE *file = fopen("/proc/net/arp", "re");
    enum by_peer result = BY_PEER_UNSEEN;
    char line[256], address[32], text[32], device[64];
    unsigned flags, octets[6];

    while (file && fgets(line, sizeof(line), file) != NULL) {
        struct in_addr found;

        if (sscanf(line, "%31s %*s %x %31s %*s %63s", address, &flags, text, device) != 4 ||
            inet_aton(address, &found) == 0 || ntohl(found.s_addr) != ip || strcmp(device, interface) != 0 ||
            !(flags & 2))
            continue;
        if (sscanf(text, "%x:%x:%x:%x:%x:%x", &octets[0], &octets[1], &octets[2], &octets[3], &octets[4],
                   &octets[5]) != 6)
            continue;
        for (int i = 0; i < 6; i++)
            mac[i] = (uint8_t)octets[i];
        result = BY_PEER_KNOWN;
    }
    if (file)
        fclose(file);
    return result;
}

static void make_question(uint8_t frame[FRAME_BYTES], uint32_t own_ip, const uint8_t own_mac[6], uint32_t ip)
{
    uint8_t *arp = frame + 14;

    memset(frame, 0, FRAME_BYTES);
    memset(frame, 0xff, 6);
    memcpy(frame + 6, own_mac, 6);
    by_put16(frame + 12, ETHERTYPE_ARP);
    by_put16(arp + ARP_TYPE, ARP_ETHERNET);
    by_put16(arp + ARP_PROTOCOL, ETHERTYPE_IP);
    arp[ARP_LENGTHS] = 6;
    arp[ARP_LENGTHS + 1] = 4;
    by_put16(arp + ARP_OPERATION, ARP_REQUEST);
    memcpy(arp + ARP_FROM_MAC, own_mac, 6);
    by_put32(arp + ARP_FROM_IP, own_ip);
    by_put32(arp + ARP_TO_IP, ip);
}

/* A request, and the address that must answer it. */
struct peer_question {
    uint8_t frame[BY_DISCOVERY_BYTES];
    size_t bytes;
    uint32_t ip;
    const uint8_t *ipv6; /* NULL: `ip` */
};

/* Whether a frame answers; then sets `mac`. */
static bool is_answer(const struct peer_question *question, const uint8_t *frame, size_t bytes,
                      uint8_t mac[6])
{
    struct by_discovery_message message;

    if (question->ipv6 != NULL) {
        if (by_discovery_parse(frame, bytes, &message) != 0 || message.is_solicitation ||
            memcmp(message.target, question->ipv6, BY_IPV6_BYTES) != 0)
            return false;
        memcpy(mac, message.src_mac, 6);
        return true;
    }
    if (bytes < FRAME_BYTES || by_get16(frame + 12) != ETHERTYPE_ARP ||
        by_get16(frame + 14 + ARP_OPERATION) != ARP_REPLY ||
        by_get32(frame + 14 + ARP_FROM_IP) != question->ip)
        return false;
    memcpy(mac, frame + 14 + ARP_FROM_MAC, 6);
    return true;
}

/* Waits for the answer. */
static enum by_peer await(int fd, const struct peer_question *question, unsigned wait_ms, uint8_t mac[6])
{
    int64_t deadline = now_ms() + wait_ms;

    for (;;) {
        struct pollfd entry = {.fd = fd, .events = POLLIN};
        int64_t left = deadline - now_ms();
        uint8_t frame[2048];
        ssize_t bytes;

        if (left <= 0 || (poll(&entry, 1, (int)left) <= 0 && errno != EINTR))
            return BY_PEER_SILENT;
        bytes = recv(fd, frame, sizeof(frame), MSG_DONTWAIT);
        if (bytes > 0 && is_answer(question, frame, (size_t)bytes, mac))
            return BY_PEER_ANSWERS;
    }
}

/* Sends the question up to TRIES times. UNSEEN: there is no right to. */
static enum by_peer send_question(const char *interface, const struct peer_question *question,
                                  unsigned wait_ms, uint8_t mac[6])
{
    struct sockaddr_ll address = {.sll_family = AF_PACKET,
                                  .sll_protocol = htons(ETH_P_ALL),
                                  .sll_ifindex = (int)if_nametoindex(interface)};
    /*
     * Receives all protocols, because sockets for a single protocol receive frames only after the
     * rings of a switch, which keep the frames that they take.
     */
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
    enum by_peer result = BY_PEER_UNSEEN;

    if (fd < 0)
        return BY_PEER_UNSEEN;
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
        for (unsigned i = 0; i < TRIES && result != BY_PEER_ANSWERS; i++)
            if (send(fd, question->frame, question->bytes, 0) == (ssize_t)question->bytes)
                result = await(fd, question, wait_ms / TRIES, mac);
    close(fd);
    return result;
}

enum by_peer by_peer_ask(const char *interface, uint32_t own_ip, const uint8_t own_mac[6], uint32_t ip,
                         unsigned wait_ms, uint8_t mac[6])
{
    struct peer_question question = {.bytes = FRAME_BYTES, .ip = ip};
    enum by_peer result;

    make_question(question.frame, own_ip, own_mac, ip);
    result = send_question(interface, &question, wait_ms, mac);
    return result == BY_PEER_UNSEEN ? look_up(interface, ip, mac) : result;
}

enum by_peer by_peer_ask_ipv6(const char *interface, const uint8_t own[BY_IPV6_BYTES],
                              const uint8_t own_mac[6], const uint8_t ipv6[BY_IPV6_BYTES], unsigned wait_ms,
                              uint8_t mac[6])
{
    struct peer_question question = {.bytes = BY_DISCOVERY_BYTES, .ipv6 = ipv6};

    by_discovery_solicit(own_mac, own, NULL, ipv6, question.frame);
    return send_question(interface, &question, wait_ms, mac);
}
