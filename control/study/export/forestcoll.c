/*
 * Writes ForestColl's tree XML in the form of its own generator (its README: "Generate Spanning
 * Trees"): an <Algo> with the chunks of each node, a <tree> for each tree, a <send> for each edge
 * with its path. Reduce-scatter runs the trees backwards; allreduce runs them backwards and then
 * forwards. banyan adds the attribute `coll`, which names the collective. See export.h.
 */
#include "control/study/export/export.h"

#include <stdio.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/study/export/chunks.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* Returns the number of edges from the root to the farthest node. */
static uint32_t find_height(const struct by_plan *plan, const struct by_tree *tree, uint32_t *depth)
{
    uint32_t height = 0;

    depth[tree->root] = 0;
    for (uint32_t e = 0; e < tree->edge_count; e++) {
        struct by_path path = by_plan_edge(plan, tree, e);
        uint32_t at = depth[path.nodes[0]] + 1;

        depth[path.nodes[path.node_count - 1]] = at;
        height = at > height ? at : height;
    }
    return height;
}

static void write_tree(const struct by_plan *plan, const struct by_topology *topology,
                       const struct by_tree *tree, FILE *file)
{
    for (uint32_t e = 0; e < tree->edge_count; e++) {
        struct by_path path = by_plan_edge(plan, tree, e);

        fprintf(file, "    <send src=\"%s\" dst=\"%s\" path=\"", topology->nodes[path.nodes[0]].name,
                topology->nodes[path.nodes[path.node_count - 1]].name);
        for (uint32_t i = 0; i < path.node_count; i++)
            fprintf(file, "%s%s", i ? "," : "", topology->nodes[path.nodes[i]].name);
        fputs("\"/>\n", file);
    }
}

int by_export_forestcoll(const struct by_plan *plan, const struct by_topology *topology,
                         const struct by_export_options *options, void *stream, struct by_problem *problem)
{
    FILE *file = stream;
    struct by_chunks chunks;
    uint32_t *index, *depth;
    int error = by_chunks_make(&chunks, plan, topology, problem);

    (void)options;
    for (uint32_t t = 0; t < plan->tree_count && !error; t++)
        if (by_chunks_second(plan, t))
            error = by_problem_set(problem, BY_EUNSUPPORTED, (struct by_place){0, 0},
                                   "the plan uses different trees up and down, because links differ by "
                                   "direction; the format has one tree for both");
    if (error) {
        by_chunks_free(&chunks);
        return error;
    }
    index = by_alloc(topology->node_count, sizeof(*index));
    depth = by_alloc(topology->node_count, sizeof(*depth));
    fprintf(file, "<Algo nchunkspernode=\"%lld\" nchunks=\"%lld\" coll=\"%s\">\n",
            (long long)(chunks.each ? chunks.each : chunks.total), (long long)chunks.total,
            by_collective_name(plan->collective));
    for (uint32_t t = 0; t < plan->tree_count; t++) {
        const struct by_tree *tree = &plan->trees[t];

        fprintf(file, "  <tree root=\"%s\" index=\"%u\" nchunks=\"%lld\" height=\"%u\">\n",
                topology->nodes[tree->root].name, index[tree->root]++, (long long)chunks.count[t],
                find_height(plan, tree, depth));
        write_tree(plan, topology, tree, file);
        fputs("  </tree>\n", file);
    }
    fputs("</Algo>\n", file);
    free(index);
    free(depth);
    by_chunks_free(&chunks);
    return fflush(file) != 0 || ferror(file) ? BY_EIO : 0;
}
