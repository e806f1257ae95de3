/*
 * Shows the limits of a plan behind the links of a panel: one side of the bottleneck as a soft
 * shape, or each part of the partition that proves the bound; and bars across the links that count
 * for it. Single-threaded.
 */
#ifndef BY_VIEW_PLOT_SHADE_H
#define BY_VIEW_PLOT_SHADE_H

#include <stdio.h>

#include "control/view/plot/fabric.h"
#include "control/view/plot/layout.h"

/* Draws the shapes, below the links. */
void by_shade_draw(const struct by_fabric *fabric, const struct by_layout *layout, FILE *out);
/* Draws the bars, above the links. */
void by_shade_bars(const struct by_fabric *fabric, const struct by_layout *layout, FILE *out);
/*
 * Returns the colour of part number `part`. Neighbouring parts have different colours if six
 * colours suffice.
 */
const char *by_shade_color(const struct by_fabric *fabric, uint32_t part);

#endif
