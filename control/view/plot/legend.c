/* The text of a picture: two lines of facts, and the legend. See legend.h. */
#include "control/view/plot/legend.h"

#include <math.h>

#include "control/base/fraction.h"
#include "control/view/plot/color.h"
#include "control/view/plot/layout.h"
#include "control/view/plot/panel.h"
#include "control/view/plot/shade.h"
#include "control/view/plot/svg.h"

#define LEGEND_ROW 26.0

/* Writes legend items from left to right, in rows. If `out` is NULL it only measures. */
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
                    &(struct by_svg_text){.size = 12, .anchor = BY_ANCHOR_START, .fill = BY_COLOR_TEXT},
                    text);
}

static void legend_symbol(struct legend *legend, enum by_symbol kind, const char *text)
{
    struct by_point at = legend_next(legend, 34 + by_layout_text_width(text, 12));

    if (legend->out)
        by_symbol_draw(legend->out, kind, at.x + 12, at.y,
                       kind == BY_SYMBOL_CAPABLE || kind == BY_SYMBOL_PLAIN ? 13 : 9, 9);
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

static void legend_cut(struct legend *legend, const struct by_fabric *fabric, bool bars)
{
    char text[BY_LEGEND_BYTES], fraction[BY_FRACTION_TEXT_BYTES];
    struct by_point at;

    snprintf(text, sizeof(text), "bottleneck: %s %.20s %s this side%s",
             by_fraction_text(fabric->plan->cut_exiting, fraction), fabric->topology->unit,
             fabric->shaded_receives ? "can enter" : "can leave", bars ? ", across the bars" : "");
    at = legend_next(legend, 34 + by_layout_text_width(text, 12));
    if (legend->out)
        fprintf(
            legend->out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"24\" height=\"16\" rx=\"8\" fill=\"%s\" opacity=\"0.2\"/>"
            "<path d=\"M%.1f %.1fv16\" stroke=\"%s\" stroke-width=\"2.6\" stroke-linecap=\"round\"/>\n",
            at.x, at.y - 8, BY_COLOR_CUT, at.x + 20, at.y - 8, BY_COLOR_CUT);
    legend_text(legend, at.x + 32, at.y, text);
}

/*
 * Describes the bound of the partition: the bandwidth that leaves its parts, divided by how often a
 * tree pair leaves them.
 */
static void legend_parts(struct legend *legend, const struct by_fabric *fabric)
{
    char text[BY_LEGEND_BYTES], leaving[BY_FRACTION_TEXT_BYTES], bound[BY_FRACTION_TEXT_BYTES];
    int64_t times = 2 * ((int64_t)fabric->part_count - 1);
    struct by_fraction all;
    struct by_point at;

    if (by_fraction_multiply(fabric->plan->optimum, (struct by_fraction){times, 1}, &all) != 0)
        all = (struct by_fraction){0, 1}; /* the picture has fewer values */
    snprintf(text, sizeof(text),
             "tight partition: %s %.20s leave its %u parts, each pair of trees %lld times: at most %s",
             by_fraction_text(all, leaving), fabric->topology->unit, fabric->part_count, (long long)times,
             by_fraction_text(fabric->plan->optimum, bound));
    at = legend_next(legend, 60 + by_layout_text_width(text, 12));
    for (uint32_t i = 0; i < 2 && legend->out; i++)
        fprintf(
            legend->out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"22\" height=\"16\" rx=\"8\" fill=\"%s\" opacity=\"0.3\"/>",
            at.x + 28 * i, at.y - 8, by_shade_color(fabric, i));
    if (legend->out)
        fprintf(legend->out,
                "<path d=\"M%.1f %.1fv16\" stroke=\"%s\" stroke-width=\"2.6\" stroke-linecap=\"round\"/>\n",
                at.x + 25, at.y - 8, BY_COLOR_CUT);
    legend_text(legend, at.x + 58, at.y, text);
}

static void legend_trees(struct legend *legend, const struct by_fabric *fabric)
{
    char text[BY_LEGEND_BYTES], fraction[BY_FRACTION_TEXT_BYTES];
    bool mixed = false; /* some trees carry data in one direction only, others in both or the opposite one */

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

double by_legend_draw(const struct by_fabric *fabric, double x, double width, double y, bool trees, FILE *out)
{
    struct legend legend = {.out = out, .x = x, .y = y, .left = x, .right = width - x};
    const char *const texts[] = {[BY_SYMBOL_HOST] =
                                     trees || fabric->plan == NULL ? "host, with its rank" : "host",
                                 [BY_SYMBOL_CAPABLE] = "switch that sums and copies",
                                 [BY_SYMBOL_PLAIN] = "switch that only forwards",
                                 [BY_SYMBOL_OUTSIDE] = "host that is not a rank"};
    bool met[BY_SYMBOL_OUTSIDE + 1] = {false};

    for (uint32_t n = 0; n < fabric->topology->node_count; n++)
        met[by_fabric_symbol(fabric, n)] = true;
    for (enum by_symbol kind = BY_SYMBOL_HOST; kind <= BY_SYMBOL_OUTSIDE; kind++)
        if (met[kind])
            legend_symbol(&legend, kind, texts[kind]);
    if (fabric->plan != NULL) {
        legend_scale(&legend);
        if (fabric->part_count > 0)
            legend_parts(&legend, fabric);
        if (fabric->plan->cut_count > 0 && (fabric->part_count == 0 || !trees))
            legend_cut(&legend, fabric, trees);
        if (trees)
            legend_trees(&legend, fabric);
    }
    return legend.y + LEGEND_ROW;
}

void by_legend_fabric(const struct by_fabric *fabric, char line[BY_LEGEND_BYTES])
{
    const struct by_topology *topology = fabric->topology;
    uint32_t hosts = by_topology_compute_count(topology), switches = topology->node_count - hosts;
    struct by_panel_facts facts;
    char number[BY_NUMBER_TEXT_BYTES];
    int used;

    by_panel_facts(fabric, &facts);
    used = fabric->plan && fabric->plan->member
               ? snprintf(line, BY_LEGEND_BYTES, "%u of %u hosts", fabric->plan->compute_count, hosts)
               : snprintf(line, BY_LEGEND_BYTES, "%u hosts", hosts);
    if (switches > 0)
        used += snprintf(line + used, BY_LEGEND_BYTES - (size_t)used, ", %u switch%s", switches,
                         switches == 1 ? "" : "es");
    used += snprintf(line + used, BY_LEGEND_BYTES - (size_t)used, ", %u link%s", topology->link_count,
                     topology->link_count == 1 ? "" : "s");
    if (facts.one_bandwidth)
        snprintf(line + used, BY_LEGEND_BYTES - (size_t)used, " of %s %.20s each way",
                 by_number_text(facts.bandwidth, number), topology->unit);
    else if (fabric->plan != NULL)
        snprintf(line + used, BY_LEGEND_BYTES - (size_t)used, "; lines are as wide as their bandwidth");
    else
        snprintf(line + used, BY_LEGEND_BYTES - (size_t)used, "; numbers are %.20s each way", topology->unit);
}

void by_legend_plan(const struct by_fabric *fabric, char line[BY_LEGEND_BYTES])
{
    const struct by_plan *plan = fabric->plan;
    char achieved[BY_FRACTION_TEXT_BYTES], optimum[BY_FRACTION_TEXT_BYTES];
    struct by_panel_facts facts;
    int used;

    by_fraction_text(plan->achieved, achieved);
    by_fraction_text(plan->optimum, optimum);
    if (by_fraction_compare(plan->achieved, plan->optimum) >= 0)
        used = snprintf(line, BY_LEGEND_BYTES, "%s %.20s (algbw), %s; %u tree%s", achieved,
                        fabric->topology->unit,
                        plan->proof ? "the most that trees can carry" : "the proven optimum of this fabric",
                        plan->tree_count, plan->tree_count == 1 ? "" : "s");
    else
        used = snprintf(line, BY_LEGEND_BYTES, "%s %.20s (algbw), %.1f%% of the bound %s; %u trees", achieved,
                        fabric->topology->unit,
                        100 * by_fraction_value(plan->achieved) / by_fraction_value(plan->optimum), optimum,
                        plan->tree_count);
    by_panel_facts(fabric, &facts);
    if (facts.one_load && used > 0 && used < BY_LEGEND_BYTES)
        snprintf(line + used, BY_LEGEND_BYTES - (size_t)used, "; used links are %.3g%% full",
                 100 * facts.load);
}
