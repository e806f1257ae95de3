/* Packs trees into undirected links: a fractional packing of (Steiner) trees as a linear program
 * whose columns are priced one by one (simplex.h, steiner.h). See packing.h. */
#include "control/planner/network/packing.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/planner/network/simplex.h"
#include "control/planner/network/steiner.h"
#include "offload/base/assert.h"

/* Links up to which the linear program is tried (count): its matrix has that many rows and columns.
 */
#define PROGRAM_LINKS_MAX 512u
/* Work after which the program stops with the result so far (steps x links^2): about
 * ten seconds. */
#define PROGRAM_WORK_MAX 100000000u

struct packing_column {
    uint32_t root;
    uint32_t path_count;
    struct by_path *paths;
    int64_t greedy_amount; /* amount in the first, greedy filling */
};

/* The linear program and its results. */
struct packing_program {
    const struct by_graph *graph;
    struct by_steiner *steiner;
    struct by_simplex *simplex;
    struct packing_column *columns;
    uint32_t column_count;
    uint32_t column_room;
    struct by_fraction value; /* in units of capacity */
    struct by_packed *packed;
    bool greedy; /* the first filling reached the bound: the columns' greedy amounts are the solution */
};

/* Arrays by row. */
struct packing_work {
    uint32_t rows;
    int64_t *limits;
    int64_t *left;
    int64_t *prices;
    int32_t *counts;
};

static void program_free(struct packing_program *program)
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

static void add_column(struct packing_program *program, int64_t greedy_amount)
{
    struct packing_column *column;

    BY_GROW(program->columns, program->column_count, program->column_room);
    column = &program->columns[program->column_count++];
    column->paths = by_steiner_paths(program->steiner, &column->root, &column->path_count);
    column->greedy_amount = greedy_amount;
}

void by_packing_price(const int64_t *limits, const int64_t *left, uint32_t rows, int64_t *prices)
{
    int64_t largest = 1;

    for (uint32_t i = 0; i < rows; i++)
        largest = limits[i] > largest ? limits[i] : largest;
    for (uint32_t i = 0; i < rows; i++) {
        __int128 price = left[i] ? ((__int128)largest << 10) / left[i] : BY_PRICE_MAX;

        prices[i] = price < BY_PRICE_MAX >> 10 ? (int64_t)price : BY_PRICE_MAX >> (left[i] ? 10 : 0);
    }
}

/*
 * Fills the fabric with cheap trees, one after the other, each with the largest amount that the
 * remaining capacity allows. On regular fabrics this reaches the bound with the fewest trees;
 * elsewhere its trees are the first columns of the program.
 */
static void fill_greedily(struct packing_program *program, int64_t bound, struct packing_work *work)
{
    int64_t filled = 0;

    memcpy(work->left, work->limits, work->rows * sizeof(*work->left));
    while (filled < bound) {
        int64_t amount = bound - filled;
        __int128 floor;

        by_packing_price(work->limits, work->left, work->rows, work->prices);
        by_steiner_price(program->steiner, work->prices, false, work->counts, &floor);
        for (uint32_t i = 0; i < work->rows; i++)
            if (work->counts[i] && work->left[i] / work->counts[i] < amount)
                amount = work->left[i] / work->counts[i];
        if (amount == 0)
            break;
        for (uint32_t i = 0; i < work->rows; i++)
            work->left[i] -= amount * work->counts[i];
        filled += amount;
        add_column(program, amount);
        by_simplex_offer(program->simplex, work->counts, program->column_count - 1);
    }
    program->greedy = filled == bound;
    program->value = (struct by_fraction){filled, 1};
}

/* Derives the bound that the prices prove, given that no tree costs less than `floor`. */
static void keep_bound(struct packing_program *program, const struct packing_work *work, __int128 floor)
{
    struct by_price *rows = by_alloc(work->rows, sizeof(*rows));
    struct by_packed *packed = program->packed;
    bool links_only = true;

    for (uint32_t i = 0; i < work->rows; i++) {
        uint32_t ends[2];

        by_steiner_row_ends(program->steiner, i, ends);
        rows[i] = (struct by_price){ends[0], ends[1], work->prices[i]};
        /* Budgets with a price are excluded: a pair of two different trees may need fewer
         * additions. */
        links_only = links_only && (ends[0] != ends[1] || work->prices[i] == 0);
    }
    by_certificate_free(packed->proof);
    packed->proof =
        links_only ? by_certificate_of_prices(rows, work->limits, work->rows, true, floor, &packed->bound)
                   : NULL;
    if (!packed->proof)
        packed->bound = (struct by_fraction){0, 1};
    free(rows);
}

