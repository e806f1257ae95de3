/*
 * A call of MPI that libbanyan executes: what happens to the buffers before and after. Elements
 * that travel as others are converted, elements with gaps are packed. Compiled once for each MPI;
 * uses its public interface only. Neighbours: shim.c fills a work and decides, flight.c runs it.
 */
#ifndef BY_PLUGIN_MPI_WORK_H
#define BY_PLUGIN_MPI_WORK_H

#include <mpi.h>

#include "host-driver/plugin/mpi/convert.h"
#include "host-driver/plugin/mpi/flight.h"

/* One value per rank, in one of two integer widths; the other pointer is NULL. */
struct by_shim_counts {
    const int *narrow;
    const MPI_Count *wide;
};
struct by_shim_places {
    const int *narrow;
    const MPI_Aint *wide;
};

/* An allgather. */
struct by_shim_gathering {
    const void *send;
    int64_t send_count;
    MPI_Datatype send_type;
    void *recv;
    /* of each rank's block; */
    int64_t recv_count;
    /* or, unless NULL, of all ranks, */
    struct by_shim_counts counts;
    /* and the positions of their blocks, in elements */
    struct by_shim_places places;
    MPI_Datatype recv_type;
    MPI_Aint extent; /* of recv_type */
    int64_t size;    /* bytes of data in one of its elements */
    int rank, ranks;
};

/* What a rank sends, or receives, in an all-to-all, scatter or gather. */
struct by_shim_side {
    void *buffer;
    int64_t count;                /* of each block; */
    struct by_shim_counts counts; /* or, unless NULL, of all, */
    struct by_shim_places places; /* and their positions, in elements */
    MPI_Datatype type;
    const MPI_Datatype *types; /* or, unless NULL, of each block; places are then in bytes */
    int blocks;                /* of all ranks, 1, or 0: nothing */
    int is_kept;               /* it is a block of the other side, and is not written back */
    MPI_Aint extent;
    int64_t size; /* bytes of data in one element */
};

enum by_shim_form {
    BY_SHIM_IN_PLACE = 1, /* libbanyan uses the user's buffers */
    BY_SHIM_SHAPED,       /* elements travel as others */
    BY_SHIM_MOVED,        /* the result is copied to the user's buffer */
    BY_SHIM_PACKED,       /* a broadcast of elements with gaps */
    BY_SHIM_GATHERED,     /* blocks with gaps, or in another order */
    BY_SHIM_SHARES        /* blocks of an exchange with gaps */
};

struct by_shim_work {
    struct by_mpi_flight flight;
    enum by_shim_form form;
    int code;           /* of MPI, if there is no memory or libbanyan refuses the call */
    void *room;         /* temporary buffer; or NULL */
    const void *send;   /* of the user */
    void *recv;         /* of the user; NULL: no result here */
    uint64_t sent, got; /* elements of the user that are sent and received; MOVED: `got` in bytes */
    struct by_mpi_shape shape;
    int is_root;                        /* PACKED */
    MPI_Datatype type;                  /* PACKED: of `got` elements */
    struct by_shim_gathering gathering; /* GATHERED */
    struct by_shim_side side[2];        /* SHARES: sent and received */
    MPI_Datatype kept[2];               /* types that by_shim_keep has made */
    MPI_Datatype *kept_all[2];          /* SHARES: the same of sides with `types`; or NULL */
    void *lists[4];                     /* copies of the user's counts and places; or NULL */
};

int64_t by_shim_count_at(struct by_shim_counts counts, int rank);
int64_t by_shim_count_of(const struct by_shim_gathering *g, int rank);
int64_t by_shim_place_at(const struct by_shim_gathering *g, int rank);
void *by_shim_place_of(const struct by_shim_gathering *g, int rank);
/* Returns the elements of all ranks before `rank`, at most `most`. -1: a count is negative. */
int64_t by_shim_count_before(const struct by_shim_gathering *g, int rank, int64_t most);

int64_t by_shim_side_count(const struct by_shim_side *side, int block);
MPI_Datatype by_shim_side_type(const struct by_shim_side *side, int block);
/* Returns where a block begins, in bytes. */
int64_t by_shim_side_place(const struct by_shim_side *side, int block);
/* Returns the bytes of data in a block. */
int64_t by_shim_side_block(const struct by_shim_side *side, int block);
/* Returns the bytes of data in all blocks. */
uint64_t by_shim_side_bytes(const struct by_shim_side *side);

/* Allocates the temporary buffer, sets the buffers of the call and describes it to libbanyan. An
 * error is in work->code, and is returned by the functions below. Always returns 1. */
int by_shim_prepare(struct by_shim_work *work, size_t room_bytes);
/* Makes the work independent of the user's handles of types, and of lists of counts and places:
 * libraries for other languages free these when a call has started (mpi4py 3.1). */
void by_shim_keep(struct by_shim_work *work);
/* Executes a prepared work and releases it. Returns MPI's code. */
int by_shim_run(struct by_shim_work *work);
/* Starts a prepared work. Returns MPI's code; if it is an error, nothing was started. */
int by_shim_start(struct by_shim_work *work);
/* Completes the user's buffers after the call has ended. Returns MPI's code. */
int by_shim_finish(struct by_shim_work *work);
/* Releases a work that is not under way. */
void by_shim_release(struct by_shim_work *work);

#endif
