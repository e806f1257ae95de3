/*
 * Planning allreduce. See allreduce.h.
 *
 * On a symmetric fabric a tree used up and down loads each of its links once each way, wherever its root is.
 * So the question is how many trees fit into undirected links: a fractional packing of (Steiner) trees,
 * solved exactly as a linear program whose columns are priced one by one (simplex.h, steiner.h). Where every
 * switch branches this reaches the cut on all regular fabrics, which reduce-scatter and allgather cannot:
 * they root all trees at compute nodes and send N - 1 shards over each host's link twice.
 *
 * Reduce-scatter plus allgather (ForestColl's optimum, at half its rate each way) is the other candidate: it
 * needs no linear program, and is the best of all on many fabrics whose switches do not branch.
 */
#include "control/plan/allreduce.h"

#include "control/plan/forest.h"
#include "control/plan/optimum.h"
#include "control/plan/simplex.h"
#include "control/plan/steiner.h"
#include "control/topology/alloc.h"
#include "control/topology/build.h"
#include "control/topology/fraction.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

/* Links up to which the linear program is tried (count): its matrix has that many rows and columns. */
#define PROGRAM_LINKS_MAX 512u
/* Work after which it is left with what it has (steps x links^2): some ten seconds. */
#define PROGRAM_WORK_MAX 100000000.0

struct column {
    uint32_t root;
    uint32_t path_count;
    struct by_path *paths;
    int64_t greedy_amount; /* what the first filling gave it */
};

/* The linear program and what it has found. */
struct program {
    const struct by_graph *graph;
    struct by_steiner *steiner;
    struct by_simplex *simplex;
    struct column *columns;
    uint32_t column_count;
    uint32_t column_room;
    struct by_fraction value; /* in units of capacity */
    bool proved;              /* no packing of trees is better */
    bool greedy; /* the first filling reached the bound: the columns' greedy amounts are the solution */
};

/* Arrays by link. */
struct work {
    uint32_t links;
    int64_t *limits;
    int64_t *left;
    int64_t *prices;
    int32_t *counts;
};

static void program_free(struct program *program)
{
    for (uint32_t i = 0; i < program->column_count; i++) {
        for (uint32_t j = 0; j < program->columns[i].path_count; j++)
            free(program->columns[i].paths[j].nodes);
        free(program->columns[i].paths);
    }
    free(program->columns);
    by_simplex_free(program->simplex);
    by_steiner_free(program->steiner);
}

static void add_column(struct program *program, int64_t greedy_amount)
{
    struct column *column;

    BY_GROW(program->columns, program->column_count, program->column_room);
    column = &program->columns[program->column_count++];
    column->paths = by_steiner_paths(program->steiner, &column->root, &column->path_count);
    column->greedy_amount = greedy_amount;
}

/* Scarce links are dear: the price of a link while filling goes with the inverse of what it has left. */
static void price_scarcity(struct work *work)
{
    int64_t largest = 1;

    for (uint32_t i = 0; i < work->links; i++)
        largest = work->limits[i] > largest ? work->limits[i] : largest;
    for (uint32_t i = 0; i < work->links; i++) {
        __int128 price = work->left[i] ? ((__int128)largest << 10) / work->left[i] : BY_PRICE_MAX;

        work->prices[i] =
            price < BY_PRICE_MAX >> 10 ? (int64_t)price : BY_PRICE_MAX >> (work->left[i] ? 10 : 0);
    }
}

/*
 * Fills the fabric with one cheap tree after the other, each as heavy as the links left allow. On regular
 * fabrics this reaches the bound with the fewest trees; elsewhere its trees are the first columns of the
 * program.
 */
static void fill_greedily(struct program *program, int64_t bound, struct work *work)
{
    int64_t filled = 0;

    memcpy(work->left, work->limits, work->links * sizeof(*work->left));
    while (filled < bound) {
        int64_t amount = bound - filled;
        bool cheapest;

        price_scarcity(work);
        by_steiner_price(program->steiner, work->prices, work->counts, &cheapest);
        for (uint32_t i = 0; i < work->links; i++)
            if (work->counts[i] && work->left[i] / work->counts[i] < amount)
                amount = work->left[i] / work->counts[i];
        if (amount == 0)
            break;
        for (uint32_t i = 0; i < work->links; i++)
            work->left[i] -= amount * work->counts[i];
        filled += amount;
        add_column(program, amount);
        by_simplex_offer(program->simplex, work->counts, program->column_count - 1);
    }
    program->greedy = filled == bound;
    program->value = (struct by_fraction){filled, 1};
}

