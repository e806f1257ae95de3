/*
 * Draws Gantt charts of periodic schedules. See gantt.h. Positions are floating point, for drawing
 * only.
 */
#include "control/view/plot/gantt.h"

#include "control/study/series/rational.h"
#include "control/view/plot/color.h"
#include "control/view/plot/layout.h"
#include "control/view/plot/panel.h"

/* Most rows of one chart (count), which fit on a page; the busiest ones are shown. */
#define ROWS_MAX    160u
#define ROW_HEIGHT  24.0
#define BAR_HEIGHT  17.0
#define CHART_WIDTH 860.0
#define HEAD_HEIGHT 74.0
#define MARGIN      24.0
#define TEXT_BYTES  320u

struct gantt_row {
    uint32_t from, to; /* `to` is BY_SERIES_NONE for a processor */
    double busy;       /* part of the period in which it is busy */
};

struct chart {
    const struct by_series *series;
    const struct by_topology *topology;
    FILE *out;
    uint32_t row_count, row_room, hidden;
    struct gantt_row *rows;
    double period, left; /* left: x coordinate of the rows */
    uint32_t *color;     /* by lane */
    uint32_t color_count;
};

/* ---- rows ---- */

static struct gantt_row *find_row(struct chart *chart, uint32_t from, uint32_t to)
{
    for (uint32_t r = 0; r < chart->row_count; r++)
        if (chart->rows[r].from == from && chart->rows[r].to == to)
            return &chart->rows[r];
    return NULL;
}

static void add_busy(struct chart *chart, uint32_t from, uint32_t to, double time)
{
    struct gantt_row *row = find_row(chart, from, to);

    if (!row) {
        BY_GROW(chart->rows, chart->row_count, chart->row_room);
        row = &chart->rows[chart->row_count++];
        *row = (struct gantt_row){from, to, 0};
    }
    row->busy += time / chart->period;
}

/* Computes how long a node combines in a period for a task of a lane. */
static double combine_time(const struct chart *chart, const struct by_series_lane *lane,
                           const struct by_series_task *task)
{
    const struct by_node *node = &chart->topology->nodes[task->node];
    double amount = mpz_get_d(lane->amount);

    if (node->has_task_time)
        return amount * (double)node->task_time.num / (double)node->task_time.den;
    if (node->aggregate_rate.num == 0)
        return 0;
    return amount * mpq_get_d(chart->series->messages[task->message].size) *
           (double)node->aggregate_rate.den / (double)node->aggregate_rate.num;
}

static int compare_busy(const void *left, const void *right)
{
    const struct gantt_row *a = left, *b = right;

    return a->busy < b->busy ? 1 : a->busy > b->busy ? -1 : 0;
}

/* Sorts by sender; a node's processor follows its links. */
static int compare_places(const void *left, const void *right)
{
    const struct gantt_row *a = left, *b = right;

    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}

static void list_rows(struct chart *chart)
{
    const struct by_series *series = chart->series;

    for (uint32_t s = 0; s < series->slot_count; s++)
        for (uint32_t b = 0; b < series->slots[s].busy_count; b++)
            add_busy(chart, series->slots[s].busy[b].from, series->slots[s].busy[b].to,
                     mpq_get_d(series->slots[s].duration));
    for (uint32_t l = 0; l < series->lane_count; l++)
        for (uint32_t t = 0; t < series->lanes[l].task_count; t++)
            if (series->lanes[l].tasks[t].to == BY_SERIES_NONE)
                add_busy(chart, series->lanes[l].tasks[t].node, BY_SERIES_NONE,
                         combine_time(chart, &series->lanes[l], &series->lanes[l].tasks[t]));
    if (chart->row_count > ROWS_MAX) {
        qsort(chart->rows, chart->row_count, sizeof(*chart->rows), compare_busy);
        chart->hidden = chart->row_count - ROWS_MAX;
        chart->row_count = ROWS_MAX;
    }
    if (chart->row_count > 0)
        qsort(chart->rows, chart->row_count, sizeof(*chart->rows), compare_places);
}

