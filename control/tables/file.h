/* Table image files: read with every check that a switch would make, written so that a reader never
 * sees half a file. Any thread. */
#ifndef BY_TABLES_FILE_H
#define BY_TABLES_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "control/fabric/topology.h"

/*
 * Reads and checks an image: *bytes is the caller's to free (NULL after an error). BY_ENOENT or
 * BY_EIO (the file), or what by_image_check returns, with `problem` saying section, record and what
 * is wrong.
 */
int by_image_file_read(const char *path, uint8_t **bytes, size_t *size, struct by_problem *problem);
/* The check alone, with the same texts. */
int by_image_explain(const uint8_t *bytes, size_t size, struct by_problem *problem);
/* Writes to a temporary file beside `path` and renames it. 0 or BY_EIO with `problem`. */
int by_image_file_write(const char *path, const uint8_t *bytes, size_t size, struct by_problem *problem);

#endif
