/*
 * Plays a trace to all shells and compares the frames that they send, byte by byte and port by
 * port. Packets without a payload may share a datagram (PROTOCOL.md, "Carrier"), so datagrams are
 * first split, and such packets may overtake others.
 *
 *   trace [SEED [FRAMES]]      the engine alone, the DPDK shell and the simulator
 *   trace SEED FRAMES FOLDER   and the bare-metal image, whose ports are sockets in FOLDER
 *   trace image FILE           writes the table that the image must have
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload/base/bytes.h"
#include "offload/wire/datagram.h"
#include "offload/wire/frame.h"
#include "offload/wire/stripe.h"
#include "offload/wire/wire.h"
#include "tests/trace/trace.h"

#define FRAMES 20000u
/* The parts of a frame that a relay changes: MAC addresses, and the UDP checksum at the end of the
 * headers. */
#define MACS_END           (2 * BY_MAC_BYTES)
#define UDP_END            BY_FRAME_HEADER_BYTES
#define UDP_CHECKSUM_BYTES 2u

struct play {
    uint64_t seed;
    uint32_t frames;
    const char *folder; /* NULL: no bare-metal image */
    int kernel;         /* the kernel's programs can run */
    uint64_t relayed;   /* frames relayed by these programs */
    uint64_t sent;      /* frames sent by each shell */
    uint64_t type[BY_TYPE_COUNT];
};

static void print_out(const char *who, const struct trace_out *out)
{
    for (unsigned i = 0; i < out->count; i++) {
        fprintf(stderr, "%s: port %u, %zu bytes:", who, out->frame[i].port, out->frame[i].bytes);
        for (size_t k = 0; k < out->frame[i].bytes && k < 130; k++)
            fprintf(stderr, " %02x", out->frame[i].data[k]);
        fputc('\n', stderr);
    }
}

/* Returns whether the frame's packets may share a datagram. */
static int is_joining(const struct trace_frame *frame)
{
    return frame->bytes >= BY_FRAME_HEADER_BYTES + BY_WIRE_HEADER_BYTES &&
           by_datagram_joins(frame->data + BY_FRAME_HEADER_BYTES);
}

/* Puts each packet into its own frame, from the source port that it would have there: a datagram
 * has that of its first packet. */
static void take_apart(const struct trace_out *from, struct trace_out *to)
{
    to->count = 0;
    for (unsigned i = 0; i < from->count; i++) {
        struct by_frame frame;
        uint16_t at = 0;

        if (!is_joining(&from->frame[i]) ||
            by_frame_parse(from->frame[i].data, from->frame[i].bytes, &frame) != 0)
            frame.bytes = 0;
        do {
            struct trace_frame *one = &to->frame[to->count++];
            uint16_t bytes = by_datagram_first(frame.data + at, (uint16_t)(frame.bytes - at));

            if (to->count > TRACE_OUT_MAX)
                abort();
            *one = from->frame[i];
            if (bytes < frame.bytes) {
                struct by_frame part = frame;

                part.bytes = bytes;
                if (at > 0)
                    part.src_port =
                        by_source_port(by_get32(frame.data + at + BY_HEADER_AT_JOB),
                                       by_get32(frame.data + at + BY_HEADER_AT_SEQ), frame.dst_port);
                one->bytes = BY_FRAME_HEADER_BYTES + (size_t)bytes;
                by_frame_build(&part, one->data);
                memcpy(one->data + BY_FRAME_HEADER_BYTES, frame.data + at, bytes);
            }
            at = (uint16_t)(at + bytes);
        } while (at < frame.bytes);
    }
}

/* Returns the next frame of that port and kind from `i` on. */
static unsigned find(const struct trace_out *out, unsigned i, unsigned port, int joining)
{
    while (i < out->count && (out->frame[i].port != port || is_joining(&out->frame[i]) != joining))
        i++;
    return i;
}

/* Returns whether each port has the same packets, in the same order among those that may share
 * datagrams and among the others. */
static int is_same(const struct trace_out *whole_a, const struct trace_out *whole_b)
{
    static struct trace_out a, b;

    take_apart(whole_a, &a);
    take_apart(whole_b, &b);
    for (unsigned kind = 0; kind < 2 * TRACE_PORTS; kind++) {
        unsigned port = kind / 2, i = find(&a, 0, port, kind % 2), k = find(&b, 0, port, kind % 2);

        while (i < a.count && k < b.count && a.frame[i].bytes == b.frame[k].bytes &&
               memcmp(a.frame[i].data, b.frame[k].data, a.frame[i].bytes) == 0) {
            i = find(&a, i + 1, port, kind % 2);
            k = find(&b, k + 1, port, kind % 2);
        }
        if (i < a.count || k < b.count)
            return 0;
    }
    return 1;
}

static int differ(const struct play *play, uint32_t step, const char *who, const struct trace_frame *in,
                  const struct trace_out *expected, const struct trace_out *got)
{
    struct trace_out frame = {.count = 1, .frame = {*in}};

    fprintf(stderr, "trace %" PRIu64 " %u: frame %u: %s does not send what the engine alone does\n",
            play->seed, play->frames, step, who);
    print_out("in", &frame);
    print_out("engine", expected);
    print_out(who, got);
    return 1;
}

/* Returns whether the first packet is valid; a datagram with a damaged first packet is routed by a
 * later one. */
static int is_first_sound(const struct trace_frame *in)
{
    struct by_frame frame;
    struct by_header header;
    const uint8_t *payload;

    return by_frame_parse(in->data, in->bytes, &frame) == 0 &&
           by_header_decode(frame.data, by_datagram_first(frame.data, frame.bytes), &header, &payload) >= 0;
}

