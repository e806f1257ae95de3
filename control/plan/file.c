/*
 * Plan files: JSON with names instead of indices, as in banyan-plan(5). Reading checks what later steps rely
 * on (names, shapes, that links exist); whether the plan is any good is for the verifier, which reads files
 * with code of its own. One thread for each call.
 */
#include <jansson.h>
#include <stdarg.h>

#include "control/plan/plan.h"
#include "control/topology/alloc.h"
#include "control/topology/build.h"
#include "control/topology/fraction.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

#define FORMAT "banyan-plan-1"

static const struct by_place nowhere = {0, 0};
static const char *const use_names[] = {"?", "both", "up", "down"};

static void write_string(FILE *stream, const char *text)
{
    json_t *string = json_string(text);

    BY_ASSERT(string);
    json_dumpf(string, stream, JSON_ENCODE_ANY);
    json_decref(string);
}

static void write_nodes(FILE *stream, const struct by_topology *topology, const uint32_t *nodes,
                        uint32_t count)
{
    fputc('[', stream);
    for (uint32_t i = 0; i < count; i++)
        fprintf(stream, "%s\"%s\"", i ? ", " : "", topology->nodes[nodes[i]].name);
    fputc(']', stream);
}

static void write_fraction(FILE *stream, const char *key, struct by_fraction value)
{
    char text[BY_FRACTION_JSON_BYTES];

    fprintf(stream, "\"%s\": %s", key, by_fraction_json(value, text));
}

static void write_tree(FILE *stream, const struct by_topology *topology, const struct by_tree *tree)
{
    fprintf(stream, "{\"root\": \"%s\", \"use\": \"%s\", ", topology->nodes[tree->root].name,
            use_names[tree->use]);
    write_fraction(stream, "weight", tree->weight);
    fputs(", \"edges\": [", stream);
    for (uint32_t i = 0; i < tree->edge_count; i++) {
        fputs(i ? ", " : "", stream);
        write_nodes(stream, topology, tree->edges[i].nodes, tree->edges[i].node_count);
    }
    fputs("]}", stream);
}

int by_plan_write(const struct by_plan *plan, const struct by_topology *topology, void *stream)
{
    FILE *file = stream;
    uint32_t inside = 0;

    for (uint32_t i = 0; i < plan->cut_count; i++)
        inside += topology->nodes[plan->cut[i]].compute;
    fputs("{\"format\": \"" FORMAT "\", \"topology\": ", file);
    write_string(file, plan->topology_name);
    fputs(", \"unit\": ", file);
    write_string(file, plan->unit);
    fprintf(file, ",\n \"collective\": \"%s\", \"root\": ", by_collective_name(plan->collective));
    if (plan->root >= 0)
        fprintf(file, "\"%s\"", topology->nodes[plan->root].name);
    else
        fputs("null", file);
    fputs(",\n ", file);
    write_fraction(file, "optimum", plan->optimum);
    fputs(", ", file);
    write_fraction(file, "achieved", plan->achieved);
    fputs(", ", file);
    if (plan->inv_x.num > 0)
        write_fraction(file, "inv_x", plan->inv_x);
    else
        fputs("\"inv_x\": null", file);
    fprintf(file, ", \"k\": %lld,\n \"bottleneck\": {\"nodes\": ", (long long)plan->k);
    write_nodes(file, topology, plan->cut, plan->cut_count);
    fprintf(file, ", \"compute_count\": %u, ", inside);
    write_fraction(file, "exiting", plan->cut_exiting);
    fputs("},\n \"trees\": [", file);
    for (uint32_t i = 0; i < plan->tree_count; i++) {
        fputs(i ? ",\n  " : "\n  ", file);
        write_tree(file, topology, &plan->trees[i]);
    }
    fputs("]}\n", file);
    return fflush(file) != 0 || ferror(file) ? BY_EIO : 0;
}

/* ---- reading ---- */

struct reader {
    const struct by_topology *topology;
    json_t *index_of_name;
    bool *linked; /* [from * node_count + to] in either direction */
    struct by_problem *problem;
};

