/*
 * Columns for large fabrics. See columns_task.h. Trees are grown at the prices of the program in
 * little more time than a search (grow.h), from several roots at once. They are not the cheapest
 * ones, so that they prove no bound.
 */
#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/planner/network/grow.h"
#include "control/planner/network/packing.h"
#include "control/planner/pack/tree.h"
#include "control/study/bound/columns_task.h"

/* Roots from which columns of each kind are grown for one estimate of prices (count). */
#define ROOTS_TRIED 8u
/* The work of an estimate is rows^2 * columns; that of all of them takes some 40 s. Fewer estimates
 * than ESTIMATES_LEAST hardly find better trees than other methods. */
#define WORK_MAX        UINT64_C(80000000000)
#define ESTIMATES_LEAST 40u
/* A column improves if its price is below 1 by more than this: the last ones gain little. */
#define TOLERANCE 1e-6
/* The part of the best prices so far in the prices at which columns are grown. */
#define SMOOTHING 0.7
/* The price of each hop to the root from where a path begins: it lowers trees without a noticeable
 * effect on the rate. */
#define DEPTH_PRICE (BY_COLUMNS_ONE >> 12)

struct by_grown {
    struct by_grower *grower;
    bool pairs, symmetric;     /* pairs may be better; trees in both directions are possible */
    uint32_t resources, rows;  /* rows are the resources with a limit */
    uint32_t *row_of;          /* by resource; UINT32_MAX: no row */
    uint32_t (*ends)[2];       /* by row */
    int64_t *capacity;         /* by row */
    int64_t *prices;           /* by resource */
    int32_t *counts;           /* by resource */
    uint32_t root_count, turn; /* the root that is next */
    uint32_t *roots;           /* switches first */
};

static void add_row(struct by_grown *grown, uint32_t resource, uint32_t from, uint32_t to)
{
    uint32_t row = grown->rows++;

    grown->row_of[resource] = row;
    grown->ends[row][0] = from;
    grown->ends[row][1] = to;
    grown->capacity[row] = grown->grower->capacity[resource];
}

struct by_grown *by_grown_new(const struct by_plan_gap *gap)
{
    struct by_grown *grown = by_alloc(1, sizeof(*grown));
    struct by_grower *grower = by_grower_new(gap->both, gap->up, gap->down);
    uint32_t n = gap->both->node_count;

    grower->depth_price = DEPTH_PRICE;
    *grown = (struct by_grown){.grower = grower,
                               .pairs = gap->pairs,
                               .symmetric = by_graph_is_symmetric(gap->both),
                               .resources = grower->arc_count + n};
    grown->row_of = by_alloc(grown->resources, sizeof(*grown->row_of));
    grown->ends = by_alloc(grown->resources, sizeof(*grown->ends));
    grown->capacity = by_alloc(grown->resources, sizeof(*grown->capacity));
    grown->prices = by_alloc(grown->resources, sizeof(*grown->prices));
    grown->counts = by_alloc(grown->resources, sizeof(*grown->counts));
    grown->roots = by_alloc(n, sizeof(*grown->roots));
    for (uint32_t i = 0; i < grown->resources; i++)
        grown->row_of[i] = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t a = grower->first[i]; a < grower->first[i + 1]; a++)
            if (grower->links[a].there != BY_GROW_NONE)
                add_row(grown, grower->links[a].there, i, grower->links[a].to);
    for (uint32_t i = 0; i < n; i++)
        if (grower->capacity[grower->arc_count + i] != INT64_MAX)
            add_row(grown, grower->arc_count + i, i, i);
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < n; i++)
            if (pass ? gap->both->compute[i] : gap->both->branch[i] && gap->both->budget[i] < 0)
                grown->roots[grown->root_count++] = i;
    return grown;
}

void by_grown_free(struct by_grown *grown)
{
    if (!grown)
        return;
    by_grower_free(grown->grower);
    free(grown->row_of);
    free(grown->ends);
    free(grown->capacity);
    free(grown->prices);
    free(grown->counts);
    free(grown->roots);
    free(grown);
}

uint32_t by_grown_row_count(const struct by_grown *grown)
{
    return grown->rows;
}

int64_t by_grown_row_capacity(const struct by_grown *grown, uint32_t row)
{
    return grown->capacity[row];
}

void by_grown_row_ends(const struct by_grown *grown, uint32_t row, uint32_t ends[2])
{
    ends[0] = grown->ends[row][0];
    ends[1] = grown->ends[row][1];
}

bool by_grown_fits(const struct by_plan_gap *gap)
{
    uint64_t rows = 0;

    for (uint32_t i = 0; i < gap->both->node_count; i++)
        rows += gap->up->budget[i] >= 0;
    for (uint32_t half = 0; half < 2 * gap->both->net->pair_count; half++)
        rows += gap->both->net->capacity[half] > 0;
    return rows < 100000 && rows * rows * ROOTS_TRIED * ESTIMATES_LEAST * ESTIMATES_LEAST <= WORK_MAX;
}

