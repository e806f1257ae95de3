/*
 * CUDA's driver library, as far as staging needs it, loaded at run time: nothing is linked, no
 * headers of it are needed, and without a GPU all of this says no. Any thread; what it opens
 * belongs to one communicator.
 */
#ifndef BY_HOST_GPU_DRIVER_H
#define BY_HOST_GPU_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

/* Copies of one direction, which run one after another, beside the processor. */
struct by_gpu_lane {
    void *context, *stream;
};

/* Finds the library: that of `path` when it is not "", else one that the process has loaded itself
 * (nobody else has device memory). 0, also when there is none, or an error with its text: `path`
 * cannot be loaded. */
int by_gpu_find(const char *path);
/* The context of the device memory at `pointer`; NULL: it is the processor's own, or reachable by
 * it. */
void *by_gpu_context_of(const void *pointer);

/* All of these: 0 or BY_EIO with a text that names the function and CUDA's error. */
int by_gpu_lane_open(struct by_gpu_lane *lane, void *context);
void by_gpu_lane_close(struct by_gpu_lane *lane);
/* Memory that the device copies from and to by itself. */
int by_gpu_pinned_take(void *context, size_t bytes, void **memory);
void by_gpu_pinned_give(void *context, void *memory);
int by_gpu_event_open(void *context, void **event);
void by_gpu_event_close(void *context, void *event);
/* Begins a copy; `to` or `from` is the device's. */
int by_gpu_copy_in(const struct by_gpu_lane *lane, void *to, const void *from, size_t bytes);
int by_gpu_copy_out(const struct by_gpu_lane *lane, void *to, const void *from, size_t bytes);
/* The event happens when what the lane has begun is done. */
int by_gpu_mark(const struct by_gpu_lane *lane, void *event);
/* 0 when it has happened, BY_EAGAIN, or BY_EIO. */
int by_gpu_happened(void *context, void *event);

#endif
