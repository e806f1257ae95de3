/* Colours of trees and of loads. See color.h. */
#include "control/view/plot/color.h"

#include <math.h>
#include <stdio.h>

/* After Okabe and Ito, "Color universal design" (2008), for colour-blind readers. */
const char *by_tree_color(uint32_t index)
{
    static const char *const colors[BY_PLOT_TREES_MAX] = {"#0072b2", "#d55e00", "#009e73", "#b0408a",
                                                          "#d99100", "#3aa6dd", "#6a3d9a", "#7a4a2b"};

    return colors[index % BY_PLOT_TREES_MAX];
}

const char *by_load_color(double part, char color[BY_COLOR_BYTES])
{
    static const double stops[4][4] = {
        {0, 206, 214, 222}, {0.5, 242, 196, 68}, {0.8, 240, 128, 36}, {1, 205, 33, 42}};
    double rgb[3];
    unsigned i = 0;

    part = fmin(fmax(part, 0), 1);
    while (i < 2 && part > stops[i + 1][0])
        i++;
    for (unsigned c = 0; c < 3; c++)
        rgb[c] = stops[i][c + 1] + (stops[i + 1][c + 1] - stops[i][c + 1]) * (part - stops[i][0]) /
                                       (stops[i + 1][0] - stops[i][0]);
    snprintf(color, BY_COLOR_BYTES, "#%02x%02x%02x", (unsigned)rgb[0], (unsigned)rgb[1], (unsigned)rgb[2]);
    return color;
}
