/* Arranges a picture: a heading with the facts, one or two panels, a legend. See picture.h. */
#include "control/view/plot/picture.h"

#include <math.h>

#include "control/base/alloc.h"
#include "control/view/plot/legend.h"
#include "control/view/plot/panel.h"
#include "control/view/plot/svg.h"
#include "offload/wire/types.h"

#define PAGE_MARGIN 30.0
#define PANEL_GAP   40.0
#define HEAD_HEIGHT 84.0
#define PANEL_TITLE 30.0
#define WIDE        1500.0 /* maximum width for two panels side by side */

static void panel_title(FILE *out, double width, const char *text)
{
    by_svg_text(
        out, width / 2, PANEL_TITLE - 12,
        &(struct by_svg_text){.size = 13.5, .anchor = BY_ANCHOR_MIDDLE, .fill = BY_COLOR_MUTED, .bold = 1},
        text);
}

static void draw_panels(const struct by_fabric *fabric, const struct by_layout *layout, double width,
                        bool beside, FILE *out)
{
    double step = layout->width + PANEL_GAP, both = beside ? 2 * layout->width + PANEL_GAP : layout->width;
    double x = fabric->plan == NULL ? (width - layout->width) / 2 : (width - both) / 2;
    char title[BY_LEGEND_BYTES];

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
    char heading[BY_LEGEND_BYTES], facts[BY_LEGEND_BYTES], line[BY_LEGEND_BYTES];

    if (two)
        snprintf(heading, sizeof(heading), "%.100s: %s", fabric->topology->name,
                 by_collective_name(fabric->plan->collective));
    else
        snprintf(heading, sizeof(heading), "%.100s", fabric->topology->name);
    by_legend_fabric(fabric, facts);
    if (two)
        by_legend_plan(fabric, line);
    else
        line[0] = 0;
    width = fmax(panels, fmax(by_layout_text_width(facts, 12.5), by_layout_text_width(line, 12.5))) +
            2 * PAGE_MARGIN;
    width = fmax(width, 520);
    if (two && !beside)
        tall = 2 * tall + PANEL_GAP / 2;
    below = HEAD_HEIGHT + tall + 26;
    by_svg_begin(out, width, by_legend_draw(fabric, PAGE_MARGIN, width, below, true, NULL) + 4, heading);
    by_svg_text(
        out, PAGE_MARGIN, 34,
        &(struct by_svg_text){.size = 20, .anchor = BY_ANCHOR_START, .fill = BY_COLOR_TEXT, .bold = 1},
        heading);
    by_svg_text(out, PAGE_MARGIN, 55,
                &(struct by_svg_text){.size = 12.5, .anchor = BY_ANCHOR_START, .fill = BY_COLOR_MUTED},
                facts);
    by_svg_text(out, PAGE_MARGIN, 73,
                &(struct by_svg_text){.size = 12.5, .anchor = BY_ANCHOR_START, .fill = BY_COLOR_MUTED}, line);
    draw_panels(fabric, layout, width, beside, out);
    fprintf(out, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#e3e8ec\" stroke-width=\"1\"/>\n", PAGE_MARGIN,
            below - 20, width - PAGE_MARGIN);
    by_legend_draw(fabric, PAGE_MARGIN, width, below, true, out);
    by_svg_end(out);
    by_layout_free(layout);
}
