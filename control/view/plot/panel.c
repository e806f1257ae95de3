/*
 * Draws one panel from bottom to top: the cut's shade, links, trees, nodes, and then labels where
 * there is room. See panel.h.
 */
#include "control/view/plot/panel.h"

#include <math.h>

#include "control/base/alloc.h"
#include "control/view/plot/shade.h"
#include "control/view/plot/svg.h"

#define LABELS_MAX  48u /* with more links, numbers are shown only under the pointer */
#define LABEL_FONT  10.5
#define TREE_WIDTH  2.6
#define TIP_BYTES   512
#define TREE_GAP    5.0
#define TREES_WIDTH 28.0 /* width of all trees of one link side by side, which fits a node's symbol */

struct box {
    double x0, y0, x1, y1;
};

struct panel {
    const struct by_fabric *fabric;
    const struct by_layout *layout;
    FILE *out;
    struct box *boxes; /* areas that labels must not cover */
    uint32_t box_count, box_room;
};

double by_link_width(const struct by_fabric *fabric, double capacity)
{
    double most = 0;

    for (uint32_t c = 0; c < fabric->channel_count; c++)
        most = fmax(most, fmax(fabric->channels[c].capacity[0], fabric->channels[c].capacity[1]));
    return capacity > 0 && most > 0 ? 1.5 + 4.5 * sqrt(capacity / most) : 0;
}

void by_panel_facts(const struct by_fabric *fabric, struct by_panel_facts *facts)
{
    bool first = true;

    memset(facts, 0, sizeof(*facts));
    facts->one_bandwidth = facts->one_load = true;
    for (uint32_t c = 0; c < fabric->channel_count; c++)
        for (unsigned d = 0; d < 2; d++) {
            const struct by_plot_channel *channel = &fabric->channels[c];
            double load = channel->capacity[d] > 0 ? channel->load[d] / channel->capacity[d] : 0;

            if (first) {
                facts->bandwidth = channel->capacity[d];
                first = false;
            }
            if (facts->load <= 0)
                facts->load = load;
            facts->one_bandwidth &= fabs(facts->bandwidth - channel->capacity[d]) < 1e-9 * facts->bandwidth;
            facts->one_load &= load <= 0 || fabs(facts->load - load) < 1e-6;
        }
}

static bool keep_free(struct panel *panel, struct box box, bool force)
{
    for (uint32_t i = 0; i < panel->box_count && !force; i++) {
        const struct box *b = &panel->boxes[i];

        if (box.x0 < b->x1 && b->x0 < box.x1 && box.y0 < b->y1 && b->y0 < box.y1)
            return false;
    }
    BY_GROW(panel->boxes, panel->box_count, panel->box_room);
    panel->boxes[panel->box_count++] = box;
    return true;
}

/*
 * Places a label on the curve where it covers nothing; omits it if there is no such place (the tip
 * shows it too).
 */
static void label_curve(struct panel *panel, const struct by_curve *curve, const char *text, const char *fill)
{
    static const double tries[] = {0.5, 0.42, 0.58, 0.34, 0.66, 0.28, 0.72, 0.22, 0.78};
    double half = by_layout_text_width(text, LABEL_FONT) / 2 + 2;

    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        struct by_point at = by_curve_at(curve, tries[i]);

        if (keep_free(panel, (struct box){at.x - half, at.y - 7, at.x + half, at.y + 7}, false)) {
            by_svg_text(panel->out, at.x, at.y + 3.8,
                        &(struct by_svg_text){
                            .size = LABEL_FONT, .anchor = BY_ANCHOR_MIDDLE, .fill = fill, .halo = 1},
                        text);
            return;
        }
    }
}

