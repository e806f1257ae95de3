/* What all ways to find columns share. See columns_task.h. */
#include "control/study/bound/columns_task.h"

#include "control/base/alloc.h"
#include "control/planner/graph.h"

void by_columns_add(struct by_columns *task)
{
    struct by_column *column;
    uint32_t number = by_lp_column(task->lp, 1, 1), last = task->trees.count - 1;

    BY_GROW(task->columns, task->column_count, task->column_room);
    column = &task->columns[task->column_count++];
    *column = (struct by_column){.rows = by_alloc(task->rows, sizeof(*column->rows)), .tree = last};
    column->tree -= task->trees.trees[last].use != BY_TREE_BOTH;
    for (uint32_t i = column->tree; i <= last; i++) {
        uint32_t height = by_tree_list_height(&task->trees, i, task->gap->both->node_count);

        column->height = height > column->height ? height : column->height;
    }
    for (uint32_t i = 0; i < task->rows; i++)
        if (task->counts[i] > 0) {
            by_lp_add(task->lp, i, number, task->counts[i], 1);
            column->rows[column->row_count++] = (struct by_column_use){i, task->counts[i]};
        }
    column->rows = by_realloc(column->rows, column->row_count, sizeof(*column->rows));
    if (column->height > task->height_max)
        by_lp_cost(task->lp, number, -1, 1);
}

void by_columns_mix_prices(struct by_columns *task, double part)
{
    for (uint32_t i = 0; i < task->rows; i++) {
        double dual = part * task->kept[i] + (1 - part) * task->duals[i];

        task->prices[i] = dual <= 0   ? 0
                          : dual >= 1 ? BY_COLUMNS_ONE
                                      : (int64_t)(dual * (double)BY_COLUMNS_ONE + 0.5);
    }
}

void by_columns_keep_prices(struct by_columns *task, __int128 price)
{
    double bound = 0, one = (double)price;

    if (price <= 0)
        return;
    for (uint32_t i = 0; i < task->rows; i++)
        bound += (double)task->limits[i] * ((double)task->prices[i] / one);
    if (task->least > 0 && bound >= task->least)
        return;
    task->least = bound;
    for (uint32_t i = 0; i < task->rows; i++)
        task->kept[i] = (double)task->prices[i] / one;
}
