/*
 * Operations with buffers in GPU memory. Each operation is cut into slices. A slice is copied to
 * pinned memory, runs from there as an operation of its own, and is copied back, while other slices
 * are on the wire. All ranks must cut alike; therefore BANYAN_GPU=on with BANYAN_GPU_CHUNK cuts
 * every operation, wherever its buffers are, and otherwise an operation is one slice. These
 * operations, and operations posted after them, start in the order of their posts. Thread: the
 * communicator's.
 */
#ifndef BY_HOST_GPU_STAGED_H
#define BY_HOST_GPU_STAGED_H

#include <stdbool.h>
#include <stdint.h>

struct banyan_comm;
struct banyan_request;
struct by_staged; /* Staging state of a request. */

/* Staging state of a communicator. */
struct by_staging {
    bool on;        /* BANYAN_GPU is auto or on */
    uint64_t chunk; /* maximum bytes of a slice; 0: operations are one slice */
    const char *library;
    struct banyan_request *first, *last; /* running requests, in the order of their posts */
};

/* Reads the settings. 0, or an error with its text. */
int by_staging_open(struct banyan_comm *comm);
/* Whether a buffer of the request is in GPU memory. */
bool by_staging_is_gpu(const struct banyan_request *request);
/* Whether the request must be staged: its buffers are in GPU memory, it is cut, or staged requests
 * wait before it. */
bool by_staging_wanted(struct banyan_request *request);
/* Starts staging the request. 0, or an error with its text. */
int by_staging_post(struct banyan_request *request);
/* Advances all running requests as far as possible now. Sets the state and result of requests that
 * end. */
void by_staging_step(struct banyan_comm *comm);
/* Whether copies are running; no file descriptor signals their end. */
bool by_staging_busy(const struct banyan_comm *comm);
/* Ends all requests with `error`. */
void by_staging_abort(struct banyan_comm *comm, int error);
/* Frees the staging state of a request. */
void by_staged_free(struct by_staged *staged);

#endif
