/* Arranges a picture: a heading with the facts, one or two panels, a legend. See picture.h. */
#include "control/plot/picture.h"

#include <math.h>

#include "control/plot/panel.h"
#include "control/plot/svg.h"
#include "control/topology/alloc.h"
#include "control/topology/fraction.h"
#include "offload/wire/types.h"

#define PAGE_MARGIN 30.0
#define PANEL_GAP   40.0
#define HEAD_HEIGHT 84.0
#define PANEL_TITLE 30.0
#define WIDE        1500.0 /* panels stand beside each other up to this width */
#define LEGEND_ROW  26.0
#define LINE_BYTES  320

/* After Okabe and Ito, "Color universal design" (2008): told apart by colour-blind readers too. */
const char *by_tree_color(uint32_t index)
{
    static const char *const colors[BY_PLOT_TREES_MAX] = {"#0072b2", "#d55e00", "#009e73", "#b0408a",
                                                          "#d99100", "#3aa6dd", "#6a3d9a", "#7a4a2b"};

    return colors[index % BY_PLOT_TREES_MAX];
}

/* Writes legend items from left to right, in rows; with `out` NULL it only measures. */
struct legend {
    FILE *out;
    double x, y, left, right;
};

static struct by_point legend_next(struct legend *legend, double width)
{
    struct by_point at;

    if (legend->x + width > legend->right && legend->x > legend->left) {
        legend->x = legend->left;
        legend->y += LEGEND_ROW;
    }
    at = (struct by_point){legend->x, legend->y};
    legend->x += width + 26;
    return at;
}

static void legend_text(const struct legend *legend, double x, double y, const char *text)
{
    if (legend->out)
        by_svg_text(legend->out, x, y + 4,
                    &(struct by_text){.size = 12, .anchor = BY_ANCHOR_START, .fill = BY_COLOR_TEXT}, text);
}

static void legend_symbol(struct legend *legend, unsigned kind, const char *text)
{
    struct by_point at = legend_next(legend, 34 + by_layout_text_width(text, 12));

    if (legend->out)
        by_symbol_draw(legend->out, kind, at.x + 12, at.y, kind ? 13 : 9, 9);
    legend_text(legend, at.x + 32, at.y, text);
}

static void legend_line(struct legend *legend, const char *color, const char *text)
{
    struct by_point at = legend_next(legend, 34 + by_layout_text_width(text, 12));

    if (legend->out) {
        struct by_curve curve = {{at.x, at.y}, {at.x + 12, at.y}, {at.x + 24, at.y}};

        by_svg_curve(legend->out, &curve, color, 3.4, "stroke-linecap=\"round\"", NULL);
        by_svg_arrow(legend->out, (struct by_point){at.x + 20, at.y}, (struct by_point){1, 0}, 10, color);
    }
    legend_text(legend, at.x + 32, at.y, text);
}

static void legend_scale(struct legend *legend)
{
    const char *text = "load of each direction, 0 to 100% of its capacity";
    struct by_point at = legend_next(legend, 112 + by_layout_text_width(text, 12));
    char color[BY_COLOR_BYTES];

    for (unsigned i = 0; i < 20 && legend->out; i++)
        fprintf(legend->out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"5.3\" height=\"10\" fill=\"%s\"/>\n",
                at.x + 5 * i, at.y - 5, by_load_color((i + 0.5) / 20, color));
    legend_text(legend, at.x + 108, at.y, text);
}

static void legend_cut(struct legend *legend, const struct by_fabric *fabric)
{
    char text[LINE_BYTES], fraction[BY_FRACTION_TEXT_BYTES];
    struct by_point at;

    snprintf(text, sizeof(text), "bottleneck: %s %.20s %s this side, across the bars",
             by_fraction_text(fabric->plan->cut_exiting, fraction), fabric->topology->unit,
             fabric->shaded_receives ? "can enter" : "can leave");
    at = legend_next(legend, 34 + by_layout_text_width(text, 12));
    if (legend->out)
        fprintf(
            legend->out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"24\" height=\"16\" rx=\"8\" fill=\"%s\" opacity=\"0.2\"/>"
            "<path d=\"M%.1f %.1fv16\" stroke=\"%s\" stroke-width=\"2.6\" stroke-linecap=\"round\"/>\n",
            at.x, at.y - 8, BY_COLOR_CUT, at.x + 20, at.y - 8, BY_COLOR_CUT);
    legend_text(legend, at.x + 32, at.y, text);
}