/* Adds trees until none improves, the bound is reached, or the work is used up. */
static int improve(struct program *program, int64_t bound, struct work *work)
{
    int error = by_simplex_value(program->simplex, &program->value);

    while (!error && by_fraction_compare(program->value, (struct by_fraction){bound, 1}) < 0 &&
           by_simplex_steps(program->simplex) * (double)work->links * work->links < PROGRAM_WORK_MAX) {
        int64_t one;
        bool exact = by_simplex_prices(program->simplex, work->prices, &one), cheapest;

        by_steiner_price(program->steiner, work->prices, work->counts, &cheapest);
        if (!by_simplex_offer(program->simplex, work->counts, program->column_count)) {
            program->proved = exact && cheapest;
            break;
        }
        add_column(program, 0);
        error = by_simplex_value(program->simplex, &program->value);
    }
    return error;
}

static int program_solve(struct program *program, int64_t bound)
{
    uint32_t links = by_steiner_link_count(program->steiner);
    struct work work = {.links = links};
    int error = 0;

    work.limits = by_alloc(links, sizeof(*work.limits));
    work.left = by_alloc(links, sizeof(*work.left));
    work.prices = by_alloc(links, sizeof(*work.prices));
    work.counts = by_alloc(links, sizeof(*work.counts));
    for (uint32_t i = 0; i < links; i++)
        work.limits[i] = by_steiner_link_capacity(program->steiner, i);
    program->simplex = by_simplex_new(links, work.limits);
    fill_greedily(program, bound, &work);
    if (!program->greedy)
        error = improve(program, bound, &work);
    free(work.limits);
    free(work.left);
    free(work.prices);
    free(work.counts);
    return error;
}

/* Appends the trees of one column. */
static int column_trees(const struct program *program, const struct column *column, struct by_fraction amount,
                        struct by_tree_list *list)
{
    struct by_fraction weight;
    int error = by_fraction_multiply(amount, program->graph->unit, &weight);

    if (!error)
        by_tree_list_add(list, program->graph, column->root, BY_TREE_BOTH, weight, column->paths,
                         column->path_count);
    return error;
}

/* The trees of the solution. */
static int program_trees(const struct program *program, struct by_tree_list *list)
{
    int error = 0;

    for (uint32_t i = 0; i < program->column_count && program->greedy && !error; i++)
        error = column_trees(program, &program->columns[i],
                             (struct by_fraction){program->columns[i].greedy_amount, 1}, list);
    for (uint32_t row = 0; row < by_steiner_link_count(program->steiner) && !program->greedy && !error;
         row++) {
        struct by_fraction amount;
        uint32_t tag;

        if (by_simplex_basic(program->simplex, row, &tag, &amount, &error) && !error)
            error = column_trees(program, &program->columns[tag], amount, list);
    }
    by_tree_list_merge(list);
    return error;
}

/*
 * Whether no packing of trees beats `rate`, seen quickly: prices give the bound (capacity x price) / (price
 * of the cheapest tree). Tried are equal prices on all links, and on those of compute nodes.
 */
static bool rate_is_proved(const struct by_graph *graph, struct by_steiner *steiner, struct by_fraction rate)
{
    uint32_t links = by_steiner_link_count(steiner);
    int64_t *prices = by_alloc(links, sizeof(*prices));
    int32_t *counts = by_alloc(links, sizeof(*counts));
    bool proved = false;

    for (int hosts_only = 0; hosts_only < 2 && !proved; hosts_only++) {
        __int128 whole = 0, tree;
        bool cheapest;

        for (uint32_t i = 0; i < links; i++) {
            uint32_t ends[2];

            by_steiner_link_ends(steiner, i, ends);
            prices[i] = hosts_only ? graph->compute[ends[0]] + graph->compute[ends[1]] : 1;
            whole += (__int128)prices[i] * by_steiner_link_capacity(steiner, i);
        }
        tree = by_steiner_price(steiner, prices, counts, &cheapest);
        proved = cheapest && tree > 0 && whole * rate.den == tree * rate.num;
    }
    free(prices);
    free(counts);
    return proved;
}

