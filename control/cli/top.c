/*
 * The command `banyan top`: shows the activity on a fabric, live on a terminal or once. Neighbour:
 * control/view/top takes samples and draws them. Single-threaded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/cli/cli.h"
#include "control/cli/http.h"
#include "control/cli/target.h"
#include "control/service/controller/http.h"
#include "control/view/top/draw.h"
#include "control/view/top/screen.h"
#include "control/view/top/source.h"

/*
 * Timeout for a switch that does not answer (ms). It blocks the screen for this time, once in a
 * while.
 */
#define SWITCH_MS 1000u
/* Width of the output if it is not a terminal (columns). */
#define PLAIN_COLUMNS 120u

struct top_arguments {
    struct by_top_source source;
    uint32_t interval_s;
    const char *controller, *topology;
    char server[BY_HTTP_PATH_MAX];
    bool once, json;
};

static void add_target(void *context, const char *name, size_t length, const char *address)
{
    struct by_top_source *source = context;
    struct by_top_target *target;

    BY_GROW(source->targets, source->target_count, source->target_room);
    target = &source->targets[source->target_count++];
    *target = (struct by_top_target){.name = by_copy_part(name, length), .address = by_copy_text(address)};
}

static int take_switch(void *object, const char *text, struct by_option_why *why)
{
    (void)why;
    return by_cli_target(text, add_target, &((struct top_arguments *)object)->source);
}

static int take_sockets(void *object, const char *folder, struct by_option_why *why)
{
    (void)why;
    return by_cli_target_folder(folder, add_target, &((struct top_arguments *)object)->source);
}

static int take_site(void *object, const char *path, struct by_option_why *why)
{
    (void)why;
    return by_cli_target_site(path, true, add_target, &((struct top_arguments *)object)->source);
}

#define AT(member) BY_OPTION_AT(struct top_arguments, member)

static const struct by_option option_rows[] = {
    {BY_CLI_CONTROLLER_ROW(controller)},
    {BY_ROW_CALL(0, "to", "NAME=ADDR", take_switch, "query this switch; may be repeated")},
    {BY_ROW_CALL(0, "sockets", "DIR", take_sockets, "query every switch that has a socket in this folder")},
    {BY_ROW_CALL(0, "site", "FILE", take_site,
                 "query every switch that has a control channel in this file, see banyan-site(5)")},
    {BY_ROW_TEXT(0, "topology", "FILE", AT(topology),
                 "read names and capacities from FILE, for switches that are queried directly")},
    BY_SESSION_ROWS(source.access),
    {BY_ROW_NUMBER(0, "interval", "S", AT(interval_s), 1, 3600,
                   "take a sample every S seconds, %r (default 1)")},
    {BY_ROW_FLAG(0, "once", AT(once), "print one view, over one interval, as text")},
    {BY_ROW_FLAG(0, "json", AT(json), "print the same as one JSON object")},
    {0}};

static const struct by_options command_line = {
    .program = "banyan top",
    .usage = "banyan top [options]",
    .about =
        "Shows jobs with the hosts that are missing, switches with their slots, links with their rates: live "
        "until q is pressed. Queries a banyand or, with --to, --sockets or --site, the switches themselves.",
    .epilog = "Keys: q ends, arrows (or j and k) and page up and down (or b and space) scroll.",
    .rows = option_rows};

static int parse(int argc, char **argv, struct top_arguments *arguments)
{
    struct by_top_source *source = &arguments->source;
    int status = by_options_read(&command_line, arguments, &argc, argv);

    if (status >= 0)
        return status == 0 ? -1 : status;
    if (arguments->controller != NULL && source->target_count > 0)
        return by_cli_fail(BY_EXIT_USAGE,
                           "--controller has a list of its switches: leave out --to, --sockets and --site");
    if (arguments->topology != NULL && source->target_count == 0)
        return by_cli_fail(BY_EXIT_USAGE,
                           "--topology is for --to, --sockets and --site: banyand has its own");
    if (source->target_count == 0) {
        by_http_default(arguments->server);
        source->http = arguments->controller ? arguments->controller : arguments->server;
    }
    by_session_access_complete(&source->access);
    if (arguments->topology != NULL && (source->topology = by_cli_topology(arguments->topology)) == NULL)
        return BY_EXIT_USAGE;
    return 0;
}

static void clock_text(char text[16])
{
    time_t now = time(NULL);
    struct tm local;

    if (localtime_r(&now, &local) == NULL || strftime(text, 16, "%T", &local) == 0)
        text[0] = 0;
}

