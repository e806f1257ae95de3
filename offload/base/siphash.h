/*
 * SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012): a keyed hash of 64
 * bits that cannot be predicted without the key. Used for the tags of packets and for deriving keys
 * from keys. Pure; any thread; its running time depends on the length alone.
 */
#ifndef BY_BASE_SIPHASH_H
#define BY_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define BY_SIPHASH_KEY_BYTES 16u

struct by_siphash_key {
    uint64_t k0, k1;
};

/* Reads a key from 16 bytes, in the byte order of the paper. */
void by_siphash_key_read(struct by_siphash_key *key, const uint8_t bytes[BY_SIPHASH_KEY_BYTES]);

/* Returns the hash of `bytes` bytes at `data`. */
uint64_t by_siphash(const struct by_siphash_key *key, const void *data, size_t bytes);

/* Incremental interface for messages that are built word by word: call begin, then word for each
 * 8-byte word, then end with the remaining bytes and the message's length. */
struct by_siphash_state {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t by_siphash_turn(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

static inline void by_siphash_round(struct by_siphash_state *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = by_siphash_turn(s->v1, 13) ^ s->v0;
    s->v3 = by_siphash_turn(s->v3, 16) ^ s->v2;
    s->v0 = by_siphash_turn(s->v0, 32);
    s->v2 += s->v1;
    s->v0 += s->v3;
    s->v1 = by_siphash_turn(s->v1, 17) ^ s->v2;
    s->v3 = by_siphash_turn(s->v3, 21) ^ s->v0;
    s->v2 = by_siphash_turn(s->v2, 32);
}

static inline void by_siphash_begin(struct by_siphash_state *s, const struct by_siphash_key *key)
{
    s->v0 = key->k0 ^ 0x736f6d6570736575u;
    s->v1 = key->k1 ^ 0x646f72616e646f6du;
    s->v2 = key->k0 ^ 0x6c7967656e657261u;
    s->v3 = key->k1 ^ 0x7465646279746573u;
}

/* `word`: eight bytes of the message, the first byte lowest. */
static inline void by_siphash_word(struct by_siphash_state *s, uint64_t word)
{
    s->v3 ^= word;
    by_siphash_round(s);
    by_siphash_round(s);
    s->v0 ^= word;
}

/* `rest`: the remaining bytes of the message, fewer than eight; `bytes`: the length of the
 * message. */
static inline uint64_t by_siphash_end(struct by_siphash_state *s, uint64_t rest, size_t bytes)
{
    by_siphash_word(s, (uint64_t)bytes << 56 | rest);
    s->v2 ^= 0xff;
    for (unsigned i = 0; i < 4; i++)
        by_siphash_round(s);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* Reads eight bytes as a word for by_siphash_word. */
static inline uint64_t by_siphash_get(const uint8_t *p)
{
    return p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 |
           (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

#endif
