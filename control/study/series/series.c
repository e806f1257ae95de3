/* Memory and names of periodic schedules, and the stages of their lanes. See series.h. */
#include "control/study/series/series.h"

#include "control/study/series/rational.h"
#include "offload/base/assert.h"

static const char *const operation_names[] = {"?", "scatter", "gossip", "reduce", "exchange"};
static const char *const ports_names[] = {"?", "one", "host", "many"};

struct by_series *by_series_new(void)
{
    struct by_series *series = by_alloc(1, sizeof(*series));

    mpq_inits(series->throughput, series->optimum, NULL);
    mpz_init(series->period);
    series->target = BY_SERIES_NONE;
    return series;
}

void by_series_slots_free(struct by_series *series)
{
    for (uint32_t s = 0; s < series->slot_count; s++) {
        struct by_series_slot *slot = &series->slots[s];

        for (uint32_t b = 0; b < slot->busy_count; b++) {
            for (uint32_t p = 0; p < slot->busy[b].part_count; p++)
                mpq_clear(slot->busy[b].parts[p].time);
            free(slot->busy[b].parts);
        }
        free(slot->busy);
        mpq_clear(slot->duration);
    }
    free(series->slots);
    series->slots = NULL;
    series->slot_count = 0;
}

void by_series_free(struct by_series *series)
{
    if (!series)
        return;
    by_series_slots_free(series);
    for (uint32_t m = 0; m < series->message_count; m++)
        mpq_clear(series->messages[m].size);
    for (uint32_t l = 0; l < series->lane_count; l++) {
        mpz_clear(series->lanes[l].amount);
        free(series->lanes[l].tasks);
    }
    for (uint32_t p = 0; p < series->price_count; p++)
        mpq_clear(series->prices[p].price);
    free(series->messages);
    free(series->lanes);
    free(series->prices);
    free(series->holders);
    mpq_clears(series->throughput, series->optimum, NULL);
    mpz_clear(series->period);
    free(series);
}

const char *by_series_operation_name(enum by_series_operation operation)
{
    return operation_names[operation];
}

const char *by_series_ports_name(enum by_series_ports ports)
{
    return ports_names[ports];
}

/* Returns the index of `text` in an array of names from 1 on, or 0 if it is not there. */
static unsigned find_name(const char *const *names, unsigned count, const char *text, size_t bytes)
{
    for (unsigned i = 1; i < count; i++)
        if (strlen(names[i]) == bytes && memcmp(names[i], text, bytes) == 0)
            return i;
    return 0;
}

enum by_series_operation by_series_operation_find(const char *text, size_t bytes)
{
    return (enum by_series_operation)find_name(operation_names, BY_SERIES_OPERATIONS, text, bytes);
}

enum by_series_ports by_series_ports_find(const char *text, size_t bytes)
{
    return (enum by_series_ports)find_name(ports_names, BY_SERIES_MANY_PORTS + 1, text, bytes);
}

bool by_series_shares(const struct by_topology *topology, enum by_series_ports ports, uint32_t node)
{
    return ports == BY_SERIES_ONE_PORT || (ports == BY_SERIES_HOST_PORTS && topology->nodes[node].compute);
}

/* Writes "v[1,2]" for values that are adjacent in the operator's order, "v{0,2}" for others. */
static void name_values(uint64_t values, char text[BY_SERIES_NAME_BYTES])
{
    unsigned first = (unsigned)__builtin_ctzll(values), last = 63 - (unsigned)__builtin_clzll(values);
    size_t used = 0;

    if ((unsigned)__builtin_popcountll(values) == last - first + 1) {
        snprintf(text, BY_SERIES_NAME_BYTES, "v[%u,%u]", first, last);
        return;
    }
    for (unsigned i = first; i <= last; i++)
        if (values >> i & 1)
            used += (size_t)snprintf(text + used, BY_SERIES_NAME_BYTES - used, "%s%u", used ? "," : "v{", i);
    snprintf(text + used, BY_SERIES_NAME_BYTES - used, "}");
}

char *by_series_message_name(const struct by_series *series, const struct by_topology *topology,
                             uint32_t message, char text[BY_SERIES_NAME_BYTES])
{
    const struct by_series_message *kind = &series->messages[message];

    if (series->operation == BY_SERIES_REDUCE)
        name_values(kind->values, text);
    else if (series->operation == BY_SERIES_SCATTER)
        snprintf(text, BY_SERIES_NAME_BYTES, "%s", topology->nodes[kind->to].name);
    else
        snprintf(text, BY_SERIES_NAME_BYTES, "%s>%s", topology->nodes[kind->from].name,
                 topology->nodes[kind->to].name);
    return text;
}

uint32_t by_series_producer(const struct by_series_lane *lane, uint32_t task, uint32_t message, uint32_t node)
{
    while (task-- > 0) {
        const struct by_series_task *before = &lane->tasks[task];

        if (before->message == message && (before->to == BY_SERIES_NONE ? before->node : before->to) == node)
            return task;
    }
    return BY_SERIES_NONE;
}

/* The earliest stage of a task that needs `message` at `node`. */
static uint32_t after(const struct by_series_lane *lane, uint32_t task, uint32_t message,
                      const uint32_t *stage)
{
    uint32_t producer = by_series_producer(lane, task, message, lane->tasks[task].node);

    return producer == BY_SERIES_NONE ? 0 : stage[producer] + 1;
}

uint32_t by_series_stages(const struct by_series_lane *lane, uint32_t *stage)
{
    uint32_t deepest = 0;

    for (uint32_t t = 0; t < lane->task_count; t++) {
        const struct by_series_task *task = &lane->tasks[t];

        if (task->to != BY_SERIES_NONE) {
            stage[t] = after(lane, t, task->message, stage);
        } else {
            uint32_t left = after(lane, t, task->left, stage), right = after(lane, t, task->right, stage);

            stage[t] = left > right ? left : right;
        }
        deepest = stage[t] + 1 > deepest ? stage[t] + 1 : deepest;
    }
    return deepest;
}

uint32_t by_series_depth(const struct by_series *series)
{
    uint32_t most = 0, *stage, deepest = 0;

    for (uint32_t l = 0; l < series->lane_count; l++)
        most = series->lanes[l].task_count > most ? series->lanes[l].task_count : most;
    stage = by_alloc(most, sizeof(*stage));
    for (uint32_t l = 0; l < series->lane_count; l++) {
        uint32_t stages = by_series_stages(&series->lanes[l], stage);

        deepest = stages > deepest ? stages : deepest;
    }
    free(stage);
    return deepest;
}
