/* Adds cuts to the program, solves it, and splits the solution's flows into ways. See program.h. */
#include "control/study/bound/program.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/study/bound/model.h"
#include "control/study/bound/witness.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

static uint64_t size_of_use(const struct by_graph *both, const struct by_graph *way)
{
    const struct by_mesh *net = both->net;
    uint64_t direct = 0, behind = 0, sites = 0;

    for (uint32_t i = 0; i < both->node_count; i++)
        sites += way->compute[i] || way->branch[i];
    for (uint32_t half = 0; half < 2 * net->pair_count; half++) {
        bool from_site = way->compute[net->tail[half]] || way->branch[net->tail[half]];

        direct += net->capacity[half] > 0 && from_site;
        behind += net->capacity[half] > 0 && !from_site;
    }
    return direct + behind * sites;
}

uint64_t by_program_size(const struct by_program_graphs *graphs)
{
    uint64_t down = size_of_use(graphs->both, graphs->down), up = size_of_use(graphs->both, graphs->up);

    return graphs->both->compute_count +
           (by_graph_is_symmetric(graphs->both) && up == down ? down : up + down);
}

/* Adds the first cuts: what every tree pair needs at each compute node. */
static void first_cuts(struct by_model *model, double deadline)
{
    for (uint32_t use = 0; use < (model->mirrored ? 1 : BY_PROGRAM_USES); use++) {
        uint32_t n = model->sites[use].count;
        bool *inside = by_alloc(n, sizeof(*inside));

        for (uint32_t i = 0; i < n && !by_plan_late(deadline); i++) {
            memset(inside, 0, n * sizeof(*inside));
            inside[i] = true;
            by_model_cut(model, (enum by_program_use)use, inside);
            for (uint32_t j = 0; j < n; j++)
                inside[j] = j != i;
            by_model_cut(model, (enum by_program_use)use, inside);
        }
        free(inside);
    }
}

/*
 * Solves the program and adds violated cuts until none remains. The first rounds use amounts
 * rounded down, because their maximum flows are fast; later rounds use exact ones. `*amounts` then
 * holds the exact amounts. `*exact` is false if they need too many bits.
 */
static int find_cuts(struct by_model *model, double deadline, struct by_bound_program *program,
                     struct by_model_amounts *amounts, bool *exact, struct by_problem *problem)
{
    struct by_lp_options options = {.deadline = deadline, .perturb = true};
    uint32_t added = 1;
    int error = 0;

    *exact = true;
    while (!error && added > 0 && *exact) {
        if (by_plan_late(deadline))
            return by_problem_set(problem, BY_ETIMEDOUT, (struct by_place){0, 0},
                                  "the time limit passed before the linear program was solved; allow more "
                                  "time");
        error = by_lp_solve(model->lp, &options, problem);
        program->rounds++;
        if (error)
            break;
        program->pivots += by_lp_work(model->lp).pivots;
        by_model_amounts(model, false, amounts);
        added = by_model_separate(model, amounts);
        if (added == 0) {
            by_model_amounts_free(amounts);
            *exact = by_model_amounts(model, true, amounts);
            if (*exact)
                added = by_model_separate(model, amounts);
        }
        if (added > 0)
            by_model_amounts_free(amounts);
    }
    return error;
}

/*
 * Minimises the traffic at the same rate. This second objective yields short trees, and usually
 * small numbers. If rounding had hidden a violated cut, the rate cannot be reached, and `*exact`
 * becomes false. Errors are those of find_cuts.
 */
static int spare(struct by_model *model, double deadline, struct by_bound_program *program,
                 struct by_model_amounts *amounts, bool *exact, struct by_problem *problem)
{
    uint32_t row;
    mpq_t rate;
    int error;

    mpq_init(rate);
    by_lp_value(model->lp, rate);
    row = by_lp_row_q(model->lp, BY_LP_EQUAL, rate);
    mpq_clear(rate);
    for (uint32_t i = 0; i < model->root_count; i++) {
        by_lp_cost(model->lp, model->roots[i].column, 0, 1);
        by_lp_add(model->lp, row, model->roots[i].column, 1, 1);
    }
    for (uint32_t i = 0; i < model->share_count; i++)
        by_lp_cost(model->lp, model->shares[i].column, -1, 1);
    by_model_amounts_free(amounts);
    error = find_cuts(model, deadline, program, amounts, exact, problem);
    if (error != BY_EINVAL || by_lp_state(model->lp) != BY_LP_INFEASIBLE)
        return error;
    *exact = false;
    return 0;
}

static void add_way(struct by_program_ways *ways, const uint32_t *nodes, uint32_t count, int64_t amount)
{
    struct by_program_way *way;

    BY_GROW(ways->ways, ways->count, ways->room);
    way = &ways->ways[ways->count++];
    *way = (struct by_program_way){count, by_alloc(count, sizeof(*nodes)), amount};
    memcpy(way->nodes, nodes, count * sizeof(*nodes));
}

/* Splits the flow of one compute node for one use into ways. Circular flow is left over. */
struct program_walk {
    const struct by_model *model;
    const struct by_model_amounts *amounts;
    int64_t *left;         /* by share */
    uint32_t first, count; /* range of this flow's shares */
    uint32_t *nodes, *shares;
    bool *visited; /* by node */
};

/* Returns a share of the flow that leaves `node` and is not used up, or UINT32_MAX. */
static uint32_t next_share(const struct program_walk *walk, uint32_t node)
{
    for (uint32_t i = walk->first; i < walk->first + walk->count; i++)
        if (walk->left[i] > 0 && walk->model->arcs[walk->model->shares[i].arc].from == node)
            return i;
    return UINT32_MAX;
}

