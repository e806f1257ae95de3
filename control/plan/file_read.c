/*
 * Reads plan files, as in banyan-plan(5). Checks what later steps rely on: names, shapes, the
 * existence of links. The verifier, which has its own reader, checks the quality of the plan. Each
 * call runs in one thread.
 */
#include <stdarg.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/base/json.h"
#include "control/fabric/build.h"
#include "control/fabric/links.h"
#include "control/fabric/members.h"
#include "control/fabric/names.h"
#include "control/plan/plan.h"
#include "control/plan/shares.h"
#include "control/plan/tree_list.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

#define FORMAT         "banyan-plan-2"
#define FORMAT_CLASSES "banyan-plan-classes-1"

/* Maximum size of a plan file (bytes): many times a plan for 4096 nodes. */
#define FILE_BYTES_MAX ((size_t)4 << 30)

static const struct by_place nowhere = {0, 0};
static const char *const use_names[] = {"?", "both", "up", "down"};

struct file_read_reader {
    const struct by_topology *topology;
    struct by_json json;
    struct by_names *names;
    struct by_links *links;
    struct by_problem *problem;
    int error; /* the first error other than JSON syntax */
    uint32_t *nodes;
    uint32_t path_count; /* paths in the file's "paths" */
    uint32_t path_room;
    uint32_t *path_numbers; /* their numbers in the list */
    struct by_tree_list list;
    uint32_t *edges;   /* edges of the current tree */
    uint32_t *reached; /* by node: the last tree (number + 1) that reached it */
    struct {
        bool format, classes, topology, unit, optimum, achieved, k, bottleneck, exiting, paths, trees;
    } has;
};