static void legend_trees(struct legend *legend, const struct by_fabric *fabric)
{
    char text[LINE_BYTES], fraction[BY_FRACTION_TEXT_BYTES];
    bool mixed = false; /* some trees carry data in one direction only, others in both or the other */

    for (uint32_t i = 1; i < fabric->plan->tree_count; i++)
        mixed |= fabric->plan->trees[i].use != fabric->plan->trees[0].use;
    for (uint32_t i = 0; i < fabric->drawn_count; i++) {
        const struct by_tree *tree = &fabric->plan->trees[fabric->drawn[i]];
        bool down, up;

        by_fabric_flow(fabric, tree, &down, &up);
        snprintf(text, sizeof(text), "tree %u of %.40s: %s %.20s%s", fabric->drawn[i],
                 fabric->topology->nodes[tree->root].name, by_fraction_text(tree->weight, fraction),
                 fabric->topology->unit,
                 !mixed       ? ""
                 : down && up ? ", up and down"
                 : down       ? ", down"
                              : ", up");
        legend_line(legend, by_tree_color(i), text);
    }
    if (fabric->matching_count > fabric->drawn_count) {
        snprintf(text, sizeof(text), "and %u more", fabric->matching_count - fabric->drawn_count);
        legend_text(legend, legend_next(legend, by_layout_text_width(text, 12)).x, legend->y, text);
    }
}

static double draw_legend(const struct by_fabric *fabric, double width, double y, FILE *out)
{
    struct legend legend = {
        .out = out, .x = PAGE_MARGIN, .y = y, .left = PAGE_MARGIN, .right = width - PAGE_MARGIN};
    bool hosts = false, capable = false, plain = false;

    for (uint32_t n = 0; n < fabric->topology->node_count; n++) {
        const struct by_node *node = &fabric->topology->nodes[n];

        hosts |= node->compute;
        capable |= !node->compute && (node->multicast || node->aggregate);
        plain |= !node->compute && !node->multicast && !node->aggregate;
    }
    if (hosts)
        legend_symbol(&legend, 0, "host, with its rank");
    if (capable)
        legend_symbol(&legend, 1, "switch that sums and copies");
    if (plain)
        legend_symbol(&legend, 2, "switch that only forwards");
    if (fabric->plan != NULL) {
        legend_scale(&legend);
        if (fabric->plan->cut_count > 0)
            legend_cut(&legend, fabric);
        legend_trees(&legend, fabric);
    }
    return legend.y + LEGEND_ROW;
}

static void describe_fabric(const struct by_fabric *fabric, char line[LINE_BYTES])
{
    const struct by_topology *topology = fabric->topology;
    uint32_t hosts = by_topology_compute_count(topology), switches = topology->node_count - hosts;
    struct by_panel_facts facts;
    char number[BY_NUMBER_TEXT_BYTES];
    int used;

    by_panel_facts(fabric, &facts);
    used = snprintf(line, LINE_BYTES, "%u hosts", hosts);
    if (switches > 0)
        used += snprintf(line + used, LINE_BYTES - (size_t)used, ", %u switch%s", switches,
                         switches == 1 ? "" : "es");
    used += snprintf(line + used, LINE_BYTES - (size_t)used, ", %u link%s", topology->link_count,
                     topology->link_count == 1 ? "" : "s");
    if (facts.one_bandwidth)
        snprintf(line + used, LINE_BYTES - (size_t)used, " of %s %.20s each way",
                 by_number_text(facts.bandwidth, number), topology->unit);
    else if (fabric->plan != NULL)
        snprintf(line + used, LINE_BYTES - (size_t)used, "; lines are as wide as their bandwidth");
    else
        snprintf(line + used, LINE_BYTES - (size_t)used, "; numbers are %.20s each way", topology->unit);
}

static void describe_plan(const struct by_fabric *fabric, char line[LINE_BYTES])
{
    const struct by_plan *plan = fabric->plan;
    char achieved[BY_FRACTION_TEXT_BYTES], optimum[BY_FRACTION_TEXT_BYTES];
    struct by_panel_facts facts;
    int used;

    by_fraction_text(plan->achieved, achieved);
    by_fraction_text(plan->optimum, optimum);
    if (by_fraction_compare(plan->achieved, plan->optimum) >= 0)
        used = snprintf(line, LINE_BYTES, "%s %.20s (algbw), the proven optimum of this fabric; %u tree%s",
                        achieved, fabric->topology->unit, plan->tree_count, plan->tree_count == 1 ? "" : "s");
    else
        used = snprintf(line, LINE_BYTES, "%s %.20s (algbw), %.1f%% of the bound %s; %u trees", achieved,
                        fabric->topology->unit,
                        100 * by_fraction_value(plan->achieved) / by_fraction_value(plan->optimum), optimum,
                        plan->tree_count);
    by_panel_facts(fabric, &facts);
    if (facts.one_load && used > 0 && used < LINE_BYTES)
        snprintf(line + used, LINE_BYTES - (size_t)used, "; what is used is used to %.3g%%",
                 100 * facts.load);
}

