/*
 * A node under test: an engine, its table, and packets to and from neighbours that exist only as
 * addresses. Child c of each tree is at port c % RIG_CHILD_PORTS with address RIG_CHILD_IP + c, the
 * parent at port RIG_PARENT_PORT with RIG_PARENT_IP.
 */
#ifndef TESTS_UNIT_OFFLOAD_ENGINE_RIG_H
#define TESTS_UNIT_OFFLOAD_ENGINE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/errors.h"
#include "offload/engine/engine.h"
#include "offload/reduce/reduce.h"

#define RIG_NODE         9
#define RIG_PORTS        8
#define RIG_CHILD_PORTS  7
#define RIG_PARENT_PORT  7
#define RIG_CHILD_IP     0x0a000001u
#define RIG_PARENT_IP    0x0b000001u
#define RIG_OWN_IP       0x0c000001u /* of port 0; the others follow */
#define RIG_PARENT_CHILD 5           /* this node's bit at the parent */
#define RIG_PAYLOAD      1024
#define RIG_TX           256
#define RIG_INTERVAL_NS  1000000

struct rig_entry {
    uint16_t job, tree, gen;
    uint8_t root;
    uint16_t children;
    uint16_t window;
    uint16_t payload_max; /* 0: RIG_PAYLOAD */
    uint32_t slot_base;
    uint8_t depth;
    uint16_t nleaf; /* 0: the number of children */
    uint8_t joined; /* as in struct by_image_entry; `nleaf` is then that of all ranks */
    uint64_t ranks; /* bitmap of the children that are ranks; the others are nodes */
};

struct engine_rig {
    void *memory;
    struct by_engine *engine;
    uint64_t now_ns;
    struct by_tx tx[RIG_TX]; /* of the last step */
    uint32_t tx_count;
    uint64_t dropped; /* sum of the drop counters before the last step */
};

/* A packet as a node receives it. */
struct rig_packet {
    struct by_header header; /* psum is computed unless `psum_as_given` */
    const void *payload;
    uint16_t bytes;
    uint16_t port;
    uint32_t src_ip;
    uint32_t dst_ip;
    uint8_t ecn;
    uint8_t psum_as_given;
    uint8_t direct; /* as in struct by_rx */
    uint8_t apart;  /* the payload is not contiguous with the header */
};

/* The `alike` and the spare_count of the next engine's config. */
extern uint8_t rig_alike;
extern uint32_t rig_spares;
/* The worker of the next engine's config, and their number. */
extern uint16_t rig_worker, rig_workers;
/* rig_open makes an engine without tables. rig_start also loads these entries; a job has the gen of
 * its first entry, and another one from the first entry with that gen on. */
void rig_open(struct engine_rig *rig);
void rig_start(struct engine_rig *rig, const struct rig_entry *entries, uint32_t count);
void rig_close(struct engine_rig *rig);
/* Writes an image into a static buffer; relays may be NULL. */
const uint8_t *rig_image(const struct rig_entry *entries, uint32_t count, const struct by_image_relay *relays,
                         uint32_t relay_count, size_t *bytes);

/* Returns a sum of f32 from a child; a test changes what it needs. `values` must outlive the
 * send. */
struct rig_packet rig_contrib(const struct rig_entry *entry, unsigned child, uint32_t seq,
                              const float *values, uint16_t count);
struct rig_packet rig_credit(const struct rig_entry *entry, unsigned child, uint32_t seq, uint16_t count,
                             uint8_t flags);
struct rig_packet rig_result(const struct rig_entry *entry, uint32_t seq, const float *values,
                             uint16_t count);
struct rig_packet rig_wait(const struct rig_entry *entry, uint32_t seq, const uint8_t payload[BY_WAIT_BYTES]);
/* Gives one packet in one step. */
void rig_send(struct engine_rig *rig, const struct rig_packet *packet);
/* The same for raw bytes. */
void rig_send_bytes(struct engine_rig *rig, const uint8_t *data, size_t bytes, uint16_t port, uint32_t src_ip,
                    uint32_t dst_ip);

/* Returns action `index` of the last step, decoded. Fails if header, psum, address or reference are
 * wrong for `entry`. */
struct by_header rig_action(struct engine_rig *rig, const struct rig_entry *entry, uint32_t index,
                            const uint8_t **payload);
/* Fails unless the last step's actions are exactly one RESULT for each child with these values
 * (NULL: NODATA). */
void rig_expect_results(struct engine_rig *rig, const struct rig_entry *entry, uint32_t seq,
                        const float *values, uint16_t count);
/* Fails unless the last step's only action is a CONTRIB to the parent with these values (NULL:
 * NODATA). */
void rig_expect_up(struct engine_rig *rig, const struct rig_entry *entry, uint32_t seq, uint8_t flags,
                   const float *values, uint16_t count);
/* Releases the references of the last step's actions. */
void rig_release(struct engine_rig *rig);
struct by_bank_view rig_bank(struct engine_rig *rig, uint32_t entry, uint32_t slot, unsigned bank);
/* Fails unless exactly the counter at `offset` among the drop counters (and alarms) has grown, by
 * one, in the last step. */
void rig_expect_drop(struct engine_rig *rig, size_t offset);
#define rig_expect_drop_of(rig, name) rig_expect_drop((rig), offsetof(struct by_engine_counters, name))

#endif
