/* Writes repaired trees as a plan, and counts the differences from the old one. See replan_job.h;
 * neighbours: replan.c, which determines the rate, and repair.c, which repairs. */
#include "control/planner/replan/replan_job.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/planner/network/budget.h"
#include "control/planner/network/ordered.h"
#include "offload/base/errors.h"

/* Marks the nodes of a path as changed. */
static void mark_path(const struct by_repair *repair, uint32_t path, bool *changed)
{
    struct by_path view = by_paths_get(&repair->paths, path);

    for (uint32_t i = 0; i < view.node_count; i++)
        changed[view.nodes[i]] = true;
}

/* Compares a tree with its origin; returns whether anything differs. */
static bool compare(const struct by_replan_job *job, const struct by_repaired *tree, uint32_t *old_parent,
                    bool *changed, struct by_replan_report *report)
{
    const struct by_tree *old = &job->from->trees[tree->origin];
    uint32_t n = job->graph->node_count;
    bool any = false;

    for (uint32_t v = 0; v < n; v++) {
        old_parent[v] = BY_REPAIR_OUTSIDE;
        changed[v] = tree->copy && tree->parent[v] != BY_REPAIR_OUTSIDE;
    }
    for (uint32_t e = 0; e < old->edge_count; e++) {
        uint32_t path = job->from->edges[old->first_edge + e];
        uint32_t child = job->now[by_paths_to(&job->from->paths, path)];
        uint32_t parent = job->now[by_paths_from(&job->from->paths, path)];

        if (child != UINT32_MAX)
            old_parent[child] = job->path_now[path] == UINT32_MAX ? BY_REPAIR_LOOSE : job->path_now[path];
        if (parent != UINT32_MAX && child == UINT32_MAX) /* the parent lost a child */
            changed[parent] = any = true;
    }
    for (uint32_t v = 0; v < n; v++) {
        if (tree->parent[v] < BY_REPAIR_LOOSE)
            report->entries += by_paths_hops(&job->repair.paths, tree->parent[v]);
        if (old_parent[v] == tree->parent[v])
            continue;
        any = true;
        if (old_parent[v] < BY_REPAIR_LOOSE)
            mark_path(&job->repair, old_parent[v], changed);
        if (tree->parent[v] < BY_REPAIR_LOOSE)
            mark_path(&job->repair, tree->parent[v], changed);
    }
    report->entries++; /* the root's entry */
    for (uint32_t v = 0; v < n; v++)
        report->entries_changed += changed[v];
    return any;
}

static uint64_t count_hops(const struct by_replan_job *job, const struct by_tree *tree)
{
    uint64_t hops = 0;

    for (uint32_t e = 0; e < tree->edge_count; e++)
        hops += by_paths_hops(&job->from->paths, job->from->edges[tree->first_edge + e]);
    return hops;
}

static void count_changes(const struct by_replan_job *job, const struct by_repaired_list *trees,
                          struct by_replan_report *report)
{
    uint32_t *old_parent = by_alloc(job->graph->node_count, sizeof(*old_parent));
    bool *changed = by_alloc(job->graph->node_count, sizeof(*changed));

    report->trees_before = job->from->tree_count;
    for (uint32_t i = 0; i < trees->count; i++) {
        const struct by_repaired *tree = &trees->trees[i];
        bool different = tree->copy || tree->touched || !job->same_nodes;

        if (different)
            different = compare(job, tree, old_parent, changed, report);
        else
            report->entries += 1 + count_hops(job, &job->from->trees[tree->origin]);

        report->trees_new += trees->trees[i].copy;
        report->trees_changed += !trees->trees[i].copy && different;
        report->trees_kept += !trees->trees[i].copy && !different;
    }
    free(changed);
    free(old_parent);
}

/* Appends the tree to the list, parents before children. */
static void append(const struct by_replan_job *job, const struct by_repaired *tree, struct by_fraction weight,
                   struct by_tree_list *list)
{
    uint32_t n = job->graph->node_count, head = 0, tail = 0, count = 0;
    uint32_t *first = by_alloc(n, sizeof(*first)), *next = by_alloc(n, sizeof(*next));
    uint32_t *queue = by_alloc(n, sizeof(*queue)), *edges = by_alloc(n, sizeof(*edges));
    const struct by_tree *old = &job->from->trees[tree->origin];

