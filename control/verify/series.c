/* Checks periodic schedules: messages, lanes, slots, processors. See series.h. */
#include "control/verify/series.h"

#include <stdarg.h>

#include "control/study/series/rational.h"
#include "control/verify/series_inside.h"

bool by_series_violate(struct by_series_checker *checker, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(checker->verdict->reason, sizeof(checker->verdict->reason), format, arguments);
    va_end(arguments);
    return false;
}

static const char *name_of(const struct by_series_checker *checker, uint32_t node)
{
    return checker->topology->nodes[node].name;
}

void by_series_link_cost(const struct by_series_checker *checker, uint32_t link, mpq_t cost)
{
    mpz_set_si(mpq_numref(cost), checker->topology->scale);
    mpz_set_si(mpq_denref(cost), checker->links->capacity[link]);
    mpq_canonicalize(cost);
}

bool by_series_task_time(const struct by_series_checker *checker, uint32_t node, const mpq_t size, mpq_t time)
{
    const struct by_node *what = &checker->topology->nodes[node];

    mpq_set_ui(time, 0, 1);
    if (what->has_task_time)
        by_rational_set(time, what->task_time);
    else if (what->compute || !what->aggregate)
        return false;
    else if (what->aggregate_rate.num > 0) {
        by_rational_set(time, what->aggregate_rate);
        mpq_div(time, size, time);
    }
    return true;
}

/* ---- messages ---- */

static bool is_run(uint64_t values)
{
    uint64_t lowest = values & -values;

    return (values & (values + lowest)) == 0;
}

static bool check_reduce_messages(struct by_series_checker *checker)
{
    const struct by_series *series = checker->series;
    uint64_t n = series->holder_count, expected = n * (n + 1) / 2;

    if (n < 2)
        return by_series_violate(checker, "%llu values cannot be checked", (unsigned long long)n);
    if (series->commutative)
        expected = series->message_count;
    if (series->message_count == 0 || series->message_count != expected)
        return by_series_violate(checker,
                                 "the schedule has %u messages; %llu values have %llu partial results",
                                 series->message_count, (unsigned long long)n, (unsigned long long)expected);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (series->holders[i] == series->holders[j])
                return by_series_violate(checker, "%s holds two values",
                                         name_of(checker, series->holders[i]));
    for (uint32_t m = 0; m < series->message_count; m++) {
        if (!series->commutative && !is_run(series->messages[m].values))
            return by_series_violate(checker,
                                     "message %u is not an interval of values, which the order requires", m);
        for (uint32_t k = 0; k < m; k++)
            if (series->messages[k].values == series->messages[m].values)
                return by_series_violate(checker, "messages %u and %u are the same", k, m);
    }
    return !series->commutative || !by_series_lists_few_sets(series) || by_series_check_few_sets(checker);
}

static int compare_keys(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;

    return *a < *b ? -1 : *a > *b;
}

/* Whether no message occurs twice or is addressed to its own sender. */
static bool check_pairs_differ(struct by_series_checker *checker)
{
    const struct by_series *series = checker->series;
    uint64_t *keys = by_alloc(series->message_count, sizeof(*keys));
    bool right = true;

    for (uint32_t m = 0; m < series->message_count; m++) {
        keys[m] = (uint64_t)series->messages[m].from << 32 | series->messages[m].to;
        if (series->messages[m].from == series->messages[m].to)
            right = by_series_violate(checker, "message %u is addressed to its own sender", m);
    }
    if (series->message_count > 0)
        qsort(keys, series->message_count, sizeof(*keys), compare_keys);
    for (uint32_t m = 1; m < series->message_count && right; m++)
        if (keys[m] == keys[m - 1])
            right = by_series_violate(checker, "two messages from %s to %s are the same",
                                      name_of(checker, (uint32_t)(keys[m] >> 32)),
                                      name_of(checker, (uint32_t)keys[m]));
    free(keys);
    return right;
}

/* Checks that every receiver gets a message from every other sender; an exchange has the messages
 * that it lists. */
static bool check_pair_messages(struct by_series_checker *checker)
{
    const struct by_series *series = checker->series;
    uint32_t n = checker->topology->node_count, senders = 0, receivers = 0, both = 0;
    bool *sends = by_alloc(n, sizeof(*sends)), *receives = by_alloc(n, sizeof(*receives));
    bool right = check_pairs_differ(checker);
    uint64_t expected;

    for (uint32_t m = 0; m < series->message_count; m++)
        sends[series->messages[m].from] = receives[series->messages[m].to] = true;
    for (uint32_t i = 0; i < n; i++) {
        senders += sends[i];
        receivers += receives[i];
        both += sends[i] && receives[i];
    }
    expected = series->operation == BY_SERIES_EXCHANGE ? series->message_count
                                                       : (uint64_t)senders * receivers - both;
    if (right && (series->message_count == 0 || series->message_count != expected))
        right = by_series_violate(checker,
                                  "the schedule has %u messages; these senders and receivers require %llu",
                                  series->message_count, (unsigned long long)expected);
    if (right && series->operation == BY_SERIES_SCATTER && senders != 1)
        right = by_series_violate(checker, "a scatter has one sender, not %u", senders);
    free(sends);
    free(receives);
    return right;
}

