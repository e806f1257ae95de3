/*
 * Reductions: the program SSR of LMR section 4.2. See program.h; reduction_tree.c extracts the
 * reduction trees.
 *
 * A message is a partial result. It covers consecutive values in the operator's order, or any set
 * of values if the operator commutes. (LMR note 1 leaves the second case open; there are 2^n sets,
 * so n must be small.) Holders supply their values without limit, and the complete result ends at
 * the target. Every other message that reaches a node or is computed there is used or sent on
 * there.
 */
#include "control/study/steady/program_reduce.h"

#include "control/study/series/rational.h"
#include "control/study/steady/partials.h"
#include "control/study/steady/tree_program.h"
#include "offload/base/errors.h"

static const struct by_place nowhere = {0, 0};

/* ---- messages and combinations ---- */

uint32_t by_reduction_message(const struct by_reduction *reduction, uint64_t values)
{
    uint32_t first = (uint32_t)__builtin_ctzll(values), count = (uint32_t)__builtin_popcountll(values);
    uint32_t n = reduction->problem->holder_count;

    if (reduction->problem->commutative)
        return (uint32_t)values - 1;
    return by_partials_interval(n, count, first);
}

uint32_t by_reduction_split(const struct by_reduction *reduction, uint32_t message, uint32_t left)
{
    for (uint32_t s = reduction->first_split[message]; s < reduction->first_split[message + 1]; s++)
        if (reduction->splits[s].left == left)
            return s;
    return BY_SERIES_NONE;
}

static void list_messages(struct by_reduction *reduction)
{
    uint32_t n = reduction->problem->holder_count, m = 0;
    uint64_t all = UINT64_MAX >> (64 - n);

    reduction->message_count = reduction->problem->commutative ? (uint32_t)all : n * (n + 1) / 2;
    reduction->values = by_alloc(reduction->message_count, sizeof(*reduction->values));
    reduction->size = by_rationals_new(reduction->message_count);
    if (reduction->problem->commutative)
        for (; m < reduction->message_count; m++)
            reduction->values[m] = m + 1;
    for (uint32_t length = 1; length <= n && m < reduction->message_count; length++)
        for (uint32_t first = 0; first + length <= n; first++)
            reduction->values[m++] = (all >> (n - length)) << first;
    for (m = 0; m < reduction->message_count; m++)
        by_steady_message_size(reduction->problem, (uint32_t)__builtin_ctzll(reduction->values[m]),
                               63 - (uint32_t)__builtin_clzll(reduction->values[m]), reduction->size[m]);
    reduction->whole = by_reduction_message(reduction, all);
}

/*
 * Enumerates the left parts of a message; starts and ends with 0. An interval is cut at each
 * position; a set has all parts that contain its lowest value.
 */
static uint64_t next_left(const struct by_reduction *reduction, uint64_t values, uint64_t left)
{
    uint64_t lowest = values & -values;

    if (!reduction->problem->commutative) {
        left |= left ? left << 1 : lowest;
        return left == values ? 0 : left;
    }
    left = left ? (left - 1) & values : (values - 1) & values;
    while (left && !(left & lowest))
        left = (left - 1) & values;
    return left;
}

static void list_splits(struct by_reduction *reduction)
{
    uint32_t room = 0;

    reduction->first_split = by_alloc((size_t)reduction->message_count + 1, sizeof(uint32_t));
    for (uint32_t m = 0; m < reduction->message_count; m++) {
        uint64_t values = reduction->values[m], left = 0;

        reduction->first_split[m] = reduction->split_count;
        if (!(values & (values - 1)))
            continue;
        while ((left = next_left(reduction, values, left)) != 0) {
            BY_GROW(reduction->splits, reduction->split_count, room);
            reduction->splits[reduction->split_count++] = (struct by_steady_split){
                m, by_reduction_message(reduction, left), by_reduction_message(reduction, values & ~left)};
        }
    }
    reduction->first_split[reduction->message_count] = reduction->split_count;
}

