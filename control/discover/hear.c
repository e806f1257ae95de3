/*
 * Announces this machine by LLDP on its interfaces, and hears its neighbours: one packet socket for
 * all interfaces. See local.h. Single-threaded.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/discover/local.h"
#include "offload/base/errors.h"
#include "offload/wire/lldp.h"

/* Longest frame that is read (bytes): LLDP frames are not fragmented. */
#define FRAME_BYTES_MAX 9216u

/* The group to which LLDP frames are sent: a card with a filter must be told of it. */
static const uint8_t group[] = {0x01, 0x80, 0xc2, 0, 0, 0x0e};

struct hear_state {
    int fd;
    struct by_facts *facts;
    unsigned *index; /* of each interface, the kernel's */
};

static void join(const struct hear_state *hear)
{
    for (uint32_t i = 0; i < hear->facts->interface_count; i++) {
        struct packet_mreq request = {
            .mr_ifindex = (int)hear->index[i], .mr_type = PACKET_MR_MULTICAST, .mr_alen = sizeof(group)};

        memcpy(request.mr_address, group, sizeof(group));
        (void)setsockopt(hear->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request, sizeof(request));
    }
}

static void announce(const struct hear_state *hear)
{
    for (uint32_t i = 0; i < hear->facts->interface_count; i++) {
        const struct by_facts_interface *interface = &hear->facts->interfaces[i];
        const struct sockaddr_ll to = {
            .sll_family = AF_PACKET, .sll_ifindex = (int)hear->index[i], .sll_halen = sizeof(group)};
        struct by_lldp own = {.ttl_s = BY_LLDP_TTL_S};
        uint8_t frame[BY_LLDP_BYTES_MAX];
        size_t bytes;

        if (interface->is_down || !interface->has_mac)
            continue;
        memcpy(own.source, interface->mac, sizeof(own.source));
        snprintf(own.node, sizeof(own.node), "%s", hear->facts->node);
        snprintf(own.port, sizeof(own.port), "%s", interface->name);
        bytes = by_lldp_encode(&own, frame);
        /* An interface that goes down meanwhile is not announced. */
        (void)sendto(hear->fd, frame, bytes, MSG_DONTWAIT, (const struct sockaddr *)&to, sizeof(to));
    }
}

static void take(const struct hear_state *hear)
{
    static uint8_t frame[FRAME_BYTES_MAX];
    struct sockaddr_ll from = {.sll_family = 0};
    socklen_t size = sizeof(from);
    ssize_t bytes = recvfrom(hear->fd, frame, sizeof(frame), MSG_DONTWAIT, (struct sockaddr *)&from, &size);
    struct by_facts_neighbour neighbour = {.has_mac = true};
    struct by_lldp lldp;

    if (bytes < 0 || from.sll_pkttype == PACKET_OUTGOING || !by_lldp_parse(frame, (size_t)bytes, &lldp) ||
        lldp.ttl_s == 0)
        return;
    memcpy(neighbour.mac, lldp.source, sizeof(neighbour.mac));
    by_facts_copy_name(neighbour.node, lldp.node);
    by_facts_copy_name(neighbour.port, lldp.port);
    by_facts_copy_name(neighbour.description, lldp.description);
    neighbour.forwards = lldp.forwards;
    for (uint32_t i = 0; i < hear->facts->interface_count; i++)
        if (hear->index[i] == (unsigned)from.sll_ifindex)
            by_facts_hear(&hear->facts->interfaces[i], &neighbour);
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void listen_for(const struct hear_state *hear, uint32_t listen_ms)
{
    uint64_t begin = now_ms(), now = begin, due = begin;

    while (now < begin + listen_ms) {
        struct pollfd poller = {.fd = hear->fd, .events = POLLIN};
        uint64_t until;

        if (now >= due) {
            announce(hear);
            due = now + BY_ANNOUNCE_MS;
        }
        until = due < begin + listen_ms ? due : begin + listen_ms;
        if (poll(&poller, 1, (int)(until - now) + 1) > 0)
            take(hear);
        now = now_ms();
    }
}

int by_hear(struct by_facts *facts, uint32_t listen_ms, struct by_problem *problem)
{
    struct hear_state hear = {.facts = facts};
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(BY_LLDP_ETHERTYPE)), error = errno;

    if (fd < 0)
        return by_problem_say(problem, error == EPERM ? BY_EPERM : BY_EIO,
                              "cannot send and receive LLDP frames (%s), so the cables of '%s' are found at "
                              "their other ends only: run as root, or give this program CAP_NET_RAW",
                              strerror(error), facts->node);
    hear.fd = fd;
    hear.index = by_alloc(facts->interface_count, sizeof(*hear.index));
    for (uint32_t i = 0; i < facts->interface_count; i++)
        hear.index[i] = if_nametoindex(facts->interfaces[i].name);
    join(&hear);
    listen_for(&hear, listen_ms);
    free(hear.index);
    close(fd);
    return 0;
}
