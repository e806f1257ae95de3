/* Reductions by column generation. See tree_program.h. */
#include "control/study/steady/tree_program.h"

#include "control/base/clock.h"
#include "control/study/series/rational.h"
#include "control/study/steady/tree_pricing.h"
#include "offload/base/errors.h"

/* A tree improves if its price is below 1 by more than this: less may be rounding. */
#define TOLERANCE 1e-8
/* The part of the best prices so far in the prices for which trees are sought. */
#define SMOOTHING 0.9
/* Trees before the first solution of the program (count), and the part by which each raises the
 * price of its busiest resource. */
#define FIRST_TREES 100u
#define RISE        0.3

struct tree_program {
    const struct by_steady_problem *problem;
    const struct by_platform *platform;
    struct by_resources resources;
    struct by_tree_pricer *pricer;
    struct by_partials partials;
    struct by_lp *lp;
    struct by_lanes trees; /* one for each column */
    mpq_t *load;           /* by row: time that the tree found last takes */
    double *prices;        /* by row: for which a tree is sought */
    double *duals;         /* of the last estimate */
    double *kept;          /* those that prove the least bound so far, `least` */
    double value, least;
    /* While the trees are balanced: the row of the throughput, and the column of the time that all
     * processors spare. */
    bool balances;
    uint32_t throughput, spare;
};

static void program_make(struct tree_program *program, const struct by_steady_problem *problem,
                         const struct by_platform *platform)
{
    *program = (struct tree_program){.problem = problem, .platform = platform, .lp = by_lp_new()};
    by_resources_make(&program->resources, platform, program->lp);
    by_partials_make(&program->partials, problem);
    program->load = by_rationals_new(program->resources.count);
    program->prices = by_alloc(program->resources.count, sizeof(*program->prices));
    program->duals = by_alloc((size_t)program->resources.count + 1, sizeof(*program->duals));
    program->kept = by_alloc(program->resources.count, sizeof(*program->kept));
}

static void program_free(struct tree_program *program)
{
    by_rationals_free(program->load, program->resources.count);
    by_resources_free(&program->resources);
    by_tree_pricer_free(program->pricer);
    by_partials_free(&program->partials);
    by_lp_free(program->lp);
    by_lanes_free(&program->trees);
    free(program->prices);
    free(program->duals);
    free(program->kept);
}

/* ---- columns ---- */

/* Adds up the time that a tree takes of each resource. */
static void set_load(struct tree_program *program, const struct by_steady_lane *tree)
{
    const struct by_resources *resources = &program->resources;
    mpq_t size, time;

    mpq_inits(size, time, NULL);
    for (uint32_t i = 0; i < resources->count; i++)
        mpq_set_ui(program->load[i], 0, 1);
    for (uint32_t t = 0; t < tree->task_count; t++) {
        const struct by_series_task *task = &tree->tasks[t];
        uint64_t values = program->partials.values[task->message];
        uint32_t rows[3] = {BY_SERIES_NONE, BY_SERIES_NONE, BY_SERIES_NONE};

        by_steady_message_size(program->problem, (uint32_t)__builtin_ctzll(values),
                               63 - (uint32_t)__builtin_clzll(values), size);
        if (task->to == BY_SERIES_NONE) {
            by_platform_task_time(program->platform, task->node, size, time);
            rows[0] = resources->computes[task->node];
        } else {
            uint32_t link = by_links_find(program->platform->links, task->node, task->to);

            mpq_mul(time, program->platform->cost[link], size);
            rows[0] = resources->sends[task->node];
            rows[1] = resources->receives[task->to];
            rows[2] = resources->link[link];
        }
        for (unsigned i = 0; i < 3; i++)
            if (rows[i] != BY_SERIES_NONE)
                mpq_add(program->load[rows[i]], program->load[rows[i]], time);
    }
    mpq_clears(size, time, NULL);
}

/* Takes the tree that the pricer found as the last one of `trees`, and sets the load. */
static void take_tree(struct tree_program *program)
{
    struct by_steady_lane *tree = by_lanes_add(&program->trees);

    by_tree_pricer_build(program->pricer, &program->partials, tree);
    set_load(program, tree);
}

static void drop_tree(struct tree_program *program)
{
    struct by_steady_lane *tree = &program->trees.list[--program->trees.count];

    mpq_clear(tree->weight);
    free(tree->tasks);
}

