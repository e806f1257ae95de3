/*
 * The error text of each thread: by_fail sets it where the error is detected, and every caller
 * passes the status on.
 */
#ifndef BY_HOST_ERROR_H
#define BY_HOST_ERROR_H

#include <stddef.h>

#include "offload/base/errors.h"

#define BY_ERROR_TEXT_MAX 512u

/* Sets the text of the calling thread and returns `status`. */
int by_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns the text of the calling thread. */
const char *by_fail_text(void);

/* Appends to `text`, a buffer of `bytes` bytes in all; truncates what does not fit. */
void by_append(char *text, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
