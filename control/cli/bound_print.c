/* Text and JSON output of `banyan bound`. See bound_print.h. */
#include "control/cli/bound_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/fraction.h"
#include "control/cli/cli.h"

/* Most names listed in text (count). */
#define NAMES_MAX 6u

/* ---- text ---- */

/* Prints "346.667 (1040/3)"; nothing if the rate is unknown. */
static void print_rate(struct by_fraction rate)
{
    char text[BY_FRACTION_TEXT_BYTES] = "", words[BY_FRACTION_TEXT_BYTES + 3] = "";

    if (rate.den != 1)
        snprintf(words, sizeof(words), "(%s)", by_fraction_text(rate, text));
    if (rate.num == 0)
        printf(" %10s %-16s", "-", "");
    else
        printf(" %10.6g %-16s", by_fraction_value(rate), words);
}

static void print_part(struct by_fraction part, struct by_fraction whole)
{
    struct by_fraction ratio;
    char text[BY_FRACTION_TEXT_BYTES];

    if (part.num == 0)
        fputs("  -", stdout);
    else if (by_fraction_divide(part, whole, &ratio) == 0 && ratio.num < 100000 && ratio.den < 100000)
        printf("  %s", by_fraction_text(ratio, text));
    else
        printf("  %.6g", by_fraction_value(part) / by_fraction_value(whole));
}

static void print_names(const struct by_topology *topology, const uint32_t *nodes, uint32_t count)
{
    for (uint32_t i = 0; i < count && i < NAMES_MAX; i++)
        printf("%s%s", i ? ", " : "", topology->nodes[nodes[i]].name);
    if (count > NAMES_MAX)
        printf(" and %u more", count - NAMES_MAX);
}

/* Prints the bandwidth that leaves the cut; the nodes named are those of its smaller side. */
static void print_cut(const struct by_bound *bound, const struct by_topology *topology,
                      const struct by_bound_cut *cut)
{
    uint32_t n = topology->node_count, count = 0, *nodes = cut->nodes;
    bool turned = cut->count > n / 2;
    uint32_t *others = calloc(n ? n : 1, sizeof(*others));
    char text[BY_FRACTION_TEXT_BYTES];

    if (turned && others) {
        for (uint32_t i = 0, k = 0; i < n; i++) {
            if (k < cut->count && cut->nodes[k] == i)
                k++;
            else
                others[count++] = i;
        }
        nodes = others;
    }
    printf("  %s %s %u of %u compute nodes: ", by_fraction_text(cut->exiting, text),
           turned ? "enters" : "leaves",
           turned ? bound->compute_count - cut->compute_count : cut->compute_count, bound->compute_count);
    print_names(topology, nodes, turned ? count : cut->count);
    free(others);
}

static void print_shared(const char *name, const struct by_bound *bound, const struct by_topology *topology,
                         const struct by_bound_shared *shared)
{
    printf("  %-15s", name);
    print_rate(shared->bound);
    print_rate(shared->reached);
    print_part(shared->reached, shared->bound);
    print_cut(bound, topology, &shared->cut);
    fputc('\n', stdout);
}

/* Prints a line for each cut of a rooted collective. */
static void print_rooted(const char *name, const struct by_bound *bound, const struct by_topology *topology,
                         const struct by_bound_rooted *rooted)
{
    for (uint32_t cut = 0; cut < rooted->cut_count; cut++) {
        const struct by_bound_root *first = NULL;
        struct by_fraction reached = {0, 1};
        uint32_t count = 0, planned = 0;

        for (uint32_t i = 0; i < rooted->root_count; i++) {
            const struct by_bound_root *root = &rooted->roots[i];

            if (root->cut != cut)
                continue;
            first = first ? first : root;
            count++;
            planned += root->reached.num > 0;
            if (root->reached.num > 0 &&
                (reached.num == 0 || by_fraction_compare(root->reached, reached) < 0))
                reached = root->reached;
        }
        if (!first)
            continue;
        printf("  %-15s", name);
        print_rate(first->bound);
        print_rate(reached);
        print_part(reached, first->bound);
        print_cut(bound, topology, &rooted->cuts[cut]);
        printf("; root %s", topology->nodes[first->node].name);
        if (count > 1)
            printf(" and %u more", count - 1);
        if (planned > 0 && planned < count)
            printf(" (trees of %u)", planned);
        fputc('\n', stdout);
    }
}

