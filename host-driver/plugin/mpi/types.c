/* Maps MPI's named types and operators to libbanyan's; see types.h. */
#include "host-driver/plugin/mpi/types.h"

#include <stddef.h>

#define INTEGER (BY_SHIM_ADDS | BY_SHIM_MULTIPLIES | BY_SHIM_COMPARES | BY_SHIM_BITS)
#define FLOAT   (BY_SHIM_ADDS | BY_SHIM_MULTIPLIES | BY_SHIM_COMPARES)
#define COMPLEX BY_SHIM_ADDS /* other complex operators are not element by element */

#define SIGNED(bytes)   ((bytes) == 1 ? BANYAN_I8 : (bytes) == 4 ? BANYAN_I32 : (bytes) == 8 ? BANYAN_I64 : 0)
#define UNSIGNED(bytes) ((bytes) == 1 ? BANYAN_U8 : (bytes) == 4 ? BANYAN_U32 : (bytes) == 8 ? BANYAN_U64 : 0)

static const struct types_entry {
    MPI_Datatype type;
    struct by_shim_type is;
} entries[] = {
    {MPI_INT, {SIGNED(sizeof(int)), 1, INTEGER}},
    {MPI_LONG, {SIGNED(sizeof(long)), 1, INTEGER}},
    {MPI_LONG_LONG, {SIGNED(sizeof(long long)), 1, INTEGER}},
    {MPI_UNSIGNED, {UNSIGNED(sizeof(unsigned)), 1, INTEGER}},
    {MPI_UNSIGNED_LONG, {UNSIGNED(sizeof(unsigned long)), 1, INTEGER}},
    {MPI_UNSIGNED_LONG_LONG, {UNSIGNED(sizeof(unsigned long long)), 1, INTEGER}},
    {MPI_SIGNED_CHAR, {BANYAN_I8, 1, INTEGER}},
    {MPI_UNSIGNED_CHAR, {BANYAN_U8, 1, INTEGER}},
    {MPI_INT8_T, {BANYAN_I8, 1, INTEGER}},
    {MPI_UINT8_T, {BANYAN_U8, 1, INTEGER}},
    {MPI_INT32_T, {BANYAN_I32, 1, INTEGER}},
    {MPI_UINT32_T, {BANYAN_U32, 1, INTEGER}},
    {MPI_INT64_T, {BANYAN_I64, 1, INTEGER}},
    {MPI_UINT64_T, {BANYAN_U64, 1, INTEGER}},
    {MPI_AINT, {SIGNED(sizeof(MPI_Aint)), 1, INTEGER}},
    {MPI_OFFSET, {SIGNED(sizeof(MPI_Offset)), 1, INTEGER}},
    {MPI_COUNT, {SIGNED(sizeof(MPI_Count)), 1, INTEGER}},
    {MPI_BYTE, {BANYAN_U8, 1, BY_SHIM_BITS}},
    {MPI_FLOAT, {BANYAN_F32, 1, FLOAT}},
    {MPI_DOUBLE, {BANYAN_F64, 1, FLOAT}},
    {MPI_C_FLOAT_COMPLEX, {BANYAN_F32, 2, COMPLEX}},
    {MPI_C_DOUBLE_COMPLEX, {BANYAN_F64, 2, COMPLEX}},
    /* Fortran types, with the sizes that MPI was built with; programs built with other sizes use
     * REAL8 and so on. */
    {MPI_INTEGER, {SIGNED(sizeof(MPI_Fint)), 1, INTEGER}},
    {MPI_INTEGER1, {BANYAN_I8, 1, INTEGER}},
    {MPI_INTEGER4, {BANYAN_I32, 1, INTEGER}},
    {MPI_INTEGER8, {BANYAN_I64, 1, INTEGER}},
    {MPI_REAL, {BANYAN_F32, 1, FLOAT}},
    {MPI_REAL4, {BANYAN_F32, 1, FLOAT}},
    {MPI_REAL8, {BANYAN_F64, 1, FLOAT}},
    {MPI_DOUBLE_PRECISION, {BANYAN_F64, 1, FLOAT}},
    {MPI_COMPLEX, {BANYAN_F32, 2, COMPLEX}},
    {MPI_DOUBLE_COMPLEX, {BANYAN_F64, 2, COMPLEX}},
};

static const struct {
    MPI_Op op;
    banyan_op_t is;
    unsigned group;
} operators[] = {
    {MPI_SUM, BANYAN_SUM, BY_SHIM_ADDS},     {MPI_PROD, BANYAN_PROD, BY_SHIM_MULTIPLIES},
    {MPI_MIN, BANYAN_MIN, BY_SHIM_COMPARES}, {MPI_MAX, BANYAN_MAX, BY_SHIM_COMPARES},
    {MPI_BAND, BANYAN_BAND, BY_SHIM_BITS},   {MPI_BOR, BANYAN_BOR, BY_SHIM_BITS},
    {MPI_BXOR, BANYAN_BXOR, BY_SHIM_BITS},
};

int by_shim_type_find(MPI_Datatype type, struct by_shim_type *found)
{
    int size;

    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        if (entries[i].type != type)
            continue;
        *found = entries[i].is;
        /* A Fortran type may have another size than in C, or be missing in this MPI. */
        return banyan_dtype_size(found->dtype) > 0 && PMPI_Type_size(type, &size) == MPI_SUCCESS &&
               (size_t)size == banyan_dtype_size(found->dtype) * found->each;
    }
    return 0;
}

int by_shim_op_find(MPI_Op op, const struct by_shim_type *type, banyan_op_t *found)
{
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        if (operators[i].op != op || !(type->groups & operators[i].group))
            continue;
        *found = operators[i].is;
        return 1;
    }
    return 0;
}

int by_shim_type_is_dense(MPI_Datatype type)
{
    MPI_Aint least, extent;
    int size;

    /* The pair types of MINLOC are named, and some have a gap. */
    return PMPI_Type_size(type, &size) == MPI_SUCCESS &&
           PMPI_Type_get_extent(type, &least, &extent) == MPI_SUCCESS && least == 0 && extent == size;
}
