/*
 * What the MPI plugins share and MPI does not see: one communicator of libbanyan for a process, the
 * ranks' agreement on using it, calls that leave MPI time to move its own messages, and the count
 * of what was offloaded. No MPI type is in here: shim.c translates. One thread at a time.
 */
#ifndef BY_PLUGIN_MPI_CORE_H
#define BY_PLUGIN_MPI_CORE_H

#include <stddef.h>
#include <stdint.h>

#include <banyan/banyan.h>

#define BY_MPI_TEXT_MAX 400

/* What a rank says of itself. All ranks exchange this before they agree; fixed bytes, no pointers.
 */
struct by_mpi_facts {
    uint32_t version; /* BANYAN_VERSION of the plugin */
    int32_t status;   /* banyan_status_t; not 0: `text` says why this rank cannot */
    uint32_t rank;    /* of the table */
    uint32_t size;    /* 0: not known before by_mpi_join, as without a table of its own */
    uint32_t serves;  /* bit banyan_collective_t: the table has trees, for every root */
    uint32_t log;     /* BANYAN_LOG */
    uint32_t mode;    /* banyan_mode_t */
    uint16_t
        reduces[BANYAN_BXOR + 1]; /* by operator: bit banyan_dtype_t that all of those trees can reduce */
    uint64_t least;               /* BANYAN_MPI_LEAST, bytes */
    char host[64];
    char text[BY_MPI_TEXT_MAX];
};

/* Why a call was left to MPI. X(NAME, "text") */
#define BY_MPI_REASON_LIST(X)                                                                                \
    X(OFF, "offload is off")                                                                                 \
    X(COMMUNICATOR, "another communicator")                                                                  \
    X(OPERATOR, "operator")                                                                                  \
    X(TYPE, "type")                                                                                          \
    X(EMPTY, "no data")                                                                                      \
    X(SMALL, "below BANYAN_MPI_LEAST")                                                                       \
    X(LARGE, "more than 2 GiB")                                                                              \
    X(TABLE, "no trees in the tables")

enum by_mpi_reason {
#define X(name, text) BY_MPI_##name,
    BY_MPI_REASON_LIST(X)
#undef X
        BY_MPI_REASON_COUNT
};

/* One collective as libbanyan knows it. */
struct by_mpi_call {
    banyan_collective_t collective;
    banyan_op_t op;
    banyan_dtype_t dtype;
    uint32_t root;
    uint64_t count;
    const uint64_t
        *counts;      /* of allgather and reduce-scatter: those of all ranks, in place of `count`; or NULL */
    const void *send; /* of broadcast: unused, `recv` is the buffer */
    void *recv;
};

/* Reads the settings and the table of the environment. Opens no socket, and prints nothing. Always
 * fills `facts`, as far as these tell. */
void by_mpi_prepare(struct by_mpi_facts *facts);

/* The verdict over what all ranks have prepared, like by_mpi_agree's: 1 when each rank has a place
 * of its own in the tables. */
int by_mpi_seat(const struct by_mpi_facts *all, uint32_t count, char text[BY_MPI_TEXT_MAX]);

/* Joins the job of the environment, after by_mpi_prepare succeeded. Always completes `facts`. */
void by_mpi_join(struct by_mpi_facts *facts);

/*
 * The verdict over the facts of all ranks, in the order of MPI's ranks: 1 when all can and all
 * agree, else 0; `text` says what is used, or who cannot and why. A pure function of its input, so
 * all ranks come to the same.
 */
int by_mpi_agree(const struct by_mpi_facts *all, uint32_t count, char text[BY_MPI_TEXT_MAX]);

/* The first operation, in which tables that have served a run before show; `idle` is called now and
 * then while it waits. The result goes to facts->status and text. */
void by_mpi_enter(struct by_mpi_facts *facts, void (*idle)(void));

/* Runs a call to its end. 0, or a banyan_status_t with banyan_last_error() set. */
int by_mpi_run(const struct by_mpi_call *call, void (*idle)(void));

/* 1 when the job's mode defines `op` on `dtype` and its trees can compute it: the same on all
 * ranks, since both are agreed upon. */
int by_mpi_reduces(banyan_op_t op, banyan_dtype_t dtype);

/* Counts a call that was left to MPI. by_mpi_run counts the others. */
void by_mpi_leave_to_mpi(enum by_mpi_reason reason);

/* The counts as a sentence. */
void by_mpi_tally(char *text, size_t bytes);

/* Leaves the job, if it was joined. */
void by_mpi_part(void);

#endif
