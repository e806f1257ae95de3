/* `banyan compare --import`: the rate of a schedule from a file. Single-threaded. */
#ifndef BY_CLI_COMPARE_IMPORT_H
#define BY_CLI_COMPARE_IMPORT_H

#include "control/fabric/topology.h"
#include "control/study/export/check.h"

struct by_cli_imported {
    const char *path;
    unsigned collective;
    uint32_t depth;          /* messages one after the other */
    uint32_t path_hops;      /* links of the longest path of a message */
    struct by_fraction rate; /* total data size over time, in the topology's unit */
};

/*
 * Reads and executes the schedule at `path`, and finds the link that limits it on the fabric.
 * MSCCL names no links: each message takes the path with the fewest hops, of these the widest, of
 * these the least loaded. Returns -1, or the exit status after an error message.
 */
int by_cli_imported_read(const struct by_topology *topology, const char *file, const char *path,
                         struct by_cli_imported *imported);
/* The name of the file without its folder. */
const char *by_cli_imported_name(const struct by_cli_imported *imported);

#endif
