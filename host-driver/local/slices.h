/*
 * How a call of a job with several ranks on a host is cut into slices. A slice fits a slot of the
 * memory that the ranks of a host share, and crosses the network as a call of its own between the
 * hosts of the table. A call with shards is cut within each shard, and a slot has the pieces of all
 * shards host by host, so that a host's pieces are adjacent in any layout of the ranks. Pure.
 */
#ifndef BY_HOST_LOCAL_SLICES_H
#define BY_HOST_LOCAL_SLICES_H

#include <stdbool.h>
#include <stdint.h>

#include "host-driver/local/seats.h"
#include "offload/endpoint/endpoint.h"

/* Whether a call has a root, also one of BANYAN_SCATTER and BANYAN_GATHER. */
bool by_slices_is_rooted(unsigned collective);

struct by_slices {
    const struct by_seats *seats;
    struct by_call call; /* of the user: root, count and offsets are those of ranks */
    uint64_t count;      /* slices, at least 1 */
    uint64_t length;     /* elements of the call, or of the largest shard */
    uint64_t body;       /* elements of each slice but the last, of each shard */
    uint32_t element_bytes;
    bool sharded;
};

#define BY_SLOT_BYTES_LEAST 64u /* of a slot, for each rank of the job */

/* `slot_bytes`: size of a slot, at least BY_SLOT_BYTES_LEAST for each rank of the job. */
void by_slices_cut(struct by_slices *slices, const struct by_call *call, const struct by_seats *seats,
                   uint64_t slot_bytes);
/* The bytes of slice `index` in a slot. */
uint64_t by_slices_bytes(const struct by_slices *slices, uint64_t index);

/* Whether this rank's input is copied before it is reduced or sent; the others only take part. */
bool by_slices_gives(const struct by_slices *slices);
/* Returns this rank's input of a slice if it is already as in a slot; NULL: by_slices_pack
 * copies it. */
const void *by_slices_input(const struct by_slices *slices, uint64_t index);
/* Copies this rank's input of a slice to its place in `slot`. */
void by_slices_pack(const struct by_slices *slices, uint64_t index, uint8_t *slot);
/* Copies this rank's result of a slice from `slot`. */
void by_slices_unpack(const struct by_slices *slices, uint64_t index, const uint8_t *slot);
/* All-to-all: copies this rank's share of a slice from the slot of rank `from`. */
void by_slices_unpack_from(const struct by_slices *slices, uint64_t index, uint32_t from,
                           const uint8_t *slot);
/* Returns where this rank receives its part of a reduced slice: `bytes` bytes of a slot, from `at`
 * on. NULL: it receives none. */
void *by_slices_output(const struct by_slices *slices, uint64_t index, uint64_t *at, uint64_t *bytes);

/* The call between hosts for slice `index` in `slot`. `offsets` has room for host_count + 1
 * numbers, which the call may use. */
void by_slices_outer(const struct by_slices *slices, uint64_t index, uint8_t *slot, struct by_call *outer,
                     uint64_t *offsets);
/* Puts the user's buffers into such a call, which must have no shards, at the only rank of a
 * host. */
void by_slices_direct(const struct by_slices *slices, uint64_t index, struct by_call *outer);
/* The whole call as one between hosts, without buffers: to ask what serves it. `offsets` as
 * above. */
void by_slices_whole(const struct by_call *call, const struct by_seats *seats, struct by_call *outer,
                     uint64_t *offsets);

#endif