static void row_label(const struct chart *chart, const struct gantt_row *row, char text[TEXT_BYTES])
{
    char from[BY_LABEL_BYTES], to[BY_LABEL_BYTES];

    by_layout_label(chart->topology->nodes[row->from].name, from);
    if (row->to == BY_SERIES_NONE)
        snprintf(text, TEXT_BYTES, "%s combines", from);
    else
        snprintf(text, TEXT_BYTES, "%s \u2192 %s", from,
                 by_layout_label(chart->topology->nodes[row->to].name, to));
}

static double measure_labels(const struct chart *chart)
{
    double widest = 60;

    for (uint32_t r = 0; r < chart->row_count; r++) {
        char text[TEXT_BYTES];
        double width;

        row_label(chart, &chart->rows[r], text);
        width = by_layout_text_width(text, 12);
        widest = width > widest ? width : widest;
    }
    return widest;
}

/* ---- colours: one for each tree (reduce), receiver (scatter) or sender (gossip) ---- */

static void choose_colors(struct chart *chart)
{
    const struct by_series *series = chart->series;
    uint32_t *of_node = by_alloc(chart->topology->node_count, sizeof(*of_node));

    chart->color = by_alloc(series->lane_count, sizeof(*chart->color));
    for (uint32_t l = 0; l < series->lane_count; l++) {
        const struct by_series_message *message = &series->messages[series->lanes[l].tasks[0].message];
        uint32_t node = series->operation == BY_SERIES_SCATTER ? message->to : message->from;

        if (series->operation == BY_SERIES_REDUCE) {
            chart->color[l] = chart->color_count++;
            continue;
        }
        if (!of_node[node])
            of_node[node] = ++chart->color_count;
        chart->color[l] = of_node[node] - 1;
    }
    free(of_node);
}

static void color_name(const struct chart *chart, uint32_t lane, char text[TEXT_BYTES])
{
    const struct by_series *series = chart->series;
    const struct by_series_message *message = &series->messages[series->lanes[lane].tasks[0].message];

    if (series->operation == BY_SERIES_REDUCE) {
        mpq_t weight;

        mpq_init(weight);
        mpz_set(mpq_numref(weight), series->lanes[lane].amount);
        mpz_set(mpq_denref(weight), series->period);
        mpq_canonicalize(weight);
        gmp_snprintf(text, TEXT_BYTES, "tree %u, %Qd", lane, weight);
        mpq_clear(weight);
    } else {
        snprintf(text, TEXT_BYTES, series->operation == BY_SERIES_SCATTER ? "to %s" : "from %s",
                 chart->topology->nodes[series->operation == BY_SERIES_SCATTER ? message->to : message->from]
                     .name);
    }
}

static void draw_legend(const struct chart *chart, double y)
{
    double x = chart->left;

    for (uint32_t c = 0; c < chart->color_count && c < BY_PLOT_TREES_MAX; c++) {
        char text[TEXT_BYTES];
        uint32_t lane = 0;

        while (chart->color[lane] != c)
            lane++;
        color_name(chart, lane, text);
        fprintf(chart->out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"13\" height=\"13\" rx=\"2\" fill=\"%s\"/>\n",
                x, y - 11, by_tree_color(c));
        by_svg_text(chart->out, x + 18, y,
                    &(struct by_svg_text){.size = 12, .anchor = BY_ANCHOR_START, .fill = BY_COLOR_TEXT},
                    text);
        x += 34 + by_layout_text_width(text, 12);
    }
    if (chart->color_count > BY_PLOT_TREES_MAX)
        by_svg_text(chart->out, x, y,
                    &(struct by_svg_text){.size = 12, .anchor = BY_ANCHOR_START, .fill = BY_COLOR_MUTED},
                    "\u2026 colours repeat");
}

/* ---- bars ---- */

static double place(const struct chart *chart, double time)
{
    return chart->left + time / chart->period * CHART_WIDTH;
}

