/*
 * Shows the load of every link of a large fabric as coloured strips: one strip for each pair of
 * joined node kinds, its links sorted by load, the most loaded on the left. Neighbour:
 * summary_picture.c. Single-threaded.
 */
#ifndef BY_VIEW_PLOT_STRIPS_H
#define BY_VIEW_PLOT_STRIPS_H

#include <stdio.h>

#include "control/view/plot/fabric.h"

/* Draws the strips from (0, 0); returns their height. If `out` is NULL it only measures. */
double by_strips_draw(const struct by_fabric *fabric, double width, FILE *out);

#endif
