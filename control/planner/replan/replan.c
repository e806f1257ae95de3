/*
 * Makes a new plan from an old one. See replan.h. Trees are counted in units, k per root: the old k
 * times the factor that the new optimum needs, so that every old tree is an integer number of
 * units. The capacity of a link is the number of units it carries at the tried rate: first the
 * optimum, then lower rates.
 */
#include "control/planner/replan/replan_job.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/fabric/names.h"
#include "control/planner/network/budget.h"
#include "control/planner/network/ordered.h"
#include "control/planner/network/parts.h"
#include "control/planner/optimum/optimum.h"
#include "control/planner/planner.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* Maximum of units per root: beyond it, a slightly slower plan with fewer units is made. */
#define UNITS_MAX 1000000

/* Ways of repair that are tried at the bound (count): they differ in the order of trees and the
 * cost of full links. */
#define WAYS_MAX 4u

/* Trees of so few hops are never too high: more where repaired trees are kept, and on fabrics of
 * more than so many compute nodes, where a new plan takes too long to be made for a comparison. */
#define LOW_HOPS      2u
#define LOW_HOPS_KEPT 8u
#define LOW_NODES_MAX 512u

static const struct by_place nowhere = {0, 0};

static int refuse_range(struct by_problem *problem)
{
    return by_problem_set(problem, BY_ERANGE, nowhere,
                          "the repaired trees need numbers of more than 63 bits; plan again without --from");
}

static int check(const struct by_replan_job *job, struct by_problem *problem)
{
    const struct by_plan *from = job->from;

    if (from->shares || from->member)
        return by_problem_set(problem, BY_EUNSUPPORTED, nowhere,
                              "the old plan is for %s and cannot be repaired; plan again without --from",
                              from->shares ? "shards of unequal size" : "some of the compute nodes");
    if (by_replan_is_rooted(job) && (from->root < 0 || job->now[from->root] == UINT32_MAX))
        return by_problem_set(problem, BY_EUNSUPPORTED, nowhere,
                              "the root of the old plan is lost; plan another root without --from");
    for (uint32_t i = 0; i < job->topology->node_count && by_replan_is_shared(job); i++)
        if (job->topology->nodes[i].compute && !job->known[i])
            return by_problem_set(problem, BY_EUNSUPPORTED, nowhere,
                                  "compute node '%s' is not in the old plan; plan again without --from",
                                  job->topology->nodes[i].name);
    return 0;
}

/* Renumbers the nodes of the paths. A path through lost nodes gets its ends alone. */
static void map_paths(struct by_replan_job *job)
{
    struct by_paths *paths = &job->repair.paths;

    job->fate = by_alloc(paths->count, sizeof(*job->fate));
    for (uint32_t p = 0; p < paths->count; p++) {
        uint32_t *nodes = paths->nodes + paths->start[p], count = by_paths_hops(paths, p) + 1;
        uint32_t end = job->now[nodes[count - 1]];

        job->fate[p] = end == UINT32_MAX ? BY_PATH_DEAD : BY_PATH_WHOLE;
        for (uint32_t i = 0; i < count; i++) {
            nodes[i] = job->now[nodes[i]];
            if (nodes[i] != UINT32_MAX)
                continue;
            if (job->fate[p] == BY_PATH_WHOLE)
                job->fate[p] = BY_PATH_GONE;
            nodes[i] = end == UINT32_MAX ? 0 : end;
        }
    }
}

static void map_nodes(struct by_replan_job *job)
{
    struct by_names *names = by_names_new(job->topology);

    job->known = by_alloc(job->topology->node_count, sizeof(*job->known));
    job->now = by_alloc(job->before->node_count, sizeof(*job->now));
    for (uint32_t i = 0; i < job->before->node_count; i++) {
        const char *name = job->before->nodes[i].name;
        int64_t found = by_names_find(names, name, strlen(name));

        job->now[i] = found < 0 ? UINT32_MAX : (uint32_t)found;
        if (found >= 0)
            job->known[found] = true;
    }
    by_names_free(names);
    job->same_nodes = job->before->node_count == job->topology->node_count;
    for (uint32_t i = 0; i < job->before->node_count && job->same_nodes; i++)
        job->same_nodes = job->now[i] == i;
    by_paths_copy(&job->repair.paths, &job->from->paths);
    if (!job->same_nodes)
        map_paths(job);
}

/* Whether a tree counts towards the rate: of a pair, the tree that carries up does. */
static bool counts(const struct by_tree *tree, bool pairs)
{
    return !pairs || tree->use != BY_TREE_DOWN;
}

