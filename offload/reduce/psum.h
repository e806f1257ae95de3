/*
 * The psum loop, for kernels and psum.c: a sum of 32-bit words mod 2^32 in vectors of
 * BY_VECTOR_BYTES. The including source may define that; the default is 16, or 8 on processors
 * without such vectors, where more would only be more code. Pure; any thread.
 */
#ifndef BY_REDUCE_PSUM_H
#define BY_REDUCE_PSUM_H

#include <stddef.h>
#include <stdint.h>

#include "offload/base/assert.h"

#ifndef BY_VECTOR_BYTES
#if defined(__SSE2__) || defined(__ARM_NEON)
#define BY_VECTOR_BYTES 16
#else
#define BY_VECTOR_BYTES 8
#endif
#endif

BY_STATIC_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are read as they lie in memory");

typedef uint32_t by_words __attribute__((vector_size(BY_VECTOR_BYTES)));
typedef uint32_t by_words_at __attribute__((vector_size(BY_VECTOR_BYTES), aligned(1), may_alias));
typedef uint32_t by_short_words __attribute__((vector_size(16)));
typedef uint32_t by_short_words_at __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint32_t by_word_at __attribute__((aligned(1), may_alias));

/* Keeps a loaded vector in its register: the compiler cannot replace it by a second read of its
 * source. */
#if BY_VECTOR_BYTES >= 16 && defined(__x86_64__)
#define BY_HOLD(vector) __asm__("" : "+v"(vector))
#elif BY_VECTOR_BYTES >= 16 && defined(__aarch64__)
#define BY_HOLD(vector) __asm__("" : "+w"(vector))
#else
#define BY_HOLD(vector) __asm__("" : "+m"(vector))
#endif

#define BY_HOLD_WORD(word) __asm__("" : "+r"(word)) /* the same for an integer */

static inline uint32_t by_words_total(by_words words)
{
#if BY_VECTOR_BYTES == 64
    words += __builtin_shufflevector(words, words, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    words += __builtin_shufflevector(words, words, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    words += __builtin_shufflevector(words, words, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
#elif BY_VECTOR_BYTES == 32
    words += __builtin_shufflevector(words, words, 4, 5, 6, 7, 0, 1, 2, 3);
    words += __builtin_shufflevector(words, words, 2, 3, 0, 1, 6, 7, 4, 5);
#elif BY_VECTOR_BYTES == 16
    words += __builtin_shufflevector(words, words, 2, 3, 0, 1);
#endif
    return words[0] + words[1];
}

/* Returns the last 0 to 3 bytes as a word padded with zeros. */
static inline uint32_t by_word_tail(const uint8_t *bytes, size_t count)
{
    uint32_t word = 0;

    for (size_t i = 0; i < count; i++)
        word |= (uint32_t)bytes[i] << (8 * i);
    return word;
}

/* Returns the psum of `bytes` bytes at `data`. Four parallel sums hide the latency of the add. */
static inline uint32_t by_words_sum(const void *data, size_t bytes)
{
    const uint8_t *p = data;
    const by_words_at *v = data;
    by_words s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    uint32_t sum = 0;

    for (; bytes >= 4 * BY_VECTOR_BYTES; bytes -= 4 * BY_VECTOR_BYTES, v += 4) {
        s0 += v[0];
        s1 += v[1];
        s2 += v[2];
        s3 += v[3];
    }
    for (; bytes >= BY_VECTOR_BYTES; bytes -= BY_VECTOR_BYTES, v++)
        s0 += v[0];
    p = (const uint8_t *)v;
    for (; bytes >= 4; bytes -= 4, p += 4)
        sum += *(const by_word_at *)p;
    sum += by_word_tail(p, bytes);
    return sum + by_words_total((s0 + s1) + (s2 + s3));
}

#define BY_WORDS_COPY_PART(BYTES, TYPE, TALLY)                                                               \
    if (bytes & BYTES) {                                                                                     \
        typedef TYPE at __attribute__((aligned(1), may_alias));                                              \
        TYPE part = *(const at *)from;                                                                       \
        BY_HOLD_WORD(part);                                                                                  \
        TALLY;                                                                                               \
        *(at *)to = part;                                                                                    \
        from += BYTES;                                                                                       \
        to += BYTES;                                                                                         \
    }

/*
 * Copies `bytes` bytes and returns their psum, in one pass. The ranges must not overlap. The source
 * may change at any time, so each of its bytes is read once, and the sum always matches the copy.
 * Elements of up to 8 bytes are copied atomically.
 */
static inline uint32_t by_words_copy(void *restrict dst, const void *restrict src, size_t bytes)
{
    const uint8_t *from = src;
    uint8_t *to = dst;
    by_words s0 = {0}, s1 = {0};
    by_short_words sum_short = {0};
    uint32_t sum = 0, tail_shift = 0;

    for (; bytes >= 2 * BY_VECTOR_BYTES;
         bytes -= 2 * BY_VECTOR_BYTES, from += 2 * BY_VECTOR_BYTES, to += 2 * BY_VECTOR_BYTES) {
        by_words a = ((const by_words_at *)from)[0];
        by_words b = ((const by_words_at *)from)[1];

        BY_HOLD(a);
        BY_HOLD(b);
        s0 += a;
        s1 += b;
        ((by_words_at *)to)[0] = a;
        ((by_words_at *)to)[1] = b;
    }
    for (; bytes >= 16; bytes -= 16, from += 16, to += 16) {
        by_short_words words = *(const by_short_words_at *)from;

        BY_HOLD(words);
        sum_short += words;
        *(by_short_words_at *)to = words;
    }
    /* Copies the rest in parts of 8, 4, 2 and 1 bytes, so that no element is read in two parts. */
    BY_WORDS_COPY_PART(8, uint64_t, sum += (uint32_t)part + (uint32_t)(part >> 32));
    BY_WORDS_COPY_PART(4, uint32_t, sum += part);
    BY_WORDS_COPY_PART(2, uint16_t, (sum += part, tail_shift = 16));
    BY_WORDS_COPY_PART(1, uint8_t, sum += (uint32_t)part << tail_shift);
    sum += sum_short[0] + sum_short[1] + sum_short[2] + sum_short[3];
    return sum + by_words_total(s0 + s1);
}

#endif
