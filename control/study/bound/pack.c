/* Solves the planner's allreduce by the linear program. See pack.h. */
#include "control/study/bound/pack.h"

#include "control/study/bound/program.h"
#include "control/study/bound/trees.h"
#include "offload/base/errors.h"

/* Largest program that a plan may wait for (variables). Solving it takes some seconds. */
#define COLUMNS_MAX 16000u

int by_program_pack(const struct by_graph *both, const struct by_graph *up, const struct by_graph *down,
                    double deadline, struct by_tree_list *list, struct by_packed *packed,
                    struct by_problem *problem)
{
    struct by_program_graphs graphs = {both, up, down};
    struct by_bound_program program;
    int error;

    *packed = (struct by_packed){.rate = {0, 1}, .bound = {0, 1}};
    if (by_program_size(&graphs) > COLUMNS_MAX)
        return 0;
    error = by_program_solve(&graphs, deadline, &program, problem);
    if (!error && program.rate.num > 0)
        error = by_program_trees(&program, both, up, down, deadline, list, problem);
    if (!error) {
        packed->rate = program.rate;
        packed->bound = program.bound;
        packed->proof = program.proof;
        program.proof = NULL;
    }
    by_program_free(&program);
    return error == BY_ERANGE || error == BY_ETIMEDOUT ? 0
                                                       : error; /* the planner falls back to other methods */
}
