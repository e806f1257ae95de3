/* Builds a short text in the caller's buffer without a C library: for errors of an agent that also
 * runs on bare metal. Pure. */
#ifndef BY_FIRMWARE_AGENT_TEXT_H
#define BY_FIRMWARE_AGENT_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct by_text {
    char *start;
    size_t used;
    size_t bytes; /* size of the buffer, with the terminating zero */
};

/* Starts an empty text in `buffer`; anything that does not fit is cut off. */
void by_text_start(struct by_text *text, char *buffer, size_t bytes);
void by_text_add(struct by_text *text, const char *string);
void by_text_number(struct by_text *text, uint64_t value);
/* Adds 0x and 16 digits, the format of all hashes. */
void by_text_hash(struct by_text *text, uint64_t value);

#endif
