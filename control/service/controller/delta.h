/*
 * A table as a difference to another table: changed bytes are sent, the others are copied at the
 * switch. The tables of a switch before and after a change of its jobs differ in a few records
 * only. Pure, except that it allocates memory.
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
 * Finds the pieces that make `image` out of `base`; their literals and copies add up to `bytes`.
 * Returns their number; the caller frees *pieces. Linear in both sizes, which are below 2^31.
 * Accepts arbitrary bytes; works best on records whose sizes are multiples of 4 bytes.
 */
uint32_t by_delta_make(const uint8_t *base, size_t base_bytes, const uint8_t *image, size_t bytes,
                       struct by_delta_piece **pieces);

#endif
