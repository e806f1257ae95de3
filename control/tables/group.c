/*
 * Groups the trees of a job's plans: owners, shares of the data, and the collectives that can use
 * the same trees. Shares are exact if they fit 32 bits. Private to tables/.
 */
#include "control/tables/group.h"

#include <stdarg.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/fabric/members.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

#define BIT(collective) ((uint16_t)(1u << (collective)))

void by_group_note(struct by_table_groups *groups, const char *format, ...)
{
    char text[400];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    BY_GROW(groups->notes, groups->note_count, groups->note_room);
    groups->notes[groups->note_count++] = by_copy_text(text);
}

static struct by_table_group *find_group(struct by_table_groups *groups, uint16_t collectives, uint16_t owner)
{
    for (uint32_t i = 0; i < groups->count; i++)
        if (groups->groups[i].collectives == collectives && groups->groups[i].owner == owner)
            return &groups->groups[i];
    BY_GROW(groups->groups, groups->count, groups->room);
    groups->groups[groups->count] = (struct by_table_group){.collectives = collectives, .owner = owner};
    return &groups->groups[groups->count++];
}

/* Returns the collective bits of a tree's group, and sets the direction of its data. */
static uint16_t role(const struct by_plan *plan, const struct by_tree *tree, enum by_table_flow *flow)
{
    switch ((enum by_collective)plan->collective) {
    case BY_COLLECTIVE_ALLGATHER:
    case BY_COLLECTIVE_BROADCAST:
        *flow = BY_FLOW_DOWN;
        return BIT(plan->collective);
    case BY_COLLECTIVE_REDUCE_SCATTER:
    case BY_COLLECTIVE_REDUCE:
        *flow = BY_FLOW_UP;
        return BIT(plan->collective);
    case BY_COLLECTIVE_ALLREDUCE:
    case BY_COLLECTIVE_BARRIER:
    default:
        break;
    }
    *flow = tree->use == BY_TREE_UP ? BY_FLOW_UP : tree->use == BY_TREE_DOWN ? BY_FLOW_DOWN : BY_FLOW_BOTH;
    return BIT(plan->collective);
}

static int find_owner(const struct by_address_map *map, const struct by_plan *plan,
                      const struct by_tree *tree, uint16_t bit, const char *where, uint16_t *owner,
                      struct by_problem *problem)
{
    uint32_t node = tree->root;

    *owner = BY_RANK_NONE;
    if (bit == BIT(BY_COLLECTIVE_ALLREDUCE) || bit == BIT(BY_COLLECTIVE_BARRIER))
        return 0;
    if (by_collective_is_rooted(plan->collective))
        node = plan->root >= 0 && plan->root < map->topology->node_count ? (uint32_t)plan->root : UINT32_MAX;
    if (node >= map->topology->node_count || map->rank[node] == UINT32_MAX)
        return by_problem_say(
            problem, BY_EINVAL,
            "%s: '%s' owns the data but is not a compute node: root one-way trees at compute nodes", where,
            node < map->topology->node_count ? map->topology->nodes[node].name : "?");
    *owner = (uint16_t)map->rank[node];
    return 0;
}

static int plans_have(const struct by_lower_job *job, unsigned collective)
{
    for (uint32_t i = 0; i < job->plan_count; i++)
        if (job->plans[i]->collective == collective)
            return 1;
    return 0;
}

/* Moves a laid tree into its group. */
static void add_tree(struct by_table_group *group, struct by_laid_tree *laid)
{
    struct by_group_tree *added;

    BY_GROW(group->trees, group->count, group->room);
    added = &group->trees[group->count++];
    /* a pair whose trees use the same cables is one tree */
    if (laid->down.count > 0 && by_hops_compare(&laid->hops, &laid->down) == 0)
        by_hops_free(&laid->down);
    added->hops = laid->hops;
    added->down = laid->down;
    mpq_init(added->weight);
    mpq_swap(added->weight, laid->weight);
    mpq_clear(laid->weight);
}

/* What the trees of one plan are laid with. */
struct group_laying {
    const struct by_address_map *map;
    const struct by_lower_job *job;
    const struct by_plan *plan;
    struct by_lower_load load;
    struct by_laid_trees trees;
    struct by_problem *problem;
};

