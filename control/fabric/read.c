/*
 * Reads topology JSON, strictly: members that are unknown, missing, repeated or out of range are
 * refused with their position and the remedy. The JSON library checks the syntax and provides the
 * values; locate.h provides their positions and the exact text of numbers (a bandwidth such as 12.5
 * is never converted to a float). See topology.h and banyan-topology(5). Each call runs in one
 * thread.
 */
#include <errno.h>
#include <jansson.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/base/locate.h"
#include "control/fabric/build.h"
#include "control/fabric/unit.h"
#include "offload/base/errors.h"
#include "offload/base/limits.h"
#include "offload/wire/types.h"

/* Maximum size of a topology file (bytes): thousands of times the largest fabric that planning
 * supports. */
#define FILE_BYTES_MAX ((size_t)1 << 30)
/* Maximum length of the name of a topology and of its unit (bytes), which appear in plans, pictures
 * and messages. */
#define TEXT_BYTES_MAX 255
/* JSON values of a topology within the limits (count): a node has nine at most, a
 * link five. The JSON library needs some hundred bytes for each, so the limit bounds
 * memory before it is called. */
#define VALUES_MAX (9 * (size_t)BY_TOPOLOGY_NODES_MAX + 5 * (size_t)BY_TOPOLOGY_LINKS_MAX + 16)

/* Values are visited in document order; `next` is the number of the next value. */
struct read_reader {
    struct by_locations locations;
    size_t next;
    struct by_builder *builder;
    json_t *index_of_name;
    struct by_problem *problem;
};

#define REFUSE(reader, at, ...)                                                                              \
    by_problem_set((reader)->problem, BY_EINVAL, by_locations_place(&(reader)->locations, (at)), __VA_ARGS__)

/* Reads a string member into `*text` (owned by the JSON). */
static int read_text(struct read_reader *reader, json_t *value, const char *what, const char **text)
{
    size_t at = reader->next++;

    if (!json_is_string(value))
        return REFUSE(reader, at, "%s must be a string", what);
    *text = json_string_value(value);
    if (strlen(*text) != json_string_length(value))
        return REFUSE(reader, at, "%s contains a zero character; remove it", what);
    if (strlen(*text) > TEXT_BYTES_MAX)
        return REFUSE(reader, at, "%s has %zu bytes; the limit is %d", what, strlen(*text), TEXT_BYTES_MAX);
    return 0;
}

static int read_flag(struct read_reader *reader, json_t *value, const char *what, bool *flag)
{
    size_t at = reader->next++;

    if (!json_is_boolean(value))
        return REFUSE(reader, at, "%s must be true or false", what);
    *flag = json_is_true(value);
    return 0;
}

/* Reads names separated by commas, such as "sum,max", into the bits of their values. */
static int read_words(struct read_reader *reader, json_t *value, const char *what,
                      unsigned (*from_name)(const char *), uint16_t *bits)
{
    size_t at = reader->next;
    const char *text = "";
    int error = read_text(reader, value, what, &text);

    while (!error) {
        char word[16];
        size_t bytes = strcspn(text, ",");
        unsigned found;

        snprintf(word, sizeof(word), "%.*s", (int)(bytes < sizeof(word) ? bytes : sizeof(word) - 1), text);
        found = from_name(word);
        if (found == 0)
            return REFUSE(reader, at, "%s: '%s' is unknown; see banyan-topology(5)", what, word);
        *bits |= (uint16_t)(1u << found);
        if (text[bytes] == 0)
            break;
        text += bytes + 1;
    }
    return error;
}

/* Reads an exact non-negative number: a JSON number by its own text, or a string. */
static int read_number(struct read_reader *reader, json_t *value, const char *what, bool zero,
                       struct by_fraction *number)
{
    size_t at = reader->next++, bytes = 0;
    const char *text;
    int error;

