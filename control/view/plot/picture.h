/*
 * A picture of a fabric and of a plan on it, as SVG: the cut that limits the plan, the load of each
 * link, and trees in their own colours. Neighbours: fabric.h (what is drawn), layout.h (where),
 * panel.h (one drawing), dot.h (the same facts for Graphviz). Single-threaded.
 */
#ifndef BY_VIEW_PLOT_PICTURE_H
#define BY_VIEW_PLOT_PICTURE_H

#include <stdio.h>

#include "control/view/plot/color.h"
#include "control/view/plot/fabric.h"

/* Writes the whole SVG file. */
void by_picture_write(const struct by_fabric *fabric, FILE *out);
/* Writes the SVG file of a large fabric: what is alike once, the load of all links as strips of
 * colour, and one tree of the chosen root with its equal branches once (summary.h, strips.h,
 * crown.h). */
void by_picture_summary_write(const struct by_fabric *fabric, FILE *out);
/* Writes the same as a DOT file for Graphviz. */
void by_dot_write(const struct by_fabric *fabric, FILE *out);

#endif
