/*
 * Reads and writes table image files. Reading applies every check of a switch. Writing is atomic: a
 * reader never sees a partial file. Any thread.
 */
#ifndef BY_TABLES_FILE_H
#define BY_TABLES_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "control/fabric/topology.h"

/*
 * Reads and checks an image. The caller frees *bytes, which is NULL after an error. Returns 0;
 * BY_ENOENT or BY_EIO for the file; or the error of by_image_check, with `problem` naming section,
 * record and fault.
 */
int by_image_file_read(const char *path, uint8_t **bytes, size_t *size, struct by_problem *problem);
/* Runs only the check, with the same messages. */
int by_image_explain(const uint8_t *bytes, size_t size, struct by_problem *problem);
/*
 * Writes to a temporary file beside `path` and renames it. Returns 0, or BY_EIO with `problem`
 * filled.
 */
int by_image_file_write(const char *path, const uint8_t *bytes, size_t size, struct by_problem *problem);

#endif
