/* Output of `banyan steady`. See steady.h. */
#include "control/cli/steady.h"

#include "control/cli/check.h"
#include "control/cli/cli.h"
#include "control/study/series/rational.h"

/* Most lanes and slots in text output (count). */
#define LISTED_MAX 12u

static void write_weight(const struct by_series *series, uint32_t lane, mpq_t weight)
{
    mpz_set(mpq_numref(weight), series->lanes[lane].amount);
    mpz_set(mpq_denref(weight), series->period);
    mpq_canonicalize(weight);
}

static void print_lane(const struct by_cli_steady *result, uint32_t number, FILE *out)
{
    const struct by_series *series = result->series;
    const struct by_series_lane *lane = &series->lanes[number];
    char name[BY_SERIES_NAME_BYTES], other[BY_SERIES_NAME_BYTES];
    mpq_t weight;

    mpq_init(weight);
    write_weight(series, number, weight);
    gmp_fprintf(out, "  %-3u %-7Qd", number, weight);
    for (uint32_t t = 0; t < lane->task_count; t++) {
        const struct by_series_task *task = &lane->tasks[t];

        if (task->to == BY_SERIES_NONE)
            fprintf(out, "%s %s+%s at %s", t ? ";" : "",
                    by_series_message_name(series, result->topology, task->left, name),
                    by_series_message_name(series, result->topology, task->right, other),
                    result->topology->nodes[task->node].name);
        else if (series->operation == BY_SERIES_REDUCE || t == 0)
            fprintf(out, "%s %s %s-%s", t ? ";" : "",
                    by_series_message_name(series, result->topology, task->message, name),
                    result->topology->nodes[task->node].name, result->topology->nodes[task->to].name);
        else
            fprintf(out, "-%s", result->topology->nodes[task->to].name);
    }
    fputc('\n', out);
    mpq_clear(weight);
}

static void print_slot(const struct by_cli_steady *result, uint32_t number, FILE *out)
{
    const struct by_series_slot *slot = &result->series->slots[number];

    gmp_fprintf(out, "  %-3u %-7Qd", number, slot->duration);
    for (uint32_t b = 0; b < slot->busy_count; b++)
        fprintf(out, " %s-%s", result->topology->nodes[slot->busy[b].from].name,
                result->topology->nodes[slot->busy[b].to].name);
    fputc('\n', out);
}

static void print_run(const struct by_series_report *run, FILE *out)
{
    gmp_fprintf(
        out,
        "run of %u periods: %Zd operation%s, %.6g of the throughput; the first complete in period %u, "
        "%u full period%s, %u to clean up; at most %Zd messages wait at a node\n",
        run->periods, run->operations, mpz_cmp_ui(run->operations, 1) == 0 ? "" : "s", mpq_get_d(run->ratio),
        run->start_periods, run->full_periods, by_plural(run->full_periods), run->clean_periods,
        run->waiting);
}

void by_cli_steady_people(const struct by_cli_steady *result, FILE *out)
{
    const struct by_series *series = result->series;
    bool reduce = series->operation == BY_SERIES_REDUCE;
    const char *lane = reduce ? "tree" : "route";

    gmp_fprintf(out, "%s: throughput %Qd (%.6g) operations in a unit of time, %s\n",
                by_series_operation_name(series->operation), series->throughput,
                mpq_get_d(series->throughput), by_verdict_name(result->verdict.verdict));
    if (result->fixed)
        gmp_fprintf(
            out, "any period reaches at most %Qd (%.6g); one of this length loses at most %Qd against it\n",
            series->optimum, mpq_get_d(series->optimum), result->loss);
    gmp_fprintf(out, "period %Zd: %u %s%s of up to %u stages, %u matching%s\n", series->period,
                series->lane_count, lane, by_plural(series->lane_count), by_series_depth(series),
                series->slot_count, by_plural(series->slot_count));
    if (result->has_run)
        print_run(&result->run, out);
    fprintf(out, "%ss, operations in a unit of time:\n", lane);
    for (uint32_t l = 0; l < series->lane_count && l < LISTED_MAX; l++)
        print_lane(result, l, out);
    if (series->lane_count > LISTED_MAX)
        fprintf(out, "  and %u more\n", series->lane_count - LISTED_MAX);
    fprintf(out, "matchings, their time in a period:\n");
    for (uint32_t s = 0; s < series->slot_count && s < LISTED_MAX; s++)
        print_slot(result, s, out);
    if (series->slot_count > LISTED_MAX)
        fprintf(out, "  and %u more\n", series->slot_count - LISTED_MAX);
}

static void json_integer(const mpz_t value, FILE *out)
{
    gmp_fprintf(out, mpz_sizeinbase(value, 2) > 53 ? "\"%Zd\"" : "%Zd", value);
}

static void json_rational(const char *key, const mpq_t value, FILE *out)
{
    fprintf(out, "\"%s\": ", key);
    by_series_write_rational(out, value);
    fprintf(out, ", \"%s_float\": %.12g", key, mpq_get_d(value));
}

static void json_run(const struct by_series_report *run, FILE *out)
{
    fprintf(out, ",\n \"run\": {\"periods\": %u, \"operations\": ", run->periods);
    json_integer(run->operations, out);
    fputs(", ", out);
    json_rational("throughput", run->throughput, out);
    fputs(", ", out);
    json_rational("ratio", run->ratio, out);
    fprintf(out, ", \"start_periods\": %u, \"full_periods\": %u, \"clean_periods\": %u, \"waiting\": ",
            run->start_periods, run->full_periods, run->clean_periods);
    json_integer(run->waiting, out);
    fputs("}", out);
}

void by_cli_steady_json(const struct by_cli_steady *result, FILE *out)
{
    const struct by_series *series = result->series;
    bool reduce = series->operation == BY_SERIES_REDUCE;

    fprintf(out, "{\"operation\": \"%s\", \"ports\": \"%s\", ", by_series_operation_name(series->operation),
            by_series_ports_name(series->ports));
    json_rational("throughput", series->throughput, out);
    fputs(",\n ", out);
    json_rational("optimum", series->optimum, out);
    fprintf(out, ", \"verdict\": \"%s\",\n \"period\": ", by_verdict_name(result->verdict.verdict));
    json_integer(series->period, out);
    if (result->fixed) {
        fputs(", ", out);
        json_rational("loss_at_most", result->loss, out);
    }
    fprintf(out, ", \"stages\": %u, \"matching_count\": %u, \"%s_count\": %u", by_series_depth(series),
            series->slot_count, reduce ? "tree" : "route", series->lane_count);
    fputs(",\n \"matchings\": ", out);
    by_series_write_slots(series, result->topology, out);
    fputs(reduce ? ",\n \"trees\": " : ",\n \"trees\": [],\n \"routes\": ", out);
    by_series_write_lanes(series, result->topology, out);
    if (result->has_run)
        json_run(&result->run, out);
    fprintf(out, ",\n \"seconds\": %.3f}\n", result->seconds);
}