/* Adds a laid tree, or a pair, to the trees of the plan. */
static void keep_tree(struct group_laying *laying, const struct by_laid_tree *tree, struct by_fraction weight)
{
    struct by_laid_tree *kept;

    BY_GROW(laying->trees.trees, laying->trees.count, laying->trees.room);
    kept = &laying->trees.trees[laying->trees.count++];
    *kept = *tree;
    mpq_init(kept->weight);
    mpq_set_si(kept->weight, weight.num, (unsigned long)weight.den);
    mpq_canonicalize(kept->weight);
}

/* Lays tree `i` of the plan with the weight given. */
static int lay_tree(struct group_laying *laying, uint32_t i, struct by_fraction weight, struct by_hops *hops)
{
    const struct by_plan *plan = laying->plan;
    struct by_tree tree = plan->trees[i];
    enum by_table_flow flow;
    char where[64];

    tree.weight = weight;
    (void)role(plan, &tree, &flow);
    snprintf(where, sizeof(where), "job %u, %s tree %u", laying->job->job,
             by_collective_name(plan->collective), i);
    if (weight.num <= 0 || weight.den <= 0)
        return by_problem_say(laying->problem, BY_EINVAL,
                              "%s: its weight is not above zero: leave the tree out", where);
    return by_hops_make(laying->map, plan, &tree, flow, &laying->load, where, hops, laying->problem);
}

static int add_whole(struct group_laying *laying, uint32_t i)
{
    const struct by_plan *plan = laying->plan;
    const struct by_tree *tree = &plan->trees[i];
    struct by_laid_tree laid = {.owner = BY_RANK_NONE};
    char where[64];
    int error = lay_tree(laying, i, tree->weight, &laid.hops);

    if (error != 0)
        return error;
    laid.collectives = role(plan, tree, &laid.flow);
    snprintf(where, sizeof(where), "job %u, %s tree %u", laying->job->job,
             by_collective_name(plan->collective), i);
    error = find_owner(laying->map, plan, tree, laid.collectives, where, &laid.owner, laying->problem);
    if (error != 0)
        by_hops_free(&laid.hops);
    else
        keep_tree(laying, &laid, tree->weight);
    return error;
}

/* Whether a tree of an allreduce plan is one half of a pair. */
static bool is_half(const struct by_plan *plan, const struct by_tree *tree)
{
    return by_collective_way(plan->collective) == BY_DATA_BOTH && tree->use != BY_TREE_BOTH;
}

/* Returns the next tree from `i` on of this root and direction that has weight left. */
static uint32_t next_half(const struct by_plan *plan, const struct by_fraction *left, uint32_t root,
                          enum by_tree_use use, uint32_t i)
{
    while (i < plan->tree_count &&
           (plan->trees[i].root != root || plan->trees[i].use != use || left[i].num == 0))
        i++;
    return i;
}

/*
 * Joins trees up and trees down of one root to pairs: each pair takes the lesser of the weights
 * that two trees have left. The trees of a root carry as much up as down.
 */
static int add_pairs(struct group_laying *laying, uint32_t root, struct by_fraction *left)
{
    const struct by_plan *plan = laying->plan;
    uint32_t up = 0, down = 0;
    int error = 0;

    for (;;) {
        struct by_laid_tree pair = {
            .flow = BY_FLOW_UP, .collectives = BIT(plan->collective), .owner = BY_RANK_NONE};
        struct by_fraction weight;

        up = next_half(plan, left, root, BY_TREE_UP, up);
        down = next_half(plan, left, root, BY_TREE_DOWN, down);
        if (up == plan->tree_count && down == plan->tree_count)
            return 0;
        if (up == plan->tree_count || down == plan->tree_count)
            return by_problem_say(
                laying->problem, BY_EINVAL,
                "job %u, %s: the trees rooted at '%s' do not carry as much up as down: plan "
                "again for this topology",
                laying->job->job, by_collective_name(plan->collective),
                laying->map->topology->nodes[root].name);
        weight = by_fraction_compare(left[up], left[down]) < 0 ? left[up] : left[down];
        error = lay_tree(laying, up, weight, &pair.hops);
        if (error == 0)
            error = lay_tree(laying, down, weight, &pair.down);
        if (error == 0 && (by_fraction_subtract(left[up], weight, &left[up]) != 0 ||
                           by_fraction_subtract(left[down], weight, &left[down]) != 0))
            error = by_problem_say(laying->problem, BY_ERANGE,
                                   "job %u: a weight needs more than 63 bits: round the bandwidths",
                                   laying->job->job);
        if (error != 0) {
            by_hops_free(&pair.hops);
            by_hops_free(&pair.down);
            return error;
        }
        if (by_hops_compare(&pair.hops, &pair.down) == 0) {
            by_hops_free(&pair.down); /* the same tree serves both directions */
            pair.flow = BY_FLOW_BOTH;
        }
        keep_tree(laying, &pair, weight);
    }
}

