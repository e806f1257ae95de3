/* What is written to stderr between two calls, for a test to compare. One at a time; not for
 * processes that are forked between them. */
#ifndef BY_TEST_SERVICE_DAEMON_PRINTED_H
#define BY_TEST_SERVICE_DAEMON_PRINTED_H

#include <stddef.h>

/* From now on stderr goes into memory. */
void printed_begin(void);
/* Copies what has been written since, NUL-terminated, as far as it fits into `room` bytes. */
void printed_read(char *text, size_t room);
/* The same unless `text` is NULL; stderr goes where it went before. */
void printed_end(char *text, size_t room);

#endif
