/* A terminal, controlled by ANSI escape sequences (ECMA-48) and termios(3). See screen.h. */
#include "control/view/top/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "control/base/alloc.h"

#define ROWS    24u
#define COLUMNS 80u

static struct termios before;
static volatile sig_atomic_t is_open, resized, ended;

static void put(const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t done = write(STDOUT_FILENO, bytes, count);

        if (done < 0 && errno != EINTR && errno != EAGAIN)
            return;
        bytes += done > 0 ? done : 0;
        count -= done > 0 ? (size_t)done : 0;
    }
}

static void on_resize(int number)
{
    (void)number;
    resized = 1;
}

static void on_end(int number)
{
    (void)number;
    ended = 1;
}

void by_screen_close(void)
{
    static const char back[] = "\033[?25h\033[?1049l"; /* show the cursor, return to the main screen */

    if (!is_open)
        return;
    is_open = 0;
    put(back, sizeof(back) - 1);
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

int by_screen_open(void)
{
    static const char begin[] = "\033[?1049h\033[?25l\033[2J";
    struct sigaction resize = {.sa_handler = on_resize}, end = {.sa_handler = on_end};
    struct termios raw;

    if (tcgetattr(STDIN_FILENO, &before) != 0)
        return -1;
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0)
        return -1;
    is_open = 1;
    atexit(by_screen_close);
    sigaction(SIGWINCH, &resize, NULL);
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGHUP, &end, NULL);
    put(begin, sizeof(begin) - 1);
    return 0;
}

void by_screen_size(unsigned *rows, unsigned *columns)
{
    struct winsize size = {0};

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
        size = (struct winsize){.ws_row = ROWS, .ws_col = COLUMNS};
    *rows = size.ws_row;
    *columns = size.ws_col;
}

/* Appends a line and the sequence that clears the rest of its row. */
static void add_line(char **frame, size_t *used, size_t *room, const char *line, bool last)
{
    size_t bytes = strlen(line);

    if (*used + bytes + 16 > *room) {
        *room = 2 * (*used + bytes + 16);
        *frame = by_realloc(*frame, *room, 1);
    }
    *used += (size_t)snprintf(*frame + *used, *room - *used, "%s\033[K%s", line, last ? "" : "\r\n");
}

void by_screen_show(const struct by_top_page *page, uint32_t first)
{
    unsigned rows, columns, head;
    char *frame = by_copy_text("\033[H");
    size_t used = 3, room = 4;

    by_screen_size(&rows, &columns);
    head = page->count < BY_TOP_HEAD_LINES ? page->count : BY_TOP_HEAD_LINES;
    for (unsigned row = 0; row < rows; row++) {
        uint32_t index = row < head ? row : row + first;

        if (index >= page->count)
            break;
        add_line(&frame, &used, &room, page->lines[index], row + 1 == rows || index + 1 == page->count);
    }
    put(frame, used);
    put("\033[J", 3);
    free(frame);
}

/* Decodes a key's escape sequence by its last byte. */
static enum by_top_key escape_key(const char *bytes, ssize_t count)
{
    if (count == 1)
        return BY_KEY_QUIT; /* the escape key itself */
    if (count < 3 || bytes[1] != '[')
        return BY_KEY_NONE;
    switch (bytes[2]) {
    case 'A':
        return BY_KEY_UP;
    case 'B':
        return BY_KEY_DOWN;
    case '5':
        return BY_KEY_PAGE_UP;
    case '6':
        return BY_KEY_PAGE_DOWN;
    default:
        return BY_KEY_NONE;
    }
}

enum by_top_key by_screen_key(int wait_ms)
{
    struct pollfd entry = {.fd = STDIN_FILENO, .events = POLLIN};
    char bytes[16];
    ssize_t count;
    int ready = ended || resized ? 0 : poll(&entry, 1, wait_ms);

    if (ended)
        return BY_KEY_QUIT;
    if (resized) {
        resized = 0;
        return BY_KEY_RESIZE;
    }
    if (ready <= 0)
        return BY_KEY_NONE;
    count = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (count <= 0)
        return entry.revents & (POLLHUP | POLLERR) || count == 0 ? BY_KEY_QUIT : BY_KEY_NONE;
    switch (bytes[0]) {
    case 'q':
    case 'Q':
    case 3:
        return BY_KEY_QUIT;
    case 'k':
        return BY_KEY_UP;
    case 'j':
        return BY_KEY_DOWN;
    case ' ':
        return BY_KEY_PAGE_DOWN;
    case 'b':
        return BY_KEY_PAGE_UP;
    case '\033':
        return escape_key(bytes, count);
    default:
        return BY_KEY_NONE;
    }
}