/* Balances the trees of a plan over parallel cables, and notes what they reach. */
static void balance_plan(struct group_laying *laying, struct by_balance_use *use,
                         struct by_table_groups *groups)
{
    const char *name = by_collective_name(laying->plan->collective);
    struct by_balance_facts facts;
    char text[BY_FRACTION_TEXT_BYTES];

    by_balance(laying->map, &laying->trees, use, &facts);
    if (facts.split > 0)
        by_group_note(groups, "job %u: %u %s tree%s split between parallel cables", laying->job->job,
                      facts.split, name, facts.split == 1 ? " is" : "s are");
    if (facts.part.num < facts.part.den)
        by_group_note(
            groups,
            "job %u: on parallel cables the %s trees reach %s (%.4f) of their rate; trees are split "
            "only while a node is in at most %u: plan with fewer trees (--fixed-k, --trees-max)",
            laying->job->job, name, by_fraction_text(facts.part, text), by_fraction_value(facts.part),
            BY_BALANCE_PLACES_MAX);
    if (by_fraction_compare(facts.part, groups->part) < 0)
        groups->part = facts.part;
}

static int add_plan(const struct by_address_map *map, const struct by_lower_job *job,
                    const struct by_plan *plan, struct by_balance_use *use, struct by_table_groups *groups,
                    struct by_problem *problem)
{
    struct group_laying laying = {.map = map,
                                  .job = job,
                                  .plan = plan,
                                  .load = {.arc = by_alloc(map->topology->arc_count, sizeof(uint64_t))},
                                  .problem = problem};
    struct by_fraction *left = by_alloc(plan->tree_count, sizeof(*left));
    int error = 0;

    for (uint32_t i = 0; i < plan->tree_count; i++)
        left[i] = plan->trees[i].weight;
    for (uint32_t i = 0; i < plan->tree_count && error == 0; i++) {
        if (!is_half(plan, &plan->trees[i]))
            error = add_whole(&laying, i);
        else if (left[i].num != 0 && plan->trees[i].root < map->topology->node_count)
            error = add_pairs(&laying, plan->trees[i].root, left);
        else if (left[i].num != 0)
            error = lay_tree(&laying, i, left[i], &(struct by_hops){0}); /* states the error */
    }
    if (error == 0)
        balance_plan(&laying, use, groups);
    for (uint32_t i = 0; i < laying.trees.count; i++) {
        struct by_laid_tree *tree = &laying.trees.trees[i];

        if (error == 0) {
            add_tree(find_group(groups, tree->collectives, tree->owner), tree);
            continue;
        }
        by_hops_free(&tree->hops);
        by_hops_free(&tree->down);
        mpq_clear(tree->weight);
    }
    free(laying.trees.trees);
    free(left);
    free(laying.load.arc);
    return error;
}

/* Compares in a total order; 0 if both trees, or pairs, are the same. */
static int compare_trees(const struct by_group_tree *a, const struct by_group_tree *b)
{
    int order = by_hops_compare(&a->hops, &b->hops);

    return order != 0 ? order : by_hops_compare(&a->down, &b->down);
}

static int order_trees(const void *a, const void *b)
{
    const struct by_group_tree *x = a, *y = b;

    return compare_trees(x, y);
}

/* Merges equal trees of a group into one with the sum of their weights. */
static void merge_trees(struct by_table_group *group)
{
    uint32_t kept = 0;

    qsort(group->trees, group->count, sizeof(*group->trees), order_trees);
    for (uint32_t i = 1; i < group->count; i++) {
        if (compare_trees(&group->trees[kept], &group->trees[i]) == 0) {
            mpq_add(group->trees[kept].weight, group->trees[kept].weight, group->trees[i].weight);
            mpq_clear(group->trees[i].weight);
            by_hops_free(&group->trees[i].hops);
            by_hops_free(&group->trees[i].down);
        } else {
            group->trees[++kept] = group->trees[i];
        }
    }
    if (group->count > 0)
        group->count = kept + 1;
}