static void link_tip(const struct panel *panel, const struct by_plot_channel *channel, char tip[TIP_BYTES])
{
    const struct by_topology *topology = panel->fabric->topology;
    const char *a = topology->nodes[channel->a].name, *b = topology->nodes[channel->b].name;
    char text[4][BY_NUMBER_TEXT_BYTES];

    if (panel->fabric->plan == NULL)
        snprintf(tip, TIP_BYTES, "%.100s \xe2\x86\x92 %.100s: %s %s; back: %s; %u cable(s)", a, b,
                 by_number_text(channel->capacity[0], text[0]), topology->unit,
                 by_number_text(channel->capacity[1], text[1]), channel->cable_count);
    else
        snprintf(tip, TIP_BYTES, "%.100s \xe2\x86\x92 %.100s: %s of %s %s; back: %s of %s", a, b,
                 by_number_text(channel->load[0], text[0]), by_number_text(channel->capacity[0], text[1]),
                 topology->unit, by_number_text(channel->load[1], text[2]),
                 by_number_text(channel->capacity[1], text[3]));
}

static void draw_plain_links(struct panel *panel, bool pale)
{
    char tip[TIP_BYTES];

    for (uint32_t c = 0; c < panel->fabric->channel_count; c++) {
        const struct by_plot_channel *channel = &panel->fabric->channels[c];
        struct by_curve curve = by_layout_curve(panel->fabric, panel->layout, channel->a, channel->b);

        link_tip(panel, channel, tip);
        by_svg_curve(panel->out, &curve, pale ? "#dfe5ea" : BY_COLOR_LINK,
                     by_link_width(panel->fabric, fmax(channel->capacity[0], channel->capacity[1])), NULL,
                     tip);
        if (!pale && channel->capacity[0] != channel->capacity[1])
            for (unsigned d = 0; d < 2; d++)
                if (channel->capacity[d] > 0 && channel->capacity[!d] <= 0) { /* a one-way link */
                    struct by_point along = by_curve_direction(&curve, 0.5);

                    if (d == 1)
                        along = (struct by_point){-along.x, -along.y};
                    by_svg_arrow(panel->out, by_curve_at(&curve, d ? 0.42 : 0.58), along, 11, BY_COLOR_MUTED);
                }
    }
}

/* Draws each direction on its own side of the link (traffic keeps right). */
static void draw_loaded_links(struct panel *panel)
{
    char tip[TIP_BYTES], color[BY_COLOR_BYTES];

    for (uint32_t c = 0; c < panel->fabric->channel_count; c++) {
        const struct by_plot_channel *channel = &panel->fabric->channels[c];
        struct by_curve curve = by_layout_curve(panel->fabric, panel->layout, channel->a, channel->b);

        link_tip(panel, channel, tip);
        for (unsigned d = 0; d < 2; d++) {
            double width = by_link_width(panel->fabric, channel->capacity[d]);
            struct by_curve side = by_curve_shifted(&curve, (d ? -1 : 1) * (width / 2 + 0.6));

            if (channel->capacity[d] > 0)
                by_svg_curve(panel->out, &side, by_load_color(channel->load[d] / channel->capacity[d], color),
                             width, NULL, tip);
        }
    }
}

static void label_bandwidths(struct panel *panel)
{
    struct by_panel_facts facts;
    char text[2][BY_NUMBER_TEXT_BYTES], label[3 * BY_NUMBER_TEXT_BYTES];

    by_panel_facts(panel->fabric, &facts);
    if (facts.one_bandwidth || panel->fabric->channel_count > LABELS_MAX)
        return;
    for (uint32_t c = 0; c < panel->fabric->channel_count; c++) {
        const struct by_plot_channel *channel = &panel->fabric->channels[c];
        struct by_curve curve = by_layout_curve(panel->fabric, panel->layout, channel->a, channel->b);

        by_number_text(channel->capacity[0], text[0]);
        by_number_text(channel->capacity[1], text[1]);
        if (strcmp(text[0], text[1]) == 0 || channel->capacity[1] <= 0)
            snprintf(label, sizeof(label), "%s", text[0]);
        else if (channel->capacity[0] <= 0)
            snprintf(label, sizeof(label), "%s", text[1]);
        else
            snprintf(label, sizeof(label), "%s / %s", text[0], text[1]);
        label_curve(panel, &curve, label, BY_COLOR_TEXT);
    }
}

