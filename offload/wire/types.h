/*
 * Protocol constants that the whole tree shares: operators, element types, collectives, modes. One
 * X-list each; the values are on the wire, and zero is invalid.
 */
#ifndef BY_WIRE_TYPES_H
#define BY_WIRE_TYPES_H

/* X(NAME, value, "name") */
#define BY_OP_LIST(X)                                                                                        \
    X(SUM, 1, "sum")                                                                                         \
    X(PROD, 2, "prod")                                                                                       \
    X(MIN, 3, "min")                                                                                         \
    X(MAX, 4, "max")                                                                                         \
    X(BAND, 5, "band")                                                                                       \
    X(BOR, 6, "bor")                                                                                         \
    X(BXOR, 7, "bxor")

/* X(NAME, value, "name", bytes of an element) */
#define BY_DTYPE_LIST(X)                                                                                     \
    X(I8, 1, "i8", 1)                                                                                        \
    X(U8, 2, "u8", 1)                                                                                        \
    X(I32, 3, "i32", 4)                                                                                      \
    X(U32, 4, "u32", 4)                                                                                      \
    X(I64, 5, "i64", 8)                                                                                      \
    X(U64, 6, "u64", 8)                                                                                      \
    X(F16, 7, "f16", 2)                                                                                      \
    X(BF16, 8, "bf16", 2)                                                                                    \
    X(F32, 9, "f32", 4)                                                                                      \
    X(F64, 10, "f64", 8)

/*
 * The direction of a collective's data in its trees: only to the root, only from the root, or both.
 */
enum by_data_way { BY_DATA_UP = 1, BY_DATA_DOWN, BY_DATA_BOTH };

/* X(NAME, value, "name", has a root, data are in shards of ranks, reduces, way). To add a
 * collective, add a row here and its cases in the switches over enum by_collective; the compiler
 * reports those. */
#define BY_COLLECTIVE_LIST(X)                                                                                \
    X(ALLREDUCE, 1, "allreduce", 0, 0, 1, BY_DATA_BOTH)                                                      \
    X(REDUCE_SCATTER, 2, "reduce-scatter", 0, 1, 1, BY_DATA_UP)                                              \
    X(ALLGATHER, 3, "allgather", 0, 1, 0, BY_DATA_DOWN)                                                      \
    X(BROADCAST, 4, "broadcast", 1, 0, 0, BY_DATA_DOWN)                                                      \
    X(REDUCE, 5, "reduce", 1, 0, 1, BY_DATA_UP)                                                              \
    X(BARRIER, 6, "barrier", 0, 0, 0, BY_DATA_BOTH)

/* The order of floating-point sums (docs/arithmetic.md): FAST: order of arrival; DET: order of the
 * children; EXACT: the result does not depend on the order. X(NAME, value, "name") */
#define BY_MODE_LIST(X)                                                                                      \
    X(FAST, 1, "fast")                                                                                       \
    X(DET, 2, "det")                                                                                         \
    X(EXACT, 3, "exact")

#define X(name, value, text) BY_OP_##name = (value),
enum by_op { BY_OP_LIST(X) };
#undef X
#define X(name, value, text, bytes) BY_DTYPE_##name = (value),
enum by_dtype { BY_DTYPE_LIST(X) };
#undef X
#define X(name, value, text, root, shards, reduces, way) BY_COLLECTIVE_##name = (value),
enum by_collective { BY_COLLECTIVE_LIST(X) };
#undef X
#define X(name, value, text) BY_MODE_##name = (value),
enum by_mode { BY_MODE_LIST(X) };
#undef X

/* One more than the largest value of each list: the length of arrays that values index. These are
 * not members of the enums above, so that a switch over one of those needs no case for them. */
#define X(...) +1
enum { BY_OP_COUNT = 1 BY_OP_LIST(X) };
enum { BY_DTYPE_COUNT = 1 BY_DTYPE_LIST(X) };
enum { BY_COLLECTIVE_COUNT = 1 BY_COLLECTIVE_LIST(X) };
enum { BY_MODE_COUNT = 1 BY_MODE_LIST(X) };
#undef X

/* Returns the bytes of one element of `dtype`, 0 for an unknown one. */
unsigned by_dtype_bytes(unsigned dtype);
/* Return properties of a collective from its row; 0 for an unknown one. */
int by_collective_is_rooted(unsigned collective);
int by_collective_is_sharded(unsigned collective);
int by_collective_reduces(unsigned collective);
unsigned by_collective_way(unsigned collective); /* enum by_data_way */
/* Return names for messages and command lines; "?" for an unknown value. Static memory. */
const char *by_op_name(unsigned op);
const char *by_dtype_name(unsigned dtype);
const char *by_collective_name(unsigned collective);
const char *by_mode_name(unsigned mode);
/* Return the value for a name, 0 for an unknown name. */
unsigned by_op_from_name(const char *name);
unsigned by_dtype_from_name(const char *name);
unsigned by_collective_from_name(const char *name);
unsigned by_mode_from_name(const char *name);

#endif
