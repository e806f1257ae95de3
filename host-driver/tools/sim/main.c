/*
 * banyan-sim: runs one collective on a simulated fabric, with the engines and endpoints of real
 * nodes, and prints the result as JSON. `banyan sim` prepares its folder and interprets its output.
 * Single-threaded.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/error.h"
#include "host-driver/image_file.h"
#include "host-driver/tools/sim/run.h"
#include "offload/linux/options.h"
#include "offload/linux/output.h"

enum sim_exit { SIM_RIGHT = 0, SIM_WRONG = 1, SIM_USAGE = 2, SIM_ENVIRONMENT = 3 };

static const struct by_option rows[] = {{0}};

static const struct by_options command_line = {
    .program = "banyan-sim",
    .usage = "banyan-sim DIR",
    .about = "Runs the collective that DIR/work describes on the table images in DIR, in virtual time, and "
             "prints one JSON object. `banyan sim TOPO PLAN... --keep` creates DIR; see banyan-sim(1).",
    .epilog =
        "Exit status: 0 if every element is right; 1 after wrong elements; 2 after bad usage or input; 3 if "
        "a call or the system failed.",
    .version = "banyan-sim " BY_VERSION,
    .rows = rows,
    .least = 1,
    .most = 1,
    .operands = "a folder"};

static void print_arcs(const struct sim_run *run)
{
    const struct by_world_fabric *fabric = &run->work->fabric;

    printf(",\n \"arcs\": [");
    for (uint32_t a = 0; a < fabric->arc_count; a++) {
        const struct by_world_use *use = by_world_use(run->world, a);

        printf("%s\n  {\"from\": %u, \"from_port\": %u, \"to\": %u, \"to_port\": %u, \"packets\": %" PRIu64
               ", \"payload_bytes\": %" PRIu64 ", \"header_bytes\": %" PRIu64 ", \"busy_ps\": %" PRIu64
               ", \"queue_high\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"dropped\": %" PRIu64
               ", \"marked\": %" PRIu64 "}",
               a > 0 ? "," : "", fabric->arcs[a].from, fabric->arcs[a].from_port, fabric->arcs[a].to,
               fabric->arcs[a].to_port, use->packets, use->payload_bytes, use->header_bytes, use->busy_ps,
               use->queue_high, use->lost, use->dropped, use->marked);
    }
    printf("],\n \"slots_high\": [");
    for (uint32_t n = 0; n < fabric->node_count; n++)
        printf("%s%u", n > 0 ? ", " : "", by_world_slots_high(run->world, n));
    printf("]");
}

static void print_counters(const struct sim_run *run)
{
    const struct by_world_counters *world = by_world_counters(run->world);
    struct by_endpoint_counters endpoints;
    struct by_engine_counters engines;
    const char *comma = "";

    printf(",\n \"events\": %" PRIu64 ", \"sent\": %" PRIu64 ", \"lost\": %" PRIu64
           ", \"duplicated\": %" PRIu64 ", \"held\": %" PRIu64 ", \"overflowed\": %" PRIu64
           ", \"marked\": %" PRIu64 ",\n \"endpoint\": {",
           world->events, world->sent, world->lost, world->duplicated, world->held, world->overflowed,
           world->marked);
    by_world_sum_endpoints(run->world, &endpoints);
    by_world_sum_engines(run->world, &engines);
#define X(name, help)                                                                                        \
    printf("%s\"" #name "\": %" PRIu64, comma, endpoints.name);                                              \
    comma = ", ";
    BY_ENDPOINT_COUNTER_LIST(X)
#undef X
    printf("},\n \"engine\": {");
    comma = "";
#define X(name, help)                                                                                        \
    printf("%s\"" #name "\": %" PRIu64, comma, engines.name);                                                \
    comma = ", ";
    BY_ENGINE_COUNTER_LIST(X)
#undef X
    printf("}");
}

/* Prints the reason why the run has no result, or null. */
static void print_error(const struct sim_run *run)
{
    char node[2][80] = {"", ""};
    const uint8_t *image = by_world_image(run->world, run->ranks[run->error_rank].node);

    if (run->error == 0) {
        printf("null");
        return;
    }
    if (run->status.node != BY_NODE_NONE)
        by_image_node_name(image, run->status.node, node[0], sizeof(node[0]));
    if (run->status.missing_node != BY_NODE_NONE)
        by_image_node_name(image, run->status.missing_node, node[1], sizeof(node[1]));
    printf("\"rank %u: %s%s%s%s%s\"", run->error_rank, by_error_text(run->error), node[0][0] ? "; node " : "",
           node[0], node[1][0] ? ", which waits for " : "", node[1]);
}

static void print_report(const struct sim_run *run)
{
    const struct sim_work *work = run->work;
    struct by_endpoint_counters endpoints;

    by_world_sum_endpoints(run->world, &endpoints);
    printf("{\"seed\": %" PRIu64 ", \"ranks\": %u, \"train\": %" PRIu64 ", \"elements\": %" PRIu64
           ", \"time_ps\": %" PRIu64 ",\n \"checked_elements\": %" PRIu64 ", \"wrong_elements\": %" PRIu64
           ", \"missing_chunks\": %" PRIu64 ", \"first_wrong_rank\": %d, \"retransmissions\": %" PRIu64
           ", \"error\": ",
           work->seed, run->rank_count, work->batch, run->check.all, run->time_ps, run->check.checked,
           run->check.wrong, run->missing, run->check.first_rank, endpoints.retx - run->warm_retx);
    print_error(run);
    print_counters(run);
    print_arcs(run);
    printf("}\n");
}

/* Opens DIR/series for the samples, if the work asks for them. */
static int open_series(const char *folder, const struct sim_work *work, FILE **series)
{
    char path[4096];

    *series = NULL;
    if (work->sample_ns == 0)
        return 0;
    snprintf(path, sizeof(path), "%s/series", folder);
    *series = fopen(path, "we");
    return *series != NULL ? 0 : by_fail(BY_EINVAL, "%s: %s", path, strerror(errno));
}

static enum sim_exit simulate(const char *folder)
{
    struct sim_work work;
    struct sim_run run = {0};
    enum sim_exit status = SIM_RIGHT;
    FILE *series = NULL;
    int error = sim_work_read(folder, &work);

    if (error == 0)
        error = open_series(folder, &work, &series);
    if (error == 0)
        error = run_all(&run, &work, series);
    if (error != 0) {
        fprintf(stderr, "banyan-sim: %s\n", by_fail_text());
        status = error == BY_ENOMEM ? SIM_ENVIRONMENT : SIM_USAGE;
    } else {
        print_report(&run);
        if (run.error != 0)
            status = SIM_ENVIRONMENT;
        else if (run.check.wrong > 0 || run.missing > 0)
            status = SIM_WRONG;
    }
    if (series != NULL && fclose(series) != 0) {
        fprintf(stderr, "banyan-sim: %s/series: cannot write: %s\n", folder, strerror(errno));
        status = SIM_ENVIRONMENT;
    }
    for (uint32_t n = 0; n < work.fabric.node_count && run.world == NULL; n++)
        free(work.fabric.nodes[n].image);
    run_close(&run);
    sim_work_free(&work);
    return status;
}

static int run(int argc, char **argv)
{
    int status = by_options_read(&command_line, NULL, &argc, argv);

    return status >= 0 ? status : (int)simulate(argv[1]);
}

int main(int argc, char **argv)
{
    return by_output_end(run(argc, argv));
}
