/*
 * Draws a fabric: its links (by capacity, by load, or pale with trees on them), the side of the
 * bottleneck, nodes and labels. A picture has one or two panels. Single-threaded.
 */
#ifndef BY_VIEW_PLOT_PANEL_H
#define BY_VIEW_PLOT_PANEL_H

#include <stdio.h>

#include "control/view/plot/color.h"
#include "control/view/plot/fabric.h"
#include "control/view/plot/layout.h"

enum by_panel_kind { BY_PANEL_FABRIC = 1, BY_PANEL_LOAD, BY_PANEL_TREES };

/* Values that are the same for all links. Labels omit them, and the legend shows them. */
struct by_panel_facts {
    bool one_bandwidth; /* every channel and direction has `bandwidth` */
    double bandwidth;
    bool one_load; /* every used direction has the same utilisation `load` */
    double load;
};

void by_panel_facts(const struct by_fabric *fabric, struct by_panel_facts *facts);
void by_panel_draw(const struct by_fabric *fabric, const struct by_layout *layout, enum by_panel_kind kind,
                   FILE *out);
/* Returns the width of a link's line, 0 for no link. */
double by_link_width(const struct by_fabric *fabric, double capacity);

/* Draws a node symbol (also for the legend): kind 0 host, 1 capable switch, 2 plain switch. */
void by_symbol_draw(FILE *out, enum by_symbol kind, double x, double y, double half_width,
                    double half_height);

#endif
