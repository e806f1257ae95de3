/* Draws a summary: frames, bundles of links, groups, labels. See summary.h. */
#include <math.h>

#include "control/base/alloc.h"
#include "control/view/plot/classes.h"
#include "control/view/plot/layout.h"
#include "control/view/plot/panel.h"
#include "control/view/plot/summary.h"
#include "control/view/plot/svg.h"

#define TEXT_BYTES 400
/* Most labels of bundles that differ only in their numbers; beyond it they share one label. */
#define LABELS_EACH 4u

/* Draws the frame of one copy; if there are several copies, two more frames behind it. */
static void draw_frame(const struct by_summary *summary, uint32_t number, FILE *out)
{
    const struct by_plot_frame *frame = &summary->frames[number];

    if (number == 0 || frame->bare)
        return; /* the whole fabric needs no frame */
    for (int behind = frame->copies > 1 ? 2 : 0; behind >= 0; behind--)
        fprintf(out,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"10\" fill=\"%s\" "
                "stroke=\"#cfd8e0\" stroke-width=\"1.2\"/>\n",
                frame->x - frame->width / 2 + 5 * behind, frame->y - 4 * behind, frame->width, frame->height,
                frame->parent == 0 ? "#f4f7f9" : "#ffffff");
}

/* Writes the number of copies, per copy of the enclosing frame if that is a whole number. */
static void number_frame(const struct by_summary *summary, uint32_t number, FILE *out)
{
    const struct by_plot_frame *frame = &summary->frames[number];
    uint32_t around = number ? summary->frames[frame->parent].copies : 1;
    char text[60];

    if (number == 0 || frame->bare || frame->copies == around)
        return;
    if (frame->copies % around == 0)
        snprintf(text, sizeof(text), "\xc3\x97%u", frame->copies / around);
    else
        snprintf(text, sizeof(text), "\xc3\x97%u in all", frame->copies);
    by_svg_text(out, frame->x - frame->width / 2 + 12, frame->y + 20,
                &(struct by_svg_text){
                    .size = 14, .anchor = BY_ANCHOR_START, .fill = BY_COLOR_TEXT, .bold = 1, .halo = 1},
                text);
}

static void range_text(char text[TEXT_BYTES], double low, double high, const char *unit)
{
    char numbers[2][BY_NUMBER_TEXT_BYTES];

    if (high - low < 1e-9 * high)
        snprintf(text, TEXT_BYTES, "%s%s", by_number_text(high, numbers[0]), unit);
    else
        snprintf(text, TEXT_BYTES, "%s\xe2\x80\x93%s%s", by_number_text(low, numbers[0]),
                 by_number_text(high, numbers[1]), unit);
}

/* Rounds for labels: 24.3 becomes 24, 1.181 becomes 1.2. A value below 100 never becomes 100. */
static double percent(double part)
{
    double value = 100 * part, shown = value >= 10 ? floor(value + 0.5) : floor(10 * value + 0.5) / 10;

    return shown >= 100 && part < 1 - 1e-9 ? 99 : shown;
}

static void bundle_tip(const struct by_summary *summary, const struct by_bundle *bundle, char *text,
                       size_t bytes)
{
    const struct by_topology *topology = summary->fabric->topology;
    char range[TEXT_BYTES];
    size_t at;

    range_text(range, bundle->capacity_min, bundle->capacity_max, "");
    at = (size_t)snprintf(text, bytes, "%u x %.40s - %.40s, %.60s %.20s", bundle->count,
                          topology->nodes[summary->groups[bundle->a].sample].name,
                          topology->nodes[summary->groups[bundle->b].sample].name, range, topology->unit);
    for (unsigned way = 0; way < 2 && summary->fabric->plan && at < bytes; way++)
        if (bundle->way[way].count)
            at += (size_t)snprintf(text + at, bytes - at, "; %s: used to %.3g%% to %.3g%%, mean %.3g%%",
                                   way ? "back" : "there", 100 * bundle->way[way].part_min,
                                   100 * bundle->way[way].part_max,
                                   100 * bundle->way[way].part_sum / bundle->way[way].count);
}

