/*
 * Reads topology JSON, strictly: members that are unknown, missing, repeated or out of range are
 * refused with their position and the remedy. Values are read while the text is parsed (json.h), so
 * memory holds the text and the fabric only. Numbers are read from their own text: a bandwidth such
 * as 12.5 is never converted to a float. See topology.h and banyan-topology(5). Each call runs in
 * one thread.
 */
#include <errno.h>
#include <sys/stat.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/base/json.h"
#include "control/fabric/build.h"
#include "control/fabric/names.h"
#include "control/fabric/unit.h"
#include "offload/base/errors.h"
#include "offload/base/limits.h"
#include "offload/wire/types.h"

/* Maximum size of a topology file (bytes): a fabric at the limits has about 400 MB. */
#define FILE_BYTES_MAX ((size_t)512 << 20)
/* Maximum length of the name of a topology and of its unit (bytes), which appear in plans, pictures
 * and messages. */
#define TEXT_BYTES_MAX 255
/* Bytes of a wrong text that a message shows. */
#define SHOWN_MAX 60

/* A string of the file: part of its text, or decoded; valid until the next string is read. */
struct read_text {
    const char *text;
    size_t bytes;
    size_t at; /* its offset in the file */
};

/*
 * Functions return 0, or a negative BY_E* with `problem` filled. After a mistake of syntax, the
 * parser reports the end of the text, so what they refuse then is of no interest: by_topology_parse
 * lets such mistakes prevail.
 */
struct read_reader {
    struct by_json json;
    struct by_builder *builder;
    struct by_names *names;
    uint32_t near[2]; /* the ends of the last link, where the search for the next ones starts */
    struct by_problem *problem;
};

#define REFUSE(reader, at, ...)                                                                              \
    by_problem_set((reader)->problem, BY_EINVAL, by_json_place(&(reader)->json, (at)), __VA_ARGS__)
/* Arguments for "%.*s" that show at most `max` bytes. */
#define SHOWN(max, value) (int)((value)->bytes > (max) ? (max) : (value)->bytes), (value)->text

static int read_text(struct read_reader *reader, const char *what, struct read_text *value)
{
    bool found = by_json_peek(&reader->json) == '"';

    *value = (struct read_text){.text = "", .at = reader->json.at};
    if (!found || !by_json_string(&reader->json, &value->text, &value->bytes))
        return REFUSE(reader, value->at, "%s must be a string", what);
    if (value->bytes > TEXT_BYTES_MAX)
        return REFUSE(reader, value->at, "%s has %zu bytes; the limit is %d", what, value->bytes,
                      TEXT_BYTES_MAX);
    return 0;
}

static int read_flag(struct read_reader *reader, const char *what, bool *flag)
{
    char kind = by_json_peek(&reader->json);

    if (kind != 't' && kind != 'f')
        return REFUSE(reader, reader->json.at, "%s must be true or false", what);
    *flag = kind == 't';
    by_json_skip(&reader->json);
    return 0;
}

/* Reads names separated by commas, such as "sum,max", into the bits of their values. */
static int read_words(struct read_reader *reader, const char *what, unsigned (*from_name)(const char *),
                      uint16_t *bits)
{
    struct read_text value;
    int error = read_text(reader, what, &value);

    for (size_t start = 0, end; !error && start <= value.bytes; start = end + 1) {
        char word[16] = "";
        unsigned found;

        for (end = start; end < value.bytes && value.text[end] != ',';)
            end++;
        memcpy(word, value.text + start, end - start < sizeof(word) ? end - start : sizeof(word) - 1);
        found = from_name(word);
        if (found == 0)
            return REFUSE(reader, value.at, "%s: '%s' is unknown; see banyan-topology(5)", what, word);
        *bits |= (uint16_t)(1u << found);
    }
    return error;
}

/* Takes an exact number, a JSON number by its own text or a string. Returns 0, BY_EINVAL if the
 * value is of another kind, or what by_fraction_parse returns. */
static int take_number(struct read_reader *reader, struct read_text *value, struct by_fraction *number)
{
    char kind = by_json_peek(&reader->json);

    value->at = reader->json.at;
    if (kind == '0' ? !by_json_number(&reader->json, &value->text, &value->bytes)
                    : kind != '"' || !by_json_string(&reader->json, &value->text, &value->bytes))
        return BY_EINVAL;
    return by_fraction_parse(value->text, value->bytes, number);
}

