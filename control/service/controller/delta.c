/*
 * The difference of two tables, with a hash table of short blocks as in rsync (Tridgell and
 * Mackerras, "The rsync algorithm", 1996). Unlike rsync it has the old image at hand, so it
 * compares each match byte by byte and extends it in both directions.
 */
#include "control/service/controller/delta.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "offload/base/bytes.h"

#define BLOCK_BYTES 16u
#define STEP_BYTES  4u
/* Copies shorter than this cost more as pieces than as literals. */
#define COPY_BYTES_MIN 24u

struct delta_index {
    uint32_t *place; /* by hash: offset in the old image + 1, 0 = none */
    uint32_t mask;
};

static uint32_t hash_of(const uint8_t *block, uint32_t mask)
{
    uint64_t hash = by_get64(block) * 0x9e3779b97f4a7c15u ^ by_get64(block + 8) * 0xc2b2ae3d27d4eb4fu;

    return (uint32_t)(hash >> 32) & mask;
}

/* Of equal blocks it keeps the first: they are mostly zeros, and `shift` finds the right ones. */
static struct delta_index index_make(const uint8_t *base, size_t bytes)
{
    struct delta_index index = {.mask = 255};

    while (index.mask < bytes / 2)
        index.mask = 2 * index.mask + 1;
    index.place = by_alloc((size_t)index.mask + 1, sizeof(*index.place));
    for (size_t at = 0; at + BLOCK_BYTES <= bytes; at += STEP_BYTES) {
        uint32_t *place = &index.place[hash_of(base + at, index.mask)];

        if (*place == 0)
            *place = (uint32_t)at + 1;
    }
    return index;
}

static uint32_t match(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes)
{
    size_t most = a_bytes < b_bytes ? a_bytes : b_bytes, count = 0;

    while (count < most && a[count] == b[count])
        count++;
    return (uint32_t)count;
}

uint32_t by_delta_make(const uint8_t *base, size_t base_bytes, const uint8_t *image, size_t bytes,
                       struct by_delta_piece **pieces)
{
    struct delta_index index = index_make(base, base_bytes);
    uint32_t count = 0, room = 0;
    size_t at = 0, start = 0; /* start: of the literals that no piece contains yet */
    int64_t shift = 0;        /* offset in the old image minus offset in the new one, at the last match */

    *pieces = NULL;
    while (at < bytes) { /* `at` may end up to 3 bytes past the end */
        int64_t same = (int64_t)at + shift;
        uint32_t from = 0, length = 0, back = 0;

        if (same >= 0 && same < (int64_t)base_bytes) {
            from = (uint32_t)same;
            length = match(image + at, bytes - at, base + from, base_bytes - from);
        }
        if (length < COPY_BYTES_MIN && at + BLOCK_BYTES <= bytes) {
            uint32_t place = index.place[hash_of(image + at, index.mask)];
            uint32_t other =
                place ? match(image + at, bytes - at, base + place - 1, base_bytes - (place - 1)) : 0;

            if (other > length) {
                from = place - 1;
                length = other;
            }
        }
        if (length < COPY_BYTES_MIN) {
            at = (at / STEP_BYTES + 1) * STEP_BYTES;
            continue;
        }
        while (back < at - start && back < from && image[at - back - 1] == base[from - back - 1])
            back++;
        shift = (int64_t)from - (int64_t)at;
        BY_GROW(*pieces, count, room);
        (*pieces)[count++] = (struct by_delta_piece){
            .literal = (uint32_t)(at - back - start), .from = from - back, .copy = length + back};
        at += length;
        start = at;
    }
    if (start < bytes) {
        BY_GROW(*pieces, count, room);
        (*pieces)[count++] = (struct by_delta_piece){.literal = (uint32_t)(bytes - start)};
    }
    free(index.place);
    return count;
}
