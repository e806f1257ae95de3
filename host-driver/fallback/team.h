/*
 * The ranks whose calls run between hosts, and the schedules of their messages (moves.h).
 */
#ifndef BY_HOST_FALLBACK_TEAM_H
#define BY_HOST_FALLBACK_TEAM_H

#include <stdint.h>

#include "host-driver/fallback/moves.h"

/* "circulant", "ring" or "rhd". */
const char *by_way_name(enum by_way way);
/* Prepares a team for predictions only: without schedules. 0, or an error with its text. */
int by_team_plan(struct by_team *team, uint32_t rank, uint32_t rank_count, enum by_way way);
/* The same with schedules, which the caller frees. */
int by_team_open(struct by_team *team, uint32_t rank, uint32_t count, enum by_way way);

#endif
