/*
 * What limits a plan, behind the links of a panel: the bottleneck's side as one soft shape, or the
 * parts of the partition that trees cannot beat, each a shape of its own; and bars across the links
 * that count. Single-threaded.
 */
#ifndef BY_VIEW_PLOT_SHADE_H
#define BY_VIEW_PLOT_SHADE_H

#include <stdio.h>

#include "control/view/plot/fabric.h"
#include "control/view/plot/layout.h"

/* The shapes, to be drawn below the links. */
void by_shade_draw(const struct by_fabric *fabric, const struct by_layout *layout, FILE *out);
/* The bars, above the links. */
void by_shade_bars(const struct by_fabric *fabric, const struct by_layout *layout, FILE *out);
/* Colour of part number `part`: neighbouring parts differ where six colours suffice. */
const char *by_shade_color(const struct by_fabric *fabric, uint32_t part);

#endif