/* Adds trees until none improves, the bound is reached, or the work is used up. A quick search
 * finds the trees first; a full search follows when the quick one finds no improvement. */
static void improve(struct packing_program *program, int64_t bound, double deadline,
                    struct packing_work *work)
{
    bool prove = false;

    while (!by_simplex_reaches(program->simplex, bound) && !by_plan_late(deadline) &&
           (uint64_t)by_simplex_steps(program->simplex) * work->rows * work->rows < PROGRAM_WORK_MAX) {
        __int128 floor;
        int64_t one;

        by_simplex_prices(program->simplex, work->prices, &one);
        by_steiner_price(program->steiner, work->prices, prove, work->counts, &floor);
        if (by_simplex_offer(program->simplex, work->counts, program->column_count)) {
            add_column(program, 0);
            prove = false;
        } else if (!prove && by_steiner_can_prove(program->steiner)) {
            prove = true;
        } else {
            if (floor > 0)
                keep_bound(program, work, floor);
            break;
        }
    }
}

static void program_solve(struct packing_program *program, int64_t bound, double deadline)
{
    uint32_t links = by_steiner_row_count(program->steiner);
    struct packing_work work = {.rows = links};

    work.limits = by_alloc(links, sizeof(*work.limits));
    work.left = by_alloc(links, sizeof(*work.left));
    work.prices = by_alloc(links, sizeof(*work.prices));
    work.counts = by_alloc(links, sizeof(*work.counts));
    for (uint32_t i = 0; i < links; i++)
        work.limits[i] = by_steiner_row_capacity(program->steiner, i);
    program->simplex = by_simplex_new(links, work.limits);
    fill_greedily(program, bound, &work);
    if (!program->greedy)
        improve(program, bound, deadline, &work);
    free(work.limits);
    free(work.left);
    free(work.prices);
    free(work.counts);
}

/* Returns the solution as parts (room for one per link or column) with their sum. */
static uint32_t program_parts(const struct packing_program *program, struct by_simplex_part *parts,
                              struct by_fraction *value)
{
    if (!program->greedy)
        return by_simplex_solution(program->simplex, parts, value);
    *value = program->value;
    for (uint32_t i = 0; i < program->column_count; i++)
        parts[i] = (struct by_simplex_part){i, {program->columns[i].greedy_amount, 1}};
    return program->column_count;
}

/* Appends the trees of the solution when it reaches `least`. */
static int program_trees(const struct packing_program *program, struct by_fraction least,
                         struct by_tree_list *list, struct by_fraction *rate)
{
    uint32_t links = by_steiner_row_count(program->steiner);
    struct by_simplex_part *parts =
        by_alloc(links > program->column_count ? links : program->column_count, sizeof(*parts));
    uint32_t count = program_parts(program, parts, rate);
    int error = 0;

    BY_ASSERT(count == 0 || program->columns);
    if (by_fraction_compare(*rate, least) < 0) {
        *rate = (struct by_fraction){0, 1};
        count = 0;
    }
    for (uint32_t i = 0; i < count && !error; i++) {
        const struct packing_column *column = &program->columns[parts[i].tag];
        struct by_fraction weight;

        error = by_fraction_multiply(parts[i].amount, program->graph->unit, &weight);
        if (!error)
            by_tree_list_add(list, program->graph, column->root, BY_TREE_BOTH, weight, column->paths,
                             column->path_count);
    }
    by_tree_list_merge(list);
    free(parts);
    return error;
}

int by_packing_symmetric(const struct by_graph *graph, int64_t bound, struct by_fraction least,
                         struct by_tree_list *list, double deadline, struct by_packed *packed)
{
    struct packing_program program = {.graph = graph, .value = {0, 1}, .packed = packed};
    int error = 0;

    *packed = (struct by_packed){.rate = {0, 1}, .bound = {0, 1}};
    if (graph->net->pair_count > PROGRAM_LINKS_MAX)
        return 0;
    program.steiner = by_steiner_new(graph);
    if (by_steiner_row_count(program.steiner) <= PROGRAM_LINKS_MAX) {
        program_solve(&program, bound, deadline);
        error = program_trees(&program, least, list, &packed->rate);
    }
    program_free(&program);
    return error;
}
