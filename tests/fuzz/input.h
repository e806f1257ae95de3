/*
 * Shared by all fuzz targets: reading decisions from the fuzzer's bytes, and a fabric whose table
 * images the engine and the endpoint load. A target is one function, LLVMFuzzerTestOneInput, which
 * is called repeatedly in one process and must leave no state behind.
 */
#ifndef TESTS_FUZZ_INPUT_H
#define TESTS_FUZZ_INPUT_H

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/fabric.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *data;
    size_t size;
};

/* Returns the next bytes as a number; zeros after the end of the input. */
static inline uint32_t input_bytes(struct input *input, unsigned count)
{
    uint32_t value = 0;

    while (count-- > 0) {
        value = value << 8 | (input->size ? *input->data : 0);
        if (input->size) {
            input->data++;
            input->size--;
        }
    }
    return value;
}

/* Stops the fuzzer with this input if a guarantee of an interface is broken. */
#define FUZZ_CHECK(condition)                                                                                \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            abort();                                                                                         \
    } while (0)

/* The number of packets or messages that a target has processed; printed when the process ends. */
static uint64_t fuzz_counted;

static inline void fuzz_tell(void)
{
    fprintf(stderr, "counted: %" PRIu64 "\n", fuzz_counted);
}

static inline void fuzz_count(uint64_t more)
{
    if (fuzz_counted == 0 && more > 0)
        atexit(fuzz_tell);
    fuzz_counted += more;
}

/* One spine over two leaves with two hosts each; two jobs with two trees each, small windows and
 * payloads. */
void fuzz_fabric(struct fabric *fabric);
#define FUZZ_WINDOW  4u
#define FUZZ_PAYLOAD 64u
#define FUZZ_LEAF    "leaf0"

/* Draws a header from the input, similar to those of job 1 of fuzz_fabric, so that many packets
 * pass the first checks. */
struct by_header;
void fuzz_header(struct input *input, struct by_header *header, uint32_t base_seq);

/* Returns FUZZ_COVER from the environment as enum by_cover: how jobs are keyed in this process; 0
 * if unset. */
uint8_t fuzz_cover(void);
/* Writes `header` into `packet`, before `bytes` of payload. In a keyed job it gets the tag of
 * neighbour `from`, a child of the node with this `image`, or its parent. */
void fuzz_encode(const uint8_t *image, struct by_header *header, uint8_t *packet, uint32_t bytes,
                 uint16_t from, int is_parent);

#endif
