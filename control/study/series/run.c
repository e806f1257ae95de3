/*
 * Executes a periodic schedule. See run.h.
 *
 * All periods are alike. So the code first determines, slot by slot, what each task moves or
 * computes in one period. Then it simulates the periods and updates only two counts for each task:
 * how many batches it has done (a batch is its lane's amount), and how many of these were used. A
 * combination uses batch i of both inputs. Both belong to the same operations, because every task
 * keeps the order.
 */
#include "control/study/series/run.h"

#include "control/fabric/build.h"
#include "control/fabric/links.h"
#include "control/study/series/rational.h"
#include "offload/base/errors.h"

static const struct by_place nowhere = {0, 0};

struct run_work {
    uint32_t lane;
    uint32_t
        input[2];   /* works that produce its inputs; BY_SERIES_NONE: available from the start, or no input */
    uint32_t user;  /* the work that uses its result, or BY_SERIES_NONE at the end of the lane */
    uint32_t done;  /* batches done */
    uint32_t used;  /* batches that `user` has used */
    uint32_t where; /* node of its result */
    bool source;    /* all its inputs are available from the start */
};

struct series_run {
    const struct by_series *series;
    const struct by_topology *topology;
    struct by_links *links;
    uint32_t work_count;
    struct run_work *works;
    uint32_t *first;  /* by lane: index of its first work */
    uint32_t *stages; /* by lane: number of stages */
    mpq_t *time;      /* by work: busy time in a period */
    struct by_problem *problem;
};

#define FAULT(run, ...) by_problem_set((run)->problem, BY_EINVAL, nowhere, __VA_ARGS__)

static const char *name_of(const struct series_run *run, uint32_t node)
{
    return run->topology->nodes[node].name;
}

/* Whether a message is at a node from the start, without a transfer. */
static bool from_start(const struct by_series *series, uint32_t message, uint32_t node)
{
    const struct by_series_message *kind = &series->messages[message];

    if (series->operation != BY_SERIES_REDUCE)
        return kind->from == node;
    return !(kind->values & (kind->values - 1)) && series->holders[__builtin_ctzll(kind->values)] == node;
}

/* Finds the work that produces an input of a task. */
static int find_input(struct series_run *run, uint32_t lane, uint32_t task, uint32_t message, unsigned side)
{
    const struct by_series_lane *what = &run->series->lanes[lane];
    struct run_work *work = &run->works[run->first[lane] + task];
    uint32_t producer = by_series_producer(what, task, message, what->tasks[task].node);

    work->input[side] = BY_SERIES_NONE;
    if (producer == BY_SERIES_NONE)
        return from_start(run->series, message, what->tasks[task].node)
                   ? 0
                   : FAULT(run, "lane %u, task %u: no earlier task brings message %u to '%s'", lane, task,
                           message, name_of(run, what->tasks[task].node));
    work->input[side] = run->first[lane] + producer;
    work->source = false;
    if (run->works[work->input[side]].user != BY_SERIES_NONE)
        return FAULT(run, "lane %u: message %u is used twice at '%s'", lane, message,
                     name_of(run, what->tasks[task].node));
    run->works[work->input[side]].user = run->first[lane] + task;
    return 0;
}

static int list_works(struct series_run *run)
{
    const struct by_series *series = run->series;
    int error = 0;

    for (uint32_t l = 0; l < series->lane_count && !error; l++) {
        const struct by_series_lane *lane = &series->lanes[l];
        uint32_t *stage = by_alloc(lane->task_count, sizeof(*stage));

        for (uint32_t t = 0; t < lane->task_count && !error; t++) {
            const struct by_series_task *task = &lane->tasks[t];
            struct run_work *work = &run->works[run->first[l] + t];
            bool combines = task->to == BY_SERIES_NONE;

            *work = (struct run_work){.lane = l,
                                      .input = {BY_SERIES_NONE, BY_SERIES_NONE},
                                      .user = BY_SERIES_NONE,
                                      .where = combines ? task->node : task->to,
                                      .source = true};
            error = find_input(run, l, t, combines ? task->left : task->message, 0);
            if (!error && combines)
                error = find_input(run, l, t, task->right, 1);
        }
        run->stages[l] = by_series_stages(lane, stage);
        free(stage);
    }
    return error;
}

