/*
 * Draws a fabric and a plan on it as an SVG picture: the cut that limits the plan, the load of each
 * link, and trees, each in its own colour. Neighbours: fabric.h (facts), layout.h (positions),
 * panel.h (one drawing), dot.c (the same facts for Graphviz). Single-threaded.
 */
#ifndef BY_VIEW_PLOT_PICTURE_H
#define BY_VIEW_PLOT_PICTURE_H

#include <stdio.h>

#include "control/view/plot/color.h"
#include "control/view/plot/fabric.h"

/* Writes the whole SVG file. */
void by_picture_write(const struct by_fabric *fabric, FILE *out);
/*
 * Writes the SVG file of a large fabric: equal parts drawn once, the load of all links as coloured
 * strips, and one tree of the chosen root with equal branches merged (summary.h, strips.h,
 * crown.h).
 */
void by_picture_summary_write(const struct by_fabric *fabric, FILE *out);
/* Writes the same facts as a DOT file for Graphviz. */
void by_dot_write(const struct by_fabric *fabric, FILE *out);

#endif
