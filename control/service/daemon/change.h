/*
 * A change of the tables: plan the affected jobs on the remaining fabric, admit and lower them,
 * make the images of all switches, push them in two phases. Only one change is under way at a time
 * (daemon->change). Until it is complete, the loop does not modify the jobs' tables, since the
 * worker reads them.
 *
 *   by_change_new, by_change_touch... -> by_change_plan -> planned() -> by_change_push ->
 *   pushed() -> by_change_adopt -> by_change_free
 *
 * Hosts freeze between planned and pushed, at once or when the push is recorded (recover.c). After
 * pushed with error 0 they may resume.
 */
#ifndef BY_SERVICE_DAEMON_CHANGE_H
#define BY_SERVICE_DAEMON_CHANGE_H

#include <stdatomic.h>

#include "control/service/controller/push.h"
#include "control/service/daemon/admit.h"
#include "control/service/daemon/fabric.h"
#include "control/service/daemon/work.h"

struct by_change;
typedef void by_change_fn(struct by_daemon *daemon, struct by_change *change);

/* A table image of a switch. */
struct by_change_image {
    uint8_t *bytes;
    size_t size;
    uint64_t hash;
};

struct by_change_job {
    struct by_job *job;
    bool anew;   /* is planned again; else its tables stay */
    bool repair; /* start from its present trees, so that few change */
    uint16_t gen;
    struct by_job_tables *tables; /* the new tables; by_change_adopt passes them to the job */
    bool stand;                   /* its tables stay, and get other standbys */
    uint16_t standby_gen;         /* of the first of them */
    uint32_t standby_most, standby_count;
    struct by_job_tables *standbys[BY_STANDBYS_MAX]; /* by_change_adopt passes them to the job's tables */
    uint32_t part_count, covered_count; /* parts that its trees could do without, and those of them that its
                                         * standbys avoid */
    int error;                          /* why it has none: then no image contains the job */
    struct by_problem problem;
};

struct by_change {
    struct by_task task;
    by_change_fn *planned, *pushed;
    void *context; /* for the caller */
    /* The request. */
    const struct by_topology *topology;
    struct by_lower_options lower;
    struct by_fabric_loss loss;
    struct by_admit_limits *limits; /* by node */
    uint32_t job_count;
    struct by_change_job *jobs; /* ascending; without the one that ends */
    uint16_t ended;             /* number of the job that ends, or 0 */
    bool bare;                  /* no job keeps its standbys, since another one needs their room */
    /* The result. */
    int error; /* of the whole change, with `problem` */
    struct by_problem problem;
    struct by_change_image *images; /* by node; for switches only */
    atomic_bool recorded;           /* so far that hosts may get the tables: by_state_reserve */
    bool begun;                     /* the store has the record of its push */
    bool late;                      /* that record becomes durable after the push */
    bool settled; /* false after an error: some switches may have the new tables already; push again */
    uint64_t push_id;
    double plan_seconds, push_seconds;
    uint64_t sent; /* bytes sent to switches */
    /* For the push only. */
    struct by_session_options access;
    uint32_t target_count;
    struct by_push_target *targets;
    uint32_t *target_nodes;
    int stop_fd;      /* an eventfd; 0: none */
    uint64_t *nonces; /* by node: boot nonce of each switch when the push began */
    struct by_state *state;
    struct by_event_queue *events; /* gets RECORDED */
    struct by_apart apart;         /* limits for each plan */
};

/* Returns the tables that a job has after the change, or NULL. */
static inline struct by_job_tables *by_change_tables(const struct by_change_job *entry)
{
    return entry->anew ? entry->tables : entry->job->tables;
}

/* Returns the standbys that a job has after the change, and their number. */
static inline struct by_job_tables *const *
by_change_standbys(const struct by_change *change, const struct by_change_job *entry, uint32_t *count)
{
    const struct by_job_tables *tables = entry->error == 0 ? by_change_tables(entry) : NULL;

    *count = tables == NULL || (change->bare && !entry->stand) ? 0
             : entry->stand                                    ? entry->standby_count
                                                               : tables->standby_count;
    return entry->stand ? entry->standbys : tables != NULL ? tables->standbys : NULL;
}

/* The end of a push, for the store. */
struct by_change_record {
    struct by_task task;
    struct by_state *state;
    bool late;          /* by_state_commit records it; else: */
    bool done, settled; /* see by_state_finish */
};

#endif