static void print_page(const struct by_top_view *view)
{
    struct by_top_page page = {0};
    unsigned rows, columns = PLAIN_COLUMNS;
    bool colours = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL;
    char clock[16];

    if (isatty(STDOUT_FILENO))
        by_screen_size(&rows, &columns);
    clock_text(clock);
    by_top_draw(view, clock, columns, colours, &page);
    for (uint32_t i = 0; i < page.count; i++)
        puts(page.lines[i]);
    by_top_page_free(&page);
}

/* Prints one view, from two samples an interval apart. */
static int look_once(struct by_top_source *source, const struct top_arguments *arguments)
{
    struct by_top_view before = {0}, view = {0};
    struct by_problem problem = {0};
    int error = by_top_sample(source, &before, &problem);

    if (error == 0) {
        sleep(arguments->interval_s);
        error = by_top_sample(source, &view, &problem);
    }
    if (error == 0) {
        by_top_rates(&view, &before);
        if (arguments->json)
            by_top_json(&view, stdout);
        else
            print_page(&view);
    }
    by_top_view_free(&before);
    by_top_view_free(&view);
    return error == 0 ? BY_EXIT_DONE : by_cli_fail(BY_EXIT_ENVIRONMENT, "%s", problem.text);
}

/* Scrolls the lines below the head; the last line stays visible. */
static void scroll(uint32_t *first, int64_t by, uint32_t lines)
{
    unsigned rows, columns;
    int64_t at = (int64_t)*first + by, most;

    by_screen_size(&rows, &columns);
    most = (int64_t)lines - rows;
    if (at > most)
        at = most;
    *first = at > 0 ? (uint32_t)at : 0;
}

static void show(const struct by_top_view *view, const char *trouble, uint32_t *first, int64_t by)
{
    struct by_top_view shown = *view;
    struct by_top_page page = {0};
    unsigned rows, columns;
    char clock[16];

    if (trouble[0] != 0)
        snprintf(shown.source, sizeof(shown.source), "%.140s", trouble);
    by_screen_size(&rows, &columns);
    clock_text(clock);
    by_top_draw(&shown, clock, columns, getenv("NO_COLOR") == NULL, &page);
    scroll(first, by, page.count);
    by_screen_show(&page, *first);
    by_top_page_free(&page);
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Handles keys until the next sample is due. Returns false if the user quits. */
static bool serve_keys(const struct by_top_view *view, const char *trouble, uint32_t *first, int64_t until)
{
    unsigned rows, columns;
    int64_t left;

    while ((left = until - now_ms()) > 0) {
        enum by_top_key key = by_screen_key((int)left);
        int64_t by = 0;

        by_screen_size(&rows, &columns);
        switch (key) {
        case BY_KEY_QUIT:
            return false;
        case BY_KEY_NONE:
            continue;
        case BY_KEY_UP:
            by = -1;
            break;
        case BY_KEY_DOWN:
            by = 1;
            break;
        case BY_KEY_PAGE_UP:
            by = -(int64_t)(rows / 2);
            break;
        case BY_KEY_PAGE_DOWN:
            by = rows / 2;
            break;
        case BY_KEY_RESIZE:
            break;
        }
        show(view, trouble, first, by);
    }
    return true;
}

static int look_live(struct by_top_source *source, const struct top_arguments *arguments)
{
    struct by_top_view view = {0}, next = {0};
    struct by_problem problem = {0};
    uint32_t first = 0;
    int error = by_top_sample(source, &view, &problem);

    if (error != 0)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "%s", problem.text);
    if (by_screen_open() != 0)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "cannot use the terminal: %s: run banyan top --once",
                           strerror(errno));
    for (;;) {
        int64_t until = now_ms() + (int64_t)arguments->interval_s * 1000;

        show(&view, problem.text, &first, 0);
        if (!serve_keys(&view, problem.text, &first, until))
            break;
        problem.text[0] = 0;
        error = by_top_sample(source, &next, &problem);
        if (error != 0) { /* keep the last view, and show why it is not updated */
            by_top_view_free(&next);
            continue;
        }
        by_top_rates(&next, &view);
        by_top_view_free(&view);
        view = next;
        next = (struct by_top_view){0};
    }
    by_screen_close();
    by_top_view_free(&view);
    return BY_EXIT_DONE;
}

int by_command_top(int argc, char **argv)
{
    struct top_arguments arguments = {.source.access.timeout_ms = SWITCH_MS, .interval_s = 1};
    struct by_top_source *source = &arguments.source;
    int status = parse(argc, argv, &arguments);

    if (status == 0)
        status = arguments.once || arguments.json || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO)
                     ? look_once(source, &arguments)
                     : look_live(source, &arguments);
    by_topology_free((struct by_topology *)(uintptr_t)source->topology);
    by_top_source_close(source);
    return status < 0 ? BY_EXIT_DONE : status;
}