/* Finds one way from the source to a compute node; returns false if nothing is left. */
static bool walk_way(const struct program_walk *walk, enum by_program_use use, uint32_t source,
                     struct by_program_ways *ways)
{
    const struct by_model *model = walk->model;
    uint32_t at = source, length = 0;
    int64_t amount = INT64_MAX;

    memset(walk->visited, 0, model->graph->node_count * sizeof(*walk->visited));
    walk->nodes[0] = source;
    walk->visited[source] = true;
    while (at == source || model->sites[use].number[at] == UINT32_MAX) {
        uint32_t share = next_share(walk, at);

        if (share == UINT32_MAX) {
            BY_ASSERT(at == source); /* switches conserve flows */
            return false;
        }
        at = model->arcs[model->shares[share].arc].to;
        if (walk->visited[at]) { /* a circle: it reaches no compute node */
            uint32_t start = length;
            int64_t least = walk->left[share];

            while (walk->nodes[start] != at) {
                start--;
                least = walk->left[walk->shares[start]] < least ? walk->left[walk->shares[start]] : least;
            }
            walk->left[share] -= least;
            for (uint32_t i = start; i < length; i++)
                walk->left[walk->shares[i]] -= least;
            return true;
        }
        walk->visited[at] = true;
        walk->shares[length++] = share;
        walk->nodes[length] = at;
    }
    for (uint32_t i = 0; i < length; i++)
        amount = walk->left[walk->shares[i]] < amount ? walk->left[walk->shares[i]] : amount;
    for (uint32_t i = 0; i < length; i++)
        walk->left[walk->shares[i]] -= amount;
    add_way(ways, walk->nodes, length + 1, amount);
    return true;
}

static int compare_ways(const void *left, const void *right)
{
    const struct by_program_way *a = left, *b = right;
    uint32_t last = a->nodes[a->node_count - 1], other = b->nodes[b->node_count - 1];

    if (a->nodes[0] != b->nodes[0])
        return a->nodes[0] < b->nodes[0] ? -1 : 1;
    return last < other ? -1 : last > other;
}

static void find_ways(const struct by_model *model, const struct by_model_amounts *amounts,
                      struct by_bound_program *program)
{
    uint32_t n = model->graph->node_count;
    struct program_walk walk = {.model = model, .amounts = amounts};

    walk.left = by_alloc(model->share_count, sizeof(*walk.left));
    if (amounts->shares != NULL)
        memcpy(walk.left, amounts->shares, model->share_count * sizeof(*walk.left));
    walk.nodes = by_alloc((size_t)n + 1, sizeof(*walk.nodes));
    walk.shares = by_alloc((size_t)n + 1, sizeof(*walk.shares));
    walk.visited = by_alloc(n, sizeof(*walk.visited));
    while (walk.first < model->share_count) {
        const struct by_model_share *share = &model->shares[walk.first];

        for (walk.count = 0; walk.first + walk.count < model->share_count &&
                             model->shares[walk.first + walk.count].use == share->use &&
                             model->shares[walk.first + walk.count].source == share->source;)
            walk.count++;
        while (walk_way(&walk, share->use, model->sites[share->use].node[share->source],
                        &program->ways[share->use]))
            ;
        walk.first += walk.count;
    }
    for (uint32_t use = 0; use < BY_PROGRAM_USES; use++)
        if (program->ways[use].count > 1)
            qsort(program->ways[use].ways, program->ways[use].count, sizeof(struct by_program_way),
                  compare_ways);
    free(walk.left);
    free(walk.nodes);
    free(walk.shares);
    free(walk.visited);
}

int by_program_solve(const struct by_program_graphs *graphs, double deadline,
                     struct by_bound_program *program, struct by_problem *problem)
{
    struct by_model *model;
    struct by_model_amounts amounts = {0};
    bool exact = false, branches = false;
    int error;

    *program = (struct by_bound_program){.bound = {0, 1}, .rate = {0, 1}};
    if (by_graph_sum(graphs->both) > BY_CAPACITY_SUM_MAX / 8)
        return by_problem_set(
            problem, BY_ERANGE, (struct by_place){0, 0},
            "the bandwidths need more than 57 bits in their common unit; round them or use a larger unit");
    model = by_model_new(graphs);
    for (uint32_t use = 0; use < BY_PROGRAM_USES; use++)
        branches |= model->sites[use].count > graphs->both->compute_count;
    program->mirrored = model->mirrored;
    first_cuts(model, deadline);
    error = find_cuts(model, deadline, program, &amounts, &exact, problem);
    if (!error) {
        program->cuts = model->cut_count;
        program->columns = by_lp_column_count(model->lp);
        by_witness_keep(model, branches, program);
    }
    if (!error && !exact && !branches)
        error = spare(model, deadline, program, &amounts, &exact, problem);
    if (!error && exact && !branches && by_fraction_set(amounts.total, amounts.scale, &program->rate) == 0) {
        program->scale = amounts.scale;
        program->roots = by_alloc(graphs->both->node_count, sizeof(*program->roots));
        for (uint32_t i = 0; amounts.roots != NULL && i < model->root_count; i++)
            program->roots[model->roots[i].node] = amounts.roots[i];
        find_ways(model, &amounts, program);
    }
    by_model_amounts_free(&amounts);
    by_model_free(model);
    return error;
}

void by_program_free(struct by_bound_program *program)
{
    for (uint32_t use = 0; use < BY_PROGRAM_USES; use++) {
        for (uint32_t i = 0; i < program->ways[use].count; i++)
            free(program->ways[use].ways[i].nodes);
        free(program->ways[use].ways);
    }
    by_certificate_free(program->proof);
    free(program->roots);
    *program = (struct by_bound_program){0};
}
