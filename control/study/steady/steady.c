/*
 * Computes steady states: checks the problem, solves its program, and converts the solution to a
 * periodic schedule. See steady.h.
 */
#include "control/study/steady/steady.h"

#include "control/study/series/rational.h"
#include "control/study/steady/program.h"
#include "control/study/steady/room.h"
#include "control/study/steady/schedule.h"
#include "offload/base/errors.h"

static const struct by_place nowhere = {0, 0};

/* Checks that `nodes` are distinct compute nodes. */
static int check_nodes(const struct by_steady_problem *problem, const uint32_t *nodes, uint32_t count,
                       const char *what, struct by_problem *trouble)
{
    const struct by_topology *topology = problem->topology;
    bool *seen = by_alloc(topology->node_count, sizeof(*seen));
    int error = 0;

    for (uint32_t i = 0; i < count && !error; i++) {
        const char *name = topology->nodes[nodes[i]].name;

        if (!topology->nodes[nodes[i]].compute)
            error = by_problem_set(trouble, BY_EINVAL, nowhere, "'%s' is a switch: %s must be compute nodes",
                                   name, what);
        else if (seen[nodes[i]])
            error =
                by_problem_set(trouble, BY_EINVAL, nowhere, "'%s' is named twice among the %s", name, what);
        seen[nodes[i]] = true;
    }
    free(seen);
    return error;
}

/* Whether some message of the matrix leaves its sender. */
static bool moves_data(const struct by_steady_problem *problem)
{
    for (uint32_t s = 0; s < problem->source_count; s++)
        for (uint32_t t = 0; t < problem->target_count; t++)
            if (problem->sources[s] != problem->targets[t] &&
                problem->matrix[(size_t)s * problem->target_count + t].num > 0)
                return true;
    return false;
}

static int check_problem(const struct by_steady_problem *problem, struct by_problem *trouble)
{
    bool reduce = problem->operation == BY_SERIES_REDUCE;
    int error = check_nodes(problem, problem->sources, problem->source_count, "sources", trouble);

    if (!error)
        error = check_nodes(problem, problem->targets, problem->target_count, "targets", trouble);
    if (!error)
        error = check_nodes(problem, problem->holders, problem->holder_count, "holders of values", trouble);
    if (error)
        return error;
    if (reduce && (problem->target_count != 1 || problem->source_count != 0))
        return by_problem_set(trouble, BY_EINVAL, nowhere, "a reduce has one target and no sources");
    if (reduce && (problem->holder_count < 2 || problem->holder_count > BY_SERIES_VALUES_MAX))
        return by_problem_set(trouble, BY_EINVAL, nowhere,
                              "%u values are to be reduced; their number must be from 2 to %u: name their "
                              "holders",
                              problem->holder_count, BY_SERIES_VALUES_MAX);
    if (problem->operation == BY_SERIES_SCATTER && problem->source_count != 1)
        return by_problem_set(trouble, BY_EINVAL, nowhere, "a scatter has one source");
    if ((problem->operation == BY_SERIES_EXCHANGE) != (problem->matrix != NULL))
        return by_problem_set(trouble, BY_EINVAL, nowhere,
                              "an exchange, and no other operation, has a matrix");
    if (problem->matrix && !moves_data(problem))
        return by_problem_set(trouble, BY_EINVAL, nowhere, "the matrix has no message between two nodes");
    if (!reduce && (problem->target_count == 0 || (problem->target_count == 1 && problem->source_count == 1 &&
                                                   problem->targets[0] == problem->sources[0])))
        return by_problem_set(trouble, BY_EINVAL, nowhere, "no receiver: name targets other than the source");
    return 0;
}

int by_steady_make(const struct by_steady_problem *problem, struct by_series **series,
                   struct by_problem *trouble)
{
    bool reduce = problem->operation == BY_SERIES_REDUCE;
    struct by_lanes lanes = {.count = 0};
    struct by_platform *platform;
    int error;

    *trouble = (struct by_problem){0};
    *series = NULL;
    error = check_problem(problem, trouble);
    if (error)
        return error;
    platform = by_platform_new(problem->topology, problem->ports);
    *series = by_series_new();
    (*series)->operation = problem->operation;
    (*series)->ports = problem->ports;
    error = (reduce ? by_program_reduce : by_program_flows)(problem, platform, *series, &lanes, trouble);
    if (!error) {
        mpq_set((*series)->optimum, (*series)->throughput);
        by_schedule_lanes(*series, &lanes);
        by_schedule_slots(*series, platform);
    }
    by_lanes_free(&lanes);
    by_platform_free(platform);
    if (error) {
        by_series_free(*series);
        *series = NULL;
    }
    return error;
}

bool by_steady_never_balances(const struct by_steady_problem *problem)
{
    struct by_platform *platform = by_platform_new(problem->topology, problem->ports);
    bool few_sets = problem->commutative && problem->holder_count <= BY_STEADY_COMMUTATIVE_MAX;
    bool generates = by_program_generates(problem, platform);

    by_platform_free(platform);
    return generates && !few_sets; /* whose program may be solved whole */
}

/* ---- a given period ---- */

static void copy_prices(struct by_series *to, const struct by_series *from)
{
    to->price_count = from->price_count;
    to->prices = by_alloc(from->price_count, sizeof(*to->prices));
    for (uint32_t p = 0; p < from->price_count; p++) {
        to->prices[p] = from->prices[p];
        mpq_init(to->prices[p].price);
        mpq_set(to->prices[p].price, from->prices[p].price);
    }
}

/* Copies everything but the amounts, the period and the slots. */
static struct by_series *copy(const struct by_series *from)
{
    struct by_series *to = by_series_new();

