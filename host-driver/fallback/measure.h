/*
 * What a message costs between hosts, for the count of blocks: a latency and a time for each byte,
 * found by ranks 0 and 1 over their connection. Blocking, with a deadline; one thread.
 */
#ifndef BY_HOST_FALLBACK_MEASURE_H
#define BY_HOST_FALLBACK_MEASURE_H

#include "host-driver/fallback/mesh.h"
#include "host-driver/fallback/moves.h"

/* Sets latency_ns and gap_ps of `team` at rank 0; rank 1 answers, the others do nothing. 0, or an
 * error with its text. */
int by_measure(struct by_host_mesh *mesh, struct by_team *team, uint64_t deadline_ns);

#endif
