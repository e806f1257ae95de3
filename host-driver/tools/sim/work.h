/* The input of banyan-sim: DIR/work, with one word per line, and the tables in DIR. Read once,
 * constant afterwards. Single-threaded. */
#ifndef BY_SIM_WORK_H
#define BY_SIM_WORK_H

#include "host-driver/sim/world.h"

/* X(word, least, most, "help"): words with one number. */
#define SIM_WORD_LIST(X)                                                                                     \
    X(collective, 1, BY_COLLECTIVE_COUNT - 1, "number as on the wire (offload/wire/types.h)")                \
    X(root, 0, BY_RANKS_MAX, "root of broadcast and reduce, a rank")                                         \
    X(count, 0, UINT64_C(1) << 40, "f32 elements of a call, as in by_call")                                  \
    X(batch, 1, 4096, "frames that each packet represents")                                                  \
    X(inflight, 0, UINT32_MAX, "limit on chunks of a rank in flight, over all trees; 0: the trees' windows") \
    X(rto_ns, 0, 1000000000, "least time after which a chunk is sent again, ns; 0: the endpoint's own")      \
    X(warmup, 0, 1000, "calls of the same size before the timed one")                                        \
    X(seed, 0, UINT64_MAX, "seed of data, nonces and faults")                                                \
    X(loss, 0, UINT32_MAX, "packets lost at every switch, or without switches at hosts, in 2^-32")           \
    X(loss_run, 0, 4096, "mean number of packets lost one after another on a link; 0: each by itself")       \
    X(dup, 0, UINT32_MAX, "the same for duplicates")                                                         \
    X(reorder, 0, UINT32_MAX, "the same for reordered packets")                                              \
    X(hold_ns, 0, UINT64_C(1000000000), "longest time that a packet is held back to be reordered")           \
    X(traffic, 0, UINT32_MAX, "part of every link that other packets take, in 2^-32")                        \
    X(buffer, 0, UINT64_MAX, "limit on bytes that wait at a port; 0: no limit")                              \
    X(shared, 0, UINT64_MAX, "limit on bytes that wait at all ports of a switch; 0: no limit")               \
    X(mark, 0, UINT64_MAX, "bytes waiting at a port above which packets are marked; 0: never")               \
    X(limit_ns, 1, UINT64_C(1000000000000), "virtual time after which the run has failed")                   \
    X(sample_ns, 0, UINT64_C(1000000000), "interval of samples, written to DIR/series; 0: none")             \
    X(spoil, 0, 1, "1: flip a bit of an input after the result is known, so that the check must fail")

struct sim_work {
#define X(word, least, most, help) uint64_t word;
    SIM_WORD_LIST(X)
#undef X
    struct by_world_fabric fabric;
};

/* Reads DIR. 0, or a negative BY_E* with the error text set. */
int sim_work_read(const char *folder, struct sim_work *work);
/* Frees the arrays; the world owns the images. */
void sim_work_free(struct sim_work *work);

#endif
