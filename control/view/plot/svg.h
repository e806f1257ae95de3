/*
 * Writing SVG: shapes, text and curves with the few attributes that our pictures use. Text is
 * escaped here and nowhere else. Single-threaded; errors of the stream are found at the end by
 * whoever opened it.
 */
#ifndef BY_VIEW_PLOT_SVG_H
#define BY_VIEW_PLOT_SVG_H

#include <stdio.h>

struct by_point {
    double x, y;
};

/* A link as it is drawn: a quadratic Bezier curve; a straight line has its control point in the
 * middle. */
struct by_curve {
    struct by_point from, control, to;
};

enum by_anchor { BY_ANCHOR_START = 1, BY_ANCHOR_MIDDLE, BY_ANCHOR_END };

struct by_svg_text {
    double size;
    enum by_anchor anchor;
    const char *fill;
    unsigned bold; /* 0 or 1 */
    unsigned halo; /* 1: a white rim, so that it can be read on lines */
};

void by_svg_begin(FILE *out, double width, double height, const char *title);
void by_svg_end(FILE *out);
/* `translate` of what follows until by_svg_group_end. `extra` (may be NULL) is more attributes. */
void by_svg_group_begin(FILE *out, double x, double y, const char *extra);
void by_svg_group_end(FILE *out);
/* Escaped character data. */
void by_svg_escape(FILE *out, const char *text);
void by_svg_text(FILE *out, double x, double y, const struct by_svg_text *style, const char *text);
/* Draws the curve; `extra` (may be NULL) is more attributes; `tip` (may be NULL) is shown when the
 * pointer rests on it. */
void by_svg_curve(FILE *out, const struct by_curve *curve, const char *stroke, double width,
                  const char *extra, const char *tip);
/* A filled arrow head with its tip at `at`, pointing along `direction`. */
void by_svg_arrow(FILE *out, struct by_point at, struct by_point direction, double size, const char *fill);

/* The curve moved to its right (seen along from -> to) by `distance`. */
struct by_curve by_curve_shifted(const struct by_curve *curve, double distance);
struct by_point by_curve_at(const struct by_curve *curve, double t);
/* Unit tangent. */
struct by_point by_curve_direction(const struct by_curve *curve, double t);

#endif
