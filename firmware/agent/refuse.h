/* Why an agent refuses a request, in words: the sentences of every failure, each with the object,
 * the limit and the remedy. Pure. */
#ifndef BY_FIRMWARE_AGENT_REFUSE_H
#define BY_FIRMWARE_AGENT_REFUSE_H

#include <stddef.h>
#include <stdint.h>

#include "firmware/agent/text.h"
#include "offload/table/image.h"

/* An encoded response to no request in particular; returns its bytes. `text` has less than 256
 * characters. */
size_t by_refuse(int error, const char *text, uint8_t *out, size_t capacity);
/* The same to a length that no request can have. */
size_t by_refuse_length(uint32_t length, uint8_t *out, size_t capacity);
/* The same to a request that comes too soon after many others. */
size_t by_refuse_rate(uint8_t *out, size_t capacity);
/* "entry 3: window 48 is not a power of two (48)" and what to do about it. */
void by_refuse_image(struct by_text *text, int error, const struct by_image_fault *fault);

#endif