void by_reduction_make(struct by_reduction *reduction, const struct by_steady_problem *problem,
                       const struct by_platform *platform)
{
    *reduction = (struct by_reduction){.problem = problem, .platform = platform};
    mpq_init(reduction->throughput);
    list_messages(reduction);
    list_splits(reduction);
    reduction->sends = by_rationals_new((size_t)platform->links->count * reduction->message_count);
    reduction->makes = by_rationals_new((size_t)platform->topology->node_count * reduction->split_count);
}

void by_reduction_free(struct by_reduction *reduction)
{
    by_rationals_free(reduction->sends, (size_t)reduction->platform->links->count * reduction->message_count);
    by_rationals_free(reduction->makes,
                      (size_t)reduction->platform->topology->node_count * reduction->split_count);
    by_rationals_free(reduction->size, reduction->message_count);
    mpq_clear(reduction->throughput);
    free(reduction->values);
    free(reduction->splits);
    free(reduction->first_split);
}

/* ---- the linear program ---- */

struct program_reduce_program {
    struct by_reduction *reduction;
    struct by_lp *lp;
    struct by_resources resources;
    uint32_t throughput; /* column */
    uint32_t *row;       /* by node and message: conservation row, or NONE */
    uint32_t *sends;     /* columns, laid out as in by_reduction */
    uint32_t *makes;
};

/* Whether the node holds the value. */
static bool is_held(const struct by_reduction *reduction, uint32_t message, uint32_t node)
{
    uint64_t values = reduction->values[message];

    return !(values & (values - 1)) && reduction->problem->holders[__builtin_ctzll(values)] == node;
}

static void add_rows(struct program_reduce_program *program)
{
    const struct by_reduction *reduction = program->reduction;
    uint32_t n = reduction->platform->topology->node_count, count = reduction->message_count;

    for (uint32_t i = 0; i < n; i++)
        for (uint32_t m = 0; m < count; m++)
            program->row[(size_t)i * count + m] =
                is_held(reduction, m, i) ? BY_SERIES_NONE : by_lp_row(program->lp, BY_LP_EQUAL, 0, 1);
    by_lp_add(program->lp, program->row[(size_t)reduction->problem->targets[0] * count + reduction->whole],
              program->throughput, -1, 1);
}

/* Adds `amount` of a message at a node for each unit of a column; `amount` may be negative. */
static void change(struct program_reduce_program *program, uint32_t node, uint32_t message, uint32_t column,
                   int64_t amount)
{
    uint32_t row = program->row[(size_t)node * program->reduction->message_count + message];

    if (row != BY_SERIES_NONE)
        by_lp_add(program->lp, row, column, amount, 1);
}

static void add_sends(struct program_reduce_program *program)
{
    struct by_reduction *reduction = program->reduction;
    const struct by_links *links = reduction->platform->links;
    uint32_t count = reduction->message_count;

    for (uint32_t l = 0; l < links->count; l++)
        for (uint32_t m = 0; m < count; m++) {
            uint32_t *column = &program->sends[(size_t)l * count + m];

            *column = BY_SERIES_NONE;
            if (is_held(reduction, m, links->to[l]) ||
                (m == reduction->whole && links->from[l] == reduction->problem->targets[0]))
                continue;
            *column = by_lp_column(program->lp, 0, 1);
            by_resources_charge(&program->resources, reduction->platform, program->lp, l, *column,
                                reduction->size[m]);
            change(program, links->to[l], m, *column, 1);
            change(program, links->from[l], m, *column, -1);
        }
}

static void add_makes(struct program_reduce_program *program)
{
    struct by_reduction *reduction = program->reduction;
    uint32_t n = reduction->platform->topology->node_count;
    mpq_t time;

    mpq_init(time);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t s = 0; s < reduction->split_count; s++) {
            const struct by_steady_split *split = &reduction->splits[s];
            uint32_t *column = &program->makes[(size_t)i * reduction->split_count + s];

            *column = BY_SERIES_NONE;
            if (!by_platform_computes(reduction->platform, i))
                continue;
            *column = by_lp_column(program->lp, 0, 1);
            by_platform_task_time(reduction->platform, i, reduction->size[split->message], time);
            if (mpq_sgn(time) != 0)
                by_lp_add_q(program->lp, program->resources.computes[i], *column, time);
            change(program, i, split->message, *column, 1);
            change(program, i, split->left, *column, -1);
            change(program, i, split->right, *column, -1);
        }
    mpq_clear(time);
}

