/*
 * Inputs and right answers of collective calls, element by element, computed without any of the
 * code under test. Integers use their whole range (they wrap); floating-point inputs are small
 * integers whose sums, products and partial results are exact in every order, so that answers can
 * be compared bit by bit. Pure.
 */
#ifndef TESTS_SIM_ORACLE_H
#define TESTS_SIM_ORACLE_H

#include <stddef.h>
#include <stdint.h>

/* One call as every rank of a job makes it. */
struct plan_call {
    uint8_t collective, op, dtype;
    uint16_t root;
    uint64_t count;
    int in_place;
    uint8_t mode; /* enum by_mode; 0 is FAST */
};

/* Elements of the send buffer of a rank, and of its receive buffer. */
uint64_t oracle_send_count(const struct plan_call *call, int ranks);
uint64_t oracle_recv_count(const struct plan_call *call, int ranks);
/* Fills the send buffer of `rank` with floats of any magnitudes from 2^-16 to 2^16. */
void oracle_fill_rough(const struct plan_call *call, uint64_t seed, int rank, int ranks, void *send);
/* 1 when the result of `call` depends on the order of its operands. */
int oracle_is_ordered(const struct plan_call *call);
/* Fills the send buffer of `rank`. */
void oracle_fill(const struct plan_call *call, uint64_t seed, int rank, int ranks, void *send);
/* The answer over all ranks: malloc'd; of reduce-scatter and allgather the concatenation of all
 * shards. */
uint8_t *oracle_answer(const struct plan_call *call, uint64_t seed, int ranks);
/* Where in the answer the receive buffer of `rank` begins (elements). */
uint64_t oracle_offset(const struct plan_call *call, int rank);

#endif
