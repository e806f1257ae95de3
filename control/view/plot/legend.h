/*
 * The text of a picture: the lines that describe the fabric and the plan, and the legend of symbols
 * and colours. Neighbours: picture.c and summary_picture.c place it. Single-threaded.
 */
#ifndef BY_VIEW_PLOT_LEGEND_H
#define BY_VIEW_PLOT_LEGEND_H

#include <stdio.h>

#include "control/view/plot/fabric.h"

#define BY_LEGEND_BYTES 320

/*
 * Write lines such as "16 hosts, 3 switches, 32 links; ..." and "346.7 GB/s (algbw), the proven
 * optimum ...".
 */
void by_legend_fabric(const struct by_fabric *fabric, char line[BY_LEGEND_BYTES]);
void by_legend_plan(const struct by_fabric *fabric, char line[BY_LEGEND_BYTES]);
/*
 * Draws the legend in rows from (x, y) to width - x; with `trees`, it has an item for each drawn
 * tree. Returns the y coordinate of its end. If `out` is NULL it only measures.
 */
double by_legend_draw(const struct by_fabric *fabric, double x, double width, double y, bool trees,
                      FILE *out);

#endif