/* Sums the weights of the trees of one root (of all trees if `root` is UINT32_MAX). */
static int sum_weights(const struct by_plan *from, bool pairs, uint32_t root, struct by_fraction *sum)
{
    *sum = (struct by_fraction){0, 1};
    for (uint32_t i = 0; i < from->tree_count; i++)
        if ((root == UINT32_MAX || from->trees[i].root == root) && counts(&from->trees[i], pairs) &&
            by_fraction_add(*sum, from->trees[i].weight, sum) != 0)
            return BY_ERANGE;
    return 0;
}

/* Finds the least number of units, per root or per plan, that makes all trees integer. */
static int old_units(const struct by_replan_job *job, int64_t *units)
{
    struct by_fraction sum, part;

    *units = 1;
    if (by_replan_is_shared(job) && job->from->k > 0) {
        *units = job->from->k;
        return 0;
    }
    if (sum_weights(job->from, job->pairs, UINT32_MAX, &sum) != 0)
        return BY_ERANGE;
    for (uint32_t i = 0; i < job->from->tree_count; i++) {
        int64_t factor;

        if (by_fraction_divide(job->from->trees[i].weight, sum, &part) != 0)
            return BY_ERANGE;
        factor = part.den / by_gcd(*units, part.den);
        if (__builtin_mul_overflow(*units, factor, units))
            return BY_ERANGE;
    }
    return 0;
}

/* Returns the least common multiple if it is small enough, else `a`. */
static int64_t common_units(int64_t a, int64_t b)
{
    int64_t factor = b / by_gcd(a, b), product;

    return __builtin_mul_overflow(a, factor, &product) || product > UNITS_MAX ? a : product;
}

/* Allreduce: lowers the bound to that of the single compute nodes, if it is less than that of the
 * cut, with its proof. Where switches only forward, this is what trees can reach on most fabrics.
 */
static void bound_by_nodes(struct by_replan_job *job, struct by_fraction *bound)
{
    uint32_t n = job->graph->node_count, *part = by_alloc(n, sizeof(*part));
    uint32_t count = by_parts_single(job->graph, part);
    struct by_fraction nodes = by_parts_bound(job->graph, job->up, job->down, part, count);

    if (nodes.num > 0 && by_fraction_compare(nodes, *bound) < 0) {
        *bound = nodes;
        job->plan->proof = by_certificate_of_parts(part, n, count);
    }
    free(part);
}

/* Finds the new bound with its cut, the units, and the units per unit of capacity at the bound. */
static int find_bound(struct by_replan_job *job, struct by_problem *problem)
{
    struct by_graph *graph = job->graph;
    struct by_plan *plan = job->plan;
    bool *inside = by_alloc(graph->node_count, sizeof(*inside)), leaving = by_replan_goes_up(job);
    int64_t *shares = by_alloc(graph->node_count, sizeof(*shares)), p = 1, q = 1, rate = 0, units = 1,
            need = 1;
    struct by_fraction bound = {0, 1};
    int error = old_units(job, &units);

    if (error)
        error = refuse_range(problem);
    else if (by_replan_is_shared(job))
        error = by_optimum_allgather(graph, &p, &q, inside, problem);
    else if (by_replan_is_rooted(job))
        error = by_optimum_broadcast(graph, job->now[job->from->root], &rate, inside, problem);
    else
        error = by_optimum_allreduce(graph, &rate, inside, problem);
    if (!error && by_replan_is_shared(job)) {
        for (uint32_t i = 0; i < graph->node_count; i++)
            shares[i] = graph->compute[i];
        need = by_optimum_least_k(graph, shares, p, q, inside, false, job->capacity);
        if (by_fraction_divide((struct by_fraction){p, q}, graph->unit, &plan->inv_x) != 0 ||
            by_fraction_set((__int128)graph->compute_count * q, p, &bound) != 0)
            error = refuse_range(problem);
    } else if (!error) {
        bound = (struct by_fraction){rate, 1};
        if (!by_replan_is_rooted(job))
            bound_by_nodes(job, &bound);
        p = bound.den;
        q = need = bound.num;
    }
    job->k = need;
    job->units = common_units(units, need);
    if (!error &&
        (by_fraction_multiply(bound, graph->unit, &plan->optimum) != 0 ||
         by_fraction_set((__int128)p * job->units, q, &job->scale) != 0 ||
         by_fraction_multiply(graph->unit, (struct by_fraction){by_graph_entering_set(graph, inside), 1},
                              &plan->cut_exiting) != 0))
        error = refuse_range(problem);
    for (uint32_t i = 0; i < graph->node_count && !error; i++)
        if (inside[i] == leaving)
            plan->cut[plan->cut_count++] = i;
    free(shares);
    job->inside = inside;
    return error;
}

