/*
 * The error text of each thread: by_fail sets it where the facts are known, and every caller passes
 * the status on.
 */
#ifndef BY_HOST_ERROR_H
#define BY_HOST_ERROR_H

#include <stddef.h>

#include "offload/base/errors.h"

#define BY_ERROR_TEXT_MAX 512u

/* Sets the calling thread's text and returns `status`. */
int by_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The calling thread's text. */
const char *by_fail_text(void);

/* Adds to the text in `text`, which has room for `bytes` in all; what does not fit is left out. */
void by_append(char *text, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
