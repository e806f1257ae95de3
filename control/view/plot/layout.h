/*
 * Positions of a fabric's nodes in a picture, in pixels; y grows downwards. Single-threaded.
 * - With switches, in layers (layers.c): hosts at the bottom, each switch above the nodes that it
 *   serves, spines at the top.
 * - If the switches form groups, as in a dragonfly, on a ring (ring.c).
 * - Without switches, on a grid if the links form one, else on a circle, in the file's order.
 */
#ifndef BY_VIEW_PLOT_LAYOUT_H
#define BY_VIEW_PLOT_LAYOUT_H

#include <stdio.h>

#include "control/view/plot/fabric.h"
#include "control/view/plot/svg.h"

#define BY_LAYOUT_MARGIN      28.0
#define BY_LAYOUT_HOST_RADIUS 19.0

struct by_spot {
    double x, y;
    double half_width, half_height;
    uint32_t level; /* 0 = hosts */
};

enum by_shape { BY_SHAPE_LAYERS = 1, BY_SHAPE_GRID, BY_SHAPE_CIRCLE, BY_SHAPE_RING };

/* A part of a ring, as angles: clockwise, from the top. */
struct by_sector {
    double from, to;
};

enum by_detail {
    BY_DETAIL_FULL = 1, /* names below hosts, captions in switches */
    BY_DETAIL_NUMBERS,  /* hosts show their rank, switches their name */
};

struct by_layout {
    struct by_spot *places; /* by node */
    uint32_t level_count;
    enum by_shape shape;
    uint32_t columns; /* columns of a grid */
    /* Members for a ring. */
    double radius; /* radius of the circle of switches */
    uint32_t group_count;
    uint32_t *group;           /* by node: its group */
    struct by_sector *sectors; /* by group: its part of the ring */
    enum by_detail detail;
    double font;          /* size of node names */
    double width, height; /* size of the drawing, with margins for names and arcs */
};

/* Places all nodes without overlaps. The caller frees the result. */
struct by_layout *by_layout_make(const struct by_fabric *fabric);
void by_layout_free(struct by_layout *layout);
/* Places a fabric with switches in layers. by_layout_make calls it after it has set the sizes. */
void by_layout_layers(const struct by_fabric *fabric, struct by_layout *layout);
/* Places a fabric whose switches form groups; returns false if they do not. */
bool by_layout_ring(const struct by_fabric *fabric, struct by_layout *layout);
/* Returns the line between two nodes. */
struct by_curve by_layout_curve(const struct by_fabric *fabric, const struct by_layout *layout, uint32_t from,
                                uint32_t to);
/* Returns the line between two nodes of a ring. */
struct by_curve by_layout_ring_curve(const struct by_layout *layout, uint32_t from, uint32_t to);
/* Draws the frames of the groups, which are below everything else. */
void by_layout_ring_draw(const struct by_layout *layout, FILE *out);
/* Returns the level of each node, 0 for hosts. The caller frees it. */
uint32_t *by_layout_levels(const struct by_fabric *fabric);
/* Returns half the width that a node needs, for its shape or the name below it. */
double by_layout_half_room(const struct by_fabric *fabric, const struct by_layout *layout, uint32_t n);
/*
 * Copies a name, shortened to the length that fits a picture; a mark shows that it was shortened.
 */
#define BY_LABEL_BYTES 20
const char *by_layout_label(const char *name, char label[BY_LABEL_BYTES]);
/* Returns an upper estimate of the width of `text` at font size `font`. */
double by_layout_text_width(const char *text, double font);

#endif