/* Returns the new number of the root. If the root is lost and may be any node, returns the first
 * remaining node below it. The trees of a pair share one root, which is a compute node in that
 * case. */
static uint32_t root_now(const struct by_replan_job *job, uint32_t number)
{
    const struct by_tree *old = &job->from->trees[number];
    uint32_t root = job->now[old->root];
    bool pair = old->use != BY_TREE_BOTH;

    if (root == UINT32_MAX && job->pairs && old->use == BY_TREE_DOWN && number > 0)
        old--; /* the tree that carries up precedes it */
    for (uint32_t e = 0;
         e < old->edge_count && root == UINT32_MAX && !by_replan_is_shared(job) && !by_replan_is_rooted(job);
         e++) {
        root = job->now[by_paths_to(&job->from->paths, job->from->edges[old->first_edge + e])];
        if (root != UINT32_MAX && pair && !job->graph->compute[root])
            root = UINT32_MAX;
    }
    return root;
}

/* Lists all old trees that still have a root; the others are dropped. */
static int list_trees(struct by_replan_job *job, struct by_replan_report *report)
{
    struct by_fraction whole = {0, 1}, *of_root = by_alloc(job->before->node_count, sizeof(*of_root));
    bool directed = by_replan_is_shared(job) || by_replan_is_rooted(job);
    int error = 0;

    for (uint32_t i = 0; i < job->before->node_count; i++)
        of_root[i] = (struct by_fraction){0, 1};
    for (uint32_t i = 0; i < job->from->tree_count && !error; i++) {
        const struct by_tree *tree = &job->from->trees[i];

        if (by_replan_is_shared(job))
            error = by_fraction_add(of_root[tree->root], tree->weight, &of_root[tree->root]);
        else if (counts(tree, job->pairs))
            error = by_fraction_add(whole, tree->weight, &whole);
    }
    for (uint32_t i = 0; i < job->from->tree_count && !error; i++) {
        const struct by_tree *old = &job->from->trees[i];
        struct by_repaired tree = {.root = root_now(job, i), .origin = i};
        struct by_fraction part;

        if (tree.root == UINT32_MAX) {
            report->trees_gone++;
            continue;
        }
        tree.use = directed ? BY_TREE_DOWN : old->use; /* the graph's arcs follow the data */
        if (by_fraction_divide(old->weight, by_replan_is_shared(job) ? of_root[old->root] : whole, &part) !=
                0 ||
            by_fraction_multiply(part, (struct by_fraction){job->units, 1}, &part) != 0 || part.den != 1)
            error = BY_ERANGE;
        tree.amount = part.num;
        BY_GROW(job->trees.trees, job->trees.count, job->trees.room);
        job->trees.trees[job->trees.count++] = tree;
    }
    free(of_root);
    return error;
}

/* Marks the compute nodes that the old plan lacks, which are to join all trees. */
static void mark_fresh(struct by_replan_job *job)
{
    uint32_t n = job->topology->node_count;

    for (uint32_t i = 0; i < n; i++) {
        if (!job->topology->nodes[i].compute || job->known[i])
            continue;
        if (!job->repair.fresh_node)
            job->repair.fresh_node = by_alloc(n, sizeof(*job->repair.fresh_node));
        job->repair.fresh_node[i] = true;
    }
}

/* Sets the capacities in units, for a rate of 1/`slower` of the bound. */
static int set_capacity(struct by_replan_job *job, struct by_fraction slower)
{
    struct by_fraction scale;

    if (by_fraction_multiply(job->scale, slower, &scale) != 0)
        return BY_ERANGE;
    for (uint32_t h = 0; h < 2 * job->graph->net->pair_count; h++) {
        __int128 units = (__int128)job->graph->net->capacity[h] * scale.num / scale.den;

        if (units > INT64_MAX / 4)
            return BY_ERANGE;
        job->capacity[h] = (int64_t)units;
    }
    return 0;
}

/* Tries to repair at 1/`slower` of the bound. BY_EUNSUPPORTED when a branch cannot be attached.
 * Each way is tried twice for ordered plans: with the old parents, where only the paths between the
 * same nodes change, which keeps the order, and without this restriction. */
