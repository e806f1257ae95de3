/*
 * Reads a series of `banyan sim` and draws it: above, the queues of the links with the longest
 * ones; below, the utilisation of the busiest links. Positions are floating point, for drawing
 * only. See course.h.
 */
#include "control/view/plot/course.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/view/plot/color.h"
#include "control/view/plot/layout.h"
#include "control/view/plot/svg.h"
#include "offload/base/errors.h"

/* Columns of a chart: samples of the same column are combined. */
#define COLUMNS     430u
#define LINES_MAX   BY_PLOT_TREES_MAX
#define WIDTH       860.0
#define HEIGHT      230.0
#define LEFT        76.0
#define RIGHT       220.0
#define FIELD_COUNT 7u

struct course_row {
    double time_us, queue, part;
    uint32_t arc;
};

struct by_course {
    const struct by_topology *topology;
    uint32_t row_count, row_room;
    struct course_row *rows;
    double end_us, step_us; /* time of the last sample, and between two samples */
};

/* One chart: a value for each link and column. */
struct course_chart {
    const struct by_course *course;
    const char *title, *unit;
    double most;    /* value at the top */
    double *values; /* by arc and column */
    double *peaks;  /* by arc: what links are chosen by */
    uint32_t line_count;
    uint32_t lines[LINES_MAX]; /* arcs, the highest first */
    double y;                  /* of its top */
};

bool by_course_suits(const char *text)
{
    return strncmp(text, BY_COURSE_HEADER "\n", strlen(BY_COURSE_HEADER) + 1) == 0;
}

/* ---- reading ---- */

/* Splits a row in place into its fields (RFC 4180). Returns their number; 0 if a quote is open. */
static unsigned split(char *row, char *field[FIELD_COUNT + 1])
{
    char *write = row;
    unsigned count = 0;
    bool quoted = false;

    field[count++] = row;
    for (const char *read = row; *read != 0; read++) {
        if (*read == '"' && quoted && read[1] == '"')
            *write++ = *read++;
        else if (*read == '"')
            quoted = !quoted;
        else if (*read == ',' && !quoted && count <= FIELD_COUNT) {
            *write++ = 0;
            field[count++] = write;
        } else
            *write++ = *read;
    }
    *write = 0;
    return quoted ? 0 : count;
}

static bool read_number(const char *text, double *value)
{
    char *end;

    *value = strtod(text, &end);
    return end != text && *end == 0 && isfinite(*value) && *value >= 0;
}

/* Finds the direction of a link from the names of its nodes. */
static bool find_arc(const struct by_topology *topology, char *const field[], uint32_t *arc)
{
    double number;
    const struct by_link *link;

    if (!read_number(field[3], &number) || number >= topology->link_count || number != floor(number))
        return false;
    link = &topology->links[(uint32_t)number];
    if (strcmp(topology->nodes[link->a].name, field[1]) == 0 &&
        strcmp(topology->nodes[link->b].name, field[2]) == 0)
        *arc = link->arc_ab;
    else if (strcmp(topology->nodes[link->b].name, field[1]) == 0 &&
             strcmp(topology->nodes[link->a].name, field[2]) == 0)
        *arc = link->arc_ba;
    else
        return false;
    return *arc < topology->arc_count;
}

static int read_row(struct by_course *course, char *text, int line, struct by_problem *problem)
{
    struct course_row row;
    char *field[FIELD_COUNT + 1];

    if (split(text, field) != FIELD_COUNT || !read_number(field[0], &row.time_us) ||
        !read_number(field[4], &row.queue) || !read_number(field[6], &row.part))
        return by_problem_set(problem, BY_EINVAL, (struct by_place){line, 1},
                              "the row must have the %u fields %s", FIELD_COUNT, BY_COURSE_HEADER);
    if (!find_arc(course->topology, field, &row.arc))
        return by_problem_set(problem, BY_EINVAL, (struct by_place){line, 1},
                              "link %.20s from '%.60s' to '%.60s' does not exist: is the series of another "
                              "topology?",
                              field[3], field[1], field[2]);
    if (course->row_count > 0 && row.time_us < course->end_us)
        return by_problem_set(problem, BY_EINVAL, (struct by_place){line, 1}, "the times must not decrease");
    if (course->row_count > 0 && row.time_us > course->end_us &&
        (course->step_us <= 0 || row.time_us - course->end_us < course->step_us))
        course->step_us = row.time_us - course->end_us;
    course->end_us = row.time_us;
    BY_GROW(course->rows, course->row_count, course->row_room);
    course->rows[course->row_count++] = row;
    return 0;
}