    if (json_is_number(value)) {
        text = by_locations_number(&reader->locations, at, &bytes);
    } else if (json_is_string(value)) {
        text = json_string_value(value);
        bytes = json_string_length(value);
    } else {
        return REFUSE(reader, at, "%s must be a number, or a string such as \"25/2\"", what);
    }
    error = by_fraction_parse(text, bytes, number);
    if (error == BY_ERANGE)
        return REFUSE(reader, at,
                      "%s is %.*s: its exact value must fit 63 bits; use a larger unit or round it", what,
                      bytes > 40 ? 40 : (int)bytes, text);
    if (error || (number->num == 0 && !zero))
        return REFUSE(
            reader, at,
            "%s is \"%.*s\": it must be %s integer, decimal or fraction such as 12, 12.5 or \"25/2\"", what,
            bytes > 40 ? 40 : (int)bytes, text, zero ? "0 or a positive" : "a positive");
    return 0;
}

static int read_rate(struct read_reader *reader, json_t *value, const char *what, struct by_fraction *rate)
{
    return read_number(reader, value, what, false, rate);
}

static bool name_is_valid(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t bytes = strlen(name);

    return bytes > 0 && bytes <= BY_NAME_MAX && strspn(name, letters) == bytes;
}

/* Adds the node after all its members are validated. */
static int add_node(struct read_reader *reader, size_t at, const struct by_node *node, bool switch_keys)
{
    if (!node->compute && node->forward)
        return REFUSE(reader, at,
                      "node '%s' is a switch, which always forwards: \"forward\" belongs to compute nodes; "
                      "remove it",
                      node->name);
    if (node->compute && switch_keys)
        return REFUSE(
            reader, at,
            "node '%s' is a compute node: multicast, aggregate, aggregate_rate, ops and dtypes belong "
            "to switches; remove them",
            node->name);
    if (node->aggregate_rate.num > 0 && !node->aggregate)
        return REFUSE(reader, at,
                      "switch '%s' has an aggregate_rate but does not aggregate; add \"aggregate\": true",
                      node->name);
    if ((node->ops != 0 || node->dtypes != 0) && !node->aggregate)
        return REFUSE(reader, at, "switch '%s' has %s but does not aggregate; add \"aggregate\": true",
                      node->name, node->ops != 0 ? "ops" : "dtypes");
    json_object_set_new(reader->index_of_name, node->name,
                        json_integer(by_builder_node(reader->builder, node)));
    return 0;
}