    to->operation = from->operation;
    to->ports = from->ports;
    to->commutative = from->commutative;
    to->target = from->target;
    to->holder_count = from->holder_count;
    to->holders = by_alloc(from->holder_count, sizeof(*to->holders));
    if (from->holder_count)
        memcpy(to->holders, from->holders, from->holder_count * sizeof(*to->holders));
    to->message_count = from->message_count;
    to->messages = by_alloc(from->message_count, sizeof(*to->messages));
    for (uint32_t m = 0; m < from->message_count; m++) {
        to->messages[m] = from->messages[m];
        mpq_init(to->messages[m].size);
        mpq_set(to->messages[m].size, from->messages[m].size);
    }
    to->lane_count = from->lane_count;
    to->lanes = by_alloc(from->lane_count, sizeof(*to->lanes));
    for (uint32_t l = 0; l < from->lane_count; l++) {
        const struct by_series_lane *lane = &from->lanes[l];

        mpz_init(to->lanes[l].amount);
        to->lanes[l].task_count = lane->task_count;
        to->lanes[l].tasks = by_alloc(lane->task_count, sizeof(*lane->tasks));
        memcpy(to->lanes[l].tasks, lane->tasks, lane->task_count * sizeof(*lane->tasks));
    }
    mpq_set(to->optimum, from->optimum);
    copy_prices(to, from);
    return to;
}

/* Returns the message for which a lane counts: its own, or for a reduction the result. */
static uint32_t class_of(const struct by_series *series, uint32_t lane)
{
    return series->operation == BY_SERIES_REDUCE ? 0 : series->lanes[lane].tasks[0].message;
}

/*
 * Computes the operations in a period: the least number over all messages. `most` receives the
 * largest number of lanes of one message.
 */
static void count_operations(const struct by_series *series, mpz_t least, uint32_t *most)
{
    uint32_t classes = series->operation == BY_SERIES_REDUCE ? 1 : series->message_count;
    uint32_t *lanes = by_alloc(classes, sizeof(*lanes));
    mpz_t sum;

    mpz_init(sum);
    *most = 0;
    for (uint32_t c = 0; c < classes; c++) {
        mpz_set_ui(sum, 0);
        for (uint32_t l = 0; l < series->lane_count; l++)
            if (class_of(series, l) == c) {
                mpz_add(sum, sum, series->lanes[l].amount);
                lanes[c]++;
            }
        if (c == 0 || mpz_cmp(sum, least) < 0)
            mpz_set(least, sum);
        *most = lanes[c] > *most ? lanes[c] : *most;
    }
    mpz_clear(sum);
    free(lanes);
}

/* Reduces amounts so that no message is carried more often than the operations require. */
static void trim(struct by_series *series, const mpz_t operations)
{
    uint32_t classes = series->operation == BY_SERIES_REDUCE ? 1 : series->message_count;
    mpz_t left;

    mpz_init(left);
    for (uint32_t c = 0; c < classes; c++) {
        mpz_set(left, operations);
        for (uint32_t l = 0; l < series->lane_count; l++) {
            if (class_of(series, l) != c)
                continue;
            if (mpz_cmp(series->lanes[l].amount, left) > 0)
                mpz_set(series->lanes[l].amount, left);
            mpz_sub(left, left, series->lanes[l].amount);
        }
    }
    mpz_clear(left);
}

/* Drops the lanes that never run. */
static void drop_idle_lanes(struct by_series *series)
{
    uint32_t kept = 0;

    for (uint32_t l = 0; l < series->lane_count; l++) {
        if (mpz_sgn(series->lanes[l].amount) > 0) {
            series->lanes[kept++] = series->lanes[l];
        } else {
            mpz_clear(series->lanes[l].amount);
            free(series->lanes[l].tasks);
        }
    }
    series->lane_count = kept;
}

int by_steady_fix(const struct by_series *series, const struct by_topology *topology, const mpz_t period,
                  struct by_series **fixed, mpq_t loss, struct by_problem *trouble)
{
    uint32_t classes = series->operation == BY_SERIES_REDUCE ? 1 : series->message_count;
    uint32_t *class = by_alloc(series->lane_count, sizeof(*class)), most;
    struct by_platform *platform = by_platform_new(topology, series->ports);
    mpz_t operations;

    *fixed = copy(series);
    mpz_init(operations);
    for (uint32_t l = 0; l < series->lane_count; l++) {
        mpz_mul((*fixed)->lanes[l].amount, series->lanes[l].amount, period);
        mpz_fdiv_q((*fixed)->lanes[l].amount, (*fixed)->lanes[l].amount, series->period);
        class[l] = class_of(series, l);
    }
    mpz_set((*fixed)->period, period);
    count_operations(*fixed, operations, &most);
    trim(*fixed, operations);
    by_room_fill(*fixed, series, platform, class, classes, operations);
    free(class);
    mpz_set(mpq_numref((*fixed)->throughput), operations);
    mpz_set(mpq_denref((*fixed)->throughput), period);
    mpq_canonicalize((*fixed)->throughput);
    mpz_set_ui(mpq_numref(loss), most);
    mpz_set(mpq_denref(loss), period);
    mpq_canonicalize(loss);
    drop_idle_lanes(*fixed);
    if (mpz_sgn(operations) == 0) {
        mpz_clear(operations);
        by_platform_free(platform);
        by_series_free(*fixed);
        *fixed = NULL;
        return by_problem_set(trouble, BY_EINVAL, nowhere,
                              "the period is too short for a single operation on any lane; use a longer one");
    }
    mpz_clear(operations);
    by_schedule_slots(*fixed, platform);
    by_platform_free(platform);
    return 0;
}
