/* Keyed lowerings: what the command line says of keys, and the keys of jobs. Any thread. */
#ifndef BY_TABLES_KEYED_H
#define BY_TABLES_KEYED_H

#include "control/fabric/topology.h"
#include "control/tables/lower.h"
#include "offload/base/siphash.h"

/*
 * Makes `options` those of a keyed lowering. `cover`: "header" or "payload", NULL is "header".
 * `seed`: 32 hex digits, of which the keys are made; NULL: the system's random bytes, as all but
 * tests want. 0; BY_EINVAL (either text), BY_EIO (no random bytes) with `problem`.
 */
int by_lower_keyed(struct by_lower_options *options, const char *cover, const char *seed,
                   struct by_problem *problem);

/* Draws a key, or a seed, from the system's random bytes. 0, or BY_EIO with `problem`. */
int by_lower_draw(uint8_t secret[BY_SIPHASH_KEY_BYTES], struct by_problem *problem);

/* The key of a job under `options`, whose cover is not none: `secret`; where that is NULL, two
 * SipHashes of job and generation under the seed. */
void by_lower_key(const struct by_lower_options *options, const struct by_image_job *job,
                  const uint8_t *secret, struct by_image_key *key);

#endif