static void print_figure(const char *name, struct by_fraction rate, const char *words)
{
    printf("  %-15s", name);
    print_rate(rate);
    printf("%s", words);
}

/* Prints the bounds of allreduce, each with the schedules for which it holds. */
static void print_bounds(const struct by_bound *bound, const struct by_topology *topology)
{
    const struct by_bound_allreduce *allreduce = &bound->allreduce;
    const struct by_plan *plan = allreduce->rate.plan;
    const char *idle = bound->capable_count ? " while no switch sums or copies" : "";

    puts("allreduce: at most");
    print_figure("cut set", allreduce->cut_set, " every schedule:");
    print_cut(bound, topology, &allreduce->cut);
    printf("\n");
    print_figure("processes", allreduce->processes, " schedules of partial sums");
    printf("%s; the widest is %s\n", idle, topology->nodes[allreduce->process].name);
    print_figure("links", allreduce->links, " trees");
    printf("%s: all links of compute nodes, 2 (N - 1) for each pair\n", idle);
    print_figure("trees", plan->optimum, " trees");
    printf("%s, by %s", idle,
           plan->proof == NULL                         ? "the cut set"
           : plan->proof->kind == BY_CERTIFICATE_PARTS ? "a partition: "
                                                       : "prices of links");
    if (plan->proof && plan->proof->kind == BY_CERTIFICATE_PARTS)
        printf("%u parts, each entered and left by all trees but its own", plan->proof->part_count);
    fputc('\n', stdout);
    if (allreduce->in_network) {
        print_figure("with switches", allreduce->in_network->optimum, "");
        printf(" %s\n", allreduce->in_network->proof ? "trees that use what switches can do, by a proof"
                                                     : "every schedule, by the cut set");
    }
}

/* Prints "switches that sum: leaf0, leaf1 and 2 more". */
static void print_switches(const struct by_topology *topology, const char *what, const bool *marked,
                           uint32_t total)
{
    uint32_t nodes[NAMES_MAX] = {0}, count = 0;

    for (uint32_t i = 0; i < topology->node_count && count < NAMES_MAX; i++)
        if (marked[i])
            nodes[count++] = i;
    printf("%s at %u switch%s (", what, total, total == 1 ? "" : "es");
    for (uint32_t i = 0; i < count; i++)
        printf("%s%s", i ? ", " : "", topology->nodes[nodes[i]].name);
    printf("%s)", total > count ? ", ..." : "");
}

static void print_reached(const struct by_bound *bound, const struct by_topology *topology)
{
    static const char *const proved[] = {
        "not proved optimal", "provably optimal: no schedule is faster, by the cut set",
        "provably optimal: no schedule of partial sums is faster, by the processes",
        "no trees at compute nodes are faster"};
    const struct by_bound_allreduce *allreduce = &bound->allreduce;
    const struct by_plan *plan = allreduce->rate.plan;
    struct by_fraction best = by_bound_reached(allreduce);

    puts("allreduce: reached");
    print_figure("RE+BC", allreduce->re_bc,
                 allreduce->re_bc.num ? " any switch: reduce to " : " no trees found\n");
    if (allreduce->re_bc.num)
        printf("%s, then broadcast\n", topology->nodes[allreduce->re_bc_root].name);
    print_figure("RS+AG", allreduce->rs_ag,
                 allreduce->rs_ag.num ? " any switch: reduce-scatter, then allgather; "
                                      : " no trees found\n");
    if (allreduce->rs_ag.num)
        puts(proved[allreduce->rs_ag_proved]);
    print_figure("tree pairs", plan->achieved, " any switch: ");
    if (plan->achieved.num)
        printf("%u trees at compute nodes, found by %s%s\n", plan->tree_count,
               by_rate_method_name(allreduce->rate.method),
               by_fraction_compare(plan->achieved, plan->optimum) == 0 ? "; no trees of this kind carry more"
                                                                       : "");
    else
        puts("no trees found");
    if (allreduce->in_network) {
        print_figure("in the network", allreduce->in_network->achieved, " needs ");
        if (allreduce->sum_count)
            print_switches(topology, "sums", allreduce->sums, allreduce->sum_count);
        if (allreduce->copy_count)
            print_switches(topology, allreduce->sum_count ? " and copies" : "copies", allreduce->copies,
                           allreduce->copy_count);
        puts(allreduce->sum_count || allreduce->copy_count ? "" : "no capability of any switch");
    }
    printf("  %-15s", "gap");
    if (best.num == 0) {
        puts("  no trees found");
        return;
    }
    printf(" %10.6g of what these trees may reach,",
           by_fraction_value(best) / by_fraction_value(by_bound_least(allreduce)));
    print_part(best, allreduce->cut_set);
    puts(by_fraction_compare(best, allreduce->cut_set) == 0 ? " of the cut set: no schedule is faster"
                                                            : " of the cut set: a faster schedule may exist");
}

