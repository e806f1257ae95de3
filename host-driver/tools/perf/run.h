/* Measures and checks one operation of one size. One thread. */
#ifndef BY_PERF_RUN_H
#define BY_PERF_RUN_H

#include "host-driver/tools/perf/world.h"

/* Port counters; a result holds their growth during the timed operations. */
#define PERF_PORTS_MAX 64u

struct perf_ports {
    uint32_t count;
    struct {
        char name[48];
        uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes;
    } port[PERF_PORTS_MAX];
};

struct perf_half {
    double time_us; /* per operation, of the slowest rank */
    double cpu_us;  /* processor time per operation, sum of this process's ranks */
    double algbw;   /* GB/s (10^9) */
    double busbw;
    uint64_t wrong;          /* elements, over all ranks */
    uint64_t digest;         /* of the bits of all ranks' results in the check */
    struct perf_ports ports; /* of the first local rank, during the timed operations */
};

struct perf_result {
    struct perf_call call;
    uint64_t bytes;      /* total data, as counted by nccl-tests */
    uint32_t operations; /* number of timed operations */
    bool unchecked;      /* `wrong` and `digest` are not valid */
    double optimum;      /* GB/s, 0 = unknown */
    struct perf_half out_of_place, in_place;
};

/* Runs `result->call` out of place and in place (sets in_place). On failure *failed is the rank and
 * the text is banyan_last_error(). */
banyan_status_t perf_run(struct perf_world *world, const struct perf_options *options, uint32_t salt,
                         struct perf_result *result, uint32_t *failed);
/* Reads the port counters of a communicator. */
void perf_ports_read(const struct banyan_comm *comm, struct perf_ports *ports);

#endif