/* Among all solutions that reach `optimum`, maximises the idle time of the busiest processor. */
static void add_balance(struct program_reduce_program *program, const mpq_t optimum)
{
    uint32_t least = by_lp_row_q(program->lp, BY_LP_AT_LEAST, optimum);
    uint32_t spare = by_lp_column(program->lp, 1, 1);

    by_lp_add(program->lp, least, program->throughput, 1, 1);
    for (uint32_t r = 0; r < program->resources.count; r++)
        if (program->resources.list[r].kind == BY_SERIES_COMPUTES)
            by_lp_add(program->lp, program->resources.list[r].row, spare, 1, 1);
}

/* Builds the program for the best throughput or, given `optimum`, for the best balance. */
static void program_make(struct program_reduce_program *program, struct by_reduction *reduction,
                         const mpq_t *optimum)
{
    const struct by_platform *platform = reduction->platform;
    size_t places = (size_t)platform->topology->node_count * reduction->message_count;

    *program = (struct program_reduce_program){.reduction = reduction, .lp = by_lp_new()};
    program->row = by_alloc(places, sizeof(uint32_t));
    program->sends = by_alloc((size_t)platform->links->count * reduction->message_count, sizeof(uint32_t));
    program->makes =
        by_alloc((size_t)platform->topology->node_count * reduction->split_count, sizeof(uint32_t));
    by_resources_make(&program->resources, platform, program->lp);
    program->throughput = by_lp_column(program->lp, optimum ? 0 : 1, 1);
    add_rows(program);
    add_sends(program);
    add_makes(program);
    if (optimum)
        add_balance(program, *optimum);
}

static void program_free(struct program_reduce_program *program)
{
    by_resources_free(&program->resources);
    by_lp_free(program->lp);
    free(program->row);
    free(program->sends);
    free(program->makes);
}

/* Copies the solution into an empty one, because extracting trees leaves zeros. */
static void take_solution(const struct program_reduce_program *program)
{
    struct by_reduction *reduction = program->reduction;
    size_t sends = (size_t)reduction->platform->links->count * reduction->message_count;
    size_t makes = (size_t)reduction->platform->topology->node_count * reduction->split_count;

    by_lp_primal(program->lp, program->throughput, reduction->throughput);
    for (size_t i = 0; i < sends; i++)
        if (program->sends[i] != BY_SERIES_NONE)
            by_lp_primal(program->lp, program->sends[i], reduction->sends[i]);
    for (size_t i = 0; i < makes; i++)
        if (program->makes[i] != BY_SERIES_NONE)
            by_lp_primal(program->lp, program->makes[i], reduction->makes[i]);
}

/*
 * Solves for the best throughput or, given `optimum`, for the best balance at that throughput; then
 * extracts the trees.
 */
static int solve(struct by_reduction *reduction, const mpq_t *optimum, struct by_series *series,
                 struct by_lanes *lanes, struct by_problem *trouble)
{
    const struct by_steady_problem *problem = reduction->problem;
    struct by_lp_options options = {.deadline = problem->deadline};
    struct program_reduce_program program;
    int error;

    program_make(&program, reduction, optimum);
    error = by_lp_solve(program.lp, &options, trouble);
    if (!error && !optimum) {
        by_lp_value(program.lp, series->throughput);
        by_program_prices(&program.resources, by_lp_duals(program.lp), series);
    }
    if (!error)
        take_solution(&program);
    program_free(&program);
    if (!error && mpq_sgn(reduction->throughput) == 0)
        return by_program_reduce_refuse(problem, trouble);
    if (!error && !by_reduction_trees(reduction, lanes))
        error = by_problem_set(trouble, BY_ESTATE, nowhere,
                               "the program's solution has no reduction trees, please report it");
    return error;
}

/* Computes the least period of these lanes. */
static void period_of(const struct by_lanes *lanes, mpz_t period)
{
    mpz_set_ui(period, 1);
    for (uint32_t l = 0; l < lanes->count; l++)
        mpz_lcm(period, period, mpq_denref(lanes->list[l].weight));
}

