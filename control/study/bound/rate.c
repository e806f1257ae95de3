/*
 * Finds the Reduce-Broadcast rate by the first method that applies (see rate.h):
 * - combinatorial algorithms if they are known to be exact: on every symmetric fabric of compute
 *   nodes, and wherever the tight sets contain all compute nodes;
 * - the linear program;
 * - the planner's trees, if the program is too large.
 */
#include "control/study/bound/rate.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/planner/network/phases.h"
#include "control/planner/optimum/optimum.h"
#include "control/planner/planner.h"
#include "control/study/bound/program.h"
#include "control/study/bound/trees.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* Largest program that is tried (variables). Most take seconds, some a minute. */
#define COLUMNS_MAX 100000u

/* State of the search on one topology. Rates are in units of capacity. */
struct rate_search {
    const struct by_topology *topology;
    struct by_graph *both, *up, *down;
    double deadline;
    struct by_phases phases;
    int64_t cut;
    struct by_fraction rate, bound;
    struct by_certificate *proof; /* proof of the bound; NULL: the cut */
    struct by_bound_rate *result;
    struct by_tree_list list;
};

static int refuse_range(struct by_problem *problem)
{
    return by_problem_set(problem, BY_ERANGE, (struct by_place){0, 0},
                          "an exact rate or weight needs more than 63 bits; round the bandwidths");
}

/* Makes an allreduce plan without trees, with the minimum cut. */
static int make_plan(struct rate_search *search, struct by_problem *problem)
{
    const struct by_topology *topology = search->topology;
    struct by_plan *plan = by_alloc(1, sizeof(*plan));
    bool *inside = by_alloc(topology->node_count, sizeof(*inside));
    int error = by_optimum_allreduce(search->both, &search->cut, inside, problem);

    search->result->plan = plan;
    plan->topology_name = by_copy_text(topology->name);
    plan->unit = by_copy_text(topology->unit);
    plan->collective = BY_COLLECTIVE_ALLREDUCE;
    plan->root = -1;
    plan->compute_count = search->both->compute_count;
    plan->inv_x = (struct by_fraction){0, 1};
    plan->cut = by_alloc(topology->node_count, sizeof(*plan->cut));
    for (uint32_t i = 0; i < topology->node_count && !error; i++)
        if (!inside[i])
            plan->cut[plan->cut_count++] = i;
    free(inside);
    if (!error && by_fraction_multiply(search->both->unit, (struct by_fraction){search->cut, 1},
                                       &plan->cut_exiting) != 0)
        error = refuse_range(problem);
    search->bound = (struct by_fraction){search->cut, 1};
    return error;
}

/* Finds rate and proof by the combinatorial algorithms; returns false if they do not decide. */
static bool decide(struct rate_search *search)
{
    const struct by_phases *phases = &search->phases;
    bool spanning = phases->spanning.part != NULL;
    uint32_t parts = spanning ? phases->spanning.part_count : phases->strength.part_count;

    if (parts < 2 && by_fraction_compare(phases->rate, search->bound) < 0)
        return false;
    if (!phases->balanced && search->both->compute_count < search->both->node_count)
        return false; /* the switches cannot be split off, so the rates are bounds only */
    search->result->method = spanning ? BY_RATE_SPANNING : BY_RATE_STRENGTH;
    search->rate = phases->rate;
    if (by_fraction_compare(phases->rate, search->bound) < 0) {
        search->bound = phases->rate;
        search->proof = by_certificate_of_parts(spanning ? phases->spanning.part : phases->strength.part,
                                                search->both->node_count, parts);
    }
    return true;
}

/* Solves the linear program and appends its trees to the list. */
static int solve(struct rate_search *search, struct by_problem *problem)
{
    struct by_bound_program program;
    struct by_program_graphs graphs = {search->both, search->up, search->down};
    int error = by_program_solve(&graphs, search->deadline, &program, problem);

    search->result->rounds = program.rounds;
    search->result->cuts = program.cuts;
    search->result->columns = program.columns;
    search->result->pivots = program.pivots;
    if (!error && program.bound.num > 0 && by_fraction_compare(program.bound, search->bound) < 0) {
        search->bound = program.bound;
        search->proof = program.proof;
        program.proof = NULL;
    }
    if (!error && program.rate.num > 0) {
        search->result->method = BY_RATE_PROGRAM;
        search->rate = program.rate;
        error = by_program_trees(&program, search->both, search->up, search->down, search->deadline,
                                 &search->list, problem);
    }
    by_program_free(&program);
    return error;
}