/* Refuses a number after take_number has returned `error`, or 0 for a number that must not be 0. */
static int refuse_number(struct read_reader *reader, int error, const struct read_text *value,
                         const char *what, bool zero)
{
    if (error == BY_EINVAL)
        return REFUSE(reader, value->at, "%s must be a number, or a string such as \"25/2\"", what);
    if (error == BY_ERANGE)
        return REFUSE(reader, value->at,
                      "%s is %.*s: its exact value must fit 63 bits; use a larger unit or round it", what,
                      SHOWN(40, value));
    return REFUSE(reader, value->at,
                  "%s is \"%.*s\": it must be %s integer, decimal or fraction such as 12, 12.5 or \"25/2\"",
                  what, SHOWN(40, value), zero ? "0 or a positive" : "a positive");
}

/* Reads a number that is not negative, and not 0 unless `zero`. */
static int read_number(struct read_reader *reader, const char *what, bool zero, struct by_fraction *number)
{
    struct read_text value;
    int error = take_number(reader, &value, number);

    return error || (number->num == 0 && !zero) ? refuse_number(reader, error, &value, what, zero) : 0;
}

/* Returns the number of `key` in the list `keys`, which NULL ends; the length of the list for any
 * other key. */
static unsigned find_key(const char *const *keys, const struct read_text *key)
{
    unsigned found = 0;

    while (keys[found] && !by_json_is(key->text, key->bytes, keys[found]))
        found++;
    return found;
}

/* Reads the next key of an object; `seen` holds the bits of those before. Returns false at the end
 * of the object; a key that appears twice sets `error`. */
static bool read_key(struct read_reader *reader, const char *const *keys, bool *first, unsigned *seen,
                     struct read_text *key, unsigned *found, int *error)
{
    if (*error || !by_json_member(&reader->json, first, &key->text, &key->bytes))
        return false;
    by_json_peek(&reader->json);
    key->at = reader->json.at; /* of the value, which messages about the key point to */
    *found = find_key(keys, key);
    if (*seen >> *found & 1 && keys[*found])
        *error = by_problem_set(reader->problem, BY_EFORMAT, by_json_place(&reader->json, key->at),
                                "duplicate key '%s': an object has each key once; remove one", keys[*found]);
    *seen |= 1u << *found;
    return !*error;
}

static bool name_is_valid(const struct read_text *name)
{
    for (size_t i = 0; i < name->bytes; i++) {
        char c = name->text[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
              c == '_' || c == '-'))
            return false;
    }
    return name->bytes > 0 && name->bytes <= BY_NAME_MAX;
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
    by_names_add(reader->names, by_builder_node(reader->builder, node));
    return 0;
}

static int read_name(struct read_reader *reader, char name[BY_NAME_MAX + 1])
{
    struct read_text value;
    int error = read_text(reader, "the name of a node", &value);

    if (error)
        return error;
    if (!name_is_valid(&value))
        return REFUSE(reader, value.at,
                      "'%.*s' is not a node name: it must have 1 to %u letters, digits or any of . _ -",
                      SHOWN(SHOWN_MAX, &value), BY_NAME_MAX);
    memcpy(name, value.text, value.bytes);
    name[value.bytes] = 0;
    if (by_names_find(reader->names, name, value.bytes) >= 0)
        return REFUSE(reader, value.at, "node '%s' appears twice; names must be unique", name);
    return 0;
}

static int read_kind(struct read_reader *reader, bool *compute)
{
    struct read_text value;
    int error = read_text(reader, "the kind of a node", &value);

    if (error)
        return error;
    *compute = by_json_is(value.text, value.bytes, "compute");
    if (!*compute && !by_json_is(value.text, value.bytes, "switch"))
        return REFUSE(reader, value.at, "kind '%.*s' is unknown; it must be \"compute\" or \"switch\"",
                      SHOWN(40, &value));
    return 0;
}

enum {
    NODE_NAME,
    NODE_KIND,
    NODE_FORWARD,
    NODE_MULTICAST,
    NODE_AGGREGATE,
    NODE_AGGREGATE_RATE,
    NODE_OPS,
    NODE_DTYPES,
    NODE_TASK_TIME,
};
static const char *const node_keys[] = {"name",           "kind", "forward", "multicast", "aggregate",
                                        "aggregate_rate", "ops",  "dtypes",  "task_time", NULL};
/* Keys that belong to switches. */
#define SWITCH_KEYS                                                                                          \
    (1u << NODE_MULTICAST | 1u << NODE_AGGREGATE | 1u << NODE_AGGREGATE_RATE | 1u << NODE_OPS |              \
     1u << NODE_DTYPES)

