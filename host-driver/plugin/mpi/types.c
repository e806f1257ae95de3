/* Maps MPI's named types and operators to libbanyan's; see types.h. */
#include "host-driver/plugin/mpi/types.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Groups of operators that MPI defines on a type. */
enum group { ADDS = 1, MULTIPLIES = 2, COMPARES = 4, BITS = 8, LOGIC = 16, PLACES = 32 };

#define INTEGER (ADDS | MULTIPLIES | COMPARES | BITS | LOGIC)
#define FLOAT   (ADDS | MULTIPLIES | COMPARES)
#define COMPLEX ADDS /* other complex operators are not element by element */

/* X(type, size, is_signed): integers. A Fortran type has the size that MPI was built with; programs
 * built with other sizes use MPI_INTEGER8 and so on. */
#define INTEGER_LIST(X)                                                                                      \
    X(MPI_INT, sizeof(int), 1)                                                                               \
    X(MPI_LONG, sizeof(long), 1)                                                                             \
    X(MPI_LONG_LONG, sizeof(long long), 1)                                                                   \
    X(MPI_UNSIGNED, sizeof(unsigned), 0)                                                                     \
    X(MPI_UNSIGNED_LONG, sizeof(unsigned long), 0)                                                           \
    X(MPI_UNSIGNED_LONG_LONG, sizeof(unsigned long long), 0)                                                 \
    X(MPI_SHORT, sizeof(short), 1)                                                                           \
    X(MPI_UNSIGNED_SHORT, sizeof(unsigned short), 0)                                                         \
    X(MPI_CHAR, 1, CHAR_MIN < 0)                                                                             \
    X(MPI_SIGNED_CHAR, 1, 1)                                                                                 \
    X(MPI_UNSIGNED_CHAR, 1, 0)                                                                               \
    X(MPI_INT8_T, 1, 1)                                                                                      \
    X(MPI_UINT8_T, 1, 0)                                                                                     \
    X(MPI_INT16_T, 2, 1)                                                                                     \
    X(MPI_UINT16_T, 2, 0)                                                                                    \
    X(MPI_INT32_T, 4, 1)                                                                                     \
    X(MPI_UINT32_T, 4, 0)                                                                                    \
    X(MPI_INT64_T, 8, 1)                                                                                     \
    X(MPI_UINT64_T, 8, 0)                                                                                    \
    X(MPI_AINT, sizeof(MPI_Aint), 1)                                                                         \
    X(MPI_OFFSET, sizeof(MPI_Offset), 1)                                                                     \
    X(MPI_COUNT, sizeof(MPI_Count), 1)                                                                       \
    X(MPI_INTEGER, sizeof(MPI_Fint), 1)                                                                      \
    X(MPI_INTEGER1, 1, 1)                                                                                    \
    X(MPI_INTEGER2, 2, 1)                                                                                    \
    X(MPI_INTEGER4, 4, 1)                                                                                    \
    X(MPI_INTEGER8, 8, 1)

struct float_int {
    float value;
    int index;
};
struct short_int {
    short value;
    int index;
};

#define PAIR(is_float, member, record)                                                                       \
    {                                                                                                        \
        .form = BY_MPI_PAIR, .bytes = sizeof(((record *)0)->member), .is_signed = !(is_float),               \
        .is_real = (is_float), .index_at = offsetof(record, index), .stride = sizeof(record)                 \
    }
struct two_int {
    int value, index;
};

#define DTYPE(size, is_signed)                                                                               \
    ((size) == 1   ? (is_signed) ? BANYAN_I8 : BANYAN_U8                                                     \
     : (size) == 2 ? (is_signed) ? BANYAN_I32 : BANYAN_U32                                                   \
     : (size) == 4 ? (is_signed) ? BANYAN_I32 : BANYAN_U32                                                   \
     : (size) == 8 ? (is_signed) ? BANYAN_I64 : BANYAN_U64                                                   \
                   : 0)

