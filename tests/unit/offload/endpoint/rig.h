/*
 * A rig that tests one endpoint alone: rank 0 of a star in which the test plays the switch. The rig
 * collects and decodes contributions. It builds correct results, which a test may then corrupt.
 * Single-threaded.
 */
#ifndef TESTS_UNIT_ENDPOINT_RIG_H
#define TESTS_UNIT_ENDPOINT_RIG_H

#include "offload/endpoint/endpoint.h"
#include "tests/sim/fabric.h"

#define RIG_SENT_MAX 8192
/* Of rigs that rig_start starts: ranks, and bytes of a chunk. */
#define RIG_RANKS 3
#define RIG_BYTES 64

/* A tree of the rig. Zero means window 4, payload 64, share 1, all collectives. `owner` counts from
 * 1; 0 is all ranks. */
struct rig_tree {
    uint16_t window, payload_max, collectives, owner;
    uint32_t share;
    uint8_t modes; /* that its nodes support; 0: all */
};

struct endpoint_rig {
    struct fabric fabric;
    uint8_t *image;
    struct by_endpoint *endpoint;
    uint64_t now_ns;
    uint32_t sent_count; /* in the last step */
    struct by_tx tx[RIG_SENT_MAX];
    struct by_header sent[RIG_SENT_MAX];
};

/* enum by_cover of the rigs that are opened after this is set; 0 unless a test sets it. */
extern uint8_t rig_cover;
/* 1: the packets given to the endpoint after this is set are direct (packet.h). 0 unless a test
 * sets it. */
extern uint8_t rig_direct;

/* `config` may be NULL; the rig sets image and job. Job 1, gen 7. The ranks have agreed on the
 * session, with salt 0: a call's first chunk has seq 0. */
void rig_open(struct endpoint_rig *rig, int ranks, const struct rig_tree *trees, int tree_count,
              const struct by_endpoint_config *config);
/* The same, but before the roll call. */
void rig_open_first(struct endpoint_rig *rig, int ranks, const struct rig_tree *trees, int tree_count,
                    const struct by_endpoint_config *config);
void rig_close(struct endpoint_rig *rig);
/* Starts a rig in memory of malloc with one in-place allreduce of `chunks` chunks (of all trees)
 * in rig_data. */
extern uint8_t rig_data[4096 * RIG_BYTES];
struct endpoint_rig *rig_start(const struct rig_tree *trees, int tree_count, unsigned chunks,
                               const struct by_endpoint_config *config);
/* Closes and frees a rig in memory of malloc. */
void rig_stop(struct endpoint_rig *rig);
/* Returns the contribution for `seq` of tree 0, derived from the one for seq 0. */
struct by_header rig_contrib(const struct by_header *first, uint32_t seq);
/* Steps without received packets until the endpoint sends nothing more. Returns the number of
 * packets, which are in rig->sent and rig->tx. */
uint32_t rig_step(struct endpoint_rig *rig);
/* Returns the result that a correct parent would send for contribution `contrib`: NODATA if it was
 * ACKONLY. psum is that of `payload`. */
struct by_header rig_result(const struct endpoint_rig *rig, const struct by_header *contrib,
                            const void *payload, uint32_t bytes);
/* Gives one packet from the tree's parent to the endpoint, then steps like rig_step. */
uint32_t rig_give(struct endpoint_rig *rig, const struct by_header *header, const void *payload,
                  uint32_t bytes);
/* Like rig_give, from another port or address. */
uint32_t rig_give_from(struct endpoint_rig *rig, uint16_t port, uint32_t ip, const struct by_header *header,
                       const void *payload, uint32_t bytes);
/* Answers contribution `contrib` correctly, with a payload of `fill` bytes in place of a sum. */
uint32_t rig_answer(struct endpoint_rig *rig, const struct by_header *contrib, uint32_t bytes, uint8_t fill);
/* Returns 1 if the last step sent a packet of `type` for `seq`. */
int rig_sent(const struct endpoint_rig *rig, unsigned type, uint32_t seq);

#endif