/*
 * Checks one slot: no port is used twice, and the parts of a link fit into the slot one after the
 * other.
 */
static int pass_slot(struct series_run *run, uint32_t number, bool *sends, bool *receives)
{
    const struct by_series_slot *slot = &run->series->slots[number];
    int error = 0;
    mpq_t sum;

    mpq_init(sum);
    for (uint32_t b = 0; b < slot->busy_count && !error; b++) {
        const struct by_series_busy *busy = &slot->busy[b];
        bool from = by_series_shares(run->topology, run->series->ports, busy->from);
        bool to = by_series_shares(run->topology, run->series->ports, busy->to);

        if ((from && sends[busy->from]) || (to && receives[busy->to]))
            error = FAULT(run, "slot %u: '%s' %s two messages at a time", number,
                          name_of(run, from && sends[busy->from] ? busy->from : busy->to),
                          from && sends[busy->from] ? "sends" : "receives");
        sends[busy->from] = receives[busy->to] = true;
        mpq_set_ui(sum, 0, 1);
        for (uint32_t p = 0; p < busy->part_count && !error; p++) {
            const struct by_series_part *part = &busy->parts[p];
            const struct by_series_task *task = &run->series->lanes[part->lane].tasks[part->task];

            if (task->to != busy->to || task->node != busy->from)
                error = FAULT(run, "slot %u: lane %u, task %u does not go from '%s' to '%s'", number,
                              part->lane, part->task, name_of(run, busy->from), name_of(run, busy->to));
            mpq_add(sum, sum, part->time);
            mpq_add(run->time[run->first[part->lane] + part->task],
                    run->time[run->first[part->lane] + part->task], part->time);
        }
        if (!error && mpq_cmp(sum, slot->duration) > 0)
            error = FAULT(run, "slot %u: the link from '%s' to '%s' is busy for longer than the slot", number,
                          name_of(run, busy->from), name_of(run, busy->to));
    }
    for (uint32_t b = 0; b < slot->busy_count; b++)
        sends[slot->busy[b].from] = receives[slot->busy[b].to] = false;
    mpq_clear(sum);
    return error;
}

/* Computes the time of one message on a task's link. */
static int transfer_time(struct series_run *run, const struct by_series_task *task, mpq_t time)
{
    uint32_t link = by_links_find(run->links, task->node, task->to);

    if (link == UINT32_MAX)
        return FAULT(run, "no link leads from '%s' to '%s'", name_of(run, task->node),
                     name_of(run, task->to));
    mpq_set_si(time, run->topology->scale, (unsigned long)run->links->capacity[link]);
    mpq_canonicalize(time);
    mpq_mul(time, time, run->series->messages[task->message].size);
    return 0;
}

/* Computes the time of one combination. */
static int combine_time(struct series_run *run, const struct by_series_task *task, mpq_t time)
{
    const struct by_node *node = &run->topology->nodes[task->node];

    mpq_set_ui(time, 0, 1);
    if (node->has_task_time) {
        by_rational_set(time, node->task_time);
    } else if (node->compute || !node->aggregate) {
        return FAULT(run, "'%s' cannot compute", node->name);
    } else if (node->aggregate_rate.num > 0) {
        by_rational_set(time, node->aggregate_rate);
        mpq_div(time, run->series->messages[task->message].size, time);
    }
    return 0;
}

/*
 * Checks that every task completes its lane's amount within a period, and that no processor is
 * overloaded.
 */
