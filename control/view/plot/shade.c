/* Draws shapes behind the links: one side of the cut, or the parts of a partition. See shade.h. */
#include "control/view/plot/shade.h"

#include <math.h>

#include "control/view/plot/color.h"
#include "control/view/plot/svg.h"

#define SHADE_MARGIN 14.0
#define SHADE_WIDTH  44.0
/* Keeps a white gap between parts whose hosts are close together. */
#define PART_MARGIN 9.0
#define PART_WIDTH  34.0

/* Draws one soft shape: wide round strokes along the links inside it and around its nodes. */
static void draw_shape(const struct by_fabric *fabric, const struct by_layout *layout, const uint32_t *part,
                       uint32_t wanted, const char *color, double opacity, double margin, double width,
                       FILE *out)
{
    fprintf(out, "<g opacity=\"%.2f\" stroke-linecap=\"round\" stroke-linejoin=\"round\">\n", opacity);
    for (uint32_t c = 0; c < fabric->channel_count; c++) {
        const struct by_plot_channel *channel = &fabric->channels[c];

        if (part[channel->a] == wanted && part[channel->b] == wanted) {
            struct by_curve curve = by_layout_curve(fabric, layout, channel->a, channel->b);

            by_svg_curve(out, &curve, color, width, NULL, NULL);
        }
    }
    for (uint32_t n = 0; n < fabric->topology->node_count; n++)
        if (part[n] == wanted) {
            const struct by_spot *place = &layout->places[n];
            double rx = place->half_width + margin, ry = place->half_height + margin;

            fprintf(out,
                    "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%.1f\" fill=\"%s\"/>\n",
                    place->x - rx, place->y - ry, 2 * rx, 2 * ry, ry, color);
        }
    fputs("</g>\n", out);
}

const char *by_shade_color(const struct by_fabric *fabric, uint32_t part)
{
    static const char *const colors[BY_PART_COLORS] = {"#009e73", "#d99100", "#0072b2",
                                                       "#b0408a", "#7a4a2b", "#3aa6dd"};

    return colors[fabric->part_color[part]];
}

void by_shade_draw(const struct by_fabric *fabric, const struct by_layout *layout, FILE *out)
{
    if (fabric->plan == NULL)
        return;
    if (fabric->part_count > 0)
        for (uint32_t part = 0; part < fabric->part_count; part++)
            draw_shape(fabric, layout, fabric->part, part, by_shade_color(fabric, part), 0.26, PART_MARGIN,
                       PART_WIDTH, out);
    else if (fabric->plan->cut_count > 0)
        draw_shape(fabric, layout, fabric->shaded, 1, BY_COLOR_CUT, 0.16, SHADE_MARGIN, SHADE_WIDTH, out);
}

/*
 * Draws a bar across a link: near its inner end, or between two parts beside the label in its
 * middle.
 */
static void draw_bar(const struct by_fabric *fabric, const struct by_layout *layout, uint32_t inner,
                     uint32_t outer, bool middle, FILE *out)
{
    struct by_curve curve = by_layout_curve(fabric, layout, inner, outer);
    const struct by_spot *place = &layout->places[inner];
    double length = fmax(hypot(curve.to.x - curve.from.x, curve.to.y - curve.from.y), 1);
    double t = middle ? 0.3 : fmin(0.45, (hypot(place->half_width * 0.5, place->half_height) + 24) / length);
    struct by_point at = by_curve_at(&curve, t), along = by_curve_direction(&curve, t);

    fprintf(
        out,
        "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"%s\" stroke-width=\"2.6\" stroke-linecap=\"round\"/>\n",
        at.x - along.y * 9, at.y + along.x * 9, at.x + along.y * 9, at.y - along.x * 9, BY_COLOR_CUT);
}

void by_shade_bars(const struct by_fabric *fabric, const struct by_layout *layout, FILE *out)
{
    for (uint32_t c = 0; c < fabric->channel_count && fabric->plan != NULL; c++) {
        const struct by_plot_channel *channel = &fabric->channels[c];
        const uint32_t *part = fabric->part_count > 0 ? fabric->part : fabric->shaded;
        uint32_t none = fabric->part_count > 0 ? BY_FABRIC_NO_PART : 0;
        bool from_a = part[channel->a] != none, leaves_a = from_a != fabric->shaded_receives;

        if (part[channel->a] == part[channel->b] || fabric->idle[channel->a] || fabric->idle[channel->b])
            continue;
        if (fabric->part_count > 0 || channel->capacity[leaves_a ? 0 : 1] > 0)
            draw_bar(fabric, layout, from_a ? channel->a : channel->b, from_a ? channel->b : channel->a,
                     from_a && part[channel->b] != none, out);
    }
}