static void draw_line(FILE *out, double x0, double y0, double x1, double y1, const char *color, double width,
                      const char *tip)
{
    struct by_curve curve = {{x0, y0}, {(x0 + x1) / 2, (y0 + y1) / 2}, {x1, y1}};

    by_svg_curve(out, &curve, color, width, NULL, tip);
}

/*
 * Draws links to other copies of the frame: a line that leaves the frame, described by its label.
 */
#define STUB_RISE 24.0

static void draw_stub(const struct by_summary *summary, const struct by_plot_group *group, const char *color,
                      double width, const char *tip, FILE *out)
{
    double x = group->x + fmax(group->half_width - 8, 30);

    draw_line(out, x, group->y, x, summary->frames[group->frame].y - STUB_RISE, color, width, tip);
}

/* Draws links inside a group: a loop above the group, described by its label. */
static void draw_loop(const struct by_plot_group *group, const char *color, const char *tip, FILE *out)
{
    fprintf(out,
            "<path d=\"M%.1f %.1fc-26 -42 52 -42 26 0\" fill=\"none\" stroke=\"%s\" "
            "stroke-width=\"4\"><title>",
            group->x - 13, group->y - group->half_height, color);
    by_svg_escape(out, tip);
    fputs("</title></path>\n", out);
}

static void draw_bundle(const struct by_summary *summary, const struct by_bundle *bundle, FILE *out)
{
    const struct by_plot_group *a = &summary->groups[bundle->a], *b = &summary->groups[bundle->b];
    bool loaded = summary->fabric->plan != NULL;
    double width = by_link_width(summary->fabric, bundle->capacity_max) * 0.8;
    double length = fmax(hypot(b->x - a->x, b->y - a->y), 1), nx = -(b->y - a->y) / length,
           ny = (b->x - a->x) / length;
    char tip[TEXT_BYTES], color[BY_COLOR_BYTES];

    bundle_tip(summary, bundle, tip, sizeof(tip));
    if (bundle->a == bundle->b) {
        double most = fmax(bundle->way[0].part_max, bundle->way[1].part_max);

        if (bundle->apart)
            draw_stub(summary, a, loaded ? by_load_color(most, color) : BY_COLOR_LINK, width, tip, out);
        else
            draw_loop(a, loaded ? by_load_color(most, color) : BY_COLOR_LINK, tip, out);
        return;
    }
    if (!loaded) {
        draw_line(out, a->x, a->y, b->x, b->y, BY_COLOR_LINK, width, tip);
        return;
    }
    for (unsigned way = 0; way < 2; way++) {
        double shift = (way ? -1 : 1) * (width / 2 + 0.5);

        if (bundle->way[way].count)
            draw_line(out, a->x + nx * shift, a->y + ny * shift, b->x + nx * shift, b->y + ny * shift,
                      by_load_color(bundle->way[way].part_max, color), width, tip);
    }
}

/* Whether two bundles join the same frames and levels; such bundles may share a label. */
static bool alike(const struct by_summary *summary, const struct by_bundle *x, const struct by_bundle *y)
{
    const struct by_plot_group *groups = summary->groups;

    return x->apart == y->apart && groups[x->a].frame == groups[y->a].frame &&
           groups[x->b].frame == groups[y->b].frame && groups[x->a].level == groups[y->a].level &&
           groups[x->b].level == groups[y->b].level;
}

/* Extends the ranges of `sum` by those of `bundle`; the ends of `sum` stay. */
static void add_bundle(struct by_bundle *sum, const struct by_bundle *bundle)
{
    sum->capacity_min = fmin(sum->capacity_min, bundle->capacity_min);
    sum->capacity_max = fmax(sum->capacity_max, bundle->capacity_max);
    for (unsigned way = 0; way < 2; way++) {
        if (!bundle->way[way].count)
            continue;
        if (!sum->way[way].count)
            sum->way[way] = bundle->way[way];
        sum->way[way].part_min = fmin(sum->way[way].part_min, bundle->way[way].part_min);
        sum->way[way].part_max = fmax(sum->way[way].part_max, bundle->way[way].part_max);
    }
}

