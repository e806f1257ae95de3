/*
 * Which set of trees serves each failure. See protect.h. Failures of switches come first, because a
 * set that avoids a switch also avoids its links. For each failure, trees that exist are tried
 * before new ones: those of the plan, then those of the sets made so far. A repaired plan
 * (replan.h), which shares most trees with the plan, comes before a new plan.
 */
#include "control/planner/replan/protect.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/fabric/members.h"
#include "control/fabric/vary.h"
#include "control/planner/replan/protect_work.h"
#include "control/planner/replan/replan.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* Parts of sets of earlier failures that are tried for one failure (count). */
#define TRIES_MAX 100000u

/* ---- the fabric that remains ---- */

static void free_left(struct by_protect_left *left)
{
    by_topology_free(left->topology);
    by_graph_free(left->graph);
    free(left->number);
    free(left->member);
    free(left->shares);
    free(left->avoids);
    *left = (struct by_protect_left){0};
}

/* Marks in `seen` the nodes that links without the failure connect to `first`, past no node in
 * `out`. */
static void walk(const struct by_topology *topology, const struct by_protect_failure *failure, uint32_t first,
                 const bool *out, bool *seen)
{
    bool more = true;

    seen[first] = true;
    while (more) { /* repeats at most as often as the longest path */
        more = false;
        for (uint32_t i = 0; i < topology->link_count; i++) {
            uint32_t a = topology->links[i].a, b = topology->links[i].b;

            if ((!failure->is_switch && i == failure->what) || out[a] || out[b] || seen[a] == seen[b])
                continue;
            seen[a] = seen[b] = more = true;
        }
    }
}

/* Marks the nodes that the ranks cannot use: failed, idle or cut off. Returns a rank that is cut
 * off, or UINT32_MAX. */
static uint32_t find_out(const struct by_protect *protect, const struct by_protect_failure *failure,
                         bool *out)
{
    const struct by_topology *topology = protect->topology;
    const bool *member = protect->options->member;
    bool *seen = by_alloc(topology->node_count, sizeof(*seen));
    uint32_t ranks = by_members_count(topology, member), reached = 0, alone = UINT32_MAX;

    for (uint32_t i = 0; i < topology->node_count; i++)
        out[i] = by_members_idle(topology, member, i) || (failure->is_switch && i == failure->what);
    for (uint32_t i = 0; i < topology->node_count && reached == 0; i++)
        if (by_members_have(topology, member, i)) {
            walk(topology, failure, i, out, seen);
            reached = 1;
        }
    for (uint32_t i = 0, count = 0; i < topology->node_count; i++) {
        out[i] = out[i] || !seen[i];
        if (by_members_have(topology, member, i))
            count += seen[i];
        reached = count;
    }
    /* the smaller side is the one that is cut off */
    for (uint32_t i = 0; i < topology->node_count && reached < ranks && alone == UINT32_MAX; i++)
        if (by_members_have(topology, member, i) && seen[i] == (2 * reached <= ranks))
            alone = i;
    free(seen);
    return alone;
}

/* Numbers the nodes of the fabric that remains, which keep their order, and converts ranks and
 * shares. */
static void number_nodes(const struct by_protect *protect, const bool *out, struct by_protect_left *left)
{
    const struct by_topology *topology = protect->topology;
    const struct by_plan_options *options = protect->options;
    uint32_t n = topology->node_count, count = 0, others = 0;

    left->number = by_alloc(n, sizeof(*left->number));
    left->member = by_alloc(n, sizeof(*left->member));
    left->shares = options->shares ? by_alloc(n, sizeof(*left->shares)) : NULL;
    for (uint32_t i = 0; i < n; i++) {
        left->number[i] = out[i] ? UINT32_MAX : count;
        if (out[i])
            continue;
        left->member[count] = by_members_have(topology, options->member, i);
        others += topology->nodes[i].compute && !left->member[count];
        if (left->shares)
            left->shares[count] = options->shares[i];
        count++;
    }
    if (others > 0)
        return;
    free(left->member);
    left->member = NULL;
}

/* Makes the fabric that remains. Returns whether all ranks are connected; else sets the failure's
 * state. */
