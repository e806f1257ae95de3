/*
 * The command `banyan plot`: draws a fabric, and a plan on it, into an SVG or DOT file.
 * Single-threaded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/json.h"
#include "control/cli/cli.h"
#include "control/plan/plan.h"
#include "control/view/plot/course.h"
#include "control/view/plot/gantt.h"
#include "control/view/plot/picture.h"
#include "control/view/plot/summary.h"

/* Largest schedule that is drawn (bytes); a picture of a larger one would be unreadable. */
#define SERIES_BYTES_MAX ((size_t)256 << 20)

struct plot_arguments {
    const char *topology, *plan, *output, *root;
    uint32_t trees; /* UINT32_MAX: as many as fit into the picture */
    enum { BY_SIZE, BY_CLASSES, WHOLE } style;
};

#define AT(member) BY_OPTION_AT(struct plot_arguments, member)

static const struct by_option rows[] = {
    {BY_ROW_TEXT('o', "output", "FILE", AT(output),
                 "write to FILE, whose ending selects the format: .svg or .dot; - is SVG on stdout")},
    {BY_ROW_TEXT(0, "root", "NAME", AT(root),
                 "draw the trees of this root (allgather, reduce-scatter: default the first one)")},
    {BY_ROW_NUMBER(0, "trees", "N", AT(trees), 0, BY_PLOT_TREES_MAX,
                   "draw at most N trees, %r (default: fewer the larger the fabric)")},
    {BY_ROW_FLAG(0, "classes", AT(style),
                 "draw equal parts once, with their number (default beyond 100 nodes)"),
     .least = BY_CLASSES},
    {BY_ROW_FLAG(0, "whole", AT(style), "draw every node"), .least = WHOLE},
    {0}};

static const struct by_options command_line = {
    .program = "banyan plot",
    .usage = "banyan plot TOPO [PLAN|SCHEDULE|SERIES] -o FILE.svg|FILE.dot [options]",
    .about =
        "Draws the fabric; with a plan also the load of each link, the bottleneck, and trees in "
        "different colours. For a schedule of banyan steady it draws one period as a Gantt chart, for a series "
        "of banyan sim the queues and loads of links over time.",
    .rows = rows,
    .least = 1,
    .most = 2,
    .operands = "a topology file"};

/* Parses the arguments. Returns -1 to continue, else the exit status. */
static int read_arguments(int argc, char **argv, struct plot_arguments *arguments)
{
    int status = by_options_read(&command_line, arguments, &argc, argv);

    if (status >= 0)
        return status;
    arguments->topology = argv[1];
    arguments->plan = argc > 2 ? argv[2] : NULL;
    return -1;
}

static bool ends_with(const char *text, const char *end)
{
    size_t bytes = strlen(text), tail = strlen(end);

    return bytes >= tail && strcmp(text + bytes - tail, end) == 0;
}

/* Returns the number of trees that can be distinguished side by side on every link. */
static uint32_t trees_that_fit(const struct by_topology *topology)
{
    return topology->node_count <= 14   ? BY_PLOT_TREES_MAX
           : topology->node_count <= 30 ? 4
           : topology->node_count <= 50 ? 2
                                        : 1;
}

/*
 * Opens the output; its name may end in .dot only if `dot` is set. Returns false with `*status`
 * after it printed an error.
 */
static bool open_output(const struct plot_arguments *arguments, bool dot, struct by_output *output,
                        int *status)
{
    *status = BY_EXIT_ENVIRONMENT;
    if (strcmp(arguments->output, "-") == 0 || ends_with(arguments->output, ".svg") ||
        (dot && ends_with(arguments->output, ".dot")))
        return by_cli_create(output, arguments->output);
    *status = by_cli_fail(BY_EXIT_USAGE, "plot: %s %s; the ending selects the format", arguments->output,
                          dot ? "ends in neither .svg nor .dot" : "does not end in .svg");
    return false;
}