void by_bound_print_people(const struct by_bound *bound, const struct by_topology *topology)
{
    uint32_t switches = topology->node_count - bound->compute_count;

    printf("%s: %u compute nodes, %u switch%s, of which %u sum or copy; rates in %s\n", topology->name,
           bound->compute_count, switches, switches == 1 ? "" : "es", bound->capable_count, topology->unit);
    printf("  %-15s %-27s %-27s of it; what limits it (switches need only forward)\n", "", "  at most",
           "  reached");
    print_shared("allgather", bound, topology, &bound->allgather);
    print_shared("reduce-scatter", bound, topology, &bound->reduce_scatter);
    print_rooted("broadcast", bound, topology, &bound->broadcast);
    print_rooted("reduce", bound, topology, &bound->reduce);
    print_bounds(bound, topology);
    print_reached(bound, topology);
    if (bound->unreached[0])
        printf("  not reached     %s\n", bound->unreached);
    printf("  found in        %.3g s\n", bound->seconds);
}

/* ---- JSON ---- */

static void json_text(const char *text)
{
    putchar('"');
    for (const char *c = text; *c; c++)
        printf(*c == '"' || *c == '\\' ? "\\%c" : (unsigned char)*c < ' ' ? "\\u%04x" : "%c", *c);
    putchar('"');
}

/* Prints "key": {fraction}, "key_float": number; null if the rate is unknown. */
static void json_rate(const char *key, struct by_fraction rate)
{
    char text[BY_FRACTION_JSON_BYTES];

    if (rate.num == 0)
        printf("\"%s\": null", key);
    else
        printf("\"%s\": %s, \"%s_float\": %.12g", key, by_fraction_json(rate, text), key,
               by_fraction_value(rate));
}

static void json_nodes(const struct by_topology *topology, const uint32_t *nodes, uint32_t count)
{
    putchar('[');
    for (uint32_t i = 0; i < count; i++) {
        fputs(i ? ", " : "", stdout);
        json_text(topology->nodes[nodes[i]].name);
    }
    putchar(']');
}

static void json_cut(const struct by_topology *topology, const struct by_bound_cut *cut)
{
    char text[BY_FRACTION_JSON_BYTES];

    fputs("{\"nodes\": ", stdout);
    json_nodes(topology, cut->nodes, cut->count);
    printf(", \"compute_count\": %u, \"exiting\": %s}", cut->compute_count,
           by_fraction_json(cut->exiting, text));
}

static void json_shared(const char *key, const struct by_topology *topology,
                        const struct by_bound_shared *shared)
{
    char text[BY_FRACTION_JSON_BYTES];

    printf(" \"%s\": {", key);
    json_rate("bound", shared->bound);
    fputs(", ", stdout);
    json_rate("achieved", shared->reached);
    printf(", \"inv_x\": %s,\n  \"bottleneck\": ", by_fraction_json(shared->inv_x, text));
    json_cut(topology, &shared->cut);
    puts("},");
}

static void json_rooted(const char *key, const struct by_topology *topology,
                        const struct by_bound_rooted *rooted)
{
    printf(" \"%s\": {\"root\": {", key);
    for (uint32_t i = 0; i < rooted->root_count; i++) {
        fputs(i ? ",\n  " : "\n  ", stdout);
        json_text(topology->nodes[rooted->roots[i].node].name);
        fputs(": {", stdout);
        json_rate("bound", rooted->roots[i].bound);
        fputs(", ", stdout);
        json_rate("achieved", rooted->roots[i].reached);
        printf(", \"bottleneck\": %u}", rooted->roots[i].cut);
    }
    fputs("},\n  \"bottlenecks\": [", stdout);
    for (uint32_t i = 0; i < rooted->cut_count; i++) {
        fputs(i ? ",\n   " : "\n   ", stdout);
        json_cut(topology, &rooted->cuts[i]);
    }
    puts("]},");
}

