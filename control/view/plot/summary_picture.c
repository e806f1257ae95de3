/*
 * Arranges the picture of a large fabric: a heading, the summary, the load of all links, one tree,
 * and the legend. See picture.h.
 */
#include <math.h>

#include "control/view/plot/crown.h"
#include "control/view/plot/layout.h"
#include "control/view/plot/legend.h"
#include "control/view/plot/panel.h"
#include "control/view/plot/picture.h"
#include "control/view/plot/strips.h"
#include "control/view/plot/summary.h"
#include "control/view/plot/svg.h"
#include "offload/wire/types.h"

#define MARGIN       30.0
#define HEAD_HEIGHT  84.0
#define TITLE_HEIGHT 34.0
#define GAP          26.0
#define WIDTH_LEAST  900.0

static void write_title(FILE *out, double y, const char *text)
{
    by_svg_text(
        out, MARGIN, y + 18,
        &(struct by_svg_text){.size = 13.5, .anchor = BY_ANCHOR_START, .fill = BY_COLOR_MUTED, .bold = 1},
        text);
}

static void write_heading(const struct by_fabric *fabric, const char *heading, FILE *out)
{
    char line[BY_LEGEND_BYTES];
    struct by_svg_text style = {.size = 20, .anchor = BY_ANCHOR_START, .fill = BY_COLOR_TEXT, .bold = 1};

    by_svg_text(out, MARGIN, 34, &style, heading);
    style = (struct by_svg_text){.size = 12.5, .anchor = BY_ANCHOR_START, .fill = BY_COLOR_MUTED};
    by_legend_fabric(fabric, line);
    by_svg_text(out, MARGIN, 55, &style, line);
    if (fabric->plan == NULL)
        return;
    by_legend_plan(fabric, line);
    by_svg_text(out, MARGIN, 73, &style, line);
}

static void group_at(FILE *out, double x, double y)
{
    by_svg_group_begin(out, x, y, NULL);
}

/* Returns the tree that is drawn, or UINT32_MAX. */
static uint32_t chosen_tree(const struct by_fabric *fabric)
{
    return fabric->plan && fabric->drawn_count ? fabric->drawn[0] : UINT32_MAX;
}

static void write_tree_title(const struct by_fabric *fabric, uint32_t tree, double y, FILE *out)
{
    const char *root = fabric->topology->nodes[fabric->plan->trees[tree].root].name;
    char text[200];

    if (fabric->matching_count > 1)
        snprintf(text, sizeof(text), "tree %u, of %.60s: one of %u%s", tree, root, fabric->matching_count,
                 fabric->root >= 0 ? " of this root" : "");
    else
        snprintf(text, sizeof(text), "tree %u, the tree of %.60s", tree, root);
    write_title(out, y, text);
}

void by_picture_summary_write(const struct by_fabric *fabric, FILE *out)
{
    struct by_summary *summary = by_summary_make(fabric);
    uint32_t tree = chosen_tree(fabric);
    struct by_crown *crown = tree != UINT32_MAX ? by_crown_make(fabric, tree) : NULL;
    double width = fmax(WIDTH_LEAST, summary->width), y = HEAD_HEIGHT, strips, strips_height, crown_y;
    double crown_width = 0, crown_height = 0, legend;
    char heading[BY_LEGEND_BYTES];

    if (crown)
        by_crown_size(crown, &crown_width, &crown_height);
    width = fmax(width, crown_width) + 2 * MARGIN;
    strips = y + TITLE_HEIGHT + summary->height + GAP;
    strips_height = fabric->plan ? TITLE_HEIGHT + by_strips_draw(fabric, width - 2 * MARGIN, NULL) + GAP : 0;
    crown_y = strips + strips_height;
    legend = crown_y + (crown ? TITLE_HEIGHT + crown_height + GAP : 0);
    snprintf(heading, sizeof(heading), fabric->plan ? "%.200s: %s" : "%.200s", fabric->topology->name,
             fabric->plan ? by_collective_name(fabric->plan->collective) : "");
    by_svg_begin(out, width, by_legend_draw(fabric, MARGIN, width, legend, false, NULL) + 4, heading);
    write_heading(fabric, heading, out);
    write_title(out, y,
                fabric->plan
                    ? "the fabric, equal parts drawn once; a link has the colour of the fullest that it "
                      "stands for"
                    : "the fabric, equal parts drawn once");
    group_at(out, (width - summary->width) / 2, y + TITLE_HEIGHT);
    by_summary_draw(summary, out);
    by_svg_group_end(out);
    if (fabric->plan) {
        write_title(out, strips, "what each link carries, both directions, sorted");
        group_at(out, MARGIN, strips + TITLE_HEIGHT);
        by_strips_draw(fabric, width - 2 * MARGIN, out);
        by_svg_group_end(out);
    }
    if (crown) {
        write_tree_title(fabric, tree, crown_y, out);
        group_at(out, MARGIN, crown_y + TITLE_HEIGHT);
        by_crown_draw(crown, out);
        by_svg_group_end(out);
    }
    by_legend_draw(fabric, MARGIN, width, legend, false, out);
    by_svg_end(out);
    by_crown_free(crown);
    by_summary_free(summary);
}
