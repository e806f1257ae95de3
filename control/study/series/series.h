/*
 * A periodic schedule of a series of operations (scatters, gossips, reduces) and its file, as in
 * banyan-series(5): what every link and processor does in one period, which begins again when it
 * ends. Made by control/study/steady, judged by control/verify, executed by run.h, drawn by
 * control/view/plot; this room knows nothing of how schedules are found. After "Optimizing the
 * steady-state throughput of scatter and reduce operations on heterogeneous platforms" (Legrand,
 * Marchal, Robert), which the comments call LMR. A schedule is immutable once made: any thread may
 * read it.
 */
#ifndef BY_STUDY_SERIES_SERIES_H
#define BY_STUDY_SERIES_SERIES_H

#include <stdio.h>

#include <gmp.h>

#include "control/fabric/topology.h"

#define BY_SERIES_NONE UINT32_MAX
/* Values of a reduction (count): a set of them is a word. */
#define BY_SERIES_VALUES_MAX 64u

enum by_series_operation { BY_SERIES_SCATTER = 1, BY_SERIES_GOSSIP, BY_SERIES_REDUCE };

/*
 * How links share the nodes at their ends. One port: a node sends one message at a time and
 * receives one (LMR section 2). Host ports: compute nodes do, switches serve all their links at
 * once. Many ports: every link has its own rate and nothing else limits it.
 */
enum by_series_ports { BY_SERIES_ONE_PORT = 1, BY_SERIES_HOST_PORTS, BY_SERIES_MANY_PORTS };

/* A kind of message. Every operation of the series has one of each kind that its lane carries. */
struct by_series_message {
    uint32_t from, to; /* scatter, gossip: nodes */
    uint64_t values;   /* reduce: the set of values that this partial result holds, bit i for value i */
    mpq_t size;
};

/*
 * A step of a lane. A transfer moves `message` from `node` to `to`. A combination (`to` is
 * BY_SERIES_NONE) makes `message` of `left` and `right` at `node`.
 */
struct by_series_task {
    uint32_t message;
    uint32_t node, to;
    uint32_t left, right; /* messages; combinations only */
};

/*
 * A way to carry an operation, or one of its messages: a route (scatter, gossip; all its tasks move
 * one message) or a reduction tree (LMR definition 1). Tasks stand after those whose results they
 * need.
 */
struct by_series_lane {
    mpz_t amount; /* how many a period */
    uint32_t task_count;
    struct by_series_task *tasks;
};

/* A transfer of one lane within a slot. */
struct by_series_part {
    uint32_t lane, task;
    mpq_t time;
};

/* A link that is busy in a slot: its parts follow each other from the slot's start. */
struct by_series_busy {
    uint32_t from, to;
    uint32_t part_count;
    struct by_series_part *parts;
};

/* A matching: links that are busy at the same time without sharing a port. Slots follow each other.
 */
struct by_series_slot {
    mpq_t duration;
    uint32_t busy_count;
    struct by_series_busy *busy;
};

/*
 * What a unit of time of a port or processor is worth: with these prices no operation costs less
 * than their sum over the throughput, so that none is faster. Dual of the linear programs of LMR.
 */
enum by_series_resource {
    BY_SERIES_SENDS = 1, /* a node's sending port */
    BY_SERIES_RECEIVES,  /* its receiving port */
    BY_SERIES_COMPUTES,  /* its processor */
    BY_SERIES_LINK       /* a link whose ends have no ports to share */
};

struct by_series_price {
    enum by_series_resource resource;
    uint32_t node, to; /* `to`: links only */
    mpq_t price;
};

struct by_series {
    enum by_series_operation operation;
    enum by_series_ports ports;
    bool commutative;      /* reduce: values may be combined in any order */
    uint32_t target;       /* reduce: where the results go */
    uint32_t holder_count; /* reduce: node of each value, in the operator's order; else 0 */
    uint32_t *holders;
    uint32_t message_count;
    struct by_series_message *messages;
    mpq_t throughput; /* operations in a unit of time */
    mpq_t optimum;    /* what no schedule exceeds, by the prices */
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
/* The number of a name, 0 when there is none. */
enum by_series_operation by_series_operation_find(const char *text, size_t bytes);
enum by_series_ports by_series_ports_find(const char *text, size_t bytes);
/* Whether the end of a link at `node` shares a port with the node's other links. */
bool by_series_shares(const struct by_topology *topology, enum by_series_ports ports, uint32_t node);
/* Writes a message's name for people ("b", "a>b", "v[1,2]", "v{0,2}") into `text`; returns it. */
#define BY_SERIES_NAME_BYTES 256
char *by_series_message_name(const struct by_series *series, const struct by_topology *topology,
                             uint32_t message, char text[BY_SERIES_NAME_BYTES]);

/*
 * The stages of a lane: task i works on what was made ready in the period before, so in period p it
 * carries the operations that began stage[i] periods earlier. Fills `stage` (by task, from 0) and
 * returns the number of stages of the whole lane.
 */
uint32_t by_series_stages(const struct by_series_lane *lane, uint32_t *stage);
/* The task before `task` that brings `message` to `node`, BY_SERIES_NONE when it must be there from
 * the start.
 */
uint32_t by_series_producer(const struct by_series_lane *lane, uint32_t task, uint32_t message,
                            uint32_t node);
/* The most stages of any lane: an operation is complete so many periods after it began. */
uint32_t by_series_depth(const struct by_series *series);

/* {"num": 1, "den": 2}, parts beyond 2^53 as strings. */
void by_series_write_rational(FILE *file, const mpq_t value);
/* The arrays of a file, for --json too: lanes with weights, slots, prices. */
void by_series_write_lanes(const struct by_series *series, const struct by_topology *topology, FILE *file);
void by_series_write_slots(const struct by_series *series, const struct by_topology *topology, FILE *file);
/* Writes the file, as in banyan-series(5). 0 or BY_EIO. */
int by_series_write(const struct by_series *series, const struct by_topology *topology, FILE *file);
/*
 * Reads such a file: names, numbers and shapes are checked, not whether the schedule is any good
 * (that is for control/verify). 0, or a negative BY_E* with `problem` filled.
 */
int by_series_parse(const char *text, size_t bytes, const struct by_topology *topology,
                    struct by_series **series, struct by_problem *problem);
int by_series_read(const char *path, const struct by_topology *topology, struct by_series **series,
                   struct by_problem *problem);
/* Whether the file's text says that it is one. */
bool by_series_suits(const char *text, size_t bytes);

#endif