static void label_loads(struct panel *panel)
{
    struct by_panel_facts facts;
    char label[32];

    by_panel_facts(panel->fabric, &facts);
    if (facts.one_load || panel->fabric->channel_count > LABELS_MAX)
        return;
    for (uint32_t c = 0; c < panel->fabric->channel_count; c++) {
        const struct by_plot_channel *channel = &panel->fabric->channels[c];
        struct by_curve curve = by_layout_curve(panel->fabric, panel->layout, channel->a, channel->b);
        double part[2];

        for (unsigned d = 0; d < 2; d++)
            part[d] = channel->capacity[d] > 0 ? 100 * channel->load[d] / channel->capacity[d] : 0;
        if (fabs(part[0] - part[1]) < 0.05 && part[0] > 0) {
            snprintf(label, sizeof(label), "%.3g%%", part[0]);
            label_curve(panel, &curve, label, BY_COLOR_TEXT);
            continue;
        }
        for (unsigned d = 0; d < 2; d++) {
            struct by_curve side = by_curve_shifted(&curve, (d ? -1 : 1) * 16);

            snprintf(label, sizeof(label), "%.3g%%", part[d]);
            if (channel->load[d] > 0) /* idle directions have no label; their pale colour is enough */
                label_curve(panel, &side, label, BY_COLOR_TEXT);
        }
    }
}

/*
 * Returns the position of drawn tree `index` among the drawn trees that use the channel; `*count`
 * receives their number.
 */
static uint32_t slot_of(const struct panel *panel, uint32_t index, const struct by_plot_channel *wanted,
                        uint32_t *count)
{
    const struct by_fabric *fabric = panel->fabric;
    uint32_t slot = 0;

    *count = 0;
    for (uint32_t i = 0; i < fabric->drawn_count; i++) {
        const struct by_tree *tree = &fabric->plan->trees[fabric->drawn[i]];
        bool uses = false;

        for (uint32_t e = 0; e < tree->edge_count && !uses; e++) {
            const struct by_path path = by_plan_edge(fabric->plan, tree, e);

            for (uint32_t h = 0; h + 1 < path.node_count && !uses; h++) {
                unsigned direction;

                uses = by_fabric_channel(fabric, path.nodes[h], path.nodes[h + 1], &direction) == wanted;
            }
        }
        if (i == index)
            slot = *count;
        *count += uses;
    }
    return slot;
}

static void draw_hop(struct panel *panel, uint32_t index, const struct by_tree *tree, uint32_t parent,
                     uint32_t child)
{
    unsigned direction;
    const struct by_plot_channel *channel = by_fabric_channel(panel->fabric, parent, child, &direction);
    uint32_t count, slot;
    struct by_curve curve;
    double gap;
    bool down, up;

    if (channel == NULL)
        return;
    slot = slot_of(panel, index, channel, &count);
    gap = fmin(TREE_GAP, TREES_WIDTH / count);
    curve = by_layout_curve(panel->fabric, panel->layout, channel->a, channel->b);
    curve = by_curve_shifted(&curve, (slot - (count - 1) / 2.0) * gap);
    by_svg_curve(panel->out, &curve, by_tree_color(index), fmin(TREE_WIDTH, gap * 0.8),
                 "stroke-linecap=\"round\"", NULL);
    by_fabric_flow(panel->fabric, tree, &down, &up);
    for (unsigned way = 0; way < 2; way++) {
        bool forward = (way == 0) == (direction == 0); /* in the direction a -> b */
        double t = 0.5 + (forward ? 1 : -1) * (down && up ? 0.13 : 0.05) +
                   0.05 * ((double)slot - (count - 1) / 2.0) * (forward ? 1 : -1);
        struct by_point along = by_curve_direction(&curve, t);

        if (way == 0 ? !down : !up)
            continue;
        if (!forward)
            along = (struct by_point){-along.x, -along.y};
        by_svg_arrow(panel->out, by_curve_at(&curve, t), along, 10, by_tree_color(index));
    }
}

