/*
 * Collectives of a job with several ranks on each host. The ranks of a host move slices of a call
 * through the memory that they share: each rank copies its input there, the first rank (the leader)
 * sums them and runs a call between the hosts, and each rank copies its result out. Up to
 * BY_MATES_SLOTS slices are in different stages at once. All ranks post the same calls in the same
 * order, which the leader checks. Thread: the communicator's. Neighbours: slices.c cuts calls,
 * mates.c holds the memory.
 */
#ifndef BY_HOST_LOCAL_LOCAL_H
#define BY_HOST_LOCAL_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-driver/local/mates.h"
#include "host-driver/local/seats.h"
#include "offload/endpoint/endpoint.h"

struct by_local;

/* What the leader needs of the network; unused elsewhere. */
struct by_local_net {
    void *context;
    /* Posts a call between the hosts. As by_endpoint_post. */
    int (*post)(void *context, const struct by_call *call, uint32_t *id);
    /* BY_EAGAIN, 0, or an error with its text, once. */
    int (*test)(void *context, uint32_t id, const struct by_call *call, char *text, size_t bytes);
    /* Reports to the other hosts that a rank of this one is lost (enum by_err_fate). */
    void (*tell)(void *context, uint32_t rank, uint8_t fate);
    /* Ends all its calls. */
    void (*abort)(void *context);
};

/* A leader has the list of the ranks that are late, and reports first: the other ranks of its host
 * wait longer than `stall_ns` by this, and the network of other hosts by half of it. */
#define BY_LOCAL_GRACE_NS 400000000u

struct by_local_config {
    struct by_local_net net;
    uint64_t stall_ns; /* a rank that gives no input for this long ends all calls */
    const char *host;  /* its name, for error texts; must outlive */
};

/* Takes over `seats` and `mates`, which are connected, also when it fails. 0, or an error with its
 * text. */
int by_local_open(struct by_local **local, struct by_seats *seats, struct by_mates *mates,
                  const struct by_local_config *config);
void by_local_close(struct by_local *local);
const struct by_seats *by_local_seats(const struct by_local *local);
/* Whether this rank leads its host. */
bool by_local_leads(const struct by_local *local);

/* Like by_endpoint_post and _test; by_local_text returns the text of the error that ended all
 * calls. A call that a mode makes depend on single inputs (sums of floats in mode EXACT) is refused
 * with BY_EUNSUPPORTED. */
int by_local_post(struct by_local *local, const struct by_call *call, uint32_t *id);
int by_local_test(struct by_local *local, uint32_t id);
const char *by_local_text(const struct by_local *local);
/* Whether such a call is refused. */
bool by_local_refuses(const struct by_call *call);
/* Ends all calls, on all ranks of the host. */
void by_local_abort(struct by_local *local, int error, const char *text);

/* Moves what it can; returns the slices moved, 0 if there is nothing to do now. */
uint32_t by_local_step(struct by_local *local, uint64_t now_ns);
/* Latest time of the next step; UINT64_MAX if no call runs. */
uint64_t by_local_deadline(const struct by_local *local);
/* Fills the descriptors that poll() may sleep on, at most BY_MATES_FDS; returns their number. */
uint32_t by_local_fds(struct by_local *local, struct pollfd *fds);

#endif
