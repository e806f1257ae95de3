/* A table image from a file, checked; and what people want to read from one: names. Any thread. */
#ifndef BY_HOST_IMAGE_FILE_H
#define BY_HOST_IMAGE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "offload/table/image.h"

/* Reads and checks `path`; the caller frees *image. 0, or an error whose text names the file, the
 * record and the limit. */
int by_host_image_read(const char *path, uint8_t **image, size_t *bytes);
/* 0 when this program can drive the node's ports; BY_ELIMIT with a text. */
int by_image_ports_check(const uint8_t *image);
/* Finds job `job` (0: the only one). 0 or BY_ENOENT with a text that lists what there is. */
int by_image_job_find(const uint8_t *image, uint32_t job, struct by_image_job *found);
/* Writes "leaf0" or "host3 (rank 3)" for a node id into `text`, "node 7" when the image does not
 * name it. */
void by_image_node_name(const uint8_t *image, uint16_t node, char *text, size_t bytes);
/* "198.18.0.1" of an address in host order. */
void by_ip_text(uint32_t ip, char text[16]);

#endif
