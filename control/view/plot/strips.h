/*
 * The load of every link of a large fabric as strips of colour: one strip for each two kinds of
 * nodes that are joined, its links sorted by load, the fullest on the left. Neighbours:
 * summary_picture.c. Single-threaded.
 */
#ifndef BY_VIEW_PLOT_STRIPS_H
#define BY_VIEW_PLOT_STRIPS_H

#include <stdio.h>

#include "control/view/plot/fabric.h"

/* Draws them from (0, 0) on; returns their height. With `out` NULL it only measures. */
double by_strips_draw(const struct by_fabric *fabric, double width, FILE *out);

#endif
