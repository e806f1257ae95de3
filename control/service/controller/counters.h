/* The counters of a switch as JSON, for `banyan show --json` and the status of banyand. The caller
 * frees the results. Thread-safe. Format: banyan-show(1), banyand(1). */
#ifndef BY_SERVICE_CONTROLLER_COUNTERS_H
#define BY_SERVICE_CONTROLLER_COUNTERS_H

#include <jansson.h>

#include "proto/control.pb.h"

/* {"up": 12, ...}: the counters of the engine, by name. */
json_t *by_counters_engine_json(const by_CountersReply *counters);

/* [{"job": 1, "share": 0.25, "rx_bytes": ..., "tx_bytes": ..., "held": ..., "dropped": ...}, ...];
 * job 0 is all jobs without a share. Empty where no job has one. */
json_t *by_counters_shares_json(const by_CountersReply *counters);

#endif
