/*
 * Places fabrics whose switches form nearly complete groups, such as a dragonfly. The groups are
 * placed around a circle: the switches of each group on an arc, their hosts outside. Links within a
 * group stay near the arc; links between groups cross the middle. See layout.h.
 */
#include <math.h>

#include "control/base/alloc.h"
#include "control/view/plot/clique.h"
#include "control/view/plot/layout.h"

#define RADIUS_MIN 190.0
#define OUTSIDE    92.0 /* distance from the switches to their hosts */
#define INSIDE     46.0 /* depth of a group's frame, which contains its links */
#define SWITCH_GAP 22.0
#define HOST_GAP   8.0
#define GROUP_GAP  72.0
#define FULL       6.28318530717958647692

/*
 * Finds the first switch of each host, next to which the host is placed; UINT32_MAX for switches.
 */
static uint32_t *find_homes(const struct by_fabric *fabric)
{
    const struct by_node *nodes = fabric->topology->nodes;
    uint32_t count = fabric->topology->node_count, *home = by_alloc(count, sizeof(*home));

    memset(home, 0xff, count * sizeof(*home));
    for (uint32_t c = fabric->channel_count; c-- > 0;) {
        uint32_t a = fabric->channels[c].a, b = fabric->channels[c].b;

        if (nodes[a].compute && !nodes[b].compute)
            home[a] = b;
        if (nodes[b].compute && !nodes[a].compute)
            home[b] = a;
    }
    return home;
}

/* Returns the length on the circle that a switch and its hosts need. */
static double room_of(const struct by_fabric *fabric, const struct by_layout *layout, const uint32_t *home,
                      uint32_t node)
{
    double own = 2 * layout->places[node].half_width + SWITCH_GAP, hosts = 0;

    for (uint32_t n = 0; n < fabric->topology->node_count; n++)
        if (home[n] == node)
            hosts += 2 * by_layout_half_room(fabric, layout, n) + HOST_GAP;
    return fmax(own, hosts * RADIUS_MIN / (RADIUS_MIN + OUTSIDE));
}

static void place_at(struct by_layout *layout, uint32_t node, double radius, double angle)
{
    layout->places[node].x = layout->width / 2 + radius * sin(angle);
    layout->places[node].y = layout->height / 2 - radius * cos(angle);
}

/* Places a switch in the middle of its part of the circle, and its hosts outside. */
static void place_switch(const struct by_fabric *fabric, struct by_layout *layout, const uint32_t *home,
                         uint32_t node, double from, double to)
{
    uint32_t hosts = 0, at = 0;

    place_at(layout, node, layout->radius, (from + to) / 2);
    for (uint32_t n = 0; n < fabric->topology->node_count; n++)
        hosts += home[n] == node;
    for (uint32_t n = 0; n < fabric->topology->node_count; n++)
        if (home[n] == node)
            place_at(layout, n, layout->radius + OUTSIDE, from + (to - from) * (at++ + 0.5) / hosts);
}

static void place_groups(const struct by_fabric *fabric, struct by_layout *layout, const uint32_t *home)
{
    uint32_t count = fabric->topology->node_count;
    double *room = by_alloc(count, sizeof(*room)), total = layout->group_count * GROUP_GAP, at = 0;

    for (uint32_t n = 0; n < count; n++) {
        layout->places[n].level = home[n] == UINT32_MAX;
        room[n] = home[n] == UINT32_MAX ? room_of(fabric, layout, home, n) : 0;
        total += room[n];
    }
    layout->radius = fmax(RADIUS_MIN, total / FULL);
    layout->width = layout->height =
        2 * (layout->radius + OUTSIDE + BY_LAYOUT_MARGIN + 2 * BY_LAYOUT_HOST_RADIUS);
    layout->level_count = 2;
    for (uint32_t group = 0; group < layout->group_count; group++) {
        layout->sectors[group].from = at;
        for (uint32_t n = 0; n < count; n++) {
            if (home[n] != UINT32_MAX || layout->group[n] != group)
                continue;
            place_switch(fabric, layout, home, n, at, at + room[n] / total * FULL);
            at += room[n] / total * FULL;
        }
        layout->sectors[group].to = at;
        at += GROUP_GAP / total * FULL;
    }
    free(room);
}

bool by_layout_ring(const struct by_fabric *fabric, struct by_layout *layout)
{
    uint32_t count = fabric->topology->node_count, *levels = by_layout_levels(fabric), top = 0;
    uint32_t *group = by_alloc(count, sizeof(*group)), groups = by_clique_find(fabric, levels, group), *home;

    for (uint32_t n = 0; n < count; n++)
        top = levels[n] > top ? levels[n] : top;
    free(levels);
    if (groups == 0 || top > 1) {
        free(group);
        return false;
    }
    layout->shape = BY_SHAPE_RING;
    layout->group = group;
    layout->group_count = groups;
    layout->sectors = by_alloc(groups, sizeof(*layout->sectors));
    home = find_homes(fabric);
    place_groups(fabric, layout, home);
    free(home);
    return true;
}

struct by_curve by_layout_ring_curve(const struct by_layout *layout, uint32_t from, uint32_t to)
{
    const struct by_spot *p = &layout->places[from], *q = &layout->places[to];
    struct by_curve curve = {{p->x, p->y}, {(p->x + q->x) / 2, (p->y + q->y) / 2}, {q->x, q->y}};
    double x = layout->width / 2, y = layout->height / 2, pull;

    if (p->level != q->level)
        return curve;
    /*
     * The control point is a little inside the arc for links of a group, and near the middle for
     * links between groups.
     */
    pull = layout->group[from] == layout->group[to]
               ? 1 - fmin(0.9 * INSIDE, 18 + 0.22 * hypot(p->x - q->x, p->y - q->y)) * 2 / layout->radius
               : 0.35;
    curve.control.x = x + (curve.control.x - x) * pull;
    curve.control.y = y + (curve.control.y - y) * pull;
    return curve;
}

void by_layout_ring_draw(const struct by_layout *layout, FILE *out)
{
    double x = layout->width / 2, y = layout->height / 2, inner = layout->radius - INSIDE;
    double outer = layout->radius + OUTSIDE + BY_LAYOUT_HOST_RADIUS + 6;

    for (uint32_t group = 0; group < layout->group_count; group++) {
        double a = layout->sectors[group].from, b = layout->sectors[group].to;
        int large = b - a > FULL / 2;

        fprintf(out,
                "<path d=\"M%.1f %.1fA%.1f %.1f 0 %d 1 %.1f %.1fL%.1f %.1fA%.1f %.1f 0 %d 0 %.1f %.1fz\" "
                "fill=\"#f0f4f7\" stroke=\"#d4dde4\" stroke-width=\"1.2\" stroke-linejoin=\"round\"/>\n",
                x + inner * sin(a), y - inner * cos(a), inner, inner, large, x + inner * sin(b),
                y - inner * cos(b), x + outer * sin(b), y - outer * cos(b), outer, outer, large,
                x + outer * sin(a), y - outer * cos(a));
    }
}
