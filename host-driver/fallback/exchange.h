/*
 * All-to-all, scatter and gather between hosts: each message has one receiver. A message travels
 * either directly to its receiver, or along a path of other ranks (by_circulant_path), which takes
 * fewer messages and more bytes. All ranks choose alike, from the size of a share and the measured
 * costs. Shares of unequal size are not known to all ranks and travel directly. No I/O; any thread.
 */
#ifndef BY_HOST_FALLBACK_EXCHANGE_H
#define BY_HOST_FALLBACK_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "host-driver/fallback/moves.h"

struct by_call;
struct by_host_work;

/* The sizes and places of a call with shares of unequal size, in elements: call.offsets points to
 * 4 n numbers, n of each kind. A rank that sends (or receives) nothing has zeros. */
enum by_exchange_numbers { BY_SEND_COUNT, BY_SEND_AT, BY_RECV_COUNT, BY_RECV_AT };

/* Whether the collective is one of BANYAN_ALLTOALL, BANYAN_SCATTER and BANYAN_GATHER. */
bool by_exchange_is(unsigned collective);
/* Returns its name; "?" for other collectives. Static memory. */
const char *by_exchange_name(unsigned collective);
/* Returns a number of the call about rank `peer`. */
uint64_t by_exchange_number(const struct by_call *call, uint32_t rank_count, enum by_exchange_numbers kind,
                            uint32_t peer);
/* Whether the messages of the call travel directly. */
bool by_exchange_is_direct(const struct by_team *team, const struct by_call *call);
/* Like by_work_predict_ns; for shares of unequal size without their bytes, which differ between
 * ranks. */
uint64_t by_exchange_predict_ns(const struct by_team *team, const struct by_call *call, uint64_t *rounds);
/* Copies the rank's share for itself from `send`, the data to send. */
void by_exchange_keep(const struct by_team *team, const struct by_call *call, const void *send);
/* Returns the elements up to the end of the last share to send. */
uint64_t by_exchange_extent(const struct by_team *team, const struct by_call *call);
/* Plans the call and copies the rank's share for itself. 0 or BY_ENOMEM. */
int by_exchange_begin(const struct by_team *team, struct by_host_work *work);
/* by_phase_round for exchanges. */
void by_exchange_round(const struct by_team *team, const struct by_phase *phase, uint32_t index,
                       struct by_round *round);

#endif
