/*
 * ram: prints the memory that a small node and a small host provide to the core, which has none of
 * its own: one tree, window 4, chunks of 1024 bytes. Exits with 1 if the node's memory exceeds the
 * given limit (bytes). Single-threaded.
 */
#include <stdio.h>
#include <stdlib.h>

#include "offload/engine/engine.h"
#include "offload/reduce/reduce.h"

#define CHILDREN 8u

int main(int argc, char **argv)
{
    const uint32_t counts[BY_SECTION_COUNT] = {CHILDREN, 1, 1, CHILDREN}; /* ports, jobs, entries, children */
    struct by_engine_config config = {.slot_count_max = 4,
                                      .payload_max = 1024,
                                      .image_bytes_max = (uint32_t)by_image_bytes(counts),
                                      .entry_count_max = 1,
                                      .relay_count_max = 0,
                                      .isa = BY_ISA_SCALAR};
    size_t limit = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
    size_t bytes = by_engine_size(&config);

    if (limit == 0 || bytes == 0) {
        fprintf(stderr, "usage: ram LIMIT (bytes, more than 0)\n");
        return 2;
    }
    printf(
        "RAM of a node with one tree of %u children, window %u, chunks of %u bytes: %zu bytes (limit %zu)\n",
        CHILDREN, config.slot_count_max, config.payload_max, bytes, limit);
    config.slot_count_max = 8;
    printf("  each further slot %zu: two banks of a sum, a result and an objection\n",
           (by_engine_size(&config) - bytes) / 4);
    if (bytes > limit)
        printf("LIMIT: RAM of a node is %zu bytes, the limit is %zu\n", bytes, limit);
    return bytes > limit;
}