static int read_node(struct read_reader *reader, size_t number, json_t *object)
{
    size_t at = reader->next++;
    struct by_node node = {.aggregate_rate = {0, 1}, .task_time = {0, 1}};
    const char *key, *name = NULL, *kind = NULL;
    bool switch_keys = false;
    json_t *value;
    int error = 0;

    if (!json_is_object(object))
        return REFUSE(reader, at,
                      "node %zu must be an object such as {\"name\": \"host0\", \"kind\": \"compute\"}",
                      number);
    json_object_foreach(object, key, value)
    {
        size_t value_at = reader->next;

        if (strcmp(key, "name") == 0) {
            error = read_text(reader, value, "the name of a node", &name);
            if (!error && !name_is_valid(name))
                error =
                    REFUSE(reader, value_at,
                           "'%.60s' is not a node name: it must have 1 to %u letters, digits or any of . _ -",
                           name, BY_NAME_MAX);
            if (!error && json_object_get(reader->index_of_name, name))
                error = REFUSE(reader, value_at, "node '%s' appears twice; names must be unique", name);
        } else if (strcmp(key, "kind") == 0) {
            error = read_text(reader, value, "the kind of a node", &kind);
            if (!error && strcmp(kind, "compute") != 0 && strcmp(kind, "switch") != 0)
                error = REFUSE(reader, value_at,
                               "kind '%.40s' is unknown; it must be \"compute\" or \"switch\"", kind);
        } else if (strcmp(key, "forward") == 0) {
            error = read_flag(reader, value, "forward", &node.forward);
        } else if (strcmp(key, "multicast") == 0) {
            error = read_flag(reader, value, "multicast", &node.multicast);
        } else if (strcmp(key, "aggregate") == 0) {
            error = read_flag(reader, value, "aggregate", &node.aggregate);
        } else if (strcmp(key, "aggregate_rate") == 0) {
            error = read_rate(reader, value, "aggregate_rate", &node.aggregate_rate);
        } else if (strcmp(key, "ops") == 0) {
            error = read_words(reader, value, "the operators of a switch", by_op_from_name, &node.ops);
        } else if (strcmp(key, "dtypes") == 0) {
            error = read_words(reader, value, "the types of a switch", by_dtype_from_name, &node.dtypes);
        } else if (strcmp(key, "task_time") == 0) {
            error = read_number(reader, value, "task_time", true, &node.task_time);
            node.has_task_time = true;
        } else {
            error = REFUSE(reader, value_at,
                           "key '%.40s' of a node is unknown; a node has name, kind, forward, multicast, "
                           "aggregate, aggregate_rate, ops, dtypes, task_time",
                           key);
        }
        if (error)
            return error;
        switch_keys |= strcmp(key, "multicast") == 0 || strcmp(key, "aggregate") == 0 ||
                       strcmp(key, "aggregate_rate") == 0 || strcmp(key, "ops") == 0 ||
                       strcmp(key, "dtypes") == 0;
    }
    if (!name || !kind)
        return REFUSE(reader, at, "node %zu has no %s; add \"%s\": ...", number, name ? "kind" : "name",
                      name ? "kind" : "name");
    node.name = (char *)name;
    node.compute = strcmp(kind, "compute") == 0;
    return add_node(reader, at, &node, switch_keys);
}

/* Reads the name of a link's end into the node's index. */
static int read_end(struct read_reader *reader, size_t number, json_t *value, int64_t *node)
{
    size_t at = reader->next;
    const char *name = NULL;
    json_t *index;
    int error = read_text(reader, value, "the end of a link", &name);

    if (error)
        return error;
    index = json_object_get(reader->index_of_name, name);
    if (!index)
        return REFUSE(reader, at,
                      "link %zu names node '%.60s', which is not in \"nodes\"; add it or correct the name",
                      number, name);
    *node = json_integer_value(index);
    return 0;
}

static int read_between(struct read_reader *reader, size_t number, json_t *value, int64_t ends[2])
{
    size_t at = reader->next++;

    if (!json_is_array(value) || json_array_size(value) != 2)
        return REFUSE(reader, at, "\"between\" of link %zu must be an array of two node names", number);
    for (size_t i = 0; i < 2; i++) {
        int error = read_end(reader, number, json_array_get(value, i), &ends[i]);

        if (error)
            return error;
    }
    return 0;
}

static int read_link(struct read_reader *reader, size_t number, json_t *object)
{
    size_t at = reader->next++;
    int64_t between[2] = {-1, -1}, from = -1, to = -1;
    struct by_fraction bandwidth = {0, 1};
    char what[48];
    const char *key;
    json_t *value;
    int error = 0;

    if (!json_is_object(object))
        return REFUSE(reader, at,
                      "link %zu must be an object such as {\"between\": [\"a\", \"b\"], \"bandwidth\": 10}",
                      number);
    snprintf(what, sizeof(what), "the bandwidth of link %zu", number);
    json_object_foreach(object, key, value)
    {
        if (strcmp(key, "between") == 0)
            error = read_between(reader, number, value, between);
        else if (strcmp(key, "from") == 0)
            error = read_end(reader, number, value, &from);
        else if (strcmp(key, "to") == 0)
            error = read_end(reader, number, value, &to);
        else if (strcmp(key, "bandwidth") == 0)
            error = read_rate(reader, value, what, &bandwidth);
        else
            error = REFUSE(
                reader, reader->next,
                "key '%.40s' of link %zu is unknown; a link has between (or from and to) and bandwidth", key,
                number);
        if (error)
            return error;
    }
    if (bandwidth.num == 0)
        return REFUSE(reader, at, "link %zu has no bandwidth; add \"bandwidth\": ...", number);
    if ((between[0] >= 0) == (from >= 0 || to >= 0) || (from >= 0) != (to >= 0))
        return REFUSE(reader, at,
                      "link %zu must have either \"between\" (both ways) or \"from\" and \"to\" (one way)",
                      number);
    if (between[0] < 0) {
        between[0] = from;
        between[1] = to;
    }
    if (between[0] == between[1])
        return REFUSE(reader, at, "link %zu joins a node to itself; its two ends must differ", number);
    by_builder_link(reader->builder, (uint32_t)between[0], (uint32_t)between[1], from < 0, bandwidth,
                    by_locations_place(&reader->locations, at));
    return 0;
}