/* Draws a bar of `lane` in a row, with a description of its data. */
static void draw_bar(const struct chart *chart, const struct gantt_row *row, uint32_t lane, double start,
                     double time, uint32_t message, const char *how)
{
    double x = place(chart, start), width = time / chart->period * CHART_WIDTH;
    double y = HEAD_HEIGHT + (double)(row - chart->rows) * ROW_HEIGHT + (ROW_HEIGHT - BAR_HEIGHT) / 2;
    char name[BY_SERIES_NAME_BYTES], label[TEXT_BYTES];

    by_series_message_name(chart->series, chart->topology, message, name);
    row_label(chart, row, label);
    fprintf(
        chart->out,
        "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" rx=\"2\" fill=\"%s\" stroke=\"#ffffff\" "
        "stroke-width=\"%s\"><title>",
        x, y, width, BAR_HEIGHT, by_tree_color(chart->color[lane]), width > 3 ? "1" : "0");
    by_svg_escape(chart->out, label);
    fprintf(chart->out, ": %s ", how);
    by_svg_escape(chart->out, name);
    fprintf(chart->out, ", lane %u, %.6g from %.6g on</title></rect>\n", lane, time, start);
    if (by_layout_text_width(name, 10.5) + 4 < width)
        by_svg_text(chart->out, x + width / 2, y + BAR_HEIGHT - 5,
                    &(struct by_svg_text){.size = 10.5, .anchor = BY_ANCHOR_MIDDLE, .fill = "#ffffff"}, name);
}

static void draw_transfers(struct chart *chart)
{
    const struct by_series *series = chart->series;
    double start = 0;

    for (uint32_t s = 0; s < series->slot_count; s++) {
        const struct by_series_slot *slot = &series->slots[s];

        for (uint32_t b = 0; b < slot->busy_count; b++) {
            const struct by_series_busy *busy = &slot->busy[b];
            const struct gantt_row *row = find_row(chart, busy->from, busy->to);
            double at = start;

            for (uint32_t p = 0; p < busy->part_count && row; p++) {
                const struct by_series_part *part = &busy->parts[p];
                double time = mpq_get_d(part->time);

                draw_bar(chart, row, part->lane, at, time,
                         series->lanes[part->lane].tasks[part->task].message, "sends");
                at += time;
            }
        }
        start += mpq_get_d(slot->duration);
    }
}

/* Draws the combinations: a processor executes its tasks lane by lane. */
static void draw_combinations(struct chart *chart)
{
    const struct by_series *series = chart->series;
    double *at = by_alloc(chart->topology->node_count, sizeof(*at));

    for (uint32_t l = 0; l < series->lane_count; l++)
        for (uint32_t t = 0; t < series->lanes[l].task_count; t++) {
            const struct by_series_task *task = &series->lanes[l].tasks[t];
            const struct gantt_row *row;
            double time;

            if (task->to != BY_SERIES_NONE)
                continue;
            row = find_row(chart, task->node, BY_SERIES_NONE);
            time = combine_time(chart, &series->lanes[l], task);
            if (row && time > 0)
                draw_bar(chart, row, l, at[task->node], time, task->message, "makes");
            at[task->node] += time;
        }
    free(at);
}

/* ---- background ---- */

/*
 * Draws a line at a time, with the time above it if there is room between `low` and `high`. Returns
 * the x coordinate of the text's end.
 */
static double draw_time(const struct chart *chart, const mpq_t time, double low, double high)
{
    double x = place(chart, mpq_get_d(time)), half;
    char text[TEXT_BYTES];

    gmp_snprintf(text, sizeof(text), "%Qd", time);
    if (strlen(text) > 9)
        snprintf(text, sizeof(text), "%.4g", mpq_get_d(time));
    half = by_layout_text_width(text, 11) / 2;
    fprintf(chart->out,
            "<line x1=\"%.2f\" y1=\"%.1f\" x2=\"%.2f\" y2=\"%.1f\" stroke=\"#c3ccd5\" "
            "stroke-dasharray=\"3 3\"/>\n",
            x, HEAD_HEIGHT - 6, x, HEAD_HEIGHT + chart->row_count * ROW_HEIGHT);
    if (x - half < low + 6 || x + half > high - 6)
        return low;
    by_svg_text(chart->out, x, HEAD_HEIGHT - 11,
                &(struct by_svg_text){.size = 11, .anchor = BY_ANCHOR_MIDDLE, .fill = BY_COLOR_MUTED}, text);
    return x + half;
}

/*
 * Draws the matchings: every second one is shaded. Times are shown above if there is room; the end
 * of the period always is.
 */
