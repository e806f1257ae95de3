/* Keys of jobs, and the key options of the command line. Any thread. */
#ifndef BY_TABLES_KEYED_H
#define BY_TABLES_KEYED_H

#include "control/fabric/topology.h"
#include "control/tables/lower.h"
#include "offload/base/siphash.h"

/*
 * Turns `options` into those of a keyed lowering. `cover`: "header" or "payload"; NULL means
 * "header". `seed`: 32 hex digits from which the keys are derived; NULL, which all callers but
 * tests use, takes random bytes from the system. Returns 0, or with `problem` filled: BY_EINVAL
 * (invalid cover or seed), BY_EIO (no random bytes).
 */
int by_lower_keyed(struct by_lower_options *options, const char *cover, const char *seed,
                   struct by_problem *problem);

/*
 * Draws a key or a seed from the system's random bytes. Returns 0, or BY_EIO with `problem` filled.
 */
int by_lower_draw(uint8_t secret[BY_SIPHASH_KEY_BYTES], struct by_problem *problem);

/*
 * Sets the key of a job under `options`, whose cover is not none: `secret`, or if that is NULL two
 * SipHashes of job and generation under the seed.
 */
void by_lower_key(const struct by_lower_options *options, const struct by_image_job *job,
                  const uint8_t *secret, struct by_image_key *key);

#endif
