/*
 * The program of a ring: what the kernel runs for each frame that comes on an interface (tcx, since
 * Linux 6.6), before its stack sees it. It copies the frame into the ring (BPF ring buffer, since
 * Linux 5.8) and ends its way there. Here is what it shares with the ring's reader, in the other
 * process's time: the layout of a record and two words. Linux alone; called by ring.c.
 */
#ifndef BY_LINUX_PROGRAM_H
#define BY_LINUX_PROGRAM_H

#include <stdint.h>

#include "offload/linux/ring.h"

/* A record: the kernel's 8 bytes, the frame's length (0: it was too long), room, and the frame.
 * Records are whole cache lines, and what lies behind the 82 bytes of headers of a banyan packet
 * begins one. */
#define BY_RECORD_LINE   64u
#define BY_RECORD_KERNEL 8u
#define BY_RECORD_FRAME  46u

/* What program and reader share, in a page. */
struct by_ring_shared {
    uint32_t asleep __attribute__((aligned(64))); /* the reader sleeps: wake it with the next frame */
    uint64_t lost __attribute__((aligned(64)));   /* frames that found no room */
};

/* Bytes of the record of a frame of at most `frame_bytes`. */
static inline uint32_t by_record_bytes(uint32_t frame_bytes)
{
    return (BY_RECORD_FRAME + frame_bytes + BY_RECORD_LINE - 1) / BY_RECORD_LINE * BY_RECORD_LINE;
}

/* Loads the program for these maps; its descriptor, or -1 and errno. */
int by_ring_program(const struct by_ring_config *config, int ring_fd, int shared_fd);

#endif
