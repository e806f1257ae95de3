/* A table image with each kind of record, as structures: a host that is the root of one tree and a
 * leaf of two. */
#ifndef TESTS_UNIT_OFFLOAD_TABLE_SAMPLE_H
#define TESTS_UNIT_OFFLOAD_TABLE_SAMPLE_H

#include <stdint.h>

#include "offload/table/image.h"

#define SAMPLE_BYTES_MAX 4096

struct table_sample {
    struct by_image_header header;
    struct by_image_port port[2];
    struct by_image_job job[2];
    struct by_image_entry entry[2];
    struct by_image_child child[4];
    struct by_image_leaf leaf[2];
    struct by_image_relay relay[2];
    struct by_image_hop hop[3];
    struct by_image_name name[3];
    struct by_image_address address[2];
    struct by_image_key key[2];
};

/* Fills in a valid image. */
void sample_fill(struct table_sample *sample);
/* The same with IPv6 addresses at its second port. */
void sample_fill_ipv6(struct table_sample *sample);
/* Writes and seals the image. Returns its size (bytes). */
size_t sample_write(const struct table_sample *sample, uint8_t image[SAMPLE_BYTES_MAX]);
/* Renews the CRC after changes of bytes; the length must be the same. */
void sample_reseal(uint8_t *image, size_t bytes);

#endif
