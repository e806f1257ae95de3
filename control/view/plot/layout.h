/*
 * Where each node of a fabric stands on a picture. Fabrics with switches stand in layers
 * (layers.c): hosts at the bottom, each switch above what it serves, spines on top; those whose
 * switches form groups, as a dragonfly's do, on a ring (ring.c). Fabrics without switches stand on
 * a grid when their links are one, else on a circle, in the file's order. Coordinates are in pixels
 * of the picture, y grows downwards. Single-threaded.
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

/* A part of a ring: angles, from the top on with the clock. */
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
    uint32_t columns; /* of a grid */
    /* Of a ring: */
    double radius; /* of its switches */
    uint32_t group_count;
    uint32_t *group;           /* by node */
    struct by_sector *sectors; /* by group */
    enum by_detail detail;
    double font;          /* of node names */
    double width, height; /* of the drawing, margins for names and arcs included */
};

/* Places all nodes without overlaps. The caller frees. */
struct by_layout *by_layout_make(const struct by_fabric *fabric);
void by_layout_free(struct by_layout *layout);
/* Places fabrics with switches; called by by_layout_make with sizes filled in. */
void by_layout_layers(const struct by_fabric *fabric, struct by_layout *layout);
/* Places fabrics whose switches form groups; false where they do not. */
bool by_layout_ring(const struct by_fabric *fabric, struct by_layout *layout);
/* The line between two nodes. */
struct by_curve by_layout_curve(const struct by_fabric *fabric, const struct by_layout *layout, uint32_t from,
                                uint32_t to);
/* The same on a ring. */
struct by_curve by_layout_ring_curve(const struct by_layout *layout, uint32_t from, uint32_t to);
/* Draws the groups' frames, which lie below all else. */
void by_layout_ring_draw(const struct by_layout *layout, FILE *out);
/* The level of each node, 0 for hosts; the caller frees. */
uint32_t *by_layout_levels(const struct by_fabric *fabric);
/* Half the width that a node needs: its shape, or the name below it. */
double by_layout_half_room(const struct by_fabric *fabric, const struct by_layout *layout, uint32_t n);
/* A name cut to what a picture holds, with a mark where it was cut. */
#define BY_LABEL_BYTES 20
const char *by_layout_label(const char *name, char label[BY_LABEL_BYTES]);
/* How wide `text` is when drawn with the size `font`, on the safe side. */
double by_layout_text_width(const char *text, double font);

#endif
