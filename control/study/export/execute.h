/*
 * A schedule being executed: what execute.c, happens.c and stuck.c share. Private to export/. One
 * thread for each machine.
 */
#ifndef BY_STUDY_EXPORT_EXECUTE_H
#define BY_STUDY_EXPORT_EXECUTE_H

#include "control/study/export/msccl.h"
#include "control/study/export/value.h"

#define BY_STEP_NONE UINT32_MAX

/* From a sender to a receiver on one channel. */
struct by_connection {
    uint32_t from, to; /* GPUs */
    int32_t channel;
    uint32_t sender, receiver; /* blocks, or BY_STEP_NONE */
    uint32_t head, count;      /* messages under way: a ring of `slots` */
};

struct by_export_message {
    uint32_t step; /* that sent it */
    uint32_t count;
    uint32_t *values; /* BY_MSCCL_COUNT_MAX of room */
};

/* A read of a place since it was last written. */
struct by_reading {
    uint32_t step;
    uint32_t next; /* number + 1, 0 ends the list */
};

struct by_export_machine {
    const struct by_msccl *msccl;
    bool in_place;
    uint32_t slots;
    struct by_problem *problem;
    struct by_values *values;
    uint32_t shard; /* chunks of a shard: allgather, reduce-scatter */
    /* Memory of all GPUs. */
    uint32_t *base[BY_MSCCL_BUFFERS]; /* by GPU: where the buffer begins */
    uint32_t place_count;
    uint32_t *value;   /* by place */
    uint32_t *writer;  /* by place: the step that wrote it, or BY_STEP_NONE */
    uint32_t *readers; /* by place: list of readings, number + 1 */
    uint32_t reading_count, reading_room;
    struct by_reading *readings;
    /* Progress. */
    uint32_t connection_count;
    struct by_connection *connections;
    struct by_export_message *messages; /* [connection * slots + i] */
    uint32_t *out, *in;                 /* by block: its connections, or BY_STEP_NONE */
    uint32_t *done;                     /* by block: steps executed */
    bool *queued;                       /* by block */
    uint32_t *queue;                    /* of blocks that may go on: a ring of block_count */
    uint32_t queue_head, queue_count;
    /* What happened before what. */
    uint32_t clock;
    uint32_t *when;     /* by step: its place in the order of execution */
    uint32_t *from;     /* by step that received: the step that sent, or BY_STEP_NONE */
    uint32_t *block_of; /* by step */
    int32_t **known;    /* by block: for each block of its GPU, steps known to be done */
    uint32_t *stamp;    /* by step, of searches */
    uint32_t search;
    uint64_t looked; /* steps that searches have visited */
    uint32_t *stack;
};

/* Whether step `first` is certain to be done before `second` begins, in every order of execution.
 * -1 when the search was given up. */
int by_happens_before(struct by_export_machine *machine, uint32_t first, uint32_t second);
/* Records that `step` reads or writes a place; BY_EINVAL when another order of execution could do
 * otherwise.
 */
int by_happens_access(struct by_export_machine *machine, uint32_t place, uint32_t step, bool write);
/* Says why nothing goes on; returns BY_EINVAL. */
int by_stuck_explain(struct by_export_machine *machine);

#endif
