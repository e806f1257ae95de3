/*
 * Writes the folder that banyan-sim runs: a table for each node, and the file `work`. There, rates
 * of links and nodes are times of a byte in picoseconds, as exact fractions. banyan-sim(1)
 * describes its lines.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/cli/links.h"
#include "control/cli/sim.h"
#include "control/tables/file.h"

#define PS UINT64_C(1000000000000)

/*
 * Computes the time of a byte in ps at `rate` of the topology's units; 0 if it is not exact in 63
 * bits.
 */
static int byte_time(const struct sim *sim, struct by_fraction rate, struct by_fraction *time)
{
    return by_fraction_set((__int128)PS * rate.den * sim->unit.den, (__int128)rate.num * sim->unit.num, time);
}

/* Writes one direction of a link, with the bandwidth of arc number `index`. */
static int write_arc(const struct sim *sim, uint32_t index, uint32_t link, FILE *stream)
{
    const struct by_arc *arc = &sim->topology->arcs[index];
    const struct by_address_map *map = &sim->lowering->map;
    struct by_fraction rate, time;

    if (by_fraction_set(arc->capacity, sim->topology->scale, &rate) != 0 || byte_time(sim, rate, &time) != 0)
        return by_cli_fail(BY_EXIT_USAGE, "%s: link %u: its bandwidth is not exact in 63 bits: round it",
                           sim->options.topology, arc->link);
    fprintf(stream, "arc %u %u %u %u %" PRId64 " %" PRId64 " %" PRIu64 "\n", arc->from,
            by_address_port(map, link, arc->from), arc->to, by_address_port(map, link, arc->to), time.num,
            time.den, sim->options.latency_ps);
    return 0;
}

/* Writes the missing directions of one-way links, by which answers may leave (sim_arc), after all
 * others. */
static int write_answers(const struct sim *sim, FILE *stream)
{
    const struct by_topology *topology = sim->topology;
    int status = 0;

    for (uint32_t i = 0; i < topology->link_count && status == 0; i++) {
        const struct by_link *link = &topology->links[i];
        uint32_t arc = UINT32_MAX;

        if (link->arc_ab == UINT32_MAX || link->arc_ba == UINT32_MAX)
            arc = sim_arc(topology, i, link->arc_ab == UINT32_MAX ? link->a : link->b);
        if (arc != UINT32_MAX)
            status = write_arc(sim, arc, i, stream);
    }
    return status;
}

static int write_limit(const struct sim *sim, uint32_t node, FILE *stream)
{
    struct by_fraction rate = sim->topology->nodes[node].aggregate_rate, time;

    if (rate.num == 0)
        return 0;
    if (byte_time(sim, rate, &time) != 0)
        return by_cli_fail(BY_EXIT_USAGE, "%s: '%s': its aggregate_rate is not exact in 63 bits: round it",
                           sim->options.topology, sim->topology->nodes[node].name);
    fprintf(stream, "node %u %" PRId64 " %" PRId64 "\n", node, time.num, time.den);
    return 0;
}

/* The links of --lossy-link, both directions of each. */
static int write_lossy(const struct sim *sim, FILE *stream)
{
    const struct sim_options *options = &sim->options;
    bool *lossy = by_alloc(sim->topology->link_count, sizeof(*lossy));
    int status = -1;

    for (uint32_t i = 0; i < options->lossy_count && status < 0; i++)
        status =
            by_cli_mark_links(sim->topology, options->topology, "--lossy-link", options->lossy[i], lossy);
    for (uint32_t a = 0; a < sim->topology->arc_count && status < 0; a++)
        if (lossy[sim->topology->arcs[a].link])
            fprintf(stream, "lose %u %u\n", a, options->link_loss);
    free(lossy);
    return status < 0 ? 0 : status;
}

static int write_lines(const struct sim *sim, FILE *stream)
{
    const struct sim_options *options = &sim->options;
    int status = 0;

    fprintf(stream,
            "collective %u\nroot %u\ncount %" PRIu64 "\nbatch %u\ninflight %u\nrto_ns %" PRIu64
            "\nwarmup %u\nseed %" PRIu64 "\n",
            sim->collective, sim->root, sim->count, sim->choice.batch, sim->choice.inflight,
            sim->choice.rto_ns, options->warmup, options->seed);
    fprintf(stream,
            "loss %u\nloss_run %u\ndup %u\nreorder %u\ntraffic %u\nbuffer %" PRIu64 "\nshared %" PRIu64
            "\nmark %" PRIu64 "\nspoil %d\nsample_ns %" PRIu64 "\n",
            options->loss, options->loss_run, options->dup, options->reorder, options->traffic,
            options->buffer, options->shared, options->mark, options->spoil,
            options->series != NULL ? options->sample_ns : 0);
    for (uint32_t n = 0; n < sim->topology->node_count && status == 0; n++)
        status = write_limit(sim, n, stream);
    for (uint32_t a = 0; a < sim->topology->arc_count && status == 0; a++)
        status = write_arc(sim, a, sim->topology->arcs[a].link, stream);
    if (status == 0)
        status = write_answers(sim, stream);
    return status != 0 ? status : write_lossy(sim, stream);
}

/* Files are named by node number, which exists in every topology. */
static int write_tables(const struct sim *sim)
{
    for (uint32_t n = 0; n < sim->topology->node_count; n++) {
        struct by_problem problem = {0};
        char path[SIM_PATH + 32];
        uint8_t *bytes;
        size_t size;
        int error;

        if (by_lowering_image(sim->lowering, n, &bytes, &size, &problem) != 0)
            return by_cli_refuse(sim->options.topology, &problem);
        snprintf(path, sizeof(path), "%s/%u.table", sim->folder, n);
        error = by_image_file_write(path, bytes, size, &problem);
        free(bytes);
        if (error != 0) {
            by_cli_refuse(path, &problem);
            return BY_EXIT_ENVIRONMENT;
        }
    }
    return 0;
}

int sim_work_write(const struct sim *sim)
{
    char path[SIM_PATH + 16];
    FILE *stream;
    int status = write_tables(sim), failed;

    if (status != 0)
        return status;
    snprintf(path, sizeof(path), "%s/work", sim->folder);
    stream = fopen(path, "we");
    if (stream == NULL)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "%s: %s", path, strerror(errno));
    status = write_lines(sim, stream);
    failed = ferror(stream);
    if (fclose(stream) != 0 || failed)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "%s: cannot write", path);
    return status;
}