static bool make_left(const struct by_protect *protect, struct by_protect_failure *failure,
                      struct by_protect_left *left)
{
    const struct by_topology *topology = protect->topology;
    bool *out = by_alloc(topology->node_count, sizeof(*out)),
         *lost = by_alloc(topology->link_count, sizeof(*lost));
    struct by_problem problem = {0};

    *left = (struct by_protect_left){0};
    failure->state = BY_PROTECT_COVERED;
    failure->alone = find_out(protect, failure, out);
    if (failure->alone != UINT32_MAX)
        failure->state = BY_PROTECT_CUT;
    if (!failure->is_switch)
        lost[failure->what] = true;
    if (failure->state == BY_PROTECT_COVERED &&
        by_topology_without(topology, lost, out, &left->topology, &problem) != 0) {
        failure->state = BY_PROTECT_REFUSED;
        failure->reason = by_copy_text(problem.text);
    }
    if (failure->state == BY_PROTECT_COVERED) {
        number_nodes(protect, out, left);
        left->graph = by_graph_make_sparse(left->topology, BY_DIRECTION_BOTH, true);
        left->avoids = by_alloc(protect->unit_count, sizeof(*left->avoids));
    }
    free(out);
    free(lost);
    return failure->state == BY_PROTECT_COVERED;
}

/* Returns the node of the whole fabric by node that remains; the caller frees it. */
static uint32_t *whole_numbers(const struct by_protect *protect, const struct by_protect_left *left)
{
    uint32_t *whole = by_alloc(left->topology->node_count, sizeof(*whole));

    for (uint32_t i = 0; i < protect->topology->node_count; i++)
        if (left->number[i] != UINT32_MAX)
            whole[left->number[i]] = i;
    return whole;
}

/* ---- plans of the fabric that remains ---- */

/* Repairs the plan, where its options allow that. Returns NULL if it cannot. */
static struct by_plan *repair(const struct by_protect *protect, const struct by_protect_left *left)
{
    const struct by_plan_options *options = protect->options;
    struct by_replan_report report;
    struct by_problem ignored = {0};
    struct by_plan *plan = NULL;

    if (protect->plan->member || protect->plan->shares || left->member || options->fixed_k > 0 ||
        options->loss.num > 0 || options->trees_max > 0 ||
        by_replan_keep(protect->topology, protect->plan, left->topology, options->in_network,
                       options->time_limit_s, &plan, &report, &ignored) != 0)
        return NULL;
    return plan;
}

static struct by_plan *plan_anew(const struct by_protect *protect, const struct by_protect_left *left,
                                 struct by_problem *problem)
{
    struct by_plan_options options = *protect->options;
    struct by_plan *plan = NULL;

    options.root = options.root >= 0 ? (int64_t)left->number[options.root] : -1;
    options.member = left->member;
    options.shares = left->shares;
    options.stage = NULL;
    by_plan_make(left->topology, &options, &plan, problem);
    return plan;
}

static bool is_optimal(const struct by_plan *plan)
{
    return plan && by_fraction_compare(plan->achieved, plan->optimum) == 0;
}

/* Whether `rate` is at least the requested part of `optimum`. */
static bool is_enough(const struct by_protect *protect, struct by_fraction rate, struct by_fraction optimum)
{
    struct by_fraction part;

    return rate.num > 0 && by_fraction_divide(rate, optimum, &part) == 0 &&
           by_fraction_compare(part, protect->request.part) >= 0;
}

/* ---- the set of a failure ---- */

/* Keeps the better of two sets in `best`, and frees the other. */
static void keep_better(struct by_protect_set *best, struct by_protect_set *set)
{
    if (by_fraction_compare(set->rate, best->rate) > 0) {
        struct by_protect_set other = *best;

        *best = *set;
        *set = other;
    }
    by_protect_set_free(set);
}

/* Finds a set among the trees that exist: the first that is enough for `optimum`, else the best. */
static void try_existing(const struct by_protect *protect, struct by_protect_left *left,
                         struct by_fraction optimum, struct by_protect_set *best)
{
    struct by_protect_set set;
    uint32_t tries = 0;

