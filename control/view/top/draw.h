/* A view as lines of a screen, and as JSON. Pure but for memory. */
#ifndef BY_VIEW_TOP_DRAW_H
#define BY_VIEW_TOP_DRAW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "control/view/top/view.h"

/* Lines that stay on top while the rest is scrolled (count). */
#define BY_TOP_HEAD_LINES 2u

struct by_top_page {
    char **lines; /* without line ends; with escape sequences where there are colours */
    uint32_t count, room;
};

/* Draws a view for a screen of `columns` (at least 40; narrower ones are cut). `clock` is the time
 * of day to show. */
void by_top_draw(const struct by_top_view *view, const char *clock, unsigned columns, bool colours,
                 struct by_top_page *page);
void by_top_page_free(struct by_top_page *page);
/* The view as one JSON object. */
void by_top_json(const struct by_top_view *view, FILE *stream);
/* "1.20 GB/s", at most 9 characters. */
void by_top_rate_text(double bytes_per_second, char text[16]);

#endif
