/* Reads a plan file for verification. See claim.h, checker.h. Text that is not a plan (not JSON, or
 * of another format) is an error; any other fault makes the plan invalid, with the reason. */
#include "control/verify/claim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/json.h"
#include "control/fabric/names.h"
#include "control/verify/checker.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

#define FORMAT         "banyan-plan-2"
#define FORMAT_CLASSES "banyan-plan-classes-1"

/* Digits of an integer (count). */
#define DIGITS_MAX 60u

/* Members of the plan, in the order of processing: paths before trees. */
enum claim_member {
    MEMBER_FORMAT,
    MEMBER_TOPOLOGY,
    MEMBER_UNIT,
    MEMBER_COLLECTIVE,
    MEMBER_ROOT,
    MEMBER_IN_NETWORK,
    MEMBER_RANKS,
    MEMBER_SHARES,
    MEMBER_INV_X,
    MEMBER_OPTIMUM,
    MEMBER_ACHIEVED,
    MEMBER_K,
    MEMBER_BOTTLENECK,
    MEMBER_TREES_MAX,
    MEMBER_ORDERED,
    MEMBER_PROOF,
    MEMBER_ROTATIONS,
    MEMBER_PATHS,
    MEMBER_TREES,
    MEMBER_COUNT
};
static const char *const member_names[MEMBER_COUNT] = {
    "format",  "topology", "unit",      "collective", "root", "in_network", "ranks",
    "shares",  "inv_x",    "optimum",   "achieved",   "k",    "bottleneck", "trees_max",
    "ordered", "proof",    "rotations", "paths",      "trees"};

struct claim_reader {
    struct by_claim *claim;
    struct by_json json;
    struct by_names *names;
    struct by_claim_arrays *arrays;
    uint32_t path_room, node_room, node_count;
    uint32_t listed_paths; /* paths in the file's "paths"; trees may contain further ones */
    uint32_t tree_room;
    size_t edge_count, edge_room;
};

bool by_claim_violate(struct by_claim *claim, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(claim->reason, sizeof(claim->reason), format, arguments);
    va_end(arguments);
    return false;
}

const char *by_claim_name(const struct by_claim *claim, uint32_t node)
{
    return claim->topology->nodes[node].name;
}

void by_claim_init(struct by_claim *claim, const struct by_topology *topology)
{
    *claim = (struct by_claim){.topology = topology, .root = -1};
    mpq_inits(claim->optimum, claim->achieved, claim->inv_x, claim->exiting, NULL);
    claim->cut = by_alloc(topology->node_count, sizeof(*claim->cut));
}

void by_claim_clear(struct by_claim *claim)
{
    for (uint32_t i = 0; i < claim->tree_count; i++)
        mpq_clear(claim->trees[i].weight);
    free(claim->trees);
    free(claim->cut);
    free(claim->member);
    free(claim->shares);
    free(claim->part);
    free(claim->prices);
    for (uint32_t i = 0; i < claim->cut_count; i++)
        free(claim->cuts[i].inside);
    free(claim->cuts);
    free(claim->rotations);
    mpq_clears(claim->optimum, claim->achieved, claim->inv_x, claim->exiting, NULL);
}

void by_claim_arrays_free(struct by_claim_arrays *arrays)
{
    free(arrays->path_start);
    free(arrays->path_nodes);
    free(arrays->edges);
    for (uint32_t i = 0; i < arrays->rotation_count; i++)
        free(arrays->rotations[i]);
}

/* Reads a non-negative integer: a JSON integer or a string of digits. */
static bool read_integer(struct claim_reader *reader, mpz_t result)
{
    char digits[DIGITS_MAX + 1];
    const char *text;
    size_t bytes;
    int64_t small;

    if (by_json_integer(&reader->json, &small)) {
        mpz_set_si(result, small);
        return small >= 0;
    }
    if (by_json_peek(&reader->json) != '"' || !by_json_string(&reader->json, &text, &bytes) || bytes == 0 ||
        bytes > DIGITS_MAX)
        return false;
    memcpy(digits, text, bytes);
    digits[bytes] = '\0';
    return strspn(digits, "0123456789") == bytes && mpz_set_str(result, digits, 10) == 0;
}

