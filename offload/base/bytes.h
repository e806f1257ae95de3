/*
 * Integers as bytes in network byte order, with any alignment. All code reads and writes packets
 * and images through these functions. The file also declares the core's own copy, clear and compare
 * functions, because the core is built without a C library.
 */
#ifndef BY_BASE_BYTES_H
#define BY_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>

static inline uint16_t by_get16(const uint8_t *p)
{
    return (uint16_t)((uint32_t)p[0] << 8 | p[1]);
}

static inline uint32_t by_get32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t by_get64(const uint8_t *p)
{
    return (uint64_t)by_get32(p) << 32 | by_get32(p + 4);
}

static inline void by_put16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static inline void by_put32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

static inline void by_put64(uint8_t *p, uint64_t v)
{
    by_put32(p, (uint32_t)(v >> 32));
    by_put32(p + 4, (uint32_t)v);
}

/* Copies `bytes` from src to dst; they must not overlap. */
void by_copy(void *restrict dst, const void *restrict src, size_t bytes);
/* Sets `bytes` bytes at dst to zero. */
void by_zero(void *dst, size_t bytes);
/* Returns 1 when the two ranges hold the same bytes, else 0. Not constant-time. */
int by_equal(const void *a, const void *b, size_t bytes);

#endif
