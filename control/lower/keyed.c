/*
 * Keys of jobs. Each lowering has a seed; a job's key is two SipHashes of job and generation under it, so
 * that whoever lowers again, for another generation, needs no key of before. Neighbours: emit.c puts keys
 * into images. Any thread.
 */
#include "control/lower/keyed.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "control/topology/build.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/base/siphash.h"
#include "offload/wire/seal.h"

/* The value of a hex digit, or 16. */
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
            return by_problem_say(problem, BY_EINVAL, "a seed of keys is 32 hex digits; digit %u is none",
                                  i + 1);
        seed[i / 2] = (uint8_t)(seed[i / 2] << 4 | value);
        any |= value;
    }
    if (text[2 * BY_SIPHASH_KEY_BYTES] != 0 || any == 0)
        return by_problem_say(problem, BY_EINVAL, "a seed of keys is 32 hex digits that are not all zero");
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
        return by_problem_say(problem, BY_EINVAL,
                              "tags do not cover '%s': they cover header, or payload as well", cover);
    if (seed != NULL)
        return read_seed(seed, options->seed, problem);
    if (getrandom(options->seed, sizeof(options->seed), 0) != (ssize_t)sizeof(options->seed))
        return by_problem_say(problem, BY_EIO, "no random bytes for keys: %s", strerror(errno));
    return 0;
}

void by_lower_key(const struct by_lower_options *options, uint16_t job, uint16_t gen,
                  struct by_image_key *key)
{
    struct by_siphash_key seed;
    uint8_t what[8] = "key";

    by_siphash_key_read(&seed, options->seed);
    by_put16(what + 4, job);
    by_put16(what + 6, gen);
    for (unsigned half = 0; half < 2; half++) {
        what[3] = (uint8_t)half;
        by_put64(key->key + 8 * half, by_siphash(&seed, what, sizeof(what)));
    }
    key->job = job;
    key->cover = options->cover;
}
