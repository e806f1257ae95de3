/* Copies of tables for after a restart; see saved.h. Pure. */
#include "firmware/agent/saved.h"

#include "offload/base/bytes.h"
#include "offload/base/crc32c.h"
#include "offload/table/image.h"

#define MAGIC 0x42595441424c4531u /* "BYTABLE1" */

static uint32_t checksum(const uint8_t *copy, size_t bytes)
{
    return by_crc32c(by_crc32c(0, copy, 20), copy + BY_SAVED_HEADER_BYTES, bytes - BY_SAVED_HEADER_BYTES);
}

void by_saved_seal(uint8_t *copy, size_t bytes, uint64_t sequence)
{
    by_zero(copy, BY_SAVED_HEADER_BYTES);
    by_put64(copy, MAGIC);
    by_put64(copy + 8, sequence);
    by_put32(copy + 16, (uint32_t)(bytes - BY_SAVED_HEADER_BYTES));
    by_put32(copy + 20, checksum(copy, bytes));
}

uint64_t by_saved_bytes(const uint8_t header[BY_SAVED_HEADER_BYTES])
{
    return by_get64(header) == MAGIC ? BY_SAVED_HEADER_BYTES + (uint64_t)by_get32(header + 16) : 0;
}

const char *by_saved_check(const uint8_t *copy, size_t bytes, uint64_t *sequence)
{
    if (bytes < BY_SAVED_HEADER_BYTES || by_saved_bytes(copy) == 0)
        return "not a saved table";
    if (by_saved_bytes(copy) != bytes)
        return "truncated";
    if (by_get32(copy + 20) != checksum(copy, bytes))
        return "its checksum does not match";
    if (by_image_check(copy + BY_SAVED_HEADER_BYTES, bytes - BY_SAVED_HEADER_BYTES, NULL,
                       &(struct by_image_fault){0}) != 0)
        return "its image is not valid";
    *sequence = by_get64(copy + 8);
    return NULL;
}
