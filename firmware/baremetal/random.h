/* Random bytes at the start: a virtio entropy device (virtio 1.2, section 5.4), where the board has
 * one. */
#ifndef BY_BAREMETAL_RANDOM_H
#define BY_BAREMETAL_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#define BY_RANDOM_BYTES 16u

/* Draws random bytes once; uses memory from the plan. Returns false, and zeros, when there is no
 * such device or it does not answer within a second. */
bool by_random_draw(uint8_t bytes[BY_RANDOM_BYTES]);

#endif
