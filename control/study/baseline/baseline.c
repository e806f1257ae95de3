/* Baselines by name. See baseline.h. */
#include "control/study/baseline/baseline.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/stage.h"
#include "control/fabric/build.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* Most rings of one plan (count): NCCL's default number of channels. */
#define RINGS_MAX 16u

static const struct by_place nowhere = {0, 0};

static const char *const names[] = {"?",
#define X(name, text, summary) text,
                                    BY_ALGORITHM_LIST(X)
#undef X
};

static const char *const summaries[] = {"?",
#define X(name, text, summary) summary,
                                        BY_ALGORITHM_LIST(X)
#undef X
};

const char *by_algorithm_name(enum by_algorithm algorithm)
{
    return names[algorithm < BY_ALGORITHM_COUNT ? algorithm : 0];
}

const char *by_algorithm_summary(enum by_algorithm algorithm)
{
    return summaries[algorithm < BY_ALGORITHM_COUNT ? algorithm : 0];
}

bool by_algorithm_has_trees(enum by_algorithm algorithm)
{
    return algorithm != BY_ALGORITHM_RECURSIVE && algorithm != BY_ALGORITHM_BINE &&
           algorithm != BY_ALGORITHM_BFB && algorithm != BY_ALGORITHM_TACOS;
}

enum by_algorithm by_algorithm_from_name(const char *name)
{
    for (unsigned i = BY_ALGORITHM_NONE + 1; i < BY_ALGORITHM_COUNT; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum by_algorithm)i;
    return BY_ALGORITHM_NONE;
}

bool by_task_late(const struct by_baseline_task *task)
{
    if (!by_plan_late(task->deadline))
        return false;
    by_problem_set(task->problem, BY_ETIMEDOUT, nowhere,
                   "it did not finish within its time limit; raise --time-limit");
    return true;
}

int by_task_gather(struct by_baseline_task *task, const char *algorithm, by_gather_fn *gather, uint32_t units,
                   struct by_sketch_facts *facts, uint32_t *rounds)
{
    struct by_fraction total = {0, 1};
    int error = 0;

    *rounds = 0;
    if (by_task_rooted(task))
        return by_problem_say(task->problem, BY_EUNSUPPORTED, "%s has no %s", algorithm,
                              by_collective_name(task->collective));
    if (task->collective != BY_COLLECTIVE_REDUCE_SCATTER)
        error = gather(task, task->net, &total, rounds);
    if (error == 0 && task->collective != BY_COLLECTIVE_ALLGATHER) {
        struct by_baseline_net *reversed = by_net_new(task->net->topology, true);

        error = gather(task, reversed, &total, rounds);
        by_net_free(reversed);
    }
    /* the total is not 0: there is a link between two compute nodes here */
    if (error == 0 &&
        by_fraction_set((__int128)task->net->compute_count * units * total.den,
                        (__int128)total.num * task->net->topology->scale, &facts->achieved) != 0)
        error = by_problem_say(task->problem, BY_ERANGE,
                               "the rate needs more than 63 bits; round the bandwidths");
    facts->height_max = 1;
    return error;
}

static int make_trees(struct by_baseline_task *task, enum by_algorithm algorithm)
{
    switch (algorithm) {
    case BY_ALGORITHM_RING:
        return by_baseline_ring(task, 1);
    case BY_ALGORITHM_RINGS:
        return by_baseline_ring(task, RINGS_MAX);
    case BY_ALGORITHM_DOUBLE_BINARY:
        return by_baseline_double_binary(task, RINGS_MAX);
    case BY_ALGORITHM_MULTITREE:
        return by_baseline_multitree(task);
    case BY_ALGORITHM_NONE:
    case BY_ALGORITHM_FOREST:
    case BY_ALGORITHM_RECURSIVE:
    case BY_ALGORITHM_BINE:
    case BY_ALGORITHM_BFB:
    case BY_ALGORITHM_TACOS:
    case BY_ALGORITHM_BLINK:
    case BY_ALGORITHM_COUNT:
    default:
        return by_baseline_blink(task);
    }
}

static int make_rounds(struct by_baseline_task *task, enum by_algorithm algorithm, bool keep,
                       struct by_baseline *result)
{
    struct by_rounds *rounds = NULL;
    int error = (algorithm == BY_ALGORITHM_BINE ? by_baseline_bine : by_baseline_recursive)(task, &rounds);

    if (!error && task->net->compute_count <= BY_ROUNDS_CHECK_MAX && !by_rounds_check(rounds, task->problem))
        error = BY_EINVAL;
    if (!error) {
        result->facts.achieved = rounds->achieved;
        result->facts.height_max = rounds->hops_max;
        result->round_count = rounds->round_count;
    }
    if (!error && keep) {
        result->rounds = rounds;
        rounds = NULL;
    }
    by_rounds_free(rounds);
    return error;
}

static int make_figures(struct by_baseline_task *task, enum by_algorithm algorithm, bool keep,
                        struct by_baseline *result)
{
    if (keep)
        return by_problem_say(task->problem, BY_EUNSUPPORTED,
                              "%s divides shards over links by fractions or times, which no file holds; "
                              "`banyan compare` prints its rate",
                              by_algorithm_name(algorithm));
    return (algorithm == BY_ALGORITHM_BFB ? by_baseline_bfb : by_baseline_tacos)(task, &result->facts,
                                                                                 &result->round_count);
}

int by_baseline_make(const struct by_topology *topology, const struct by_baseline_options *options,
                     const struct by_plan *reference, struct by_baseline *result, struct by_problem *problem)
{
    bool rooted = by_collective_is_rooted(options->collective);
    struct by_baseline_task task = {
        .collective = options->collective,
        .root = rooted ? options->root : -1,
        .deadline = options->time_limit_s > 0 ? by_plan_clock() + options->time_limit_s : 0,
        .stage = options->stage,
        .programs = options->programs,
        .problem = problem};
    int error;

    *result = (struct by_baseline){0};
    BY_ASSERT(reference && reference->collective == options->collective);
    BY_ASSERT(options->algorithm > BY_ALGORITHM_FOREST && options->algorithm < BY_ALGORITHM_COUNT);
    if (options->collective == BY_COLLECTIVE_BARRIER)
        return by_problem_set(problem, BY_EUNSUPPORTED, nowhere,
                              "a barrier carries no data, so %s has no rate; compare allreduce",
                              by_algorithm_name(options->algorithm));
    by_stage_begin(options->stage, by_algorithm_name(options->algorithm), 0);
    task.net = by_net_new(topology, false);
    if (options->algorithm == BY_ALGORITHM_RECURSIVE || options->algorithm == BY_ALGORITHM_BINE) {
        error = make_rounds(&task, options->algorithm, options->keep, result);
    } else if (!by_algorithm_has_trees(options->algorithm)) {
        error = make_figures(&task, options->algorithm, options->keep, result);
    } else {
        task.sketch = by_sketch_new(task.net, options->keep);
        error = make_trees(&task, options->algorithm);
        if (!error)
            error = by_sketch_finish(task.sketch, options->collective, &result->facts, problem);
        if (!error && options->keep) {
            result->plan = by_sketch_plan(task.sketch, reference);
            result->plan->achieved = result->facts.achieved;
        }
        by_sketch_free(task.sketch);
    }
    by_net_free(task.net);
    return error;
}

void by_baseline_free(struct by_baseline *result)
{
    by_plan_free(result->plan);
    by_rounds_free(result->rounds);
    result->plan = NULL;
    result->rounds = NULL;
}
