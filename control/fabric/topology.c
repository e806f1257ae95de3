/* Topologies: release, look-up and writing as JSON. Reading is in read.c, presets in preset*.c. See
 * topology.h. */
#include "control/fabric/topology.h"

#include <stdio.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/site.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

void by_topology_free(struct by_topology *topology)
{
    if (!topology)
        return;
    for (struct by_name_block *block = topology->names, *before; block; block = before) {
        before = block->before;
        free(block);
    }
    free(topology->nodes);
    free(topology->arcs);
    free(topology->links);
    free(topology->name);
    free(topology->unit);
    by_site_free(topology->site);
    free(topology);
}

int64_t by_topology_find(const struct by_topology *topology, const char *name)
{
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (strcmp(topology->nodes[i].name, name) == 0)
            return i;
    return -1;
}

bool by_topology_capable(const struct by_topology *topology)
{
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (topology->nodes[i].multicast || topology->nodes[i].aggregate)
            return true;
    return false;
}

struct by_topology by_topology_forwarding(const struct by_topology *topology)
{
    struct by_topology view = *topology;

    view.nodes = by_alloc(view.node_count, sizeof(*view.nodes));
    memcpy(view.nodes, topology->nodes, view.node_count * sizeof(*view.nodes));
    for (uint32_t i = 0; i < view.node_count; i++) {
        view.nodes[i].multicast = view.nodes[i].aggregate = false;
        view.nodes[i].aggregate_rate = (struct by_fraction){0, 1};
    }
    return view;
}

uint32_t by_topology_compute_count(const struct by_topology *topology)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < topology->node_count; i++)
        count += topology->nodes[i].compute;
    return count;
}

int64_t by_topology_unbalanced(const struct by_topology *topology, struct by_fraction *in,
                               struct by_fraction *out)
{
    int64_t *entering = by_alloc(topology->node_count, sizeof(*entering)), found = -1;
    int64_t *leaving = by_alloc(topology->node_count, sizeof(*leaving));
    int error = 0;

    for (uint32_t i = 0; i < topology->arc_count; i++) {
        leaving[topology->arcs[i].from] += topology->arcs[i].capacity;
        entering[topology->arcs[i].to] += topology->arcs[i].capacity;
    }
    for (uint32_t i = 0; i < topology->node_count && found < 0; i++)
        if (entering[i] != leaving[i])
            found = i;
    if (found >= 0 && in)
        error |= by_fraction_set(entering[found], topology->scale, in);
    if (found >= 0 && out)
        error |= by_fraction_set(leaving[found], topology->scale, out);
    BY_ASSERT(error == 0); /* a part of the sum of all capacities, which fits */
    free(entering);
    free(leaving);
    return found;
}

static void write_string(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (;;) {
        size_t plain = 0;

        while ((unsigned char)text[plain] >= ' ' && text[plain] != '"' && text[plain] != '\\')
            plain++;
        fwrite(text, 1, plain, stream);
        text += plain;
        if (*text == 0)
            break;
        if (*text == '"' || *text == '\\')
            fprintf(stream, "\\%c", *text);
        else
            fprintf(stream, "\\u%04x", (unsigned)*text);
        text++;
    }
    fputc('"', stream);
}

static void write_bandwidth(FILE *stream, struct by_fraction bandwidth)
{
    char text[BY_FRACTION_TEXT_BYTES];
    const char *quote = bandwidth.den == 1 && bandwidth.num <= (int64_t)1 << 53 ? "" : "\"";

    fputs(quote, stream);
    fputs(by_fraction_text(bandwidth, text), stream);
    fputs(quote, stream);
}

/* Writes the names of the bits, as read_words reads them; nothing if no bit is set. */
static void write_words(FILE *stream, const char *key, uint16_t bits, const char *(*name)(unsigned))
{
    const char *before = "\"";

    if (bits == 0)
        return;
    fprintf(stream, ", \"%s\": ", key);
    for (unsigned value = 1; value < 16; value++)
        if (bits >> value & 1) {
            fprintf(stream, "%s%s", before, name(value));
            before = ",";
        }
    fputc('"', stream);
}

static void write_node(FILE *stream, const struct by_node *node)
{
    fputs("{\"name\": ", stream);
    write_string(stream, node->name);
    fputs(node->compute ? ", \"kind\": \"compute\"" : ", \"kind\": \"switch\"", stream);
    if (node->forward)
        fputs(", \"forward\": true", stream);
    if (node->multicast)
        fputs(", \"multicast\": true", stream);
    if (node->aggregate)
        fputs(", \"aggregate\": true", stream);
    if (node->aggregate_rate.num > 0) {
        fputs(", \"aggregate_rate\": ", stream);
        write_bandwidth(stream, node->aggregate_rate);
    }
    write_words(stream, "ops", node->ops, by_op_name);
    write_words(stream, "dtypes", node->dtypes, by_dtype_name);
    if (node->has_task_time) {
        fputs(", \"task_time\": ", stream);
        write_bandwidth(stream, node->task_time);
    }
    fputc('}', stream);
}

static void write_link(FILE *stream, const struct by_topology *topology, const struct by_link *link)
{
    struct by_fraction bandwidth;
    int error = by_fraction_set(topology->arcs[link->arc_ab].capacity, topology->scale, &bandwidth);

    BY_ASSERT(error == 0);
    fputs(link->arc_ba == UINT32_MAX ? "{\"from\": " : "{\"between\": [", stream);
    write_string(stream, topology->nodes[link->a].name);
    fputs(link->arc_ba == UINT32_MAX ? ", \"to\": " : ", ", stream);
    write_string(stream, topology->nodes[link->b].name);
    fputs(link->arc_ba == UINT32_MAX ? ", \"bandwidth\": " : "], \"bandwidth\": ", stream);
    write_bandwidth(stream, bandwidth);
    fputc('}', stream);
}

int by_topology_write(const struct by_topology *topology, void *stream)
{
    FILE *file = stream;

    fputs("{\"name\": ", file);
    write_string(file, topology->name);
    fputs(", \"unit\": ", file);
    write_string(file, topology->unit);
    fputs(",\n \"nodes\": [", file);
    for (uint32_t i = 0; i < topology->node_count; i++) {
        fputs(i ? ",\n           " : "", file);
        write_node(file, &topology->nodes[i]);
    }
    fputs("],\n \"links\": [", file);
    for (uint32_t i = 0; i < topology->link_count; i++) {
        fputs(i ? ",\n           " : "", file);
        write_link(file, topology, &topology->links[i]);
    }
    fputs("]}\n", file);
    return fflush(file) != 0 || ferror(file) ? BY_EIO : 0;
}
