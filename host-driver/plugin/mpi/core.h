/*
 * The part of the MPI plugins without MPI types: libbanyan's communicator of all ranks, the
 * agreement of all ranks to use it, communicators of some ranks, and statistics of offloaded
 * calls. flight.c runs the calls; shim.c translates MPI's types. One thread at a time, except
 * where stated.
 */
#ifndef BY_PLUGIN_MPI_CORE_H
#define BY_PLUGIN_MPI_CORE_H

#include <stddef.h>
#include <stdint.h>

#include <banyan/banyan.h>

#define BY_MPI_TEXT_MAX 400
#define BY_MPI_DOOR_MAX 112 /* BY_PLACE_TEXT */

/* The facts about a rank. All ranks exchange them before they agree; fixed bytes, no pointers. */
struct by_mpi_facts {
    uint32_t version; /* BANYAN_VERSION of the plugin */
    /* banyan_status_t; if not 0, `text` is the reason why this rank cannot offload */
    int32_t status;
    uint32_t rank;       /* before by_mpi_join: of this host in the table */
    uint32_t size;       /* before by_mpi_join: hosts of the table; 0: unknown before by_mpi_join, for example
                            without a table */
    uint32_t serves;     /* bit banyan_collective_t: the table has trees, for every root */
    uint32_t log;        /* BANYAN_LOG */
    uint32_t mode;       /* banyan_mode_t */
    uint32_t controlled; /* has a controller, which makes tables for other communicators */
    uint32_t after;      /* BANYAN_MPI_AFTER */
    uint32_t connects;   /* BANYAN_FALLBACK is set: the ranks connect */
    uint32_t ordered;    /* BANYAN_MPI_PERSISTENT is ordered */
    uint32_t timed;      /* BANYAN_SMALL is auto: exchanges are compared with MPI's */
    uint32_t separates;  /* it recognizes MPI's own calls (origin.h) */
    /* per operator: bit banyan_dtype_t if all of those trees can reduce it */
    uint16_t reduces[BANYAN_BXOR + 1];
    uint64_t least; /* BANYAN_MPI_LEAST, bytes */
    uint64_t space; /* equal at ranks that can share memory (by_place_space); 0: this one cannot */
    /* of rank 0 with a controller: where its sequencer listens (sequencer.h), and the key for it */
    char door[BY_MPI_DOOR_MAX];
    uint64_t door_key;
    char host[64];
    char text[BY_MPI_TEXT_MAX];
};

/* Reason why a call was left to MPI. X(NAME, "text") */
#define BY_MPI_REASON_LIST(X)                                                                                \
    X(OFF, "offload is off")                                                                                 \
    X(OWN, "MPI's own")                                                                                      \
    X(COMMUNICATOR, "another communicator")                                                                  \
    X(FIRST, "first calls of a communicator")                                                                \
    X(REFUSED, "no trees for a communicator")                                                                \
    X(WITHIN, "ranks of one host")                                                                           \
    X(OPERATOR, "operator")                                                                                  \
    X(TYPE, "type")                                                                                          \
    X(EMPTY, "no data")                                                                                      \
    X(SMALL, "below BANYAN_MPI_LEAST")                                                                       \
    X(SLOWER, "faster in MPI")                                                                               \
    X(LARGE, "more than 2 GiB")                                                                              \
    X(TABLE, "no trees in the tables")                                                                       \
    X(ORDER, "non-blocking beside other communicators")                                                      \
    X(EARLY, "non-blocking before the ranks agreed")                                                         \
    X(PERSISTENT, "persistent")                                                                              \
    X(TO_OR_FROM_ROOT, "gather or scatter")                                                                  \
    X(ALL_TO_ALL, "all-to-all")                                                                              \
    X(PREFIX, "scan")

enum by_mpi_reason {
#define X(name, text) BY_MPI_##name,
    BY_MPI_REASON_LIST(X)
#undef X
        BY_MPI_REASON_COUNT
};

