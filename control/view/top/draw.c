/*
 * Draws the screen of `banyan top`: a head, the jobs with their missing peers, the switches, the
 * links. Lines consist of cells of fixed width and are cut at the screen's width, so nothing wraps.
 * Every colour repeats information of the text. See draw.h.
 */
#include "control/view/top/draw.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"

#define LINE_BYTES 1024u
/*
 * Width of a bar; width of a cell that fills the rest of the line; width of names; smallest screen
 * (columns).
 */
#define BAR              10u
#define REST             ((int)LINE_BYTES)
#define NAME_MAX_COLUMNS 20u
#define COLUMNS_MIN      40u

enum style { PLAIN, BOLD, DIM, RED, GREEN, YELLOW, REVERSE };
static const char *const codes[] = {"",         "\033[1m",  "\033[2m", "\033[1;31m",
                                    "\033[32m", "\033[33m", "\033[7m"};

/* A line under construction. */
struct line {
    unsigned used, columns, most;
    bool colours;
    char text[LINE_BYTES];
};

struct pen {
    struct by_top_page *page;
    struct line line;
};

static void begin(struct pen *pen)
{
    pen->line.used = pen->line.columns = 0;
    pen->line.text[0] = 0;
}

static void end(struct pen *pen)
{
    while (pen->line.used > 0 && pen->line.text[pen->line.used - 1] == ' ')
        pen->line.text[--pen->line.used] = 0;
    BY_GROW(pen->page->lines, pen->page->count, pen->page->room);
    pen->page->lines[pen->page->count++] = by_copy_text(pen->line.text);
}

static void append(struct line *line, const char *bytes, unsigned count)
{
    if (line->used + count >= LINE_BYTES)
        return;
    memcpy(line->text + line->used, bytes, count);
    line->used += count;
    line->text[line->used] = 0;
}

/*
 * Appends up to `most` UTF-8 characters, limited by the columns left. Each character counts as one
 * column wide.
 */
static unsigned put_text(struct line *line, const char *text, unsigned most)
{
    unsigned columns = 0;

    while (*text && columns < most && line->columns < line->most) {
        unsigned bytes = 1;

        while ((text[bytes] & 0xc0) == 0x80)
            bytes++;
        append(line, (unsigned char)*text < ' ' ? "?" : text, (unsigned char)*text < ' ' ? 1 : bytes);
        text += bytes;
        columns++;
        line->columns++;
    }
    return columns;
}

