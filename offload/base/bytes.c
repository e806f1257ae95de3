/* Copy, clear and compare without a C library. The code uses vector types of 32 bytes, which the
 * compiler lowers to the instructions of the target. */
#include "offload/base/bytes.h"

typedef uint64_t by_block __attribute__((vector_size(32), aligned(1), may_alias));
typedef uintptr_t by_word __attribute__((aligned(1), may_alias));

void by_copy(void *restrict dst, const void *restrict src, size_t bytes)
{
    uint8_t *d = dst;
    const uint8_t *s = src;

    for (; bytes >= sizeof(by_block); bytes -= sizeof(by_block)) {
        *(by_block *)d = *(const by_block *)s;
        d += sizeof(by_block);
        s += sizeof(by_block);
    }
    for (; bytes > 0; bytes--)
        *d++ = *s++;
}

void by_zero(void *dst, size_t bytes)
{
    uint8_t *d = dst;

    for (; bytes >= sizeof(by_block); bytes -= sizeof(by_block)) {
        *(by_block *)d = (by_block){0};
        d += sizeof(by_block);
    }
    for (; bytes > 0; bytes--)
        *d++ = 0;
}

int by_equal(const void *a, const void *b, size_t bytes)
{
    const uint8_t *x = a;
    const uint8_t *y = b;

    for (; bytes >= sizeof(by_word); bytes -= sizeof(by_word)) {
        if (*(const by_word *)x != *(const by_word *)y)
            return 0;
        x += sizeof(by_word);
        y += sizeof(by_word);
    }
    for (; bytes > 0; bytes--)
        if (*x++ != *y++)
            return 0;
    return 1;
}
