/* The simulator's standard figure: the part of the lossless throughput that remains under loss.
 * Single-threaded. */
#ifndef TESTS_SIM_GOODPUT_H
#define TESTS_SIM_GOODPUT_H

#include <stdint.h>

struct goodput {
    uint64_t elapsed_ns;
    uint64_t chunks;
    uint64_t again; /* contributions retransmitted by all ranks */
    double gbps;    /* user data of one rank over virtual time */
    int ok;         /* every element is correct */
};

/*
 * Runs an allreduce of `bytes` over eight hosts in two levels (two leaves, one spine), with cables
 * of 10 Gbit/s and 1 us, and one tree with a window of `window` chunks of 1408 bytes. `loss` (parts
 * of 2^32) applies at the receive side of every switch.
 */
struct goodput goodput_run(uint64_t seed, uint32_t loss, uint64_t bytes, uint16_t window);
/* Returns the number of chunks that fill the round trip of that fabric. */
uint32_t goodput_bdp(void);

#endif
