/*
 * The option --sweep of `banyan sim`: the same call with several values of one probability, such as
 * that of a loss, and a table that compares them with the first. Single-threaded.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "control/cli/sim.h"

static const struct {
    const char *word;
    size_t at;
} words[] = {{"loss", offsetof(struct sim_options, loss)},
             {"link-loss", offsetof(struct sim_options, link_loss)},
             {"dup", offsetof(struct sim_options, dup)},
             {"reorder", offsetof(struct sim_options, reorder)},
             {"traffic", offsetof(struct sim_options, traffic)}};

int sim_sweep_read(void *object, const char *text, struct by_option_why *why)
{
    struct sim_sweep *sweep = &((struct sim_options *)object)->sweep;
    size_t bytes = strcspn(text, "=");

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i].word) == bytes && memcmp(words[i].word, text, bytes) == 0) {
            sweep->word = words[i].word;
            sweep->at = words[i].at;
        }
    if (sweep->word == NULL || text[bytes] == 0)
        return by_option_refuse(why, "it must be loss, link-loss, dup, reorder or traffic and its values, "
                                     "such as loss=0,1e-4,1e-3");
    for (text += bytes; *text != 0; text += bytes) {
        char *point;
        uint64_t parts;

        if (sweep->count == SIM_SWEEP_MAX)
            return by_option_refuse(why, "it may have at most %u values", SIM_SWEEP_MAX);
        point = sweep->text[sweep->count];
        text++; /* the character before a value */
        bytes = strcspn(text, ",");
        if (bytes >= sizeof(sweep->text[0]))
            return by_option_refuse(why, "a value may have at most %zu characters",
                                    sizeof(sweep->text[0]) - 1);
        memcpy(point, text, bytes);
        point[bytes] = 0;
        if (by_option_chance(point, &parts, why) != 0)
            return by_option_refuse(why,
                                    "each value must be a probability from 0 to 1, such as 0.01 or 1e-2");
        sweep->parts[sweep->count++] = (uint32_t)parts;
    }
    return 0;
}

static void print_row(const struct sim *sim, const struct sim_report_verdict *verdict, const char *point,
                      double first)
{
    char bound[16] = "-", relative[16] = "-";

    if (verdict->net > 0)
        snprintf(bound, sizeof(bound), "%.2f", 100 * verdict->net);
    if (first > 0)
        snprintf(relative, sizeof(relative), "%.4f", verdict->algbw / first);
    printf("%-10s %12.3f %10.3f %8s %9s %10" JSON_INTEGER_FORMAT " %9" JSON_INTEGER_FORMAT
           " %6" JSON_INTEGER_FORMAT "\n",
           point, (double)verdict->time_ps / 1e6, verdict->algbw, bound, relative,
           json_integer_value(json_object_get(sim->result, "lost")),
           json_integer_value(json_object_get(sim->result, "retransmissions")),
           json_integer_value(json_object_get(sim->result, "wrong_elements")) +
               json_integer_value(json_object_get(sim->result, "missing_chunks")));
    fflush(stdout);
}

/* Runs one point, and adds its report to `points`. `first` is the first point's rate, 0 before it.
 */
static int run_point(struct sim *sim, const char *point, double *first, json_t *points)
{
    struct sim_report_verdict verdict;
    json_t *object;
    int status = sim_run(sim);

    if (status != 0)
        return status;
    sim_report_judge(sim, &verdict);
    status = sim_report_status(sim, &verdict);
    if (*first <= 0 && status == 0)
        *first = verdict.algbw;
    if (!sim->options.json && json_is_null(json_object_get(sim->result, "error")))
        print_row(sim, &verdict, point, *first);
    object = sim_report_json(sim, &verdict);
    json_object_set_new(object, sim->options.sweep.word, json_string(point));
    json_array_append_new(points, object);
    free(verdict.rows);
    return status;
}

int sim_sweep(struct sim *sim)
{
    const struct sim_sweep *sweep = &sim->options.sweep;
    json_t *object = json_pack("{s:s, s:o}", "sweep", sweep->word, "points", json_array());
    double first = 0;
    int status = 0, failed;

    if (!sim->options.json) {
        sim_report_call(sim);
        printf("%-10s %12s %10s %8s %9s %10s %9s %6s\n", sweep->word, "time us", sim->topology->unit,
               "% bound", "of first", "lost", "again", "wrong");
    }
    for (uint32_t i = 0; i < sweep->count; i++) {
        *(uint32_t *)(void *)((char *)&sim->options + sweep->at) = sweep->parts[i];
        failed = run_point(sim, sweep->text[i], &first, json_object_get(object, "points"));
        status = status != 0 ? status : failed;
    }
    failed = sim_report_give(sim, object);
    json_decref(object);
    return status != 0 ? status : failed;
}
