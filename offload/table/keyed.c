/*
 * Adds keys to an image. So the code that generates images needs no keys, and an image can get new
 * keys without being generated again. Neighbours: image.c, whose section KEY is the last, so
 * nothing else moves. Pure; any thread.
 */
#include "offload/base/bytes.h"
#include "offload/table/layout.h"

/* Returns nonzero if this node takes part in `job`, rather than only forwarding its packets. */
static int runs(const uint8_t *image, const struct by_image_header *header, uint16_t job)
{
    struct by_image_entry entry;
    struct by_image_leaf leaf;

    for (uint32_t i = 0; i < header->count[BY_SECTION_ENTRY]; i++) {
        by_image_entry(image, i, &entry);
        if (entry.job == job)
            return 1;
    }
    for (uint32_t i = 0; i < header->count[BY_SECTION_LEAF]; i++) {
        by_image_leaf(image, i, &leaf);
        if (leaf.job == job)
            return 1;
    }
    return 0;
}

size_t by_image_keyed_bytes(const uint8_t *image, uint32_t key_count)
{
    struct by_image_header header;

    by_image_header(image, &header);
    header.count[BY_SECTION_KEY] = key_count;
    return by_image_bytes(header.count);
}

size_t by_image_put_keys(const uint8_t *image, const struct by_image_key *keys, uint32_t key_count,
                         uint8_t *out)
{
    struct by_image_header header;
    uint32_t next = 0;

    by_image_header(image, &header);
    by_copy(out, image, by_image_offset(header.count, BY_SECTION_KEY, 0));
    header.count[BY_SECTION_KEY] = 0;
    for (uint32_t i = 0; i < key_count; i++)
        header.count[BY_SECTION_KEY] += (uint32_t)runs(image, &header, keys[i].job);
    by_image_put_header(out, &header);
    for (uint32_t i = 0; i < key_count; i++)
        if (runs(image, &header, keys[i].job))
            by_image_put_key(out, next++, &keys[i]);
    by_image_seal(out);
    return by_image_bytes(header.count);
}
