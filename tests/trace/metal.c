/*
 * The bare-metal image: each port is a pair of datagram sockets, FOLDER/sN (QEMU's) and FOLDER/hN
 * (this program's), and a frame is a datagram. The image may process its ports in any order, so
 * each frame is completed before the next one: by the expected frames or, if there are none, by the
 * answer to an ARP request sent after it.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/trace/trace.h"

#define WAIT_MS  5000
#define QUIET_MS 300

static int sockets[TRACE_PORTS];

static struct sockaddr_un address(const char *folder, char side, unsigned port)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    snprintf(at.sun_path, sizeof at.sun_path, "%s/%c%u", folder, side, port);
    return at;
}

void trace_metal_open(const char *folder)
{
    for (unsigned i = 0; i < TRACE_PORTS; i++) {
        struct sockaddr_un own = address(folder, 'h', i), other = address(folder, 's', i);

        sockets[i] = socket(AF_UNIX, SOCK_DGRAM, 0);
        unlink(own.sun_path);
        if (bind(sockets[i], (struct sockaddr *)&own, sizeof own) != 0 ||
            connect(sockets[i], (struct sockaddr *)&other, sizeof other) != 0) {
            fprintf(stderr, "trace: port %u in %s: %s\n", i, folder, strerror(errno));
            exit(1);
        }
    }
}

static void put(const struct trace_frame *frame)
{
    if (send(sockets[frame->port], frame->data, frame->bytes, 0) != (ssize_t)frame->bytes) {
        fprintf(stderr, "trace: send: %s\n", strerror(errno));
        exit(1);
    }
}

/* Receives the next frame from `port`. Returns false if none comes. */
static int get(unsigned port, struct trace_frame *frame, int wait_ms)
{
    struct pollfd entry = {.fd = sockets[port], .events = POLLIN};
    ssize_t bytes;

    if (poll(&entry, 1, wait_ms) != 1)
        return 0;
    bytes = recv(sockets[port], frame->data, sizeof frame->data, 0);
    frame->port = port;
    frame->bytes = bytes > 0 ? (size_t)bytes : 0;
    return 1;
}

static int is_same(const struct trace_frame *a, const struct trace_frame *b)
{
    return a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

int trace_metal_step(const struct trace_frame *frame, const struct trace_out *expected, struct trace_out *out)
{
    struct trace_frame arp;
    struct trace_out reply;

    out->count = 0;
    put(frame);
    if (expected->count == 0) {
        trace_arp(frame->port, &arp);
        trace_plain_step(&arp, &reply);
        put(&arp);
        return get(frame->port, &out->frame[out->count++], WAIT_MS) &&
               is_same(&out->frame[0], &reply.frame[0]);
    }
    for (unsigned i = 0; i < expected->count; i++) {
        if (!get(expected->frame[i].port, &out->frame[out->count], WAIT_MS))
            return 0;
        if (!is_same(&out->frame[out->count++], &expected->frame[i]))
            return 0;
    }
    return 1;
}

int trace_metal_is_quiet(void)
{
    struct trace_frame frame;

    for (unsigned i = 0; i < TRACE_PORTS; i++)
        if (get(i, &frame, QUIET_MS))
            return 0;
    return 1;
}
