/*
 * Keys of jobs. Either the job has its own key (banyand draws and stores one for each generation of
 * each job), or the key is two SipHashes of job and generation under the lowering's seed, which
 * each run of a command draws again. Neighbour: emit.c writes keys into images. Any thread.
 */
#include "control/tables/keyed.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "control/fabric/build.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/base/siphash.h"
#include "offload/wire/seal.h"

/* Returns the value of a hex digit, or 16 if it is none. */
static unsigned digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c) : NULL;

    return at ? (unsigned)(at - digits) : 16;
}

static int read_seed(const char *text, uint8_t seed[BY_SIPHASH_KEY_BYTES], struct by_problem *problem)
{
    unsigned any = 0;

    for (unsigned i = 0; i < 2 * BY_SIPHASH_KEY_BYTES; i++) {
        unsigned value = digit(text[i]);

        if (value == 16)
            return by_problem_say(problem, BY_EINVAL, "a seed of keys has 32 hex digits; digit %u is invalid",
                                  i + 1);
        seed[i / 2] = (uint8_t)(seed[i / 2] << 4 | value);
        any |= value;
    }
    if (text[2 * BY_SIPHASH_KEY_BYTES] != 0 || any == 0)
        return by_problem_say(problem, BY_EINVAL, "a seed of keys has 32 hex digits that are not all zero");
    return 0;
}

int by_lower_keyed(struct by_lower_options *options, const char *cover, const char *seed,
                   struct by_problem *problem)
{
    if (cover == NULL || strcmp(cover, "header") == 0)
        options->cover = BY_COVER_HEADER;
    else if (strcmp(cover, "payload") == 0)
        options->cover = BY_COVER_PAYLOAD;
    else
        return by_problem_say(problem, BY_EINVAL, "tags cannot cover '%s': they cover header or payload",
                              cover);
    if (seed != NULL)
        return read_seed(seed, options->seed, problem);
    return by_lower_draw(options->seed, problem);
}

int by_lower_draw(uint8_t secret[BY_SIPHASH_KEY_BYTES], struct by_problem *problem)
{
    if (getrandom(secret, BY_SIPHASH_KEY_BYTES, 0) == (ssize_t)BY_SIPHASH_KEY_BYTES)
        return 0;
    return by_problem_say(problem, BY_EIO, "cannot get random bytes for keys: %s", strerror(errno));
}

void by_lower_key(const struct by_lower_options *options, const struct by_image_job *job,
                  const uint8_t *secret, struct by_image_key *key)
{
    struct by_siphash_key seed;
    uint8_t what[8] = "key";

    key->job = job->job;
    key->cover = options->cover;
    if (secret != NULL) {
        memcpy(key->key, secret, sizeof(key->key));
        return;
    }
    by_siphash_key_read(&seed, options->seed);
    by_put16(what + 4, job->job);
    by_put16(what + 6, job->gen);
    for (unsigned half = 0; half < 2; half++) {
        what[3] = (uint8_t)half;
        by_put64(key->key + 8 * half, by_siphash(&seed, what, sizeof(what)));
    }
}
