/* Paths of jobs. See paths.h. The loop's thread. */
#include "control/service/daemon/paths.h"

#include "control/service/daemon/fabric.h"

bool by_paths_use(const struct by_daemon *daemon, const struct by_job *job, bool is_link, uint32_t what)
{
    struct by_fabric_loss one;
    bool hit;

    if (job->tables == NULL)
        return false;
    by_fabric_loss_init(&one, daemon->topology);
    (is_link ? one.links : one.nodes)[what] = true;
    hit = by_fabric_is_hit(daemon->topology, job->tables, &one);
    by_fabric_loss_free(&one);
    return hit;
}

bool by_paths_without(const struct by_daemon *daemon, const struct by_job *job, uint32_t node)
{
    struct by_topology *part = NULL;
    struct by_problem ignored = {0};
    struct by_fabric_loss loss;
    bool found;

    by_fabric_loss_copy(&loss, &daemon->loss, daemon->topology);
    loss.nodes[node] = true;
    found = by_fabric_part(daemon->topology, &job->spec, &loss, &part, &ignored) == 0;
    if (found)
        by_topology_free(part);
    by_fabric_loss_free(&loss);
    return found;
}

bool by_paths_need(const struct by_daemon *daemon, uint32_t node)
{
    bool some = false;

    for (uint32_t i = 0; i < daemon->job_count; i++) {
        const struct by_job *job = daemon->jobs[i];

        if (!by_paths_use(daemon, job, false, node))
            continue;
        if (by_paths_without(daemon, job, node))
            return false;
        some = true;
    }
    return some;
}