static void draw_trees(struct panel *panel)
{
    const struct by_fabric *fabric = panel->fabric;

    for (uint32_t i = 0; i < fabric->drawn_count; i++) {
        const struct by_tree *tree = &fabric->plan->trees[fabric->drawn[i]];
        char tip[200], text[BY_NUMBER_TEXT_BYTES];

        snprintf(tip, sizeof(tip), "tree %u, root %.100s, %s %.20s", fabric->drawn[i],
                 fabric->topology->nodes[tree->root].name,
                 by_number_text((double)tree->weight.num / (double)tree->weight.den, text),
                 fabric->topology->unit);
        fputs("<g><title>", panel->out);
        by_svg_escape(panel->out, tip);
        fputs("</title>\n", panel->out);
        for (uint32_t e = 0; e < tree->edge_count; e++) {
            const struct by_path path = by_plan_edge(fabric->plan, tree, e);

            for (uint32_t h = 0; h + 1 < path.node_count; h++)
                draw_hop(panel, i, tree, path.nodes[h], path.nodes[h + 1]);
        }
        fputs("</g>\n", panel->out);
    }
}

void by_symbol_draw(FILE *out, enum by_symbol kind, double x, double y, double half_width, double half_height)
{
    if (kind == BY_SYMBOL_HOST || kind == BY_SYMBOL_OUTSIDE)
        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" %s/>\n", x, y, half_width,
                kind == BY_SYMBOL_HOST ? "fill=\"#2a6fdb\" stroke=\"#ffffff\" stroke-width=\"2\""
                                       : "fill=\"#ffffff\" stroke=\"#a7b1bb\" stroke-width=\"1.6\"");
    else
        fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"7\" %s/>\n",
                x - half_width, y - half_height, 2 * half_width, 2 * half_height,
                kind == BY_SYMBOL_CAPABLE
                    ? "fill=\"#15324f\" stroke=\"#ffffff\" stroke-width=\"2\""
                    : "fill=\"#ffffff\" stroke=\"#66727f\" stroke-width=\"1.6\" stroke-dasharray=\"5 3\"");
}

static const char *caption(const struct by_node *node)
{
    return node->multicast && node->aggregate ? "sums, copies"
           : node->aggregate                  ? "sums"
           : node->multicast                  ? "copies"
                                              : "forwards";
}

static void draw_node(struct panel *panel, uint32_t n, uint32_t rank, bool root)
{
    const struct by_node *node = &panel->fabric->topology->nodes[n];
    const struct by_spot *place = &panel->layout->places[n];
    bool full = panel->layout->detail == BY_DETAIL_FULL, capable = node->multicast || node->aggregate;
    struct by_svg_text style = {
        .size = panel->layout->font, .anchor = BY_ANCHOR_MIDDLE, .fill = "#ffffff", .bold = 1};
    char label[BY_LABEL_BYTES], number[16];
    enum by_symbol kind = by_fabric_symbol(panel->fabric, n);

    fputs("<g><title>", panel->out);
    by_svg_escape(panel->out, node->name);
    fputs("</title>\n", panel->out);
    if (root)
        fprintf(panel->out,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%.1f\" fill=\"#ffffff\" "
                "stroke=\"%s\" stroke-width=\"2\"/>\n",
                place->x - place->half_width - 5, place->y - place->half_height - 5,
                2 * place->half_width + 10, 2 * place->half_height + 10,
                kind == BY_SYMBOL_HOST ? place->half_width + 5 : 11, BY_COLOR_TEXT);
    by_symbol_draw(panel->out, kind, place->x, place->y, place->half_width, place->half_height);
    by_layout_label(node->name, label);
    snprintf(number, sizeof(number), "%u", rank);
    if (kind == BY_SYMBOL_HOST) {
        by_svg_text(panel->out, place->x, place->y + style.size * 0.36, &style, number);
    } else if (kind != BY_SYMBOL_OUTSIDE) {
        style.fill = capable ? "#ffffff" : BY_COLOR_TEXT;
        by_svg_text(panel->out, place->x, place->y + (full ? -2 : style.size * 0.36), &style, label);
        style = (struct by_svg_text){
            .size = 10, .anchor = BY_ANCHOR_MIDDLE, .fill = capable ? "#b9d3ee" : BY_COLOR_MUTED};
        if (full)
            by_svg_text(panel->out, place->x, place->y + 13, &style, caption(node));
    }
    fputs("</g>\n", panel->out);
}