    if (job->same_nodes && !tree->touched) { /* unchanged */
        count = old->edge_count;
        memcpy(edges, job->from->edges + old->first_edge, count * sizeof(*edges));
    }
    memset(first, 0xff, n * sizeof(*first));
    for (uint32_t v = n; v-- > 0 && count == 0;)
        if (tree->parent[v] < BY_REPAIR_LOOSE) {
            uint32_t parent = by_paths_from(&job->repair.paths, tree->parent[v]);

            next[v] = first[parent];
            first[parent] = v;
        }
    queue[tail++] = tree->root;
    while (head < tail) {
        uint32_t node = queue[head++];

        for (uint32_t c = first[node]; c != UINT32_MAX; c = next[c]) {
            edges[count++] = tree->parent[c];
            queue[tail++] = c;
        }
    }
    by_tree_list_append(list, tree->root, by_replan_goes_up(job) ? BY_TREE_UP : tree->use, weight, edges,
                        count);
    free(first);
    free(next);
    free(queue);
    free(edges);
}

/* Appends trees in pairs, each tree that carries up before one of the same root and weight that
 * carries down. The sums of both are equal for each root. */
static int append_pairs(const struct by_replan_job *job, const struct by_repaired_list *trees,
                        struct by_fraction unit, struct by_tree_list *list)
{
    int64_t *left = by_alloc(trees->count, sizeof(*left));
    uint32_t n = job->graph->node_count, *next = by_alloc(n, sizeof(*next));
    int error = 0;

    for (uint32_t i = 0; i < trees->count; i++)
        left[i] = trees->trees[i].amount;
    for (uint32_t i = 0; i < trees->count && !error; i++) {
        const struct by_repaired *up = &trees->trees[i];
        uint32_t *j = &next[up->root];

        while (up->use == BY_TREE_UP && left[i] > 0 && !error) {
            struct by_fraction weight;
            int64_t amount;

            while (*j < trees->count && (trees->trees[*j].use != BY_TREE_DOWN ||
                                         trees->trees[*j].root != up->root || left[*j] == 0))
                ++*j;
            if (*j == trees->count) { /* a root has fewer trees down: such a plan cannot be repaired */
                error = BY_EUNSUPPORTED;
                break;
            }
            amount = left[i] < left[*j] ? left[i] : left[*j];
            error = by_fraction_multiply(unit, (struct by_fraction){amount, 1}, &weight);
            append(job, up, weight, list);
            append(job, &trees->trees[*j], weight, list);
            left[i] -= amount;
            left[*j] -= amount;
        }
    }
    free(left);
    free(next);
    return error;
}

/* Whether the trees keep the limits of addition, and the order of ranks if the old plan has one. */
static bool keeps_promises(const struct by_replan_job *job, const struct by_tree_list *list)
{
    struct by_plan view = {
        .trees = list->trees, .tree_count = list->count, .paths = list->paths, .edges = list->edges};

    return by_budget_kept(list, job->topology, NULL) &&
           (!job->from->ordered || by_ordered_is(&view, job->topology));
}

int by_replan_write(struct by_replan_job *job, const struct by_repaired_list *trees,
                    struct by_fraction slower, struct by_replan_report *report)
{
    struct by_plan *plan = job->plan;
    struct by_tree_list list = {.paths = job->repair.paths};
    struct by_fraction unit, weight;
    int error = 0;

    if (by_fraction_divide(plan->optimum, slower, &plan->achieved) != 0 ||
        by_fraction_divide(
            plan->achieved,
            (struct by_fraction){job->units * (by_replan_is_shared(job) ? plan->compute_count : 1), 1},
            &unit) != 0)
        return BY_ERANGE;
    if (job->pairs)
        error = append_pairs(job, trees, unit, &list);
    for (uint32_t i = 0; i < trees->count && !job->pairs && !error; i++) {
        error = by_fraction_multiply(unit, (struct by_fraction){trees->trees[i].amount, 1}, &weight);
        append(job, &trees->trees[i], weight, &list);
    }
    if (!error && !keeps_promises(job, &list))
        error = BY_EUNSUPPORTED;
    if (error) {
        free(list.trees); /* the job keeps the paths */
        free(list.edges);
        return error;
    }
    count_changes(job, trees, report);
    report->trees_new += job->pairs ? list.count - trees->count : 0; /* split by the new pairing */
    job->repair.paths = (struct by_paths){0};                        /* now owned by the list */
    by_tree_list_move(&list, plan);
    plan->k = by_replan_is_shared(job) || by_replan_is_rooted(job) ? job->units : 0;
    plan->ordered = job->from->ordered;
    return 0;
}
