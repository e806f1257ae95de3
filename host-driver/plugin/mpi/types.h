/* Maps MPI's named types and operators to libbanyan's. Compiled once for each MPI. Pure; any
 * thread. */
#ifndef BY_PLUGIN_MPI_TYPES_H
#define BY_PLUGIN_MPI_TYPES_H

#include <mpi.h>

#include <banyan/banyan.h>

struct by_shim_type {
    banyan_dtype_t dtype;
    unsigned each;   /* elements of dtype in one MPI element: 2 for complex numbers */
    unsigned groups; /* groups of operators that MPI defines on it: enum by_shim_group */
};

enum by_shim_group { BY_SHIM_ADDS = 1, BY_SHIM_MULTIPLIES = 2, BY_SHIM_COMPARES = 4, BY_SHIM_BITS = 8 };

/* Return 1 if there is an equivalent, else 0. */
int by_shim_type_find(MPI_Datatype type, struct by_shim_type *found);
int by_shim_op_find(MPI_Op op, const struct by_shim_type *type, banyan_op_t *found);
/* 1 if the elements of a named type have no gaps in or between them. */
int by_shim_type_is_dense(MPI_Datatype type);

#endif
