/*
 * Writes the file of a periodic schedule (banyan-series(5)): JSON with names instead of indices.
 * Neighbour: read.c reads it. One thread for each call.
 */
#include <jansson.h>

#include "control/study/series/rational.h"
#include "control/study/series/series.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

static void write_string(FILE *file, const char *text)
{
    json_t *string = json_string(text);

    BY_ASSERT(string);
    json_dumpf(string, file, JSON_ENCODE_ANY);
    json_decref(string);
}

/* Writes an integer, as a string beyond 2^53. */
static void write_integer(FILE *file, const mpz_t value)
{
    gmp_fprintf(file, mpz_sizeinbase(value, 2) > 53 ? "\"%Zd\"" : "%Zd", value);
}

void by_series_write_rational(FILE *file, const mpq_t value)
{
    fputs("{\"num\": ", file);
    write_integer(file, mpq_numref(value));
    fputs(", \"den\": ", file);
    write_integer(file, mpq_denref(value));
    fputc('}', file);
}

static void write_values(FILE *file, uint64_t values)
{
    bool first = true;

    for (unsigned i = 0; i < BY_SERIES_VALUES_MAX; i++)
        if (values >> i & 1) {
            fprintf(file, "%s%u", first ? "[" : ", ", i);
            first = false;
        }
    fputc(']', file);
}

static void write_messages(const struct by_series *series, const struct by_topology *topology, FILE *file)
{
    fputs("[", file);
    for (uint32_t m = 0; m < series->message_count; m++) {
        const struct by_series_message *message = &series->messages[m];

        fputs(m ? ",\n  {" : "\n  {", file);
        if (series->operation == BY_SERIES_REDUCE) {
            fputs("\"values\": ", file);
            write_values(file, message->values);
        } else {
            fprintf(file, "\"from\": \"%s\", \"to\": \"%s\"", topology->nodes[message->from].name,
                    topology->nodes[message->to].name);
        }
        fputs(", \"size\": ", file);
        by_series_write_rational(file, message->size);
        fputc('}', file);
    }
    fputs("]", file);
}

static void write_task(const struct by_series_task *task, const struct by_topology *topology, FILE *file)
{
    if (task->to == BY_SERIES_NONE)
        fprintf(file, "{\"at\": \"%s\", \"combine\": [%u, %u], \"into\": %u}",
                topology->nodes[task->node].name, task->left, task->right, task->message);
    else
        fprintf(file, "{\"send\": %u, \"from\": \"%s\", \"to\": \"%s\"}", task->message,
                topology->nodes[task->node].name, topology->nodes[task->to].name);
}

void by_series_write_lanes(const struct by_series *series, const struct by_topology *topology, FILE *file)
{
    mpq_t weight;

    mpq_init(weight);
    fputs("[", file);
    for (uint32_t l = 0; l < series->lane_count; l++) {
        const struct by_series_lane *lane = &series->lanes[l];

        mpz_set(mpq_numref(weight), lane->amount);
        mpz_set(mpq_denref(weight), series->period);
        mpq_canonicalize(weight);
        fputs(l ? ",\n  {\"amount\": " : "\n  {\"amount\": ", file);
        write_integer(file, lane->amount);
        fputs(", \"weight\": ", file);
        by_series_write_rational(file, weight);
        fputs(", \"tasks\": [", file);
        for (uint32_t t = 0; t < lane->task_count; t++) {
            fputs(t ? ", " : "", file);
            write_task(&lane->tasks[t], topology, file);
        }
        fputs("]}", file);
    }
    fputs("]", file);
    mpq_clear(weight);
}

void by_series_write_slots(const struct by_series *series, const struct by_topology *topology, FILE *file)
{
    fputs("[", file);
    for (uint32_t s = 0; s < series->slot_count; s++) {
        const struct by_series_slot *slot = &series->slots[s];

        fputs(s ? ",\n  {\"duration\": " : "\n  {\"duration\": ", file);
        by_series_write_rational(file, slot->duration);
        fputs(", \"transfers\": [", file);
        for (uint32_t b = 0; b < slot->busy_count; b++) {
            const struct by_series_busy *busy = &slot->busy[b];

            fprintf(file, "%s{\"from\": \"%s\", \"to\": \"%s\", \"parts\": [", b ? ", " : "",
                    topology->nodes[busy->from].name, topology->nodes[busy->to].name);
            for (uint32_t p = 0; p < busy->part_count; p++) {
                fprintf(file, "%s{\"lane\": %u, \"task\": %u, \"time\": ", p ? ", " : "", busy->parts[p].lane,
                        busy->parts[p].task);
                by_series_write_rational(file, busy->parts[p].time);
                fputc('}', file);
            }
            fputs("]}", file);
        }
        fputs("]}", file);
    }
    fputs("]", file);
}

static void write_prices(const struct by_series *series, const struct by_topology *topology, FILE *file)
{
    static const char *const keys[] = {"?", "sends", "receives", "computes", "from"};

    fputs("[", file);
    for (uint32_t p = 0; p < series->price_count; p++) {
        const struct by_series_price *price = &series->prices[p];

        fprintf(file, "%s{\"%s\": \"%s\"", p ? ",\n  " : "\n  ", keys[price->resource],
                topology->nodes[price->node].name);
        if (price->resource == BY_SERIES_LINK)
            fprintf(file, ", \"to\": \"%s\"", topology->nodes[price->to].name);
        fputs(", \"price\": ", file);
        by_series_write_rational(file, price->price);
        fputc('}', file);
    }
    fputs("]", file);
}

int by_series_write(const struct by_series *series, const struct by_topology *topology, FILE *file)
{
    fputs("{\"format\": \"banyan-series-1\", \"topology\": ", file);
    write_string(file, topology->name);
    fprintf(file, ",\n \"operation\": \"%s\", \"ports\": \"%s\"", by_series_operation_name(series->operation),
            by_series_ports_name(series->ports));
    if (series->operation == BY_SERIES_REDUCE) {
        fprintf(file, ", \"commutative\": %s,\n \"target\": \"%s\", \"holders\": [",
                series->commutative ? "true" : "false", topology->nodes[series->target].name);
        for (uint32_t i = 0; i < series->holder_count; i++)
            fprintf(file, "%s\"%s\"", i ? ", " : "", topology->nodes[series->holders[i]].name);
        fputs("]", file);
    }
    fputs(",\n \"throughput\": ", file);
    by_series_write_rational(file, series->throughput);
    fputs(", \"optimum\": ", file);
    by_series_write_rational(file, series->optimum);
    fputs(", \"period\": ", file);
    write_integer(file, series->period);
    fputs(",\n \"messages\": ", file);
    write_messages(series, topology, file);
    fputs(",\n \"lanes\": ", file);
    by_series_write_lanes(series, topology, file);
    fputs(",\n \"slots\": ", file);
    by_series_write_slots(series, topology, file);
    fputs(",\n \"prices\": ", file);
    write_prices(series, topology, file);
    fputs("}\n", file);
    return fflush(file) != 0 || ferror(file) ? BY_EIO : 0;
}