static int check_amounts(struct series_run *run)
{
    const struct by_series *series = run->series;
    mpq_t *busy = by_rationals_new(run->topology->node_count), time, amount, period;
    int error = 0;

    mpq_inits(time, amount, period, NULL);
    mpq_set_z(period, series->period);
    for (uint32_t l = 0; l < series->lane_count && !error; l++)
        for (uint32_t t = 0; t < series->lanes[l].task_count && !error; t++) {
            const struct by_series_task *task = &series->lanes[l].tasks[t];

            error =
                task->to == BY_SERIES_NONE ? combine_time(run, task, time) : transfer_time(run, task, time);
            mpq_set_z(amount, series->lanes[l].amount);
            mpq_mul(time, time, amount);
            if (task->to == BY_SERIES_NONE)
                mpq_add(busy[task->node], busy[task->node], time);
            else if (!error && mpq_cmp(run->time[run->first[l] + t], time) < 0)
                error = FAULT(run, "lane %u, task %u: its slots are too short for its transfer", l, t);
        }
    for (uint32_t i = 0; i < run->topology->node_count && !error; i++)
        if (mpq_cmp(busy[i], period) > 0)
            error = FAULT(run, "'%s' computes for longer than the period", name_of(run, i));
    by_rationals_free(busy, run->topology->node_count);
    mpq_clears(time, amount, period, NULL);
    return error;
}

/*
 * Whether a work has all its inputs for this period. Works that begin operations stop early enough
 * that the last operation completes.
 */
static bool can_work(const struct series_run *run, const struct run_work *work, uint32_t period,
                     uint32_t periods)
{
    if (work->source && period + run->stages[work->lane] > periods)
        return false;
    for (unsigned side = 0; side < 2; side++)
        if (work->input[side] != BY_SERIES_NONE &&
            run->works[work->input[side]].done == run->works[work->input[side]].used)
            return false;
    return true;
}

/* Counts the messages that wait at each node between two periods, and keeps the maximum. */
static void count_waiting(const struct series_run *run, mpz_t *waiting, mpz_t most)
{
    for (uint32_t i = 0; i < run->topology->node_count; i++)
        mpz_set_ui(waiting[i], 0);
    for (uint32_t w = 0; w < run->work_count; w++)
        if (run->works[w].user != BY_SERIES_NONE)
            mpz_addmul_ui(waiting[run->works[w].where], run->series->lanes[run->works[w].lane].amount,
                          run->works[w].done - run->works[w].used);
    for (uint32_t i = 0; i < run->topology->node_count; i++)
        if (mpz_cmp(waiting[i], most) > 0)
            mpz_set(most, waiting[i]);
}

/*
 * Simulates one period: every work with all its inputs runs; its results are available in the next
 * period.
 */
static void pass_period(struct series_run *run, uint32_t period, uint32_t periods, bool *works,
                        struct by_series_report *report)
{
    bool full = true, begins = false, ends = false;

    for (uint32_t w = 0; w < run->work_count; w++) {
        works[w] = can_work(run, &run->works[w], period, periods);
        full &= works[w];
        begins |= works[w] && run->works[w].source;
    }
    for (uint32_t w = 0; w < run->work_count; w++) {
        if (!works[w])
            continue;
        run->works[w].done++;
        ends |= run->works[w].user == BY_SERIES_NONE;
        for (unsigned side = 0; side < 2; side++)
            if (run->works[w].input[side] != BY_SERIES_NONE)
                run->works[run->works[w].input[side]].used++;
    }
    if (ends && report->start_periods == 0)
        report->start_periods = period + 1;
    report->full_periods += full;
    report->clean_periods = begins ? 0 : report->clean_periods + 1;
}

/*
 * Counts the complete operations. An operation of a scatter or gossip is complete when all its
 * messages have arrived.
 */