/* Appends a cell of `width` columns (negative: right-aligned) and a space. */
static void cell(struct pen *pen, enum style style, int width, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void cell(struct pen *pen, enum style style, int width, const char *format, ...)
{
    struct line *line = &pen->line;
    unsigned wide = (unsigned)(width < 0 ? -width : width), length = 0;
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    for (const char *at = text; *at; at++)
        length += (*at & 0xc0) != 0x80;
    for (; width < 0 && length < wide; length++)
        put_text(line, " ", 1);
    if (line->colours && style != PLAIN)
        append(line, codes[style], (unsigned)strlen(codes[style]));
    put_text(line, text, wide);
    if (line->colours && style != PLAIN)
        append(line, "\033[0m", 4);
    if (width == REST)
        return;
    for (; width > 0 && length < wide; length++)
        put_text(line, " ", 1);
    put_text(line, " ", 1);
}

void by_top_rate_text(double rate, char text[16])
{
    static const char *const units[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
    unsigned unit = 0;

    for (; rate >= 999.5 && unit < 4; unit++)
        rate /= 1000;
    if (rate < 0.5 && unit == 0)
        snprintf(text, 16, "-");
    else
        snprintf(text, 16, "%.*f %s",
                 unit == 0 || rate >= 99.95 ? 0
                 : rate >= 9.995            ? 1
                                            : 2,
                 rate, units[unit]);
}

static void bar(char text[BAR + 3], double share)
{
    unsigned full = share <= 0 ? 0 : share >= 1 ? BAR : (unsigned)(share * BAR + 0.5);

    if (share >= 0.01 && full == 0)
        full = 1;
    text[0] = '[';
    for (unsigned i = 0; i < BAR; i++)
        text[1 + i] = i < full ? '|' : ' ';
    text[1 + BAR] = ']';
    text[2 + BAR] = 0;
}

static enum style load_style(double share)
{
    return share >= 0.9 ? RED : share >= 0.6 ? YELLOW : GREEN;
}

static unsigned columns_of(const char *text)
{
    unsigned columns = 0;

    for (; *text; text++)
        columns += (*text & 0xc0) != 0x80;
    return columns < NAME_MAX_COLUMNS ? columns : NAME_MAX_COLUMNS;
}

static void widen(int *width, const char *text)
{
    if ((int)columns_of(text) > *width)
        *width = (int)columns_of(text);
}

static const char *ending(uint32_t count)
{
    return count == 1 ? "" : "s";
}

static void draw_head(struct pen *pen, const struct by_top_view *view, const char *clock)
{
    char left[256], right[256];
    int gap;

    snprintf(left, sizeof(left), " banyan top  %s", view->title);
    snprintf(right, sizeof(right), "%s%s  %s ", view->source,
             view->is_changing ? ", tables are being pushed" : "", clock);
    gap = (int)pen->line.most - (int)strlen(left) - (int)strlen(right);
    begin(pen);
    cell(pen, REVERSE, REST, "%s%*s%s", left, gap > 1 ? gap : 1, "", right);
    end(pen);
}

static void draw_summary(struct pen *pen, const struct by_top_view *view)
{
    uint32_t up = 0, ports = 0;
    char text[128];

    for (uint32_t i = 0; i < view->switch_count; i++) {
        up += strcmp(view->switches[i].state, "up") == 0;
        ports += view->switches[i].port_count;
    }
    begin(pen);
    snprintf(text, sizeof(text), " %u of %u switch%s up,", up, view->switch_count,
             view->switch_count == 1 ? "" : "es");
    cell(pen, up < view->switch_count ? RED : PLAIN, (int)strlen(text), "%s", text);
    snprintf(text, sizeof(text), "%u port%s,", ports, ending(ports));
    cell(pen, PLAIN, (int)strlen(text), "%s", text);
    snprintf(text, sizeof(text), "%u down,", view->down_links);
    cell(pen, view->down_links > 0 ? RED : PLAIN, (int)strlen(text), "%s", text);
    cell(pen, PLAIN, REST, "%u job%s", view->job_count, ending(view->job_count));
    end(pen);
}

/*
 * Finds a job's missing peers, and the switch that waits for them. `more` receives the number of
 * further waits.
 */
static const struct by_top_wait *find_wait(const struct by_top_view *view, uint32_t job,
                                           const struct by_top_switch **where, uint32_t *more)
{
    const struct by_top_wait *found = NULL;

    *more = 0;
    for (uint32_t i = 0; i < view->switch_count; i++) {
        const struct by_top_switch *device = &view->switches[i];

        for (uint32_t j = 0; j < device->wait_count; j++) {
            const struct by_top_wait *wait = &device->waits[j];

            if (wait->job != job || !wait->is_old)
                continue;
            *more += found != NULL;
            /*
             * A switch that waits for its parent only passes on a chunk that is missing elsewhere,
             * so other waits are preferred.
             */
            if (found == NULL ||
                (strncmp(found->missing, "its ", 4) == 0 && strncmp(wait->missing, "its ", 4) != 0)) {
                found = wait;
                *where = device;
            }
        }
    }
    return found;
}

static enum style job_style(const char *state)
{
    return strcmp(state, "failed") == 0                                    ? RED
           : strcmp(state, "running") == 0 || strcmp(state, "loaded") == 0 ? GREEN
                                                                           : YELLOW;
}

/*
 * Draws a job's share: what is reserved, what was used, and what had to wait because it exceeded
 * the share.
 */
static void draw_share(struct pen *pen, const struct by_top_job *job)
{
    char text[16];

    by_top_rate_text(job->share_rate, text);
    begin(pen);
    cell(pen, job->dropped_rate > 0 ? YELLOW : DIM, REST,
         "     share %.3g: %s received, %.0f packets/s held back, %.0f/s dropped", job->share, text,
         job->held_rate, job->dropped_rate);
    end(pen);
}

static void draw_jobs(struct pen *pen, const struct by_top_view *view)
{
    int name = 4, state = 5;

    for (uint32_t i = 0; i < view->job_count; i++) {
        widen(&name, view->jobs[i].name);
        widen(&state, view->jobs[i].state);
    }
    begin(pen);
    end(pen);
    begin(pen);
    cell(pen, BOLD, -4, "JOB");
    cell(pen, BOLD, name, "NAME");
    cell(pen, BOLD, state, "STATE");
    cell(pen, BOLD, -4, "GEN");
    cell(pen, BOLD, -6, "RANKS");
    cell(pen, BOLD, -7, "SLOTS");
    cell(pen, BOLD, REST, " WAITS FOR");
    end(pen);
    for (uint32_t i = 0; i < view->job_count; i++) {
        const struct by_top_job *job = &view->jobs[i];
        const struct by_top_switch *where = NULL;
        uint32_t more;
        const struct by_top_wait *wait = find_wait(view, job->job, &where, &more);

        begin(pen);
        cell(pen, PLAIN, -4, "%u", job->job);
        cell(pen, PLAIN, name, "%s", job->name);
        cell(pen, job_style(job->state), state, "%s", job->state);
        cell(pen, PLAIN, -4, "%u", job->generation);
        cell(pen, PLAIN, -6, "%u", job->ranks);
        cell(pen, PLAIN, -7, "%u", job->slots);
        if (wait == NULL)
            cell(pen, DIM, REST, " -");
        else if (more > 0)
            cell(pen, YELLOW, REST, " %s at %s (tree %u, chunk %u), and %u more", wait->missing, where->name,
                 wait->tree, wait->chunk, more);
        else
            cell(pen, YELLOW, REST, " %s at %s (tree %u, chunk %u)", wait->missing, where->name, wait->tree,
                 wait->chunk);
        end(pen);
        if (job->share > 0)
            draw_share(pen, job);
        if (job->text[0] != 0) {
            begin(pen);
            cell(pen, job_style(job->state), REST, "     %s", job->text);
            end(pen);
        }
    }
    if (view->job_count == 0) {
        begin(pen);
        cell(pen, DIM, REST, "     none");
        end(pen);
    }
}

static void draw_switch(struct pen *pen, const struct by_top_switch *device, int name, int state)
{
    double share = device->slots ? (double)device->slots_held / device->slots : 0, in = 0, out = 0,
           dropped = 0;
    bool is_up = strcmp(device->state, "up") == 0;
    char text[32];

    for (uint32_t i = 0; i < device->port_count; i++) {
        in += device->ports[i].rx_rate;
        out += device->ports[i].tx_rate;
        dropped += device->ports[i].drop_rate;
    }
    begin(pen);
    cell(pen, PLAIN, name, " %s", device->name);
    cell(pen, is_up ? GREEN : strcmp(device->state, "down") == 0 ? RED : YELLOW, state, "%s", device->state);
    if (!is_up) {
        cell(pen, RED, REST, "%s", device->text);
        end(pen);
        return;
    }
    bar(text, share);
    cell(pen, load_style(share), BAR + 2, "%s", text);
    snprintf(text, sizeof(text), "%u/%u", device->slots_held, device->slots);
    cell(pen, PLAIN, -13, "%s", text);
    snprintf(text, sizeof(text), "%u/%u", device->entries_held, device->entries);
    cell(pen, PLAIN, -11, "%s", text);
    by_top_rate_text(in, text);
    cell(pen, PLAIN, -9, "%s", text);
    by_top_rate_text(out, text);
    cell(pen, PLAIN, -9, "%s", text);
    snprintf(text, sizeof(text), dropped > 0 ? "%.0f/s" : "-", dropped);
    cell(pen, dropped > 0 ? RED : PLAIN, -8, "%s", text);
    cell(pen, YELLOW, REST, " %s", device->text);
    end(pen);
}

static void draw_switches(struct pen *pen, const struct by_top_view *view)
{
    int name = 6, state = 5;

    for (uint32_t i = 0; i < view->switch_count; i++) {
        widen(&name, view->switches[i].name);
        widen(&state, view->switches[i].state);
    }
    begin(pen);
    end(pen);
    begin(pen);
    cell(pen, BOLD, name + 1, " SWITCH");
    cell(pen, BOLD, state, "STATE");
    cell(pen, BOLD, BAR + 2, "SLOTS");
    cell(pen, BOLD, -13, "HELD");
    cell(pen, BOLD, -11, "ENTRIES");
    cell(pen, BOLD, -9, "IN");
    cell(pen, BOLD, -9, "OUT");
    cell(pen, BOLD, -8, "DROPPED");
    end(pen);
    for (uint32_t i = 0; i < view->switch_count; i++)
        draw_switch(pen, &view->switches[i], name + 1, state);
}

/* Draws one direction of a link, with a bar if its capacity is known. */
static void draw_way(struct pen *pen, double rate, double capacity)
{
    double share = capacity > 0 ? rate / capacity : 0;
    char text[32];

    bar(text, share);
    if (capacity > 0)
        cell(pen, load_style(share), BAR + 2, "%s", text);
    by_top_rate_text(rate, text);
    cell(pen, PLAIN, -9, "%s", text);
    if (capacity > 0)
        cell(pen, PLAIN, -4, "%.0f%%", 100 * share);
    cell(pen, PLAIN, 1, " ");
}

/*
 * A link between two switches has an end at each. Only the first end is shown, unless its switch
 * has no ports to show.
 */
static bool is_shown(const struct by_top_view *view, uint32_t index, const struct by_top_port *port)
{
    for (uint32_t i = 0; i < index; i++)
        if (strcmp(view->switches[i].name, port->peer) == 0)
            return view->switches[i].port_count == 0;
    return true;
}

static void draw_links(struct pen *pen, const struct by_top_view *view)
{
    int a = 4, b = 4;
    bool known = false;

    for (uint32_t i = 0; i < view->switch_count; i++) {
        const struct by_top_switch *device = &view->switches[i];

        widen(&a, device->name);
        for (uint32_t j = 0; j < device->port_count; j++) {
            widen(&b, device->ports[j].peer[0] ? device->ports[j].peer : device->ports[j].name);
            known = known || device->ports[j].tx_capacity > 0;
        }
    }
    begin(pen);
    end(pen);
    begin(pen);
    cell(pen, BOLD, a + 1, " LINK");
    cell(pen, BOLD, b + 1, " ");
    cell(pen, BOLD, known ? BAR + 2 + 10 + 5 + 2 : 9 + 2, known ? "OUT" : "      OUT");
    cell(pen, BOLD, REST, known ? "IN" : "       IN");
    end(pen);
    for (uint32_t i = 0; i < view->switch_count; i++) {
        const struct by_top_switch *device = &view->switches[i];

        for (uint32_t j = 0; j < device->port_count; j++) {
            const struct by_top_port *port = &device->ports[j];

            if (!is_shown(view, i, port))
                continue;
            begin(pen);
            cell(pen, PLAIN, a + 1, " %s", device->name);
            cell(pen, PLAIN, b + 1, " %s", port->peer[0] ? port->peer : port->name);
            if (port->is_down) {
                cell(pen, RED, REST, "down");
            } else {
                draw_way(pen, port->tx_rate, port->tx_capacity);
                draw_way(pen, port->rx_rate, port->rx_capacity);
            }
            end(pen);
        }
    }
}

void by_top_draw(const struct by_top_view *view, const char *clock, unsigned columns, bool colours,
                 struct by_top_page *page)
{
    struct pen pen = {.page = page,
                      .line = {.most = columns > COLUMNS_MIN ? columns : COLUMNS_MIN, .colours = colours}};

    draw_head(&pen, view, clock);
    draw_summary(&pen, view);
    draw_jobs(&pen, view);
    draw_switches(&pen, view);
    draw_links(&pen, view);
}

void by_top_page_free(struct by_top_page *page)
{
    for (uint32_t i = 0; i < page->count; i++)
        free(page->lines[i]);
    free(page->lines);
    *page = (struct by_top_page){0};
}
