/*
 * Where a call runs: over the trees of the table, or between the hosts themselves (host-driver/fallback). All
 * ranks decide alike, from the table, the call and the settings. One thread, that of the communicator.
 */
#ifndef BY_HOST_HOSTS_H
#define BY_HOST_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#include "host-driver/fallback/fallback.h"

struct banyan_comm;

/* What a communicator has when calls may run between hosts. */
struct by_hosts {
    struct by_fallback *fallback; /* or NULL */
    uint64_t small_bytes;         /* calls of at most so many bytes run there, though the table serves them */
};

/* Opens what this communicator needs: nothing when the table serves all. 0, or an error with its text. */
int by_hosts_open(struct banyan_comm *comm);
void by_hosts_close(struct banyan_comm *comm);
/* Whether the call runs between hosts. */
bool by_hosts_serve(const struct banyan_comm *comm, const struct by_call *call);
/* Prints which calls do, how, and why. */
void by_hosts_announce(const struct banyan_comm *comm);

#endif
