/* The ranks of a team and their schedules; see team.h. */
#include "host-driver/fallback/team.h"

#include <stdlib.h>
#include <string.h>

#include "host-driver/circulant/circulant.h"
#include "host-driver/error.h"

const char *by_way_name(enum by_way way)
{
    return way == BY_WAY_RING ? "ring" : way == BY_WAY_CUBE ? "rhd" : "circulant";
}

int by_team_plan(struct by_team *team, uint32_t rank, uint32_t rank_count, enum by_way way)
{
    memset(team, 0, sizeof(*team));
    if (!by_circulant_init(&team->circulant, rank_count))
        return by_fail(BY_ELIMIT, "%u ranks are more than the schedules support", rank_count);
    team->moves = by_circulant_moves(&team->circulant);
    team->rank = rank;
    team->way = way;
    return 0;
}

int by_team_open(struct by_team *team, uint32_t rank, uint32_t count, enum by_way way)
{
    int error = by_team_plan(team, rank, count, way);

    if (error != 0)
        return error;
    team->schedules = calloc(count, sizeof(*team->schedules));
    if (team->schedules == NULL)
        return by_fail(BY_ENOMEM, "no memory for the schedules of %u ranks", count);
    for (uint32_t other = 0; other < count; other++)
        by_circulant_schedule(&team->circulant, other, &team->schedules[other]);
    return 0;
}
