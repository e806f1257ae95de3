/*
 * The part of CUDA's driver library that staging needs, loaded at run time: no link dependency and
 * no CUDA headers. Without a GPU, all functions report that there is none. Any thread; each opened
 * object belongs to one communicator.
 */
#ifndef BY_HOST_GPU_DRIVER_H
#define BY_HOST_GPU_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

/* A queue of copies that run one after another, concurrently with the processor. */
struct by_gpu_lane {
    void *context, *stream;
};

/* Loads the library: the one at `path` if it is not "", else one that the process has already
 * loaded (a process without it has no device memory). 0, also if there is none, or an error with
 * its text: `path` cannot be loaded. */
int by_gpu_find(const char *path);
/* Returns the context of the device memory at `pointer`; NULL if the processor can access the
 * memory. */
void *by_gpu_context_of(const void *pointer);

/* The following functions return 0 or BY_EIO with a text that names the function and CUDA's
 * error. */
int by_gpu_lane_open(struct by_gpu_lane *lane, void *context);
void by_gpu_lane_close(struct by_gpu_lane *lane);
/* Pinned memory, from and to which the device copies by itself. */
int by_gpu_pinned_take(void *context, size_t bytes, void **memory);
void by_gpu_pinned_give(void *context, void *memory);
int by_gpu_event_open(void *context, void **event);
void by_gpu_event_close(void *context, void *event);
/* Starts a copy; `to` or `from` is device memory. */
int by_gpu_copy_in(const struct by_gpu_lane *lane, void *to, const void *from, size_t bytes);
int by_gpu_copy_out(const struct by_gpu_lane *lane, void *to, const void *from, size_t bytes);
/* The event fires when all copies started on the lane are complete. */
int by_gpu_mark(const struct by_gpu_lane *lane, void *event);
/* 0 if the event has fired, else BY_EAGAIN or BY_EIO. */
int by_gpu_happened(void *context, void *event);

#endif