/*
 * Takes the prices of the program for the next column. A switch with limited additions adds in some
 * columns and only passes data on in others, which the grower does not choose by itself: one column
 * in four lets all add, one none that has a price, and the others each second of these.
 */
static void take_prices(const struct by_columns *task)
{
    struct by_grown *grown = task->grown;
    uint32_t kind = grown->turn % 4;

    for (uint32_t i = 0; i < grown->resources; i++) {
        int64_t price = grown->row_of[i] == UINT32_MAX ? 0 : task->prices[grown->row_of[i]];
        bool out = kind == 1 || (kind > 1 && (grown->turn * 2654435761u + i * 40503u) >> 7 & 1u);

        grown->prices[i] = i >= grown->grower->arc_count && price > 0 && out ? -1 : price;
    }
}

/* Grows a tree in both directions, or a pair, from a root; appends it to the list of trees and
 * fills task->counts. Returns false, and changes nothing, if it reaches not all compute nodes. */
static bool grow(struct by_columns *task, uint32_t root, bool pair)
{
    const enum by_tree_use uses[] = {pair ? BY_TREE_UP : BY_TREE_BOTH, BY_TREE_DOWN};
    const struct by_plan_gap *gap = task->gap;
    struct by_grown *grown = task->grown;
    uint32_t before = task->trees.count;

    memset(grown->counts, 0, grown->resources * sizeof(*grown->counts));
    for (int i = 0; i < 1 + pair; i++) {
        const struct by_graph *graph = uses[i] == BY_TREE_UP     ? gap->up
                                       : uses[i] == BY_TREE_DOWN ? gap->down
                                                                 : gap->both;

        if (!by_grower_run(grown->grower, uses[i], root, grown->prices)) {
            task->trees.count = before;
            return false;
        }
        by_grower_count(grown->grower, uses[i], grown->counts);
        by_tree_list_add(&task->trees, graph, root, uses[i], (struct by_fraction){1, 1}, grown->grower->paths,
                         grown->grower->path_count);
    }
    for (uint32_t i = 0; i < grown->resources; i++)
        if (grown->row_of[i] != UINT32_MAX)
            task->counts[grown->row_of[i]] = grown->counts[i];
    return true;
}

/* Grows columns of one kind from the next roots, and adds those that improve the value. Returns
 * their number; *cheapest is the least price of a column. */
static uint32_t grow_some(struct by_columns *task, bool pair, __int128 *cheapest)
{
    struct by_grown *grown = task->grown;
    uint32_t added = 0;

    for (uint32_t i = 0; i < ROOTS_TRIED && i < grown->root_count; i++) {
        uint32_t before = task->trees.count, root = grown->roots[grown->turn % grown->root_count];
        __int128 price = 0;
        double dual = 0;

        take_prices(task);
        grown->turn++;
        if (!grow(task, root, pair))
            continue;
        for (uint32_t r = 0; r < task->rows; r++) {
            price += (__int128)task->prices[r] * task->counts[r];
            dual += task->duals[r] * task->counts[r];
        }
        if (*cheapest < 0 || price < *cheapest)
            *cheapest = price;
        if (dual < 1 - TOLERANCE) {
            by_columns_add(task);
            added++;
        } else {
            task->trees.count = before;
        }
    }
    return added;
}

/* Grows columns of all kinds at the prices of the program. */
static uint32_t grow_all(struct by_columns *task)
{
    __int128 cheapest = -1;
    uint32_t added = 0;

    if (task->grown->pairs)
        added += grow_some(task, true, &cheapest);
    if (task->grown->symmetric)
        added += grow_some(task, false, &cheapest);
    by_columns_keep_prices(task, cheapest);
    return added;
}

void by_columns_grow(struct by_columns *task, double bound)
{
    uint64_t work = 0;
    uint32_t idle = 0;

    by_packing_price(task->limits, task->limits, task->rows, task->prices);
    grow_all(task);
    task->least = 0; /* these prices are not those of the program */
    while (task->column_count > 0 && idle < task->grown->root_count && work <= WORK_MAX &&
           !by_plan_late(task->gap->deadline)) {
        uint32_t added = 0;

        if (!by_lp_estimate(task->lp, task->gap->deadline, &task->value, NULL, task->duals) ||
            task->value >= bound * (1 - 1e-9))
            return;
        if (task->least > 0) {
            by_columns_mix_prices(task, SMOOTHING);
            added = grow_all(task);
        }
        if (added == 0) {
            by_columns_mix_prices(task, 0);
            added = grow_all(task);
        }
        idle = added > 0 ? 0 : idle + ROOTS_TRIED;
        work += (uint64_t)task->rows * task->rows * task->column_count;
    }
}
