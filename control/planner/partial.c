/* Plans for a subset of the compute nodes. See partial.h. */
#include "control/planner/partial.h"

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/fabric/members.h"
#include "control/planner/planner.h"
#include "offload/base/errors.h"

static const struct by_place nowhere = {0, 0};

/* Converts the plan's nodes to the numbers of the whole fabric. Path numbers stay the same. */
static void renumber(struct by_plan *plan, const uint32_t *whole)
{
    struct by_paths paths = {0};
    struct by_certificate *proof = plan->proof;

    plan->root = plan->root >= 0 ? (int64_t)whole[plan->root] : -1;
    for (uint32_t i = 0; i < plan->cut_count; i++)
        plan->cut[i] = whole[plan->cut[i]];
    for (uint32_t i = 0; i < plan->tree_count; i++)
        plan->trees[i].root = whole[plan->trees[i].root];
    for (uint32_t i = 0; i < plan->paths.node_count; i++)
        plan->paths.nodes[i] = whole[plan->paths.nodes[i]];
    for (uint32_t i = 0; i < plan->paths.count; i++) {
        struct by_path path = by_paths_get(&plan->paths, i);

        by_paths_add(&paths, path.nodes, path.node_count);
    }
    by_paths_free(&plan->paths);
    plan->paths = paths;
    for (uint32_t i = 0; proof && i < proof->part_count; i++)
        for (uint32_t j = 0; j < proof->parts[i].node_count; j++)
            proof->parts[i].nodes[j] = whole[proof->parts[i].nodes[j]];
    for (uint32_t i = 0; proof && i < proof->price_count; i++) {
        proof->prices[i].from = whole[proof->prices[i].from];
        proof->prices[i].to = whole[proof->prices[i].to];
    }
}

static int check(const struct by_topology *topology, const struct by_plan_options *options,
                 struct by_problem *problem)
{
    for (uint32_t i = 0; i < topology->node_count; i++) {
        if (options->member[i] && !topology->nodes[i].compute)
            return by_problem_set(problem, BY_EINVAL, nowhere, "'%s' is a switch: ranks are compute nodes",
                                  topology->nodes[i].name);
        if (options->shares && options->shares[i] != 0 && !options->member[i])
            return by_problem_set(problem, BY_EINVAL, nowhere,
                                  "'%s' has a share of the data but is not a rank", topology->nodes[i].name);
    }
    if (by_members_count(topology, options->member) < 2)
        return by_problem_set(problem, BY_EINVAL, nowhere,
                              "fewer than two compute nodes participate; a collective needs at least two");
    if (options->root >= 0 && options->root < topology->node_count && !options->member[options->root])
        return by_problem_set(problem, BY_EINVAL, nowhere, "the root '%s' is not a rank",
                              topology->nodes[options->root].name);
    return 0;
}

int by_partial_plan(const struct by_topology *topology, const struct by_plan_options *options,
                    struct by_plan **plan, struct by_problem *problem)
{
    struct by_plan_options inner = *options;
    uint32_t *whole = NULL, n = topology->node_count;
    struct by_topology *part = NULL;
    int64_t *shares = NULL;
    int error = check(topology, options, problem);

    if (!error)
        error = by_members_part(topology, options->member, &part, &whole, problem);
    if (error)
        return error;
    inner.member = NULL;
    shares = by_alloc(n, sizeof(*shares));
    for (uint32_t i = 0; i < part->node_count; i++) {
        shares[i] = options->shares ? options->shares[whole[i]] : 0;
        if (options->root == (int64_t)whole[i])
            inner.root = i;
    }
    inner.shares = options->shares ? shares : NULL;
    error = by_plan_make(part, &inner, plan, problem);
    if (!error && (*plan)->rotations) {
        by_plan_free(*plan);
        *plan = NULL;
        error = by_problem_set(problem, BY_EUNSUPPORTED, nowhere,
                               "plans by classes are of all compute nodes, not of some");
    } else if (!error) {
        struct by_plan *made = *plan;

        renumber(made, whole);
        if (made->shares)
            made->shares = by_realloc(made->shares, n, sizeof(*made->shares));
        for (uint32_t i = 0; i < n && made->shares; i++)
            made->shares[i] = options->shares[i];
        made->member = by_alloc(n, sizeof(*made->member));
        memcpy(made->member, options->member, n * sizeof(*made->member));
    }
    free(shares);
    free(whole);
    by_topology_free(part);
    return error;
}
