/* Texts of an agent's refusals, each with the object, the limit and the remedy. Pure. */
#ifndef BY_FIRMWARE_AGENT_REFUSE_H
#define BY_FIRMWARE_AGENT_REFUSE_H

#include <stddef.h>
#include <stdint.h>

#include "firmware/agent/text.h"
#include "offload/table/image.h"

/* Encodes a response that belongs to no request; returns its bytes. `text` has less than 256
 * characters. */
size_t by_refuse(int error, const char *text, uint8_t *out, size_t capacity);
/* The same for a length that no request can have. */
size_t by_refuse_length(uint32_t length, uint8_t *out, size_t capacity);
/* The same for a request that comes too soon after many others. */
size_t by_refuse_rate(uint8_t *out, size_t capacity);
/* Writes a text such as "entry 3: window 48 is not a power of two (48)", and the remedy. */
void by_refuse_image(struct by_text *text, int error, const struct by_image_fault *fault);

#endif