/* Reads the value of a node's key. */
static int read_node_value(struct read_reader *reader, unsigned found, const struct read_text *key,
                           struct by_node *node)
{
    switch (found) {
    case NODE_NAME:
        return read_name(reader, node->name);
    case NODE_KIND:
        return read_kind(reader, &node->compute);
    case NODE_FORWARD:
        return read_flag(reader, "forward", &node->forward);
    case NODE_MULTICAST:
        return read_flag(reader, "multicast", &node->multicast);
    case NODE_AGGREGATE:
        return read_flag(reader, "aggregate", &node->aggregate);
    case NODE_AGGREGATE_RATE:
        return read_number(reader, "aggregate_rate", false, &node->aggregate_rate);
    case NODE_OPS:
        return read_words(reader, "the operators of a switch", by_op_from_name, &node->ops);
    case NODE_DTYPES:
        return read_words(reader, "the types of a switch", by_dtype_from_name, &node->dtypes);
    case NODE_TASK_TIME:
        node->has_task_time = true;
        return read_number(reader, "task_time", true, &node->task_time);
    default:
        return REFUSE(reader, key->at,
                      "key '%.*s' of a node is unknown; a node has name, kind, forward, multicast, "
                      "aggregate, aggregate_rate, ops, dtypes, task_time",
                      SHOWN(40, key));
    }
}

static int read_node(struct read_reader *reader, size_t number)
{
    char name[BY_NAME_MAX + 1], kind = by_json_peek(&reader->json);
    struct by_node node = {.name = name, .aggregate_rate = {0, 1}, .task_time = {0, 1}};
    size_t at = reader->json.at;
    struct read_text key;
    unsigned seen = 0, found;
    int error = 0;

    if (kind != '{')
        return REFUSE(reader, at,
                      "node %zu must be an object such as {\"name\": \"host0\", \"kind\": \"compute\"}",
                      number);
    for (bool first = true; read_key(reader, node_keys, &first, &seen, &key, &found, &error);)
        error = read_node_value(reader, found, &key, &node);
    if (error)
        return error;
    if (!(seen & 1u << NODE_NAME) || !(seen & 1u << NODE_KIND))
        return REFUSE(reader, at, "node %zu has no %s; add \"%s\": ...", number,
                      seen & 1u << NODE_NAME ? "kind" : "name", seen & 1u << NODE_NAME ? "kind" : "name");
    return add_node(reader, at, &node, seen & SWITCH_KEYS);
}

/* Reads the name of a link's end into the node's index, ends[side]. */
static int read_end(struct read_reader *reader, size_t number, int64_t ends[2], unsigned side)
{
    struct read_text name;
    int error = read_text(reader, "the end of a link", &name);

    if (error)
        return error;
    ends[side] = by_names_find_near(reader->names, name.text, name.bytes, &reader->near[side]);
    if (ends[side] < 0)
        return REFUSE(reader, name.at,
                      "link %zu names node '%.*s', which is not in \"nodes\"; add it or correct the name",
                      number, SHOWN(SHOWN_MAX, &name));
    return 0;
}

static int read_between(struct read_reader *reader, size_t number, int64_t ends[2])
{
    bool array = by_json_peek(&reader->json) == '[';
    size_t at = reader->json.at, count = 0;
    int error = 0;

    for (bool first = true; array && !error && by_json_element(&reader->json, &first); count++)
        if (count < 2)
            error = read_end(reader, number, ends, (unsigned)count);
        else
            by_json_skip(&reader->json);
    if (!error && count != 2)
        return REFUSE(reader, at, "\"between\" of link %zu must be an array of two node names", number);
    return error;
}

static int read_bandwidth(struct read_reader *reader, size_t number, struct by_fraction *bandwidth)
{
    struct read_text value;
    char what[48];
    int error = take_number(reader, &value, bandwidth);

    if (!error && bandwidth->num > 0)
        return 0;
    snprintf(what, sizeof(what), "the bandwidth of link %zu", number);
    return refuse_number(reader, error, &value, what, false);
}

enum { LINK_BETWEEN, LINK_FROM, LINK_TO, LINK_BANDWIDTH };
static const char *const link_keys[] = {"between", "from", "to", "bandwidth", NULL};

