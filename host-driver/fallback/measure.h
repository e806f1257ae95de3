/*
 * Measures the cost of a message between hosts, which determines the number of blocks: a latency
 * and a time per byte, between rank 0 and a rank of another host. Blocking, with a deadline; one
 * thread.
 */
#ifndef BY_HOST_FALLBACK_MEASURE_H
#define BY_HOST_FALLBACK_MEASURE_H

#include "host-driver/fallback/mesh.h"
#include "host-driver/fallback/moves.h"

/* Sets latency_ns and gap_ps of `team` at rank 0. Rank `partner` answers; other ranks do nothing.
 * 0, or an error with its text. */
int by_measure(struct by_host_mesh *mesh, uint32_t partner, struct by_team *team, uint64_t deadline_ns);

#endif