static int refuse(const struct reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int refuse(const struct reader *reader, const char *format, ...)
{
    va_list arguments;

    *reader->problem = (struct by_problem){0};
    va_start(arguments, format);
    vsnprintf(reader->problem->text, sizeof(reader->problem->text), format, arguments);
    va_end(arguments);
    return BY_EFORMAT;
}

/* A number of the plan: an integer, or its digits in a string. */
static int read_integer(const json_t *value, int64_t *result)
{
    struct by_fraction number;

    if (json_is_integer(value)) {
        *result = json_integer_value(value);
        return *result < 0 ? BY_EFORMAT : 0;
    }
    if (!json_is_string(value) ||
        by_fraction_parse(json_string_value(value), json_string_length(value), &number) != 0 ||
        number.den != 1)
        return BY_EFORMAT;
    *result = number.num;
    return 0;
}

static int read_fraction(const struct reader *reader, const json_t *value, const char *what,
                         struct by_fraction *result)
{
    int64_t num, den;

    if (read_integer(json_object_get(value, "num"), &num) != 0 ||
        read_integer(json_object_get(value, "den"), &den) != 0 || den == 0)
        return refuse(reader, "%s must be a fraction such as {\"num\": 1, \"den\": 2}", what);
    return by_fraction_set(num, den, result);
}

static int read_node(const struct reader *reader, const json_t *value, uint32_t *node)
{
    const json_t *index =
        json_is_string(value) ? json_object_get(reader->index_of_name, json_string_value(value)) : NULL;

    if (!index)
        return refuse(
            reader, "the plan names node '%.60s', which the topology '%.60s' does not have; plan it anew",
            json_is_string(value) ? json_string_value(value) : "(not a string)", reader->topology->name);
    *node = (uint32_t)json_integer_value(index);
    return 0;
}

static int read_path(const struct reader *reader, const json_t *value, struct by_path *path)
{
    size_t count = json_array_size(value);

    if (count < 2 || count > reader->topology->node_count)
        return refuse(reader, "an edge must be an array of 2 to %u node names", reader->topology->node_count);
    path->nodes = by_alloc(count, sizeof(*path->nodes));
    path->node_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        int error = read_node(reader, json_array_get(value, i), &path->nodes[i]);

        if (error)
            return error;
        if (i > 0 &&
            !reader->linked[(size_t)path->nodes[i - 1] * reader->topology->node_count + path->nodes[i]])
            return refuse(reader,
                          "the plan uses a link %s - %s, which the topology does not have; plan it anew",
                          reader->topology->nodes[path->nodes[i - 1]].name,
                          reader->topology->nodes[path->nodes[i]].name);
    }
    return 0;
}

static int read_tree(const struct reader *reader, const json_t *value, struct by_tree *tree)
{
    const json_t *edges = json_object_get(value, "edges");
    const char *use = json_string_value(json_object_get(value, "use"));
    uint32_t n = reader->topology->node_count;
    bool *reached;
    int error = read_node(reader, json_object_get(value, "root"), &tree->root);

    for (unsigned i = BY_TREE_BOTH; i <= BY_TREE_DOWN; i++)
        if (use && strcmp(use, use_names[i]) == 0)
            tree->use = (enum by_tree_use)i;
    if (!error && !tree->use)
        error = refuse(reader, "the use of a tree must be \"both\", \"up\" or \"down\"");
    if (!error)
        error =
            read_fraction(reader, json_object_get(value, "weight"), "the weight of a tree", &tree->weight);
    if (error)
        return error;
    reached = by_alloc(n, sizeof(*reached));
    reached[tree->root] = true;
    tree->edges = by_alloc(json_array_size(edges), sizeof(*tree->edges));
    for (size_t i = 0; i < json_array_size(edges) && !error; i++) {
        struct by_path *path = &tree->edges[tree->edge_count++];

        error = read_path(reader, json_array_get(edges, i), path);
        BY_ASSERT(error || path->nodes);
        if (!error && (!reached[path->nodes[0]] || reached[path->nodes[path->node_count - 1]]))
            error = refuse(reader, "the edges of a tree rooted at %s do not form a tree, parents first",
                           reader->topology->nodes[tree->root].name);
        if (!error)
            reached[path->nodes[path->node_count - 1]] = true;
    }
    free(reached);
    return error;
}

