/* CRC32C (Castagnoli; RFC 3720 appendix B.4): of packet headers and table images. Pure; any thread. */
#ifndef BY_BASE_CRC32C_H
#define BY_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The CRC of `bytes` at `data`; chain by giving the previous result as `crc`, 0 to start. */
uint32_t by_crc32c(uint32_t crc, const void *data, size_t bytes);

#endif
