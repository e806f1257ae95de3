/*
 * The expected result of a reduction, computed one element at a time from the definition of the
 * formats: from fields to exact numbers, and from numbers to fields with one rounding. Shares no
 * code with offload/reduce. Single-threaded, like the tests that use it.
 */
#ifndef BY_TESTS_REDUCE_ORACLE_H
#define BY_TESTS_REDUCE_ORACLE_H

#include <stddef.h>
#include <stdint.h>

/* Returns the bytes of an element on the wire and in a slot. */
unsigned oracle_element_bytes(unsigned dtype);
unsigned oracle_acc_bytes(unsigned dtype);
int oracle_is_float(unsigned dtype);
/* Returns 1 if `op` is defined on `dtype`. */
int oracle_defined(unsigned op, unsigned dtype);

/* Elements are their bits in the low end of an integer: as on the wire (`in`, result of store) or
 * as in a slot (`acc`). */
uint64_t oracle_load(unsigned dtype, uint64_t in);
uint64_t oracle_apply(unsigned op, unsigned dtype, uint64_t acc, uint64_t in);
uint64_t oracle_store(unsigned dtype, uint64_t acc);

/* Returns the value of the bits of an f16, which must not be a NaN. Infinities give HUGE_VAL. */
double oracle_f16_value(uint16_t bits);
/* Returns the f16 or bf16 nearest to the f32 `bits`, ties to even, with the NaN rule of
 * offload/reduce/half.h. */
uint16_t oracle_f16_from_f32(uint32_t bits);
uint16_t oracle_bf16_from_f32(uint32_t bits);

uint32_t oracle_psum(const void *data, size_t bytes);

#endif
