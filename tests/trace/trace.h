/*
 * One trace of frames for every shell around the engine: which bytes come out must not depend on
 * who carries them. A trace is made from a seed: a switch that is the root of one tree and an inner
 * node of another, and relays; chunks of all collectives, types, operators and modes to their end,
 * and in between what is lost and sent again, late, out of order, doubled, damaged, of another
 * generation, foreign or none of ours. Shells: plain.c (the engine and nothing else), dpdk.c (the
 * shell of banyan-switchd on ring ports), sim.c (nodes and cables of the simulator), metal.c (the
 * bare-metal image in QEMU); and kernel.c, the programs that relay in place of a switch. None has a
 * clock.
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
/* Frames that one frame may cause (count). */
#define TRACE_OUT_MAX 64u

struct trace_frame {
    unsigned port;
    size_t bytes;
    uint8_t data[TRACE_FRAME_MAX];
};

/* What a shell sent, in its order. */
struct trace_out {
    unsigned count;
    struct trace_frame frame[TRACE_OUT_MAX];
};

struct trace_tree {
    uint32_t seq;
    uint64_t left;    /* children that have not contributed to it yet */
    int wants_result; /* the parent's turn */
};

struct trace {
    struct by_prng prng;
    struct trace_tree tree[TRACE_TREES];
    uint64_t chunks[BY_COLLECTIVE_COUNT]; /* that came to their end */
    uint64_t modes[BY_MODE_COUNT];        /* the same, with data that are summed */
    uint64_t lost;                        /* contributions and results that did not come */
};

/* The switch's table, in memory that the caller frees. */
uint8_t *trace_image(size_t *bytes);
void trace_open(struct trace *trace, uint64_t seed);
/* The next frame that comes to the switch. */
void trace_next(struct trace *trace, struct trace_frame *frame);
/* An ARP request that the switch answers on `port`. */
void trace_arp(unsigned port, struct trace_frame *frame);

/* Each shell: load the table; take one frame, and say what it sent. `folder` holds the sockets of
 * the image's ports. trace_metal_step waits for `expected`, and returns whether just that came;
 * `out` is what came. */
void trace_plain_open(const uint8_t *image, size_t bytes);
void trace_plain_step(const struct trace_frame *frame, struct trace_out *out);
void trace_dpdk_open(const uint8_t *image, size_t bytes);
void trace_dpdk_step(const struct trace_frame *frame, struct trace_out *out);
void trace_dpdk_close(void);
/* False when the frame is nothing in the simulated world: then `out` says nothing. */
void trace_sim_open(const uint8_t *image, size_t bytes);
int trace_sim_step(const struct trace_frame *frame, struct trace_out *out);
void trace_sim_close(void);
/* False: not here. Then whether a frame was either relayed, as `out` says, or left as it was. */
int trace_kernel_open(const uint8_t *image);
int trace_kernel_step(const struct trace_frame *frame, struct trace_out *out);
void trace_kernel_close(void);
void trace_metal_open(const char *folder);
int trace_metal_step(const struct trace_frame *frame, const struct trace_out *expected,
                     struct trace_out *out);
/* Whether nothing more comes. */
int trace_metal_is_quiet(void);

#endif
