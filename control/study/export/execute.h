/*
 * The state of a schedule's symbolic execution, shared by execute.c, happens.c and stuck.c. Private
 * to export/. One thread for each machine.
 */
#ifndef BY_STUDY_EXPORT_EXECUTE_H
#define BY_STUDY_EXPORT_EXECUTE_H

#include "control/study/export/msccl.h"
#include "control/study/export/value.h"

#define BY_STEP_NONE UINT32_MAX

/* A connection from a sender to a receiver on one channel. */
struct by_connection {
    uint32_t from, to; /* GPUs */
    int32_t channel;
    uint32_t sender, receiver; /* thread blocks, or BY_STEP_NONE */
    uint32_t head, count;      /* messages in flight: a ring of `slots` */
};

struct by_export_message {
    uint32_t step; /* step that sent it */
    uint32_t count;
    uint32_t *values; /* room for BY_MSCCL_COUNT_MAX */
};

/* A read of a place after its last write. */
struct by_reading {
    uint32_t step;
    uint32_t next; /* number of the next reading + 1; 0 ends the list */
};

struct by_export_machine {
    const struct by_msccl *msccl;
    bool in_place;
    uint32_t slots;
    struct by_problem *problem;
    struct by_values *values;
    uint32_t shard; /* allgather, reduce-scatter: chunks of a shard */
    /* Memory of all GPUs. A place is one chunk of a buffer. */
    uint32_t *base[BY_MSCCL_BUFFERS]; /* by GPU: first place of the buffer */
    uint32_t place_count;
    uint32_t *value;   /* by place */
    uint32_t *writer;  /* by place: the step that wrote it last, or BY_STEP_NONE */
    uint32_t *readers; /* by place: list of readings (number + 1) */
    uint32_t reading_count, reading_room;
    struct by_reading *readings;
    /* Progress of the execution. */
    uint32_t connection_count;
    struct by_connection *connections;
    struct by_export_message *messages; /* [connection * slots + i] */
    uint32_t *out, *in;                 /* by thread block: its connections, or BY_STEP_NONE */
    uint32_t *done;                     /* by thread block: number of steps executed */
    bool *queued;                       /* by thread block */
    uint32_t *queue;                    /* thread blocks that may be ready: a ring of block_count */
    uint32_t queue_head, queue_count;
    /* The happens-before order. */
    uint32_t clock;
    uint32_t *when;     /* by step: its position in the order of execution */
    uint32_t *depth;    /* by step: messages before its end, of which each waits for the one before */
    uint32_t *from;     /* by receiving step: the step that sent, or BY_STEP_NONE */
    uint32_t *block_of; /* by step */
    int32_t **known;    /* by thread block, for each block of its GPU: number of steps known to be complete */
    uint32_t *stamp;    /* by step: last search that visited it */
    uint32_t search;
    uint64_t looked; /* steps visited by all searches */
    uint32_t *stack;
};

/*
 * Returns whether step `first` is certain to complete before `second` begins, in every order of
 * execution; -1 if the search exceeded its limit.
 */
int by_happens_before(struct by_export_machine *machine, uint32_t first, uint32_t second);
/*
 * Records that `step` reads or writes a place. Returns 0, or BY_EINVAL if another order of
 * execution could give a different result.
 */
int by_happens_access(struct by_export_machine *machine, uint32_t place, uint32_t step, bool write);
/* Returns the step that the GPU must complete before this one may begin, or BY_STEP_NONE. */
uint32_t by_happens_awaited(const struct by_export_machine *machine, uint32_t step);
/* Fills `problem` with the reason why no step can be executed; returns BY_EINVAL. */
int by_stuck_explain(struct by_export_machine *machine);

#endif
