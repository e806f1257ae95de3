/* Packs pairs of trees into directed links: a linear program whose columns are priced one by one.
 * See pairs.h, simplex.h, tree_pair.h. */
#include "control/planner/network/pairs.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/planner/network/simplex.h"
#include "control/planner/network/tree_pair.h"

/* Rows and sites up to which the program is tried (count): one pricing requires an arborescence for
 * each root and each optional switch. */
#define PAIRS_ROWS_MAX  160u
#define PAIRS_SITES_MAX 32u
/* Columns after which the program stops with the result so far (count). */
#define PAIRS_COLUMNS_MAX 400u

struct pairs_half {
    uint32_t path_count;
    struct by_path *paths;
};

struct pairs_column {
    uint32_t root;
    struct pairs_half up, down;
};

struct pairs_program {
    struct by_tree_pair *tree_pair;
    struct by_simplex *simplex;
    uint32_t column_count;
    struct pairs_column *columns;
};

static void half_free(struct pairs_half *half)
{
    for (uint32_t i = 0; i < half->path_count; i++)
        free(half->paths[i].nodes);
    free(half->paths);
}

static void program_free(struct pairs_program *program)
{
    for (uint32_t i = 0; i < program->column_count; i++) {
        half_free(&program->columns[i].up);
        half_free(&program->columns[i].down);
    }
    free(program->columns);
    by_simplex_free(program->simplex);
    by_tree_pair_free(program->tree_pair);
}

/* Derives the bound that the prices prove, given that no pair costs less than `floor`. */
static void keep_bound(const struct pairs_program *program, const int64_t *prices, const int64_t *limits,
                       __int128 floor, struct by_packed *packed)
{
    uint32_t count = by_tree_pair_row_count(program->tree_pair);
    struct by_price *rows = by_alloc(count, sizeof(*rows));

    for (uint32_t i = 0; i < count; i++) {
        uint32_t ends[2];

        by_tree_pair_row_ends(program->tree_pair, i, ends);
        rows[i] = (struct by_price){ends[0], ends[1], prices[i]};
    }
    packed->proof = by_certificate_of_prices(rows, limits, count, false, floor, &packed->bound);
    if (!packed->proof)
        packed->bound = (struct by_fraction){0, 1};
    free(rows);
}

/* Adds pairs until none improves, the bound is reached, or the limit of columns is reached. A quick
 * search finds the pairs first; a full search follows when the quick one finds no improvement. */
static void solve(struct pairs_program *program, int64_t bound, double deadline, struct by_packed *packed)
{
    uint32_t rows = by_tree_pair_row_count(program->tree_pair);
    int64_t *limits = by_alloc(rows, sizeof(*limits)), *prices = by_alloc(rows, sizeof(*prices)), one;
    int32_t *counts = by_alloc(rows, sizeof(*counts));
    bool prove = false;

    for (uint32_t i = 0; i < rows; i++)
        limits[i] = by_tree_pair_row_capacity(program->tree_pair, i);
    program->simplex = by_simplex_new(rows, limits);
    program->columns = by_alloc(PAIRS_COLUMNS_MAX, sizeof(*program->columns));
    while (program->column_count < PAIRS_COLUMNS_MAX && !by_plan_late(deadline) &&
           !by_simplex_reaches(program->simplex, bound)) {
        struct pairs_column *column = &program->columns[program->column_count];
        __int128 floor;

        by_simplex_prices(program->simplex, prices, &one);
        by_tree_pair_price(program->tree_pair, prices, prove, counts, &floor);
        if (by_simplex_offer(program->simplex, counts, program->column_count)) {
            column->up.paths =
                by_tree_pair_paths(program->tree_pair, true, &column->root, &column->up.path_count);
            column->down.paths =
                by_tree_pair_paths(program->tree_pair, false, &column->root, &column->down.path_count);
            program->column_count++;
            prove = false;
        } else if (!prove && by_tree_pair_can_prove(program->tree_pair)) {
            prove = true;
        } else {
            if (floor > 0)
                keep_bound(program, prices, limits, floor, packed);
            break;
        }
    }
    free(limits);
    free(prices);
    free(counts);
}

static int append_pairs(const struct pairs_program *program, const struct by_graph *up,
                        const struct by_graph *down, const struct by_simplex_part *parts, uint32_t count,
                        struct by_tree_list *list)
{
    int error = 0;

    for (uint32_t i = 0; i < count && !error; i++) {
        const struct pairs_column *column = &program->columns[parts[i].tag];
        struct by_fraction weight;

        error = by_fraction_multiply(parts[i].amount, down->unit, &weight);
        if (error)
            break;
        by_tree_list_add(list, up, column->root, BY_TREE_UP, weight, column->up.paths, column->up.path_count);
        by_tree_list_add(list, down, column->root, BY_TREE_DOWN, weight, column->down.paths,
                         column->down.path_count);
    }
    return error;
}

int by_pairs_pack(const struct by_graph *up, const struct by_graph *down, int64_t bound,
                  struct by_fraction least, struct by_tree_list *list, double deadline,
                  struct by_packed *packed)
{
    struct pairs_program program = {0};
    struct by_simplex_part *parts;
    struct by_fraction value;
    uint32_t count;
    int error = 0;

    *packed = (struct by_packed){.rate = {0, 1}, .bound = {0, 1}};
    if (down->net->pair_count > PAIRS_ROWS_MAX)
        return 0;
    program.tree_pair = by_tree_pair_new(up, down);
    if (by_tree_pair_row_count(program.tree_pair) > PAIRS_ROWS_MAX ||
        by_tree_pair_site_count(program.tree_pair) > PAIRS_SITES_MAX) {
        program_free(&program);
        return 0;
    }
    solve(&program, bound, deadline, packed);
    parts = by_alloc(by_tree_pair_row_count(program.tree_pair), sizeof(*parts));
    count = by_simplex_solution(program.simplex, parts, &value);
    if (by_fraction_compare(value, least) > 0) {
        error = append_pairs(&program, up, down, parts, count, list);
        packed->rate = value;
    }
    free(parts);
    program_free(&program);
    return error;
}
