/* Why an agent refuses a request, in words: the sentences of every failure, each with the object, the limit
 * and the remedy. Pure. */
#ifndef BY_FIRMWARE_AGENT_REFUSE_H
#define BY_FIRMWARE_AGENT_REFUSE_H

#include <stddef.h>
#include <stdint.h>

#include "firmware/agent/text.h"
#include "offload/table/image.h"

/* An encoded response to a length that no request can have; returns its bytes. */
size_t by_refuse_length(uint32_t length, uint8_t *out, size_t capacity);
/* "entry 3: window 48 is not a power of two (48)" and what to do about it. */
void by_refuse_image(struct by_text *text, int error, const struct by_image_fault *fault);

#endif
