/*
 * Sizes of nodes, and positions for fabrics without switches: a grid for meshes and tori, a circle
 * for others. See layout.h.
 */
#include "control/view/plot/layout.h"

#include <math.h>

#include "control/base/alloc.h"

#define FULL_MAX   24   /* most hosts with names below them */
#define HOST_SMALL 13.0 /* radius of a host that shows only its rank */
#define PI         3.14159265358979323846

double by_layout_text_width(const char *text, double font)
{
    size_t count = 0;

    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return (double)count * font * 0.62;
}

const char *by_layout_label(const char *name, char label[BY_LABEL_BYTES])
{
    size_t bytes = strlen(name), kept = BY_LABEL_BYTES - 8;

    if (bytes < BY_LABEL_BYTES - 3) {
        memcpy(label, name, bytes + 1);
        return label;
    }
    while (kept > 0 && ((unsigned char)name[kept] & 0xc0) == 0x80) /* do not split a UTF-8 character */
        kept--;
    snprintf(label, BY_LABEL_BYTES, "%.*s\xe2\x80\xa6", (int)kept, name);
    return label;
}

double by_layout_half_room(const struct by_fabric *fabric, const struct by_layout *layout, uint32_t n)
{
    double half = layout->places[n].half_width, name;
    char label[BY_LABEL_BYTES];

    if (layout->detail != BY_DETAIL_FULL || !fabric->topology->nodes[n].compute)
        return half;
    name = by_layout_text_width(by_layout_label(fabric->topology->nodes[n].name, label), layout->font - 1);
    return fmax(half, name / 2);
}

static void size_nodes(const struct by_fabric *fabric, struct by_layout *layout)
{
    uint32_t hosts = by_topology_compute_count(fabric->topology);
    char label[BY_LABEL_BYTES];

    layout->detail = hosts <= FULL_MAX ? BY_DETAIL_FULL : BY_DETAIL_NUMBERS;
    layout->font = layout->detail == BY_DETAIL_FULL ? 13 : 11;
    for (uint32_t n = 0; n < fabric->topology->node_count; n++) {
        const struct by_node *node = &fabric->topology->nodes[n];
        struct by_spot *place = &layout->places[n];
        double text = by_layout_text_width(by_layout_label(node->name, label), layout->font);

        if (node->compute) {
            place->half_width = layout->detail == BY_DETAIL_FULL ? BY_LAYOUT_HOST_RADIUS : HOST_SMALL;
            place->half_height = place->half_width;
        } else {
            place->half_width = fmax(layout->detail == BY_DETAIL_FULL ? 50 : 26, text / 2 + 10);
            place->half_height = layout->detail == BY_DETAIL_FULL ? 21 : 14;
        }
    }
}

/*
 * Whether all links join neighbours of a grid with this many columns, in the file's order, or the
 * two ends of a row or column.
 */
static bool is_grid(const struct by_fabric *fabric, uint32_t columns)
{
    uint32_t rows = fabric->topology->node_count / columns;

    for (uint32_t c = 0; c < fabric->channel_count; c++) {
        uint32_t a = fabric->channels[c].a, b = fabric->channels[c].b;
        uint32_t down = b / columns - a / columns;
        uint32_t right = a % columns < b % columns ? b % columns - a % columns : a % columns - b % columns;

        if (!(down == 0 && (right == 1 || right == columns - 1)) &&
            !(right == 0 && (down == 1 || down == rows - 1)))
            return false;
    }
    return true;
}

/* Returns the number of columns if the fabric is a grid, for the most square one; else 0. */
static uint32_t find_columns(const struct by_fabric *fabric)
{
    uint32_t count = fabric->topology->node_count, best = 0;

    if (fabric->channel_count < count + 2) /* a ring or a line looks better on a circle */
        return 0;
    for (uint32_t columns = 3; columns * 2 <= count; columns++)
        if (count % columns == 0 && is_grid(fabric, columns) && (best == 0 || columns * columns <= count))
            best = columns;
    return best;
}