/* The trees of reduce-scatter plus allgather on one graph: `share` of the allgather's rate, used as `use`. */
static int rs_ag_trees(const struct by_graph *graph, int64_t p, int64_t q, struct by_fraction share,
                       enum by_tree_use use, struct by_tree_list *list, struct by_plan *plan,
                       struct by_problem *problem)
{
    size_t n = graph->node_count;
    int64_t *capacity = by_alloc(n * n, sizeof(*capacity)), *roots = by_alloc(n, sizeof(*roots));
    struct by_forest forest = {graph, capacity, roots, {0, 1}, use};
    struct by_fraction unit;
    int error = by_fraction_divide(graph->unit, (struct by_fraction){p, 1}, &unit);

    for (size_t i = 0; i < n * n; i++)
        capacity[i] = graph->capacity[i] * p;
    for (size_t i = 0; i < n; i++)
        roots[i] = graph->compute[i] ? q : 0;
    if (!error)
        error = by_fraction_multiply(unit, share, &forest.weight);
    if (error)
        error = by_problem_set(problem, error, (struct by_place){0, 0},
                               "a tree's weight needs more than 63 bits; round the bandwidths");
    else
        error = by_forest_make(&forest, list, plan, problem);
    free(capacity);
    free(roots);
    return error;
}

/* Symmetric fabrics: the better of the linear program and reduce-scatter plus allgather. */
static int plan_symmetric(const struct by_graph *graph, int64_t bound, struct by_tree_list *list,
                          struct by_plan *plan, struct by_problem *problem)
{
    struct program program = {.graph = graph, .steiner = by_steiner_new(graph), .value = {0, 1}};
    bool *inside = by_alloc(graph->node_count, sizeof(*inside)), branching = false, use_program;
    struct by_fraction rs_ag;
    double start = by_plan_clock();
    int64_t p, q;
    int error = by_optimum_allgather(graph, &p, &q, inside, problem);

    if (!error && by_fraction_set((__int128)graph->compute_count * q, (__int128)2 * p, &rs_ag) != 0)
        error = by_problem_set(problem, BY_ERANGE, (struct by_place){0, 0},
                               "the rate needs more than 63 bits; round the bandwidths");
    for (uint32_t i = 0; i < graph->node_count; i++)
        branching |= graph->branch[i];
    use_program = !error && by_steiner_link_count(program.steiner) <= PROGRAM_LINKS_MAX &&
                  (branching || !rate_is_proved(graph, program.steiner, rs_ag));
    if (use_program && program_solve(&program, bound) != 0)
        use_program = false;
    use_program = use_program && by_fraction_compare(program.value, rs_ag) >= 0;
    plan->seconds.pack += by_plan_clock() - start;
    if (use_program)
        error = program_trees(&program, list);
    else if (!error)
        error = rs_ag_trees(graph, p, q, (struct by_fraction){1, 2}, BY_TREE_BOTH, list, plan, problem);
    if (!error)
        error = by_fraction_multiply(use_program ? program.value : rs_ag, graph->unit, &plan->achieved);
    if (error && !problem->text[0])
        by_problem_set(problem, error, (struct by_place){0, 0},
                       "a tree's weight needs more than 63 bits; round the bandwidths");
    program_free(&program);
    free(inside);
    return error;
}

/* Splits the heavier of two trees so that both weigh the same; returns the common weight and leaves the rest
 * in `*rest`. */
static int pair_weight(struct by_fraction *up, struct by_fraction *down, struct by_fraction *common)
{
    *common = by_fraction_compare(*up, *down) <= 0 ? *up : *down;
    if (by_fraction_subtract(*up, *common, up) != 0 || by_fraction_subtract(*down, *common, down) != 0)
        return BY_ERANGE;
    return 0;
}

static struct by_tree copy_tree(const struct by_tree *from, struct by_fraction weight)
{
    struct by_tree tree = *from;

    tree.weight = weight;
    tree.edges = by_alloc(from->edge_count, sizeof(*tree.edges));
    for (uint32_t i = 0; i < from->edge_count; i++) {
        tree.edges[i].node_count = from->edges[i].node_count;
        tree.edges[i].nodes = by_alloc(from->edges[i].node_count, sizeof(*tree.edges[i].nodes));
        memcpy(tree.edges[i].nodes, from->edges[i].nodes,
               from->edges[i].node_count * sizeof(*tree.edges[i].nodes));
    }
    return tree;
}

static void append_tree(struct by_tree_list *list, struct by_tree tree)
{
    BY_GROW(list->trees, list->count, list->room);
    list->trees[list->count++] = tree;
}

/* Pairs the trees of each root: both lists are sorted by root and have equal sums for each. Empties their
 * weights. */
