/*
 * A change of the tables, from what shall be to what is: plan the jobs that are touched on what is
 * left of the fabric, admit and lower them, make the images of all switches, push them in two
 * phases. One change is on its way at a time (daemon->change): until it is done, the loop leaves
 * the jobs' tables alone, since the worker reads them.
 *
 *   by_change_new, by_change_touch... -> by_change_plan -> planned() -> by_change_push ->
 *   pushed() -> by_change_adopt -> by_change_free
 *
 * Between planned and pushed is where hosts are told to freeze (recover.c); pushed, with error 0,
 * is when they may go on.
 */
#ifndef BY_SERVICE_DAEMON_CHANGE_H
#define BY_SERVICE_DAEMON_CHANGE_H

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
    bool anew;   /* planned again; else its tables stay as they are */
    bool repair; /* from the trees that it has, so that few change */
    uint16_t gen;
    struct by_job_tables *tables; /* made: `by_change_adopt` gives them to the job */
    int error;                    /* why it got none: it is left out of all images */
    struct by_problem problem;
};

struct by_change {
    struct by_task task;
    by_change_fn *planned, *pushed;
    void *context; /* the caller's */
    /* What is asked. */
    const struct by_topology *topology;
    struct by_lower_options lower;
    struct by_fabric_loss loss;
    struct by_admit_limits *limits; /* by node */
    uint32_t job_count;
    struct by_change_job *jobs; /* ascending; the one that ends is not here */
    uint16_t ended;             /* its number, or 0 */
    /* What came of it. */
    int error; /* of the whole: with `problem` */
    struct by_problem problem;
    struct by_change_image *images; /* by node; of switches */
    bool settled; /* false after an error: some switches may have the new tables already, push again */
    uint64_t push_id;
    double plan_seconds, push_seconds;
    uint64_t sent; /* bytes to switches */
    /* The push's own. */
    struct by_session_options access;
    uint32_t target_count;
    struct by_push_target *targets;
    uint32_t *target_nodes;
    uint64_t *nonces; /* by node: boot nonce of each switch when the push began */
    struct by_state *state;
    struct by_apart apart; /* of each plan */
};

#endif