static bool refuse(struct file_read_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Records the first error; returns false. */
static bool refuse(struct file_read_reader *reader, const char *format, ...)
{
    va_list arguments;

    if (reader->error || reader->json.failed)
        return false;
    *reader->problem = (struct by_problem){0};
    va_start(arguments, format);
    vsnprintf(reader->problem->text, sizeof(reader->problem->text), format, arguments);
    va_end(arguments);
    reader->error = BY_EFORMAT;
    return false;
}

/* Whether reading continues. */
static bool going(const struct file_read_reader *reader)
{
    return !reader->error && !reader->json.failed;
}

/* Reads a number of the plan: an integer, or its digits in a string. */
static bool read_integer(struct file_read_reader *reader, int64_t *result)
{
    struct by_fraction number;
    const char *text;
    size_t bytes;

    if (by_json_integer(&reader->json, result))
        return *result >= 0;
    if (by_json_peek(&reader->json) != '"' || !by_json_string(&reader->json, &text, &bytes) ||
        by_fraction_parse(text, bytes, &number) != 0 || number.den != 1)
        return false;
    *result = number.num;
    return true;
}

static bool read_fraction(struct file_read_reader *reader, const char *what, struct by_fraction *result)
{
    int64_t num = -1, den = -1;
    const char *key;
    size_t bytes;
    bool right = by_json_peek(&reader->json) == '{';

    if (right)
        for (bool first = true; right && by_json_member(&reader->json, &first, &key, &bytes);) {
            if (by_json_is(key, bytes, "num") && num < 0)
                right = read_integer(reader, &num);
            else if (by_json_is(key, bytes, "den") && den < 0)
                right = read_integer(reader, &den);
            else
                right = false;
        }
    if (!right || num < 0 || den <= 0)
        return refuse(reader, "%s must be a fraction such as {\"num\": 1, \"den\": 2}", what);
    if (by_fraction_set(num, den, result) != 0)
        return refuse(reader, "%s needs more than 63 bits", what);
    return true;
}

static bool read_node(struct file_read_reader *reader, uint32_t *node)
{
    const char *text;
    int shown;

    if (!by_names_read(reader->names, &reader->json, node, &text, &shown))
        return refuse(reader,
                      "the plan names node '%.*s', which the topology '%.60s' does not have; plan again",
                      shown, text, reader->topology->name);
    return true;
}

static bool is_linked(const struct file_read_reader *reader, uint32_t a, uint32_t b)
{
    return by_links_find(reader->links, a, b) != UINT32_MAX ||
           by_links_find(reader->links, b, a) != UINT32_MAX;
}

/* Reads a path by its names; `*path` is its number in the list. */
static bool read_path(struct file_read_reader *reader, uint32_t *path)
{
    uint32_t count = 0, limit = reader->topology->node_count;

    if (by_json_peek(&reader->json) != '[')
        return refuse(reader, "an edge must be an array of node names, or the number of one of \"paths\"");
    for (bool first = true; going(reader) && by_json_element(&reader->json, &first);) {
        if (count == limit)
            return refuse(reader, "an edge must be an array of 2 to %u node names", limit);
        if (!read_node(reader, &reader->nodes[count]))
            return false;
        if (count > 0 && !is_linked(reader, reader->nodes[count - 1], reader->nodes[count]))
            return refuse(reader,
                          "the plan uses a link %s - %s, which the topology does not have; plan again",
                          reader->topology->nodes[reader->nodes[count - 1]].name,
                          reader->topology->nodes[reader->nodes[count]].name);
        count++;
    }
    if (!going(reader))
        return false;
    if (count < 2)
        return refuse(reader, "an edge must be an array of 2 to %u node names", limit);
    *path = by_paths_add(&reader->list.paths, reader->nodes, count);
    return true;
}

static void read_paths(struct file_read_reader *reader)
{
    for (bool first = true; going(reader) && by_json_element(&reader->json, &first);) {
        BY_GROW(reader->path_numbers, reader->path_count, reader->path_room);
        if (read_path(reader, &reader->path_numbers[reader->path_count]))
            reader->path_count++;
    }
}

/* Reads one edge: the number of a path, or the path itself. */
static bool read_edge(struct file_read_reader *reader, uint32_t *path)
{
    int64_t number;

    if (!by_json_integer(&reader->json, &number))
        return read_path(reader, path);
    if (number < 0 || number >= reader->path_count)
        return refuse(reader, "an edge has the number %lld, but the plan has %u paths", (long long)number,
                      reader->path_count);
    *path = reader->path_numbers[number];
    return true;
}

static uint32_t read_edges(struct file_read_reader *reader)
{
    uint32_t count = 0;

    for (bool first = true; going(reader) && by_json_element(&reader->json, &first);) {
        if (count + 1 >= reader->topology->node_count)
            refuse(reader, "a tree has more edges than the fabric has nodes");
        else if (read_edge(reader, &reader->edges[count]))
            count++;
    }
    return count;
}

/* Checks that each edge leads from a node reached before to a new one. */
static void check_tree(struct file_read_reader *reader, uint32_t root, uint32_t edge_count)
{
    uint32_t mark = reader->list.count + 1;

    reader->reached[root] = mark;
    for (uint32_t i = 0; i < edge_count; i++) {
        uint32_t from = by_paths_from(&reader->list.paths, reader->edges[i]),
                 to = by_paths_to(&reader->list.paths, reader->edges[i]);

        if (reader->reached[from] != mark || reader->reached[to] == mark) {
            refuse(reader, "the edges of a tree rooted at %s do not form a tree, parents first",
                   reader->topology->nodes[root].name);
            return;
        }
        reader->reached[to] = mark;
    }
}

static void read_tree(struct file_read_reader *reader)
{
    struct by_fraction weight = {0, 1};
    uint32_t root = UINT32_MAX, use = 0, edge_count = 0;
    bool has_weight = false, has_edges = false;
    const char *key, *text;
    size_t bytes, length;

    for (bool first = true; going(reader) && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "root") && root == UINT32_MAX) {
            read_node(reader, &root);
        } else if (by_json_is(key, bytes, "use") && by_json_peek(&reader->json) == '"' && !use) {
            if (by_json_string(&reader->json, &text, &length))
                for (uint32_t i = BY_TREE_BOTH; i <= BY_TREE_DOWN; i++)
                    use = by_json_is(text, length, use_names[i]) ? i : use;
        } else if (by_json_is(key, bytes, "weight") && !has_weight) {
            has_weight = read_fraction(reader, "the weight of a tree", &weight);
        } else if (by_json_is(key, bytes, "edges") && !has_edges) {
            has_edges = true;
            edge_count = read_edges(reader);
        } else {
            refuse(reader, "a tree has an unknown or repeated member '%.*s', or one of the wrong kind",
                   bytes > 40 ? 40 : (int)bytes, key);
        }
    }
    if (!going(reader))
        return;
    if (root == UINT32_MAX || !has_weight || !has_edges || !use) {
        refuse(reader, "a tree must have \"root\", \"weight\", \"edges\", and a \"use\" of \"both\", \"up\" "
                       "or \"down\"");
        return;
    }
    check_tree(reader, root, edge_count);
    if (going(reader))
        by_tree_list_append(&reader->list, root, (enum by_tree_use)use, weight, reader->edges, edge_count);
}