    by_protect_rest(protect, left, &protect->own, best);
    for (uint32_t i = 0; i < protect->failure_count && tries < TRIES_MAX; i++) {
        const struct by_protect_failure *other = &protect->failures[i];

        if (is_enough(protect, best->rate, optimum))
            return;
        if (other->added == 0)
            continue;
        tries += other->set.count;
        if (by_protect_rest(protect, left, &other->set, &set))
            keep_better(best, &set);
    }
    if (!is_enough(protect, best->rate, optimum) && by_protect_patch(protect, left, NULL, &set))
        keep_better(best, &set);
}

/* Prefers of two sets that are enough the one with fewer new trees, else the one with the better
 * rate. Frees the other. */
static void prefer(const struct by_protect *protect, struct by_fraction optimum, struct by_protect_set *best,
                   struct by_protect_set *set)
{
    bool enough = is_enough(protect, set->rate, optimum), was = is_enough(protect, best->rate, optimum);
    int order = by_fraction_compare(set->rate, best->rate);
    uint32_t added = by_protect_new(protect, set), had = by_protect_new(protect, best);

    if (enough && was ? added < had || (added == had && order > 0) : order > 0) {
        struct by_protect_set other = *best;

        *best = *set;
        *set = other;
    }
    by_protect_set_free(set);
}

/* Makes the set of a plan, and the one that takes only what the plan to protect lacks. */
static void try_plan(struct by_protect *protect, struct by_protect_left *left, const struct by_plan *plan,
                     const uint32_t *whole, struct by_fraction optimum, struct by_protect_set *best)
{
    struct by_protect_set all, set;

    if (by_protect_add(protect, plan, whole, &all) != 0) {
        by_protect_set_free(&all);
        return;
    }
    left->avoids = by_realloc(left->avoids, protect->unit_count, sizeof(*left->avoids));
    memset(left->avoids, 0, protect->unit_count * sizeof(*left->avoids));
    if (by_collective_is_sharded(protect->options->collective) && by_protect_patch(protect, left, &all, &set))
        prefer(protect, optimum, best, &set);
    prefer(protect, optimum, best, &all);
}

static void count_users(struct by_protect *protect, const struct by_protect_set *set)
{
    for (uint32_t i = 0; i < set->count; i++)
        protect->units[set->parts[i].unit].users++;
}

/* Removes the trees from a plan: its bound and proof remain. */
static void strip(struct by_plan *plan)
{
    struct by_tree_list none = {0};

    by_tree_list_replace(&none, (struct by_fraction){0, 1}, plan);
    plan->edge_count = 0;
}

static void refuse(struct by_protect_failure *failure, const char *text)
{
    failure->state = BY_PROTECT_REFUSED;
    failure->reason = by_copy_text(text);
}

/* Finds the set of one failure on the fabric that remains. */
static void find_set(struct by_protect *protect, struct by_protect_failure *failure,
                     struct by_protect_left *left)
{
    struct by_problem problem = {0};
    struct by_plan *plans[2] = {repair(protect, left)}, *bound;
    uint32_t *whole = whole_numbers(protect, left);

    /* a repaired plan at its own bound is optimal; otherwise the planner's bound may be lower */
    if (!is_optimal(plans[0]))
        plans[1] = plan_anew(protect, left, &problem);
    bound = plans[0] && (!plans[1] || by_fraction_compare(plans[0]->optimum, plans[1]->optimum) < 0)
                ? plans[0]
                : plans[1];
    if (bound)
        try_existing(protect, left, bound->optimum, &failure->set);
    else
        refuse(failure, problem.text);
    for (unsigned i = 0; i < 2 && bound && !is_enough(protect, failure->set.rate, bound->optimum); i++)
        if (plans[i])
            try_plan(protect, left, plans[i], whole, bound->optimum, &failure->set);
    if (bound && (by_fraction_divide(failure->set.rate, bound->optimum, &failure->part) != 0 ||
                  failure->part.num == 0))
        refuse(failure, "the weights of its trees exceed 63 bits");
    if (failure->state == BY_PROTECT_COVERED) {
        failure->added = by_protect_new(protect, &failure->set);
        count_users(protect, &failure->set);
        failure->bound = bound;
        strip(bound);
    }
    for (unsigned i = 0; i < 2; i++)
        if (plans[i] != failure->bound)
            by_plan_free(plans[i]);
    free(whole);
}

/* Finds the sets of all failures. */
static int make(const struct by_topology *topology, const struct by_plan_options *options,
                const struct by_plan *plan, const struct by_protect_request *request,
                struct by_protect **result)
{
    struct by_protect *protect = by_alloc(1, sizeof(*protect));
    int error;

