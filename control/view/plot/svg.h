/*
 * Writes SVG: shapes, text and curves with the few attributes that banyan's pictures need. Only
 * this module escapes text. Single-threaded. The caller that opened the stream checks it for errors
 * at the end.
 */
#ifndef BY_VIEW_PLOT_SVG_H
#define BY_VIEW_PLOT_SVG_H

#include <stdio.h>

struct by_point {
    double x, y;
};

/*
 * A link's line: a quadratic Bezier curve. The control point of a straight line is in its middle.
 */
struct by_curve {
    struct by_point from, control, to;
};

enum by_anchor { BY_ANCHOR_START = 1, BY_ANCHOR_MIDDLE, BY_ANCHOR_END };

struct by_svg_text {
    double size;
    enum by_anchor anchor;
    const char *fill;
    unsigned bold; /* 0 or 1 */
    unsigned halo; /* 1: with a white outline, readable on top of lines */
};

void by_svg_begin(FILE *out, double width, double height, const char *title);
void by_svg_end(FILE *out);
/*
 * Begins a group: `translate` applies to everything until by_svg_group_end. `extra` (may be NULL)
 * has more attributes.
 */
void by_svg_group_begin(FILE *out, double x, double y, const char *extra);
void by_svg_group_end(FILE *out);
/* Writes escaped character data. */
void by_svg_escape(FILE *out, const char *text);
void by_svg_text(FILE *out, double x, double y, const struct by_svg_text *style, const char *text);
/*
 * Draws the curve. `extra` (may be NULL) has more attributes; `tip` (may be NULL) is shown under
 * the pointer.
 */
void by_svg_curve(FILE *out, const struct by_curve *curve, const char *stroke, double width,
                  const char *extra, const char *tip);
/* Draws a filled arrow head with its tip at `at`, in the direction `direction`. */
void by_svg_arrow(FILE *out, struct by_point at, struct by_point direction, double size, const char *fill);

/* Returns the curve moved to its right (seen along from -> to) by `distance`. */
struct by_curve by_curve_shifted(const struct by_curve *curve, double distance);
struct by_point by_curve_at(const struct by_curve *curve, double t);
/* Returns the unit tangent. */
struct by_point by_curve_direction(const struct by_curve *curve, double t);

#endif