static const struct types_entry {
    MPI_Datatype type;
    unsigned groups; /* enum group */
    unsigned size;   /* bytes of data in an element */
    banyan_dtype_t dtype;
    unsigned each;
    struct by_mpi_shape shape;
} entries[] = {
#define X(name, bytes_, signed_)                                                                             \
    {name,                                                                                                   \
     INTEGER,                                                                                                \
     (bytes_),                                                                                               \
     DTYPE(bytes_, signed_),                                                                                 \
     1,                                                                                                      \
     {.form = (bytes_) == 2 ? BY_MPI_WIDE : BY_MPI_AS_IS,                                                    \
      .bytes = (bytes_),                                                                                     \
      .is_signed = (signed_),                                                                                \
      .stride = (bytes_)}},
    INTEGER_LIST(X)
#undef X
        {MPI_C_BOOL, LOGIC, sizeof(bool), BANYAN_U8, 1, {.bytes = sizeof(bool), .stride = sizeof(bool)}},
    {MPI_BYTE, BITS, 1, BANYAN_U8, 1, {.bytes = 1, .stride = 1}},
    {MPI_FLOAT, FLOAT, 4, BANYAN_F32, 1, {.bytes = 4, .stride = 4}},
    {MPI_DOUBLE, FLOAT, 8, BANYAN_F64, 1, {.bytes = 8, .stride = 8}},
    {MPI_C_FLOAT_COMPLEX, COMPLEX, 8, BANYAN_F32, 2, {.bytes = 8, .stride = 8}},
    {MPI_C_DOUBLE_COMPLEX, COMPLEX, 16, BANYAN_F64, 2, {.bytes = 16, .stride = 16}},
    {MPI_REAL, FLOAT, 4, BANYAN_F32, 1, {.bytes = 4, .stride = 4}},
    {MPI_REAL4, FLOAT, 4, BANYAN_F32, 1, {.bytes = 4, .stride = 4}},
    {MPI_REAL8, FLOAT, 8, BANYAN_F64, 1, {.bytes = 8, .stride = 8}},
    {MPI_DOUBLE_PRECISION, FLOAT, 8, BANYAN_F64, 1, {.bytes = 8, .stride = 8}},
    {MPI_COMPLEX, COMPLEX, 8, BANYAN_F32, 2, {.bytes = 8, .stride = 8}},
    {MPI_DOUBLE_COMPLEX, COMPLEX, 16, BANYAN_F64, 2, {.bytes = 16, .stride = 16}},
    {MPI_2INT, PLACES, 8, BANYAN_U64, 1, PAIR(0, value, struct two_int)},
    {MPI_2INTEGER, PLACES, 8, BANYAN_U64, 1, PAIR(0, value, struct two_int)},
    {MPI_FLOAT_INT, PLACES, 8, BANYAN_U64, 1, PAIR(1, value, struct float_int)},
    {MPI_SHORT_INT, PLACES, 6, BANYAN_U64, 1, PAIR(0, value, struct short_int)},
};

static const struct {
    MPI_Op op;
    banyan_op_t is;
    unsigned group;
} operators[] = {
    {MPI_SUM, BANYAN_SUM, ADDS},     {MPI_PROD, BANYAN_PROD, MULTIPLIES}, {MPI_MIN, BANYAN_MIN, COMPARES},
    {MPI_MAX, BANYAN_MAX, COMPARES}, {MPI_BAND, BANYAN_BAND, BITS},       {MPI_BOR, BANYAN_BOR, BITS},
    {MPI_BXOR, BANYAN_BXOR, BITS},   {MPI_LAND, BANYAN_BAND, LOGIC},      {MPI_LOR, BANYAN_BOR, LOGIC},
    {MPI_LXOR, BANYAN_BXOR, LOGIC},  {MPI_MINLOC, BANYAN_MIN, PLACES},    {MPI_MAXLOC, BANYAN_MAX, PLACES},
};

static const struct types_entry *entry_of(MPI_Datatype type)
{
    int size;

    /* A Fortran type may have another size than in C, or be missing in this MPI. */
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
        if (entries[i].type == type)
            return entries[i].dtype != 0 && PMPI_Type_size(type, &size) == MPI_SUCCESS &&
                           (unsigned)size == entries[i].size
                       ? &entries[i]
                       : NULL;
    return NULL;
}

enum by_shim_found by_shim_find(MPI_Datatype type, MPI_Op op, struct by_shim_reduction *found)
{
    const struct types_entry *entry = entry_of(type);

    if (entry == NULL)
        return BY_SHIM_NO_TYPE;
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        if (operators[i].op != op || !(entry->groups & operators[i].group))
            continue;
        *found = (struct by_shim_reduction){operators[i].is, entry->dtype, entry->each, entry->shape};
        found->shape.is_greatest = operators[i].is == BANYAN_MAX;
        if (operators[i].group == LOGIC) {
            found->dtype = BANYAN_U8;
            found->shape.form = BY_MPI_TRUTH;
        }
        return BY_SHIM_FOUND;
    }
    return BY_SHIM_NO_OP;
}

/* Named types that no reduction of libbanyan supports. */
static const MPI_Datatype copied_only[] = {MPI_PACKED, MPI_CHARACTER, MPI_LOGICAL, MPI_WCHAR,
                                           MPI_LONG_DOUBLE};

int by_shim_type_is_dense(MPI_Datatype type)
{
    MPI_Aint least, extent;
    int size, is_named = entry_of(type) != NULL;

    /* MPI_Type_get_envelope would tell, but calls the error handler for types that Open MPI itself
     * has derived, such as MPI_Intercomm_merge uses. */
    for (size_t i = 0; i < sizeof(copied_only) / sizeof(copied_only[0]); i++)
        is_named |= copied_only[i] == type;
    /* The pair types of MINLOC are named, and some have a gap. */
    return is_named && PMPI_Type_size(type, &size) == MPI_SUCCESS &&
           PMPI_Type_get_extent(type, &least, &extent) == MPI_SUCCESS && least == 0 && extent == size;
}