static void read_trees(struct file_read_reader *reader)
{
    for (bool first = true; going(reader) && by_json_element(&reader->json, &first);)
        read_tree(reader);
}

static void read_bottleneck(struct file_read_reader *reader, struct by_plan *plan)
{
    const char *key;
    size_t bytes;

    for (bool first = true; going(reader) && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "nodes") && plan->cut_count == 0) {
            for (bool start = true; going(reader) && by_json_element(&reader->json, &start);) {
                if (plan->cut_count == reader->topology->node_count)
                    refuse(reader, "the bottleneck has more nodes than the topology");
                else
                    read_node(reader, &plan->cut[plan->cut_count++]);
            }
        } else if (by_json_is(key, bytes, "exiting") && !reader->has.exiting) {
            reader->has.exiting = read_fraction(reader, "\"exiting\"", &plan->cut_exiting);
        } else {
            by_json_skip(&reader->json);
        }
    }
}

static void read_text(struct file_read_reader *reader, char **copy)
{
    const char *text;
    size_t bytes;

    if (!by_json_string(&reader->json, &text, &bytes))
        return;
    *copy = by_copy_part(text, bytes);
}

static void read_format(struct file_read_reader *reader)
{
    const char *text = "(none)";
    size_t bytes = strlen(text);

    if (by_json_peek(&reader->json) != '"')
        by_json_skip(&reader->json);
    else if (!by_json_string(&reader->json, &text, &bytes))
        return;
    reader->has.classes = by_json_is(text, bytes, FORMAT_CLASSES);
    reader->has.format = reader->has.classes || by_json_is(text, bytes, FORMAT);
    if (!reader->has.format)
        refuse(reader, "the file's format is '%.*s', this banyan reads '%s'; plan again",
               bytes > 40 ? 40 : (int)bytes, text, FORMAT);
}

static void read_collective(struct file_read_reader *reader, struct by_plan *plan)
{
    char *name = NULL;

    read_text(reader, &name);
    plan->collective = name ? by_collective_from_name(name) : 0;
    free(name);
}

/* Reads the compute nodes that take part: at least two, each once. */
static void read_ranks(struct file_read_reader *reader, struct by_plan *plan)
{
    uint32_t count = 0, node = 0;

    plan->member = by_alloc(reader->topology->node_count, sizeof(*plan->member));
    for (bool first = true; going(reader) && by_json_element(&reader->json, &first); count++) {
        if (!read_node(reader, &node))
            return;
        if (!reader->topology->nodes[node].compute || plan->member[node])
            refuse(reader, "\"ranks\" names '%s', which is not a compute node or is named twice",
                   reader->topology->nodes[node].name);
        plan->member[node] = true;
    }
    if (going(reader) && (count < 2 || plan->shares))
        refuse(reader, "\"ranks\" must name at least two compute nodes, and precede \"shares\"");
    plan->compute_count = count;
    if (count == by_topology_compute_count(reader->topology)) { /* all take part */
        free(plan->member);
        plan->member = NULL;
    }
}

