/* Implements program.h: linear programs in CPLEX format. */
#include "tests/unit/control/campaign/program.h"

#include <stdio.h>

struct program_writer {
    FILE *file;
    const struct by_topology *topology;
};

static bool may_root(const struct by_node *node)
{
    return node->compute || node->multicast || node->aggregate;
}

static void sum_of_roots(const struct program_writer *writer, const char *sign)
{
    for (uint32_t i = 0; i < writer->topology->node_count; i++)
        if (may_root(&writer->topology->nodes[i]))
            fprintf(writer->file, " %s x%u", sign, i);
}

/*
 * Writes a flow of the whole rate between the roots and compute node `end`. 'd' distributes from
 * each root r at most x_r (variable d<end>s<r>), over the arcs' shares o_e. 'u' reduces against the
 * direction of the arcs, over the shares i_e.
 */
static void flow(const struct program_writer *writer, uint32_t end, char way)
{
    const struct by_topology *topology = writer->topology;

    for (uint32_t node = 0; node < topology->node_count; node++) {
        fprintf(writer->file, " %cb%uv%u:", way, end, node);
        for (uint32_t e = 0; e < topology->arc_count; e++) {
            uint32_t into = way == 'd' ? topology->arcs[e].to : topology->arcs[e].from;
            uint32_t out = way == 'd' ? topology->arcs[e].from : topology->arcs[e].to;

            if (into == node)
                fprintf(writer->file, " + %c%ue%u", way, end, e);
            if (out == node)
                fprintf(writer->file, " - %c%ue%u", way, end, e);
        }
        if (may_root(&topology->nodes[node]))
            fprintf(writer->file, " + %c%us%u", way, end, node);
        if (node == end)
            sum_of_roots(writer, "-");
        fputs(" = 0\n", writer->file);
    }
    for (uint32_t e = 0; e < topology->arc_count; e++)
        fprintf(writer->file, " %cc%ue%u: %c%ue%u - %c%u <= 0\n", way, end, e, way, end, e,
                way == 'd' ? 'o' : 'i', e);
    for (uint32_t node = 0; node < topology->node_count; node++)
        if (may_root(&topology->nodes[node]))
            fprintf(writer->file, " %cr%us%u: %c%us%u - x%u <= 0\n", way, end, node, way, end, node, node);
}

int program_write(const struct by_topology *topology, struct by_fraction achieved, const char *folder,
                  uint64_t seed)
{
    struct program_writer writer = {NULL, topology};
    bool switches = by_topology_compute_count(topology) < topology->node_count;
    char path[400];

    snprintf(path, sizeof(path), "%s/%llu.lp", folder, (unsigned long long)seed);
    writer.file = fopen(path, "we");
    if (!writer.file)
        return -1;
    fprintf(writer.file, "\\ expect %s %lld %lld %s\n", switches ? "atmost" : "equal",
            (long long)(achieved.num * topology->scale), (long long)achieved.den, topology->name);
    fputs("Maximize\n rate:", writer.file);
    sum_of_roots(&writer, "+");
    fputs("\nSubject To\n", writer.file);
    for (uint32_t e = 0; e < topology->arc_count; e++)
        fprintf(writer.file, " cap%u: o%u + i%u <= %lld\n", e, e, e, (long long)topology->arcs[e].capacity);
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (topology->nodes[i].compute) {
            flow(&writer, i, 'd');
            flow(&writer, i, 'u');
        }
    fputs("End\n", writer.file);
    return fclose(writer.file);
}