static bool read_fraction(struct claim_reader *reader, const char *what, mpq_t result)
{
    bool has_num = false, has_den = false, right = by_json_peek(&reader->json) == '{';
    const char *key;
    size_t bytes;

    for (bool first = true; right && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "num") && !has_num)
            right = has_num = read_integer(reader, mpq_numref(result));
        else if (by_json_is(key, bytes, "den") && !has_den)
            right = has_den = read_integer(reader, mpq_denref(result));
        else
            right = false;
    }
    if (!right || !has_num || !has_den || mpz_sgn(mpq_denref(result)) == 0) {
        mpq_set_ui(result, 0, 1);
        return by_claim_violate(reader->claim,
                                "%s is not a fraction {\"num\": ..., \"den\": ...} of integers", what);
    }
    mpq_canonicalize(result);
    return true;
}

static bool read_small(struct claim_reader *reader, const char *what, int64_t *result)
{
    if (!by_json_integer(&reader->json, result) || *result < 0)
        return by_claim_violate(reader->claim, "%s is not a count", what);
    return true;
}

static bool read_node(struct claim_reader *reader, const char *what, uint32_t *node)
{
    const char *text;
    int shown;

    if (!by_names_read(reader->names, &reader->json, node, &text, &shown))
        return by_claim_violate(reader->claim, "%s names '%.*s', which is not a node of the topology", what,
                                shown, text);
    return true;
}

/* Reads a path, and adds it to the table. */
static bool read_path(struct claim_reader *reader)
{
    struct by_claim *claim = reader->claim;
    struct by_claim_arrays *arrays = reader->arrays;
    uint32_t start = reader->node_count;

    if (by_json_peek(&reader->json) != '[')
        return by_claim_violate(claim, "an edge is neither an array of nodes nor the number of a path");
    for (bool first = true; by_json_element(&reader->json, &first);) {
        if (reader->node_count - start > claim->topology->node_count || reader->node_count > UINT32_MAX - 2)
            return by_claim_violate(claim, "an edge has more nodes than the topology");
        BY_GROW(arrays->path_nodes, reader->node_count, reader->node_room);
        if (!read_node(reader, "an edge", &arrays->path_nodes[reader->node_count++]))
            return false;
    }
    if (reader->json.failed)
        return false;
    if (reader->node_count - start < 2)
        return by_claim_violate(claim, "an edge has fewer than two nodes");
    if (claim->path_count + 2 > reader->path_room) {
        reader->path_room = reader->path_room ? reader->path_room * 2 : 64;
        arrays->path_start = by_realloc(arrays->path_start, reader->path_room, sizeof(*arrays->path_start));
    }
    arrays->path_start[claim->path_count++] = start;
    arrays->path_start[claim->path_count] = reader->node_count;
    return true;
}

static bool read_paths(struct claim_reader *reader)
{
    if (by_json_peek(&reader->json) != '[')
        return by_claim_violate(reader->claim, "\"paths\" is not an array");
    for (bool first = true; by_json_element(&reader->json, &first);)
        if (!read_path(reader))
            return false;
    reader->listed_paths = reader->claim->path_count;
    return true;
}

static bool read_edges(struct claim_reader *reader, struct by_claim_tree *tree)
{
    struct by_claim *claim = reader->claim;

    if (by_json_peek(&reader->json) != '[')
        return by_claim_violate(claim, "a tree has no edges");
    tree->first_edge = reader->edge_count;
    for (bool first = true; by_json_element(&reader->json, &first);) {
        int64_t number;

        if (tree->edge_count > claim->topology->node_count)
            return by_claim_violate(claim, "a tree has more edges than the topology has nodes");
        if (!by_json_integer(&reader->json, &number)) {
            if (!read_path(reader))
                return false;
            number = claim->path_count - 1;
        } else if (number < 0 || number >= reader->listed_paths) {
            return by_claim_violate(claim, "an edge has the number %lld, but the plan has %u paths",
                                    (long long)number, reader->listed_paths);
        }
        BY_GROW(reader->arrays->edges, reader->edge_count, reader->edge_room);
        reader->arrays->edges[reader->edge_count++] = (uint32_t)number;
        tree->edge_count++;
    }
    return true;
}

static bool read_use(struct claim_reader *reader, struct by_claim_tree *tree)
{
    static const char *const uses[] = {"both", "up", "down"};
    const char *text = "(missing)";
    size_t bytes = strlen(text);

    if (by_json_peek(&reader->json) == '"')
        by_json_string(&reader->json, &text, &bytes);
    for (uint32_t i = 0; i < 3; i++)
        if (by_json_is(text, bytes, uses[i]))
            tree->use = i + 1;
    return tree->use ||
           by_claim_violate(reader->claim, "the use of a tree is '%.*s'; it must be both, up or down",
                            bytes > 40 ? 40 : (int)bytes, text);
}

