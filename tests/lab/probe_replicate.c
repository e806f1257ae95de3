/*
 * Load that makes a switch replicate: one host has data, the others send credits alone, and each
 * chunk goes out to all ports. To cost as little as it can (it shares the machine with the switch
 * under test) frames are built once and only patched, and results are read at the first host only.
 * `blast` sends one frame over and over, for a forwarder to compare with.
 */
#include <inttypes.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "offload/base/bytes.h"
#include "offload/reduce/reduce.h"
#include "tests/lab/probe.h"

#define BATCH      32u
#define FRAME_ROOM 9216u
#define WINDOW_MAX 256u
#define RESEND_NS  20000000u
#define AT_BANYAN  BY_FRAME_HEADER_BYTES
#define AT_SEQ     (BY_FRAME_HEADER_BYTES + 12)

static struct {
    struct star star;
    int send[STAR_HOSTS_MAX];
    int receive;
    uint32_t window, next, oldest;
    uint16_t count;
    uint8_t done[WINDOW_MAX];
    uint64_t moved_ns;
    uint64_t resent;
    size_t bytes[STAR_HOSTS_MAX];
    uint8_t frames[STAR_HOSTS_MAX][BATCH][FRAME_ROOM];
    uint8_t inbox[BATCH][FRAME_ROOM];
} load;

static uint64_t clock_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Sends only: protocol 0 receives nothing. */
static int send_socket(const char *interface)
{
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(interface)};
    int fd = socket(AF_PACKET, SOCK_RAW, 0), one = 1, bytes = 64 << 20;

    if (fd < 0 || address.sll_ifindex == 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        fprintf(stderr, "switch-probe: %s cannot be opened\n", interface);
        exit(1);
    }
    setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
    return fd;
}

/* The frames of one host: data from host 0, a credit from the others. All want the result. */
static void build(unsigned host)
{
    uint8_t packet[FRAME_ROOM];
    struct by_header header;
    const uint8_t *payload;
    size_t bytes = star_contribution(&load.star, host, 0, 0, load.count, packet);

    if (host > 0) {
        by_header_decode(packet, bytes, &header, &payload);
        header.flags |= BY_FLAG_NODATA;
        header.psum = 0;
        by_header_encode(&header, packet);
        bytes = BY_WIRE_HEADER_BYTES;
    }
    for (unsigned i = 0; i < BATCH; i++)
        load.bytes[host] = star_frame(host, packet, bytes, load.frames[host][i]);
}

static void send_chunks(unsigned host, uint32_t first, uint32_t count)
{
    struct mmsghdr messages[BATCH] = {0};
    struct iovec vectors[BATCH];

    for (uint32_t i = 0; i < count; i++) {
        by_put32(load.frames[host][i] + AT_SEQ, first + i);
        star_retag(load.frames[host][i] + AT_BANYAN);
        vectors[i] = (struct iovec){load.frames[host][i], load.bytes[host]};
        messages[i].msg_hdr.msg_iov = &vectors[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    sendmmsg(load.send[host], messages, count, 0);
}

/* Marks the chunks whose result came to host 0. */
static int take_results(void)
{
    struct mmsghdr messages[BATCH] = {0};
    struct iovec vectors[BATCH];
    int count;

    for (uint32_t i = 0; i < BATCH; i++) {
        vectors[i] = (struct iovec){load.inbox[i], AT_SEQ + 4}; /* the rest is cut off: not looked at */
        messages[i].msg_hdr.msg_iov = &vectors[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    count = recvmmsg(load.receive, messages, BATCH, MSG_DONTWAIT, NULL);
    for (int i = 0; i < count; i++) {
        uint32_t seq = by_get32(load.inbox[i] + AT_SEQ);

        if (load.inbox[i][AT_BANYAN + 1] == BY_TYPE_RESULT && seq - load.oldest < load.window)
            load.done[seq % load.window] = 1;
    }
    return count;
}

static void advance(uint64_t now)
{
    uint32_t before = load.oldest, room, count;

    while (load.oldest != load.next && load.done[load.oldest % load.window]) {
        load.done[load.oldest % load.window] = 0;
        load.oldest++;
    }
    if (load.oldest != before || load.oldest == load.next)
        load.moved_ns = now;
    room = load.window - (load.next - load.oldest);
    count = room < BATCH ? room : BATCH;
    if (count == BATCH || count == load.window) {
        for (unsigned host = 0; host < load.star.hosts; host++)
            send_chunks(host, load.next, count);
        load.next += count;
    } else if (now - load.moved_ns > RESEND_NS) {
        for (unsigned host = 0; host < load.star.hosts; host++)
            send_chunks(host, load.oldest, 1);
        load.moved_ns = now;
        load.resent++;
    }
}

int probe_replicate(int hosts, unsigned seconds, uint32_t window, uint16_t count, char **interfaces)
{
    uint64_t begin, now;
    int ignore = 1, bytes = 64 << 20;

    if (hosts < 1 || hosts > (int)STAR_HOSTS_MAX || window > WINDOW_MAX || window < BATCH ||
        count > BY_PAYLOAD_MAX / 4)
        return 2;
    load.star = (struct star){.hosts = (uint16_t)hosts, .trees = 1};
    load.window = window;
    load.count = count;
    for (int i = 0; i < hosts; i++) {
        load.send[i] = send_socket(interfaces[i]);
        build((unsigned)i);
    }
    load.receive = probe_socket(interfaces[0]);
    setsockopt(load.receive, SOL_PACKET, PACKET_IGNORE_OUTGOING, &ignore, sizeof ignore);
    setsockopt(load.receive, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
    begin = now = load.moved_ns = clock_ns();
    while (now < begin + seconds * 1000000000ull) {
        if (take_results() <= 0)
            sched_yield();
        now = clock_ns();
        advance(now);
    }
    printf("%" PRIu64 " packets/s, %" PRIu64 " sent again\n",
           (uint64_t)load.oldest * (unsigned)hosts * 1000000000u / (now - begin), load.resent);
    return load.oldest == 0;
}

int probe_blast(unsigned seconds, size_t bytes, const char *interface)
{
    struct mmsghdr messages[BATCH] = {0};
    struct iovec vector;
    uint8_t frame[FRAME_ROOM] = {0}, packet[FRAME_ROOM] = {0};
    uint64_t begin = clock_ns(), now = begin, sent = 0;
    int fd = send_socket(interface);

    if (bytes < BY_FRAME_HEADER_BYTES || bytes > FRAME_ROOM)
        return 2;
    vector = (struct iovec){frame, star_frame(0, packet, bytes - BY_FRAME_HEADER_BYTES, frame)};
    for (unsigned i = 0; i < BATCH; i++) {
        messages[i].msg_hdr.msg_iov = &vector;
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    for (; now < begin + seconds * 1000000000ull; now = clock_ns()) {
        int count = sendmmsg(fd, messages, BATCH, 0);

        sent += count > 0 ? (unsigned)count : 0;
    }
    printf("%" PRIu64 " packets/s\n", sent * 1000000000u / (now - begin));
    return 0;
}