/* Reads a cycle of a rotation of order `order`; `seen` is by node. */
static void read_cycle(struct file_read_reader *reader, uint32_t *next, bool *seen, int64_t order)
{
    uint32_t start = 0, before = 0, node = 0, count = 0;

    for (bool first = true; going(reader) && by_json_element(&reader->json, &first); count++) {
        if (!read_node(reader, &node))
            return;
        if (seen[node])
            refuse(reader, "node '%s' appears twice in a rotation", reader->topology->nodes[node].name);
        seen[node] = true;
        if (count == 0)
            start = node;
        else
            next[before] = node;
        next[before = node] = start;
    }
    if (going(reader) && (count == 0 || order % count))
        refuse(reader, "a cycle of %u nodes does not fit a rotation of order %lld, which must precede it",
               count, (long long)order);
}

/* Reads a rotation. */
static void read_rotation(struct file_read_reader *reader, struct by_rotation *rotation)
{
    uint32_t n = reader->topology->node_count;
    bool *seen = by_alloc(n, sizeof(*seen));
    int64_t order = 0;
    const char *key;
    size_t bytes;

    rotation->next = by_alloc(n, sizeof(*rotation->next));
    for (uint32_t i = 0; i < n; i++)
        rotation->next[i] = i;
    for (bool first = true; going(reader) && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "order") && by_json_integer(&reader->json, &order))
            continue;
        if (!by_json_is(key, bytes, "cycles") || order < 2 || order > (int64_t)BY_ROTATION_IMAGES_MAX) {
            refuse(reader, "a rotation must have an \"order\" from 2 to %llu, and then \"cycles\"",
                   (unsigned long long)BY_ROTATION_IMAGES_MAX);
            break;
        }
        for (bool start = true; going(reader) && by_json_element(&reader->json, &start);)
            read_cycle(reader, rotation->next, seen, order);
    }
    rotation->order = (uint32_t)order;
    free(seen);
}

/* Reads the symmetries of a plan by classes. */
static void read_rotations(struct file_read_reader *reader, struct by_plan *plan)
{
    struct by_rotations *rotations = plan->rotations = by_alloc(1, sizeof(*plan->rotations));

    rotations->node_count = reader->topology->node_count;
    for (bool first = true; going(reader) && by_json_element(&reader->json, &first);) {
        if (rotations->count == BY_ROTATIONS_MAX)
            refuse(reader, "the plan has more than %u rotations", BY_ROTATIONS_MAX);
        else
            read_rotation(reader, &rotations->list[rotations->count++]);
        if (going(reader) && by_rotations_images(rotations) > BY_ROTATION_IMAGES_MAX)
            refuse(reader, "the rotations of the plan have more than %llu products",
                   (unsigned long long)BY_ROTATION_IMAGES_MAX);
    }
    if (going(reader) && rotations->count == 0)
        refuse(reader, "\"rotations\" is empty");
}

static void read_in_network(struct file_read_reader *reader, struct by_plan *plan)
{
    char *text = NULL;

    if (by_json_peek(&reader->json) == '"')
        read_text(reader, &text);
    plan->hosts_only = text && strcmp(text, "none") == 0;
    if (!plan->hosts_only)
        refuse(reader, "\"in_network\" must be \"none\" if it is given");
    free(text);
}