static void panel_title(FILE *out, double width, const char *text)
{
    by_svg_text(
        out, width / 2, PANEL_TITLE - 12,
        &(struct by_text){.size = 13.5, .anchor = BY_ANCHOR_MIDDLE, .fill = BY_COLOR_MUTED, .bold = 1}, text);
}

static void draw_panels(const struct by_fabric *fabric, const struct by_layout *layout, double width,
                        bool beside, FILE *out)
{
    double step = layout->width + PANEL_GAP, both = beside ? 2 * layout->width + PANEL_GAP : layout->width;
    double x = fabric->plan == NULL ? (width - layout->width) / 2 : (width - both) / 2;
    char title[LINE_BYTES];

    by_svg_group_begin(out, x, HEAD_HEIGHT + (fabric->plan ? PANEL_TITLE : 0), NULL);
    by_panel_draw(fabric, layout, fabric->plan ? BY_PANEL_LOAD : BY_PANEL_FABRIC, out);
    by_svg_group_end(out);
    if (fabric->plan == NULL)
        return;
    by_svg_group_begin(out, x, HEAD_HEIGHT, NULL);
    panel_title(out, layout->width, "what each link carries");
    by_svg_group_end(out);
    by_svg_group_begin(out, beside ? x + step : x,
                       HEAD_HEIGHT + (beside ? 0 : layout->height + PANEL_TITLE + PANEL_GAP / 2), NULL);
    if (fabric->root >= 0)
        snprintf(title, sizeof(title), "the trees of %.40s", fabric->topology->nodes[fabric->root].name);
    else
        snprintf(title, sizeof(title), "the trees");
    panel_title(out, layout->width, title);
    by_svg_group_begin(out, 0, PANEL_TITLE, NULL);
    by_panel_draw(fabric, layout, BY_PANEL_TREES, out);
    by_svg_group_end(out);
    by_svg_group_end(out);
}

void by_picture_write(const struct by_fabric *fabric, FILE *out)
{
    struct by_layout *layout = by_layout_make(fabric);
    bool two = fabric->plan != NULL, beside = two && 2 * layout->width + PANEL_GAP <= WIDE;
    double panels = beside ? 2 * layout->width + PANEL_GAP : layout->width;
    double tall = layout->height + (two ? PANEL_TITLE : 0), below, width;
    char heading[LINE_BYTES], facts[LINE_BYTES], line[LINE_BYTES];

    if (two)
        snprintf(heading, sizeof(heading), "%.100s: %s", fabric->topology->name,
                 by_collective_name(fabric->plan->collective));
    else
        snprintf(heading, sizeof(heading), "%.100s", fabric->topology->name);
    describe_fabric(fabric, facts);
    if (two)
        describe_plan(fabric, line);
    else
        line[0] = 0;
    width = fmax(panels, fmax(by_layout_text_width(facts, 12.5), by_layout_text_width(line, 12.5))) +
            2 * PAGE_MARGIN;
    width = fmax(width, 520);
    if (two && !beside)
        tall = 2 * tall + PANEL_GAP / 2;
    below = HEAD_HEIGHT + tall + 26;
    by_svg_begin(out, width, draw_legend(fabric, width, below, NULL) + 4, heading);
    by_svg_text(out, PAGE_MARGIN, 34,
                &(struct by_text){.size = 20, .anchor = BY_ANCHOR_START, .fill = BY_COLOR_TEXT, .bold = 1},
                heading);
    by_svg_text(out, PAGE_MARGIN, 55,
                &(struct by_text){.size = 12.5, .anchor = BY_ANCHOR_START, .fill = BY_COLOR_MUTED}, facts);
    by_svg_text(out, PAGE_MARGIN, 73,
                &(struct by_text){.size = 12.5, .anchor = BY_ANCHOR_START, .fill = BY_COLOR_MUTED}, line);
    draw_panels(fabric, layout, width, beside, out);
    fprintf(out, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#e3e8ec\" stroke-width=\"1\"/>\n", PAGE_MARGIN,
            below - 20, width - PAGE_MARGIN);
    draw_legend(fabric, width, below, out);
    by_svg_end(out);
    by_layout_free(layout);
}