static int try_rate(struct by_replan_job *job, struct by_fraction slower, unsigned ways,
                    struct by_replan_report *report)
{
    static const struct {
        uint32_t full_cost;
        bool low, backwards;
    } how[WAYS_MAX] = {{4, true, false}, {16, false, true}, {1, false, false}, {4, true, true}},
      slow = {4, false, false};

    for (unsigned way = 0; way < ways * (job->from->ordered ? 2 : 1); way++) {
        struct by_repaired_list trees = {0};
        int error = BY_EUNSUPPORTED;

        job->repair.keep_parents = job->from->ordered && way % 2 == 0;
        job->repair.full_cost = ways > 1 ? how[way % ways].full_cost : slow.full_cost;
        job->repair.low = ways > 1 ? how[way % ways].low : slow.low;
        job->repair.backwards = ways > 1 && how[way % ways].backwards;
        job->repair.tight = job->repair.inside && slower.num == slower.den;
        by_repaired_copy(&trees, &job->trees);
        if (set_capacity(job, slower) != 0) {
            error = BY_ERANGE;
        } else if (by_repair(&job->repair, &trees)) {
            report->optimal = slower.num == slower.den;
            error = by_replan_write(job, &trees, slower, report);
        }
        by_repaired_free(&trees);
        if (error != BY_EUNSUPPORTED)
            return error;
    }
    return BY_EUNSUPPORTED;
}

/* Tries the bound in several ways, then lower rates. These include the old plan's rate, which
 * always succeeds if nothing was lost. */
static int repair_trees(struct by_replan_job *job, struct by_replan_report *report,
                        struct by_problem *problem)
{
    static const struct by_fraction tries[] = {{1, 1},   {1025, 1024}, {257, 256}, {65, 64}, {33, 32},
                                               {17, 16}, {9, 8},       {5, 4},     {3, 2},   {7, 4},
                                               {15, 8},  {2, 1},       {3, 1},     {4, 1},   {8, 1}};
    struct by_fraction old;
    int error = BY_EUNSUPPORTED;
    bool known = by_fraction_divide(job->plan->optimum, job->from->achieved, &old) == 0 &&
                 by_fraction_compare(old, tries[0]) > 0;

    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]) && error == BY_EUNSUPPORTED &&
                       !by_plan_late(job->repair.deadline);
         i++) {
        if (known && by_fraction_compare(old, tries[i]) <= 0) {
            error = try_rate(job, old, 1, report);
            known = false;
        }
        if (error == BY_EUNSUPPORTED)
            error = try_rate(job, tries[i], i == 0 ? WAYS_MAX : 1, report);
        if (error == BY_EUNSUPPORTED && i == 0 && by_replan_may_be_faster(job, report)) {
            report->slow = by_replan_better(job, BY_REPLAN_FASTEST, report);
            error = report->slow ? 0 : error;
        }
    }
    if (error == BY_EUNSUPPORTED && by_plan_late(job->repair.deadline))
        return BY_ETIMEDOUT;
    if (error == BY_EUNSUPPORTED)
        return by_problem_set(problem, error, nowhere,
                              "the old trees cannot be repaired on this fabric; plan again without --from");
    return error ? refuse_range(problem) : 0;
}

/* Takes new trees where the repaired ones are much too high or too many. */
static void make_leaner(struct by_replan_job *job, struct by_replan_report *report)
{
    bool many = by_replan_may_be_fewer(job, job->plan->tree_count);

    job->repair.high &= by_replan_is_shared(job) || by_replan_few_stay(job, report);
    if ((!many && !job->repair.high) || !by_replan_better(job, BY_REPLAN_LEANER, report))
        return;
    report->many = many;
    report->high = !many;
}

static int replan(const struct by_topology *before, const struct by_plan *from,
                  const struct by_topology *topology, bool in_network, double time_limit_s,
                  struct by_plan **plan, struct by_replan_report *report, bool keep,
                  struct by_problem *problem)
{
    struct by_replan_job job = {
        .before = before, .topology = topology, .from = from, .in_network = in_network, .keep = keep};
    double start = by_plan_clock();
    int error;

