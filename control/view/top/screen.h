/*
 * The terminal while `banyan top` is live: the alternate screen, unbuffered keys, its size, and
 * frames written in one call, so that nothing flickers. One instance at a time; single-threaded.
 */
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

/*
 * Takes over the terminal. It is restored when the process ends in any way except SIGKILL. Returns
 * 0 or -1.
 */
int by_screen_open(void);
void by_screen_close(void);
/* Returns the current numbers of rows and columns. */
void by_screen_size(unsigned *rows, unsigned *columns);
/* Shows the head of a page, then its lines from `first` on; lines that do not fit are omitted. */
void by_screen_show(const struct by_top_page *page, uint32_t first);
/* Returns the next key within `wait_ms`. */
enum by_top_key by_screen_key(int wait_ms);

#endif
