/* Draws a view as lines of a screen, or as JSON. Pure except for memory. */
#ifndef BY_VIEW_TOP_DRAW_H
#define BY_VIEW_TOP_DRAW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "control/view/top/view.h"

/* Lines that stay at the top when the others are scrolled (count). */
#define BY_TOP_HEAD_LINES 2u

struct by_top_page {
    char **lines; /* without line ends; with escape sequences if colours are on */
    uint32_t count, room;
};

/*
 * Draws a view for a screen of `columns` (at least 40; lines are cut for narrower screens). `clock`
 * is the time of day that is shown.
 */
void by_top_draw(const struct by_top_view *view, const char *clock, unsigned columns, bool colours,
                 struct by_top_page *page);
void by_top_page_free(struct by_top_page *page);
/* Writes the view as one JSON object. */
void by_top_json(const struct by_top_view *view, FILE *stream);
/* Writes a rate such as "1.20 GB/s", at most 9 characters. */
void by_top_rate_text(double bytes_per_second, char text[16]);

#endif