static int read_head(const struct reader *reader, const json_t *root, struct by_plan *plan)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    const char *name = json_string_value(json_object_get(root, "topology"));
    const char *unit = json_string_value(json_object_get(root, "unit"));
    const char *collective = json_string_value(json_object_get(root, "collective"));
    const json_t *from = json_object_get(root, "root"), *inv_x = json_object_get(root, "inv_x");
    int error = 0;

    if (!format || strcmp(format, FORMAT) != 0)
        return refuse(reader, "the file's format is '%.40s', this banyan reads '%s'; plan it anew",
                      format ? format : "(none)", FORMAT);
    if (!name || !unit || !collective || (plan->collective = by_collective_from_name(collective)) == 0)
        return refuse(reader, "the plan must have \"topology\", \"unit\" and a known \"collective\"");
    plan->topology_name = by_copy_text(name);
    plan->unit = by_copy_text(unit);
    plan->compute_count = by_topology_compute_count(reader->topology);
    plan->root = -1;
    if (from && !json_is_null(from)) {
        uint32_t node = 0;

        error = read_node(reader, from, &node);
        plan->root = node;
    }
    if (!error)
        error = read_fraction(reader, json_object_get(root, "optimum"), "\"optimum\"", &plan->optimum);
    if (!error)
        error = read_fraction(reader, json_object_get(root, "achieved"), "\"achieved\"", &plan->achieved);
    plan->inv_x = (struct by_fraction){0, 1};
    if (!error && inv_x && !json_is_null(inv_x))
        error = read_fraction(reader, inv_x, "\"inv_x\"", &plan->inv_x);
    if (!error && read_integer(json_object_get(root, "k"), &plan->k) != 0)
        error = refuse(reader, "\"k\" must be an integer");
    return error;
}

static int read_body(const struct reader *reader, const json_t *root, struct by_plan *plan)
{
    const json_t *bottleneck = json_object_get(root, "bottleneck"),
                 *cut = json_object_get(bottleneck, "nodes");
    const json_t *trees = json_object_get(root, "trees");
    int error =
        read_fraction(reader, json_object_get(bottleneck, "exiting"), "\"exiting\"", &plan->cut_exiting);

    if (!error && (!json_is_array(trees) || json_array_size(trees) == 0 ||
                   json_array_size(cut) > reader->topology->node_count))
        error = refuse(reader, "the plan must have \"trees\", and a \"bottleneck\" of nodes of the topology");
    if (error)
        return error;
    plan->cut = by_alloc(json_array_size(cut), sizeof(*plan->cut));
    for (size_t i = 0; i < json_array_size(cut) && !error; i++)
        error = read_node(reader, json_array_get(cut, i), &plan->cut[plan->cut_count++]);
    plan->trees = by_alloc(json_array_size(trees), sizeof(*plan->trees));
    for (size_t i = 0; i < json_array_size(trees) && !error; i++)
        error = read_tree(reader, json_array_get(trees, i), &plan->trees[plan->tree_count++]);
    return error;
}

static void reader_make(struct reader *reader, const struct by_topology *topology, struct by_problem *problem)
{
    size_t n = topology->node_count;

    *reader = (struct reader){.topology = topology, .index_of_name = json_object(), .problem = problem};
    reader->linked = by_alloc(n * n, sizeof(*reader->linked));
    for (uint32_t i = 0; i < topology->node_count; i++)
        json_object_set_new(reader->index_of_name, topology->nodes[i].name, json_integer(i));
    for (uint32_t i = 0; i < topology->arc_count; i++) {
        reader->linked[topology->arcs[i].from * n + topology->arcs[i].to] = true;
        reader->linked[topology->arcs[i].to * n + topology->arcs[i].from] = true;
    }
}

int by_plan_read(const char *path, const struct by_topology *topology, struct by_plan **plan,
                 struct by_problem *problem)
{
    json_error_t mistake;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &mistake);
    struct by_plan *made;
    struct reader reader;
    int error;

    *plan = NULL;
    if (!root) {
        bool opened = mistake.line > 0;

        return by_problem_set(problem, opened ? BY_EFORMAT : BY_EIO,
                              opened ? (struct by_place){mistake.line, mistake.column} : nowhere, "%s%s",
                              opened ? "not valid JSON: " : "", mistake.text);
    }
    made = by_alloc(1, sizeof(*made));
    reader_make(&reader, topology, problem);
    error = read_head(&reader, root, made);
    if (!error)
        error = read_body(&reader, root, made);
    if (error == BY_ERANGE)
        by_problem_set(problem, error, nowhere, "a fraction of the plan needs more than 63 bits");
    json_decref(reader.index_of_name);
    free(reader.linked);
    json_decref(root);
    if (error) {
        by_plan_free(made);
        return error;
    }
    *plan = made;
    return 0;
}