    *protect =
        (struct by_protect){.topology = topology, .options = options, .plan = plan, .request = *request};
    protect->failures =
        by_alloc((size_t)topology->node_count + topology->link_count, sizeof(*protect->failures));
    for (uint32_t i = 0; i < topology->node_count && request->switches; i++)
        if (!topology->nodes[i].compute)
            protect->failures[protect->failure_count++] =
                (struct by_protect_failure){.is_switch = true, .what = i};
    for (uint32_t i = 0; i < topology->link_count && request->links; i++)
        protect->failures[protect->failure_count++] = (struct by_protect_failure){.what = i};
    error = by_protect_add(protect, plan, NULL, &protect->own);
    protect->own_units = protect->unit_count;
    by_stage_begin(options->stage, "planning for failures", protect->failure_count);
    for (uint32_t i = 0; i < protect->failure_count && !error; i++) {
        struct by_protect_left left;

        protect->failures[i].set.rate = protect->failures[i].part = (struct by_fraction){0, 1};
        if (make_left(protect, &protect->failures[i], &left))
            find_set(protect, &protect->failures[i], &left);
        free_left(&left);
        by_stage_add(options->stage, 1);
    }
    *result = protect;
    return error;
}

static void free_failure(struct by_protect_failure *failure)
{
    by_protect_set_free(&failure->set);
    by_plan_free(failure->bound);
    free(failure->reason);
}

/* Leaves the links only. */
static void drop_switches(struct by_protect *protect)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < protect->unit_count; i++)
        protect->units[i].users = 0;
    for (uint32_t i = 0; i < protect->failure_count; i++) {
        if (protect->failures[i].is_switch) {
            free_failure(&protect->failures[i]);
            continue;
        }
        protect->failures[kept] = protect->failures[i];
        count_users(protect, &protect->failures[kept++].set);
    }
    protect->failure_count = kept;
    protect->request.switches = false;
}

int by_protect_make(const struct by_topology *topology, const struct by_plan_options *options,
                    const struct by_plan *plan, const struct by_protect_request *request,
                    struct by_protect **result, struct by_problem *problem)
{
    struct by_protect_request both = *request;
    struct by_protect *other = NULL;
    int error = 0;

    *result = NULL;
    both.switches = true;
    if (topology->node_count > by_topology_compute_count(topology))
        error = make(topology, options, plan, &both, result);
    else if (!request->links)
        return by_problem_say(problem, BY_EINVAL, "%s has no switch to protect against; name links",
                              topology->name);
    if (!error && !request->switches && *result)
        drop_switches(*result);
    if (!error && (!request->switches || !*result))
        error = make(topology, options, plan, request, &other);
    /* sets that avoid a whole switch serve its links, often with fewer trees in all */
    if (other && (!*result || by_protect_backups(other) < by_protect_backups(*result))) {
        by_protect_free(*result);
        *result = other;
        other = NULL;
    }
    by_protect_free(other);
    if (!error)
        return 0;
    by_protect_free(*result);
    *result = NULL;
    return by_problem_say(problem, error, "the weights of the plan's trees exceed 63 bits");
}

void by_protect_free(struct by_protect *protect)
{
    if (!protect)
        return;
    for (uint32_t i = 0; i < protect->failure_count; i++)
        free_failure(&protect->failures[i]);
    by_protect_set_free(&protect->own);
    by_tree_list_free(&protect->trees);
    free(protect->units);
    free(protect->slots);
    free(protect->failures);
    free(protect);
}

/* ---- results ---- */

const struct by_protect_failure *by_protect_worst(const struct by_protect *protect)
{
    const struct by_protect_failure *worst = NULL;

    for (uint32_t i = 0; i < protect->failure_count; i++) {
        const struct by_protect_failure *failure = &protect->failures[i];

        if (failure->state == BY_PROTECT_COVERED &&
            (!worst || by_fraction_compare(failure->part, worst->part) < 0))
            worst = failure;
    }
    return worst;
}

uint32_t by_protect_count(const struct by_protect *protect, enum by_protect_state state)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < protect->failure_count; i++)
        count += protect->failures[i].state == state;
    return count;
}

