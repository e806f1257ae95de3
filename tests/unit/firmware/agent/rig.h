/* The agent over a real engine, without sockets or DPDK, and the controller's words to it. For the
 * tests beside. */
#ifndef BY_TESTS_UNIT_FIRMWARE_AGENT_RIG_H
#define BY_TESTS_UNIT_FIRMWARE_AGENT_RIG_H

#include <stddef.h>
#include <stdint.h>

#include "firmware/agent/agent.h"
#include "tests/unit/firmware/client.h"
#include "tests/unit/firmware/star.h"

#define IMAGE_BYTES_MAX 65536u
#define PORTS           4u
#define UNIX_NS         1000000000000000u /* of the world's clock, when the bench's own is at 0 */

extern const struct star small, wide;

/* A node as banyan-switchd has it, but without ports that carry packets. */
struct rig_bench {
    struct by_engine *engine;
    struct by_agent *agent;
    struct by_channel channel;
    void *engine_memory, *agent_memory;
    unsigned commits;
    uint64_t now_ns;                       /* 0, as at first: it has no clock */
    uint8_t *saved, kept[IMAGE_BYTES_MAX]; /* of an earlier life; what is to be kept for the next one */
    size_t kept_bytes;
    by_Request request;
    by_Response response;
    uint8_t out[BY_CHANNEL_OUT_MIN];
};

/* For cmocka: a bench in *state; one whose node has kept `small` in an earlier life; its end. */
int make_bench(void **state);
int make_bench_restarted(void **state);
int free_bench(void **state);

/* Sends the bench's request through the channel and decodes the answer, whose id must be the
 * request's. Returns its error. */
int ask(struct rig_bench *bench);
int stage_all(struct rig_bench *bench, const uint8_t *image, size_t bytes);
int validate(struct rig_bench *bench, uint64_t hash);
int commit(struct rig_bench *bench, uint64_t hash);
/* All three with a star's image; returns its hash. */
uint64_t push(struct rig_bench *bench, const struct star *star);
uint64_t active_hash(struct rig_bench *bench);

#endif
