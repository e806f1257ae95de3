/*
 * The binary interface between NCCL and its tuner plugins, versions 2 to 5, in banyan's own words:
 * only the layout, the numbers and the exported names are NCCL's (see abi.h). Version 2 returns a
 * choice; version 3 and later change a table of predicted times, of which NCCL takes the least.
 */
#ifndef BY_PLUGIN_NCCL_TUNER_ABI_H
#define BY_PLUGIN_NCCL_TUNER_ABI_H

#include "host-driver/plugin/nccl/abi.h"

/* Collectives, algorithms and protocols, as NCCL numbers them. */
#define BY_NCCL_ALLREDUCE      4
#define BY_NCCL_COLLNET_DIRECT 2
#define BY_NCCL_COLLNET_CHAIN  3
#define BY_NCCL_SIMPLE         2
/* In the table of times: NCCL does not use this pair. Times are microseconds. */
#define BY_NCCL_IGNORED (-1.0f)

struct by_nccl_tuner_v2 {
    const char *name;
    int (*init)(size_t ranks, size_t nodes, by_nccl_logger logger, void **context);
    int (*choose)(void *context, int collective, size_t bytes, int has_collnet, int has_nvls, int operations,
                  int *algorithm, int *protocol, int *channels);
    int (*finish)(void *context);
};

struct by_nccl_tuner_v3 {
    const char *name;
    int (*init)(size_t ranks, size_t nodes, by_nccl_logger logger, void **context);
    /* `times` is an array [algorithms][protocols] of floats */
    int (*predict)(void *context, int collective, size_t bytes, int operations, float **times, int algorithms,
                   int protocols, int *channels);
    int (*finish)(void *context);
};

struct by_nccl_tuner_v4 {
    const char *name;
    int (*init)(size_t ranks, size_t nodes, by_nccl_logger logger, void **context);
    int (*predict)(void *context, int collective, size_t bytes, int operations, float **times, int algorithms,
                   int protocols, int is_registered, int *channels);
    int (*finish)(void *context);
};

struct by_nccl_tuner_v5 {
    const char *name;
    int (*init)(void **context, uint64_t comm_id, size_t ranks, size_t nodes, by_nccl_logger logger,
                void *domains, void *constants);
    int (*predict)(void *context, int collective, size_t bytes, int operations, float **times, int algorithms,
                   int protocols, int is_registered, int *channels);
    int (*finish)(void *context);
};

#endif
