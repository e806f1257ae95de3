/* Ranks that wait for recovery, and the parts that they use. See recovery.h. The loop's thread. */
#include <string.h>

#include "control/service/daemon/changes.h"
#include "control/service/daemon/jobs.h"
#include "control/service/daemon/paths.h"
#include "control/service/daemon/recovery_inside.h"

/* Switches are queried when a push to them takes longer (ms). */
#define PUSH_MS 30u

bool by_recovery_is_slow(const struct by_daemon *daemon)
{
    return daemon->recovery->pushing_ms != 0 && daemon->now_ms - daemon->recovery->pushing_ms >= PUSH_MS;
}

bool by_recovery_has_rank(const struct by_daemon *daemon, uint16_t job, uint16_t rank)
{
    return daemon->recovery != NULL &&
           by_recover_has_rank(daemon->recover, by_recovery_find(daemon->recovery, job), rank);
}

bool by_recovery_waiting(struct by_daemon *daemon, bool *used)
{
    const struct by_recovery *recovery = daemon->recovery;
    bool some = false;

    if (recovery == NULL || !recovery->begun)
        return false;
    memset(used, 0, daemon->topology->link_count * sizeof(*used));
    for (uint32_t i = 0; i < recovery->place_count; i++) {
        const struct by_job *job = recovery->places[i].job != 0 ? by_recovery_job(daemon, i) : NULL;

        if (job == NULL || job->tables == NULL || !by_recover_waits(daemon->recover, i))
            continue;
        some = true;
        for (uint32_t l = 0; l < daemon->topology->link_count; l++)
            used[l] |= job->tables->uses_link[l];
    }
    return some;
}

bool by_recovery_suspects(struct by_daemon *daemon, uint32_t node)
{
    const struct by_recovery *recovery = daemon->recovery;

    for (uint32_t i = 0; recovery != NULL && recovery->begun && i < recovery->place_count; i++) {
        const struct by_job *job = recovery->places[i].job != 0 ? by_recovery_job(daemon, i) : NULL;
        bool waits =
            job != NULL && by_recover_suspects(daemon->recover, i) && by_paths_use(daemon, job, false, node);
        bool stops =
            job != NULL && by_recovery_is_slow(daemon) && by_change_has_target(recovery->change, node);

        if ((waits || stops) && by_paths_without(daemon, job, node))
            return true;
    }
    return false;
}

const bool *by_recovery_suspected(struct by_daemon *daemon, uint16_t job)
{
    uint32_t place = daemon->recovery != NULL ? by_recovery_find(daemon->recovery, job) : UINT32_MAX;
    const struct by_job *of = place != UINT32_MAX ? by_recovery_job(daemon, place) : NULL;

    return of != NULL && of->tables != NULL && by_recover_suspects(daemon->recover, place)
               ? of->tables->uses_link
               : NULL;
}
