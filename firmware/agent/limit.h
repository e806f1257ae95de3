/* Compares a table with the limits of a switch: which limit it exceeds, which job holds how much of
 * that resource, and what would fit. Pure; any thread. */
#ifndef BY_FIRMWARE_AGENT_LIMIT_H
#define BY_FIRMWARE_AGENT_LIMIT_H

#include <stdint.h>

#include "firmware/agent/text.h"

/* X(NAME, "word", "remedy"): the resources of a switch, in the order in which they are checked. */
#define BY_RESOURCE_LIST(X)                                                                                  \
    X(PORTS, "ports",                                                                                        \
      "start the switch with all its ports (--iface, --vdev, --pci), or check which node the "               \
      "table is for")                                                                                        \
    X(PAYLOAD, "bytes of a chunk", "use a smaller --mtu, or raise the MTU of the switch's ports")            \
    X(SLOTS, "slots", "use a smaller --window, end a job, or start the switch with more --slots")            \
    X(ENTRIES, "entries", "plan fewer trees, end a job, or use a larger board")                              \
    X(RELAYS, "relays", "plan fewer trees, end a job, or use a larger board")

enum by_resource {
#define X(NAME, word, remedy) BY_RESOURCE_##NAME,
    BY_RESOURCE_LIST(X)
#undef X
        BY_RESOURCE_COUNT
};

/* The use of each resource, by one job or by all together. */
struct by_use {
    uint32_t amount[BY_RESOURCE_COUNT];
};

/* Computes the total use of an image from its header. The image must be valid (by_image_check). */
void by_use_of_image(const uint8_t *image, struct by_use *use);
/* Returns the sum of the slots of an image's entries. */
uint32_t by_use_slots(const uint8_t *image);

/*
 * Compares a valid image with `limits`, where 0 means no limit. Returns false if everything fits.
 * Else `text` gets "slots: the table requires 320, this switch (board lab-veth) has 256; job 42
 * requires 128, 64 would fit beside job 41, which holds 192: ..." `active` is the running image, or
 * NULL; `board` the name of the board, or NULL.
 */
int by_limit_explain(struct by_text *text, const uint8_t *image, const uint8_t *active,
                     const struct by_use *limits, const char *board);
/* The same for an image of `bytes` that exceeds the switch's memory of `most` bytes. */
void by_limit_explain_bytes(struct by_text *text, uint32_t bytes, uint32_t most, const uint8_t *active,
                            const char *board);

#endif
