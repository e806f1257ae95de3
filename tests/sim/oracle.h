/*
 * Inputs and correct answers of collective calls, element by element, computed without the code
 * under test. Integers use their whole range (they wrap). Floating-point inputs are small integers
 * whose sums, products and partial results are exact in every order, so answers can be compared bit
 * by bit. Pure.
 */
#ifndef TESTS_SIM_ORACLE_H
#define TESTS_SIM_ORACLE_H

#include <stddef.h>
#include <stdint.h>

/* A call as made by every rank of a job. */
struct plan_call {
    uint8_t collective, op, dtype;
    uint16_t root;
    uint64_t count;
    int in_place;
    uint8_t mode; /* enum by_mode; 0 is FAST */
};

/* Return the numbers of elements of a rank's send buffer and receive buffer. */
uint64_t oracle_send_count(const struct plan_call *call, int ranks);
uint64_t oracle_recv_count(const struct plan_call *call, int ranks);
/* Fills the send buffer of `rank` with floats of magnitudes from 2^-16 to 2^16. */
void oracle_fill_rough(const struct plan_call *call, uint64_t seed, int rank, int ranks, void *send);
/* Returns 1 if the result of `call` depends on the order of its operands. */
int oracle_is_ordered(const struct plan_call *call);
/* Fills the send buffer of `rank`. */
void oracle_fill(const struct plan_call *call, uint64_t seed, int rank, int ranks, void *send);
/* Returns the answer over all ranks, malloc'd. For reduce-scatter and allgather it is the
 * concatenation of all shards. */
uint8_t *oracle_answer(const struct plan_call *call, uint64_t seed, int ranks);
/* Returns the offset in the answer of the receive buffer of `rank` (elements). */
uint64_t oracle_offset(const struct plan_call *call, int rank);

#endif
