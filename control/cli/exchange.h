/*
 * `banyan plan` for collectives whose messages have one receiver each: all-to-all, scatter and
 * gather. Their plans are routes, not trees (control/study/steady). Single-threaded.
 */
#ifndef BY_CLI_EXCHANGE_H
#define BY_CLI_EXCHANGE_H

#include "control/fabric/topology.h"
#include "offload/wire/types.h"

/* Continues the collectives that have trees (enum by_collective). */
enum by_exchange {
    BY_EXCHANGE_ALL_TO_ALL = BY_COLLECTIVE_COUNT,
    BY_EXCHANGE_SCATTER,
    BY_EXCHANGE_GATHER,
    BY_EXCHANGE_END
};

struct by_exchange_request {
    enum by_exchange exchange;
    const char *file;            /* of the topology */
    int64_t root;                /* scatter, gather */
    const char *matrix, *shares; /* files, or NULL: all messages have one size */
    const char *output;          /* or NULL */
    bool json;
    double time_limit_s;
};

/* The name of a collective with trees or of one with routes; NULL for others. */
const char *by_plan_collective_name(unsigned collective);
/* Plans, verifies, prints and writes. Returns the exit status. */
int by_cli_exchange(const struct by_topology *topology, const struct by_exchange_request *request);

#endif
