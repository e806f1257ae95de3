/*
 * One rank's part of a test of CollNet: connects as NCCL does, and compares every element of many
 * operations: all types and operators, sizes, windows, as many at a time as the plugin admits.
 * Ranks are threads (test_coll.c) or processes on the hosts of a lab (rank.c).
 */
#ifndef BY_TESTS_NCCL_WORK_H
#define BY_TESTS_NCCL_WORK_H

#include "tests/nccl/coll.h"

struct nccl_work {
    struct nccl_driver *driver;
    int rank, ranks;
    /* collects `bytes` of every rank, in the order of ranks */
    void (*share)(void *context, const void *mine, void *all, size_t bytes);
    void *context;
    size_t largest;      /* bytes of the largest operation */
    unsigned operations; /* output: operations compared */
    char fault[256];     /* output: the first wrong result, or "" */
    void *coll;
};

/* Listens and connects; a result of abi.h. */
int nccl_work_open(struct nccl_work *work);

/* Runs the operations; 0, or -1 with `fault`. */
int nccl_work_run(struct nccl_work *work);
int nccl_work_close(struct nccl_work *work);

/* Tests a request until it ends; a result of abi.h, or -1 after a minute. */
int nccl_work_finish(struct nccl_work *work, void *request, int *bytes);

#endif
