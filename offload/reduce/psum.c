/*
 * psum with the baseline's vectors: 16 bytes wide on x86-64 and AArch64, words elsewhere. For
 * headers, small payloads and callers without kernels. The kernels (struct by_reducer) have a psum
 * with their own vectors, which takes two thirds of the time on a payload in the first-level cache.
 */
#include "offload/reduce/psum.h"
#include "offload/reduce/reduce.h"

uint32_t by_psum(const void *data, size_t bytes)
{
    return by_words_sum(data, bytes);
}

uint32_t by_psum_copy(void *restrict dst, const void *restrict src, size_t bytes)
{
    return by_words_copy(dst, src, bytes);
}
