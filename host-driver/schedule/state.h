/*
 * State of the schedules of a communicator. Neighbours: schedule.c opens them and takes calls,
 * run.c executes operations. One thread.
 */
#ifndef BY_HOST_SCHEDULE_STATE_H
#define BY_HOST_SCHEDULE_STATE_H

#include "host-driver/schedule/connection.h"
#include "host-driver/schedule/program.h"
#include "host-driver/schedule/schedule.h"

/* Operations that a rank has begun and not ended (count). */
#define BY_SCHEDULE_WINDOW_MIN 16u
#define BY_SCHEDULE_WINDOW_MAX 64u

/* In place of the number of steps that a step needs, after its end. */
#define BY_SCHEDULE_DONE UINT32_MAX
/* In place of a number of elements that has not been announced yet. */
#define BY_SCHEDULE_UNKNOWN UINT64_MAX

/* The calls that a program executes. */
enum by_schedule_kind {
    BY_SCHEDULE_ALLTOALL = 1,
    BY_SCHEDULE_SCATTER,
    BY_SCHEDULE_GATHER,
    BY_SCHEDULE_PAIRS,
    BY_SCHEDULE_REDUCE
};

struct by_scheduled_call {
    struct by_call call;
    uint32_t tag, program;
    uint32_t pieces, begun, ended;
    uint8_t *copy;       /* of the data to send, in place; or NULL */
    const uint8_t *send; /* the data to send */
    bool used;
    int result; /* BY_EAGAIN until it ends */
};

/* Data that this rank passes on or combines in one operation. */
struct by_schedule_memory {
    uint8_t *bytes;
    size_t room;
    uint64_t elements; /* BY_SCHEDULE_UNKNOWN until the first of it arrives */
};

struct by_schedule_operation {
    bool active;
    uint32_t number, piece;
    struct by_scheduled_call *call;
    uint64_t base;   /* the time of its round 0 */
    uint32_t left;   /* steps */
    uint32_t *needs; /* by step */
    struct by_schedule_memory *items;
};

/* A send whose data are there. */
struct by_schedule_ready {
    uint32_t slot, step;
    uint64_t time;
};

struct by_schedule_channel {
    struct by_schedule_connection connection;
    uint32_t program;
    const struct by_way_end *end;
    struct by_connection_credit credit; /* at the sender: the receiver's last */
    uint64_t sent, received;            /* messages */
    uint32_t ready_count;
    struct by_schedule_ready *ready;
    struct by_schedule_ready sending, receiving; /* while a message is under way */
    bool watches_room;                           /* for EPOLLOUT */
    bool is_watched;
};

struct by_schedule {
    const struct by_team *team;
    uint32_t rank, rank_count;
    uint32_t program_count;
    struct by_program *program[BY_SCHEDULE_FILES_MAX];
    enum by_schedule_kind kind[BY_SCHEDULE_FILES_MAX];
    uint32_t root[BY_SCHEDULE_FILES_MAX];
    uint32_t first[BY_SCHEDULE_FILES_MAX + 1]; /* channels of each program */
    struct by_schedule_channel *channels;
    uint32_t admitted[BY_SCHEDULE_FILES_MAX]; /* messages that this rank has granted, and not received */
    uint32_t admitted_max;                    /* where the links of a host share a port */
    int watch;
    struct by_scheduled_call calls[BY_CALLS_MAX];
    uint32_t posted, ended; /* numbers of calls; all before `ended` have ended */
    uint32_t window;
    struct by_schedule_operation operations[BY_SCHEDULE_WINDOW_MAX];
    uint32_t begun, oldest; /* numbers of operations */
    uint64_t time;          /* at which the next one begins, in rounds */
    uint32_t item_count;    /* room of an operation */
    uint8_t *scratch;       /* of combinations */
    char text[160];
    struct by_schedule_counters counters;
};

/* schedule.c: ends a call with a result. */
void by_schedule_end_call(struct by_scheduled_call *call, int result);
/* schedule.c: whether this rank has data for a rank to which the schedule has no message; then
 * `text` states it. */
bool by_schedule_lacks(struct by_schedule *schedule, const struct by_call *call, uint32_t program);

#endif
