/*
 * Decides the first offloaded call of a communicator whose calls do not wait for other ranks. A
 * thread of each rank requests its job while MPI executes its calls. A rank that starts a call must
 * decide at once between MPI and libbanyan, and all ranks must decide alike. So one thread in the
 * process of MPI_COMM_WORLD's rank 0, the sequencer, decides. Once a rank has opened its job, it
 * sends a request there before a call whose number is not decided; the answer does not depend on
 * other ranks. When all ranks have opened theirs, the sequencer fixes the first call that libbanyan
 * executes, above all calls that it has permitted to MPI. In a call that waits for all ranks
 * anyway, they wait for the decision. The exchanges of the ranks while they open their job go
 * through it as well: its thread answers at any time, where MPI makes progress only while the
 * program is in it. Independent of MPI. Neighbours: comms.c counts the calls; core.c opens jobs.
 */
#ifndef BY_PLUGIN_MPI_SEQUENCER_H
#define BY_PLUGIN_MPI_SEQUENCER_H

#include <stdint.h>

#include "host-driver/plugin/mpi/core.h"

/* ---- sequencer.c: the thread */

/* What a message is; the ranks of a job have one version of the plugin. */
enum by_mpi_message_kind {
    BY_MPI_HELLO = 1, /* with a by_mpi_hello */
    BY_MPI_BLOCK,     /* a rank's part of an allgather */
    BY_MPI_OPEN,      /* the rank has opened the job; `number`: calls that it has started */
    BY_MPI_CALL,      /* `number`: a call that it will start */
    /* `number`: a call in which it waits for all ranks; answered when all have opened the job */
    BY_MPI_SETTLE,
    /* answers */
    BY_MPI_BLOCKS,  /* of all ranks */
    BY_MPI_LIMIT,   /* calls up to `number` stay with MPI; later ones are not decided */
    BY_MPI_DECIDED, /* the same, and libbanyan executes those after `number` */
    BY_MPI_OVER,    /* a rank has left: all calls stay with MPI */
};

struct by_mpi_message {
    uint32_t kind, bytes; /* `bytes` follow */
    uint64_t number;
};

struct by_mpi_hello {
    uint64_t key;        /* of the sequencer */
    uint64_t id;         /* of the communicator */
    uint32_t rank, size; /* in it */
};

/* Starts the sequencer of this process, and fills where it listens and its key in `facts`. 0, or an
 * error with its text (error.h). */
int by_mpi_sequencer_open(struct by_mpi_facts *facts);
/* Ends it, if this process has one, when all ranks have closed their connections; calls `idle`
 * meanwhile. */
void by_mpi_sequencer_close(void (*idle)(void));

/* ---- opening.c: a rank of one communicator */

struct by_mpi_opening;

/* Opens the job together with all ranks of the communicator; called in a thread of its own.
 * banyan_status_t, with `text` unless it is 0. */
typedef int by_mpi_open_fn(const struct banyan_bootstrap *ranks, void *context, char text[BY_MPI_TEXT_MAX]);

struct by_mpi_opening_config {
    const struct by_mpi_facts *sequencer; /* of rank 0; must outlive */
    uint64_t id;                          /* of the communicator; differs from those of others */
    uint32_t rank, size;                  /* in it */
    uint64_t calls;                       /* that this rank has started so far, in MPI */
    uint64_t timeout_ns;                  /* of an answer */
    by_mpi_open_fn *open;
    void *context; /* its argument */
};

enum by_mpi_way {
    BY_MPI_WAY_MPI = 1,
    BY_MPI_WAY_LANE,  /* libbanyan executes this call and all later ones */
    BY_MPI_WAY_NEVER, /* MPI executes this call and all later ones */
};

/* Starts to open; NULL: no memory or no thread. */
struct by_mpi_opening *by_mpi_opening_begin(const struct by_mpi_opening_config *config);
/* Decides for the next call of the communicator. If the call may wait for all ranks, waits until
 * they have opened the job, and calls `idle` meanwhile. If `idle` is NULL, it may wait for the
 * sequencer, never for another rank. */
enum by_mpi_way by_mpi_opening_call(struct by_mpi_opening *opening, void (*idle)(void));
/* Ends the thread and frees everything but `context`; after BY_MPI_WAY_LANE it does not wait.
 * Returns what `open` has returned, or an error of the way to the sequencer, and its `text`. */
int by_mpi_opening_end(struct by_mpi_opening *opening, char text[BY_MPI_TEXT_MAX]);

#endif