static void place_grid(const struct by_fabric *fabric, struct by_layout *layout)
{
    uint32_t count = fabric->topology->node_count, rows = count / layout->columns;
    double room = 0, step;

    for (uint32_t n = 0; n < count; n++)
        room = fmax(room, 2 * by_layout_half_room(fabric, layout, n));
    step = layout->detail == BY_DETAIL_FULL ? fmax(104, room + 56) : 58;
    for (uint32_t n = 0; n < count; n++) {
        layout->places[n].level = 0;
        layout->places[n].x = BY_LAYOUT_MARGIN + 60 + step * (n % layout->columns);
        layout->places[n].y =
            64 + step * (n / layout->columns); /* NOLINT(bugprone-integer-division): a row */
    }
    layout->width = step * (layout->columns - 1) + 2 * BY_LAYOUT_MARGIN + 110;
    layout->height = step * (rows - 1) + 64 + BY_LAYOUT_HOST_RADIUS + 34;
}

static void place_circle(const struct by_fabric *fabric, struct by_layout *layout)
{
    uint32_t count = fabric->topology->node_count;
    double room = 0, radius, pad;

    for (uint32_t n = 0; n < count; n++)
        room = fmax(room, 2 * by_layout_half_room(fabric, layout, n));
    radius = fmax(130, (count * fmax(room + 18, 2.6 * layout->places[0].half_width)) / (2 * PI));
    pad = BY_LAYOUT_MARGIN + BY_LAYOUT_HOST_RADIUS + (layout->detail == BY_DETAIL_FULL ? room + 6 : 6);
    layout->width = 2 * (radius + pad);
    layout->height = 2 * (radius + BY_LAYOUT_HOST_RADIUS + 30);
    for (uint32_t n = 0; n < count; n++) {
        double angle = 2 * PI * n / count - PI / 2 - (count % 2 ? 0 : PI / count);

        layout->places[n].level = 0;
        layout->places[n].x = layout->width / 2 + radius * cos(angle);
        layout->places[n].y = layout->height / 2 + radius * sin(angle);
    }
}

struct by_layout *by_layout_make(const struct by_fabric *fabric)
{
    uint32_t count = fabric->topology->node_count;
    struct by_layout *layout = by_alloc(1, sizeof(*layout));

    layout->places = by_alloc(count, sizeof(*layout->places));
    layout->level_count = 1;
    size_nodes(fabric, layout);
    if (by_topology_compute_count(fabric->topology) != count) {
        if (by_layout_ring(fabric, layout))
            return layout;
        layout->shape = BY_SHAPE_LAYERS;
        by_layout_layers(fabric, layout);
        return layout;
    }
    layout->columns = find_columns(fabric);
    layout->shape = layout->columns ? BY_SHAPE_GRID : BY_SHAPE_CIRCLE;
    if (layout->columns)
        place_grid(fabric, layout);
    else
        place_circle(fabric, layout);
    return layout;
}

void by_layout_free(struct by_layout *layout)
{
    if (layout == NULL)
        return;
    free(layout->places);
    free(layout->group);
    free(layout->sectors);
    free(layout);
}

struct by_curve by_layout_curve(const struct by_fabric *fabric, const struct by_layout *layout, uint32_t from,
                                uint32_t to)
{
    const struct by_spot *p = &layout->places[from], *q = &layout->places[to];
    struct by_curve curve = {{p->x, p->y}, {(p->x + q->x) / 2, (p->y + q->y) / 2}, {q->x, q->y}};

    if (layout->shape == BY_SHAPE_RING)
        return by_layout_ring_curve(layout, from, to);
    if (layout->shape == BY_SHAPE_LAYERS && p->level == q->level) {
        curve.control.y -= fmin(110, 56 + 0.16 * fabs(p->x - q->x));
    } else if (layout->shape == BY_SHAPE_GRID) {
        /* A link between the ends of a row or column is curved around the nodes between them. */
        uint32_t columns = layout->columns, rows = fabric->topology->node_count / columns;
        uint32_t down = (from > to ? from - to : to - from) / columns;

        if (from / columns == to / columns && columns > 2 &&
            (from > to ? from - to : to - from) == columns - 1)
            curve.control.y -= 74;
        else if (rows > 2 && from % columns == to % columns && down == rows - 1)
            curve.control.x -= 74;
    }
    return curve;
}
