/*
 * The words of a picture: the lines that say what the fabric and the plan are, and the legend of
 * symbols and colours. Neighbours: picture.c and summary_picture.c, which place them.
 * Single-threaded.
 */
#ifndef BY_VIEW_PLOT_LEGEND_H
#define BY_VIEW_PLOT_LEGEND_H

#include <stdio.h>

#include "control/view/plot/fabric.h"

#define BY_LEGEND_BYTES 320

/* "16 hosts, 3 switches, 32 links; ..." and "346.7 GB/s (algbw), the proven optimum ...". */
void by_legend_fabric(const struct by_fabric *fabric, char line[BY_LEGEND_BYTES]);
void by_legend_plan(const struct by_fabric *fabric, char line[BY_LEGEND_BYTES]);
/* Draws the legend in rows from (x, y) to width - x, with an item for each drawn tree where
 * `trees`; returns where it ends. With `out` NULL it only measures. */
double by_legend_draw(const struct by_fabric *fabric, double x, double width, double y, bool trees,
                      FILE *out);

#endif
