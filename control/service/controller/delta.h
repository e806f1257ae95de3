/*
 * A table as pieces of another one: what has changed travels, the rest is copied where it lies.
 * Tables of one switch before and after a change of its job are alike but for a few records. Pure
 * but for memory.
 */
#ifndef BY_SERVICE_CONTROLLER_DELTA_H
#define BY_SERVICE_CONTROLLER_DELTA_H

#include <stddef.h>
#include <stdint.h>

/* `literal` bytes of the new image, in order, then `copy` bytes of the old one at `from`. */
struct by_delta_piece {
    uint32_t literal, from, copy;
};

/*
 * The pieces that make `image` out of `base`: their literals and copies add up to `bytes`. *pieces
 * is the caller's to free. Linear in both sizes, which are below 2^31; any bytes will do, records
 * of multiples of 4 bytes are found best.
 */
uint32_t by_delta_make(const uint8_t *base, size_t base_bytes, const uint8_t *image, size_t bytes,
                       struct by_delta_piece **pieces);

#endif