/* Writes how many of these links one lower node has, and their utilisation. */
static void bundle_text(const struct by_summary *summary, const struct by_bundle *bundle, char *text,
                        size_t bytes)
{
    const struct by_plot_group *a = &summary->groups[bundle->a], *b = &summary->groups[bundle->b];
    const struct by_plot_group *lower =
        a->level < b->level || (a->level == b->level && a->count >= b->count) ? a : b;
    double each = (double)bundle->count * (bundle->a == bundle->b ? 2 : 1) / lower->count, low, high;
    char range[TEXT_BYTES];
    size_t at = 0;

    if (fabs(each - 1) > 0.001)
        at += (size_t)snprintf(text + at, bytes - at,
                               fabs(each - floor(each + 0.5)) < 1e-6 ? "%.0f \xc3\x97 " : "%.2g \xc3\x97 ",
                               each);
    if (!summary->fabric->plan) {
        range_text(range, bundle->capacity_min, bundle->capacity_max, "");
        snprintf(text + at, bytes - at, "%.60s", range);
        return;
    }
    low = !bundle->way[1].count   ? bundle->way[0].part_min
          : !bundle->way[0].count ? bundle->way[1].part_min
                                  : fmin(bundle->way[0].part_min, bundle->way[1].part_min);
    high = fmax(bundle->way[0].part_max, bundle->way[1].part_max);
    range_text(range, percent(low), percent(high), "%");
    snprintf(text + at, bytes - at, "%.60s", range);
}

/*
 * Chooses the label of a bundle: its own if similar bundles have few different labels, else one for
 * all of them. Returns false if an earlier bundle has the same label.
 */
static bool choose_label(const struct by_summary *summary, uint32_t number, char text[TEXT_BYTES])
{
    const struct by_bundle *self = &summary->bundles[number];
    struct by_bundle sum = *self;
    char own[TEXT_BYTES], other[TEXT_BYTES];
    uint32_t different = 0;
    bool first = true, told = false;

    bundle_text(summary, self, own, sizeof(own));
    for (uint32_t i = 0; i < summary->bundle_count; i++) {
        if (i == number || !alike(summary, &summary->bundles[i], self))
            continue;
        bundle_text(summary, &summary->bundles[i], other, sizeof(other));
        different += strcmp(own, other) != 0;
        told |= i < number && strcmp(own, other) == 0;
        first &= i > number;
        add_bundle(&sum, &summary->bundles[i]);
    }
    if (different < LABELS_EACH) {
        snprintf(text, TEXT_BYTES, "%s", own);
        return !told;
    }
    bundle_text(summary, &sum, text, TEXT_BYTES);
    return first;
}

struct mark {
    double x, y, half;
};

static void label_bundles(const struct by_summary *summary, FILE *out)
{
    struct mark *marks =
        by_alloc((size_t)summary->bundle_count + summary->group_count + summary->frame_count, sizeof(*marks));
    uint32_t count = 0;

    for (uint32_t f = 1; f < summary->frame_count; f++) /* room for the number of copies */
        marks[count++] = (struct mark){summary->frames[f].x - summary->frames[f].width / 2 + 34,
                                       summary->frames[f].y + 16, 28};

    for (uint32_t i = 0; i < summary->group_count; i++)
        marks[count++] =
            (struct mark){summary->groups[i].x, summary->groups[i].y, summary->groups[i].half_width};
    for (uint32_t i = 0; i < summary->bundle_count; i++) {
        const struct by_bundle *bundle = &summary->bundles[i];
        const struct by_plot_group *a = &summary->groups[bundle->a], *b = &summary->groups[bundle->b];
        static const double tries[] = {0.5, 0.36, 0.64, 0.25, 0.75};
        bool loop = bundle->a == bundle->b, placed = false;
        char text[TEXT_BYTES];

        if (!choose_label(summary, i, text))
            continue;
        if (loop && bundle->apart)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), " to the other groups");
        for (unsigned k = 0; k < sizeof(tries) / sizeof(tries[0]) && !placed; k++) {
            struct mark mark = {a->x + (b->x - a->x) * tries[k], a->y + (b->y - a->y) * tries[k],
                                by_layout_text_width(text, 11) / 2 + 2};

            if (loop && bundle->apart)
                mark = (struct mark){a->x + fmax(a->half_width - 8, 30),
                                     summary->frames[a->frame].y - STUB_RISE - 10, mark.half};
            else if (loop)
                mark = (struct mark){a->x, a->y - a->half_height - 38, mark.half};
            placed = true;
            for (uint32_t m = loop ? count : 0; m < count && placed; m++)
                placed =
                    fabs(marks[m].x - mark.x) > marks[m].half + mark.half || fabs(marks[m].y - mark.y) > 16;
            if (!placed)
                continue;
            marks[count++] = mark;
            by_svg_text(out, mark.x, mark.y + 4,
                        &(struct by_svg_text){
                            .size = 11, .anchor = BY_ANCHOR_MIDDLE, .fill = BY_COLOR_TEXT, .halo = 1},
                        text);
        }
    }
    free(marks);
}

