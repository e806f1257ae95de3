/* Rates imported schedules. See compare_import.h. */
#include "control/cli/compare_import.h"

#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/cli/cli.h"
#include "control/study/baseline/net.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* Lays the messages on the fabric, and finds the rate that its tightest link allows. */
static int find_rate(const struct by_topology *topology, const struct by_check_sends *sends, uint64_t total,
                     struct by_cli_imported *imported, struct by_problem *problem)
{
    struct by_baseline_net *net = by_net_new(topology, false);
    uint32_t *nodes = by_alloc(topology->node_count, sizeof(*nodes));
    const struct by_net_arc *tightest = NULL;
    int error = 0;

    for (uint32_t i = 0; i < sends->count && !error; i++) {
        const struct by_check_send *send = &sends->sends[i];
        uint32_t from = net->compute[send->from], to = net->compute[send->to];
        uint32_t count = by_net_route(net, from, to, (int64_t)send->chunks, false, nodes);

        if (count == 0)
            error =
                by_problem_say(problem, BY_EINVAL,
                               "GPU %u sends to GPU %u, and the topology has no path from '%.80s' to "
                               "'%.80s'; add the link, or take a schedule for this fabric",
                               send->from, send->to, topology->nodes[from].name, topology->nodes[to].name);
        else if (count - 1 > imported->path_hops)
            imported->path_hops = count - 1;
    }
    for (uint32_t i = 0; i < net->arc_count && !error; i++)
        if (net->arcs[i].load > 0 && (!tightest || (__int128)net->arcs[i].capacity * tightest->load <
                                                       (__int128)tightest->capacity * net->arcs[i].load))
            tightest = &net->arcs[i];
    if (!error && !tightest)
        error = by_problem_say(problem, BY_EINVAL, "the schedule sends nothing, so it has no rate");
    else if (tightest && by_fraction_set((__int128)tightest->capacity * (int64_t)total,
                                         (__int128)tightest->load * topology->scale, &imported->rate) != 0)
        error = by_problem_say(problem, BY_ERANGE,
                               "its rate needs more than 63 bits; give the bandwidths fewer digits");
    free(nodes);
    by_net_free(net);
    return error;
}

int by_cli_imported_read(const struct by_topology *topology, const char *file, const char *path,
                         struct by_cli_imported *imported)
{
    struct by_check_report report;
    struct by_check_sends sends = {0};
    struct by_problem problem = {0};
    int error = by_check_messages(path, topology, 1, &report, &sends, &problem);

    *imported = (struct by_cli_imported){.path = path,
                                         .collective = report.collective,
                                         .depth = report.depth,
                                         .path_hops = report.path_hops,
                                         .rate = report.rate};
    if (!error && by_collective_is_rooted(report.collective))
        error = by_problem_say(&problem, BY_EUNSUPPORTED,
                               "it is a %s; --import compares allgather, reduce-scatter and allreduce, whose "
                               "bound does not depend on a root",
                               by_collective_name(report.collective));
    if (!error && !report.has_rate)
        error = find_rate(topology, &sends, report.chunk_count, imported, &problem);
    free(sends.sends);
    if (!error)
        return -1;
    if (error == BY_EINVAL && problem.line == 0)
        return by_cli_fail(BY_EXIT_USAGE, "%s does not fit %s: %s", path, file, problem.text);
    return by_cli_refuse(path, &problem);
}

const char *by_cli_imported_name(const struct by_cli_imported *imported)
{
    const char *slash = strrchr(imported->path, '/');

    return slash ? slash + 1 : imported->path;
}