/*
 * Converts weights to integers without a common divisor. If these do not fit 32 bits, it rounds
 * them, but never to 0, and returns 1.
 */
static int share_out(struct by_table_group *group)
{
    mpz_t lcm, divisor, value, largest;
    int rounded;

    mpz_inits(lcm, divisor, value, largest, NULL);
    mpz_set_ui(lcm, 1);
    for (uint32_t i = 0; i < group->count; i++)
        mpz_lcm(lcm, lcm, mpq_denref(group->trees[i].weight));
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < group->count; i++) {
            mpz_mul(value, lcm, mpq_numref(group->trees[i].weight));
            mpz_divexact(value, value, mpq_denref(group->trees[i].weight));
            if (pass == 0) {
                mpz_gcd(divisor, divisor, value);
                if (mpz_cmp(value, largest) > 0)
                    mpz_set(largest, value);
                continue;
            }
            mpz_tdiv_q(value, value, divisor);
            if (mpz_sizeinbase(largest, 2) > 32)
                mpz_tdiv_q_2exp(value, value, mpz_sizeinbase(largest, 2) - 32);
            group->trees[i].share = mpz_sgn(value) ? (uint32_t)mpz_get_ui(value) : 1;
        }
        if (pass == 0)
            mpz_divexact(largest, largest, divisor);
    }
    rounded = mpz_sizeinbase(largest, 2) > 32;
    mpz_clears(lcm, divisor, value, largest, NULL);
    return rounded;
}

static int same_trees(const struct by_table_group *a, const struct by_table_group *b)
{
    if (a->owner != b->owner || a->count != b->count)
        return 0;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->trees[i].share != b->trees[i].share || compare_trees(&a->trees[i], &b->trees[i]) != 0)
            return 0;
    return 1;
}

static void free_group(struct by_table_group *group)
{
    for (uint32_t i = 0; i < group->count; i++) {
        by_hops_free(&group->trees[i].hops);
        by_hops_free(&group->trees[i].down);
        mpq_clear(group->trees[i].weight);
    }
    free(group->trees);
    memset(group, 0, sizeof(*group));
}

static void remove_group(struct by_table_groups *groups, uint32_t index)
{
    free_group(&groups->groups[index]);
    memmove(&groups->groups[index], &groups->groups[index + 1],
            (groups->count - index - 1) * sizeof(*groups->groups));
    groups->count--;
}

/*
 * Merges groups with the same trees, shares and owner into one that serves all their collectives.
 */
static void merge_groups(struct by_table_groups *groups)
{
    uint32_t shared = 0;

    for (uint32_t i = 0; i < groups->count; i++) {
        for (uint32_t j = i + 1; j < groups->count;) {
            if (!same_trees(&groups->groups[i], &groups->groups[j])) {
                j++;
                continue;
            }
            groups->groups[i].collectives |= groups->groups[j].collectives;
            shared += groups->groups[j].count;
            remove_group(groups, j);
        }
    }
    if (shared > 0)
        by_group_note(groups, "%u trees serve several collectives, because their plans are the same", shared);
}

/* Checks the plans of a job: all for the same ranks, and no two for one purpose. */
static int check_plans(const struct by_address_map *map, const struct by_lower_job *job,
                       struct by_problem *problem)
{
    for (uint32_t i = 0; i < job->plan_count; i++) {
        const struct by_plan *plan = job->plans[i];
        if (plan->compute_count != map->rank_count)
            return by_problem_say(problem, BY_EINVAL,
                                  "job %u: the %s plan is for %u compute nodes, this fabric has %u: plan "
                                  "again for this topology",
                                  job->job, by_collective_name(plan->collective), plan->compute_count,
                                  map->rank_count);
        for (uint32_t node = 0; node < map->topology->node_count; node++)
            if (by_members_have(map->topology, plan->member, node) !=
                by_members_have(map->topology, job->plans[0]->member, node))
                return by_problem_say(
                    problem, BY_EINVAL,
                    "job %u: '%s' is a rank in some of its plans and not in others: plan all "
                    "for the same --ranks",
                    job->job, map->topology->nodes[node].name);
        if (plan->tree_count == 0)
            return by_problem_say(problem, BY_EINVAL, "job %u: the %s plan has no trees: plan again",
                                  job->job, by_collective_name(plan->collective));
        for (uint32_t j = 0; j < i; j++)
            if (job->plans[j]->collective == plan->collective && job->plans[j]->root == plan->root)
                return by_problem_say(problem, BY_EINVAL, "job %u: two %s plans%s: give one", job->job,
                                      by_collective_name(plan->collective),
                                      plan->root >= 0 ? " for the same root" : "");
    }
    return 0;
}