/* Adds the column of the load. */
static void add_column(struct tree_program *program)
{
    uint32_t column = by_lp_column(program->lp, !program->balances, 1);

    if (program->balances)
        by_lp_add(program->lp, program->throughput, column, 1, 1);
    for (uint32_t i = 0; i < program->resources.count; i++)
        if (mpq_sgn(program->load[i]) > 0)
            by_lp_add_q(program->lp, program->resources.list[i].row, column, program->load[i]);
}

/* Divides the prices of the estimate by what a tree may cost. Returns false if no tree is worth
 * anything. */
static bool scale_duals(struct tree_program *program)
{
    double one = program->balances ? -program->duals[program->throughput] : 1;

    if (one < TOLERANCE)
        return false;
    for (uint32_t i = 0; i < program->resources.count; i++)
        program->duals[i] /= one;
    return true;
}

static double price_load(const struct tree_program *program, const double *prices)
{
    double price = 0;

    for (uint32_t i = 0; i < program->resources.count; i++)
        if (mpq_sgn(program->load[i]) > 0)
            price += prices[i] * mpq_get_d(program->load[i]);
    return price;
}

/* Whether the load costs less at the prices of the exact solution than a tree may: 1, or what
 * throughput is worth. */
static bool is_missing(const struct tree_program *program)
{
    const mpq_t *duals = by_lp_duals(program->lp);
    mpq_t price, product;
    bool missing;

    mpq_inits(price, product, NULL);
    for (uint32_t i = 0; i < program->resources.count; i++) {
        mpq_mul(product, duals[i], program->load[i]);
        mpq_add(price, price, product);
    }
    if (program->balances)
        mpq_neg(product, duals[program->throughput]);
    else
        mpq_set_ui(product, 1, 1);
    missing = mpq_cmp(price, product) < 0;
    mpq_clears(price, product, NULL);
    return missing;
}

/* ---- generation ---- */

/* Sets the prices between those of the last estimate (part 0) and the kept ones (part 1). */
static void mix_prices(struct tree_program *program, double part)
{
    for (uint32_t i = 0; i < program->resources.count; i++) {
        double dual = part * program->kept[i] + (1 - part) * program->duals[i];

        program->prices[i] = dual > 0 ? dual : 0;
    }
}

/* Keeps the prices if the bound that they prove, since no tree costs less than the one just found,
 * is the least so far. */
static void keep_prices(struct tree_program *program)
{
    double bound = 0, one = price_load(program, program->prices);

    if (one <= 0)
        return;
    for (uint32_t i = 0; i < program->resources.count; i++)
        bound += program->prices[i] / one;
    if (program->least > 0 && bound >= program->least)
        return;
    program->least = bound;
    for (uint32_t i = 0; i < program->resources.count; i++)
        program->kept[i] = program->prices[i] / one;
}

/*
 * Finds the first trees. The price of a resource grows with each tree that takes time of it
 * (Plotkin, Shmoys and Tardos 1995), so the trees use all resources, and the best of these prices
 * prove nearly the optimum.
 */
static void start(struct tree_program *program)
{
    uint32_t rows = program->resources.count;

    for (uint32_t i = 0; i < rows; i++)
        program->prices[i] = 1;
    for (uint32_t k = 0; k < FIRST_TREES; k++) {
        double longest = 0, sum = 0;

        for (uint32_t i = 0; i < rows; i++)
            sum += program->prices[i];
        for (uint32_t i = 0; i < rows; i++)
            program->prices[i] /= sum;
        by_tree_pricer_guess(program->pricer, program->prices);
        take_tree(program);
        keep_prices(program);
        add_column(program);
        for (uint32_t i = 0; i < rows; i++)
            if (mpq_get_d(program->load[i]) > longest)
                longest = mpq_get_d(program->load[i]);
        for (uint32_t i = 0; i < rows; i++)
            program->prices[i] *= 1 + RISE * mpq_get_d(program->load[i]) / longest;
    }
}

/*
 * Adds trees, priced in floating point, until none improves the program. Prices are taken between
 * those of the estimate, which jump, and the best so far (Wentges 1997). Returns 0 also when
 * floating point fails: the exact program follows.
 */