/* Reads an array by calling `read` for each element. */
static int read_array(struct read_reader *reader, json_t *array, const char *what, size_t count_max,
                      int (*read)(struct read_reader *, size_t, json_t *))
{
    size_t at = reader->next++, number;
    json_t *element;

    if (!json_is_array(array))
        return REFUSE(reader, at, "\"%s\" must be an array", what);
    if (json_array_size(array) > count_max)
        return REFUSE(reader, at, "the fabric has %zu %s; the limit is %zu", json_array_size(array), what,
                      count_max);
    json_array_foreach(array, number, element)
    {
        int error = read(reader, number, element);

        if (error)
            return error;
    }
    return 0;
}

/* Returns the number of values in `value`, itself included. */
static size_t count_values(json_t *value)
{
    size_t count = 1, number;
    const char *key;
    json_t *child;

    if (json_is_object(value))
        json_object_foreach(value, key, child) count += count_values(child);
    json_array_foreach(value, number, child) count += count_values(child);
    return count;
}

/* Returns the number of the value of member `wanted` in the top object; nodes must be read before
 * links. */
static size_t find_member(json_t *root, const char *wanted)
{
    size_t at = 1;
    const char *key;
    json_t *value;

    json_object_foreach(root, key, value)
    {
        if (strcmp(key, wanted) == 0)
            break;
        at += count_values(value);
    }
    return at;
}

static int read_unit(struct read_reader *reader, json_t *value, const char **unit)
{
    size_t at = reader->next;
    int error = read_text(reader, value, "the unit", unit);

    if (!error && !by_unit_is_known(*unit))
        return REFUSE(reader, at, "the unit is '%.40s'; it must be one of %s", *unit, by_unit_list());
    return error;
}

static int read_root(struct read_reader *reader, json_t *root, struct by_topology **topology)
{
    const char *key, *name = NULL, *unit = "GB/s";
    json_t *value, *nodes = json_object_get(root, "nodes"), *links = json_object_get(root, "links");
    int error = 0;

    if (!json_is_object(root))
        return REFUSE(reader, 0,
                      "a topology must be an object with \"name\", \"unit\", \"nodes\" and \"links\"");
    json_object_foreach(root, key, value)
    {
        reader->next = find_member(root, key);
        if (strcmp(key, "name") == 0)
            error = read_text(reader, value, "the name of the topology", &name);
        else if (strcmp(key, "unit") == 0)
            error = read_unit(reader, value, &unit);
        else if (strcmp(key, "nodes") != 0 && strcmp(key, "links") != 0)
            error = REFUSE(reader, reader->next,
                           "key '%.40s' of a topology is unknown; it has name, unit, nodes and links", key);
        if (error)
            return error;
    }
    if (!name || !nodes || !links)
        return REFUSE(reader, 0, "the topology has no \"%s\"; add it",
                      !name    ? "name"
                      : !nodes ? "nodes"
                               : "links");
    reader->builder = by_builder_new(name, unit);
    reader->next = find_member(root, "nodes");
    error = read_array(reader, nodes, "nodes", BY_TOPOLOGY_NODES_MAX, read_node);
    reader->next = find_member(root, "links");
    if (!error)
        error = read_array(reader, links, "links", BY_TOPOLOGY_LINKS_MAX, read_link);
    return error ? error : by_builder_finish(reader->builder, topology, reader->problem);
}

