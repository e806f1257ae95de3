/* Solves the planner's allreduce by linear programs. See pack.h. */
#include "control/study/bound/pack.h"

#include "control/study/bound/columns.h"
#include "control/study/bound/program.h"
#include "control/study/bound/trees.h"
#include "offload/base/errors.h"

/* Largest programs of cuts that a plan may wait for (variables): for trees, and for a bound alone.
 * Solving them takes some seconds. */
#define COLUMNS_MAX       16000u
#define BOUND_COLUMNS_MAX 100000u

/* The program of cuts: a bound, and trees if switches only forward. */
static int pack_cuts(const struct by_plan_gap *gap, struct by_tree_list *list, struct by_packed *packed,
                     struct by_problem *problem)
{
    struct by_program_graphs graphs = {gap->both, gap->up, gap->down};
    struct by_bound_program program;
    int error;

    if (by_program_size(&graphs) > (gap->branching ? BOUND_COLUMNS_MAX : COLUMNS_MAX))
        return 0;
    error = by_program_solve(&graphs, gap->deadline, &program, problem);
    if (!error && program.rate.num > 0)
        error = by_program_trees(&program, gap->both, gap->up, gap->down, gap->deadline, list, problem);
    if (!error) {
        packed->rate = program.rate;
        packed->bound = program.bound;
        packed->proof = program.proof;
        program.proof = NULL;
    }
    by_program_free(&program);
    return error;
}

int by_program_pack(const struct by_plan_gap *gap, struct by_tree_list *list, struct by_packed *packed,
                    struct by_problem *problem)
{
    int error;

    *packed = (struct by_packed){.rate = {0, 1}, .bound = {0, 1}};
    if (gap->bound_only || !gap->branching)
        error = pack_cuts(gap, list, packed, problem);
    else
        error = by_columns_pack(gap, list, packed, problem);
    return error == BY_ERANGE || error == BY_ETIMEDOUT ? 0
                                                       : error; /* the planner falls back to other methods */
}
