/*
 * One trace of frames for every shell around the engine: the bytes that come out must not depend on
 * the shell. A trace is made from a seed: a switch that is the root of one tree, an inner node of
 * another, and has relays; chunks of all collectives, types, operators and modes to their
 * completion, mixed with frames that are lost and retransmitted, late, reordered, duplicated,
 * damaged, of another generation, foreign or not banyan's. Shells: plain.c (the engine alone),
 * dpdk.c (the shell of banyan-switchd on ring ports), sim.c (nodes and cables of the simulator),
 * metal.c (the bare-metal image in QEMU), and kernel.c, the programs that relay in place of a
 * switch. None has a clock.
 */
#ifndef BY_TESTS_TRACE_TRACE_H
#define BY_TESTS_TRACE_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "offload/base/prng.h"
#include "offload/wire/types.h"

#define TRACE_PORTS       4u
#define TRACE_TREES       2u
#define TRACE_WINDOW      8u
#define TRACE_PAYLOAD_MAX 1024u
#define TRACE_FRAME_MAX   1600u
/* Maximum number of frames that one frame causes (count). */
#define TRACE_OUT_MAX 64u

struct trace_frame {
    unsigned port;
    size_t bytes;
    uint8_t data[TRACE_FRAME_MAX];
};

/* Frames sent by a shell, in order. */
struct trace_out {
    unsigned count;
    struct trace_frame frame[TRACE_OUT_MAX];
};

struct trace_tree {
    uint32_t seq;
    uint64_t left;    /* children that have not contributed yet */
    int wants_result; /* the parent's result is next */
};

struct trace {
    struct by_prng prng;
    struct trace_tree tree[TRACE_TREES];
    uint64_t chunks[BY_COLLECTIVE_COUNT]; /* completed chunks */
    uint64_t modes[BY_MODE_COUNT];        /* the same, for data that are summed */
    uint64_t lost;                        /* contributions and results that were lost */
};

/* Returns the switch's table. The caller frees it. */
uint8_t *trace_image(size_t *bytes);
void trace_open(struct trace *trace, uint64_t seed);
/* Makes the next frame that arrives at the switch. */
void trace_next(struct trace *trace, struct trace_frame *frame);
/* Makes an ARP request that the switch answers on `port`. */
void trace_arp(unsigned port, struct trace_frame *frame);

/* Each shell: loads the table; takes one frame and returns the frames that it sent. `folder`
 * contains the sockets of the image's ports. trace_metal_step waits for `expected` and returns
 * whether exactly these frames came; `out` has the received ones. */
void trace_plain_open(const uint8_t *image, size_t bytes);
void trace_plain_step(const struct trace_frame *frame, struct trace_out *out);
void trace_dpdk_open(const uint8_t *image, size_t bytes);
void trace_dpdk_step(const struct trace_frame *frame, struct trace_out *out);
void trace_dpdk_close(void);
/* trace_sim_step returns false, without setting `out`, for frames without meaning there. */
void trace_sim_open(const uint8_t *image, size_t bytes);
int trace_sim_step(const struct trace_frame *frame, struct trace_out *out);
void trace_sim_close(void);
/* trace_kernel_open returns false if the kernel does not support it. trace_kernel_step returns
 * whether a frame was either relayed, with the result in `out`, or left unchanged. */
int trace_kernel_open(const uint8_t *image);
int trace_kernel_step(const struct trace_frame *frame, struct trace_out *out);
void trace_kernel_close(void);
void trace_metal_open(const char *folder);
int trace_metal_step(const struct trace_frame *frame, const struct trace_out *expected,
                     struct trace_out *out);
/* Returns whether no more frames come. */
int trace_metal_is_quiet(void);

#endif