/*
 * Replaces the trees by balanced ones if requested, or if that costs little. A timeout of the
 * second program is no error, because it only improves the result.
 */
static int balance(struct by_reduction *reduction, struct by_series *series, struct by_lanes *lanes,
                   struct by_problem *trouble)
{
    bool always = reduction->problem->balance == BY_BALANCE_ALWAYS;
    struct by_lanes balanced = {.count = 0};
    int error = solve(reduction, (const mpq_t *)&series->throughput, series, &balanced, trouble);
    mpz_t limit, period;

    mpz_inits(limit, period, NULL);
    period_of(lanes, limit);
    period_of(&balanced, period);
    mpz_mul_ui(limit, limit, BY_STEADY_BALANCE_PERIODS);
    if (!error && (always || mpz_cmp(period, limit) <= 0)) {
        struct by_lanes kept = *lanes;

        *lanes = balanced;
        balanced = kept;
    }
    by_lanes_free(&balanced);
    mpz_clears(limit, period, NULL);
    return always || error != BY_ETIMEDOUT ? error : 0;
}

/* Estimates the number of variables before any memory is allocated for them. */
static double count_variables(const struct by_steady_problem *problem, const struct by_platform *platform)
{
    double n = problem->holder_count, messages = n * (n + 1) / 2, splits = n * (n * n - 1) / 6;
    uint32_t computing = 0;

    for (uint32_t i = 0; i < platform->topology->node_count; i++)
        computing += by_platform_computes(platform, i);
    if (problem->commutative) {
        messages = splits = 1;
        for (uint32_t i = 0; i < problem->holder_count; i++) {
            messages *= 2;
            splits *= 3;
        }
        splits /= 2;
    }
    return platform->links->count * messages + computing * splits;
}

int by_program_reduce_refuse(const struct by_steady_problem *problem, struct by_problem *trouble)
{
    return by_problem_set(trouble, BY_EINVAL, nowhere,
                          "no reduction is possible: a value cannot reach a node that computes and then "
                          "'%s'; give nodes a \"task_time\", or links",
                          problem->topology->nodes[problem->targets[0]].name);
}

/* Whether every set of values can be a message. */
static bool has_few_values(const struct by_steady_problem *problem)
{
    return !problem->commutative || problem->holder_count <= BY_STEADY_COMMUTATIVE_MAX;
}

bool by_program_generates(const struct by_steady_problem *problem, const struct by_platform *platform)
{
    uint32_t from = problem->trees_from ? problem->trees_from : BY_STEADY_TREES_FROM;

    return !has_few_values(problem) || count_variables(problem, platform) >= from;
}

/*
 * Generates trees where the program is large. Returns false if the program is to be solved as it
 * is: it is small, or trees cannot be priced (BY_ELIMIT) and it is not too large.
 */
static bool try_columns(const struct by_steady_problem *problem, const struct by_platform *platform,
                        struct by_series *series, struct by_lanes *lanes, struct by_problem *trouble,
                        int *error)
{
    if (!by_program_generates(problem, platform))
        return false;
    *error = by_program_columns(problem, platform, series, lanes, trouble);
    return *error != BY_ELIMIT || !has_few_values(problem) ||
           count_variables(problem, platform) > BY_STEADY_VARIABLES_MAX;
}

int by_program_reduce(const struct by_steady_problem *problem, const struct by_platform *platform,
                      struct by_series *series, struct by_lanes *lanes, struct by_problem *trouble)
{
    struct by_reduction reduction;
    int error;

    if (try_columns(problem, platform, series, lanes, trouble, &error))
        return error;
    by_reduction_make(&reduction, problem, platform);
    error = solve(&reduction, NULL, series, lanes, trouble);
    if (!error && (problem->balance == BY_BALANCE_ALWAYS || problem->balance == BY_BALANCE_CHEAP))
        error = balance(&reduction, series, lanes, trouble);
    if (!error)
        by_partials_list(problem, reduction.values, reduction.message_count, series);
    by_reduction_free(&reduction);
    return error;
}
