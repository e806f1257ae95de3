/*
 * A driver library that stands for CUDA's where no GPU is: its device memory faults when the
 * processor touches it, only its copies reach it, and these run late, when somebody asks for their
 * end. Loaded by path, so that tests find these functions by dlsym. Single-threaded.
 */
#ifndef TESTS_UNIT_HOST_GPU_FAKE_CUDA_H
#define TESTS_UNIT_HOST_GPU_FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

struct fake_counts {
    uint64_t copies_in, copies_out, bytes, overlapped; /* overlapped: begun while others ran */
    int64_t pinned, streams, events, device;           /* that exist */
    int contexts;                                      /* pushed now */
};

typedef void *fake_take_fn(size_t bytes); /* device memory */
typedef void fake_give_fn(void *device);
typedef void fake_write_fn(void *device, const void *from, size_t bytes);
typedef void fake_read_fn(void *to, const void *device, size_t bytes);
typedef void fake_counts_fn(struct fake_counts *counts);
typedef void fake_fail_fn(int copies); /* the copy after so many fails; -1: none */

#endif
