/*
 * A lab with a schedule: reads it, assigns its paths addresses, runs the user's program on the
 * hosts, and prints how far each link was used. The hosts move the data themselves, over TCP. See
 * ways.h; the sequence is that of run.c, without plans, tables and switches of banyan.
 */
#include "control/lab/ways.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "control/base/alloc.h"
#include "control/verify/series.h"

/* Most lines about links, and the least part of its rate, or of the busiest link, in a line. */
#define LINES_MAX 40u
#define PART_MIN  0.01
/* Part of the time that wires may lose before a line states it. */
#define LATE_MAX 0.005

/* Refuses messages that begin or end at switches, where no program runs. */
static int check_ends(const struct lab *lab, const struct by_series *series)
{
    for (uint32_t m = 0; m < series->message_count && series->operation != BY_SERIES_REDUCE; m++) {
        const struct by_series_message *message = &series->messages[m];
        uint32_t node = lab->topology->nodes[message->from].compute ? message->to : message->from;

        if (!lab->topology->nodes[node].compute)
            return by_cli_fail(BY_EXIT_USAGE,
                               "%s: '%s' sends or receives messages, and is no compute node: only hosts run "
                               "the program",
                               lab->options.series, lab_name(lab, node));
    }
    return 0;
}

static int make_moves(struct lab *lab)
{
    struct by_series *series;
    struct by_series_verdict verdict;
    struct by_problem problem = {0};
    int status;

    if (by_series_read(lab->options.series, lab->topology, &series, &problem) != 0)
        return by_cli_refuse(lab->options.series, &problem);
    by_series_check(series, lab->topology, &verdict);
    if (verdict.verdict == BY_VERDICT_INVALID)
        status = by_cli_fail(BY_EXIT_USAGE, "%s: the schedule is INVALID for %s: %s", lab->options.series,
                             lab->options.topology, verdict.reason);
    else
        status = check_ends(lab, series);
    if (status == 0 && by_moves_make(series, lab->topology, &lab->series->moves, &problem) != 0)
        status = by_cli_refuse(lab->options.series, &problem);
    by_series_free(series);
    if (status == 0 && lab->series->moves.path_count > LAB_PATHS_MAX)
        status = by_cli_fail(BY_EXIT_USAGE,
                             "%s: %u paths; a lab has routes for at most %u: take a part of the fabric",
                             lab->options.series, lab->series->moves.path_count, LAB_PATHS_MAX);
    return status;
}

/* Sets the rate of a direction; of a one-way link the other direction, which carries only
 * acknowledgements, has the same. Returns 0 or BY_EXIT_USAGE. */
static int set_rate(const struct lab *lab, uint32_t way)
{
    const struct lab_series *series = lab->series;
    struct lab_way *set = &series->ways[way];
    uint32_t pair = by_links_find(series->links, set->from, set->to);
    unsigned __int128 rate;

    if (pair == UINT32_MAX)
        pair = by_links_find(series->links, set->to, set->from);
    rate = (unsigned __int128)lab->options.rate * (uint64_t)series->links->capacity[pair] /
           (uint64_t)lab->topology->scale;
    set->rate = rate > UINT64_MAX ? UINT64_MAX : (uint64_t)rate;
    if (set->rate >= LAB_RATE_MIN && set->rate <= LAB_RATE_MAX)
        return 0;
    return by_cli_fail(BY_EXIT_USAGE,
                       "--rate: the link from %s to %s would have %" PRIu64
                       " bytes per second; a wire has %" PRIu64 " to %" PRIu64 ": choose another rate",
                       lab_name(lab, set->from), lab_name(lab, set->to), set->rate, LAB_RATE_MIN,
                       LAB_RATE_MAX);
}

