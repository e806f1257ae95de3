/*
 * A periodic schedule of a series of operations (scatters, gossips, reduces), and its file format
 * (banyan-series(5)). A schedule defines what every link and processor does in one period; the
 * period then repeats.
 *
 * Neighbours: control/study/steady computes schedules, control/verify checks them, run.h executes
 * them, control/view/plot draws them. This module does not depend on how a schedule is found.
 *
 * Source: "Optimizing the steady-state throughput of scatter and reduce operations on heterogeneous
 * platforms" (Legrand, Marchal, Robert), called LMR in the comments. A schedule is immutable once
 * made; any thread may read it.
 */
#ifndef BY_STUDY_SERIES_SERIES_H
#define BY_STUDY_SERIES_SERIES_H

#include <stdio.h>

#include <gmp.h>

#include "control/fabric/topology.h"

#define BY_SERIES_NONE UINT32_MAX
/* Most values of a reduction (count). A set of values is one 64-bit word. */
#define BY_SERIES_VALUES_MAX 64u

/* Scatter: a message from one sender to each receiver; gossip: from each sender to each receiver;
 * exchange: the messages of any pairs, as listed; reduce: a value of each holder, combined. */
enum by_series_operation {
    BY_SERIES_SCATTER = 1,
    BY_SERIES_GOSSIP,
    BY_SERIES_REDUCE,
    BY_SERIES_EXCHANGE,
    BY_SERIES_OPERATIONS
};

/*
 * How links share the ports of the nodes at their ends:
 * - one port: a node sends one message and receives one message at a time (LMR section 2);
 * - host ports: this limit holds for compute nodes; switches serve all their links at once;
 * - many ports: every link has its own rate, and there is no other limit.
 */
enum by_series_ports { BY_SERIES_ONE_PORT = 1, BY_SERIES_HOST_PORTS, BY_SERIES_MANY_PORTS };

/*
 * A kind of message. Every operation of the series has one message of each kind that its lane
 * carries.
 */
struct by_series_message {
    uint32_t from, to; /* scatter, gossip, exchange: nodes */
    uint64_t values;   /* reduce: set of the values in this partial result; bit i is value i */
    mpq_t size;
};

/*
 * A step of a lane: either a transfer or a combination. A transfer moves `message` from `node` to
 * `to`. A combination (`to` is BY_SERIES_NONE) computes `message` from `left` and `right` at
 * `node`.
 */
struct by_series_task {
    uint32_t message;
    uint32_t node, to;
    uint32_t left, right; /* messages, for combinations only */
};

/*
 * A way to carry an operation or one of its messages. For scatter and gossip it is a route, and all
 * its tasks move one message. For reduce it is a reduction tree (LMR definition 1). A task comes
 * after the tasks whose results it needs.
 */
struct by_series_lane {
    mpz_t amount; /* operations or messages in a period */
    uint32_t task_count;
    struct by_series_task *tasks;
};

/* A transfer of one lane within a slot. */
struct by_series_part {
    uint32_t lane, task;
    mpq_t time;
};

/* A link that is busy in a slot. Its parts follow one another from the start of the slot. */
struct by_series_busy {
    uint32_t from, to;
    uint32_t part_count;
    struct by_series_part *parts;
};

/*
 * A matching: links that are busy at the same time without sharing a port. The slots of a schedule
 * follow one another.
 */
struct by_series_slot {
    mpq_t duration;
    uint32_t busy_count;
    struct by_series_busy *busy;
};

/*
 * The price of a unit of time of a port or processor. No operation costs less than (sum of all
 * prices) / throughput, so no schedule is faster. The prices are the dual solution of LMR's linear
 * programs.
 */
enum by_series_resource {
    BY_SERIES_SENDS = 1, /* a node's sending port */
    BY_SERIES_RECEIVES,  /* its receiving port */
    BY_SERIES_COMPUTES,  /* its processor */
    BY_SERIES_LINK       /* a link whose ends share no ports */
};

