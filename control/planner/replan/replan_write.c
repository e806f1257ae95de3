/* Writes repaired trees as a plan, and counts the differences from the old one. See replan_job.h;
 * neighbours: replan.c, which determines the rate, and repair.c, which repairs. */
#include "control/planner/replan/replan_job.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/planner/network/budget.h"
#include "control/planner/network/ordered.h"
#include "offload/base/errors.h"

/* Edges that are compared at once (count). */
#define RUN_EDGES 32u

/* What differs between a tree and its origin: paths. */
struct tree_change {
    uint32_t *paths[2]; /* old ones that are gone, new ones */
    uint32_t counts[2];
    uint32_t *stamp, round; /* by node: the last tree in which it changed */
};

static int compare_numbers(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

    return (a > b) - (a < b);
}

/* Removes the numbers that both sorted lists have. */
static void cancel(struct tree_change *change)
{
    uint32_t *a = change->paths[0], *b = change->paths[1], i = 0, j = 0, kept[2] = {0, 0};

    for (int side = 0; side < 2; side++)
        if (change->counts[side] > 1)
            qsort(change->paths[side], change->counts[side], sizeof(*a), compare_numbers);
    while (i < change->counts[0] || j < change->counts[1]) {
        if (j == change->counts[1] || (i < change->counts[0] && a[i] < b[j])) {
            a[kept[0]++] = a[i++];
        } else if (i == change->counts[0] || b[j] < a[i]) {
            b[kept[1]++] = b[j++];
        } else {
            i++;
            j++;
        }
    }
    change->counts[0] = kept[0];
    change->counts[1] = kept[1];
}

/* Finds the paths by which the tree differs from its origin. Most edges are the same in the same
 * order. */
static void find_change(const struct by_replan_job *job, const struct by_repaired *tree,
                        struct tree_change *change)
{
    const struct by_tree *old = &job->from->trees[tree->origin];
    const uint32_t *before = job->from->edges + old->first_edge, *now = tree->edges;
    uint32_t i = 0, j = 0;

    change->counts[0] = change->counts[1] = 0;
    while (i < old->edge_count && j < tree->edge_count) {
        if (before[i] == now[j]) {
            uint32_t same = old->edge_count - i >= RUN_EDGES && tree->edge_count - j >= RUN_EDGES &&
                                    memcmp(before + i, now + j, RUN_EDGES * sizeof(*now)) == 0
                                ? RUN_EDGES
                                : 1;

            i += same;
            j += same;
        } else if (i + 1 < old->edge_count && before[i + 1] == now[j]) {
            change->paths[0][change->counts[0]++] = before[i++];
        } else {
            change->paths[0][change->counts[0]++] = before[i++];
            change->paths[1][change->counts[1]++] = now[j++];
        }
    }
    while (i < old->edge_count)
        change->paths[0][change->counts[0]++] = before[i++];
    while (j < tree->edge_count)
        change->paths[1][change->counts[1]++] = now[j++];
    cancel(change);
}

static uint32_t mark(struct tree_change *change, uint32_t node)
{
    bool fresh = change->stamp[node] != change->round;

    change->stamp[node] = change->round;
    return fresh;
}

/* Counts the nodes whose entries change in the tree, and adds up the tree's entries. */
static bool compare(const struct by_replan_job *job, const struct by_repaired *tree,
                    struct tree_change *change, struct by_replan_report *report)
{
    const struct by_repair *repair = &job->repair;
    uint32_t changed = 0;

    find_change(job, tree, change);
    change->round++;
    report->entries += tree->hops;
    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < change->counts[side]; i++) {
            uint32_t number = change->paths[side][i];
            struct by_path view = by_paths_get(&repair->paths, number);
            enum by_path_fate fate = (enum by_path_fate)repair->path[number].fate;

            report->entries += side == 1 ? repair->path[number].hops : 0;
            report->entries -= side == 0 ? repair->path[number].hops : 0;
            if (fate == BY_PATH_WHOLE) {
                for (uint32_t n = 0; n < view.node_count; n++)
                    changed += mark(change, view.nodes[n]);
            } else if (fate == BY_PATH_DEAD) { /* the parent lost a child */
                uint32_t parent = job->now[by_paths_from(&job->from->paths, number)];

                changed += parent != UINT32_MAX && mark(change, parent);
            }
        }
    for (uint32_t i = 0; i < tree->edge_count && tree->copy; i++)
        changed += mark(change, repair->path[tree->edges[i]].to);
    report->entries_changed += changed;
    return change->counts[0] + change->counts[1] > 0;
}