static void draw_group(const struct by_summary *summary, const struct by_plot_group *group, FILE *out)
{
    const struct by_node *node = &summary->fabric->topology->nodes[group->sample];
    bool single = group->count == 1;
    enum by_symbol kind = by_fabric_symbol(summary->fabric, group->sample);
    struct by_svg_text style = {.size = 11,
                                .anchor = BY_ANCHOR_MIDDLE,
                                .fill = kind >= BY_SYMBOL_PLAIN ? BY_COLOR_TEXT : "#ffffff",
                                .bold = 1};
    char label[BY_LABEL_BYTES], number[48];

    fputs("<g><title>", out);
    snprintf(number, sizeof(number), "%u like ", group->count);
    if (!single)
        by_svg_escape(out, number);
    by_svg_escape(out, node->name);
    fputs("</title>\n", out);
    by_symbol_draw(out, kind, group->x, group->y, group->half_width, group->half_height);
    by_layout_label(node->name, label);
    if (!single && by_stem_bytes(label) < strlen(label))
        label[by_stem_bytes(label)] = 0;
    if (group->mixed)
        snprintf(label, sizeof(label), "others");
    if (group->within > 1 || (!node->compute && !summary->frames[group->frame].whole)) {
        snprintf(number, sizeof(number), "\xc3\x97%u", group->within);
        by_svg_text(out, group->x, group->y + (single ? 4 : -2), &style, label);
        if (!single)
            by_svg_text(out, group->x, group->y + 12, &style, number);
    } else if (kind == BY_SYMBOL_HOST || kind == BY_SYMBOL_OUTSIDE) {
        if (single && node->name[by_stem_bytes(node->name)])
            snprintf(number, sizeof(number), "%.8s", node->name + by_stem_bytes(node->name));
        else
            snprintf(number, sizeof(number), "%u", group->position);
        style.size = strlen(number) > 3 ? 9 : 11;
        by_svg_text(out, group->x, group->y + 4, &style, number);
    } else {
        by_svg_text(out, group->x, group->y + 4, &style, label);
    }
    fputs("</g>\n", out);
}

void by_summary_draw(const struct by_summary *summary, FILE *out)
{
    for (uint32_t f = 0; f < summary->frame_count; f++)
        draw_frame(summary, f, out);
    for (uint32_t i = 0; i < summary->group_count; i++) {
        const struct by_plot_group *group = &summary->groups[i];
        double rx = group->half_width + 11, ry = group->half_height + 11;

        if (summary->fabric->plan && group->shaded)
            fprintf(out,
                    "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%.1f\" fill=\"%s\" "
                    "opacity=\"0.2\"/>\n",
                    group->x - rx, group->y - ry, 2 * rx, 2 * ry, ry, BY_COLOR_CUT);
    }
    for (uint32_t i = 0; i < summary->bundle_count; i++)
        draw_bundle(summary, &summary->bundles[i], out);
    for (uint32_t i = 0; i < summary->group_count; i++)
        draw_group(summary, &summary->groups[i], out);
    label_bundles(summary, out);
    for (uint32_t f = 0; f < summary->frame_count; f++)
        number_frame(summary, f, out);
}
