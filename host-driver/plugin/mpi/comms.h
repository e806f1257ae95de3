/*
 * Communicators of MPI: which of their calls are offloaded, and over what. MPI_COMM_WORLD has the
 * job of the tables. Every other communicator gets one of its own, when the program has called it
 * often enough: of ranks on one host through its memory, and with a controller of ranks on several.
 * Calls of MPI itself do not count: programs make many communicators only to make others of them.
 * Without a controller those with the ranks and the order of MPI_COMM_WORLD share its job and its
 * order of calls, and the others on several hosts stay with MPI. Compiled once for each MPI; uses
 * its public interface only. Neighbours: shim.c translates the calls; preload.c and coll.c keep a
 * by_shim_comm with each communicator.
 */
#ifndef BY_PLUGIN_MPI_COMMS_H
#define BY_PLUGIN_MPI_COMMS_H

#include <mpi.h>

#include "host-driver/plugin/mpi/core.h"

/* MPI's own allgather of `bytes` of each rank over the communicator of `on`, its all-to-all,
 * scatter and gather with shares of `bytes` and root 0, and its non-blocking broadcast from rank 0;
 * return an MPI error code. */
struct by_shim_gather {
    int (*gather)(const struct by_shim_gather *on, const void *mine, void *all, int bytes);
    int (*exchange)(const struct by_shim_gather *on, banyan_collective_t collective, const void *send,
                    void *recv, int bytes);
    int (*spread)(const struct by_shim_gather *on, void *whole, int bytes, MPI_Request *request);
    MPI_Comm comm;
    void *module; /* of Open MPI; else NULL */
    int is_now;   /* the call over it must not wait for other ranks */
    int is_own;   /* MPI itself makes the call, as part of another one; -1: this is unknown */
};

enum by_shim_kind {
    BY_SHIM_WORLD = 1,
    BY_SHIM_TWIN,  /* the ranks and the order of MPI_COMM_WORLD */
    BY_SHIM_PART,  /* other ranks, or another order */
    BY_SHIM_INTER, /* between two groups */
};

enum by_shim_state { BY_SHIM_NEW = 1, BY_SHIM_ON, BY_SHIM_OFF };

struct by_shim_comm {
    enum by_shim_kind kind;
    enum by_shim_state state; /* of TWIN and PART with a controller */
    enum by_mpi_reason reason;
    /* refused: at all ranks by now; blocking calls of the program since then, and after how
     * many of them its job is requested again */
    int is_settled;
    uint32_t waits, patience;
    int rank, size;
    int is_near;      /* all ranks run on one host and can share memory: 1, or -1; 0: not known yet */
    uint32_t *member; /* then known: its ranks of MPI_COMM_WORLD; or NULL */
    int is_own;       /* MPI itself makes the current call */
    int is_noted;     /* among the communicators of its ranks (kept.h) */
    int has_compared; /* for a job that a freed communicator of the same ranks has left */
    uint32_t calls;   /* of its ranks, until it is ON or OFF, or `opening` counts them */
    struct by_mpi_lane *lane;
    /* or NULL; while its job is requested by calls that must not wait */
    struct by_shim_number *number;
    struct by_mpi_opening *opening;
    struct by_shim_comm *next; /* list of those with `number` or `opening` */
    uint64_t *counts;          /* four per rank */
};

/* Ends the program: a rank without memory would not agree with the others, which would wait for it.
 * `what` it is for is printed. */
void by_shim_out_of_memory(const char *what);

/* Creates the state of a communicator; NULL: no memory, and the program ends. */
struct by_shim_comm *by_shim_comm_new(enum by_shim_kind kind, int rank, int size);
/* MPI has freed the communicator: gives back what it has. */
void by_shim_comm_free(struct by_shim_comm *comm);

/* The program creates a communicator with the ranks and the order of MPI_COMM_WORLD, which is not
 * usable yet. */
void by_shim_twin(void);

/* All ranks join the job and agree over `on`, once; rank 0 prints the outcome. */
void by_shim_join(const struct by_shim_gather *on);
/*
 * 1 if calls over this communicator are offloaded: comm->lane is then set. Agrees as
 * by_shim_join, if that has not been called. May create its job, together with all its ranks.
 */
int by_shim_ready(struct by_shim_comm *comm, const struct by_shim_gather *on);
/* Like by_shim_ready, for a call that must not wait for other ranks (on->is_now): 0 if the ranks
 * have not agreed yet, or if several communicators share an order of calls, since MPI requires
 * one order of blocking calls only. May begin to request its job (sequencer.h). */
int by_shim_ready_now(struct by_shim_comm *comm, const struct by_shim_gather *on);
/* Whether persistent calls are offloaded like non-blocking ones (BANYAN_MPI_PERSISTENT); if not,
 * counts this one. */
int by_shim_persists(const struct by_shim_comm *comm);
/*
 * Like by_shim_ready, for all-to-all, scatter and gather, which need connections between the ranks:
 * does not agree. With on->is_now as by_shim_ready_now.
 */
int by_shim_exchanges(struct by_shim_comm *comm, const struct by_shim_gather *on,
                      banyan_collective_t collective);
/* Counts a call of the program over such a communicator that MPI executes for `reason`. */
void by_shim_pass(const struct by_shim_comm *comm, enum by_mpi_reason reason);
/* Counts the current call, which MPI executes; returns 0. */
int by_shim_left(const struct by_shim_comm *comm, enum by_mpi_reason reason);

/* BANYAN_MPI_LEAST, as the ranks have agreed. */
uint64_t by_shim_least(void);
/* MPI's error code that carries a text of libbanyan, which is also printed. */
int by_shim_code(const char *text);
/* Lets MPI progress its own messages. */
void by_shim_idle(void);

#endif