static void json_proof(const struct by_plan *plan, const struct by_topology *topology)
{
    if (plan->proof)
        by_certificate_write(plan->proof, topology, stdout);
    else
        fputs("\"cut\"", stdout);
}

static void json_marked(const char *key, const struct by_topology *topology, const bool *marked)
{
    bool more = false;

    printf("\"%s\": [", key);
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (marked[i]) {
            fputs(more ? ", " : "", stdout);
            json_text(topology->nodes[i].name);
            more = true;
        }
    putchar(']');
}

static void json_in_network(const struct by_bound_allreduce *allreduce, const struct by_topology *topology)
{
    const struct by_plan *plan = allreduce->in_network ? allreduce->in_network : allreduce->rate.plan;

    fputs("  ", stdout);
    json_rate("in_network", plan->achieved);
    fputs(", ", stdout);
    json_rate("in_network_bound", plan->optimum);
    if (!allreduce->in_network) {
        puts(", \"in_network_needs\": null,");
        return;
    }
    fputs(",\n  \"in_network_proof\": ", stdout);
    json_proof(plan, topology);
    fputs(",\n  \"in_network_needs\": {", stdout);
    json_marked("aggregate", topology, allreduce->sums);
    fputs(", ", stdout);
    json_marked("multicast", topology, allreduce->copies);
    puts("},");
}

static void json_allreduce(const struct by_bound *bound, const struct by_topology *topology)
{
    static const char *const proved[] = {"null", "\"cut_set\"", "\"processes\"", "\"trees\""};
    const struct by_bound_allreduce *allreduce = &bound->allreduce;
    const struct by_bound_rate *rate = &allreduce->rate;
    struct by_fraction gap = {0, 1}, best = by_bound_reached(allreduce);

    if (best.num == 0 || by_fraction_divide(best, by_bound_least(allreduce), &gap) != 0)
        gap = (struct by_fraction){0, 1};
    fputs(" \"allreduce\": {", stdout);
    json_rate("cut_set", allreduce->cut_set);
    fputs(",\n  \"bottleneck\": ", stdout);
    json_cut(topology, &allreduce->cut);
    fputs(",\n  ", stdout);
    json_rate("processes", allreduce->processes);
    printf(", \"processes_hold\": %s,\n  ", bound->capable_count ? "false" : "true");
    json_rate("links", allreduce->links);
    fputs(",\n  ", stdout);
    json_rate("rs_ag", allreduce->rs_ag);
    printf(", \"rs_ag_proved_optimal\": %s, \"rs_ag_proof\": %s,\n  ",
           allreduce->rs_ag_proved == BY_PROVED_CUT || allreduce->rs_ag_proved == BY_PROVED_PROCESSES
               ? "true"
               : "false",
           proved[allreduce->rs_ag_proved]);
    json_rate("re_bc", allreduce->re_bc);
    fputs(", \"re_bc_root\": ", stdout);
    if (allreduce->re_bc.num > 0)
        json_text(topology->nodes[allreduce->re_bc_root].name);
    else
        fputs("null", stdout);
    fputs(",\n  ", stdout);
    json_rate("rate_lp", rate->plan->achieved);
    fputs(", ", stdout);
    json_rate("rate_lp_bound", rate->plan->optimum);
    printf(", \"rate_lp_method\": \"%s\", \"rate_lp_trees\": %u,\n  \"rate_lp_proof\": ",
           by_rate_method_name(rate->method), rate->plan->tree_count);
    json_proof(rate->plan, topology);
    puts(",");
    json_in_network(allreduce, topology);
    fputs("  ", stdout);
    json_rate("gap", gap);
    puts("},");
}

void by_bound_print_json(const struct by_bound *bound, const struct by_topology *topology)
{
    fputs("{\"topology\": ", stdout);
    json_text(topology->name);
    fputs(", \"unit\": ", stdout);
    json_text(topology->unit);
    printf(", \"compute_nodes\": %u, \"capable_switches\": %u,\n", bound->compute_count,
           bound->capable_count);
    json_shared("allgather", topology, &bound->allgather);
    json_shared("reduce_scatter", topology, &bound->reduce_scatter);
    json_rooted("broadcast", topology, &bound->broadcast);
    json_rooted("reduce", topology, &bound->reduce);
    json_allreduce(bound, topology);
    if (bound->unreached[0]) {
        fputs(" \"unreached\": ", stdout);
        json_text(bound->unreached);
        puts(",");
    }
    printf(" \"seconds\": %.6g}\n", bound->seconds);
}
