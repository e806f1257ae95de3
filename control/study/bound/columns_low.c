/*
 * Lower trees at the same rate. See columns_task.h. A limit of height excludes higher columns, and
 * low ones are priced, until the value is that of the program without a limit. The least limit is
 * found by bisection.
 */
#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/study/bound/columns_task.h"
#include "offload/base/errors.h"

/* New columns for each limit of height (counts): 1 / ROUNDS_PART of those so far, and at least
 * ROUNDS_MIN. */
#define ROUNDS_MIN  32u
#define ROUNDS_PART 8u
/* New columns for small weights (count). */
#define ROUNDS_WEIGH 100u
/* Limits of height whose weights are tried (count): those of the lowest columns may need too many
 * bits. */
#define WEIGHED_MAX 3u
/* Lower trees whose weights do not fit 63 bits are rounded less than others, since their rate must
 * not be less. */
#define ROUND_BITS 24u

/* Lets only columns of at most `height_max` hops count, within the limits of the fabric. */
static void limit_height(struct by_columns *task, uint32_t height_max)
{
    by_columns_limit(task, task->limits, 1);
    task->height_max = height_max;
    for (uint32_t j = 0; j < task->column_count; j++)
        by_lp_cost(task->lp, j, task->columns[j].height > height_max ? -1 : 1, 1);
}

/* The greatest height of the columns with an amount. */
static uint32_t greatest_height(const struct by_columns *task, const struct by_amounts *amounts)
{
    uint32_t height = 0;

    for (uint32_t j = 0; j < amounts->count; j++)
        if (amounts->of[j].num > 0 && task->columns[j].height > height)
            height = task->columns[j].height;
    return height;
}

/* Whether columns of at most `height_max` hops reach the value; adds such columns. */
static bool reach(struct by_columns *task, uint32_t height_max, double value)
{
    uint32_t rounds = task->column_count / ROUNDS_PART;

    limit_height(task, height_max);
    task->column_max = task->column_count + (rounds > ROUNDS_MIN ? rounds : ROUNDS_MIN);
    return by_columns_generate(task, value) && task->value >= value * (1 - 1e-9);
}

/* Finds the amounts of the columns that count, rounded if those of `former` are. BY_ERANGE if their
 * sum is less. */
static int weigh(struct by_columns *task, const struct by_amounts *former, struct by_amounts *amounts)
{
    struct by_lp_options options = {.deadline = task->gap->deadline};
    struct by_problem problem = {0};

    task->column_max = task->column_count + ROUNDS_WEIGH;
    if ((!former->rounded && by_lp_solve(task->lp, &options, &problem) != 0) ||
        by_columns_weigh(task, !former->rounded, ROUND_BITS, amounts) != 0)
        return BY_ERANGE;
    return by_fraction_compare(amounts->sum, former->sum) < 0 ? BY_ERANGE : 0;
}

void by_columns_lower(struct by_columns *task, struct by_amounts *amounts)
{
    uint32_t high = greatest_height(task, amounts), low = 0, start = high;
    double value = by_fraction_value(amounts->sum);
    struct by_amounts lower = {0};

    while (high - low > 1 && !by_plan_late(task->gap->deadline)) {
        uint32_t middle = low + (high - low) / 2;

        if (reach(task, middle, value))
            high = middle;
        else
            low = middle;
    }
    for (uint32_t tries = 0; tries < WEIGHED_MAX && high < start && !by_plan_late(task->gap->deadline);
         tries++) {
        if (reach(task, high, value) && weigh(task, amounts, &lower) == 0) {
            free(amounts->of);
            *amounts = lower;
            return;
        }
        free(lower.of);
        lower = (struct by_amounts){0};
        high += (start - high + 2) / 3;
    }
}