struct by_series_price {
    enum by_series_resource resource;
    uint32_t node, to; /* `to` for links only */
    mpq_t price;
};

struct by_series {
    enum by_series_operation operation;
    enum by_series_ports ports;
    bool commutative; /* reduce: values may be combined in any order */
    uint32_t target;  /* reduce: node of the results */
    /* reduce: length of `holders`, the node of each value in the operator's order; else 0 */
    uint32_t holder_count;
    uint32_t *holders;
    uint32_t message_count;
    struct by_series_message *messages;
    mpq_t throughput; /* operations per unit of time */
    mpq_t optimum;    /* upper bound of any schedule's throughput, proved by the prices */
    mpz_t period;     /* units of time */
    uint32_t lane_count;
    struct by_series_lane *lanes;
    uint32_t slot_count;
    struct by_series_slot *slots;
    uint32_t price_count;
    struct by_series_price *prices;
};

struct by_series *by_series_new(void);
void by_series_free(struct by_series *series);
void by_series_slots_free(struct by_series *series);
const char *by_series_operation_name(enum by_series_operation operation);
const char *by_series_ports_name(enum by_series_ports ports);
/* Returns the enum value of a name, or 0 if there is none. */
enum by_series_operation by_series_operation_find(const char *text, size_t bytes);
enum by_series_ports by_series_ports_find(const char *text, size_t bytes);
/* Whether the end of a link at `node` shares a port with the node's other links. */
bool by_series_shares(const struct by_topology *topology, enum by_series_ports ports, uint32_t node);
/*
 * Writes a message's readable name ("b", "a>b", "v[1,2]", "v{0,2}") into `text` and returns `text`.
 */
#define BY_SERIES_NAME_BYTES 256
char *by_series_message_name(const struct by_series *series, const struct by_topology *topology,
                             uint32_t message, char text[BY_SERIES_NAME_BYTES]);

/*
 * Computes the stages of a lane. A task uses what was produced in the previous period; so in period
 * p, task i works on the operations that began stage[i] periods earlier. Fills `stage` (by task,
 * from 0) and returns the lane's number of stages.
 */
uint32_t by_series_stages(const struct by_series_lane *lane, uint32_t *stage);
/*
 * Returns the task before `task` that brings `message` to `node`, or BY_SERIES_NONE if the message
 * must be there from the start.
 */
uint32_t by_series_producer(const struct by_series_lane *lane, uint32_t task, uint32_t message,
                            uint32_t node);
/*
 * Returns the largest number of stages of any lane: the number of periods from the start of an
 * operation to its completion.
 */
uint32_t by_series_depth(const struct by_series *series);

/* Writes {"num": 1, "den": 2}. Parts beyond 2^53 are written as strings. */
void by_series_write_rational(FILE *file, const mpq_t value);
/* Write the arrays of a file (lanes with weights, slots, prices). --json uses them too. */
void by_series_write_lanes(const struct by_series *series, const struct by_topology *topology, FILE *file);
void by_series_write_slots(const struct by_series *series, const struct by_topology *topology, FILE *file);
/* Writes the schedule's file (banyan-series(5)). Returns 0 or BY_EIO. */
int by_series_write(const struct by_series *series, const struct by_topology *topology, FILE *file);
/*
 * Reads a schedule's file. Names, numbers and shapes are checked; control/verify checks whether the
 * schedule is correct. Returns 0, or a negative BY_E* with `problem` filled.
 */
int by_series_parse(const char *text, size_t bytes, const struct by_topology *topology,
                    struct by_series **series, struct by_problem *problem);
int by_series_read(const char *path, const struct by_topology *topology, struct by_series **series,
                   struct by_problem *problem);
/* Whether the text declares the format of a schedule's file. */
bool by_series_suits(const char *text, size_t bytes);

#endif