uint32_t by_protect_backups(const struct by_protect *protect)
{
    uint32_t count = 0;

    for (uint32_t i = protect->own_units; i < protect->unit_count; i++)
        count += protect->units[i].users > 0 ? protect->units[i].width : 0;
    return count;
}

/* A copy of a plan without its trees. */
static struct by_plan *copy_bare(const struct by_plan *from, uint32_t node_count)
{
    struct by_plan *plan = by_alloc(1, sizeof(*plan));

    *plan = *from;
    plan->topology_name = by_copy_text(from->topology_name);
    plan->unit = by_copy_text(from->unit);
    plan->cut = by_alloc(node_count, sizeof(*plan->cut));
    memcpy(plan->cut, from->cut, from->cut_count * sizeof(*plan->cut));
    plan->proof = by_certificate_copy(from->proof);
    plan->member = from->member ? by_alloc(node_count, sizeof(*plan->member)) : NULL;
    plan->shares = from->shares ? by_alloc(node_count, sizeof(*plan->shares)) : NULL;
    if (from->member)
        memcpy(plan->member, from->member, node_count * sizeof(*plan->member));
    if (from->shares)
        memcpy(plan->shares, from->shares, node_count * sizeof(*plan->shares));
    plan->trades = NULL;
    plan->trade_count = 0;
    plan->trees = NULL;
    plan->tree_count = 0;
    plan->paths = (struct by_paths){0};
    plan->edges = NULL;
    plan->edge_count = 0;
    return plan;
}

int by_protect_plan(const struct by_protect *protect, uint32_t number, struct by_topology **topology,
                    struct by_plan **plan)
{
    const struct by_protect_failure *failure = &protect->failures[number];
    struct by_protect_failure again = {.is_switch = failure->is_switch, .what = failure->what};
    struct by_protect_left left = {0};
    struct by_tree_list list = {0};
    bool right = failure->bound && make_left(protect, &again, &left);

    *topology = NULL;
    *plan = NULL;
    free(again.reason);
    if (!right)
        return BY_ESTATE;
    *plan = copy_bare(failure->bound, left.topology->node_count);
    for (uint32_t i = 0; i < failure->set.count; i++) {
        const struct by_protect_unit *unit = &protect->units[failure->set.parts[i].unit];

        for (uint32_t j = 0; j < unit->width; j++)
            by_tree_list_copy(&list, &protect->trees, unit->first + j, failure->set.parts[i].weight);
    }
    for (uint32_t i = 0; i < list.paths.node_count; i++)
        list.paths.nodes[i] = left.number[list.paths.nodes[i]];
    for (uint32_t i = 0; i < list.count; i++)
        list.trees[i].root = left.number[list.trees[i].root];
    by_tree_list_replace(&list, failure->set.rate, *plan);
    *topology = left.topology;
    left.topology = NULL;
    free_left(&left);
    return 0;
}

int by_protect_all(const struct by_protect *protect, struct by_plan **plan)
{
    uint32_t n = protect->topology->node_count, *count = by_alloc(n, sizeof(*count));
    bool sharded = by_collective_is_sharded(protect->options->collective);
    struct by_tree_list list = {0};
    int error = 0;

    *plan = copy_bare(protect->plan, n);
    for (uint32_t i = 0; i < protect->unit_count; i++) {
        const struct by_protect_unit *unit = &protect->units[i];

        if (i < protect->own_units || unit->users > 0)
            count[sharded ? protect->trees.trees[unit->first].root : 0]++;
    }
    for (uint32_t i = 0; i < protect->unit_count && !error; i++) {
        const struct by_protect_unit *unit = &protect->units[i];
        uint32_t root = protect->trees.trees[unit->first].root;
        struct by_fraction weight = {protect->options->shares ? protect->options->shares[root] : 1, 1};

        if (i >= protect->own_units && unit->users == 0)
            continue;
        error = by_fraction_divide(weight, (struct by_fraction){count[sharded ? root : 0], 1}, &weight);
        for (uint32_t j = 0; j < unit->width && !error; j++)
            by_tree_list_copy(&list, &protect->trees, unit->first + j, weight);
    }
    by_tree_list_replace(&list, protect->plan->achieved, *plan);
    free(count);
    if (!error)
        return 0;
    by_plan_free(*plan);
    *plan = NULL;
    return error;
}
