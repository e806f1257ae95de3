/*
 * Opens the connections of a schedule: one for each path that begins or ends at this rank.
 * Blocking, with a deadline; collective; one thread.
 */
#ifndef BY_HOST_SCHEDULE_CONNECT_H
#define BY_HOST_SCHEDULE_CONNECT_H

#include <stdint.h>

#include "host-driver/schedule/program.h"

struct by_peers;

/* Connects the ways of `count` programs, which must be equal at all ranks: fds[] has a socket for
 * each way, those of the first program first; -1 where there is none after an error. `error` is why
 * this rank has no programs, with its text, or 0. 0, or an error with its text. */
int by_connect_ways(struct by_program *const *programs, uint32_t count, int error, struct by_peers *peers,
                    uint32_t key, uint64_t deadline_ns, int *fds);

#endif