static int write_picture(const struct plot_arguments *arguments, const struct by_fabric *fabric)
{
    struct by_output output;
    int status;

    if (!open_output(arguments, true, &output, &status))
        return status;
    if (ends_with(arguments->output, ".dot"))
        by_dot_write(fabric, output.stream);
    else if (arguments->style == BY_CLASSES || (arguments->style == BY_SIZE && by_summary_suits(fabric)))
        by_picture_summary_write(fabric, output.stream);
    else
        by_picture_write(fabric, output.stream);
    return by_cli_finish(&output, true);
}

static int draw_schedule(const struct plot_arguments *arguments, const struct by_topology *topology,
                         const char *text, size_t bytes)
{
    struct by_problem problem = {0};
    struct by_series *series;
    struct by_output output;
    int status;

    if (by_series_parse(text, bytes, topology, &series, &problem) != 0)
        return by_cli_refuse(arguments->plan, &problem);
    if (open_output(arguments, false, &output, &status)) {
        by_gantt_write(series, topology, output.stream);
        status = by_cli_finish(&output, true);
    }
    by_series_free(series);
    return status;
}

static int draw_course(const struct plot_arguments *arguments, const struct by_topology *topology,
                       const char *text)
{
    struct by_problem problem = {0};
    struct by_course *course;
    struct by_output output;
    int status;

    if (by_course_parse(text, topology, &course, &problem) != 0)
        return by_cli_refuse(arguments->plan, &problem);
    if (open_output(arguments, false, &output, &status)) {
        by_course_write(course, output.stream);
        status = by_cli_finish(&output, true);
    }
    by_course_free(course);
    return status;
}

/* Draws a schedule, or the course of a simulated call, instead of a plan. Returns -1 if the file
 * holds neither. */
static int draw_other(const struct plot_arguments *arguments, const struct by_topology *topology)
{
    struct by_problem problem = {0};
    int status = -1;
    size_t bytes;
    char *text;

    if (by_text_read(arguments->plan, SERIES_BYTES_MAX, &text, &bytes, &problem) != 0)
        return -1; /* reading it as a plan reports the error */
    if (by_series_suits(text, bytes))
        status = draw_schedule(arguments, topology, text, bytes);
    else if (by_course_suits(text))
        status = draw_course(arguments, topology, text);
    free(text);
    return status;
}

static int draw(const struct plot_arguments *arguments, const struct by_topology *topology,
                const struct by_plan *plan)
{
    struct by_fabric *fabric;
    int64_t root = -1;
    int status;

    if (arguments->root != NULL) {
        root = by_topology_find(topology, arguments->root);
        if (root < 0)
            return by_cli_fail(BY_EXIT_USAGE, "plot: --root %s: %s has no node with this name",
                               arguments->root, arguments->topology);
    }
    fabric = by_fabric_make(topology, plan, root,
                            arguments->trees == UINT32_MAX ? trees_that_fit(topology) : arguments->trees);
    status = plan != NULL && root >= 0 && fabric->matching_count == 0
                 ? by_cli_fail(BY_EXIT_USAGE, "plot: --root %s: no tree of %s has this root", arguments->root,
                               arguments->plan)
                 : write_picture(arguments, fabric);
    by_fabric_free(fabric);
    return status;
}

int by_command_plot(int argc, char **argv)
{
    struct plot_arguments arguments = {.trees = UINT32_MAX};
    struct by_topology *topology;
    struct by_plan *plan = NULL;
    struct by_problem problem = {0};
    int status = read_arguments(argc, argv, &arguments);

    if (status >= 0)
        return status;
    if (arguments.output == NULL)
        return by_cli_fail(BY_EXIT_USAGE, "plot: name the file of the picture: -o FILE.svg or -o FILE.dot");
    topology = by_cli_topology(arguments.topology);
    if (topology == NULL)
        return BY_EXIT_USAGE;
    status = arguments.plan != NULL ? draw_other(&arguments, topology) : -1;
    if (status < 0 && arguments.plan != NULL && by_plan_read(arguments.plan, topology, &plan, &problem) != 0)
        status = by_cli_refuse(arguments.plan, &problem);
    else if (status < 0)
        status = draw(&arguments, topology, plan);
    by_plan_free(plan);
    by_topology_free(topology);
    return status;
}
