/* CRC32C: uses the processor's instruction where the build's baseline has one, and elsewhere a
 * table of nibbles (64 bytes). */
#include "offload/base/crc32c.h"

#if defined(BY_CRC32C_WORD)

typedef uint64_t by_word64 __attribute__((aligned(1), may_alias));

uint32_t by_crc32c(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *p = data;

    crc = ~crc;
    for (; bytes >= 8; bytes -= 8, p += 8)
        crc = BY_CRC32C_WORD(crc, *(const by_word64 *)p);
    for (; bytes > 0; bytes--)
        crc = BY_CRC32C_BYTE(crc, *p++);
    return ~crc;
}

#else

static const uint32_t nibble[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t by_crc32c(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *p = data;

    crc = ~crc;
    for (; bytes > 0; bytes--) {
        crc ^= *p++;
        crc = crc >> 4 ^ nibble[crc & 15];
        crc = crc >> 4 ^ nibble[crc & 15];
    }
    return ~crc;
}

#endif