/* Whether a plan gives the node no data in this collective. */
static bool has_no_share(const struct by_lower_job *job, unsigned collective, uint32_t node)
{
    for (uint32_t i = 0; i < job->plan_count; i++)
        if (job->plans[i]->collective == collective && job->plans[i]->shares)
            return job->plans[i]->shares[node] == 0;
    return false;
}

/*
 * Checks that each rank's shard has trees; without them a call could not be served. Shards that are
 * planned to be empty need none.
 */
static int check_owners(const struct by_address_map *map, const struct by_lower_job *job,
                        const struct by_table_groups *groups, unsigned collective, struct by_problem *problem)
{
    const struct by_topology *topology = map->topology;
    uint8_t *served = by_alloc(map->rank_count, 1);
    uint32_t count = 0;
    int error = 0;

    for (uint32_t i = 0; i < groups->count; i++) {
        if (!(groups->groups[i].collectives & BIT(collective)) || groups->groups[i].owner >= map->rank_count)
            continue;
        served[groups->groups[i].owner] = 1;
        count++;
    }
    for (uint32_t i = 0; i < topology->node_count && count > 0 && error == 0; i++)
        if (map->rank[i] != UINT32_MAX && !served[map->rank[i]] && !has_no_share(job, collective, i))
            error = by_problem_say(
                problem, BY_EUNSUPPORTED,
                "job %u: no %s tree is rooted at '%s', so its shard cannot be sent: add a plan for %s",
                job->job, by_collective_name(collective), topology->nodes[i].name,
                by_collective_name(collective));
    free(served);
    return error;
}

int by_groups_make(const struct by_address_map *map, const struct by_lower_job *job,
                   struct by_table_groups *groups, struct by_problem *problem)
{
    struct by_balance_use use = {.places = by_alloc(map->topology->node_count, sizeof(uint32_t))};
    int error;

    memset(groups, 0, sizeof(*groups));
    groups->part = (struct by_fraction){1, 1};
    error = check_plans(map, job, problem);
    for (uint32_t i = 0; i < job->plan_count && error == 0; i++)
        error = add_plan(map, job, job->plans[i], &use, groups, problem);
    free(use.places);
    if (error == 0)
        error = check_owners(map, job, groups, BY_COLLECTIVE_REDUCE_SCATTER, problem);
    if (error == 0)
        error = check_owners(map, job, groups, BY_COLLECTIVE_ALLGATHER, problem);
    if (error != 0) {
        by_groups_free(groups);
        return error;
    }
    for (uint32_t i = 0; i < groups->count; i++) {
        merge_trees(&groups->groups[i]);
        if (share_out(&groups->groups[i]))
            by_group_note(groups, "job %u: shares of the %s trees were rounded to 32 bits", job->job,
                          groups->groups[i].owner == BY_RANK_NONE ? "common" : "owners'");
        if (groups->groups[i].collectives == BIT(BY_COLLECTIVE_ALLREDUCE) &&
            !plans_have(job, BY_COLLECTIVE_BARRIER))
            groups->groups[i].collectives |= BIT(BY_COLLECTIVE_BARRIER);
    }
    merge_groups(groups);
    return 0;
}

void by_groups_free(struct by_table_groups *groups)
{
    for (uint32_t i = 0; i < groups->count; i++)
        free_group(&groups->groups[i]);
    for (uint32_t i = 0; i < groups->note_count; i++)
        free(groups->notes[i]);
    free(groups->groups);
    free(groups->notes);
}
