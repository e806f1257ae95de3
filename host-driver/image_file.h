/* Reads and validates a table image from a file, and formats names from it. Any thread. */
#ifndef BY_HOST_IMAGE_FILE_H
#define BY_HOST_IMAGE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "offload/table/image.h"

/* Reads and validates `path`; the caller frees *image. 0, or an error whose text names the file,
 * the record and the limit. */
int by_host_image_read(const char *path, uint8_t **image, size_t *bytes);
/* 0 if this program supports the node's ports; else BY_ELIMIT with a text. */
int by_image_ports_check(const uint8_t *image);
/* Finds job `job` (0: the only one). 0, or BY_ENOENT with a text that lists the jobs of the
 * image. */
int by_image_job_find(const uint8_t *image, uint32_t job, struct by_image_job *found);
/* Writes the name of a node into `text`: "leaf0", "host3 (rank 3)", or "node 7" if the image has no
 * name for it. */
void by_image_node_name(const uint8_t *image, uint16_t node, char *text, size_t bytes);

#endif
