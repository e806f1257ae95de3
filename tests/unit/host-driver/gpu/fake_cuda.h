/*
 * A driver library that replaces CUDA's where there is no GPU. Its device memory faults when the
 * processor accesses it. Only its copies reach that memory, and they run late, when their
 * completion is queried. Loaded by path, so that tests find these functions with dlsym.
 * Single-threaded.
 */
#ifndef TESTS_UNIT_HOST_GPU_FAKE_CUDA_H
#define TESTS_UNIT_HOST_GPU_FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

struct fake_counts {
    uint64_t copies_in, copies_out, bytes, overlapped; /* overlapped: begun while others were running */
    int64_t pinned, streams, events, device;           /* numbers that exist */
    int contexts;                                      /* pushed at present */
};

typedef void *fake_take_fn(size_t bytes); /* device memory */
typedef void fake_give_fn(void *device);
typedef void fake_write_fn(void *device, const void *from, size_t bytes);
typedef void fake_read_fn(void *to, const void *device, size_t bytes);
typedef void fake_counts_fn(struct fake_counts *counts);
typedef void fake_fail_fn(int copies); /* fails the copy after so many; -1: none */

#endif