static void count_operations(const struct series_run *run, mpz_t operations)
{
    const struct by_series *series = run->series;
    uint32_t classes = series->operation == BY_SERIES_REDUCE ? 1 : series->message_count;
    mpz_t *arrived = by_alloc(classes, sizeof(*arrived));

    for (uint32_t c = 0; c < classes; c++)
        mpz_init(arrived[c]);
    for (uint32_t w = 0; w < run->work_count; w++) {
        const struct by_series_lane *lane = &series->lanes[run->works[w].lane];
        uint32_t message = lane->tasks[w - run->first[run->works[w].lane]].message;

        if (run->works[w].user == BY_SERIES_NONE)
            mpz_addmul_ui(arrived[classes == 1 ? 0 : message], lane->amount, run->works[w].done);
    }
    for (uint32_t c = 0; c < classes; c++) {
        if (c == 0 || mpz_cmp(arrived[c], operations) < 0)
            mpz_set(operations, arrived[c]);
        if (c > 0)
            mpz_clear(arrived[c]);
    }
    mpz_clear(arrived[0]);
    free(arrived);
}

static void pass_periods(struct series_run *run, uint32_t periods, struct by_series_report *report)
{
    bool *works = by_alloc(run->work_count, sizeof(*works));
    mpz_t *waiting = by_alloc(run->topology->node_count, sizeof(*waiting));
    mpq_t time;

    for (uint32_t i = 0; i < run->topology->node_count; i++)
        mpz_init(waiting[i]);
    for (uint32_t p = 0; p < periods; p++) {
        pass_period(run, p, periods, works, report);
        count_waiting(run, waiting, report->waiting);
    }
    report->periods = periods;
    count_operations(run, report->operations);
    mpq_init(time);
    mpq_set_z(time, run->series->period);
    mpz_mul_ui(mpq_numref(time), mpq_numref(time), periods);
    mpq_set_z(report->throughput, report->operations);
    mpq_div(report->throughput, report->throughput, time);
    mpq_div(report->ratio, report->throughput, run->series->throughput);
    mpq_clear(time);
    for (uint32_t i = 0; i < run->topology->node_count; i++)
        mpz_clear(waiting[i]);
    free(waiting);
    free(works);
}

/* Checks all slots, and that together they fit into the period. */
static int pass_slots(struct series_run *run)
{
    bool *sends = by_alloc(run->topology->node_count, sizeof(*sends));
    bool *receives = by_alloc(run->topology->node_count, sizeof(*receives));
    int error = 0;
    mpq_t sum, period;

    mpq_inits(sum, period, NULL);
    mpq_set_z(period, run->series->period);
    for (uint32_t s = 0; s < run->series->slot_count && !error; s++) {
        error = pass_slot(run, s, sends, receives);
        mpq_add(sum, sum, run->series->slots[s].duration);
    }
    if (!error && mpq_cmp(sum, period) > 0)
        error = FAULT(run, "the slots together are longer than the period");
    mpq_clears(sum, period, NULL);
    free(sends);
    free(receives);
    return error;
}

void by_series_report_init(struct by_series_report *report)
{
    *report = (struct by_series_report){0};
    mpz_inits(report->operations, report->waiting, NULL);
    mpq_inits(report->throughput, report->ratio, NULL);
}

void by_series_report_clear(struct by_series_report *report)
{
    mpz_clears(report->operations, report->waiting, NULL);
    mpq_clears(report->throughput, report->ratio, NULL);
}

int by_series_run(const struct by_series *series, const struct by_topology *topology, uint32_t periods,
                  struct by_series_report *report, struct by_problem *problem)
{
    struct series_run run = {.series = series, .topology = topology, .problem = problem};
    int error;

    run.links = by_links_new(topology);
    run.first = by_alloc((size_t)series->lane_count + 1, sizeof(*run.first));
    run.stages = by_alloc(series->lane_count, sizeof(*run.stages));
    for (uint32_t l = 0; l < series->lane_count; l++)
        run.first[l + 1] = run.first[l] + series->lanes[l].task_count;
    run.work_count = run.first[series->lane_count];
    run.works = by_alloc(run.work_count, sizeof(*run.works));
    run.time = by_rationals_new(run.work_count);
    error = list_works(&run);
    if (!error)
        error = pass_slots(&run);
    if (!error)
        error = check_amounts(&run);
    if (!error)
        pass_periods(&run, periods, report);
    by_rationals_free(run.time, run.work_count);
    free(run.works);
    free(run.first);
    free(run.stages);
    by_links_free(run.links);
    return error;
}