/* Reads the value of a link's key. */
static int read_link_value(struct read_reader *reader, size_t number, unsigned found,
                           const struct read_text *key, int64_t ends[2], struct by_fraction *bandwidth)
{
    switch (found) {
    case LINK_BETWEEN:
        return read_between(reader, number, ends);
    case LINK_FROM:
        return read_end(reader, number, ends, 0);
    case LINK_TO:
        return read_end(reader, number, ends, 1);
    case LINK_BANDWIDTH:
        return read_bandwidth(reader, number, bandwidth);
    default:
        return REFUSE(reader, key->at,
                      "key '%.*s' of link %zu is unknown; a link has between (or from and to) and bandwidth",
                      SHOWN(40, key), number);
    }
}

static int read_link(struct read_reader *reader, size_t number)
{
    char kind = by_json_peek(&reader->json);
    size_t at = reader->json.at;
    struct by_place place = by_json_place(&reader->json, at);
    int64_t ends[2] = {-1, -1};
    struct by_fraction bandwidth = {0, 1};
    unsigned seen = 0, found;
    struct read_text key;
    int error = 0;

    if (kind != '{')
        return REFUSE(reader, at,
                      "link %zu must be an object such as {\"between\": [\"a\", \"b\"], \"bandwidth\": 10}",
                      number);
    for (bool first = true; read_key(reader, link_keys, &first, &seen, &key, &found, &error);)
        error = read_link_value(reader, number, found, &key, ends, &bandwidth);
    if (error)
        return error;
    if (bandwidth.num == 0)
        return REFUSE(reader, at, "link %zu has no bandwidth; add \"bandwidth\": ...", number);
    seen &= 1u << LINK_BETWEEN | 1u << LINK_FROM | 1u << LINK_TO;
    if (seen != 1u << LINK_BETWEEN && seen != (1u << LINK_FROM | 1u << LINK_TO))
        return REFUSE(reader, at,
                      "link %zu must have either \"between\" (both ways) or \"from\" and \"to\" (one way)",
                      number);
    if (ends[0] == ends[1])
        return REFUSE(reader, at, "link %zu joins a node to itself; its two ends must differ", number);
    by_builder_link(reader->builder, (uint32_t)ends[0], (uint32_t)ends[1], seen == 1u << LINK_BETWEEN,
                    bandwidth, place);
    return 0;
}

/* Refuses an array, which starts at `at`, before its element number `count`. */
static int refuse_count(struct read_reader *reader, size_t at, const char *what, size_t count,
                        size_t count_max)
{
    for (bool first = false; count == count_max || by_json_element(&reader->json, &first); count++)
        by_json_skip(&reader->json);
    return REFUSE(reader, at, "the fabric has %zu %s; the limit is %zu", count, what, count_max);
}

/* Reads an array by calling `read` for each element. */
static int read_array(struct read_reader *reader, const char *what, size_t count_max,
                      int (*read)(struct read_reader *, size_t))
{
    char kind = by_json_peek(&reader->json);
    size_t at = reader->json.at, number = 0;
    int error = 0;

    if (kind != '[')
        return REFUSE(reader, at, "\"%s\" must be an array", what);
    for (bool first = true; !error && by_json_element(&reader->json, &first); number++)
        error =
            number == count_max ? refuse_count(reader, at, what, number, count_max) : read(reader, number);
    return error;
}

static int read_unit(struct read_reader *reader, char unit[TEXT_BYTES_MAX + 1])
{
    struct read_text value;
    int error = read_text(reader, "the unit", &value);

    if (error)
        return error;
    snprintf(unit, TEXT_BYTES_MAX + 1, "%.*s", SHOWN(TEXT_BYTES_MAX, &value));
    if (!by_unit_is_known(unit))
        return REFUSE(reader, value.at, "the unit is '%.40s'; it must be one of %s", unit, by_unit_list());
    return 0;
}

enum { ROOT_NAME, ROOT_UNIT, ROOT_NODES, ROOT_LINKS };
static const char *const root_keys[] = {"name", "unit", "nodes", "links", NULL};

struct read_root {
    char name[TEXT_BYTES_MAX + 1], unit[TEXT_BYTES_MAX + 1];
    unsigned seen;
    size_t links_at; /* where links are that precede the nodes; else 0 */
};

static int read_root_value(struct read_reader *reader, unsigned found, const struct read_text *key,
                           struct read_root *root)
{
    struct read_text value;
    int error;