static bool read_tree(struct claim_reader *reader)
{
    enum { ROOT = 1, USE = 2, WEIGHT = 4, EDGES = 8, ALL = 15 };
    struct by_claim *claim = reader->claim;
    struct by_claim_tree *tree;
    unsigned seen = 0;
    const char *key;
    size_t bytes;

    BY_GROW(claim->trees, claim->tree_count, reader->tree_room);
    tree = &claim->trees[claim->tree_count++];
    *tree = (struct by_claim_tree){0};
    mpq_init(tree->weight);
    if (by_json_peek(&reader->json) != '{')
        return by_claim_violate(claim, "a tree is not an object");
    for (bool first = true, right = true; by_json_member(&reader->json, &first, &key, &bytes);) {
        unsigned now = by_json_is(key, bytes, "root")     ? ROOT
                       : by_json_is(key, bytes, "use")    ? USE
                       : by_json_is(key, bytes, "weight") ? WEIGHT
                       : by_json_is(key, bytes, "edges")  ? EDGES
                                                          : 0;

        if (!now || (seen & now))
            return by_claim_violate(claim, "a tree has an unknown or repeated member '%.*s'",
                                    bytes > 40 ? 40 : (int)bytes, key);
        seen |= now;
        if (now == ROOT)
            right = read_node(reader, "the root of a tree", &tree->root);
        else if (now == USE)
            right = read_use(reader, tree);
        else if (now == WEIGHT)
            right = read_fraction(reader, "the weight of a tree", tree->weight);
        else
            right = read_edges(reader, tree);
        if (!right)
            return false;
    }
    return seen == ALL || by_claim_violate(claim, "a tree must have root, use, weight and edges");
}

static bool read_trees(struct claim_reader *reader)
{
    if (by_json_peek(&reader->json) != '[')
        return by_claim_violate(reader->claim, "the plan has no trees");
    for (bool first = true; by_json_element(&reader->json, &first);)
        if (!read_tree(reader))
            return false;
    return reader->claim->tree_count > 0 || by_claim_violate(reader->claim, "the plan has no trees");
}

static bool read_cut_nodes(struct claim_reader *reader)
{
    struct by_claim *claim = reader->claim;

    for (bool first = true; by_json_element(&reader->json, &first);) {
        uint32_t node = 0;

        if (!read_node(reader, "the bottleneck", &node))
            return false;
        if (claim->cut[node])
            return by_claim_violate(claim, "the bottleneck names node %s twice", by_claim_name(claim, node));
        claim->cut[node] = true;
    }
    return true;
}

static bool read_bottleneck(struct claim_reader *reader)
{
    bool nodes = false, count = false, exiting = false, right = by_json_peek(&reader->json) == '{';
    const char *key;
    size_t bytes;

    if (!right)
        return by_claim_violate(reader->claim, "the plan has no bottleneck with nodes");
    for (bool first = true; right && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "nodes") && !nodes && by_json_peek(&reader->json) == '[')
            right = nodes = read_cut_nodes(reader);
        else if (by_json_is(key, bytes, "compute_count") && !count)
            right = count =
                read_small(reader, "compute_count of the bottleneck", &reader->claim->cut_compute_count);
        else if (by_json_is(key, bytes, "exiting") && !exiting)
            right = exiting = read_fraction(reader, "exiting of the bottleneck", reader->claim->exiting);
        else
            right = by_claim_violate(reader->claim, "the bottleneck has an unknown or repeated member");
    }
    return right &&
           ((nodes && count && exiting) ||
            by_claim_violate(reader->claim, "the bottleneck must have nodes, compute_count and exiting"));
}

/* Reads a text that must equal the topology's. */
static bool read_same(struct claim_reader *reader, const char *wanted, const char *format)
{
    const char *text = "(missing)";
    size_t bytes = strlen(text);
    char shown[64];

    if (by_json_peek(&reader->json) == '"')
        by_json_string(&reader->json, &text, &bytes);
    if (by_json_is(text, bytes, wanted))
        return true;
    snprintf(shown, sizeof(shown), "%.*s", bytes > 60 ? 60 : (int)bytes, text);
    return by_claim_violate(reader->claim,
                            format[0] == 'n' ? "the plan is for topology '%s', this is '%.60s'"
                                             : "the plan's unit is '%s', the topology's '%.60s'",
                            shown, wanted);
}

