/* Implements sample.h: the sample image. */
#include "tests/unit/offload/table/sample.h"

#include <assert.h>
#include <string.h>

#include "offload/base/bytes.h"
#include "offload/base/crc32c.h"

void sample_fill(struct table_sample *sample)
{
    static const struct table_sample sound = {
        .header = {.cookie = UINT64_C(0x1122334455667788),
                   .node = 7,
                   .kind = BY_NODE_HOST,
                   .slot_count = 24,
                   .payload_max = 1408,
                   .name = "h7",
                   .count = {2, 2, 2, 4, 2, 2, 3, 3, 0, 2}},
        .port = {{"eth0",
                  0xc6120000,
                  0xc6120001,
                  {2, 0x62, 198, 18, 0, 0},
                  {2, 0x62, 198, 18, 0, 1},
                  1,
                  1500,
                  12500000,
                  1250,
                  0},
                 {"eth1",
                  0xc6120002,
                  0xc6120003,
                  {2, 0x62, 198, 18, 0, 2},
                  {2, 0x62, 198, 18, 0, 3},
                  2,
                  1500,
                  0,
                  0,
                  0}},
        .job = {{1, 10, 4, 2, 3, 46247, 250000000}, {5, 2, 3, BY_RANK_NONE, 3, 46251, 0}},
        .entry = {{1, 0, 0, BY_NODE_NONE, 0, 0, 0, 2, 0, 8, 1408, 0, 2, 0, 0, 0},
                  {5, 0, 1, 2, 0xc6120003, 46247, 63, 2, 2, 16, 512, 8, 3, 0, 0, 0}},
        .child = {{0, 3, 0xc6120001, 46247, BY_RANK_NONE},
                  {BY_PORT_LOCAL, 7, 0, 0, 2},
                  {0, 4, 0xc6120001, 46247, 0},
                  {0, 5, 0xc6120005, 46248, 1}},
        .leaf = {{1, 0, BY_PORT_LOCAL, 7, 0, 0, 1, 8, 1408, 2, BY_RANK_NONE, 3, 0x0a, 0xfe, 0x7fe, 0},
                 {1, 2, 1, 2, 0xc6120003, 46247, 5, 4, 1408, 0x7c, 3, 1, 0x0e, 0xfe, 0x7fe, 0}},
        .relay = {{1, 1, 0xc6120001, 0xc6120009, 1, 1}, {1, 1, 0xc6120009, 0xc6120001, 0, 2}},
        .hop = {{1, 2, 7, 2, 5, 0, 0}, {1, 0, 7, BY_NODE_NONE, 0, 0, 0}, {1, 0, 3, 7, 0, 0, 0}},
        .name = {{2, BY_RANK_NONE, "leaf0"}, {3, 0, "h3"}, {7, 1, "h7"}},
        .address = {{1, {0xfd, [15] = 1}}, {2, {0xfd, [15] = 2}}},
        .key = {{{1, 2, 3}, 1, 1, 0}, {{9, 8, 7}, 5, 2, 0}},
    };

    *sample = sound;
}

void sample_fill_ipv6(struct table_sample *sample)
{
    sample_fill(sample);
    sample->header.count[BY_SECTION_ADDRESS] = 2;
    sample->port[1].own_ip = 1;
    sample->port[1].peer_ip = sample->entry[1].parent_ip = sample->leaf[1].parent_ip = 2;
    sample->relay[0].src_ip = sample->relay[1].dst_ip = 1;
    sample->relay[0].dst_ip = sample->relay[1].src_ip = 2;
}

size_t sample_write(const struct table_sample *sample, uint8_t image[SAMPLE_BYTES_MAX])
{
    size_t bytes = by_image_bytes(sample->header.count);

    assert(bytes <= SAMPLE_BYTES_MAX);
    by_image_put_header(image, &sample->header);
#define PUT(noun)                                                                                            \
    for (uint32_t i = 0; i < sizeof(sample->noun) / sizeof(sample->noun[0]); i++)                            \
        by_image_put_##noun(image, i, &sample->noun[i]);
    PUT(port)
    PUT(job)
    PUT(entry)
    PUT(child)
    PUT(leaf)
    PUT(relay)
    PUT(hop)
    PUT(name)
    PUT(key)
#undef PUT
    for (uint32_t i = 0; i < sample->header.count[BY_SECTION_ADDRESS]; i++)
        by_image_put_address(image, i, &sample->address[i]);
    by_image_seal(image);
    return bytes;
}

void sample_reseal(uint8_t *image, size_t bytes)
{
    by_put32(image + 12, by_crc32c(by_crc32c(0, image, 12), image + 16, bytes - 16));
}
