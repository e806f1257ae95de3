/* Draws strips of sorted loads. See strips.h. */
#include "control/view/plot/strips.h"

#include "control/base/alloc.h"
#include "control/view/plot/classes.h"
#include "control/view/plot/panel.h"
#include "control/view/plot/svg.h"

#define STRIPS_MAX 10u
#define CELLS      80u
#define ROW        26.0
#define NAME_WIDTH 170.0
#define TEXT_WIDTH 330.0
/* Utilisation from which a direction counts as full (floating point, for drawing only). */
#define FULL (1 - 1e-9)

/* One direction of one channel. */
struct strips_load {
    uint32_t low, high; /* representative nodes of the two kinds */
    double part;
};

static uint32_t find_kind(const struct by_topology *topology, const uint32_t *kinds, uint32_t kind_count,
                          uint32_t node)
{
    const char *name = topology->nodes[node].name;
    uint32_t bytes = by_stem_bytes(name), i = 0;

    while (i < kind_count && (by_stem_bytes(topology->nodes[kinds[i]].name) != bytes ||
                              memcmp(topology->nodes[kinds[i]].name, name, bytes) != 0))
        i++;
    return i;
}

static int by_kind_and_load(const void *left, const void *right)
{
    const struct strips_load *x = left, *y = right;

    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    if (x->high != y->high)
        return x->high < y->high ? -1 : 1;
    return x->part > y->part ? -1 : x->part < y->part;
}

static void draw_strip(const struct by_fabric *fabric, const uint32_t *kinds, const struct strips_load *loads,
                       uint32_t count, double y, double width, FILE *out)
{
    const char *low = fabric->topology->nodes[kinds[loads[0].low]].name;
    const char *high = fabric->topology->nodes[kinds[loads[0].high]].name;
    double cell = (width - NAME_WIDTH - TEXT_WIDTH) / CELLS, sum = 0;
    struct by_svg_text style = {.size = 12, .anchor = BY_ANCHOR_START, .fill = BY_COLOR_TEXT};
    char text[200], color[BY_COLOR_BYTES];
    uint32_t full = 0;

    snprintf(text, sizeof(text), "%.*s \xe2\x80\x93 %.*s", (int)by_stem_bytes(low), low,
             (int)by_stem_bytes(high), high);
    by_svg_text(out, 0, y + 14, &style, text);
    for (uint32_t i = 0; i < count; i++) {
        sum += loads[i].part;
        full += loads[i].part >= FULL;
    }
    for (uint32_t i = 0; i < CELLS; i++)
        fprintf(out, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"16\" fill=\"%s\"/>\n",
                NAME_WIDTH + i * cell, y + 2, cell + 0.3,
                by_load_color(loads[(uint64_t)i * count / CELLS].part, color));
    snprintf(text, sizeof(text), "%u directions: %u full, mean %.3g%%, least %.3g%%", count, full,
             100 * sum / count, 100 * loads[count - 1].part);
    style.fill = BY_COLOR_MUTED;
    by_svg_text(out, NAME_WIDTH + CELLS * cell + 12, y + 14, &style, text);
}

double by_strips_draw(const struct by_fabric *fabric, double width, FILE *out)
{
    const struct by_topology *topology = fabric->topology;
    struct strips_load *loads = by_alloc(2 * (size_t)fabric->channel_count, sizeof(*loads));
    uint32_t *kinds = by_alloc(topology->node_count, sizeof(*kinds)), kind_count = 0, count = 0, drawn = 0;
    uint32_t *kind_of = by_alloc(topology->node_count, sizeof(*kind_of));

    for (uint32_t n = 0; n < topology->node_count; n++) {
        kind_of[n] = find_kind(topology, kinds, kind_count, n);
        if (kind_of[n] == kind_count)
            kinds[kind_count++] = n;
    }
    for (uint32_t c = 0; c < fabric->channel_count; c++)
        for (unsigned way = 0; way < 2; way++) {
            const struct by_plot_channel *channel = &fabric->channels[c];
            uint32_t a = kind_of[channel->a], b = kind_of[channel->b];

            if (channel->capacity[way] > 0)
                loads[count++] = (struct strips_load){a < b ? a : b, a < b ? b : a,
                                                      channel->load[way] / channel->capacity[way]};
        }
    if (count)
        qsort(loads, count, sizeof(*loads), by_kind_and_load);
    for (uint32_t i = 0, start = 0; i < count; i++)
        if (i + 1 == count || loads[i + 1].low != loads[i].low || loads[i + 1].high != loads[i].high) {
            if (drawn < STRIPS_MAX && out)
                draw_strip(fabric, kinds, loads + start, i + 1 - start, ROW * drawn, width, out);
            drawn += drawn < STRIPS_MAX;
            start = i + 1;
        }
    free(kind_of);
    free(kinds);
    free(loads);
    return ROW * drawn;
}