    switch (found) {
    case ROOT_NAME:
        error = read_text(reader, "the name of the topology", &value);
        if (!error)
            snprintf(root->name, sizeof(root->name), "%.*s", SHOWN(TEXT_BYTES_MAX, &value));
        return error;
    case ROOT_UNIT:
        return read_unit(reader, root->unit);
    case ROOT_NODES:
        return read_array(reader, "nodes", BY_TOPOLOGY_NODES_MAX, read_node);
    case ROOT_LINKS:
        if (root->seen & 1u << ROOT_NODES)
            return read_array(reader, "links", BY_TOPOLOGY_LINKS_MAX, read_link);
        root->links_at = reader->json.at;
        by_json_skip(&reader->json);
        return 0;
    default:
        return REFUSE(reader, key->at,
                      "key '%.*s' of a topology is unknown; it has name, unit, nodes and links",
                      SHOWN(40, key));
    }
}

static int read_root(struct read_reader *reader, struct by_topology **topology)
{
    struct read_root root = {.unit = "GB/s"};
    char kind = by_json_peek(&reader->json);
    size_t at = reader->json.at;
    struct read_text key;
    unsigned found;
    int error = 0;

    if (kind != '{')
        return REFUSE(reader, at,
                      "a topology must be an object with \"name\", \"unit\", \"nodes\" and \"links\"");
    for (bool first = true; read_key(reader, root_keys, &first, &root.seen, &key, &found, &error);)
        error = read_root_value(reader, found, &key, &root);
    for (unsigned i = 0; root_keys[i] && !error; i++)
        if (!(root.seen >> i & 1) && i != ROOT_UNIT)
            error = REFUSE(reader, at, "the topology has no \"%s\"; add it", root_keys[i]);
    if (!error)
        error = by_json_finish(&reader->json, reader->problem);
    if (!error && root.links_at) {
        reader->json.at = root.links_at;
        reader->json.depth = 1;
        error = read_array(reader, "links", BY_TOPOLOGY_LINKS_MAX, read_link);
    }
    if (error)
        return error;
    by_builder_title(reader->builder, root.name, root.unit);
    return by_builder_finish(reader->builder, topology, reader->problem);
}

/* Looks for a mistake of syntax in the whole text. Returns 0 if there is none, or BY_EFORMAT. */
static int check_syntax(const char *text, size_t bytes, struct by_problem *problem)
{
    struct by_json json;
    struct by_problem mistake = {0};
    struct by_place nowhere = {0, 0};
    int error;

    if (bytes == 0)
        return by_problem_set(problem, BY_EFORMAT, nowhere,
                              "the topology is empty; `banyan topo` prints one to start from");
    by_json_open(&json, text, bytes);
    by_json_skip(&json);
    error = by_json_finish(&json, &mistake);
    by_json_close(&json);
    if (error && memchr(text, 0, bytes))
        snprintf(mistake.text, sizeof(mistake.text),
                 "not valid JSON: it holds zero bytes; is it a text file?");
    if (error)
        *problem = mistake;
    return error;
}

int by_topology_parse(const char *json, size_t bytes, struct by_topology **topology,
                      struct by_problem *problem)
{
    struct read_reader reader = {.problem = problem, .builder = by_builder_new("", "")};
    int error;

    *topology = NULL;
    reader.names = by_names_new(by_builder_topology(reader.builder));
    by_json_open(&reader.json, json, bytes);
    error = read_root(&reader, topology);
    by_json_close(&reader.json);
    by_names_free(reader.names);
    by_builder_free(reader.builder);
    if (error && check_syntax(json, bytes, problem) != 0)
        error = BY_EFORMAT;
    return error;
}

/* Returns the room for a file's text (bytes): one byte more than the file has, so that the first
 * read meets the end. */
static size_t find_room(FILE *file)
{
    struct stat facts;

    if (fstat(fileno(file), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size <= 0 ||
        (size_t)facts.st_size > FILE_BYTES_MAX)
        return 1 << 16;
    return (size_t)facts.st_size + 1;
}

int by_topology_read(const char *path, struct by_topology **topology, struct by_problem *problem)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    size_t bytes = 0, room;
    char *json;
    int error = 0;

    *topology = NULL;
    if (!file)
        return by_problem_set(problem, BY_EIO, (struct by_place){0, 0}, "cannot open the topology: %s",
                              strerror(errno));
    room = find_room(file);
    json = by_alloc_table(room, 1);
    while (!feof(file) && !ferror(file) && bytes <= FILE_BYTES_MAX) {
        if (bytes == room) {
            room = room < FILE_BYTES_MAX / 2 ? 2 * room : FILE_BYTES_MAX + 1;
            json = by_realloc(json, room, 1);
        }
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