static bool begins_like_json(const char *json, size_t bytes)
{
    size_t at = 0;

    while (at < bytes && (json[at] == ' ' || json[at] == '\t' || json[at] == '\n' || json[at] == '\r'))
        at++;
    return at < bytes && (json[at] == '{' || json[at] == '[');
}

/* Reports the syntax error of text that is not JSON. */
static int refuse_syntax(const char *json, size_t bytes, const json_error_t *mistake,
                         struct by_problem *problem)
{
    if (bytes == 0)
        return by_problem_set(problem, BY_EFORMAT, (struct by_place){0, 0},
                              "the topology is empty; `banyan topo` prints one to start from");
    if (memchr(json, 0, bytes))
        return by_problem_set(problem, BY_EFORMAT, (struct by_place){mistake->line, mistake->column},
                              "not valid JSON: it holds zero bytes; is it a text file?");
    return by_problem_set(problem, BY_EFORMAT, (struct by_place){mistake->line, mistake->column},
                          "not valid JSON: %s", mistake->text);
}

int by_topology_parse(const char *json, size_t bytes, struct by_topology **topology,
                      struct by_problem *problem)
{
    struct read_reader reader = {.problem = problem};
    json_error_t mistake;
    json_t *root;
    int error;

    *topology = NULL;
    /* Text that does not begin like JSON is left to the parser, which reports an error at its first
     * character. */
    if (!by_locations_find(json, bytes, VALUES_MAX, &reader.locations) && begins_like_json(json, bytes)) {
        by_locations_free(&reader.locations);
        return by_problem_set(problem, BY_ELIMIT, (struct by_place){0, 0},
                              "the file has more than %zu values; no topology within the limits (%u nodes, "
                              "%u links) has so many",
                              VALUES_MAX, BY_TOPOLOGY_NODES_MAX, BY_TOPOLOGY_LINKS_MAX);
    }
    /* Integers beyond 64 bits are read as reals here, and refused later by their own text. */
    root = json_loadb(json, bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &mistake);
    if (!root) {
        by_locations_free(&reader.locations);
        return refuse_syntax(json, bytes, &mistake, problem);
    }
    reader.index_of_name = json_object();
    error = read_root(&reader, root, topology);
    by_builder_free(reader.builder);
    json_decref(reader.index_of_name);
    by_locations_free(&reader.locations);
    json_decref(root);
    return error;
}

int by_topology_read(const char *path, struct by_topology **topology, struct by_problem *problem)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    size_t bytes = 0, room = 1 << 16;
    char *json;
    int error = 0;

    *topology = NULL;
    if (!file)
        return by_problem_set(problem, BY_EIO, (struct by_place){0, 0}, "cannot open the topology: %s",
                              strerror(errno));
    json = by_alloc(room, 1);
    while (!feof(file) && !ferror(file) && bytes <= FILE_BYTES_MAX) {
        if (bytes == room)
            json = by_realloc(json, room *= 2, 1);
        bytes += fread(json + bytes, 1, room - bytes, file);
    }
    if (ferror(file))
        error = by_problem_set(problem, BY_EIO, (struct by_place){0, 0}, "cannot read the topology: %s",
                               strerror(errno));
    else if (bytes > FILE_BYTES_MAX)
        error = by_problem_set(problem, BY_ELIMIT, (struct by_place){0, 0}, "the file is larger than %zu MiB",
                               FILE_BYTES_MAX >> 20);
    else
        error = by_topology_parse(json, bytes, topology, problem);
    if (file != stdin)
        fclose(file);
    free(json);
    return error;
}
