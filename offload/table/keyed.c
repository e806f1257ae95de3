/*
 * Adds keys to an image. So the code that generates images needs no keys, and an image can get new
 * keys without being generated again. Neighbours: image.c, whose section KEY is the last, so
 * nothing else moves. Pure; any thread.
 */
#include "offload/base/bytes.h"
#include "offload/table/layout.h"

/* The trees of a generation: from `first` on, below `end`. */
struct tree_range {
    uint32_t first, end;
};

static struct tree_range trees_of(const uint8_t *image, const struct by_image_header *header,
                                  const struct by_image_key *key)
{
    struct tree_range range = {0, 0};
    uint32_t place = 0;
    struct by_image_job job;

    for (uint32_t i = 0; i < header->count[BY_SECTION_JOB] && place <= key->place; i++) {
        by_image_job(image, i, &job);
        if (job.job != key->job)
            continue;
        range = (struct tree_range){range.end, job.tree_count};
        place++;
    }
    return range;
}

/* Returns nonzero if this node takes part in the job in that generation, rather than only
 * forwarding its packets. */
static int runs(const uint8_t *image, const struct by_image_header *header, const struct by_image_key *key)
{
    struct tree_range range = trees_of(image, header, key);
    struct by_image_entry entry;
    struct by_image_leaf leaf;

    for (uint32_t i = 0; i < header->count[BY_SECTION_ENTRY]; i++) {
        by_image_entry(image, i, &entry);
        if (entry.job == key->job && entry.tree >= range.first && entry.tree < range.end)
            return 1;
    }
    for (uint32_t i = 0; i < header->count[BY_SECTION_LEAF]; i++) {
        by_image_leaf(image, i, &leaf);
        if (leaf.job == key->job && leaf.tree >= range.first && leaf.tree < range.end)
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
        header.count[BY_SECTION_KEY] += (uint32_t)runs(image, &header, &keys[i]);
    by_image_put_header(out, &header);
    for (uint32_t i = 0; i < key_count; i++)
        if (runs(image, &header, &keys[i]))
            by_image_put_key(out, next++, &keys[i]);
    by_image_seal(out);
    return by_image_bytes(header.count);
}