int by_course_parse(const char *text, const struct by_topology *topology, struct by_course **out,
                    struct by_problem *problem)
{
    struct by_course *course = by_alloc(1, sizeof(*course));
    char *copy = by_alloc(strlen(text) + 1, 1), *row = copy;
    int line = 1, error = 0;

    memcpy(copy, text, strlen(text) + 1);
    course->topology = topology;
    for (char *end; error == 0 && (end = strchr(row, '\n')) != NULL; row = end + 1, line++) {
        *end = 0;
        if (line > 1)
            error = read_row(course, row, line, problem);
    }
    if (error == 0 && *row != 0)
        error =
            by_problem_set(problem, BY_EINVAL, (struct by_place){line, 1}, "the last row is not complete");
    if (error == 0 && course->row_count == 0)
        error = by_problem_say(problem, BY_EINVAL, "the series has no samples: lower --sample-ns");
    free(copy);
    if (error != 0) {
        by_course_free(course);
        return error;
    }
    *out = course;
    return 0;
}

void by_course_free(struct by_course *course)
{
    if (!course)
        return;
    free(course->rows);
    free(course);
}

/* ---- drawing ---- */

static uint32_t column_of(const struct by_course *course, double time_us)
{
    double column = time_us / course->end_us * COLUMNS;

    return column >= COLUMNS ? COLUMNS - 1 : (uint32_t)column;
}

/* Adds a sample, which stands for the time since the one before it: to the mean of each column for
 * loads, to the maximum for queues. */
static void add_sample(struct course_chart *chart, const struct course_row *row, bool is_queue)
{
    const struct by_course *course = chart->course;
    double width_us = course->end_us / COLUMNS, from_us = fmax(row->time_us - course->step_us, 0);
    double *values = &chart->values[(size_t)row->arc * COLUMNS];

    for (uint32_t c = column_of(course, from_us); c <= column_of(course, row->time_us); c++) {
        double part = (fmin(row->time_us, (c + 1) * width_us) - fmax(from_us, c * width_us)) / width_us;

        if (is_queue)
            values[c] = fmax(values[c], row->queue);
        else
            values[c] += row->part * fmax(part, 0);
        chart->most = fmax(chart->most, values[c]);
    }
}

/* Fills the values of a chart, and chooses its lines: the longest queues, or the highest sums. */
static void fill(struct course_chart *chart, bool queues)
{
    const struct by_course *course = chart->course;
    uint32_t arcs = course->topology->arc_count;

    chart->values = by_alloc((size_t)arcs * COLUMNS, sizeof(double));
    chart->peaks = by_alloc(arcs, sizeof(double));
    for (uint32_t i = 0; i < course->row_count; i++) {
        const struct course_row *row = &course->rows[i];
        double *peak = &chart->peaks[row->arc];

        add_sample(chart, row, queues);
        *peak = queues ? fmax(*peak, row->queue) : *peak + row->part;
    }
    while (chart->line_count < LINES_MAX) {
        uint32_t best = UINT32_MAX;

        for (uint32_t a = 0; a < arcs; a++) {
            bool taken = chart->peaks[a] <= 0;

            for (uint32_t l = 0; l < chart->line_count; l++)
                taken |= chart->lines[l] == a;
            if (!taken && (best == UINT32_MAX || chart->peaks[a] > chart->peaks[best]))
                best = a;
        }
        if (best == UINT32_MAX)
            break;
        chart->lines[chart->line_count++] = best;
    }
}

static void draw_line(const struct course_chart *chart, uint32_t line, FILE *out)
{
    const double *values = &chart->values[(size_t)chart->lines[line] * COLUMNS];
    const struct by_arc *arc = &chart->course->topology->arcs[chart->lines[line]];
    char from[BY_LABEL_BYTES], to[BY_LABEL_BYTES], text[2 * BY_LABEL_BYTES + 8];
    double y = chart->y + 14 + 19 * line;

    fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.3\" points=\"", by_tree_color(line));
    for (uint32_t c = 0; c < COLUMNS; c++)
        fprintf(out, "%s%.1f,%.1f", c > 0 ? " " : "", LEFT + (c + 0.5) * WIDTH / COLUMNS,
                chart->y + HEIGHT * (1 - values[c] / chart->most));
    fputs("\"/>\n", out);
    snprintf(text, sizeof(text), "%s \u2192 %s",
             by_layout_label(chart->course->topology->nodes[arc->from].name, from),
             by_layout_label(chart->course->topology->nodes[arc->to].name, to));
    fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"13\" height=\"4\" fill=\"%s\"/>\n", LEFT + WIDTH + 14,
            y - 6, by_tree_color(line));
    by_svg_text(out, LEFT + WIDTH + 33, y,
                &(struct by_svg_text){.size = 12, .anchor = BY_ANCHOR_START, .fill = BY_COLOR_TEXT}, text);
}