static bool read_collective(struct claim_reader *reader)
{
    const char *text = "(missing)";
    size_t bytes = strlen(text);
    char name[48];

    if (by_json_peek(&reader->json) == '"')
        by_json_string(&reader->json, &text, &bytes);
    snprintf(name, sizeof(name), "%.*s", bytes > 40 ? 40 : (int)bytes, text);
    reader->claim->collective = bytes <= 40 ? by_collective_from_name(name) : 0;
    return reader->claim->collective ||
           by_claim_violate(reader->claim, "the collective is '%s', which is unknown", name);
}

/* Reads whether capable switches only forward. */
static bool read_in_network(struct claim_reader *reader)
{
    const char *text = "";
    size_t bytes = 0;

    if (by_json_peek(&reader->json) == '"')
        by_json_string(&reader->json, &text, &bytes);
    reader->claim->hosts_only = by_json_is(text, bytes, "none");
    return reader->claim->hosts_only || by_claim_violate(reader->claim, "\"in_network\" is not \"none\"");
}

/* Reads the compute nodes that take part, each named once. */
static bool read_ranks(struct claim_reader *reader)
{
    struct by_claim *claim = reader->claim;

    if (by_json_peek(&reader->json) != '[')
        return by_claim_violate(claim, "\"ranks\" is not an array");
    claim->member = by_alloc(claim->topology->node_count, sizeof(*claim->member));
    for (bool first = true; by_json_element(&reader->json, &first);) {
        uint32_t node = 0;

        if (!read_node(reader, "\"ranks\"", &node))
            return false;
        if (!claim->topology->nodes[node].compute || claim->member[node])
            return by_claim_violate(claim,
                                    "\"ranks\" names %s, which is not a compute node or is named twice",
                                    by_claim_name(claim, node));
        claim->member[node] = true;
    }
    return true;
}

/* Reads the parts of the data by compute node that takes part, each named once. */
static bool read_shares(struct claim_reader *reader)
{
    struct by_claim *claim = reader->claim;
    uint32_t n = claim->topology->node_count;
    const char *key;
    size_t bytes;

    if (by_json_peek(&reader->json) != '{')
        return by_claim_violate(claim, "\"shares\" is not an object");
    claim->shares = by_alloc(n, sizeof(*claim->shares));
    for (uint32_t i = 0; i < n; i++)
        claim->shares[i] = claim->topology->nodes[i].compute && (!claim->member || claim->member[i]) ? -1 : 0;
    for (bool first = true; by_json_member(&reader->json, &first, &key, &bytes);) {
        int64_t node = by_names_find(reader->names, key, bytes);

        if (node < 0 || claim->shares[node] != -1)
            return by_claim_violate(
                claim,
                "\"shares\" names '%.*s', which is not a compute node of the topology or is named twice",
                bytes > 60 ? 60 : (int)bytes, key);
        if (!read_small(reader, "a share", &claim->shares[node]))
            return false;
    }
    for (uint32_t i = 0; i < n; i++)
        if (claim->shares[i] < 0)
            return by_claim_violate(claim, "\"shares\" does not name compute node %s",
                                    by_claim_name(claim, i));
    return true;
}

