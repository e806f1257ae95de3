/*
 * Draws one period of a schedule as a Gantt chart: a row for each link in use and for each
 * processor, time to the right, a bar for each transfer and combination, and the matchings as
 * columns. Neighbours: svg.h; control/study/series holds the schedules. Single-threaded.
 */
#ifndef BY_VIEW_PLOT_GANTT_H
#define BY_VIEW_PLOT_GANTT_H

#include <stdio.h>

#include "control/study/series/series.h"

/* Writes the whole SVG file. */
void by_gantt_write(const struct by_series *series, const struct by_topology *topology, FILE *out);

#endif
