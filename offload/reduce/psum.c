/*
 * psum of a packet's payload, with the baseline's vectors: 16 bytes wide on x86-64 and AArch64, words
 * elsewhere. Reading from the first-level cache bounds it, so that wider vectors would gain little and a
 * choice at run time would cost a call.
 */
#include "offload/reduce/psum.h"
#include "offload/reduce/reduce.h"

uint32_t by_psum(const void *data, size_t bytes)
{
    return by_words_sum(data, bytes);
}

uint32_t by_psum_copy(void *restrict dst, const void *restrict src, size_t bytes)
{
    const uint8_t *from = src;
    uint8_t *to = dst;
    by_words s0 = {0}, s1 = {0};
    uint32_t sum = 0;

    for (; bytes >= 2 * BY_VECTOR_BYTES;
         bytes -= 2 * BY_VECTOR_BYTES, from += 2 * BY_VECTOR_BYTES, to += 2 * BY_VECTOR_BYTES) {
        by_words a = ((const by_words_at *)from)[0];
        by_words b = ((const by_words_at *)from)[1];

        s0 += a;
        s1 += b;
        ((by_words_at *)to)[0] = a;
        ((by_words_at *)to)[1] = b;
    }
    for (; bytes >= 4; bytes -= 4, from += 4, to += 4) {
        uint32_t word = *(const by_word_at *)from;

        sum += word;
        *(by_word_at *)to = word;
    }
    sum += by_word_tail(from, bytes);
    for (size_t i = 0; i < bytes; i++)
        to[i] = from[i];
    return sum + by_words_total(s0 + s1);
}
