/*
 * Writes the samples of a simulated call as CSV: a row for each sample and each direction of a link
 * that sends or has a queue. Directions are named by their nodes, rates are in the topology's unit.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "control/cli/sim.h"
#include "control/view/plot/course.h"

/* Writes a field of a CSV file; quoted if it contains a comma, a quote or a line break (RFC 4180).
 */
static void write_field(FILE *stream, const char *text)
{
    if (text[strcspn(text, ",\"\r\n")] == 0) {
        fputs(text, stream);
        return;
    }
    putc('"', stream);
    for (; *text != 0; text++) {
        if (*text == '"')
            putc('"', stream);
        putc(*text, stream);
    }
    putc('"', stream);
}

static void write_row(const struct sim *sim, uint64_t at_ns, uint32_t index, uint64_t queue, uint64_t busy_ps,
                      FILE *stream)
{
    const struct by_arc *arc = &sim->topology->arcs[index];
    double part = (double)busy_ps / 1000 / (double)sim->options.sample_ns;

    fprintf(stream, "%.3f,", (double)at_ns / 1000);
    write_field(stream, sim->topology->nodes[arc->from].name);
    putc(',', stream);
    write_field(stream, sim->topology->nodes[arc->to].name);
    fprintf(stream, ",%u,%" PRIu64 ",%.6g,%.6g\n", arc->link, queue,
            part * (double)arc->capacity / (double)sim->topology->scale, part);
}

int sim_series_write(const struct sim *sim)
{
    uint64_t at_ns, queue, busy_ps;
    char path[SIM_PATH + 16];
    struct by_output output;
    uint32_t arc;
    FILE *samples;
    int count;

    snprintf(path, sizeof(path), "%s/series", sim->folder);
    samples = fopen(path, "re");
    if (samples == NULL)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "%s: %s", path, strerror(errno));
    if (!by_cli_create(&output, sim->options.series)) {
        fclose(samples);
        return BY_EXIT_ENVIRONMENT;
    }
    fputs(BY_COURSE_HEADER "\n", output.stream);
    while ((count = fscanf(samples, "%" SCNu64 " %" SCNu32 " %" SCNu64 " %" SCNu64, &at_ns, &arc, &queue,
                           &busy_ps)) == 4 &&
           arc < sim->topology->arc_count)
        write_row(sim, at_ns, arc, queue, busy_ps, output.stream);
    fclose(samples);
    if (count != EOF)
        by_cli_fail(BY_EXIT_ENVIRONMENT, "%s: not the samples of banyan-sim", path);
    return by_cli_finish(&output, count == EOF);
}