static int generate(struct tree_program *program)
{
    double deadline = program->problem->deadline;
    bool improves = true;

    while (improves) {
        if (by_plan_late(deadline))
            return BY_ETIMEDOUT;
        if (!by_lp_estimate(program->lp, deadline, &program->value, NULL, program->duals) ||
            !scale_duals(program) || (program->least > 0 && program->least < program->value * (1 + 1e-12)))
            return 0;
        for (double part = program->least > 0 ? SMOOTHING : 0;; part = 0) {
            mix_prices(program, part);
            by_tree_pricer_guess(program->pricer, program->prices);
            take_tree(program);
            if (!program->balances)
                keep_prices(program);
            improves = price_load(program, program->duals) < 1 - TOLERANCE;
            if (improves)
                break;
            drop_tree(program);
            if (part == 0)
                break;
        }
        if (improves)
            add_column(program);
    }
    return 0;
}

/* Solves the program exactly, and adds trees that only exact prices find, until none is missing. */
static int solve(struct tree_program *program, struct by_problem *trouble)
{
    struct by_lp_options options = {.deadline = program->problem->deadline};

    for (;;) {
        int error = generate(program);

        if (!error)
            error = by_lp_solve(program->lp, &options, trouble);
        if (error)
            return error;
        by_tree_pricer_find(program->pricer, by_lp_duals(program->lp));
        take_tree(program);
        if (!is_missing(program)) {
            drop_tree(program);
            return 0;
        }
        add_column(program);
    }
}

/* Among all solutions of the same throughput, maximises the idle time of the busiest processor. */
static int balance(struct tree_program *program, struct by_problem *trouble)
{
    mpq_t optimum;

    mpq_init(optimum);
    by_lp_value(program->lp, optimum);
    program->throughput = by_lp_row_q(program->lp, BY_LP_AT_LEAST, optimum);
    mpq_clear(optimum);
    for (uint32_t t = 0; t < program->trees.count; t++) {
        by_lp_cost(program->lp, t, 0, 1);
        by_lp_add(program->lp, program->throughput, t, 1, 1);
    }
    program->spare = by_lp_column(program->lp, 1, 1);
    for (uint32_t i = 0; i < program->resources.count; i++)
        if (program->resources.list[i].kind == BY_SERIES_COMPUTES)
            by_lp_add(program->lp, program->resources.list[i].row, program->spare, 1, 1);
    program->balances = true;
    program->least = 0;
    return solve(program, trouble);
}

/* ---- the result ---- */

/* Moves the trees that run to the lanes, and lists the messages: those that they use, or all
 * intervals. */
static void take_lanes(struct tree_program *program, struct by_series *series, struct by_lanes *lanes)
{
    struct by_partials partials;

    by_partials_make(&partials, program->problem);
    for (uint32_t t = 0; t < program->trees.count; t++) {
        struct by_steady_lane *tree = &program->trees.list[t], *lane;
        uint32_t column = t + (program->balances && t >= program->spare);

        if (mpq_sgn(by_lp_primals(program->lp)[column]) == 0)
            continue;
        lane = by_lanes_add(lanes);
        mpq_set(lane->weight, by_lp_primals(program->lp)[column]);
        for (uint32_t i = 0; i < tree->task_count; i++) {
            struct by_series_task task = tree->tasks[i];

            task.message = by_partials_add(&partials, program->partials.values[task.message]);
            if (task.to == BY_SERIES_NONE) {
                task.left = by_partials_add(&partials, program->partials.values[task.left]);
                task.right = by_partials_add(&partials, program->partials.values[task.right]);
            }
            by_lane_push(lane, task);
        }
    }
    by_partials_list(program->problem, partials.values, partials.count, series);
    by_partials_free(&partials);
}

static int run(struct tree_program *program, struct by_problem *trouble)
{
    const struct by_steady_problem *problem = program->problem;

    program->pricer = by_tree_pricer_new(problem, program->platform, &program->resources, trouble);
    if (!program->pricer)
        return BY_ELIMIT;
    if (!by_tree_pricer_guess(program->pricer, program->prices))
        return by_program_reduce_refuse(problem, trouble);
    start(program);
    return solve(program, trouble);
}

int by_program_columns(const struct by_steady_problem *problem, const struct by_platform *platform,
                       struct by_series *series, struct by_lanes *lanes, struct by_problem *trouble)
{
    struct tree_program program;
    int error;

    program_make(&program, problem, platform);
    error = run(&program, trouble);
    if (!error) {
        by_lp_value(program.lp, series->throughput);
        by_program_prices(&program.resources, by_lp_duals(program.lp), series);
        if (problem->balance == BY_BALANCE_ALWAYS)
            error = balance(&program, trouble);
    }
    if (!error)
        take_lanes(&program, series, lanes);
    program_free(&program);
    return error;
}
