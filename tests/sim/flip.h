/* Faults of memory: a bit of a slot that an engine holds is flipped between two steps.
 * Single-threaded. */
#ifndef TESTS_SIM_FLIP_H
#define TESTS_SIM_FLIP_H

#include "offload/base/prng.h"
#include "offload/engine/engine.h"

/*
 * Flips one bit in a bank of `engine` that holds a chunk (AGG, UP or DONE): of its header, but for
 * what only spaces repairs and the count of packets being sent, of its sum, its result, or of what
 * mode DET holds apart. 1 when there was such a bank.
 */
int flip_slot(struct by_engine *engine, struct by_prng *prng);

#endif
