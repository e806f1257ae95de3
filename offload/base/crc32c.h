/* CRC32C (Castagnoli; RFC 3720 appendix B.4) of packet headers and table images. Pure; any
 * thread. */
#ifndef BY_BASE_CRC32C_H
#define BY_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* BY_CRC32C_WORD is the processor's CRC instruction on a word whose bytes in memory are in CRC
 * order. It is defined where the build's baseline has such an instruction. */
#if defined(__SSE4_2__)
#define BY_CRC32C_WORD(crc, word) __builtin_ia32_crc32di((crc), (word)) /* below 2^32 */
#define BY_CRC32C_BYTE(crc, byte) __builtin_ia32_crc32qi((crc), (byte))
#elif defined(__ARM_FEATURE_CRC32) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BY_CRC32C_WORD(crc, word) __builtin_aarch64_crc32cx((crc), (word))
#define BY_CRC32C_BYTE(crc, byte) __builtin_aarch64_crc32cb((crc), (byte))
#endif

/* Returns the CRC of `bytes` bytes at `data`. To chain calls, pass the previous result as `crc`;
 * start with 0. */
uint32_t by_crc32c(uint32_t crc, const void *data, size_t bytes);

/* Returns the CRC of 32 bytes, the part of a packet header that the CRC covers. Inline. */
static inline uint32_t by_crc32c_of_32(const uint8_t *data)
{
#if defined(BY_CRC32C_WORD)
    typedef uint64_t word_at __attribute__((aligned(1), may_alias));
    const word_at *word = (const word_at *)data;
    uint64_t crc = UINT32_MAX;

    for (unsigned i = 0; i < 4; i++)
        crc = BY_CRC32C_WORD(crc, word[i]);
    return ~(uint32_t)crc;
#else
    return by_crc32c(0, data, 32);
#endif
}

#endif