/* Returns whether the kernel relays exactly the frames that the engine relays, except damaged
 * datagrams. Frames that it leaves alone go to the engine. */
static int is_relayed_alike(struct play *play, const struct trace_frame *in, const struct trace_out *expected,
                            struct trace_out *got)
{
    const uint8_t *sent = expected->frame[0].data, *came = in->data;
    int relays = expected->count == 1 && expected->frame[0].bytes == in->bytes && in->bytes > UDP_END &&
                 memcmp(sent + MACS_END, came + MACS_END, UDP_END - UDP_CHECKSUM_BYTES - MACS_END) == 0 &&
                 memcmp(sent + UDP_END, came + UDP_END, in->bytes - UDP_END) == 0;

    relays = relays && is_first_sound(in);
    if (!trace_kernel_step(in, got))
        return 0;
    play->relayed += got->count;
    return got->count == (unsigned)relays && (!relays || is_same(expected, got));
}

static void count_types(struct play *play, const struct trace_out *out)
{
    struct by_frame frame;
    struct by_header header;
    const uint8_t *payload;

    play->sent += out->count;
    for (unsigned i = 0; i < out->count; i++)
        if (by_frame_parse(out->frame[i].data, out->frame[i].bytes, &frame) == 0 &&
            by_header_decode(frame.data, frame.bytes, &header, &payload) >= 0)
            play->type[header.type]++;
}

/* Returns 0 if the trace has covered everything that it is for. */
static int is_telling(const struct play *play, const struct trace *trace)
{
    int missing = trace->lost == 0;

    printf("trace %" PRIu64 ": chunks:", play->seed);
    for (unsigned i = 1; i < BY_COLLECTIVE_COUNT; i++) {
        printf(" %" PRIu64 " %s,", trace->chunks[i], by_collective_name(i));
        missing |= trace->chunks[i] == 0;
    }
    for (unsigned mode = 1; mode < BY_MODE_COUNT; mode++) {
        printf(" %" PRIu64 " %s,", trace->modes[mode], by_mode_name(mode));
        missing |= trace->modes[mode] == 0;
    }
    printf(" %" PRIu64 " packets lost\n", trace->lost);
    for (unsigned type = 1; type < BY_TYPE_COUNT; type++)
        missing |= play->type[type] == 0;
    missing |= play->kernel && play->relayed == 0;
    if (missing && play->frames >= 5000)
        fprintf(stderr, "trace %" PRIu64 " %u: something never happened in it\n", play->seed, play->frames);
    return missing && play->frames >= 5000;
}

static int play_all(struct play *play)
{
    static struct trace_out expected, got;
    struct trace trace;
    struct trace_frame frame;
    size_t bytes;
    uint8_t *image = trace_image(&bytes);

    trace_plain_open(image, bytes);
    trace_dpdk_open(image, bytes);
    trace_sim_open(image, bytes);
    play->kernel = trace_kernel_open(image);
    if (play->folder)
        trace_metal_open(play->folder);
    trace_open(&trace, play->seed);
    for (uint32_t step = 0; step < play->frames; step++) {
        trace_next(&trace, &frame);
        trace_plain_step(&frame, &expected);
        count_types(play, &expected);
        trace_dpdk_step(&frame, &got);
        if (!is_same(&expected, &got))
            return differ(play, step, "the DPDK shell", &frame, &expected, &got);
        if (trace_sim_step(&frame, &got) && !is_same(&expected, &got))
            return differ(play, step, "the simulator", &frame, &expected, &got);
        if (play->kernel && !is_relayed_alike(play, &frame, &expected, &got))
            return differ(play, step, "the kernel", &frame, &expected, &got);
        if (play->folder && !trace_metal_step(&frame, &expected, &got))
            return differ(play, step, "the image", &frame, &expected, &got);
    }
    if (play->folder && !trace_metal_is_quiet()) {
        fprintf(stderr, "trace %" PRIu64 " %u: the image sends more than the engine alone\n", play->seed,
                play->frames);
        return 1;
    }
    trace_dpdk_close();
    trace_sim_close();
    if (play->kernel)
        trace_kernel_close();
    free(image);
    return is_telling(play, &trace);
}

static int write_image(const char *path)
{
    size_t bytes;
    uint8_t *image = trace_image(&bytes);
    FILE *file = fopen(path, "wb");
    int status = file && fwrite(image, 1, bytes, file) == bytes ? 0 : 1;

    if (file)
        fclose(file);
    free(image);
    return status;
}

int main(int argc, char **argv)
{
    struct play play = {.seed = 1, .frames = FRAMES};
    int status;

    if (argc == 3 && strcmp(argv[1], "image") == 0)
        return write_image(argv[2]);
    if (argc > 1)
        play.seed = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        play.frames = (uint32_t)strtoul(argv[2], NULL, 10);
    if (argc > 3)
        play.folder = argv[3];
    status = play_all(&play);
    printf("trace %" PRIu64 ": %u frames in, %" PRIu64 " out:", play.seed, play.frames, play.sent);
    for (unsigned type = 1; type < BY_TYPE_COUNT; type++)
        printf(" %" PRIu64 " %s%s", play.type[type], by_type_name(type), type + 1 < BY_TYPE_COUNT ? "," : "");
    printf("; %s from the engine alone, the DPDK shell, the simulator%s%s\n",
           status ? "NOT the same bytes" : "the same bytes", play.folder ? " and the image" : "",
           play.kernel ? "; relays from the kernel, too" : "");
    return status;
}
