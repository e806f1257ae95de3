/* Implements rig.h. Single-threaded. */
#include "tests/unit/offload/endpoint/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/endpoint/state.h"

uint8_t rig_cover;
uint8_t rig_direct;
uint8_t rig_data[4096 * RIG_BYTES];

void rig_open_first(struct endpoint_rig *rig, int ranks, const struct rig_tree *trees, int tree_count,
                    const struct by_endpoint_config *config)
{
    struct by_endpoint_config own = {0};
    size_t bytes;
    void *memory;

    memset(rig, 0, sizeof(*rig));
    fabric_star(&rig->fabric, ranks, 10000, 1000);
    fabric_job_add(&rig->fabric, 1, 7);
    for (int t = 0; t < tree_count; t++) {
        struct fabric_tree *tree = fabric_tree_add(&rig->fabric, 0, 0, 0, NULL);

        assert_non_null(tree);
        tree->window = trees[t].window > 0 ? trees[t].window : 4;
        tree->modes = trees[t].modes;
        tree->payload_max = trees[t].payload_max > 0 ? trees[t].payload_max : 64;
        tree->share = trees[t].share > 0 ? trees[t].share : 1;
        if (trees[t].collectives > 0)
            tree->collectives = trees[t].collectives;
        if (trees[t].owner > 0)
            tree->owner = (uint16_t)(trees[t].owner - 1);
    }
    if (config != NULL)
        own = *config;
    rig->fabric.cover = rig_cover;
    rig->image = fabric_image(&rig->fabric, 1, &own.image_bytes); /* node 0 is the switch */
    own.image = rig->image;
    own.job = 1;
    own.isa = by_isa_best();
    bytes = by_endpoint_size(&own);
    assert_true(bytes > 0);
    memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    assert_non_null(memory);
    assert_int_equal(by_endpoint_init(&rig->endpoint, memory, bytes, &own), 0);
    rig->now_ns = 1000000000;
}

void rig_open(struct endpoint_rig *rig, int ranks, const struct rig_tree *trees, int tree_count,
              const struct by_endpoint_config *config)
{
    rig_open_first(rig, ranks, trees, tree_count, config);
    rig->endpoint->session_phase = BY_SESSION_AGREED;
}

void rig_close(struct endpoint_rig *rig)
{
    free(rig->endpoint);
    free(rig->image);
}

struct endpoint_rig *rig_start(const struct rig_tree *trees, int tree_count, unsigned chunks,
                               const struct by_endpoint_config *config)
{
    struct endpoint_rig *rig = malloc(sizeof(*rig));
    struct by_call call = {.collective = BY_COLLECTIVE_ALLREDUCE,
                           .op = BY_OP_SUM,
                           .dtype = BY_DTYPE_U8,
                           .mode = BY_MODE_FAST,
                           .count = chunks * RIG_BYTES,
                           .send = rig_data,
                           .recv = rig_data};
    uint32_t id;

    rig_open(rig, RIG_RANKS, trees, tree_count, config);
    assert_int_equal(by_endpoint_post(rig->endpoint, &call, &id, NULL), 0);
    return rig;
}

void rig_stop(struct endpoint_rig *rig)
{
    rig_close(rig);
    free(rig);
}

struct by_header rig_contrib(const struct by_header *first, uint32_t seq)
{
    struct by_header h = *first;

    h.seq = seq;
    return h;
}

static uint32_t rig_run(struct endpoint_rig *rig, const struct by_rx *rx, uint32_t rx_count)
{
    uint32_t count;

    rig->sent_count = 0;
    do {
        assert_true(rig->sent_count + 16 <= RIG_SENT_MAX);
        assert_int_equal(
            by_endpoint_step(rig->endpoint, rig->now_ns, rx, rx_count, rig->tx + rig->sent_count, 16, &count),
            rx_count);
        rx_count = 0;
        rig->sent_count += count;
    } while (count == 16);
    for (uint32_t i = 0; i < rig->sent_count; i++) {
        const uint8_t *payload;

        assert_int_equal(by_header_decode(rig->tx[i].header, BY_WIRE_HEADER_BYTES, &rig->sent[i], &payload),
                         0);
    }
    return rig->sent_count;
}

uint32_t rig_step(struct endpoint_rig *rig)
{
    return rig_run(rig, NULL, 0);
}

struct by_header rig_result(const struct endpoint_rig *rig, const struct by_header *contrib,
                            const void *payload, uint32_t bytes)
{
    struct by_header result = *contrib;
    int ranks = rig->fabric.jobs[0].rank_count;

    result.type = BY_TYPE_RESULT;
    result.flags = (contrib->flags & BY_FLAG_RETX) | (contrib->flags & BY_FLAG_ACKONLY ? BY_FLAG_NODATA : 0);
    result.nleaf = (uint16_t)ranks;
    result.witness = 0;
    for (int r = 0; r < ranks; r++)
        result.witness += by_leaf_tag(1, (uint16_t)r);
    result.psum = result.flags & BY_FLAG_NODATA ? 0 : by_psum(payload, bytes);
    return result;
}

uint32_t rig_give_from(struct endpoint_rig *rig, uint16_t port, uint32_t ip, const struct by_header *header,
                       const void *payload, uint32_t bytes)
{
    uint8_t packet[BY_WIRE_HEADER_BYTES + BY_PAYLOAD_MAX];
    struct by_rx rx = {.data = packet,
                       .bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + bytes),
                       .port = port,
                       .src_ip = ip,
                       .direct = rig_direct};

    by_header_encode(header, packet);
    if (bytes > 0)
        memcpy(packet + BY_WIRE_HEADER_BYTES, payload, bytes);
    return rig_run(rig, &rx, 1);
}

uint32_t rig_give(struct endpoint_rig *rig, const struct by_header *header, const void *payload,
                  uint32_t bytes)
{
    return rig_give_from(rig, 0, fabric_ip(&rig->fabric, 0, 0), header, payload, bytes);
}

uint32_t rig_answer(struct endpoint_rig *rig, const struct by_header *contrib, uint32_t bytes, uint8_t fill)
{
    uint8_t payload[BY_PAYLOAD_MAX];
    struct by_header result;

    memset(payload, fill, sizeof(payload));
    result = rig_result(rig, contrib, payload, bytes);
    return rig_give(rig, &result, payload, result.flags & BY_FLAG_NODATA ? 0 : bytes);
}

int rig_sent(const struct endpoint_rig *rig, unsigned type, uint32_t seq)
{
    for (uint32_t i = 0; i < rig->sent_count; i++)
        if (rig->sent[i].type == type && rig->sent[i].seq == seq)
            return 1;
    return 0;
}
