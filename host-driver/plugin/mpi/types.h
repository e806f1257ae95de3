/* Maps MPI's named types and operators to libbanyan's. Compiled once for each MPI. Pure; any
 * thread. */
#ifndef BY_PLUGIN_MPI_TYPES_H
#define BY_PLUGIN_MPI_TYPES_H

#include <mpi.h>

#include <banyan/banyan.h>

#include "host-driver/plugin/mpi/convert.h"

/* A reduction in libbanyan's terms. */
struct by_shim_reduction {
    banyan_op_t op;
    banyan_dtype_t dtype;
    unsigned each;             /* elements of dtype in one MPI element: 2 for complex numbers */
    struct by_mpi_shape shape; /* how an element travels */
};

enum by_shim_found { BY_SHIM_FOUND, BY_SHIM_NO_TYPE, BY_SHIM_NO_OP };

/* Finds the equivalent of `op` on elements of `type`, or what prevents it. */
enum by_shim_found by_shim_find(MPI_Datatype type, MPI_Op op, struct by_shim_reduction *found);
/* 1 for a named type whose elements have no gaps in or between them; 0 also for some of these. */
int by_shim_type_is_dense(MPI_Datatype type);

#endif
