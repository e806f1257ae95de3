/* Keyed lowerings: what the command line says of keys, and the keys of jobs. Any thread. */
#ifndef BY_LOWER_KEYED_H
#define BY_LOWER_KEYED_H

#include "control/lower/lower.h"
#include "control/topology/topology.h"

/*
 * Makes `options` those of a keyed lowering. `cover`: "header" or "payload", NULL is "header". `seed`: 32 hex
 * digits, of which the keys are made; NULL: the system's random bytes, as all but tests want. 0; BY_EINVAL
 * (either text), BY_EIO (no random bytes) with `problem`.
 */
int by_lower_keyed(struct by_lower_options *options, const char *cover, const char *seed,
                   struct by_problem *problem);

/* The key of a job in this generation under `options`, whose cover is not none. */
void by_lower_key(const struct by_lower_options *options, uint16_t job, uint16_t gen,
                  struct by_image_key *key);

#endif