/* Reads one member; the parser is before its value. */
static bool read_member(struct claim_reader *reader, enum claim_member member)
{
    struct by_claim *claim = reader->claim;
    bool null = by_json_peek(&reader->json) == 'n';
    uint32_t node = 0;

    switch (member) {
    case MEMBER_TOPOLOGY:
        return read_same(reader, claim->topology->name, "name");
    case MEMBER_UNIT:
        return read_same(reader, claim->topology->unit, "unit");
    case MEMBER_COLLECTIVE:
        return read_collective(reader);
    case MEMBER_ROOT:
        if (!null && !read_node(reader, "the root", &node))
            return false;
        claim->root = null ? -1 : (int64_t)node;
        return true;
    case MEMBER_IN_NETWORK:
        return read_in_network(reader);
    case MEMBER_RANKS:
        return read_ranks(reader);
    case MEMBER_SHARES:
        return read_shares(reader);
    case MEMBER_INV_X:
        claim->has_inv_x = !null;
        return null || read_fraction(reader, "inv_x", claim->inv_x);
    case MEMBER_OPTIMUM:
        return read_fraction(reader, "optimum", claim->optimum);
    case MEMBER_ACHIEVED:
        return read_fraction(reader, "achieved", claim->achieved);
    case MEMBER_K:
        return read_small(reader, "k", &claim->k);
    case MEMBER_BOTTLENECK:
        return read_bottleneck(reader);
    case MEMBER_TREES_MAX:
        return read_small(reader, "trees_max", &claim->trees_max) &&
               (claim->trees_max > 0 || by_claim_violate(claim, "trees_max is 0"));
    case MEMBER_ORDERED:
        claim->ordered = by_json_peek(&reader->json) == 't';
        if (!claim->ordered && by_json_peek(&reader->json) != 'f')
            return by_claim_violate(claim, "\"ordered\" is neither true nor false");
        by_json_skip(&reader->json);
        return true;
    case MEMBER_PROOF:
        return by_claim_read_proof(claim, &reader->json, reader->names);
    case MEMBER_ROTATIONS:
        return by_claim_read_rotations(claim, &reader->json, reader->names, reader->arrays);
    case MEMBER_PATHS:
        return read_paths(reader);
    case MEMBER_TREES:
        return read_trees(reader);
    case MEMBER_FORMAT:
    case MEMBER_COUNT:
    default:
        return true;
    }
}

/* Finds the members of the plan; returns 0 when it is JSON of this format. */
static int find_members(struct claim_reader *reader, size_t *places, struct by_problem *problem)
{
    const char *key, *text = "(missing)";
    size_t bytes, length = strlen(text);
    bool known;

    for (bool first = true; by_json_member(&reader->json, &first, &key, &bytes);) {
        by_json_peek(&reader->json);
        for (int i = 0; i < MEMBER_COUNT; i++)
            if (by_json_is(key, bytes, member_names[i])) {
                if (places[i]) {
                    reader->json.failed = true;
                    snprintf(reader->json.mistake, sizeof(reader->json.mistake), "\"%s\" appears twice",
                             member_names[i]);
                }
                places[i] = reader->json.at;
            }
        by_json_skip(&reader->json);
    }
    if (by_json_finish(&reader->json, problem) != 0)
        return BY_EFORMAT;
    if (places[MEMBER_FORMAT]) {
        reader->json.at = places[MEMBER_FORMAT];
        if (by_json_peek(&reader->json) == '"')
            by_json_string(&reader->json, &text, &length);
    }
    known = by_json_is(text, length, places[MEMBER_ROTATIONS] ? FORMAT_CLASSES : FORMAT);
    if (!known)
        return by_problem_set(problem, BY_EFORMAT, (struct by_place){0, 0},
                              "the format is '%.*s'; this banyan checks '%s'", length > 40 ? 40 : (int)length,
                              text, places[MEMBER_ROTATIONS] ? FORMAT_CLASSES : FORMAT);
    return 0;
}

int by_claim_read(struct by_claim *claim, const char *text, size_t bytes, struct by_claim_arrays *arrays,
                  bool *right, struct by_problem *problem)
{
    struct claim_reader reader = {.claim = claim, .arrays = arrays};
    size_t places[MEMBER_COUNT] = {0};
    int error;

    *right = true;
    by_json_open(&reader.json, text, bytes);
    error = find_members(&reader, places, problem);
    if (!error)
        reader.names = by_names_new(claim->topology);
    arrays->path_start = by_alloc(reader.path_room = 2, sizeof(*arrays->path_start));
    for (int i = 0; i < MEMBER_COUNT && !error && *right; i++) {
        bool optional = i == MEMBER_ROOT || i == MEMBER_IN_NETWORK || i == MEMBER_RANKS ||
                        i == MEMBER_SHARES || i == MEMBER_INV_X || i == MEMBER_TREES_MAX ||
                        i == MEMBER_ORDERED || i == MEMBER_PROOF || i == MEMBER_ROTATIONS ||
                        i == MEMBER_PATHS;

        reader.json.at = places[i];
        reader.json.depth = 1;
        if (places[i])
            *right = read_member(&reader, (enum claim_member)i);
        else if (!optional)
            *right = by_claim_violate(claim, "the plan has no \"%s\"", member_names[i]);
    }
    claim->path_start = arrays->path_start;
    claim->path_nodes = arrays->path_nodes;
    claim->edges = arrays->edges;
    by_names_free(reader.names);
    by_json_close(&reader.json);
    return error;
}