/* Draws a host's name: below the host in layers, outside the circle on a circle. */
static void name_host(struct panel *panel, uint32_t n, bool draw)
{
    const struct by_layout *layout = panel->layout;
    const struct by_spot *place = &layout->places[n];
    struct by_svg_text style = {
        .size = layout->font - 1, .anchor = BY_ANCHOR_MIDDLE, .fill = BY_COLOR_TEXT, .halo = 1};
    char label[BY_LABEL_BYTES];
    double half =
        by_layout_text_width(by_layout_label(panel->fabric->topology->nodes[n].name, label), style.size) / 2;
    double x = place->x, y = place->y + place->half_height + 17;

    if (layout->shape == BY_SHAPE_CIRCLE || layout->shape == BY_SHAPE_RING) {
        double dx = place->x - layout->width / 2, dy = place->y - layout->height / 2,
               far = fmax(hypot(dx, dy), 1e-9);

        x = place->x + dx / far * (place->half_width + 8 + half * fabs(dx / far));
        y = place->y + dy / far * (place->half_width + 14) + 4;
    } else if (layout->shape == BY_SHAPE_GRID) {
        x = place->x + place->half_width * 0.6 + half;
        y = place->y + place->half_height + 11;
    }
    if (draw)
        by_svg_text(panel->out, x, y, &style, label);
    else
        keep_free(panel, (struct box){x - half, y - style.size, x + half, y + 3}, true);
}

void by_panel_draw(const struct by_fabric *fabric, const struct by_layout *layout, enum by_panel_kind kind,
                   FILE *out)
{
    struct panel panel = {.fabric = fabric, .layout = layout, .out = out};
    const struct by_topology *topology = fabric->topology;
    bool names = layout->detail == BY_DETAIL_FULL;

    for (uint32_t n = 0; n < topology->node_count; n++) {
        const struct by_spot *place = &layout->places[n];

        keep_free(&panel,
                  (struct box){place->x - place->half_width - 4, place->y - place->half_height - 4,
                               place->x + place->half_width + 4, place->y + place->half_height + 4},
                  true);
        if (names && topology->nodes[n].compute)
            name_host(&panel, n, false);
    }
    if (layout->shape == BY_SHAPE_RING)
        by_layout_ring_draw(layout, out);
    if (kind == BY_PANEL_LOAD) {
        by_shade_draw(fabric, layout, out);
        draw_loaded_links(&panel);
        by_shade_bars(fabric, layout, out);
    } else {
        draw_plain_links(&panel, kind == BY_PANEL_TREES);
        if (kind == BY_PANEL_TREES)
            draw_trees(&panel);
    }
    for (uint32_t n = 0, rank = 0; n < topology->node_count; n++) {
        bool root = false;

        for (uint32_t i = 0; i < fabric->drawn_count && kind == BY_PANEL_TREES; i++)
            root |= fabric->plan->trees[fabric->drawn[i]].root == n;
        draw_node(&panel, n, rank, root);
        if (names && topology->nodes[n].compute)
            name_host(&panel, n, true);
        rank += by_fabric_symbol(fabric, n) == BY_SYMBOL_HOST;
    }
    if (kind == BY_PANEL_FABRIC)
        label_bandwidths(&panel);
    else if (kind == BY_PANEL_LOAD)
        label_loads(&panel);
    free(panel.boxes);
}