/* ---- lanes ---- */

static bool check_link(struct by_series_checker *checker, uint32_t from, uint32_t to)
{
    return by_links_find(checker->links, from, to) != UINT32_MAX ||
           by_series_violate(checker, "no link leads from %s to %s", name_of(checker, from),
                             name_of(checker, to));
}

/* Follows the route of one message from its sender to its receiver. */
static bool follow_route(struct by_series_checker *checker, uint32_t number)
{
    const struct by_series_lane *lane = &checker->series->lanes[number];
    const struct by_series_message *message;
    uint32_t at;

    if (lane->task_count == 0)
        return by_series_violate(checker, "lane %u is empty", number);
    message = &checker->series->messages[lane->tasks[0].message];
    at = message->from;
    for (uint32_t t = 0; t < lane->task_count; t++) {
        const struct by_series_task *task = &lane->tasks[t];

        if (task->to == BY_SERIES_NONE || task->message != lane->tasks[0].message || task->node != at)
            return by_series_violate(checker, "lane %u: task %u does not continue from %s", number, t,
                                     name_of(checker, at));
        if (!check_link(checker, at, task->to))
            return false;
        at = task->to;
    }
    return at == message->to || by_series_violate(checker, "lane %u ends at %s, not at %s", number,
                                                  name_of(checker, at), name_of(checker, message->to));
}

/* A partial result at a node while a reduction tree is followed. */
struct series_token {
    uint64_t values;
    uint32_t node;
};

/* Removes a token; false when it is not there. */
static bool take(struct series_token *tokens, uint32_t *count, uint64_t values, uint32_t node)
{
    for (uint32_t i = 0; i < *count; i++)
        if (tokens[i].values == values && tokens[i].node == node) {
            tokens[i] = tokens[--*count];
            return true;
        }
    return false;
}

static bool combine(struct by_series_checker *checker, const struct by_series_task *task,
                    struct series_token *tokens, uint32_t *count)
{
    const struct by_series *series = checker->series;
    uint64_t left = series->messages[task->left].values, right = series->messages[task->right].values;

    if (!take(tokens, count, left, task->node) || !take(tokens, count, right, task->node))
        return by_series_violate(checker, "%s combines what it does not have", name_of(checker, task->node));
    if ((left & right) != 0 || (left | right) != series->messages[task->message].values)
        return by_series_violate(checker,
                                 "%s combines messages %u and %u into %u, which is not their combination",
                                 name_of(checker, task->node), task->left, task->right, task->message);
    if (!series->commutative && left >= right)
        return by_series_violate(checker, "%s combines message %u before %u, against the order",
                                 name_of(checker, task->node), task->left, task->right);
    tokens[(*count)++] = (struct series_token){left | right, task->node};
    return true;
}

/* Follows a reduction tree from all values at their holders to the result at the target; each value
 * must be used once. */
static bool follow_tree(struct by_series_checker *checker, uint32_t number)
{
    const struct by_series *series = checker->series;
    const struct by_series_lane *lane = &series->lanes[number];
    struct series_token tokens[BY_SERIES_VALUES_MAX] = {{0}};
    uint32_t count = series->holder_count;
    bool right = true;

    for (uint32_t i = 0; i < count; i++)
        tokens[i] = (struct series_token){UINT64_C(1) << i, series->holders[i]};
    for (uint32_t t = 0; t < lane->task_count && right; t++) {
        const struct by_series_task *task = &lane->tasks[t];
        uint64_t values = series->messages[task->message].values;

        if (task->to == BY_SERIES_NONE) {
            right = combine(checker, task, tokens, &count);
        } else if (!take(tokens, &count, values, task->node)) {
            right = by_series_violate(checker, "lane %u: %s sends message %u, which it does not have", number,
                                      name_of(checker, task->node), task->message);
        } else {
            right = check_link(checker, task->node, task->to);
            tokens[count++] = (struct series_token){values, task->to};
        }
    }
    if (right && (count != 1 || tokens[0].node != series->target))
        right = by_series_violate(checker, "lane %u ends with %u partial results, the first at %s", number,
                                  count, name_of(checker, tokens[0].node));
    return right;
}

