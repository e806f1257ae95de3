/* The colours of all pictures. Static memory but for by_load_color; any thread. */
#ifndef BY_VIEW_PLOT_COLOR_H
#define BY_VIEW_PLOT_COLOR_H

#include <stdint.h>

#define BY_COLOR_TEXT  "#1d2733"
#define BY_COLOR_MUTED "#66727f"
#define BY_COLOR_LINK  "#b4bfca"
#define BY_COLOR_CUT   "#6d3fc0"

/* The largest number of trees in one picture: each has its own colour. */
#define BY_PLOT_TREES_MAX 8u
/* Colour of the drawn tree number `index`. */
const char *by_tree_color(uint32_t index);

/* Colour for a part 0..1 of a link's capacity: pale, amber, red. */
#define BY_COLOR_BYTES 8
const char *by_load_color(double part, char color[BY_COLOR_BYTES]);

#endif
