/*
 * Removes failed elements from the fabric, adapts the plan, and prints what changed. See replan.h.
 */
#include "control/cli/replan.h"

#include <errno.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/cli/cli.h"
#include "control/cli/links.h"
#include "control/fabric/vary.h"
#include "offload/wire/types.h"

/* Makes the fabric without the elements of --fail-link and --fail-node. */
static int lose(const struct by_cli_from *from, const char *path, const struct by_topology *topology,
                struct by_topology **left)
{
    bool *links = by_alloc(topology->link_count, sizeof(*links));
    bool *nodes = by_alloc(topology->node_count, sizeof(*nodes));
    struct by_problem problem = {0};
    int status = -1;

    for (uint32_t i = 0; i < from->link_count && status < 0; i++)
        status = by_cli_mark_links(topology, path, "--fail-link", from->links[i], links);
    for (uint32_t i = 0; i < from->node_count && status < 0; i++) {
        int64_t node = by_topology_find(topology, from->nodes[i]);

        if (node < 0)
            status = by_cli_fail(BY_EXIT_USAGE, "--fail-node %.60s: %s has no node with this name",
                                 from->nodes[i], path);
        else
            nodes[node] = true;
    }
    if (status < 0 && by_topology_without(topology, links, nodes, left, &problem) != 0)
        status = by_cli_refuse(path, &problem);
    free(links);
    free(nodes);
    return status;
}

static int write_topology(const struct by_topology *topology, const char *path)
{
    struct by_output output;
    int status;

    if (!by_cli_create(&output, path))
        return BY_EXIT_ENVIRONMENT;
    status = by_cli_finish(&output, by_topology_write(topology, output.stream) == 0);
    return status == BY_EXIT_DONE ? -1 : status;
}

int by_cli_replan(const struct by_cli_from *from, const char *path, unsigned collective, bool in_network,
                  double time_limit_s, struct by_topology **topology, struct by_plan **plan,
                  struct by_replan_report *report)
{
    struct by_topology *before = NULL, *now = NULL;
    struct by_plan *old = NULL;
    struct by_problem problem = {0};
    int status = -1;

    if (from->link_count + from->node_count > 0) {
        status = lose(from, path, *topology, &now);
        if (status < 0) { /* TOPO is the fabric of the previous plan */
            before = *topology;
            *topology = now;
        }
    }
    if (status < 0 && (before ? by_plan_read(from->plan, before, &old, &problem)
                              : by_replan_read(from->plan, *topology, &before, &old, &problem)) != 0)
        status = by_cli_refuse(from->plan, &problem);
    if (status < 0 && collective != 0 && old->collective != collective)
        status = by_cli_fail(BY_EXIT_USAGE, "%s is a plan for %s, not for %s; leave -c out", from->plan,
                             by_collective_name(old->collective), by_collective_name(collective));
    if (status < 0 &&
        by_replan(before, old, *topology, in_network, time_limit_s, plan, report, &problem) != 0)
        status = by_cli_refuse(from->plan, &problem);
    if (status < 0 && from->write)
        status = write_topology(*topology, from->write);
    by_plan_free(old);
    by_topology_free(before);
    return status;
}

void by_cli_replan_people(FILE *stream, const struct by_cli_from *from, const struct by_replan_report *report)
{
    if (!from->plan)
        return;
    if (report->anew && report->late)
        fputs("  the time limit passed before the trees were repaired, so all trees are new\n", stream);
    else if (report->anew && report->high)
        fputs("  repaired trees are too high, so all trees are planned again\n", stream);
    else if (report->anew && report->many)
        fputs("  repaired trees are too many, so all trees are planned again\n", stream);
    else if (report->anew && report->slow)
        fputs("  repaired trees are slower than new ones, so all trees are planned again\n", stream);
    else if (report->anew)
        fputs("  no repair keeps the order of ranks on this fabric, so all trees are planned again\n",
              stream);
    fprintf(stream, "  of %u trees, %u are unchanged, %u change", report->trees_before, report->trees_kept,
            report->trees_changed);
    if (report->trees_new)
        fprintf(stream, ", %u are split off", report->trees_new);
    if (report->trees_gone)
        fprintf(stream, ", %u are lost with their root", report->trees_gone);
    fprintf(stream, "; %llu of %llu table entries change\n", (unsigned long long)report->entries_changed,
            (unsigned long long)report->entries);
    if (!report->optimal)
        fputs("  few changes cost the difference to the bound; a plan without --from may reach it, with "
              "all trees new\n",
              stream);
}

void by_cli_replan_json(FILE *stream, const struct by_cli_from *from, const struct by_replan_report *report)
{
    if (!from->plan)
        return;
    fprintf(
        stream,
        " \"replan\": {\"trees_before\": %u, \"trees_kept\": %u, \"trees_changed\": %u, \"trees_new\": %u, "
        "\"trees_gone\": %u, \"entries\": %llu, \"entries_changed\": %llu, \"optimal\": %s},\n",
        report->trees_before, report->trees_kept, report->trees_changed, report->trees_new,
        report->trees_gone, (unsigned long long)report->entries, (unsigned long long)report->entries_changed,
        report->optimal ? "true" : "false");
}