/* Reads a member other than "trees" and "paths". */
static void read_head(struct file_read_reader *reader, struct by_plan *plan, const char *key, size_t bytes)
{
    uint32_t node = 0;
    bool null = by_json_peek(&reader->json) == 'n';

    if (by_json_is(key, bytes, "format")) {
        read_format(reader);
    } else if (by_json_is(key, bytes, "topology") && !plan->topology_name) {
        read_text(reader, &plan->topology_name);
    } else if (by_json_is(key, bytes, "unit") && !plan->unit) {
        read_text(reader, &plan->unit);
    } else if (by_json_is(key, bytes, "collective") && !plan->collective) {
        read_collective(reader, plan);
    } else if (by_json_is(key, bytes, "root") && !null) {
        if (read_node(reader, &node))
            plan->root = node;
    } else if (by_json_is(key, bytes, "optimum")) {
        reader->has.optimum = read_fraction(reader, "\"optimum\"", &plan->optimum);
    } else if (by_json_is(key, bytes, "achieved")) {
        reader->has.achieved = read_fraction(reader, "\"achieved\"", &plan->achieved);
    } else if (by_json_is(key, bytes, "inv_x") && !null) {
        read_fraction(reader, "\"inv_x\"", &plan->inv_x);
    } else if (by_json_is(key, bytes, "k")) {
        reader->has.k = read_integer(reader, &plan->k) || refuse(reader, "\"k\" must be an integer");
    } else if (by_json_is(key, bytes, "bottleneck") && !reader->has.bottleneck) {
        reader->has.bottleneck = true;
        read_bottleneck(reader, plan);
    } else if (by_json_is(key, bytes, "trees_max")) {
        if (!read_integer(reader, &plan->trees_max) || plan->trees_max < 1)
            refuse(reader, "\"trees_max\" must be a positive integer");
    } else if (by_json_is(key, bytes, "ordered")) {
        plan->ordered = by_json_peek(&reader->json) == 't';
        by_json_skip(&reader->json);
    } else if (by_json_is(key, bytes, "in_network")) {
        read_in_network(reader, plan);
    } else if (by_json_is(key, bytes, "ranks") && !plan->member) {
        read_ranks(reader, plan);
    } else if (by_json_is(key, bytes, "shares") && !plan->shares) {
        if (by_shares_value(&reader->json, reader->names, reader->topology, plan->member, &plan->shares,
                            reader->problem))
            reader->error = reader->json.failed ? reader->error : BY_EFORMAT;
    } else if (by_json_is(key, bytes, "rotations") && !plan->rotations) {
        read_rotations(reader, plan);
    } else if (by_json_is(key, bytes, "proof") && !plan->proof) {
        plan->proof = by_certificate_read(&reader->json, reader->names, reader->topology, reader->problem);
        reader->error = plan->proof || reader->json.failed ? reader->error : BY_EFORMAT;
    } else {
        by_json_skip(&reader->json);
    }
}

/* Reads the whole object. Trees before the paths are read after all other members. */
static void read_root(struct file_read_reader *reader, struct by_plan *plan)
{
    size_t trees_at = 0;
    const char *key;
    size_t bytes;

    for (bool first = true; going(reader) && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "paths") && !reader->has.paths) {
            reader->has.paths = true;
            read_paths(reader);
        } else if (by_json_is(key, bytes, "trees") && !reader->has.trees) {
            reader->has.trees = true;
            trees_at = reader->has.paths ? 0 : reader->json.at;
            if (trees_at)
                by_json_skip(&reader->json);
            else
                read_trees(reader);
        } else {
            read_head(reader, plan, key, bytes);
        }
    }
    if (going(reader) && by_json_finish(&reader->json, reader->problem) == 0 && trees_at) {
        reader->json.at = trees_at;
        reader->json.depth = 1;
        read_trees(reader);
    }
}

