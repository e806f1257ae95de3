/* The agent over a real engine, without sockets or DPDK, and the controller's messages to it. For
 * the tests in this folder. */
#ifndef BY_TESTS_UNIT_FIRMWARE_AGENT_RIG_H
#define BY_TESTS_UNIT_FIRMWARE_AGENT_RIG_H

#include <stddef.h>
#include <stdint.h>

#include "firmware/agent/agent.h"
#include "tests/unit/firmware/client.h"
#include "tests/unit/firmware/star.h"

#define IMAGE_BYTES_MAX 65536u
#define PORTS           4u
#define INTERFACES      30u               /* that the node describes: more than one answer holds */
#define UNIX_NS         1000000000000000u /* wall clock (UTC) when the bench's clock is 0 */

extern const struct star small, wide;

/* A node like that of banyan-switchd, but without ports that carry packets. */
struct rig_bench {
    struct by_engine *engine;
    struct by_agent *agent;
    struct by_channel channel;
    void *engine_memory, *agent_memory;
    struct by_agent_config config; /* with `ops`; a test that changes one starts the agent again */
    struct by_agent_ops ops;
    unsigned commits, announcements;
    uint64_t now_ns;                       /* initially 0: no clock */
    uint8_t *saved, kept[IMAGE_BYTES_MAX]; /* from before the restart; to be saved for the next start */
    size_t kept_bytes;
    by_Request request;
    by_Response response;
    uint8_t out[BY_CHANNEL_OUT_MIN];
};

/* For cmocka: makes a bench in *state; the same for a node that saved `small` before its restart;
 * frees it. */
int make_bench(void **state);
int make_bench_restarted(void **state);
int free_bench(void **state);
/* Starts the agent again, with the bench's config and ops as they are now. */
void start_agent(struct rig_bench *bench);

/* Sends the bench's request through the channel and decodes the answer, which must have the
 * request's id. Returns the answer's error. */
int ask(struct rig_bench *bench);
int stage_all(struct rig_bench *bench, const uint8_t *image, size_t bytes);
int validate(struct rig_bench *bench, uint64_t hash);
int commit(struct rig_bench *bench, uint64_t hash);
/* Does all three with a star's image. Returns its hash. */
uint64_t push(struct rig_bench *bench, const struct star *star);
uint64_t active_hash(struct rig_bench *bench);

#endif
