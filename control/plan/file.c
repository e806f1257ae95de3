/*
 * Writes plan files: JSON with names instead of indices, each path once, as in banyan-plan(5).
 * file_read.c reads them. A plan may have millions of edges, so text is assembled here instead of
 * by printf. Each call runs in one thread.
 */
#include <jansson.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/members.h"
#include "control/plan/plan.h"
#include "control/plan/shares.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

#define FORMAT         "banyan-plan-2"
#define FORMAT_CLASSES "banyan-plan-classes-1"

/* Buffer of text to be written (bytes). */
#define BUFFER_BYTES 65536u

struct file_writer {
    FILE *file;
    size_t used;
    char buffer[BUFFER_BYTES];
};

static void flush(struct file_writer *writer)
{
    fwrite(writer->buffer, 1, writer->used, writer->file); /* errors are checked at the end */
    writer->used = 0;
}

static void put_bytes(struct file_writer *writer, const char *text, size_t bytes)
{
    while (bytes > 0) {
        size_t part = BUFFER_BYTES - writer->used < bytes ? BUFFER_BYTES - writer->used : bytes;

        memcpy(writer->buffer + writer->used, text, part);
        writer->used += part;
        text += part;
        bytes -= part;
        if (writer->used == BUFFER_BYTES)
            flush(writer);
    }
}

static void put(struct file_writer *writer, const char *text)
{
    put_bytes(writer, text, strlen(text));
}

static void put_number(struct file_writer *writer, uint64_t number)
{
    char text[20];
    size_t at = sizeof(text);

    do
        text[--at] = (char)('0' + number % 10);
    while (number /= 10);
    put_bytes(writer, text + at, sizeof(text) - at);
}

static void put_string(struct file_writer *writer, const char *text)
{
    json_t *string = json_string(text);
    char *dump;

    BY_ASSERT(string);
    dump = json_dumps(string, JSON_ENCODE_ANY);
    BY_ASSERT(dump);
    put(writer, dump);
    free(dump);
    json_decref(string);
}

/* Writes node names, which need no escapes. */
static void put_nodes(struct file_writer *writer, const struct by_topology *topology, const uint32_t *nodes,
                      uint32_t count)
{
    put(writer, "[");
    for (uint32_t i = 0; i < count; i++) {
        put(writer, i ? ", \"" : "\"");
        put(writer, topology->nodes[nodes[i]].name);
        put(writer, "\"");
    }
    put(writer, "]");
}

static void put_fraction(struct file_writer *writer, const char *key, struct by_fraction value)
{
    char text[BY_FRACTION_JSON_BYTES];

    put(writer, "\"");
    put(writer, key);
    put(writer, "\": ");
    put(writer, by_fraction_json(value, text));
}

static void put_head(struct file_writer *writer, const struct by_plan *plan,
                     const struct by_topology *topology)
{
    uint32_t inside = 0;

    for (uint32_t i = 0; i < plan->cut_count; i++)
        inside += by_members_have(topology, plan->member, plan->cut[i]);
    put(writer, plan->rotations ? "{\"format\": \"" FORMAT_CLASSES : "{\"format\": \"" FORMAT);
    put(writer, "\", \"topology\": ");
    put_string(writer, plan->topology_name);
    put(writer, ", \"unit\": ");
    put_string(writer, plan->unit);
    put(writer, ",\n \"collective\": \"");
    put(writer, by_collective_name(plan->collective));
    put(writer, "\", \"root\": ");
    if (plan->root >= 0)
        put_string(writer, topology->nodes[plan->root].name);
    else
        put(writer, "null");
    put(writer, ",\n ");
    if (plan->member) {
        const char *before = "\"ranks\": [\"";

        for (uint32_t i = 0; i < topology->node_count; i++) {
            if (!plan->member[i])
                continue;
            put(writer, before);
            put(writer, topology->nodes[i].name);
            before = "\", \"";
        }
        put(writer, "\"],\n ");
    }
    if (plan->shares) {
        put(writer, "\"shares\": ");
        flush(writer);
        by_shares_write(plan->shares, topology, plan->member, writer->file);
        put(writer, ",\n ");
    }
    put_fraction(writer, "optimum", plan->optimum);
    put(writer, ", ");
    put_fraction(writer, "achieved", plan->achieved);
    put(writer, ", ");
    if (plan->inv_x.num > 0)
        put_fraction(writer, "inv_x", plan->inv_x);
    else
        put(writer, "\"inv_x\": null");
    put(writer, ", \"k\": ");
    put_number(writer, (uint64_t)plan->k);
    put(writer, ",\n \"bottleneck\": {\"nodes\": ");
    put_nodes(writer, topology, plan->cut, plan->cut_count);
    put(writer, ", \"compute_count\": ");
    put_number(writer, inside);
    put(writer, ", ");
    put_fraction(writer, "exiting", plan->cut_exiting);
    put(writer, "},\n ");
    if (plan->hosts_only)
        put(writer, "\"in_network\": \"none\",\n ");
    if (plan->trees_max > 0) {
        put(writer, "\"trees_max\": ");
        put_number(writer, (uint64_t)plan->trees_max);
        put(writer, ",\n ");
    }
    if (plan->ordered)
        put(writer, "\"ordered\": true,\n ");
    if (plan->proof) {
        put(writer, "\"proof\": ");
        flush(writer);
        by_certificate_write(plan->proof, topology, writer->file);
        put(writer, ",\n ");
    }
}

