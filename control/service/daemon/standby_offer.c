/* Frames with standbys. See standby_offer.h. */
#include "control/service/daemon/standby_offer.h"

#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/service/daemon/members.h"

static void send_standby(struct by_daemon *daemon, const struct by_job *job, uint16_t rank,
                         const struct by_job_tables *standby)
{
    uint32_t trees = job->tables->lowering->tree_count, mask_bytes = (trees + 7) / 8;
    int64_t node = by_job_node(&job->spec, daemon->topology, rank);
    struct by_problem problem = {0};
    uint8_t *image = NULL, *data;
    size_t size;

    if (node < 0 || by_lowering_image(standby->lowering, (uint32_t)node, &image, &size, &problem) != 0) {
        by_daemon_say("job %u: no table of standby generation %u for rank %u: %s", job->spec.job,
                      standby->gen, rank, problem.text);
        return;
    }
    data = by_alloc(mask_bytes + size, 1);
    for (uint32_t i = 0; i < trees; i++)
        data[i / 8] = (uint8_t)(data[i / 8] | standby->replaces[i] << i % 8);
    memcpy(data + mask_bytes, image, size);
    by_members_send(daemon, job->spec.job, rank,
                    (struct by_member_frame){.type = BY_MEMBER_STANDBY,
                                             .gen = standby->gen,
                                             .base = job->tables->gen,
                                             .mask_bytes = (uint16_t)mask_bytes,
                                             .data = data,
                                             .bytes = (uint32_t)(mask_bytes + size)});
    free(image);
    free(data);
}

void by_standby_offer(struct by_daemon *daemon, const struct by_job *job, uint16_t rank)
{
    for (uint32_t i = 0; i < job->tables->standby_count && by_members_stands(daemon, job->spec.job, rank);
         i++)
        if (job->tables->standbys[i]->replaces != NULL)
            send_standby(daemon, job, rank, job->tables->standbys[i]);
}

void by_standby_tell(struct by_daemon *daemon, const struct by_job *job, bool ends)
{
    uint32_t ranks = by_job_rank_count(&job->spec, daemon->topology);

    for (uint32_t k = 0; k < ranks; k++) {
        if (ends)
            by_members_send(daemon, job->spec.job, (uint16_t)k,
                            (struct by_member_frame){.type = BY_MEMBER_STANDBY,
                                                     .gen = job->tables->gen,
                                                     .base = job->tables->gen});
        by_standby_offer(daemon, job, (uint16_t)k);
    }
}
