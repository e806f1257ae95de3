/*
 * What a switch counts, as JSON: the same in `banyan show --json` and in banyand's status. A caller
 * owns what is returned. Thread-safe. Format: docs of both commands (banyan-show(1), banyand(8)).
 */
#ifndef BY_SERVICE_CONTROLLER_COUNTERS_H
#define BY_SERVICE_CONTROLLER_COUNTERS_H

#include <jansson.h>

#include "proto/control.pb.h"

/* {"up": 12, ...}: the engine's counters, by name. */
json_t *by_counters_engine_json(const by_CountersReply *counters);

/* [{"job": 1, "share": 0.25, "rx_bytes": ..., "tx_bytes": ..., "held": ..., "dropped": ...}, ...];
 * job 0 is all jobs without a share. Empty where no job has one. */
json_t *by_counters_shares_json(const by_CountersReply *counters);

#endif
