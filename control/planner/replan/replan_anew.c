/* Plans made without the old one, where these are better than repaired trees. See replan_job.h;
 * neighbours: replan.c, which repairs. */
#include "control/planner/replan/replan_job.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/planner/planner.h"

/* Allreduce trees that miss the bound are planned again on fabrics of so many nodes (count): the
 * exact programs of larger ones take longer than a repair may. */
#define ANEW_NODES_MAX 64u

/* A repair may leave 11 trees for each 10 of a plan that is made without the old one. */
#define MORE_TREES_NUM 11u
#define MORE_TREES_DEN 10u

int by_replan_anew(struct by_replan_job *job, double time_limit_s, struct by_replan_report *report,
                   struct by_problem *problem)
{
    struct by_plan_options options = {.collective = job->from->collective,
                                      .root = job->plan->root,
                                      .in_network = job->in_network,
                                      .time_limit_s = time_limit_s,
                                      .ordered = job->from->ordered};
    struct by_plan *made;
    int error = by_plan_make(job->topology, &options, &made, problem);

    if (error)
        return error;
    by_plan_free(job->plan);
    job->plan = made;
    *report = (struct by_replan_report){.trees_before = job->from->tree_count,
                                        .trees_gone = job->from->tree_count,
                                        .trees_new = made->tree_count,
                                        .anew = true,
                                        .late = made->hurried};
    report->optimal = by_fraction_compare(made->achieved, made->optimum) == 0;
    for (uint32_t i = 0; i < made->tree_count; i++) {
        report->entries++;
        for (uint32_t e = 0; e < made->trees[i].edge_count; e++)
            report->entries += by_paths_hops(&made->paths, made->edges[made->trees[i].first_edge + e]);
    }
    report->entries_changed = report->entries;
    return 0;
}

bool by_replan_few_stay(const struct by_replan_job *job, const struct by_replan_report *report)
{
    return 4 * report->trees_kept < job->from->tree_count;
}

double by_replan_seconds_left(double deadline)
{
    double left = deadline - by_plan_clock();

    return deadline <= 0 ? 0 : left > BY_REPLAN_SECONDS_LEAST ? left : BY_REPLAN_SECONDS_LEAST;
}

/* Whether a plan made without the old one is better than the repaired one. */
typedef bool is_better(const struct by_replan_job *job, const struct by_plan *repaired,
                       const struct by_replan_report *of_repair);

/* Where some trees became too high, new ones may be better: if they are as fast, and lower by a
 * third. Where few trees could stay, any gain is enough. */
static bool is_lower(const struct by_replan_job *job, const struct by_plan *repaired,
                     const struct by_replan_report *of_repair)
{
    uint32_t n = job->topology->node_count, height = by_plan_heights(repaired, n).max;
    uint32_t wanted = by_replan_few_stay(job, of_repair) ? height - 1 : (2 * height - 1) / 3;

    return by_fraction_compare(job->plan->achieved, repaired->achieved) >= 0 &&
           by_plan_heights(job->plan, n).max <= wanted;
}

/* Whether running calls can move to the new trees: not to pairs, and not to more than twice as many
 * trees, because the old plan may have been limited to few and plans do not record such a limit. */
static bool is_alike(const struct by_replan_job *job)
{
    bool directed = by_replan_is_shared(job) || by_replan_is_rooted(job);

    for (uint32_t i = 0; i < job->plan->tree_count && !job->pairs && !directed; i++)
        if (job->plan->trees[i].use == BY_TREE_UP)
            return false;
    return job->plan->tree_count / 2 <= job->from->tree_count;
}

/* Where repaired trees miss the bound, new ones may be faster. */
static bool is_faster(const struct by_replan_job *job, const struct by_plan *repaired,
                      const struct by_replan_report *of_repair)
{
    (void)of_repair;
    return by_fraction_compare(job->plan->achieved, repaired->achieved) > 0 && is_alike(job);
}

/* Before lower rates are tried, and `repaired` has no trees: new ones that reach the bound are the
 * fastest. */
static bool is_fastest(const struct by_replan_job *job, const struct by_plan *repaired,
                       const struct by_replan_report *of_repair)
{
    (void)of_repair;
    return by_fraction_compare(job->plan->achieved, repaired->optimum) == 0 && is_alike(job);
}

/* Whether a new plan has fewer than `trees` by a tenth. */
static bool is_fewer(uint32_t trees, uint64_t anew)
{
    return (uint64_t)MORE_TREES_DEN * trees > MORE_TREES_NUM * anew;
}

/* A repair leaves at least the trees that still have a root. */
static bool is_fewest(const struct by_replan_job *job, const struct by_plan *repaired,
                      const struct by_replan_report *of_repair)
{
    return is_fastest(job, repaired, of_repair) && is_fewer(job->trees.count, job->plan->tree_count);
}

/* Where repaired trees are too high or too many, new ones may be better. */
static bool is_leaner(const struct by_replan_job *job, const struct by_plan *repaired,
                      const struct by_replan_report *of_repair)
{
    if (job->repair.high && is_lower(job, repaired, of_repair))
        return true;
    return by_fraction_compare(job->plan->achieved, repaired->achieved) >= 0 && is_alike(job) &&
           is_fewer(repaired->tree_count, job->plan->tree_count);
}

static is_better *const better_by[] = {[BY_REPLAN_FASTEST] = is_fastest,
                                       [BY_REPLAN_FEWEST] = is_fewest,
                                       [BY_REPLAN_FASTER] = is_faster,
                                       [BY_REPLAN_LEANER] = is_leaner};

bool by_replan_better(struct by_replan_job *job, enum by_replan_way way, struct by_replan_report *report)
{
    struct by_plan *repaired = job->plan;
    struct by_replan_report of_repair = *report;
    struct by_problem ignored = {0};

    job->plan = by_alloc(1, sizeof(*job->plan));
    job->plan->root = repaired->root;
    if (by_replan_anew(job, by_replan_seconds_left(job->repair.deadline), report, &ignored) == 0 &&
        !job->plan->hurried && better_by[way](job, repaired, &of_repair)) {
        by_plan_free(repaired);
        return true;
    }
    job->trees_anew = job->plan->tree_count;
    by_plan_free(job->plan);
    job->plan = repaired;
    *report = of_repair;
    return false;
}

/* Whether a plan made without the old one takes no longer than it may, and the old one has no
 * promises that are unknown to it. */
static bool may_be_better(const struct by_replan_job *job)
{
    return !job->keep && !job->from->ordered &&
           by_fraction_compare(job->from->achieved, job->from->optimum) == 0 &&
           (by_replan_is_shared(job) || by_replan_is_rooted(job) ||
            job->topology->node_count <= ANEW_NODES_MAX);
}

bool by_replan_may_be_faster(const struct by_replan_job *job, const struct by_replan_report *report)
{
    return !report->optimal && may_be_better(job);
}

/* A plan has at least one tree for each root. Where the least k is the old one, a new plan has
 * about as many trees as the old one: it is not made to count them. */
bool by_replan_may_be_fewer(const struct by_replan_job *job, uint32_t trees)
{
    bool shared = by_replan_is_shared(job);
    uint64_t limit = shared ? job->plan->compute_count : 1, old = job->from->tree_count;

    limit = (!shared || job->k == job->from->k) && limit < old ? old : limit;
    limit = job->trees_anew > 0 ? job->trees_anew : limit;
    return is_fewer(trees, limit) && job->from->trees_max == 0 && may_be_better(job);
}
