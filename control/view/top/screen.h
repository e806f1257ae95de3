/* The terminal while banyan top is live: its other screen, keys as they are pressed, its size, and
 * frames put on it in one write, so that nothing flickers. One at a time; single-threaded. */
#ifndef BY_VIEW_TOP_SCREEN_H
#define BY_VIEW_TOP_SCREEN_H

#include <stdint.h>

#include "control/view/top/draw.h"

enum by_top_key {
    BY_KEY_NONE = 1,
    BY_KEY_QUIT,
    BY_KEY_UP,
    BY_KEY_DOWN,
    BY_KEY_PAGE_UP,
    BY_KEY_PAGE_DOWN,
    BY_KEY_RESIZE
};

/* Takes the terminal; it is given back at the end of the process, whatever ends it but SIGKILL. 0
 * or -1. */
int by_screen_open(void);
void by_screen_close(void);
/* Rows and columns now. */
void by_screen_size(unsigned *rows, unsigned *columns);
/* Shows a page from line `first` behind its head; what does not fit is left out. */
void by_screen_show(const struct by_top_page *page, uint32_t first);
/* The next key within `wait_ms`. */
enum by_top_key by_screen_key(int wait_ms);

#endif