/* A communicator of libbanyan, with its calls under way in their order (flight.h). */
struct by_mpi_lane {
    struct banyan_comm *comm;
    uint32_t serves;                   /* as in the facts */
    uint16_t reduces[BANYAN_BXOR + 1]; /* as in the facts */
    struct by_mpi_flight *first, *last;
    int is_near;                /* of some ranks on one host, through its memory */
    struct by_mpi_flight *turn; /* the next to test; NULL: the first */
    unsigned flights;           /* opened and not closed */
    int is_left;                /* MPI's communicator is freed: ends, or is kept, with its last flight */
    uint64_t id;                /* alike on all its ranks */
    uint32_t *member;           /* its ranks of MPI_COMM_WORLD, in order; NULL: it is never kept */
    uint32_t size;              /* of `member` */
    uint64_t left_ns;           /* when its last flight ended; 0: before (kept.h) */
    struct by_mpi_lane *newer;  /* list of those that are kept */
    struct by_mpi_lane *next;   /* list of all */
};

/* One collective in libbanyan's terms. */
struct by_mpi_call {
    banyan_collective_t collective;
    banyan_op_t op;
    banyan_dtype_t dtype;
    uint32_t root;
    uint64_t count;
    /* allgather and reduce-scatter: counts of all ranks instead of `count`; or NULL */
    const uint64_t *counts;
    /* exchanges with v: bytes that are sent to each rank and where they begin, and the same of
     * those received; NULL where this rank has only one share, of `count` */
    const uint64_t *shares[4];
    int is_unequal;
    const void *send; /* of broadcast: unused, `recv` is the buffer */
    void *recv;
};

/* Reads the settings and the table of the environment. Opens no socket, and prints nothing. Always
 * fills the `facts` that these define. by_mpi_join calls `places`, if several ranks may share a
 * host. */
void by_mpi_prepare(struct by_mpi_facts *facts, const struct banyan_bootstrap *places);

/* Decides, from the facts of all ranks after by_mpi_prepare, whether each rank has a place in the
 * tables, and each host of the tables a rank; 1 if so. `text` as for by_mpi_agree. */
int by_mpi_seat(const struct by_mpi_facts *all, uint32_t count, char text[BY_MPI_TEXT_MAX]);

/* Joins the job of the environment, after by_mpi_prepare succeeded. Always completes `facts`. */
void by_mpi_join(struct by_mpi_facts *facts);

/*
 * Decides from the facts of all ranks, in MPI's rank order: 1 if all ranks can offload and their
 * facts agree, else 0. `text` describes what is used, or which rank cannot and why. A pure function
 * of its input, so all ranks reach the same decision.
 */
int by_mpi_agree(const struct by_mpi_facts *all, uint32_t count, char text[BY_MPI_TEXT_MAX]);

/* The lane of MPI_COMM_WORLD, after by_mpi_join. */
struct by_mpi_lane *by_mpi_world(void);

/*
 * Gives the lane the communicator of libbanyan of a freed one of MPI with the same ranks in the
 * same order, if all ranks have kept one; collective over `ranks`. Returns whether they have. Of
 * the lane, `member` and `size` are set. Ranks give the number of their communicators of these
 * ranks; *few: it is small at all of them. Any thread.
 */
int by_mpi_revive(const struct banyan_bootstrap *ranks, struct by_mpi_lane *lane, uint32_t alive, int *few);
/*
 * The same, or creates the communicator for some ranks of MPI_COMM_WORLD. banyan_status_t, with
 * `text` unless it is 0; both are equal on all these ranks. Any thread.
 */
int by_mpi_branch(const struct banyan_bootstrap *ranks, struct by_mpi_lane *lane, char text[BY_MPI_TEXT_MAX]);

/* BANYAN_TIMEOUT. */
uint64_t by_mpi_timeout_ns(void);

/* Describes a call to libbanyan, which copies its counts. 0, or a banyan_status_t with
 * banyan_last_error() set. */
int by_mpi_request(const struct by_mpi_lane *lane, const struct by_mpi_call *call,
                   struct banyan_request **request);

/* 1 if the job's mode defines `op` on `dtype` and its trees can compute it. Equal on all ranks,
 * since both were agreed. */
int by_mpi_reduces(const struct by_mpi_lane *lane, banyan_op_t op, banyan_dtype_t dtype);

/* Count a call that libbanyan has executed, and one that was left to MPI. */
void by_mpi_count(banyan_collective_t collective);
void by_mpi_leave_to_mpi(enum by_mpi_reason reason);

/* Formats the counts as a sentence. */
void by_mpi_tally(char *text, size_t bytes);

/* Leaves the job, if it was joined, after by_mpi_land (flight.h). */
void by_mpi_part(void);

#endif
