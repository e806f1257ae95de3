/*
 * Load for a switch: all hosts of a star in one process, a window of chunks under way, raw sockets
 * with batched system calls. Prints chunks a second. A chunk whose results do not come is sent
 * again. Results are counted by seq; probe_packet.c is what checks their contents.
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
#include "tests/lab/probe.h"

#define BATCH      32u
#define FRAME_ROOM 9216u
#define WINDOW_MAX 256u
#define RESEND_NS  50000000u
#define AT_TYPE    (BY_FRAME_HEADER_BYTES + 1)
#define AT_SEQ     (BY_FRAME_HEADER_BYTES + 12)

struct probe_flood_chunk {
    uint32_t seq;
    uint32_t missing; /* bitmap of hosts without a result */
    uint64_t sent_ns;
};

static struct {
    struct star star;
    int sockets[STAR_HOSTS_MAX];
    uint32_t window;
    uint32_t next;   /* seq to start */
    uint32_t oldest; /* seq that is not done */
    uint16_t count;
    uint64_t resent;
    struct probe_flood_chunk chunks[WINDOW_MAX];
    size_t frame_bytes;
    uint8_t frames[BATCH][FRAME_ROOM];
    uint8_t inbox[BATCH][FRAME_ROOM];
} flood;

static uint64_t clock_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Sends the contributions of one host to `count` chunks that begin with `first`. */
static void send_batch(unsigned host, uint32_t first, uint32_t count)
{
    struct mmsghdr messages[BATCH] = {0};
    struct iovec vectors[BATCH];

    for (uint32_t i = 0; i < count; i++) {
        uint8_t packet[FRAME_ROOM];
        size_t bytes = star_contribution(&flood.star, host, 0, first + i, flood.count, packet);

        vectors[i] = (struct iovec){flood.frames[i], star_frame(host, packet, bytes, flood.frames[i])};
        messages[i].msg_hdr.msg_iov = &vectors[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    sendmmsg(flood.sockets[host], messages, count, 0);
}

static void start_chunks(uint64_t now)
{
    uint32_t room = flood.window - (flood.next - flood.oldest);
    uint32_t count = room < BATCH ? room : BATCH;

    if (count < flood.window / 4 && count < BATCH)
        return;
    for (uint32_t i = 0; i < count; i++)
        flood.chunks[(flood.next + i) % flood.window] = (struct probe_flood_chunk){
            .seq = flood.next + i, .missing = (uint32_t)((1ull << flood.star.hosts) - 1), .sent_ns = now};
    for (unsigned host = 0; host < flood.star.hosts; host++)
        send_batch(host, flood.next, count);
    flood.next += count;
}

static int take_results(unsigned host)
{
    struct mmsghdr messages[BATCH] = {0};
    struct iovec vectors[BATCH];
    int count;

    for (uint32_t i = 0; i < BATCH; i++) {
        vectors[i] = (struct iovec){flood.inbox[i], FRAME_ROOM};
        messages[i].msg_hdr.msg_iov = &vectors[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    count = recvmmsg(flood.sockets[host], messages, BATCH, MSG_DONTWAIT, NULL);
    for (int i = 0; i < count; i++) {
        uint32_t seq = by_get32(flood.inbox[i] + AT_SEQ);
        struct probe_flood_chunk *chunk = &flood.chunks[seq % flood.window];

        if (flood.inbox[i][AT_TYPE] == BY_TYPE_RESULT && chunk->seq == seq)
            chunk->missing &= ~(1u << host);
    }
    return count > 0;
}

static void finish_chunks(uint64_t now)
{
    while (flood.oldest != flood.next && flood.chunks[flood.oldest % flood.window].missing == 0)
        flood.oldest++;
    if (flood.oldest == flood.next || now - flood.chunks[flood.oldest % flood.window].sent_ns < RESEND_NS)
        return;
    for (unsigned host = 0; host < flood.star.hosts; host++)
        send_batch(host, flood.oldest, 1);
    flood.chunks[flood.oldest % flood.window].sent_ns = now;
    flood.resent++;
}

int probe_flood(int hosts, unsigned seconds, uint32_t window, uint16_t count, uint32_t seq, char **interfaces)
{
    uint64_t begin, now, end;

    if (hosts < 1 || hosts > (int)STAR_HOSTS_MAX || window > WINDOW_MAX || count > BY_PAYLOAD_MAX / 4)
        return 2;
    flood.star = (struct star){.hosts = (uint16_t)hosts, .trees = 1};
    flood.window = window;
    flood.count = count;
    flood.next = flood.oldest = seq;
    for (int i = 0; i < hosts; i++) {
        int one = 1, ignore = 1, bytes = 64 << 20;

        flood.sockets[i] = probe_socket(interfaces[i]);
        setsockopt(flood.sockets[i], SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one);
        setsockopt(flood.sockets[i], SOL_PACKET, PACKET_IGNORE_OUTGOING, &ignore, sizeof ignore);
        setsockopt(flood.sockets[i], SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
        setsockopt(flood.sockets[i], SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
    }
    begin = now = clock_ns();
    end = begin + seconds * 1000000000ull;
    while (now < end) {
        int took = 0;

        start_chunks(now);
        for (int host = 0; host < hosts; host++)
            took |= take_results((unsigned)host);
        if (!took)
            sched_yield();
        now = clock_ns();
        finish_chunks(now);
    }
    printf("%" PRIu64 " chunks/s, %" PRIu64 " sent again, next %" PRIu32 "\n",
           (uint64_t)(flood.oldest - seq) * 1000000000u / (now - begin), flood.resent, flood.next);
    return flood.oldest == seq;
}