static int pair_trees(struct by_tree_list *up, struct by_tree_list *down, struct by_tree_list *list)
{
    uint32_t i = 0, j = 0;

    while (i < up->count && j < down->count) {
        struct by_fraction common;

        BY_ASSERT(up->trees[i].root == down->trees[j].root);
        if (pair_weight(&up->trees[i].weight, &down->trees[j].weight, &common) != 0)
            return BY_ERANGE;
        append_tree(list, copy_tree(&up->trees[i], common));
        append_tree(list, copy_tree(&down->trees[j], common));
        i += up->trees[i].weight.num == 0;
        j += down->trees[j].weight.num == 0;
    }
    return 0;
}

/*
 * Other fabrics: reduce-scatter with rate a beside allgather with rate b share the links; both together take
 * the time 1/a + 1/b, and the trees that carry up get the share b / (a + b).
 */
static int plan_directed(const struct by_graph *up, const struct by_graph *down, struct by_tree_list *list,
                         struct by_plan *plan, struct by_problem *problem)
{
    struct by_tree_list up_list = {0}, down_list = {0};
    bool *inside = by_alloc(up->node_count, sizeof(*inside));
    struct by_fraction a, b, sum, share_up, share_down;
    int64_t up_p, up_q, down_p, down_q;
    int error = by_optimum_allgather(up, &up_p, &up_q, inside, problem);

    if (!error)
        error = by_optimum_allgather(down, &down_p, &down_q, inside, problem);
    if (!error && (by_fraction_set((__int128)up->compute_count * up_q, up_p, &a) != 0 ||
                   by_fraction_set((__int128)up->compute_count * down_q, down_p, &b) != 0 ||
                   by_fraction_add(a, b, &sum) != 0 || by_fraction_divide(b, sum, &share_up) != 0 ||
                   by_fraction_divide(a, sum, &share_down) != 0 ||
                   by_fraction_multiply(a, share_up, &plan->achieved) != 0 ||
                   by_fraction_multiply(plan->achieved, up->unit, &plan->achieved) != 0))
        error = by_problem_set(problem, BY_ERANGE, (struct by_place){0, 0},
                               "the rate needs more than 63 bits; round the bandwidths");
    if (!error)
        error = rs_ag_trees(up, up_p, up_q, share_up, BY_TREE_UP, &up_list, plan, problem);
    if (!error)
        error = rs_ag_trees(down, down_p, down_q, share_down, BY_TREE_DOWN, &down_list, plan, problem);
    if (!error && pair_trees(&up_list, &down_list, list) != 0)
        error = by_problem_set(problem, BY_ERANGE, (struct by_place){0, 0},
                               "a tree's weight needs more than 63 bits; round the bandwidths");
    by_tree_list_free(&up_list);
    by_tree_list_free(&down_list);
    free(inside);
    return error;
}

int by_allreduce_plan(const struct by_topology *topology, const struct by_plan_options *options,
                      struct by_plan *plan, struct by_problem *problem)
{
    struct by_graph *both = by_graph_make(topology, BY_DIRECTION_BOTH, options->in_network);
    struct by_tree_list list = {0};
    bool *inside = by_alloc(topology->node_count, sizeof(*inside));
    double start = by_plan_clock();
    int64_t rate;
    int error = by_optimum_allreduce(both, &rate, inside, problem);

    if (!error && by_fraction_multiply(both->unit, (struct by_fraction){rate, 1}, &plan->optimum) != 0)
        error = by_problem_set(problem, BY_ERANGE, (struct by_place){0, 0},
                               "the bound needs more than 63 bits; round the bandwidths");
    for (uint32_t i = 0; i < topology->node_count && !error; i++)
        if (!inside[i])
            plan->cut[plan->cut_count++] = i;
    plan->cut_exiting = plan->optimum;
    plan->seconds.optimum = by_plan_clock() - start;
    if (!error && by_graph_is_symmetric(both)) {
        error = plan_symmetric(both, rate, &list, plan, problem);
    } else if (!error) {
        struct by_graph *up = by_graph_make(topology, BY_DIRECTION_UP, options->in_network);
        struct by_graph *down = by_graph_make(topology, BY_DIRECTION_DOWN, options->in_network);

        error = plan_directed(up, down, &list, plan, problem);
        by_graph_free(up);
        by_graph_free(down);
    }
    plan->trees = list.trees;
    plan->tree_count = list.count;
    by_graph_free(both);
    free(inside);
    return error;
}