static void check_complete(struct file_read_reader *reader, const struct by_plan *plan)
{
    if (!reader->has.format)
        refuse(reader, "the file's format is '(none)', this banyan reads '%s'; plan again", FORMAT);
    if (reader->has.classes != (plan->rotations != NULL))
        refuse(reader, "only a plan of format '%s' has \"rotations\"", FORMAT_CLASSES);
    if (!plan->topology_name || !plan->unit || !plan->collective)
        refuse(reader, "the plan must have \"topology\", \"unit\" and a known \"collective\"");
    else if (strcmp(plan->unit, reader->topology->unit) != 0)
        refuse(reader, "the plan's unit is '%.40s', the topology's '%s'; plan again", plan->unit,
               reader->topology->unit);
    if (!reader->has.optimum || !reader->has.achieved || !reader->has.k)
        refuse(reader, "the plan must have \"optimum\", \"achieved\" and \"k\"");
    if (!reader->has.bottleneck || !reader->has.exiting || reader->list.count == 0)
        refuse(reader, "the plan must have \"trees\", and a \"bottleneck\" of nodes of the topology");
}

static int read_plan(struct file_read_reader *reader, struct by_plan *plan)
{
    uint32_t n = reader->topology->node_count;

    reader->names = by_names_new(reader->topology);
    reader->links = by_links_new(reader->topology);
    reader->nodes = by_alloc(n, sizeof(*reader->nodes));
    reader->edges = by_alloc(n, sizeof(*reader->edges));
    reader->reached = by_alloc(n, sizeof(*reader->reached));
    plan->cut = by_alloc(n, sizeof(*plan->cut));
    plan->compute_count = by_topology_compute_count(reader->topology);
    plan->root = -1;
    plan->inv_x = plan->two_phases = (struct by_fraction){0, 1};
    read_root(reader, plan);
    if (!reader->error && reader->json.failed)
        reader->error = by_json_finish(&reader->json, reader->problem);
    if (!reader->error)
        check_complete(reader, plan);
    by_names_free(reader->names);
    by_links_free(reader->links);
    free(reader->nodes);
    free(reader->edges);
    free(reader->reached);
    free(reader->path_numbers);
    return reader->error;
}

int by_plan_parse_classes(const char *text, size_t bytes, const struct by_topology *topology,
                          struct by_plan **plan, struct by_problem *problem)
{
    struct file_read_reader reader = {.topology = topology, .problem = problem};
    struct by_plan *made = by_alloc(1, sizeof(*made));
    int error;

    *plan = NULL;
    by_json_open(&reader.json, text, bytes);
    error = read_plan(&reader, made);
    by_json_close(&reader.json);
    if (error) {
        by_tree_list_free(&reader.list);
        by_plan_free(made);
        if (problem->text[0] == '\0')
            by_problem_set(problem, error, nowhere, "the plan cannot be read");
        return error;
    }
    by_tree_list_move(&reader.list, made);
    *plan = made;
    return 0;
}

/* Makes all trees of a plan by classes. */
static int expand(struct by_plan **plan, struct by_problem *problem)
{
    int error = by_rotations_expand(*plan, problem);

    if (error) {
        by_plan_free(*plan);
        *plan = NULL;
    }
    return error;
}

int by_plan_parse(const char *text, size_t bytes, const struct by_topology *topology, struct by_plan **plan,
                  struct by_problem *problem)
{
    int error = by_plan_parse_classes(text, bytes, topology, plan, problem);

    return error ? error : expand(plan, problem);
}

int by_plan_read_classes(const char *path, const struct by_topology *topology, struct by_plan **plan,
                         struct by_problem *problem)
{
    char *text;
    size_t bytes;
    int error = by_text_read(path, FILE_BYTES_MAX, &text, &bytes, problem);

    *plan = NULL;
    if (error == 0)
        error = by_plan_parse_classes(text, bytes, topology, plan, problem);
    free(text);
    return error;
}

int by_plan_read(const char *path, const struct by_topology *topology, struct by_plan **plan,
                 struct by_problem *problem)
{
    int error = by_plan_read_classes(path, topology, plan, problem);

    return error ? error : expand(plan, problem);
}