static void draw_matchings(const struct chart *chart)
{
    const struct by_series *series = chart->series;
    double last = -100, end = place(chart, chart->period) - 30;
    mpq_t at;

    mpq_init(at);
    for (uint32_t s = 0; s < series->slot_count; s++) {
        const struct by_series_slot *slot = &series->slots[s];

        if (s % 2)
            fprintf(chart->out,
                    "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"#f1f4f7\"/>\n",
                    place(chart, mpq_get_d(at)), HEAD_HEIGHT,
                    mpq_get_d(slot->duration) / chart->period * CHART_WIDTH, chart->row_count * ROW_HEIGHT);
        last = draw_time(chart, at, last, end);
        mpq_add(at, at, slot->duration);
    }
    draw_time(chart, at, last, end);
    mpq_set_z(at, series->period);
    draw_time(chart, at, -100, place(chart, 2 * chart->period));
    mpq_clear(at);
}

static void draw_rows(const struct chart *chart)
{
    for (uint32_t r = 0; r < chart->row_count; r++) {
        double y = HEAD_HEIGHT + r * ROW_HEIGHT;
        char text[TEXT_BYTES];

        row_label(chart, &chart->rows[r], text);
        by_svg_text(chart->out, chart->left - 10, y + ROW_HEIGHT - 8,
                    &(struct by_svg_text){.size = 12, .anchor = BY_ANCHOR_END, .fill = BY_COLOR_TEXT}, text);
        if (r > 0)
            fprintf(chart->out,
                    "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                    "stroke-width=\"%s\"/>\n",
                    MARGIN, y, chart->left + CHART_WIDTH, y,
                    chart->rows[r].from == chart->rows[r - 1].from ? "#e6eaee" : BY_COLOR_LINK,
                    chart->rows[r].from == chart->rows[r - 1].from ? "0.8" : "1.2");
        snprintf(text, sizeof(text), chart->rows[r].busy < 0.005 ? "<1%%" : "%.0f%%",
                 100 * chart->rows[r].busy);
        by_svg_text(chart->out, chart->left + CHART_WIDTH + 8, y + ROW_HEIGHT - 8,
                    &(struct by_svg_text){.size = 11, .anchor = BY_ANCHOR_START, .fill = BY_COLOR_MUTED},
                    text);
    }
}

static void draw_head(const struct chart *chart, double width)
{
    const struct by_series *series = chart->series;
    char text[TEXT_BYTES];

    gmp_snprintf(text, sizeof(text), "%s on %.60s: throughput %Qd, period %Zd, %u matching%s",
                 by_series_operation_name(series->operation), chart->topology->name, series->throughput,
                 series->period, series->slot_count, series->slot_count == 1 ? "" : "s");
    by_svg_text(
        chart->out, width / 2, 30,
        &(struct by_svg_text){.size = 16, .anchor = BY_ANCHOR_MIDDLE, .fill = BY_COLOR_TEXT, .bold = 1},
        text);
}

void by_gantt_write(const struct by_series *series, const struct by_topology *topology, FILE *out)
{
    struct chart chart = {.series = series, .topology = topology, .out = out};
    double width, height, bottom;
    char title[TEXT_BYTES];

    chart.period = mpz_get_d(series->period);
    list_rows(&chart);
    choose_colors(&chart);
    chart.left = MARGIN + measure_labels(&chart) + 10;
    width = chart.left + CHART_WIDTH + 44 + MARGIN;
    bottom = HEAD_HEIGHT + chart.row_count * ROW_HEIGHT;
    height = bottom + 34 + MARGIN;
    snprintf(title, sizeof(title), "%s on %.80s, one period", by_series_operation_name(series->operation),
             topology->name);
    by_svg_begin(out, width, height, title);
    draw_head(&chart, width);
    draw_matchings(&chart);
    draw_rows(&chart);
    draw_transfers(&chart);
    draw_combinations(&chart);
    draw_legend(&chart, bottom + 28);
    if (chart.hidden > 0) {
        snprintf(title, sizeof(title), "%u less busy rows are not shown", chart.hidden);
        by_svg_text(out, chart.left + CHART_WIDTH, bottom + 28,
                    &(struct by_svg_text){.size = 12, .anchor = BY_ANCHOR_END, .fill = BY_COLOR_MUTED},
                    title);
    }
    by_svg_end(out);
    free(chart.rows);
    free(chart.color);
}