/* Returns a distance of round values, of which `most` has `least` or more. */
static double round_step(double most, double least)
{
    double step = pow(10, floor(log10(most)));

    while (most / step < least)
        step /= 2;
    return step;
}

/* Draws lines at round values, with their labels. */
static void draw_scale(const struct course_chart *chart, FILE *out)
{
    double step = round_step(chart->most, 3);

    for (unsigned i = 0; i * step <= chart->most * (1 + 1e-9); i++) {
        double value = i * step, y = chart->y + HEIGHT * (1 - value / chart->most);
        char text[40];

        fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#e6eaee\"/>\n", LEFT, y,
                LEFT + WIDTH, y);
        snprintf(text, sizeof(text), "%.3g%s",
                 value >= 1e6   ? value / 1e6
                 : value >= 1e3 ? value / 1e3
                                : value,
                 value >= 1e6   ? " M"
                 : value >= 1e3 ? " k"
                                : "");
        by_svg_text(out, LEFT - 8, y + 4,
                    &(struct by_svg_text){.size = 11, .anchor = BY_ANCHOR_END, .fill = BY_COLOR_MUTED}, text);
    }
    by_svg_text(
        out, LEFT, chart->y - 12,
        &(struct by_svg_text){.size = 13, .anchor = BY_ANCHOR_START, .fill = BY_COLOR_TEXT, .bold = 1},
        chart->title);
    by_svg_text(out, LEFT + WIDTH, chart->y - 12,
                &(struct by_svg_text){.size = 12, .anchor = BY_ANCHOR_END, .fill = BY_COLOR_MUTED},
                chart->unit);
}

static void draw_times(const struct by_course *course, double y, FILE *out)
{
    double step = round_step(course->end_us, 4);

    for (unsigned i = 0; i * step <= course->end_us * (1 + 1e-9); i++) {
        double time = i * step;
        char text[40];

        snprintf(text, sizeof(text), "%.4g", time);
        by_svg_text(out, LEFT + time / course->end_us * WIDTH, y,
                    &(struct by_svg_text){.size = 11, .anchor = BY_ANCHOR_MIDDLE, .fill = BY_COLOR_MUTED},
                    text);
    }
    by_svg_text(out, LEFT + WIDTH + 33, y,
                &(struct by_svg_text){.size = 11, .anchor = BY_ANCHOR_START, .fill = BY_COLOR_MUTED},
                "time in us");
}

static void draw_chart(struct course_chart *chart, FILE *out)
{
    draw_scale(chart, out);
    for (uint32_t l = chart->line_count; l-- > 0;)
        draw_line(chart, l, out);
    draw_times(chart->course, chart->y + HEIGHT + 20, out);
    free(chart->values);
    free(chart->peaks);
}

void by_course_write(const struct by_course *course, FILE *out)
{
    struct course_chart queues = {.course = course, .title = "The longest queues", .unit = "bytes", .y = 84};
    struct course_chart loads = {.course = course,
                                 .title = "The busiest links",
                                 .y = 84 + HEIGHT + 76,
                                 .unit = "part of the bandwidth",
                                 .most = 1};
    char title[320];

    fill(&queues, true);
    fill(&loads, false);
    queues.most = queues.most > 0 ? queues.most : 1;
    snprintf(title, sizeof(title), "A simulated call on %.200s", course->topology->name);
    by_svg_begin(out, LEFT + WIDTH + RIGHT, loads.y + HEIGHT + 48, title);
    by_svg_text(
        out, LEFT, 36,
        &(struct by_svg_text){.size = 16, .anchor = BY_ANCHOR_START, .fill = BY_COLOR_TEXT, .bold = 1},
        title);
    draw_chart(&queues, out);
    draw_chart(&loads, out);
    by_svg_end(out);
}
