/*
 * Operations whose buffers are a GPU's: cut into slices, each of which is copied to pinned memory,
 * runs from there as an operation of its own, and is copied back, while others are on the wire.
 * Slices of all ranks must be alike, so that BANYAN_GPU=on with BANYAN_GPU_CHUNK cuts every
 * operation, wherever its buffers are; else an operation is one slice. They, and what is posted
 * after them, go out in the order of their posts. One thread, that of the communicator.
 */
#ifndef BY_HOST_GPU_STAGED_H
#define BY_HOST_GPU_STAGED_H

#include <stdbool.h>
#include <stdint.h>

struct banyan_comm;
struct banyan_request;
struct by_staged; /* what a request has for this */

/* Of a communicator. */
struct by_staging {
    bool on;        /* BANYAN_GPU is auto or on */
    uint64_t chunk; /* bytes of a slice at most; 0: operations are one slice */
    const char *library;
    struct banyan_request *first, *last; /* those that run, in the order of their posts */
};

/* Reads the settings. 0, or an error with its text. */
int by_staging_open(struct banyan_comm *comm);
/* Whether the request must go this way: its buffers are a GPU's, it is cut, or others wait before
 * it. */
bool by_staging_wanted(struct banyan_request *request);
/* Takes the request in. 0, or an error with its text. */
int by_staging_post(struct banyan_request *request);
/* Does for all that run what can be done now. Requests end here: their state and result are set. */
void by_staging_step(struct banyan_comm *comm);
/* Whether copies run, which no file descriptor tells the end of. */
bool by_staging_busy(const struct banyan_comm *comm);
/* Ends all with `error`. */
void by_staging_abort(struct banyan_comm *comm, int error);
/* Frees what a request has. */
void by_staged_free(struct by_staged *staged);

#endif