    *report = (struct by_replan_report){0};
    *plan = NULL;
    map_nodes(&job);
    job.plan = by_alloc(1, sizeof(*job.plan));
    job.plan->topology_name = by_copy_text(topology->name);
    job.plan->unit = by_copy_text(topology->unit);
    job.plan->collective = from->collective;
    job.plan->root = by_replan_is_rooted(&job) && from->root >= 0 ? (int64_t)job.now[from->root] : -1;
    job.plan->hosts_only = !in_network && by_topology_capable(topology);
    job.plan->compute_count = by_topology_compute_count(topology);
    job.plan->inv_x = job.plan->two_phases = (struct by_fraction){0, 1};
    job.plan->cut = by_alloc(topology->node_count, sizeof(*job.plan->cut));
    job.graph = by_graph_make_sparse(topology,
                                     by_replan_is_shared(&job) || by_replan_is_rooted(&job)
                                         ? (by_replan_goes_up(&job) ? BY_DIRECTION_UP : BY_DIRECTION_DOWN)
                                         : BY_DIRECTION_BOTH,
                                     in_network);
    job.capacity = by_alloc(2 * (size_t)job.graph->net->pair_count, sizeof(*job.capacity));
    job.repair.deadline = job.graph->net->deadline = time_limit_s > 0 ? start + time_limit_s : 0;
    job.repair.graph = job.graph;
    job.repair.capacity = job.capacity;
    job.repair.low_hops = keep ? LOW_HOPS_KEPT : LOW_HOPS;
    job.repair.high_hops = keep || job.plan->compute_count > LOW_NODES_MAX ? LOW_HOPS_KEPT : LOW_HOPS;
    job.repair.from = from;
    job.repair.now = job.now;
    job.repair.fate = job.fate;
    job.up = by_graph_make_sparse(topology, BY_DIRECTION_UP, in_network);
    job.down = by_graph_make_sparse(topology, BY_DIRECTION_DOWN, in_network);
    job.repair.branch[BY_TREE_BOTH - 1] = job.graph->branch;
    job.repair.branch[BY_TREE_UP - 1] = job.up->branch;
    job.repair.branch[BY_TREE_DOWN - 1] =
        by_replan_is_shared(&job) || by_replan_is_rooted(&job) ? job.graph->branch : job.down->branch;
    for (uint32_t i = 0; i < from->tree_count && !by_replan_is_shared(&job) && !by_replan_is_rooted(&job);
         i++)
        job.pairs |= from->trees[i].use != BY_TREE_BOTH;
    error = check(&job, problem);
    if (!error)
        error = find_bound(&job, problem);
    job.plan->seconds.optimum = by_plan_clock() - start;
    if (!error && list_trees(&job, report) != 0)
        error = refuse_range(problem);
    if (!error) {
        mark_fresh(&job);
        if (by_replan_is_shared(&job) || by_replan_is_rooted(&job))
            job.repair.inside = job.inside;
        if (job.repair.deadline <= 0 && by_replan_may_be_fewer(&job, job.trees.count))
            report->many = by_replan_better(&job, BY_REPLAN_FEWEST, report);
        if (!report->many) {
            by_repair_begin(&job.repair, &job.trees);
            error = repair_trees(&job, report, problem);
        }
    }
    if (error == BY_EUNSUPPORTED && from->ordered && job.plan->cut_count > 0)
        error = by_replan_anew(&job, by_replan_seconds_left(job.repair.deadline), report, problem);
    else if (error == BY_ETIMEDOUT)
        error = by_replan_anew(&job, BY_REPLAN_SECONDS_LEAST, report, problem);
    else if (error == 0 && !report->anew && by_replan_may_be_faster(&job, report))
        report->slow = by_replan_better(&job, BY_REPLAN_FASTER, report);
    if (error == 0 && !report->anew)
        make_leaner(&job, report);
    job.plan->seconds.total = report->seconds = by_plan_clock() - start;
    job.plan->seconds.pack = job.plan->seconds.total - job.plan->seconds.optimum;
    by_repair_end(&job.repair);
    by_repaired_free(&job.trees);
    free(job.repair.fresh_node);
    free(job.capacity);
    by_graph_free(job.graph);
    by_graph_free(job.up);
    by_graph_free(job.down);
    free(job.fate);
    free(job.inside);
    free(job.known);
    free(job.now);
    if (error) {
        by_plan_free(job.plan);
        return error;
    }
    *plan = job.plan;
    return 0;
}

int by_replan(const struct by_topology *before, const struct by_plan *from,
              const struct by_topology *topology, bool in_network, double time_limit_s, struct by_plan **plan,
              struct by_replan_report *report, struct by_problem *problem)
{
    return replan(before, from, topology, in_network, time_limit_s, plan, report, false, problem);
}

int by_replan_keep(const struct by_topology *before, const struct by_plan *from,
                   const struct by_topology *topology, bool in_network, double time_limit_s,
                   struct by_plan **plan, struct by_replan_report *report, struct by_problem *problem)
{
    return replan(before, from, topology, in_network, time_limit_s, plan, report, true, problem);
}
