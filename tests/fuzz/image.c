/* Table images of arbitrary bytes: the check never reads beyond them, and an engine that stages one
 * remains valid. */
#include <stdio.h>

#include "offload/base/bytes.h"
#include "offload/base/crc32c.h"
#include "offload/engine/engine.h"
#include "offload/reduce/reduce.h"
#include "tests/fuzz/input.h"
#include "tests/unit/offload/table/sample.h"

static void read_all(const uint8_t *image)
{
    struct by_image_header header;
    struct by_image_port port;
    struct by_image_job job;
    struct by_image_entry entry;
    struct by_image_child child;
    struct by_image_leaf leaf;
    struct by_image_relay relay;
    struct by_image_hop hop;
    struct by_image_name name;
    struct by_image_key key;

    by_image_header(image, &header);
    for (uint32_t i = 0; i < header.count[BY_SECTION_PORT]; i++)
        by_image_port(image, i, &port);
    for (uint32_t i = 0; i < header.count[BY_SECTION_JOB]; i++)
        by_image_job(image, i, &job);
    for (uint32_t i = 0; i < header.count[BY_SECTION_ENTRY]; i++) {
        by_image_entry(image, i, &entry);
        FUZZ_CHECK(entry.child_count >= 1 && entry.child_count <= BY_CHILDREN_MAX);
        FUZZ_CHECK((uint64_t)entry.first_child + entry.child_count <= header.count[BY_SECTION_CHILD]);
        FUZZ_CHECK((uint64_t)entry.slot_base + entry.window <= header.slot_count);
    }
    for (uint32_t i = 0; i < header.count[BY_SECTION_CHILD]; i++) {
        by_image_child(image, i, &child);
        FUZZ_CHECK(child.port == BY_PORT_LOCAL || child.port < header.count[BY_SECTION_PORT]);
    }
    for (uint32_t i = 0; i < header.count[BY_SECTION_LEAF]; i++)
        by_image_leaf(image, i, &leaf);
    for (uint32_t i = 0; i < header.count[BY_SECTION_RELAY]; i++) {
        by_image_relay(image, i, &relay);
        FUZZ_CHECK(relay.port < header.count[BY_SECTION_PORT]);
    }
    for (uint32_t i = 0; i < header.count[BY_SECTION_HOP]; i++)
        by_image_hop(image, i, &hop);
    for (uint32_t i = 0; i < header.count[BY_SECTION_NAME]; i++)
        by_image_name(image, i, &name);
    for (uint32_t i = 0; i < header.count[BY_SECTION_KEY]; i++)
        by_image_key(image, i, &key);
}

static void load(const uint8_t *image, size_t bytes)
{
    const struct by_engine_config config = {.slot_count_max = 64,
                                            .payload_max = 1408,
                                            .image_bytes_max = 8192,
                                            .entry_count_max = 16,
                                            .relay_count_max = 16,
                                            .repair_interval_ns = 1000,
                                            .isa = BY_ISA_SCALAR};
    size_t need = by_engine_size(&config), active;
    void *memory = aligned_alloc(64, (need + 63) / 64 * 64);
    struct by_engine *engine;
    struct by_image_fault fault;

    FUZZ_CHECK(need > 0 && memory != NULL && by_engine_init(&engine, memory, need, &config) == 0);
    if (by_engine_stage(engine, image, bytes, &fault) == 0) {
        FUZZ_CHECK(by_engine_commit(engine) == 0);
        FUZZ_CHECK(by_engine_image(engine, &active) != NULL && active == bytes);
        FUZZ_CHECK(by_engine_stage(engine, image, bytes, &fault) == 0);
        by_engine_abort(engine);
    } else {
        FUZZ_CHECK(fault.section != NULL && fault.what != NULL);
        FUZZ_CHECK(by_engine_commit(engine) < 0);
    }
    free(memory);
}

static void check(const uint8_t *image, size_t bytes)
{
    struct by_image_fault fault = {0};

    if (by_image_check(image, bytes, NULL, &fault) == 0) {
        read_all(image);
        FUZZ_CHECK(by_image_addresses_check(image, &fault) == 0 || fault.what != NULL);
    } else
        FUZZ_CHECK(fault.section != NULL && fault.what != NULL);
    load(image, bytes);
}

/* Tests the input as an image, then a valid image with some bytes changed and the CRC renewed. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t image[SAMPLE_BYTES_MAX];
    struct input input = {data, size};
    struct table_sample sample;
    size_t bytes;
    uint8_t *copy = malloc(size ? size : 1); /* exact size, so that reads beyond it are detected */

    FUZZ_CHECK(copy != NULL);
    if (size)
        memcpy(copy, data, size);
    check(copy, size);
    free(copy);
    if (size > 0 && data[size - 1] & 1)
        sample_fill_ipv6(&sample);
    else
        sample_fill(&sample);
    bytes = sample_write(&sample, image);
    while (input.size >= 3) {
        uint32_t at = input_bytes(&input, 2);

        image[at % bytes] = (uint8_t)input_bytes(&input, 1);
    }
    sample_reseal(image, bytes);
    check(image, bytes);
    return 0;
}