/* Checks that all messages are equally frequent, as often as the throughput requires. */
static bool check_pace(struct by_series_checker *checker)
{
    const struct by_series *series = checker->series;
    bool reduce = series->operation == BY_SERIES_REDUCE, right = true;
    uint32_t classes = reduce ? 1 : series->message_count;
    mpq_t *amounts = by_rationals_new(classes), amount, expected;

    mpq_inits(amount, expected, NULL);
    mpq_set_z(expected, series->period);
    mpq_mul(expected, expected, series->throughput);
    for (uint32_t l = 0; l < series->lane_count && right; l++) {
        uint32_t to = reduce ? 0 : series->lanes[l].tasks[0].message;

        mpq_set_z(amount, series->lanes[l].amount);
        mpq_add(amounts[to], amounts[to], amount);
        if (mpz_sgn(series->lanes[l].amount) <= 0)
            right = by_series_violate(checker, "lane %u never runs", l);
    }
    for (uint32_t c = 0; c < classes && right; c++)
        if (!mpq_equal(amounts[c], expected)) {
            char text[200];

            gmp_snprintf(text, sizeof(text), "%Qd times in a period, but the throughput requires %Qd",
                         amounts[c], expected);
            right = by_series_violate(checker, "message %u is carried %s",
                                      reduce ? series->message_count - 1 : c, text);
        }
    by_rationals_free(amounts, classes);
    mpq_clears(amount, expected, NULL);
    return right;
}

/* ---- slots and processors ---- */

struct times {
    uint32_t *first; /* by lane */
    mpq_t *of_task;
    bool *sends, *receives, *link; /* busy in the current slot */
};

static bool check_busy(struct by_series_checker *checker, uint32_t number, const struct by_series_busy *busy,
                       struct times *times)
{
    const struct by_series *series = checker->series;
    uint32_t link = by_links_find(checker->links, busy->from, busy->to);
    bool one = series->ports == BY_SERIES_ONE_PORT, host = series->ports == BY_SERIES_HOST_PORTS;
    bool from = one || (host && checker->topology->nodes[busy->from].compute);
    bool to = one || (host && checker->topology->nodes[busy->to].compute), right = true;
    mpq_t sum;

    if (link == UINT32_MAX)
        return check_link(checker, busy->from, busy->to);
    if (times->link[link] || (from && times->sends[busy->from]) || (to && times->receives[busy->to]))
        return by_series_violate(checker,
                                 "slot %u is not a matching: %s to %s conflicts with another transfer",
                                 number, name_of(checker, busy->from), name_of(checker, busy->to));
    times->link[link] = times->sends[busy->from] = times->receives[busy->to] = true;
    mpq_init(sum);
    for (uint32_t p = 0; p < busy->part_count && right; p++) {
        const struct by_series_part *part = &busy->parts[p];
        const struct by_series_task *task = &series->lanes[part->lane].tasks[part->task];
        mpq_t *total = &times->of_task[times->first[part->lane] + part->task];

        if (task->to != busy->to || task->node != busy->from)
            right = by_series_violate(checker, "slot %u: task %u of lane %u does not go from %s to %s",
                                      number, part->task, part->lane, name_of(checker, busy->from),
                                      name_of(checker, busy->to));
        mpq_add(sum, sum, part->time);
        mpq_add(*total, *total, part->time);
    }
    if (right && mpq_cmp(sum, series->slots[number].duration) > 0)
        right = by_series_violate(checker, "slot %u is too short for what %s sends to %s in it", number,
                                  name_of(checker, busy->from), name_of(checker, busy->to));
    mpq_clear(sum);
    return right;
}

static bool check_slots(struct by_series_checker *checker, struct times *times)
{
    const struct by_series *series = checker->series;
    bool right = true;
    mpq_t sum, period;

    mpq_inits(sum, period, NULL);
    for (uint32_t s = 0; s < series->slot_count && right; s++) {
        const struct by_series_slot *slot = &series->slots[s];

        memset(times->link, 0, checker->links->count * sizeof(*times->link));
        memset(times->sends, 0, checker->topology->node_count * sizeof(*times->sends));
        memset(times->receives, 0, checker->topology->node_count * sizeof(*times->receives));
        for (uint32_t b = 0; b < slot->busy_count && right; b++)
            right = check_busy(checker, s, &slot->busy[b], times);
        mpq_add(sum, sum, slot->duration);
    }
    mpq_set_z(period, series->period);
    if (right && mpq_cmp(sum, period) > 0)
        right = by_series_violate(checker, "the slots together are longer than the period");
    mpq_clears(sum, period, NULL);
    return right;
}

