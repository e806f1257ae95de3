/*
 * A rig for testing one endpoint alone: rank 0 of a star, whose switch is played by the test.
 * Contributions are collected and decoded; results are made right and then spoilt as a test wants.
 * Single-threaded.
 */
#ifndef TESTS_UNIT_ENDPOINT_RIG_H
#define TESTS_UNIT_ENDPOINT_RIG_H

#include "offload/endpoint/endpoint.h"
#include "tests/sim/fabric.h"

#define RIG_SENT_MAX 8192

/* A tree of the rig: zero means window 4, payload 64, share 1, all collectives; `owner` counts from
 * 1, 0 is all ranks. */
struct rig_tree {
    uint16_t window, payload_max, collectives, owner;
    uint32_t share;
};

struct endpoint_rig {
    struct fabric fabric;
    uint8_t *image;
    struct by_endpoint *endpoint;
    uint64_t now_ns;
    uint32_t sent_count; /* of the last step */
    struct by_tx tx[RIG_SENT_MAX];
    struct by_header sent[RIG_SENT_MAX];
};

/* enum by_cover of the rigs that are opened next: 0 unless a test sets it. */
extern uint8_t rig_cover;
/* Packets that are given next are direct ones (packet.h): 0 unless a test sets it. */
extern uint8_t rig_direct;

/* `config` may be NULL; image and job are filled in. Job 1, gen 7. The session is agreed upon, with
 * salt 0: a call's first chunk has seq 0. */
void rig_open(struct endpoint_rig *rig, int ranks, const struct rig_tree *trees, int tree_count,
              const struct by_endpoint_config *config);
/* The same before the roll call. */
void rig_open_first(struct endpoint_rig *rig, int ranks, const struct rig_tree *trees, int tree_count,
                    const struct by_endpoint_config *config);
void rig_close(struct endpoint_rig *rig);
/* Steps without packets until nothing more is sent; the packets are in rig->sent and rig->tx.
 * Returns their number. */
uint32_t rig_step(struct endpoint_rig *rig);
/* The result that a right parent would send for contribution `contrib`: NODATA when it was ACKONLY.
 * psum is of `payload`. */
struct by_header rig_result(const struct endpoint_rig *rig, const struct by_header *contrib,
                            const void *payload, uint32_t bytes);
/* Gives one packet to the endpoint, from the tree's parent, then steps as rig_step. */
uint32_t rig_give(struct endpoint_rig *rig, const struct by_header *header, const void *payload,
                  uint32_t bytes);
/* As rig_give, from elsewhere. */
uint32_t rig_give_from(struct endpoint_rig *rig, uint16_t port, uint32_t ip, const struct by_header *header,
                       const void *payload, uint32_t bytes);
/* Answers contribution `contrib` rightly, with a payload of `fill` bytes in place of a sum. */
uint32_t rig_answer(struct endpoint_rig *rig, const struct by_header *contrib, uint32_t bytes, uint8_t fill);
/* Whether a packet of `type` for `seq` is among those of the last step. */
int rig_sent(const struct endpoint_rig *rig, unsigned type, uint32_t seq);

#endif