static void count_changes(const struct by_replan_job *job, const struct by_repaired_list *trees,
                          struct by_replan_report *report)
{
    uint32_t n = job->graph->node_count;
    struct tree_change change = {.stamp = by_alloc(n, sizeof(*change.stamp))};

    for (int side = 0; side < 2; side++) /* trees of the old fabric may have had more nodes */
        change.paths[side] = by_alloc(job->before->node_count + (size_t)n, sizeof(*change.paths[side]));
    report->trees_before = job->from->tree_count;
    for (uint32_t i = 0; i < trees->count; i++) {
        const struct by_repaired *tree = &trees->trees[i];
        bool different = tree->copy || tree->changed;

        report->entries++; /* the root's */
        if (different)
            different = compare(job, tree, &change, report);
        else
            report->entries += tree->hops;
        report->trees_new += tree->copy;
        report->trees_changed += !tree->copy && different;
        report->trees_kept += !tree->copy && !different;
    }
    free(change.paths[0]);
    free(change.paths[1]);
    free(change.stamp);
}

static void append(const struct by_replan_job *job, const struct by_repaired *tree, struct by_fraction weight,
                   struct by_tree_list *list)
{
    by_tree_list_append(list, tree->root, by_replan_goes_up(job) ? BY_TREE_UP : tree->use, weight,
                        tree->edges, tree->edge_count);
}

/* Gives paths from number `kept` on their new numbers. Most edges have others, so that they are
 * looked at in runs. */
static void renumber(uint32_t *edges, uint32_t count, const uint32_t *number, uint32_t kept)
{
    for (uint32_t first = 0; first < count; first += RUN_EDGES) {
        uint32_t end = count - first < RUN_EDGES ? count : first + RUN_EDGES, large = 0;

        for (uint32_t e = first; e < end; e++)
            large |= edges[e] >= kept;
        for (uint32_t e = first; e < end && large; e++)
            if (edges[e] >= kept)
                edges[e] = number[edges[e]];
    }
}

/* Removes the paths that no tree carries. The last ones take their numbers, so that few edges
 * change: where these are all new, only edges of `trees` that changed, unless they were paired. */
static void drop_paths(struct by_repair *repair, const struct by_repaired_list *trees,
                       struct by_tree_list *list)
{
    uint32_t count = list->paths.count, *number = by_alloc(count, sizeof(*number)), kept = 0, hole = 0;

    for (uint32_t p = 0; p < count; p++)
        kept += repair->carried[p] != 0;
    for (uint32_t p = 0; p < count; p++) {
        number[p] = repair->carried[p] != 0 ? p : UINT32_MAX;
        if (number[p] == UINT32_MAX || p < kept)
            continue;
        while (repair->carried[hole] != 0)
            hole++;
        number[p] = hole++;
    }
    for (uint32_t i = 0; i < list->count && kept < count; i++) {
        uint32_t *edges = list->edges + list->trees[i].first_edge;

        if (trees && kept >= repair->path_count_old && !trees->trees[i].changed)
            continue;
        renumber(edges, list->trees[i].edge_count, number, kept);
    }
    if (kept < count)
        by_paths_renumber(&list->paths, number, kept);
    free(number);
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

/* Makes room in the list for all edges at once. */
static void make_room(const struct by_repaired_list *trees, struct by_tree_list *list)
{
    for (uint32_t i = 0; i < trees->count; i++)
        list->edge_room += trees->trees[i].edge_count;
    list->edges = by_alloc_table(list->edge_room, sizeof(*list->edges));
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
    make_room(trees, &list);
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
    drop_paths(&job->repair, job->pairs ? NULL : trees, &list);
    by_tree_list_give(&list, plan);
    plan->k = by_replan_is_shared(job) || by_replan_is_rooted(job) ? job->units : 0;
    plan->ordered = job->from->ordered;
    return 0;
}
