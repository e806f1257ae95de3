/*
 * The agreement of all ranks of a communicator of NCCL to use libbanyan, or not to. Ranks exchange
 * facts in rounds through rank 0, over streams that meet.h connects; each decides by a pure
 * function of all facts. One thread at a time; blocks until the deadline at most.
 */
#ifndef BY_PLUGIN_NCCL_ADMIT_H
#define BY_PLUGIN_NCCL_ADMIT_H

#include <stdint.h>

#include <banyan/banyan.h>

#include "host-driver/plugin/nccl/core.h"
#include "host-driver/plugin/nccl/meet.h"

/* The facts about a rank; fixed bytes, no pointers. */
struct by_nccl_facts {
    uint32_t version;               /* BANYAN_VERSION */
    int32_t status;                 /* banyan_status_t; if not 0, `text` is the reason why this rank cannot */
    uint32_t rank;                  /* of the table; of NCCL without a table */
    uint32_t size;                  /* ranks of the table; 0: no table */
    uint32_t coll;                  /* enum by_nccl_coll_mode */
    uint32_t mode;                  /* banyan_mode_t */
    uint64_t rate, rate_latency_ns; /* of the tuner */
    uint32_t trees;                 /* 1: allreduce has trees */
    uint16_t reduces[BANYAN_MAX + 1]; /* per operator: bit banyan_dtype_t if its allreduce runs */
    char host[64];
    char text[BY_NCCL_TEXT_MAX];
};

/* What the ranks agree on: a communicator, or none and the reason. */
struct by_nccl_admission {
    struct banyan_context *context;
    struct banyan_comm *comm; /* NULL: not used */
    uint16_t reduces[BANYAN_MAX + 1];
    char text[2 * BY_NCCL_TEXT_MAX]; /* "used: ..." or "not used: ..." */
};

/* Connects to the other ranks, and agrees. Fills `admission`, whose objects the caller owns. */
void by_nccl_admit(void *handles[], uint32_t ranks, uint32_t rank, struct by_nccl_listener *listener,
                   struct by_nccl_admission *admission);

/* Decides from the facts of all ranks: 1 if they can use libbanyan together, else `text` says why
 * not. */
int by_nccl_agree(const struct by_nccl_facts *all, uint32_t ranks, char text[BY_NCCL_TEXT_MAX]);

#endif