/* Makes the cables: one for each two nodes that are linked. */
static int make_cables(struct lab *lab)
{
    const struct by_topology *topology = lab->topology;
    struct lab_series *series = lab->series;
    size_t bytes = (2 * (size_t)topology->link_count + 1) * sizeof(*series->ways);
    int status = 0;

    series->links = by_links_new(topology);
    series->way_of = by_alloc(series->links->count, sizeof(*series->way_of));
    memset(series->way_of, 0xff, series->links->count * sizeof(*series->way_of));
    series->ways = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (series->ways == MAP_FAILED) {
        series->ways = NULL;
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "lab: no memory for %zu bytes", bytes);
    }
    for (uint32_t i = 0; i < topology->link_count && status == 0; i++) {
        uint32_t a = topology->links[i].a, b = topology->links[i].b, way = 2 * series->cable_count;
        uint32_t there = by_links_find(series->links, a, b), back = by_links_find(series->links, b, a);

        if ((there != UINT32_MAX && series->way_of[there] != UINT32_MAX) ||
            (back != UINT32_MAX && series->way_of[back] != UINT32_MAX))
            continue; /* parallel to another link */
        series->cable_count++;
        series->ways[way] = (struct lab_way){.from = a, .to = b};
        series->ways[way + 1] = (struct lab_way){.from = b, .to = a};
        if (there != UINT32_MAX)
            series->way_of[there] = way;
        if (back != UINT32_MAX)
            series->way_of[back] = way + 1;
        for (uint32_t w = way; w < way + 2 && lab->options.rate > 0 && status == 0; w++)
            status = set_rate(lab, w);
    }
    return status;
}

static int write_moves(struct lab *lab)
{
    const struct lab_series *series = lab->series;
    char path[LAB_PATH + 64];
    struct by_output output;

    for (uint32_t p = 0; p < series->moves.path_count; p++)
        series->addresses[p] = lab_routes_address(p);
    snprintf(path, sizeof(path), "%.480s/moves.json", lab->folder);
    if (!by_cli_create(&output, path))
        return BY_EXIT_ENVIRONMENT;
    return by_cli_finish(
        &output, by_moves_write(&series->moves, lab->topology, series->addresses, output.stream) == 0);
}

static void print_start(const struct lab *lab)
{
    const struct by_moves *moves = &lab->series->moves;
    char rate[96] = "no limit of their rates";

    if (lab->options.rate > 0)
        snprintf(rate, sizeof(rate), "%" PRIu64 " bytes/s for 1 %.40s", lab->options.rate,
                 lab->topology->unit);
    printf("# %s: %s of %u ranks, %u move%s in %u round%s over %u path%s; %u link%s, MTU %u, TCP %s, %s\n",
           lab->topology->name, by_series_operation_name(moves->operation), moves->rank_count,
           moves->move_count, by_plural(moves->move_count), moves->round_count, by_plural(moves->round_count),
           moves->path_count, by_plural(moves->path_count), lab->series->cable_count,
           by_plural(lab->series->cable_count), lab->options.lower.mtu, lab_routes_congestion(), rate);
    fflush(stdout);
}

int lab_series_read(struct lab *lab)
{
    int status;

    lab->series = by_alloc(1, sizeof(*lab->series));
    status = make_moves(lab);
    if (status == 0)
        status = make_cables(lab);
    if (status != 0)
        return status;
    lab->series->addresses = by_alloc(lab->series->moves.path_count, sizeof(*lab->series->addresses));
    status = write_moves(lab);
    if (status == 0)
        print_start(lab);
    return status;
}

void lab_series_free(struct lab *lab)
{
    struct lab_series *series = lab->series;

    if (series == NULL)
        return;
    by_moves_free(&series->moves);
    if (series->links != NULL)
        by_links_free(series->links);
    if (series->ways != NULL)
        munmap(series->ways, (2 * (size_t)lab->topology->link_count + 1) * sizeof(*series->ways));
    free(series->way_of);
    free(series->addresses);
    free(series);
    lab->series = NULL;
}

/* ---- output ---- */

/* The time in which data moved, over all links; 0 without wires. */
static double data_seconds(const struct lab_series *series)
{
    uint64_t first = UINT64_MAX, last = 0;

    for (uint32_t w = 0; w < 2 * series->cable_count; w++) {
        const struct lab_way *way = &series->ways[w];

        if (way->first_ns != 0 && way->first_ns < first)
            first = way->first_ns;
        if (way->last_ns > last)
            last = way->last_ns;
    }
    return last > first ? (double)(last - first) / 1e9 : 0;
}