/* Writes rotations as cycles of node names. */
static void put_rotations(struct file_writer *writer, const struct by_rotations *rotations,
                          const struct by_topology *topology)
{
    uint32_t n = topology->node_count, *cycle = by_alloc(n, sizeof(*cycle));
    bool *seen = by_alloc(n, sizeof(*seen));

    put(writer, "\"rotations\": [");
    for (uint32_t r = 0; r < rotations->count; r++) {
        const uint32_t *next = rotations->list[r].next;
        const char *before = "\n   ";

        put(writer, r ? "},\n  {\"order\": " : "\n  {\"order\": ");
        put_number(writer, rotations->list[r].order);
        put(writer, ", \"cycles\": [");
        memset(seen, 0, n * sizeof(*seen));
        for (uint32_t i = 0; i < n; i++) {
            uint32_t count = 0;

            for (uint32_t node = i; !seen[node] && next[i] != i; node = next[node]) {
                seen[node] = true;
                cycle[count++] = node;
            }
            if (count == 0)
                continue;
            put(writer, before);
            put_nodes(writer, topology, cycle, count);
            before = ",\n   ";
        }
        put(writer, "]");
    }
    put(writer, "}],\n ");
    free(cycle);
    free(seen);
}

static void put_tree(struct file_writer *writer, const struct by_plan *plan,
                     const struct by_topology *topology, const struct by_tree *tree)
{
    static const char *const use_names[] = {"?", "both", "up", "down"};

    put(writer, "{\"root\": \"");
    put(writer, topology->nodes[tree->root].name);
    put(writer, "\", \"use\": \"");
    put(writer, use_names[tree->use]);
    put(writer, "\", ");
    put_fraction(writer, "weight", tree->weight);
    put(writer, ", \"edges\": [");
    for (uint32_t i = 0; i < tree->edge_count; i++) {
        if (i)
            put_bytes(writer, ",", 1);
        put_number(writer, plan->edges[tree->first_edge + i]);
    }
    put(writer, "]}");
}

int by_plan_write(const struct by_plan *plan, const struct by_topology *topology, void *stream)
{
    struct file_writer *writer = by_alloc(1, sizeof(*writer));
    bool failed;

    writer->file = stream;
    put_head(writer, plan, topology);
    if (plan->rotations)
        put_rotations(writer, plan->rotations, topology);
    put(writer, "\"paths\": [");
    for (uint32_t i = 0; i < plan->paths.count; i++) {
        struct by_path path = by_paths_get(&plan->paths, i);

        put(writer, i ? ",\n  " : "\n  ");
        put_nodes(writer, topology, path.nodes, path.node_count);
    }
    put(writer, "],\n \"trees\": [");
    for (uint32_t i = 0; i < plan->tree_count; i++) {
        put(writer, i ? ",\n  " : "\n  ");
        put_tree(writer, plan, topology, &plan->trees[i]);
    }
    put(writer, "]}\n");
    flush(writer);
    failed = fflush(writer->file) != 0 || ferror(writer->file);
    free(writer);
    return failed ? BY_EIO : 0;
}
