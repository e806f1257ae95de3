/* Memory faults: flips a bit of a slot of an engine between two steps. Single-threaded. */
#ifndef TESTS_SIM_FLIP_H
#define TESTS_SIM_FLIP_H

#include "offload/base/prng.h"
#include "offload/engine/engine.h"

/*
 * Flips one bit in a bank of `engine` that holds a chunk (AGG, UP or DONE): in its header (except
 * fields that only space repairs, and the count of packets being sent), its sum, its result, or the
 * state of mode DET. Returns 1 if there was such a bank.
 */
int flip_slot(struct by_engine *engine, struct by_prng *prng);

#endif