/* A direction, and the part of its rate, or of the bytes of the busiest one, that it carried. */
struct used {
    const struct lab_way *way;
    double part;
};

static int compare_used(const void *left, const void *right)
{
    const struct used *a = left, *b = right;

    if (a->part != b->part)
        return a->part > b->part ? -1 : 1;
    return a->way < b->way ? -1 : a->way > b->way;
}

static void print_used(const struct lab *lab, const struct used *used, uint32_t count, bool rates)
{
    uint32_t shown = 0;

    for (; shown < count && shown < LINES_MAX && used[shown].part > PART_MIN; shown++) {
        const struct lab_way *way = used[shown].way;
        char name[100];

        snprintf(name, sizeof(name), "%.47s -> %.47s", lab_name(lab, way->from), lab_name(lab, way->to));
        printf(" %-31s  %14" PRIu64, name, way->bytes);
        if (rates)
            printf(" %8.4f %9" PRIu64, used[shown].part, way->lost);
        putchar('\n');
    }
    while (shown < count && used[shown].part > PART_MIN)
        shown++;
    if (shown > LINES_MAX)
        printf("# and %u more\n", shown - LINES_MAX);
}

/* Prints the busiest links. `processor` is the processor time of the wires. */
static void print_links(const struct lab *lab, double processor)
{
    const struct lab_series *series = lab->series;
    uint32_t count = 2 * series->cable_count;
    struct used *used = by_alloc(count, sizeof(*used));
    double seconds = data_seconds(series), most = 0, late = 0;
    bool rates = lab->options.rate > 0;

    for (uint32_t w = 0; w < count; w++) {
        most = (double)series->ways[w].bytes > most ? (double)series->ways[w].bytes : most;
        late = (double)series->ways[w].late_ns / 1e9 > late ? (double)series->ways[w].late_ns / 1e9 : late;
    }
    for (uint32_t w = 0; w < count; w++) {
        const struct lab_way *way = &series->ways[w];
        double all = rates ? (double)way->rate * seconds : most;

        used[w] = (struct used){way, all > 0 ? (double)way->bytes / all : 0};
    }
    qsort(used, count, sizeof(*used), compare_used);
    lab_progress(lab, NULL);
    if (count == 0 || used[0].part <= PART_MIN)
        printf("# no link carried data\n");
    else if (rates)
        printf("# link: bytes with Ethernet headers, part of the rate in the %.2f s between the first and "
               "the last\n# data frame, and frames that found the queue full\n#%31s  %14s %8s %9s\n",
               seconds, "", "bytes", "part", "full");
    else
        printf("# link: bytes with Ethernet headers\n");
    print_used(lab, used, count, rates);
    if (rates)
        printf("# the wires took %.2f s of a processor\n", processor);
    if (late > LATE_MAX * seconds)
        printf("# note: a link lost %.3f s because the wires did not run in time: choose a lower --rate\n",
               late);
    fflush(stdout);
    free(used);
}

/* ---- run ---- */

int lab_run_series(struct lab *lab)
{
    double processor;
    int status;

    lab->processes = by_alloc((size_t)lab->topology->node_count + 1, sizeof(*lab->processes));
    status = lab_routes_up(lab);
    if (status == 0 && lab->options.rate > 0)
        status = lab_wires_start(lab);
    for (uint32_t node = 0; node < lab->topology->node_count && status == 0; node++)
        if (lab->topology->nodes[node].compute && lab_host_start(lab, node, 0, 1) == NULL)
            status = BY_EXIT_ENVIRONMENT;
    if (status != 0)
        return status;
    lab_host_watch(lab);
    status = lab_host_end(lab);
    if (lab_stopping)
        return BY_EXIT_ENVIRONMENT;
    processor = lab_process_seconds(lab, LAB_WIRES);
    lab_process_stop(lab, LAB_WIRES, 1000);
    if (lab->options.rate == 0)
        lab_routes_count(lab);
    print_links(lab, processor);
    return status != 0 || lab->error[0] != 0 ? BY_EXIT_ENVIRONMENT : 0;
}