/* Uses the planner's trees, with the lesser of the planner's bound and the known bound. */
static int pack(struct rate_search *search, struct by_problem *problem)
{
    struct by_plan_options options = {.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1};
    struct by_plan *known = search->result->plan, *plan;
    struct by_fraction bound;
    int error;

    if (search->deadline > 0) {
        options.time_limit_s = search->deadline - by_plan_clock();
        options.time_limit_s = options.time_limit_s > 0 ? options.time_limit_s : 1e-9;
    }
    if (by_fraction_multiply(search->bound, search->both->unit, &bound) != 0 ||
        by_fraction_multiply(search->phases.equal, search->both->unit, &known->two_phases) != 0)
        return refuse_range(problem);
    search->result->method = BY_RATE_PACKED;
    error = by_plan_make_whole(search->topology, &options, &plan, problem);
    if (error == BY_EINVAL) { /* no switch can be split off: only the bound is known */
        known->achieved = (struct by_fraction){0, 1};
        known->optimum = bound;
        known->proof = search->proof;
        search->proof = NULL;
        return 0;
    }
    if (error)
        return error;
    search->result->plan = plan;
    by_plan_free(known);
    if (search->proof && by_fraction_compare(bound, plan->optimum) < 0) {
        by_certificate_free(plan->proof);
        plan->optimum = bound;
        plan->proof = search->proof;
        search->proof = NULL;
    }
    return 0;
}

/* Moves rate, bound, proof and trees into the result. */
static int finish(struct rate_search *search, struct by_problem *problem)
{
    struct by_plan *plan = search->result->plan;
    const struct by_fraction unit = search->both->unit;
    int error = 0;

    if (search->result->method != BY_RATE_PROGRAM)
        error = by_phases_trees(&search->phases, &search->list, plan, problem);
    if (error)
        return error;
    by_tree_list_move(&search->list, plan);
    plan->proof = search->proof;
    search->proof = NULL;
    if (by_fraction_multiply(search->rate, unit, &plan->achieved) != 0 ||
        by_fraction_multiply(search->bound, unit, &plan->optimum) != 0 ||
        by_fraction_multiply(search->phases.equal, unit, &plan->two_phases) != 0)
        return refuse_range(problem);
    return 0;
}

int by_rate_find(const struct by_topology *topology, double deadline, struct by_bound_rate *rate,
                 struct by_problem *problem)
{
    struct rate_search search = {.topology = topology,
                                 .both = by_graph_make(topology, BY_DIRECTION_BOTH, false),
                                 .up = by_graph_make(topology, BY_DIRECTION_UP, false),
                                 .down = by_graph_make(topology, BY_DIRECTION_DOWN, false),
                                 .deadline = deadline,
                                 .result = rate};
    int error;

    *rate = (struct by_bound_rate){0};
    error = make_plan(&search, problem);
    if (!error)
        error = by_phases_find(search.both, search.up, search.down, deadline, &search.phases, problem);
    if (!error && search.phases.late)
        error = by_problem_set(problem, BY_ETIMEDOUT, (struct by_place){0, 0},
                               "the time limit passed before the bound was found; allow more time");
    if (!error && !decide(&search) &&
        by_program_size(&(struct by_program_graphs){search.both, search.up, search.down}) <= COLUMNS_MAX) {
        error = solve(&search, problem);
        if (error == BY_ERANGE)
            error = 0; /* fall back to other methods */
    }
    if (!error)
        error = rate->method ? finish(&search, problem) : pack(&search, problem);
    by_certificate_free(search.proof);
    by_tree_list_free(&search.list);
    by_phases_free(&search.phases);
    by_graph_free(search.both);
    by_graph_free(search.up);
    by_graph_free(search.down);
    return error;
}

void by_rate_free(struct by_bound_rate *rate)
{
    by_plan_free(rate->plan);
    *rate = (struct by_bound_rate){0};
}

const char *by_rate_method_name(enum by_rate_method method)
{
    static const char *const names[] = {"?", "spanning trees", "free roots", "linear program", "planner"};

    return names[method];
}