/* Checks that transfers have exactly the time that they need, and processors have enough time. */
static bool check_work(struct by_series_checker *checker, const struct times *times)
{
    const struct by_series *series = checker->series;
    uint32_t n = checker->topology->node_count;
    mpq_t *busy = by_rationals_new(n), time, amount;
    bool right = true;

    mpq_inits(time, amount, NULL);
    for (uint32_t l = 0; l < series->lane_count && right; l++)
        for (uint32_t t = 0; t < series->lanes[l].task_count && right; t++) {
            const struct by_series_task *task = &series->lanes[l].tasks[t];
            const struct by_series_message *message = &series->messages[task->message];

            mpq_set_z(amount, series->lanes[l].amount);
            if (task->to == BY_SERIES_NONE) {
                right = by_series_task_time(checker, task->node, message->size, time) ||
                        by_series_violate(checker, "%s cannot compute", name_of(checker, task->node));
                mpq_mul(time, time, amount);
                mpq_add(busy[task->node], busy[task->node], time);
                continue;
            }
            by_series_link_cost(checker, by_links_find(checker->links, task->node, task->to), time);
            mpq_mul(time, time, message->size);
            mpq_mul(time, time, amount);
            if (!mpq_equal(time, times->of_task[times->first[l] + t]))
                right = by_series_violate(
                    checker, "lane %u, task %u: its slots do not last as long as its messages", l, t);
        }
    mpq_set_z(amount, series->period);
    for (uint32_t i = 0; i < n && right; i++)
        if (mpq_cmp(busy[i], amount) > 0)
            right = by_series_violate(checker, "%s computes for longer than the period", name_of(checker, i));
    by_rationals_free(busy, n);
    mpq_clears(time, amount, NULL);
    return right;
}

static bool check_times(struct by_series_checker *checker)
{
    const struct by_series *series = checker->series;
    uint32_t n = checker->topology->node_count;
    struct times times = {.first = by_alloc((size_t)series->lane_count + 1, sizeof(uint32_t)),
                          .sends = by_alloc(n, sizeof(bool)),
                          .receives = by_alloc(n, sizeof(bool)),
                          .link = by_alloc(checker->links->count, sizeof(bool))};
    uint32_t count;
    bool right;

    for (uint32_t l = 0; l < series->lane_count; l++)
        times.first[l + 1] = times.first[l] + series->lanes[l].task_count;
    count = times.first[series->lane_count];
    times.of_task = by_rationals_new(count);
    right = check_slots(checker, &times) && check_work(checker, &times);
    by_rationals_free(times.of_task, count);
    free(times.first);
    free(times.sends);
    free(times.receives);
    free(times.link);
    return right;
}

/* ---- the verdict ---- */

static void set_number(struct by_verify_number *number, const mpq_t value)
{
    gmp_snprintf(number->num, sizeof(number->num), "%Zd", mpq_numref(value));
    gmp_snprintf(number->den, sizeof(number->den), "%Zd", mpq_denref(value));
    number->value = mpq_get_d(value);
}

static bool check_lanes(struct by_series_checker *checker)
{
    bool right = true;

    for (uint32_t l = 0; l < checker->series->lane_count && right; l++)
        right = checker->series->operation == BY_SERIES_REDUCE ? follow_tree(checker, l)
                                                               : follow_route(checker, l);
    return right;
}

void by_series_check(const struct by_series *series, const struct by_topology *topology,
                     struct by_series_verdict *verdict)
{
    struct by_series_checker checker = {.series = series, .topology = topology, .verdict = verdict};
    mpq_t bound;
    bool right;

    *verdict = (struct by_series_verdict){.lane_count = series->lane_count, .slot_count = series->slot_count};
    mpq_init(bound);
    checker.links = by_links_new(topology);
    right = series->operation == BY_SERIES_REDUCE ? check_reduce_messages(&checker)
                                                  : check_pair_messages(&checker);
    right = right && check_lanes(&checker) && check_pace(&checker) && check_times(&checker) &&
            by_series_bound(&checker, bound);
    if (right && mpq_cmp(series->throughput, bound) > 0)
        right = by_series_violate(&checker, "the throughput is above what the prices allow: this checker or "
                                            "the file is wrong");
    if (right && !mpq_equal(series->optimum, bound))
        right = by_series_violate(&checker, "the prices do not prove the optimum that the file states");
    if (!right) {
        verdict->verdict = BY_VERDICT_INVALID;
    } else {
        verdict->verdict = mpq_equal(series->throughput, bound) ? BY_VERDICT_OPTIMAL : BY_VERDICT_VALID;
        set_number(&verdict->throughput, series->throughput);
        set_number(&verdict->bound, bound);
        mpq_div(bound, series->throughput, bound);
        set_number(&verdict->ratio, bound);
    }
    by_links_free(checker.links);
    mpq_clear(bound);
}
