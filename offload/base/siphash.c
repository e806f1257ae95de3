/* SipHash-2-4 of any number of bytes. Pure; any thread. */
#include "offload/base/siphash.h"

void by_siphash_key_read(struct by_siphash_key *key, const uint8_t bytes[BY_SIPHASH_KEY_BYTES])
{
    key->k0 = by_siphash_get(bytes);
    key->k1 = by_siphash_get(bytes + 8);
}

uint64_t by_siphash(const struct by_siphash_key *key, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    struct by_siphash_state state;
    uint64_t rest = 0;
    size_t at = 0;

    by_siphash_begin(&state, key);
    for (; bytes - at >= 8; at += 8)
        by_siphash_word(&state, by_siphash_get(p + at));
    for (unsigned i = 0; at + i < bytes; i++)
        rest |= (uint64_t)p[at + i] << 8 * i;
    return by_siphash_end(&state, rest, bytes);
}
